//! Soundness: if neither a breaking nor a fail-safe kind is reported, the new schema accepts every
//! instance that the old one accepts. A validator is the judge.
//!
//! `HOLDPOINT_SEED` repeats a run, `HOLDPOINT_SOUNDNESS_SECONDS` limits it by time, and
//! `HOLDPOINT_CORPUS` names a directory of real surfaces.
#![allow(
    clippy::expect_used,
    clippy::explicit_auto_deref,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "all of this crate is a test, also the functions that are not marked as one"
)]
#![allow(unreachable_pub, reason = "the modules of a test have no reader but the test")]

mod applicable;
mod corpus;
mod edits;
mod instances;
mod judge;
mod results;
mod run;
mod schemas;
mod shrink;
mod tally;

use judge::{Counterexample, Reading, findings, is_claimed};
use run::{Budget, Run};
use schemas::Author;
use serde_json::Value;
use testing::Random;

const CASES: &str = include_str!("../../../conformance/soundness/cases.json");

/// Every counterexample found so far, and the pairs that an earlier draft of the rules got wrong.
#[test]
fn kept_counterexamples_are_reported() {
    let cases: Vec<Value> = serde_json::from_str(CASES).expect("the cases are a JSON array");
    assert!(cases.len() >= 5);
    let mut wrong = Vec::new();
    for case in cases {
        let name = case["name"].as_str().expect("a case has a name");
        let counterexample = Counterexample {
            old: case["old"].clone(),
            new: case["new"].clone(),
            instance: case["instance"].clone(),
        };
        assert!(counterexample.is_refusal(), "`{name}`: the judge does not refuse the instance");
        if !is_claimed(&findings(&counterexample.old, &counterexample.new).0) {
            wrong.push(name.to_owned());
        }
    }
    assert!(wrong.is_empty(), "neither breaking nor fail-safe: {wrong:#?}");
}

#[test]
fn where_nothing_breaks_every_old_instance_is_accepted() {
    let (seed, budget) = (run::seed(), Budget::from_environment());
    println!("generated: HOLDPOINT_SEED={seed}");
    let mut random = Random::new(seed);
    let mut run = Run::default();
    while run.goes_on(&budget) {
        let mut author = Author::new(&mut random);
        let old = schemas::document(&mut author);
        let new = match author.percent(92) {
            true => edits::edited(&mut author, &old),
            false => schemas::document(&mut author),
        };
        run.pair(&mut random, &old, &new);
    }
    run.finish("generated");
}

#[test]
fn real_schemas_and_edits_of_them_are_sound() {
    let Some(surfaces) = corpus::surfaces() else { return };
    let (seed, budget) = (run::seed(), Budget::from_environment());
    println!("real surfaces: {} tools, HOLDPOINT_SEED={seed}", surfaces.tools());
    let mut random = Random::new(seed);
    let mut run = Run::default();
    for (old, new) in surfaces.adjacent() {
        run.pair(&mut random, old, new);
    }
    while run.goes_on(&budget) {
        let old = surfaces.any(&mut random);
        let new = edits::edited(&mut Author::new(&mut random), old);
        run.pair(&mut random, old, &new);
    }
    run.finish("real surfaces");
}

/// Tests the judge itself: it notices a refused instance, skips an open one, and keeps the dialects
/// apart.
#[test]
fn the_judge_tells_refusals_from_what_the_rule_is_not_about() {
    let check = |old: &str, new: &str, instance: &str, expected: bool| {
        let parse = |text: &str| serde_json::from_str::<Value>(text).expect(text);
        let found = Counterexample { old: parse(old), new: parse(new), instance: parse(instance) };
        assert_eq!(found.is_refusal(), expected, "{old}\n{new}\n{instance}");
    };
    let named = r#"{"properties":{"a":{"type":"string"}}}"#;
    check("{}", named, r#"{"a":1}"#, false);
    check(r#"{"required":["a"]}"#, named, r#"{"a":1}"#, true);
    check(r#"{"additionalProperties":true}"#, named, r#"{"a":1}"#, true);
    check(r#"{"anyOf":[{"properties":{"a":{}}}]}"#, named, r#"{"a":1}"#, true);
    check(r#"{"enum":[{"a":1}]}"#, named, r#"{"a":1}"#, true);
    check(r#"{"patternProperties":{"^a":{}}}"#, named, r#"{"a":1}"#, true);
    check(named, named, r#"{"a":1}"#, false);
    check("{}", r#"{"dependentRequired":{"a":["b"]}}"#, r#"{"a":1}"#, false);
    let both = r#"{"properties":{"a":{},"b":{}}}"#;
    check(both, r#"{"dependentRequired":{"a":["b"]}}"#, r#"{"a":1}"#, true);
    let draft_7 =
        r#"{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{},"b":{}}}"#;
    let asks =
        r#"{"$schema":"http://json-schema.org/draft-07/schema#","dependentRequired":{"a":["b"]}}"#;
    check(draft_7, asks, r#"{"a":1}"#, false);
    let readings = Reading::all(&Value::Bool(true), &Value::Bool(true)).len();
    assert_eq!(readings, 2);
}
