//! A server may show different entries to different callers: a client with more capabilities may be
//! offered more tools. Callers that are shown the same entries form a view, and an entry missing in
//! one view was not removed from another.

use super::StoreRecord;
use contract::client::ClientCapabilities;
use contract::surface::{EntryId, EntryType, Surface};
use gate::comparing::Compared;
use gate::pins::PinBook;
use std::collections::{HashMap, HashSet};

/// The process or endpoint that requests go to. Two processes of one server may differ, so each has
/// its own views.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Instance(pub u64);

/// Identifies the callers that see the same lists.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ViewKey {
    instance: Instance,
    /// The client's capabilities in canonical form; `None` if it did not declare any.
    capabilities: Option<Box<str>>,
}

impl ViewKey {
    pub fn of(instance: Instance, client: Option<&ClientCapabilities>) -> ViewKey {
        ViewKey { instance, capabilities: client.map(|client| client.as_str().into()) }
    }

    pub(crate) fn instance(&self) -> Instance {
        self.instance
    }
}

/// Which of the pinned entries missing in a view were removed from it.
#[derive(Debug, Clone)]
pub(super) enum Removals {
    /// All of them: this is the view that was pinned last.
    All,
    /// Those that this view has shown before.
    Shown(HashSet<EntryId>),
}

impl Removals {
    /// Drops the pins of entries that this view never showed. Identity and origin are the same in
    /// every view.
    pub(super) fn apply(&self, book: &mut PinBook, surface: &Surface) {
        let Removals::Shown(shown) = self else { return };
        book.retain(|id| {
            matches!(id.entry_type, EntryType::Identity | EntryType::Origin)
                || surface.entry(id).is_some()
                || shown.contains(id)
        });
    }
}

/// What the judge remembers about one view.
#[derive(Debug, Clone, Default)]
pub(super) struct ViewMemory {
    /// The server's record when the view was last judged.
    pub(super) record: Option<StoreRecord>,
    /// The comparisons made then.
    pub(super) compared: Compared,
    /// Every entry that it showed.
    pub(super) shown: HashSet<EntryId>,
    /// The entries held when it was last judged, to detect new holds.
    pub(super) held: HashSet<EntryId>,
    /// Whether the server counts as changed because of this view.
    pub(super) is_changed: bool,
}

impl ViewMemory {
    /// Remembers the entries that the view shows, and the record it was compared with.
    pub(super) fn show(&mut self, removals: &Removals, book: &PinBook, surface: &Surface) {
        if matches!(removals, Removals::All) {
            self.shown.extend(book.iter().map(|(id, _)| id.clone()));
        }
        self.shown.extend(surface.entries().map(|entry| entry.id().clone()));
    }
}

/// The views of one server in this process.
#[derive(Debug, Default)]
pub(super) struct Views(HashMap<ViewKey, ViewMemory>);

impl Views {
    pub(super) fn get(&self, key: &ViewKey) -> Option<&ViewMemory> {
        self.0.get(key)
    }

    /// The entries shown by a view, or by one of another instance for clients with the same
    /// capabilities.
    pub(super) fn shown_like(&self, key: &ViewKey) -> Option<&HashSet<EntryId>> {
        let same = self.0.iter().filter(|(other, _)| other.capabilities == key.capabilities);
        let same = self.0.get(key).into_iter().chain(same.map(|(_, memory)| memory));
        let mut shown = same.map(|memory| &memory.shown);
        shown.find(|shown| !shown.is_empty())
    }

    pub(super) fn memory(&mut self, key: &ViewKey) -> &mut ViewMemory {
        self.0.entry(key.clone()).or_default()
    }

    pub(super) fn forget(&mut self, key: &ViewKey) {
        self.0.remove(key);
    }

    /// Whether the server counts as changed because of another view.
    pub(super) fn is_changed_elsewhere(&self, key: &ViewKey) -> bool {
        self.0.iter().any(|(other, memory)| other != key && memory.is_changed)
    }

    /// Called when a person wrote to the server's record. Whether other views still count as
    /// changed is determined when they are judged.
    pub(super) fn forget_changes(&mut self) {
        self.0.values_mut().for_each(|memory| memory.is_changed = false);
    }
}
