//! What the client gets from a stopped server: only that handshakes and `ping` succeed, but nothing
//! that the server says.

use super::Session;
use crate::call::{Call, Method, Subject};
use crate::decide::Ruling;
use crate::reason::ReasonCode;
use crate::refusal::Refusal;
use crate::requests::{Dispatched, DispatchedKind};
use crate::situation::Situation;
use serde_json::{Value, json};
use std::time::Instant;
use wire::envelope::{Id, Outcome};

/// Replaces the text of an error.
const WORDS: &str =
    "○ holdpoint — the server answered with an error. It is stopped, so its words are not shown.";

impl Session {
    /// Answers a request in place of a server that was stopped after the request was sent. `ping`
    /// reveals only that the server is alive; every other response is withheld.
    pub(super) fn answer_stopped(
        &self,
        id: &Id<'_>,
        dispatched: &Dispatched,
        outcome: &Outcome<'_>,
        situation: &Situation,
    ) {
        let is_ping = dispatched.kind == DispatchedKind::Ping;
        match outcome {
            Outcome::Result(_) if is_ping => {
                self.answer_client(id.raw(), &answer(id, "result", "{}"));
            }
            Outcome::Error(error) if is_ping => {
                self.answer_client(id.raw(), &without_words(id, error));
            }
            Outcome::Result(_) | Outcome::Error(_) => self.withhold(id, dispatched, situation),
        }
    }

    /// Refuses a request whose response is withheld, with the reason for which it would be refused
    /// now.
    fn withhold(&self, id: &Id<'_>, dispatched: &Dispatched, situation: &Situation) {
        let server = situation.server.as_str();
        let data = json!({"count": 1, "reason": "server_stopped"});
        self.server.recorder.event(server, "mcp.response.dropped", None, &data);
        let any = Call {
            method: "",
            kind: Method::Other,
            target: None,
            subject: Subject::Server,
            arguments: None,
            bytes: dispatched.bytes,
            depth: 0,
            session: None,
        };
        let principal = self.state().client.principal.clone();
        let receipt_id = dispatched.receipt_id.to_string();
        let now = Instant::now();
        let path = &self.server.path;
        let decided = path.decide(&any, &principal, situation, &self.held_tools, now);
        let refusal = match decided.ruling {
            Ruling::Hold(standing) => Refusal::held(&standing, server, None, &receipt_id),
            Ruling::Deny(denial) => Refusal::denied(&denial, server, &receipt_id),
            Ruling::Allow => {
                return self.refuse_sized(id.raw(), ReasonCode::Internal, dispatched.bytes);
            }
        };
        self.answer_client(id.raw(), &refusal.after_dispatch().to_message(id.raw()));
    }
}

/// The server's error with its code, but without its text.
pub(super) fn without_words(id: &Id<'_>, error: &[u8]) -> Vec<u8> {
    let error: Option<Value> = serde_json::from_slice(error).ok();
    let code = error.and_then(|error| error.get("code")?.as_i64()).unwrap_or_default();
    answer(id, "error", &json!({"code": code, "message": WORDS}).to_string())
}

fn answer(id: &Id<'_>, member: &str, value: &str) -> Vec<u8> {
    let beginning = br#"{"jsonrpc":"2.0","id":"#.as_slice();
    let end = format!(r#","{member}":{value}}}"#);
    [beginning, id.raw(), end.as_bytes()].concat()
}
