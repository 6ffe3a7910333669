//! Names that pass for those of other servers' tools.

use super::capability::Found;
use crate::dimension::Dimension;
use crate::finding::Severity;
use contract::markers::folded;
use std::collections::HashMap;
use std::sync::OnceLock;

const KNOWN_TOOLS: &str = include_str!("known_tools.txt");

/// A well-known tool: its name, and the words of servers that may have it.
struct Known {
    name: &'static str,
    owners: Vec<&'static str>,
}

/// By the name as it looks.
fn known() -> &'static HashMap<String, Known> {
    static KNOWN: OnceLock<HashMap<String, Known>> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let lines = KNOWN_TOOLS.lines().filter(|line| !line.starts_with('#'));
        let entries = lines.filter_map(|line| line.split_once(':'));
        entries
            .map(|(name, words)| {
                (look(name), Known { name, owners: words.split_whitespace().collect() })
            })
            .collect()
    })
}

/// A name as it looks at a glance: look-alike letters and digits are one, case and separators are dropped.
pub(super) fn look(name: &str) -> String {
    folded(name)
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|letter| match letter.to_ascii_lowercase() {
            '0' => 'o',
            '1' | 'i' => 'l',
            '3' => 'e',
            '5' => 's',
            '7' => 't',
            other => other,
        })
        .collect()
}

/// Names as they would be written: case and separators are dropped, look-alikes are kept apart.
fn plain(name: &str) -> String {
    name.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// What is said of a tool's name. `called` is how the server is called, by itself and by others, and what the tool says of
/// itself, all in lower case.
pub(super) fn shadowed_name(name: &str, called: &str) -> Option<Found> {
    let known = known().get(&look(name))?;
    if plain(name) != plain(known.name) {
        let reason = "has a name that only looks like that of a well-known tool of another server";
        return Some(found("shadowing.look-alike-name", Severity::Medium, reason));
    }
    let is_owner = known.owners.iter().any(|owner| called.contains(owner));
    let reason = "has the name of a well-known tool of another server";
    (!is_owner).then(|| found("shadowing.well-known-name", Severity::Medium, reason))
}

/// Tools of one server whose names look the same and are not: all but the plainest of each.
pub(super) fn twin_names<'n>(names: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    let mut by_look: HashMap<String, Vec<&str>> = HashMap::new();
    for name in names {
        by_look.entry(look(name)).or_default().push(name);
    }
    let is_twin = |twins: &&Vec<&'n str>| {
        twins.iter().any(|one| twins.iter().any(|other| plain(one) != plain(other)))
    };
    let mut twins: Vec<&str> = by_look.values().filter(is_twin).flatten().copied().collect();
    twins.retain(|name| !name.is_ascii() || name.bytes().any(|byte| byte.is_ascii_digit()));
    twins
}

pub(super) fn twin() -> Found {
    let reason = "has a name that looks like that of another tool of this server";
    found("shadowing.look-alike-name", Severity::Medium, reason)
}

fn found(rule: &'static str, severity: Severity, reason: &'static str) -> Found {
    let pointer = "/name".to_owned();
    Found { rule, dimension: Dimension::Shadowing, severity, reason, pointer }
}

#[cfg(test)]
mod tests;
