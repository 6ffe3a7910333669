//! `holdpoint incident`: the switches that stop calls, and revocations.

mod drill;

use crate::approver;
use crate::arguments::Options;
use crate::arguments::incident::{
    BlockEgressCommand, IncidentCommand, IncidentSubcommand, OffCommand, OnCommand, ReleaseCommand,
    RevokeCommand,
};
use crate::failure::{Exit, Failure};
use crate::gateway_file;
use crate::report::count;
use crate::screen::{self, BOLD, DIM, GREEN, RED, YELLOW, styled};
use crate::target::Workplace;
use engine::acts::ActError;
use engine::acts::incident::{self, Consent, IncidentDocument};
use gate::server::ServerId;
use std::path::Path;
use store::{
    By, Incident, IncidentLevel, IncidentScope, IncidentState, IncidentStore, Location, Quarantine,
    Revocation, RevokedKind, Signed, StoppedParts, Store,
};

/// During an incident, a person has to know which switches have no effect here.
const UNENFORCED: &str = "revoked keys and sessions are recorded for a gateway: `holdpoint run` does not look at them. To stop calls now: holdpoint incident on";

/// The most revocations that are shown, newest first.
const MAX_SHOWN: usize = 20;

pub(crate) fn run(command: &IncidentCommand, options: &Options) -> Result<Exit, Failure> {
    let (mut workplace, location) = open(options, command.config.as_deref())?;
    match &command.command {
        IncidentSubcommand::On(command) => begin(command, &mut workplace)?,
        IncidentSubcommand::Off(command) => end(command, &mut workplace)?,
        IncidentSubcommand::Status => {}
        IncidentSubcommand::Release(command) => release(command, &mut workplace)?,
        IncidentSubcommand::Drill => return drill::run(&mut workplace, &location, options),
        IncidentSubcommand::Revoke(command) => revoke(command, &mut workplace)?,
        IncidentSubcommand::BlockEgress(command) => block_egress(command, &mut workplace)?,
    }
    let state = workplace.store.incident()?;
    if options.json {
        screen::print_json(&IncidentDocument::of(&state))?;
    } else {
        print_result(&state, options);
    }
    Ok(Exit::Fine)
}

/// Opens the home, with the store that the gateway's file names, if any: a gateway's switches are
/// stored there.
fn open(options: &Options, config: Option<&Path>) -> Result<(Workplace, Location), Failure> {
    let mut workplace = Workplace::open(options)?;
    let own = workplace.configuration.store()?;
    let path = gateway_file::path(workplace.home.path(), config);
    if config.is_none() && !path.exists() {
        return Ok((workplace, own));
    }
    let (gateway, _) = gateway_file::read(&path)?;
    let location = gateway_file::location(&gateway, &workplace.configuration)?;
    if !is_same(&location, &own) {
        let store = store::open(&workplace.home, &location)?;
        workplace.store = store::Witnessed::new(store, &workplace.home);
        screen::remark(format!(
            "this is the store of `{}`; `holdpoint run` uses the one of holdpoint.toml",
            path.display()
        ));
    }
    Ok((workplace, location))
}

fn is_same(location: &Location, other: &Location) -> bool {
    match (location, other) {
        (Location::Sqlite, Location::Sqlite) => true,
        (Location::SqliteIn(folder), Location::SqliteIn(other)) => folder == other,
        (Location::Postgres(address), Location::Postgres(other)) => {
            address.to_string() == other.to_string()
        }
        (Location::Sqlite | Location::SqliteIn(_) | Location::Postgres(_), _) => false,
    }
}

fn begin(command: &OnCommand, workplace: &mut Workplace) -> Result<(), Failure> {
    let OnCommand { server, tool, principal, level, reason } = command;
    let parts = StoppedParts {
        servers: server.iter().cloned().collect(),
        tools: tool.iter().cloned().collect(),
        principals: principal.iter().cloned().collect(),
    };
    if principal.iter().any(String::is_empty) {
        return Err(Failure::usage("`--principal` has an empty name"));
    }
    let names_others = !tool.is_empty() || !principal.is_empty();
    if level.is_some() && server.is_empty() && names_others {
        let words = "`--level` is about servers, and tools and principals are stopped whatever the risk: leave it out, or name the servers with `--server`";
        return Err(Failure::usage(words));
    }
    let scope = match parts == StoppedParts::default() {
        true => IncidentScope::All,
        false => IncidentScope::Parts(parts),
    };
    let level = level.unwrap_or(IncidentLevel::High);
    let incident = Incident { level, scope, reason: reason.clone() };
    let question = "Replace the current incident with one that stops less?";
    with_consent(workplace, question, |store, consent, by| {
        incident::begin(store, &incident, consent, by)
    })
}

fn end(command: &OffCommand, workplace: &mut Workplace) -> Result<(), Failure> {
    let Some((on, _)) = workplace.store.incident()?.incident else { return Ok(()) };
    let Some(reason) = &command.reason else {
        let words = "say why it is over: holdpoint incident off --reason 'the key was replaced'";
        return Err(Failure::usage(words));
    };
    let question = format!("End the incident on {}?", scope_words(&on.scope));
    with_consent(workplace, &question, |store, consent, by| {
        incident::end(store, reason, consent, by)
    })
}

fn release(command: &ReleaseCommand, workplace: &mut Workplace) -> Result<(), Failure> {
    let id = &command.id;
    with_consent(workplace, &format!("Release `{id}` from quarantine?"), |store, consent, by| {
        incident::release(store, id, consent, by)
    })
}

fn revoke(command: &RevokeCommand, workplace: &mut Workplace) -> Result<(), Failure> {
    let RevokeCommand { kind, value } = command;
    let name = approver::name();
    incident::revoke(&mut workplace.store, *kind, value, approver::by(&name))?;
    if *kind == RevokedKind::Principal && !is_known_principal(value, workplace)? {
        screen::remark(format!(
            "warning: no session or act of `{}` is known here, so this may stop nothing: \
             `holdpoint receipts list` shows the principals. To stop all calls now: holdpoint incident on",
            screen::readable(value)
        ));
    }
    Ok(())
}

/// Whether a name is this user's, or one that this home has seen.
fn is_known_principal(name: &str, workplace: &Workplace) -> Result<bool, Failure> {
    if approver::account().as_deref() == Some(name) || approver::name() == name {
        return Ok(true);
    }
    let receipts = workplace.home.receipts_path();
    Ok(incident::is_known_principal(&workplace.store, &receipts, name)?)
}

fn block_egress(command: &BlockEgressCommand, workplace: &mut Workplace) -> Result<(), Failure> {
    if command.off {
        return with_consent(
            workplace,
            "Allow outgoing connections again?",
            incident::unblock_egress,
        );
    }
    let name = approver::name();
    Ok(incident::block_egress(&mut workplace.store, approver::by(&name))?)
}

/// Performs an act at once if it stops more, and asks a person first if it stops less.
fn with_consent(
    workplace: &mut Workplace,
    question: &str,
    act: impl Fn(&mut dyn Store, Consent, By<'_>) -> Result<(), ActError>,
) -> Result<(), Failure> {
    let name = approver::name();
    match act(&mut workplace.store, Consent::NotAsked, approver::by(&name)) {
        Err(ActError::NeedsConsent) => {
            approver::confirm_yes(&workplace.configuration, question)?;
            Ok(act(&mut workplace.store, Consent::Given, approver::by(&name))?)
        }
        done => Ok(done?),
    }
}

fn print_result(state: &IncidentState, options: &Options) {
    match &state.incident {
        None => screen::say(format!("{}  no incident", styled(GREEN.bold(), "OFF"))),
        Some((incident, signed)) => {
            screen::say(format!(
                "{}  {}: calls are denied{}",
                styled(RED.bold(), "INCIDENT"),
                on_words(incident),
                since(signed)
            ));
            if let Some(reason) = &incident.reason {
                screen::say(format!("    {}", screen::readable(reason)));
            }
            if !options.quiet {
                screen::say(styled(DIM, "    end it: holdpoint incident off --reason TEXT"));
            }
        }
    }
    if let Some(signed) = &state.egress_blocked {
        let blocked = styled(RED.bold(), "EGRESS BLOCKED");
        screen::say(format!("{blocked}  outgoing connections are blocked{}", since(signed)));
    }
    print_quarantines(&state.quarantines, options);
    print_revocations(&state.revocations);
    if !options.quiet && needs_a_gateway(state) {
        screen::say(format!("{} {UNENFORCED}", styled(YELLOW, "!")));
    }
}

/// Whether a switch is set that `holdpoint run` does not enforce.
fn needs_a_gateway(state: &IncidentState) -> bool {
    let is_elsewhere = |revocation: &Revocation| match revocation.kind {
        RevokedKind::Server | RevokedKind::Principal => false,
        RevokedKind::Key | RevokedKind::Session => true,
    };
    state.revocations.iter().any(is_elsewhere)
}

fn print_revocations(revocations: &[Revocation]) {
    let mut newest: Vec<&Revocation> = revocations.iter().collect();
    newest.sort_by_key(|revocation| std::cmp::Reverse(revocation.signed.at));
    for revocation in newest.iter().take(MAX_SHOWN) {
        let value = revocation.shown_value().map(screen::readable);
        let hash = || format!("sha256 {:.16}…", revocation.value_sha256());
        screen::say(format!(
            "{}  {} {}{}",
            styled(BOLD, "revoked"),
            revocation.kind.as_str(),
            value.unwrap_or_else(hash),
            since(&revocation.signed)
        ));
    }
    if let Some(more @ 1..) = newest.len().checked_sub(MAX_SHOWN) {
        screen::say(styled(DIM, format!("{more} more were revoked earlier: --json has all")));
    }
}

/// Lists the quarantines that anomaly rules caused.
fn print_quarantines(quarantines: &[Quarantine], options: &Options) {
    for quarantine in quarantines.iter().rev().take(MAX_SHOWN) {
        let id = quarantine.id();
        let what = if quarantine.session.is_some() { "a session of " } else { "" };
        screen::say(format!(
            "{}  {what}{}: {}{}",
            styled(RED.bold(), "QUARANTINED"),
            screen::readable(&quarantine.principal),
            screen::readable(&quarantine.rule),
            styled(DIM, format!("  since {}", quarantine.at))
        ));
        if !options.quiet {
            screen::say(styled(DIM, format!("    release it: holdpoint incident release {id}")));
        }
    }
    if let Some(more @ 1..) = quarantines.len().checked_sub(MAX_SHOWN) {
        screen::say(styled(DIM, format!("{more} more are quarantined: --json has all")));
    }
}

fn on_words(incident: &Incident) -> String {
    let scope = styled(BOLD, scope_words(&incident.scope));
    let has_level = match &incident.scope {
        IncidentScope::All => true,
        IncidentScope::Parts(parts) => !parts.servers.is_empty(),
    };
    match has_level {
        true => format!("level {}, on {scope}", incident.level.as_str()),
        false => format!("on {scope}"),
    }
}

fn scope_words(scope: &IncidentScope) -> String {
    let IncidentScope::Parts(StoppedParts { servers, tools, principals }) = scope else {
        return "all servers".to_owned();
    };
    let named = |names: Vec<String>, one: &str, many: &str| match names.len() {
        0 => None,
        number => Some(format!("{}: {}", count(number, one, many), names.join(", "))),
    };
    let parts = [
        named(servers.iter().map(ServerId::to_string).collect(), "server", "servers"),
        named(
            tools.iter().map(|tool| screen::readable(&tool.to_string())).collect(),
            "tool",
            "tools",
        ),
        named(
            principals.iter().map(|name| screen::readable(name)).collect(),
            "principal",
            "principals",
        ),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn since(signed: &Signed) -> String {
    styled(DIM, format!("  by {} since {}", screen::readable(&signed.by), signed.at))
}
