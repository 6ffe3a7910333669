use super::*;
use crate::MAX_FILE_BYTES;

struct Bench {
    folder: tempfile::TempDir,
    journal: Journal,
    path: PathBuf,
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::new(&folder.path().join("wiring"));
        let path = folder.path().join("mcp.json");
        fs::write(&path, "{}").unwrap();
        journal.write(&path, "cursor", b"{}", b"{ }", Vec::new()).unwrap();
        Bench { folder, journal, path }
    }

    fn grow(&self, ending: &str, bytes: u64) {
        let name = self.journal.file(&self.path, ending);
        File::options().write(true).open(name).unwrap().set_len(bytes).unwrap();
    }
}

#[test]
fn a_file_that_another_has_in_hand_is_waited_for_as_long_as_that_and_no_longer() {
    let bench = Bench::new();
    let held = bench.journal.lock(&bench.path).unwrap();
    let other = bench.folder.path().join("other.json");
    assert!(bench.journal.lock_within(Duration::ZERO, &other).is_ok(), "another file is free");
    let patience = Duration::from_millis(300);
    let since = Instant::now();
    let busy = bench.journal.lock_within(patience, &bench.path);
    assert!(matches!(busy, Err(JournalError::Busy { .. })));
    assert!(since.elapsed() >= patience, "{:?}", since.elapsed());
    let (journal, path) = (bench.journal.clone(), bench.path.clone());
    let waiting = std::thread::spawn(move || journal.lock(&path).is_ok());
    std::thread::sleep(2 * PAUSE);
    drop(held);
    assert!(waiting.join().unwrap(), "it is had once the other lets go");
}

#[test]
fn a_record_at_the_limit_is_read_and_one_past_it_is_not() {
    let what = |bytes: u64| {
        let bench = Bench::new();
        bench.grow("json", bytes);
        bench.journal.record(&bench.path).unwrap_err().to_string()
    };
    // What was added is no JSON, and to find that it has to be read.
    assert!(!what(MAX_RECORD_BYTES).contains("too large"), "{}", what(MAX_RECORD_BYTES));
    assert!(what(MAX_RECORD_BYTES + 1).contains("too large"));
}

#[test]
fn an_original_at_the_limit_is_had_back_and_one_past_it_is_not() {
    let original = |bytes: u64| {
        let bench = Bench::new();
        let kept = vec![0; usize::try_from(bytes).unwrap()];
        bench.journal.write(&bench.path, "cursor", &kept, b"{ }", Vec::new()).unwrap();
        let record = bench.journal.record(&bench.path).unwrap().unwrap();
        bench.journal.original(&bench.path, &record).unwrap().map(|bytes| bytes.len() as u64)
    };
    assert_eq!(original(MAX_FILE_BYTES), Some(MAX_FILE_BYTES));
    assert_eq!(original(MAX_FILE_BYTES + 1), None);
}
