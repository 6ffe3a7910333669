//! Judges a case under a posture.

use super::{Case, Role};
use contract::surface::Surface;
use gate::by_the_call::CallRulesCache;
use gate::call_verdict::CallCase;
use gate::first_use::first_use;
use gate::judge::judge_surface;
use gate::pins::{Basis, Pin, PinBook};
use gate::posture::{Posture, Settings};
use gate::time::Timestamp;

/// The gate's reaction to a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judged {
    /// The new definition was withheld, or the call was held.
    Stopped,
    /// The new definition was shown, and calls go through.
    Passed,
}

impl Judged {
    /// Whether the reaction is correct for the stratum's role.
    pub fn is_right(self, role: Role) -> bool {
        match role {
            Role::Safety | Role::Drift => self == Judged::Stopped,
            Role::Harmless => self == Judged::Passed,
        }
    }
}

pub fn judge(case: &Case, posture: Posture) -> Judged {
    let settings = Settings::with_posture(posture);
    let mut book = PinBook::default();
    let Some(approved) = &case.approved else { return first_sight(case, posture) };
    for entry in approved.entries() {
        let by = "a person".to_owned();
        book.push(Pin { entry: entry.clone(), basis: Basis::Person, at: Timestamp(0), by });
    }
    for (day, shown) in case.shown.iter().enumerate() {
        if is_stopped(case, &mut book, shown, &settings, day) {
            return Judged::Stopped;
        }
    }
    Judged::Passed
}

/// Judges one release. Entries that are accepted without asking become pins, as they would at a
/// gate.
fn is_stopped(
    case: &Case,
    book: &mut PinBook,
    shown: &Surface,
    settings: &Settings,
    day: usize,
) -> bool {
    let judged = judge_surface(book, shown, settings, 0);
    let Some(entry) = judged.entries.iter().find(|entry| entry.id == case.entry) else {
        return false;
    };
    if let (Some(call), true) = (&case.call, entry.is_by_the_call) {
        let cache = &CallRulesCache::default();
        let call_case = CallCase { book, surface: shown, judgement: &judged, settings, cache };
        return call_case.judge(&case.entry.key, Some(call.as_bytes())).verdict.is_held();
    }
    // A deferred change does not matter if it is harmless (it stops no call), and counts as stopped
    // if it is an attack (it reaches no client).
    let is_deferred = entry.is_deferred && case.stratum.role() != Role::Harmless;
    if entry.verdict.is_held() || is_deferred {
        return true;
    }
    if let (true, Some(after)) = (entry.is_accepted, &entry.after) {
        let at = Timestamp(i64::try_from(day).unwrap_or(0) * 86_400_000);
        book.push(Pin { entry: after.clone(), basis: Basis::Auto, at, by: "holdpoint".to_owned() });
    }
    false
}

/// Nothing is pinned yet: only text that trips the marker scan is held, and nothing under monitor.
fn first_sight(case: &Case, posture: Posture) -> Judged {
    let is_left_out = |shown: &Surface| first_use(shown).left_out.contains(&case.entry);
    match posture != Posture::Monitor && case.shown.iter().any(is_left_out) {
        true => Judged::Stopped,
        false => Judged::Passed,
    }
}
