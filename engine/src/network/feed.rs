//! What the directory's crawler recorded and what was found afterwards, as far as this install has read it.

use super::directory::{DirectoryClient, DirectoryError};
use super::folder::NetworkFolder;
use super::verdicts::is_young;
use contract::time::Timestamp;
use gate::network::advisory::MAX_FEED_ENTRIES;
use gate::network::{
    Advisory, AdvisoryPage, DriftEntry, DriftFeed, DriftPage, MAX_PAGE_ENTRIES, Salt,
};
use serde::{Deserialize, Serialize};

const DRIFT_FILE: &str = "drift.jsonl";
const ADVISORIES_FILE: &str = "advisories.jsonl";
/// The most pages that are read at once. The rest is read an hour later.
const MAX_PAGES: usize = 50;

/// The first line of a file. The pages follow, one a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Header {
    url: String,
    salt: Option<String>,
    fetched_at: i64,
    next: u64,
}

impl Header {
    fn new(url: &str) -> Header {
        Header { url: url.to_owned(), salt: None, fetched_at: i64::MIN, next: 0 }
    }
}

/// What of a file was read: its first line, and those after it.
fn lines_of(folder: &NetworkFolder, name: &str, url: &str) -> Option<(Header, Vec<Vec<u8>>)> {
    let bytes = folder.read(name)?;
    let mut lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let header: Header = serde_json::from_slice(lines.next()?).ok()?;
    (header.url == url).then(|| (header, lines.map(<[u8]>::to_vec).collect()))
}

fn write_lines(folder: &NetworkFolder, name: &str, header: &Header, pages: Vec<Vec<u8>>) {
    let Ok(mut bytes) = serde_json::to_vec(header) else { return };
    for page in pages {
        bytes.push(b'\n');
        bytes.extend(page);
    }
    bytes.push(b'\n');
    // What cannot be kept is read again.
    let _ = folder.write(name, &bytes);
}

/// What was new in a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Refreshed {
    pub new: usize,
}

/// The drift feed, as it is kept.
#[derive(Debug)]
pub struct FeedFile {
    header: Header,
    entries: Vec<DriftEntry>,
}

impl FeedFile {
    pub fn read(folder: &NetworkFolder, url: &str) -> FeedFile {
        let Some((header, lines)) = lines_of(folder, DRIFT_FILE, url) else {
            return FeedFile { header: Header::new(url), entries: Vec::new() };
        };
        let mut entries: Vec<DriftEntry> = Vec::new();
        for line in lines {
            let after = entries.last().map_or(0, |entry| entry.seq);
            let Ok(page) = DriftPage::read(&line, after) else { break };
            entries.extend(page.entries);
        }
        FeedFile { header, entries }
    }

    pub fn salt(&self) -> Option<Salt> {
        self.header.salt.as_deref()?.parse().ok()
    }

    pub fn feed(&self) -> DriftFeed {
        match self.salt() {
            // The newest come last, and count where there are too many.
            Some(salt) => DriftFeed::new(salt, self.entries.iter().rev()),
            None => DriftFeed::default(),
        }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What is asked for next.
    pub fn next(&self) -> u64 {
        self.header.next
    }

    /// Whether it was read within the hour.
    pub fn is_young(&self, now: Timestamp) -> bool {
        is_young(Timestamp(self.header.fetched_at), now)
    }

    /// Reads on. Another salt makes all fingerprints others, so that everything is read again.
    pub async fn refresh(
        &mut self,
        directory: &DirectoryClient,
        folder: &NetworkFolder,
        salt: Salt,
        now: Timestamp,
    ) -> Result<Refreshed, DirectoryError> {
        if self.salt() != Some(salt) {
            *self = FeedFile { header: Header::new(&self.header.url), entries: Vec::new() };
            self.header.salt = Some(salt.to_string());
        }
        let mut refreshed = Refreshed::default();
        for _ in 0..MAX_PAGES {
            let page = directory.drift(self.header.next).await?;
            if page.next <= self.header.next {
                break;
            }
            self.header.next = page.next;
            refreshed.new += page.entries.len();
            self.entries.extend(page.entries);
        }
        let surplus = self.entries.len().saturating_sub(MAX_FEED_ENTRIES);
        self.entries.drain(..surplus);
        self.header.fetched_at = now.0;
        let pages = self.entries.chunks(MAX_PAGE_ENTRIES).filter_map(|entries| {
            let next = entries.last()?.seq;
            serde_json::to_vec(&DriftPage::new(next, entries.to_vec())).ok()
        });
        write_lines(folder, DRIFT_FILE, &self.header, pages.collect());
        Ok(refreshed)
    }
}

/// The advisories, as they are kept.
#[derive(Debug)]
pub struct KeptAdvisories {
    header: Header,
    pub advisories: Vec<Advisory>,
}

impl KeptAdvisories {
    pub fn read(folder: &NetworkFolder, url: &str) -> KeptAdvisories {
        let Some((header, lines)) = lines_of(folder, ADVISORIES_FILE, url) else {
            return KeptAdvisories { header: Header::new(url), advisories: Vec::new() };
        };
        let mut advisories: Vec<Advisory> = Vec::new();
        for line in lines {
            let after = advisories.last().map_or(0, |advisory| advisory.seq);
            let Ok(page) = AdvisoryPage::read(&line, after) else { break };
            advisories.extend(page.advisories);
        }
        KeptAdvisories { header, advisories }
    }

    pub fn next(&self) -> u64 {
        self.header.next
    }

    pub fn is_young(&self, now: Timestamp) -> bool {
        is_young(Timestamp(self.header.fetched_at), now)
    }

    pub async fn refresh(
        &mut self,
        directory: &DirectoryClient,
        folder: &NetworkFolder,
        now: Timestamp,
    ) -> Result<Refreshed, DirectoryError> {
        let mut refreshed = Refreshed::default();
        for _ in 0..MAX_PAGES {
            let page = directory.advisories(self.header.next).await?;
            if page.next <= self.header.next {
                break;
            }
            self.header.next = page.next;
            refreshed.new += page.advisories.len();
            self.advisories.extend(page.advisories);
        }
        let surplus = self.advisories.len().saturating_sub(MAX_FEED_ENTRIES);
        self.advisories.drain(..surplus);
        self.header.fetched_at = now.0;
        let pages = self.advisories.chunks(MAX_PAGE_ENTRIES).filter_map(|advisories| {
            let next = advisories.last()?.seq;
            serde_json::to_vec(&AdvisoryPage::new(next, advisories.to_vec())).ok()
        });
        write_lines(folder, ADVISORIES_FILE, &self.header, pages.collect());
        Ok(refreshed)
    }
}
