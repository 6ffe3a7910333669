//! Sums counters and history over a period. Pure functions, no I/O.

use gate::counters::{Counter, MAX_ADDED_BUCKET};
use gate::posture::Posture;
use gate::server::ServerId;
use gate::time::Timestamp;
use ledger::receipt::EventReceipt;
use serde::Serialize;
use serde::ser::SerializeMap;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use store::{Count, Day, HistoryEvent};

/// A range of days in UTC, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Days {
    pub(crate) from: Day,
    pub(crate) to: Day,
}

impl Days {
    /// The given number of days, ending with `to`.
    pub(crate) fn up_to(to: Day, number: u64) -> Days {
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        Days { from: Day(to.0.saturating_sub(number.saturating_sub(1))), to }
    }

    /// The same number of days right before.
    pub(crate) fn before(self) -> Days {
        let to = Day(self.from.0.saturating_sub(1));
        let number = self.to.0.saturating_sub(self.from.0);
        Days { from: Day(to.0.saturating_sub(number)), to }
    }

    pub(crate) fn has(self, moment: Timestamp) -> bool {
        (self.from..=self.to).contains(&Day::of(moment))
    }
}

/// The counts of a period.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Period {
    /// Held changes in the ledger, by server, entry and hash of the held change.
    #[serde(skip)]
    caught: BTreeSet<(String, String, String)>,
    pub(crate) calls: Calls,
    pub(crate) requests: u64,
    pub(crate) relists: u64,
    pub(crate) changes: Changes,
    pub(crate) people: People,
    /// What people decided on holds, according to the ledger.
    pub(crate) outcomes: Outcomes,
    pub(crate) would_hold: WouldHold,
    pub(crate) tiers: BTreeMap<u8, u64>,
    pub(crate) added_latency_us: Added,
    pub(crate) servers: BTreeMap<ServerId, Calls>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Calls {
    pub(crate) checked: u64,
    pub(crate) held: u64,
    pub(crate) denied: u64,
    pub(crate) failed: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Changes {
    pub(crate) held: u64,
    pub(crate) repinned: u64,
    pub(crate) noted: u64,
}

/// Acts of people, from history.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct People {
    pub(crate) approvals: u64,
    pub(crate) quarantines: u64,
    pub(crate) releases: u64,
    pub(crate) rollbacks: u64,
}

/// Decisions on held changes, from the ledger, counted per change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Outcomes {
    pub(crate) confirmed: u64,
    pub(crate) overridden: u64,
}

/// Calls that each posture would have held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct WouldHold([u64; Posture::ALL.len()]);

impl WouldHold {
    pub(crate) fn of(&self, posture: Posture) -> u64 {
        self.iter().find(|(known, _)| *known == posture).map_or(0, |(_, calls)| calls)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Posture, u64)> {
        Posture::ALL.into_iter().zip(self.0)
    }

    fn add(&mut self, posture: Posture, calls: u64) {
        for (known, sum) in Posture::ALL.into_iter().zip(&mut self.0) {
            if known == posture {
                add(sum, calls);
            }
        }
    }
}

impl Serialize for WouldHold {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

/// Calls, by bucket of the time that Holdpoint added.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Added(BTreeMap<u8, u64>);

/// An upper bound in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    Below(u64),
    /// In the last bucket, which has no upper end.
    Unbounded,
}

impl Added {
    /// The bound below which this percentage of calls stayed; `None` if no call was measured.
    pub(crate) fn percentile(&self, percent: u64) -> Option<Bound> {
        let calls: u128 = self.0.values().map(|calls| u128::from(*calls)).sum();
        let needed = (calls * u128::from(percent)).div_ceil(100).max(1);
        let mut passed = 0;
        let bucket = self.0.iter().find_map(|(bucket, calls)| {
            passed += u128::from(*calls);
            (passed >= needed).then_some(*bucket)
        })?;
        let is_last = bucket >= MAX_ADDED_BUCKET;
        Some(if is_last { Bound::Unbounded } else { Bound::Below(1 << bucket) })
    }
}

impl Serialize for Added {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let number = |bound| match bound {
            Some(Bound::Below(microseconds)) => Some(microseconds),
            Some(Bound::Unbounded) | None => None,
        };
        let calls = self.0.values().fold(0_u64, |sum, calls| sum.saturating_add(*calls));
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("calls", &calls)?;
        map.serialize_entry("p50_below", &number(self.percentile(50)))?;
        map.serialize_entry("p99_below", &number(self.percentile(99)))?;
        map.end()
    }
}

impl Period {
    /// Whether nothing happened.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Period::default()
    }

    /// Adds a counter. Ignores unknown ones, which a newer Holdpoint wrote.
    pub(crate) fn count(&mut self, count: &Count) {
        let Some(counter) = Counter::parse(&count.name) else { return };
        let value = count.value;
        let mut of_calls = |part: fn(&mut Calls) -> &mut u64| {
            add(part(&mut self.calls), value);
            add(part(self.servers.entry(count.server.clone()).or_default()), value);
        };
        match counter {
            Counter::Calls => of_calls(|calls| &mut calls.checked),
            Counter::Held => of_calls(|calls| &mut calls.held),
            Counter::Denied => of_calls(|calls| &mut calls.denied),
            Counter::Failed => of_calls(|calls| &mut calls.failed),
            Counter::Requests => add(&mut self.requests, value),
            Counter::Relists => add(&mut self.relists, value),
            Counter::HoldsBegun => add(&mut self.changes.held, value),
            Counter::Repinned => add(&mut self.changes.repinned, value),
            Counter::Notes => add(&mut self.changes.noted, value),
            Counter::WouldHold(posture) => self.would_hold.add(posture, value),
            Counter::Tier(tier) => add(self.tiers.entry(tier).or_default(), value),
            Counter::Added(bucket) => {
                add(self.added_latency_us.0.entry(bucket).or_default(), value);
            }
            // `review` reports these.
            Counter::ToolCalled(_) | Counter::ParameterUsed(_) => {}
        }
    }

    /// Adds what people did to one server in these days, given its full history.
    pub(crate) fn acts(&mut self, history: &[HistoryEvent], days: Days) {
        let acts = history.iter().filter(|event| event.act == event.seq && days.has(event.at));
        acts.for_each(|event| self.people.act(&event.action));
    }

    /// Adds an event of the ledger.
    pub(crate) fn event(&mut self, event: &EventReceipt) {
        let held = event.data.as_ref().and_then(|data| data.get("held")?.as_array());
        for change in held.into_iter().flatten() {
            let after = change.get("entry_hash").and_then(|hashes| hashes.get("after"));
            let text = |value: Option<&Value>| value.map(Value::to_string).unwrap_or_default();
            let server = event.server_id.clone().unwrap_or_default();
            self.caught.insert((server, text(change.get("entry")), text(after)));
        }
        // A gate counts what it holds at each start, so prefer the ledger, which distinguishes
        // changes.
        if !self.caught.is_empty() {
            self.changes.held = self.caught.len() as u64;
        }
        match event.name.as_str() {
            "outcome.confirmed" => add(&mut self.outcomes.confirmed, 1),
            "outcome.overridden" => add(&mut self.outcomes.overridden, 1),
            _ => {}
        }
    }
}

impl People {
    fn act(&mut self, action: &str) {
        match action {
            "server.approve" => add(&mut self.approvals, 1),
            "server.quarantine" => add(&mut self.quarantines, 1),
            "server.release" => add(&mut self.releases, 1),
            "server.rollback" => add(&mut self.rollbacks, 1),
            _ => {}
        }
    }
}

fn add(sum: &mut u64, value: u64) {
    *sum = sum.saturating_add(value);
}

#[cfg(test)]
mod tests;
