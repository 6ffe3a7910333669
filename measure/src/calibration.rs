//! Calibration from recorded outcomes: how often people override holds, per posture and kind of
//! change.
//!
//! It measures and never acts. *Wrong* means overridden, not unsafe: a person who approves a held
//! change did not need the hold. If there is too little data, P(wrong) is 1.

use crate::bounds::upper;
use contract::time::Timestamp;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Whether calibration may decide on a call. It may not, which a test enforces.
pub const AUTONOMY_ENABLED: bool = false;
/// The mark on every confidence value until both conditions in `docs/evidence.md` are met.
pub const CALIBRATED: bool = false;
/// The minimum weight of a cell for it to be sufficient.
pub const MIN_WEIGHT: f64 = 30.0;
/// The minimum number of servers of a cell for it to be sufficient.
pub const MIN_SERVERS: usize = 3;
/// How many overrides of one person count per day.
pub const MAX_OVERRIDES_A_DAY: u32 = 5;
/// The share of outcomes, the earlier ones, from which P(wrong) is computed.
const EARLIER_SHARE: f64 = 0.7;

/// The source of an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// A case whose correct answer is known in advance.
    Battery,
    /// A mutation of a real contract that was not used to tune any rule.
    HeldOut,
    /// A person approved a held change, or stopped the server because of it.
    Person,
}

impl Source {
    /// The source with this name; `None` for an unknown one, which empties the store.
    pub fn named(name: &str) -> Option<Source> {
        match name {
            "battery" => Some(Source::Battery),
            "held-out" => Some(Source::HeldOut),
            "person" => Some(Source::Person),
            _ => None,
        }
    }

    const fn weight(self) -> f64 {
        match self {
            Source::Battery | Source::HeldOut => 1.0,
            Source::Person => 0.5,
        }
    }
}

/// The gate's verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    Held,
    /// Only held-out data can measure these: the absence of a complaint is not an outcome.
    Cleared,
}

/// One observation of whether the gate was right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub at: Timestamp,
    pub source: Source,
    pub direction: Direction,
    pub posture: String,
    /// The kind of change.
    pub kind: String,
    pub server: String,
    /// The person who decided, if any.
    pub by: Option<String>,
    pub is_wrong: bool,
}

/// Why there is no data to calibrate with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "why", content = "detail")]
pub enum Emptied {
    /// The ledger with the outcomes does not verify.
    LedgerDoesNotVerify(String),
    /// An outcome has an unknown source.
    UnknownSource(String),
    NoOutcomes,
}

/// Outcomes that may be counted; empty as soon as any one cannot be trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutcomeStore {
    outcomes: Vec<Outcome>,
    emptied: Option<Emptied>,
}

impl OutcomeStore {
    pub fn empty(why: Emptied) -> OutcomeStore {
        OutcomeStore { outcomes: Vec::new(), emptied: Some(why) }
    }

    /// Outcomes from a verified ledger. In the cleared direction, only held-out ones are kept.
    pub fn verified(mut outcomes: Vec<Outcome>) -> OutcomeStore {
        let is_admitted = |outcome: &Outcome| {
            outcome.direction == Direction::Held || outcome.source == Source::HeldOut
        };
        outcomes.retain(is_admitted);
        outcomes.sort_by(|one, other| {
            one.at.cmp(&other.at).then_with(|| one.server.cmp(&other.server))
        });
        match outcomes.is_empty() {
            true => OutcomeStore::empty(Emptied::NoOutcomes),
            false => OutcomeStore { outcomes, emptied: None },
        }
    }

    /// What calibration may decide about a call: nothing, as long as autonomy is off.
    pub fn decision(&self) -> Decision {
        Decision::Escalate
    }

    pub fn report(&self) -> Report {
        let weights = self.weights();
        let mut cells: BTreeMap<CellKey, Vec<(&Outcome, f64)>> = BTreeMap::new();
        for (outcome, weight) in self.outcomes.iter().zip(weights) {
            let key = (outcome.direction, outcome.posture.clone(), outcome.kind.clone());
            cells.entry(key).or_default().push((outcome, weight));
        }
        let cells: Vec<Cell> =
            cells.into_iter().map(|(key, observed)| Cell::of(key, &observed)).collect();
        Report {
            calibrated: CALIBRATED,
            autonomy_enabled: AUTONOMY_ENABLED,
            decision: self.decision(),
            outcomes: self.outcomes.len(),
            emptied: self.emptied.clone(),
            reliability: reliability(&cells),
            cells,
        }
    }

    /// The weights of the outcomes, in order: a person who overrides repeatedly within a day has
    /// stopped looking.
    fn weights(&self) -> Vec<f64> {
        let mut overrides: BTreeMap<(&str, i64), u32> = BTreeMap::new();
        let weight = |outcome: &Outcome, overrides: &mut u32| {
            *overrides += 1;
            if *overrides > MAX_OVERRIDES_A_DAY { 0.0 } else { outcome.source.weight() }
        };
        let mut weights = Vec::with_capacity(self.outcomes.len());
        for outcome in &self.outcomes {
            let is_override = outcome.source == Source::Person && outcome.is_wrong;
            weights.push(match is_override {
                false => outcome.source.weight(),
                true => {
                    let person = outcome.by.as_deref().unwrap_or("");
                    let day = outcome.at.0.div_euclid(86_400_000);
                    weight(outcome, overrides.entry((person, day)).or_default())
                }
            });
        }
        weights
    }
}

/// The effect of calibration on a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// The gate decides as without calibration, and what it holds stays held.
    Escalate,
}

type CellKey = (Direction, String, String);

/// Why a cell is not sufficient.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lack {
    Weight,
    Servers,
    OnlyPersons,
}

/// The outcomes of one direction, posture and kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cell {
    pub direction: Direction,
    pub posture: String,
    pub kind: String,
    pub outcomes: usize,
    pub weight: f64,
    pub wrong_weight: f64,
    pub servers: usize,
    /// What is missing; empty if the cell is sufficient.
    pub lacks: Vec<Lack>,
    /// The upper bound computed from the earlier outcomes; 1 unless the cell is sufficient.
    pub p_wrong: f64,
    /// The rate among the later outcomes; `None` unless the cell is sufficient.
    pub observed: Option<f64>,
    /// The weight of the later outcomes.
    pub observed_weight: f64,
}

impl Cell {
    fn of((direction, posture, kind): CellKey, observed: &[(&Outcome, f64)]) -> Cell {
        let weight = sum(observed, |_| true);
        let servers: BTreeSet<&str> = observed
            .iter()
            .filter(|(_, weight)| *weight > 0.0)
            .map(|(outcome, _)| outcome.server.as_str())
            .collect();
        let is_by_persons = observed.iter().all(|(outcome, _)| outcome.source == Source::Person);
        let lacks: Vec<Lack> = [
            (weight < MIN_WEIGHT, Lack::Weight),
            (servers.len() < MIN_SERVERS, Lack::Servers),
            (is_by_persons, Lack::OnlyPersons),
        ]
        .into_iter()
        .filter_map(|(is_lacking, lack)| is_lacking.then_some(lack))
        .collect();
        let split = (observed.len() as f64 * EARLIER_SHARE).floor() as usize;
        let (earlier, later) = observed.split_at_checked(split).unwrap_or((observed, &[]));
        let later_weight = sum(later, |_| true);
        let is_sufficient = lacks.is_empty() && later_weight > 0.0;
        let bound = upper(sum(earlier, |outcome| outcome.is_wrong), sum(earlier, |_| true));
        Cell {
            direction,
            posture,
            kind,
            outcomes: observed.len(),
            weight,
            wrong_weight: sum(observed, |outcome| outcome.is_wrong),
            servers: servers.len(),
            lacks,
            p_wrong: if is_sufficient { bound } else { 1.0 },
            observed: is_sufficient.then(|| sum(later, |outcome| outcome.is_wrong) / later_weight),
            observed_weight: later_weight,
        }
    }
}

fn sum(observed: &[(&Outcome, f64)], counts: impl Fn(&Outcome) -> bool) -> f64 {
    observed
        .iter()
        .filter(|(outcome, _)| counts(outcome))
        .fold(0.0, |sum, (_, weight)| sum + weight)
}

/// The reliability component of Murphy's decomposition over sufficient cells, Σw(p − o)²/Σw. Lower
/// is better. It is not the Brier score.
fn reliability(cells: &[Cell]) -> Option<f64> {
    let sufficient = cells.iter().filter_map(|cell| Some((cell, cell.observed?)));
    let (mut gaps, mut weights) = (0.0, 0.0);
    for (cell, observed) in sufficient {
        gaps += cell.observed_weight * (cell.p_wrong - observed).powi(2);
        weights += cell.observed_weight;
    }
    (weights > 0.0).then(|| gaps / weights)
}

/// The output of `calibrate report`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    pub calibrated: bool,
    pub autonomy_enabled: bool,
    pub decision: Decision,
    pub outcomes: usize,
    pub emptied: Option<Emptied>,
    /// `None` while no cell is sufficient.
    pub reliability: Option<f64>,
    pub cells: Vec<Cell>,
}

#[cfg(test)]
mod tests;
