//! A server's record, with the settings that it is judged by. Every act is based on this.

use crate::acts::ActError;
use crate::acts::siblings::Siblings;
use crate::anchor::anchor;
use crate::judge::auto_pins_today;
use contract::surface::{Entry, Surface};
use gate::comparing::Compared;
use gate::judge::SurfaceJudgement;
use gate::pins::{Basis, Pin, PinBook};
use gate::posture::{Posture, Settings};
use gate::server::{ServerId, ServerStatus};
use gate::status::{Happening, next};
use gate::time::Timestamp;
use gate::unseen::{awaits_first_approval, judge_server_again};
use store::{Baseline, By, Launch, LaunchIdentity, Snapshot, Store, StoreError};

#[derive(Debug, Clone)]
pub struct RecordedServer {
    pub id: ServerId,
    pub snapshot: Snapshot,
    /// Other servers with the same launch, to which decisions about this one apply too.
    pub siblings: Vec<ServerId>,
    settings: Settings,
    /// How many entries were pinned automatically during the last day.
    auto_pins: usize,
}

impl RecordedServer {
    /// Reads a server, which need not be known yet. `configured` are the settings from the
    /// configuration.
    pub fn read(
        store: &dyn Store,
        id: &ServerId,
        configured: Settings,
        at: Timestamp,
    ) -> Result<RecordedServer, StoreError> {
        let mut settings = configured;
        let snapshot = store.snapshot(id)?;
        settings.posture = posture_of_gate(&snapshot).unwrap_or(settings.posture);
        let auto_pins = auto_pins_today(store, id, at)?;
        let identity = snapshot.server.as_ref().and_then(|server| server.identity());
        let siblings = Siblings::of(store, id, identity)?.ids;
        Ok(RecordedServer { id: id.clone(), snapshot, siblings, settings, auto_pins })
    }

    /// Like [`Self::read`], for a server that must be known.
    pub fn known(
        store: &dyn Store,
        id: &ServerId,
        configured: Settings,
        at: Timestamp,
    ) -> Result<RecordedServer, ActError> {
        let server = RecordedServer::read(store, id, configured, at)?;
        match server.snapshot.server {
            Some(_) => Ok(server),
            None => Err(ActError::unknown_server(store, id)),
        }
    }

    /// The server of a running gate, which has already read its baseline. `siblings` is empty,
    /// because a gate does not show them.
    pub(crate) fn of_gate(
        id: &ServerId,
        baseline: Baseline,
        settings: Settings,
        auto_pins: usize,
    ) -> RecordedServer {
        let Baseline { server, pins, .. } = baseline;
        let snapshot = Snapshot { server, pins, observation: None };
        let siblings = Vec::new();
        RecordedServer { id: id.clone(), snapshot, siblings, settings, auto_pins }
    }

    pub fn status(&self) -> ServerStatus {
        self.snapshot.status()
    }

    pub fn pins(&self) -> &PinBook {
        &self.snapshot.pins
    }

    /// The part of the launch that servers may have in common.
    pub(super) fn identity(&self) -> Option<&LaunchIdentity> {
        self.snapshot.server.as_ref()?.identity()
    }

    /// The pins after a person approves these entries. If the book as a whole is lost, only these
    /// entries count from then on.
    pub(super) fn pins_with(&self, entries: &[Entry], by: By<'_>) -> PinBook {
        let is_lost = self.pins().lost.is_some();
        let mut book = if is_lost { PinBook::default() } else { self.pins().clone() };
        for entry in entries {
            book.tampered.remove(entry.id());
            let (entry, basis, name) = (entry.clone(), Basis::Person, by.name.to_owned());
            book.push(Pin { entry, basis, at: by.at, by: name });
        }
        book
    }

    /// Whether a person has yet to decide if the server may be used.
    pub fn awaits_first_approval(&self) -> bool {
        awaits_first_approval(self.status(), self.pins())
    }

    /// Judges a surface under the given posture, or under that of the server's gate.
    pub fn judge(&self, surface: &Surface, posture: Option<Posture>) -> SurfaceJudgement {
        let posture = posture.unwrap_or(self.settings.posture);
        self.judge_with(self.pins(), surface, posture, &mut Compared::default())
    }

    /// Judges a surface for the server's status, which does not depend on what the posture serves.
    pub fn judge_for_status(&self, surface: &Surface) -> SurfaceJudgement {
        self.judge(surface, Some(self.settings.posture.for_status()))
    }

    /// The status after an event, if the status allows that transition.
    pub(super) fn next(&self, happening: Happening) -> Result<ServerStatus, ActError> {
        let refused = |source| ActError::NotAllowed { server: self.id.clone(), source };
        next(self.status(), happening).map_err(refused)
    }

    /// Whether the status would count anything in a surface as held, if these were the pins.
    pub(super) fn is_held_with(
        &self,
        pins: &PinBook,
        surface: &Surface,
        compared: &mut Compared,
    ) -> bool {
        let posture = self.settings.posture.for_status();
        self.judge_with(pins, surface, posture, compared).verdict.is_held()
    }

    fn judge_with(
        &self,
        pins: &PinBook,
        surface: &Surface,
        posture: Posture,
        compared: &mut Compared,
    ) -> SurfaceJudgement {
        let settings = Settings { posture, ..self.settings.clone() };
        let mut anchored = surface.clone();
        anchor(&mut anchored, surface.anchor(), pins);
        judge_server_again(self.status(), pins, &anchored, &settings, self.auto_pins, compared)
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }
}

/// The posture from the command line of the gate that ran last. It overrides the configuration here
/// as it did in the gate; otherwise a person would see a different judgement from the one that the
/// agent encountered.
fn posture_of_gate(snapshot: &Snapshot) -> Option<Posture> {
    let server = snapshot.server.as_ref().filter(|server| server.lost.is_none());
    server.and_then(|server| server.launch.as_ref()).and_then(Launch::posture)
}
