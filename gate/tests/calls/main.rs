//! Judges shield by the call from outside: thousands of calls on generated and real pairs of
//! definitions. No call that goes through may be refused by the new schema, use a parameter that
//! changed, or rely on one that it omits.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "all of this file is a test, also the functions that are not marked as one"
)]

mod oracle;
mod pairs;

use contract::diff::diff_entry;
use contract::surface::{Entry, EntryId, EntryType};
use gate::behavior::arguments;
use gate::by_the_call::{CallCause, CallRules, CallRuling, ToolChange};
use jsonschema::{Draft, Validator};
use oracle::Oracle;
use serde_json::{Value, json};
use testing::Random;

fn tool(schema: &Value) -> Entry {
    let id = EntryId::new(EntryType::Tool, "t");
    let raw = json!({"name": "t", "inputSchema": schema}).to_string();
    Entry::from_raw(id, &raw).expect("an entry")
}

fn rules(old: &Value, new: &Value) -> CallRules {
    let (old, new) = (tool(old), tool(new));
    let findings = diff_entry(Some(&old), Some(&new)).map(|diff| diff.findings).unwrap_or_default();
    let (approved, accepted, new, findings) = (&old, &old, &new, &findings);
    CallRules::of(ToolChange { approved, accepted, new, findings, defers_text: false })
}

/// A validator that shares only the crate with the gate's own, with its defaults, for each dialect.
fn validators(schema: &Value) -> Vec<Validator> {
    let drafts = match schema.get("$schema").and_then(Value::as_str) {
        Some(uri) if uri.contains("draft-07") => vec![Draft::Draft7],
        Some(_) => vec![Draft::Draft202012],
        None => vec![Draft::Draft7, Draft::Draft202012],
    };
    let options = |draft| jsonschema::options().with_draft(draft).should_validate_formats(false);
    drafts.into_iter().filter_map(|draft| options(draft).build(schema).ok()).collect()
}

/// Counts the judged cases, so that a run that judged nothing fails.
#[derive(Debug, Default)]
struct Seen {
    pairs: usize,
    went: usize,
    touched: usize,
    undeclared: usize,
    invalid: usize,
    whole: usize,
}

impl Seen {
    fn held(&self) -> usize {
        self.touched + self.undeclared + self.invalid + self.whole
    }
}

/// Judges calls on one pair and checks each ruling.
fn judge_pair(old: &Value, new: &Value, calls: usize, random: &mut Random, seen: &mut Seen) {
    let rules = rules(old, new);
    let oracle = Oracle::between(old, new);
    let (old_validators, new_validators) = (validators(old), validators(new));
    seen.pairs += 1;
    for _ in 0..calls {
        let schema = if random.percent(85) { old } else { new };
        let mut call = arguments(schema, *random.pick(&[10, 33, 80]), &mut |end| random.below(end));
        pairs::disturb(&mut call, random);
        let text = call.to_string();
        let say = |why: &str| format!("{why}\nold {old}\nnew {new}\ncall {text}");
        match rules.judge(Some(text.as_bytes())) {
            CallRuling::Proceed => {
                seen.went += 1;
                let is_valid = |all: &[Validator]| all.iter().all(|one| one.is_valid(&call));
                assert!(is_valid(&new_validators), "{}", say("the new schema refuses it"));
                assert!(is_valid(&old_validators), "{}", say("the old schema refuses it"));
                if let Some(why) = oracle.objection(&call) {
                    panic!("{}", say(&why));
                }
            }
            CallRuling::Hold(hold) => {
                let is_named = !hold.parameters.is_empty();
                match hold.cause {
                    CallCause::Touched => {
                        assert!(is_named && !hold.kinds.is_empty(), "{}", say("no reason"));
                        seen.touched += 1;
                    }
                    CallCause::Undeclared => {
                        assert!(is_named, "{}", say("no parameter"));
                        seen.undeclared += 1;
                    }
                    cause @ (CallCause::Invalid | CallCause::InvalidBefore) => {
                        let is_before = cause == CallCause::InvalidBefore;
                        let all = if is_before { &old_validators } else { &new_validators };
                        let is_refused = all.iter().any(|one| !one.is_valid(&call));
                        assert!(is_refused, "{}", say("the schema accepts it"));
                        seen.invalid += 1;
                    }
                    CallCause::WholeTool | CallCause::Undecided(_) => seen.whole += 1,
                    CallCause::Ambiguous | CallCause::HeldBefore => panic!("{}", say("not so")),
                }
            }
        }
    }
}

#[test]
fn no_call_that_goes_through_is_refused_or_has_another_meaning() {
    let mut random = Random::from_seed_or(160);
    let mut seen = Seen::default();
    for _ in 0..1_500 {
        let (old, new) = pairs::pair(&mut random);
        judge_pair(&old, &new, 20, &mut random, &mut seen);
    }
    // Minimums: a generator that produces nothing, or rules that hold everything, would prove
    // nothing.
    assert_eq!(seen.went + seen.held(), 30_000, "{seen:?}");
    assert!(seen.went > 5_000 && seen.touched > 4_000, "{seen:?}");
    assert!(seen.undeclared > 500 && seen.invalid > 500 && seen.whole > 100, "{seen:?}");
}

#[test]
fn real_upgrades_let_no_call_through_that_they_change() {
    let Some(root) = testing::corpus() else { return };
    let mut random = Random::from_seed_or(161);
    let mut seen = Seen::default();
    for (old, new) in pairs::adjacent(&root) {
        judge_pair(&old, &new, 6, &mut random, &mut seen);
    }
    // Captures of a few installed servers can serve as the corpus.
    let least = if seen.pairs > 100 { (300, 500, 500) } else { (20, 50, 50) };
    let (pairs, went, held) = least;
    assert!(seen.pairs > pairs && seen.went > went && seen.held() > held, "{seen:?}");
}

#[test]
fn the_oracle_objects_to_what_changed_and_to_nothing_else() {
    let old = json!({"properties": {
        "a": {"$ref": "#/$defs/A"}, "b": {"default": 1}, "c": {"type": "string"}},
        "$defs": {"A": {"type": "string", "description": "one"}}});
    let mut new = old.clone();
    new["$defs"]["A"]["description"] = json!("two");
    let oracle = Oracle::between(&old, &new);
    assert!(oracle.objection(&json!({"a": "x"})).is_some());
    assert!(oracle.objection(&json!({"c": "x"})).is_none());
    let mut new = old.clone();
    new["properties"]["b"]["default"] = json!(2);
    assert!(Oracle::between(&old, &new).objection(&json!({"c": "x"})).is_some());
    new["properties"].as_object_mut().unwrap().remove("b");
    assert!(Oracle::between(&old, &new).objection(&json!({})).is_some());
    assert!(Oracle::between(&old, &new).objection(&json!({"b": 1})).is_some());
    assert!(Oracle::between(&old, &old).objection(&json!({"a": "x", "d": 1})).is_none());
}
