//! The two ways out of a session: what is written to the client and to the server, one message or several at once.
//!
//! INVARIANT: nothing is sent to the server before every decision that it rests on is written.

use super::{Session, boundary};
use crate::batches::{OpenBatches, Passage as Passed};
use crate::decide::{ApprovalGrant, ApprovalUse};
use crate::outlet::{ClientOutlet, FreeMessage, Outgoing, ServerOutlet, ToClient};
use crate::reason::ReasonCode;
use ledger::record::OutcomeStatus;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, TryLockError};
use store::receipts::Ticket;
use wire::envelope::{Id, OwnedId};

/// The way to the client, and what of it goes back in batches.
pub(super) struct ClientSide {
    pub(super) outlet: Box<dyn ClientOutlet>,
    pub(super) batches: OpenBatches,
}

impl ClientSide {
    /// Writes a message now, or keeps it for the batch that it belongs to.
    fn write(&mut self, message: &ToClient<'_>) -> io::Result<()> {
        if self.batches.is_empty() {
            return self.outlet.write(message);
        }
        match self.batches.take(&message.parts.concat()) {
            Passed::Alone => self.outlet.write(message),
            Passed::Kept => Ok(()),
            Passed::Whole(batch) => self.write_batch(&batch),
        }
    }

    fn write_batch(&mut self, batch: &[u8]) -> io::Result<()> {
        self.outlet.write(&ToClient { parts: &[batch], answers: None })
    }

    /// The same, with messages that come right behind it.
    fn gather(&mut self, message: &ToClient<'_>) -> io::Result<()> {
        if self.batches.is_empty() { self.outlet.gather(message) } else { self.write(message) }
    }
}

/// The way to the server, and the requests that are gathered to be sent with one write.
pub(super) struct ServerSide {
    pub(super) outlet: Box<dyn ServerOutlet>,
    pub(super) gathered: Vec<OwnedId>,
    /// What has to be settled before they are sent.
    pub(super) ticket: Option<Ticket>,
}

/// A request that is sent behind what was gathered.
#[derive(Clone, Copy)]
pub(super) struct Last<'a> {
    pub(super) id: &'a Id<'a>,
    pub(super) outgoing: &'a Outgoing<'a>,
    /// The approval that it is made with.
    pub(super) grant: Option<&'a ApprovalGrant>,
}

impl Session {
    pub(super) fn client_side(&self) -> MutexGuard<'_, ClientSide> {
        self.lock(&self.to_client)
    }

    /// A request of a batch that may get no answer: the others of its batch wait for it no longer.
    pub(super) fn release_from_batch(&self, key: &[u8]) {
        let mut side = self.client_side();
        let batch = side.batches.release(key);
        if let Some(batch) = batch {
            let _ = side.write_batch(&batch);
        }
    }

    /// Sends a notification or a request.
    pub(crate) fn tell_client(&self, message: &[u8]) {
        self.write_to_client(&ToClient { parts: &[message], answers: None });
    }

    /// Answers the request with this raw id.
    pub(crate) fn answer_client(&self, id: &[u8], message: &[u8]) {
        self.answer_client_in_parts(id, &[message]);
    }

    pub(crate) fn answer_client_in_parts(&self, id: &[u8], message: &[&[u8]]) {
        self.write_to_client(&ToClient { parts: message, answers: Some(id) });
    }

    fn write_to_client(&self, message: &ToClient<'_>) {
        boundary::note_answered();
        // A client that is gone is noticed by the end of its input.
        let _ = self.client_side().write(message);
    }

    /// A message of the server's on its way to the client: sent with those that come right behind it.
    pub(super) fn gather_for_client(&self, message: &[u8], answers: Option<&[u8]>) {
        boundary::note_answered();
        let _ = self.client_side().gather(&ToClient { parts: &[message], answers });
    }

    /// Nothing more of the server is there for now: what was gathered goes to the client, then into the ledger.
    pub fn server_paused(&self) {
        self.contain(0, || self.pass_gathered());
    }

    pub(super) fn pass_gathered(&self) {
        let _ = self.client_side().outlet.flush();
        // Where the client's messages are being taken, what is settled for them takes this along. Both sides set their own
        // flag before they look at the other's, so one of them sees to it.
        self.has_unsettled.store(true, Ordering::SeqCst);
        if !self.is_gathering.load(Ordering::SeqCst) {
            self.settle_rest();
        }
    }

    /// Writes outcomes that are not written yet.
    pub(super) fn settle_rest(&self) {
        if self.has_unsettled.swap(false, Ordering::SeqCst) {
            let _ = self.server.recorder.write_outcomes();
        }
    }

    pub(super) fn server_side(&self) -> MutexGuard<'_, ServerSide> {
        self.lock(&self.to_server)
    }

    /// Sends a message of our own now.
    pub(crate) fn tell_server(&self, message: &FreeMessage<'_>) -> io::Result<()> {
        self.server_side().outlet.send(message)
    }

    /// An answer is not waited for any longer.
    pub(crate) fn give_up(&self, id: &[u8], mark: Option<[u8; 16]>) {
        self.server_side().outlet.give_up(id, mark);
    }

    /// A message of the client's that needs no receipt, in its place among those that do.
    pub(super) fn gather_for_server(&self, message: &FreeMessage<'_>) {
        if self.server_side().outlet.gather_free(message) {
            self.send_gathered();
        }
    }

    /// Nothing more of the client is there for now: what was gathered is recorded, then sent.
    pub fn client_paused(&self) {
        self.contain(0, || {
            self.send_gathered();
            self.is_gathering.store(false, Ordering::SeqCst);
            self.settle_rest();
            self.is_current.store(false, Ordering::Release);
        });
    }

    pub(crate) fn send_gathered(&self) {
        self.send_with(None);
    }

    /// Sends what was gathered, and one more behind it.
    ///
    /// INVARIANT: nothing is sent before every decision that it rests on is written, and the grant that it rests on is used up.
    pub(super) fn send_with(&self, last: Option<(Last<'_>, Ticket)>) {
        let mut unapproved = None;
        let failed = {
            let mut side = self.server_side();
            let gathered_ticket = side.ticket.take();
            let (mut last, ticket) = match last {
                Some((last, ticket)) => (Some(last), Some(with(gathered_ticket, ticket))),
                None => (None, gathered_ticket),
            };
            let mut gathered = std::mem::take(&mut side.gathered);
            // INVARIANT: without a ticket no request is among what is sent.
            let settled = ticket.map(|ticket| self.server.recorder.settle(ticket)).transpose();
            let (sent, error) = match settled {
                Ok(Some(proof)) => {
                    unapproved = last.take_if(|last| self.use_up(last.grant) == ApprovalUse::Lost);
                    (side.outlet.flush(proof, last.map(|last| last.outgoing)).is_ok(), None)
                }
                Ok(None) => (side.outlet.flush_free().is_ok(), None),
                Err(error) => {
                    side.outlet.discard();
                    (false, Some(error))
                }
            };
            if sent {
                None
            } else {
                gathered.extend(last.map(|last| last.id.to_owned()));
                let reason = match error {
                    None => ReasonCode::UpstreamUnreachable,
                    Some(_) => ReasonCode::LedgerUnavailable,
                };
                Some((gathered, reason, error))
            }
        };
        if let Some(last) = unapproved {
            self.fail(last.id.key(), ReasonCode::ApprovalRequired, OutcomeStatus::Error);
        }
        let Some((gathered, reason, error)) = failed else { return };
        if let Some(error) = error {
            self.remark(&format!("calls were refused because they cannot be recorded: {error}"));
        }
        for id in gathered {
            if reason == ReasonCode::LedgerUnavailable {
                self.drop_unrecorded(id.key());
            } else {
                self.fail(id.key(), reason, OutcomeStatus::Error);
            }
        }
    }

    /// The client has ended: closes the server's input. Returns `false` if a thread is stuck in a write to a server that does
    /// not read.
    pub fn try_close_server(&self) -> bool {
        self.is_closing.store(true, Ordering::Release);
        match self.to_server.try_lock() {
            Ok(mut side) => {
                side.outlet.close();
                true
            }
            Err(TryLockError::Poisoned(side)) => {
                side.into_inner().outlet.close();
                true
            }
            Err(TryLockError::WouldBlock) => false,
        }
    }
}

/// The ticket of all decisions of both.
pub(super) fn with(gathered: Option<Ticket>, one: Ticket) -> Ticket {
    match gathered {
        Some(gathered) => gathered.and(one),
        None => one,
    }
}
