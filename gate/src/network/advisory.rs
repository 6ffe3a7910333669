//! The gate's side of the drift feed: whether the directory's crawler has seen a pinned contract
//! change, or this exact change.
//!
//! An advisory is shown with a verdict and never changes it: nothing in `tiers` reads it.

use super::fingerprint::{Fingerprint, Salt};
use super::messages::{DriftEntry, DriftReport};
use super::vocabulary::Hour;
use crate::judge::{Judgement, SurfaceJudgement};
use contract::change::ChangeKind;
use contract::hash::EntryHash;
use contract::surface::Entry;
use std::collections::HashMap;

/// The most changes of a feed that are kept: the newest ones.
pub const MAX_FEED_ENTRIES: usize = 50_000;

/// What the crawler saw of a contract that is pinned here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Seen {
    /// The pinned contract was replaced by a different one elsewhere.
    PinChanged,
    /// The pinned contract was replaced by the same new one elsewhere.
    SameChange,
}

impl Seen {
    pub const fn as_str(self) -> &'static str {
        match self {
            Seen::PinChanged => "pin-changed",
            Seen::SameChange => "same-change",
        }
    }
}

/// What the directory's crawler recorded, in words from closed lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriftAdvisory {
    pub seen: Seen,
    pub kinds: Vec<ChangeKind>,
    pub is_safety_relevant: bool,
    pub hour: Hour,
}

impl DriftAdvisory {
    fn of(seen: Seen, change: &DriftReport) -> DriftAdvisory {
        let DriftReport { kinds, safety, hour, .. } = change;
        let (kinds, hour) = (kinds.clone(), *hour);
        DriftAdvisory { seen, kinds, is_safety_relevant: *safety, hour }
    }

    /// The sentence to show, in our own words.
    pub fn sentence(&self) -> String {
        let relevance = if self.is_safety_relevant { ", safety-relevant" } else { "" };
        let what = match self.seen {
            Seen::SameChange => "The directory's crawler recorded the same change",
            Seen::PinChanged => "The directory's crawler saw this contract change elsewhere",
        };
        format!("{what} ({}h UTC{relevance}); the verdict does not rest on it.", self.hour)
    }
}

/// The changes that the crawler recorded, indexed by the contract before the change.
#[derive(Debug, Clone, Default)]
pub struct DriftFeed {
    salt: Option<Salt>,
    changes: HashMap<Fingerprint, Vec<DriftReport>>,
}

impl DriftFeed {
    pub fn new<'a>(salt: Salt, entries: impl IntoIterator<Item = &'a DriftEntry>) -> DriftFeed {
        let mut changes: HashMap<Fingerprint, Vec<DriftReport>> = HashMap::new();
        for entry in entries.into_iter().take(MAX_FEED_ENTRIES) {
            changes.entry(entry.change.fp_before).or_default().push(entry.change.clone());
        }
        DriftFeed { salt: Some(salt), changes }
    }

    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Whether a pinned contract was seen to change. Prefers safety-relevant records, then the
    /// newest.
    pub fn pin_changed(&self, pinned: EntryHash) -> Option<DriftAdvisory> {
        let change = self.newest(pinned, |_| true)?;
        Some(DriftAdvisory::of(Seen::PinChanged, change))
    }

    /// Whether this exact change was seen.
    pub fn same_change(&self, before: EntryHash, after: EntryHash) -> Option<DriftAdvisory> {
        let after = self.salt?.fingerprint(after);
        let change = self.newest(before, |change| change.fp_after == after)?;
        Some(DriftAdvisory::of(Seen::SameChange, change))
    }

    fn newest(
        &self,
        before: EntryHash,
        is_it: impl Fn(&DriftReport) -> bool,
    ) -> Option<&DriftReport> {
        if self.changes.is_empty() {
            return None;
        }
        let known = self.changes.get(&self.salt?.fingerprint(before))?;
        known.iter().filter(|change| is_it(change)).max_by_key(|it| (it.safety, it.hour))
    }

    /// Adds the network's observations of the same changes to the judgements.
    pub fn advise(&self, judgement: &mut SurfaceJudgement) {
        if self.changes.is_empty() {
            return;
        }
        for entry in &mut judgement.entries {
            entry.advisory = self.of_change(entry);
        }
    }

    /// The network's observations of the change that a judgement is about.
    pub fn of_change(&self, judgement: &Judgement) -> Option<DriftAdvisory> {
        let hash = |entry: &Option<Entry>| entry.as_ref().map(Entry::entry_hash);
        self.same_change(hash(&judgement.before)?, hash(&judgement.after)?)
    }
}
