//! The export thread: takes the lock, reads batches, delivers each until the collector has accepted
//! it, and stores the progress.

use super::batch::{Batches, MAX_BATCH_ITEMS};
use super::cursor::{CursorFile, ExportLock, Kind};
use super::otlp::Verdict;
use super::sink::Sink;
use super::{Pace, Report, Settings};
use contract::trip::trip;
use ledger::folder::Folder;
use ledger::receipt::Item;
use std::cell::RefCell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// The longest retry delay that a collector can request.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(3600);

/// How long the current batch may take to arrive when the export is stopped.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// The interval for trying to take over from another exporting process.
const LOCK_POLL: Duration = Duration::from_secs(5);

type Reporter = Arc<dyn Fn(Report) + Send + Sync>;

/// Everything that the thread needs.
pub(super) struct Job<F> {
    pub(super) folder: F,
    pub(super) home: PathBuf,
    pub(super) lock: ExportLock,
    pub(super) tls: TlsConnector,
    pub(super) settings: Settings,
    pub(super) stopped: watch::Receiver<bool>,
    pub(super) report: Reporter,
}

impl<F: Folder + Clone> Job<F> {
    /// Runs until it is stopped. A panic ends the export and nothing else.
    pub(super) fn run_contained(self) {
        let report = Arc::clone(&self.report);
        if catch_unwind(AssertUnwindSafe(|| self.run())).is_err() {
            report(Report::Fault);
        }
    }

    fn run(self) {
        let report = Arc::clone(&self.report);
        match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => {
                runtime.block_on(self.work());
                // Do not wait for a pending name lookup.
                runtime.shutdown_background();
            }
            Err(error) => report(Report::Note(format!("live export does not run: {error}"))),
        }
    }

    async fn work(mut self) {
        if !self.take_lock().await {
            return;
        }
        let (file, problem) = CursorFile::read(&self.home);
        if let Some(problem) = problem {
            (self.report)(Report::Note(problem));
        }
        let file = RefCell::new(file);
        let (otlp, syslog) = (self.settings.otlp.take(), self.settings.syslog.take());
        let otlp = otlp.map(|otlp| (Kind::Otlp, Sink::otlp(otlp, &self.tls)));
        let pace = self.settings.pace;
        let syslog = syslog.map(|syslog| (Kind::Syslog, Sink::syslog(syslog, &self.tls, pace)));
        let courier = |sink: Option<(Kind, (String, Sink))>| {
            sink.map(|(kind, (to, sink))| Courier {
                folder: self.folder.clone(),
                kind,
                to,
                sink,
                file: &file,
                pace,
                stopped: self.stopped.clone(),
                report: Arc::clone(&self.report),
                trouble: None,
            })
        };
        tokio::join!(send_on(courier(otlp)), send_on(courier(syslog)));
    }

    /// Waits until no other process of the home exports. Returns false if it is stopped first.
    async fn take_lock(&mut self) -> bool {
        let mut is_told = false;
        loop {
            match self.lock.take() {
                Ok(true) => return true,
                Ok(false) if !is_told => (self.report)(Report::Waiting),
                Ok(false) => {}
                Err(error) if !is_told => {
                    (self.report)(Report::Note(format!("the lock of the export: {error}")));
                }
                Err(_) => {}
            }
            is_told = true;
            let pause = LOCK_POLL.min(self.settings.pace.poll.saturating_mul(5));
            if !pause_unless_stopped(&mut self.stopped, pause).await {
                return false;
            }
        }
    }
}

async fn send_on<F: Folder + Clone>(courier: Option<Courier<'_, F>>) {
    if let Some(mut courier) = courier {
        courier.work().await;
    }
}

/// Sleeps. Returns false if the export was stopped in the meantime.
async fn pause_unless_stopped(stopped: &mut watch::Receiver<bool>, pause: Duration) -> bool {
    // An error means that the sender was dropped.
    timeout(pause, stopped.wait_for(|stopped| *stopped)).await.is_err()
}

/// Delivers everything to one collector.
struct Courier<'f, F> {
    folder: F,
    kind: Kind,
    to: String,
    sink: Sink,
    file: &'f RefCell<CursorFile>,
    pace: Pace,
    stopped: watch::Receiver<bool>,
    report: Reporter,
    /// The last reported problem.
    trouble: Option<String>,
}

/// The export was stopped.
struct Stopped;

impl<F: Folder + Clone> Courier<'_, F> {
    async fn work(&mut self) {
        (self.report)(Report::Started { to: self.to.clone() });
        // It only ends by being stopped.
        let Stopped = self.send_all().await;
    }

    async fn send_all(&mut self) -> Stopped {
        let mut batches = loop {
            let cursor = self.file.borrow().cursor(self.kind);
            match Batches::resume(&self.folder, &cursor) {
                Ok(batches) => break batches,
                // Before the first receipt there is no ledger.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => self.tell_trouble(&format!("the receipts cannot be read: {error}")),
            }
            if let Err(stopped) = self.pause(self.pace.poll).await {
                return stopped;
            }
        };
        loop {
            let is_idle = match batches.next() {
                Ok(batch) => {
                    batch.notes.into_iter().for_each(|note| (self.report)(Report::Note(note)));
                    let is_idle = batch.items.is_empty();
                    if let Err(stopped) = self.deliver(&batch.items).await {
                        return stopped;
                    }
                    if !is_idle
                        && let Err(error) = self.file.borrow_mut().save(self.kind, batch.cursor)
                    {
                        self.tell_trouble(&format!(
                            "how far was sent cannot be written down: {error}"
                        ));
                    }
                    is_idle
                }
                Err(error) => {
                    self.tell_trouble(&format!("the receipts cannot be read: {error}"));
                    true
                }
            };
            if is_idle && let Err(stopped) = self.pause(self.pace.poll).await {
                return stopped;
            }
        }
    }

    /// Sends until the collector has accepted everything, or permanently refused the rest.
    async fn deliver(&mut self, items: &[Item]) -> Result<(), Stopped> {
        let mut waiting: Vec<&[Item]> = items.chunks(MAX_BATCH_ITEMS).rev().collect();
        let mut delay = self.pace.first_retry;
        while let Some(chunk) = waiting.pop() {
            match self.attempt(chunk).await? {
                Verdict::Taken { rejected, why } => {
                    self.tell_taken(chunk.len(), rejected, why);
                    delay = self.pace.first_retry;
                }
                Verdict::Never { why } => {
                    let (first, second) = chunk.split_at(chunk.len() / 2);
                    if first.is_empty() {
                        // A single receipt that this collector cannot accept must not block all
                        // others.
                        let (to, count) = (self.to.clone(), 1);
                        (self.report)(Report::Rejected { to, count, why });
                    } else {
                        waiting.extend([second, first]);
                    }
                }
                Verdict::Later { after, why } => {
                    self.tell_trouble(&why);
                    waiting.push(chunk);
                    let pause = pause_before_retry(after, delay);
                    self.pause(pause).await?;
                    delay = delay.saturating_mul(2).min(self.pace.longest_retry);
                }
            }
        }
        Ok(())
    }

    async fn attempt(&mut self, chunk: &[Item]) -> Result<Verdict, Stopped> {
        trip("export", b"send");
        let grace = async {
            let _ = self.stopped.wait_for(|stopped| *stopped).await;
            tokio::time::sleep(STOP_GRACE).await;
        };
        tokio::select! {
            verdict = self.sink.send(chunk) => Ok(verdict),
            () = grace => Err(Stopped),
        }
    }

    async fn pause(&mut self, pause: Duration) -> Result<(), Stopped> {
        let goes_on = pause_unless_stopped(&mut self.stopped, pause).await;
        goes_on.then_some(()).ok_or(Stopped)
    }

    fn tell_taken(&mut self, count: usize, rejected: u64, why: String) {
        let to = self.to.clone();
        if self.trouble.take().is_some() {
            (self.report)(Report::Recovered { to: to.clone() });
        }
        if rejected > 0 || !why.is_empty() {
            (self.report)(Report::Rejected { to: to.clone(), count: rejected, why });
        }
        (self.report)(Report::Sent { to, count });
    }

    /// Reports each problem only once in a row.
    fn tell_trouble(&mut self, why: &str) {
        if self.trouble.as_deref() != Some(why) {
            self.trouble = Some(why.to_owned());
            (self.report)(Report::Trouble { to: self.to.clone(), why: why.to_owned() });
        }
    }
}

/// The delay that the collector requests, within limits, or otherwise `delay` with jitter.
fn pause_before_retry(asked: Option<Duration>, delay: Duration) -> Duration {
    asked.map_or_else(|| jittered(delay), |asked| asked.min(MAX_RETRY_AFTER))
}

/// Varies a delay by up to a quarter, so that many machines do not reconnect at the same moment.
fn jittered(delay: Duration) -> Duration {
    let mut byte = [128];
    // If there is no randomness, the delay is unchanged.
    let _ = getrandom::fill(&mut byte);
    let [byte] = byte;
    delay.mul_f64(0.75 + f64::from(byte) / 512.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_gets_the_pause_it_asks_for_up_to_a_bound() {
        let second = Duration::from_secs(1);
        for asked in [Duration::ZERO, second, MAX_RETRY_AFTER] {
            assert_eq!(pause_before_retry(Some(asked), second), asked);
        }
        assert_eq!(pause_before_retry(Some(MAX_RETRY_AFTER + second), second), MAX_RETRY_AFTER);
    }

    #[test]
    fn a_delay_moves_by_a_quarter_at_most() {
        for _ in 0..1_000 {
            let pause = pause_before_retry(None, Duration::from_secs(4));
            assert!((3.0..=5.0).contains(&pause.as_secs_f64()), "{pause:?}");
        }
    }
}
