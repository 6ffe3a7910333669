//! Answers to the client's lists, in pages of our own.

use crate::view::{View, with_member};
use contract::surface::ListKind;
use ledger::record::OutcomeStatus;
use std::borrow::Cow;

/// `invalid params`.
const INVALID_PARAMS: i64 = -32602;
/// `method not found`.
const METHOD_NOT_FOUND: i64 = -32601;

/// Our cursors begin so: a server's own would not be one of ours.
const CURSOR: &str = "holdpoint-page-";

/// An answer, ready to be sent. A list may be most of a gate's memory: it goes out as it lies in the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListAnswer<'v> {
    beginning: Vec<u8>,
    result: Cow<'v, [u8]>,
    pub status: OutcomeStatus,
}

impl ListAnswer<'_> {
    /// The message, to be sent as one.
    pub fn parts(&self) -> [&[u8]; 3] {
        [&self.beginning, &self.result, b"}"]
    }

    pub fn bytes(&self) -> usize {
        self.parts().iter().map(|part| part.len()).sum()
    }
}

/// Answers a list that passed the checks, from the view. `cursor` is the raw JSON of the client's, `id` that of its request.
pub fn answer<'v>(
    view: &'v View,
    list: ListKind,
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
    let Some(page) = number.and_then(|number| entries.page(number)) else {
        return error(id, INVALID_PARAMS, "an unknown cursor: list again from the beginning");
    };
    let next = number.filter(|_| page.has_next).map(|number| format!("\"{CURSOR}{}\"", number + 1));
    let result = match &next {
        Some(next) => with_member(page.result, "nextCursor", Some(next.as_bytes())).into(),
        None => Cow::Borrowed(page.result),
    };
    let beginning = [br#"{"jsonrpc":"2.0","id":"#.as_slice(), id, br#","result":"#].concat();
    ListAnswer { beginning, result, status: OutcomeStatus::Success }
}

fn page_number(cursor: &[u8]) -> Option<usize> {
    let cursor: String = serde_json::from_slice(cursor).ok()?;
    cursor.strip_prefix(CURSOR)?.parse().ok()
}

fn error(id: &[u8], code: i64, message: &str) -> ListAnswer<'static> {
    let error = serde_json::json!({"code": code, "message": message}).to_string();
    let beginning = [br#"{"jsonrpc":"2.0","id":"#.as_slice(), id, br#","error":"#].concat();
    ListAnswer { beginning, result: error.into_bytes().into(), status: OutcomeStatus::Error }
}
