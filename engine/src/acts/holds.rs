//! Held changes in the form that the ledger records: entry, kinds and hashes.

use contract::surface::Entry;
use gate::judge::Judgement;
use gate::posture::Posture;
use store::HeldChange;

/// The entries that are held because of a change or a marker. An entry that only waits for its
/// first approval, or that could not be read, is not a change.
pub(crate) fn held_changes<'j>(
    posture: Posture,
    entries: impl IntoIterator<Item = &'j Judgement>,
) -> Vec<HeldChange> {
    let is_held = |entry: &&Judgement| entry.verdict.is_held() && !entry.findings.is_empty();
    entries.into_iter().filter(is_held).map(|entry| held_change(posture, entry)).collect()
}

fn held_change(posture: Posture, entry: &Judgement) -> HeldChange {
    let mut kinds: Vec<&'static str> =
        entry.findings.iter().map(|finding| finding.kind.as_str()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    HeldChange {
        entry: entry.id.clone(),
        kinds,
        posture: posture.as_str(),
        before: entry.before.as_ref().map(Entry::entry_hash),
        after: entry.after.as_ref().map(Entry::entry_hash),
        definition: entry.after.as_ref().and_then(Entry::definition_hash),
    }
}
