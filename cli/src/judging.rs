//! Judging what is recorded of a server, and what becomes of its status.

use crate::failure::Failure;
use crate::target::{Workplace, unknown_server};
use contract::surface::{Entry, EntryId, Surface};
use engine::judge::{auto_pins_today, pinned_anchor};
use gate::judge::{Judgement, SurfaceJudgement};
use gate::pins::PinBook;
use gate::posture::Posture;
use gate::server::{ServerId, ServerStatus};
use gate::status::{Happening, next};
use gate::time::Timestamp;
use gate::unseen::{awaits_first_approval, judge_server};
use std::collections::BTreeSet;
use store::{Launch, Snapshot, Store};

/// A server as it was last observed, judged against its pins.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) snapshot: Snapshot,
    pub(crate) surface: Option<Surface>,
    pub(crate) judgement: SurfaceJudgement,
    /// Entries that monitor serves and that still wait for review.
    noted: BTreeSet<EntryId>,
}

impl Judged {
    /// Everything that a person has to look at: what is held or deferred, and under monitor what guard would hold or
    /// defer.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Judgement> {
        let is_waiting = |entry: &&Judgement| entry.is_waiting() || self.noted.contains(&entry.id);
        self.judgement.entries.iter().filter(is_waiting)
    }

    pub(crate) fn status(&self) -> ServerStatus {
        status_of(&self.snapshot)
    }

    /// Everything of the server that is pinned or was seen last.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &EntryId> {
        let pinned = self.snapshot.pins.iter().map(|(id, _)| id);
        pinned.chain(self.surface.iter().flat_map(Surface::entries).map(Entry::id))
    }

    /// Whether a person is still to say that the server may be used at all.
    pub(crate) fn awaits_first_approval(&self) -> bool {
        awaits_first_approval(self.status(), &self.snapshot.pins)
    }
}

fn status_of(snapshot: &Snapshot) -> ServerStatus {
    snapshot.server.as_ref().map_or(ServerStatus::Unbaselined, |server| server.status)
}

pub(crate) fn judge_recorded(
    workplace: &Workplace,
    id: &ServerId,
    posture: Option<Posture>,
    at: Timestamp,
) -> Result<Judged, Failure> {
    let snapshot = workplace.store.snapshot(id)?;
    if snapshot.server.is_none() {
        return Err(unknown_server(id, workplace));
    }
    judge_snapshot(workplace, id, snapshot, posture, at)
}

/// Judges what a snapshot has; of a server that was never seen it has nothing.
pub(crate) fn judge_snapshot(
    workplace: &Workplace,
    id: &ServerId,
    snapshot: Snapshot,
    posture: Option<Posture>,
    at: Timestamp,
) -> Result<Judged, Failure> {
    let surface = match &snapshot.observation {
        Some(observation) => Some(observation.surface()?),
        None => None,
    };
    let nothing = Surface::default();
    let observed = surface.as_ref().unwrap_or(&nothing);
    let judgement = judge(workplace, id, &snapshot, observed, posture, at)?;
    let mut noted = BTreeSet::new();
    if judgement.posture != judgement.posture.for_status() {
        let counted = judge_for_status(workplace, id, &snapshot, observed, at)?;
        noted.extend(counted.waiting().map(|entry| entry.id.clone()));
    }
    Ok(Judged { snapshot, surface, judgement, noted })
}

/// Judges a surface as the server's status counts it, whatever the posture serves.
pub(crate) fn judge_for_status(
    workplace: &Workplace,
    id: &ServerId,
    snapshot: &Snapshot,
    surface: &Surface,
    at: Timestamp,
) -> Result<SurfaceJudgement, Failure> {
    let given = posture_of_gate(snapshot);
    let posture = workplace.configuration.settings(Some(id), given)?.posture.for_status();
    judge(workplace, id, snapshot, surface, Some(posture), at)
}

/// The posture on the command line of the gate that last ran. It goes before the configuration, as it did in the gate:
/// otherwise a person would be told something else than the agent was.
fn posture_of_gate(snapshot: &Snapshot) -> Option<Posture> {
    let server = snapshot.server.as_ref().filter(|server| server.lost.is_none());
    server.and_then(|server| server.launch.as_ref()).and_then(Launch::posture)
}

/// Judges a surface under this posture, or under the one that the server's gate runs under.
pub(crate) fn judge(
    workplace: &Workplace,
    id: &ServerId,
    snapshot: &Snapshot,
    surface: &Surface,
    posture: Option<Posture>,
    at: Timestamp,
) -> Result<SurfaceJudgement, Failure> {
    let posture = posture.or_else(|| posture_of_gate(snapshot));
    let settings = workplace.configuration.settings(Some(id), posture)?;
    let auto_pins = auto_pins_today(&workplace.store, id, at)?;
    let mut anchored = None;
    if let (None, Some(anchor)) = (surface.anchor(), pinned_anchor(&snapshot.pins)) {
        let surface = anchored.insert(surface.clone());
        // The identity is text that was read before, so it reads again.
        let _ = surface.anchor_to(&anchor);
    }
    let surface = anchored.as_ref().unwrap_or(surface);
    Ok(judge_server(status_of(snapshot), &snapshot.pins, surface, &settings, auto_pins))
}

/// Whether anything was ever pinned. Pins that cannot be trusted count: what was lost is not first sight.
pub(crate) fn has_baseline(book: &PinBook) -> bool {
    !book.is_empty() || is_damaged(book)
}

/// Whether pins were edited or removed behind Holdpoint's back, so that only a person can mend them.
pub(crate) fn is_damaged(book: &PinBook) -> bool {
    book.lost.is_some() || !book.tampered.is_empty()
}

/// The status after a server was judged by [`judge_for_status`].
pub(crate) fn status_after(status: ServerStatus, judgement: &SurfaceJudgement) -> ServerStatus {
    let is_held = judgement.verdict.is_held();
    next(status, Happening::Judged { is_held }).unwrap_or(status)
}
