//! A server may show different callers different entries: a client that can do more may be offered more tools. Callers that
//! are shown the same are one view, and what one view lacks is no removal for another.

use super::StoreRecord;
use contract::client::ClientCapabilities;
use contract::surface::{EntryId, EntryType, Surface};
use gate::comparing::Compared;
use gate::pins::PinBook;
use std::collections::{HashMap, HashSet};

/// The process or endpoint that requests go to. Two processes of one server may differ, so each has views of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Instance(pub u64);

/// What makes callers see the same lists.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ViewKey {
    instance: Instance,
    /// What the client can do, in canonical form; `None` if it did not say.
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

/// Which of the pinned entries that a view lacks were removed from it.
#[derive(Debug, Clone)]
pub(super) enum Removals {
    /// All: it is the view that the pins were last seen in.
    All,
    /// Those that this view has shown before.
    Shown(HashSet<EntryId>),
}

impl Removals {
    /// Leaves out the pins of entries that this view never showed. Identity and origin are the same for every view.
    pub(super) fn apply(&self, book: &mut PinBook, surface: &Surface) {
        let Removals::Shown(shown) = self else { return };
        book.retain(|id| {
            matches!(id.entry_type, EntryType::Identity | EntryType::Origin)
                || surface.entry(id).is_some()
                || shown.contains(id)
        });
    }
}

/// What the judge remembers of one view.
#[derive(Debug, Clone, Default)]
pub(super) struct ViewMemory {
    /// What the store said of the server when the view was last judged.
    pub(super) record: Option<StoreRecord>,
    /// What was compared then.
    pub(super) compared: Compared,
    /// Every entry that it showed.
    pub(super) shown: HashSet<EntryId>,
    /// What was held when it was last judged, to tell what began to be.
    pub(super) held: HashSet<EntryId>,
    /// Whether the server counts as changed because of this view.
    pub(super) is_changed: bool,
}

impl ViewMemory {
    /// Remembers what the view shows, and what it was compared with.
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

    /// The entries that a view showed, or one of another instance for clients that can do the same.
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

    /// A person wrote to the server's record: whether other views still count as changed is found when they are judged.
    pub(super) fn forget_changes(&mut self) {
        self.0.values_mut().for_each(|memory| memory.is_changed = false);
    }
}
