//! Names of tools in a text: which words are written like one, and which of them belong to the server itself.

use crate::json::{Kind, Node};
use crate::sorted::SortedSet;
use crate::surface::{Entry, EntryType, Surface};
use std::sync::Arc;

/// The shortest and the longest name that is looked at, in bytes. A longer one is no name that a text refers to.
const LENGTH: std::ops::RangeInclusive<usize> = 4..=64;
/// The most parts of a name: each ending of a name that has at least two parts refers to it, too.
const MAX_PARTS: usize = 8;

/// The names of a server's own tools. A sentence about one of them is documentation; about any other tool it may be an
/// order. Copies share the names.
#[derive(Debug, Clone, Default)]
pub struct ToolNames(Arc<SortedSet<Reduced>>);

impl ToolNames {
    pub fn new<'n>(names: impl IntoIterator<Item = &'n str>) -> ToolNames {
        let mut known = SortedSet::new();
        for name in names {
            insert_with_endings(&mut known, name);
        }
        ToolNames(Arc::new(known))
    }

    /// The names of the tools and prompts that a server lists.
    pub fn of(surface: &Surface) -> ToolNames {
        let entries = surface.entries().filter(|entry| is_named(entry.entry_type()));
        ToolNames::new(entries.map(Entry::key))
    }

    fn contains(&self, reduced: &Reduced) -> bool {
        self.0.contains(reduced)
    }
}

/// Whether texts refer to entries of a type by a name that counts as the server's own.
pub fn is_named(entry_type: EntryType) -> bool {
    match entry_type {
        EntryType::Tool | EntryType::Prompt => true,
        EntryType::Resource
        | EntryType::Template
        | EntryType::Instructions
        | EntryType::Identity
        | EntryType::Origin => false,
    }
}

impl PartialEq for ToolNames {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Eq for ToolNames {}

/// The names that count as the server's own while one entry is scanned: its tools, and everything that the entry itself
/// is made of (parameters, values). The latter are collected when a text first refers to a name that is not a tool's.
#[derive(Debug)]
pub(super) struct OwnNames<'a> {
    tools: &'a ToolNames,
    entry: Node<'a>,
    of_entry: Option<SortedSet<Reduced>>,
}

impl<'a> OwnNames<'a> {
    pub(super) fn new(tools: &'a ToolNames, entry: Node<'a>) -> Self {
        OwnNames { tools, entry, of_entry: None }
    }

    /// Whether a name is one of the server's own, with or without a prefix.
    pub(super) fn contains(&mut self, name: &[u8]) -> bool {
        if endings(name).any(|ending| self.tools.contains(&reduced(ending))) {
            return true;
        }
        let of_entry = self.of_entry.get_or_insert_with(|| names_in(self.entry));
        endings(name).any(|ending| of_entry.contains(&reduced(ending)))
    }
}

/// Every string of an entry that is written like a name.
fn names_in(entry: Node<'_>) -> SortedSet<Reduced> {
    let end = entry.index().saturating_add(entry.size());
    (entry.index()..end)
        .map(|index| entry.at(index))
        .filter(|node| node.kind() == Kind::String)
        .filter_map(|node| {
            let text = node.as_str()?;
            let is_name = LENGTH.contains(&text.len()) && text.bytes().all(is_name_byte);
            is_name.then(|| reduced(text.as_bytes()))
        })
        .collect()
}

fn insert_with_endings(known: &mut SortedSet<Reduced>, name: &str) {
    let bytes = name.as_bytes();
    if bytes.len() <= *LENGTH.end() {
        known.extend(endings(bytes).map(reduced));
    }
}

/// A name and its endings after a separator: `github_list_issues`, `list_issues`, not `issues`.
fn endings(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_separator = |byte: u8| matches!(byte, b'_' | b'-' | b'.');
    let starts = name
        .iter()
        .enumerate()
        .filter(move |&(_, &byte)| is_separator(byte))
        .map(|(at, _)| at + 1)
        .take(MAX_PARTS);
    std::iter::once(0)
        .chain(starts)
        .filter_map(|start| name.get(start..))
        .enumerate()
        .filter(move |(number, ending)| {
            *number == 0 || ending.iter().any(|&byte| is_separator(byte))
        })
        .map(|(_, ending)| ending)
}

/// A name without case and separators: `listIssues` and `list_issues` are one.
type Reduced = Vec<u8>;

fn reduced(name: &[u8]) -> Reduced {
    let mut reduced = Vec::with_capacity(name.len());
    let letters = name.iter().filter(|byte| byte.is_ascii_alphanumeric());
    reduced.extend(letters.map(u8::to_ascii_lowercase));
    reduced
}

/// Whether a byte can be part of a name.
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// Endings of names that are of values, not of tools. Each is the last part of a name with its separator.
const OF_VALUES: [&[u8]; 28] = [
    b"_id",
    b"_ids",
    b"_url",
    b"_urls",
    b"_uri",
    b"_key",
    b"_keys",
    b"_token",
    b"_name",
    b"_names",
    b"_at",
    b"_date",
    b"_type",
    b"_path",
    b"_paths",
    b"_size",
    b"_count",
    b"_number",
    b"_rsa",
    b"_hosts",
    b"_ed25519",
    b"_mode",
    b"_value",
    b"_code",
    b"_params",
    b"_args",
    b"_options",
    b"_parameters",
];

/// Whether the bytes from `start` to `end`, which are name bytes, are written like the name of a tool.
pub(super) fn is_written_like_a_tool(bytes: &[u8], start: usize, end: usize) -> bool {
    let name = bytes.get(start..end).unwrap_or(&[]);
    if !LENGTH.contains(&name.len()) {
        return false;
    }
    let before = start.checked_sub(1).and_then(|at| bytes.get(at)).copied().unwrap_or(b' ');
    let after = bytes.get(end).copied().unwrap_or(b' ');
    let follows = bytes.get(end + 1).copied().unwrap_or(b' ');
    // Parts of paths, hosts, flags, variables and placeholders.
    let is_part =
        matches!(before, b'/' | b'.' | b'\\' | b'@' | b'$' | b'{' | b'=' | b'-' | b'<' | b'#')
            || matches!(after, b'/' | b'=' | b'@' | b'}' | b'>' | b'*')
            || matches!(after, b'.' | b':') && follows.is_ascii_alphanumeric();
    let last_part = name.iter().rposition(|&byte| byte == b'_').and_then(|at| name.get(at..));
    if is_part || last_part.is_some_and(|last| OF_VALUES.contains(&last)) {
        return false;
    }
    let is_quoted = matches!(before, b'`' | b'\'' | b'"') && before == after;
    let is_snake = name.contains(&b'_')
        && name.first().is_some_and(u8::is_ascii_alphabetic)
        && name.last().is_some_and(u8::is_ascii_alphanumeric)
        && name.iter().any(u8::is_ascii_lowercase);
    let is_kebab = name.contains(&b'-') && name.iter().any(u8::is_ascii_lowercase);
    let is_spelled_so = is_snake || is_camel(name, is_quoted) || is_quoted && is_kebab;
    let is_called = || {
        bytes.get(end..).is_some_and(|rest| rest.starts_with(b"()"))
            || is_called_a_tool(bytes, start, end)
    };
    is_spelled_so && (has_verb(name) || is_called())
}

/// Verbs that names of tools begin with, themselves or behind a prefix, in the order of their letters.
const VERBS: [&str; 88] = [
    "access", "add", "analyze", "append", "apply", "approve", "archive", "ask", "book", "build",
    "buy", "call", "cancel", "check", "click", "clone", "close", "commit", "compose", "connect",
    "convert", "copy", "create", "delete", "deploy", "describe", "download", "drop", "edit",
    "encrypt", "exec", "execute", "export", "fetch", "find", "forward", "generate", "get", "grant",
    "import", "insert", "install", "invite", "invoke", "kill", "list", "load", "log", "lookup",
    "make", "merge", "modify", "move", "navigate", "open", "pay", "post", "publish", "push", "put",
    "query", "read", "receive", "remove", "rename", "reply", "reset", "restart", "retrieve", "run",
    "save", "scan", "schedule", "search", "select", "send", "set", "share", "start", "stop",
    "submit", "sync", "transfer", "update", "upload", "validate", "verify", "write",
];

/// Whether the first or the second part of a name is a verb.
fn has_verb(name: &[u8]) -> bool {
    let first =
        name.split(|byte| matches!(byte, b'_' | b'-')).filter(|part| !part.is_empty()).take(2);
    let mut parts = first.flat_map(humps);
    let is_verb = |part: &[u8]| {
        let letters = || part.iter().map(u8::to_ascii_lowercase);
        VERBS.binary_search_by(|verb| verb.bytes().cmp(letters())).is_ok()
    };
    parts.next().is_some_and(is_verb) || parts.next().is_some_and(is_verb)
}

/// The first two humps of `camelCase`.
fn humps(part: &[u8]) -> impl Iterator<Item = &[u8]> {
    let hump = part.iter().skip(1).position(u8::is_ascii_uppercase).map_or(part.len(), |at| at + 1);
    let (first, rest) = part.split_at_checked(hump).unwrap_or((part, &[]));
    let next = rest.iter().skip(1).position(u8::is_ascii_uppercase).map_or(rest.len(), |at| at + 1);
    [first, rest.get(..next).unwrap_or(&[])].into_iter().filter(|part| !part.is_empty())
}

/// Whether "tool" or "function" stands right behind a name, or before it.
fn is_called_a_tool(bytes: &[u8], start: usize, end: usize) -> bool {
    // A few bytes are enough, and keep the look bounded.
    let near = end..bytes.len().min(end.saturating_add(16));
    let behind = bytes.get(near).unwrap_or(&[]).trim_ascii_start();
    let behind = behind
        .strip_prefix(b"`")
        .or(behind.strip_prefix(b"'"))
        .unwrap_or(behind)
        .trim_ascii_start();
    let before = bytes.get(start.saturating_sub(16)..start).unwrap_or(&[]).trim_ascii_end();
    let before =
        before.strip_suffix(b"`").or(before.strip_suffix(b"'")).unwrap_or(before).trim_ascii_end();
    [b"tool".as_slice(), b"function"].into_iter().any(|word| {
        let is_whole = |byte: Option<&u8>| byte.is_none_or(|byte| !byte.is_ascii_alphanumeric());
        behind.starts_with(word) && is_whole(behind.get(word.len()))
            || before.ends_with(word)
                && is_whole(before.len().checked_sub(word.len() + 1).and_then(|at| before.get(at)))
    })
}

/// `listIssues`; within quotation marks also `ListIssues`. Not `iPhone`, `macOS`, `GitHub`.
fn is_camel(name: &[u8], is_quoted: bool) -> bool {
    let hump = name.iter().skip(1).position(u8::is_ascii_uppercase).map(|at| at + 1);
    let starts_low = name.first().is_some_and(u8::is_ascii_lowercase);
    name.iter().all(u8::is_ascii_alphanumeric)
        && (starts_low || is_quoted)
        && hump.is_some_and(|at| {
            at >= 2
                && name
                    .get(at + 1..at + 3)
                    .is_some_and(|rest| rest.iter().all(u8::is_ascii_lowercase))
        })
}

#[cfg(test)]
mod tests;
