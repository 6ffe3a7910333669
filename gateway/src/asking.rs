//! Requests of servers to clients (sampling, elicitation, roots). Each gets an id of the gateway's
//! own on its way to the client, and the client's response goes back only to the server that asked.

use crate::frame::{Edits, member};
use crate::link::Link;
use crate::node::Node;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::oneshot;
use wire::envelope::{Envelope, Kind, Scanned, scan};

/// The most questions that wait for a client's response. Further ones get an error.
const MAX_QUESTIONS: usize = 10_000;

/// The client capabilities that allow a server to ask it something.
const ASKED_BY: [&str; 3] = ["sampling", "elicitation", "roots"];

/// The part of a client's capabilities that allows a server to ask it something, as JSON.
pub(crate) fn askable(capabilities: &[u8]) -> Vec<u8> {
    let mut kept = vec![b'{'];
    for name in ASKED_BY {
        let Some(value) = member(capabilities, name) else { continue };
        if kept.len() > 1 {
            kept.push(b',');
        }
        kept.extend_from_slice(format!("\"{name}\":").as_bytes());
        kept.extend_from_slice(value);
    }
    kept.push(b'}');
    kept
}

/// Whether the capabilities offered to a server allow this request.
pub(crate) fn is_offered(capabilities: &[u8], method: &str) -> bool {
    let capability = match method {
        "sampling/createMessage" => "sampling",
        "elicitation/create" => "elicitation",
        "roots/list" => "roots",
        _ => return false,
    };
    member(capabilities, capability).is_some()
}

/// A server's message as passed to the client.
#[derive(Debug)]
pub(crate) struct Passed {
    pub(crate) message: Vec<u8>,
    /// The number of the question, if the message asks one.
    pub(crate) question: Option<u64>,
}

/// The questions that belong to one request of a client. They end with that request, answered or
/// not.
#[derive(Debug)]
pub(crate) struct AskedFor {
    node: Arc<Node>,
    session: Option<u64>,
    numbers: Vec<u64>,
}

impl AskedFor {
    pub(crate) fn new(node: Arc<Node>, session: Option<u64>) -> AskedFor {
        AskedFor { node, session, numbers: Vec::new() }
    }

    /// Translates a server's message for the client of the request.
    pub(crate) fn pass(&mut self, link: &Arc<Link>, message: &[u8]) -> Option<Vec<u8>> {
        let Passed { message, question } = self.node.questions.pass(self.session, link, message)?;
        self.numbers.extend(question);
        Some(message)
    }
}

impl Drop for AskedFor {
    fn drop(&mut self) {
        let Some(session) = self.session else { return };
        self.numbers.iter().for_each(|number| self.node.questions.end(session, *number));
    }
}

/// The open questions of servers to clients.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    next: AtomicU64,
    open: Mutex<HashMap<(u64, u64), Question>>,
}

/// The receiver of the answer.
#[derive(Debug)]
enum Question {
    /// A server, and the raw id that it gave the question.
    Server { link: Weak<Link>, id: Vec<u8> },
    /// A task that repeats a request with the answer.
    Task(oneshot::Sender<Vec<u8>>),
}

impl Question {
    fn is_open(&self) -> bool {
        match self {
            Question::Server { link, .. } => link.strong_count() > 0,
            Question::Task(sender) => !sender.is_closed(),
        }
    }
}

impl Questions {
    /// Translates a server's message for the client of a session. A request gets an id of the
    /// gateway's own. Returns `None` if the message must not be passed on: a server may only ask
    /// what it was offered.
    pub(crate) fn pass(
        &self,
        session: Option<u64>,
        link: &Arc<Link>,
        message: &[u8],
    ) -> Option<Passed> {
        let Ok(Scanned::Message(envelope)) = scan(message) else { return None };
        let told = link.tasks().told(message);
        let Kind::Request { id, method } = &envelope.kind else {
            let message = self.with_our_id(session, link, &envelope, told.ok()?)?;
            return Some(Passed { message, question: None });
        };
        let Ok(told) = told else {
            refuse(link, id.raw());
            return None;
        };
        if method == "ping" {
            link.tell(&[br#"{"jsonrpc":"2.0","id":"#, id.raw(), br#","result":{}}"#].concat());
            return None;
        }
        let session = session.filter(|_| link.offers(method));
        let question = || Question::Server { link: Arc::downgrade(link), id: id.raw().to_vec() };
        let asked = session.and_then(|session| self.keep(session, question()));
        let Some(number) = asked else {
            refuse(link, id.raw());
            return None;
        };
        let mut edits = Edits::of(&told);
        if let Some(own) = member(&told, "id") {
            edits.replace(own, format!("\"hp-{number}\""));
        }
        Some(Passed { message: edits.finish(), question: Some(number) })
    }

    /// Translates a notification of the server. One that cancels a question ends it, and names it
    /// by the client's id.
    fn with_our_id(
        &self,
        session: Option<u64>,
        link: &Arc<Link>,
        envelope: &Envelope<'_>,
        told: Cow<'_, [u8]>,
    ) -> Option<Vec<u8>> {
        if !matches!(&envelope.kind, Kind::Notification { method } if method == "notifications/cancelled")
        {
            return Some(told.into_owned());
        }
        let cancelled = envelope.params.as_ref()?.request_id?;
        let mut open = self.open();
        let key = open.iter().find_map(|(key, question)| match question {
            Question::Server { link: asking, id }
                if Some(key.0) == session
                    && id == cancelled
                    && asking.ptr_eq(&Arc::downgrade(link)) =>
            {
                Some(*key)
            }
            Question::Server { .. } | Question::Task(_) => None,
        })?;
        open.remove(&key);
        let mut edits = Edits::of(&told);
        let own = member(member(&told, "params")?, "requestId")?;
        edits.replace(own, format!("\"hp-{}\"", key.1));
        Some(edits.finish())
    }

    /// Ends a question whose request has ended: it will not be answered.
    fn end(&self, session: u64, number: u64) {
        let ended = self.open().remove(&(session, number));
        if let Some(Question::Server { link, id }) = ended
            && let Some(link) = link.upgrade()
        {
            refuse(&link, &id);
        }
    }

    /// Opens a question of the gateway itself. Returns its raw id, and a channel for the client's
    /// response.
    pub(crate) fn ask(&self, session: u64) -> Option<(String, oneshot::Receiver<Vec<u8>>)> {
        let (sender, receiver) = oneshot::channel();
        let number = self.keep(session, Question::Task(sender))?;
        Some((format!("\"hp-{number}\""), receiver))
    }

    fn keep(&self, session: u64, question: Question) -> Option<u64> {
        let mut open = self.open();
        open.retain(|_, question| question.is_open());
        if open.len() >= MAX_QUESTIONS {
            return None;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        open.insert((session, number), question);
        Some(number)
    }

    /// Passes a client's response to the server that asked. A response to no question is dropped.
    pub(crate) fn answer(&self, session: u64, envelope: &Envelope<'_>) {
        let Kind::Response { id: Some(id), .. } = &envelope.kind else { return };
        let number = std::str::from_utf8(id.key())
            .ok()
            .and_then(|key| key.strip_prefix("\"hp-")?.strip_suffix('"')?.parse::<u64>().ok());
        let Some(number) = number else { return };
        let Some(question) = self.open().remove(&(session, number)) else { return };
        match question {
            Question::Server { link, id: own } => {
                let Some(link) = link.upgrade() else { return };
                let Ok(answer) = link.tasks().asked(envelope.raw) else {
                    return refuse(&link, &own);
                };
                let mut edits = Edits::of(&answer);
                if let Some(id) = member(&answer, "id") {
                    edits.replace(id, own);
                }
                link.tell(&edits.finish());
            }
            // The task may have stopped waiting.
            Question::Task(sender) => drop(sender.send(envelope.raw.to_vec())),
        }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<(u64, u64), Question>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Refuses a server's request because the client cannot be asked.
pub(crate) fn refuse(link: &Link, id: &[u8]) {
    let words = "the client cannot be asked through this gateway";
    link.tell(&crate::frame::error(id, -32601, words));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_capabilities_to_be_asked_are_offered() {
        let kept = askable(br#"{"roots":{"listChanged":true},"x":{},"sampling":{},"tasks":{}}"#);
        assert_eq!(kept, br#"{"sampling":{},"roots":{"listChanged":true}}"#);
        assert_eq!(askable(b"{}"), b"{}");
        assert_eq!(askable(b""), b"{}");
    }

    #[test]
    fn a_server_may_ask_only_what_it_was_offered() {
        let offered = br#"{"elicitation":{}}"#;
        assert!(is_offered(offered, "elicitation/create"));
        for method in ["sampling/createMessage", "roots/list", "tools/call", "elicitation"] {
            assert!(!is_offered(offered, method), "{method}");
        }
        assert!(!is_offered(b"{}", "elicitation/create"));
    }
}
