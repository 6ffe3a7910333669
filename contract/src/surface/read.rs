//! Surfaces from captures and from a server's own answers.

use super::{
    Entry, EntryHashes, EntryId, EntryType, ListKind, MAX_ENTRY_BYTES, MAX_LIST_BYTES,
    MAX_LIST_ENTRIES, MAX_LIST_PAGES, Surface, Text, member_name,
};
use crate::json::{Document, Kind, Node, ReadError, SharedDocument, escape_into};
use crate::names;
use crate::sorted::SortedMap;
use std::ops::Range;
use std::sync::Arc;

const STATELESS_SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// Why a list (or a whole capture) could not be read in exactly one way, in words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(pub String);

impl From<ReadError> for Unreadable {
    fn from(error: ReadError) -> Self {
        Unreadable(error.to_string())
    }
}

/// Why a capture gave no surface.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CaptureError {
    #[error("{0}")]
    NotJson(ReadError),
    #[error("{0}")]
    Unreadable(Unreadable),
    #[error(
        "not a capture: expected an object with `tools` (or another list), an array of tools, or one tool"
    )]
    NotACapture,
}

/// Reads a capture: a capture object, a `tools/list` result, an array of tools, or one tool.
pub fn read_capture(bytes: &[u8]) -> Result<Surface, CaptureError> {
    let document = match Document::parse_bytes(bytes) {
        Ok(document) => document,
        // Bytes that are no JSON even with the bad ones replaced were never meant to be a capture.
        Err(error @ ReadError::NotUtf8 { .. }) => {
            return match Document::parse(&String::from_utf8_lossy(bytes)) {
                Err(syntax) if syntax.is_syntax() => Err(CaptureError::NotJson(error)),
                _ => Err(CaptureError::Unreadable(error.into())),
            };
        }
        Err(error) if error.is_syntax() => return Err(CaptureError::NotJson(error)),
        Err(error) => return Err(CaptureError::Unreadable(error.into())),
    };
    let mut reader = SurfaceReader::default();
    let root = document.root();
    match root.kind() {
        Kind::Array => {
            reader.surface.is_partial = true;
            reader.list_node(ListKind::Tools, root);
        }
        Kind::Object if is_capture(root) => reader.capture(root),
        Kind::Object if root.get("name").is_some_and(|name| name.kind() == Kind::String) => {
            reader.single_tool(root);
        }
        _ => return Err(CaptureError::NotACapture),
    }
    drop(document);
    reader.settle(Source::Copied(std::str::from_utf8(bytes).unwrap_or_default()));
    let surface = reader.finish();
    let unreadable = surface.unreadable.values().next().cloned();
    match unreadable {
        Some(unreadable) => Err(CaptureError::Unreadable(unreadable)),
        None => Ok(surface),
    }
}

fn is_capture(root: Node<'_>) -> bool {
    let lists = ListKind::ALL.into_iter().map(ListKind::member);
    let others = ["instructions", "serverInfo", "capabilities", "protocolVersion"];
    // A server of which nothing is known but who vouches for it is recorded as one.
    let others = others.into_iter().chain([super::anchor::RECORDED]);
    lists.chain(others).any(|member| root.get(member).is_some()) || root.members().next().is_none()
}

/// Puts a surface together from what a server answered.
#[derive(Debug, Default)]
pub struct SurfaceReader {
    surface: Surface,
    /// Entries that were read and hashed, with where their text is.
    pending: SortedMap<EntryId, (Range<usize>, EntryHashes)>,
}

/// Where the texts of entries come from.
#[derive(Debug, Clone, Copy)]
enum Source<'t> {
    Copied(&'t str),
    Shared(&'t Arc<str>),
    /// It was parsed already.
    Read(&'t SharedDocument),
}

impl<'t> Source<'t> {
    fn as_str(self) -> &'t str {
        match self {
            Source::Copied(text) => text,
            Source::Shared(text) => text,
            Source::Read(document) => document.text(),
        }
    }

    fn part(self, part: Range<usize>) -> Text {
        match self {
            Source::Copied(text) => text.get(part).unwrap_or_default().into(),
            Source::Shared(text) => Text { whole: text.clone(), part },
            Source::Read(document) => Text { whole: document.text().clone(), part },
        }
    }
}

/// How much of a list was read.
#[derive(Debug, Default)]
struct Size {
    bytes: usize,
    entries: usize,
}

impl Size {
    fn is_over(&self) -> bool {
        self.entries > MAX_LIST_ENTRIES
    }
}

impl SurfaceReader {
    /// Takes over the result of `initialize` or `server/discover`: instructions, identity, versions.
    pub fn handshake(&mut self, result: &str) -> Result<(), Unreadable> {
        let document = Document::parse(result)?;
        self.self_description(document.root())
    }

    /// Takes over the pages of a list: each the result of one request, in the order they came.
    pub fn list(&mut self, list: ListKind, pages: &[impl AsRef<str>]) {
        self.pages(list, pages.iter().map(|page| Source::Copied(page.as_ref())));
    }

    /// The same for pages that are kept anyway: the entries' texts are those of the pages, not copies.
    pub fn list_shared(&mut self, list: ListKind, pages: &[Arc<str>]) {
        self.pages(list, pages.iter().map(Source::Shared));
    }

    /// The same for a list of one page that was parsed already.
    pub fn list_read(&mut self, list: ListKind, page: &SharedDocument) {
        self.pages(list, std::iter::once(Source::Read(page)));
    }

    fn pages<'p>(
        &mut self,
        list: ListKind,
        pages: impl ExactSizeIterator<Item = Source<'p>> + Clone,
    ) {
        if pages.len() > MAX_LIST_PAGES {
            return self.unreadable(list, format!("more than {MAX_LIST_PAGES} pages"));
        }
        let bytes: usize = pages.clone().map(|page| page.as_str().len()).sum();
        if bytes > MAX_LIST_BYTES {
            return self.unreadable(list, format!("larger than {MAX_LIST_BYTES} bytes"));
        }
        self.surface.listed.insert(list);
        let mut size = Size::default();
        for page in pages {
            if let Err(unreadable) = self.page(list, page, &mut size) {
                return self.unreadable(list, unreadable.0);
            }
            self.settle(page);
        }
        if size.is_over() {
            self.too_many(list);
        }
    }

    fn page(
        &mut self,
        list: ListKind,
        page: Source<'_>,
        size: &mut Size,
    ) -> Result<(), Unreadable> {
        match page {
            Source::Read(document) => self.page_root(list, document.root(), size),
            Source::Copied(_) | Source::Shared(_) => {
                self.page_root(list, Document::parse(page.as_str())?.root(), size)
            }
        }
    }

    fn page_root(
        &mut self,
        list: ListKind,
        page: Node<'_>,
        size: &mut Size,
    ) -> Result<(), Unreadable> {
        refuse_lookalikes(page, &[names::PAGE, &[list.member()]], "the answer")?;
        let array = page.get(list.member());
        let array =
            array.ok_or_else(|| Unreadable(format!("an answer without `{}`", list.member())))?;
        self.array(list, array, size)
    }

    /// Records that a list could not be read.
    pub fn unreadable(&mut self, list: ListKind, reason: impl Into<String>) {
        let entry_type = list.entry_type();
        self.forget(entry_type);
        self.surface.unreadable.insert(list, Unreadable(reason.into()));
    }

    /// Records a sentence about something that was left out.
    pub fn note(&mut self, note: impl Into<String>) {
        self.surface.notes.push(note.into());
    }

    pub fn finish(self) -> Surface {
        self.surface
    }

    fn capture(&mut self, root: Node<'_>) {
        let lists = ListKind::ALL.map(ListKind::member);
        if let Err(unreadable) = refuse_lookalikes(root, &[&lists], "the capture") {
            return self.unreadable(ListKind::Tools, unreadable.0);
        }
        for list in ListKind::ALL {
            if let Some(array) = root.get(list.member())
                && !array.is_null()
            {
                self.list_node(list, array);
            }
        }
        if let Err(unreadable) = self.self_description(root) {
            // A capture has one reading or none: it is held against the tools, which every capture is about.
            self.unreadable(ListKind::Tools, unreadable.0);
        }
    }

    fn single_tool(&mut self, tool: Node<'_>) {
        self.surface.is_partial = true;
        self.surface.listed.insert(ListKind::Tools);
        if let Err(unreadable) = self.entry(ListKind::Tools, tool) {
            self.unreadable(ListKind::Tools, unreadable.0);
        }
    }

    /// A whole list in one array.
    fn list_node(&mut self, list: ListKind, array: Node<'_>) {
        self.surface.listed.insert(list);
        let mut size = Size::default();
        if let Err(unreadable) = self.array(list, array, &mut size) {
            self.unreadable(list, unreadable.0);
        } else if size.is_over() {
            self.too_many(list);
        }
    }

    fn array(
        &mut self,
        list: ListKind,
        array: Node<'_>,
        size: &mut Size,
    ) -> Result<(), Unreadable> {
        if !array.is_array() {
            return Err(Unreadable(format!("`{}` is not an array", list.member())));
        }
        size.bytes = size.bytes.saturating_add(array.raw().len());
        if size.bytes > MAX_LIST_BYTES {
            return Err(Unreadable(format!("larger than {MAX_LIST_BYTES} bytes")));
        }
        for node in array.items() {
            size.entries += 1;
            if size.is_over() {
                break;
            }
            self.entry(list, node)?;
        }
        Ok(())
    }

    /// Too many tools close the list; too many resources are left unpinned and close nothing.
    fn too_many(&mut self, list: ListKind) {
        match list {
            ListKind::Tools | ListKind::Prompts => {
                self.unreadable(list, format!("more than {MAX_LIST_ENTRIES} entries"));
            }
            ListKind::Resources | ListKind::ResourceTemplates => {
                self.forget(list.entry_type());
                self.surface.left_out.insert(list);
                self.note(format!("more than {MAX_LIST_ENTRIES} {}: left unpinned", list.member()));
            }
        }
    }

    fn entry(&mut self, list: ListKind, node: Node<'_>) -> Result<(), Unreadable> {
        let key = node.get(list.key_member()).and_then(Node::as_str).ok_or_else(|| {
            let member = list.key_member();
            Unreadable(format!("an entry of `{}` has no string `{member}`", list.member()))
        })?;
        if node.raw().len() > MAX_ENTRY_BYTES {
            let message = format!("an entry larger than {MAX_ENTRY_BYTES} bytes");
            return Err(Unreadable(message));
        }
        refuse_lookalikes_in_entry(list, node)?;
        let id = EntryId::new(list.entry_type(), key);
        let hashes = EntryHashes::of(list.entry_type(), node);
        let known = self.surface.entries.get(&id).map(Entry::entry_hash);
        let known = known.or_else(|| self.pending.get(&id).map(|(_, hashes)| hashes.entry));
        match known {
            Some(known) if known == hashes.entry => Ok(()),
            Some(_) => Err(Unreadable(format!("two different entries are called `{}`", id.key))),
            None => {
                self.surface.order.push(id.clone());
                self.pending.insert(id, (node.span(), hashes));
                Ok(())
            }
        }
    }

    /// Takes the texts of the entries that were read from this text, now that its document is gone: a document and
    /// copies of all entries at once would be more memory than the limits allow for.
    fn settle(&mut self, source: Source<'_>) {
        for (id, (span, hashes)) in std::mem::take(&mut self.pending) {
            let raw = source.part(span);
            self.surface.entries.insert(id.clone(), hashes.with_text(id, raw));
        }
    }

    fn forget(&mut self, entry_type: EntryType) {
        self.pending.retain(|id, _| id.entry_type != entry_type);
        self.surface.order.retain(|id| id.entry_type != entry_type);
        self.surface.entries.retain(|id, _| id.entry_type != entry_type);
    }

    /// Instructions, identity and versions, from a handshake's result or a capture: the members have the same names.
    fn self_description(&mut self, root: Node<'_>) -> Result<(), Unreadable> {
        refuse_lookalikes(root, &[names::HANDSHAKE], "the handshake")?;
        let text = |node: Option<Node<'_>>| node.and_then(Node::as_str).map(String::from);
        self.surface.protocol_version = text(root.get("protocolVersion"));
        if let Some(instructions) = root.get("instructions")
            && !instructions.is_null()
        {
            if instructions.kind() != Kind::String {
                return Err(Unreadable("`instructions` is not a string".to_owned()));
            }
            if instructions.raw().len() > MAX_ENTRY_BYTES {
                let message = format!("`instructions` is larger than {MAX_ENTRY_BYTES} bytes");
                return Err(Unreadable(message));
            }
            let id = EntryId::only(EntryType::Instructions);
            self.surface.insert(Entry::from_node(id, instructions));
        }
        // The stateless revision carries the same object among the metadata.
        let metadata = root.get("_meta");
        let server_info = root
            .get("serverInfo")
            .or_else(|| metadata.and_then(|metadata| metadata.get(STATELESS_SERVER_INFO)));
        if let Some(server_info) = server_info {
            refuse_lookalikes(server_info, &[names::SERVER_INFO], "`serverInfo`")?;
        }
        self.surface.server_version = text(server_info.and_then(|info| info.get("version")));
        let name = server_info.and_then(|info| info.get("name"));
        let capabilities = root.get("capabilities");
        if let Some(capabilities) = capabilities {
            refuse_lookalikes(capabilities, &[names::CAPABILITIES], "`capabilities`")?;
        }
        if name.is_some() || capabilities.is_some() {
            let raw = identity_json(name, capabilities);
            if raw.len() > MAX_ENTRY_BYTES {
                let message = format!("`capabilities` is larger than {MAX_ENTRY_BYTES} bytes");
                return Err(Unreadable(message));
            }
            self.surface.insert(Entry::from_raw(EntryId::only(EntryType::Identity), &raw)?);
        }
        Ok(())
    }
}

/// Refuses an object with a member that is none of `known`, and that some clients read as one of them.
fn refuse_lookalikes(node: Node<'_>, known: &[&[&str]], what: &str) -> Result<(), Unreadable> {
    for (name, _) in node.members() {
        let name = name.as_str().unwrap_or_default();
        if known.iter().any(|known| known.contains(&name.as_ref())) {
            continue;
        }
        if let Some(member) = known.iter().find_map(|known| names::reads_as(&name, known)) {
            // The server's spelling is not repeated: it was not accepted.
            let message = format!("{what} has a member that some clients read as `{member}`");
            return Err(Unreadable(message));
        }
    }
    Ok(())
}

fn refuse_lookalikes_in_entry(list: ListKind, entry: Node<'_>) -> Result<(), Unreadable> {
    let inside = |member: &str, known: &[&str], what: &str| {
        entry.get(member).map_or(Ok(()), |node| refuse_lookalikes(node, &[known], what))
    };
    match list {
        ListKind::Tools => {
            refuse_lookalikes(entry, &[names::TOOL], "a tool")?;
            inside("annotations", names::TOOL_ANNOTATIONS, "the annotations of a tool")?;
            inside("execution", names::EXECUTION, "the `execution` of a tool")
        }
        ListKind::Prompts => {
            refuse_lookalikes(entry, &[names::PROMPT], "a prompt")?;
            let mut arguments = entry.get("arguments").into_iter().flat_map(Node::items);
            arguments.try_for_each(|argument| {
                refuse_lookalikes(argument, &[names::PROMPT_ARGUMENT], "an argument of a prompt")
            })
        }
        ListKind::Resources | ListKind::ResourceTemplates => {
            refuse_lookalikes(entry, &[names::RESOURCE], "a resource")?;
            inside("annotations", names::RESOURCE_ANNOTATIONS, "the annotations of a resource")
        }
    }
}

fn identity_json(name: Option<Node<'_>>, capabilities: Option<Node<'_>>) -> String {
    let member = |label: &str, node: Node<'_>| format!("\"{label}\":{}", node.raw());
    let members: Vec<String> = [("capabilities", capabilities), ("name", name)]
        .into_iter()
        .filter_map(|(label, node)| node.map(|node| member(label, node)))
        .collect();
    format!("{{{}}}", members.join(","))
}

/// Appends `serverInfo` and `capabilities` as a capture has them.
pub(super) fn write_identity(surface: &Surface, out: &mut Vec<u8>) {
    let identity = surface.entry(&EntryId::only(EntryType::Identity));
    let document = identity.and_then(|identity| Document::parse(identity.raw()).ok());
    let root = document.as_ref().map(Document::root);
    let name = root.and_then(|root| root.get("name"));
    if name.is_some() || surface.server_version.is_some() {
        member_name("serverInfo", out);
        let mut info = Vec::from(*b"{");
        if let Some(name) = name {
            member_name("name", &mut info);
            info.extend_from_slice(name.raw().as_bytes());
        }
        if let Some(version) = &surface.server_version {
            member_name("version", &mut info);
            escape_into(version, &mut info);
        }
        info.push(b'}');
        out.extend(info.into_iter().filter(|&byte| byte != b'\n'));
    }
    if let Some(capabilities) = root.and_then(|root| root.get("capabilities")) {
        member_name("capabilities", out);
        out.extend_from_slice(capabilities.raw().as_bytes());
    }
}
