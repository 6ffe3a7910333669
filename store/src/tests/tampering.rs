//! Rows that another program changed: each change is detected, and the entry or the server is held.

use crate::Wanted;
use crate::tests::bench::*;
use gate::pins::Basis;
use gate::server::ServerStatus;
use std::fs;

/// Two servers with the same tools, with an older pin of one entry and a withdrawn pin of another.
fn bench(kind: Kind) -> Bench {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    for server in ["reports", "mail"] {
        pin_tools(&mut *store, server, &[("make", "one"), ("send", "one"), ("drop", "one")]);
        pin_tools(&mut *store, server, &[("make", "two"), ("drop", "two")]);
        let server = id(server);
        let mut rollback = act(&server, "server.rollback");
        rollback.withdraw = vec![tool_id("drop")];
        store.record(rollback).unwrap();
    }
    assert!(is_sound(&*store, "reports") && is_sound(&*store, "mail"));
    bench
}

/// The newest pin of `make` of server `reports`.
const NEWEST: &str = "seq = (SELECT max(seq) FROM pins WHERE server = 'reports' AND key = 'make')";

/// Editing a row holds its entry and no other.
#[track_caller]
fn check_entry_is_held(kind: Kind, edit: &str) {
    let bench = bench(kind);
    bench.edit(edit);
    let store = bench.store();
    let book = store.pins(&id("reports")).unwrap();
    assert_eq!(book.tampered.keys().collect::<Vec<_>>(), [&tool_id("make")], "{edit}");
    assert!(book.tampered.get(&tool_id("make")).unwrap().contains("`tool:make`"));
    assert_eq!(book.lost, None, "{edit}");
    let unread = store.baseline(&id("reports"), Wanted::Of(|_| false)).unwrap();
    assert_eq!(unread.pins.tampered, book.tampered, "noticed though not wanted: {edit}");
    assert_eq!(pinned(&*store, "reports", "make"), ["one"], "{edit}");
    assert!(is_sound(&*store, "mail"), "{edit}");
}

/// Adding, removing or reordering rows holds the whole server.
#[track_caller]
fn check_server_is_lost(kind: Kind, edit: &str) {
    let bench = bench(kind);
    bench.edit(edit);
    let store = bench.store();
    let lost = store.pins(&id("reports")).unwrap().lost.expect(edit);
    assert!(lost.contains("`reports`"), "{lost}");
    let unread = store.baseline(&id("reports"), Wanted::Of(|_| false)).unwrap();
    assert_eq!(unread.pins.lost.as_ref(), Some(&lost), "noticed though not wanted: {edit}");
    let record = store.servers().unwrap().into_iter().find(|server| server.id == id("reports"));
    assert_eq!(record.unwrap().lost, Some(lost));
}

fn an_edited_entry_text_is_noticed(kind: Kind) {
    check_entry_is_held(
        kind,
        &format!("UPDATE pins SET raw = replace(raw, 'two', 'evil') WHERE {NEWEST}"),
    );
}

fn an_edited_hash_is_noticed(kind: Kind) {
    check_entry_is_held(
        kind,
        &format!("UPDATE pins SET entry_hash = '{}' WHERE {NEWEST}", "0".repeat(64)),
    );
    check_entry_is_held(kind, &format!("UPDATE pins SET definition_hash = NULL WHERE {NEWEST}"));
}

fn an_edited_basis_is_noticed(kind: Kind) {
    check_entry_is_held(kind, &format!("UPDATE pins SET basis = 'auto' WHERE {NEWEST}"));
}

fn an_edited_name_of_who_pinned_is_noticed(kind: Kind) {
    check_entry_is_held(kind, &format!("UPDATE pins SET by = 'eve' WHERE {NEWEST}"));
}

fn an_edited_moment_is_noticed(kind: Kind) {
    check_entry_is_held(kind, &format!("UPDATE pins SET at = at + 1 WHERE {NEWEST}"));
}

fn an_entry_text_that_is_not_text_or_too_large_is_noticed(kind: Kind) {
    for raw in [kind.nonsense(), &format!("'{}'", "1".repeat(2_000_000))] {
        check_entry_is_held(kind, &format!("UPDATE pins SET raw = {raw} WHERE {NEWEST}"));
    }
}

fn texts_swapped_between_two_rows_are_noticed(kind: Kind) {
    let bench = bench(kind);
    bench.edit(
        "CREATE TEMP TABLE swap AS SELECT key, raw FROM pins WHERE server = 'reports' AND key IN ('make', 'send');
         UPDATE pins SET raw = (SELECT raw FROM swap WHERE swap.key = 'send' LIMIT 1)
             WHERE server = 'reports' AND key = 'make';
         UPDATE pins SET raw = (SELECT raw FROM swap WHERE swap.key = 'make' LIMIT 1)
             WHERE server = 'reports' AND key = 'send';",
    );
    let book = bench.store().pins(&id("reports")).unwrap();
    assert_eq!(book.tampered.keys().collect::<Vec<_>>(), [&tool_id("make"), &tool_id("send")]);
    assert!(book.get(&tool_id("make")).is_none() && book.get(&tool_id("send")).is_none());
}

fn rows_that_changed_places_are_noticed(kind: Kind) {
    // The older pin of `make` becomes the newer one.
    check_server_is_lost(
        kind,
        "UPDATE pins SET seq = -1 WHERE seq = 1;
         UPDATE pins SET seq = 1 WHERE seq = 4;
         UPDATE pins SET seq = 4 WHERE seq = -1;",
    );
}

fn a_removed_row_is_noticed(kind: Kind) {
    check_server_is_lost(kind, &format!("DELETE FROM pins WHERE {NEWEST}"));
    check_server_is_lost(kind, "DELETE FROM pins WHERE server = 'reports'");
    check_server_is_lost(
        kind,
        "DELETE FROM pins WHERE server = 'reports' AND withdrawn_at IS NOT NULL",
    );
}

fn an_inserted_row_is_noticed(kind: Kind) {
    check_server_is_lost(kind, &format!(
        "INSERT INTO pins (seq, server, authentication, basis, at, entry_hash, by, entry_type, key, raw)
         SELECT 99, server, authentication, basis, at, entry_hash, by, entry_type, 'new', raw FROM pins WHERE {NEWEST}"
    ));
    check_server_is_lost(
        kind,
        &format!(
            "INSERT INTO pins (seq, server, authentication, basis, at, entry_hash, by, entry_type, key, raw)
             VALUES (99, 'reports', {}, 'person', 1, '', 'ada', 'tool', 'new', '{{\"name\":\"new\"}}')",
            kind.blob(&[0; 32])
        ),
    );
}

fn a_row_copied_or_moved_from_another_server_is_noticed(kind: Kind) {
    check_server_is_lost(
        kind,
        "INSERT INTO pins (seq, server, authentication, basis, at, entry_hash, definition_hash, by, entry_type, key, raw)
         SELECT 99, 'reports', authentication, basis, at, entry_hash, definition_hash, by, entry_type, key, raw
         FROM pins WHERE server = 'mail' AND key = 'send'",
    );
    check_server_is_lost(
        kind,
        "UPDATE pins SET server = 'reports' WHERE server = 'mail' AND key = 'send'",
    );
    check_server_is_lost(
        kind,
        "UPDATE pins SET server = 'mail' WHERE server = 'reports' AND key = 'send'",
    );
}

fn a_row_under_another_entrys_name_is_noticed(kind: Kind) {
    check_server_is_lost(kind, &format!("UPDATE pins SET key = 'other' WHERE {NEWEST}"));
    check_server_is_lost(kind, &format!("UPDATE pins SET entry_type = 'prompt' WHERE {NEWEST}"));
}

fn a_flipped_withdrawal_is_noticed(kind: Kind) {
    check_server_is_lost(
        kind,
        "UPDATE pins SET withdrawn_at = NULL, withdrawn_by = NULL WHERE server = 'reports' AND withdrawn_at > 0",
    );
    check_server_is_lost(
        kind,
        &format!("UPDATE pins SET withdrawn_at = 1, withdrawn_by = 'eve' WHERE {NEWEST}"),
    );
    check_server_is_lost(
        kind,
        "UPDATE pins SET withdrawn_at = NULL WHERE server = 'reports' AND withdrawn_at > 0",
    );
}

fn an_authentic_row_from_before_its_withdrawal_is_noticed(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    pin_tools(&mut *store, "reports", &[("make", "one")]);
    pin_tools(&mut *store, "reports", &[("make", "evil")]);
    bench.edit("CREATE TABLE kept AS SELECT * FROM pins");
    let server = id("reports");
    let mut rollback = act(&server, "server.rollback");
    rollback.withdraw = vec![tool_id("make")];
    store.record(rollback).unwrap();
    assert_eq!(pinned(&*store, "reports", "make"), ["one"]);
    bench.edit("DELETE FROM pins; INSERT INTO pins SELECT * FROM kept; DROP TABLE kept;");
    let book = store.pins(&server).unwrap();
    assert!(book.tampered.is_empty(), "each row by itself is authentic");
    assert!(book.lost.is_some(), "but not the list of them");
}

fn an_edited_server_row_is_noticed(kind: Kind) {
    for edit in [
        "status = 'quarantined'",
        "status = 'unbaselined'",
        "status = 'nonsense'",
        "launch = '{\"command\":[\"evil\"]}'",
        "first_seen = 1",
        "seal_count = seal_count - 1",
        "seal = NULL",
        &format!("seal = {}", kind.blob(&[0; 32])),
        "seal = (SELECT seal FROM servers WHERE id = 'mail')",
        &format!("status = {}", kind.nonsense()),
    ] {
        check_server_is_lost(kind, &format!("UPDATE servers SET {edit} WHERE id = 'reports'"));
    }
}

fn a_status_that_cannot_be_read_serves_nothing(kind: Kind) {
    let bench = bench(kind);
    bench.edit("UPDATE servers SET status = 'nonsense' WHERE id = 'reports'");
    let record = bench.store().server(&id("reports")).unwrap().unwrap();
    assert_eq!(record.status, ServerStatus::Quarantined);
}

fn when_it_was_last_seen_and_revised_proves_nothing_and_holds_nothing(kind: Kind) {
    let bench = bench(kind);
    bench.edit("UPDATE servers SET last_seen = 1, revision = 99 WHERE id = 'reports'");
    assert!(is_sound(&*bench.store(), "reports"));
}

fn a_removed_server_is_not_taken_for_a_new_one(kind: Kind) {
    for edit in [
        "DELETE FROM servers WHERE id = 'reports'",
        "DELETE FROM pins WHERE server = 'reports'; DELETE FROM servers WHERE id = 'reports'",
    ] {
        let bench = bench(kind);
        bench.edit(edit);
        let store = bench.store();
        assert!(store.pins(&id("reports")).unwrap().lost.is_some(), "{edit}");
        assert_eq!(store.pins(&id("never-seen")).unwrap().lost, None);
        assert!(is_sound(&*store, "mail"));
    }
}

/// Not for a shared database, where it is the node that has the wrong key: see `postgres::tests`.
#[test]
fn without_the_key_everything_is_lost_and_no_new_one_is_made() {
    let kind = Kind::Sqlite;
    let bench = bench(kind);
    let key = bench.key_path();
    let bytes = fs::read(&key).unwrap();
    fs::remove_file(&key).unwrap();
    let mut store = bench.store();
    for server in ["reports", "mail", "never-seen"] {
        let lost = store.pins(&id(server)).unwrap().lost.unwrap();
        assert!(lost.contains("is gone"), "{lost}");
    }
    assert!(store.servers().unwrap().iter().all(|server| server.lost.is_some()));
    // Only a person's approval creates a new key.
    let server = id("never-seen");
    let mut first = act(&server, "server.pin");
    first.pins = vec![pin("make", "one", Basis::FirstUse)];
    assert!(store.record(first.clone()).is_err());
    first.reseal = true;
    assert!(store.record(first).is_err(), "first use is no approval");
    let mut observe = act(&server, "server.observe");
    let observation = observed(&[tool("make", "one")]);
    observe.observation = Some(&observation);
    store.record(observe).unwrap();
    assert!(!key.exists());
    // With the key restored, its pins authenticate again; what was first seen without it stays
    // lost.
    fs::write(&key, bytes).unwrap();
    crate::home::private_file(&key).unwrap();
    assert!(is_sound(&*store, "reports") && is_sound(&*store, "mail"));
    assert!(!is_sound(&*store, "never-seen"));
}

/// Not for a shared database, where it is the node that has the wrong key: see `postgres::tests`.
#[test]
fn with_another_key_everything_is_lost() {
    let kind = Kind::Sqlite;
    for (bytes, word) in [
        (vec![7; 32], "changed by a program other than"),
        (vec![7; 31], "not a key"),
        (vec![7; 33], "not a key"),
    ] {
        let bench = bench(kind);
        fs::write(bench.key_path(), bytes).unwrap();
        let store = bench.store();
        for server in ["reports", "mail"] {
            let lost = store.pins(&id(server)).unwrap().lost.unwrap();
            assert!(lost.contains(word), "{lost}");
            assert!(pinned(&*store, server, "make").is_empty());
        }
    }
}

#[cfg(unix)]
fn a_key_that_others_can_read_proves_nothing(kind: Kind) {
    use std::os::unix::fs::PermissionsExt;
    let bench = bench(kind);
    let key = bench.key_path();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
    let store = bench.store();
    let lost = store.pins(&id("reports")).unwrap().lost.unwrap();
    assert!(lost.contains("chmod 600"), "{lost}");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(is_sound(&*store, "reports"));
}

/// Columns that no decision depends on.
const FREE: [(&str, &str); 2] = [("servers", "last_seen"), ("servers", "revision")];

fn no_single_column_can_be_edited_unnoticed(kind: Kind) {
    let zeros = kind.blob(&[0; 32]);
    let (number, text) = ("coalesce(#, 0) + 1000", "coalesce(#, '') || 'x'");
    let columns = [
        ("pins", "seq", number),
        ("pins", "server", text),
        ("pins", "authentication", &zeros),
        ("pins", "basis", text),
        ("pins", "at", number),
        ("pins", "entry_hash", text),
        ("pins", "definition_hash", text),
        ("pins", "withdrawn_at", number),
        ("pins", "by", text),
        ("pins", "withdrawn_by", text),
        ("pins", "entry_type", text),
        ("pins", "key", text),
        ("pins", "raw", text),
        ("servers", "id", text),
        ("servers", "status", text),
        ("servers", "launch", text),
        ("servers", "first_seen", number),
        ("servers", "seal_count", number),
        ("servers", "seal", &zeros),
    ];
    let bench = bench(kind);
    let mut there = 0;
    for table in ["pins", "servers"] {
        for column in bench.columns_of(table) {
            let is_free = FREE.contains(&(table, column.as_str()));
            let is_covered = columns.iter().any(|(t, c, _)| (*t, *c) == (table, column.as_str()));
            assert_ne!(is_free, is_covered, "{table}.{column} is either free or authenticated");
            there += 1;
        }
    }
    assert_eq!(there, columns.len() + FREE.len());
    drop(bench);
    for (table, column, edit) in columns {
        let bench = self::bench(kind);
        let server =
            if table == "pins" { "server = 'reports' AND key = 'send'" } else { "id = 'reports'" };
        let edit = edit.replace('#', column);
        bench.edit(&format!("UPDATE {table} SET {column} = {edit} WHERE {server}"));
        assert!(!is_sound(&*bench.store(), "reports"), "{table}.{column}");
    }
}

on_both![
    an_edited_entry_text_is_noticed,
    an_edited_hash_is_noticed,
    an_edited_basis_is_noticed,
    an_edited_name_of_who_pinned_is_noticed,
    an_edited_moment_is_noticed,
    an_entry_text_that_is_not_text_or_too_large_is_noticed,
    texts_swapped_between_two_rows_are_noticed,
    rows_that_changed_places_are_noticed,
    a_removed_row_is_noticed,
    an_inserted_row_is_noticed,
    a_row_copied_or_moved_from_another_server_is_noticed,
    a_row_under_another_entrys_name_is_noticed,
    a_flipped_withdrawal_is_noticed,
    an_authentic_row_from_before_its_withdrawal_is_noticed,
    an_edited_server_row_is_noticed,
    a_status_that_cannot_be_read_serves_nothing,
    when_it_was_last_seen_and_revised_proves_nothing_and_holds_nothing,
    a_removed_server_is_not_taken_for_a_new_one,
    a_key_that_others_can_read_proves_nothing,
    no_single_column_can_be_edited_unnoticed,
];
