//! The parts of a server that have not been reviewed: everything if it waits for its first
//! approval, and otherwise the origin and the identity if no pin covers them.

use crate::comparing::{Compared, Comparer};
use crate::judge::{Judgement, SurfaceJudgement, judge_each};
use crate::pins::{Basis, Pin, PinBook};
use crate::posture::{Posture, Settings};
use crate::reason::Reason;
use crate::server::ServerStatus;
use crate::time::Timestamp;
use crate::verdict::Verdict;
use contract::surface::{Anchor, Entry, EntryType, Surface};

/// Whether a person has yet to decide if the server may be used. They decide about everything at
/// once: entries that they left out would later look like additions.
pub fn awaits_first_approval(status: ServerStatus, book: &PinBook) -> bool {
    match status {
        ServerStatus::Pending => true,
        ServerStatus::Unbaselined | ServerStatus::Quarantined => !book.has_baseline(),
        ServerStatus::Verified | ServerStatus::Changed => false,
    }
}

/// Judges a server of a home, like [`crate::judge::judge_surface`], but accepts nothing that was
/// not reviewed.
pub fn judge_server(
    status: ServerStatus,
    book: &PinBook,
    surface: &Surface,
    settings: &Settings,
    auto_pins_today: usize,
) -> SurfaceJudgement {
    judge_server_again(status, book, surface, settings, auto_pins_today, &mut Compared::default())
}

/// Like [`judge_server`], for a server that was judged before: unchanged entries are not compared
/// again. `compared` is replaced by the comparisons of this judgement.
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

/// Like [`judge_server_again`], for a surface that is judged again right afterwards: keeps the
/// scans for that.
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

/// Whether the server counts as changed. This does not depend on whether the posture serves changed
/// entries: under monitor, guard's rules decide. `judgement` must be the one just made with
/// `compared`, so that nothing is compared again.
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

/// The state of a server after its current surface was taken in.
#[derive(Debug)]
pub struct TakenIn {
    pub judgement: SurfaceJudgement,
    /// The benign changes. They are already pinned in the book.
    pub repinned: Vec<Entry>,
    pub is_changed: bool,
}

/// Judges a server's current surface, and re-pins benign changes if that is allowed.
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
        // INVARIANT: pins accepted just now count for today, although they have not been written
        // yet.
        judgement = judge_once(status, book, surface, settings, auto_pins, compared);
    }
    judgement.defer_accepted();
    let is_changed = is_changed(&judgement, status, book, surface, settings, auto_pins, compared);
    compared.forget_scans();
    TakenIn { judgement, repinned, is_changed }
}

/// The time of an automatic re-pin, and in whose name it is made.
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

/// INVARIANT: once something of a server is pinned, its identity and origin are never pinned
/// without asking. Otherwise any program could take over a contract that was approved for another
/// one.
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
        // A self-reported identity does not hold calls; it only waits for review.
        judgement.is_accepted = false;
        judgement.is_deferred = is_holding;
    }
}

fn is_unpinned(judgement: &Judgement, book: &PinBook) -> bool {
    book.has_baseline() && book.get(&judgement.id).is_none()
}

/// Whether an unpinned entry holds the whole server: its origin, or its attested identity.
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
