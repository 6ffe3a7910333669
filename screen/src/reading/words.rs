//! Splits names into words, and derives from a tool's name what it does.

/// The meaning of the verb in a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Reads,
    Writes,
    Computes,
}

const READS: [&str; 16] = [
    "get", "list", "read", "search", "find", "fetch", "show", "view", "describe", "lookup",
    "query", "check", "count", "browse", "inspect", "retrieve",
];
const WRITES: [&str; 21] = [
    "create",
    "update",
    "delete",
    "remove",
    "write",
    "send",
    "insert",
    "drop",
    "destroy",
    "purge",
    "wipe",
    "deploy",
    "upload",
    "publish",
    "transfer",
    "modify",
    "overwrite",
    "erase",
    "truncate",
    "pay",
    "kill",
];
const COMPUTES: [&str; 13] = [
    "add",
    "calculate",
    "compute",
    "convert",
    "format",
    "translate",
    "sum",
    "multiply",
    "validate",
    "parse",
    "count",
    "hash",
    "weather",
];

/// The parts of a name in lower case: `listIssues`, `list_issues` and `list-issues` each have two.
pub(super) fn parts(name: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut part = String::new();
    let mut after_lower = false;
    for character in name.chars() {
        let is_hump = after_lower && character.is_uppercase();
        if (!character.is_alphanumeric() || is_hump) && !part.is_empty() {
            parts.push(std::mem::take(&mut part));
        }
        if character.is_alphanumeric() {
            part.extend(character.to_lowercase());
        }
        after_lower = character.is_lowercase();
    }
    if !part.is_empty() {
        parts.push(part);
    }
    parts
}

pub(super) fn has_word(name: &str, word: &str) -> bool {
    parts(name).iter().any(|part| part == word)
}

/// The meaning of the first verb in a name. Many names start with that of the server:
/// `github_create_issue`.
pub(super) fn verb(name: &str) -> Option<Verb> {
    let parts = parts(name);
    parts.iter().take(3).enumerate().find_map(|(at, part)| {
        let part = part.as_str();
        match () {
            () if WRITES.contains(&part) => Some(Verb::Writes),
            () if READS.contains(&part) => Some(Verb::Reads),
            // "add" only means a sum if it stands alone: `add_comment` writes.
            () if COMPUTES.contains(&part) && (part != "add" || parts.len() == 1) && at == 0 => {
                Some(Verb::Computes)
            }
            () => None,
        }
    })
}
