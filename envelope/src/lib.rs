//! Reads one frame in a single pass, without building a tree: the kind of its message and where its
//! parts are in the original bytes.
//!
//! The syntax of the whole frame is checked, and a frame that two readers could take for different
//! messages is refused. The contents of `arguments`, `result` and `error` are not judged, and
//! nothing is ever rewritten. [`listing`] joins the pages of a list.

#![forbid(unsafe_code)]
#![cfg_attr(holdpoint_small, feature(optimize_attribute))]

mod answer;
mod cursor;
mod error;
mod id;
pub mod listing;
mod members;
mod names;
mod plain;
mod read;
mod server_text;
mod text;
mod torn;

pub use answer::{Answer, METHOD_NOT_FOUND};
pub use error::{Ambiguity, ScanError, ScanErrorKind};
pub use id::{Id, MAX_ID_BYTES, OwnedId, key_of};
pub use members::{Members, member_names, members};
pub use server_text::ServerText;
pub use torn::{MAX_BROKEN_IDS, Torn, id_of_torn, ids_of_broken, names_protocol, read_torn};

use cursor::{Cursor, Fault};
use read::Found;
use std::borrow::Cow;

/// The deepest nesting of objects and arrays in a frame.
pub const MAX_SCAN_DEPTH: usize = 10_000;
/// The most messages in a batch.
pub const MAX_BATCH: usize = 100;
/// The most requests that are reported for a batch refused as a whole.
pub const MAX_REFUSED: usize = 1_000;
/// The most members of a message, and of its `params`. Their names are kept to detect repetitions.
pub const MAX_MEMBERS: usize = 4_096;

/// The members of a message that the protocol defines.
const ENVELOPE: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

/// The members of `params` that the protocol defines.
const PARAMETERS: [&str; 16] = [
    "name",
    "arguments",
    "uri",
    "cursor",
    "_meta",
    "requestId",
    "level",
    "protocolVersion",
    "task",
    "capabilities",
    "clientInfo",
    "ref",
    "argument",
    "progressToken",
    "inputResponses",
    "requestState",
];

/// The contents of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "the large one is the ordinary one, and a box would be an allocation for each message"
)]
pub enum Scanned<'a> {
    Message(Envelope<'a>),
    Batch(Batch<'a>),
}

/// Several messages in one frame: one to [`MAX_BATCH`] of them, no two requests with the same id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch<'a> {
    pub raw: &'a [u8],
    pub elements: Vec<Element<'a>>,
}

/// One message of a batch. Each is judged alone: one that must be refused does not affect the
/// others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Element<'a> {
    pub raw: &'a [u8],
    pub message: Result<Envelope<'a>, ScanError>,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// The whole message, without the surrounding white space.
    pub raw: &'a [u8],
    pub kind: Kind<'a>,
    pub params: Option<Params<'a>>,
    /// The deepest nesting of objects and arrays, counting the message itself as the first level.
    pub depth: usize,
}

/// The kind of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind<'a> {
    Request {
        id: Id<'a>,
        method: Cow<'a, str>,
    },
    Notification {
        method: Cow<'a, str>,
    },
    /// `id` is `None` if it is `null` or absent, which is allowed for an error that answers no
    /// particular request.
    Response {
        id: Option<Id<'a>>,
        outcome: Outcome<'a>,
    },
}

/// The outcome of a request as raw JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome<'a> {
    Result(&'a [u8]),
    Error(&'a [u8]),
}

/// The `params` of a message. Spans are raw JSON values of any kind; strings are unescaped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Params<'a> {
    pub raw: &'a [u8],
    /// Otherwise it is an array or `null`, and there are no members.
    pub is_object: bool,
    /// A member that must be a string is of another type; it is absent here.
    pub is_odd: bool,
    pub name: Option<Cow<'a, str>>,
    pub uri: Option<Cow<'a, str>>,
    pub level: Option<Cow<'a, str>>,
    pub protocol_version: Option<Cow<'a, str>>,
    pub cursor: Option<&'a [u8]>,
    pub arguments: Option<&'a [u8]>,
    pub meta: Option<&'a [u8]>,
    pub request_id: Option<&'a [u8]>,
    pub request_state: Option<&'a [u8]>,
    pub task: Option<&'a [u8]>,
}

/// Reads one frame: a line without its line break, or the body of an HTTP message.
pub fn scan(frame: &[u8]) -> Result<Scanned<'_>, ScanError> {
    if std::str::from_utf8(frame).is_err() {
        return Err(ScanErrorKind::NotUtf8.into());
    }
    let mut cursor = Cursor::new(frame);
    cursor.white_space();
    match cursor.peek() {
        Some(b'{') => {
            let mut found = Found::default();
            let read = found.read(&mut cursor).and_then(|()| cursor.end());
            read.map_err(|fault| refuse(fault, frame))?;
            found.judge(cursor.has_line_break()).map(Scanned::Message)
        }
        Some(b'[') => {
            let found = FoundBatch::read(&mut cursor);
            let found = found.and_then(|found| cursor.end().map(|()| found));
            let found = found.map_err(|fault| refuse(fault, frame))?;
            found.judge(cursor.has_line_break()).map(Scanned::Batch)
        }
        _ => {
            let value = cursor.value().and_then(|_| cursor.end());
            let kind = value.map_or(ScanErrorKind::NotJson, |()| ScanErrorKind::NotAMessage);
            Err(kind.into())
        }
    }
}

fn refuse(fault: Fault, frame: &[u8]) -> ScanError {
    let kind = match fault {
        // Not valid JSON as a whole, but a reader that resynchronizes at line breaks may find a
        // message after one.
        Fault::Syntax if memchr::memchr2(b'\r', b'\n', frame).is_some() => {
            ScanErrorKind::Ambiguous(Ambiguity::LineBreak)
        }
        Fault::Syntax => ScanErrorKind::NotJson,
        Fault::TooDeep => ScanErrorKind::TooDeep,
    };
    kind.into()
}

/// A batch that is valid JSON but has not been judged yet.
struct FoundBatch<'a> {
    raw: &'a [u8],
    elements: Vec<(&'a [u8], Option<Found<'a>>)>,
    /// The ids of requests beyond the most that a batch may have.
    spare: Vec<OwnedId>,
    count: usize,
}

impl<'a> FoundBatch<'a> {
    fn read(cursor: &mut Cursor<'a>) -> Result<Self, Fault> {
        let start = cursor.place();
        cursor.enter()?;
        let mut elements = Vec::new();
        let mut spare = Vec::new();
        let mut count: usize = 0;
        while cursor.item(count == 0)? {
            count = count.saturating_add(1);
            let place = cursor.place();
            let found = match cursor.peek() {
                Some(b'{') => {
                    let mut found = Found::default();
                    found.read(cursor)?;
                    Some(found)
                }
                _ => {
                    cursor.value()?;
                    None
                }
            };
            let element = (cursor.since(place), found);
            if count <= MAX_BATCH {
                elements.push(element);
            } else if spare.len() < MAX_REFUSED {
                spare.extend(Element::judge(element).request_id().map(Id::to_owned));
            }
        }
        Ok(FoundBatch { raw: cursor.since(start), elements, spare, count })
    }

    fn judge(self, has_line_break: bool) -> Result<Batch<'a>, ScanError> {
        let refused = if has_line_break {
            Some(ScanErrorKind::Ambiguous(Ambiguity::LineBreak))
        } else if self.count == 0 {
            Some(ScanErrorKind::EmptyBatch)
        } else if self.count > MAX_BATCH {
            Some(ScanErrorKind::BatchTooLong)
        } else {
            None
        };
        let elements: Vec<_> = self.elements.into_iter().map(Element::judge).collect();
        let mut ids: Vec<_> = elements.iter().filter_map(Element::request_id).collect();
        ids.sort_unstable();
        let is_repeated = !ids.is_sorted_by(|left, right| left < right);
        match refused.or(is_repeated.then_some(ScanErrorKind::RepeatedId)) {
            None => Ok(Batch { raw: self.raw, elements }),
            Some(kind) => {
                let mut batch: Vec<OwnedId> = ids.into_iter().map(Id::to_owned).collect();
                batch.extend(self.spare);
                batch.sort_by(|left, right| left.key().cmp(right.key()));
                batch.dedup_by(|left, right| left.key() == right.key());
                batch.truncate(MAX_REFUSED);
                Err(ScanError { batch, ..kind.into() })
            }
        }
    }
}

impl<'a> Element<'a> {
    fn judge((raw, found): (&'a [u8], Option<Found<'a>>)) -> Self {
        let message = match found {
            Some(mut found) => found.judge(false),
            None => Err(ScanErrorKind::NotAMessage.into()),
        };
        Element { raw, message }
    }

    fn request_id(&self) -> Option<&Id<'a>> {
        match &self.message {
            Ok(Envelope { kind: Kind::Request { id, .. }, .. }) => Some(id),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
