//! What a server takes over from others that are launched the same way: entries that a person approved there, and a
//! quarantine.
//!
//! A decision of a person is written to every such server that is known then. This is for a server that is seen for the
//! first time, and for an entry that it shows for the first time.

use contract::surface::{Entry, EntryId, Surface};
use gate::pins::{Basis, EntryPins, Pin, PinBook};
use gate::server::{ServerId, ServerStatus};
use store::{Baseline, EntryFile, Launch, LaunchIdentity, NewPin, Store, StoreError};

/// What the servers have that are launched the same way as this one.
#[derive(Debug, Default)]
pub(super) struct Heritage {
    sources: Vec<Source>,
    /// The server that is quarantined, where this one was not known to be launched the same way.
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

/// What has to be covered for anything to be taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cover {
    /// Each entry is taken over on its own.
    Any,
    /// A person has to approve the server first: what is left out now would pass for an addition later. Entries in the
    /// file of a project neither give nor take.
    All,
}

/// What a launch is to be compared by, if there is anything to take over at all.
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

    /// Whether there is no other server that is launched the same way.
    pub(super) fn is_empty(&self) -> bool {
        self.sources.is_empty() && self.stopped_by.is_none()
    }

    /// The pins for entries that a server shows and has no pin of.
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

    /// What a person approved of an entry: exactly this, or else the newest that differs from it.
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
