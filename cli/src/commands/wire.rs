//! `holdpoint wire`: puts the gate in front of the servers in hosts' configuration files, or points
//! hosts at a gateway.

use crate::arguments::Options;
use crate::arguments::hosts::WireCommand;
use crate::arguments::sandbox::SandboxProfile;
use crate::commands::wiring;
use crate::failure::{Exit, Failure};
use crate::screen;
use crate::settled_program::SettledProgram;
use crate::sign_in::KnownSignIns;
use crate::target::home_path;
use hosts::{Aim, Choice, Config, GatewayEntry, GatewayKey, SIGN_IN_SWITCH, WiringState};
use settings::SecretName;
use wire::EndpointUrl;

pub(crate) fn run(command: &WireCommand, options: &Options) -> Result<Exit, Failure> {
    let selection = &command.selection;
    let surroundings = wiring::surroundings()?;
    let configs = wiring::configs(&selection.hosts, selection.config.as_deref(), &surroundings)?;
    let configs = wiring::keep_apart(configs, options)?;
    // A gateway's entry names an address and no program.
    let settled = match (&command.program, &command.gateway) {
        (None, None) => Some(SettledProgram::find()?),
        _ => None,
    };
    let program = settled.as_ref().map(|settled| settled.path.as_path());
    let workshop = wiring::workshop(options, command.program.as_deref().or(program))?
        .searching(std::env::var_os("PATH"))
        .confining(command.sandbox.map(SandboxProfile::as_str));
    let gateway = command.gateway.as_deref().map(|url| entry(url, command)).transpose()?;
    let configs = match &gateway {
        Some(_) if selection.config.is_none() => files_for_a_gateway(configs, options),
        _ => configs,
    };
    let choice = Choice {
        servers: selection.server.clone(),
        is_open: command.no_sign_in,
        signs_in: command.sign_in,
        gateway,
        ..Choice::default()
    };
    let place = || settled.as_ref().map_or(Ok(()), |settled| settled.place(options));
    let exit = wiring::run(Aim::Wire, &workshop, &configs, &choice, selection, options, place)?;
    if command.sign_in && !selection.dry_run && !options.json {
        say_sign_ins(&configs, options)?;
    }
    Ok(exit)
}

/// Lists what the user still has to do for servers that the gate signs in to.
fn say_sign_ins(configs: &[Config], options: &Options) -> Result<(), Failure> {
    let known = KnownSignIns::read(&home_path(options)?);
    for server in configs.iter().flat_map(|config| config.servers().unwrap_or_default()) {
        let WiringState::Wired { options, .. } = &server.state else { continue };
        let signs_in = options.iter().any(|(name, _)| name == SIGN_IN_SWITCH);
        let is_known = server.id.parse().is_ok_and(|id| known.of(&id).is_some());
        if signs_in && !is_known {
            let words = ["holdpoint", "sign-in", &server.id].map(str::to_owned);
            screen::say_command("Sign in:", &words);
        }
    }
    Ok(())
}

/// The entry to add. If the URL has no path, the gateway's default path is used.
fn entry(url: &str, command: &WireCommand) -> Result<GatewayEntry, Failure> {
    let wrong = |error: &dyn std::fmt::Display| Failure::usage(format!("`--gateway`: {error}"));
    let trimmed = url.trim_end_matches('/');
    let has_path = trimmed.split_once("://").is_some_and(|(_, rest)| rest.contains('/'));
    let url = if has_path { trimmed.to_owned() } else { format!("{trimmed}/mcp") };
    // Only check that the address is valid; do not connect.
    let _: EndpointUrl = url.parse().map_err(|error| wrong(&error))?;
    let read = |key: &SecretName| {
        let value = key.read(|name| std::env::var(name).ok());
        value.map_err(|error| Failure::usage(format!("`--key`: {error}")))
    };
    let key = match (&command.key, command.write_key) {
        (None, _) => GatewayKey::None,
        (Some(SecretName::Env(name)), false) => GatewayKey::Variable(name.clone()),
        (Some(key @ SecretName::Env(name)), true) => {
            GatewayKey::Literal { variable: Some(name.clone()), key: read(key)?.trim().to_owned() }
        }
        (Some(key), true) => {
            GatewayKey::Literal { variable: None, key: read(key)?.trim().to_owned() }
        }
        (Some(_), false) => {
            return Err(Failure::usage(
                "hosts can name a variable only: use `--key env:NAME`, or `--write-key` to write the key itself into their files",
            ));
        }
    };
    Ok(GatewayEntry { url, key })
}

/// One file per host: its main one. A project's file is shared with other people and has to be
/// named with `--config`.
fn files_for_a_gateway(configs: Vec<Config>, options: &Options) -> Vec<Config> {
    let (able, unable): (Vec<Config>, Vec<Config>) =
        configs.into_iter().filter(Config::is_main).partition(Config::takes_http);
    if !options.quiet {
        for config in unable {
            screen::remark(format!(
                "{}: reads no HTTP servers from its file, so add the gateway in {} itself",
                config.host.title, config.host.title
            ));
        }
    }
    able
}
