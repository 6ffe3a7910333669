//! The gate's own requests to the server, and its questions to the client. Their ids are
//! unguessable.

use super::{Driver, Event, RequestNumber};
use crate::errands::{Errand, OwnMessage};
use crate::reason::ReasonCode;
use crate::session::{OwnAnswer, Session};
use serde_json::json;
use wire::envelope::members;

impl Driver {
    /// Sends one of the gate's own requests.
    pub(super) fn ask(
        &mut self,
        session: &Session,
        request: RequestNumber,
        method: &'static str,
        cursor: Option<&str>,
    ) -> Option<Event> {
        let Some(id) = self.new_id(session, request) else { return Some(without_id(request)) };
        let mut params = Vec::new();
        let meta = {
            let mut state = session.state();
            state.requests.add_own(id.clone().into_bytes());
            state.client.stateless_meta.clone()
        };
        if let Some(cursor) = cursor {
            params.push(format!("\"cursor\":{}", json!(cursor)));
        }
        if let Some(meta) = &meta {
            params.push(format!("\"_meta\":{}", own_meta(meta)));
        }
        let frame = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{}}}}}"#,
            params.join(",")
        );
        let version = meta.as_deref().and_then(crate::session::version_in);
        let message = OwnMessage { frame, method, id: Some(id), protocol_version: version };
        session.errand(Errand::Send(message));
        None
    }

    /// Sends the server the client's handshake, which the gate has already answered itself.
    pub(super) fn greet(&mut self, session: &Session, request: RequestNumber) -> Option<Event> {
        let kept = session.state().kept_greeting.clone();
        let (Some(kept), Some(id)) = (kept, self.new_id(session, request)) else {
            return Some(without_id(request));
        };
        let method = "initialize";
        let params = String::from_utf8_lossy(&kept.params).into_owned();
        let frame =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        session.state().requests.add_own(id.clone().into_bytes());
        let own = OwnMessage { frame, method, id: Some(id), protocol_version: None };
        session.errand(Errand::Send(own));
        None
    }

    pub(super) fn give_up(&mut self, session: &Session, request: RequestNumber) {
        if let Some(id) = self.forget_number(session, request) {
            session.state().requests.end_own(&id);
            session.errand(Errand::GiveUp { id, mark: None });
        }
    }

    /// Asks the person at the client.
    pub(super) fn question(
        &mut self,
        session: &Session,
        question: RequestNumber,
        params: &serde_json::Value,
    ) -> Option<Event> {
        let Some(id) = self.new_id(session, question) else {
            return Some(Event::NothingToShow { question });
        };
        session.state().asked.insert(id.clone().into_bytes());
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"elicitation/create","params":{params}}}"#
        );
        session.tell_client(message.as_bytes());
        None
    }

    /// A new id for one of our requests, with its quotes. Only the server or client that receives
    /// it can answer it.
    fn new_id(&mut self, session: &Session, number: RequestNumber) -> Option<String> {
        let mut random = [0_u8; 16];
        getrandom::fill(&mut random).ok()?;
        let id = format!("\"hp-{}\"", hex::encode(random));
        let kept = self.kept(session);
        kept.ids.insert(number, id.clone().into_bytes());
        kept.numbers.insert(id.clone().into_bytes(), number);
        Some(id)
    }

    pub(super) fn forget_id(&mut self, session: &Session, id: &[u8]) -> Option<RequestNumber> {
        let kept = self.kept(session);
        let number = kept.numbers.remove(id)?;
        kept.ids.remove(&number);
        Some(number)
    }

    pub(super) fn forget_number(
        &mut self,
        session: &Session,
        number: RequestNumber,
    ) -> Option<Vec<u8>> {
        let kept = self.kept(session);
        let id = kept.ids.remove(&number)?;
        kept.numbers.remove(&id);
        Some(id)
    }
}

/// The result for a request that cannot be sent because there is no randomness for its id.
fn without_id(request: RequestNumber) -> Event {
    Event::Answered { request, answer: OwnAnswer::Failed(ReasonCode::Internal) }
}

/// The part of a client's `_meta` that accompanies our own requests: what the protocol requires in
/// each. The rest belongs to the client's request, above all its progress token.
fn own_meta(meta: &[u8]) -> String {
    const OWN: [&str; 3] = ["protocolVersion", "clientInfo", "clientCapabilities"];
    let is_own = |name: &str| {
        name.strip_prefix("io.modelcontextprotocol/").is_some_and(|name| OWN.contains(&name))
    };
    let own = members(meta).filter(|(name, _)| is_own(name));
    let own =
        own.map(|(name, value)| format!("{}:{}", json!(name), String::from_utf8_lossy(value)));
    format!("{{{}}}", own.collect::<Vec<_>>().join(","))
}
