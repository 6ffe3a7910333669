//! Migrations go forward, are atomic, and run once.

use super::{MIGRATIONS, newest};
use crate::sqlite::SqliteStore;
use crate::{Act, Home, Store, StoreError};
use gate::server::ServerId;
use gate::time::Timestamp;
use rusqlite::Connection;
use std::fs;
use std::path::Path;

const ADDS_A_TABLE: &str =
    "CREATE TABLE colours (name TEXT) STRICT; INSERT INTO colours VALUES ('red');";
const ADDS_A_COLUMN: &str = "ALTER TABLE colours ADD COLUMN hue INTEGER NOT NULL DEFAULT 7;";
const FAILS_HALF_WAY: &str =
    "CREATE TABLE shapes (name TEXT) STRICT; INSERT INTO nowhere VALUES (1);";

fn version(home: &Home) -> i64 {
    let connection = Connection::open(home.state_path()).unwrap();
    connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

fn home(directory: &Path) -> Home {
    Home::open(&directory.join("home")).unwrap()
}

fn with(more: &[&'static str]) -> Vec<&'static str> {
    MIGRATIONS.iter().chain(more).copied().collect()
}

#[test]
fn a_home_of_this_version_is_not_migrated() {
    let directory = tempfile::tempdir().unwrap();
    let home = home(directory.path());
    drop(SqliteStore::open(&home).unwrap());
    let before = fs::read(home.state_path()).unwrap();
    drop(SqliteStore::open(&home).unwrap());
    assert_eq!(fs::read(home.state_path()).unwrap(), before);
    assert_eq!(version(&home), newest(MIGRATIONS));
}

#[test]
fn an_older_home_goes_through_each_step_it_lacks_and_keeps_what_it_has() {
    let directory = tempfile::tempdir().unwrap();
    let home = home(directory.path());
    let server: ServerId = "reports".parse().unwrap();
    let mut old = SqliteStore::open(&home).unwrap();
    old.record(Act::new(&server, Timestamp(1), "ada", "server.observe")).unwrap();
    drop(old);
    drop(SqliteStore::open_with(&home, &with(&[ADDS_A_TABLE])).unwrap());
    assert_eq!(version(&home), newest(MIGRATIONS) + 1);
    let new = SqliteStore::open_with(&home, &with(&[ADDS_A_TABLE, ADDS_A_COLUMN])).unwrap();
    assert_eq!(version(&home), newest(MIGRATIONS) + 2);
    let hue: i64 =
        new.connection.query_row("SELECT hue FROM colours", [], |row| row.get(0)).unwrap();
    assert_eq!(hue, 7, "the first step ran once, and before the second");
    assert_eq!(new.servers().unwrap().len(), 1);
    drop(new);
    // An older version refuses the newer file.
    let refused = SqliteStore::open(&home);
    let (found, known) = (newest(MIGRATIONS) + 2, newest(MIGRATIONS));
    assert!(
        matches!(refused, Err(StoreError::Newer { found: f, known: k, .. }) if (f, k) == (found, known))
    );
}

#[test]
fn a_migration_that_fails_leaves_the_version_before() {
    let directory = tempfile::tempdir().unwrap();
    let home = home(directory.path());
    drop(SqliteStore::open(&home).unwrap());
    let failed = SqliteStore::open_with(&home, &with(&[ADDS_A_TABLE, FAILS_HALF_WAY]));
    assert!(matches!(failed, Err(StoreError::Database { .. })));
    assert_eq!(version(&home), newest(MIGRATIONS));
    let store = SqliteStore::open(&home).unwrap();
    let tables: i64 = store
        .connection
        .query_row(
            "SELECT count(*) FROM sqlite_schema WHERE name IN ('colours', 'shapes')",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(tables, 0);
}

#[test]
fn a_home_of_the_first_form_keeps_counting_where_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let home = home(directory.path());
    crate::home::private_file(&home.state_path()).unwrap();
    let connection = Connection::open(home.state_path()).unwrap();
    connection.execute_batch(MIGRATIONS[0]).unwrap();
    connection
        .execute_batch(
            "INSERT INTO history (seq, act, at, by, server, action) VALUES (41, 41, 1, 'ada', 'old', 'server.pin');
             INSERT INTO servers VALUES ('old', 'verified', NULL, 1, 1, 1, 1, NULL);
             INSERT INTO pins (seq, server, authentication, basis, at, entry_hash, by, entry_type, key, raw)
                 VALUES (77, 'old', x'00', 'person', 1, '', 'ada', 'tool', 'gone', '{}');
             DELETE FROM pins;
             PRAGMA application_id = 0x486f6c64; PRAGMA user_version = 1;",
        )
        .unwrap();
    drop(connection);
    let mut store = SqliteStore::open(&home).unwrap();
    let number = |store: &SqliteStore, sql: &str| -> i64 {
        store.connection.query_row(sql, [], |row| row.get(0)).unwrap()
    };
    let counted = "SELECT value FROM counters WHERE name = 'pins'";
    assert_eq!(number(&store, counted), 77, "the number of a pin that is gone is not used again");
    let server: ServerId = "new".parse().unwrap();
    store.record(Act::new(&server, Timestamp(1), "ada", "server.observe")).unwrap();
    assert_eq!(number(&store, "SELECT max(seq) FROM history"), 42);
}

#[test]
fn processes_that_open_a_new_home_at_once_make_it_once() {
    for _ in 0..10 {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("home");
        std::thread::scope(|scope| {
            let opening: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| SqliteStore::open(&Home::open(&path).unwrap()).map(drop)))
                .collect();
            for thread in opening {
                thread.join().unwrap().unwrap();
            }
        });
    }
}
