//! Shrinks a counterexample by removing parts as long as it remains one.

use crate::edits::escape;
use crate::judge::Counterexample;
use serde_json::{Value, json};

/// The most candidates tried for one counterexample.
const MAX_TRIES: usize = 5_000;

pub fn shrink(found: Counterexample, is_still: impl Fn(&Counterexample) -> bool) -> Counterexample {
    let mut best = found;
    let mut tries = 0;
    loop {
        let size = weight(&best);
        let next = candidates(&best)
            .filter(|candidate| weight(candidate) < size)
            .take(MAX_TRIES - tries)
            .find(|candidate| {
                tries += 1;
                is_still(candidate)
            });
        match next {
            Some(next) => best = next,
            None => return best,
        }
    }
}

fn weight(counterexample: &Counterexample) -> usize {
    let Counterexample { old, new, instance } = counterexample;
    old.to_string().len() + new.to_string().len() + instance.to_string().len()
}

/// Smaller candidates, generated lazily: a large pair has many.
fn candidates(from: &Counterexample) -> impl Iterator<Item = Counterexample> {
    let Counterexample { old, new, instance } = from;
    // A part of both schemas that describes a member or an element of the instance, taken by
    // itself.
    let parts = pointers(new).into_iter().skip(1).filter_map(|at| {
        let (old, new) = (old.pointer(&at)?, new.pointer(&at)?);
        (old.is_object() && new.is_object()).then_some((old, new))
    });
    let parts = parts.flat_map(move |(old, new)| {
        pointers(instance).into_iter().filter_map(move |below| {
            let instance = instance.pointer(&below)?.clone();
            Some(Counterexample { old: old.clone(), new: new.clone(), instance })
        })
    });
    // The same part removed from both sides.
    let both = pointers(old).into_iter().flat_map(|at| {
        let pairs = simpler_at(old, &at).into_iter().zip(simpler_at(new, &at));
        pairs.map(|(old, new)| Counterexample { old, new, instance: instance.clone() })
    });
    let new_alone = simpler(new).map(|new| Counterexample { new, ..from.clone() });
    let old_alone = simpler(old).map(|old| Counterexample { old, ..from.clone() });
    let instances = simpler(instance).map(|instance| Counterexample { instance, ..from.clone() });
    both.chain(new_alone).chain(old_alone).chain(instances).chain(parts)
}

fn simpler(value: &Value) -> impl Iterator<Item = Value> {
    pointers(value).into_iter().flat_map(|at| simpler_at(value, &at))
}

/// The value with the part at a pointer removed, emptied, or replaced by one of its own parts.
fn simpler_at(value: &Value, at: &str) -> Vec<Value> {
    let Some(part) = value.pointer(at) else { return Vec::new() };
    let mut replacements = vec![json!({}), json!(true), json!(1), json!("a")];
    match part {
        Value::Object(members) => replacements.extend(members.values().cloned()),
        Value::Array(items) => replacements.extend(items.iter().cloned()),
        _ => {}
    }
    let mut found = Vec::new();
    if let Some((parent, last)) = at.rsplit_once('/') {
        let mut without = value.clone();
        match without.pointer_mut(parent) {
            Some(Value::Object(members)) => {
                members.shift_remove(&last.replace("~1", "/").replace("~0", "~"));
            }
            Some(Value::Array(items)) => {
                if let Ok(index) = last.parse::<usize>() {
                    items.remove(index);
                }
            }
            _ => {}
        }
        found.push(without);
    }
    for replacement in replacements {
        let mut replaced = value.clone();
        if let Some(place) = replaced.pointer_mut(at) {
            *place = replacement;
            found.push(replaced);
        }
    }
    found
}

fn pointers(value: &Value) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut at = 0;
    while at < found.len() {
        let pointer = found[at].clone();
        at += 1;
        match value.pointer(&pointer) {
            Some(Value::Object(members)) => {
                found.extend(members.keys().map(|name| format!("{pointer}/{}", escape(name))));
            }
            Some(Value::Array(items)) => {
                found.extend((0..items.len()).map(|index| format!("{pointer}/{index}")));
            }
            _ => {}
        }
    }
    found
}
