//! `holdpoint wire`: puts the gate in front of the servers in hosts' configuration files.

use crate::arguments::Options;
use crate::arguments::hosts::WireCommand;
use crate::commands::wiring;
use crate::failure::{Exit, Failure};
use hosts::{Aim, Choice};

pub(crate) fn run(command: &WireCommand, options: &Options) -> Result<Exit, Failure> {
    let selection = &command.selection;
    let surroundings = wiring::surroundings()?;
    let configs = wiring::configs(&selection.hosts, selection.config.as_deref(), &surroundings)?;
    let configs = wiring::keep_apart(configs, options)?;
    let workshop =
        wiring::workshop(options, command.program.as_deref())?.searching(std::env::var_os("PATH"));
    let choice = Choice {
        servers: selection.server.clone(),
        is_open: command.no_sign_in,
        ..Choice::default()
    };
    wiring::run(Aim::Wire, &workshop, &configs, &choice, selection, options)
}
