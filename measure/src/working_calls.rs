//! Generates valid calls for a definition: with its required parameters and about a third of the
//! optional ones, chosen by a seed.

use crate::random::Random;
use contract::surface::Entry;
use gate::behavior::arguments;
use jsonschema::{Draft, Validator};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::rc::Rc;

/// The number of calls generated per tool.
pub(crate) const CALLS: usize = 10;
/// The number of attempts, some of which yield invalid calls.
const ATTEMPTS: usize = 40;
const OPTIONAL_PERCENT: usize = 33;

/// A cache of calls by schema: most releases leave most schemas unchanged.
#[derive(Debug, Default)]
pub(crate) struct WorkingCalls(HashMap<String, Rc<Vec<String>>>);

impl WorkingCalls {
    pub(crate) fn of(&mut self, tool: &Entry) -> Rc<Vec<String>> {
        let tool: Value = serde_json::from_str(tool.raw()).unwrap_or_default();
        let schema = tool.get("inputSchema").cloned().unwrap_or(json!({}));
        let made = self.0.entry(schema.to_string()).or_insert_with(|| Rc::new(make(&schema)));
        made.clone()
    }
}

fn make(schema: &Value) -> Vec<String> {
    let validators = validators(schema);
    // The same schema gives the same calls, wherever it occurs in the corpus.
    let seed = schema
        .to_string()
        .bytes()
        .fold(7_u64, |seed, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let mut random = Random::new(seed);
    let mut calls = Vec::new();
    for _ in 0..ATTEMPTS {
        let call = arguments(schema, OPTIONAL_PERCENT, &mut |end| random.below(end));
        if calls.len() < CALLS && validators.iter().all(|validator| validator.is_valid(&call)) {
            calls.push(call.to_string());
        }
    }
    calls
}

fn validators(schema: &Value) -> Vec<Validator> {
    let drafts = match schema.get("$schema").and_then(Value::as_str) {
        Some(uri) if uri.contains("draft-07") => vec![Draft::Draft7],
        Some(_) => vec![Draft::Draft202012],
        None => vec![Draft::Draft7, Draft::Draft202012],
    };
    let options = |draft| jsonschema::options().with_draft(draft).should_validate_formats(false);
    drafts.into_iter().filter_map(|draft| options(draft).build(schema).ok()).collect()
}
