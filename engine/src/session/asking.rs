//! Questions to the person at the client in stateless mode: a call that is held, or that they must
//! allow, is answered with a question, and the client repeats the call with their answer
//! (`input_required`, revision 2026-07-28).
//!
//! A question has an unguessable token. It is valid once, for one version of an entry, and for a
//! limited time; a question about a call is valid only for the same arguments.

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

/// The prefix of our tokens, so that a server's own is never mistaken for one.
const TOKEN: &str = "holdpoint-input-";
/// The name of our question among those that a client is asked at the same time.
const QUESTION: &str = "holdpoint";
/// The most tokens per question. A further one replaces the oldest.
const MAX_TOKENS: usize = 10;
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// A question that a client has not returned with yet.
#[derive(Debug)]
pub(super) struct OpenQuestion {
    entry: EntryId,
    about: Subject,
    deadline: Instant,
}

/// What a question about an entry asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Subject {
    /// Its change. Exactly this hash would be approved, whatever the server shows meanwhile.
    Change(Option<EntryHash>),
    /// One call of it, identified by a hash of the arguments.
    Call { contract: EntryHash, arguments: [u8; 32] },
}

impl OpenQuestion {
    /// What the question asks. Concurrent calls ask the same, each with its own token.
    fn subject(&self) -> (&EntryId, Subject) {
        (&self.entry, self.about)
    }
}

/// Questions by token.
#[derive(Debug, Default)]
pub(crate) struct OpenQuestions(HashMap<String, OpenQuestion>);

impl OpenQuestions {
    /// Returns whether there is room for the question. There always is if it is already open.
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

    /// Takes the question of a token, which is invalid afterwards.
    fn take(&mut self, token: &str, now: Instant) -> Option<OpenQuestion> {
        self.0.remove(token).filter(|question| question.deadline > now)
    }
}

/// A repeated call, as it proceeds.
pub(super) struct Returned {
    /// The call without the answer to our question.
    pub(super) frame: Vec<u8>,
    pub(super) asking: Asking,
}

impl Session {
    /// The response to a held call that asks the person at the client; `None` if they cannot be
    /// asked.
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

    /// The response to a call that asks the person at the client to allow it; `None` if they cannot
    /// be asked.
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

    /// The response that asks the person at the client, if the client supports questions.
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

    /// Extracts the person's answer from a repeated call. Returns `None` if the call does not
    /// answer a question of ours.
    pub(super) fn returned(&self, envelope: &Envelope<'_>) -> Option<Returned> {
        let asks = self.server.settings.asks_in_client || self.server.path.asks_person();
        let params = envelope.params.as_ref().filter(|_| asks)?;
        let token: String = serde_json::from_slice(params.request_state?).ok()?;
        if !token.starts_with(TOKEN) {
            return None;
        }
        // INVARIANT: a token is valid once, and the answer to our question is not forwarded to the
        // server.
        let question = self.state().open_questions.take(&token, Instant::now());
        // An unknown or expired token is ignored, so the call counts as a new one.
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
            // The call stays held for now; the next one uses the result of the test.
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
                    // It is a different call, so they are asked about it.
                    false => Asking::Done,
                }
            }
            (
                Subject::Call { contract, .. },
                Said::Approve | Said::Show | Said::Validate | Said::Keep,
            ) => Asking::Answered { answer: CallAnswer::Refused, contract, at: now() },
        }
    }

    /// Records that the person at the client approved an entry, provided that it is still the one
    /// they were asked about.
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

/// The person's answer to a question, in a repeated call.
fn said_of(question: &OpenQuestion, envelope: &Envelope<'_>, params: &Params<'_>) -> Said {
    let Kind::Request { method, .. } = &envelope.kind else { return Said::Keep };
    let target = crate::call::Method::of(method).target(Some(params));
    let is_it =
        target.is_some_and(|target| question.entry == EntryId::new(target.entry_type, target.key));
    let answer = member(params.raw, "inputResponses").and_then(|said| member(said, QUESTION));
    let Some(answer) = answer.filter(|_| is_it) else { return Said::Keep };
    read_answer(&[br#"{"result":"#.as_slice(), answer, b"}"].concat())
}

/// Binds an answer about a call to its exact arguments, byte for byte.
fn hash_of(arguments: Option<&[u8]>) -> [u8; 32] {
    Sha256::digest(arguments.unwrap_or_default()).into()
}

/// Whether a call's parameters show that its client supports questions, and contain no answers to
/// other questions: those would be lost.
fn can_be_asked(params: &[u8]) -> bool {
    let is_answer = |(name, _): (std::borrow::Cow<'_, str>, &[u8])| {
        matches!(&*name, "requestState" | "inputResponses")
    };
    let meta = member(params, "_meta");
    let capabilities = meta.and_then(|meta| member(meta, META_CAPABILITIES));
    let asked = capabilities.and_then(|capabilities| member(capabilities, "elicitation"));
    // A client that lists its supported modes must list this one; one without a list supports it.
    let shows_forms = asked.is_some_and(|asked| {
        asked.first() == Some(&b'{')
            && (members(asked).next().is_none() || member(asked, "form").is_some())
    });
    shows_forms && !members(params).any(is_answer)
}

/// The client's capabilities in a `_meta`, if they can be stored.
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
