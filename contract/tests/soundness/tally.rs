//! Counts what a run examined, so that a run that examined nothing cannot pass.

use crate::judge::is_claimed;
use contract::change::{ChangeKind, Finding};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

#[derive(Debug, Default)]
pub struct Tally {
    /// Pairs with at least one finding, none of them breaking or fail-safe. The property under test
    /// is about these.
    pub quiet: u64,
    pub claimed: u64,
    pub equal: u64,
    pub unjudged: u64,
    pub generated: u64,
    /// Instances that the old schema accepts, from pairs without a claim. Each one is a check.
    pub checked: u64,
    slowest: Option<(Duration, String, String)>,
    alarms: BTreeMap<ChangeKind, Alarms>,
    pub breaking_pairs: u64,
    pub false_alarms: u64,
}

/// Pairs for which a kind was reported, and those of them for which no sample was refused.
#[derive(Debug, Default)]
struct Alarms {
    pairs: u64,
    unconfirmed: u64,
}

impl Tally {
    pub fn pair(&mut self, old: &Value, new: &Value, findings: &[Finding], took: Duration) {
        match (findings.is_empty(), is_claimed(findings)) {
            (true, _) => self.equal += 1,
            (false, false) => self.quiet += 1,
            (false, true) => self.claimed += 1,
        }
        if self.slowest.as_ref().is_none_or(|(slowest, ..)| took > *slowest) {
            self.slowest = Some((took, old.to_string(), new.to_string()));
        }
    }

    pub fn slowest(&self) -> Duration {
        self.slowest.as_ref().map_or(Duration::ZERO, |(took, ..)| *took)
    }

    /// Counts a pair with breaking kinds for which samples were tried.
    pub fn alarm(&mut self, kinds: &BTreeSet<ChangeKind>, is_confirmed: bool) {
        self.breaking_pairs += 1;
        self.false_alarms += u64::from(!is_confirmed);
        for &kind in kinds {
            let alarms = self.alarms.entry(kind).or_default();
            alarms.pairs += 1;
            alarms.unconfirmed += u64::from(!is_confirmed);
        }
    }

    pub fn print(&self, name: &str) {
        let Tally { quiet, claimed, equal, unjudged, generated, checked, .. } = self;
        println!(
            "{name}: pairs without a claim {quiet}, with one {claimed}, equal {equal}, not judged {unjudged}"
        );
        println!("{name}: instances made {generated}, checked {checked}");
        if let Some((took, old, new)) = &self.slowest {
            let bytes = old.len() + new.len();
            println!("{name}: slowest comparison {took:?} over {bytes} bytes");
        }
        println!(
            "{name}: breaking reported and no refused instance found: {} of {} pairs ({:.1} %)",
            self.false_alarms,
            self.breaking_pairs,
            percent(self.false_alarms, self.breaking_pairs),
        );
        for (kind, Alarms { pairs, unconfirmed }) in &self.alarms {
            let share = percent(*unconfirmed, *pairs);
            println!("{name}:   {kind}: {unconfirmed} of {pairs} ({share:.1} %)");
        }
    }
}

pub fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}
