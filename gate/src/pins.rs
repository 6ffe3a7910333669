//! Pins: what was accepted from a server, by whom and on what basis.

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
    /// A verified attestation vouches for it.
    Attested,
    /// It was present when the server was first seen.
    FirstUse,
    /// It was accepted automatically as benign.
    Auto,
}

impl Basis {
    pub const ALL: [Basis; 4] = [Basis::Person, Basis::Attested, Basis::FirstUse, Basis::Auto];

    /// Whether a pin counts as approved. An automatically accepted pin never becomes the baseline
    /// for later comparisons.
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

/// One accepted entry, byte for byte as the server sent it.
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
        // Most entries have one pin. Spare capacity would be most of a book's memory.
        self.pins.reserve_exact(1);
        self.pins.push(pin);
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Pin> {
        self.pins.iter()
    }

    /// The primary baseline of the entry: the last approved pin.
    pub fn approved(&self) -> Option<&Pin> {
        self.present().rev().find(|pin| pin.basis.is_approved())
    }

    /// The last pin on any basis, which is what the client sees.
    pub fn accepted(&self) -> Option<&Pin> {
        self.present().next_back()
    }

    /// Whether a person accepted the removal of the entry. Its pins are kept, so a different entry
    /// returning counts as a change.
    pub fn is_gone(&self) -> bool {
        self.pins.last().is_some_and(|pin| pin.entry.is_gone())
    }

    fn present(&self) -> impl DoubleEndedIterator<Item = &Pin> {
        self.pins.iter().filter(|pin| !pin.entry.is_gone())
    }

    /// The pin with this hash that was approved at any time; the newest if there are several.
    pub fn approved_with(&self, hash: EntryHash) -> Option<&Pin> {
        self.pins.iter().rev().find(|pin| pin.basis.is_approved() && pin.entry.entry_hash() == hash)
    }
}

/// All pins of one server, and those that were modified by something other than Holdpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PinBook {
    entries: SortedMap<EntryId, EntryPins>,
    /// Entries whose pins do not authenticate, each with a description of the problem. They are
    /// held.
    pub tampered: SortedMap<EntryId, String>,
    /// A problem with the whole book, such as pins that were removed or restored from an older
    /// copy. Everything is held.
    pub lost: Option<String>,
}

impl PinBook {
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether another program edited or removed pins, so that only a person can approve them
    /// again.
    pub fn is_damaged(&self) -> bool {
        self.lost.is_some() || !self.tampered.is_empty()
    }

    /// Whether anything was ever pinned. Untrusted pins count too: losing pins must not turn into a
    /// first use.
    pub fn has_baseline(&self) -> bool {
        !self.is_empty() || self.is_damaged()
    }

    pub fn push(&mut self, pin: Pin) {
        self.entries.get_or_default(pin.entry.id().clone()).push(pin);
    }

    /// The book without the newest pin of an entry.
    #[must_use]
    pub fn without_newest(mut self, id: &EntryId) -> PinBook {
        if let Some(pins) = self.entries.get_mut(id) {
            pins.pins.pop();
        }
        self
    }

    /// Keeps only the pins of entries that are wanted.
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
