//! Counts for a session until they are next stored: numbers, with fingerprints instead of names.

use crate::call::Call;
use crate::decide::Ruling;
use contract::surface::EntryType;
use gate::counters::{Counter, added_bucket, parameter_used, tool_called};
use gate::posture::Posture;
use gate::view::{Found, Standing};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use wire::envelope::member_names;

/// Parameters of larger arguments are not counted, because parsing them again would cost more than
/// the number is worth.
const MAX_COUNTED_ARGUMENT_BYTES: usize = 64 * 1024;
/// The most tools, and parameters per tool, that are counted between two flushes.
const MAX_COUNTED_NAMES: usize = 1_000;

#[derive(Debug, Default)]
pub struct Tally {
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    /// There are few kinds, and most calls increment the same two.
    plain: Vec<(Counter, u64)>,
    tools: HashMap<Box<str>, ToolCounts>,
}

#[derive(Debug, Default)]
struct ToolCounts {
    calls: u64,
    parameters: BTreeMap<Box<str>, u64>,
}

impl Tally {
    pub fn add(&self, counter: Counter) {
        self.add_many(counter, 1);
    }

    pub fn add_many(&self, counter: Counter, count: u64) {
        self.lock().add(counter, count);
    }

    /// Counts a gated call that was decided.
    pub fn call(&self, call: &Call<'_>, ruling: &Ruling, found: Option<Found<'_>>, ours: Duration) {
        let standing = match (ruling, found) {
            (Ruling::Hold(standing), _) => Some(standing),
            (_, Some(Found::Changed(standing))) => Some(standing),
            _ => None,
        };
        let would_hold = standing.map(|standing| would_hold(call, ruling, standing));
        let mut counts = self.lock();
        let mut count = |counter| counts.add(counter, 1);
        count(Counter::Calls);
        count(added_bucket(u64::try_from(ours.as_micros()).unwrap_or(u64::MAX)));
        match ruling {
            Ruling::Allow => {}
            Ruling::Hold(_) => count(Counter::Held),
            Ruling::Deny(_) => count(Counter::Denied),
        }
        if let (Some(standing), Some(would_hold)) = (standing, would_hold) {
            let provenance = standing.surfaced.provenance();
            count(Counter::Tier(provenance.map_or(0, |provenance| provenance.tier_reached)));
            for (posture, would_hold) in Posture::ALL.into_iter().zip(would_hold) {
                if would_hold {
                    count(Counter::WouldHold(posture));
                }
            }
        }
        if let Some(target) = call.target.filter(|target| target.entry_type == EntryType::Tool) {
            counts.tool(target.key, call.arguments);
        }
    }

    /// All counts since the last time.
    pub fn take(&self) -> Vec<(Counter, u64)> {
        let Counts { plain, tools } = std::mem::take(&mut *self.lock());
        let mut all = plain;
        for (tool, counts) in tools {
            all.push((tool_called(&tool), counts.calls));
            let parameters = counts.parameters.into_iter();
            all.extend(parameters.map(|(name, count)| (parameter_used(&tool, &name), count)));
        }
        all
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Which postures would have held a call, in the order of [`Posture::ALL`].
fn would_hold(call: &Call<'_>, ruling: &Ruling, standing: &Standing) -> [bool; 4] {
    let is_held = matches!(ruling, Ruling::Hold(_));
    // A call that needs something deferred is held under every posture except monitor.
    if is_held && standing.is_deferred() {
        return [false, true, true, true];
    }
    let mut would_hold = standing.would_hold;
    // If shield decides by the call, what it would have done with this call counts, whatever the
    // posture is.
    let by_the_call = match standing.is_by_the_call() {
        true => Some(is_held),
        false => standing.call_ruling(call.arguments).map(|ruling| ruling.is_held()),
    };
    for (posture, would_hold) in Posture::ALL.into_iter().zip(&mut would_hold) {
        if posture == Posture::Shield {
            *would_hold = by_the_call.unwrap_or(*would_hold);
        }
    }
    would_hold
}

impl Counts {
    fn add(&mut self, counter: Counter, count: u64) {
        match self.plain.iter_mut().find(|(known, _)| *known == counter) {
            Some((_, known)) => *known += count,
            None => self.plain.push((counter, count)),
        }
    }

    /// A call whose parameters are not counted is not counted for its tool either, so that "used in
    /// 0 of N" is true.
    fn tool(&mut self, tool: &str, arguments: Option<&[u8]>) {
        if arguments.is_some_and(|arguments| arguments.len() > MAX_COUNTED_ARGUMENT_BYTES) {
            return;
        }
        // A known tool costs one lookup.
        if let Some(counts) = self.tools.get_mut(tool) {
            counts.add(arguments);
        } else if self.tools.len() < MAX_COUNTED_NAMES {
            self.tools.entry(tool.into()).or_default().add(arguments);
        }
    }
}

impl ToolCounts {
    fn add(&mut self, arguments: Option<&[u8]>) {
        let names = || arguments.into_iter().flat_map(member_names);
        let is_new = |name: &str| !self.parameters.contains_key(name);
        if self.parameters.len() >= MAX_COUNTED_NAMES && names().any(|name| is_new(&name)) {
            return;
        }
        self.calls += 1;
        for name in names() {
            if let Some(count) = self.parameters.get_mut(&*name) {
                *count += 1;
            } else if self.parameters.len() < MAX_COUNTED_NAMES {
                self.parameters.insert(name.into(), 1);
            }
        }
    }
}
