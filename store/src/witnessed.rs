//! A store whose acts are recorded in the ledger: each gets a line in the index of the receipts,
//! and a database that is older than the index is not trusted.
//!
//! The database has the current state, the ledger the past. Neither can be replaced by an older
//! copy without the other revealing it.

use crate::act::{Act, HeldChange, HoldDecision};
use crate::by::StoreEvent;
use crate::error::StoreError;
use crate::receipts::{Journal, ReceiptsError};
use crate::record::{
    Baseline, HistoryEvent, Observation, PastPin, Recorded, ServerRecord, Snapshot, Wanted,
};
use crate::write::{OBSERVE, OLDER_COPY};
use crate::{Home, LaunchHash, LaunchKey, Revision, Store};
use contract::surface::{EntryId, EntryType};
use gate::naming::shown_name;
use gate::pins::{Basis, PinBook};
use gate::server::{ServerId, ServerStatus};
use gate::time::Timestamp;
use ledger::folder::{ChainId, SegmentNumber};
use ledger::record::{Event, Text};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

mod sign_ins;
mod switches;

/// Why pins do not count if they are only in a file that no other process can find.
const REMOVED: &str = "the database was removed or replaced while it was in use, so the approvals are no longer available: restore it, or approve the server again and restart it";

/// The most entries that one event names. The others are counted.
pub const MAX_NAMED_ENTRIES: usize = 100;

/// The most characters of an entry's name in an event.
const MAX_NAMED_CHARACTERS: usize = 64;

/// A store whose changes are recorded in the ledger.
#[derive(Debug)]
pub struct Witnessed {
    store: Box<dyn Store>,
    journal: Journal,
    seen: RefCell<Seen>,
}

/// The content of the index when it had this length: it only grows.
#[derive(Debug, Default)]
struct Seen {
    index_bytes: Option<u64>,
    seals: BTreeMap<String, u64>,
    statuses: BTreeMap<String, String>,
    /// How often the switches were sealed.
    switch_seals: u64,
    /// When the index replaced one that was gone. What that one had recorded is unknown, for every
    /// server.
    restarted_at: Option<String>,
    /// Why the index itself cannot be trusted.
    fault: Option<String>,
}

impl Witnessed {
    pub fn new(store: Box<dyn Store>, home: &Home) -> Witnessed {
        Witnessed { store, journal: Journal::new(home), seen: RefCell::default() }
    }

    /// The file that grows with every act of a person before the act returns.
    pub fn index_path(&self) -> PathBuf {
        let index = self.journal.folder().path().join(ChainId::index().as_str());
        index.join(SegmentNumber::FIRST.file_name())
    }

    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Reads the index again if it grew. Must be called before the database is read: an act is in
    /// the database before it is in the index, so a seal written in between cannot make the
    /// database look old.
    fn look(&self) {
        let length = std::fs::metadata(self.index_path()).map(|found| found.len()).ok();
        let mut seen = self.seen.borrow_mut();
        if length.is_some() && seen.index_bytes == length && seen.fault.is_none() {
            return;
        }
        *seen = match self.journal.read() {
            Ok(index) => Seen {
                index_bytes: length,
                seals: index.seals,
                statuses: index.statuses,
                switch_seals: index.switch_seals,
                restarted_at: index.restarted_at,
                fault: None,
            },
            Err(error) => {
                Seen { index_bytes: length, fault: Some(error.to_string()), ..Seen::default() }
            }
        };
    }

    /// What is wrong with a server whose record has this seal count.
    fn doubt(&self, id: &ServerId, seal_count: i64) -> Option<String> {
        let seen = self.seen.borrow();
        if let Some(fault) = &seen.fault {
            return Some(fault.clone());
        }
        let newest = seen.seals.get(id.as_str()).copied();
        if let (Some(moment), None) = (&seen.restarted_at, newest) {
            return Some(format!(
                "the receipts were removed and started over at {moment}, so nothing shows what was accepted of the server before, or \
                 that it is new: review and approve it again; to start over with all servers, move the whole home folder away"
            ));
        }
        if !self.store.is_in_place() {
            return Some(REMOVED.to_owned());
        }
        let newest = newest.unwrap_or(0);
        let is_older = u64::try_from(seal_count).unwrap_or(0) < newest;
        is_older.then(|| OLDER_COPY.to_owned())
    }

    fn doubted(&self, mut record: ServerRecord) -> ServerRecord {
        let doubt = self.doubt(&record.id, record.seal_count);
        // Neither an older copy nor an edited record can end a quarantine.
        if (doubt.is_some() || record.lost.is_some()) && self.is_quarantined(&record.id) {
            record.status = ServerStatus::Quarantined;
        }
        record.lost = doubt.or(record.lost);
        record
    }

    /// Whether the ledger knows the server, or cannot tell because it or its predecessor is gone.
    fn is_in_doubt_or_seen(&self, id: &ServerId) -> bool {
        let seen = self.seen.borrow();
        let is_in_doubt = seen.fault.is_some() || seen.restarted_at.is_some();
        is_in_doubt || seen.seals.contains_key(id.as_str())
    }

    fn is_quarantined(&self, id: &ServerId) -> bool {
        let seen = self.seen.borrow();
        let status = seen.statuses.get(id.as_str());
        status.is_some_and(|status| status == ServerStatus::Quarantined.as_str())
    }

    /// A server that the ledger knows and the database does not.
    fn forgotten(&self, id: &ServerId) -> Option<ServerRecord> {
        let reason =
            self.doubt(id, 0).filter(|_| self.seen.borrow().seals.contains_key(id.as_str()))?;
        let is_quarantined = self.is_quarantined(id);
        Some(ServerRecord {
            id: id.clone(),
            status: if is_quarantined { ServerStatus::Quarantined } else { ServerStatus::Changed },
            launch: None,
            first_seen: Timestamp::default(),
            last_seen: Timestamp::default(),
            revision: Revision::NONE,
            seal_count: 0,
            lost: Some(reason),
        })
    }

    /// A server's record and pins, as far as the ledger confirms them.
    fn doubted_pair(
        &self,
        id: &ServerId,
        server: Option<ServerRecord>,
        pins: PinBook,
    ) -> (Option<ServerRecord>, PinBook) {
        let seal_count = server.as_ref().map_or(0, |server| server.seal_count);
        let is_known = server.is_some() || self.is_in_doubt_or_seen(id);
        let pins = if is_known { self.doubted_book(id, seal_count, pins) } else { pins };
        (server.map(|record| self.doubted(record)).or_else(|| self.forgotten(id)), pins)
    }

    fn doubted_book(&self, id: &ServerId, seal_count: i64, mut book: PinBook) -> PinBook {
        book.lost = self.doubt(id, seal_count).or(book.lost);
        book
    }
}

impl Store for Witnessed {
    fn servers(&self) -> Result<Vec<ServerRecord>, StoreError> {
        self.look();
        let mut servers = self.store.servers()?;
        let known: Vec<ServerId> =
            self.seen.borrow().seals.keys().filter_map(|id| id.parse().ok()).collect();
        let is_there = |id: &ServerId| servers.iter().any(|server| server.id == *id);
        let forgotten: Vec<_> =
            known.iter().filter(|id| !is_there(id)).filter_map(|id| self.forgotten(id)).collect();
        servers = servers.into_iter().map(|record| self.doubted(record)).chain(forgotten).collect();
        servers.sort_by(|left, right| left.id.as_str().cmp(right.id.as_str()));
        Ok(servers)
    }

    fn server(&self, id: &ServerId) -> Result<Option<ServerRecord>, StoreError> {
        self.look();
        let record = self.store.server(id)?;
        Ok(record.map(|record| self.doubted(record)).or_else(|| self.forgotten(id)))
    }

    fn launched_alike(
        &self,
        id: &ServerId,
        hash: &LaunchHash,
    ) -> Result<Vec<ServerRecord>, StoreError> {
        self.look();
        let alike = self.store.launched_alike(id, hash)?.into_iter();
        let alike = alike.map(|record| self.doubted(record));
        Ok(alike.filter(|record| record.lost.is_none()).collect())
    }

    fn pins(&self, id: &ServerId) -> Result<PinBook, StoreError> {
        Ok(self.snapshot(id)?.pins)
    }

    fn observation(&self, id: &ServerId) -> Result<Option<Observation>, StoreError> {
        self.store.observation(id)
    }

    fn snapshot(&self, id: &ServerId) -> Result<Snapshot, StoreError> {
        self.look();
        let snapshot = self.store.snapshot(id)?;
        let (server, pins) = self.doubted_pair(id, snapshot.server, snapshot.pins);
        Ok(Snapshot { server, pins, observation: snapshot.observation })
    }

    fn baseline(&self, id: &ServerId, wanted: Wanted<'_>) -> Result<Baseline, StoreError> {
        self.look();
        let baseline = self.store.baseline(id, wanted)?;
        let (server, pins) = self.doubted_pair(id, baseline.server, baseline.pins);
        Ok(Baseline { server, pins, ..baseline })
    }

    fn launch_key(&mut self, may_create: bool) -> Result<LaunchKey, StoreError> {
        self.store.launch_key(may_create)
    }

    fn renew_origin(
        &mut self,
        id: &ServerId,
        renew: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(), StoreError> {
        self.store.renew_origin(id, renew)
    }

    fn servers_named_by_launches(&self) -> Result<Vec<ServerId>, StoreError> {
        self.store.servers_named_by_launches()
    }

    /// The index is locked from before the act until its line is written, so that lines are in the
    /// order of the acts.
    fn record(&mut self, mut act: Act<'_>) -> Result<Recorded, StoreError> {
        let mut journal = self.journal.lock(act.at)?;
        let seen = journal.index().seals.get(act.server.as_str()).copied().unwrap_or(0);
        act.seals_seen = i64::try_from(seen).unwrap_or(i64::MAX);
        // What the previous index had recorded is unknown, and may include a server that the
        // database lost: only an approval ends the doubt.
        if seen == 0 && journal.index().restarted_at.is_some() {
            let sealed = self.store.server(act.server)?.map_or(0, |server| server.seal_count);
            act.seals_seen = sealed.saturating_add(1);
        }
        let (name, by, at, server, seals_seen) =
            (act.name, act.by, act.at, act.server, act.seals_seen);
        let said = said(&act);
        let (held, decision) = (std::mem::take(&mut act.held), act.decision);
        let recorded = self.store.record(act)?;
        // Seeing the same surface again seals nothing and is no event, unless something is held.
        if name == OBSERVE && recorded.seal_count <= seals_seen && held.is_empty() {
            return Ok(recorded);
        }
        // A lower count proves nothing, and must not stand in for what a lost index had recorded.
        let seal = u64::try_from(recorded.seal_count).ok();
        let seal = seal.filter(|_| recorded.seal_count >= seals_seen);
        let data = with_seal(said, seal);
        let person = (by != HOLDPOINT).then_some(Text(by));
        let event = Event {
            ts: at,
            name,
            by: person,
            server_id: Some(Text(server.as_str())),
            data: Some(&data),
        };
        journal.append(&event).map_err(unwitnessed)?;
        // INVARIANT: a decision on a hold is in the ledger whether or not a gate runs, once per
        // held change.
        for change in decision.iter().flat_map(|_| &held) {
            let (name, data) = (decision.map_or(name, HoldDecision::event), held_in_words(change));
            let event = Event { name, data: Some(&data), ..event.clone() };
            journal.append(&event).map_err(unwitnessed)?;
        }
        Ok(recorded)
    }

    fn pins_ever(&self, id: &ServerId, entry: &EntryId) -> Result<Vec<PastPin>, StoreError> {
        self.store.pins_ever(id, entry)
    }

    fn history(&self, id: &ServerId) -> Result<Vec<HistoryEvent>, StoreError> {
        self.store.history(id)
    }

    fn count_history(
        &self,
        id: &ServerId,
        basis: Basis,
        since: Timestamp,
    ) -> Result<usize, StoreError> {
        self.store.count_history(id, basis, since)
    }

    fn events(&self) -> Result<Vec<StoreEvent>, StoreError> {
        self.store.events()
    }

    fn version(&self) -> Result<u64, StoreError> {
        self.store.version()
    }

    fn is_in_place(&self) -> bool {
        self.store.is_in_place()
    }

    fn wait_for_change(&self, since: u64, patience: Duration) -> Result<u64, StoreError> {
        self.store.wait_for_change(since, patience)
    }
}

/// The act is in the database but not in the ledger.
fn unwitnessed(error: ReceiptsError) -> StoreError {
    StoreError::Unwitnessed { source: Box::new(error) }
}

/// The name of the actor if no person was asked.
pub(crate) const HOLDPOINT: &str = "holdpoint";

/// An entry's name, short enough that a hundred of them fit on a line even when escaped. The
/// address of a resource may contain a secret, so it is represented by its hash.
fn short(id: &EntryId) -> String {
    match id.entry_type {
        EntryType::Resource | EntryType::Template => contract::hash::sha256_hex(id.key.as_bytes()),
        _ => id.key.chars().take(MAX_NAMED_CHARACTERS).collect(),
    }
}

/// The effects of an act: names and hashes, no other text of the server's.
fn said(act: &Act<'_>) -> Value {
    let pinned = act.pins.iter().take(MAX_NAMED_ENTRIES).map(|pin| {
        let id = pin.entry.id();
        json!({"basis": pin.basis.as_str(), "entry_hash": pin.entry.entry_hash(), "key": short(id), "type": id.entry_type})
    });
    // Changes that a person decides on have their own events.
    let found = if act.decision.is_none() { act.held.as_slice() } else { &[] };
    let withdrawn = act.withdraw.iter().take(MAX_NAMED_ENTRIES);
    let withdrawn = withdrawn.map(|id| json!({"key": short(id), "type": id.entry_type}));
    let mut said = json!({
        "held": found.iter().take(MAX_NAMED_ENTRIES).map(held_in_words).collect::<Vec<_>>(),
        "held_count": found.len(),
        "pinned": pinned.collect::<Vec<_>>(),
        "pinned_count": act.pins.len(),
        "status": act.status,
        "surface_hash": act.observation.map(|observation| observation.surface_hash),
        "withdrawn": withdrawn.collect::<Vec<_>>(),
        "withdrawn_count": act.withdraw.len(),
    });
    if let (Value::Object(members), Some(other)) = (&mut said, act.decided_for) {
        members.insert("decided_for".to_owned(), json!(other));
    }
    said
}

/// A held change: its entry, kinds and hashes, no other text of the server's. A name that was never
/// accepted is given as in a refusal.
fn held_in_words(change: &HeldChange) -> Value {
    let HeldChange { entry, kinds, posture, before, after, definition } = change;
    let key = match entry.entry_type {
        EntryType::Resource | EntryType::Template => short(entry),
        EntryType::Tool
        | EntryType::Prompt
        | EntryType::Instructions
        | EntryType::Identity
        | EntryType::Origin => shown_name(&entry.key, before.is_some()),
    };
    json!({
        "definition_hash": definition,
        "entry": contract::hash::sha256_hex(entry.key.as_bytes()),
        "entry_hash": { "before": before, "after": after },
        "key": key,
        "kinds": kinds,
        "posture": posture,
        "type": entry.entry_type,
    })
}

fn with_seal(mut said: Value, seal: Option<u64>) -> Value {
    if let (Value::Object(members), Some(seal)) = (&mut said, seal) {
        members.insert("seal".to_owned(), seal.into());
    }
    said
}
