//! Stopping a server, letting it go again, taking a pin back, and recording what it shows.

use crate::acts::{ActError, Among, RecordedServer, Review, held_changes};
use contract::surface::{EntryId, Surface};
use gate::comparing::Compared;
use gate::judge::SurfaceJudgement;
use gate::server::{ServerId, ServerStatus};
use gate::status::{Happening, next};
use store::{Act, By, HoldDecision, Observation, Store};

/// What became of a server that is to be stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quarantine {
    Stopped,
    /// It was stopped before, and its record is sound.
    Already,
}

/// Stops a server. What is held of it is confirmed by that: `review` is the server as it was last observed, where it can
/// be judged. A server whose record cannot be read is stopped all the same.
pub fn quarantine(
    store: &mut dyn Store,
    id: &ServerId,
    review: Option<&Review>,
    by: By<'_>,
) -> Result<Quarantine, ActError> {
    let Some(server) = store.server(id)? else { return Err(ActError::unknown_server(store, id)) };
    if server.status == ServerStatus::Quarantined && server.lost.is_none() {
        return Ok(Quarantine::Already);
    }
    let mut act = Act::new(id, by.at, by.name, "server.quarantine");
    act.status = Some(ServerStatus::Quarantined);
    if let Some(review) = review.filter(|review| review.status() == ServerStatus::Changed) {
        act.held = held_changes(&review.judgement.entries);
        act.decision = Some(HoldDecision::Confirmed);
    }
    store.record(act)?;
    Ok(Quarantine::Stopped)
}

impl RecordedServer {
    /// Refuses to release a server that is not quarantined: to be asked before a person is.
    pub fn check_release(&self) -> Result<(), ActError> {
        self.released().map(|_| ())
    }

    fn released(&self) -> Result<ServerStatus, ActError> {
        self.next(Happening::Released { has_baseline: self.pins().has_baseline() })
    }
}

/// Ends a quarantine: the server becomes what a new observation makes of it.
pub fn release(
    store: &mut dyn Store,
    server: &RecordedServer,
    surface: &Surface,
    by: By<'_>,
) -> Result<ServerStatus, ActError> {
    let released = server.released()?;
    // Without a baseline there is nothing to judge it by, and the status stays.
    let status = status_after(released, &server.judge_for_status(surface));
    let observation = Observation::of(surface, by.at);
    let mut act = Act::new(&server.id, by.at, by.name, "server.release");
    act.expect = Some(server.snapshot.revision());
    act.observation = Some(&observation);
    act.status = Some(status);
    store.record(act)?;
    Ok(status)
}

/// An entry whose newest pin was taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolledBack {
    pub entry: EntryId,
    pub status: ServerStatus,
}

/// Takes back the newest pin of the entry that a key names.
pub fn rollback(
    store: &mut dyn Store,
    review: &Review,
    key: &str,
    by: By<'_>,
) -> Result<RolledBack, ActError> {
    let server = &review.server;
    let Some((entry, pins)) = Review::find(server.pins().iter(), |(id, _)| id, key)? else {
        let (server, key) = (server.id.clone(), key.to_owned());
        if review.has_entry(&key) {
            return Err(ActError::Unpinned { server, key });
        }
        let known = review.server.pins().iter().map(|(id, _)| id.clone()).collect();
        return Err(ActError::UnknownEntry { server, key, among: Among::Pinned, known });
    };
    if pins.iter().nth(1).is_none() {
        return Err(ActError::OnlyPin { entry: entry.clone() });
    }
    let nothing = Surface::default();
    let surface = review.surface.as_ref().unwrap_or(&nothing);
    let pins = server.pins().clone().without_newest(entry);
    let is_held = server.is_held_with(&pins, surface, &mut Compared::default());
    let status = after(server.status(), is_held);
    let mut act = Act::new(&server.id, by.at, by.name, "server.rollback");
    act.expect = Some(server.snapshot.revision());
    act.withdraw = vec![entry.clone()];
    act.status = Some(status);
    act.detail = Some(format!("{:.200}", entry.to_string()));
    store.record(act)?;
    Ok(RolledBack { entry: entry.clone(), status })
}

/// Records what a server shows, so that it can be reviewed; no pin is touched. Without `counted`, the judgement for its
/// status, the status stays. A record that cannot be trusted is left as it is.
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
        act.held = held_changes(&judgement.entries);
    }
    store.record(act)?;
    Ok(())
}

/// The status after a server was judged by [`RecordedServer::judge_for_status`].
fn status_after(status: ServerStatus, judgement: &SurfaceJudgement) -> ServerStatus {
    after(status, judgement.verdict.is_held())
}

fn after(status: ServerStatus, is_held: bool) -> ServerStatus {
    next(status, Happening::Judged { is_held }).unwrap_or(status)
}
