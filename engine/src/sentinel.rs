//! Detects whether a person decided anything since the last call. This is checked before each call,
//! so it must be cheap.
//!
//! Every act of a person extends the index of the home's receipts before it returns, so examining
//! one file is enough. Nodes that share a database have separate homes and indexes: changes are
//! pushed to them, and a call only checks that the lease on the database is valid
//! ([`crate::lease`]). A removed or replaced database file counts as news too ([`database`]).
//!
//! Only the new lines of a longer index are read. Acts on other servers are not news.

mod database;

use crate::lease::Lease;
use database::{DatabaseFile, FileId};
use gate::server::ServerId;
use std::fs::{File, Metadata};
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use store::StoreError;

/// How long a check is valid for calls that were read together.
const JUST: Duration = Duration::from_millis(5);

/// The most of the index that is read to find out which servers an act concerns. A longer addition
/// is assumed to concern all servers.
const MAX_NEW_BYTES: usize = 256 * 1024;

/// The state that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Sign {
    index: Option<IndexSign>,
    /// The identity of the file that has the database's name.
    database: Option<FileId>,
}

/// The state of the index. One that was removed or replaced has no name anymore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct IndexSign {
    bytes: u64,
    has_name: bool,
}

impl IndexSign {
    fn of(found: &Metadata) -> IndexSign {
        IndexSign { bytes: found.len(), has_name: has_name(found) }
    }

    /// The current state of the file. Cheaper than [`File::metadata`], which requests more.
    #[cfg(unix)]
    fn of_open(file: &File) -> Option<IndexSign> {
        let found = rustix::fs::fstat(file).ok()?;
        Some(IndexSign { bytes: u64::try_from(found.st_size).ok()?, has_name: found.st_nlink > 0 })
    }

    #[cfg(not(unix))]
    fn of_open(file: &File) -> Option<IndexSign> {
        file.metadata().ok().map(|found| IndexSign::of(&found))
    }
}

#[derive(Debug)]
pub struct Sentinel {
    path: PathBuf,
    /// Kept open, because examining an open file takes a tenth of the time of looking it up.
    index: Option<File>,
    /// Set if other nodes write to the same database.
    lease: Option<Lease>,
    /// The database, if it is a file.
    database: Option<DatabaseFile>,
    /// The server whose calls are decided.
    server: Option<ServerId>,
    seen: Sign,
    looked_at: Instant,
    /// The change of the shared database that calls are decided by.
    acted_on: Option<u64>,
    /// A time up to which that change was the latest.
    known_at: Instant,
}

impl Sentinel {
    pub fn new(path: PathBuf, lease: Option<Lease>) -> Result<Sentinel, StoreError> {
        let index = File::open(&path).ok();
        let looked_at = Instant::now();
        let seen = Sign::default();
        let (database, server, acted_on) = (None, None, None);
        let known_at = looked_at;
        let mut sentinel =
            Sentinel { path, index, lease, database, server, seen, looked_at, acted_on, known_at };
        sentinel.seen = sentinel.look()?;
        Ok(sentinel)
    }

    /// Also follows the database file.
    pub fn following(mut self, database: PathBuf) -> Sentinel {
        let mut database = DatabaseFile::new(database);
        self.seen.database = database.look();
        self.database = Some(database);
        self
    }

    /// Only treats acts that concern this server as news.
    pub(crate) fn about(mut self, server: ServerId) -> Sentinel {
        self.server = Some(server);
        self
    }

    /// The changes since the last [`Self::take_note`], if any.
    pub fn news(&mut self) -> Result<Option<News>, StoreError> {
        let at = Instant::now();
        let sign = self.look()?;
        if let Some(change) = self.overdue_change(at) {
            return Ok(Some(News { sign, at, change: Some(change) }));
        }
        if sign == self.seen || self.is_about_others(sign) {
            self.take_in(sign, at);
            return Ok(None);
        }
        Ok(Some(News { sign, at, change: None }))
    }

    /// A known change of the shared database that this node has failed to apply for so long that no
    /// call may be decided without it. Usually the driver applies a change moments after it is
    /// known.
    ///
    /// INVARIANT: a call is decided with everything that was written more than a lease ago, even if
    /// the driver gets no time to run.
    fn overdue_change(&mut self, now: Instant) -> Option<u64> {
        let lease = self.lease.as_ref()?;
        let (change, at) = lease.change_at();
        if self.acted_on == Some(change) {
            self.known_at = self.known_at.max(at);
            return None;
        }
        let age = now.saturating_duration_since(self.known_at);
        (age >= lease.patience()).then_some(change)
    }

    /// Records that calls are decided by this change of the shared database from now on.
    pub(crate) fn acted_on(&mut self, change: u64) {
        self.acted_on = self.acted_on.max(Some(change));
    }

    /// Whether the index has only grown, and only by acts on other servers.
    fn is_about_others(&self, now: Sign) -> bool {
        let (Some(server), Some(file)) = (&self.server, &self.index) else { return false };
        let (Some(before), Some(after)) = (self.seen.index, now.index) else { return false };
        let is_longer = before.has_name && after.has_name && after.bytes > before.bytes;
        if !is_longer || self.seen.database != now.database {
            return false;
        }
        let new_lines = read_between(file, before.bytes, after.bytes);
        new_lines.is_some_and(|lines| is_about_others(&lines, server))
    }

    /// Records that the news were acted on.
    pub fn take_note(&mut self, news: News) {
        let News { sign, at, change } = news;
        self.take_in(sign, at);
        if let Some(change) = change {
            self.acted_on(change);
        }
        let is_followed = self.index.is_some() && sign.index.is_some_and(|index| index.has_name);
        if !is_followed {
            // Whatever this finds is compared with the state seen before, so nothing in between is
            // missed.
            self.index = File::open(&self.path).ok();
        }
    }

    /// INVARIANT: a check counts only once its news were acted on.
    fn take_in(&mut self, sign: Sign, at: Instant) {
        self.seen = sign;
        self.looked_at = at;
    }

    /// The number of the last known change of a shared database.
    pub fn shared_change(&self) -> Option<u64> {
        self.lease.as_ref().map(Lease::change)
    }

    /// Whether the last check was recent enough to cover something that began at this time.
    pub fn had_just_looked(&self, begun: Instant) -> bool {
        begun.saturating_duration_since(self.looked_at) < JUST
    }

    fn look(&mut self) -> Result<Sign, StoreError> {
        if let Some(lease) = &self.lease {
            return lease.check().map(|()| self.seen);
        }
        // A missing index is looked up each time, because the first act creates it.
        let index = match &self.index {
            Some(file) => IndexSign::of_open(file),
            None => std::fs::metadata(&self.path).ok().map(|found| IndexSign::of(&found)),
        };
        let database = self.database.as_mut().and_then(DatabaseFile::look);
        Ok(Sign { index, database })
    }
}

/// Whether these are complete lines of an index that each name another server. An incident names
/// none.
fn is_about_others(lines: &[u8], server: &ServerId) -> bool {
    #[derive(serde::Deserialize)]
    struct Line {
        server_id: Option<String>,
    }
    let Some(lines) = lines.strip_suffix(b"\n") else { return false };
    let is_about_other = |line: &[u8]| {
        let line: Option<Line> = serde_json::from_slice(line).ok();
        let named = line.and_then(|line| line.server_id);
        named.is_some_and(|named| named != server.as_str())
    };
    lines.split(|byte| *byte == b'\n').all(is_about_other)
}

/// A part of a file; `None` if it is too long or unreadable.
fn read_between(file: &File, from: u64, until: u64) -> Option<Vec<u8>> {
    let length = usize::try_from(until - from).ok().filter(|length| *length <= MAX_NEW_BYTES)?;
    let mut bytes = vec![0; length];
    let mut file = file;
    file.seek(SeekFrom::Start(from)).ok()?;
    file.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

/// News of something that a person decided.
#[derive(Debug, Clone, Copy)]
pub struct News {
    sign: Sign,
    at: Instant,
    /// For a shared database: the change that was not acted on.
    change: Option<u64>,
}

#[cfg(unix)]
fn has_name(found: &Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(found) > 0
}

#[cfg(not(unix))]
fn has_name(_: &Metadata) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_news_until_it_is_taken_note_of() {
        let directory = tempfile::tempdir().unwrap();
        let index = directory.path().join("index");
        let mut sentinel = Sentinel::new(index.clone(), None).unwrap();
        assert!(sentinel.news().unwrap().is_none());
        for text in ["one", "one and two", "one and two and three"] {
            std::fs::write(&index, text).unwrap();
            let news = sentinel.news().unwrap().unwrap();
            assert!(sentinel.news().unwrap().is_some());
            sentinel.take_note(news);
            assert!(sentinel.news().unwrap().is_none(), "{text}");
        }
    }

    /// Appends to the index. Returns whether that is news for `reports`.
    fn is_news_for_reports(appended: &str) -> bool {
        let directory = tempfile::tempdir().unwrap();
        let index = directory.path().join("index");
        std::fs::write(&index, "{\"server_id\":\"reports\"}\n").unwrap();
        let sentinel = Sentinel::new(index.clone(), None).unwrap();
        let mut sentinel = sentinel.about("reports".parse().unwrap());
        let mut file = File::options().append(true).open(&index).unwrap();
        std::io::Write::write_all(&mut file, appended.as_bytes()).unwrap();
        let is_news = sentinel.news().unwrap().is_some();
        assert_eq!(sentinel.news().unwrap().is_some(), is_news, "news until it is taken note of");
        is_news
    }

    #[test]
    fn acts_on_other_servers_are_no_news() {
        let (own, other) = ("{\"server_id\":\"reports\"}\n", "{\"server_id\":\"files\"}\n");
        assert!(!is_news_for_reports(other));
        assert!(!is_news_for_reports(&[other, other].concat()));
        for about_all in ["{\"server_id\":null}\n", "{}\n", "not JSON\n", "\n"] {
            assert!(is_news_for_reports(about_all), "{about_all}");
            assert!(is_news_for_reports(&[other, about_all].concat()), "{about_all}");
        }
        assert!(is_news_for_reports(own));
        assert!(is_news_for_reports(&[other, own, other].concat()));
        // An incomplete line may turn out to be about any server.
        assert!(is_news_for_reports(other.trim_end()));
    }

    #[test]
    fn more_new_lines_than_are_read_are_news() {
        let line = "{\"server_id\":\"files\"}\n";
        let filled = |bytes: usize| {
            let (lines, rest) = (bytes / line.len() - 1, bytes % line.len());
            let last = format!("{}{}", line.trim_end(), " ".repeat(rest)) + "\n";
            line.repeat(lines) + &last
        };
        assert_eq!(filled(MAX_NEW_BYTES).len(), MAX_NEW_BYTES);
        assert!(!is_news_for_reports(&filled(MAX_NEW_BYTES)));
        assert!(is_news_for_reports(&filled(MAX_NEW_BYTES + 1)));
    }

    #[test]
    fn a_shared_change_that_nobody_acted_on_is_news_once_the_lease_would_be_over() {
        let directory = tempfile::tempdir().unwrap();
        let (lease, change_to) = crate::lease::tests::held();
        let mut sentinel = Sentinel::new(directory.path().join("index"), Some(lease)).unwrap();
        sentinel.acted_on(1);
        assert!(sentinel.news().unwrap().is_none());
        let known_at = sentinel.known_at;
        change_to(7);
        // The driver gets time to act.
        assert_eq!(sentinel.overdue_change(known_at), None);
        let over = known_at + crate::lease::LEASE;
        assert_eq!(sentinel.overdue_change(over), Some(7));
        sentinel.acted_on(7);
        assert_eq!(sentinel.overdue_change(over), None);
        // Acting on an older change later makes no difference.
        sentinel.acted_on(3);
        assert_eq!(sentinel.overdue_change(over), None);
    }

    #[cfg(unix)]
    #[test]
    fn an_index_that_is_replaced_or_removed_is_news() {
        let directory = tempfile::tempdir().unwrap();
        let (index, other) = (directory.path().join("index"), directory.path().join("other"));
        std::fs::write(&index, "one").unwrap();
        std::fs::write(&other, "two").unwrap();
        let mut sentinel = Sentinel::new(index.clone(), None).unwrap();
        std::fs::rename(&other, &index).unwrap();
        let news = sentinel.news().unwrap().expect("another file of the same length");
        sentinel.take_note(news);
        if let Some(news) = sentinel.news().unwrap() {
            sentinel.take_note(news);
        }
        std::fs::write(&index, "three").unwrap();
        let news = sentinel.news().unwrap().expect("the new file is the one that is looked at");
        sentinel.take_note(news);
        std::fs::remove_file(&index).unwrap();
        assert!(sentinel.news().unwrap().is_some());
    }

    #[cfg(unix)]
    #[test]
    fn a_database_that_is_removed_moved_or_replaced_is_news_until_it_is_back() {
        let directory = tempfile::tempdir().unwrap();
        let [database, away] = ["state.db", "away"].map(|name| directory.path().join(name));
        std::fs::write(&database, "pins").unwrap();
        let sentinel = Sentinel::new(directory.path().join("index"), None).unwrap();
        let mut sentinel = sentinel.following(database.clone());
        assert!(sentinel.news().unwrap().is_none());
        std::fs::rename(&database, &away).unwrap();
        assert!(sentinel.news().unwrap().is_some());
        std::fs::write(&database, "pins").unwrap();
        assert!(sentinel.news().unwrap().is_some());
        std::fs::rename(&away, &database).unwrap();
        assert!(sentinel.news().unwrap().is_none());
    }
}
