//! A receipt's members by dotted names, for flat formats. They contain nothing that the ledger does
//! not.

use ledger::receipt::Item;
use serde_json::Value;

/// Every nonempty member, in the order in which a receipt is printed.
pub(super) fn fields(item: &Item) -> Result<Vec<(String, Value)>, serde_json::Error> {
    let mut found = Vec::new();
    if let Value::Object(members) = serde_json::to_value(item)? {
        for (name, value) in members {
            // The data of events differs between events, so it stays a single value.
            let value = match value {
                Value::Object(_) if name == "data" => Value::String(value.to_string()),
                other => other,
            };
            flatten(&name, value, &mut found);
        }
    }
    Ok(found)
}

fn flatten(name: &str, value: Value, found: &mut Vec<(String, Value)>) {
    match value {
        Value::Null => {}
        Value::Object(members) => {
            for (inner, value) in members {
                flatten(&format!("{name}.{inner}"), value, found);
            }
        }
        Value::Array(values) if values.is_empty() => {}
        other => found.push((name.to_owned(), other)),
    }
}
