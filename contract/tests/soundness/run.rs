//! One run: compares pairs, judges instances, and shrinks and prints what the comparison misses.

use crate::instances::{Maker, Pool};
use crate::judge::{Counterexample, Reading, findings, is_claimed};
use crate::shrink::shrink;
use crate::tally::{Tally, percent};
use contract::change::{ChangeClass, ChangeKind};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use testing::Random;

/// Instances of a pair without a claim, for each reading.
const INSTANCES: usize = 60;
/// Instances of a pair with a claim, used to test whether the claim is justified.
const ALARM_INSTANCES: usize = 3_000;
/// One in this many pairs with a breaking kind is tested like that.
const ALARM_SHARE: usize = 40;
/// A run with fewer checks proves nothing.
const LEAST_CHECKED: u64 = 20_000;
const LEAST_QUIET_PAIRS: u64 = 500;
/// The number of pairs in an ordinary run, and the duration of a long one.
const USUAL_PAIRS: u64 = 4_000;
const LONG_SECONDS: u64 = 120;
/// A run ends after this many counterexamples have been shrunk and printed.
const MAX_MISSED: usize = 6;
/// Schemas of this size are compared much faster; a comparison that takes longer is not linear.
const MAX_COMPARISON: Duration = Duration::from_secs(2);

/// An ordinary run always starts with the same pairs, so that merging an unrelated change does not
/// depend on the clock. A long run tries new ones.
const USUAL_SEED: u64 = 20_260_728;

/// The seed from the environment, or else from the clock.
pub fn seed() -> u64 {
    let from_clock =
        || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.as_micros() as u64);
    match std::env::var("HOLDPOINT_SEED") {
        Ok(text) => text.parse().expect("HOLDPOINT_SEED is a number"),
        Err(_) if is_long() => from_clock(),
        Err(_) => USUAL_SEED,
    }
}

fn is_long() -> bool {
    std::env::var_os("HOLDPOINT_LONG").is_some()
}

/// How long a run continues. An ordinary run counts pairs, so that it is the same on every machine.
#[derive(Debug)]
pub enum Budget {
    Pairs(u64),
    Until(Instant),
}

impl Budget {
    pub fn from_environment() -> Budget {
        let until = |seconds| Budget::Until(Instant::now() + Duration::from_secs(seconds));
        match std::env::var("HOLDPOINT_SOUNDNESS_SECONDS") {
            Ok(text) => until(text.parse().expect("HOLDPOINT_SOUNDNESS_SECONDS is a number")),
            Err(_) if is_long() => until(LONG_SECONDS),
            Err(_) => Budget::Pairs(USUAL_PAIRS),
        }
    }
}

#[derive(Debug, Default)]
pub struct Run {
    pairs: u64,
    tally: Tally,
    missed: Vec<Counterexample>,
}

impl Run {
    pub fn goes_on(&self, budget: &Budget) -> bool {
        let is_left = match *budget {
            Budget::Pairs(pairs) => self.pairs < pairs,
            Budget::Until(end) => Instant::now() < end,
        };
        is_left || self.is_too_small()
    }

    fn is_too_small(&self) -> bool {
        self.missed.is_empty()
            && (self.tally.checked < LEAST_CHECKED || self.tally.quiet < LEAST_QUIET_PAIRS)
    }

    pub fn pair(&mut self, random: &mut Random, old: &Value, new: &Value) {
        self.pairs += 1;
        if self.missed.len() >= MAX_MISSED {
            return;
        }
        let (findings, took) = findings(old, new);
        let readings = Reading::all(old, new);
        if readings.is_empty() {
            self.tally.unjudged += 1;
            return;
        }
        self.tally.pair(old, new, &findings, took);
        if !is_claimed(&findings) {
            self.check(random, &readings, old, new);
            return;
        }
        let kinds: BTreeSet<ChangeKind> = findings
            .iter()
            .filter(|finding| finding.class == ChangeClass::Breaking)
            .map(|finding| finding.kind)
            .collect();
        // These are breaking for other reasons than that calls are refused.
        let is_about_more = kinds.contains(&ChangeKind::DefaultChanged)
            || kinds.contains(&ChangeKind::HeaderBindingChanged);
        if !kinds.is_empty() && !is_about_more && random.below(ALARM_SHARE) == 0 {
            let is_confirmed = has_refusal(random, &readings, old, new);
            self.tally.alarm(&kinds, is_confirmed);
            if !is_confirmed && std::env::var_os("HOLDPOINT_SOUNDNESS_ALARMS").is_some() {
                println!("no refusal found: {kinds:?}\n  {old}\n  {new}");
            }
        }
    }

    fn check(&mut self, random: &mut Random, readings: &[Reading<'_>], old: &Value, new: &Value) {
        let pool = Pool::of([old, new]);
        for reading in readings {
            let maker = Maker { document: reading.old, pool: &pool };
            for _ in 0..INSTANCES {
                let instance = maker.instance(random);
                self.tally.generated += 1;
                if !reading.was_accepted(&instance) {
                    continue;
                }
                self.tally.checked += 1;
                if !reading.is_accepted(&instance) {
                    let (old, new) = (old.clone(), new.clone());
                    self.miss(Counterexample { old, new, instance });
                    return;
                }
            }
        }
    }

    fn miss(&mut self, found: Counterexample) {
        let Counterexample { old, new, instance } = shrink(found, Counterexample::is_missed);
        let case = json!({"name": "", "old": old, "new": new, "instance": instance});
        let text = serde_json::to_string(&case).expect("JSON is written");
        println!("missed, as a case for conformance/soundness/cases.json:\n{text}");
        let missed = Counterexample { old, new, instance };
        if !self.missed.contains(&missed) {
            self.missed.push(missed);
        }
    }

    /// Prints the number of examined cases. Fails if something was missed or too little was
    /// examined.
    pub fn finish(self, name: &str) {
        self.tally.print(name);
        assert!(self.missed.is_empty(), "{} counterexamples, see above", self.missed.len());
        assert!(!self.is_too_small(), "too few pairs or instances were looked at");
        let tally = &self.tally;
        let accepted = percent(tally.checked, tally.generated);
        assert!(accepted > 20.0, "only {accepted:.1} % of the instances were valid: they miss");
        assert!(tally.slowest() < MAX_COMPARISON, "a comparison took {:?}", tally.slowest());
        let share = percent(tally.false_alarms, tally.breaking_pairs);
        assert!(share < 60.0, "{share:.1} % of the breaking reports could not be confirmed");
    }
}

fn has_refusal(random: &mut Random, readings: &[Reading<'_>], old: &Value, new: &Value) -> bool {
    let pool = Pool::of([old, new]);
    readings.iter().any(|reading| {
        let maker = Maker { document: reading.old, pool: &pool };
        (0..ALARM_INSTANCES).any(|_| {
            let instance = maker.instance(random);
            reading.was_accepted(&instance) && !reading.is_accepted(&instance)
        })
    })
}
