//! Servers of several hosts with the same launch: what a person decides about one of them applies
//! to all.
//!
//! The act on the server that the person named comes first. For each of the others there is a
//! separate act, in its own history and with its own ledger line, which names the server that the
//! person decided about.

use crate::acts::{ActError, RecordedServer, held_changes};
use crate::judge::ATTEMPTS;
use contract::surface::{Entry, Surface};
use gate::comparing::Compared;
use gate::judge::Judgement;
use gate::pins::{Basis, Pin, PinBook};
use gate::posture::Settings;
use gate::server::{ServerId, ServerStatus};
use gate::status::Happening;
use store::{
    Act, By, EntryFile, HeldChange, HoldDecision, LaunchIdentity, NewPin, Observation, Store,
    StoreError,
};

/// Returns the settings from the configuration for a server.
pub type Configured<'c> = &'c dyn Fn(&ServerId) -> Settings;

/// The effects of a decision.
#[derive(Debug)]
pub struct Decided {
    pub status: ServerStatus,
    pub shared: Vec<Shared>,
}

/// The effect of a decision about one server on another one with the same launch.
#[derive(Debug)]
pub struct Shared {
    pub server: ServerId,
    /// The current status of the server, or why it was not changed.
    pub outcome: Result<ServerStatus, ActError>,
}

/// The servers that a decision also applies to, read before the decision is written.
#[derive(Debug)]
pub(super) struct Siblings {
    decided: ServerId,
    pub(super) file: Option<EntryFile>,
    pub(super) ids: Vec<ServerId>,
}

impl Siblings {
    pub(super) fn of(
        store: &dyn Store,
        id: &ServerId,
        identity: Option<&LaunchIdentity>,
    ) -> Result<Siblings, StoreError> {
        let alike = match identity {
            Some(identity) => store.launched_alike(id, &identity.hash)?,
            None => Vec::new(),
        };
        let ids = alike.into_iter().map(|server| server.id).collect();
        let file = identity.map(|identity| identity.file);
        Ok(Siblings { decided: id.clone(), file, ids })
    }

    /// Performs an act on each of them. `act` returns what to write for a server in its current
    /// state, if anything. It is called again if the server's gate wrote in between.
    pub(super) fn share(
        &self,
        store: &mut dyn Store,
        configured: Configured<'_>,
        by: By<'_>,
        act: impl Fn(&RecordedServer) -> Result<Option<SharedAct>, ActError>,
    ) -> Vec<Shared> {
        let mut shared = Vec::new();
        for id in &self.ids {
            let mut outcome = self.share_with(store, id, configured, by, &act);
            for _ in 1..ATTEMPTS {
                if !matches!(outcome, Err(ActError::Store(StoreError::Changed { .. }))) {
                    break;
                }
                outcome = self.share_with(store, id, configured, by, &act);
            }
            if let Some(outcome) = outcome.transpose() {
                shared.push(Shared { server: id.clone(), outcome });
            }
        }
        shared
    }

    fn share_with(
        &self,
        store: &mut dyn Store,
        id: &ServerId,
        configured: Configured<'_>,
        by: By<'_>,
        act: impl Fn(&RecordedServer) -> Result<Option<SharedAct>, ActError>,
    ) -> Result<Option<ServerStatus>, ActError> {
        let server = RecordedServer::read(store, id, configured(id), by.at)?;
        // A person must examine a record that cannot be trusted.
        if server.pins().is_damaged() || server.snapshot.server.is_none() {
            return Ok(None);
        }
        let Some(shared) = act(&server)? else { return Ok(None) };
        let SharedAct { name, status, pins, withdraw, detail, held, decision } = shared;
        let mut written = Act::new(id, by.at, by.name, name);
        written.expect = Some(server.snapshot.revision());
        written.status = Some(status);
        written.pins = pins;
        written.withdraw = withdraw;
        written.detail = detail;
        written.held = held;
        written.decision = decision;
        written.decided_for = Some(&self.decided);
        store.record(written)?;
        Ok(Some(status))
    }
}

/// What to write for a server because of a decision about another one.
#[derive(Debug)]
pub(super) struct SharedAct {
    pub(super) name: &'static str,
    pub(super) status: ServerStatus,
    pub(super) pins: Vec<NewPin>,
    pub(super) withdraw: Vec<contract::surface::EntryId>,
    pub(super) detail: Option<String>,
    /// The server's held changes that this decides.
    pub(super) held: Vec<HeldChange>,
    pub(super) decision: Option<HoldDecision>,
}

impl SharedAct {
    pub(super) fn new(name: &'static str, status: ServerStatus) -> SharedAct {
        let (pins, withdraw, held) = (Vec::new(), Vec::new(), Vec::new());
        SharedAct { name, status, pins, withdraw, detail: None, held, decision: None }
    }
}

/// Entries of a server that a person approved.
#[derive(Debug)]
pub(super) struct Approval<'a> {
    pub(super) name: &'static str,
    pub(super) entries: &'a [Entry],
    /// All pins of the server after the approval.
    pub(super) book: &'a PinBook,
    /// The file that contains the server's entry.
    pub(super) file: Option<EntryFile>,
    pub(super) detail: Option<&'a str>,
    pub(super) by: By<'a>,
}

impl Approval<'_> {
    /// The corresponding act for another server with the same launch.
    pub(super) fn for_sibling(
        &self,
        sibling: &RecordedServer,
    ) -> Result<Option<SharedAct>, ActError> {
        if sibling.status() == ServerStatus::Quarantined {
            return Ok(None);
        }
        let observation = sibling.snapshot.observation.as_ref();
        let surface = observation.map(Observation::surface).transpose()?.unwrap_or_default();
        let entries = match sibling.awaits_first_approval() {
            true => self.completes_first(sibling, &surface).unwrap_or_default(),
            false => self.known_to(sibling, &surface),
        };
        if entries.is_empty() {
            return Ok(None);
        }
        let judgement = sibling.judge(&surface, None);
        let is_approved = |judged: &&Judgement| {
            let after = judged.after.as_ref().map(Entry::entry_hash);
            entries.iter().any(|entry| {
                *entry.id() == judged.id && after == (!entry.is_gone()).then(|| entry.entry_hash())
            })
        };
        let held = match sibling.awaits_first_approval() {
            true => Vec::new(),
            false => held_changes(judgement.posture, judgement.entries.iter().filter(is_approved)),
        };
        let mut book = sibling.pins().clone();
        for entry in entries.iter().cloned() {
            let by = self.by.name.to_owned();
            book.push(Pin { entry, basis: Basis::Person, at: self.by.at, by });
        }
        let is_held = sibling.is_held_with(&book, &surface, &mut Compared::default());
        let status = sibling.next(Happening::Approved { is_held })?;
        let entries = entries.into_iter();
        let pins = entries.map(|entry| NewPin { entry, basis: Basis::Person }).collect();
        let detail = self.detail.map(str::to_owned);
        let decision = Some(HoldDecision::Overridden);
        let shared = SharedAct::new(self.name, status);
        Ok(Some(SharedAct { pins, detail, held, decision, ..shared }))
    }

    /// The entries that the other server has pinned or shows. An entry that it never showed would
    /// look as if it had been removed; its gate takes the pin over when the server first shows the
    /// entry.
    fn known_to(&self, sibling: &RecordedServer, surface: &Surface) -> Vec<Entry> {
        let is_known = |entry: &&Entry| {
            sibling.pins().get(entry.id()).is_some() || surface.entry(entry.id()).is_some()
        };
        let is_new = |entry: &&Entry| {
            let newest = sibling.pins().get(entry.id()).and_then(|pins| pins.iter().next_back());
            !newest.is_some_and(|pin| is_approved_as(pin, entry))
        };
        self.entries.iter().filter(is_known).filter(is_new).cloned().collect()
    }

    /// All entries of a server that waits for its first approval, if a person approved exactly
    /// these. If either server's entry is in a project's file, it needs an approval of its own.
    fn completes_first(&self, sibling: &RecordedServer, surface: &Surface) -> Option<Vec<Entry>> {
        let file = sibling.snapshot.server.as_ref()?.identity()?.file;
        let are_users = file == EntryFile::User && self.file == Some(EntryFile::User);
        let is_asked = sibling.status() == ServerStatus::Pending;
        if !are_users || !is_asked || !surface.unreadable().is_empty() {
            return None;
        }
        let is_approved = |entry: &Entry| {
            let pins = self.book.get(entry.id());
            pins.is_some_and(|pins| pins.iter().any(|pin| is_approved_as(pin, entry)))
        };
        surface.entries().all(is_approved).then(|| surface.entries().cloned().collect())
    }
}

/// Whether a pin shows that a person approved exactly this entry.
fn is_approved_as(pin: &Pin, entry: &Entry) -> bool {
    pin.basis == Basis::Person
        && pin.entry.is_gone() == entry.is_gone()
        && pin.entry.entry_hash() == entry.entry_hash()
}

#[cfg(test)]
mod tests;
