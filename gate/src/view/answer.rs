//! Responses to the client's list requests, in our own pages.

use super::{FilteredPage, ListView, View, Visible, with_member};
use contract::surface::ListKind;
use envelope::METHOD_NOT_FOUND;
use std::borrow::Cow;

/// JSON-RPC's `invalid params`.
const INVALID_PARAMS: i64 = -32602;

/// The prefix of our cursors, so that a server's own cursor is never mistaken for one.
const CURSOR: &str = "holdpoint-page-";
/// The end of the message after the result or the error.
const END: &[u8] = b"}";

/// A response, ready to be sent. A list may be most of a gate's memory, so it is sent directly from
/// the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListAnswer<'v> {
    beginning: Vec<u8>,
    result: Cow<'v, [u8]>,
    end: Cow<'static, [u8]>,
    /// The response is an error that says why there is no list.
    pub is_error: bool,
}

impl ListAnswer<'_> {
    /// The parts of the message, to be sent in sequence.
    pub fn parts(&self) -> [&[u8]; 3] {
        [&self.beginning, &self.result, &self.end]
    }

    pub fn bytes(&self) -> usize {
        self.parts().iter().map(|part| part.len()).sum()
    }
}

/// Answers a list request that passed the checks from the view: with the whole list, or the part
/// that a caller may see. `cursor` is the raw JSON of the client's cursor, and `id` that of its
/// request.
pub fn answer_list<'v>(
    view: &'v View,
    list: ListKind,
    visible: Option<&'v Visible>,
    cursor: Option<&[u8]>,
    id: &[u8],
) -> ListAnswer<'v> {
    let Some(entries) = view.list(list) else {
        return error(id, METHOD_NOT_FOUND, "the server does not offer this list");
    };
    let number = match cursor {
        None | Some(b"null") => Some(0),
        Some(cursor) => page_number(cursor),
    };
    let page = number.and_then(|number| match visible {
        None => whole_page(entries, number),
        Some(visible) => filtered_page(entries, visible, number),
    });
    let Some((result, end)) = page else {
        return error(id, INVALID_PARAMS, "an unknown cursor: list again from the beginning");
    };
    let beginning = [br#"{"jsonrpc":"2.0","id":"#.as_slice(), id, br#","result":"#].concat();
    ListAnswer { beginning, result, end, is_error: false }
}

/// The result of a response, and the end of the message.
type ResultAndEnd<'v> = (Cow<'v, [u8]>, Cow<'static, [u8]>);

fn whole_page(entries: &ListView, number: usize) -> Option<ResultAndEnd<'_>> {
    let page = entries.page(number)?;
    let result = match page.has_next {
        true => {
            with_member(page.result, "nextCursor", Some(cursor_after(number).as_bytes())).into()
        }
        false => Cow::Borrowed(page.result),
    };
    Some((result, END.into()))
}

fn filtered_page<'v>(
    entries: &ListView,
    visible: &'v Visible,
    number: usize,
) -> Option<ResultAndEnd<'v>> {
    let FilteredPage { mut result, has_next } = entries.filtered(visible, number)?;
    if !has_next {
        return Some((result, END.into()));
    }
    // The cursor replaces the closing brace of the result.
    let brace = result.iter().rposition(|byte| *byte == b'}')?;
    match &mut result {
        Cow::Borrowed(bytes) => *bytes = bytes.get(..brace)?,
        Cow::Owned(bytes) => bytes.truncate(brace),
    }
    let end = format!(",\"nextCursor\":{}}}}}", cursor_after(number));
    Some((result, end.into_bytes().into()))
}

/// The cursor of the page after this one, in quotes.
fn cursor_after(number: usize) -> String {
    format!("\"{CURSOR}{}\"", number + 1)
}

fn page_number(cursor: &[u8]) -> Option<usize> {
    let cursor: String = serde_json::from_slice(cursor).ok()?;
    cursor.strip_prefix(CURSOR)?.parse().ok()
}

fn error(id: &[u8], code: i64, message: &str) -> ListAnswer<'static> {
    let error = serde_json::json!({"code": code, "message": message}).to_string();
    let beginning = [br#"{"jsonrpc":"2.0","id":"#.as_slice(), id, br#","error":"#].concat();
    let result = error.into_bytes().into();
    ListAnswer { beginning, result, end: END.into(), is_error: true }
}
