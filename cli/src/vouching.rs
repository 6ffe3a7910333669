//! Who vouches for a server: what `run` checks again and again, and `pin` once.

use crate::arguments::Options;
use crate::configuration::AdmissionRules;
use crate::failure::Failure;
use crate::screen;
use crate::target::{Source as TargetSource, Target, Workplace};
use attest::{Host, Program};
use engine::admission::{Checker, LocalServer, Source, Subject};
use engine::handover::Handover;
use engine::package::PackageFinder;
use engine::process::ServerGroup;
use engine::program::{digests_of, find_program};
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::Duration;
use wire::Upstream;

/// A program: its file, and how far it is started.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) file: PathBuf,
    pub(crate) stage: Stage,
}

#[derive(Debug)]
pub(crate) enum Stage {
    /// It runs, as these processes where they are known.
    Running(Option<ServerGroup>),
    /// The checker starts it once it is admitted.
    Later { handover: Handover, start_timeout: Duration },
}

/// Checks who vouches for a server, by what the operator names or the server publishes.
pub(crate) fn checker_of(
    rules: AdmissionRules,
    upstream: &Upstream,
    started: Option<Started>,
) -> Result<Checker, Failure> {
    let AdmissionRules { terms, attestation, bindings, .. } = rules;
    let file = attestation.map(Source::File);
    let (subject, source) = match (upstream, started) {
        (Upstream::Http(endpoint), _) => {
            let host = Host::parse(&endpoint.url.host_and_port()).map_err(Failure::usage)?;
            (Subject::Remote(host), Source::Published(endpoint.clone()))
        }
        (Upstream::Stdio(launch), Some(Started { file, stage: Stage::Running(group) })) => {
            let finder = PackageFinder::new(&file, launch, group);
            let program = observed(file, finder);
            (Subject::Local { program, bindings }, Source::InBand)
        }
        (
            Upstream::Stdio(launch),
            Some(Started { file, stage: Stage::Later { handover, start_timeout } }),
        ) => {
            let become_with = std::env::current_exe().ok();
            let server =
                LocalServer::new(launch.clone(), file, become_with, start_timeout, handover);
            (Subject::Startable { server: Box::new(server), bindings }, Source::InBand)
        }
        (Upstream::Stdio(_), None) => {
            let program = Box::new(Program::default);
            (Subject::Local { program, bindings }, Source::InBand)
        }
    };
    Ok(Checker::new(terms, subject, file.unwrap_or(source)))
}

/// The same for a server that is about to be looked at once; nothing where the configuration does not ask for it, or there
/// is no server but a capture. Where the configuration has a part of what it takes, a person is told: `run` may be given the
/// rest, and a pin needs none of it.
pub(crate) fn checker_for(
    target: &Target,
    workplace: &Workplace,
    options: &Options,
) -> Result<Option<Checker>, Failure> {
    let TargetSource::Server(reach) = &target.source else { return Ok(None) };
    let (configuration, home) = (&workplace.configuration, workplace.home.path());
    if configuration.has_part_of_admission(&target.id)? {
        if !options.quiet {
            screen::remark(
                "note: who vouches for the server is not pinned with it: the configuration names no trust root or no level, the server's entry may",
            );
        }
        return Ok(None);
    }
    let Some(rules) = configuration.admission(&target.id, &Default::default(), home)? else {
        return Ok(None);
    };
    let started = match &reach.upstream {
        Upstream::Stdio(launch) => {
            let program = launch.program.to_string_lossy();
            find_program(&program, launch.directory.as_deref())
                .map(|file| Started { file, stage: Stage::Running(None) })
        }
        Upstream::Http(_) => None,
    };
    checker_of(rules, &reach.upstream, started).map(Some)
}

/// What is known of a program's file and of its package. Both are looked at beside its start: what runs is what was there
/// then. The package's record is looked at again each time, for it may be replaced under the running server.
fn observed(path: PathBuf, mut finder: PackageFinder) -> Box<dyn FnMut() -> Program + Send> {
    let mut reading = Some(std::thread::spawn(move || {
        finder.begin();
        (digests_of(&path), finder)
    }));
    let mut finder = None;
    let mut program = Program::default();
    Box::new(move || {
        if let Some(Ok((file, begun))) = reading.take().map(JoinHandle::join) {
            program.file = file.unwrap_or_default();
            finder = Some(begun);
        }
        if let Some(finder) = &mut finder {
            program.package = finder.look();
        }
        program.clone()
    })
}
