//! Asking the person at the client where there is no session: the held call is answered with a question, and the client
//! calls again with what the person said (`input_required`, revision 2026-07-28).
//!
//! A question has an unguessable token. It counts once, for one entry as it was then, and for a while.

use super::{Passage, Session, is_settleable};
use crate::recorder::now;
use crate::requests::Asking;
use crate::server::asking::{ANSWER_PATIENCE, MAX_QUESTIONS, Said, parameters, read_answer};
use crate::view::{Standing, with_member};
use contract::client::ClientCapabilities;
use contract::hash::EntryHash;
use contract::surface::{Entry, EntryId};
use serde_json::json;
use std::collections::{HashMap, HashSet};
use std::time::Instant;
use wire::envelope::{Envelope, Kind, Params, members};

/// Our tokens begin so; a server's own would not be one of ours.
const TOKEN: &str = "holdpoint-input-";
/// What our question is called among those that a client is asked at once.
const QUESTION: &str = "holdpoint";
/// The most tokens of one question. A further one takes the place of the oldest.
const MAX_TOKENS: usize = 10;
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// A question that a client has not come back with.
#[derive(Debug)]
pub(super) struct OpenQuestion {
    entry: EntryId,
    /// What would be approved: nothing else, whatever the server says meanwhile.
    hash: Option<EntryHash>,
    deadline: Instant,
}

impl OpenQuestion {
    /// What is asked; calls that are made side by side ask the same, each with its own token.
    fn subject(&self) -> (&EntryId, Option<EntryHash>) {
        (&self.entry, self.hash)
    }
}

/// Questions by their tokens.
#[derive(Debug, Default)]
pub(crate) struct OpenQuestions(HashMap<String, OpenQuestion>);

impl OpenQuestions {
    /// Returns whether there is room for the question. A question that is open already always has room.
    fn open(&mut self, token: String, question: OpenQuestion, now: Instant) -> bool {
        self.0.retain(|_, open| open.deadline > now);
        let subjects: HashSet<_> = self.0.values().map(OpenQuestion::subject).collect();
        if subjects.len() >= MAX_QUESTIONS && !subjects.contains(&question.subject()) {
            return false;
        }
        let same = self.0.iter().filter(|(_, open)| open.subject() == question.subject());
        if same.clone().count() >= MAX_TOKENS {
            let oldest = same.min_by_key(|(_, open)| open.deadline).map(|(token, _)| token.clone());
            oldest.and_then(|oldest| self.0.remove(&oldest));
        }
        self.0.insert(token, question);
        true
    }

    /// The question of a token, which counts no more after it.
    fn take(&mut self, token: &str, now: Instant) -> Option<OpenQuestion> {
        self.0.remove(token).filter(|question| question.deadline > now)
    }
}

/// A call that a client came back with, as it goes on.
pub(super) struct Returned {
    /// The call without what was said to us.
    pub(super) frame: Vec<u8>,
    pub(super) asking: Asking,
}

impl Session {
    /// The answer to a held call that asks the person at the client; nothing where they cannot be asked.
    pub(super) fn input_required(
        &self,
        passage: &Passage<'_>,
        standing: &Standing,
    ) -> Option<Vec<u8>> {
        let may_ask = self.server.settings.asks_in_client
            && passage.asking != Asking::Done
            && passage.request.protocol_version.is_some()
            && is_settleable(standing)
            && passage.request.params.is_some_and(can_be_asked);
        let target = passage.request.call.target.filter(|_| may_ask)?;
        let entry = EntryId::new(target.entry_type, target.key);
        let change = {
            let seen = self.view().known().seen.clone();
            let mut judge = self.server.judge();
            judge.change_of(&seen, &entry, now()).ok().flatten()?
        };
        let hash = change.after.as_ref().map(Entry::entry_hash);
        let token = new_token()?;
        let now = Instant::now();
        let question = OpenQuestion { entry, hash, deadline: now + ANSWER_PATIENCE };
        if !self.state().open_questions.open(token.clone(), question, now) {
            return None;
        }
        let shown = (passage.asking == Asking::Shows).then_some(&change);
        let mut params = parameters(standing.message(), shown);
        if let Some(params) = params.as_object_mut() {
            params.insert("mode".to_owned(), "form".into());
        }
        let result = json!({
            "resultType": "input_required",
            "inputRequests": {QUESTION: {"method": "elicitation/create", "params": params}},
            "requestState": token,
        });
        let beginning = br#"{"jsonrpc":"2.0","id":"#.as_slice();
        let result = result.to_string();
        let id = passage.request.id.raw();
        Some([beginning, id, br#","result":"#, result.as_bytes(), b"}"].concat())
    }

    /// Takes what the person said out of a call that a client came back with. Nothing where it is not one of ours.
    pub(super) fn returned(&self, envelope: &Envelope<'_>) -> Option<Returned> {
        let params = envelope.params.as_ref().filter(|_| self.server.settings.asks_in_client)?;
        let token: String = serde_json::from_slice(member(params.raw, "requestState")?).ok()?;
        if !token.starts_with(TOKEN) {
            return None;
        }
        // INVARIANT: a token counts once, and what was said to us is not for the server.
        let question = self.state().open_questions.take(&token, Instant::now());
        let said = question.map_or(Said::Keep, |question| self.hear(&question, envelope, params));
        let kept = with_member(params.raw, "requestState", None);
        let kept = with_member(&kept, "inputResponses", None);
        let frame = with_member(envelope.raw, "params", Some(&kept));
        let asking = if said == Said::Show { Asking::Shows } else { Asking::Done };
        Some(Returned { frame, asking })
    }

    fn hear(&self, question: &OpenQuestion, envelope: &Envelope<'_>, params: &Params<'_>) -> Said {
        let Kind::Request { method, .. } = &envelope.kind else { return Said::Keep };
        let target = crate::call::Method::of(method).target(Some(params));
        let is_it = target
            .is_some_and(|target| question.entry == EntryId::new(target.entry_type, target.key));
        let answer = member(params.raw, "inputResponses").and_then(|said| member(said, QUESTION));
        let Some(answer) = answer.filter(|_| is_it) else { return Said::Keep };
        let said = read_answer(&[br#"{"result":"#.as_slice(), answer, b"}"].concat());
        if said == Said::Approve {
            self.approve_for(&question.entry, question.hash);
        }
        said
    }

    /// Records that the person at the client approved an entry, if it is still what they were asked about.
    pub(crate) fn approve_for(&self, entry: &EntryId, hash: Option<EntryHash>) {
        let (seen, by) = {
            let state = self.state();
            (state.view.known().seen.clone(), state.client.principal.subject.clone())
        };
        let approved = {
            let mut judge = self.server.judge();
            judge.approve(&seen, entry, hash, &by, now())
        };
        if let Err(error) = approved.and_then(|_| self.server.look_again()) {
            self.remark(&format!("the approval could not be recorded: {error}"));
        }
    }
}

/// Whether the parameters of a call say that its client shows questions, and carry no answers to others: those would get
/// lost.
fn can_be_asked(params: &[u8]) -> bool {
    let is_answer = |(name, _): (std::borrow::Cow<'_, str>, &[u8])| {
        matches!(&*name, "requestState" | "inputResponses")
    };
    let meta = member(params, "_meta");
    let capabilities = meta.and_then(|meta| member(meta, META_CAPABILITIES));
    let asked = capabilities.and_then(|capabilities| member(capabilities, "elicitation"));
    // One that names its ways names this one, or has none to name.
    let shows_forms = asked.is_some_and(|asked| {
        asked.first() == Some(&b'{')
            && (members(asked).next().is_none() || member(asked, "form").is_some())
    });
    shows_forms && !members(params).any(is_answer)
}

/// What a client says in a `_meta` that it can do, where that can be remembered.
pub(super) fn capabilities_in(meta: &[u8]) -> Option<ClientCapabilities> {
    ClientCapabilities::read(member(meta, META_CAPABILITIES)?).ok()
}

fn member<'a>(object: &'a [u8], name: &str) -> Option<&'a [u8]> {
    members(object).find(|(known, _)| known == name).map(|(_, value)| value)
}

fn new_token() -> Option<String> {
    let mut random = [0_u8; 16];
    getrandom::fill(&mut random).ok()?;
    Some(format!("{TOKEN}{}", hex::encode(random)))
}
