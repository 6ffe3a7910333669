//! Servers that are launched the same way, and decisions that apply to several of them.

use super::bench::*;
use crate::{EntryFile, Launch, LaunchIdentity, Store};
use gate::server::ServerStatus;

/// A launch that reaches an address with this token, from the entry of a file.
fn launch(store: &mut dyn Store, token: &str, file: EntryFile) -> Launch {
    let key = store.launch_key(true).unwrap();
    let url = "https://example.com/mcp".to_owned();
    let hash = key.hash_address(&url, &[("authorization", token.as_bytes())]);
    Launch::Url {
        url,
        header_names: vec!["authorization".to_owned()],
        has_secrets: false,
        client_capabilities: None,
        posture: None,
        identity: Some(LaunchIdentity { hash, file }),
    }
}

fn record(store: &mut dyn Store, name: &str, launch: &Launch) {
    let server = id(name);
    let mut act = act(&server, "server.pin");
    act.launch = Some(launch);
    act.pins = vec![pin("make", "one", gate::pins::Basis::Person)];
    store.record(act).unwrap();
}

fn alike(store: &dyn Store, name: &str, launch: &Launch) -> Vec<String> {
    let hash = &launch.identity().unwrap().hash;
    let found = store.launched_alike(&id(name), hash).unwrap();
    found.into_iter().map(|server| server.id.to_string()).collect()
}

fn only_servers_with_the_same_launch_are_alike(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    let one = launch(&mut *store, "a", EntryFile::User);
    let project = launch(&mut *store, "a", EntryFile::Project);
    let other = launch(&mut *store, "b", EntryFile::User);
    record(&mut *store, "cursor.mail", &one);
    record(&mut *store, "vscode.mail", &project);
    record(&mut *store, "zed.mail", &other);
    record(&mut *store, "old.mail", &one.clone().known_as(None));
    assert_eq!(alike(&*store, "cursor.mail", &one), ["vscode.mail"]);
    assert_eq!(alike(&*store, "new.mail", &one), ["cursor.mail", "vscode.mail"]);
    assert!(alike(&*store, "zed.mail", &other).is_empty());
}

fn a_record_that_was_edited_is_like_no_other(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    let (one, other) =
        (launch(&mut *store, "a", EntryFile::User), launch(&mut *store, "b", EntryFile::User));
    record(&mut *store, "cursor.mail", &one);
    record(&mut *store, "zed.mail", &other);
    let hash = |launch: &Launch| launch.identity().unwrap().hash.as_str().to_owned();
    bench.edit(&format!(
        "UPDATE servers SET launch = replace(launch, '{}', '{}') WHERE id = 'zed.mail'",
        hash(&other),
        hash(&one)
    ));
    assert!(alike(&*store, "cursor.mail", &one).is_empty());
}

fn the_history_says_for_which_server_it_was_decided(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    pin_tools(&mut *store, "cursor.mail", &[("make", "one")]);
    let (server, other) = (id("cursor.mail"), id("vscode.mail"));
    let mut act = act(&server, "server.quarantine");
    act.status = Some(ServerStatus::Quarantined);
    act.decided_for = Some(&other);
    store.record(act).unwrap();
    let history = store.history(&server).unwrap();
    let detail = history.last().unwrap().detail.as_deref();
    assert_eq!(detail, Some("decided for `vscode.mail`, which is launched the same way"));
}

on_both![
    only_servers_with_the_same_launch_are_alike,
    a_record_that_was_edited_is_like_no_other,
    the_history_says_for_which_server_it_was_decided,
];
