//! Live export: sends receipts to a collector as they are written, over OTLP or syslog, if
//! configured.
//!
//! It reads the ledger's files like any other reader, on a separate thread: no call ever waits for
//! it, and nothing is lost while a collector is down, because the ledger is the queue. Progress is
//! stored in the home after the collector accepted a batch, so a receipt may arrive twice (the last
//! batch before a crash) but is never omitted.

use ledger::folder::Folder;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::watch;

mod batch;
mod connect;
mod cursor;
mod destination;
mod fields;
mod otlp;
mod run;
mod sink;
mod syslog;

pub use batch::{MAX_BATCH_BYTES, MAX_BATCH_ITEMS};
pub use cursor::{CURSOR_FILE, LOCK_FILE};
pub use destination::{BadDestination, BadHeader, Otlp, Syslog, add_header};
pub use run::MAX_RETRY_AFTER;
pub use sink::{MAX_ANSWER_BYTES, OtlpSender};
pub use syslog::MAX_DATAGRAM_BYTES;
pub use tokio_rustls::rustls::pki_types::CertificateDer;

/// Where to send receipts, and the timing.
#[derive(Debug, Default)]
pub struct Settings {
    pub otlp: Option<Otlp>,
    pub syslog: Option<Syslog>,
    /// The result of [`do_not_track`] for the environment.
    pub do_not_track: bool,
    /// Certificates to trust in addition to the system's.
    pub trusted: Vec<CertificateDer<'static>>,
    pub pace: Pace,
}

/// Intervals and timeouts.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// The interval for polling a ledger without new receipts.
    pub poll: Duration,
    /// The delay after the first failure; it doubles with each further one.
    pub first_retry: Duration,
    pub longest_retry: Duration,
    /// How long to watch a stream after a batch, to detect a receiver that had disconnected.
    pub settle: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Pace {
            poll: Duration::from_secs(1),
            first_retry: Duration::from_secs(1),
            longest_retry: Duration::from_secs(60),
            settle: Duration::from_millis(250),
        }
    }
}

/// What the export reports to its process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// Another process of this home is exporting; this one waits to take over.
    Waiting,
    Started {
        to: String,
    },
    Sent {
        to: String,
        count: usize,
    },
    /// Nothing can be delivered at the moment. It will be retried.
    Trouble {
        to: String,
        why: String,
    },
    Recovered {
        to: String,
    },
    /// The collector accepted a batch but discarded some of it, or permanently refuses one receipt.
    Rejected {
        to: String,
        count: u64,
        why: String,
    },
    /// A panic ended the export. The next process continues after what the collector has
    /// completely.
    Fault,
    Note(String),
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Report::Waiting => {
                formatter.write_str("another process of this home exports; waiting to take over")
            }
            Report::Started { to } => write!(formatter, "sending receipts to {to}"),
            Report::Sent { to, count } => write!(formatter, "{count} sent to {to}"),
            Report::Trouble { to, why } => {
                write!(formatter, "{to}: {why}; nothing is lost, it is tried again")
            }
            Report::Recovered { to } => write!(formatter, "{to}: resumed"),
            Report::Rejected { to, count, why } => {
                write!(formatter, "{to}: {count} not accepted by the collector: {why}")
            }
            Report::Fault => formatter.write_str(
                "live export stopped because of a bug; the next run resumes where it stopped",
            ),
            Report::Note(text) => formatter.write_str(text),
        }
    }
}

/// Why live export does not run.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("`DO_NOT_TRACK` is set, so nothing is sent")]
    DoNotTrack,
    #[error("no collector is configured: set `otlp` or `syslog` under `[export]`")]
    NothingConfigured,
    #[error("the roots of trust for TLS cannot be used: {0}")]
    Tls(#[source] std::io::Error),
    #[error("`{}` cannot be used: {source}", path.display())]
    Home { path: PathBuf, source: std::io::Error },
    #[error("no thread can be started: {0}")]
    Thread(#[source] std::io::Error),
}

/// Whether `DO_NOT_TRACK` has a value that requests it.
pub fn do_not_track(value: Option<&std::ffi::OsStr>) -> bool {
    value.is_some_and(|value| !value.is_empty() && value != "0" && value != "false")
}

/// A running export. Dropping it makes it stop, without waiting.
#[derive(Debug)]
pub struct LiveExport {
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl LiveExport {
    /// Starts exporting the receipts in `folder`, with the cursor in `home`. One process of a home
    /// exports at a time; others wait.
    pub fn start<F: Folder + Clone + Send + 'static>(
        home: &Path,
        folder: F,
        settings: Settings,
        report: impl Fn(Report) + Send + Sync + 'static,
    ) -> Result<LiveExport, StartError> {
        if settings.do_not_track {
            return Err(StartError::DoNotTrack);
        }
        if settings.otlp.is_none() && settings.syslog.is_none() {
            return Err(StartError::NothingConfigured);
        }
        let lock = cursor::ExportLock::open(home)?;
        let tls = connect::connector(&settings.trusted).map_err(StartError::Tls)?;
        let (stop, stopped) = watch::channel(false);
        let job = run::Job {
            folder,
            home: home.to_owned(),
            lock,
            tls,
            settings,
            stopped,
            report: Arc::new(report),
        };
        let thread = std::thread::Builder::new()
            .name("live-export".to_owned())
            .spawn(move || job.run_contained())
            .map_err(StartError::Thread)?;
        Ok(LiveExport { stop, thread: Some(thread) })
    }

    /// Stops the export: the current batch gets a moment to arrive, and the next run sends the
    /// rest.
    pub fn stop(mut self) {
        let _ = self.stop.send(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for LiveExport {
    fn drop(&mut self) {
        let _ = self.stop.send(true);
    }
}
