//! The JSON-RPC envelope: what kind of message a text is, and the texts of our own.

use contract::client::ClientCapabilities;
use contract::json::{Kind, Node, escape_into};
use std::borrow::Cow;
use std::fmt;

/// The members of the envelope. One that is spelled like these only after case folding is read by some and not by others.
const ENVELOPE: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

/// `method not found`.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
/// `invalid params`.
pub(crate) const INVALID_PARAMS: i64 = -32602;
/// What the protocol has a client say whose person does not allow a sample.
const REJECTED: i64 = -1;
/// The codes that revision 2026-07-28 reserves for the specification.
pub(crate) const MODERN_CODES: std::ops::RangeInclusive<i64> = -32099..=-32020;

/// A message from a server.
#[derive(Debug)]
pub(crate) enum Incoming<'a> {
    /// An answer. `id` is absent where the server said `null`.
    Response {
        id: Option<Node<'a>>,
        outcome: Outcome<'a>,
    },
    Request {
        id: Node<'a>,
        method: Cow<'a, str>,
    },
    Notification,
}

#[derive(Debug)]
pub(crate) enum Outcome<'a> {
    Result(Node<'a>),
    Error(Node<'a>),
}

/// Why a JSON value is not a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EnvelopeError {
    #[error("not a JSON-RPC 2.0 message")]
    NotAMessage,
    #[error("a batch")]
    Batch,
    #[error("the member `{0}` is read as `{1}` by some")]
    FoldedMember(String, &'static str),
    #[error("both `result` and `error`")]
    BothOutcomes,
    #[error("both `method` and an outcome")]
    RequestAndResponse,
}

impl EnvelopeError {
    /// Whether two readers could take it for different messages.
    pub(crate) fn is_ambiguous(&self) -> bool {
        match self {
            EnvelopeError::NotAMessage | EnvelopeError::Batch => false,
            EnvelopeError::FoldedMember(..)
            | EnvelopeError::BothOutcomes
            | EnvelopeError::RequestAndResponse => true,
        }
    }
}

/// Says what a message is.
pub(crate) fn classify(root: Node<'_>) -> Result<Incoming<'_>, EnvelopeError> {
    if root.is_array() {
        return Err(EnvelopeError::Batch);
    }
    refuse_folded(root)?;
    if !root.get("jsonrpc").is_some_and(|version| version.is_text("2.0")) {
        return Err(EnvelopeError::NotAMessage);
    }
    let id = root.get("id").filter(|id| !id.is_null());
    if id.is_some_and(|id| !matches!(id.kind(), Kind::String | Kind::Number)) {
        return Err(EnvelopeError::NotAMessage);
    }
    let method = root.get("method");
    match (method, root.get("result"), root.get("error")) {
        (Some(method), None, None) => {
            let method = method.as_str().ok_or(EnvelopeError::NotAMessage)?;
            Ok(match id {
                Some(id) => Incoming::Request { id, method },
                None => Incoming::Notification,
            })
        }
        (Some(_), ..) => Err(EnvelopeError::RequestAndResponse),
        (None, Some(_), Some(_)) => Err(EnvelopeError::BothOutcomes),
        (None, Some(result), None) => {
            Ok(Incoming::Response { id, outcome: Outcome::Result(result) })
        }
        (None, None, Some(error)) => Ok(Incoming::Response { id, outcome: Outcome::Error(error) }),
        (None, None, None) => Err(EnvelopeError::NotAMessage),
    }
}

fn refuse_folded(root: Node<'_>) -> Result<(), EnvelopeError> {
    for (name, _) in root.members() {
        let Some(name) = name.as_str() else { continue };
        if let Some(member) = contract::names::folds_to(&name, &ENVELOPE) {
            return Err(EnvelopeError::FoldedMember(name.into_owned(), member));
        }
    }
    Ok(())
}

/// The code and message of an error object; a code that is no integer of 64 bits is 0.
pub(crate) fn error_parts(error: Node<'_>) -> (i64, String) {
    let code = error.get("code").and_then(Node::as_number).and_then(|code| code.parse().ok());
    let message = error.get("message").and_then(Node::as_str).map(Cow::into_owned);
    (code.unwrap_or(0), message.unwrap_or_default())
}

/// The id of one of our requests: nobody can answer it who has not read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestId(String);

impl RequestId {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is exactly our id: a string with the same text.
    pub(crate) fn is(&self, id: Node<'_>) -> bool {
        id.is_text(&self.0)
    }
}

/// Makes ids: 128 random bits each, and a count so that none is ever repeated.
#[derive(Debug, Default)]
pub(crate) struct RequestIds {
    count: u64,
}

impl RequestIds {
    pub(crate) fn next(&mut self) -> Result<RequestId, getrandom::Error> {
        let mut random = [0_u8; 16];
        getrandom::fill(&mut random)?;
        self.count += 1;
        Ok(RequestId(format!("{}-{}", hex::encode(random), self.count)))
    }
}

/// A request of ours, ready to be sent.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) id: RequestId,
    pub(crate) method: &'static str,
    /// The whole message, on one line.
    pub(crate) text: String,
}

impl Request {
    /// `params` prints as a JSON object on one line.
    pub(crate) fn new(id: RequestId, method: &'static str, params: &dyn fmt::Display) -> Self {
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":"{}","method":"{method}","params":{params}}}"#,
            id.as_str()
        );
        Request { id, method, text }
    }
}

/// A notification without parameters.
pub(crate) fn notification(method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#)
}

/// The answer to a request of the server's: we are alive, and there is nothing else that we do for it. What the server
/// was told to be able to ask for is answered as if nobody were there.
pub(crate) fn reply(id: Node<'_>, method: &str, client: &ClientCapabilities) -> String {
    // The id's own bytes may hold a line feed only if it is no string or number; those two kinds are all that come here.
    let id = id.raw();
    let result = match method {
        "ping" => "{}",
        "roots/list" if client.declares("roots") => r#"{"roots":[]}"#,
        "elicitation/create" if client.declares("elicitation") => r#"{"action":"cancel"}"#,
        "sampling/createMessage" if client.declares("sampling") => {
            return error(id, REJECTED, "nobody is here to allow it");
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
