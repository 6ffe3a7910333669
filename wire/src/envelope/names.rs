//! The names of one object's members, kept only to see whether one appears twice.

use super::MAX_MEMBERS;
use std::borrow::Cow;

/// This many are compared one by one, and need no memory of their own.
const PAIRWISE: usize = 8;

#[derive(Debug)]
pub(super) struct Names<'a> {
    few: [Cow<'a, str>; PAIRWISE],
    many: Vec<Cow<'a, str>>,
    count: usize,
    is_repeated: bool,
}

impl<'a> Names<'a> {
    pub(super) fn new() -> Self {
        Names {
            few: [const { Cow::Borrowed("") }; PAIRWISE],
            many: Vec::new(),
            count: 0,
            is_repeated: false,
        }
    }

    pub(super) fn add(&mut self, name: Cow<'a, str>) {
        self.is_repeated |= self.few.iter().take(self.count).any(|other| *other == name);
        if let Some(place) = self.few.get_mut(self.count) {
            *place = name;
        } else if self.count < MAX_MEMBERS {
            self.many.push(name);
        }
        self.count = self.count.saturating_add(1);
    }

    pub(super) fn are_too_many(&self) -> bool {
        self.count > MAX_MEMBERS
    }

    pub(super) fn has_repeated(&mut self) -> bool {
        // Each of these was compared with the few when it came.
        self.many.sort_unstable();
        self.is_repeated || !self.many.is_sorted_by(|left, right| left < right)
    }
}
