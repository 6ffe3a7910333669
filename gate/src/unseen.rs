//! What of a server nobody has looked at yet: all of one that waits for its first approval, and of any other one the
//! origin and the identity, where no pin has them.

use crate::judge::{Judgement, SurfaceJudgement, judge_each, judge_entry};
use crate::pins::PinBook;
use crate::posture::{Posture, Settings};
use crate::reason::Reason;
use crate::server::ServerStatus;
use crate::verdict::Verdict;
use contract::surface::{Anchor, EntryId, EntryType, Surface};

/// Whether a person is still to say that the server may be used at all. They say it of everything at once: of what they
/// left out nobody could tell later that it was not simply added.
pub fn awaits_first_approval(status: ServerStatus, book: &PinBook) -> bool {
    match status {
        ServerStatus::Pending => true,
        ServerStatus::Unbaselined | ServerStatus::Quarantined => !has_baseline(book),
        ServerStatus::Verified | ServerStatus::Changed => false,
    }
}

/// Judges a server of a home: as [`crate::judge::judge_surface`] does, and nothing is taken on that nobody looked at.
pub fn judge_server(
    status: ServerStatus,
    book: &PinBook,
    surface: &Surface,
    settings: &Settings,
    auto_pins_today: usize,
) -> SurfaceJudgement {
    let is_first = awaits_first_approval(status, book);
    judge_each(book, surface, settings, auto_pins_today, |judgement| {
        if is_first {
            wait(judgement);
        } else {
            hold_unpinned(judgement, book, settings.posture);
        }
    })
}

/// Judges one entry of a server that has a baseline.
pub fn judge_server_entry(
    book: &PinBook,
    surface: &Surface,
    id: &EntryId,
    settings: &Settings,
) -> Option<Judgement> {
    let mut judgement = judge_entry(book, surface, id, settings)?;
    hold_unpinned(&mut judgement, book, settings.posture);
    Some(judgement)
}

fn has_baseline(book: &PinBook) -> bool {
    !book.is_empty() || book.lost.is_some() || !book.tampered.is_empty()
}

fn wait(judgement: &mut Judgement) {
    judgement.is_accepted = false;
    judgement.is_deferred = !judgement.verdict.is_held() && judgement.after.is_some();
}

/// INVARIANT: where something of a server is pinned, who it is and where it comes from is never pinned without asking.
/// Any program could take over the contract that was approved of another one.
fn hold_unpinned(judgement: &mut Judgement, book: &PinBook, posture: Posture) {
    let is_unpinned = has_baseline(book) && book.get(&judgement.id).is_none();
    if !is_unpinned || judgement.verdict.is_held() {
        return;
    }
    let is_holding = posture != Posture::Monitor;
    let is_vouched_for = judgement.after.as_ref().and_then(Anchor::of).is_some();
    match judgement.id.entry_type {
        EntryType::Origin => {}
        EntryType::Identity if is_vouched_for => {}
        // Its own word for itself stops no call; it waits.
        EntryType::Identity => {
            judgement.is_accepted = false;
            judgement.is_deferred = is_holding;
            return;
        }
        EntryType::Tool
        | EntryType::Prompt
        | EntryType::Resource
        | EntryType::Template
        | EntryType::Instructions => return,
    }
    judgement.is_accepted = false;
    judgement.is_deferred = false;
    if is_holding {
        judgement.verdict = Verdict::Hold;
        judgement.reason = Some(Reason::NoPin);
    }
}

#[cfg(test)]
mod tests;
