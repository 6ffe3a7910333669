//! A server's confinement record, which `status` and `review` show: how it was last started, and
//! its blocked attempts to reach the network. One small file per server in the home.

use contract::time::Timestamp;
use gate::server::ServerId;
use sandbox::{Blocked, FilePolicy, HostRule, Level, NetworkPolicy};
use serde::{Deserialize, Serialize};
use settings::Sandbox;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

/// The most hosts remembered per server. The most recently tried ones are kept.
pub const MAX_DENIED: usize = 64;
const MAX_RECORD_BYTES: u64 = 256 * 1024;

/// The record of one server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ConfinementRecord {
    /// How it was last started; `None` if it was not started since this is recorded.
    pub started: Option<LastStart>,
    #[serde(default)]
    pub denied: Vec<DeniedHost>,
}

/// How a server was last started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastStart {
    pub at_ms: i64,
    pub level: Level,
    pub files: FilePolicy,
    pub network: NetworkPolicy,
    /// The requested settings, so that commands that contact the server confine it in the same way.
    #[serde(default)]
    pub keys: Option<Sandbox>,
}

/// A host that a server tried to reach and was blocked from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeniedHost {
    pub host: String,
    pub port: Option<u16>,
    /// The code of the reason.
    pub reason: String,
    pub count: u64,
    pub last_ms: i64,
    /// The `net_allow` entry that would allow it.
    pub allow: Option<String>,
}

impl DeniedHost {
    fn of(blocked: &Blocked, at: Timestamp) -> DeniedHost {
        DeniedHost {
            host: blocked.host.chars().take(253).collect(),
            port: blocked.port,
            reason: blocked.reason.code().to_owned(),
            count: blocked.count,
            last_ms: at.0,
            allow: blocked.allow_entry(),
        }
    }

    /// Whether the current rules allow it.
    pub fn is_allowed_by(&self, rules: &[HostRule]) -> bool {
        let port = self.port.unwrap_or(443);
        let by_name = HostRule::for_name(rules, &self.host, port).is_some();
        let address = self.host.parse().ok();
        let by_address =
            address.is_some_and(|address| HostRule::for_address(rules, address, port).is_some());
        self.reason == "not_allowed" && (by_name || by_address)
    }
}

/// The record file of one server.
#[derive(Debug, Clone)]
pub struct RecordFile {
    path: PathBuf,
}

impl RecordFile {
    pub fn of(home: &Path, server: &ServerId) -> RecordFile {
        RecordFile { path: home.join("sandbox").join("servers").join(format!("{server}.json")) }
    }

    /// The record for display; empty if it is missing or unreadable.
    pub fn read(&self) -> ConfinementRecord {
        self.try_read().unwrap_or_default()
    }

    /// The record for confining a server. INVARIANT: an unreadable record must not cause a server
    /// to be started unconfined.
    pub fn try_read(&self) -> io::Result<ConfinementRecord> {
        match File::open(&self.path) {
            Ok(file) => file.lock_shared().and_then(|()| parse(&file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Default::default()),
            Err(error) => Err(error),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn note_start(&self, start: LastStart) -> io::Result<()> {
        self.change(|record| {
            let mut record = record.unwrap_or_default();
            record.started = Some(start);
            Ok(record)
        })
    }

    /// Records that the server was started without confinement, if it was ever confined.
    pub fn note_unconfined(&self, at: Timestamp) -> io::Result<()> {
        if !self.path.is_file() {
            return Ok(());
        }
        let (files, network) = (FilePolicy::None, NetworkPolicy::None);
        self.note_start(LastStart { at_ms: at.0, level: Level::None, files, network, keys: None })
    }

    pub(super) fn note_blocked(&self, blocked: &Blocked, at: Timestamp) -> io::Result<()> {
        let new = DeniedHost::of(blocked, at);
        self.change(|record| {
            let mut record = record?;
            let is_same = |known: &DeniedHost| {
                (&known.host, known.port, &known.reason) == (&new.host, new.port, &new.reason)
            };
            let before = record.denied.iter().position(is_same).map(|at| record.denied.remove(at));
            let count = new.count + before.map_or(0, |before| before.count);
            record.denied.push(DeniedHost { count, ..new });
            let excess = record.denied.len().saturating_sub(MAX_DENIED);
            record.denied.drain(..excess);
            Ok(record)
        })
    }

    /// Removes the blocked attempts.
    pub fn forget_denied(&self) -> io::Result<()> {
        if !self.path.is_file() {
            return Ok(());
        }
        self.change(|record| Ok(ConfinementRecord { denied: Vec::new(), ..record? }))
    }

    /// Changes the record under a lock, because several processes of a home may start the same
    /// server.
    fn change(
        &self,
        change: impl FnOnce(io::Result<ConfinementRecord>) -> io::Result<ConfinementRecord>,
    ) -> io::Result<()> {
        if let Some(folder) = self.path.parent() {
            super::create_private(folder)?;
        }
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&self.path)?;
        file.lock()?;
        let record = change(parse(&file))?;
        let text = serde_json::to_string(&record).map_err(io::Error::other)?;
        file.rewind()?;
        file.write_all(text.as_bytes())?;
        // Truncate last: if the process is killed before that, the record is unreadable rather than
        // empty.
        file.set_len(u64::try_from(text.len()).unwrap_or(u64::MAX))
    }
}

/// Parses a record. A newly created file is an empty record.
fn parse(file: &File) -> io::Result<ConfinementRecord> {
    let mut text = String::new();
    file.take(MAX_RECORD_BYTES).read_to_string(&mut text)?;
    if text.is_empty() {
        return Ok(ConfinementRecord::default());
    }
    Ok(serde_json::from_str(&text)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandbox::BlockReason;

    fn blocked(host: &str) -> Blocked {
        Blocked {
            host: host.to_owned(),
            port: Some(443),
            reason: BlockReason::NotAllowed,
            count: 2,
        }
    }

    fn file(folder: &tempfile::TempDir) -> RecordFile {
        RecordFile::of(folder.path(), &"files".parse().unwrap())
    }

    #[test]
    fn attempts_are_counted_by_host_and_only_so_many_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let file = file(&folder);
        assert_eq!(file.read(), ConfinementRecord::default());
        for at in [1, 2] {
            file.note_blocked(&blocked("a.example"), Timestamp(at)).unwrap();
        }
        let denied = file.read().denied;
        assert_eq!((denied.len(), denied[0].count, denied[0].last_ms), (1, 4, 2));
        assert_eq!(denied[0].allow.as_deref(), Some("a.example"));
        for number in 0..MAX_DENIED {
            file.note_blocked(&blocked(&format!("h{number}.example")), Timestamp(3)).unwrap();
        }
        let denied = file.read().denied;
        assert_eq!(denied.len(), MAX_DENIED);
        assert!(denied.iter().all(|denied| denied.host != "a.example"));
        file.forget_denied().unwrap();
        assert!(file.read().denied.is_empty());
    }

    #[test]
    fn what_is_allowed_by_now_is_known() {
        let denied = DeniedHost::of(&blocked("a.example"), Timestamp(0));
        let rules = |text: &str| vec![text.parse::<HostRule>().unwrap()];
        assert!(denied.is_allowed_by(&rules("a.example")));
        assert!(!denied.is_allowed_by(&rules("b.example")));
        assert!(!denied.is_allowed_by(&rules("a.example:8443")));
    }

    #[test]
    fn every_key_of_a_confined_server_is_known_again_and_a_damaged_record_is_not_taken_for_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = file(&folder);
        let keys: Sandbox = toml::from_str(
            r#"
            required = true
            fs = "read_only"
            workspace = "/srv/work"
            net = "allowlist"
            net_allow = ["localhost:8080", "private:*.example.com"]
            read = ["~/data"]
            write = ["/srv/out"]
            env = ["TOKEN"]
            browser = true
            memory_bytes = 17179869184
            processes = 512
            npm_registry = "https://npm.example.com/"
            python_index = "https://py.example.com/"
            "#,
        )
        .unwrap();
        let start = LastStart {
            at_ms: 1,
            level: Level::Full,
            files: FilePolicy::ReadOnly,
            network: NetworkPolicy::Allowlist,
            keys: Some(keys.clone()),
        };
        file.note_start(start.clone()).unwrap();
        file.note_blocked(&blocked("a.example"), Timestamp(2)).unwrap();
        assert_eq!(file.try_read().unwrap().started.unwrap().keys, Some(keys));
        std::fs::write(file.path(), "{\"started\":").unwrap();
        assert!(file.try_read().is_err());
        assert!(file.note_blocked(&blocked("a.example"), Timestamp(3)).is_err());
        assert!(file.try_read().is_err());
        file.note_start(start).unwrap();
        assert!(file.try_read().is_ok());
    }

    #[test]
    fn an_unconfined_start_is_noted_only_of_servers_that_were_confined() {
        let folder = tempfile::tempdir().unwrap();
        let file = file(&folder);
        file.note_unconfined(Timestamp(1)).unwrap();
        assert_eq!(file.read().started, None);
        let start = LastStart {
            at_ms: 1,
            level: Level::Full,
            files: FilePolicy::WorkspaceOnly,
            network: NetworkPolicy::BlockAll,
            keys: None,
        };
        file.note_start(start).unwrap();
        file.note_unconfined(Timestamp(2)).unwrap();
        assert_eq!(file.read().started.unwrap().level, Level::None);
    }
}
