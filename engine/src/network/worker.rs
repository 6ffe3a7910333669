//! The network thread: it processes the gate's jobs, and reads the feeds once an hour.

use super::contributions::ContributionsSince;
use super::directory::{DirectoryClient, DirectoryError};
use super::feed::{FeedFile, KeptAdvisories};
use super::folder::NetworkFolder;
use super::report_queue::ReportQueue;
use super::{MetChange, SharedState, lock};
use crate::people_events::people_events;
use crate::recorder::now;
use contract::hash::DefinitionHash;
use gate::network::{Parameters, bucket_of};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use store::receipts::DiskFolder;
use tokio::runtime::{Builder, Runtime};

/// The interval for checking whether something is due.
const TICK: Duration = Duration::from_secs(30);
/// How long to pause after a failure.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(300);
/// The most rows and reports per process and day.
const MAX_TOLD_A_DAY: u32 = 500;
const DAY: Duration = Duration::from_secs(86_400);

#[derive(Debug)]
pub(super) enum Job {
    LookUp(DefinitionHash),
    Met(Vec<MetChange>),
}

pub(super) struct Worker {
    directory: DirectoryClient,
    folder: NetworkFolder,
    receipts: DiskFolder,
    url: String,
    contributes: bool,
    /// The thread ends when the client is dropped.
    state: Weak<SharedState>,
    runtime: Runtime,
    index_bytes: Option<u64>,
    /// How far the feed was read in the version that judgements use.
    published: Option<u64>,
    failed_at: Option<Instant>,
    told: (Instant, u32),
}

impl Worker {
    pub(super) fn new(
        directory: DirectoryClient,
        folder: NetworkFolder,
        receipts: DiskFolder,
        state: &Arc<SharedState>,
    ) -> std::io::Result<Worker> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (url, contributes) = (directory.url().to_owned(), directory.contributes());
        Ok(Worker {
            directory,
            folder,
            receipts,
            url,
            contributes,
            state: Arc::downgrade(state),
            runtime,
            index_bytes: None,
            published: None,
            failed_at: None,
            told: (Instant::now(), 0),
        })
    }

    pub(super) fn run(mut self, jobs: &Receiver<Job>) {
        let mut due = Instant::now();
        loop {
            // A waiting job takes precedence.
            match jobs.recv_timeout(due.saturating_duration_since(Instant::now())) {
                Ok(job) => self.contain(|worker, state| worker.do_job(state, job)),
                Err(RecvTimeoutError::Timeout) => {
                    self.contain(Worker::look_around);
                    due = Instant::now() + TICK;
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Contains a panic, which counts as a miss like any other failure.
    fn contain(&mut self, work: impl FnOnce(&mut Worker, &SharedState)) {
        let Some(state) = self.state.upgrade() else { return };
        let _ = catch_unwind(AssertUnwindSafe(|| work(self, &state)));
    }

    fn do_job(&mut self, state: &SharedState, job: Job) {
        match job {
            Job::LookUp(definition) => {
                let _ = self.look_up(state, definition);
                lock(&state.answered).end(definition);
                state.listeners.tell();
            }
            Job::Met(changes) => {
                ReportQueue::add(&self.folder, &self.url, &changes);
                self.unless_failing(|worker| worker.report(state));
            }
        }
    }

    fn look_up(
        &mut self,
        state: &SharedState,
        definition: DefinitionHash,
    ) -> Result<(), DirectoryError> {
        let at = now();
        // Another lookup may have fetched the bucket in the meantime.
        if lock(&state.verdicts).answer(definition, at).is_fresh {
            return Ok(());
        }
        let parameters = self.parameters(state)?;
        let bucket = bucket_of(definition.as_bytes(), parameters.bucket_bits);
        let rows = self.runtime.block_on(self.directory.corpus(bucket))?;
        lock(&state.verdicts).take_bucket(&self.folder, &self.url, bucket, &rows, at);
        Ok(())
    }

    fn parameters(&mut self, state: &SharedState) -> Result<Parameters, DirectoryError> {
        if let Some(known) = lock(&state.verdicts).parameters(now()) {
            return Ok(known);
        }
        let parameters = self.runtime.block_on(self.directory.parameters())?;
        let mut verdicts = lock(&state.verdicts);
        verdicts.take_parameters(&self.folder, &self.url, parameters, now());
        Ok(parameters)
    }

    /// Reports the waiting changes.
    fn report(&mut self, state: &SharedState) -> Result<(), DirectoryError> {
        if !self.contributes {
            return Ok(());
        }
        for change in ReportQueue::read(&self.folder, &self.url).waiting() {
            let salt = self.parameters(state)?.salt;
            if !self.may_tell() {
                break;
            }
            self.told_for_good(|directory| directory.report(change.report(Some(salt))))?;
            ReportQueue::tell(&self.folder, &self.url, &change);
        }
        Ok(())
    }

    /// Sends the directory a message. One that it will never accept counts as sent, so that it does
    /// not block later ones.
    fn told_for_good<'a, F: Future<Output = Result<(), DirectoryError>>>(
        &'a self,
        tell: impl FnOnce(&'a DirectoryClient) -> F,
    ) -> Result<(), DirectoryError> {
        match self.runtime.block_on(tell(&self.directory)) {
            Err(error) if !error.is_final() => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Counts a message, and returns whether it may be sent.
    fn may_tell(&mut self) -> bool {
        if self.told.0.elapsed() >= DAY {
            self.told = (Instant::now(), 0);
        }
        self.told.1 += 1;
        self.told.1 <= MAX_TOLD_A_DAY
    }

    /// Performs the work that is due: reads the feeds once an hour, and sends people's decisions
    /// and the reports that could not be sent before.
    fn look_around(&mut self, state: &SharedState) {
        self.unless_failing(|worker| {
            worker.refresh(state)?;
            worker.contribute()?;
            worker.report(state)
        });
    }

    fn unless_failing(&mut self, work: impl FnOnce(&mut Worker) -> Result<(), DirectoryError>) {
        if self.failed_at.is_some_and(|at| at.elapsed() < PAUSE_AFTER_FAILURE) {
            return;
        }
        let outcome = work(self);
        self.failed_at = outcome.is_err().then(Instant::now);
    }

    fn refresh(&mut self, state: &SharedState) -> Result<(), DirectoryError> {
        // Another process of the home may have read them.
        let mut feed = FeedFile::read(&self.folder, &self.url);
        let at = now();
        if feed.is_young(at) {
            if self.published != Some(feed.next()) {
                self.publish(state, &feed);
            }
        } else {
            let salt = self.parameters(state)?.salt;
            let directory = &self.directory;
            let read = feed.refresh(directory, &self.folder, salt, at);
            let refreshed = self.runtime.block_on(read)?;
            if refreshed.new > 0 || self.published != Some(feed.next()) {
                self.publish(state, &feed);
            }
        }
        let mut advisories = KeptAdvisories::read(&self.folder, &self.url);
        if !advisories.is_young(at) {
            let read = advisories.refresh(&self.directory, &self.folder, at);
            self.runtime.block_on(read)?;
        }
        Ok(())
    }

    fn publish(&mut self, state: &SharedState, feed: &FeedFile) {
        self.published = Some(feed.next());
        state.feed.store(Arc::new(feed.feed()));
        state.listeners.tell();
    }

    /// Sends what people decided since the operator agreed to contribute.
    fn contribute(&mut self) -> Result<(), DirectoryError> {
        if !self.contributes {
            return Ok(());
        }
        let mut since = match ContributionsSince::read(&self.folder, &self.url) {
            Some(since) => since,
            None => ContributionsSince::begin(&self.folder, &self.url, now()),
        };
        let bytes = index_bytes(&self.receipts);
        if bytes == self.index_bytes {
            return Ok(());
        }
        let events = people_events(&self.receipts).map_err(DirectoryError::Unrecorded)?;
        for waiting in since.waiting(&events) {
            if !self.may_tell() {
                return Ok(());
            }
            self.told_for_good(|directory| directory.contribute(waiting.row))?;
            since.tell(&self.folder, &waiting.row);
        }
        self.index_bytes = bytes;
        Ok(())
    }
}

/// The length of the ledger's index: while it does not grow, no person has decided anything.
fn index_bytes(receipts: &DiskFolder) -> Option<u64> {
    let entries = std::fs::read_dir(receipts.path().join("index")).ok()?;
    let sizes = entries.filter_map(|entry| Some(entry.ok()?.metadata().ok()?.len()));
    Some(sizes.sum())
}
