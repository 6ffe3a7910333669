//! Makes a counterexample small: parts are taken away as long as it stays one.

use crate::edits::escape;
use crate::judge::Counterexample;
use serde_json::{Value, json};

/// The most candidates that are tried for one counterexample.
const MAX_TRIES: usize = 5_000;

pub fn shrink(found: Counterexample, is_still: impl Fn(&Counterexample) -> bool) -> Counterexample {
    let mut best = found;
    let mut tries = 0;
    loop {
        let size = weight(&best);
        let smaller = candidates(&best).into_iter().filter(|candidate| weight(candidate) < size);
        let mut next = None;
        for candidate in smaller {
            tries += 1;
            if tries > MAX_TRIES {
                return best;
            }
            if is_still(&candidate) {
                next = Some(candidate);
                break;
            }
        }
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

fn candidates(from: &Counterexample) -> Vec<Counterexample> {
    let mut found = Vec::new();
    let Counterexample { old, new, instance } = from;
    // A part of both that is about a member or an element of the instance, on its own.
    for at in pointers(new) {
        if let (Some(old), Some(new)) = (old.pointer(&at), new.pointer(&at)) {
            for below in pointers(instance) {
                let instance = instance.pointer(&below).cloned().unwrap_or_default();
                found.push(Counterexample { old: old.clone(), new: new.clone(), instance });
            }
        }
    }
    // The same part taken out of both sides.
    for at in pointers(old) {
        for old in simpler_at(old, &at) {
            for new in simpler_at(new, &at) {
                found.push(Counterexample { old: old.clone(), new, instance: instance.clone() });
            }
        }
    }
    let new_ones = simpler(new).into_iter().map(|new| Counterexample { new, ..from.clone() });
    found.extend(new_ones);
    found.extend(simpler(old).into_iter().map(|old| Counterexample { old, ..from.clone() }));
    let instances = simpler(instance).into_iter();
    found.extend(instances.map(|instance| Counterexample { instance, ..from.clone() }));
    found
}

fn simpler(value: &Value) -> Vec<Value> {
    pointers(value).iter().flat_map(|at| simpler_at(value, at)).collect()
}

/// The value with the part at a pointer taken out, emptied, or replaced by a part of itself.
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
