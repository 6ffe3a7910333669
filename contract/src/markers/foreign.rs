//! Names of tools in a text: which words are written like one, and which of them belong to the server itself.

use super::known::strings;
use crate::json::Node;
use crate::surface::{Entry, EntryType, Surface};
use std::ops::Range;
use std::sync::Arc;

/// The shortest and the longest name that is looked at, in bytes. A longer one is no name that a text refers to.
const LENGTH: std::ops::RangeInclusive<usize> = 4..=64;
/// The most bytes that the longest name has as a JSON string, with every letter escaped.
const MAX_SPELLED: usize = 64 * 6 + 2;
/// The most parts of a name: each ending of a name that has at least two parts refers to it, too.
const MAX_PARTS: usize = 8;

/// The names of a server's own tools. A sentence about one of them is documentation; about any other tool it may be an
/// order. Copies share the names.
#[derive(Debug, Clone, Default)]
pub struct ToolNames(Arc<NameSet>);

impl ToolNames {
    pub fn new<'n>(names: impl IntoIterator<Item = &'n str>) -> ToolNames {
        let mut set = NameSet::default();
        for name in names.into_iter().filter(|name| name.len() <= *LENGTH.end()) {
            endings(name.as_bytes()).for_each(|ending| set.add(ending));
        }
        ToolNames(Arc::new(set.sorted()))
    }

    /// The names of the tools and prompts that a server lists.
    pub fn of(surface: &Surface) -> ToolNames {
        let entries = surface.entries().filter(|entry| is_named(entry.entry_type()));
        ToolNames::new(entries.map(Entry::key))
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
        Arc::ptr_eq(&self.0, &other.0) || self.0.iter().eq(other.0.iter())
    }
}

impl Eq for ToolNames {}

/// The names that count as the server's own while one entry is scanned: its tools, and everything that the entry itself
/// is made of (parameters, values). The latter are looked through for the first names that are not a tool's, and collected
/// where a text refers to more of them.
#[derive(Debug)]
pub(super) struct OwnNames<'a> {
    tools: &'a ToolNames,
    entry: Node<'a>,
    looks: usize,
    of_entry: Option<NameSet>,
}

/// How often the strings of an entry are looked through before they are collected.
const MAX_LOOKS: usize = 8;

impl<'a> OwnNames<'a> {
    pub(super) fn new(tools: &'a ToolNames, entry: Node<'a>) -> Self {
        OwnNames { tools, entry, looks: 0, of_entry: None }
    }

    /// Whether a name is one of the server's own, with or without a prefix.
    pub(super) fn contains(&mut self, name: &[u8]) -> bool {
        if self.tools.0.has_ending_of(name) {
            return true;
        }
        if self.looks < MAX_LOOKS {
            self.looks += 1;
            return strings(self.entry).any(|node| is_ending_of(node, name));
        }
        self.of_entry.get_or_insert_with(|| names_in(self.entry)).has_ending_of(name)
    }
}

/// Whether a string is written like a name, and is that name or one of its endings.
#[cfg_attr(holdpoint_small, optimize(speed))]
fn is_ending_of(node: Node<'_>, name: &[u8]) -> bool {
    if node.raw().len() > MAX_SPELLED {
        return false;
    }
    let Some(text) = node.as_str() else { return false };
    let text = text.as_bytes();
    // Most are told apart by how they end.
    reduced(text).next_back() == reduced(name).next_back()
        && is_name(text)
        && endings(name).any(|ending| reduced(ending).eq(reduced(text)))
}

/// Every string of an entry that is written like a name.
fn names_in(entry: Node<'_>) -> NameSet {
    let mut set = NameSet::default();
    for text in strings(entry).filter_map(Node::as_str) {
        if is_name(text.as_bytes()) {
            set.add(text.as_bytes());
        }
    }
    set.sorted()
}

fn is_name(text: &[u8]) -> bool {
    LENGTH.contains(&text.len()) && text.iter().all(|&byte| is_name_byte(byte))
}

/// Names without case and separators: `listIssues` and `list_issues` are one. They lie in one text, in the order of their
/// letters.
#[derive(Debug, Default)]
struct NameSet {
    letters: Vec<u8>,
    spans: Vec<Range<u32>>,
}

impl NameSet {
    fn add(&mut self, name: &[u8]) {
        let start = self.letters.len() as u32;
        self.letters.extend(reduced(name));
        self.spans.push(start..self.letters.len() as u32);
    }

    fn sorted(mut self) -> NameSet {
        let NameSet { letters, spans } = &mut self;
        spans.sort_unstable_by(|left, right| part(letters, left).cmp(part(letters, right)));
        spans.dedup_by(|left, right| part(letters, left) == part(letters, right));
        self
    }

    /// Whether a name or one of its endings is in the set.
    fn has_ending_of(&self, name: &[u8]) -> bool {
        let has = |name: &[u8]| {
            let order =
                |span: &Range<u32>| part(&self.letters, span).iter().copied().cmp(reduced(name));
            self.spans.binary_search_by(order).is_ok()
        };
        endings(name).any(has)
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.spans.iter().map(|span| part(&self.letters, span))
    }
}

fn part<'l>(letters: &'l [u8], span: &Range<u32>) -> &'l [u8] {
    letters.get(span.start as usize..span.end as usize).unwrap_or_default()
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

/// The letters of a name, without case and separators.
fn reduced(name: &[u8]) -> impl DoubleEndedIterator<Item = u8> {
    name.iter().filter(|byte| byte.is_ascii_alphanumeric()).map(u8::to_ascii_lowercase)
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
    if is_part {
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
    is_spelled_so && (has_verb(name) || is_called()) && !is_of_a_value(name)
}

/// Whether the last part of a name is that of a value.
fn is_of_a_value(name: &[u8]) -> bool {
    let last = name.iter().rposition(|&byte| byte == b'_').and_then(|at| name.get(at..));
    last.is_some_and(|last| OF_VALUES.contains(&last))
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
#[cfg_attr(holdpoint_small, optimize(speed))]
fn has_verb(name: &[u8]) -> bool {
    let mut start = 0;
    let mut parts = 0;
    for (at, &byte) in name.iter().enumerate() {
        let is_separator = matches!(byte, b'_' | b'-');
        // A hump of `camelCase` begins a part as well.
        if is_separator || byte.is_ascii_uppercase() {
            if at > start {
                parts += 1;
                if is_verb(name.get(start..at).unwrap_or(&[])) {
                    return true;
                } else if parts == 2 {
                    return false;
                }
            }
            start = at + usize::from(is_separator);
        }
    }
    is_verb(name.get(start..).unwrap_or(&[]))
}

#[cfg_attr(holdpoint_small, optimize(speed))]
fn is_verb(part: &[u8]) -> bool {
    let Some(first) = part.first().map(u8::to_ascii_lowercase) else { return false };
    let letter = |verb: &str| verb.as_bytes().first().copied();
    let from = VERBS.partition_point(|verb| letter(verb) < Some(first));
    let alike = VERBS.iter().skip(from).take_while(|verb| letter(verb) == Some(first));
    alike.into_iter().any(|verb| verb.as_bytes().eq_ignore_ascii_case(part))
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
