//! Rows of calls that wait for approval. Every step checks the state under the writers' lock.
//! Grants are authenticated, and a grant that another program wrote cannot be taken.

use super::events::Event;
use super::grant_seal;
use super::incident::signed;
use super::switch_seal::key_for;
use crate::act::within;
use crate::approval::{
    ApprovalDecision, ApprovalId, ApprovalState, ApprovalStore, ArgsHash, CallApproval,
    CallBinding, KEPT_APPROVAL_DAYS, KEPT_FOR_TAKER_MILLISECONDS, MAX_PARKED_CALLS, Spent, Taken,
};
use crate::authenticate::StateSeal;
use crate::by::By;
use crate::database::{Backend, Cell, Row, Transaction};
use crate::error::{Refusal, StoreError};
use crate::key::{Key, Keys};
use gate::time::Timestamp;

const COLUMNS: &str = "id, principal, server, tool, contract_hash, args_hash, state, parked_at, expires_at, decided_at,
                       decided_by, used_at, step_up";
/// The columns that authenticate every grant. The last one is only included if it has a value.
const AUTHENTICATED_COUNT: usize = 12;
const STEP_UP: usize = 12;
const MFA: &str = "mfa";

const GARBLED: StoreError = StoreError::Garbled { what: "an approval" };
const MILLISECONDS_PER_DAY: i64 = 86_400_000;

impl<B: Backend> ApprovalStore for B {
    fn park_call(
        &mut self,
        id: &ApprovalId,
        call: &CallBinding,
        at: Timestamp,
        expires_at: Timestamp,
    ) -> Result<(), StoreError> {
        call.check_limits()?;
        self.write(|rows, _| park(rows, id, call, at, expires_at))
    }

    fn approval(&self, id: &ApprovalId) -> Result<Option<CallApproval>, StoreError> {
        self.read(|rows| one(rows, id))
    }

    fn parked_calls(&self, now: Timestamp) -> Result<Vec<CallApproval>, StoreError> {
        let query = format!(
            "SELECT {COLUMNS} FROM call_approvals WHERE state = 'parked' AND expires_at > $1
             ORDER BY parked_at, id"
        );
        self.read(|rows| rows.all(&query, &[now.0.into()], |row| from_row(row).ok_or(GARBLED)))
    }

    fn decide_call(
        &mut self,
        id: &ApprovalId,
        decision: ApprovalDecision,
        by: By<'_>,
    ) -> Result<(), StoreError> {
        by.check()?;
        let seen = self.grants_seen().get();
        self.write(|rows, keys| decide(rows, keys, id, decision, seen, by))?;
        self.grant_count().map(drop)
    }

    fn take_approval(
        &mut self,
        id: &ApprovalId,
        call: &CallBinding,
        at: Timestamp,
    ) -> Result<Taken, StoreError> {
        let seen = self.grants_seen().get();
        let (taken, count) = self.write(|rows, keys| take(rows, keys, id, call, seen, at))?;
        self.grants_seen().set(self.grants_seen().get().max(count));
        Ok(taken)
    }

    fn use_approval(
        &mut self,
        id: &ApprovalId,
        taken_at: Timestamp,
        now: Timestamp,
    ) -> Result<Spent, StoreError> {
        let seen = self.grants_seen().get();
        let (spent, count) =
            self.write(|rows, keys| use_up(rows, keys, id, taken_at, seen, now))?;
        self.grants_seen().set(self.grants_seen().get().max(count));
        Ok(spent)
    }

    fn grant_count(&self) -> Result<i64, StoreError> {
        let count = self.read(grant_seal::count)?;
        self.grants_seen().set(self.grants_seen().get().max(count));
        Ok(count)
    }

    fn expire_approvals(&mut self, now: Timestamp) -> Result<u64, StoreError> {
        let due = "SELECT id FROM call_approvals WHERE state IN ('parked', 'granted') AND expires_at <= $1";
        let kept_since = now.0.saturating_sub(KEPT_APPROVAL_DAYS * MILLISECONDS_PER_DAY);
        let old = "SELECT id FROM call_approvals WHERE expires_at <= $1";
        // Read first: a write would wake every process, and mostly nothing is due.
        let is_due = self.read(|rows| {
            Ok(rows.any(due, &[now.0.into()])? || rows.any(old, &[kept_since.into()])?)
        })?;
        if !is_due {
            return Ok(0);
        }
        let seen = self.grants_seen().get();
        self.write(|rows, keys| {
            let grants =
                "SELECT id FROM call_approvals WHERE state = 'granted' AND expires_at <= $1";
            let expire = || {
                let sql = "UPDATE call_approvals SET state = 'expired'
                           WHERE state IN ('parked', 'granted') AND expires_at <= $1";
                let expired = rows.execute(sql, &[now.0.into()])?;
                let sql = "DELETE FROM call_approvals WHERE expires_at <= $1";
                rows.execute(sql, &[kept_since.into()])?;
                Ok(expired)
            };
            match rows.any(grants, &[now.0.into()])? {
                true => Ok(grant_seal::change(rows, keys, seen, expire)?.done),
                false => expire(),
            }
        })
    }
}

fn park(
    rows: &dyn Transaction,
    id: &ApprovalId,
    call: &CallBinding,
    at: Timestamp,
    expires_at: Timestamp,
) -> Result<(), StoreError> {
    if rows.any("SELECT id FROM call_approvals WHERE id = $1", &[id.as_str().into()])? {
        return Err(Refusal::Taken { what: "an approval", name: id.to_string() }.into());
    }
    let waiting = "SELECT count(*) FROM call_approvals WHERE state = 'parked' AND expires_at > $1";
    let count = rows.count(waiting, &[at.0.into()])?;
    within("the number of calls that wait", count.saturating_add(1), MAX_PARKED_CALLS)?;
    rows.execute(
        "INSERT INTO call_approvals (id, principal, server, tool, contract_hash, args_hash, state, parked_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, 'parked', $7, $8)",
        &[
            id.as_str().into(),
            (&call.principal).into(),
            call.server.as_str().into(),
            (&call.tool).into(),
            (&call.contract_hash.to_string()).into(),
            (&hex::encode(call.args_hash.0)).into(),
            at.0.into(),
            expires_at.0.into(),
        ],
    )?;
    Ok(())
}

fn one(rows: &dyn Transaction, id: &ApprovalId) -> Result<Option<CallApproval>, StoreError> {
    let query = format!("SELECT {COLUMNS} FROM call_approvals WHERE id = $1");
    rows.first(&query, &[id.as_str().into()], |row| from_row(row).ok_or(GARBLED))
}

/// The state of an approval at a moment: it may have expired before its row says so.
fn state_at(approval: &CallApproval, now: Timestamp) -> ApprovalState {
    match approval.state {
        ApprovalState::Parked | ApprovalState::Granted if now >= approval.expires_at => {
            ApprovalState::Expired
        }
        state => state,
    }
}

fn decide(
    rows: &dyn Transaction,
    keys: &Keys,
    id: &ApprovalId,
    decision: ApprovalDecision,
    seen: i64,
    by: By<'_>,
) -> Result<(), StoreError> {
    let unknown = || Refusal::Unknown { what: "approval", name: id.to_string() };
    let approval = one(rows, id)?.ok_or_else(unknown)?;
    let state = state_at(&approval, by.at);
    if state != ApprovalState::Parked {
        return Err(Refusal::Decided { id: id.clone(), state }.into());
    }
    if by.name == approval.call.principal {
        return Err(Refusal::OwnCall { name: by.name.to_owned() }.into());
    }
    let (state, action, step_up) = match decision {
        ApprovalDecision::Grant { mfa } => {
            (ApprovalState::Granted, "approval.grant", mfa.then_some(MFA))
        }
        ApprovalDecision::Refuse => (ApprovalState::Refused, "approval.refuse", None),
    };
    let write = || {
        rows.execute(
            "UPDATE call_approvals SET state = $2, decided_at = $3, decided_by = $4, step_up = $5 WHERE id = $1",
            &[
                id.as_str().into(),
                state.as_str().into(),
                by.at.0.into(),
                by.name.into(),
                step_up.into(),
            ],
        )
    };
    match state {
        ApprovalState::Granted => {
            grant_seal::change(rows, keys, seen, || {
                write()?;
                authenticate(rows, keys, id)
            })?
            .done
        }
        _ => write()?,
    };
    let detail = format!("{} of {}", approval.call.principal, approval.call.server);
    Event { action, subject: Some(id.as_str()), detail: Some(&detail) }.write(rows, by)
}

fn authenticate(rows: &dyn Transaction, keys: &Keys, id: &ApprovalId) -> Result<u64, StoreError> {
    let authentication = fed(rows, &key_for(rows, keys, false)?, id)?.finish(0);
    let sql = "UPDATE call_approvals SET authentication = $2 WHERE id = $1";
    rows.execute(sql, &[id.as_str().into(), authentication.as_slice().into()])
}

/// The data that authenticates a grant: its whole row.
fn fed(rows: &dyn Transaction, key: &Key, id: &ApprovalId) -> Result<StateSeal, StoreError> {
    let query = format!("SELECT {COLUMNS} FROM call_approvals WHERE id = $1");
    let mut seal = StateSeal::new(key, "holdpoint approval 1");
    rows.first(&query, &[id.as_str().into()], |row| {
        seal.row((0..AUTHENTICATED_COUNT).map(|index| row.cell(index)));
        // Added separately, so that grants from before this column existed stay valid.
        if row.cell(STEP_UP) != Cell::Null {
            seal.row([row.cell(STEP_UP)].into_iter());
        }
        Ok(())
    })?;
    Ok(seal)
}

fn is_authentic(rows: &dyn Transaction, keys: &Keys, id: &ApprovalId) -> Result<bool, StoreError> {
    let Ok(key) = keys.read()? else { return Ok(false) };
    let query = "SELECT authentication FROM call_approvals WHERE id = $1";
    let found =
        rows.first(query, &[id.as_str().into()], |row| Ok(row.cell(0).raw_bytes().to_vec()))?;
    Ok(fed(rows, &key, id)?.matches(0, &found.unwrap_or_default()))
}

/// Whether the call may proceed, and how often the granted calls have changed, as far as is known.
fn take(
    rows: &dyn Transaction,
    keys: &Keys,
    id: &ApprovalId,
    call: &CallBinding,
    seen: i64,
    at: Timestamp,
) -> Result<(Taken, i64), StoreError> {
    let Some(mut approval) = one(rows, id)? else { return Ok((Taken::Unknown, seen)) };
    if approval.call != *call {
        return Ok((Taken::OtherCall, seen));
    }
    let state = state_at(&approval, at);
    if state != ApprovalState::Granted {
        return Ok((Taken::Not(state), seen));
    }
    if !is_authentic(rows, keys, id)? {
        return Err(GARBLED);
    }
    if approval.taken_at.is_some_and(|taken| is_kept(taken, at)) {
        return Ok((Taken::Not(ApprovalState::Granted), seen));
    }
    // Later than the previous taking, even if that used a clock that is ahead.
    let next = |taken: Timestamp| Timestamp(taken.0.saturating_add(1));
    let moment = approval.taken_at.map_or(at, |taken| at.max(next(taken)));
    // INVARIANT: the writers' lock is held, and the statement checks the state again: a grant in
    // doubt is no longer granted then. Each taking gets a later moment than the one before, so the
    // moment identifies the taker.
    let sql = "UPDATE call_approvals SET used_at = $2 WHERE id = $1 AND state = 'granted'";
    let change = || match rows.execute(sql, &[id.as_str().into(), moment.0.into()])? {
        1 => authenticate(rows, keys, id),
        none => Ok(none),
    };
    let changed = grant_seal::change(rows, keys, seen, change)?;
    if changed.done != 1 {
        return Ok((Taken::Doubted, changed.count));
    }
    approval.taken_at = Some(moment);
    Ok((Taken::Taken(Box::new(approval)), changed.count))
}

/// Whether an approval is reserved for the call that took it. A moment further in the future than
/// that comes from a wrong clock.
fn is_kept(taken: Timestamp, now: Timestamp) -> bool {
    now.0.abs_diff(taken.0) < KEPT_FOR_TAKER_MILLISECONDS.unsigned_abs()
}

fn use_up(
    rows: &dyn Transaction,
    keys: &Keys,
    id: &ApprovalId,
    taken_at: Timestamp,
    seen: i64,
    now: Timestamp,
) -> Result<(Spent, i64), StoreError> {
    let sql = "UPDATE call_approvals SET state = 'used'
               WHERE id = $1 AND state = 'granted' AND used_at = $2 AND expires_at > $3";
    let parameters = [id.as_str().into(), taken_at.0.into(), now.0.into()];
    let changed = grant_seal::change(rows, keys, seen, || rows.execute(sql, &parameters))?;
    let spent = match (changed.was_sound, changed.done) {
        (true, 1) => Spent::Spent,
        (true, _) => Spent::NotHeld,
        (false, _) => Spent::Doubted,
    };
    Ok((spent, changed.count))
}

fn from_row(row: &dyn Row) -> Option<CallApproval> {
    let text = |index| row.cell(index).text();
    let state = text(6)?;
    let mut args_hash = ArgsHash([0; 32]);
    hex::decode_to_slice(text(5)?, &mut args_hash.0).ok()?;
    Some(CallApproval {
        id: text(0)?.parse().ok()?,
        call: CallBinding {
            principal: text(1)?.to_owned(),
            server: text(2)?.parse().ok()?,
            tool: text(3)?.to_owned(),
            contract_hash: text(4)?.parse().ok()?,
            args_hash,
        },
        state: ApprovalState::ALL.into_iter().find(|known| known.as_str() == state)?,
        parked_at: Timestamp(row.cell(7).integer()?),
        expires_at: Timestamp(row.cell(8).integer()?),
        decided: match row.cell(9) {
            Cell::Null => None,
            _ => Some(signed(row, 9, 10)?),
        },
        mfa: row.cell(STEP_UP).text() == Some(MFA),
        taken_at: row.cell(11).optional(Cell::integer)?.map(Timestamp),
    })
}
