//! The export's progress, stored atomically in the home after a collector accepted a batch; and the
//! lock that limits a home to one exporter.

use super::StartError;
use ledger::folder::{ChainId, SegmentNumber};
use ledger::receipt::Position;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The file in the home with the progress.
pub const CURSOR_FILE: &str = "receipts-export.json";
/// Locked by the process that exports.
pub const LOCK_FILE: &str = "receipts-export.lock";

/// The largest cursor file that is read, enough for some tens of thousands of open calls.
const MAX_CURSOR_BYTES: u64 = 16 * 1024 * 1024;

/// The progress for one collector.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Cursor {
    chains: BTreeMap<String, ChainCursor>,
}

/// The progress for one chain: where the next line starts, and the earlier decisions whose outcomes
/// are still missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct ChainCursor {
    next: Place,
    open: Vec<Place>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Place {
    segment: u32,
    offset: u64,
    lines: u64,
}

impl From<Position> for Place {
    fn from(position: Position) -> Place {
        let Position { segment, offset, lines } = position;
        Place { segment: segment.0, offset, lines }
    }
}

impl From<Place> for Position {
    fn from(place: Place) -> Position {
        let Place { segment, offset, lines } = place;
        Position { segment: SegmentNumber(segment), offset, lines }
    }
}

impl Cursor {
    pub(super) fn set(
        &mut self,
        chain: &ChainId,
        next: Position,
        open: impl Iterator<Item = Position>,
    ) {
        let cursor = ChainCursor { next: next.into(), open: open.map(Place::from).collect() };
        self.chains.insert(chain.to_string(), cursor);
    }

    /// Where each chain continues. Names that are not valid chain ids are ignored.
    pub(super) fn starts(&self) -> BTreeMap<ChainId, Position> {
        self.chains().map(|(chain, cursor)| (chain, cursor.next.into())).collect()
    }

    /// The decisions that were read and whose outcomes are still missing.
    pub(super) fn open(&self) -> impl Iterator<Item = (ChainId, Position)> {
        self.chains().flat_map(|(chain, cursor)| {
            cursor.open.iter().map(move |place| (chain.clone(), (*place).into()))
        })
    }

    fn chains(&self) -> impl Iterator<Item = (ChainId, &ChainCursor)> {
        self.chains.iter().filter_map(|(name, cursor)| Some((name.parse().ok()?, cursor)))
    }
}

/// The file with the cursors of all collectors.
#[derive(Debug)]
pub(super) struct CursorFile {
    path: PathBuf,
    contents: Contents,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Contents {
    version: u32,
    otlp: Option<Cursor>,
    syslog: Option<Cursor>,
}

const VERSION: u32 = 1;

/// The kind of collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Otlp,
    Syslog,
}

impl CursorFile {
    /// Reads the file. An unreadable file counts as missing, with a reason to report: sending
    /// everything again is better than omitting some.
    pub(super) fn read(home: &Path) -> (CursorFile, Option<String>) {
        let path = home.join(CURSOR_FILE);
        let (contents, problem) = match read_contents(&path) {
            Ok(contents) => (contents, None),
            Err(problem) => (Contents::default(), Some(problem)),
        };
        let problem = problem
            .map(|problem| format!("`{}`: {problem}; everything is sent again", path.display()));
        (CursorFile { path, contents }, problem)
    }

    pub(super) fn cursor(&self, kind: Kind) -> Cursor {
        let found = match kind {
            Kind::Otlp => &self.contents.otlp,
            Kind::Syslog => &self.contents.syslog,
        };
        found.clone().unwrap_or_default()
    }

    /// Replaces a cursor on disk.
    pub(super) fn save(&mut self, kind: Kind, cursor: Cursor) -> io::Result<()> {
        match kind {
            Kind::Otlp => self.contents.otlp = Some(cursor),
            Kind::Syslog => self.contents.syslog = Some(cursor),
        }
        self.contents.version = VERSION;
        let text = serde_json::to_vec(&self.contents)?;
        let unfinished = self.path.with_extension("json.new");
        let mut options = OpenOptions::new();
        options.create(true).truncate(true).write(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&unfinished)?;
        file.write_all(&text)?;
        file.sync_data()?;
        std::fs::rename(&unfinished, &self.path)
    }
}

fn read_contents(path: &Path) -> Result<Contents, String> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Contents::default()),
        Err(error) => return Err(error.to_string()),
    };
    let mut bytes = Vec::new();
    file.take(MAX_CURSOR_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_CURSOR_BYTES {
        return Err(format!("longer than {MAX_CURSOR_BYTES} bytes"));
    }
    let contents: Contents =
        serde_json::from_slice(&bytes).map_err(|_| "not what an export wrote".to_owned())?;
    if contents.version > VERSION {
        return Err("written by a newer version".to_owned());
    }
    Ok(contents)
}

/// The lock that limits a home to one exporter.
#[derive(Debug)]
pub(super) struct ExportLock {
    file: File,
}

impl ExportLock {
    pub(super) fn open(home: &Path) -> Result<ExportLock, StartError> {
        let path = home.join(LOCK_FILE);
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).map_err(|source| StartError::Home { path, source })?;
        Ok(ExportLock { file })
    }

    /// Whether this process holds the lock now. It then keeps it until it ends.
    pub(super) fn take(&self) -> io::Result<bool> {
        match self.file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(offset: u64) -> Position {
        Position { segment: SegmentNumber(2), offset, lines: 3 }
    }

    #[test]
    fn cursors_read_back_as_they_were_saved() {
        let home = tempfile::tempdir().unwrap();
        let chain = ChainId::from_random([1; 8]);
        let (mut file, problem) = CursorFile::read(home.path());
        assert_eq!((file.cursor(Kind::Otlp), problem), (Cursor::default(), None));
        let mut cursor = Cursor::default();
        cursor.set(&chain, position(9), [position(4)].into_iter());
        file.save(Kind::Otlp, cursor.clone()).unwrap();
        file.save(Kind::Syslog, Cursor::default()).unwrap();
        let (again, problem) = CursorFile::read(home.path());
        assert_eq!((again.cursor(Kind::Otlp), problem), (cursor.clone(), None));
        assert_eq!(again.cursor(Kind::Syslog), Cursor::default());
        assert_eq!(cursor.starts(), BTreeMap::from([(chain.clone(), position(9))]));
        assert_eq!(cursor.open().collect::<Vec<_>>(), [(chain, position(4))]);
    }

    #[test]
    fn a_cursor_that_cannot_be_read_sends_everything_again_and_says_so() {
        for text in [
            "",
            "{}",
            "no",
            r#"{"version":2,"otlp":null,"syslog":null}"#,
            r#"{"version":1,"otlp":7}"#,
        ] {
            let home = tempfile::tempdir().unwrap();
            std::fs::write(home.path().join(CURSOR_FILE), text).unwrap();
            let (file, problem) = CursorFile::read(home.path());
            assert_eq!(file.cursor(Kind::Otlp), Cursor::default());
            assert!(problem.unwrap().contains("sent again"), "{text}");
        }
    }

    #[test]
    fn a_cursor_over_the_limit_is_not_read() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(CURSOR_FILE);
        let text = |length: u64| {
            let start = r#"{"version":1,"otlp":null,"syslog":null}"#;
            format!("{start}{}", " ".repeat(usize::try_from(length).unwrap() - start.len()))
        };
        std::fs::write(&path, text(MAX_CURSOR_BYTES)).unwrap();
        assert_eq!(CursorFile::read(home.path()).1, None);
        std::fs::write(&path, text(MAX_CURSOR_BYTES + 1)).unwrap();
        assert!(CursorFile::read(home.path()).1.unwrap().contains("longer than"));
    }

    #[test]
    fn one_process_holds_the_lock() {
        let home = tempfile::tempdir().unwrap();
        let (first, second) =
            (ExportLock::open(home.path()).unwrap(), ExportLock::open(home.path()).unwrap());
        assert!(first.take().unwrap());
        assert!(!second.take().unwrap());
        drop(first);
        assert!(second.take().unwrap());
    }
}
