//! `holdpoint network`: an install's side of the network. Everything is off by default.

mod advisories;
mod announced;
mod settings_file;
mod status;

use crate::arguments::Options;
use crate::arguments::network::{DirectoryArguments, NetworkCommand, NetworkOn, NetworkSubcommand};
use crate::failure::{Exit, Failure};
use crate::observation::now;
use crate::screen;
use crate::target::Workplace;
use crate::upper_tiers;
use engine::network::{ContributionsSince, NetworkFolder};
use settings::{Network, SecretName, Text};

pub(crate) use announced::{LocalNetwork, UnconfirmedReports};

pub(crate) fn run(command: &NetworkCommand, options: &Options) -> Result<Exit, Failure> {
    match &command.command {
        NetworkSubcommand::On(on) => turn_on(on, options),
        NetworkSubcommand::Off => turn_off(options),
        NetworkSubcommand::Status(status) => status::run(status, options),
        NetworkSubcommand::Advisories(advisories) => advisories::run(advisories, options),
    }
}

/// The configuration, overridden by the command line.
fn named(configured: &Network, arguments: &DirectoryArguments) -> Result<Network, Failure> {
    let mut network = configured.clone();
    if let Some(url) = &arguments.url {
        let text = Text::try_from(url.clone());
        network.url = Some(text.map_err(|why| Failure::usage(format!("`--url`: {why}")))?);
    }
    if let Some(key) = &arguments.key {
        let name: SecretName =
            key.parse().map_err(|error| Failure::usage(format!("`--key`: {error}")))?;
        network.key = Some(name);
    }
    network.allow_private |= arguments.allow_private;
    network.contribute |= arguments.contribute;
    match network.mistake() {
        Some((key, why)) => Err(Failure::usage(format!("`--{key}`: {why}"))),
        None => Ok(network),
    }
}

fn turn_on(command: &NetworkOn, options: &Options) -> Result<Exit, Failure> {
    let workplace = Workplace::open(options)?;
    let network = named(workplace.configuration.network(), &command.directory)?;
    let (Some(url), Some(key)) = (&network.url, &network.key) else {
        return Err(Failure::usage(
            "which directory? name it with `--url URL` and its key with `--key env:VARIABLE`; \
             `holdpoint network status` shows what would be sent",
        ));
    };
    url.parse::<wire::EndpointUrl>()
        .map_err(|error| Failure::usage(format!("`--url`: {error}")))?;
    upper_tiers::read_key(key).map_err(|error| Failure::usage(format!("`--key`: {error}")))?;
    let folder = NetworkFolder::of(workplace.home.path());
    settings_file::write(&workplace.home.config_path(), &network)?;
    folder.turn_on()?;
    let place = url.trim_end_matches('/');
    if network.contribute && ContributionsSince::read(&folder, place).is_none() {
        // Decisions made before contributing was turned on are never sent.
        ContributionsSince::begin(&folder, place, now());
    }
    let access = upper_tiers::access(
        workplace.home.path(),
        &crate::configuration::Configuration::read(&workplace.home.config_path())?,
    );
    if options.json {
        screen::print_json(&serde_json::json!({
            "state": if access.veto.is_some() { "vetoed" } else { "on" },
            "veto": access.veto.as_ref().map(ToString::to_string),
            "url": place,
            "contribute": network.contribute,
        }))?;
        return Ok(Exit::Fine);
    }
    match &access.veto {
        Some(veto) => screen::say(format!("configured, but no requests are made: {veto}")),
        None => {
            screen::say(format!("sessions that start from now on ask {place}"));
            let told = if network.contribute {
                "observed changes and decisions are sent to it"
            } else {
                "observed changes and decisions are not sent to it (`--contribute` turns that on)"
            };
            screen::say(told);
            screen::say("what is sent, byte for byte: holdpoint network status");
        }
    }
    Ok(Exit::Fine)
}

fn turn_off(options: &Options) -> Result<Exit, Failure> {
    let workplace = Workplace::open(options)?;
    NetworkFolder::of(workplace.home.path()).turn_off()?;
    if options.json {
        screen::print_json(&serde_json::json!({
            "state": "vetoed",
            "veto": settings::Veto::TurnedOff.to_string(),
            "url": workplace.configuration.network().url.as_deref(),
            "contribute": false,
        }))?;
    } else {
        screen::say("off: nothing is sent to a directory or a model, not even by running sessions");
    }
    Ok(Exit::Fine)
}
