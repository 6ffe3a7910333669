//! What the client sees of a list.

use crate::judge::SurfaceJudgement;
use crate::pins::{EntryPins, PinBook};
use crate::posture::Posture;
use contract::surface::{Entry, EntryId, ListKind, Surface};

/// How lists are modified before the client sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ListMode {
    /// Accepted definitions, plus a stub for each tool that was held when it was first seen
    /// ([`crate::stub`]).
    #[default]
    Stub,
    /// Accepted definitions only.
    Accepted,
    /// The server's response, unmodified.
    Observed,
}

/// The entries of a list as the client sees them: each is byte for byte what the server sent when
/// it was accepted.
///
/// INVARIANT: except under monitor and `list = "observed"`, they contain no unaccepted text.
pub fn shown<'a>(
    book: &'a PinBook,
    surface: &'a Surface,
    judgement: &'a SurfaceJudgement,
    list: ListKind,
    mode: ListMode,
) -> Vec<(&'a EntryId, &'a str)> {
    let entries = shown_entries(book, surface, judgement, list, mode).into_iter();
    entries.map(|(id, entry)| (id, entry.raw())).collect()
}

/// Like [`shown`], with the id of each entry. The id stays the same even if the entry's own name
/// changes.
pub fn shown_entries<'a>(
    book: &'a PinBook,
    surface: &'a Surface,
    judgement: &'a SurfaceJudgement,
    list: ListKind,
    mode: ListMode,
) -> Vec<(&'a EntryId, &'a Entry)> {
    let observed = surface.list(list);
    if mode == ListMode::Observed || judgement.posture == Posture::Monitor {
        return observed.map(|entry| (entry.id(), entry)).collect();
    }
    observed.filter_map(|entry| shown_entry(book, judgement, entry)).collect()
}

fn shown_entry<'a>(
    book: &'a PinBook,
    judgement: &'a SurfaceJudgement,
    entry: &'a Entry,
) -> Option<(&'a EntryId, &'a Entry)> {
    if book.lost.is_some() || book.tampered.contains_key(entry.id()) {
        return None;
    }
    let pins = book.get(entry.id());
    // An entry that equals any approved pin is shown as approved then: reverting to an earlier
    // version is not a change.
    if let Some(pin) = pins.and_then(|pins| pins.approved_with(entry.entry_hash())) {
        return Some((entry.id(), &pin.entry));
    }
    let judged = judgement.of(entry.id());
    if judged.is_some_and(|judged| judged.is_accepted) {
        return Some((entry.id(), entry));
    }
    pins.and_then(EntryPins::accepted).map(|pin| (entry.id(), &pin.entry))
}

#[cfg(test)]
mod tests;
