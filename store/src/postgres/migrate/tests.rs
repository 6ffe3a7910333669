//! Migrations go forward, are atomic, and run once.

use super::{MIGRATIONS, migrate};
use crate::postgres::{PostgresStore, Session};
use crate::tests::bench::{Bench, id, pin_tools, pinned, postgres_url};
use crate::{Store, StoreError};

const ADDS_A_TABLE: &str = "CREATE TABLE colours (name TEXT); INSERT INTO colours VALUES ('red');";
const ADDS_A_COLUMN: &str = "ALTER TABLE colours ADD COLUMN hue BIGINT NOT NULL DEFAULT 7;";
const FAILS_HALF_WAY: &str = "CREATE TABLE shapes (name TEXT); INSERT INTO nowhere VALUES (1);";

fn with(more: &[&'static str]) -> Vec<&'static str> {
    MIGRATIONS.iter().chain(more).copied().collect()
}

fn migrated(bench: &Bench, migrations: &[&str]) -> Result<(), StoreError> {
    let address = bench.address();
    migrate(&Session::open(&address).unwrap(), &address, migrations).map(drop)
}

fn version(bench: &Bench) -> usize {
    bench.ask("SELECT max(version) FROM holdpoint_format")[0].parse().unwrap()
}

#[test]
fn an_older_schema_goes_through_each_step_it_lacks_and_keeps_what_it_has() {
    let Some(url) = postgres_url() else { return };
    let bench = Bench::on(&url);
    pin_tools(&mut *bench.store(), "reports", &[("make", "one")]);
    assert_eq!(version(&bench), MIGRATIONS.len());
    migrated(&bench, &with(&[ADDS_A_TABLE])).unwrap();
    migrated(&bench, &with(&[ADDS_A_TABLE, ADDS_A_COLUMN])).unwrap();
    assert_eq!(version(&bench), MIGRATIONS.len() + 2);
    assert_eq!(bench.ask("SELECT hue FROM colours"), ["7"]);
    // An older version refuses the newer schema.
    let error = bench.postgres().unwrap_err();
    assert!(matches!(error, StoreError::NewerSchema { .. }), "{error}");
    let known = MIGRATIONS.len();
    let expected = format!("newer holdpoint (format {}, this one knows {known})", known + 2);
    assert!(error.to_string().contains(&expected), "{error}");
    bench.edit(&format!("DELETE FROM holdpoint_format WHERE version > {known}"));
    assert_eq!(pinned(&*bench.store(), "reports", "make"), ["one"]);
}

#[test]
fn a_migration_that_fails_leaves_the_version_before() {
    let Some(url) = postgres_url() else { return };
    let bench = Bench::on(&url);
    drop(bench.store());
    let failed = migrated(&bench, &with(&[ADDS_A_TABLE, FAILS_HALF_WAY]));
    assert!(matches!(failed, Err(StoreError::Server { .. })), "{failed:?}");
    assert_eq!(version(&bench), MIGRATIONS.len());
    let tables = "SELECT count(*) FROM information_schema.tables
                  WHERE table_schema = current_schema() AND table_name IN ('colours', 'shapes')";
    assert_eq!(bench.ask(tables), ["0"]);
}

#[test]
fn a_schema_with_foreign_tables_is_refused_and_not_touched() {
    let Some(url) = postgres_url() else { return };
    let bench = Bench::on(&url);
    let schema = bench.address().schema;
    crate::tests::bench::run_sql(
        &url,
        &format!("CREATE SCHEMA {schema}; CREATE TABLE {schema}.theirs (a INT)"),
    )
    .unwrap();
    let error = bench.postgres().unwrap_err();
    assert!(matches!(error, StoreError::ForeignSchema { .. }), "{error}");
    let tables =
        "SELECT count(*) FROM information_schema.tables WHERE table_schema = current_schema()";
    assert_eq!(bench.ask(tables), ["1"]);
    bench.edit("DROP TABLE theirs");
    assert!(bench.store().servers().unwrap().is_empty(), "an empty one is used");
}

#[test]
fn processes_that_open_a_new_schema_at_once_make_it_once() {
    let Some(url) = postgres_url() else { return };
    for _ in 0..5 {
        let bench = Bench::on(&url);
        std::thread::scope(|scope| {
            let opening: Vec<_> =
                (0..8).map(|_| scope.spawn(|| bench.postgres().map(drop))).collect();
            for thread in opening {
                thread.join().unwrap().unwrap();
            }
        });
        assert_eq!(
            bench.ask("SELECT count(*) FROM holdpoint_format"),
            [MIGRATIONS.len().to_string()]
        );
    }
}

#[test]
fn every_table_is_watched() {
    let Some(url) = postgres_url() else { return };
    let bench = Bench::on(&url);
    let mut store: PostgresStore = bench.postgres().unwrap();
    pin_tools(&mut store, "reports", &[("make", "one")]);
    let tables = bench.ask(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()
         AND table_name NOT IN ('shared', 'commits', 'counters', 'holdpoint_format', 'nodes', 'instance_owners', 'rates')",
    );
    assert_eq!(tables.len(), super::WATCHED.len());
    for table in tables {
        let before = store.version().unwrap();
        bench.edit(&format!("DELETE FROM {table}"));
        assert_ne!(store.version().unwrap(), before, "{table}");
        let before = store.version().unwrap();
        bench.edit(&format!("TRUNCATE {table} CASCADE"));
        assert_ne!(store.version().unwrap(), before, "{table}");
    }
    assert_eq!(store.server(&id("reports")).unwrap(), None);
}
