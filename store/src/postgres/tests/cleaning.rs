//! Databases of older versions are cleaned for all nodes that share them, and the old data leaves
//! the server's files.

use super::*;
use crate::{Launch, NewPin};
use contract::surface::{Entry, EntryId, EntryType};

const SECRET: &str = "Wq71zXsecret";

/// A server pinned by an older version, with its words in clear text.
fn old(bench: &Bench) {
    let mut store = bench.store();
    let raw = format!(
        r#"{{"arguments":["x-mcp","--key","{SECRET}"],"digest":"ab","kind":"program","package":"npm:x-mcp","program":"npx"}}"#
    );
    let origin = Entry::from_raw(EntryId::only(EntryType::Origin), &raw).unwrap();
    let launch = Launch::Program {
        command: ["npx", "x-mcp", "--key", SECRET].map(str::to_owned).to_vec(),
        directory: None,
        environment_names: Vec::new(),
        has_secrets: false,
        client_capabilities: None,
        posture: None,
        identity: None,
    };
    let server = id("reports");
    let mut act = act(&server, "server.pin");
    act.launch = Some(&launch);
    act.pins = vec![NewPin { entry: origin, basis: Basis::Person }];
    store.record(act).unwrap();
    bench.edit("DELETE FROM counters WHERE name LIKE 'launches_redacted%'");
}

/// The files in which the server keeps the tables. A rewritten table has a new file.
fn files(bench: &Bench) -> Vec<String> {
    bench.ask(
        "SELECT c.relname || ' ' || pg_relation_filenode(c.oid) FROM pg_class c
         WHERE c.relnamespace = current_schema()::regnamespace
           AND c.relname IN ('servers', 'pins', 'observations', 'history') ORDER BY 1",
    )
}

fn kept(bench: &Bench) -> String {
    let mut kept = bench.ask("SELECT launch FROM servers WHERE launch IS NOT NULL");
    kept.extend(bench.ask("SELECT raw FROM pins"));
    kept.concat()
}

#[test]
fn a_shared_database_is_redacted_once_for_all_nodes_and_its_tables_are_rewritten() {
    let Some(url) = postgres_url() else { return };
    let bench = Bench::on(&url);
    old(&bench);
    let second = bench.another_home("second");
    fs::copy(bench.key_path(), second.pins_key_path()).unwrap();
    let before = files(&bench);
    assert!(before.len() == 4 && kept(&bench).contains(SECRET));
    let node = PostgresStore::open(&second, &bench.address()).unwrap();
    assert!(!kept(&bench).contains(SECRET) && is_sound(&node, "reports"));
    let after = files(&bench);
    assert!(before.iter().all(|file| !after.contains(file)), "{before:?} {after:?}");
    // The first node finds the work done, and history is append-only again.
    let first = bench.store();
    assert!(is_sound(&*first, "reports"));
    assert_eq!(files(&bench), after);
    assert!(bench.edit_plainly("UPDATE history SET by = 'eve'").is_err());
}

#[test]
fn words_that_a_node_of_an_older_version_writes_later_go_when_another_node_starts() {
    let Some(url) = postgres_url() else { return };
    let bench = Bench::on(&url);
    old(&bench);
    drop(bench.store());
    bench.edit(&format!(
        "UPDATE servers SET launch = replace(launch, 'hidden:', '{SECRET}'), revision = revision + 1"
    ));
    assert!(kept(&bench).contains(SECRET));
    drop(bench.store());
    assert!(!kept(&bench).contains(SECRET));
}
