//! The member names of one object, kept only to detect repetitions.

use super::MAX_MEMBERS;
use std::borrow::Cow;

/// This many names are compared pairwise, without an allocation.
const PAIRWISE: usize = 8;

#[derive(Debug, Default)]
pub(super) struct Names<'a> {
    /// One bit for each name that the protocol knows.
    known: u16,
    /// The first of the other names, if they contain no escapes.
    few: [&'a [u8]; PAIRWISE],
    few_count: usize,
    /// All remaining names.
    many: Vec<Cow<'a, [u8]>>,
    count: usize,
    is_repeated: bool,
}

impl<'a> Names<'a> {
    /// Adds a protocol name by its index.
    pub(super) fn add_known(&mut self, place: u8) {
        self.count = self.count.saturating_add(1);
        let bit = 1 << place;
        self.is_repeated |= self.known & bit != 0;
        self.known |= bit;
    }

    /// Adds any other name.
    pub(super) fn add(&mut self, name: Cow<'a, [u8]>) {
        self.count = self.count.saturating_add(1);
        match (name, self.few.get_mut(self.few_count)) {
            (Cow::Borrowed(name), Some(place)) => {
                *place = name;
                let before = self.few.iter().take(self.few_count);
                self.is_repeated |= before.copied().any(|other| other == name);
                self.few_count += 1;
            }
            (name, _) if self.count <= MAX_MEMBERS => self.many.push(name),
            _ => {}
        }
    }

    pub(super) fn are_too_many(&self) -> bool {
        self.count > MAX_MEMBERS
    }

    pub(super) fn has_repeated(&mut self) -> bool {
        if self.is_repeated || self.many.is_empty() {
            return self.is_repeated;
        }
        self.many.extend(self.few.iter().take(self.few_count).copied().map(Cow::Borrowed));
        self.many.sort_unstable();
        !self.many.is_sorted_by(|left, right| left < right)
    }
}
