//! Asking the person at the client where there is no session: a call that is held, or that they have to allow, is answered
//! with a question, and the client calls again with what the person said (`input_required`, revision 2026-07-28).
//!
//! A question has an unguessable token. It counts once, for one entry as it was then, and for a while; one about a call
//! counts for the same arguments alone.

use super::{Passage, Session, is_settleable};
use crate::decide::AwaitedApproval;
use crate::recorder::now;
use crate::requests::{Asking, CallAnswer};
use crate::server::asking::{
    MAX_QUESTIONS, Said, call_in_words, call_parameters, parameters, read_answer,
};
use crate::server::driver::SessionWake;
use contract::client::ClientCapabilities;
use contract::hash::EntryHash;
use contract::surface::{Entry, EntryId};
use gate::view::{Standing, with_member};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
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
    about: Subject,
    deadline: Instant,
}

/// What of an entry is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Subject {
    /// Its change. This would be approved: nothing else, whatever the server says meanwhile.
    Change(Option<EntryHash>),
    /// One call of it, by a hash of the arguments.
    Call { contract: EntryHash, arguments: [u8; 32] },
}

impl OpenQuestion {
    /// What is asked; calls that are made side by side ask the same, each with its own token.
    fn subject(&self) -> (&EntryId, Subject) {
        (&self.entry, self.about)
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
            && is_settleable(standing);
        let target = passage.request.call.target.filter(|_| may_ask)?;
        let entry = EntryId::new(target.entry_type, target.key);
        let change = {
            let seen = self.view().known().seen.clone();
            let mut judge = self.server.judge();
            judge.change_of(&seen, &entry, now()).ok().flatten()?
        };
        let about = Subject::Change(change.after.as_ref().map(Entry::entry_hash));
        let shown = (passage.asking == Asking::Shows).then_some(&change);
        let can_validate = self.server.can_validate(&change);
        let shown = parameters(standing.message(), shown, can_validate);
        self.question_as_answer(passage, entry, about, shown)
    }

    /// The answer to a call that asks the person at the client to allow it; nothing where they cannot be asked.
    pub(super) fn allowance_required(
        &self,
        passage: &Passage<'_>,
        parked: Option<&AwaitedApproval>,
    ) -> Option<Vec<u8>> {
        let contract = match parked? {
            AwaitedApproval::PersonAtClient(contract) => *contract,
            AwaitedApproval::Desk(_) => return None,
        };
        let call = &passage.request.call;
        let target = call.target?;
        let entry = EntryId::new(target.entry_type, target.key);
        let about = Subject::Call { contract, arguments: hash_of(call.arguments) };
        let message = call_in_words(self.server.id.as_str(), target.key, call.arguments);
        self.question_as_answer(passage, entry, about, call_parameters(&message))
    }

    /// The answer to a call that asks the person at the client, if its client shows questions.
    fn question_as_answer(
        &self,
        passage: &Passage<'_>,
        entry: EntryId,
        about: Subject,
        mut params: Value,
    ) -> Option<Vec<u8>> {
        passage.request.protocol_version?;
        passage.request.params.filter(|params| can_be_asked(params))?;
        let token = new_token()?;
        let now = Instant::now();
        let deadline = now + self.server.settings.answer_patience;
        let question = OpenQuestion { entry, about, deadline };
        if !self.state().open_questions.open(token.clone(), question, now) {
            return None;
        }
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
        let asks = self.server.settings.asks_in_client || self.server.path.asks_person();
        let params = envelope.params.as_ref().filter(|_| asks)?;
        let token: String = serde_json::from_slice(params.request_state?).ok()?;
        if !token.starts_with(TOKEN) {
            return None;
        }
        // INVARIANT: a token counts once, and what was said to us is not for the server.
        let question = self.state().open_questions.take(&token, Instant::now());
        // A token that is none of ours, or not any more, is as if it were not there: the call counts as a new one.
        let asking =
            question.map_or(Asking::Open, |question| self.hear(&question, envelope, params));
        let kept = with_member(params.raw, "requestState", None);
        let kept = with_member(&kept, "inputResponses", None);
        let frame = with_member(envelope.raw, "params", Some(&kept));
        Some(Returned { frame, asking })
    }

    fn hear(
        &self,
        question: &OpenQuestion,
        envelope: &Envelope<'_>,
        params: &Params<'_>,
    ) -> Asking {
        let said = said_of(question, envelope, params);
        match (question.about, said) {
            (Subject::Change(_), Said::Show) => Asking::Shows,
            // The call is held meanwhile; the next one finds what was seen.
            (Subject::Change(_), Said::Validate) => {
                self.wake(SessionWake::Validate(question.entry.clone()));
                Asking::Done
            }
            (Subject::Change(hash), Said::Approve) => {
                self.approve_for(&question.entry, hash);
                Asking::Done
            }
            (Subject::Change(_), Said::Allow | Said::Keep) => Asking::Done,
            (Subject::Call { contract, arguments }, Said::Allow) => {
                match arguments == hash_of(member(params.raw, "arguments")) {
                    true => Asking::Answered { answer: CallAnswer::Allowed, contract, at: now() },
                    // It is another call, which they are asked about.
                    false => Asking::Done,
                }
            }
            (
                Subject::Call { contract, .. },
                Said::Approve | Said::Show | Said::Validate | Said::Keep,
            ) => Asking::Answered { answer: CallAnswer::Refused, contract, at: now() },
        }
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

/// What the person said to a question, in a call that the client came back with.
fn said_of(question: &OpenQuestion, envelope: &Envelope<'_>, params: &Params<'_>) -> Said {
    let Kind::Request { method, .. } = &envelope.kind else { return Said::Keep };
    let target = crate::call::Method::of(method).target(Some(params));
    let is_it =
        target.is_some_and(|target| question.entry == EntryId::new(target.entry_type, target.key));
    let answer = member(params.raw, "inputResponses").and_then(|said| member(said, QUESTION));
    let Some(answer) = answer.filter(|_| is_it) else { return Said::Keep };
    read_answer(&[br#"{"result":"#.as_slice(), answer, b"}"].concat())
}

/// What an answer about a call is bound to: its arguments, byte for byte.
fn hash_of(arguments: Option<&[u8]>) -> [u8; 32] {
    Sha256::digest(arguments.unwrap_or_default()).into()
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
