//! An act: everything that one decision writes, in one transaction.

use crate::error::StoreError;
use crate::record::{Launch, Observation, Revision};
use contract::hash::{DefinitionHash, EntryHash};
use contract::surface::{Entry, EntryId, MAX_ENTRY_BYTES, MAX_LIST_BYTES, MAX_LIST_ENTRIES};
use gate::pins::Basis;
use gate::server::{ServerId, ServerStatus};
use gate::time::Timestamp;

/// The longest name of an actor, in bytes.
pub const MAX_NAME_BYTES: usize = 256;
/// The longest sentence attached to an act, in bytes.
pub const MAX_DETAIL_BYTES: usize = 4_096;
/// The largest launch, in bytes of JSON, without the client's capabilities, which have their own
/// limit.
pub const MAX_LAUNCH_BYTES: usize = 256 * 1024;
/// The largest capture: four full lists, and the entries that are in no list.
pub const MAX_CAPTURE_BYTES: usize = 4 * MAX_LIST_BYTES + 4 * MAX_ENTRY_BYTES;
/// The largest size of all notes of an observation: a reason may quote the key of an entry, one per
/// list.
pub const MAX_NOTES_BYTES: usize = 5 * MAX_ENTRY_BYTES;
/// The most pins that one act adds or withdraws: four full lists, and the entries that are in no
/// list.
pub const MAX_PINS_PER_ACT: usize = 4 * MAX_LIST_ENTRIES + 3;

/// An entry to accept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPin {
    pub entry: Entry,
    pub basis: Basis,
}

/// A change that is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldChange {
    pub entry: EntryId,
    /// The kinds of its findings, without duplicates.
    pub kinds: Vec<&'static str>,
    /// The posture that holds it.
    pub posture: &'static str,
    pub before: Option<EntryHash>,
    pub after: Option<EntryHash>,
    /// The current definition, for a tool.
    pub definition: Option<DefinitionHash>,
}

/// A person's decision on held changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldDecision {
    /// The person stopped the server because of them.
    Confirmed,
    /// The person approved them.
    Overridden,
}

impl HoldDecision {
    /// The name of the event in the ledger.
    pub const fn event(self) -> &'static str {
        match self {
            HoldDecision::Confirmed => "outcome.confirmed",
            HoldDecision::Overridden => "outcome.overridden",
        }
    }
}

/// One act on one server. Empty members change nothing.
#[derive(Debug, Clone)]
pub struct Act<'a> {
    pub server: &'a ServerId,
    pub at: Timestamp,
    /// The actor: a person's name, or `holdpoint` if no person was asked.
    pub by: &'a str,
    /// `server.pin`, `server.approve`, `server.observe`, `server.quarantine`, `pin.auto`, …
    pub name: &'static str,
    /// The revision that the decision rests on. If the server has a different one, the store
    /// returns [`StoreError::Changed`] and writes nothing.
    pub expect: Option<Revision>,
    pub launch: Option<&'a Launch>,
    pub status: Option<ServerStatus>,
    pub observation: Option<&'a Observation>,
    pub pins: Vec<NewPin>,
    /// The entries whose newest pin is withdrawn, before new pins are added.
    pub withdraw: Vec<EntryId>,
    /// Only set for a person's approval. Rows of the approved entries that do not authenticate are
    /// moved to history. If the book as a whole is lost, so are all older pins: a valid one cannot
    /// be told from one that was put back.
    pub reseal: bool,
    pub detail: Option<String>,
    /// The held changes of the act: those that a `decision` covers, or else those that were found.
    /// They are written to the ledger, not to the database.
    pub held: Vec<HeldChange>,
    pub decision: Option<HoldDecision>,
    /// The server that a person decided on, if the decision applies to this one because both are
    /// launched the same way. History and ledger record it.
    pub decided_for: Option<&'a ServerId>,
    /// How often the ledger has seen the server's record sealed. A record with a lower count is an
    /// older copy.
    pub(crate) seals_seen: i64,
}

impl<'a> Act<'a> {
    pub fn new(server: &'a ServerId, at: Timestamp, by: &'a str, name: &'static str) -> Self {
        Act {
            server,
            at,
            by,
            name,
            expect: None,
            launch: None,
            status: None,
            observation: None,
            pins: Vec::new(),
            withdraw: Vec::new(),
            reseal: false,
            detail: None,
            held: Vec::new(),
            decision: None,
            decided_for: None,
            seals_seen: 0,
        }
    }

    pub(crate) fn check_limits(&self) -> Result<(), StoreError> {
        if self.by.is_empty() {
            return Err(StoreError::Nameless);
        }
        within("the name of who acts", self.by.len(), MAX_NAME_BYTES)?;
        let detail_bytes = self.detail.as_ref().map_or(0, String::len);
        within("the detail of an act", detail_bytes, MAX_DETAIL_BYTES)?;
        within("the number of new pins", self.pins.len(), MAX_PINS_PER_ACT)?;
        within("the number of withdrawn pins", self.withdraw.len(), MAX_PINS_PER_ACT)?;
        for pin in &self.pins {
            within("an entry", pin.entry.raw().len(), MAX_ENTRY_BYTES)?;
            within("an entry's key", pin.entry.key().len(), MAX_ENTRY_BYTES)?;
        }
        let Some(observation) = self.observation else { return Ok(()) };
        within("a capture", observation.capture.len(), MAX_CAPTURE_BYTES)?;
        for text in
            [&observation.origin, &observation.protocol_version, &observation.server_version]
        {
            let bytes = text.as_ref().map_or(0, String::len);
            within("an observation's origin or version", bytes, MAX_ENTRY_BYTES)?;
        }
        let reasons = observation.unreadable.values().chain(&observation.notes);
        within("what an observation notes", reasons.map(String::len).sum(), MAX_NOTES_BYTES)
    }
}

/// Refuses a size above its limit.
pub(crate) fn within(what: &'static str, size: usize, limit: usize) -> Result<(), StoreError> {
    if size > limit { Err(StoreError::OverLimit { what, limit }) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
