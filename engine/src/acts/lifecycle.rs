//! Stopping a server, releasing it, rolling back a pin, and recording what the server shows.

use crate::acts::siblings::{SharedAct, Siblings};
use crate::acts::{
    ActError, Among, Configured, Decided, RecordedServer, Review, Shared, held_changes,
};
use contract::surface::{EntryId, Surface};
use gate::comparing::Compared;
use gate::judge::SurfaceJudgement;
use gate::pins::{EntryPins, Pin};
use gate::server::{ServerId, ServerStatus};
use gate::status::{Happening, next};
use store::{Act, By, HoldDecision, Observation, Revision, Store};

/// The outcome of quarantining a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quarantine {
    Stopped,
    /// It was already stopped, and its record is intact.
    Already,
}

/// The effects of quarantining a server, on it and on others with the same launch.
#[derive(Debug)]
pub struct Quarantined {
    pub outcome: Quarantine,
    pub shared: Vec<Shared>,
}

/// Stops a server and all others with the same launch, which confirms their holds. `review` is the
/// server's last observation, if it can be judged. A server whose record cannot be read is stopped
/// anyway.
pub fn quarantine(
    store: &mut dyn Store,
    id: &ServerId,
    review: Option<&Review>,
    configured: Configured<'_>,
    by: By<'_>,
) -> Result<Quarantined, ActError> {
    const NAME: &str = "server.quarantine";
    let Some(server) = store.server(id)? else { return Err(ActError::unknown_server(store, id)) };
    let siblings = Siblings::of(store, id, server.identity())?;
    let is_stopped = server.status == ServerStatus::Quarantined && server.lost.is_none();
    if !is_stopped {
        let mut act = Act::new(id, by.at, by.name, NAME);
        act.status = Some(ServerStatus::Quarantined);
        if let Some(review) = review.filter(|review| review.status() == ServerStatus::Changed) {
            act.held = held_changes(review.judgement.posture, &review.judgement.entries);
            act.decision = Some(HoldDecision::Confirmed);
        }
        store.record(act)?;
    }
    let shared = siblings.share(store, configured, by, |sibling| {
        if sibling.status() == ServerStatus::Quarantined {
            return Ok(None);
        }
        let mut stopped = SharedAct::new(NAME, ServerStatus::Quarantined);
        let review = Review::of(sibling.clone()).ok();
        if let Some(review) = review.filter(|review| review.status() == ServerStatus::Changed) {
            stopped.held = held_changes(review.judgement.posture, &review.judgement.entries);
            stopped.decision = Some(HoldDecision::Confirmed);
        }
        Ok(Some(stopped))
    });
    let outcome = if is_stopped { Quarantine::Already } else { Quarantine::Stopped };
    Ok(Quarantined { outcome, shared })
}

/// Stops a configured server before it is ever seen.
pub fn quarantine_unseen(store: &mut dyn Store, id: &ServerId, by: By<'_>) -> Result<(), ActError> {
    let mut act = Act::new(id, by.at, by.name, "server.quarantine");
    act.expect = Some(Revision::NONE);
    act.status = Some(ServerStatus::Quarantined);
    store.record(act)?;
    Ok(())
}

impl RecordedServer {
    /// Refuses to release a server that is not quarantined. To be called before a person is asked.
    pub fn check_release(&self) -> Result<(), ActError> {
        self.released().map(|_| ())
    }

    fn released(&self) -> Result<ServerStatus, ActError> {
        self.next(Happening::Released { has_baseline: self.pins().has_baseline() })
    }
}

/// Ends a quarantine: a new observation determines the server's status. For other servers with the
/// same launch, their last observation does.
pub fn release(
    store: &mut dyn Store,
    server: &RecordedServer,
    surface: &Surface,
    configured: Configured<'_>,
    by: By<'_>,
) -> Result<Decided, ActError> {
    const NAME: &str = "server.release";
    let released = server.released()?;
    // Without a baseline there is nothing to judge the server by, so the status stays.
    let status = status_after(released, &server.judge_for_status(surface));
    let observation = Observation::of(surface, by.at);
    let siblings = Siblings::of(store, &server.id, server.identity())?;
    let mut act = Act::new(&server.id, by.at, by.name, NAME);
    act.expect = Some(server.snapshot.revision());
    act.observation = Some(&observation);
    act.status = Some(status);
    store.record(act)?;
    let shared = siblings.share(store, configured, by, |sibling| {
        if sibling.status() != ServerStatus::Quarantined {
            return Ok(None);
        }
        let seen = sibling.snapshot.observation.as_ref();
        let seen = seen.map(Observation::surface).transpose()?.unwrap_or_default();
        let status = status_after(sibling.released()?, &sibling.judge_for_status(&seen));
        Ok(Some(SharedAct::new(NAME, status)))
    });
    Ok(Decided { status, shared })
}

/// An entry whose newest pin was removed.
#[derive(Debug)]
pub struct RolledBack {
    pub entry: EntryId,
    pub status: ServerStatus,
    pub shared: Vec<Shared>,
}

/// Removes the newest pin of the entry that a key names, and the same pin of other servers with the
/// same launch.
pub fn rollback(
    store: &mut dyn Store,
    review: &Review,
    key: &str,
    configured: Configured<'_>,
    by: By<'_>,
) -> Result<RolledBack, ActError> {
    const NAME: &str = "server.rollback";
    let server = &review.server;
    let Some((entry, pins)) = Review::find(server.pins().iter(), |(id, _)| id, key)? else {
        let (server, key) = (server.id.clone(), key.to_owned());
        if review.has_entry(&key) {
            return Err(ActError::Unpinned { server, key });
        }
        let known = review.server.pins().iter().map(|(id, _)| id.clone()).collect();
        return Err(ActError::UnknownEntry { server, key, among: Among::Pinned, known });
    };
    let Some(newest) = newest_of_several(pins) else {
        return Err(ActError::OnlyPin { entry: entry.clone() });
    };
    let nothing = Surface::default();
    let surface = review.surface.as_ref().unwrap_or(&nothing);
    let status = server.status_without(entry, surface);
    let siblings = Siblings::of(store, &server.id, server.identity())?;
    let detail = format!("{:.200}", entry.to_string());
    let mut act = Act::new(&server.id, by.at, by.name, NAME);
    act.expect = Some(server.snapshot.revision());
    act.withdraw = vec![entry.clone()];
    act.status = Some(status);
    act.detail = Some(detail.clone());
    store.record(act)?;
    let shared = siblings.share(store, configured, by, |sibling| {
        let pinned = sibling.pins().get(entry).and_then(newest_of_several);
        if !pinned.is_some_and(|pin| pin.entry == newest.entry) {
            return Ok(None);
        }
        let seen = sibling.snapshot.observation.as_ref();
        let seen = seen.map(Observation::surface).transpose()?.unwrap_or_default();
        let status = sibling.status_without(entry, &seen);
        let (withdraw, detail) = (vec![entry.clone()], Some(detail.clone()));
        Ok(Some(SharedAct { withdraw, detail, ..SharedAct::new(NAME, status) }))
    });
    Ok(RolledBack { entry: entry.clone(), status, shared })
}

/// The newest pin, if there is an earlier one to go back to.
fn newest_of_several(pins: &EntryPins) -> Option<&Pin> {
    let mut newest_first = pins.iter().rev();
    newest_first.next().filter(|_| newest_first.next().is_some())
}

impl RecordedServer {
    /// The status after the newest pin of an entry is removed.
    fn status_without(&self, entry: &EntryId, surface: &Surface) -> ServerStatus {
        let pins = self.pins().clone().without_newest(entry);
        after(self.status(), self.is_held_with(&pins, surface, &mut Compared::default()))
    }
}

/// Records what a server shows, so that it can be reviewed, without changing any pin. The status
/// changes only if `counted`, the judgement for the status, is given. A record that cannot be
/// trusted is not changed.
pub fn observe(
    store: &mut dyn Store,
    server: &RecordedServer,
    surface: &Surface,
    counted: Option<&SurfaceJudgement>,
    by: By<'_>,
) -> Result<(), ActError> {
    if server.snapshot.server.as_ref().is_none_or(|server| server.lost.is_some()) {
        return Ok(());
    }
    let observation = Observation::of(surface, by.at);
    let mut act = Act::new(&server.id, by.at, by.name, "server.observe");
    act.observation = Some(&observation);
    let status = counted.map(|judgement| status_after(server.status(), judgement));
    act.status = status.filter(|status| *status != server.status());
    let seen = server.snapshot.observation.as_ref();
    let has_moved = seen.is_none_or(|seen| seen.surface_hash != observation.surface_hash);
    if let Some(judgement) = counted.filter(|_| has_moved) {
        act.held = held_changes(judgement.posture, &judgement.entries);
    }
    store.record(act)?;
    Ok(())
}

/// The status after [`RecordedServer::judge_for_status`] judged a server.
fn status_after(status: ServerStatus, judgement: &SurfaceJudgement) -> ServerStatus {
    after(status, judgement.verdict.is_held())
}

fn after(status: ServerStatus, is_held: bool) -> ServerStatus {
    next(status, Happening::Judged { is_held }).unwrap_or(status)
}
