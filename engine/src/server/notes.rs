//! What monitor notes instead of holding: told once for each version of an entry.

use contract::hash::EntryHash;
use contract::surface::EntryId;
use gate::judge::SurfaceJudgement;
use gate::naming::Approved;
use gate::posture::Posture;
use gate::words::{Audience, deciding, entry_name, say_of};
use std::collections::HashSet;

/// The most notes that are remembered as told.
const MAX_TOLD: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct Notes {
    told: HashSet<(EntryId, Option<EntryHash>)>,
}

impl Notes {
    /// The sentences that were not told yet.
    pub(super) fn take(&mut self, judgement: &SurfaceJudgement) -> Vec<String> {
        let mut notes = Vec::new();
        if judgement.posture != Posture::Monitor {
            return notes;
        }
        for judged in &judgement.entries {
            let version = judged.after.as_ref().map(contract::surface::Entry::entry_hash);
            if !judged.is_safety_relevant() || self.told.len() >= MAX_TOLD {
                continue;
            }
            if !self.told.insert((judged.id.clone(), version)) {
                continue;
            }
            let is_accepted = judged.before.is_some();
            let approved = Approved::of(judged.before.as_ref());
            let audience = Audience::Model(&approved);
            let name = entry_name(judged.id.entry_type, &judged.id.key, is_accepted, audience);
            let change = deciding(&judged.findings, judged.verdict).map_or_else(
                || format!("{name} could not be compared with what was accepted"),
                |finding| say_of(&name, finding, audience),
            );
            notes.push(format!("○ holdpoint — noted, not held (posture monitor): {change}"));
        }
        notes
    }
}
