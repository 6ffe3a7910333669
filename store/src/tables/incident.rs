//! Rows of the switches and revocations of incident mode. A row that cannot be read is an error: no
//! switch is assumed to be off.

use super::events::Event;
use super::switch_seal;
use crate::act::within;
use crate::by::{By, Signed};
use crate::database::{Backend, Cell, Row, Transaction};
use crate::error::StoreError;
use crate::incident::{
    Incident, IncidentLevel, IncidentScope, IncidentSeal, IncidentState, IncidentStore,
    MAX_REASON_BYTES, MAX_REVOCATIONS, MAX_REVOKED_BYTES, Revocation, RevokedKind, StoppedParts,
};
use crate::quarantine::{MAX_QUARANTINES, Quarantine, QuarantineId};
use crate::witnessed::HOLDPOINT;
use gate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The switch that denies tools.
const INCIDENT: &str = "incident";
/// The switch that blocks outgoing connections.
const BLOCK_EGRESS: &str = "block_egress";

impl<B: Backend> IncidentStore for B {
    fn sealed_incident(&self) -> Result<(IncidentState, IncidentSeal), StoreError> {
        self.read(|rows| Ok((read(rows)?, switch_seal::read(rows, &self.keys())?)))
    }

    fn accept_incident_state(&mut self, seen: i64, by: By<'_>) -> Result<(), StoreError> {
        by.check()?;
        self.write(|rows, keys| {
            Event { action: "incident.accept", subject: None, detail: None }.write(rows, by)?;
            switch_seal::accept(rows, keys, seen)
        })
    }

    fn begin_incident(&mut self, incident: &Incident, by: By<'_>) -> Result<(), StoreError> {
        by.check()?;
        incident.check_limits()?;
        let scope = written(&incident.scope);
        let switch = Switch {
            name: INCIDENT,
            level: Some(incident.level.as_str()),
            scope: scope.as_deref(),
            reason: incident.reason.as_deref(),
        };
        let event = Event {
            action: "incident.on",
            subject: Some(incident.level.as_str()),
            detail: incident.reason.as_deref(),
        };
        switch_seal::change(self, |rows| {
            switch.turn_on(rows, by)?;
            event.write(rows, by)?;
            let found = read(rows)?.incident.map(|(found, _)| found);
            taken(found.as_ref() == Some(incident), "the incident")
        })
    }

    fn end_incident(&mut self, reason: &str, by: By<'_>) -> Result<(), StoreError> {
        within("the reason of the end of an incident", reason.len(), MAX_REASON_BYTES)?;
        turn_off(self, INCIDENT, "incident.off", Some(reason), by)
    }

    fn block_egress(&mut self, by: By<'_>) -> Result<(), StoreError> {
        by.check()?;
        let switch = Switch { name: BLOCK_EGRESS, level: None, scope: None, reason: None };
        let event = Event { action: "incident.block_egress", subject: None, detail: None };
        switch_seal::change(self, |rows| {
            switch.turn_on(rows, by)?;
            event.write(rows, by)?;
            taken(read(rows)?.egress_blocked.is_some(), "the switch that closes all ways out")
        })
    }

    fn unblock_egress(&mut self, by: By<'_>) -> Result<(), StoreError> {
        turn_off(self, BLOCK_EGRESS, "incident.unblock_egress", None, by)
    }

    fn revoke(&mut self, kind: RevokedKind, value: &str, by: By<'_>) -> Result<(), StoreError> {
        by.check()?;
        within("the name of what is revoked", value.len(), MAX_REVOKED_BYTES)?;
        let value = &*kind.kept(value);
        let event =
            Event { action: "incident.revoke", subject: Some(value), detail: Some(kind.as_str()) };
        switch_seal::change(self, |rows| {
            revoke(rows, kind, value, by)?;
            event.write(rows, by)?;
            let query = "SELECT at FROM revocations WHERE kind = $1 AND value = $2 AND at >= $3";
            let wanted = [kind.as_str().into(), value.into(), by.at.0.into()];
            taken(rows.any(query, &wanted)?, "the revocation")
        })
    }

    fn quarantine(&mut self, quarantine: &Quarantine) -> Result<(), StoreError> {
        quarantine.check_limits()?;
        let (id, by) = (quarantine.id(), By { name: HOLDPOINT, at: quarantine.at });
        let subject = Some(id.as_str());
        let event =
            Event { action: "incident.quarantine", subject, detail: Some(&quarantine.rule) };
        switch_seal::change(self, |rows| {
            let is_new = rows.execute(
                "INSERT INTO quarantines (id, principal, session, rule, at) VALUES ($1, $2, $3, $4, $5)
                 ON CONFLICT (id) DO NOTHING",
                &[
                    id.as_str().into(),
                    (&quarantine.principal).into(),
                    quarantine.session.as_deref().into(),
                    (&quarantine.rule).into(),
                    quarantine.at.0.into(),
                ],
            )?;
            if is_new > 0 {
                event.write(rows, by)?;
            }
            let count = rows.count("SELECT count(*) FROM quarantines", &[])?;
            within("the number of quarantines", count, MAX_QUARANTINES)
        })
    }

    fn release_quarantine(&mut self, id: &QuarantineId, by: By<'_>) -> Result<(), StoreError> {
        by.check()?;
        let event = Event { action: "incident.release", subject: Some(id.as_str()), detail: None };
        switch_seal::change(self, |rows| {
            let delete = "DELETE FROM quarantines WHERE id = $1";
            match rows.execute(delete, &[id.as_str().into()])? {
                0 => Ok(()),
                _ => event.write(rows, by),
            }
        })
    }
}

/// Checks that a write reads back as intended.
fn taken(is_taken: bool, what: &'static str) -> Result<(), StoreError> {
    if is_taken { Ok(()) } else { Err(StoreError::NotTaken { what }) }
}

struct Switch<'a> {
    name: &'static str,
    level: Option<&'a str>,
    scope: Option<&'a str>,
    reason: Option<&'a str>,
}

impl Switch<'_> {
    fn turn_on(&self, rows: &dyn Transaction, by: By<'_>) -> Result<(), StoreError> {
        rows.execute(
            "INSERT INTO switches (name, level, scope, reason, at, by) VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (name) DO UPDATE SET level = $2, scope = $3, reason = $4, at = $5, by = $6",
            &[
                self.name.into(),
                self.level.into(),
                self.scope.into(),
                self.reason.into(),
                by.at.0.into(),
                by.name.into(),
            ],
        )?;
        Ok(())
    }
}

fn turn_off(
    backend: &mut impl Backend,
    switch: &'static str,
    action: &'static str,
    reason: Option<&str>,
    by: By<'_>,
) -> Result<(), StoreError> {
    by.check()?;
    switch_seal::change(backend, |rows| {
        if rows.execute("DELETE FROM switches WHERE name = $1", &[switch.into()])? == 0 {
            return Ok(());
        }
        Event { action, subject: None, detail: reason }.write(rows, by)
    })
}

fn revoke(
    rows: &dyn Transaction,
    kind: RevokedKind,
    value: &str,
    by: By<'_>,
) -> Result<(), StoreError> {
    // A clock that went back must not make an earlier revocation weaker.
    rows.execute(
        "INSERT INTO revocations (kind, value, at, by) VALUES ($1, $2, $3, $4)
         ON CONFLICT (kind, value) DO UPDATE SET at = $3, by = $4 WHERE revocations.at < $3",
        &[kind.as_str().into(), value.into(), by.at.0.into(), by.name.into()],
    )?;
    let count = rows.count("SELECT count(*) FROM revocations", &[])?;
    within("the number of revocations", count, MAX_REVOCATIONS)
}

fn read(rows: &dyn Transaction) -> Result<IncidentState, StoreError> {
    let garbled = || StoreError::Garbled { what: "the state of incident mode" };
    let mut state = IncidentState::default();
    let switches = "SELECT name, level, scope, reason, at, by FROM switches ORDER BY name";
    let found = rows.all(switches, &[], |row| {
        let name = row.cell(0).lossy_text().unwrap_or_default();
        let signed = signed(row, 4, 5).ok_or_else(garbled)?;
        let incident =
            if name == INCIDENT { Some(incident(row).ok_or_else(garbled)?) } else { None };
        Ok((name, incident, signed))
    })?;
    for (name, incident, signed) in found {
        match incident {
            Some(incident) => state.incident = Some((incident, signed)),
            None if name == BLOCK_EGRESS => state.egress_blocked = Some(signed),
            None => return Err(garbled()),
        }
    }
    let revocations = "SELECT kind, value, at, by FROM revocations ORDER BY kind, value";
    state.revocations = rows.all(revocations, &[], |row| revocation(row).ok_or_else(garbled))?;
    let quarantines = "SELECT principal, session, rule, at FROM quarantines ORDER BY at, id";
    state.quarantines = rows.all(quarantines, &[], |row| quarantine(row).ok_or_else(garbled))?;
    Ok(state)
}

/// Reads the actor and the time from two columns.
pub(super) fn signed(row: &dyn Row, at: usize, by: usize) -> Option<Signed> {
    let by = row.cell(by).text()?.to_owned();
    Some(Signed { by, at: Timestamp(row.cell(at).integer()?) })
}

fn incident(row: &dyn Row) -> Option<Incident> {
    let level = row.cell(1).text()?;
    let scope = match row.cell(2).optional(Cell::text)? {
        None => IncidentScope::All,
        Some(json) => IncidentScope::Parts(read_parts(json)?),
    };
    Some(Incident {
        level: IncidentLevel::ALL.into_iter().find(|known| known.as_str() == level)?,
        scope,
        reason: row.cell(3).optional(Cell::text)?.map(str::to_owned),
    })
}

/// The stored form of a scope. Servers alone are stored as a list, as before tools and principals
/// could be named.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptParts {
    servers: BTreeSet<String>,
    tools: BTreeSet<String>,
    principals: BTreeSet<String>,
}

fn written(scope: &IncidentScope) -> Option<String> {
    let IncidentScope::Parts(StoppedParts { servers, tools, principals }) = scope else {
        return None;
    };
    if tools.is_empty() && principals.is_empty() {
        return Some(serde_json::json!(servers).to_string());
    }
    let kept = KeptParts {
        servers: servers.iter().map(ToString::to_string).collect(),
        tools: tools.iter().map(ToString::to_string).collect(),
        principals: principals.clone(),
    };
    Some(serde_json::json!(kept).to_string())
}

fn read_parts(json: &str) -> Option<StoppedParts> {
    let kept = match serde_json::from_str::<BTreeSet<String>>(json) {
        Ok(servers) => {
            KeptParts { servers, tools: BTreeSet::default(), principals: BTreeSet::default() }
        }
        Err(_) => serde_json::from_str(json).ok()?,
    };
    let servers: Option<_> = kept.servers.iter().map(|name| name.parse().ok()).collect();
    let tools: Option<_> = kept.tools.iter().map(|name| name.parse().ok()).collect();
    Some(StoppedParts { servers: servers?, tools: tools?, principals: kept.principals })
}

fn quarantine(row: &dyn Row) -> Option<Quarantine> {
    Some(Quarantine {
        principal: row.cell(0).text()?.to_owned(),
        session: row.cell(1).optional(Cell::text)?.map(str::to_owned),
        rule: row.cell(2).text()?.to_owned(),
        at: Timestamp(row.cell(3).integer()?),
    })
}

fn revocation(row: &dyn Row) -> Option<Revocation> {
    let kind = row.cell(0).text()?;
    Some(Revocation {
        kind: RevokedKind::ALL.into_iter().find(|known| known.as_str() == kind)?,
        value: row.cell(1).text()?.to_owned(),
        signed: signed(row, 2, 3)?,
    })
}
