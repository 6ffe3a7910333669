//! Whether anybody decided anything since the last call: asked before each call, so it has to be cheap.
//!
//! Every act of a person makes the index of the home's receipts longer before it returns: that is one look at a file. Where
//! nodes share a database, their homes do not share an index, and the database is asked as well.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use store::{Store, StoreError};

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Sign {
    index_bytes: Option<u64>,
    version: u64,
}

#[derive(Debug)]
pub struct Sentinel {
    index: PathBuf,
    /// A handle of its own, where others write to the same database from elsewhere.
    shared: Option<Box<dyn Store>>,
    seen: Sign,
    looked_at: Cell<Instant>,
}

/// How long a look counts for calls that were read together.
const JUST: Duration = Duration::from_millis(5);

impl Sentinel {
    pub fn new(index: PathBuf, shared: Option<Box<dyn Store>>) -> Result<Sentinel, StoreError> {
        let mut sentinel =
            Sentinel { index, shared, seen: Sign::default(), looked_at: Cell::new(Instant::now()) };
        sentinel.seen = sentinel.look()?;
        Ok(sentinel)
    }

    /// What is new since the last time it was taken note of, if anything is.
    pub fn news(&self) -> Result<Option<News>, StoreError> {
        let sign = self.look()?;
        Ok((sign != self.seen).then_some(News(sign)))
    }

    /// The news were acted on.
    pub fn take_note(&mut self, news: News) {
        self.seen = news.0;
    }

    pub fn has_just_looked(&self) -> bool {
        self.looked_at.get().elapsed() < JUST
    }

    fn look(&self) -> Result<Sign, StoreError> {
        self.looked_at.set(Instant::now());
        let version = self.shared.as_ref().map_or(Ok(0), |store| store.version())?;
        Ok(Sign { index_bytes: length(&self.index), version })
    }
}

/// Something that somebody decided.
#[derive(Debug, Clone, Copy)]
pub struct News(Sign);

fn length(path: &Path) -> Option<u64> {
    std::fs::metadata(path).ok().map(|found| found.len())
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
        std::fs::write(&index, "one").unwrap();
        let news = sentinel.news().unwrap().unwrap();
        assert!(sentinel.news().unwrap().is_some());
        sentinel.take_note(news);
        assert!(sentinel.news().unwrap().is_none());
        std::fs::remove_file(&index).unwrap();
        assert!(sentinel.news().unwrap().is_some());
    }
}
