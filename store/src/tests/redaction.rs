//! Databases of older versions, which stored the words of launches in clear text, are rewritten
//! when opened.

use crate::tests::bench::*;
use crate::{Launch, NewPin, Observation, Store};
use contract::surface::{Entry, EntryId, EntryType, SurfaceReader};
use gate::pins::Basis;
use gate::server::ServerStatus;

const SECRET: &str = "Wq71zXsecret";

fn origin(arguments: &[&str]) -> Entry {
    let raw = serde_json::json!({
        "arguments": arguments, "digest": "ab", "kind": "program", "package": "npm:x-mcp", "program": "npx",
    });
    Entry::from_raw(EntryId::only(EntryType::Origin), &raw.to_string()).unwrap()
}

fn launch(arguments: &[&str]) -> Launch {
    let words = std::iter::once("npx").chain(arguments.iter().copied());
    Launch::Program {
        command: words.map(str::to_owned).collect(),
        directory: Some("/".to_owned()),
        environment_names: Vec::new(),
        has_secrets: false,
        client_capabilities: None,
        posture: None,
        identity: None,
    }
}

/// Pins a server as an older version did, with its words in clear text.
fn pin_in_clear(store: &mut dyn Store, server: &str, arguments: &[&str]) {
    let (server, origin, launch) = (id(server), origin(arguments), launch(arguments));
    let mut reader = SurfaceReader::default();
    reader.handshake(r#"{"serverInfo":{"name":"r","version":"1"},"capabilities":{}}"#).unwrap();
    let mut surface = reader.finish();
    surface.insert(origin.clone());
    let observation = Observation::of(&surface, NOON);
    let mut act = act(&server, "server.pin");
    act.status = Some(ServerStatus::Verified);
    act.launch = Some(&launch);
    act.observation = Some(&observation);
    act.pins =
        vec![pin("make", "one", Basis::Person), NewPin { entry: origin, basis: Basis::Person }];
    store.record(act).unwrap();
}

/// A database of an older version.
fn old(kind: Kind) -> Bench {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    pin_in_clear(&mut *store, "wired", &["-y", "x-mcp", "/", "--header", SECRET]);
    pin_in_clear(&mut *store, &format!("x-{}-0a1b2c", SECRET.to_lowercase()), &["x-mcp", SECRET]);
    pin_in_clear(&mut *store, "plain", &["-y", "x-mcp"]);
    pin_in_clear(&mut *store, "edited", &["x-mcp", SECRET]);
    bench.edit("DELETE FROM counters WHERE name = 'launches_redacted'");
    bench
}

fn everything(bench: &Bench) -> String {
    let texts = [
        "SELECT launch FROM servers WHERE launch IS NOT NULL",
        "SELECT raw FROM pins",
        "SELECT origin FROM observations WHERE origin IS NOT NULL",
        "SELECT raw FROM history WHERE raw IS NOT NULL",
    ];
    let mut all: String = texts.iter().flat_map(|query| bench.ask(query)).collect();
    if bench.url.is_none() {
        for file in std::fs::read_dir(bench.home.path()).unwrap().map(|file| file.unwrap().path()) {
            let bytes = if file.is_file() { std::fs::read(file).unwrap() } else { Vec::new() };
            all += &String::from_utf8_lossy(&bytes);
        }
    }
    all
}

fn words_of_launches_are_hashed_and_what_was_pinned_stays_pinned(kind: Kind) {
    let bench = old(kind);
    assert!(everything(&bench).contains(SECRET));
    let mut store = bench.store();
    assert!(!everything(&bench).contains(SECRET));
    let hidden = format!("hidden:{}", store.launch_key(false).unwrap().hash(SECRET));
    for server in ["wired", "plain"] {
        assert!(is_sound(&*store, server), "{server}");
        let snapshot = store.snapshot(&id(server)).unwrap();
        let observed = snapshot.observation.unwrap().surface().unwrap();
        let origin = EntryId::only(EntryType::Origin);
        let pinned = snapshot.pins.get(&origin).unwrap().accepted().unwrap().entry.clone();
        assert_eq!(observed.entry(&origin), Some(&pinned), "there is no finding");
        assert_eq!(pinned.raw().contains(&hidden), server == "wired", "{}", pinned.raw());
        assert!(pinned.raw().contains("\"digest\":\"ab\""));
    }
    let wired = store.server(&id("wired")).unwrap().unwrap();
    assert!(wired.status == ServerStatus::Verified && wired.launch.as_ref().unwrap().has_secrets());
    assert_eq!(store.server(&id("plain")).unwrap().unwrap().launch, Some(launch(&["-y", "x-mcp"])));
    let acts = |server: &str| -> Vec<String> {
        store.history(&id(server)).unwrap().into_iter().map(|event| event.action).collect()
    };
    assert_eq!(acts("wired").last().map(String::as_str), Some("server.redact"));
    assert!(!acts("plain").contains(&"server.redact".to_owned()));
    // Receipts cannot be rewritten, so the servers whose names contain such a word are recorded.
    let named = store.servers_named_by_launches().unwrap();
    assert_eq!(named, [id(&format!("x-{}-0a1b2c", SECRET.to_lowercase()))]);
    // The rewriting happens only once.
    let before = bench.ask("SELECT launch FROM servers ORDER BY id");
    let revisions = bench.ask("SELECT CAST(revision AS TEXT) FROM servers ORDER BY id");
    drop(store);
    bench.store();
    assert_eq!(bench.ask("SELECT launch FROM servers ORDER BY id"), before);
    assert_eq!(bench.ask("SELECT CAST(revision AS TEXT) FROM servers ORDER BY id"), revisions);
}

/// A gate of an older version has the database open while it is rewritten, and writes to it
/// afterwards in its old form.
fn words_that_an_older_gate_writes_after_the_cleaning_go_with_the_next_opening(kind: Kind) {
    let bench = old(kind);
    let mut open = bench.store();
    assert!(!everything(&bench).contains(SECRET));
    let late = serde_json::json!(launch(&["x-mcp", SECRET])).to_string();
    let seen = origin(&["x-mcp", SECRET]);
    bench.edit(&format!(
        "UPDATE servers SET launch = '{late}', revision = revision + 1 WHERE id = 'plain';
         UPDATE observations SET origin = '{}' WHERE server = 'plain'",
        seen.raw()
    ));
    // An act of this version in between does not hide the older version's act.
    let server = id("wired");
    let mut approve = act(&server, "server.approve");
    approve.pins = vec![pin("make", "two", Basis::Person)];
    open.record(approve).unwrap();
    drop(open);
    assert!(everything(&bench).contains(SECRET));
    let store = bench.store();
    assert!(!everything(&bench).contains(SECRET));
    assert!(is_sound(&*store, "wired"));
    let revisions = bench.ask("SELECT CAST(revision AS TEXT) FROM servers ORDER BY id");
    drop(store);
    bench.store();
    assert_eq!(bench.ask("SELECT CAST(revision AS TEXT) FROM servers ORDER BY id"), revisions);
}

fn what_was_not_trusted_before_is_not_trusted_afterwards(kind: Kind) {
    let bench = old(kind);
    bench.edit("UPDATE pins SET raw = replace(raw, 'npm:', 'pypi:') WHERE server = 'edited' AND entry_type = 'origin'");
    bench.edit("UPDATE servers SET status = 'pending' WHERE id = 'wired'");
    let store = bench.store();
    assert!(!everything(&bench).contains(SECRET));
    assert!(!is_sound(&*store, "edited") && !is_sound(&*store, "wired"));
    assert!(store.pins(&id("wired")).unwrap().lost.is_some());
    assert_eq!(store.pins(&id("edited")).unwrap().tampered.len(), 1);
    assert!(is_sound(&*store, "plain"));
}

fn without_the_key_it_waits_until_the_key_is_back(kind: Kind) {
    let bench = old(kind);
    if kind == Kind::Postgres {
        // PostgreSQL stores cannot be opened at all without the key.
        return;
    }
    let away = bench.home.path().join("away");
    std::fs::rename(bench.key_path(), &away).unwrap();
    drop(bench.store());
    assert!(everything(&bench).contains(SECRET));
    std::fs::rename(&away, bench.key_path()).unwrap();
    let store = bench.store();
    assert!(is_sound(&*store, "wired") && !everything(&bench).contains(SECRET));
}

fn what_a_discarded_origin_held_goes_and_history_is_still_only_added_to(kind: Kind) {
    let bench = old(kind);
    bench.edit("UPDATE pins SET by = 'eve' WHERE server = 'edited' AND entry_type = 'origin'");
    let mut store = bench.store();
    bench.edit("DELETE FROM counters WHERE name = 'launches_redacted'");
    let server = id("edited");
    let mut approve = act(&server, "server.approve");
    approve.pins = vec![NewPin { entry: origin(&["x-mcp", SECRET]), basis: Basis::Person }];
    approve.reseal = true;
    store.record(approve).unwrap();
    drop(store);
    bench.store();
    assert!(!everything(&bench).contains(SECRET));
    assert!(bench.edit_plainly("UPDATE history SET by = 'eve'").is_err());
}

on_both![
    words_of_launches_are_hashed_and_what_was_pinned_stays_pinned,
    words_that_an_older_gate_writes_after_the_cleaning_go_with_the_next_opening,
    what_was_not_trusted_before_is_not_trusted_afterwards,
    without_the_key_it_waits_until_the_key_is_back,
    what_a_discarded_origin_held_goes_and_history_is_still_only_added_to,
];
