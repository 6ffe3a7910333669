//! What a server sends, matched against the one request that is waiting. Nothing else is ever taken for an answer.

use crate::limits::MAX_REPLIES;
use crate::message::{self, EnvelopeError, Incoming, Outcome, RequestId};
use contract::client::ClientCapabilities;
use contract::json::{Document, Node, ReadError};

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The raw JSON of `result`.
    Result(String),
    Error {
        code: i64,
        message: String,
    },
    /// It came, and cannot be read in exactly one way.
    Unreadable(String),
}

/// What to do about a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Answer(Answer),
    /// A request of the server's, with what to send back.
    Reply(String),
    Nothing,
}

/// Listens for the answer and counts what was something else.
#[derive(Debug, Default)]
pub(crate) struct Correlator {
    /// What the server was told that it can ask of us.
    client: ClientCapabilities,
    tally: Tally,
    replies: usize,
    /// Requests of the server are left unanswered.
    is_silent: bool,
}

/// What was set aside, by reason.
#[derive(Debug, Default)]
struct Tally {
    not_json: u64,
    not_messages: u64,
    batches: u64,
    other_ids: u64,
    unanswered: u64,
    too_long: u64,
    unfinished: u64,
}

impl Correlator {
    pub(crate) fn new(client: &ClientCapabilities) -> Correlator {
        Correlator { client: client.clone(), ..Correlator::default() }
    }

    /// Listens only: no request of the server is answered.
    pub(crate) fn silent() -> Correlator {
        Correlator { is_silent: true, ..Correlator::default() }
    }

    /// Judges one message while `waiting` has no answer yet.
    pub(crate) fn hear(&mut self, bytes: &[u8], waiting: &RequestId) -> Heard {
        let document = match Document::parse_bytes(bytes) {
            Ok(document) => document,
            Err(error) => return self.unreadable(bytes, &error),
        };
        match message::classify(document.root()) {
            Ok(Incoming::Response { id: Some(id), outcome }) if waiting.is(id) => {
                Heard::Answer(answer(&outcome))
            }
            Ok(Incoming::Response { .. }) => count(&mut self.tally.other_ids),
            Ok(Incoming::Request { id, method }) => self.request(id, &method),
            Ok(Incoming::Notification) => Heard::Nothing,
            Err(EnvelopeError::Batch) => count(&mut self.tally.batches),
            Err(error) if error.is_ambiguous() => {
                Heard::Answer(Answer::Unreadable(error.to_string()))
            }
            Err(_) => count(&mut self.tally.not_messages),
        }
    }

    /// Its id cannot be known for sure, so it is held against the one request that waits, if it was a message at all.
    fn unreadable(&mut self, bytes: &[u8], error: &ReadError) -> Heard {
        let is_json = match error {
            ReadError::NotUtf8 { .. } => {
                let text = String::from_utf8_lossy(bytes);
                !Document::parse(&text).is_err_and(|error| error.is_syntax())
            }
            error => !error.is_syntax(),
        };
        if is_json && looks_like_message(bytes) {
            return Heard::Answer(Answer::Unreadable(error.to_string()));
        }
        count(&mut self.tally.not_json)
    }

    fn request(&mut self, id: Node<'_>, method: &str) -> Heard {
        if self.is_silent || self.replies >= MAX_REPLIES {
            return count(&mut self.tally.unanswered);
        }
        self.replies += 1;
        Heard::Reply(message::reply(id, method, &self.client))
    }

    /// Judges a message that was over the limit, by its first bytes.
    pub(crate) fn hear_too_long(&mut self, beginning: &[u8], limit: usize) -> Heard {
        if looks_like_message(beginning) {
            let reason = format!("a message longer than {limit} bytes");
            return Heard::Answer(Answer::Unreadable(reason));
        }
        count(&mut self.tally.too_long)
    }

    pub(crate) fn hear_unfinished(&mut self) {
        count(&mut self.tally.unfinished);
    }

    /// What was set aside, in sentences.
    pub(crate) fn notes(&self) -> Vec<String> {
        let tally = &self.tally;
        let counts = [
            (tally.not_json, "not JSON and dropped"),
            (tally.not_messages, "JSON but no JSON-RPC message and dropped"),
            (tally.batches, "in a batch that nobody asked for and dropped"),
            (tally.other_ids, "an answer to a request that was not waiting and dropped"),
            (tally.unanswered, "a request to the client past the limit and left unanswered"),
            (tally.too_long, "over the limit, no message by its first bytes, and dropped"),
            (tally.unfinished, "cut off at the end of the output and dropped"),
        ];
        counts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| match count {
                1 => format!("1 line or message from the server was {what}"),
                _ => format!("{count} lines or messages from the server were each {what}"),
            })
            .collect()
    }
}

fn count(counter: &mut u64) -> Heard {
    *counter = counter.saturating_add(1);
    Heard::Nothing
}

fn looks_like_message(bytes: &[u8]) -> bool {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    matches!(first, Some(b'{' | b'['))
}

/// An answer that was matched already, or that needs no matching.
pub(crate) fn answer(outcome: &Outcome<'_>) -> Answer {
    match outcome {
        Outcome::Result(result) => Answer::Result(result.raw().to_owned()),
        Outcome::Error(error) => {
            let (code, message) = message::error_parts(*error);
            Answer::Error { code, message }
        }
    }
}

#[cfg(test)]
mod tests;
