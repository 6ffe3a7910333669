//! Calls that another person has to approve: they wait in the table until that person has decided or the wait is over, and
//! are decided on again then.

use super::{Met, Passage, Session};
use crate::decide::{ApprovalAnswer, ApprovalRequest, Decided, Denial, Ruling};
use crate::reason::ReasonCode;
use crate::requests::{Asked, Asking, Awaited, RequestKey};
use crate::view::Found;
use std::sync::Arc;
use wire::envelope::members;

impl Session {
    /// Decides on a request. A call that needs approval goes on with one that was granted, which is used up.
    pub(super) fn decide_approved(&self, passage: &Passage<'_>, met: &Met) -> Decided {
        let call = &passage.request.call;
        // A call that waited for another person was counted when it came.
        let decided = match passage.asking {
            Asking::Done => self.decide_again(call, met),
            Asking::Open | Asking::Shows => self.decide(call, met),
        };
        match &decided.needs_approval {
            None => decided,
            Some(groups) => {
                let groups = groups.clone();
                self.seek_approval(passage, met, &groups, decided)
            }
        }
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
        let contract = match met.situation.view.find(target) {
            Found::Unchanged(hashes) => Some(hashes.entry),
            Found::Changed(standing) => standing.before.map(|before| before.entry),
            Found::Unknown => None,
        };
        let Some(contract) = contract else { return decided };
        let responses = passage.request.params.and_then(|params| {
            members(params).find(|(name, _)| name == "inputResponses").map(|(_, value)| value)
        });
        let answer = desk.ask(&ApprovalRequest {
            principal: &met.principal,
            server: &met.situation.server,
            tool: target.key,
            contract,
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
                Decided { ruling: Ruling::Deny(denial), parked: may_wait.then_some(id), ..decided }
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

    /// Has a call wait for another person. Returns whether it is taken care of; if not, it is refused.
    pub(super) fn park(&self, passage: &Passage<'_>, approval: &str) -> bool {
        let Some(desk) = self.server.path.desk() else { return false };
        let id = passage.request.id;
        if passage.has_waited {
            match self.state().requests.park(self.at(id.key())) {
                Asked::Waits => {}
                Asked::Cancelled => return false,
            }
        } else if !self.wait_for(passage, Awaited::Approval) {
            return true;
        }
        let key = RequestKey { session: self.key, id: id.to_owned() };
        let server = Arc::downgrade(&self.server);
        let resume = move || {
            let session = server.upgrade().and_then(|server| server.session(key.session));
            if let Some(session) = session {
                session.resume_parked(&key);
            }
        };
        desk.watch(approval, Box::new(resume));
        true
    }

    /// Goes on with a call that waits for another person, unless it went on already.
    fn resume_parked(&self, key: &RequestKey) {
        if self.state().requests.release_parked(key.as_ref()) {
            self.resume(key);
        }
    }

    /// The client of a request has left: if the request waits for another person, it is not made.
    pub fn client_left(&self, id: &[u8]) {
        let abandoned = self.state().requests.abandon_parked(self.at(id));
        if let Some(id) = abandoned {
            self.resume(&RequestKey { session: self.key, id });
        }
    }
}
