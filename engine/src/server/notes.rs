//! Notes for a person, independent of calls: changes that monitor records instead of holding, and
//! entries held on first use because of a marker. Each is reported once per version of an entry.

use contract::change::ChangeKind;
use contract::hash::EntryHash;
use contract::surface::EntryId;
use gate::judge::{Judgement, SurfaceJudgement};
use gate::naming::Approved;
use gate::posture::Posture;
use gate::server::ServerId;
use gate::words::{Audience, deciding, entry_name, held_at_first_sight, say_of};
use std::collections::HashSet;

/// The most notes that are remembered as reported.
const MAX_TOLD: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct Notes {
    told: HashSet<(EntryId, Option<EntryHash>)>,
}

impl Notes {
    /// The sentences that were not reported yet.
    pub(super) fn take(&mut self, server: &ServerId, judgement: &SurfaceJudgement) -> Vec<String> {
        let mut notes = Vec::new();
        let is_monitor = judgement.posture == Posture::Monitor;
        for judged in &judgement.entries {
            let is_told = if is_monitor { judged.is_safety_relevant() } else { is_marked(judged) };
            let version = judged.after.as_ref().map(contract::surface::Entry::entry_hash);
            if !is_told || self.told.len() >= MAX_TOLD {
                continue;
            }
            if !self.told.insert((judged.id.clone(), version)) {
                continue;
            }
            if !is_monitor {
                notes.push(held_at_first_sight(server.as_str(), judged));
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

/// Whether an entry is held for a marker, and no version of it was ever accepted.
fn is_marked(judged: &Judgement) -> bool {
    let has_marker = judged.findings.iter().any(|found| found.kind == ChangeKind::MarkerFound);
    judged.before.is_none() && judged.verdict.is_held() && has_marker
}
