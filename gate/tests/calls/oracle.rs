//! Determines what changed about each parameter independently of the gate: both schemas are
//! unfolded along the paths of a call, and what each path's schemas say is compared as sets.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The depth to which schemas are unfolded.
const MAX_DEPTH: usize = 6;

/// Everything said about one path, in any branch.
#[derive(Debug, Default, PartialEq, Eq)]
struct Said {
    texts: BTreeSet<String>,
    defaults: BTreeSet<String>,
    formats: BTreeSet<String>,
}

type Paths = BTreeMap<Vec<String>, Said>;

#[derive(Debug)]
pub(crate) struct Oracle {
    /// For each parameter of the old schema that no call may use, the reason.
    used: BTreeMap<String, String>,
    /// For each parameter that no call may omit, the reason.
    left_out: BTreeMap<String, String>,
}

impl Oracle {
    pub(crate) fn between(old: &Value, new: &Value) -> Oracle {
        let (old, new) = (unfold(old), unfold(new));
        let mut oracle = Oracle { used: BTreeMap::new(), left_out: BTreeMap::new() };
        for (path, before) in old.iter().filter(|(path, _)| !path.is_empty()) {
            let name = path[0].clone();
            let shown = path.join(".");
            let mut used = |why: &str| {
                oracle.used.insert(name.clone(), format!("`{shown}`: {why}"));
            };
            match new.get(path) {
                None => {
                    used("it is gone");
                    if !before.defaults.is_empty() && !path.iter().any(|step| step == "[]") {
                        oracle.left_out.insert(name, format!("`{shown}` had a default"));
                    }
                }
                Some(after) => {
                    if before.texts != after.texts {
                        used("its text changed");
                    }
                    if before.formats != after.formats {
                        used("its format changed");
                    }
                    if before.defaults != after.defaults {
                        used("its default changed");
                        if !path.iter().any(|step| step == "[]") {
                            oracle
                                .left_out
                                .insert(name, format!("`{shown}` has a different default"));
                        }
                    }
                }
            }
        }
        oracle
    }

    /// Why a call with these arguments must not go through, if there is a reason.
    pub(crate) fn objection(&self, call: &Value) -> Option<String> {
        let has = |name: &String| call.get(name).is_some();
        let used = self.used.iter().find(|(name, _)| has(name));
        let left_out = self.left_out.iter().find(|(name, _)| !has(name));
        used.or(left_out).map(|(_, why)| why.clone())
    }
}

fn unfold(root: &Value) -> Paths {
    let mut paths = Paths::new();
    visit(root, root, &mut Vec::new(), &mut paths, 0);
    paths
}

fn visit(root: &Value, schema: &Value, path: &mut Vec<String>, paths: &mut Paths, hops: usize) {
    if path.len() > MAX_DEPTH || hops > 20 {
        return;
    }
    let said = paths.entry(path.clone()).or_default();
    for keyword in ["description", "$comment", "examples"] {
        said.texts.extend(schema.get(keyword).map(Value::to_string));
    }
    said.formats.extend(schema.get("format").map(Value::to_string));
    let default = schema.get("default").filter(|default| !default.is_null());
    // `1` and `1.0` are the same value.
    said.defaults.extend(default.map(|value| value.to_string().replace(".0", "")));
    let target = schema.get("$ref").and_then(Value::as_str);
    if let Some(target) = target.and_then(|target| root.pointer(target.strip_prefix('#')?)) {
        visit(root, target, path, paths, hops + 1);
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        for branch in schema.get(keyword).and_then(Value::as_array).into_iter().flatten() {
            visit(root, branch, path, paths, hops + 1);
        }
    }
    for (name, schema) in schema.get("properties").and_then(Value::as_object).into_iter().flatten()
    {
        path.push(name.clone());
        visit(root, schema, path, paths, 0);
        path.pop();
    }
    if let Some(items @ Value::Object(_)) = schema.get("items") {
        path.push("[]".to_owned());
        visit(root, items, path, paths, 0);
        path.pop();
    }
}
