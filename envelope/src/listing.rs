//! Requests one list page by page, within the bounds of `contract`. No I/O: answers go in, and the
//! next page's cursor or the outcome comes out. The observer and the gate both use this state
//! machine.

use crate::{Answer, METHOD_NOT_FOUND, members};
use contract::json::{Document, Kind, Node, SharedDocument};
use contract::surface::{ListKind, MAX_LIST_BYTES, MAX_LIST_PAGES, SurfaceReader};
use memchr::memmem;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// How long a server may take to answer all pages of a list.
pub const LIST_PATIENCE: Duration = Duration::from_secs(30);
/// A server may shorten how long its lists stay valid, but not below this.
const MIN_TTL: Duration = Duration::from_secs(1);

/// Whether the handshake declares the list's capability. A server that declares no capabilities is
/// still asked for its tools.
pub fn is_offered(handshake: &str, list: ListKind) -> bool {
    let document = Document::parse(handshake).ok();
    let capabilities = document.as_ref().and_then(|document| document.root().get("capabilities"));
    match capabilities.filter(|capabilities| !capabilities.is_null()) {
        None => list == ListKind::Tools,
        Some(capabilities) => {
            capabilities.get(list.capability()).is_some_and(|capability| !capability.is_null())
        }
    }
}

/// The outcome of requesting a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListOutcome {
    /// The raw JSON of each page's result, in order. Shared with the gate's view, so a list is
    /// stored only once.
    Pages(Arc<Vec<Arc<str>>>),
    /// The server does not offer the list.
    NotOffered,
    /// The list could not be read unambiguously, with the reason.
    Unreadable(String),
}

impl ListOutcome {
    pub fn read_into(&self, list: ListKind, reader: &mut SurfaceReader) {
        match self {
            ListOutcome::Pages(pages) => reader.list_shared(list, pages),
            ListOutcome::NotOffered => {}
            ListOutcome::Unreadable(reason) => reader.unreadable(list, reason.clone()),
        }
    }

    /// How long the list stays valid according to the server.
    pub fn ttl(&self) -> Option<Duration> {
        let ListOutcome::Pages(pages) = self else { return None };
        // Skip parsing unless the name occurs plainly or the page has a `\u` escape.
        let can_have = |page: &&Arc<str>| {
            ["ttlMs", "\\u"]
                .iter()
                .any(|part| memmem::find(page.as_bytes(), part.as_bytes()).is_some())
        };
        let milliseconds = |page: &Arc<str>| {
            let (_, value) = members(page.as_bytes()).find(|(name, _)| name == "ttlMs")?;
            serde_json::from_slice::<u64>(value).ok()
        };
        let shortest = pages.iter().filter(can_have).filter_map(milliseconds).min();
        shortest.map(|ttl| Duration::from_millis(ttl).max(MIN_TTL))
    }
}

/// The next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Request the page at this cursor.
    Ask(String),
    Done(ListOutcome),
}

/// A list being requested. The first page is requested without a cursor.
#[derive(Debug)]
pub struct Listing {
    list: ListKind,
    pages: Vec<Arc<str>>,
    bytes: usize,
    cursors: HashSet<String>,
    note: Option<String>,
    /// The page of a list that has one page, parsed for its cursor.
    only: Option<SharedDocument>,
}

impl Listing {
    pub fn new(list: ListKind) -> Listing {
        Listing {
            list,
            pages: Vec::new(),
            bytes: 0,
            cursors: HashSet::new(),
            note: None,
            only: None,
        }
    }

    /// The number of the page being requested, counted from 1.
    pub fn page(&self) -> usize {
        self.pages.len() + 1
    }

    /// Takes the answer for the requested page.
    pub fn hear(&mut self, answer: Answer) -> Step {
        let page = match answer {
            Answer::Result(page) => page,
            Answer::Unreadable(reason) => return unreadable(reason),
            Answer::Error { code: METHOD_NOT_FOUND, .. } => {
                return Step::Done(ListOutcome::NotOffered);
            }
            Answer::Error { code, message } if message.is_empty() => {
                return self.refused(format!("answered with error {code}"));
            }
            Answer::Error { code, message } => {
                return self.refused(format!("answered with error {code}: `{message}`"));
            }
        };
        self.bytes = self.bytes.saturating_add(page.len());
        if self.bytes > MAX_LIST_BYTES {
            return unreadable(format!("larger than {MAX_LIST_BYTES} bytes"));
        }
        let document = match SharedDocument::parse(page.clone()) {
            Ok(document) => document,
            Err(error) => return unreadable(error.to_string()),
        };
        let next = next_cursor(document.root());
        let is_only = self.pages.is_empty() && matches!(next, Cursor::End | Cursor::Empty);
        self.only = is_only.then_some(document);
        self.pages.push(page);
        match next {
            Cursor::End => self.end(),
            Cursor::Empty => {
                let method = self.list.method();
                let note =
                    format!("`{method}` ended with an empty `nextCursor`, taken for the end");
                self.note = Some(note);
                self.end()
            }
            Cursor::NotAString => unreadable("a `nextCursor` that is not a string".to_owned()),
            Cursor::Next(_) if self.pages.len() == MAX_LIST_PAGES => {
                unreadable(format!("more than {MAX_LIST_PAGES} pages"))
            }
            Cursor::Next(cursor) if self.cursors.insert(cursor.clone()) => Step::Ask(cursor),
            Cursor::Next(_) => unreadable("a `nextCursor` that came before".to_owned()),
        }
    }

    /// Ends a list that the server refuses to return. Tools and prompts become unreadable;
    /// resources are treated as not offered, with a note.
    pub fn refused(&mut self, reason: String) -> Step {
        match self.list {
            ListKind::Tools | ListKind::Prompts => unreadable(reason),
            ListKind::Resources | ListKind::ResourceTemplates => {
                self.note = Some(format!("`{}` was {reason}; left out", self.list.method()));
                Step::Done(ListOutcome::NotOffered)
            }
        }
    }

    /// The parsed page of a finished list that has only one page, so that a caller that reads the
    /// list at once need not parse it again.
    pub fn take_only_page(&mut self) -> Option<SharedDocument> {
        self.only.take()
    }

    /// A note for the user about the finished list.
    pub fn into_note(self) -> Option<String> {
        self.note
    }

    fn end(&mut self) -> Step {
        Step::Done(ListOutcome::Pages(Arc::new(std::mem::take(&mut self.pages))))
    }
}

fn unreadable(reason: String) -> Step {
    Step::Done(ListOutcome::Unreadable(reason))
}

/// The cursor of the next page of a list.
enum Cursor {
    End,
    /// An empty string. Most clients take it for the end, and some servers mean it that way.
    Empty,
    NotAString,
    Next(String),
}

fn next_cursor(page: Node<'_>) -> Cursor {
    let Some(cursor) = page.get("nextCursor") else { return Cursor::End };
    match (cursor.kind(), cursor.as_str()) {
        (Kind::Null, _) => Cursor::End,
        (_, Some(text)) if text.is_empty() => Cursor::Empty,
        (_, Some(text)) => Cursor::Next(text.into_owned()),
        _ => Cursor::NotAString,
    }
}

#[cfg(test)]
mod tests;
