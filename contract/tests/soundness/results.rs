//! The opposite direction, for results: if they are reported as within, the old schema allows every
//! result that the new one allows, including results with additional members.

use crate::edits;
use crate::instances::{Maker, Pool};
use crate::judge::{Counterexample, Reading};
use crate::schemas::{self, Author};
use crate::shrink::shrink;
use crate::{corpus, run};
use contract::change::Meaning;
use contract::schema::compare_results;
use serde_json::{Value, json};
use testing::Random;

const PAIRS: usize = 3_000;
const INSTANCES: usize = 60;
/// A run with fewer such pairs proves nothing.
const LEAST_WITHIN: usize = 300;
const LEAST_CHECKED: usize = 8_000;

/// How the comparison relates the results of a schema to those of the one before.
fn change(old: &Value, new: &Value) -> Option<Meaning> {
    let (old, new) = (old.to_string(), new.to_string());
    let old = contract::json::Document::parse(&old).expect("a schema is JSON");
    let new = contract::json::Document::parse(&new).expect("a schema is JSON");
    compare_results(old.root(), new.root(), "").change
}

fn is_said_to_be_within(old: &Value, new: &Value) -> bool {
    match change(old, new) {
        None | Some(Meaning::ResultsWithin) => true,
        Some(Meaning::ResultsOutside | Meaning::EffectiveSame) => false,
    }
}

/// In a counterexample about results, `old` is the schema that the result comes from: the new one
/// of the pair.
fn is_missed(found: &Counterexample) -> bool {
    is_said_to_be_within(&found.new, &found.old)
        && Reading::all(&found.old, &found.new)
            .iter()
            .any(|reading| reading.is_left(&found.instance))
}

#[derive(Debug, Default)]
struct Checked {
    pairs: usize,
    within: usize,
    results: usize,
}

impl Checked {
    fn pair(&mut self, random: &mut Random, old: &Value, new: &Value) {
        self.pairs += 1;
        if old == new || !is_said_to_be_within(old, new) {
            return;
        }
        self.within += 1;
        let pool = Pool::of([old, new]);
        for reading in Reading::all(new, old) {
            let maker = Maker { document: reading.old, pool: &pool };
            for _ in 0..INSTANCES {
                let instance = maker.instance(random);
                self.results += usize::from(reading.was_valid(&instance));
                if reading.is_left(&instance) {
                    let found = Counterexample { old: new.clone(), new: old.clone(), instance };
                    let Counterexample { old: new, new: old, instance } = shrink(found, is_missed);
                    let case = json!({"old": old, "new": new, "result": instance});
                    panic!("said to be within, and the old schema refuses a result:\n{case}");
                }
            }
        }
    }

    fn finish(&self, name: &str) {
        println!("{name}: {self:?}");
        assert!(self.within >= LEAST_WITHIN, "only {} pairs were within", self.within);
        assert!(self.results >= LEAST_CHECKED, "only {} results were checked", self.results);
    }
}

#[test]
fn results_that_are_within_are_allowed_by_the_old_schema() {
    let seed = run::seed();
    println!("generated results: HOLDPOINT_SEED={seed}");
    let mut random = Random::new(seed);
    let mut checked = Checked::default();
    while checked.pairs < PAIRS || checked.within < LEAST_WITHIN {
        let mut author = Author::new(&mut random);
        let old = schemas::document(&mut author);
        let new = edits::edited(&mut author, &old);
        checked.pair(&mut random, &old, &new);
    }
    checked.finish("generated results");
}

#[test]
fn real_output_schemas_and_edits_of_them_are_sound() {
    let Some(surfaces) = corpus::surfaces_with("outputSchema") else { return };
    let mut random = Random::new(run::seed());
    let mut checked = Checked::default();
    for (old, new) in surfaces.adjacent() {
        checked.pair(&mut random, old, new);
    }
    while checked.pairs < PAIRS || checked.within < LEAST_WITHIN {
        let old = surfaces.any(&mut random);
        let new = edits::edited(&mut Author::new(&mut random), old);
        checked.pair(&mut random, old, &new);
    }
    checked.finish("real results");
}

/// Tests the check itself: a result outside the old schema is noticed.
#[test]
fn a_result_that_the_old_schema_refuses_is_seen() {
    let is_left = |old: Value, new: Value, result: Value| {
        Reading::all(&new, &old).iter().any(|reading| reading.is_left(&result))
    };
    let (string, any) = (json!({"properties": {"a": {"type": "string"}}}), json!({}));
    assert!(is_left(string.clone(), any.clone(), json!({"a": 1})));
    assert!(!is_left(string.clone(), any.clone(), json!({"b": 1})));
    assert!(!is_left(any, string, json!({"a": 1})));
}

/// Integer bounds, checked for every value near them: a narrowing is reported exactly if there is
/// one.
#[test]
fn bounds_are_compared_by_the_numbers_they_admit() {
    let seed = run::seed();
    let mut random = Random::new(seed);
    let halves = |random: &mut Random| (random.below(13) as f64 - 6.0) / 2.0;
    let kinds = [
        json!({"type": "integer"}),
        json!({"type": ["integer", "null"]}),
        json!({"type": "number"}),
        json!({"type": "number", "multipleOf": 1}),
        json!({"enum": [-2, 0, 1, 3]}),
        json!({}),
    ];
    let values: Vec<Value> = (-18..=18).map(|at| json!(f64::from(at) / 4.0)).collect();
    let (mut quiet, mut narrowed) = (0, 0);
    for _ in 0..6_000 {
        let base = random.pick(&kinds).clone();
        let mut bounded = || {
            let mut schema = base.clone();
            for keyword in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"] {
                if random.percent(40) {
                    schema[keyword] = json!(halves(&mut random));
                }
            }
            schema
        };
        let (old, new) = (bounded(), bounded());
        let findings = crate::judge::findings(&old, &new).0;
        let is_claimed = crate::judge::is_claimed(&findings);
        let readings = Reading::all(&old, &new);
        let is_refused =
            values.iter().any(|value| readings.iter().any(|reading| reading.is_left(value)));
        assert!(is_claimed || !is_refused, "HOLDPOINT_SEED={seed}\n{old}\n{new}\n{findings:?}");
        let accepts =
            values.iter().any(|value| readings.iter().any(|reading| reading.was_valid(value)));
        // Listed values may all lie on one side of both bounds, and bounds may admit nothing; a
        // report is then merely cautious.
        if base.get("enum").is_none() && accepts && is_claimed {
            assert!(is_refused, "HOLDPOINT_SEED={seed}\n{old}\n{new}\n{findings:?}");
            narrowed += 1;
        }
        quiet += usize::from(!is_claimed);
    }
    println!("bounds: {quiet} pairs without a narrowing, {narrowed} with one");
    assert!(quiet > 500 && narrowed > 500);
}
