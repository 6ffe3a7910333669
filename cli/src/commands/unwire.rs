//! `holdpoint unwire`: removes the gate from hosts' configuration files. Files that no other
//! program has written since are restored byte for byte.

use crate::arguments::Options;
use crate::arguments::hosts::UnwireCommand;
use crate::commands::wiring;
use crate::failure::{Exit, Failure};
use hosts::{Aim, Choice, Config, Host, Workshop};

pub(crate) fn run(command: &UnwireCommand, options: &Options) -> Result<Exit, Failure> {
    let selection = &command.selection;
    let surroundings = wiring::surroundings()?;
    let workshop = wiring::workshop(options, None)?;
    let configs = match &selection.config {
        Some(path) => wiring::configs(&selection.hosts, Some(path), &surroundings)?,
        None => wired_configs(&workshop, &selection.hosts)?,
    };
    let choice = Choice { servers: selection.server.clone(), ..Choice::default() };
    wiring::run(Aim::Unwire, &workshop, &configs, &choice, selection, options, || Ok(()))
}

/// Every file that contains one of our entries: the files of hosts, and files that only the journal
/// knows.
pub(crate) fn wired_configs(
    workshop: &Workshop,
    hosts: &[&'static Host],
) -> Result<Vec<Config>, Failure> {
    let surroundings = wiring::surroundings()?;
    let mut configs = wiring::configs(hosts, None, &surroundings)?;
    let real = |config: &Config| std::fs::canonicalize(&config.path).ok();
    for config in workshop.wired_files(&surroundings).map_err(Failure::internal)? {
        let is_meant = hosts.is_empty() || hosts.contains(&config.host);
        if is_meant && !configs.iter().any(|other| real(other) == real(&config)) {
            configs.push(config);
        }
    }
    Ok(configs)
}
