//! Names that imitate those of other servers' tools.

use super::capability::Found;
use crate::dimension::Dimension;
use crate::finding::Severity;
use contract::markers::folded;
use std::collections::HashMap;
use std::sync::OnceLock;

const KNOWN_TOOLS: &str = include_str!("known_tools.txt");

/// A well-known tool: its name, and words in the names of servers that may offer it.
struct Known {
    name: &'static str,
    owners: Vec<&'static str>,
}

/// The well-known tools by the appearance of their names.
fn known() -> &'static HashMap<String, Known> {
    static KNOWN: OnceLock<HashMap<String, Known>> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let lines = KNOWN_TOOLS.lines().filter(|line| !line.starts_with('#'));
        let entries = lines.filter_map(|line| line.split_once(':'));
        entries
            .map(|(name, words)| {
                (appearance(name), Known { name, owners: words.split_whitespace().collect() })
            })
            .collect()
    })
}

/// The appearance of a name: look-alike letters and digits are unified, case and separators are
/// dropped.
pub(super) fn appearance(name: &str) -> String {
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

/// A name without case and separators; look-alikes stay distinct.
fn plain(name: &str) -> String {
    name.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The finding on a tool's name, if any. `called` contains all names of the server and the tool's
/// own description, in lower case.
pub(super) fn shadowed_name(name: &str, called: &str) -> Option<Found> {
    let known = known().get(&appearance(name))?;
    if plain(name) != plain(known.name) {
        let reason = "has a name that only looks like that of a well-known tool of another server";
        return Some(found("shadowing.look-alike-name", Severity::Medium, reason));
    }
    let is_owner = known.owners.iter().any(|owner| called.contains(owner));
    let reason = "has the name of a well-known tool of another server";
    (!is_owner).then(|| found("shadowing.well-known-name", Severity::Medium, reason))
}

/// Tools of one server whose names look alike but differ: all of each group except the plainest.
pub(super) fn twin_names<'n>(names: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    let mut by_look: HashMap<String, Vec<&str>> = HashMap::new();
    for name in names {
        by_look.entry(appearance(name)).or_default().push(name);
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
