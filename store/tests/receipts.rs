//! Receipts on a real disk, through the public interface.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "all of this file is a test, also the functions that are not marked as one"
)]

use contract::time::Timestamp;
use ledger::chain::Rotation;
use ledger::folder::{ChainId, Folder};
use ledger::record::*;
use ledger::sample;
use ledger::verify::{Report, verify};
use std::fs;
use store::Home;
use store::receipts::*;
use tempfile::TempDir;

const NOW: Timestamp = Timestamp(1_763_253_195_123);

fn home() -> (TempDir, Home) {
    let directory = tempfile::tempdir().unwrap();
    let home = Home::open(&directory.path().join("home")).unwrap();
    (directory, home)
}

fn decision(id: u8) -> Decision<'static> {
    sample::decision(NOW, ReceiptId([id; 16]))
}

fn outcome(id: u8) -> Outcome {
    sample::outcome(NOW, ReceiptId([id; 16]))
}

fn small_segments() -> Settings {
    let rotation = Rotation { bytes: 4_000, age_milliseconds: i64::MAX };
    Settings { rotation, ..Settings::default() }
}

fn verified(home: &Home) -> Report {
    let keys = public_keys(&home.receipts_public_key_path()).unwrap();
    let folder = DiskFolder::new(&home.receipts_path());
    verify(&folder, &keys, &[], &|_| {}).unwrap()
}

#[track_caller]
fn assert_sound(home: &Home) -> Report {
    let report = verified(home);
    assert_eq!(report.problems, []);
    report
}

fn chains(home: &Home) -> Vec<ChainId> {
    let listing = DiskFolder::new(&home.receipts_path()).listing().unwrap();
    listing.chains.into_keys().filter(|chain| !chain.is_index()).collect()
}

#[test]
fn receipts_verify_with_the_public_key_alone() {
    let (_directory, home) = home();
    for fsync in [Fsync::Always, Fsync::Interval, Fsync::Never] {
        let receipts = Receipts::open(&home, Settings { fsync, ..small_segments() }).unwrap();
        for id in 0..20 {
            receipts.decision(&decision(id)).unwrap();
            receipts.outcome(&outcome(id)).unwrap();
        }
    }
    let report = assert_sound(&home);
    assert_eq!((report.uncovered(), report.without_outcome()), (0, 0));
    assert_eq!(report.chains[1].decisions, 60);
    // Sequential writers share one chain.
    assert_eq!(chains(&home).len(), 1);
}

#[test]
fn writers_at_the_same_time_have_chains_of_their_own() {
    let (_directory, home) = home();
    let writers: Vec<_> =
        (0..3).map(|_| Receipts::open(&home, Settings::default()).unwrap()).collect();
    std::thread::scope(|scope| {
        for receipts in &writers {
            scope.spawn(move || {
                for id in 0..100 {
                    receipts.decision(&decision(id)).unwrap();
                }
            });
        }
    });
    let named: std::collections::BTreeSet<_> =
        writers.iter().map(|writer| writer.chain().to_string()).collect();
    assert_eq!((named.len(), chains(&home).len()), (3, 3));
    drop(writers);
    let report = assert_sound(&home);
    assert_eq!(report.without_outcome(), 300);
}

#[test]
fn a_folder_can_be_verified_while_it_is_written_to() {
    let (_directory, home) = home();
    let receipts = Receipts::open(&home, small_segments()).unwrap();
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            for id in 0..=255 {
                receipts.decision(&decision(id)).unwrap();
            }
        });
        while !writing.is_finished() {
            assert_sound(&home);
        }
    });
}

#[test]
fn retention_drops_old_segments_and_what_is_left_verifies() {
    let (_directory, home) = home();
    let keep = Keep { bytes: Some(20_000), age_milliseconds: None };
    let receipts = Receipts::open(&home, Settings { keep, ..small_segments() }).unwrap();
    for id in 0..=200 {
        receipts.decision(&decision(id)).unwrap();
    }
    drop(receipts);
    let report = assert_sound(&home);
    let chain = &report.chains[1];
    assert!(chain.size > chain.lines, "{chain:?}");
    assert!(chain.bytes < 30_000, "{chain:?}");
    // A claim of one more record than exists is reported.
    let listing = DiskFolder::new(&home.receipts_path()).listing().unwrap();
    let (chain, files) = listing.chains.iter().find(|(chain, _)| !chain.is_index()).unwrap();
    let oldest = files.segments.keys().next().unwrap();
    fs::remove_file(home.receipts_path().join(chain.as_str()).join(oldest.file_name())).unwrap();
    assert!(!verified(&home).is_sound());
}

#[test]
fn retention_by_age_keeps_what_is_young() {
    let (_directory, home) = home();
    let receipts = Receipts::open(&home, small_segments()).unwrap();
    for id in 0..50 {
        receipts.decision(&decision(id)).unwrap();
    }
    drop(receipts);
    let dropped = |age| {
        let keep = Keep { bytes: None, age_milliseconds: Some(age) };
        drop(Receipts::open(&home, Settings { keep, ..small_segments() }).unwrap());
        let chain = assert_sound(&home).chains[1].clone();
        chain.size - chain.lines
    };
    assert_eq!(dropped(i64::MAX), 0);
    assert!(dropped(1_000) > 0);
}

#[test]
fn a_damaged_chain_is_left_alone_and_another_begun() {
    let (_directory, home) = home();
    drop(Receipts::open(&home, Settings::default()).unwrap());
    let damaged = chains(&home)[0].clone();
    let path = home.receipts_path().join(damaged.as_str()).join("000001.jsonl");
    let before = [fs::read(&path).unwrap(), b"garbage\n".to_vec()].concat();
    fs::write(&path, &before).unwrap();
    let receipts = Receipts::open(&home, Settings::default()).unwrap();
    assert_ne!(receipts.chain(), damaged);
    assert_eq!(fs::read(&path).unwrap(), before);
    assert!(verified(&home).problems[0].to_string().contains("line 2"), "{:?}", verified(&home));
}

#[test]
fn a_torn_end_is_closed_with_a_line_that_says_so() {
    let (_directory, home) = home();
    drop(Receipts::open(&home, Settings::default()).unwrap());
    let path = home.receipts_path().join(chains(&home)[0].as_str()).join("000001.jsonl");
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{whole}{{\"admission\":null,\"appr")).unwrap();
    assert_eq!(assert_sound(&home).notes.len(), 1);
    drop(Receipts::open(&home, Settings::default()).unwrap());
    assert!(assert_sound(&home).notes.is_empty());
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with(&whole) && text.contains("\"torn\":{\"bytes\":23,"), "{text}");
}

#[test]
fn a_missing_or_damaged_index_is_refused() {
    let (_directory, home) = home();
    drop(Receipts::open(&home, Settings::default()).unwrap());
    let index = home.receipts_path().join("index");
    let kept = fs::read(index.join("000001.jsonl")).unwrap();
    let mut edited = kept.clone();
    edited[200] ^= 1;
    fs::write(index.join("000001.jsonl"), edited).unwrap();
    let refused = Receipts::open(&home, Settings::default());
    assert!(matches!(refused, Err(ReceiptsError::Index { .. })), "{refused:?}");
    fs::write(index.join("000001.jsonl"), kept).unwrap();
    drop(Receipts::open(&home, Settings::default()).unwrap());
    fs::remove_dir_all(&index).unwrap();
    let refused = Receipts::open(&home, Settings::default());
    assert!(matches!(refused, Err(ReceiptsError::Index { .. })), "{refused:?}");
}

#[test]
fn a_folder_that_was_removed_is_missed_for_ever() {
    let (_directory, home) = home();
    drop(Receipts::open(&home, Settings::default()).unwrap());
    assert_sound(&home);
    fs::remove_dir_all(home.receipts_path()).unwrap();
    drop(Receipts::open(&home, Settings::default()).unwrap());
    assert!(verified(&home).problems[0].what.contains("started over"), "{:?}", verified(&home));
}

#[test]
fn a_key_that_is_gone_or_open_to_others_is_refused() {
    let (_directory, home) = home();
    drop(Receipts::open(&home, Settings::default()).unwrap());
    let path = home.path().join("keys").join("receipts.key");
    let key = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    assert!(matches!(Receipts::open(&home, Settings::default()), Err(ReceiptsError::Key { .. })));
    fs::write(&path, &key).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(
            Receipts::open(&home, Settings::default()),
            Err(ReceiptsError::Key { .. })
        ));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(Receipts::open(&home, Settings::default()).is_ok());
    }
}

#[test]
fn arguments_are_hashed_with_a_key_of_the_home() {
    let (_directory, first) = home();
    let (_other_directory, second) = home();
    let open = |home: &Home, args_hash| {
        Receipts::open(home, Settings { args_hash, ..Settings::default() }).unwrap()
    };
    let hash = |receipts: &Receipts| receipts.args_key().hash(b"{}");
    let (one, two) = (open(&first, ArgsHashKind::Keyed), open(&second, ArgsHashKind::Keyed));
    assert_eq!(hash(&one), hash(&open(&first, ArgsHashKind::Keyed)));
    assert_ne!(hash(&one), hash(&two));
    let plain = open(&first, ArgsHashKind::Plain);
    assert_eq!(hex::encode(hash(&plain).0), contract::hash::sha256_hex(b"{}"));
}

#[test]
fn a_key_for_arguments_that_cannot_be_used_is_told_as_what_it_is() {
    let (_directory, home) = home();
    let path = home.keys_path().join("args.key");
    let look = |kind| check_args_key(&home, kind);
    // Checking does not create the key.
    assert!(look(ArgsHashKind::Keyed).is_ok() && !path.exists());
    drop(Receipts::open(&home, Settings::default()).unwrap());
    assert!(look(ArgsHashKind::Keyed).is_ok());
    for length in [0, 31, 33] {
        fs::write(&path, vec![7; length]).unwrap();
        let opened = Receipts::open(&home, Settings::default()).unwrap_err();
        assert!(matches!(opened, ReceiptsError::ArgsKey { .. }), "{opened}");
        let said = opened.to_string();
        assert_eq!(look(ArgsHashKind::Keyed).unwrap_err().to_string(), said);
        assert!(said.contains("move it away and a new one is made"), "{said}");
        assert!(!said.contains("approve") && !said.contains("folder"), "{said}");
        // The key is not needed without keyed hashes.
        assert!(look(ArgsHashKind::Plain).is_ok());
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::write(&path, [7; 32]).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(look(ArgsHashKind::Keyed).unwrap_err().to_string().contains("chmod 600"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(look(ArgsHashKind::Keyed).is_ok());
    }
    fs::write(&path, "short").unwrap();
    fs::remove_file(&path).unwrap();
    assert!(Receipts::open(&home, Settings::default()).is_ok());
}

#[test]
fn a_line_that_was_added_to_the_index_is_never_signed() {
    let (_directory, home) = home();
    drop(Receipts::open(&home, Settings::default()).unwrap());
    let path = home.receipts_path().join("index").join("000001.jsonl");
    let sound = fs::read_to_string(&path).unwrap();
    // A line with a correct hash and `prev`: forging those needs no key.
    let last = ledger::line::scan(sound.lines().next_back().unwrap().as_bytes()).unwrap();
    let place = ledger::line::Place { seq: last.seq + 1, prev: last.hash };
    let data = serde_json::json!({"dropped": []});
    let event =
        Event { ts: NOW, name: "chain.retention", by: None, server_id: None, data: Some(&data) };
    let mut forged = sound.clone().into_bytes();
    ledger::line::encode(&Record::Event(&event), place, &mut forged).unwrap();
    fs::write(&path, forged).unwrap();
    Journal::new(&home)
        .append(&Event { ts: NOW, name: "server.test", by: None, server_id: None, data: None })
        .unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with(&sound) && !text.contains("chain.retention"), "{text}");
    assert!(text.contains("\"torn\":{\"bytes\":"), "{text}");
    assert_sound(&home);
}

#[test]
fn a_planted_chain_is_not_taken_over() {
    let (_directory, home) = home();
    drop(Receipts::open(&home, Settings::default()).unwrap());
    let real = home.receipts_path().join(chains(&home)[0].as_str());
    let planted = home.receipts_path().join("0000000000000000");
    fs::create_dir(&planted).unwrap();
    fs::copy(real.join("000001.jsonl"), planted.join("000001.jsonl")).unwrap();
    let receipts = Receipts::open(&home, Settings::default()).unwrap();
    assert_ne!(receipts.chain().as_str(), "0000000000000000");
    assert!(verified(&home).problems[0].to_string().contains("0000000000000000"));
}

#[cfg(unix)]
#[test]
fn links_and_pipes_in_the_folder_are_not_opened() {
    let (directory, home) = home();
    drop(Receipts::open(&home, Settings::default()).unwrap());
    let chain = home.receipts_path().join(chains(&home)[0].as_str());
    let made =
        std::process::Command::new("mkfifo").arg(chain.join("000002.jsonl")).status().unwrap();
    assert!(made.success());
    fs::remove_file(chain.join("000001.checkpoint")).unwrap();
    let made =
        std::process::Command::new("mkfifo").arg(chain.join("000001.checkpoint")).status().unwrap();
    assert!(made.success());
    std::os::unix::fs::symlink(directory.path(), home.receipts_path().join("ffffffffffffffff"))
        .unwrap();
    let report = verified(&home);
    assert!(!report.is_sound());
    assert!(report.notes.iter().any(|note| note.contains("ffffffffffffffff")), "{report:?}");
    // Nor does a writer wait for them.
    drop(Receipts::open(&home, Settings::default()).unwrap());
}

#[test]
fn a_clock_that_jumped_leaves_no_gap_in_what_is_kept() {
    let (_directory, home) = home();
    let receipts = Receipts::open(&home, small_segments()).unwrap();
    for (id, jump) in [(0, 0), (1, -9_000_000_000), (2, 9_000_000_000), (3, -9_000_000_000), (4, 0)]
    {
        for _ in 0..8 {
            let mut decision = decision(id);
            decision.ts = Timestamp(NOW.0 + jump);
            receipts.decision(&decision).unwrap();
        }
    }
    drop(receipts);
    let keep = Keep { bytes: None, age_milliseconds: Some(1_000) };
    drop(Receipts::open(&home, Settings { keep, ..small_segments() }).unwrap());
    assert_sound(&home);
}

#[cfg(unix)]
#[test]
fn what_a_link_leads_to_is_not_written_to() {
    let (directory, home) = home();
    drop(Receipts::open(&home, Settings::default()).unwrap());
    let victim = directory.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    let chain = home.receipts_path().join(chains(&home)[0].as_str());
    for name in ["000002.jsonl", "000001.checkpoint.new"] {
        std::os::unix::fs::symlink(&victim, chain.join(name)).unwrap();
    }
    std::os::unix::fs::symlink(&victim, home.receipts_path().join("reserve")).unwrap();
    let settings = Settings { on_full: OnFull::DropOldest, ..small_segments() };
    let receipts = Receipts::open(&home, settings).unwrap();
    for id in 0..20 {
        receipts.decision(&decision(id)).unwrap();
    }
    drop(receipts);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
}

#[test]
fn a_changed_public_key_is_refused_and_a_missing_one_made_again() {
    let (_directory, first) = home();
    let (_other_directory, second) = home();
    for home in [&first, &second] {
        drop(Receipts::open(home, Settings::default()).unwrap());
    }
    let path = first.receipts_public_key_path();
    let own = fs::read(&path).unwrap();
    fs::copy(second.receipts_public_key_path(), &path).unwrap();
    assert!(matches!(Receipts::open(&first, Settings::default()), Err(ReceiptsError::Key { .. })));
    fs::remove_file(&path).unwrap();
    drop(Receipts::open(&first, Settings::default()).unwrap());
    assert_eq!(fs::read(&path).unwrap(), own);
}

/// A changed timestamp in the next segment does not make a segment old.
#[test]
fn retention_is_not_hastened_by_a_changed_line() {
    let (_directory, home) = home();
    let receipts = Receipts::open(&home, small_segments()).unwrap();
    let now = Timestamp(4_000_000_000_000);
    for id in 0..40 {
        let mut decision = decision(id);
        decision.ts = now;
        receipts.decision(&decision).unwrap();
    }
    drop(receipts);
    let chain = home.receipts_path().join(chains(&home)[0].as_str());
    let second = chain.join("000002.jsonl");
    let text = fs::read_to_string(&second).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    // The first line of the next segment, rewritten with a correct hash and a time long ago.
    let line = ledger::line::scan(first.as_bytes()).unwrap();
    let value: serde_json::Value = serde_json::from_str(first).unwrap();
    let event = Event {
        ts: Timestamp(0),
        name: "chain.segment",
        by: None,
        server_id: None,
        data: Some(&value["data"]),
    };
    let mut forged = Vec::new();
    let place = ledger::line::Place { seq: line.seq, prev: line.prev };
    ledger::line::encode(&Record::Event(&event), place, &mut forged).unwrap();
    fs::write(&second, [forged.as_slice(), rest.as_bytes()].concat()).unwrap();
    let keep = Keep { bytes: None, age_milliseconds: Some(1_000) };
    drop(Receipts::open(&home, Settings { keep, ..small_segments() }).unwrap());
    assert!(chain.join("000001.jsonl").exists());
}

#[test]
fn a_torn_index_is_closed_for_good() {
    let (_directory, home) = home();
    drop(Receipts::open(&home, Settings::default()).unwrap());
    let path = home.receipts_path().join("index").join("000001.jsonl");
    let torn = [fs::read(&path).unwrap(), b"{\"by\":nul".to_vec()].concat();
    fs::write(&path, torn).unwrap();
    // Opening records the head of the index; the act after it must not cut off anything recorded.
    drop(Receipts::open(&home, Settings::default()).unwrap());
    let act = Event { ts: NOW, name: "server.test", by: None, server_id: None, data: None };
    Journal::new(&home).append(&act).unwrap();
    drop(Receipts::open(&home, Settings::default()).unwrap());
    assert_sound(&home);
}

#[test]
fn lines_that_are_settled_together_are_there_when_they_are_settled_and_each_once() {
    for on_full in [OnFull::Refuse, OnFull::DropOldest] {
        let (_directory, home) = home();
        let settings = Settings { on_full, ..Settings::default() };
        let receipts = Receipts::open(&home, settings).unwrap();
        let before = assert_sound(&home).lines();
        let mut tickets: Option<Ticket> = None;
        for id in 1..=200 {
            let ticket = receipts.decision_later(&decision(id)).unwrap();
            tickets = Some(match tickets {
                Some(tickets) => tickets.and(ticket),
                None => ticket,
            });
            receipts.outcome_later(&outcome(id)).unwrap();
        }
        let _settled: Settled = receipts.settle(tickets.unwrap()).unwrap();
        assert_eq!(assert_sound(&home).lines(), before + 400, "{on_full:?}");
        receipts.flush().unwrap();
        receipts.outcome(&outcome(201)).unwrap();
        drop(receipts);
        assert_eq!(assert_sound(&home).lines(), before + 401, "{on_full:?}");
    }
}

#[test]
fn outcomes_that_come_while_others_are_written_are_all_there() {
    let (_directory, home) = home();
    let receipts = Receipts::open(&home, small_segments()).unwrap();
    let (dispatch, dispatched) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let receipts = &receipts;
        scope.spawn(move || {
            for id in dispatched {
                receipts.outcome_later(&outcome(id)).unwrap();
            }
        });
        for id in 1..=200 {
            let ticket = receipts.decision_later(&decision(id)).unwrap();
            let _settled = receipts.settle(ticket).unwrap();
            dispatch.send(id).unwrap();
        }
        drop(dispatch);
    });
    receipts.flush().unwrap();
    let report = assert_sound(&home);
    assert_eq!((report.chains[1].decisions, report.without_outcome()), (200, 0));
}

/// Each of them used to cause a listing of the whole folder, so that eight thousand took more than
/// five minutes.
#[test]
fn thousands_of_unknown_chains_are_verified_and_passed_over_in_one_go() {
    let (_directory, home) = home();
    let receipts = Receipts::open(&home, Settings::default()).unwrap();
    for number in 0..3_000_u64 {
        let folder = home.receipts_path().join(format!("{number:016x}"));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("000001.jsonl"), "x\n").unwrap();
    }
    let begun = std::time::Instant::now();
    let report = verified(&home);
    assert_eq!(report.chains.len(), 3_002);
    assert!(report.problems.len() >= 1_000);
    // None of them can be continued, and the process's own chain is in use.
    let second = Receipts::open(&home, Settings::default()).unwrap();
    assert_ne!(second.chain(), receipts.chain());
    let took = begun.elapsed();
    assert!(took < std::time::Duration::from_secs(60), "{took:?}");
}
