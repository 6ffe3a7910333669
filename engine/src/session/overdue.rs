//! Requests that have timed out.

use super::Session;
use crate::errands::{Errand, OwnMessage};
use crate::reason::ReasonCode;
use crate::requests::{Late, Lateness};
use ledger::record::OutcomeStatus;
use std::time::Instant;

impl Session {
    /// Ends the requests that have timed out.
    pub(crate) fn end_overdue(&self) {
        let now = Instant::now();
        let (own, unsent, late) = {
            let requests = &mut self.state().requests;
            (requests.take_late_own(now), requests.release_late(now), requests.take_late(now))
        };
        own.into_iter().for_each(|id| self.own_unreadable(id));
        unsent.iter().for_each(|key| self.refuse_unseen(key, ReasonCode::Timeout));
        late.iter().for_each(|late| self.end_late(late));
    }

    /// Ends a request that has timed out.
    fn end_late(&self, late: &Late) {
        let Late { key, dispatched, lateness } = late;
        let (id, timeout) = (&key.id, OutcomeStatus::Timeout);
        self.forget_unanswered(dispatched);
        match lateness {
            Lateness::Unreadable => {
                let (reason, status) = (ReasonCode::UpstreamUnreadable, OutcomeStatus::Error);
                self.refuse_dispatched(id, dispatched, reason, status);
            }
            Lateness::Abandoned => self.record_failure(dispatched, OutcomeStatus::Error),
            Lateness::Unstarted => {
                // The server is notified first, because the client may repeat the handshake with
                // the same id once it is answered.
                let mark = Some(dispatched.receipt_id.0);
                self.errand(Errand::GiveUp { id: id.raw().to_vec(), mark });
                self.record_failure(dispatched, timeout);
                self.note_fault(ReasonCode::Timeout, dispatched.bytes as u64);
                let words = self.words_of_no_start();
                self.remark(&words);
                self.refuse_with(id.raw(), ReasonCode::Timeout, &format!("○ holdpoint — {words}"));
            }
            Lateness::TimedOut => {
                self.refuse_dispatched(id, dispatched, ReasonCode::Timeout, timeout);
                let method = "notifications/cancelled";
                let id = String::from_utf8_lossy(id.raw());
                let frame = format!(
                    r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"requestId":{id},"reason":"timeout"}}}}"#
                );
                let own = OwnMessage { frame, method, id: None, protocol_version: None };
                self.errand(Errand::Send(own));
            }
        }
    }
}
