//! A database that was deleted or restored from an older copy, while the ledger still has the later
//! acts.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "all of this file is a test, also the functions that are not marked as one"
)]

use contract::surface::{Surface, read_capture};
use gate::pins::Basis;
use gate::server::{ServerId, ServerStatus};
use gate::time::Timestamp;
use std::fs;
use std::path::PathBuf;
use store::receipts::{DiskFolder, Settings, public_keys};
use store::{
    Act, By, Home, Incident, IncidentLevel, IncidentScope, IncidentState, IncidentStore, NewPin,
    Observation, RevokedKind, SqliteStore, Store, Witnessed,
};
use tempfile::TempDir;

struct Bench {
    _directory: TempDir,
    home: Home,
    id: ServerId,
}

impl Bench {
    fn new() -> Bench {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::open(&directory.path().join("home")).unwrap();
        Bench { _directory: directory, home, id: "files".parse().unwrap() }
    }

    fn store(&self) -> Witnessed {
        Witnessed::new(Box::new(SqliteStore::open(&self.home).unwrap()), &self.home)
    }

    fn pin(&self, text: &str, reseal: bool) -> Result<store::Recorded, store::StoreError> {
        let surface = surface(text);
        let mut act = Act::new(&self.id, Timestamp(1), "ada", "server.approve");
        let observation = Observation::of(&surface, Timestamp(1));
        act.observation = Some(&observation);
        act.status = Some(ServerStatus::Verified);
        act.pins = surface
            .entries()
            .map(|entry| NewPin { entry: entry.clone(), basis: Basis::Person })
            .collect();
        act.reseal = reseal;
        self.store().record(act)
    }

    fn set_status(&self, name: &'static str, status: ServerStatus) {
        let mut act = Act::new(&self.id, Timestamp(2), "ada", name);
        act.status = Some(status);
        self.store().record(act).unwrap();
    }

    fn lost(&self) -> Option<String> {
        let snapshot = self.store().snapshot(&self.id).unwrap();
        let record = snapshot.server.and_then(|server| server.lost);
        assert_eq!(record, snapshot.pins.lost);
        assert_eq!(record, self.store().server(&self.id).unwrap().and_then(|server| server.lost));
        record
    }

    fn database(&self) -> PathBuf {
        self.home.path().join("state.db")
    }

    fn copy(&self) -> Vec<u8> {
        fs::read(self.database()).unwrap()
    }

    fn put_back(&self, bytes: Option<&[u8]>) {
        for name in ["state.db", "state.db-wal", "state.db-shm"] {
            let _ = fs::remove_file(self.home.path().join(name));
        }
        if let Some(bytes) = bytes {
            fs::write(self.database(), bytes).unwrap();
        }
    }

    fn assert_receipts_are_sound(&self) {
        let keys = public_keys(&self.home.receipts_public_key_path()).unwrap();
        let folder = DiskFolder::new(&self.home.receipts_path());
        let report = ledger::verify::verify(&folder, &keys, &[], &|_| {}).unwrap();
        assert_eq!(report.problems, []);
        assert_eq!(report.uncovered(), 0);
    }
}

fn surface(text: &str) -> Surface {
    let capture = format!(
        "{{\"tools\":[{{\"name\":\"make\",\"description\":\"{text}\",\"inputSchema\":{{\"type\":\"object\"}}}}]}}"
    );
    read_capture(capture.as_bytes()).unwrap()
}

#[test]
fn an_untouched_database_is_trusted() {
    let bench = Bench::new();
    bench.pin("one", false).unwrap();
    bench.pin("two", false).unwrap();
    assert_eq!(bench.lost(), None);
    bench.assert_receipts_are_sound();
}

#[test]
fn an_older_copy_is_lost_until_a_person_approves() {
    let bench = Bench::new();
    bench.pin("one", false).unwrap();
    let older = bench.copy();
    bench.pin("two", false).unwrap();
    bench.put_back(Some(&older));
    assert!(bench.lost().unwrap().contains("older copy"));
    // An act that is not an approval adds nothing to it.
    assert!(matches!(bench.pin("three", false), Err(store::StoreError::Untrusted { .. })));
    let seal = bench.pin("three", true).unwrap().seal_count;
    assert!(seal > 2, "{seal}");
    assert_eq!(bench.lost(), None);
    bench.assert_receipts_are_sound();
}

#[test]
fn a_deleted_database_is_lost_and_its_servers_are_still_listed() {
    let bench = Bench::new();
    bench.pin("one", false).unwrap();
    bench.put_back(None);
    assert!(bench.lost().unwrap().contains("deleted"));
    let listed = bench.store().servers().unwrap();
    assert_eq!((listed.len(), listed[0].status), (1, ServerStatus::Changed));
    // A server that was never seen is new, not lost.
    let other: ServerId = "other".parse().unwrap();
    assert_eq!(bench.store().snapshot(&other).unwrap().pins.lost, None);
    assert!(bench.store().server(&other).unwrap().is_none());
    bench.pin("one", true).unwrap();
    assert_eq!(bench.lost(), None);
}

#[test]
fn a_quarantine_outlives_the_database() {
    let bench = Bench::new();
    bench.pin("one", false).unwrap();
    let older = bench.copy();
    bench.set_status("server.quarantine", ServerStatus::Quarantined);
    for copy in [Some(older.as_slice()), None] {
        bench.put_back(copy);
        let status = bench.store().server(&bench.id).unwrap().unwrap().status;
        assert_eq!(status, ServerStatus::Quarantined);
    }
}

#[test]
fn an_index_that_does_not_verify_is_no_witness() {
    let bench = Bench::new();
    bench.pin("one", false).unwrap();
    let path = bench.home.receipts_path().join("index").join("000001.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"seal\":1", "\"seal\":0")).unwrap();
    assert!(bench.lost().unwrap().contains("does not verify"));
    assert!(matches!(bench.pin("two", true), Err(store::StoreError::Ledger(_))));
}

#[test]
fn every_act_of_a_person_is_in_the_ledger_by_name() {
    let bench = Bench::new();
    bench.pin("one", false).unwrap();
    bench.set_status("server.quarantine", ServerStatus::Quarantined);
    let path = bench.home.receipts_path().join("index").join("000001.jsonl");
    let text = fs::read_to_string(path).unwrap();
    for wanted in
        ["\"name\":\"server.approve\"", "\"name\":\"server.quarantine\"", "\"by\":\"ada\""]
    {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    // The server's own text is not recorded.
    assert!(!text.contains("one"), "{text}");
}

/// Seeing the same surface again is no event: a gate does so every few seconds.
#[test]
fn an_observation_that_changes_nothing_leaves_no_line() {
    let bench = Bench::new();
    bench.pin("one", false).unwrap();
    let path = bench.home.receipts_path().join("index").join("000001.jsonl");
    let before = fs::metadata(&path).unwrap().len();
    let observation = Observation::of(&surface("one"), Timestamp(5));
    let mut act = Act::new(&bench.id, Timestamp(5), "holdpoint", "server.observe");
    act.observation = Some(&observation);
    bench.store().record(act).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), before);
}

#[test]
fn acts_of_others_meanwhile_do_not_look_like_an_older_copy() {
    let bench = Bench::new();
    bench.pin("one", false).unwrap();
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            for number in 0..30 {
                bench.pin(&format!("text {number}"), false).unwrap();
            }
        });
        while !writing.is_finished() {
            assert_eq!(bench.store().snapshot(&bench.id).unwrap().pins.lost, None);
        }
    });
}

#[test]
fn receipts_that_were_removed_witness_nothing() {
    let bench = Bench::new();
    bench.pin("one", false).unwrap();
    fs::remove_dir_all(bench.home.receipts_path()).unwrap();
    assert!(bench.lost().unwrap().contains("does not verify"));
    // Also if another act has started the record of the server again.
    let other: ServerId = "other".parse().unwrap();
    let mut act = Act::new(&other, Timestamp(3), "ada", "server.quarantine");
    act.status = Some(ServerStatus::Quarantined);
    bench.store().record(act).unwrap();
    assert!(bench.lost().unwrap().contains("started over"));
    // An act that approves nothing does not end the doubt.
    bench.set_status("server.quarantine", ServerStatus::Quarantined);
    assert!(bench.lost().is_some());
    bench.pin("one", true).unwrap();
    assert_eq!(bench.lost(), None);
}

#[test]
fn an_older_copy_does_not_end_an_incident() {
    let bench = Bench::new();
    bench.pin("one", false).unwrap();
    let older = bench.copy();
    let by = By { name: "ada", at: Timestamp(7) };
    bench.store().block_egress(by).unwrap();
    assert!(bench.store().incident().is_ok());
    bench.put_back(Some(&older));
    let state = bench.store().incident().unwrap();
    let (incident, _) = state.incident.unwrap();
    assert!(incident.reason.unwrap().contains("older copy"));
    assert!(state.egress_blocked.is_some());
    // A person ends it, and switches set from then on count.
    bench.store().end_incident("over", by).unwrap();
    assert_eq!(bench.store().incident().unwrap(), IncidentState::default());
    bench.store().block_egress(by).unwrap();
    assert!(bench.store().incident().unwrap().egress_blocked.is_some());
    bench.assert_receipts_are_sound();
}

#[test]
fn what_is_revoked_is_told_by_its_hash() {
    let bench = Bench::new();
    let by = By { name: "ada", at: Timestamp(7) };
    bench.store().revoke(RevokedKind::Session, "session-secret", by).unwrap();
    let path = bench.home.receipts_path().join("index").join("000001.jsonl");
    assert!(!fs::read_to_string(path).unwrap().contains("session-secret"));
}

/// A hostile server cannot make an approval too long to record.
#[test]
fn an_act_over_the_worst_names_is_recorded() {
    let bench = Bench::new();
    let tools: Vec<String> = (0..200)
        .map(|number| {
            format!(
                "{{\"name\":\"{number}{}\",\"inputSchema\":{{\"type\":\"object\"}}}}",
                "\\u0001".repeat(400)
            )
        })
        .collect();
    let capture = format!("{{\"tools\":[{}]}}", tools.join(","));
    let surface = read_capture(capture.as_bytes()).unwrap();
    let mut act = Act::new(&bench.id, Timestamp(1), "ada", "server.approve");
    act.pins = surface
        .entries()
        .map(|entry| NewPin { entry: entry.clone(), basis: Basis::Person })
        .collect();
    assert!(act.pins.len() >= 200);
    bench.store().record(act).unwrap();
    assert_eq!(bench.lost(), None);
    bench.assert_receipts_are_sound();
}

impl Bench {
    /// Deletes the database and the receipts, but not `keys/`.
    fn lose_all_but_keys(&self) {
        self.put_back(None);
        fs::remove_dir_all(self.home.receipts_path()).unwrap();
    }

    /// What a gate does at its start, before it has contacted a server.
    fn begin_receipts(&self) {
        drop(store::receipts::Receipts::open(&self.home, Settings::default()).unwrap());
    }

    fn first_use(&self) -> Result<store::Recorded, store::StoreError> {
        let surface = surface("other");
        let mut act = Act::new(&self.id, Timestamp(9), "holdpoint", "server.first_use");
        act.status = Some(ServerStatus::Verified);
        act.pins = surface
            .entries()
            .map(|entry| NewPin { entry: entry.clone(), basis: Basis::FirstUse })
            .collect();
        self.store().record(act)
    }
}

#[test]
fn a_home_of_which_only_the_keys_are_left_is_not_trusted_on_first_use() {
    for has_gate_started in [false, true] {
        let bench = Bench::new();
        bench.pin("one", false).unwrap();
        bench.lose_all_but_keys();
        if has_gate_started {
            bench.begin_receipts();
        }
        let lost = bench.store().snapshot(&bench.id).unwrap().pins.lost;
        assert!(lost.is_some(), "{has_gate_started}");
        let refused = bench.first_use();
        assert!(matches!(refused, Err(store::StoreError::Untrusted { .. })), "{refused:?}");
        assert!(bench.store().snapshot(&bench.id).unwrap().pins.lost.is_some());
        // An observation does not end the doubt either.
        let observation = Observation::of(&surface("other"), Timestamp(9));
        let mut act = Act::new(&bench.id, Timestamp(9), "holdpoint", "server.observe");
        act.observation = Some(&observation);
        bench.store().record(act).unwrap();
        let lost = bench.lost().unwrap();
        assert!(lost.contains("review and approve it again"), "{lost}");
        bench.pin("other", true).unwrap();
        assert_eq!(bench.lost(), None);
        // Another server, which may have been known before as well.
        let other: ServerId = "other".parse().unwrap();
        assert!(bench.store().snapshot(&other).unwrap().pins.lost.is_some());
    }
}

#[test]
fn a_home_that_was_moved_away_with_its_keys_is_a_new_one() {
    let bench = Bench::new();
    bench.pin("one", false).unwrap();
    bench.lose_all_but_keys();
    fs::remove_dir_all(bench.home.keys_path()).unwrap();
    let bench = Bench { home: Home::open(bench.home.path()).unwrap(), ..bench };
    bench.first_use().unwrap();
    assert_eq!(bench.lost(), None);
}

/// The process stopped, by a full disk or a crash, after the key was created and before the first
/// index was.
#[test]
fn a_key_that_signed_nothing_yet_says_nothing_of_an_earlier_store() {
    let bench = Bench::new();
    bench.begin_receipts();
    bench.lose_all_but_keys();
    let public = fs::read_to_string(bench.home.receipts_public_key_path()).unwrap();
    let note = format!("{}\n", contract::hash::sha256_hex(public.trim_end().as_bytes()));
    fs::write(bench.home.keys_path().join("receipts.key.unused"), note).unwrap();
    assert_eq!(bench.store().snapshot(&bench.id).unwrap().pins.lost, None);
    bench.first_use().unwrap();
    assert_eq!(bench.lost(), None);
    bench.assert_receipts_are_sound();
    assert!(!bench.home.keys_path().join("receipts.key.unused").exists());
    // From the first index on, the key proves an earlier store.
    bench.lose_all_but_keys();
    assert!(bench.store().snapshot(&bench.id).unwrap().pins.lost.is_some());
}

#[test]
fn a_deleted_row_leaves_the_incident_on_until_a_person_ends_it() {
    let bench = Bench::new();
    let by = By { name: "ada", at: Timestamp(7) };
    bench.store().block_egress(by).unwrap();
    let database = rusqlite::Connection::open(bench.database()).unwrap();
    let all = "DELETE FROM switches; DELETE FROM switch_seal; DROP TRIGGER events_are_not_removed; DELETE FROM events";
    database.execute_batch(all).unwrap();
    drop(database);
    let (incident, _) = bench.store().incident().unwrap().incident.unwrap();
    assert!(incident.reason.unwrap().contains("the ledger has seen newer switches"));
    bench.store().end_incident("over", by).unwrap();
    assert_eq!(bench.store().incident().unwrap(), IncidentState::default());
}

#[test]
fn an_incident_that_only_the_keys_could_tell_of_is_on() {
    let bench = Bench::new();
    let by = By { name: "ada", at: Timestamp(7) };
    bench.store().block_egress(by).unwrap();
    bench.lose_all_but_keys();
    assert!(bench.store().incident().unwrap().incident.is_some());
    bench.begin_receipts();
    assert!(bench.store().incident().unwrap().incident.is_some());
    bench.store().end_incident("over", by).unwrap();
    assert_eq!(bench.store().incident().unwrap(), IncidentState::default());
}

fn edit(bench: &Bench, statements: &str) {
    let database = rusqlite::Connection::open(bench.database()).unwrap();
    database.execute_batch(statements).unwrap();
}

fn by() -> By<'static> {
    By { name: "ada", at: Timestamp(7) }
}

fn everywhere() -> Incident {
    Incident { level: IncidentLevel::High, scope: IncidentScope::All, reason: None }
}

/// Moving the database away and back around a person's act must not undo the act.
#[test]
fn an_act_in_a_fresh_database_outlives_the_copy_that_is_put_back() {
    let bench = Bench::new();
    bench.pin("one", false).unwrap();
    bench.pin("two", false).unwrap();
    let copy = bench.copy();
    bench.put_back(None);
    bench.set_status("server.quarantine", ServerStatus::Quarantined);
    assert!(bench.lost().is_some());
    bench.put_back(Some(&copy));
    assert!(bench.lost().unwrap().contains("older copy"));
    let record = bench.store().server(&bench.id).unwrap().unwrap();
    assert_eq!(record.status, ServerStatus::Quarantined);
    bench.pin("two", true).unwrap();
    assert_eq!(bench.lost(), None);
    bench.assert_receipts_are_sound();
}

/// The same with an edited record: the copy from before the edit is restored after the act.
#[test]
fn an_act_on_an_edited_record_outlives_the_copy_that_is_put_back() {
    let bench = Bench::new();
    bench.pin("one", false).unwrap();
    let copy = bench.copy();
    edit(&bench, "UPDATE servers SET first_seen = first_seen + 1");
    bench.set_status("server.quarantine", ServerStatus::Quarantined);
    edit(&bench, "UPDATE servers SET status = 'verified'");
    let status = || bench.store().server(&bench.id).unwrap().unwrap().status;
    assert_eq!(status(), ServerStatus::Quarantined);
    bench.put_back(Some(&copy));
    assert!(bench.lost().is_some());
    assert_eq!(status(), ServerStatus::Quarantined);
}

/// An observation does not make the copy that a person restores an older one.
#[test]
fn a_copy_is_put_back_after_a_gate_looked_at_the_server_without_it() {
    let bench = Bench::new();
    bench.pin("one", false).unwrap();
    let copy = bench.copy();
    bench.put_back(None);
    let surface = surface("one");
    let observation = Observation::of(&surface, Timestamp(3));
    let mut act = Act::new(&bench.id, Timestamp(3), "holdpoint", "server.observe");
    act.observation = Some(&observation);
    act.status = Some(ServerStatus::Changed);
    bench.store().record(act).unwrap();
    assert!(bench.lost().is_some());
    bench.put_back(Some(&copy));
    assert_eq!(bench.lost(), None);
}

#[test]
fn a_switch_in_a_fresh_database_outlives_the_copy_that_is_put_back() {
    let acts: [fn(&mut Witnessed); 2] = [
        |store| store.begin_incident(&everywhere(), by()).unwrap(),
        |store| store.revoke(RevokedKind::Server, "files", by()).unwrap(),
    ];
    for act in acts {
        let bench = Bench::new();
        for _ in 0..3 {
            bench.store().begin_incident(&everywhere(), by()).unwrap();
            bench.store().end_incident("over", by()).unwrap();
        }
        let copy = bench.copy();
        bench.put_back(None);
        act(&mut bench.store());
        bench.put_back(Some(&copy));
        let doubt = bench.store().sealed_incident().unwrap().1.doubt;
        assert!(doubt.is_some_and(|doubt| doubt.contains("older copy")));
        assert!(bench.store().incident().unwrap().incident.is_some());
        bench.store().end_incident("over", by()).unwrap();
        assert!(bench.store().incident().unwrap().incident.is_none());
        bench.assert_receipts_are_sound();
    }
}

/// An index that replaced another one does not know what that one recorded, whatever else is done.
#[test]
fn only_a_decision_ends_the_doubt_after_the_receipts_were_removed() {
    let bench = Bench::new();
    bench.pin("one", false).unwrap();
    bench.store().begin_incident(&everywhere(), by()).unwrap();
    bench.store().end_incident("over", by()).unwrap();
    fs::remove_dir_all(bench.home.receipts_path()).unwrap();
    bench.store().revoke(RevokedKind::Server, "other", by()).unwrap();
    assert!(bench.store().incident().unwrap().incident.is_some());
    let surface = surface("one, seen again");
    let observation = Observation::of(&surface, Timestamp(3));
    let mut act = Act::new(&bench.id, Timestamp(3), "holdpoint", "server.observe");
    act.observation = Some(&observation);
    bench.store().record(act).unwrap();
    assert!(bench.lost().is_some());
    bench.store().end_incident("over", by()).unwrap();
    assert!(bench.store().incident().unwrap().incident.is_none());
    bench.pin("one", true).unwrap();
    assert_eq!(bench.lost(), None);
}

/// A gate that has the database open when it is removed still learns of later decisions.
#[test]
fn a_decision_after_the_database_was_removed_reaches_who_has_it_open() {
    let bench = Bench::new();
    bench.pin("one", false).unwrap();
    bench.store().block_egress(by()).unwrap();
    bench.store().unblock_egress(by()).unwrap();
    let mut open = bench.store();
    assert_eq!(open.snapshot(&bench.id).unwrap().pins.lost, None);
    bench.put_back(None);
    bench.set_status("server.quarantine", ServerStatus::Quarantined);
    let snapshot = open.snapshot(&bench.id).unwrap();
    assert!(snapshot.pins.lost.is_some());
    assert_eq!(snapshot.server.unwrap().status, ServerStatus::Quarantined);
    bench.store().begin_incident(&everywhere(), by()).unwrap();
    assert!(open.incident().unwrap().incident.is_some());
    // No other process would find what it wrote.
    let refused = open.end_incident("over", by());
    assert!(matches!(refused, Err(store::StoreError::Replaced { .. })), "{refused:?}");
}

#[cfg(unix)]
#[test]
fn pins_do_not_count_while_their_database_is_away() {
    let bench = Bench::new();
    bench.pin("one", false).unwrap();
    let open = bench.store();
    let away = bench.database().with_extension("away");
    fs::rename(bench.database(), &away).unwrap();
    assert!(open.snapshot(&bench.id).unwrap().pins.lost.unwrap().contains("was removed"));
    assert!(open.server(&bench.id).unwrap().unwrap().lost.is_some());
    fs::rename(&away, bench.database()).unwrap();
    assert_eq!(open.snapshot(&bench.id).unwrap().pins.lost, None);
}

/// Any part of the keys that proves an earlier store is enough.
#[test]
fn a_home_is_not_trusted_again_while_either_half_of_the_key_exists() {
    let remove = |bench: &Bench, name: &str| {
        fs::remove_file(bench.home.keys_path().join(name)).unwrap();
    };
    type Tamper<'a> = &'a dyn Fn(&Bench);
    let without: [(&str, Tamper<'_>); 4] = [
        ("receipts.key", &|bench| remove(bench, "receipts.key")),
        ("receipts.pub", &|bench| remove(bench, "receipts.pub")),
        ("an empty note", &|bench| {
            fs::write(bench.home.keys_path().join("receipts.key.unused"), b"").unwrap();
        }),
        ("the key, with an empty note", &|bench| {
            remove(bench, "receipts.key");
            fs::write(bench.home.keys_path().join("receipts.key.unused"), b"").unwrap();
        }),
    ];
    for (what, lose) in without {
        for has_database in [false, true] {
            let bench = Bench::new();
            bench.pin("one", false).unwrap();
            let older = bench.copy();
            bench.set_status("server.quarantine", ServerStatus::Quarantined);
            bench.lose_all_but_keys();
            bench.put_back(has_database.then_some(&older));
            lose(&bench);
            let lost = bench.store().snapshot(&bench.id).unwrap().pins.lost;
            assert!(lost.is_some(), "{what}, {has_database}");
            bench.begin_receipts();
            let lost = bench.store().snapshot(&bench.id).unwrap().pins.lost;
            assert!(lost.is_some_and(|lost| lost.contains("started over")), "{what}");
            assert!(bench.first_use().is_err(), "{what}, {has_database}");
            assert!(bench.store().incident().unwrap().incident.is_some(), "{what}");
        }
    }
}
