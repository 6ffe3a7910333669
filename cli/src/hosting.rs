//! Shared by commands that check all hosts: which files exist, and how many servers bypass the
//! gate.

use crate::arguments::Options;
use crate::commands::wiring;
use crate::failure::Failure;
use crate::gate_program::{Started, started};
use hosts::{Config, Server, Surroundings, WiringState};
use std::path::PathBuf;

/// The file name of the binary.
pub(crate) const PROGRAM: &str = if cfg!(windows) { "holdpoint.exe" } else { "holdpoint" };

/// Where this user's hosts keep their files, independent of the current folder.
pub(crate) fn surroundings_of_user() -> Result<Surroundings, Failure> {
    Ok(Surroundings { projects: Vec::new(), ..wiring::surroundings()? })
}

/// Holdpoint's home, if it is not the default: a process that is not started from this shell needs
/// it spelled out.
pub(crate) fn named_home(options: &Options) -> Option<PathBuf> {
    let variable = std::env::var_os("HOLDPOINT_HOME").filter(|value| !value.is_empty());
    let named = options.home.clone().or_else(|| variable.map(PathBuf::from))?;
    std::path::absolute(named).ok()
}

/// The files of this user's hosts, and of the project in the current folder.
pub(crate) fn files_of_hosts() -> Result<Vec<Config>, Failure> {
    Ok(hosts::locate(&wiring::surroundings()?, &[]))
}

/// Every file to check: those of the hosts, and any other file that was wired.
pub(crate) fn files(options: &Options) -> Result<Vec<Config>, Failure> {
    let mut files = files_of_hosts()?;
    let workshop = wiring::workshop(options, None)?;
    let wired = workshop.wired_files(&wiring::surroundings()?).map_err(Failure::usage)?;
    let real = |config: &Config| config.path.canonicalize().ok();
    for config in wired {
        if !files.iter().any(|other| real(other) == real(&config)) {
            files.push(config);
        }
    }
    Ok(files)
}

/// The ids of the servers that start behind the gate, as far as the files can be read.
pub(crate) fn guarded_ids() -> Vec<String> {
    let files = files_of_hosts().unwrap_or_default();
    let servers = files.iter().flat_map(|config| config.servers().unwrap_or_default());
    let guarded = servers.filter(|server| started(server) == Started::Gate);
    guarded.map(|server| server.id).collect()
}

/// The number of servers that could be guarded and are not, as far as the files can be read. A
/// server does not count as guarded if its entry starts another program named holdpoint, or if its
/// host may also start or reach it in a second way.
pub(crate) fn count_unguarded() -> usize {
    let files = files_of_hosts().unwrap_or_default();
    let servers = files.iter().flat_map(|config| config.servers().unwrap_or_default());
    let is_unguarded = |server: &Server| match &server.state {
        WiringState::Unwired => true,
        WiringState::Wired { .. } => started(server) == Started::Other,
        WiringState::Gateway { .. } => false,
        WiringState::Unguarded(_) => server.names_gate,
    };
    servers.filter(is_unguarded).count()
}
