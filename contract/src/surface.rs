//! A server's surface: all that it says of itself and that a host or a model reads, as hashed entries.

use crate::canonical::{self, Position, Sink};
use crate::hash::{DefinitionHash, EntryHash, Hasher, SurfaceHash};
use crate::json::{Document, Node, escape_into};
use crate::sorted::{SortedMap, SortedSet, bytes_order};
use std::cmp::Ordering;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

mod anchor;
mod read;

pub use anchor::Anchor;
pub use read::{CaptureError, SurfaceReader, Unreadable, read_capture};

/// The largest entry that is read, in bytes.
pub const MAX_ENTRY_BYTES: usize = 1024 * 1024;
/// The largest list that is read, in bytes, all pages together.
pub const MAX_LIST_BYTES: usize = 16 * 1024 * 1024;
/// The most entries that a list may have.
pub const MAX_LIST_ENTRIES: usize = 10_000;
/// The most pages that a list may have.
pub const MAX_LIST_PAGES: usize = 1_000;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EntryType {
    Tool,
    Prompt,
    Resource,
    Template,
    Instructions,
    Identity,
    Origin,
}

impl EntryType {
    pub const ALL: [EntryType; 7] = [
        EntryType::Tool,
        EntryType::Prompt,
        EntryType::Resource,
        EntryType::Template,
        EntryType::Instructions,
        EntryType::Identity,
        EntryType::Origin,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            EntryType::Tool => "tool",
            EntryType::Prompt => "prompt",
            EntryType::Resource => "resource",
            EntryType::Template => "template",
            EntryType::Instructions => "instructions",
            EntryType::Identity => "identity",
            EntryType::Origin => "origin",
        }
    }

    /// The list that carries entries of this type, where one does.
    pub const fn list(self) -> Option<ListKind> {
        match self {
            EntryType::Tool => Some(ListKind::Tools),
            EntryType::Prompt => Some(ListKind::Prompts),
            EntryType::Resource => Some(ListKind::Resources),
            EntryType::Template => Some(ListKind::ResourceTemplates),
            EntryType::Instructions | EntryType::Identity | EntryType::Origin => None,
        }
    }

    /// Whether a member of the entry counts, and as what.
    fn member_position(self, name: &str) -> Option<Position> {
        match self {
            EntryType::Tool if matches!(name, "inputSchema" | "outputSchema") => {
                Some(Position::Schema)
            }
            EntryType::Resource | EntryType::Template => {
                let counts = matches!(
                    name,
                    "uri" | "uriTemplate" | "name" | "title" | "description" | "mimeType"
                );
                counts.then_some(Position::Plain)
            }
            _ => Some(Position::Plain),
        }
    }
}

impl fmt::Display for EntryType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for EntryType {
    type Err = UnknownEntryType;

    fn from_str(text: &str) -> Result<Self, UnknownEntryType> {
        EntryType::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or(UnknownEntryType)
    }
}

impl serde::Serialize for EntryType {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A word that names no type of entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an entry is a tool, prompt, resource, template, instructions, identity or origin")]
pub struct UnknownEntryType;

/// A list that a server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ListKind {
    Tools,
    Prompts,
    Resources,
    ResourceTemplates,
}

impl ListKind {
    pub const ALL: [ListKind; 4] =
        [ListKind::Tools, ListKind::Prompts, ListKind::Resources, ListKind::ResourceTemplates];

    /// The member that carries the list, in an answer and in a capture.
    pub const fn member(self) -> &'static str {
        match self {
            ListKind::Tools => "tools",
            ListKind::Prompts => "prompts",
            ListKind::Resources => "resources",
            ListKind::ResourceTemplates => "resourceTemplates",
        }
    }

    /// The request that asks for the list.
    pub const fn method(self) -> &'static str {
        match self {
            ListKind::Tools => "tools/list",
            ListKind::Prompts => "prompts/list",
            ListKind::Resources => "resources/list",
            ListKind::ResourceTemplates => "resources/templates/list",
        }
    }

    /// The capability whose presence says that the list can be asked for.
    pub const fn capability(self) -> &'static str {
        match self {
            ListKind::Tools => "tools",
            ListKind::Prompts => "prompts",
            ListKind::Resources | ListKind::ResourceTemplates => "resources",
        }
    }

    pub const fn entry_type(self) -> EntryType {
        match self {
            ListKind::Tools => EntryType::Tool,
            ListKind::Prompts => EntryType::Prompt,
            ListKind::Resources => EntryType::Resource,
            ListKind::ResourceTemplates => EntryType::Template,
        }
    }

    /// The member of an entry that is its key.
    const fn key_member(self) -> &'static str {
        match self {
            ListKind::Tools | ListKind::Prompts => "name",
            ListKind::Resources => "uri",
            ListKind::ResourceTemplates => "uriTemplate",
        }
    }
}

/// What names an entry within its server: its type and its key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EntryId {
    pub entry_type: EntryType,
    pub key: String,
}

impl Ord for EntryId {
    /// By type, then by the bytes of the key.
    fn cmp(&self, other: &Self) -> Ordering {
        let by_key = || bytes_order(self.key.as_bytes(), other.key.as_bytes());
        self.entry_type.cmp(&other.entry_type).then_with(by_key)
    }
}

impl PartialOrd for EntryId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl EntryId {
    pub fn new(entry_type: EntryType, key: impl Into<String>) -> Self {
        EntryId { entry_type, key: key.into() }
    }

    /// The id of an entry of which a server has one: instructions, identity, origin.
    pub fn only(entry_type: EntryType) -> Self {
        EntryId { entry_type, key: entry_type.as_str().to_owned() }
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.entry_type, self.key)
    }
}

/// One entry as the server sent it, with its hashes. Copies share all but the id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    id: EntryId,
    body: EntryBody,
}

impl Entry {
    /// An entry from the JSON that was captured of it earlier.
    pub fn from_raw(id: EntryId, raw: &str) -> Result<Entry, crate::json::ReadError> {
        let document = Document::parse(raw)?;
        Ok(Entry::from_node(id, document.root()))
    }

    fn from_node(id: EntryId, node: Node<'_>) -> Entry {
        EntryHashes::of(id.entry_type, node).with_text(id, node.raw().into())
    }

    /// Stands for an entry whose removal was accepted.
    pub fn gone(id: EntryId) -> Entry {
        let hashes = EntryHashes { entry: EntryHash::of(b"null"), definition: Definition::None };
        hashes.with_text(id, "null".into())
    }

    pub fn is_gone(&self) -> bool {
        self.raw() == "null"
    }

    pub fn id(&self) -> &EntryId {
        &self.id
    }

    pub fn entry_type(&self) -> EntryType {
        self.id.entry_type
    }

    pub fn key(&self) -> &str {
        &self.id.key
    }

    /// The JSON of the entry, byte for byte as it came.
    pub fn raw(&self) -> &str {
        self.body.0.raw.as_str()
    }

    /// The entry's JSON, read again.
    ///
    /// INVARIANT: an entry is only ever made of a text that was read strictly, so no name is looked for twice in it.
    pub fn document(&self) -> Result<Document<'_>, crate::json::ReadError> {
        Document::parse_again(self.raw())
    }

    pub fn entry_hash(&self) -> EntryHash {
        self.body.entry_hash()
    }

    /// Tools have one.
    pub fn definition_hash(&self) -> Option<DefinitionHash> {
        self.body.definition_hash()
    }

    /// What the entry says, whatever it is called.
    pub fn body(&self) -> &EntryBody {
        &self.body
    }
}

/// What an entry says, with its hashes. Copies share it.
#[derive(Debug, Clone)]
pub struct EntryBody(Arc<BodyParts>);

#[derive(Debug)]
struct BodyParts {
    raw: Text,
    entry_hash: EntryHash,
    definition: Definition,
}

/// The hash of a tool's definition. Most tools have other members too, so that it is another one than that of the entry,
/// and of most it is never asked for.
#[derive(Debug)]
enum Definition {
    /// It is no tool.
    None,
    /// All that counts of the tool is its definition: it has the same canonical form.
    IsEntry,
    /// Taken when it is first asked for.
    Part(OnceLock<DefinitionHash>),
}

impl EntryBody {
    pub fn entry_hash(&self) -> EntryHash {
        self.0.entry_hash
    }

    /// Tools have one.
    pub fn definition_hash(&self) -> Option<DefinitionHash> {
        match &self.0.definition {
            Definition::None => None,
            Definition::IsEntry => Some(DefinitionHash::from_bytes(*self.0.entry_hash.as_bytes())),
            Definition::Part(hash) => {
                Some(*hash.get_or_init(|| definition_hash(self.0.raw.as_str())))
            }
        }
    }
}

impl PartialEq for EntryBody {
    fn eq(&self, other: &Self) -> bool {
        let is_same = || self.0.entry_hash == other.0.entry_hash && self.0.raw == other.0.raw;
        Arc::ptr_eq(&self.0, &other.0) || is_same()
    }
}

impl Eq for EntryBody {}

/// The text of an entry: a part of one that all copies of it share, and perhaps others.
#[derive(Clone)]
struct Text {
    whole: Arc<str>,
    part: Range<usize>,
}

impl Text {
    fn as_str(&self) -> &str {
        self.whole.get(self.part.clone()).unwrap_or_default()
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Text { whole: text.into(), part: 0..text.len() }
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        let is_shared = Arc::ptr_eq(&self.whole, &other.whole) && self.part == other.part;
        is_shared || self.as_str() == other.as_str()
    }
}

impl Eq for Text {}

impl fmt::Debug for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(formatter)
    }
}

/// The hashes of an entry, taken while its document is there; its text is copied once the document is gone.
#[derive(Debug)]
struct EntryHashes {
    entry: EntryHash,
    definition: Definition,
}

impl EntryHashes {
    fn of(entry_type: EntryType, node: Node<'_>) -> EntryHashes {
        let mut entry = Hasher::default();
        if node.is_object() {
            canonical::write_members(node, &|name| entry_type.member_position(name), &mut entry);
        } else {
            canonical::write(node, Position::Plain, &mut entry);
        }
        let definition = match entry_type {
            EntryType::Tool if is_definition(node) => Definition::IsEntry,
            EntryType::Tool => Definition::Part(OnceLock::new()),
            _ => Definition::None,
        };
        EntryHashes { entry: EntryHash::from_bytes(entry.finish()), definition }
    }

    fn with_text(self, id: EntryId, raw: Text) -> Entry {
        let EntryHashes { entry, definition } = self;
        Entry { id, body: EntryBody(Arc::new(BodyParts { raw, entry_hash: entry, definition })) }
    }
}

/// The members of a tool that are its definition.
const OF_DEFINITION: [&str; 3] = ["name", "description", "inputSchema"];

/// Whether all that counts of a tool is its definition.
fn is_definition(tool: Node<'_>) -> bool {
    let is_its = |name: Node<'_>| OF_DEFINITION.into_iter().any(|member| name.is_text(member));
    tool.is_object() && tool.members().all(|(name, _)| is_its(name))
}

/// INVARIANT: an entry is only ever made of a text that was read strictly. What is no object has no definition in it.
fn definition_hash(tool: &str) -> DefinitionHash {
    let Ok(document) = Document::parse_again(tool) else { return DefinitionHash::of(b"{}") };
    let position = |name: &str| {
        let position = EntryType::Tool.member_position(name);
        position.filter(|_| OF_DEFINITION.contains(&name))
    };
    let mut hasher = Hasher::default();
    canonical::write_members(document.root(), &position, &mut hasher);
    DefinitionHash::from_bytes(hasher.finish())
}

/// What a server said of itself at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surface {
    entries: SortedMap<EntryId, Entry>,
    /// The keys of the lists in the order they were listed.
    order: Vec<EntryId>,
    unreadable: SortedMap<ListKind, Unreadable>,
    listed: SortedSet<ListKind>,
    /// Lists with more entries than are pinned: see [`Surface::notes`].
    left_out: SortedSet<ListKind>,
    notes: Vec<String>,
    /// Only tools are told of: the capture was a list of tools, or one tool.
    is_partial: bool,
    /// Self-reported, recorded, and never by itself a change.
    pub server_version: Option<String>,
    pub protocol_version: Option<String>,
}

impl Surface {
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    /// The entries of a list, in the order they were listed.
    pub fn list(&self, list: ListKind) -> impl Iterator<Item = &Entry> {
        let entry_type = list.entry_type();
        let ids = self.order.iter().filter(move |id| id.entry_type == entry_type);
        ids.filter_map(|id| self.entries.get(id))
    }

    pub fn entry(&self, id: &EntryId) -> Option<&Entry> {
        self.entries.get(id)
    }

    /// The lists that could not be read in exactly one way.
    pub fn unreadable(&self) -> &SortedMap<ListKind, Unreadable> {
        &self.unreadable
    }

    /// Whether the surface can tell of entries of this type: from a bare list of tools nothing else can be missing.
    pub fn tells_of(&self, entry_type: EntryType) -> bool {
        match entry_type {
            EntryType::Tool => true,
            EntryType::Resource => {
                !self.is_partial && !self.left_out.contains(&ListKind::Resources)
            }
            EntryType::Template => {
                !self.is_partial && !self.left_out.contains(&ListKind::ResourceTemplates)
            }
            EntryType::Prompt | EntryType::Instructions | EntryType::Identity => !self.is_partial,
            EntryType::Origin => self.entry(&EntryId::only(EntryType::Origin)).is_some(),
        }
    }

    /// What was left out on purpose, in sentences.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Adds or replaces an entry that is not in any list (identity, origin).
    pub fn insert(&mut self, entry: Entry) {
        self.entries.insert(entry.id.clone(), entry);
    }

    /// Takes out an entry that is not in any list (instructions, identity, origin).
    pub fn remove(&mut self, entry_type: EntryType) {
        self.entries.remove(&EntryId::only(entry_type));
    }

    /// One hash for all entries, independent of the order in which they were listed.
    pub fn surface_hash(&self) -> SurfaceHash {
        surface_hash(self.entries.values().map(|entry| (&entry.id, entry.entry_hash())))
    }

    /// The surface as a capture file: entries byte for byte as they came.
    pub fn to_capture(&self) -> String {
        let mut out = Vec::from(*b"{");
        for list in ListKind::ALL {
            let mut entries = self.list(list).peekable();
            if entries.peek().is_none() && !self.listed.contains(&list) {
                continue;
            }
            member_name(list.member(), &mut out);
            out.push(b'[');
            for (index, entry) in entries.enumerate() {
                out.extend_from_slice(if index == 0 { b"\n" } else { b",\n" });
                out.extend_from_slice(entry.raw().as_bytes());
            }
            out.extend_from_slice(b"]");
        }
        if let Some(instructions) = self.entry(&EntryId::only(EntryType::Instructions)) {
            member_name("instructions", &mut out);
            out.extend_from_slice(instructions.raw().as_bytes());
        }
        read::write_identity(self, &mut out);
        if let Some(version) = &self.protocol_version {
            member_name("protocolVersion", &mut out);
            escape_into(version, &mut out);
        }
        out.extend_from_slice(b"\n}\n");
        String::from_utf8(out).unwrap_or_default()
    }
}

fn member_name(name: &str, out: &mut Vec<u8>) {
    if out.len() > 1 {
        out.push(b',');
    }
    out.push(b'\n');
    escape_into(name, out);
    out.push(b':');
}

/// The surface hash over entries in the order of their ids.
pub fn surface_hash<'a>(entries: impl Iterator<Item = (&'a EntryId, EntryHash)>) -> SurfaceHash {
    let mut hasher = Hasher::default();
    hasher.put(b"[");
    for (index, (id, hash)) in entries.enumerate() {
        let mut key = Vec::with_capacity(id.key.len() + 2);
        escape_into(&id.key, &mut key);
        hasher.put(if index == 0 { b"[\"" } else { b",[\"" });
        hasher.put(id.entry_type.as_str().as_bytes());
        hasher.put(b"\",");
        hasher.put(&key);
        hasher.put(b",\"");
        hasher.put(hash.to_string().as_bytes());
        hasher.put(b"\"]");
    }
    hasher.put(b"]");
    SurfaceHash::from_bytes(hasher.finish())
}

#[cfg(test)]
mod tests;
