//! A byte-for-byte record of the requests that were sent, without keys. It is bounded: the oldest
//! requests are dropped.

use super::folder::NetworkFolder;
use contract::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io::{self, Write};

const FILE: &str = "sent.jsonl";
const OLDER_FILE: &str = "sent.1.jsonl";
/// The size at which the record becomes the older one, replacing the previous older one.
pub const MAX_SENT_BYTES: u64 = 1024 * 1024;

/// One request that was sent, or was about to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentRequest {
    pub at: String,
    /// The host and port that it was sent to.
    pub to: String,
    /// Its bytes as text.
    pub request: String,
}

#[derive(Debug, Clone)]
pub struct SentLog {
    folder: NetworkFolder,
}

impl SentLog {
    pub fn of(folder: &NetworkFolder) -> SentLog {
        SentLog { folder: folder.clone() }
    }

    /// INVARIANT: a request is recorded before it is sent. One that cannot be recorded is not sent.
    /// Once the network is turned off, nothing is sent, not even by processes that are already
    /// running.
    pub(crate) fn note(&self, at: Timestamp, to: &str, request: &[u8]) -> io::Result<()> {
        // Under the same lock as `network off`: after that command has returned, no request is
        // recorded.
        let _lock = self.folder.lock()?;
        if self.folder.is_off() {
            return Err(io::Error::other("`holdpoint network off` was run"));
        }
        let path = self.folder.path().join(FILE);
        let is_full = std::fs::metadata(&path).is_ok_and(|found| found.len() >= MAX_SENT_BYTES);
        if is_full {
            std::fs::rename(&path, self.folder.path().join(OLDER_FILE))?;
        }
        let request = String::from_utf8_lossy(request).into_owned();
        let line = SentRequest { at: at.to_string(), to: to.to_owned(), request };
        let mut line = serde_json::to_vec(&line).map_err(io::Error::other)?;
        line.push(b'\n');
        OpenOptions::new().create(true).append(true).open(path)?.write_all(&line)
    }

    /// The recorded requests, oldest first.
    pub fn read(&self) -> Vec<SentRequest> {
        let files = [OLDER_FILE, FILE].into_iter().filter_map(|name| self.folder.read(name));
        files
            .flat_map(|bytes| {
                let lines = bytes.split(|byte| *byte == b'\n');
                lines.filter_map(|line| serde_json::from_slice(line).ok()).collect::<Vec<_>>()
            })
            .collect()
    }
}
