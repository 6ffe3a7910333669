//! One session: what of the client's messages goes on, waits or is refused, and what of the server's is shown.

mod answering;
mod judging;
mod listing;
mod reviewing;

pub use reviewing::RepinError;

use crate::actions::{Action, Fault, Ticket, text_of};
use crate::options::{Options, OptionsError};
use crate::pins::{Kept, PinsError};
use contract::surface::ListKind;
use envelope::{Envelope, Id, Kind, Outcome, Params, Scanned, key_of, members, scan};
use gate::by_the_call::CallRulesCache;
use gate::comparing::Compared;
use gate::judge::SurfaceJudgement;
use gate::method::Method;
use gate::pins::PinBook;
use gate::posture::Settings;
use gate::server::ServerId;
use gate::shown::ListMode;
use gate::view::{HeldTools, View, with_member};
use judging::Greeting;
use listing::Lists;
use std::collections::HashSet;
use std::sync::Arc;

/// The most requests that wait for a list. An application that asks for more at once is refused the rest.
const MAX_WAITING: usize = 10_000;
/// The most handshakes without an answer.
const MAX_WATCHED: usize = 100;
/// What each request says where there is no session.
const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// Why a session cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Options(#[from] OptionsError),
    #[error(transparent)]
    Pins(#[from] PinsError),
}

/// A message of the client that waits for a list.
#[derive(Debug)]
struct Waiting {
    ticket: Ticket,
    list: ListKind,
    message: Box<str>,
    /// The id, as ids are compared.
    id: Box<[u8]>,
    /// When a call came, if the list had been asked for already.
    joined_at: Option<i64>,
    /// The list was asked for once more on its account, because it changed meanwhile or was too old when the message came.
    has_waited_twice: bool,
}

/// The gate around one session.
#[derive(Debug)]
pub struct Session {
    server: ServerId,
    settings: Settings,
    mode: ListMode,
    relist_max_age: i64,
    kept: Kept,
    greeting: Greeting,
    lists: Lists,
    /// The page that was heard last, with the id that it answers: the shell has it until the next message.
    heard: Option<(Arc<str>, String)>,
    /// Requests for a handshake whose answers are shaped.
    watched: HashSet<Box<[u8]>>,
    waiting: Vec<Waiting>,
    /// `_meta` of the client's requests, where each says for itself what a session says once.
    meta: Option<Box<str>>,
    compared: Compared,
    call_rules: CallRulesCache,
    held_tools: HeldTools,
    view: View,
    judgement: Option<SurfaceJudgement>,
    /// The server said something else since the judgement was made.
    is_unjudged: bool,
    /// Pins that are not written yet: nothing goes on before they are.
    unsaved: Option<PinBook>,
}

impl Session {
    /// `pins` is what the store has of the server. `seed` is random, so that no client has the ids of the gate's requests.
    pub fn open(options: &str, pins: Option<&str>, seed: &str) -> Result<Session, OpenError> {
        let options = Options::read(options)?;
        let kept = match pins {
            Some(pins) => Kept::read(pins, &options.server)?,
            None => Kept::default(),
        };
        Ok(Session {
            settings: options.settings(),
            mode: options.list,
            relist_max_age: options.relist_max_age_milliseconds(),
            server: options.server,
            kept,
            greeting: Greeting::Unknown,
            lists: Lists::new(seed),
            heard: None,
            watched: HashSet::new(),
            waiting: Vec::new(),
            meta: None,
            compared: Compared::default(),
            call_rules: CallRulesCache::default(),
            held_tools: HeldTools::default(),
            view: View::default(),
            judgement: None,
            is_unjudged: true,
            unsaved: None,
        })
    }

    /// Takes a message of the client. `None`: it goes on as it is.
    pub fn client(&mut self, ticket: Ticket, message: &str, now: i64) -> Option<String> {
        let mut out = Vec::new();
        self.heard = None;
        match scan(message.as_bytes()) {
            Ok(Scanned::Message(envelope)) => {
                self.take_from_client(ticket, &envelope, message, now, &mut out);
            }
            Ok(Scanned::Batch(_)) => {
                self.refuse_message(ticket, "several messages at once are not passed on", &mut out);
            }
            Err(error) => self.refuse_message(ticket, &error.to_string(), &mut out),
        }
        text_of(&out)
    }

    fn refuse_message(&self, ticket: Ticket, why: &str, out: &mut Vec<Action>) {
        let message = format!("○ holdpoint — {why}");
        out.push(Action::Refuse(Fault::BadMessage.refusal(ticket, self.server.as_str(), message)));
    }

    fn take_from_client(
        &mut self,
        ticket: Ticket,
        envelope: &Envelope<'_>,
        message: &str,
        now: i64,
        out: &mut Vec<Action>,
    ) {
        let params = envelope.params.as_ref();
        match &envelope.kind {
            Kind::Response { .. } => {}
            Kind::Notification { method } if !matches!(Method::of(method), Method::Other) => {
                // The server may carry it out all the same; its result is dropped.
                self.refuse_message(ticket, "a request without an id is not passed on", out);
            }
            Kind::Notification { method } if method == "notifications/cancelled" => {
                self.cancel(ticket, params, out);
            }
            Kind::Notification { .. } => {}
            Kind::Request { id, method } => {
                self.hear_meta(params);
                match Method::of(method) {
                    Method::Handshake if self.watched.len() < MAX_WATCHED => {
                        self.watched.insert(id.key().into());
                        out.push(Action::Watch(ticket));
                    }
                    Method::Handshake => {
                        self.refuse_message(ticket, "too many handshakes have no answer", out);
                    }
                    Method::Ping | Method::Other => {}
                    kind @ (Method::List(_) | Method::Use(_)) => {
                        self.take_gated(ticket, envelope, id, kind, message, now, out);
                    }
                }
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one message, and when it came")]
    fn take_gated(
        &mut self,
        ticket: Ticket,
        envelope: &Envelope<'_>,
        id: &Id<'_>,
        kind: Method,
        message: &str,
        now: i64,
        out: &mut Vec<Action>,
    ) {
        let is_fresh = |list: ListKind| {
            self.judgement.is_some()
                && self.unsaved.is_none()
                && self.lists.is_fresh(list, now, self.relist_max_age)
        };
        match kind.list() {
            Some(list) if !is_fresh(list) => {
                if self.waiting.len() >= MAX_WAITING {
                    return self.refuse_message(ticket, "too many requests wait for a list", out);
                }
                self.waiting.push(Waiting {
                    ticket,
                    list,
                    message: message.into(),
                    id: id.key().into(),
                    joined_at: (matches!(kind, Method::Use(_)) && self.lists.is_open(list))
                        .then_some(now),
                    has_waited_twice: false,
                });
                out.push(Action::Wait(ticket));
                self.fetch(list, now, out);
            }
            Some(_) | None => self.decide(ticket, envelope, id, kind, out),
        }
    }

    /// A request that waits here is cancelled here.
    fn cancel(&mut self, ticket: Ticket, params: Option<&Params<'_>>, out: &mut Vec<Action>) {
        let Some(id) = params.and_then(|params| params.request_id) else { return };
        let key = key_of(id);
        let found = self.waiting.iter().position(|waiting| *waiting.id == *key);
        if let Some(found) = found {
            let cancelled = self.waiting.swap_remove(found);
            out.extend([Action::Drop(cancelled.ticket), Action::Drop(ticket)]);
        }
    }

    /// Without a session the gate's own requests say what the client's say.
    fn hear_meta(&mut self, params: Option<&Params<'_>>) {
        let Some(meta) = params.and_then(|params| params.meta) else { return };
        if !members(meta).any(|(name, _)| name == META_VERSION) {
            return;
        }
        let meta = with_member(meta, "progressToken", None);
        if self.meta.as_deref().map(str::as_bytes) != Some(meta.as_slice()) {
            self.meta = String::from_utf8(meta).ok().map(Into::into);
        }
    }

    /// Takes a message of the server. `None`: it goes on as it is.
    pub fn server(&mut self, message: &str, now: i64) -> Option<String> {
        let mut out = Vec::new();
        self.heard = None;
        match scan(message.as_bytes()) {
            Ok(Scanned::Message(envelope)) => self.take_from_server(&envelope, now, &mut out),
            // What two readers could read differently does not pass.
            Ok(Scanned::Batch(_)) | Err(_) => out.push(Action::Withhold),
        }
        text_of(&out)
    }

    fn take_from_server(&mut self, envelope: &Envelope<'_>, now: i64, out: &mut Vec<Action>) {
        match &envelope.kind {
            Kind::Response { id: Some(id), outcome } => {
                if self.lists.is_own(id) {
                    self.hear(id, *outcome, now, out);
                    // The client never asked for it.
                    if out.is_empty() {
                        out.push(Action::Withhold);
                    }
                } else if self.watched.remove(id.key())
                    && let Outcome::Result(result) = outcome
                {
                    self.show_handshake(envelope, result, out);
                }
            }
            Kind::Notification { method } => {
                let lists: &[ListKind] = match &**method {
                    "notifications/tools/list_changed" => &[ListKind::Tools],
                    "notifications/prompts/list_changed" => &[ListKind::Prompts],
                    "notifications/resources/list_changed" => {
                        &[ListKind::Resources, ListKind::ResourceTemplates]
                    }
                    _ => &[],
                };
                lists.iter().for_each(|list| self.lists.outdate(*list));
            }
            Kind::Response { id: None, .. } | Kind::Request { .. } => {}
        }
    }

    /// Looks at the time: lists that were asked for long ago are not waited for.
    pub fn tick(&mut self, now: i64) -> Option<String> {
        let mut out = Vec::new();
        if self.lists.are_overdue(now) {
            self.end_listings(Fault::Timeout, "the server did not answer in time", &mut out);
        }
        text_of(&out)
    }

    /// A request of the gate's own could not be sent.
    pub fn lost(&mut self) -> Option<String> {
        let mut out = Vec::new();
        self.end_listings(Fault::Unreachable, "the server cannot be reached", &mut out);
        text_of(&out)
    }
}

#[cfg(test)]
mod tests;
