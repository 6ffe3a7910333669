//! `holdpoint incident`: the switches that stop calls for everybody, and what is revoked.
//!
//! Stopping more needs nobody's yes; stopping less does: an agent with a shell must not let itself go.

use crate::approver;
use crate::arguments::Options;
use crate::arguments::incident::{
    BlockEgressCommand, IncidentCommand, IncidentSubcommand, OnCommand, RevokeCommand,
};
use crate::failure::{Exit, Failure};
use crate::observation::now;
use crate::report::count;
use crate::screen::{self, BOLD, DIM, GREEN, RED, YELLOW, styled};
use crate::target::{Workplace, unknown_server};
use gate::server::ServerId;
use gate::words::escape_hidden;
use ledger::receipt::{Filter, Item, newest};
use serde::Serialize;
use std::collections::BTreeSet;
use store::receipts::DiskFolder;
use store::{
    By, Incident, IncidentScope, IncidentState, IncidentStore, Revocation, RevokedKind, Signed,
    Store,
};

/// In an incident a person has to know what stops nothing yet.
const UNENFORCED: &str = "blocked egress and revoked keys and sessions are recorded for a gateway: `holdpoint run` does not look at them. To stop calls now: holdpoint incident on";

/// The most revocations that a person is shown: the newest.
const MAX_SHOWN: usize = 20;

pub(crate) fn run(command: &IncidentCommand, options: &Options) -> Result<Exit, Failure> {
    let mut workplace = Workplace::open(options)?;
    match &command.command {
        IncidentSubcommand::On(command) => begin(command, &mut workplace)?,
        IncidentSubcommand::Off => end(&mut workplace)?,
        IncidentSubcommand::Status => {}
        IncidentSubcommand::Revoke(command) => revoke(command, &mut workplace)?,
        IncidentSubcommand::BlockEgress(command) => block_egress(command, &mut workplace)?,
    }
    let state = workplace.store.incident()?;
    if options.json {
        screen::print_json(&StateDocument::of(&state))?;
    } else {
        tell(&state, options);
    }
    Ok(Exit::Fine)
}

fn begin(command: &OnCommand, workplace: &mut Workplace) -> Result<(), Failure> {
    for id in &command.server {
        need_known(id, workplace)?;
    }
    let servers: BTreeSet<ServerId> = command.server.iter().cloned().collect();
    let scope =
        if servers.is_empty() { IncidentScope::All } else { IncidentScope::Servers(servers) };
    let incident = Incident { level: command.level, scope, reason: command.reason.clone() };
    let before = workplace.store.incident()?.incident;
    if before.is_some_and(|(before, _)| !covers(&incident, &before)) {
        approver::confirm_yes(
            &workplace.configuration,
            "Replace the incident that is on by one that stops less?",
        )?;
    }
    let name = approver::name();
    workplace.store.begin_incident(&incident, By { name: &name, at: now() })?;
    Ok(())
}

/// A name that was mistyped would stop nothing.
fn need_known(id: &ServerId, workplace: &Workplace) -> Result<(), Failure> {
    match workplace.store.server(id)? {
        Some(_) => Ok(()),
        None => Err(unknown_server(id, workplace)),
    }
}

/// Whether all that an incident stops is stopped by another one, too.
fn covers(incident: &Incident, before: &Incident) -> bool {
    let has_all_servers = match (&incident.scope, &before.scope) {
        (IncidentScope::All, _) => true,
        (IncidentScope::Servers(_), IncidentScope::All) => false,
        (IncidentScope::Servers(servers), IncidentScope::Servers(others)) => {
            servers.is_superset(others)
        }
    };
    // The lower level denies what the higher one does, and more.
    has_all_servers && incident.level <= before.level
}

fn end(workplace: &mut Workplace) -> Result<(), Failure> {
    let Some((incident, _)) = workplace.store.incident()?.incident else { return Ok(()) };
    let question = format!("End the incident on {}?", scope_words(&incident.scope));
    approver::confirm_yes(&workplace.configuration, &question)?;
    let name = approver::name();
    workplace.store.end_incident(By { name: &name, at: now() })?;
    Ok(())
}

fn revoke(command: &RevokeCommand, workplace: &mut Workplace) -> Result<(), Failure> {
    if command.value.is_empty() {
        return Err(Failure::usage(format!("which {}? its name is empty", command.kind.as_str())));
    }
    if command.kind == RevokedKind::Server {
        let id = command.value.parse().map_err(Failure::usage)?;
        need_known(&id, workplace)?;
    }
    if command.kind == RevokedKind::Principal && !is_known_principal(&command.value, workplace)? {
        // It may be known to another home on the same store, so this does not refuse.
        screen::remark(format!(
            "warning: no session or act of `{}` is known here, so this may stop nothing: \
             `holdpoint receipts list` shows the principals. To stop all calls now: holdpoint incident on",
            escape_hidden(&command.value)
        ));
    }
    let name = approver::name();
    workplace.store.revoke(command.kind, &command.value, By { name: &name, at: now() })?;
    Ok(())
}

/// Whether it is this user, or a receipt, a history or an event of this home names it.
fn is_known_principal(name: &str, workplace: &Workplace) -> Result<bool, Failure> {
    if approver::account().as_deref() == Some(name) || approver::name() == name {
        return Ok(true);
    }
    if workplace.store.events()?.iter().any(|event| event.by == name) {
        return Ok(true);
    }
    for server in workplace.store.servers()? {
        if workplace.store.history(&server.id)?.iter().any(|event| event.by == name) {
            return Ok(true);
        }
    }
    let path = workplace.home.receipts_path();
    if !path.exists() {
        return Ok(false);
    }
    let folder = DiskFolder::new(&path);
    let filter = Filter { principal: Some(name.to_owned()), ..Filter::default() };
    let is_receipt = |item: &Item| !matches!(item, Item::Event(_));
    Ok(!newest(&folder, &filter, &is_receipt, 1)?.items.is_empty())
}

fn block_egress(command: &BlockEgressCommand, workplace: &mut Workplace) -> Result<(), Failure> {
    let name = approver::name();
    if !command.off {
        workplace.store.block_egress(By { name: &name, at: now() })?;
    } else if workplace.store.incident()?.egress_blocked.is_some() {
        approver::confirm_yes(&workplace.configuration, "Open the ways out again?")?;
        workplace.store.unblock_egress(By { name: &name, at: now() })?;
    }
    Ok(())
}

/// What every subcommand prints: how it stands now.
#[derive(Debug, Serialize)]
struct StateDocument<'a> {
    incident: Option<IncidentDocument<'a>>,
    egress_blocked: Option<&'a Signed>,
    revocations: Vec<RevocationDocument<'a>>,
}

#[derive(Debug, Serialize)]
struct IncidentDocument<'a> {
    level: &'static str,
    /// None: all of them.
    servers: Option<&'a BTreeSet<ServerId>>,
    reason: Option<&'a str>,
    #[serde(flatten)]
    signed: &'a Signed,
}

#[derive(Debug, Serialize)]
struct RevocationDocument<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a str>,
    value_sha256: String,
    #[serde(flatten)]
    signed: &'a Signed,
}

impl<'a> StateDocument<'a> {
    fn of(state: &'a IncidentState) -> StateDocument<'a> {
        let incident = state.incident.as_ref().map(|(incident, signed)| IncidentDocument {
            level: incident.level.as_str(),
            servers: match &incident.scope {
                IncidentScope::All => None,
                IncidentScope::Servers(servers) => Some(servers),
            },
            reason: incident.reason.as_deref(),
            signed,
        });
        let revocations = state.revocations.iter().map(|revocation| RevocationDocument {
            kind: revocation.kind.as_str(),
            value: revocation.shown_value(),
            value_sha256: revocation.value_sha256(),
            signed: &revocation.signed,
        });
        StateDocument {
            incident,
            egress_blocked: state.egress_blocked.as_ref(),
            revocations: revocations.collect(),
        }
    }
}

fn tell(state: &IncidentState, options: &Options) {
    match &state.incident {
        None => screen::say(format!("{}  no incident", styled(GREEN.bold(), "OFF"))),
        Some((incident, signed)) => {
            let (level, scope) = (incident.level.as_str(), scope_words(&incident.scope));
            screen::say(format!(
                "{}  level {level}, on {}: calls are denied{}",
                styled(RED.bold(), "INCIDENT"),
                styled(BOLD, scope),
                since(signed)
            ));
            if let Some(reason) = &incident.reason {
                screen::say(format!("    {}", escape_hidden(reason)));
            }
            if !options.quiet {
                screen::say(styled(DIM, "    end it: holdpoint incident off"));
            }
        }
    }
    if let Some(signed) = &state.egress_blocked {
        let blocked = styled(RED.bold(), "EGRESS BLOCKED");
        screen::say(format!("{blocked}  all ways out are closed{}", since(signed)));
    }
    tell_revocations(&state.revocations);
    if !options.quiet && needs_a_gateway(state) {
        screen::say(format!("{} {UNENFORCED}", styled(YELLOW, "!")));
    }
}

/// Whether something is written down that `holdpoint run` does not look at.
fn needs_a_gateway(state: &IncidentState) -> bool {
    let is_elsewhere = |revocation: &Revocation| match revocation.kind {
        RevokedKind::Server | RevokedKind::Principal => false,
        RevokedKind::Key | RevokedKind::Session => true,
    };
    state.egress_blocked.is_some() || state.revocations.iter().any(is_elsewhere)
}

fn tell_revocations(revocations: &[Revocation]) {
    let mut newest: Vec<&Revocation> = revocations.iter().collect();
    newest.sort_by_key(|revocation| std::cmp::Reverse(revocation.signed.at));
    for revocation in newest.iter().take(MAX_SHOWN) {
        let value = revocation.shown_value().map(escape_hidden);
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

fn scope_words(scope: &IncidentScope) -> String {
    match scope {
        IncidentScope::All => "all servers".to_owned(),
        IncidentScope::Servers(servers) => {
            let names: Vec<&str> = servers.iter().map(ServerId::as_str).collect();
            let number = count(names.len(), "server", "servers");
            format!("{number}: {}", names.join(", "))
        }
    }
}

fn since(signed: &Signed) -> String {
    styled(DIM, format!("  by {} since {}", escape_hidden(&signed.by), signed.at))
}

#[cfg(test)]
mod tests;
