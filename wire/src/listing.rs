//! Lists and their pages: what a server offers, and where the next page is.

use contract::json::{Document, Kind};
use contract::surface::ListKind;

/// Whether the handshake declares the list's capability. A server that declares nothing at all is asked for its tools.
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

/// Where the next page of a list is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cursor {
    End,
    /// Most clients take it for the end, and some servers mean that by it.
    Empty,
    NotAString,
    Next(String),
}

/// Where the page after this one is.
pub fn next_cursor(page: &str) -> Cursor {
    let document = Document::parse(page).ok();
    let Some(cursor) = document.as_ref().and_then(|page| page.root().get("nextCursor")) else {
        return Cursor::End;
    };
    match (cursor.kind(), cursor.as_str()) {
        (Kind::Null, _) => Cursor::End,
        (_, Some(text)) if text.is_empty() => Cursor::Empty,
        (_, Some(text)) => Cursor::Next(text.into_owned()),
        _ => Cursor::NotAString,
    }
}
