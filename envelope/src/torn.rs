//! Extracts what it can from a message that was too long to keep, given its first and last bytes.
//!
//! This is best effort and authorizes nothing. It identifies the request that will not get an
//! answer.

use super::cursor::Cursor;
use super::id::{Id, MAX_ID_BYTES};
use super::text::Text;

/// The parts that could be read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Torn<'a> {
    pub id: Option<Id<'a>>,
    /// A `method` was found before the missing part: the message is a request, and its id is the
    /// sender's.
    pub has_method: bool,
}

/// The id of a message that was too long to keep: a top-level `id` before the first truncated
/// value, or as the last member. Returns `None` if there are two.
pub fn id_of_torn<'a>(beginning: &'a [u8], end: &'a [u8]) -> Option<Id<'a>> {
    read_torn(beginning, end).id
}

/// Reads the remains of a message that was too long to keep.
pub fn read_torn<'a>(beginning: &'a [u8], end: &'a [u8]) -> Torn<'a> {
    let mut torn = Torn::default();
    let mut cursor = Cursor::new(beginning);
    cursor.white_space();
    if cursor.peek() != Some(b'{') || cursor.enter().is_err() {
        return torn;
    }
    let mut is_first = true;
    while let Ok(Some(name)) = cursor.member(is_first) {
        is_first = false;
        let place = cursor.place();
        if cursor.value().is_err() || cursor.peek().is_none() {
            // A number at the end of the bytes may be truncated.
            break;
        }
        match name.decode().as_deref() {
            Some("id") if torn.id.is_some() => return Torn { id: None, ..torn },
            Some("id") => torn.id = read_id(cursor.since(place)),
            Some("method") => torn.has_method = true,
            _ => {}
        }
    }
    match (torn.id.take(), last_id(end)) {
        (Some(first), Some(last)) if first != last => {}
        (first, last) => torn.id = first.or(last),
    }
    torn
}

/// The most ids that are searched for in a line that is not JSON.
pub const MAX_BROKEN_IDS: usize = 16;

/// The ids that a broken line contains as members: the values after each `"id":`.
pub fn ids_of_broken(line: &[u8]) -> Vec<Id<'_>> {
    const NAME: &[u8] = b"\"id\"";
    let mut ids = Vec::new();
    for at in memchr::memmem::find_iter(line, NAME) {
        let rest = line.get(at + NAME.len()..).unwrap_or_default().trim_ascii_start();
        let Some(rest) = rest.strip_prefix(b":") else { continue };
        ids.extend(first_id(rest.trim_ascii_start()));
        if ids.len() == MAX_BROKEN_IDS {
            break;
        }
    }
    ids
}

/// Whether a line that is not a valid message looks like it was meant to be one.
pub fn names_protocol(line: &[u8]) -> bool {
    memchr::memmem::find(line, b"\"jsonrpc\"").is_some()
}

/// The id at the start of some bytes.
fn first_id(bytes: &[u8]) -> Option<Id<'_>> {
    let length = match bytes.split_first()? {
        (b'"', inside) => closing_quote(inside)? + 2,
        _ => bytes.iter().take_while(|byte| is_of_number(**byte)).count(),
    };
    read_id(bytes.get(..length)?)
}

/// The position of the first unescaped quote.
fn closing_quote(bytes: &[u8]) -> Option<usize> {
    let inside = bytes.get(..bytes.len().min(MAX_ID_BYTES)).unwrap_or_default();
    memchr::memchr_iter(b'"', inside).find(|&quote| is_unescaped(bytes, quote))
}

/// Parses all of `token` as an id.
fn read_id(token: &[u8]) -> Option<Id<'_>> {
    if token.len() > MAX_ID_BYTES || std::str::from_utf8(token).is_err() {
        return None;
    }
    let mut cursor = Cursor::new(token);
    let id = match token.first() {
        Some(b'"') => {
            let text: Text<'_> = cursor.string().ok()?;
            Id::string(token, text)
        }
        Some(b'-' | b'0'..=b'9') => {
            cursor.value().ok()?;
            Some(Id::number(token))
        }
        _ => None,
    }?;
    cursor.peek().is_none().then_some(id)
}

/// The id if it is the last member before the final brace. In JSON that brace is outside of
/// strings, so the text directly before it, back to the quotes of the name, is too.
fn last_id(end: &[u8]) -> Option<Id<'_>> {
    let inside = end.trim_ascii_end().strip_suffix(b"}")?.trim_ascii_end();
    let start = match inside.split_last()? {
        (b'"', before) => opening_quote(before)?,
        _ => inside.iter().rposition(|byte| !is_of_number(*byte))? + 1,
    };
    let (before, token) = inside.split_at_checked(start)?;
    let before = before.trim_ascii_end().strip_suffix(b":")?.trim_ascii_end();
    // Only this can precede the name of a member that is not the first. Inside a string, the quotes
    // would be escaped.
    before.strip_suffix(b"\"id\"")?.trim_ascii_end().strip_suffix(b",")?;
    read_id(token)
}

fn is_of_number(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')
}

/// The position of the last unescaped quote.
fn opening_quote(bytes: &[u8]) -> Option<usize> {
    memchr::memrchr_iter(b'"', bytes).find(|&quote| is_unescaped(bytes, quote))
}

fn is_unescaped(bytes: &[u8], quote: usize) -> bool {
    let before = bytes.get(..quote).unwrap_or_default();
    let backslashes = before.iter().rev().take_while(|&&byte| byte == b'\\').count();
    backslashes.is_multiple_of(2)
}
