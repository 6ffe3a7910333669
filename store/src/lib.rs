//! Holdpoint's home directory, and the state kept there: servers, pins, the last observed surfaces
//! and history.
//!
//! One trait, [`Store`], with SQLite or PostgreSQL behind it. Pins are authenticated: a row that
//! another program changed is reported as tampered or lost and is never trusted. This crate makes
//! no decisions; it only reports what is stored.
#![forbid(unsafe_code)]

mod act;
mod api_key;
mod approval;
mod authenticate;
mod book;
mod by;
mod database;
mod drill;
mod error;
mod home;
mod incident;
mod key;
mod launch_identity;
mod launch_key;
mod location;
mod named;
mod postgres;
mod quarantine;
pub mod receipts;
mod record;
mod redaction;
mod relocate;
mod sign_in;
mod sqlite;
mod statistics;
mod tables;
mod witnessed;
mod write;

pub use act::{
    Act, HeldChange, HoldDecision, MAX_CAPTURE_BYTES, MAX_DETAIL_BYTES, MAX_LAUNCH_BYTES,
    MAX_NAME_BYTES, MAX_NOTES_BYTES, MAX_PINS_PER_ACT, NewPin,
};
pub use api_key::{
    ActorType, ApiKey, ApiKeyHash, ApiKeyId, ApiKeyStore, MAX_API_KEYS, MAX_GROUPS,
    MAX_PRINCIPAL_BYTES, NewApiKey,
};
pub use approval::{
    ApprovalDecision, ApprovalId, ApprovalState, ApprovalStore, ArgsHash, CallApproval,
    CallBinding, KEPT_APPROVAL_DAYS, KEPT_FOR_TAKER_MILLISECONDS, MAX_PARKED_CALLS, MAX_TOOL_BYTES,
    Spent, Taken,
};
pub use by::{By, Signed, StoreEvent};
pub use drill::{DrillSighting, DrillStore, MAX_DRILL_PLACE_BYTES, MAX_DRILL_SIGHTINGS};
pub use error::{HomeError, Refusal, StoreError};
pub use home::Home;
pub use incident::{
    Incident, IncidentLevel, IncidentScope, IncidentSeal, IncidentState, IncidentStore,
    MAX_INCIDENT_SERVERS, MAX_REASON_BYTES, MAX_REVOCATIONS, MAX_REVOKED_BYTES, MAX_STOPPED_BYTES,
    NotATool, Revocation, RevokedKind, StoppedParts, StoppedTool,
};
pub use launch_identity::{EntryFile, LaunchHash, LaunchIdentity, StartedProgram};
pub use launch_key::LaunchKey;
pub use location::{Location, LocationError, open};
pub use named::{BadId, MAX_ID_BYTES};
pub use postgres::{
    Address, AddressError, CountedCalls, InstanceKey, KnownNode, MAX_NODE_ADDRESS_BYTES, MAX_NODES,
    MAX_REPORTED_BUCKETS, NodeId, NodeRegistry, PostgresStore, RateCounts, ReportedCalls,
};
pub use quarantine::{MAX_QUARANTINED_BYTES, MAX_QUARANTINES, Quarantine, QuarantineId};
pub use record::{
    Baseline, HistoryEvent, Launch, Observation, ObservationError, PastPin, Recorded, Revision,
    ServerRecord, Sighting, Snapshot, Wanted,
};
pub use redaction::exists as launch_path_exists;
pub use relocate::{Relocated, relocate};
pub use sign_in::{
    ClaimId, Claimed, MAX_SEALED_BYTES, MAX_SIGN_INS_PER_OWNER, SignIn, SignInKind, SignInName,
    SignInStore,
};
pub use sqlite::{BUSY_TIMEOUT_SECONDS, SqliteStore};
pub use statistics::{
    Count, Day, MAX_COUNTER_BYTES, MAX_COUNTS_PER_WRITE, MAX_COUNTS_READ, StatisticsStore,
};
pub use tables::history::MAX_HISTORY_EVENTS;
pub use witnessed::{MAX_NAMED_ENTRIES, Witnessed};
pub use write::{MAX_PIN_BYTES_PER_SERVER, MAX_PINS_PER_SERVER};

use contract::surface::EntryId;
use gate::pins::{Basis, PinBook};
use gate::server::ServerId;
use gate::time::Timestamp;
use std::time::Duration;

/// The state that Holdpoint keeps between runs, shared by all its processes.
pub trait Store:
    IncidentStore
    + ApiKeyStore
    + ApprovalStore
    + SignInStore
    + StatisticsStore
    + DrillStore
    + std::fmt::Debug
    + Send
{
    /// All servers, ordered by id.
    fn servers(&self) -> Result<Vec<ServerRecord>, StoreError>;

    fn server(&self, id: &ServerId) -> Result<Option<ServerRecord>, StoreError>;

    /// The other servers that are launched the same way, ordered by id. Only servers whose records
    /// authenticate are included.
    fn launched_alike(
        &self,
        id: &ServerId,
        hash: &LaunchHash,
    ) -> Result<Vec<ServerRecord>, StoreError>;

    /// The pins of a server, without the withdrawn ones. Pins that do not authenticate are in
    /// `tampered` or `lost`.
    fn pins(&self, id: &ServerId) -> Result<PinBook, StoreError>;

    /// All authentic pins of one entry, including withdrawn ones, oldest first.
    fn pins_ever(&self, id: &ServerId, entry: &EntryId) -> Result<Vec<PastPin>, StoreError>;

    /// The last observed surface, accepted or not.
    fn observation(&self, id: &ServerId) -> Result<Option<Observation>, StoreError>;

    /// The record, pins and observation of a server, read at one moment.
    fn snapshot(&self, id: &ServerId) -> Result<Snapshot, StoreError>;

    /// The data a server is judged by, read at one moment, with only the wanted pins in memory.
    fn baseline(&self, id: &ServerId, wanted: Wanted<'_>) -> Result<Baseline, StoreError>;

    /// The key that hashes the words of launches. If the database has none, one is created when
    /// `may_create` is set. If there is none, or it cannot be read, returns a throwaway key that
    /// matches no recorded hash.
    fn launch_key(&mut self, may_create: bool) -> Result<LaunchKey, StoreError>;

    /// Rewrites the pinned origin of a server in an equivalent form, where `renew` returns one. Who
    /// pinned it and when do not change.
    fn renew_origin(
        &mut self,
        id: &ServerId,
        renew: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(), StoreError>;

    /// The servers whose ids were derived from a word of their launch that is no longer stored in
    /// clear text. Their receipts cannot be rewritten.
    fn servers_named_by_launches(&self) -> Result<Vec<ServerId>, StoreError>;

    /// Writes an act atomically.
    fn record(&mut self, act: Act<'_>) -> Result<Recorded, StoreError>;

    /// The newest [`MAX_HISTORY_EVENTS`] events of a server, oldest first.
    fn history(&self, id: &ServerId) -> Result<Vec<HistoryEvent>, StoreError>;

    /// The number of history lines of a server since a moment that have this basis.
    fn count_history(
        &self,
        id: &ServerId,
        basis: Basis,
        since: Timestamp,
    ) -> Result<usize, StoreError>;

    /// The newest [`MAX_HISTORY_EVENTS`] actions by people that concern no server's pins, oldest
    /// first.
    fn events(&self) -> Result<Vec<StoreEvent>, StoreError>;

    /// A number that changes whenever any process, Holdpoint's or not, writes to the database. It
    /// is cheap to read, and may only be compared with an earlier value from the same handle.
    fn version(&self) -> Result<u64, StoreError>;

    /// Whether the database is still where other processes find it. A handle to a file that was
    /// removed or replaced would return stale data.
    fn is_in_place(&self) -> bool;

    /// Waits until the version differs from `since`, or until `patience` has passed, and returns
    /// it. Blocks the calling thread, so it is meant for processes with nothing else to do.
    fn wait_for_change(&self, since: u64, patience: Duration) -> Result<u64, StoreError>;
}

#[cfg(test)]
mod tests;
