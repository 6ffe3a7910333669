//! What the directory's crawler recorded, and later findings, as far as this install has read them.

use super::directory::{DirectoryClient, DirectoryError};
use super::folder::NetworkFolder;
use super::request::NetworkRequest;
use super::verdicts::is_young;
use contract::time::Timestamp;
use gate::network::advisory::MAX_FEED_ENTRIES;
use gate::network::{
    Advisory, AdvisoryPage, DriftEntry, DriftFeed, DriftPage, MAX_PAGE_ENTRIES, MessageError, Salt,
};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// The most pages read at once. Reading also stops once it has taken longer than the timeout of one
/// response. The rest is read an hour later.
const MAX_PAGES: usize = 50;

/// How long reading continues before everything is read again. Otherwise a directory that once
/// returned a number near the maximum could never be read again, even after it was repaired.
const READ_ON_FOR: i64 = 7 * 86_400_000;

/// The first line of a file. The pages follow, one per line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Header {
    url: String,
    salt: Option<String>,
    fetched_at: i64,
    /// When reading started at the first entry.
    #[serde(default)]
    begun_at: i64,
    next: u64,
}

impl Header {
    fn new(url: &str) -> Header {
        Header { url: url.to_owned(), salt: None, fetched_at: i64::MIN, begun_at: 0, next: 0 }
    }
}

/// The number of new items in a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Refreshed {
    pub new: usize,
}

/// A feed that a directory returns page by page, with ascending numbers.
trait Paged: Clone {
    /// The file that it is stored in.
    const FILE: &'static str;

    fn number(&self) -> u64;
    fn request(after: u64) -> NetworkRequest;
    /// The entries of a page, and where the next page starts.
    fn read(page: &[u8], after: u64) -> Result<(Vec<Self>, u64), MessageError>;
    fn write(next: u64, entries: Vec<Self>) -> serde_json::Result<Vec<u8>>;
}

impl Paged for DriftEntry {
    const FILE: &'static str = "drift.jsonl";

    fn number(&self) -> u64 {
        self.seq
    }

    fn request(after: u64) -> NetworkRequest {
        NetworkRequest::Drift { after }
    }

    fn read(page: &[u8], after: u64) -> Result<(Vec<Self>, u64), MessageError> {
        DriftPage::read(page, after).map(|page| (page.entries, page.next))
    }

    fn write(next: u64, entries: Vec<Self>) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&DriftPage::new(next, entries))
    }
}

impl Paged for Advisory {
    const FILE: &'static str = "advisories.jsonl";

    fn number(&self) -> u64 {
        self.seq
    }

    fn request(after: u64) -> NetworkRequest {
        NetworkRequest::Advisories { after }
    }

    fn read(page: &[u8], after: u64) -> Result<(Vec<Self>, u64), MessageError> {
        AdvisoryPage::read(page, after).map(|page| (page.advisories, page.next))
    }

    fn write(next: u64, entries: Vec<Self>) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&AdvisoryPage::new(next, entries))
    }
}

/// A stored feed: the header on the first line, then one page per line.
#[derive(Debug)]
struct Kept<T> {
    header: Header,
    entries: Vec<T>,
}

impl<T: Paged> Kept<T> {
    fn new(url: &str) -> Kept<T> {
        Kept { header: Header::new(url), entries: Vec::new() }
    }

    /// Reads the stored feed of this directory. Anything unreadable counts as missing.
    fn read(folder: &NetworkFolder, url: &str) -> Kept<T> {
        let bytes = folder.read(T::FILE).unwrap_or_default();
        let mut lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let header = lines.next().and_then(|line| serde_json::from_slice::<Header>(line).ok());
        let Some(header) = header.filter(|header| header.url == url) else {
            return Kept::new(url);
        };
        let mut entries: Vec<T> = Vec::new();
        for line in lines {
            let after = entries.last().map_or(0, T::number);
            let Ok((page, _)) = T::read(line, after) else { break };
            entries.extend(page);
        }
        Kept { header, entries }
    }

    /// Reads further pages.
    async fn refresh(
        &mut self,
        directory: &DirectoryClient,
        folder: &NetworkFolder,
        now: Timestamp,
    ) -> Result<Refreshed, DirectoryError> {
        let mut refreshed = Refreshed::default();
        self.header.next = self.asks_after(now);
        if self.header.next == 0 {
            self.entries.clear();
            self.header.begun_at = now.0;
        }
        let begun = Instant::now();
        for page in 0..MAX_PAGES {
            if page > 0 && begun.elapsed() >= directory.patience() {
                break;
            }
            let after = self.header.next;
            let (entries, next) = T::read(&directory.ask(&T::request(after)).await?, after)?;
            if next <= self.header.next {
                break;
            }
            self.header.next = next;
            refreshed.new += entries.len();
            self.entries.extend(entries);
        }
        let surplus = self.entries.len().saturating_sub(MAX_FEED_ENTRIES);
        self.entries.drain(..surplus);
        self.header.fetched_at = now.0;
        self.write(folder);
        Ok(refreshed)
    }

    fn write(&self, folder: &NetworkFolder) {
        let Ok(mut bytes) = serde_json::to_vec(&self.header) else { return };
        for entries in self.entries.chunks(MAX_PAGE_ENTRIES) {
            let next = entries.last().map_or(0, T::number);
            let Ok(page) = T::write(next, entries.to_vec()) else { return };
            bytes.push(b'\n');
            bytes.extend(page);
        }
        bytes.push(b'\n');
        // If it cannot be stored, it is read again.
        let _ = folder.write(T::FILE, &bytes);
    }

    /// What to request next: the following entries, or everything again.
    fn asks_after(&self, now: Timestamp) -> u64 {
        let age = now.0.saturating_sub(self.header.begun_at);
        if (0..READ_ON_FOR).contains(&age) { self.header.next } else { 0 }
    }

    fn is_young(&self, now: Timestamp) -> bool {
        is_young(Timestamp(self.header.fetched_at), now)
    }
}

/// The stored drift feed.
#[derive(Debug)]
pub struct FeedFile(Kept<DriftEntry>);

impl FeedFile {
    pub fn read(folder: &NetworkFolder, url: &str) -> FeedFile {
        FeedFile(Kept::read(folder, url))
    }

    pub fn salt(&self) -> Option<Salt> {
        self.0.header.salt.as_deref()?.parse().ok()
    }

    pub fn feed(&self) -> DriftFeed {
        match self.salt() {
            // The newest entries come last, and take precedence if there are too many.
            Some(salt) => DriftFeed::new(salt, self.0.entries.iter().rev()),
            None => DriftFeed::default(),
        }
    }

    pub fn len(&self) -> usize {
        self.0.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.entries.is_empty()
    }

    /// How far it was read.
    pub fn next(&self) -> u64 {
        self.0.header.next
    }

    pub fn asks_after(&self, now: Timestamp) -> u64 {
        self.0.asks_after(now)
    }

    /// Whether it was read within the last hour.
    pub fn is_young(&self, now: Timestamp) -> bool {
        self.0.is_young(now)
    }

    /// Reads further pages. A new salt changes all fingerprints, so everything is read again.
    pub async fn refresh(
        &mut self,
        directory: &DirectoryClient,
        folder: &NetworkFolder,
        salt: Salt,
        now: Timestamp,
    ) -> Result<Refreshed, DirectoryError> {
        if self.salt() != Some(salt) {
            self.0 = Kept::new(&self.0.header.url);
            self.0.header.salt = Some(salt.to_string());
        }
        self.0.refresh(directory, folder, now).await
    }
}

/// The stored advisories.
#[derive(Debug)]
pub struct KeptAdvisories(Kept<Advisory>);

impl KeptAdvisories {
    pub fn read(folder: &NetworkFolder, url: &str) -> KeptAdvisories {
        KeptAdvisories(Kept::read(folder, url))
    }

    pub fn advisories(&self) -> &[Advisory] {
        &self.0.entries
    }

    pub fn asks_after(&self, now: Timestamp) -> u64 {
        self.0.asks_after(now)
    }

    pub fn is_young(&self, now: Timestamp) -> bool {
        self.0.is_young(now)
    }

    pub async fn refresh(
        &mut self,
        directory: &DirectoryClient,
        folder: &NetworkFolder,
        now: Timestamp,
    ) -> Result<Refreshed, DirectoryError> {
        self.0.refresh(directory, folder, now).await
    }
}
