//! Records when a gate is put in front of a server or removed, like other acts. During an incident,
//! removing it requires a person: a server that its host starts without the gate is not stopped by
//! the incident.

use crate::approver;
use crate::arguments::Options;
use crate::failure::Failure;
use crate::observation::now;
use crate::screen;
use crate::target::{Workplace, home_path};
use gate::server::ServerId;
use hosts::{Aim, Plan, Server};
use ledger::record::{Event, Text};
use store::{Act, IncidentScope, IncidentStore, Store};

/// Where acts are recorded; `None` as long as nothing was ever recorded in the home.
#[derive(Debug)]
pub(crate) struct Witness(Option<Workplace>);

impl Witness {
    /// Opens the home. An unusable home does not prevent removing the gate from a host's file.
    pub(crate) fn open(options: &Options) -> Result<Witness, Failure> {
        let home = home_path(options)?;
        if !["state.db", "receipts", "holdpoint.toml"].iter().any(|name| home.join(name).exists()) {
            return Ok(Witness(None));
        }
        match Workplace::open(options) {
            Ok(workplace) => Ok(Witness(Some(workplace))),
            Err(failure) => {
                unrecorded(&failure.to_string());
                Ok(Witness(None))
            }
        }
    }

    /// Asks a person before removing the gate from servers that an incident stops.
    pub(crate) fn need_person<'p>(
        &self,
        plans: impl Iterator<Item = &'p Plan>,
    ) -> Result<(), Failure> {
        let Some(workplace) = &self.0 else { return Ok(()) };
        let Some((incident, _)) = workplace.store.incident()?.incident else { return Ok(()) };
        let is_stopped = |server: &Server| match &incident.scope {
            IncidentScope::All => true,
            // A stopped principal may use any server.
            IncidentScope::Parts(parts) if !parts.principals.is_empty() => true,
            IncidentScope::Parts(_) => {
                server.id.parse().is_ok_and(|id| incident.scope.concerns(&id))
            }
        };
        let mut servers =
            plans.filter(|plan| plan.aim == Aim::Unwire).flat_map(|plan| &plan.changed);
        if !servers.any(is_stopped) {
            return Ok(());
        }
        approver::confirm_yes(
            &workplace.configuration,
            "An incident is on, and cannot stop a server that its host starts without the gate. Remove the gate anyway?",
        )
    }

    /// Records what was done to the servers of a file.
    pub(crate) fn record(&mut self, aim: Aim, host: &str, servers: &[Server]) {
        let Some(workplace) = &mut self.0 else { return };
        let name = match aim {
            Aim::Wire => "server.wire",
            Aim::Unwire => "server.unwire",
        };
        for server in servers {
            if let Err(failure) = record_one(workplace, name, host, &server.id) {
                unrecorded(&failure.to_string());
            }
        }
    }
}

fn record_one(
    workplace: &mut Workplace,
    name: &'static str,
    host: &str,
    server: &str,
) -> Result<(), Failure> {
    let (at, by) = (now(), approver::name());
    let id: Option<ServerId> = server.parse().ok();
    let is_known = |id: &ServerId| Ok::<_, Failure>(workplace.store.server(id)?.is_some());
    match &id {
        Some(id) if is_known(id)? => {
            let mut act = Act::new(id, at, &by, name);
            act.detail = Some(format!("host {host}"));
            workplace.store.record(act)?;
        }
        // The database has no record of a server that was never started through the gate.
        _ => {
            let data = serde_json::json!({ "host": host });
            let (by, server_id) = (Some(Text(&by)), Some(Text(server)));
            let event = Event { ts: at, name, by, server_id, data: Some(&data) };
            workplace.store.journal().append(&event)?;
        }
    }
    Ok(())
}

fn unrecorded(why: &str) {
    screen::remark(format!("note: this is not recorded: {}", screen::readable(why)));
}
