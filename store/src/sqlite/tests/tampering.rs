//! Rows that something else than Holdpoint changed: each is noticed, and the entry or the server is held.

use super::*;
use std::fs;

/// Two servers with the same tools, one entry with an older pin, one with a withdrawn one.
fn bench() -> Bench {
    let bench = Bench::new();
    let mut store = bench.store();
    for server in ["reports", "mail"] {
        pin_tools(&mut store, server, &[("make", "one"), ("send", "one"), ("drop", "one")]);
        pin_tools(&mut store, server, &[("make", "two"), ("drop", "two")]);
        let server = id(server);
        let mut rollback = act(&server, "server.rollback");
        rollback.withdraw = vec![tool_id("drop")];
        store.record(rollback).unwrap();
    }
    assert!(is_sound(&store, "reports") && is_sound(&store, "mail"));
    bench
}

/// The newest pin of `make` of server `reports`.
const NEWEST: &str = "seq = (SELECT max(seq) FROM pins WHERE server = 'reports' AND key = 'make')";

/// An edit inside a row holds its entry and no other.
#[track_caller]
fn check_entry_is_held(edit: &str) {
    let bench = bench();
    bench.edit(edit);
    let store = bench.store();
    let book = store.pins(&id("reports")).unwrap();
    assert_eq!(book.tampered.keys().collect::<Vec<_>>(), [&tool_id("make")], "{edit}");
    assert!(book.tampered[&tool_id("make")].contains("`tool:make`"));
    assert_eq!(book.lost, None, "{edit}");
    assert_eq!(pinned(&store, "reports", "make"), ["one"], "{edit}");
    assert!(is_sound(&store, "mail"), "{edit}");
}

/// An edit of which rows there are holds the whole server.
#[track_caller]
fn check_server_is_lost(edit: &str) {
    let bench = bench();
    bench.edit(edit);
    let store = bench.store();
    let lost = store.pins(&id("reports")).unwrap().lost.expect(edit);
    assert!(lost.contains("`reports`"), "{lost}");
    let record = store.servers().unwrap().into_iter().find(|server| server.id == id("reports"));
    assert_eq!(record.unwrap().lost, Some(lost));
}

#[test]
fn an_edited_entry_text_is_noticed() {
    check_entry_is_held(&format!(
        "UPDATE pins SET raw = replace(raw, 'two', 'evil') WHERE {NEWEST}"
    ));
}

#[test]
fn an_edited_hash_is_noticed() {
    check_entry_is_held(&format!(
        "UPDATE pins SET entry_hash = '{}' WHERE {NEWEST}",
        "0".repeat(64)
    ));
    check_entry_is_held(&format!("UPDATE pins SET definition_hash = NULL WHERE {NEWEST}"));
}

#[test]
fn an_edited_basis_is_noticed() {
    check_entry_is_held(&format!("UPDATE pins SET basis = 'auto' WHERE {NEWEST}"));
}

#[test]
fn an_edited_name_of_who_pinned_is_noticed() {
    check_entry_is_held(&format!("UPDATE pins SET by = 'eve' WHERE {NEWEST}"));
}

#[test]
fn an_edited_moment_is_noticed() {
    check_entry_is_held(&format!("UPDATE pins SET at = at + 1 WHERE {NEWEST}"));
}

#[test]
fn an_entry_text_that_is_not_text_or_too_large_is_noticed() {
    check_entry_is_held(&format!("UPDATE pins SET raw = CAST(x'ff' AS TEXT) WHERE {NEWEST}"));
    check_entry_is_held(&format!("UPDATE pins SET raw = printf('%2000000d', 1) WHERE {NEWEST}"));
}

#[test]
fn texts_swapped_between_two_rows_are_noticed() {
    let bench = bench();
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

#[test]
fn rows_that_changed_places_are_noticed() {
    // The older pin of `make` becomes the newer one.
    check_server_is_lost(
        "UPDATE pins SET seq = -1 WHERE seq = 1;
         UPDATE pins SET seq = 1 WHERE seq = 4;
         UPDATE pins SET seq = 4 WHERE seq = -1;",
    );
}

#[test]
fn a_removed_row_is_noticed() {
    check_server_is_lost(&format!("DELETE FROM pins WHERE {NEWEST}"));
    check_server_is_lost("DELETE FROM pins WHERE server = 'reports'");
    check_server_is_lost("DELETE FROM pins WHERE server = 'reports' AND withdrawn_at IS NOT NULL");
}

#[test]
fn an_inserted_row_is_noticed() {
    check_server_is_lost(&format!(
        "INSERT INTO pins (server, authentication, basis, at, entry_hash, by, entry_type, key, raw)
         SELECT server, authentication, basis, at, entry_hash, by, entry_type, 'new', raw FROM pins WHERE {NEWEST}"
    ));
    check_server_is_lost(
        "INSERT INTO pins (server, authentication, basis, at, entry_hash, by, entry_type, key, raw)
         VALUES ('reports', zeroblob(32), 'person', 1, '', 'ada', 'tool', 'new', '{\"name\":\"new\"}')",
    );
}

#[test]
fn a_row_copied_or_moved_from_another_server_is_noticed() {
    check_server_is_lost(
        "INSERT INTO pins (server, authentication, basis, at, entry_hash, definition_hash, by, entry_type, key, raw)
         SELECT 'reports', authentication, basis, at, entry_hash, definition_hash, by, entry_type, key, raw
         FROM pins WHERE server = 'mail' AND key = 'send'",
    );
    check_server_is_lost(
        "UPDATE pins SET server = 'reports' WHERE server = 'mail' AND key = 'send'",
    );
    check_server_is_lost(
        "UPDATE pins SET server = 'mail' WHERE server = 'reports' AND key = 'send'",
    );
}

#[test]
fn a_row_under_another_entrys_name_is_noticed() {
    check_server_is_lost(&format!("UPDATE pins SET key = 'other' WHERE {NEWEST}"));
    check_server_is_lost(&format!("UPDATE pins SET entry_type = 'prompt' WHERE {NEWEST}"));
}

#[test]
fn a_flipped_withdrawal_is_noticed() {
    check_server_is_lost(
        "UPDATE pins SET withdrawn_at = NULL, withdrawn_by = NULL WHERE server = 'reports' AND withdrawn_at > 0",
    );
    check_server_is_lost(&format!(
        "UPDATE pins SET withdrawn_at = 1, withdrawn_by = 'eve' WHERE {NEWEST}"
    ));
    check_server_is_lost(
        "UPDATE pins SET withdrawn_at = NULL WHERE server = 'reports' AND withdrawn_at > 0",
    );
}

#[test]
fn an_authentic_row_from_before_its_withdrawal_is_noticed() {
    let bench = Bench::new();
    let mut store = bench.store();
    pin_tools(&mut store, "reports", &[("make", "one")]);
    pin_tools(&mut store, "reports", &[("make", "evil")]);
    bench.edit("CREATE TABLE kept AS SELECT * FROM pins");
    let server = id("reports");
    let mut rollback = act(&server, "server.rollback");
    rollback.withdraw = vec![tool_id("make")];
    store.record(rollback).unwrap();
    assert_eq!(pinned(&store, "reports", "make"), ["one"]);
    bench.edit("INSERT OR REPLACE INTO pins SELECT * FROM kept; DROP TABLE kept;");
    let book = store.pins(&server).unwrap();
    assert!(book.tampered.is_empty(), "each row by itself is authentic");
    assert!(book.lost.is_some(), "but not the list of them");
}

#[test]
fn an_edited_server_row_is_noticed() {
    for edit in [
        "status = 'quarantined'",
        "status = 'unbaselined'",
        "status = 'nonsense'",
        "launch = '{\"command\":[\"evil\"]}'",
        "first_seen = 1",
        "seal_count = seal_count - 1",
        "seal = NULL",
        "seal = zeroblob(32)",
        "seal = (SELECT seal FROM servers WHERE id = 'mail')",
        "status = CAST(x'ff' AS TEXT)",
    ] {
        check_server_is_lost(&format!("UPDATE servers SET {edit} WHERE id = 'reports'"));
    }
}

#[test]
fn a_status_that_cannot_be_read_serves_nothing() {
    let bench = bench();
    bench.edit("UPDATE servers SET status = 'nonsense' WHERE id = 'reports'");
    let record = bench.store().server(&id("reports")).unwrap().unwrap();
    assert_eq!(record.status, ServerStatus::Quarantined);
}

#[test]
fn when_it_was_last_seen_and_revised_proves_nothing_and_holds_nothing() {
    let bench = bench();
    bench.edit("UPDATE servers SET last_seen = 1, revision = 99 WHERE id = 'reports'");
    assert!(is_sound(&bench.store(), "reports"));
}

#[test]
fn a_removed_server_is_not_taken_for_a_new_one() {
    for edit in [
        "DELETE FROM servers WHERE id = 'reports'",
        "DELETE FROM pins WHERE server = 'reports'; DELETE FROM servers WHERE id = 'reports'",
    ] {
        let bench = bench();
        bench.edit(edit);
        let store = bench.store();
        assert!(store.pins(&id("reports")).unwrap().lost.is_some(), "{edit}");
        assert_eq!(store.pins(&id("never-seen")).unwrap().lost, None);
        assert!(is_sound(&store, "mail"));
    }
}

#[test]
fn without_the_key_everything_is_lost_and_no_new_one_is_made() {
    let bench = bench();
    let key = bench.home.pins_key_path();
    let bytes = fs::read(&key).unwrap();
    fs::remove_file(&key).unwrap();
    let mut store = bench.store();
    for server in ["reports", "mail", "never-seen"] {
        let lost = store.pins(&id(server)).unwrap().lost.unwrap();
        assert!(lost.contains("is gone"), "{lost}");
    }
    assert!(store.servers().unwrap().iter().all(|server| server.lost.is_some()));
    // Nothing but a person's approval makes a new one.
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
    // Put back, it opens what it closed; what was first seen without it stays lost.
    fs::write(&key, bytes).unwrap();
    crate::home::private_file(&key).unwrap();
    assert!(is_sound(&store, "reports") && is_sound(&store, "mail"));
    assert!(!is_sound(&store, "never-seen"));
}

#[test]
fn with_another_key_everything_is_lost() {
    for (bytes, word) in [
        (vec![7; 32], "changed by something else"),
        (vec![7; 31], "not a key"),
        (vec![7; 33], "not a key"),
    ] {
        let bench = bench();
        fs::write(bench.home.pins_key_path(), bytes).unwrap();
        let store = bench.store();
        for server in ["reports", "mail"] {
            let lost = store.pins(&id(server)).unwrap().lost.unwrap();
            assert!(lost.contains(word), "{lost}");
            assert!(pinned(&store, server, "make").is_empty());
        }
    }
}

#[cfg(unix)]
#[test]
fn a_key_that_others_can_read_proves_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let bench = bench();
    let key = bench.home.pins_key_path();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
    let store = bench.store();
    let lost = store.pins(&id("reports")).unwrap().lost.unwrap();
    assert!(lost.contains("chmod 600"), "{lost}");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(is_sound(&store, "reports"));
}

#[test]
fn no_single_column_can_be_edited_unnoticed() {
    let columns = [
        ("pins", "seq"),
        ("pins", "server"),
        ("pins", "authentication"),
        ("pins", "basis"),
        ("pins", "at"),
        ("pins", "entry_hash"),
        ("pins", "definition_hash"),
        ("pins", "withdrawn_at"),
        ("pins", "by"),
        ("pins", "withdrawn_by"),
        ("pins", "entry_type"),
        ("pins", "key"),
        ("pins", "raw"),
        ("servers", "id"),
        ("servers", "status"),
        ("servers", "launch"),
        ("servers", "first_seen"),
        ("servers", "seal_count"),
        ("servers", "seal"),
    ];
    let bench = bench();
    let connection = Connection::open(bench.home.state_path()).unwrap();
    let mut named = connection
        .prepare("SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.name IN ('pins', 'servers')")
        .unwrap();
    let there: Vec<(String, String)> = named
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    for (table, column) in &there {
        let is_free = table == "servers" && ["last_seen", "revision"].contains(&column.as_str());
        let is_covered = columns.contains(&(table.as_str(), column.as_str()));
        assert_ne!(is_free, is_covered, "{table}.{column} is either free or authenticated");
    }
    assert_eq!(there.len(), columns.len() + 2);
    for (table, column) in columns {
        let bench = self::bench();
        let server =
            if table == "pins" { "server = 'reports' AND key = 'send'" } else { "id = 'reports'" };
        bench.edit(&format!(
            "UPDATE {table} SET {column} = CASE typeof({column})
                 WHEN 'integer' THEN {column} + 1000
                 WHEN 'blob' THEN zeroblob(length({column}))
                 WHEN 'null' THEN (SELECT CASE type WHEN 'INTEGER' THEN 1 ELSE 'x' END
                                   FROM pragma_table_info('{table}') WHERE name = '{column}')
                 ELSE {column} || 'x' END
             WHERE {server}"
        ));
        assert!(!is_sound(&bench.store(), "reports"), "{table}.{column}");
    }
}
