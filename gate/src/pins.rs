//! Pins: what was accepted of a server, by whom and on what basis.

use crate::time::Timestamp;
use contract::hash::EntryHash;
use contract::sorted::SortedMap;
use contract::surface::{Entry, EntryId};
use std::fmt;

/// Why an entry was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Basis {
    /// A person approved it.
    Person,
    /// A verified document vouches for it.
    Attested,
    /// It was there when the server was first seen.
    FirstUse,
    /// It was accepted as benign.
    Auto,
}

impl Basis {
    pub const ALL: [Basis; 4] = [Basis::Person, Basis::Attested, Basis::FirstUse, Basis::Auto];

    /// Accepted is not approved: what was only found benign never becomes the baseline that others are held against.
    pub const fn is_approved(self) -> bool {
        match self {
            Basis::Person | Basis::Attested | Basis::FirstUse => true,
            Basis::Auto => false,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Basis::Person => "person",
            Basis::Attested => "attested",
            Basis::FirstUse => "first-use",
            Basis::Auto => "auto",
        }
    }
}

impl fmt::Display for Basis {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl serde::Serialize for Basis {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// One accepted entry, byte for byte as the server sent it then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    pub entry: Entry,
    pub basis: Basis,
    pub at: Timestamp,
    /// Who accepted it: a person's name, or `holdpoint` if no person was asked.
    pub by: String,
}

/// All pins of one entry, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EntryPins {
    pins: Vec<Pin>,
}

impl EntryPins {
    pub fn push(&mut self, pin: Pin) {
        // Most entries have one pin: room for more would be most of a book's memory.
        self.pins.reserve_exact(1);
        self.pins.push(pin);
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Pin> {
        self.pins.iter()
    }

    /// What the entry is held against first: the last pin that was approved.
    pub fn approved(&self) -> Option<&Pin> {
        self.present().rev().find(|pin| pin.basis.is_approved())
    }

    /// The last pin on any basis: what the client is shown.
    pub fn accepted(&self) -> Option<&Pin> {
        self.present().next_back()
    }

    /// Whether a person accepted that the entry is gone. Its pins stay: coming back changed is a change.
    pub fn is_gone(&self) -> bool {
        self.pins.last().is_some_and(|pin| pin.entry.is_gone())
    }

    fn present(&self) -> impl DoubleEndedIterator<Item = &Pin> {
        self.pins.iter().filter(|pin| !pin.entry.is_gone())
    }

    /// The pin with this hash that was approved at any time, the newest where there are several.
    pub fn approved_with(&self, hash: EntryHash) -> Option<&Pin> {
        self.pins.iter().rev().find(|pin| pin.basis.is_approved() && pin.entry.entry_hash() == hash)
    }
}

/// All pins of one server, and those that were found changed behind Holdpoint's back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PinBook {
    entries: SortedMap<EntryId, EntryPins>,
    /// Entries whose pins do not authenticate, each with what is wrong in words. They are held.
    pub tampered: SortedMap<EntryId, String>,
    /// What is wrong with the book as a whole (pins removed, or put back from an older copy). Everything is held.
    pub lost: Option<String>,
}

impl PinBook {
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether pins were edited or removed by a program other than Holdpoint, so that only a person can approve again.
    pub fn is_damaged(&self) -> bool {
        self.lost.is_some() || !self.tampered.is_empty()
    }

    /// Whether anything was ever pinned. Pins that cannot be trusted count: what was lost is not first sight.
    pub fn has_baseline(&self) -> bool {
        !self.is_empty() || self.is_damaged()
    }

    pub fn push(&mut self, pin: Pin) {
        self.entries.get_or_default(pin.entry.id().clone()).push(pin);
    }

    /// The book as it is once the newest pin of an entry is taken back.
    #[must_use]
    pub fn without_newest(mut self, id: &EntryId) -> PinBook {
        if let Some(pins) = self.entries.get_mut(id) {
            pins.pins.pop();
        }
        self
    }

    /// Leaves out the pins of entries that are not wanted.
    pub fn retain(&mut self, is_wanted: impl Fn(&EntryId) -> bool) {
        self.entries.retain(|id, _| is_wanted(id));
    }

    pub fn get(&self, id: &EntryId) -> Option<&EntryPins> {
        self.entries.get(id)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&EntryId, &EntryPins)> {
        self.entries.iter()
    }
}
