//! Calls that a person must approve, either another person or the one at the client. They wait in
//! the table until that person has decided or the wait has timed out, and are then decided on
//! again.

use super::{Met, Passage, Session};
use crate::call::Target;
use crate::decide::{
    ApprovalAnswer, ApprovalGrant, ApprovalRequest, ApprovalUse, Approver, AwaitedApproval,
    Decided, Denial, Ruling,
};
use crate::reason::ReasonCode;
use crate::recorder::now;
use crate::requests::{Asked, Asking, Awaited, CallAnswer, ParkedCall, RequestKey};
use crate::server::asking::call_in_words;
use crate::server::driver::SessionWake;
use contract::hash::EntryHash;
use contract::surface::EntryBody;
use gate::view::Found;
use ledger::record::StepUp;
use std::sync::Arc;
use std::time::Instant;
use wire::envelope::members;

/// Why the person at the client was not asked, and what to do about it.
const CANNOT_BE_ASKED: &str = "they cannot be asked: this client shows no questions (`elicitation`), or too many are \
    open. A person uses a client that shows them, answers those that are open, or takes the tool off `approval.tools` in \
    holdpoint.toml";

impl Session {
    /// Decides on a request. A call that needs approval proceeds with one that was granted, which
    /// is used up before the call is sent.
    pub(super) fn decide_approved(&self, passage: &Passage<'_>, met: &Met) -> Decided {
        let call = &passage.request.call;
        // A call that waited for a person was counted when it arrived.
        let decided = match passage.asking {
            Asking::Done | Asking::Answered { .. } => self.decide_again(call, met),
            Asking::Open | Asking::Shows => self.decide(call, met),
        };
        match decided.needs_approval.clone() {
            None => decided,
            Some(Approver::Groups(groups)) => self.seek_approval(passage, met, &groups, decided),
            Some(Approver::PersonAtClient) => self.seek_allowance(passage, met, decided),
        }
    }

    /// Lets a call that the person at the client must allow proceed if they allowed this exact
    /// call, and otherwise makes it wait for the question.
    ///
    /// INVARIANT: the permission is stored with the request whose bytes are sent, so it applies to
    /// nothing else.
    fn seek_allowance(&self, passage: &Passage<'_>, met: &Met, decided: Decided) -> Decided {
        let target = passage.request.call.target;
        let contract = target.and_then(|target| contract_of(met, target));
        let deny = |words: &str| {
            let message = format!(
                "○ holdpoint — the person at the client has to allow this call, and {words}"
            );
            Ruling::Deny(Denial::new(ReasonCode::ApprovalRequired, message))
        };
        let Some(contract) = contract else {
            return Decided { ruling: deny("its tool is not known"), ..decided };
        };
        let words = match passage.asking {
            Asking::Answered { answer: CallAnswer::Allowed, contract: asked_with, at } => {
                if asked_with == contract {
                    let by = met.principal.subject.clone();
                    let grant = ApprovalGrant { by, at, step_up: StepUp::None, taken: None };
                    return Decided {
                        ruling: Ruling::Allow,
                        needs_approval: None,
                        grant: Some(Arc::new(grant)),
                        ..decided
                    };
                }
                "its tool changed after they did"
            }
            Asking::Answered { answer: CallAnswer::Refused, .. } => "they refused it",
            Asking::Answered { answer: CallAnswer::Unanswered, .. } => {
                "they did not answer in time"
            }
            Asking::Answered { answer: CallAnswer::Unasked, .. } => CANNOT_BE_ASKED,
            Asking::Open | Asking::Shows | Asking::Done => {
                let parked = Some(AwaitedApproval::PersonAtClient(contract));
                return Decided { ruling: deny(CANNOT_BE_ASKED), parked, ..decided };
            }
        };
        Decided { ruling: deny(words), ..decided }
    }

    fn seek_approval(
        &self,
        passage: &Passage<'_>,
        met: &Met,
        groups: &[String],
        decided: Decided,
    ) -> Decided {
        let call = &passage.request.call;
        let (Some(desk), Some(target)) = (self.server.path.desk(), call.target) else {
            return decided;
        };
        let Some(contract) = contract_of(met, target) else { return decided };
        let responses = passage.request.params.and_then(|params| {
            members(params).find(|(name, _)| name == "inputResponses").map(|(_, value)| value)
        });
        let answer = desk.ask(&ApprovalRequest {
            principal: &met.principal,
            server: &met.situation().server,
            tool: target.key,
            contract: *contract.as_bytes(),
            arguments: call.arguments,
            input_responses: responses,
            groups,
            policy: decided.policy.as_deref(),
        });
        match answer {
            ApprovalAnswer::Granted(grant) => Decided {
                ruling: Ruling::Allow,
                needs_approval: None,
                grant: Some(Arc::new(grant)),
                ..decided
            },
            ApprovalAnswer::Waits { id } => {
                let may_wait = passage.asking != Asking::Done;
                let message = format!(
                    "○ holdpoint — this call needs the approval of another person, a member of {}: \
                     `holdpoint approvals grant {id} --gateway URL`. Make the same call again afterwards",
                    groups.join(" or ")
                );
                let denial = Denial::new(ReasonCode::ApprovalRequired, message);
                let denial = Denial { approval_id: Some(id.as_str().into()), ..denial };
                let parked = may_wait.then_some(AwaitedApproval::Desk(id));
                Decided { ruling: Ruling::Deny(denial), parked, ..decided }
            }
            ApprovalAnswer::Refused => {
                let message = "○ holdpoint — another person refused this call";
                let ruling = Ruling::Deny(Denial::new(ReasonCode::Forbidden, message));
                Decided { ruling, ..decided }
            }
            ApprovalAnswer::Unavailable { why } => {
                let message = format!(
                    "○ holdpoint — this call needs the approval of another person, and {why}"
                );
                let ruling = Ruling::Deny(Denial::new(ReasonCode::ApprovalRequired, message));
                Decided { ruling, ..decided }
            }
        }
    }

    /// Uses up the approval that a call proceeds with, if it needs one.
    pub(super) fn use_up(&self, grant: Option<&ApprovalGrant>) -> ApprovalUse {
        match (grant.and_then(|grant| grant.taken.as_ref()), self.server.path.desk()) {
            (None, _) => ApprovalUse::Used,
            (Some(taken), Some(desk)) => desk.use_up(taken),
            (Some(_), None) => ApprovalUse::Lost,
        }
    }

    /// Makes a call wait for a person. Returns whether that was possible; if not, the call is
    /// refused.
    pub(super) fn park(&self, passage: &Passage<'_>, approval: &AwaitedApproval) -> bool {
        let id = passage.request.id;
        let can_be_asked = match approval {
            AwaitedApproval::Desk(_) => self.server.path.desk().is_some(),
            AwaitedApproval::PersonAtClient(_) => self.state().client.can_be_asked,
        };
        if !can_be_asked {
            return false;
        }
        if passage.has_waited {
            match self.state().requests.park(self.at(id.key())) {
                Asked::Waits => {}
                Asked::Cancelled => return false,
            }
        } else if !self.wait_for(passage, Awaited::Approval) {
            return true;
        }
        match approval {
            AwaitedApproval::Desk(approval) => self.watch(passage, approval),
            AwaitedApproval::PersonAtClient(contract) => self.ask_to_allow(passage, *contract),
        }
        true
    }

    /// Asks the person at the client to allow a waiting call.
    fn ask_to_allow(&self, passage: &Passage<'_>, contract: EntryHash) {
        let call = &passage.request.call;
        let at = self.at(passage.request.id.key());
        // A call that was just cancelled no longer waits.
        let parked = self.state().requests.parked(at, contract);
        if let (Some(parked), Some(target)) = (parked, call.target) {
            let message = call_in_words(self.server.id.as_str(), target.key, call.arguments);
            self.wake(SessionWake::AskCall { call: parked, message });
        }
    }

    /// Resumes a call that the person at the client was asked to allow. They may have taken longer
    /// than the maximum age of what the call is decided on.
    pub(crate) fn resume_answered(&self, call: &ParkedCall, answer: CallAnswer) {
        let asking = Asking::Answered { answer, contract: call.contract, at: now() };
        let deadline = self.server.settings.call_deadline(Instant::now());
        if self.state().requests.release_answered(self.key, call, asking, deadline) {
            let key = RequestKey { session: self.key, id: call.id.clone() };
            if self.has_fresh_check(&key, None) {
                self.resume_admitted(&key);
            }
        }
    }

    /// Resumes a call once another person has decided.
    fn watch(&self, passage: &Passage<'_>, approval: &str) {
        let Some(desk) = self.server.path.desk() else { return };
        let key = RequestKey { session: self.key, id: passage.request.id.to_owned() };
        let server = Arc::downgrade(&self.server);
        let resume = move || {
            let session = server.upgrade().and_then(|server| server.session(key.session));
            if let Some(session) = session {
                session.resume_parked(&key);
            }
        };
        desk.watch(approval, Box::new(resume));
    }

    /// Resumes a call that waits for another person, unless it was already resumed.
    fn resume_parked(&self, key: &RequestKey) {
        if self.state().requests.release_parked(key.as_ref()) {
            self.resume(key);
        }
    }

    /// Handles the disconnection of a request's client: a call that needs another person's approval
    /// is not made.
    pub fn client_left(&self, id: &[u8]) {
        let abandoned = self.state().requests.abandon(self.at(id));
        if let Some(id) = abandoned {
            self.resume(&RequestKey { session: self.key, id });
        }
    }
}

/// The hash of the tool's accepted entry.
fn contract_of(met: &Met, target: Target<'_>) -> Option<EntryHash> {
    match met.situation().view.find(target) {
        Found::Unchanged(body) => Some(body.entry_hash()),
        Found::Changed(standing) => standing.before.as_ref().map(EntryBody::entry_hash),
        Found::Unknown => None,
    }
}
