//! `errors.jsonl` of the home: faults of the gate's own, for whoever looks after it. Classes and sizes, never a word of a
//! message.

use crate::reason::ReasonCode;
use crate::recorder::now;
use serde_json::json;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::PathBuf;

/// A longer file is begun anew.
pub const MAX_ERRORS_BYTES: u64 = 256 * 1024;

#[derive(Debug)]
pub struct ErrorLog {
    path: PathBuf,
}

impl ErrorLog {
    pub fn new(path: PathBuf) -> ErrorLog {
        ErrorLog { path }
    }

    /// Notes a fault that is ours. What cannot be noted is lost: the refusal itself says it too.
    pub fn note(&self, reason: ReasonCode, bytes: usize) {
        if matches!(reason, ReasonCode::Internal | ReasonCode::LedgerUnavailable) {
            let _ = self.append(reason.as_str(), bytes);
        }
    }

    fn append(&self, class: &str, bytes: usize) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&self.path)?;
        if file.metadata()?.len() >= MAX_ERRORS_BYTES {
            file.set_len(0)?;
        }
        let line = json!({"ts": now().to_string(), "class": class, "bytes": bytes});
        file.write_all(format!("{line}\n").as_bytes())
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

    #[test]
    fn only_faults_of_our_own_are_noted_by_class_and_size() {
        let (_directory, log) = log();
        log.note(ReasonCode::Timeout, 1);
        assert!(!log.path.exists());
        log.note(ReasonCode::LedgerUnavailable, 42);
        let line: serde_json::Value =
            serde_json::from_str(std::fs::read_to_string(&log.path).unwrap().trim()).unwrap();
        assert_eq!((&line["class"], &line["bytes"]), (&json!("ledger_unavailable"), &json!(42)));
    }

    #[test]
    fn the_file_is_begun_anew_at_its_limit_and_not_before() {
        let (_directory, log) = log();
        let limit = usize::try_from(MAX_ERRORS_BYTES).unwrap();
        std::fs::write(&log.path, vec![b' '; limit - 1]).unwrap();
        log.note(ReasonCode::Internal, 1);
        assert!(std::fs::metadata(&log.path).unwrap().len() > MAX_ERRORS_BYTES);
        log.note(ReasonCode::Internal, 1);
        assert!(std::fs::metadata(&log.path).unwrap().len() < 200);
    }
}
