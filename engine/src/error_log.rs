//! `errors.jsonl` in the home: every fault on the call path, for the person who operates the gate.
//! A line contains a class and a size, and nothing from a message.

use crate::reason::ReasonCode;
use crate::recorder::now;
use serde_json::json;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file of this size is rotated.
pub const MAX_ERRORS_BYTES: u64 = 256 * 1024;
/// The suffixes of rotated files, newest first. The last one is overwritten by the next rotation.
pub const OLD_FILES: [&str; 2] = [".1", ".2"];

/// The log. Several processes write to the same file.
#[derive(Debug)]
pub struct ErrorLog {
    path: PathBuf,
}

impl ErrorLog {
    pub fn new(path: PathBuf) -> ErrorLog {
        ErrorLog { path }
    }

    /// Records a fault, with the length of the message that it is about, if any. A fault that
    /// cannot be recorded is lost here, but the refusal reports it too.
    pub fn note(&self, reason: ReasonCode, bytes: u64) {
        if is_fault(reason) {
            let _ = self.append(reason.as_str(), bytes);
        }
    }

    fn append(&self, class: &str, bytes: u64) -> io::Result<()> {
        let mut file = open(&self.path)?;
        if file.metadata()?.len() >= MAX_ERRORS_BYTES {
            self.rotate(&file)?;
            file = open(&self.path)?;
        }
        let line = json!({"ts": now().to_string(), "class": class, "bytes": bytes});
        file.write_all(format!("{line}\n").as_bytes())
    }

    /// Rotates the full file. Only one process does this at a time; others leave it alone if it is
    /// done or in progress.
    fn rotate(&self, full: &File) -> io::Result<()> {
        if full.try_lock().is_err() || std::fs::metadata(&self.path)?.len() < MAX_ERRORS_BYTES {
            return Ok(());
        }
        let [newer, older] = OLD_FILES.map(|ending| with_ending(&self.path, ending));
        match std::fs::rename(&newer, older) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        std::fs::rename(&self.path, newer)
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Whether the reason is a fault rather than a decision.
fn is_fault(reason: ReasonCode) -> bool {
    match reason {
        ReasonCode::PayloadTooLarge
        | ReasonCode::UpstreamUnreachable
        | ReasonCode::UpstreamUnreadable
        | ReasonCode::Timeout
        | ReasonCode::CredentialUnavailable
        | ReasonCode::Internal
        | ReasonCode::LedgerUnavailable
        | ReasonCode::AmbiguousMessage
        | ReasonCode::BadFrame => true,
        ReasonCode::Drift(_)
        | ReasonCode::Admission(_)
        | ReasonCode::UnknownServer
        | ReasonCode::UnknownTool
        | ReasonCode::Unauthenticated
        | ReasonCode::NoPolicyMatch
        | ReasonCode::Forbidden
        | ReasonCode::PolicyError
        | ReasonCode::ApprovalRequired
        | ReasonCode::UnknownField
        | ReasonCode::SchemaViolation
        | ReasonCode::TooDeep
        | ReasonCode::PathOutsideWorkspace
        | ReasonCode::EgressNotAllowed
        | ReasonCode::RateLimited
        | ReasonCode::PassthroughBlocked
        | ReasonCode::QuotaExceeded
        | ReasonCode::KillSwitch
        | ReasonCode::EgressBlocked
        | ReasonCode::SessionQuarantined => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> (tempfile::TempDir, ErrorLog) {
        let directory = tempfile::tempdir().unwrap();
        let log = ErrorLog::new(directory.path().join("errors.jsonl"));
        (directory, log)
    }

    fn lines(log: &ErrorLog) -> usize {
        let files = ["", OLD_FILES[0], OLD_FILES[1]].map(|ending| with_ending(&log.path, ending));
        let texts = files.iter().filter_map(|path| std::fs::read_to_string(path).ok());
        texts.map(|text| text.lines().count()).sum()
    }

    #[test]
    fn faults_are_noted_by_class_and_size_and_decisions_are_not() {
        let (_directory, log) = log();
        log.note(ReasonCode::RateLimited, 1);
        log.note(ReasonCode::KillSwitch, 1);
        assert!(!log.path.exists());
        log.note(ReasonCode::UpstreamUnreadable, 42);
        let line: serde_json::Value =
            serde_json::from_str(std::fs::read_to_string(&log.path).unwrap().trim()).unwrap();
        assert_eq!((&line["class"], &line["bytes"]), (&json!("upstream_unreadable"), &json!(42)));
        assert_eq!(line.as_object().unwrap().len(), 3);
    }

    #[test]
    fn a_full_file_is_put_away_and_not_before_it_is_full() {
        let (_directory, log) = log();
        let limit = usize::try_from(MAX_ERRORS_BYTES).unwrap();
        let old = with_ending(&log.path, OLD_FILES[0]);
        std::fs::write(&log.path, vec![b' '; limit - 1]).unwrap();
        log.note(ReasonCode::Internal, 1);
        assert!(!old.exists() && std::fs::metadata(&log.path).unwrap().len() > MAX_ERRORS_BYTES);
        log.note(ReasonCode::Internal, 2);
        assert!(std::fs::metadata(&log.path).unwrap().len() < 200);
        assert!(std::fs::metadata(&old).unwrap().len() > MAX_ERRORS_BYTES);
        // The third rotated file is the last one that is kept.
        for _ in 0..3 {
            std::fs::write(&log.path, vec![b' '; limit]).unwrap();
            log.note(ReasonCode::Internal, 3);
        }
        let files = std::fs::read_dir(log.path.parent().unwrap()).unwrap().count();
        assert_eq!(files, 1 + OLD_FILES.len());
    }

    #[test]
    fn processes_that_write_at_once_put_a_full_file_away_once() {
        let (_directory, log) = log();
        let limit = usize::try_from(MAX_ERRORS_BYTES).unwrap();
        let mut full = vec![b' '; limit - 1];
        full.push(b'\n');
        std::fs::write(&log.path, full).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let own = ErrorLog::new(log.path.clone());
                    (0..50).for_each(|_| own.note(ReasonCode::Timeout, 7));
                });
            }
        });
        assert_eq!(lines(&log), 401, "no line is lost");
        assert!(!with_ending(&log.path, OLD_FILES[1]).exists());
    }
}
