//! Broken folders, keys and heads, by accident or by attack: each problem is named in a sentence,
//! and everything else is still verified.

use super::*;
use std::time::{Duration, Instant};

/// How long the binary may take on a hostile folder. Test machines are slow.
const PATIENCE: Duration = Duration::from_secs(30);

impl Evidence {
    /// Asserts that everything verifies, with this note.
    #[track_caller]
    fn notes(&self, note: &str) -> Value {
        self.verify(&[]).exits(0).says("verified: ").says(&format!("! {note}"));
        let report = self.verify(&["--json"]).exits(0).json();
        let notes = report["notes"].as_array().unwrap();
        assert!(notes.iter().any(|said| said.as_str().unwrap().contains(note)), "{report:#}");
        report
    }
}

#[test]
fn foreign_files_are_named_and_left_out() {
    let evidence = Evidence::new();
    fs::write(evidence.folder().join("notes.txt"), "buy milk").unwrap();
    let report = evidence.notes("notes.txt: not one of Holdpoint's files; it was left out");
    assert_eq!(report["chains"], evidence.sound["chains"]);
    let chain = &evidence.chains[0];
    fs::write(evidence.chain(chain).join("1.jsonl"), "{}").unwrap();
    let report = evidence.notes(&format!("{chain}/1.jsonl: not one of Holdpoint's files"));
    assert_eq!(report["chains"], evidence.sound["chains"]);
    // A file name cannot write control characters to the terminal.
    fs::write(evidence.folder().join("evil\u{1b}[2J\nverified"), "").unwrap();
    evidence.verify(&[]).exits(0).never_says("\u{1b}").never_says("\nverified: not one");
}

#[test]
fn a_clock_that_jumps_back_is_a_note() {
    let evidence = Evidence::new();
    let chain = &evidence.chains[0];
    let home = Home::open(&evidence.bench.home()).unwrap();
    let receipts = Receipts::open(&home, settings()).unwrap();
    assert_eq!(receipts.chain().as_str(), chain);
    let times = |report: &Value| {
        let notes = report["notes"].to_string();
        let times = notes.split(&format!("chain {chain}: the clock went back ")).nth(1);
        times.map_or(0, |rest| rest.split(' ').next().unwrap().parse::<u64>().unwrap())
    };
    let before = times(&evidence.verify(&["--json"]).exits(0).json());
    for at in [9_000_000, 1_000_000, 2_000_000] {
        receipts.decision(&decision(99, at - 1_000_000_000_000)).unwrap();
    }
    drop(receipts);
    // From the process's own clock to the first time, and from the first to the second.
    let report =
        evidence.notes(&format!("chain {chain}: the clock went back {} time(s)", before + 2));
    assert_eq!(times(&report), before + 2);
}

#[test]
fn an_empty_segment_is_a_note_at_the_end_and_a_problem_in_the_middle() {
    let evidence = Evidence::new();
    let chain = &evidence.chains[1];
    let next = evidence.segments(chain) + 1;
    fs::write(evidence.segment(chain, next), "").unwrap();
    evidence.notes(&format!(
        "chain {chain}, segment {next:06}: zero bytes (its writer was stopped as it began it)"
    ));
    evidence.restore();
    fs::write(evidence.segment(chain, 2), "").unwrap();
    evidence.finds_only(Place::segment(chain, 2), "it has no lines");
    evidence.restore();
    // The last segment is empty, but its checkpoint covers lines.
    fs::write(evidence.segment(chain, next - 1), "").unwrap();
    evidence.finds_only(Place::segment(chain, next - 1), "it has no lines");
    evidence.restore();
    fs::write(evidence.segment("index", 1), "").unwrap();
    evidence.finds(Place::segment("index", 1), "it has no lines");
    fs::rename(evidence.segment("index", 1), evidence.segment("index", 2)).unwrap();
    evidence.finds(Place::segment("index", 1), "segments up to 000001 are gone");
}

#[test]
fn a_checkpoint_without_its_segment_is_named() {
    let evidence = Evidence::new();
    let chain = &evidence.chains[0];
    fs::remove_file(evidence.segment(chain, 2)).unwrap();
    let report = evidence.finds_only(Place::segment(chain, 2), "the segment is gone");
    let said = "its checkpoint is there and the segment is gone";
    assert!(report["problems"].to_string().contains(said), "{report:#}");
    evidence.restore();
    fs::copy(evidence.checkpoint(chain, 1), evidence.checkpoint(chain, 99)).unwrap();
    evidence.finds_only(Place::segment(chain, 99), said);
    evidence.restore();
    // The newest segment is missing, but its checkpoint is there.
    let last = evidence.segments(chain);
    fs::remove_file(evidence.segment(chain, last)).unwrap();
    evidence.finds_only(Place::segment(chain, last), said);
}

#[cfg(unix)]
#[test]
fn links_pipes_and_directories_in_the_place_of_files_are_not_read() {
    let evidence = Evidence::new();
    let chain = &evidence.chains[0];
    let elsewhere = evidence.bench.path("elsewhere");
    fs::rename(evidence.chain(chain), &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, evidence.chain(chain)).unwrap();
    let report = evidence.finds(Place::chain(chain), "the index lists it, and it is gone");
    let note = format!("{chain}: not one of Holdpoint's files; it was left out");
    assert!(report["notes"].to_string().contains(&note), "{report:#}");
    let other = &evidence.chains[1];
    assert_eq!(evidence.counted(&report, other), evidence.counted(&evidence.sound, other));
    fs::remove_file(evidence.chain(chain)).unwrap();
    fs::create_dir(evidence.chain(chain)).unwrap();
    evidence.restore();
    let pipe = |path: &Path| {
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    };
    let directory = |path: &Path| fs::create_dir(path).unwrap();
    let link = |path: &Path| std::os::unix::fs::symlink("/dev/zero", path).unwrap();
    for make in [&pipe as &dyn Fn(&Path), &directory, &link] {
        let path = evidence.segment(chain, 2);
        fs::remove_file(&path).unwrap();
        make(&path);
        let report = evidence.finds_only(Place::segment(chain, 2), "the segment is gone");
        let note = format!("{chain}/000002.jsonl: not one of Holdpoint's files; it was left out");
        assert!(report["notes"].to_string().contains(&note), "{report:#}");
        evidence.restore();
        // In place of a checkpoint.
        let path = evidence.checkpoint(chain, 2);
        fs::remove_file(&path).unwrap();
        make(&path);
        evidence.finds_only(Place::segment(chain, 2), "its checkpoint");
        evidence.restore();
        // After the last segment.
        make(&evidence.segment(chain, evidence.segments(chain) + 1));
        let report = evidence.notes(&format!("{chain}/"));
        assert_eq!(report["chains"], evidence.sound["chains"]);
        evidence.restore();
    }
}

#[test]
fn a_line_without_an_end_is_given_up() {
    let evidence = Evidence::new();
    let [first, second] = &evidence.chains;
    let last = evidence.segments(first);
    let path = evidence.segment(first, last);
    let lines = fs::read_to_string(&path).unwrap().lines().count();
    let long = vec![b'x'; 100 * 1024 * 1024];
    let begun = Instant::now();
    for end in [b"".as_slice(), b"\n"] {
        fs::write(&path, [&fs::read(&path).unwrap(), long.as_slice(), end].concat()).unwrap();
        let said = "it is longer than any line may be";
        evidence.finds_only(Place::line(first, last, lines + 1), said);
        evidence.restore();
    }
    // A segment in the middle consists of a hole in the file.
    let hole = fs::File::create(evidence.segment(second, 2)).unwrap();
    hole.set_len(long.len() as u64).unwrap();
    evidence.finds_only(Place::line(second, 2, 1), "it is longer than any line may be");
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
}

#[test]
fn a_checkpoint_that_is_too_large_or_no_text_is_named() {
    let evidence = Evidence::new();
    let chain = &evidence.chains[0];
    let path = evidence.checkpoint(chain, 1);
    for bytes in [vec![b'x'; 1024 * 1024], vec![0xff; 64], Vec::new(), vec![b'\n'; 300]] {
        fs::write(&path, bytes).unwrap();
        evidence.finds_only(Place::segment(chain, 1), "its checkpoint: ");
    }
}

#[test]
fn a_segment_number_without_an_end_is_one_problem() {
    let evidence = Evidence::new();
    let chain = &evidence.chains[0];
    let begun = Instant::now();
    fs::write(evidence.chain(chain).join("4294967295.jsonl"), "").unwrap();
    let next = evidence.segments(chain) + 1;
    evidence
        .finds_only(Place::segment(chain, next), "the segments from here to 4294967294 are gone");
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
}

#[test]
fn a_key_that_is_none_is_refused() {
    let evidence = Evidence::new();
    let bench = &evidence.bench;
    let verify = |path: &Path| evidence.verify(&["--key", path.to_str().unwrap()]);
    verify(&bench.file("poem.txt", "roses are red\n")).exits(2).says("holds no public key");
    verify(&bench.file("empty.pub", "")).exits(2).says("empty.pub").says("holds no public key");
    verify(&bench.file("bytes.pub", [0xff; 64])).exits(2).says("bytes.pub");
    verify(&bench.path("gone.pub")).exits(2).says("gone.pub");
    let private = bench.home().join("keys").join("receipts.key");
    let secret = fs::read_to_string(&private).unwrap();
    let secret = secret.trim().rsplit('+').next().unwrap();
    verify(&private).exits(2).says("this is a private key").never_says(secret);
    verify(&bench.home().join("keys").join("receipts.pub")).exits(0);
}

#[test]
fn a_head_that_is_none_is_refused() {
    let evidence = Evidence::new();
    let bench = &evidence.bench;
    let verify = |path: &Path| evidence.verify(&["--head", path.to_str().unwrap()]);
    verify(&bench.file("poem.txt", "roses are red\n"))
        .exits(14)
        .says("poem.txt` is not a checkpoint");
    verify(&bench.file("empty.txt", "")).exits(2).says("empty.txt` holds no checkpoint");
    verify(&bench.file("bytes.txt", [0xff; 64])).exits(2).says("bytes.txt");
    verify(&bench.path("gone.txt")).exits(2).says("gone.txt");
    // A valid head does not make up for an invalid one next to it.
    let heads = bench.run(["receipts", "prove", "--heads"]).exits(0).out;
    verify(&bench.file("heads.txt", &heads)).exits(0);
    let changed = bench.file("changed.txt", heads.replacen('\n', "\n1", 1));
    verify(&changed).exits(14).says("changed.txt` is not a checkpoint");
    let document =
        evidence.verify(&["--json", "--head", changed.to_str().unwrap()]).exits(14).json();
    assert_eq!(document["error"]["exit"], 14);
}

#[test]
fn an_empty_folder_and_no_folder_are_not_sound() {
    let evidence = Evidence::new();
    let key = evidence.bench.home().join("keys").join("receipts.pub");
    let verify =
        |path: &Path| evidence.verify(&[path.to_str().unwrap(), "--key", key.to_str().unwrap()]);
    let empty = evidence.bench.path("empty");
    fs::create_dir(&empty).unwrap();
    verify(&empty).exits(14).says("empty` holds no receipts").never_says("verified");
    verify(&evidence.bench.path("gone")).exits(2).says("gone`: ");
    verify(&evidence.bench.file("file", "")).exits(2).says("file` is not a folder of receipts");
    // A folder with other content.
    fs::write(empty.join("notes.txt"), "buy milk").unwrap();
    verify(&empty).exits(14).never_says("verified");
    fs::remove_dir_all(evidence.folder()).unwrap();
    evidence.verify(&[]).exits(2).says("there are no receipts yet");
}

/// The user to run as when the tests run as root, whom no permissions stop.
#[cfg(unix)]
const NOBODY: [&str; 3] = ["--reuid=65534", "--regid=65534", "--clear-groups"];

/// The binary as a user whom permissions stop; `None` if that is not possible.
#[cfg(unix)]
fn as_unprivileged_user(bench: &Bench, words: &[&str]) -> Option<std::process::Command> {
    let command = bench.command(words);
    if !rustix::process::geteuid().is_root() {
        return Some(command);
    }
    let wrap = |program: &std::ffi::OsStr| {
        let mut wrapped = std::process::Command::new("setpriv");
        wrapped.args(NOBODY).arg("--").arg(program).current_dir(bench.path("."));
        wrapped.env("HOLDPOINT_HOME", bench.path("nobody"));
        wrapped
    };
    let probe = wrap(command.get_program()).arg("--version").output();
    if !probe.is_ok_and(|probe| probe.status.success()) {
        return None;
    }
    let mut wrapped = wrap(command.get_program());
    wrapped.args(command.get_args());
    Some(wrapped)
}

#[cfg(unix)]
#[test]
fn what_may_not_be_read_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let evidence = Evidence::new();
    let [first, second] = &evidence.chains;
    let bench = &evidence.bench;
    let allow = |path: &Path, mode: u32| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    allow(&bench.path("."), 0o755);
    let folder = bench.path("readable");
    copy(&evidence.folder(), &folder);
    let key =
        bench.file("key.pub", fs::read(bench.home().join("keys").join("receipts.pub")).unwrap());
    for path in [&folder, &folder.join("index"), &folder.join(first), &folder.join(second)] {
        allow(path, 0o755);
        let files = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|path| path.is_file()).for_each(|path| allow(&path, 0o644));
    }
    allow(&key, 0o644);
    let (folder_word, key_word) = (folder.to_str().unwrap(), key.to_str().unwrap());
    let words = ["receipts", "verify", folder_word, "--key", key_word];
    let verify = |options: &[&str]| {
        let words: Vec<&str> = words.iter().chain(options).copied().collect();
        as_unprivileged_user(bench, &words).map(answer)
    };
    let Some(sound) = verify(&[]) else {
        testing::not_run("no other user can be had here, and permissions do not stop root");
        return;
    };
    sound.exits(0);
    let verify = |options: &[&str]| verify(options).unwrap();
    let closed = folder.join(first);
    allow(&closed, 0o000);
    verify(&[]).exits(14).says(&format!("✗ chain {first} cannot be inspected: Permission denied"));
    let report = verify(&["--json"]).exits(14).json();
    for chain in ["index", second] {
        assert_eq!(evidence.counted(&report, chain), evidence.counted(&evidence.sound, chain));
    }
    allow(&closed, 0o755);
    let segment = closed.join("000002.jsonl");
    allow(&segment, 0o000);
    let said = format!("✗ chain {first}, segment 000002: it cannot be read: Permission denied");
    verify(&[]).exits(14).says(&said);
    allow(&segment, 0o644);
    allow(&folder, 0o000);
    verify(&[]).never_says("verified: ").says("Permission denied");
    allow(&folder, 0o755);
    verify(&[]).exits(0);
}
