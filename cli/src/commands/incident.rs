//! `holdpoint incident`: the switches that stop calls, and revocations.

use crate::approver;
use crate::arguments::Options;
use crate::arguments::incident::{
    BlockEgressCommand, IncidentCommand, IncidentSubcommand, OnCommand, RevokeCommand,
};
use crate::failure::{Exit, Failure};
use crate::report::count;
use crate::screen::{self, BOLD, DIM, GREEN, RED, YELLOW, styled};
use crate::target::Workplace;
use engine::acts::ActError;
use engine::acts::incident::{self, Consent};
use gate::server::ServerId;
use serde::Serialize;
use std::collections::BTreeSet;
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
    let servers: BTreeSet<ServerId> = command.server.iter().cloned().collect();
    let scope =
        if servers.is_empty() { IncidentScope::All } else { IncidentScope::Servers(servers) };
    let incident = Incident { level: command.level, scope, reason: command.reason.clone() };
    let question = "Replace the current incident with one that stops less?";
    with_consent(workplace, question, |store, consent, by| {
        incident::begin(store, &incident, consent, by)
    })
}

fn end(workplace: &mut Workplace) -> Result<(), Failure> {
    let on = workplace.store.incident()?.incident;
    let scope = on.map(|(incident, _)| scope_words(&incident.scope)).unwrap_or_default();
    let question = format!("End the incident on {scope}?");
    with_consent(workplace, &question, incident::end)
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

/// Whether it is this user, or this home has seen the name.
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

/// Does what stops more at once, and what stops less only after a person agreed.
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
                screen::say(format!("    {}", screen::readable(reason)));
            }
            if !options.quiet {
                screen::say(styled(DIM, "    end it: holdpoint incident off"));
            }
        }
    }
    if let Some(signed) = &state.egress_blocked {
        let blocked = styled(RED.bold(), "EGRESS BLOCKED");
        screen::say(format!("{blocked}  outgoing connections are blocked{}", since(signed)));
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
    styled(DIM, format!("  by {} since {}", screen::readable(&signed.by), signed.at))
}
