//! The parts of a server that were not reviewed yet: all of one that waits for its first approval, and of any other one the
//! origin and the identity, where no pin has them.

use crate::comparing::{Compared, Comparer};
use crate::judge::{Judgement, SurfaceJudgement, judge_each};
use crate::pins::{Basis, Pin, PinBook};
use crate::posture::{Posture, Settings};
use crate::reason::Reason;
use crate::server::ServerStatus;
use crate::time::Timestamp;
use crate::verdict::Verdict;
use contract::surface::{Anchor, Entry, EntryType, Surface};

/// Whether a person is still to say that the server may be used at all. They say it of everything at once: of what they
/// left out it would later look as if it was simply added.
pub fn awaits_first_approval(status: ServerStatus, book: &PinBook) -> bool {
    match status {
        ServerStatus::Pending => true,
        ServerStatus::Unbaselined | ServerStatus::Quarantined => !book.has_baseline(),
        ServerStatus::Verified | ServerStatus::Changed => false,
    }
}

/// Judges a server of a home: as [`crate::judge::judge_surface`] does, but accepts nothing that was not reviewed.
pub fn judge_server(
    status: ServerStatus,
    book: &PinBook,
    surface: &Surface,
    settings: &Settings,
    auto_pins_today: usize,
) -> SurfaceJudgement {
    judge_server_again(status, book, surface, settings, auto_pins_today, &mut Compared::default())
}

/// The same where the server was judged before: what did not change since is not compared again. `compared` is then
/// what this judgement compared.
pub fn judge_server_again(
    status: ServerStatus,
    book: &PinBook,
    surface: &Surface,
    settings: &Settings,
    auto_pins_today: usize,
    compared: &mut Compared,
) -> SurfaceJudgement {
    let judgement = judge_once(status, book, surface, settings, auto_pins_today, compared);
    compared.forget_scans();
    judgement
}

/// The same for a surface that is judged once more right after: what was scanned is not scanned again.
fn judge_once(
    status: ServerStatus,
    book: &PinBook,
    surface: &Surface,
    settings: &Settings,
    auto_pins_today: usize,
    compared: &mut Compared,
) -> SurfaceJudgement {
    let is_first = awaits_first_approval(status, book);
    let mut comparer = Comparer::knowing(compared, book, surface);
    let judgement =
        judge_each(book, surface, settings, auto_pins_today, &mut comparer, |judgement| {
            if is_first {
                wait(judgement);
            } else {
                hold_unpinned(judgement, book, settings.posture);
            }
        });
    *compared = comparer.into_compared();
    judgement
}

/// Whether the server counts as changed, which does not depend on whether the posture serves what changed: monitor
/// counts what guard would hold. `judgement` is the one that was just made with `compared`, so nothing is compared again.
pub fn is_changed(
    judgement: &SurfaceJudgement,
    status: ServerStatus,
    book: &PinBook,
    surface: &Surface,
    settings: &Settings,
    auto_pins_today: usize,
    compared: &mut Compared,
) -> bool {
    let posture = settings.posture.for_status();
    if posture == settings.posture {
        return judgement.verdict.is_held();
    }
    let settings = Settings { posture, ..settings.clone() };
    judge_server_again(status, book, surface, &settings, auto_pins_today, compared)
        .verdict
        .is_held()
}

/// How a server stands once what it says now was taken in.
#[derive(Debug)]
pub struct TakenIn {
    pub judgement: SurfaceJudgement,
    /// The benign changes, which are pinned in the book already.
    pub repinned: Vec<Entry>,
    pub is_changed: bool,
}

/// Judges what a server says now, and pins benign changes again where that is allowed.
pub fn take_in(
    status: ServerStatus,
    book: &mut PinBook,
    surface: &Surface,
    settings: &Settings,
    auto_pins_today: usize,
    compared: &mut Compared,
    repinning: Option<Repinning<'_>>,
) -> TakenIn {
    let mut judgement = judge_once(status, book, surface, settings, auto_pins_today, compared);
    let mut repinned = Vec::new();
    if let Some(Repinning { at, by }) = repinning {
        repinned.extend(judgement.accepted().cloned());
        for entry in repinned.iter().cloned() {
            book.push(Pin { entry, basis: Basis::Auto, at, by: by.to_owned() });
        }
    }
    let auto_pins = auto_pins_today + repinned.len();
    if !repinned.is_empty() {
        // INVARIANT: what was accepted just now counts for today, though it is not written yet.
        judgement = judge_once(status, book, surface, settings, auto_pins, compared);
    }
    judgement.defer_accepted();
    let is_changed = is_changed(&judgement, status, book, surface, settings, auto_pins, compared);
    compared.forget_scans();
    TakenIn { judgement, repinned, is_changed }
}

/// As whose act benign changes are pinned again, and when.
#[derive(Debug, Clone, Copy)]
pub struct Repinning<'a> {
    pub at: Timestamp,
    pub by: &'a str,
}

fn wait(judgement: &mut Judgement) {
    judgement.is_accepted = false;
    judgement.is_by_the_call = false;
    judgement.is_deferred = !judgement.verdict.is_held() && judgement.after.is_some();
}

/// INVARIANT: where something of a server is pinned, who it is and where it comes from is never pinned without asking.
/// Any program could take over the contract that was approved of another one.
fn hold_unpinned(judgement: &mut Judgement, book: &PinBook, posture: Posture) {
    if judgement.verdict.is_held() {
        return;
    }
    let is_holding = posture != Posture::Monitor;
    if holds_unpinned(judgement, book) {
        judgement.is_accepted = false;
        judgement.is_deferred = false;
        if is_holding {
            judgement.verdict = Verdict::Hold;
            judgement.reason = Some(Reason::NoPin);
        }
    } else if judgement.id.entry_type == EntryType::Identity && is_unpinned(judgement, book) {
        // Its own word for itself stops no call; it waits.
        judgement.is_accepted = false;
        judgement.is_deferred = is_holding;
    }
}

fn is_unpinned(judgement: &Judgement, book: &PinBook) -> bool {
    book.has_baseline() && book.get(&judgement.id).is_none()
}

/// Whether an entry without a pin holds the server: where it comes from, or who vouches for it.
pub(crate) fn holds_unpinned(judgement: &Judgement, book: &PinBook) -> bool {
    let is_about_server = match judgement.id.entry_type {
        EntryType::Origin => true,
        EntryType::Identity => judgement.after.as_ref().and_then(Anchor::of).is_some(),
        EntryType::Tool
        | EntryType::Prompt
        | EntryType::Resource
        | EntryType::Template
        | EntryType::Instructions => false,
    };
    is_about_server && is_unpinned(judgement, book)
}

#[cfg(test)]
mod tests;
