//! Describes what is wrong with a configuration: the key, the line if known, and what is expected.

use crate::keys::Keys;
use serde_path_to_error::{Path as KeyPath, Segment};
use std::path::PathBuf;

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct ConfigurationError {
    pub path: PathBuf,
    pub problem: String,
}

/// An error and its line number, on a single line, because failures are printed on one.
pub(crate) fn at_line(text: &str, error: &toml::de::Error, problem: &str) -> String {
    let problem = problem.replace('\n', ", ");
    match error.span().and_then(|span| text.get(..span.start)) {
        Some(before) => format!("line {}: {problem}", before.matches('\n').count() + 1),
        None => problem,
    }
}

/// Explains an unknown key, suggesting the most similar known one, or a value that its key cannot
/// have.
pub(crate) fn explain(text: &str, error: &serde_path_to_error::Error<toml::de::Error>) -> String {
    let keys = names(error.path());
    // A server's table has the same keys as the top level.
    let general = match keys.as_slice() {
        ["server", _, rest @ ..] => rest.join("."),
        _ => keys.join("."),
    };
    let known = known_keys(&Keys::default());
    let problem = describe(&known, &general, &keys.join("."), error.inner().message());
    at_line(text, error.inner(), &problem)
}

/// Describes what is wrong with a key: `general` is its name among the known keys, `shown` its name
/// in this file.
pub(crate) fn describe(known: &[String], general: &str, shown: &str, message: &str) -> String {
    if known.iter().any(|known| is_within(known, general) || is_within(general, known)) {
        return format!("`{shown}`: {message}");
    }
    let likeness = |known: &String| strsim::jaro_winkler(known, general);
    let nearest = known.iter().max_by(|left, right| likeness(left).total_cmp(&likeness(right)));
    let suggestion = nearest.map(|key| format!("; did you mean `{key}`?"));
    format!("unknown key `{shown}`{}", suggestion.unwrap_or_default())
}

/// Whether `table` is `key`, or a table around it.
fn is_within(table: &str, key: &str) -> bool {
    key.strip_prefix(table)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.') || table.is_empty())
}

/// The keys on the path to a value, without list indices.
pub(crate) fn names(path: &KeyPath) -> Vec<&str> {
    let names = path.iter().filter_map(|segment| match segment {
        Segment::Map { key } => Some(key.as_str()),
        Segment::Seq { .. } | Segment::Enum { .. } | Segment::Unknown => None,
    });
    names.collect()
}

/// Every key of the tables, including the tables' names. The keys of a list of tables come from its
/// first element.
pub(crate) fn known_keys(tables: &impl serde::Serialize) -> Vec<String> {
    let mut found = Vec::new();
    if let Ok(keys) = serde_json::to_value(tables) {
        collect(&keys, "", &mut found);
    }
    found
}

fn collect(value: &serde_json::Value, name: &str, found: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(members) if !members.is_empty() => {
            for (member, value) in members {
                let dot = if name.is_empty() { "" } else { "." };
                collect(value, &format!("{name}{dot}{member}"), found);
            }
        }
        serde_json::Value::Array(elements) if elements.iter().any(serde_json::Value::is_object) => {
            elements.iter().take(1).for_each(|element| collect(element, name, found));
        }
        _ => found.push(name.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_key_is_documented() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/configuration.md");
        let page = std::fs::read_to_string(page).unwrap();
        let known = super::known_keys(&super::Keys::default());
        assert_eq!(known.len(), 92, "{known:?}");
        for key in known.iter().filter(|key| *key != "server") {
            assert!(page.contains(&format!("`{key}`")), "docs/configuration.md lacks `{key}`");
        }
    }
}
