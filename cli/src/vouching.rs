//! Checks the attestation of a server: `run` does so repeatedly, `pin` once.

use crate::arguments::Options;
use crate::configuration::Configuration;
use crate::failure::Failure;
use crate::screen;
use crate::target::{Reach, Workplace};
use attest::Flavor;
use engine::admission::{Admitted, Checker, Stage, Started, checker_of};
use engine::program::find_program;
use engine::stdio::handover::handover;
use gate::server::ServerId;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wire::Upstream;
use wire::attestation::Greeting;

/// Checks a server before `pin` contacts it. Does nothing if the configuration requires no
/// attestation. If the configuration is incomplete, prints a note: `run` may get the missing values
/// as options, and a pin does not need them.
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
    checker_of(rules, &reach.upstream, started).map(Some).map_err(Failure::usage)
}

/// Admits a server before a command contacts it, if the configuration requires an attestation under the enclaved flavor.
///
/// INVARIANT: no command sends a header, variable or message of the operator's to a server that is
/// not admitted. An admitted program is stopped again: the command starts it in its usual way.
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
    let mut checker = checker_of(rules, &reach.upstream, started).map_err(Failure::usage)?;
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

/// The program file that a launch starts.
fn found(upstream: &Upstream) -> Option<PathBuf> {
    match upstream {
        Upstream::Stdio(launch) => {
            find_program(&launch.program.to_string_lossy(), launch.directory.as_deref())
        }
        Upstream::Http(_) => None,
    }
}
