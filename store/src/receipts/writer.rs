//! The chain of this process: receipts as calls are made.
//!
//! INVARIANT: when [`Receipts::decision`] returns, the line is with the operating system (and on disk, where
//! `fsync = "always"`), so a call that is dispatched after it is never missing from the ledger.

use super::disk::{DiskChain, RESERVE, UNFINISHED, private_options};
use super::error::ReceiptsError;
use super::journal::{Journal, LockedJournal};
use super::keys::ArgsKey;
use super::retention::{self, Keep};
use crate::home::Home;
use contract::time::Timestamp;
use ledger::chain::{ChainWriter, Rotation, Written, read_tail};
use ledger::folder::{ChainId, Folder, Listing, SegmentNumber};
use ledger::index::{CHAIN_LISTED, listed_data};
use ledger::line::scan;
use ledger::lines::{LineReader, Piece};
use ledger::record::{ArgsHashKind, Decision, Event, Outcome, Record};
use std::collections::VecDeque;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How often lines are brought to the disk where `fsync = "interval"`.
pub const SYNC_INTERVAL_MILLISECONDS: u64 = 1_000;

/// Outcomes that wait in memory while the disk is full.
pub const MAX_WAITING_OUTCOMES: usize = 1_024;

/// What is given up on a full disk to be able to say what was dropped.
const RESERVE_BYTES: usize = 64 * 1024;

/// How much is freed at least when the oldest segments go.
const FREE_AT_LEAST_BYTES: u64 = 64 * 1024;

/// What has to survive the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fsync {
    /// Every line, before the call is made. Lines that come at the same time share one sync.
    Always,
    /// All but the newest second.
    #[default]
    Interval,
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFull {
    #[default]
    Refuse,
    DropOldest,
}

/// `[receipts]` of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    pub fsync: Fsync,
    pub on_full: OnFull,
    pub rotation: Rotation,
    pub keep: Keep,
    pub args_hash: ArgsHashKind,
}

impl Settings {
    pub const USUAL_SEGMENT_BYTES: u64 = 8 * 1024 * 1024;
    pub const USUAL_SEGMENT_AGE_MILLISECONDS: i64 = 24 * 60 * 60 * 1_000;
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            fsync: Fsync::default(),
            on_full: OnFull::default(),
            rotation: Rotation {
                bytes: Settings::USUAL_SEGMENT_BYTES,
                age_milliseconds: Settings::USUAL_SEGMENT_AGE_MILLISECONDS,
            },
            keep: Keep::default(),
            args_hash: ArgsHashKind::Keyed,
        }
    }
}

/// The receipts that this process writes. Shared by all of its calls.
#[derive(Debug)]
pub struct Receipts {
    shared: Arc<Shared>,
    worker: Option<JoinHandle<()>>,
    args_key: ArgsKey,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// There is something to sync, or it is time to stop.
    work: Condvar,
    /// Something was synced.
    synced: Condvar,
    settings: Settings,
    journal: Journal,
    folder: PathBuf,
}

#[derive(Debug)]
struct State {
    writer: ChainWriter<DiskChain>,
    waiting: VecDeque<Outcome>,
    /// The segment when retention was last looked at.
    retained_at: SegmentNumber,
    /// Lines that are written, and of these, on disk.
    written: u64,
    on_disk: u64,
    /// A sync that failed: what the disk holds is unknown from then on.
    fault: Option<String>,
    is_stopping: bool,
}

impl Receipts {
    /// Goes on with a chain that no process writes to, or begins one.
    pub fn open(home: &Home, settings: Settings) -> Result<Receipts, ReceiptsError> {
        let now = now();
        let journal = Journal::new(home);
        let mut locked = journal.lock(now)?;
        let args_key = ArgsKey::open(home, settings.args_hash)?;
        retention::apply(&mut locked, settings.keep, now)?;
        let writer = open_chain(&mut locked, settings, now)?;
        if settings.on_full == OnFull::DropOldest {
            make_reserve(&home.receipts_path())?;
        }
        drop(locked);
        let retained_at = writer.segment();
        let state = State {
            writer,
            waiting: VecDeque::new(),
            retained_at,
            written: 0,
            on_disk: 0,
            fault: None,
            is_stopping: false,
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            work: Condvar::new(),
            synced: Condvar::new(),
            settings,
            journal,
            folder: home.receipts_path(),
        });
        let worker = {
            let shared = shared.clone();
            std::thread::Builder::new()
                .name("receipts".to_owned())
                .spawn(move || shared.work())
                .map_err(ReceiptsError::io("start a thread for", &home.receipts_path()))?
        };
        Ok(Receipts { shared, worker: Some(worker), args_key })
    }

    /// Records a decision. Nothing may be dispatched before this returned, nor when it failed.
    pub fn decision(&self, decision: &Decision<'_>) -> Result<Written, ReceiptsError> {
        self.shared.append(&Record::Decision(decision))
    }

    /// Records how a dispatched call ended. On a full disk the outcome waits, and the next decision has to wait for it.
    pub fn outcome(&self, outcome: &Outcome) -> Result<(), ReceiptsError> {
        match self.shared.append(&Record::Outcome(outcome)) {
            Ok(_) => Ok(()),
            Err(error) if error.is_full() => {
                let mut state = self.shared.lock();
                if state.waiting.len() >= MAX_WAITING_OUTCOMES {
                    return Err(error);
                }
                state.waiting.push_back(*outcome);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    pub fn event(&self, event: &Event<'_>) -> Result<Written, ReceiptsError> {
        self.shared.append(&Record::Event(event))
    }

    pub fn args_key(&self) -> &ArgsKey {
        &self.args_key
    }

    pub fn chain(&self) -> ChainId {
        self.shared.lock().writer.chain().clone()
    }

    /// Signs all that is written, now.
    pub fn checkpoint(&self) -> Result<(), ReceiptsError> {
        let mut state = self.shared.lock();
        state.writer.checkpoint().map_err(|error| self.shared.failed(error))
    }
}

impl Drop for Receipts {
    /// The end of the process: what still waits is written, everything is signed and on disk.
    fn drop(&mut self) {
        self.shared.lock().is_stopping = true;
        self.shared.work.notify_all();
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic of another thread left the chain as it was before its append, or after it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, error: ledger::chain::WriteError) -> ReceiptsError {
        ReceiptsError::of_write(error, &self.folder)
    }

    fn append(&self, record: &Record<'_>) -> Result<Written, ReceiptsError> {
        let mut state = self.lock();
        let written = match self.try_append(&mut state, record) {
            Err(error) if error.is_full() && self.settings.on_full == OnFull::DropOldest => {
                self.make_room(record.ts())?;
                self.try_append(&mut state, record)?
            }
            other => other?,
        };
        if state.retained_at != state.writer.segment() {
            state.retained_at = state.writer.segment();
            self.retain(record.ts());
        }
        if self.settings.fsync == Fsync::Always {
            self.wait_for_disk(state)?;
        }
        Ok(written)
    }

    fn try_append(&self, state: &mut State, record: &Record<'_>) -> Result<Written, ReceiptsError> {
        if let Some(fault) = &state.fault {
            return Err(ReceiptsError::Sync(fault.clone()));
        }
        while let Some(outcome) = state.waiting.front().copied() {
            state.writer.append(&Record::Outcome(&outcome)).map_err(|error| self.failed(error))?;
            state.waiting.pop_front();
            state.written += 1;
        }
        let written = state.writer.append(record).map_err(|error| self.failed(error))?;
        state.written += 1;
        Ok(written)
    }

    /// Waits until a sync that began after now has ended. All who wait share it.
    fn wait_for_disk(&self, mut state: MutexGuard<'_, State>) -> Result<(), ReceiptsError> {
        let wanted = state.written;
        self.work.notify_all();
        while state.on_disk < wanted {
            if let Some(fault) = &state.fault {
                return Err(ReceiptsError::Sync(fault.clone()));
            }
            state = self.synced.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }

    /// Drops the oldest segments. The reserve makes room for the record that names them.
    fn make_room(&self, now: Timestamp) -> Result<(), ReceiptsError> {
        let full = || ReceiptsError::Full { path: self.folder.clone() };
        let _ = fs::remove_file(self.folder.join(RESERVE));
        let freed = self
            .journal
            .lock(now)
            .and_then(|mut journal| retention::free(&mut journal, FREE_AT_LEAST_BYTES, now));
        // Without its reserve the next full disk is a refusal, which is no worse than this one.
        let _ = make_reserve(&self.folder);
        if freed? == 0 { Err(full()) } else { Ok(()) }
    }

    /// A failure to drop is not a failure to record: it is tried again with the next segment.
    fn retain(&self, now: Timestamp) {
        if self.settings.keep != Keep::default() {
            let journal = self.journal.lock(now);
            let _ = journal
                .and_then(|mut journal| retention::apply(&mut journal, self.settings.keep, now));
        }
    }

    /// The thread that brings lines to the disk and signs what has waited long enough.
    fn work(&self) {
        // Whoever waits for the disk is not left waiting, however this thread ends.
        let _end = EndOfWork(self);
        let pause = Duration::from_millis(SYNC_INTERVAL_MILLISECONDS);
        let mut state = self.lock();
        loop {
            let is_idle = |state: &mut State| {
                let has_waiters =
                    self.settings.fsync == Fsync::Always && state.on_disk < state.written;
                !state.is_stopping && !has_waiters
            };
            let woken = self.work.wait_timeout_while(state, pause, is_idle);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
            let is_stopping = state.is_stopping;
            let signed = state.writer.sign_if_due(now());
            state = self.sync(state);
            // What is signed is on disk before the checkpoint is. One that fails now is due again with the next line.
            let _ = signed.map(|signed| state.writer.put(signed));
            if is_stopping {
                self.finish(&mut state);
                let _ = state.writer.checkpoint();
            }
            if is_stopping {
                return;
            }
        }
    }

    fn sync<'s>(&'s self, mut state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        let written = state.written;
        let is_needed = self.settings.fsync != Fsync::Never && state.on_disk < written;
        let Some(file) = state.writer.files().file().filter(|_| is_needed) else { return state };
        drop(state);
        let outcome = file.sync_data();
        let mut state = self.lock();
        match outcome {
            Ok(()) => state.on_disk = state.on_disk.max(written),
            Err(error) => state.fault = Some(error.to_string()),
        }
        self.synced.notify_all();
        state
    }

    fn finish(&self, state: &mut State) {
        while let Some(outcome) = state.waiting.pop_front() {
            if state.writer.append(&Record::Outcome(&outcome)).is_err() {
                return;
            }
        }
        if self.settings.fsync != Fsync::Never {
            if let Some(file) = state.writer.files().file() {
                let _ = file.sync_data();
            }
        }
    }
}

struct EndOfWork<'s>(&'s Shared);

impl Drop for EndOfWork<'_> {
    fn drop(&mut self) {
        let ended = || "the thread that syncs has ended".to_owned();
        self.0.lock().fault.get_or_insert_with(ended);
        self.0.synced.notify_all();
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

fn open_chain(
    journal: &mut LockedJournal,
    settings: Settings,
    now: Timestamp,
) -> Result<ChainWriter<DiskChain>, ReceiptsError> {
    let folder = journal.folder.clone();
    let listing = folder.listing().map_err(ReceiptsError::io("look at", folder.path()))?;
    for chain in listing.chains.keys().filter(|chain| !chain.is_index()) {
        if let Some(writer) = take_over(journal, &listing, chain, settings, now)? {
            return Ok(writer);
        }
    }
    begin(journal, &listing, settings, now)
}

/// Goes on with a chain; none where another process writes to it, or where its end does not verify.
fn take_over(
    journal: &mut LockedJournal,
    listing: &Listing,
    chain: &ChainId,
    settings: Settings,
    now: Timestamp,
) -> Result<Option<ChainWriter<DiskChain>>, ReceiptsError> {
    let folder = journal.folder.clone();
    let is_synced = settings.fsync != Fsync::Never;
    let Ok(Some(mut files)) = DiskChain::try_lock(&folder.chain_path(chain), is_synced) else {
        return Ok(None);
    };
    // Listed anew: its last writer may have gone on until just now.
    let newest = folder.listing().map_err(ReceiptsError::io("look at", folder.path()))?;
    let Some(found) = newest.chains.get(chain) else { return Ok(None) };
    let Ok(tail) = read_tail(&folder, chain, found, &journal.keys) else { return Ok(None) };
    if !journal.index().chains.contains_key(chain) {
        // Its writer was stopped before it listed the chain, so it wrote nothing but the first line.
        if tail.head().seq > 0 || tail.unsigned_lines() > 0 {
            return Ok(None);
        }
        let Some(first) = first_hash(&folder, chain) else { return Ok(None) };
        list(journal, chain, first, now)?;
    }
    let heads: Vec<_> =
        journal.heads(listing).into_iter().filter(|head| head.chain != *chain).collect();
    let failed = |error| ReceiptsError::of_write(error, folder.path());
    files
        .continue_segment(tail.segment, tail.segment_bytes)
        .map_err(ReceiptsError::io("open", folder.path()))?;
    ChainWriter::resume(files, journal.key.clone(), tail, settings.rotation, &heads, now)
        .map(Some)
        .map_err(failed)
}

fn begin(
    journal: &mut LockedJournal,
    listing: &Listing,
    settings: Settings,
    now: Timestamp,
) -> Result<ChainWriter<DiskChain>, ReceiptsError> {
    let folder = journal.folder.clone();
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|error| {
        ReceiptsError::io("find randomness for", folder.path())(std::io::Error::other(error))
    })?;
    let chain = ChainId::from_random(random);
    let unfinished = folder.path().join(format!("{UNFINISHED}{chain}"));
    let files = DiskChain::unfinished(&unfinished, settings.fsync != Fsync::Never)?;
    let heads = journal.heads(listing);
    let created = ChainWriter::create(
        files,
        journal.key.clone(),
        chain.clone(),
        settings.rotation,
        &heads,
        now,
    );
    let mut writer = created.map_err(|error| ReceiptsError::of_write(error, folder.path()))?;
    writer.files().finish(&folder.chain_path(&chain))?;
    list(journal, &chain, writer.head().hash, now)?;
    Ok(writer)
}

fn list(
    journal: &mut LockedJournal,
    chain: &ChainId,
    first: ledger::line::LineHash,
    now: Timestamp,
) -> Result<(), ReceiptsError> {
    let data = listed_data(chain, first);
    let event = Event { ts: now, name: CHAIN_LISTED, by: None, server_id: None, data: Some(&data) };
    journal.append(&event).map(drop)
}

fn first_hash(folder: &impl Folder, chain: &ChainId) -> Option<ledger::line::LineHash> {
    let mut reader = LineReader::new(folder.segment(chain, SegmentNumber::FIRST).ok()?);
    let Some(Piece::Line(bytes)) = reader.next_piece().ok()? else { return None };
    Some(scan(bytes).ok()?.hash)
}

fn make_reserve(folder: &std::path::Path) -> Result<(), ReceiptsError> {
    let path = folder.join(RESERVE);
    let failed = || ReceiptsError::io("make", &path);
    if fs::metadata(&path).is_ok_and(|found| found.len() >= RESERVE_BYTES as u64) {
        return Ok(());
    }
    let mut file =
        private_options().create(true).write(true).truncate(true).open(&path).map_err(failed())?;
    file.write_all(&vec![0; RESERVE_BYTES]).map_err(failed())
}
