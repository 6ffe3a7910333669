//! `store migrate`, and a home whose store is elsewhere.

use crate::bench::*;
use serde_json::{Value, json};
use std::fs;

/// A home with a pinned server that has a waiting change.
fn pinned() -> Bench {
    let bench = Bench::unattended();
    bench.file("old.json", json!([report_tool(), mail_tool()]).to_string());
    bench.file("new.json", json!([report_tool_with_owner(), mail_tool()]).to_string());
    bench.run(["pin", "--server", ID, "--file", "old.json"]).exits(0);
    bench.run(["check", "--server", ID, "--file", "new.json"]).exits(10);
    bench
}

/// The address of a schema for this test, in a file, if there is a PostgreSQL for tests
/// (`scripts/with-postgres`).
fn postgres(bench: &Bench, name: &str) -> Option<String> {
    let url = testing::postgres_url()?;
    let schema = format!("cli_{name}_{}", std::process::id());
    let path = bench.file("address", format!("{url}?schema={schema}\n"));
    Some(format!("file:{}", path.display()))
}

fn history(bench: &Bench) -> Value {
    bench.run(["history", ID, "--json"]).exits(0).json()
}

#[test]
fn a_home_moves_to_another_home_and_nothing_is_missing() {
    let bench = pinned();
    let place = format!("sqlite:{}", bench.path("second").display());
    let words = ["store", "migrate", "--from", "sqlite", "--to", &place];
    let moved = bench.run(words.iter().chain(&["--json"])).exits(0).json();
    assert_eq!(moved["from"], "sqlite");
    assert_eq!(moved["to"], place.as_str());
    assert_eq!(moved["was_there"], false);
    assert_eq!((&moved["rows"]["servers"], &moved["rows"]["pins"]), (&json!(1), &json!(2)));
    let (status, told) = (bench.status(), history(&bench));
    bench.run(words).exits(0).says("is in already");
    // The same commands with the other home.
    let second = |words: &[&str]| {
        let mut command = bench.command(words);
        command.env("HOLDPOINT_HOME", bench.path("second"));
        answer(command).exits(0).json()
    };
    assert_eq!(second(&["status", "--json"]), status);
    assert_eq!(second(&["history", ID, "--json"]), told);
}

#[test]
fn a_home_moves_to_postgres_works_there_and_moves_back() {
    let bench = pinned();
    let Some(place) = postgres(&bench, "round") else { return };
    let (status, told) = (bench.status(), history(&bench));
    let migrate = ["store", "migrate", "--from", "sqlite", "--to", &place];
    bench.run(migrate).exits(0).says("copied to postgres://").says(&format!("store = \"{place}\""));
    fs::remove_file(bench.home().join("state.db")).unwrap();
    bench.configure(&format!("store = \"{place}\"\n[approve]\nunattended = true\n"));
    assert_eq!(bench.status(), status);
    assert_eq!(history(&bench), told);
    let hash = bench.waiting_hash("make_report");
    bench.run(["approve", ID, "make_report", "--hash", &hash]).exits(0);
    bench.run(["check", "--server", ID, "--file", "new.json"]).exits(0);
    assert!(!bench.home().join("state.db").exists(), "nothing is kept beside it");
    let status = bench.status();
    let back = ["store", "migrate", "--from", &place, "--to", "sqlite"];
    bench.run(back).exits(0);
    bench.configure("[approve]\nunattended = true\n");
    assert_eq!(bench.status(), status);
    bench.run(["check", "--server", ID, "--file", "new.json"]).exits(0);
}

#[test]
fn a_second_node_is_told_to_copy_the_key() {
    let bench = pinned();
    let Some(place) = postgres(&bench, "key") else { return };
    bench.run(["store", "migrate", "--from", "sqlite", "--to", &place]).exits(0);
    let home = bench.path("second");
    let mut command = bench.command(["status"]);
    command.env("HOLDPOINT_HOME", &home);
    answer(command).exits(0);
    fs::write(home.join("holdpoint.toml"), format!("store = \"{place}\"\n")).unwrap();
    let mut command = bench.command(["status"]);
    command.env("HOLDPOINT_HOME", &home);
    answer(command).exits(2).says("copy `keys/pins.key` from the home of a node");
}

#[test]
fn a_target_that_holds_something_else_is_refused() {
    let bench = pinned();
    let place = format!("sqlite:{}", bench.path("second").display());
    bench.run(["store", "migrate", "--from", "sqlite", "--to", &place]).exits(0);
    bench.run(["quarantine", ID]).exits(0);
    let words = ["store", "migrate", "--from", "sqlite", "--to", &place];
    bench.run(words).exits(2).says("is not empty");
    let words = ["store", "migrate", "--from", "sqlite", "--to", "sqlite"];
    bench.run(words).exits(2).says("cannot be moved to itself");
}

#[test]
fn a_password_among_the_arguments_is_warned_of_and_never_shown() {
    let bench = pinned();
    let secret = "postgres://ada:s3cret@127.0.0.1:1/x";
    for json in [&[][..], &["--json"]] {
        let words = ["store", "migrate", "--from", "sqlite", "--to", secret];
        let answer = bench.run(words.iter().chain(json));
        let answer = answer.exits(12).says("cannot reach `postgres://ada@127.0.0.1:1/x`");
        let answer = answer.says("can see a password").never_says("s3cret");
        drop(answer);
    }
    bench.configure(&format!("store = \"{secret}\"\n"));
    bench.run(["status"]).exits(2).says("a password does not belong here").never_says("s3cret");
    // From a private file it is accepted, and not displayed either.
    let path = bench.file("address", secret);
    bench.configure(&format!("store = \"file:{}\"\n", path.display()));
    bench.run(["status"]).exits(12).says("cannot reach").never_says("s3cret");
}

#[test]
fn places_that_cannot_be_are_refused() {
    let bench = pinned();
    for (place, said) in [
        ("nowhere", "expected `sqlite`"),
        ("env:HOLDPOINT_NO_SUCH", "`HOLDPOINT_NO_SUCH` is not set"),
        ("file:no-such", "`no-such`"),
        ("postgres://ada@db.example.com/x?sslmode=prefer", "`sslmode`"),
    ] {
        bench.run(["store", "migrate", "--from", "sqlite", "--to", place]).exits(2).says(said);
    }
    bench.configure("store = \"env:HOLDPOINT_NO_SUCH\"\n");
    bench.run(["status"]).exits(2).says("`HOLDPOINT_NO_SUCH` is not set");
    bench.run(["diff", "old.json", "old.json"]).exits(0);
}
