//! The database goes away and comes back: an immediate error, no partial write, no duplicate write.

use super::*;

fn count(bench: &Bench, action: &str) -> String {
    bench.ask(&format!("SELECT count(*) FROM history WHERE action = '{action}'")).remove(0)
}

fn observe(store: &mut PostgresStore, name: &'static str) -> Result<(), StoreError> {
    store.record(act(&id("reports"), name)).map(drop)
}

#[track_caller]
fn check_unreachable<T: std::fmt::Debug>(result: Result<T, StoreError>) {
    let error = result.unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
    assert!(error.to_string().starts_with("cannot reach `postgres://holdpoint@"), "{error}");
}

#[test]
fn a_database_that_goes_away_is_told_at_once_and_used_again_when_it_is_back() {
    let Some(url) = postgres_url() else { return };
    let mut proxied = Proxied::new(&url);
    observe(&mut proxied.store, "server.pin").unwrap();
    let before = proxied.store.version().unwrap();
    proxied.proxy.set(Mode::Away);
    let start = Instant::now();
    check_unreachable(proxied.store.servers());
    check_unreachable(proxied.store.version());
    check_unreachable(observe(&mut proxied.store, "server.quarantine"));
    check_unreachable(proxied.store.wait_for_change(before, Duration::from_secs(9)));
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    proxied.proxy.set(Mode::Pass);
    assert_eq!(proxied.store.servers().unwrap().len(), 1);
    assert_ne!(proxied.store.version().unwrap(), before, "what came back may be another copy");
    observe(&mut proxied.store, "server.release").unwrap();
    assert_eq!(count(&proxied.bench, "server.quarantine"), "0");
    assert_eq!(count(&proxied.bench, "server.release"), "1");
}

#[test]
fn an_idle_connection_that_was_cut_is_reopened_silently() {
    let Some(url) = postgres_url() else { return };
    let mut proxied = Proxied::new(&url);
    for name in ["server.pin", "server.quarantine", "server.release"] {
        observe(&mut proxied.store, name).unwrap();
        assert_eq!(proxied.store.servers().unwrap().len(), 1);
        proxied.proxy.set(Mode::Away);
        proxied.proxy.set(Mode::Pass);
    }
    assert_eq!(proxied.store.history(&id("reports")).unwrap().len(), 3);
}

#[test]
fn a_commit_whose_answer_was_lost_counts_once() {
    let Some(url) = postgres_url() else { return };
    let mut proxied = Proxied::new(&url);
    observe(&mut proxied.store, "server.pin").unwrap();
    for _ in 0..20 {
        proxied.proxy.set(Mode::CutAfterCommit);
        observe(&mut proxied.store, "server.quarantine").unwrap();
    }
    proxied.proxy.set(Mode::Pass);
    assert_eq!(count(&proxied.bench, "server.quarantine"), "20");
    assert!(is_sound(&proxied.store, "reports"));
}

#[test]
fn a_commit_that_never_arrived_is_told_as_not_written() {
    let Some(url) = postgres_url() else { return };
    let mut proxied = Proxied::new(&url);
    observe(&mut proxied.store, "server.pin").unwrap();
    proxied.proxy.set(Mode::CutBeforeCommit);
    check_unreachable(observe(&mut proxied.store, "server.quarantine"));
    proxied.proxy.set(Mode::Pass);
    assert_eq!(count(&proxied.bench, "server.quarantine"), "0");
    observe(&mut proxied.store, "server.quarantine").unwrap();
    assert_eq!(count(&proxied.bench, "server.quarantine"), "1");
}

#[test]
fn a_commit_of_which_nothing_can_be_found_out_is_told_so() {
    let Some(url) = postgres_url() else { return };
    let mut proxied = Proxied::new(&url);
    observe(&mut proxied.store, "server.pin").unwrap();
    proxied.store.resolve_patience = Duration::from_millis(300);
    proxied.proxy.set(Mode::LostAtCommit);
    let error = observe(&mut proxied.store, "server.quarantine").unwrap_err();
    assert!(matches!(error, StoreError::Unresolved { .. }), "{error}");
    assert!(error.to_string().contains("whether the write succeeded is unknown"), "{error}");
}

#[test]
fn a_server_that_takes_connections_and_says_nothing_is_given_up() {
    let Some(url) = postgres_url() else { return };
    let proxied = Proxied::new(&url);
    proxied.proxy.set(Mode::Away);
    proxied.proxy.set(Mode::Silent);
    let start = Instant::now();
    check_unreachable(proxied.store.servers());
    let took = start.elapsed();
    let patience = super::super::connection::CONNECT_PATIENCE;
    assert!(took >= patience && took < patience * 2, "{took:?}");
}

#[test]
fn a_server_that_ends_the_connection_itself_is_connected_to_again() {
    let Some(url) = postgres_url() else { return };
    let bench = Bench::on(&url);
    let mut store = bench.postgres().unwrap();
    for name in ["server.pin", "server.quarantine"] {
        observe(&mut store, name).unwrap();
        let backends = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                        WHERE application_name = 'holdpoint' AND query LIKE '%' AND pid <> pg_backend_pid()";
        run_sql(&url, &format!("{backends} AND pid = {}", backend_of(&store))).unwrap();
    }
    observe(&mut store, "server.release").unwrap();
    assert_eq!(store.history(&id("reports")).unwrap().len(), 3);
}

/// The process id of this store's connection on the server.
fn backend_of(store: &PostgresStore) -> i64 {
    let asked = store.read(|rows| {
        rows.first("SELECT pg_backend_pid()", &[], |row| Ok(row.cell(0).integer().unwrap()))
    });
    asked.unwrap().unwrap()
}

#[test]
fn a_writer_that_is_kept_out_gives_up_with_a_sentence() {
    let Some(url) = postgres_url() else { return };
    let bench = Bench::on(&url);
    let mut store = bench.postgres().unwrap();
    store.session().unwrap().batch("SET lock_timeout TO '50ms'").unwrap();
    let other = bench.postgres().unwrap();
    other.session().unwrap().batch("BEGIN; SELECT version FROM shared FOR UPDATE").unwrap();
    let error = observe(&mut store, "server.pin").unwrap_err();
    assert!(matches!(error, StoreError::Busy { .. }), "{error}");
    assert!(store.servers().unwrap().is_empty(), "reading goes on meanwhile");
    other.session().unwrap().batch("ROLLBACK").unwrap();
    observe(&mut store, "server.pin").unwrap();
}
