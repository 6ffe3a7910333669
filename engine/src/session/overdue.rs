//! Requests whose time is over.

use super::Session;
use super::state::Pending;
use crate::errands::{Errand, OwnMessage};
use crate::reason::ReasonCode;
use ledger::record::OutcomeStatus;
use std::time::Instant;
use wire::envelope::OwnedId;

/// How a request ends whose time is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The client cancelled it: it is forgotten.
    Abandoned,
    /// The client is told, the server is not.
    Quiet,
    /// Both are told.
    Cancelled,
}

impl Session {
    /// Ends the requests whose time is over.
    pub(crate) fn end_overdue(&self) {
        let now = Instant::now();
        let overdue: Vec<_> = {
            let state = self.state();
            let is_over =
                |deadline: Option<Instant>| deadline.is_some_and(|deadline| deadline <= now);
            let pending = state.pending.iter().filter(|(_, pending)| is_over(pending.deadline));
            let end_of = |pending: &Pending| match pending {
                Pending { is_cancelled: true, .. } => End::Abandoned,
                // The protocol has it that a greeting is never cancelled.
                Pending { is_handshake: true, .. } => End::Quiet,
                Pending { .. } => End::Cancelled,
            };
            let overdue = |(id, pending): (&OwnedId, &Pending)| {
                (id.clone(), end_of(pending), pending.receipt_id)
            };
            pending.map(overdue).collect()
        };
        let unreadable = self.state().overdue_doubts(now);
        for key in unreadable {
            self.fail(&key, ReasonCode::UpstreamUnreadable, OutcomeStatus::Error);
        }
        if let Some(timeout) = self.settings.call_timeout {
            let waiting = self.state().overdue(now, timeout);
            for id in waiting {
                self.refuse_unseen(&id, ReasonCode::Timeout);
            }
        }
        for (id, end, receipt_id) in overdue {
            match end {
                End::Abandoned => self.abandon(id.key()),
                End::Quiet => {
                    // A client that is told may greet again at once, with the same id.
                    let mark = Some(receipt_id.0);
                    self.errand(Errand::GiveUp { id: id.raw().to_vec(), mark });
                    self.time_out(id.key());
                }
                End::Cancelled => {
                    self.time_out(id.key());
                    self.cancel_overdue(&id);
                }
            }
        }
    }

    fn cancel_overdue(&self, id: &OwnedId) {
        let method = "notifications/cancelled";
        let id = String::from_utf8_lossy(id.raw()).into_owned();
        let frame = format!(
            r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"requestId":{id},"reason":"timeout"}}}}"#
        );
        let own = OwnMessage { frame, method, id: None, protocol_version: None };
        self.errand(Errand::Send(own));
    }
}
