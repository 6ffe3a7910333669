//! What a server takes over from others with the same launch: entries that a person approved there,
//! and a quarantine.
//!
//! A person's decision is written to every such server known at that time. This module handles
//! servers that are seen for the first time, and entries that are shown for the first time.

use contract::surface::{Entry, EntryId, Surface};
use gate::pins::{Basis, EntryPins, Pin, PinBook};
use gate::server::{ServerId, ServerStatus};
use store::{Baseline, EntryFile, Launch, LaunchIdentity, NewPin, Store, StoreError};

/// The approvals and quarantines of servers with the same launch as this one.
#[derive(Debug, Default)]
pub(super) struct Heritage {
    sources: Vec<Source>,
    /// The quarantined server, if it was not yet known that this one has the same launch.
    pub(super) stopped_by: Option<ServerId>,
    file: Option<EntryFile>,
}

#[derive(Debug)]
struct Source {
    id: ServerId,
    file: EntryFile,
    pins: PinBook,
}

/// Entries that a person approved for another server.
#[derive(Debug, Default)]
pub(super) struct Inherited {
    pub(super) pins: Vec<NewPin>,
    pub(super) from: Option<ServerId>,
}

/// How much must be covered before anything is taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cover {
    /// Each entry is taken over separately.
    Any,
    /// A person has to approve the server first: entries left out now would later look like
    /// additions. Entries in a project's file are neither a source nor a target.
    All,
}

/// How to compare launches, if pins can be taken over.
pub(super) fn question<'l>(
    launch: Option<&'l Launch>,
    baseline: &Baseline,
    surface: &Surface,
) -> Option<Question<'l>> {
    let identity = launch.and_then(Launch::identity)?;
    let known = baseline.server.as_ref().and_then(|server| server.identity());
    let is_new_launch = known.is_none_or(|known| known.hash != identity.hash);
    let pins = &baseline.pins;
    let has_unpinned = surface.entries().any(|entry| pins.get(entry.id()).is_none());
    let is_asked = !pins.is_damaged() && (is_new_launch || has_unpinned);
    is_asked.then_some(Question { identity, is_new_launch })
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Question<'l> {
    identity: &'l LaunchIdentity,
    is_new_launch: bool,
}

impl Heritage {
    pub(super) fn read(
        store: &dyn Store,
        id: &ServerId,
        question: Question<'_>,
    ) -> Result<Heritage, StoreError> {
        let Question { identity, is_new_launch } = question;
        let mut heritage = Heritage { file: Some(identity.file), ..Heritage::default() };
        for server in store.launched_alike(id, &identity.hash)? {
            let Some(file) = server.identity().map(|identity| identity.file) else { continue };
            if server.status == ServerStatus::Quarantined {
                let stopped_by = is_new_launch.then_some(server.id);
                heritage.stopped_by = heritage.stopped_by.or(stopped_by);
                continue;
            }
            let pins = store.pins(&server.id)?;
            if !pins.is_damaged() {
                heritage.sources.push(Source { id: server.id, file, pins });
            }
        }
        Ok(heritage)
    }

    /// Whether no other server has the same launch.
    pub(super) fn is_empty(&self) -> bool {
        self.sources.is_empty() && self.stopped_by.is_none()
    }

    /// The pins for shown entries that have no pin.
    pub(super) fn pins_for(&self, book: &PinBook, surface: &Surface, cover: Cover) -> Inherited {
        let mut inherited = Inherited::default();
        for entry in surface.entries().filter(|entry| book.get(entry.id()).is_none()) {
            match self.approved(entry, cover) {
                Some((source, pin)) => {
                    let entry = pin.entry.clone();
                    inherited.pins.push(NewPin { entry, basis: Basis::Person });
                    inherited.from.get_or_insert_with(|| source.id.clone());
                }
                None if cover == Cover::All => return Inherited::default(),
                None => {}
            }
        }
        inherited
    }

    /// The approved version of an entry: exactly this one, or else the newest one that differs from
    /// it.
    fn approved(&self, entry: &Entry, cover: Cover) -> Option<(&Source, &Pin)> {
        let may_give = |source: &&Source| match cover {
            Cover::Any => true,
            Cover::All => source.file == EntryFile::User && self.file == Some(EntryFile::User),
        };
        let sources = self.sources.iter().filter(may_give);
        let by_person = sources
            .flat_map(|source| person_pins(&source.pins, entry.id()).map(move |pin| (source, pin)));
        let is_same = |pin: &Pin| pin.entry.entry_hash() == entry.entry_hash();
        by_person.max_by_key(|(_, pin)| (is_same(pin), pin.at))
    }
}

fn person_pins<'b>(book: &'b PinBook, id: &EntryId) -> impl Iterator<Item = &'b Pin> {
    let pins = book.get(id).into_iter().flat_map(EntryPins::iter);
    pins.filter(|pin| pin.basis == Basis::Person && !pin.entry.is_gone())
}

#[cfg(test)]
mod tests;
