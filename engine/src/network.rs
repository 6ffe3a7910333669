//! The install's side of the network: the verdict corpus (tier 1), the drift network and
//! advisories.
//!
//! None of this is created unless the configuration names a URL and a key and no veto applies.
//! Lookups run on a separate thread, never on one that handles a call, and every failure is a miss.
//! The same code announces and sends each request ([`NetworkRequest`]), and a bounded record of
//! them is kept.

mod answered;
mod contributions;
mod directory;
mod feed;
mod folder;
mod report_queue;
mod request;
mod sent;
mod verdicts;
mod worker;

pub use contributions::{Contribution, ContributionsSince, contributions};
pub use directory::{DirectoryClient, DirectoryError, NetworkSettings};
pub use feed::{FeedFile, KeptAdvisories, Refreshed};
pub use folder::NetworkFolder;
pub use report_queue::ReportQueue;
pub use request::NetworkRequest;
pub use sent::{MAX_SENT_BYTES, SentLog, SentRequest};
pub use verdicts::{CACHED_FOR, VerdictCache};

use crate::server::Server;
use answered::Answered;
use contract::hash::{DefinitionHash, EntryHash};
use contract::surface::{Entry, EntryType};
use gate::judge::{Judgement, SurfaceJudgement};
use gate::network::{
    CorpusRow, CorpusVerdict, DriftAdvisory, DriftFeed, DriftReport, Fingerprint, Hour, Salt,
};
use gate::pins::PinBook;
use gate::tiers::{Corpus, CorpusAnswer, Miss};
use gate::time::Timestamp;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use worker::Job;

/// How long a refusal waits for the corpus.
pub const REFUSAL_PATIENCE: Duration = Duration::from_millis(300);
/// The most jobs waiting for the network thread. A further one is a miss.
const MAX_JOBS: usize = 1_024;

/// Queries a directory and reports to it, for all servers of this process.
pub struct NetworkClient {
    settings: NetworkSettings,
    folder: NetworkFolder,
    jobs: SyncSender<Job>,
    state: Arc<SharedState>,
}

impl std::fmt::Debug for NetworkClient {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("NetworkClient").field("url", &self.settings.url).finish()
    }
}

/// What the network thread learned, and who is notified.
#[derive(Debug, Default)]
struct SharedState {
    verdicts: Mutex<VerdictCache>,
    answered: Mutex<Answered>,
    feed: arc_swap::ArcSwap<DriftFeed>,
    listeners: Listeners,
}

/// The servers whose judgements depend on the network's answers.
#[derive(Debug, Default)]
pub(crate) struct Listeners(Mutex<Vec<Weak<Server>>>);

impl Listeners {
    pub(crate) fn add(&self, server: &Arc<Server>) {
        let mut listeners = lock(&self.0);
        listeners.retain(|listener| listener.strong_count() > 0);
        listeners.push(Arc::downgrade(server));
    }

    /// Makes every server judge again.
    pub(crate) fn tell(&self) {
        let listeners: Vec<Arc<Server>> = lock(&self.0).iter().filter_map(Weak::upgrade).collect();
        listeners.iter().for_each(|server| server.wake(crate::server::driver::Wake::TierAnswered));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A change that was encountered here, for the drift network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetChange {
    pub before: EntryHash,
    pub after: EntryHash,
    pub kinds: Vec<contract::change::ChangeKind>,
    pub is_safety_relevant: bool,
    pub hour: Hour,
}

impl MetChange {
    /// Returns `None` for anything but a change of a public contract: how a server is started here,
    /// and what is in its folders, concerns no one else.
    pub fn of(judgement: &Judgement, at: Timestamp) -> Option<MetChange> {
        let is_public = match judgement.id.entry_type {
            EntryType::Tool | EntryType::Prompt | EntryType::Instructions => true,
            EntryType::Resource | EntryType::Template | EntryType::Identity | EntryType::Origin => {
                false
            }
        };
        let hash = |entry: &Option<Entry>| entry.as_ref().map(Entry::entry_hash);
        let (before, after) = (hash(&judgement.before)?, hash(&judgement.after)?);
        let is_change = is_public && before != after && !judgement.findings.is_empty();
        let mut kinds: Vec<_> = judgement.findings.iter().map(|finding| finding.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let is_safety_relevant = judgement.is_safety_relevant();
        is_change.then(|| MetChange {
            before,
            after,
            kinds,
            is_safety_relevant,
            hour: Hour::of(at),
        })
    }

    /// The report for the directory. Until the salt is known, zeros take the place of fingerprints.
    pub fn report(&self, salt: Option<Salt>) -> DriftReport {
        let unknown = Fingerprint::from_bytes([0; 32]);
        let fingerprint = |entry| salt.map_or(unknown, |salt| salt.fingerprint(entry));
        let report = DriftReport {
            fp_before: fingerprint(self.before),
            fp_after: fingerprint(self.after),
            kinds: self.kinds.clone(),
            safety: self.is_safety_relevant,
            hour: self.hour,
        };
        report.sorted()
    }
}

impl NetworkClient {
    /// Starts the network thread. Previous results are read from the folder.
    pub fn start(
        settings: NetworkSettings,
        folder: NetworkFolder,
        receipts: store::receipts::DiskFolder,
    ) -> std::io::Result<Arc<NetworkClient>> {
        folder.ensure()?;
        let (jobs, given) = std::sync::mpsc::sync_channel(MAX_JOBS);
        let state = Arc::new(SharedState::default());
        *lock(&state.verdicts) = VerdictCache::read(&folder, &settings.url);
        state.feed.store(Arc::new(FeedFile::read(&folder, &settings.url).feed()));
        let client = NetworkClient { settings, folder, jobs, state };
        client.spawn(receipts, given)?;
        Ok(Arc::new(client))
    }

    fn spawn(
        &self,
        receipts: store::receipts::DiskFolder,
        given: std::sync::mpsc::Receiver<Job>,
    ) -> std::io::Result<()> {
        let directory = DirectoryClient::new(self.settings.clone(), &self.folder);
        let worker = worker::Worker::new(directory, self.folder.clone(), receipts, &self.state)?;
        let thread = std::thread::Builder::new().name("network".to_owned());
        thread.spawn(move || worker.run(&given)).map(drop)
    }

    pub(crate) fn listen(&self, server: &Arc<Server>) {
        self.state.listeners.add(server);
    }

    /// The corpus's answer, if it is known. Otherwise it is looked up, and this is a miss.
    fn known(&self, definition: DefinitionHash) -> Result<CorpusAnswer, Miss> {
        let known = lock(&self.state.verdicts).answer(definition, crate::recorder::now());
        if !known.is_fresh && lock(&self.state.answered).ask(definition, Instant::now()) {
            let is_begun = self.jobs.try_send(Job::LookUp(definition)).is_ok();
            if !is_begun {
                lock(&self.state.answered).end(definition);
            }
        }
        known.answer.ok_or(Miss)
    }

    /// The row that an answer is based on.
    pub(crate) fn row(&self, definition: DefinitionHash) -> Option<CorpusRow> {
        lock(&self.state.verdicts).row(definition)
    }

    /// Until when a refusal of this definition waits for the corpus; `None` if there is nothing to
    /// wait for.
    pub(crate) fn awaited_until(&self, definition: DefinitionHash) -> Option<Instant> {
        lock(&self.state.answered).awaited_until(definition, Instant::now())
    }

    /// Adds what the crawler saw to the judgements.
    pub(crate) fn advise(&self, judgement: &mut SurfaceJudgement) {
        self.state.feed.load().advise(judgement);
    }

    /// The pins that the crawler saw change.
    pub(crate) fn changed_pins(&self, book: &PinBook) -> Vec<(Entry, DriftAdvisory)> {
        changed_pins(&self.state.feed.load(), book)
    }

    /// Reports changes encountered here, if the operator allows it.
    pub(crate) fn met(&self, changes: Vec<MetChange>) {
        if self.settings.contribute && !changes.is_empty() {
            let _ = self.jobs.try_send(Job::Met(changes));
        }
    }
}

/// The approved pins that the crawler saw change.
pub fn changed_pins(feed: &DriftFeed, book: &PinBook) -> Vec<(Entry, DriftAdvisory)> {
    if feed.is_empty() {
        return Vec::new();
    }
    let approved = book.iter().filter_map(|(_, pins)| pins.approved());
    approved
        .filter_map(|pin| Some((pin.entry.clone(), feed.pin_changed(pin.entry.entry_hash())?)))
        .collect()
}

impl Corpus for NetworkClient {
    fn look_up(&self, definition: Option<DefinitionHash>) -> Result<CorpusAnswer, Miss> {
        self.known(definition.ok_or(Miss)?)
    }
}

/// What a row means to the ladder.
pub(crate) const fn answer_of(verdict: CorpusVerdict) -> CorpusAnswer {
    match verdict {
        CorpusVerdict::Cleared => CorpusAnswer::Cleared,
        CorpusVerdict::Dangerous => CorpusAnswer::Dangerous,
    }
}

#[cfg(test)]
mod tests;
