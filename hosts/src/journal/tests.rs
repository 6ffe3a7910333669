use super::*;

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
        journal.write(&path, "cursor", "{}", "{ }", Vec::new()).unwrap();
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
    let (begins, has_begun) = std::sync::mpsc::channel();
    let waiting = std::thread::spawn(move || {
        begins.send(()).unwrap();
        journal.lock(&path).is_ok()
    });
    has_begun.recv().unwrap();
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
    // The addition is not JSON, and it takes reading the file to find that out.
    assert!(!what(MAX_RECORD_BYTES).contains("too large"), "{}", what(MAX_RECORD_BYTES));
    assert!(what(MAX_RECORD_BYTES + 1).contains("too large"));
}

#[test]
fn a_record_has_nothing_of_the_file_and_gives_it_back() {
    let bench = Bench::new();
    let secret = "Qk49-secret-Lm";
    let original = format!("{{\"url\": \"https://h/{secret}\", \"rest\": \"{secret}\"}}");
    let wired = format!("{{\"env\": {{\"U\": \"https://h/{secret}\"}}, \"rest\": \"{secret}\"}}");
    bench.journal.write(&bench.path, "cursor", &original, &wired, Vec::new()).unwrap();
    for name in fs::read_dir(bench.folder.path().join("wiring")).unwrap() {
        let bytes = fs::read(name.unwrap().path()).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains(secret));
    }
    let record = bench.journal.record(&bench.path).unwrap().unwrap();
    assert_eq!(record.original_of(&wired), Some(original));
    assert_eq!(record.original_of(&wired.replace("rest", "else")), None);
}

#[test]
fn a_file_that_cannot_be_restored_without_its_secrets_is_refused() {
    let bench = Bench::new();
    let original = "{\"url\": /* key 4711 */ \"x\"}";
    let refused = bench.journal.write(&bench.path, "cursor", original, "{}", Vec::new());
    assert!(matches!(refused, Err(JournalError::NotReversible { .. })));
}

/// In the format of the previous version: a full copy of the file, and the address in the record.
#[test]
fn what_an_older_version_kept_is_rewritten_and_its_copy_removed() {
    let secret = "Qk49-secret-Lm";
    let original = format!("{{\"url\": \"https://h/{secret}\"}}");
    let wired = format!("{{\"env\": {{\"U\": \"https://h/{secret}\"}}}}");
    for (text, has_original) in [(wired.clone(), true), (format!("{wired} "), false)] {
        let bench = Bench::new();
        fs::write(&bench.path, &text).unwrap();
        let kept = serde_json::json!({
            "had_arguments": false,
            "address": {"text": format!("\"url\": \"https://h/{secret}\""), "meaning": format!("https://h/{secret}")},
        });
        let record = serde_json::json!({
            "version": 1, "path": bench.path, "host": "cursor", "wrote": hash(wired.as_bytes()),
            "original": hash(original.as_bytes()),
            "wirings": [{"place": [], "id": "cursor.x", "kept": kept}],
        });
        fs::write(bench.journal.file(&bench.path, "json"), record.to_string()).unwrap();
        fs::write(bench.journal.file(&bench.path, "original"), &original).unwrap();
        redact_journal(&bench.folder.path().join("wiring")).unwrap();
        assert!(!bench.journal.file(&bench.path, "original").exists());
        let left = fs::read_to_string(bench.journal.file(&bench.path, "json")).unwrap();
        assert!(!left.contains(secret), "{left}");
        let record = bench.journal.record(&bench.path).unwrap().unwrap();
        assert_eq!(record.wirings.len(), 1);
        assert_eq!(record.original_of(&text), has_original.then(|| original.clone()));
        redact_journal(&bench.folder.path().join("wiring")).unwrap();
    }
}
