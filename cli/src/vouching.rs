//! The attestation of a server, which `run` checks repeatedly and `pin` once.

use crate::arguments::Options;
use crate::configuration::{AdmissionRules, Configuration};
use crate::failure::Failure;
use crate::screen;
use crate::target::{Reach, Workplace};
use attest::{Flavor, Host, Program};
use engine::admission::{Admitted, Checker, LocalServer, Source, Subject};
use engine::package::PackageFinder;
use engine::process::ServerGroup;
use engine::program::{digests_of, find_program};
use engine::stdio::handover::{Handover, handover};
use gate::server::ServerId;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use wire::Upstream;
use wire::attestation::Greeting;

/// A program: its file, and whether it runs.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) file: PathBuf,
    pub(crate) stage: Stage,
}

#[derive(Debug)]
pub(crate) enum Stage {
    /// It runs, as these processes if they are known.
    Running(Option<ServerGroup>),
    /// The checker starts it once it is admitted.
    Later { handover: Handover, start_timeout: Duration },
}

/// Checks the attestation that the operator names or the server publishes.
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

/// Checks a server before `pin` contacts it. Does nothing if the configuration requires no attestation. If the
/// configuration is incomplete, a note is printed: `run` may get the rest as options, and a pin does not need it.
pub(crate) fn checker_for(
    id: &ServerId,
    reach: &Reach,
    workplace: &Workplace,
    options: &Options,
) -> Result<Option<Checker>, Failure> {
    let (configuration, home) = (&workplace.configuration, workplace.home.path());
    if configuration.has_part_of_admission(id) {
        if !options.quiet {
            screen::remark(
                "note: the server's attestation is not pinned: the configuration names no trust root or no level, although the server's entry may",
            );
        }
        return Ok(None);
    }
    let Some(rules) = configuration.admission(id, &Default::default(), home)? else {
        return Ok(None);
    };
    let started = found(&reach.upstream).map(|file| Started { file, stage: Stage::Running(None) });
    checker_of(rules, &reach.upstream, started).map(Some)
}

/// Admits a server before a command contacts it, if the configuration requires an attestation under the enclaved flavor.
///
/// INVARIANT: a server that is not admitted gets no header, variable or message of the operator's from any command. A
/// program that is admitted is ended again: the command starts it as it always does.
pub(crate) fn admit_before_look(
    id: &ServerId,
    reach: &Reach,
    configuration: &Configuration,
    home: &Path,
) -> Result<Option<Arc<Admitted>>, Failure> {
    if configuration.has_part_of_admission(id) {
        return Ok(None);
    }
    let rules = configuration.admission(id, &Default::default(), home)?;
    let Some(rules) = rules.filter(|rules| rules.terms.flavor() == Flavor::Enclaved) else {
        return Ok(None);
    };
    let start_timeout = configuration.start_timeout(id, None);
    let (handover, _outlet, server) = handover();
    let started = found(&reach.upstream)
        .map(|file| Started { file, stage: Stage::Later { handover, start_timeout } });
    let mut checker = checker_of(rules, &reach.upstream, started)?;
    let admitted = checker.check(None, Greeting::Initialize).admitted;
    server.group().kill();
    match admitted.denied() {
        None => Ok(Some(admitted)),
        Some(denial) => Err(Failure::denied(
            denial.reason().as_str(),
            format!(
                "`{id}` is not admitted, so it was not contacted: {}: {}",
                denial.reason(),
                screen::readable(denial.detail())
            ),
        )),
    }
}

/// The file of the program that a launch starts.
fn found(upstream: &Upstream) -> Option<PathBuf> {
    match upstream {
        Upstream::Stdio(launch) => {
            find_program(&launch.program.to_string_lossy(), launch.directory.as_deref())
        }
        Upstream::Http(_) => None,
    }
}

/// The digest of a program's file and its package. Both are read while it starts: what runs is what was there
/// then. The package's record is read again each time, because it may be replaced while the server runs.
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
