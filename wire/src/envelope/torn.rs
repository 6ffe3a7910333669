//! What can be told of a message that was too long to be kept, from its first and last bytes.
//!
//! Best effort: nothing is authorized by it. It serves to tell whoever waits for an answer that there will be none.

use super::cursor::Cursor;
use super::id::{Id, MAX_ID_BYTES};
use super::text::Text;

/// What was read of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Torn<'a> {
    pub id: Option<Id<'a>>,
    /// A `method` was seen before the part that is missing: it is a request, and its id is its sender's.
    pub has_method: bool,
}

/// The id of a message that was too long to be kept: a top-level `id` before the first value that is cut off, or as the
/// last member. None where it is there twice.
pub fn id_of_torn<'a>(beginning: &'a [u8], end: &'a [u8]) -> Option<Id<'a>> {
    read_torn(beginning, end).id
}

/// Reads what there is of a message that was too long to be kept.
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
            // A number that ends with the bytes may go on.
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

/// The whole of `token` as an id.
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

/// The id as the last member before the last brace. In JSON that brace is outside of strings, so what comes directly
/// before it, back to the quotes of the name, is too.
fn last_id(end: &[u8]) -> Option<Id<'_>> {
    let inside = end.trim_ascii_end().strip_suffix(b"}")?.trim_ascii_end();
    let start = match inside.split_last()? {
        (b'"', before) => opening_quote(before)?,
        _ => inside.iter().rposition(|byte| !is_of_number(*byte))? + 1,
    };
    let (before, token) = inside.split_at_checked(start)?;
    let before = before.trim_ascii_end().strip_suffix(b":")?.trim_ascii_end();
    // Nothing else can stand before a name that is not the first one; a name that ends like this has a backslash there.
    before.strip_suffix(b"\"id\"")?.trim_ascii_end().strip_suffix(b",")?;
    read_id(token)
}

fn is_of_number(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')
}

/// The last quote that is not escaped.
fn opening_quote(bytes: &[u8]) -> Option<usize> {
    memchr::memrchr_iter(b'"', bytes).find(|&quote| {
        let before = bytes.get(..quote).unwrap_or_default();
        let backslashes = before.iter().rev().take_while(|&&byte| byte == b'\\').count();
        backslashes.is_multiple_of(2)
    })
}
