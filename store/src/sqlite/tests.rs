//! Opening: what is created, and what is refused and left unchanged.

use super::SqliteStore;
use crate::ApiKeyStore;
use crate::sqlite::migrate::MIGRATIONS;
use crate::tests::bench::{Bench, Kind, NOON, act, id, pin_tools, pinned};
use crate::{By, IncidentSeal, IncidentState, IncidentStore, RevokedKind, Store, StoreError};
use rusqlite::Connection;
use std::fs;

fn open_error(bench: &Bench) -> StoreError {
    SqliteStore::open(&bench.home).unwrap_err()
}

#[test]
fn a_new_home_gets_a_store_that_opens_again() {
    let bench = Bench::new(Kind::Sqlite);
    pin_tools(&mut bench.sqlite(), "reports", &[("make", "one")]);
    assert_eq!(pinned(&bench.sqlite(), "reports", "make"), ["one"]);
}

#[cfg(unix)]
#[test]
fn every_file_of_the_store_is_its_users_only() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new(Kind::Sqlite);
    let mut store = bench.sqlite();
    pin_tools(&mut store, "reports", &[("make", "one")]);
    let mut names = Vec::new();
    for directory in [bench.home.path().to_owned(), bench.home.keys_path()] {
        assert_eq!(fs::metadata(&directory).unwrap().permissions().mode() & 0o777, 0o700);
        for file in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            if file.metadata().unwrap().is_file() {
                let mode = file.metadata().unwrap().permissions().mode() & 0o777;
                assert_eq!(mode, 0o600, "{:?}", file.path());
                names.push(file.file_name().into_string().unwrap());
            }
        }
    }
    names.sort();
    assert_eq!(names, ["pins.key", "state.db", "state.db-shm", "state.db-wal"]);
}

#[cfg(unix)]
#[test]
fn a_database_that_others_can_write_is_refused_and_one_they_can_read_made_private() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new(Kind::Sqlite);
    drop(bench.sqlite());
    let path = bench.home.state_path();
    let set = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    set(0o620);
    let error = open_error(&bench).to_string();
    assert!(error.contains("others can write to") && error.contains("chmod 600 "), "{error}");
    set(0o644);
    drop(bench.sqlite());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_home_of_a_newer_version_is_refused_and_not_touched() {
    let bench = Bench::new(Kind::Sqlite);
    pin_tools(&mut bench.sqlite(), "reports", &[("make", "one")]);
    let newer = MIGRATIONS.len() + 1;
    bench.edit(&format!("PRAGMA user_version = {newer}; PRAGMA wal_checkpoint(TRUNCATE);"));
    let before = fs::read(bench.home.state_path()).unwrap();
    let error = open_error(&bench);
    assert!(matches!(error, StoreError::Newer { .. }), "{error}");
    let text = error.to_string();
    assert!(
        text.contains("newer holdpoint") && text.contains(&format!("format {newer}")),
        "{text}"
    );
    assert_eq!(fs::read(bench.home.state_path()).unwrap(), before);
    bench.edit(&format!("PRAGMA user_version = {}", MIGRATIONS.len()));
    assert_eq!(pinned(&bench.sqlite(), "reports", "make"), ["one"]);
}

#[test]
fn a_newer_version_that_is_only_in_the_log_is_noticed_too() {
    let bench = Bench::new(Kind::Sqlite);
    let store = bench.sqlite();
    // An open connection keeps SQLite from checkpointing the log when the other one closes.
    bench.edit(&format!("PRAGMA user_version = {}", MIGRATIONS.len() + 1));
    assert!(matches!(open_error(&bench), StoreError::Newer { .. }));
    drop(store);
}

#[test]
fn a_database_of_another_program_is_refused_and_not_touched() {
    for sql in ["CREATE TABLE theirs (a)", "PRAGMA application_id = 7", "PRAGMA user_version = 1"] {
        let bench = Bench::new(Kind::Sqlite);
        bench.edit(sql);
        let before = fs::read(bench.home.state_path()).unwrap();
        let error = open_error(&bench);
        assert!(matches!(error, StoreError::Foreign { .. }), "{sql}: {error}");
        assert_eq!(fs::read(bench.home.state_path()).unwrap(), before);
    }
}

#[test]
fn a_file_that_is_no_database_is_refused_and_not_touched() {
    let bench = Bench::new(Kind::Sqlite);
    let garbage = b"this was never a database, and it is long enough to be read as one".repeat(200);
    fs::write(bench.home.state_path(), &garbage).unwrap();
    let error = open_error(&bench);
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    assert!(error.to_string().contains("damaged and was left as it is"), "{error}");
    assert_eq!(fs::read(bench.home.state_path()).unwrap(), garbage);
}

#[test]
fn a_damaged_page_ends_in_an_error_and_the_file_stays() {
    let bench = Bench::new(Kind::Sqlite);
    let tools: Vec<(String, String)> =
        (0..200).map(|index| (format!("tool{index}"), "text ".repeat(100))).collect();
    let tools: Vec<(&str, &str)> =
        tools.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    pin_tools(&mut bench.sqlite(), "reports", &tools);
    bench.edit("PRAGMA wal_checkpoint(TRUNCATE)");
    let mut bytes = fs::read(bench.home.state_path()).unwrap();
    let page = 4096;
    assert!(bytes.len() > 20 * page);
    for byte in bytes.iter_mut().skip(page) {
        *byte = 0xa5;
    }
    fs::write(bench.home.state_path(), &bytes).unwrap();
    let failed =
        SqliteStore::open(&bench.home).and_then(|store| store.pins(&id("reports"))).unwrap_err();
    assert!(matches!(failed, StoreError::Damaged { .. }), "{failed}");
    assert_eq!(fs::read(bench.home.state_path()).unwrap(), bytes);
}

#[test]
fn a_truncated_database_gives_the_true_pins_or_none() {
    let bench = Bench::new(Kind::Sqlite);
    pin_tools(&mut bench.sqlite(), "reports", &[("make", "one")]);
    bench.edit("PRAGMA wal_checkpoint(TRUNCATE)");
    let true_pins = bench.sqlite().pins(&id("reports")).unwrap();
    let whole = fs::read(bench.home.state_path()).unwrap();
    let sizes = (1..600).chain((600..whole.len()).step_by(997));
    for size in sizes {
        fs::write(bench.home.state_path(), &whole[..size]).unwrap();
        let read = SqliteStore::open(&bench.home).and_then(|store| store.pins(&id("reports")));
        // If only history was cut off, all pins are still there and authenticate.
        let is_right = read.as_ref().map_or(true, |book| book.lost.is_some() || *book == true_pins);
        assert!(is_right, "{size} of {} bytes: {read:?}", whole.len());
    }
}

#[test]
fn the_journal_durability_and_keys_are_as_decided() {
    let store = Bench::new(Kind::Sqlite);
    let store = store.sqlite();
    let text = |pragma: &str| -> String {
        store.connection.pragma_query_value(None, pragma, |row| row.get(0)).unwrap()
    };
    let number = |pragma: &str| -> i64 {
        store.connection.pragma_query_value(None, pragma, |row| row.get(0)).unwrap()
    };
    assert_eq!(text("journal_mode"), "wal");
    assert_eq!(number("synchronous"), 2, "full");
    assert_eq!(number("foreign_keys"), 1);
    assert_eq!(number("trusted_schema"), 0);
    assert_eq!(number("busy_timeout"), 10_000);
}

#[test]
fn a_writer_that_is_kept_out_gives_up_with_a_sentence() {
    let bench = Bench::new(Kind::Sqlite);
    let mut store = bench.sqlite();
    store.connection.busy_timeout(std::time::Duration::from_millis(20)).unwrap();
    let other = Connection::open(bench.home.state_path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let server = id("reports");
    let error = store.record(act(&server, "server.observe")).unwrap_err();
    assert!(matches!(error, StoreError::Busy { .. }), "{error}");
    assert!(error.to_string().contains("try again"), "{error}");
    assert!(store.servers().unwrap().is_empty(), "reading goes on meanwhile");
    other.execute_batch("ROLLBACK").unwrap();
    store.record(act(&server, "server.observe")).unwrap();
}

#[test]
fn switches_of_an_older_home_are_sealed_as_they_are() {
    let bench = Bench::new(Kind::Sqlite);
    drop(SqliteStore::open_with(&bench.home, &MIGRATIONS[..2]).unwrap());
    bench.edit(
        "INSERT INTO switches (name, at, by) VALUES ('block_egress', 5, 'ada');
         INSERT INTO events (seq, at, by, action) VALUES (7, 5, 'ada', 'incident.block_egress')",
    );
    let (state, seal) = bench.sqlite().sealed_incident().unwrap();
    assert!(state.egress_blocked.is_some());
    assert_eq!(seal, IncidentSeal { count: 8, doubt: None }, "it counts on from the events");
    bench.edit("DELETE FROM switches");
    assert!(bench.sqlite().sealed_incident().unwrap().1.doubt.is_some());
}

#[test]
fn keys_that_were_sealed_before_they_had_powers_stay_sealed() {
    let bench = Bench::new(Kind::Sqlite);
    let key = crate::NewApiKey {
        id: "k".parse().unwrap(),
        hash: crate::ApiKeyHash([1; 32]),
        sub: "ada".to_owned(),
        actor_type: crate::ActorType::Agent,
        org: None,
        groups: Vec::new(),
        clearance: None,
        admin: false,
        expires_at: None,
    };
    bench.sqlite().add_api_key(&key, By { name: "ada", at: NOON }).unwrap();
    bench.edit(
        "ALTER TABLE api_keys DROP COLUMN admin; ALTER TABLE api_keys DROP COLUMN clearance;
         ALTER TABLE call_approvals DROP COLUMN step_up;
         DROP TABLE quarantines; DROP TABLE drills; DROP TABLE drill_sightings; DROP TABLE sign_ins;
         PRAGMA user_version = 3",
    );
    let found = bench.sqlite().sealed_api_keys().unwrap();
    assert_eq!(found.into_iter().map(|found| found.key).collect::<Vec<_>>(), [key]);
}

const RIGS: [(&str, &str, &str); 3] = [
    ("trigger", "t", "CREATE TRIGGER t AFTER INSERT ON switches BEGIN DELETE FROM switches; END"),
    (
        "trigger",
        "events_are_not_edited",
        "DROP TRIGGER events_are_not_edited;
         CREATE TRIGGER events_are_not_edited AFTER INSERT ON events BEGIN DELETE FROM switches; END",
    ),
    ("view", "v", "CREATE VIEW v AS SELECT 1"),
];

#[test]
fn a_foreign_trigger_or_view_is_refused() {
    for (expected, named, rig) in RIGS {
        let bench = Bench::new(Kind::Sqlite);
        let mut open = bench.sqlite();
        bench.edit_plainly(rig).unwrap();
        let by = By { name: "ada", at: NOON };
        for error in
            [open.block_egress(by).unwrap_err(), SqliteStore::open(&bench.home).unwrap_err()]
        {
            assert!(
                matches!(&error, StoreError::Rigged { kind, name, .. } if *kind == expected && name == named),
                "{error}"
            );
        }
        assert_eq!(open.sealed_incident().unwrap().0, IncidentState::default());
        bench.edit_plainly(&format!("DROP {expected} {named}")).unwrap();
        bench.sqlite().block_egress(by).unwrap();
        open.block_egress(by).unwrap();
    }
}

#[test]
fn a_switch_that_does_not_read_back_is_no_success() {
    let bench = Bench::new(Kind::Sqlite);
    let mut store = bench.sqlite();
    bench.edit(
        "DROP TABLE switches; CREATE TABLE switches (name TEXT PRIMARY KEY, level TEXT NOT NULL ON CONFLICT IGNORE,
         scope TEXT, reason TEXT, at INTEGER NOT NULL, by TEXT NOT NULL);
         DROP TABLE revocations; CREATE TABLE revocations (kind TEXT NOT NULL, value TEXT NOT NULL, at INTEGER NOT NULL,
         by TEXT NOT NULL, more TEXT NOT NULL ON CONFLICT IGNORE DEFAULT NULL, PRIMARY KEY (kind, value));",
    );
    let by = By { name: "ada", at: NOON };
    let not_taken = |error: StoreError| matches!(error, StoreError::NotTaken { .. });
    assert!(not_taken(store.block_egress(by).unwrap_err()));
    assert!(not_taken(store.revoke(RevokedKind::Server, "reports", by).unwrap_err()));
    assert!(store.events().unwrap().is_empty());
}

#[cfg(unix)]
#[test]
fn nothing_is_written_to_a_file_that_other_processes_cannot_find() {
    let bench = Bench::new(Kind::Sqlite);
    let mut store = bench.sqlite();
    let server = id("reports");
    store.record(act(&server, "server.observe")).unwrap();
    let path = bench.home.state_path();
    let aside = path.with_extension("aside");
    fs::rename(&path, &aside).unwrap();
    let refused = store.record(act(&server, "server.observe"));
    assert!(matches!(refused, Err(StoreError::Replaced { .. })), "gone: {refused:?}");
    fs::copy(&aside, &path).unwrap();
    let refused = store.record(act(&server, "server.observe"));
    assert!(matches!(refused, Err(StoreError::Replaced { .. })), "another: {refused:?}");
    fs::rename(&aside, &path).unwrap();
    store.record(act(&server, "server.observe")).unwrap();
}
