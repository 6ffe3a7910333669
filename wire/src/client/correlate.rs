//! Matches a server's messages against the one pending request. No other message is ever taken for
//! its answer.

use crate::Answer;
use crate::envelope::{
    self, Batch, Envelope, Id, Kind, ScanError, ScanErrorKind, Scanned, ids_of_broken,
    names_protocol, read_torn,
};
use crate::limits::MAX_REPLIES;
use crate::message::{self, RequestId};
use contract::client::ClientCapabilities;

/// How to handle a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Answer(Answer),
    /// The server sent a request; this is the reply to send.
    Reply(String),
    Nothing,
}

/// Waits for the answer and counts the other messages.
#[derive(Debug, Default)]
pub(crate) struct Correlator {
    /// The client capabilities that were declared to the server.
    client: ClientCapabilities,
    tally: Tally,
    replies: usize,
    /// Whether requests from the server are left unanswered.
    is_silent: bool,
}

/// How many messages were ignored, by reason.
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

    /// A correlator that only listens and answers no request from the server.
    pub(crate) fn silent() -> Correlator {
        Correlator { is_silent: true, ..Correlator::default() }
    }

    /// Classifies one message while `waiting` is pending.
    pub(crate) fn hear(&mut self, bytes: &[u8], waiting: &RequestId) -> Heard {
        match envelope::scan(bytes) {
            Ok(Scanned::Message(Envelope { kind, .. })) => self.hear_message(&kind, waiting),
            Ok(Scanned::Batch(batch)) if answers(&batch, waiting) => {
                unreadable("it is in a batch, which was not asked for")
            }
            Ok(Scanned::Batch(_)) => count(&mut self.tally.batches),
            Err(error) => self.hear_broken(bytes, &error, waiting),
        }
    }

    fn hear_message(&mut self, kind: &Kind<'_>, waiting: &RequestId) -> Heard {
        match kind {
            Kind::Response { id: Some(id), outcome } if waiting.is(id) => {
                Heard::Answer(Answer::of(*outcome))
            }
            Kind::Response { .. } => count(&mut self.tally.other_ids),
            Kind::Request { .. } if self.is_silent || self.replies >= MAX_REPLIES => {
                count(&mut self.tally.unanswered)
            }
            Kind::Request { id, method } => {
                self.replies += 1;
                Heard::Reply(message::reply(id, method, &self.client))
            }
            Kind::Notification { .. } => Heard::Nothing,
        }
    }

    /// A line that is not a single message counts as an unreadable answer if it mentions the
    /// pending request's id, or the protocol but no other request's id. Anything else is a log
    /// line.
    fn hear_broken(&mut self, bytes: &[u8], error: &ScanError, waiting: &RequestId) -> Heard {
        let is_answer = match &error.id {
            _ if error.kind == ScanErrorKind::NotAMessage => false,
            Some(id) => waiting.key() == id.key(),
            None => names_protocol(bytes) || ids_of_broken(bytes).iter().any(|id| waiting.is(id)),
        };
        match error.kind {
            _ if is_answer => unreadable(error.to_string()),
            ScanErrorKind::NotJson | ScanErrorKind::NotUtf8 => count(&mut self.tally.not_json),
            _ if error.id.is_some() => count(&mut self.tally.other_ids),
            _ => count(&mut self.tally.not_messages),
        }
    }

    /// Classifies a message that was too long, by its first and last bytes.
    pub(crate) fn hear_too_long(
        &mut self,
        beginning: &[u8],
        end: &[u8],
        limit: usize,
        waiting: &RequestId,
    ) -> Heard {
        let torn = read_torn(beginning, end);
        let is_answer = match &torn.id {
            _ if torn.has_method => false,
            Some(id) => waiting.is(id),
            None => names_protocol(beginning),
        };
        if is_answer {
            return unreadable(format!("a message longer than {limit} bytes"));
        }
        count(&mut self.tally.too_long)
    }

    pub(crate) fn hear_unfinished(&mut self) {
        count(&mut self.tally.unfinished);
    }

    pub(crate) fn stray_answers(&self) -> u64 {
        self.tally.other_ids
    }

    /// Describes the ignored messages in sentences.
    pub(crate) fn notes(&self) -> Vec<String> {
        let tally = &self.tally;
        let counts = [
            (tally.not_json, "not JSON and dropped"),
            (tally.not_messages, "JSON but no JSON-RPC message and dropped"),
            (tally.batches, "in an unexpected batch and dropped"),
            (tally.other_ids, "an answer to a request that was not waiting and dropped"),
            (tally.unanswered, "a request to the client past the limit and left unanswered"),
            (tally.too_long, "over the limit, not the awaited answer by its ends, and dropped"),
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

fn unreadable(reason: impl Into<String>) -> Heard {
    Heard::Answer(Answer::Unreadable(reason.into()))
}

fn count(counter: &mut u64) -> Heard {
    *counter = counter.saturating_add(1);
    Heard::Nothing
}

/// Whether a batch contains an answer to this request.
fn answers(batch: &Batch<'_>, waiting: &RequestId) -> bool {
    let is_answer = |id: Option<&Id<'_>>| id.is_some_and(|id| waiting.is(id));
    batch.elements.iter().any(|element| match &element.message {
        Ok(Envelope { kind: Kind::Response { id, .. }, .. }) => is_answer(id.as_ref()),
        Ok(_) | Err(_) => false,
    })
}

#[cfg(test)]
mod tests;
