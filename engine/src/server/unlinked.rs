//! Requests that are answered without a session: the caller may not make them, or the server cannot
//! be reached. Each has its decision in the ledger like any other.

use super::Server;
use crate::call::{Call, Subject};
use crate::decide::{Authorization, Decided, Denial, Ruling};
use crate::principal::Principal;
use crate::reason::ReasonCode;
use crate::recorder::{Circumstances, Recorder};
use crate::refusal::Refusal;
use crate::situation::Situation;
use gate::counters::Counter;
use gate::view::HeldTools;
use std::time::Instant;

/// A request that no session has taken.
#[derive(Debug, Clone, Copy)]
pub struct Unlinked<'a> {
    pub call: Call<'a>,
    /// The raw id.
    pub id: &'a [u8],
    pub principal: &'a Principal,
    /// The server's situation according to its recorded surface.
    pub situation: &'a Situation,
    pub trace_id: Option<&'a str>,
    pub begun: Instant,
}

impl Server {
    /// Refuses a request that the caller may not make, regardless of the server. Returns the
    /// response, or `None` if the request may proceed to a session, which makes the full decision.
    pub fn refuse_unpermitted(&self, request: &Unlinked<'_>) -> Option<Vec<u8>> {
        let held = HeldTools::default();
        let Unlinked { call, principal, situation, .. } = request;
        let decided = self.path.foresee(call, principal, situation, &held, Instant::now());
        // The session requests an approval if one is needed.
        let is_about_caller = decided.needs_approval.is_none()
            && decided.ruling.reason().is_some_and(ReasonCode::is_about_caller);
        is_about_caller.then(|| self.refuse_unlinked(request, &decided))
    }

    /// Whether the principal may use methods of the server that concern none of its entries.
    pub fn permits_use(&self, principal: &Principal) -> bool {
        let call = Call::about(Subject::Server);
        self.path.authorizer().is_none_or(|authorizer| {
            let authorization = authorizer.authorize(principal, &self.id, &call);
            matches!(authorization, Authorization::Permit { .. })
        })
    }

    /// Refuses a request because its server cannot be reached.
    pub fn refuse_unreached(&self, request: &Unlinked<'_>, words: &str) -> Vec<u8> {
        self.refuse_for(request, ReasonCode::UpstreamUnreachable, words)
    }

    /// Refuses a request because too many are in flight.
    pub fn refuse_busy(&self, request: &Unlinked<'_>, words: &str) -> Vec<u8> {
        self.refuse_for(request, ReasonCode::RateLimited, words)
    }

    fn refuse_for(&self, request: &Unlinked<'_>, reason: ReasonCode, words: &str) -> Vec<u8> {
        self.errors.note(reason, request.call.bytes as u64);
        self.deny_unlinked(request, Denial::new(reason, words))
    }

    /// Refuses a request for a reason that was found before a session was involved.
    pub fn deny_unlinked(&self, request: &Unlinked<'_>, denial: Denial) -> Vec<u8> {
        self.refuse_unlinked(request, &Decided::from(Ruling::Deny(denial)))
    }

    fn refuse_unlinked(&self, request: &Unlinked<'_>, decided: &Decided) -> Vec<u8> {
        self.tally.add(Counter::Denied);
        request.refuse(&self.recorder, decided)
    }
}

impl Unlinked<'_> {
    /// Refuses a request for something that no server has.
    pub fn refuse_unknown(&self, recorder: &Recorder) -> Vec<u8> {
        let denial = Denial::unknown(&self.call, ReasonCode::UnknownTool);
        self.refuse(recorder, &Decided::from(Ruling::Deny(denial)))
    }

    fn refuse(&self, recorder: &Recorder, decided: &Decided) -> Vec<u8> {
        let Unlinked { call, id, principal, situation, trace_id, begun } = *self;
        let circumstances = Circumstances {
            situation,
            principal,
            trace_id,
            policy_id: decided.policy.as_deref(),
            approval: None,
            view_age: None,
            admission_age: None,
            begun,
        };
        let recorded = recorder.decision(&call, &decided.ruling, circumstances);
        let settled = recorded
            .and_then(|recorded| recorder.settle(recorded.ticket).map(|_| recorded.receipt_id));
        let server = situation.server.as_str();
        match (settled, &decided.ruling) {
            (Ok(receipt_id), Ruling::Deny(denial)) => {
                Refusal::denied(denial, server, &receipt_id.to_string()).to_message(id)
            }
            (Ok(receipt_id), Ruling::Hold(standing)) => {
                let tool = call.target.map(|target| target.key);
                Refusal::held(standing, server, tool, &receipt_id.to_string()).to_message(id)
            }
            (Ok(_), Ruling::Allow) | (Err(_), _) => {
                let words = "○ holdpoint — the call could not be recorded, so it was not made";
                Refusal::fault(ReasonCode::LedgerUnavailable, words, server).to_message(id)
            }
        }
    }
}
