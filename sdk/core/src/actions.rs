//! What the shell has to do, in order, as one JSON array.

use contract::surface::EntryId;
use serde::Serialize;
use serde_json::{Value, json};

/// Names a message that the shell keeps.
pub(crate) type Ticket = u32;

/// One thing to do.
#[derive(Debug)]
pub(crate) enum Action {
    /// Fetch the pins by [`crate::Session::pins`], write them, then say so.
    Save,
    /// Keep the message.
    Wait(Ticket),
    /// Send the message.
    Send(Ticket),
    /// Never send the message.
    Drop(Ticket),
    /// Send the message, and hand in its answer.
    Watch(Ticket),
    /// A request of the gate's own.
    ToServer(Message),
    /// What came goes no further.
    Withhold,
    /// To the client, in place of what came.
    ToClient(Message),
    /// The answer to a message that was not sent.
    Answer(Ticket, Message),
    /// The same where the answer is what the server just sent as the answer to a request of the gate's own, with this id:
    /// the shell has it, and need not read it a second time. `ttlMs` is 0 in it.
    AnswerAsSent(Ticket, String),
    Refuse(Refusal),
    /// Come back after so many milliseconds.
    Wake(i64),
}

/// The JSON of a message. A list may have megabytes: it is copied into the text of the actions and not read again.
#[derive(Debug)]
pub(crate) struct Message(String);

impl From<Vec<u8>> for Message {
    /// INVARIANT: the bytes are parts of messages that were read, joined to one. If they were not UTF-8, a `null` reaches a
    /// client that ignores it.
    fn from(message: Vec<u8>) -> Message {
        Message(String::from_utf8(message).unwrap_or_else(|_| "null".to_owned()))
    }
}

impl Action {
    /// The longest part of it, in bytes.
    fn size(&self) -> usize {
        match self {
            Action::ToServer(message) | Action::ToClient(message) | Action::Answer(_, message) => {
                message.0.len()
            }
            _ => 0,
        }
    }

    fn write(&self, out: &mut String) {
        let mut put = |parts: &[&str]| parts.iter().for_each(|part| out.push_str(part));
        match self {
            Action::Save => put(&[r#"{"save":null}"#]),
            Action::Withhold => put(&[r#"{"withhold":null}"#]),
            Action::Wait(ticket) => put(&[r#"{"wait":"#, &ticket.to_string(), "}"]),
            Action::Send(ticket) => put(&[r#"{"send":"#, &ticket.to_string(), "}"]),
            Action::Drop(ticket) => put(&[r#"{"drop":"#, &ticket.to_string(), "}"]),
            Action::Watch(ticket) => put(&[r#"{"watch":"#, &ticket.to_string(), "}"]),
            Action::Wake(time) => put(&[r#"{"wake":"#, &time.to_string(), "}"]),
            Action::ToServer(message) => put(&[r#"{"toServer":"#, &message.0, "}"]),
            Action::ToClient(message) => put(&[r#"{"toClient":"#, &message.0, "}"]),
            Action::Answer(ticket, message) => {
                let ticket = ticket.to_string();
                put(&[r#"{"answer":{"ticket":"#, &ticket, r#","message":"#, &message.0, "}}"]);
            }
            Action::AnswerAsSent(ticket, id) => {
                let ticket = ticket.to_string();
                put(&[r#"{"answerAsSent":{"ticket":"#, &ticket, r#","id":"#, id, "}}"]);
            }
            Action::Refuse(refusal) => {
                // Texts, numbers and values can always be written.
                let refusal = serde_json::to_string(refusal).unwrap_or_default();
                put(&[r#"{"refuse":"#, &refusal, "}"]);
            }
        }
    }
}

/// A request that does not go on.
#[derive(Debug, Serialize)]
pub(crate) struct Refusal {
    pub(crate) ticket: Ticket,
    pub(crate) code: i64,
    /// For the model: nothing in it was not accepted.
    pub(crate) message: String,
    /// For a program.
    pub(crate) data: Value,
    /// What a person can review and approve.
    pub(crate) entry: Option<Reviewable>,
    /// What was found, before and after. The words of the server that were not accepted are in it: it is for a person.
    pub(crate) evidence: Value,
}

/// The entry that a hold is about.
#[derive(Debug, Serialize)]
pub(crate) struct Reviewable {
    #[serde(rename = "type")]
    entry_type: &'static str,
    key: String,
}

impl From<&EntryId> for Reviewable {
    fn from(id: &EntryId) -> Reviewable {
        Reviewable { entry_type: id.entry_type.as_str(), key: id.key.clone() }
    }
}

/// Why a request does not go on, other than by what a server says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The message can be read in several ways, or is no message.
    BadMessage,
    /// The server lists no such tool.
    UnknownTool,
    /// The server gave no answer in time.
    Timeout,
    /// The server could not be reached.
    Unreachable,
    /// The pins could not be written.
    Unsaved,
}

impl Fault {
    /// The code and the reason of INTERFACES.
    const fn names(self) -> (i64, &'static str) {
        match self {
            Fault::BadMessage => (-32600, "ambiguous_message"),
            Fault::UnknownTool => (1013, "unknown_tool"),
            Fault::Timeout => (-32011, "timeout"),
            Fault::Unreachable => (-32011, "upstream_unreachable"),
            Fault::Unsaved => (-32012, "internal"),
        }
    }

    pub(crate) fn refusal(self, ticket: Ticket, server: &str, message: String) -> Refusal {
        let (code, reason) = self.names();
        let data = json!({"reason": reason, "server": server});
        Refusal { ticket, code, message, data, entry: None, evidence: json!([]) }
    }
}

/// Nothing to do is no text.
pub(crate) fn text_of(actions: &[Action]) -> Option<String> {
    const AROUND: usize = 64;
    if actions.is_empty() {
        return None;
    }
    let size = actions.iter().map(|action| action.size() + AROUND).sum();
    let mut text = String::with_capacity(size);
    for (at, action) in actions.iter().enumerate() {
        text.push(if at == 0 { '[' } else { ',' });
        action.write(&mut text);
    }
    text.push(']');
    Some(text)
}
