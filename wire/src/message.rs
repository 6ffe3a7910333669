//! The messages that Holdpoint itself sends to a server: requests, notifications, and replies to
//! the server's requests.

use crate::envelope::{Id, METHOD_NOT_FOUND};
use contract::client::ClientCapabilities;
use contract::json::escape_into;

/// JSON-RPC's `invalid params`.
pub(crate) const INVALID_PARAMS: i64 = -32602;
/// The code that the protocol prescribes if the user rejects a sampling request.
const REJECTED: i64 = -1;
/// The codes that revision 2026-07-28 reserves for the specification.
pub(crate) const MODERN_CODES: std::ops::RangeInclusive<i64> = -32099..=-32020;

/// The id of one of our requests. It is unguessable, so only a peer that has read the request can
/// answer it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestId(String);

impl RequestId {
    /// The token with its quotes, which is also the key that ids are compared by.
    pub(crate) fn raw(&self) -> &str {
        &self.0
    }

    pub(crate) fn key(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Whether this is exactly our id: a string with the same text.
    pub(crate) fn is(&self, id: &Id<'_>) -> bool {
        id.key() == self.key()
    }
}

/// Generates ids: 128 random bits each, plus a counter so that none is ever repeated.
#[derive(Debug, Default)]
pub(crate) struct RequestIds {
    count: u64,
}

impl RequestIds {
    pub(crate) fn next(&mut self) -> Result<RequestId, getrandom::Error> {
        let mut random = [0_u8; 16];
        getrandom::fill(&mut random)?;
        self.count += 1;
        Ok(RequestId(format!("\"{}-{}\"", hex::encode(random), self.count)))
    }
}

/// One of our requests, ready to be sent.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) id: RequestId,
    pub(crate) method: &'static str,
    /// The whole message on one line.
    pub(crate) text: String,
}

impl Request {
    /// `params` is a JSON object on one line.
    pub(crate) fn new(id: RequestId, method: &'static str, params: &str) -> Self {
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":{},"method":"{method}","params":{params}}}"#,
            id.raw()
        );
        Request { id, method, text }
    }
}

/// A notification without parameters.
pub(crate) fn notification(method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#)
}

/// The reply to a request from the server: a result for `ping`, and a refusal for anything else.
/// Requests that a declared capability allows are answered as if no user were present.
pub(crate) fn reply(id: &Id<'_>, method: &str, client: &ClientCapabilities) -> String {
    // The id's bytes contain no line feed, since it is a string or a number.
    let id = &String::from_utf8_lossy(id.raw());
    let result = match method {
        "ping" => "{}",
        "roots/list" if client.declares("roots") => r#"{"roots":[]}"#,
        "elicitation/create" if client.declares("elicitation") => r#"{"action":"cancel"}"#,
        "sampling/createMessage" if client.declares("sampling") => {
            return error(id, REJECTED, "no user is present to allow it");
        }
        _ => return error(id, METHOD_NOT_FOUND, "this client does not answer requests"),
    };
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

fn error(id: &str, code: i64, words: &str) -> String {
    let mut message = Vec::new();
    escape_into(words, &mut message);
    let message = String::from_utf8_lossy(&message);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{message}}}}}"#)
}

#[cfg(test)]
mod tests;
