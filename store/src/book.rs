//! The implementation of [`Store`], generic over the database.

use crate::act::Act;
use crate::by::StoreEvent;
use crate::database::Backend;
use crate::error::StoreError;
use crate::key::KeyProblem;
use crate::record::{
    Baseline, HistoryEvent, Observation, PastPin, Recorded, ServerRecord, Snapshot, Wanted,
};
use crate::tables::{events, history, observation, pins, servers};
use crate::{LaunchHash, LaunchKey, Store, redaction, write};
use contract::surface::EntryId;
use gate::pins::{Basis, PinBook};
use gate::server::ServerId;
use gate::time::Timestamp;
use std::time::Duration;

impl<B: Backend> Store for B {
    fn servers(&self) -> Result<Vec<ServerRecord>, StoreError> {
        self.read(|rows| servers::all(rows, &self.keys().read()?))
    }

    fn server(&self, id: &ServerId) -> Result<Option<ServerRecord>, StoreError> {
        self.read(|rows| servers::one(rows, &self.keys().read()?, id))
    }

    fn launched_alike(
        &self,
        id: &ServerId,
        hash: &LaunchHash,
    ) -> Result<Vec<ServerRecord>, StoreError> {
        self.read(|rows| servers::launched_alike(rows, &self.keys().read()?, id, hash))
    }

    fn pins(&self, id: &ServerId) -> Result<PinBook, StoreError> {
        self.read(|rows| pins::book(rows, &self.keys().read()?, id))
    }

    fn observation(&self, id: &ServerId) -> Result<Option<Observation>, StoreError> {
        self.read(|rows| observation::read(rows, id))
    }

    fn snapshot(&self, id: &ServerId) -> Result<Snapshot, StoreError> {
        self.read(|rows| {
            let key = self.keys().read()?;
            let pins::Read { server, book, .. } = pins::read(rows, &key, id, Wanted::Of(|_| true))?;
            Ok(Snapshot { server, pins: book, observation: observation::read(rows, id)? })
        })
    }

    fn baseline(&self, id: &ServerId, wanted: Wanted<'_>) -> Result<Baseline, StoreError> {
        self.read(|rows| {
            let key = self.keys().read()?;
            let pins::Read { server, book, has_pins } = pins::read(rows, &key, id, wanted)?;
            let sighting = observation::sighting(rows, id)?;
            Ok(Baseline { server, pins: book, has_pins, sighting })
        })
    }

    fn launch_key(&mut self, may_create: bool) -> Result<LaunchKey, StoreError> {
        match self.keys().read()? {
            Ok(key) => return Ok(LaunchKey::of(&key)),
            Err(KeyProblem::Missing(_)) if may_create => {}
            Err(_) => return Ok(LaunchKey::unkept()?),
        }
        self.write(|rows, keys| match keys.read()? {
            Ok(key) => Ok(LaunchKey::of(&key)),
            Err(KeyProblem::Missing(_)) if !servers::any_sealed(rows)? => {
                Ok(LaunchKey::of(&keys.create()?))
            }
            Err(_) => Ok(LaunchKey::unkept()?),
        })
    }

    fn renew_origin(
        &mut self,
        id: &ServerId,
        renew: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(), StoreError> {
        redaction::renew_origin(self, id, renew)
    }

    fn servers_named_by_launches(&self) -> Result<Vec<ServerId>, StoreError> {
        self.read(|rows| history::servers_with_detail(rows, redaction::IN_ID))
    }

    fn record(&mut self, act: Act<'_>) -> Result<Recorded, StoreError> {
        act.check_limits()?;
        let limits = self.limits();
        self.write(|rows, keys| write::record(rows, keys, limits, &act))
    }

    fn pins_ever(&self, id: &ServerId, entry: &EntryId) -> Result<Vec<PastPin>, StoreError> {
        self.read(|rows| pins::ever(rows, &self.keys().read()?, id, entry))
    }

    fn history(&self, id: &ServerId) -> Result<Vec<HistoryEvent>, StoreError> {
        self.read(|rows| history::read(rows, id, self.limits().events))
    }

    fn count_history(
        &self,
        id: &ServerId,
        basis: Basis,
        since: Timestamp,
    ) -> Result<usize, StoreError> {
        self.read(|rows| history::count(rows, id, basis, since))
    }

    fn events(&self) -> Result<Vec<StoreEvent>, StoreError> {
        self.read(|rows| events::read(rows, self.limits().events))
    }

    fn version(&self) -> Result<u64, StoreError> {
        self.current_version()
    }

    fn is_in_place(&self) -> bool {
        Backend::is_in_place(self)
    }

    fn wait_for_change(&self, since: u64, patience: Duration) -> Result<u64, StoreError> {
        self.wait_beyond_version(since, patience)
    }
}
