//! Keys of the gateway's callers: printed once, listed without the key itself, revoked permanently.

use crate::bench::*;
use serde_json::{Value, json};

fn create(bench: &Bench, words: &[&str]) -> Value {
    let words = [&["key", "create", "--json"], words].concat();
    bench.run(words).exits(0).json()
}

fn listed(bench: &Bench) -> Vec<Value> {
    let list = bench.run(["key", "list", "--json"]).exits(0).json();
    list["keys"].as_array().unwrap().clone()
}

#[test]
fn a_key_is_printed_once_and_found_nowhere_in_the_home() {
    let bench = Bench::new();
    bench.run(["key", "list"]).exits(0).says("no keys");
    let answer = bench.run(["key", "create", "--sub", "svc:reports"]).exits(0);
    let key = answer.out.trim().to_owned();
    assert!(key.starts_with("hp_") && key.len() == 46, "{key}");
    for list in [bench.run(["key", "list"]).exits(0).out, listed(&bench)[0].to_string()] {
        assert!(list.contains("svc:reports") && !list.contains(&key), "{list}");
    }
    let mut folders = vec![bench.home()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let bytes = std::fs::read(&path).unwrap();
                let secret = key.as_bytes();
                let is_there = bytes.windows(secret.len()).any(|window| window == secret);
                assert!(!is_there, "{}", path.display());
            }
        }
    }
}

#[test]
fn a_key_has_what_was_typed_and_cautious_defaults() {
    let bench = Bench::new();
    let plain = create(&bench, &["--sub", "svc"]);
    assert_eq!((&plain["actor_type"], &plain["admin"]), (&json!("agent"), &json!(false)));
    assert_eq!((&plain["state"], &plain["org"]), (&json!("valid"), &Value::Null));
    assert!(plain["expires_at"].is_string(), "it ends by itself");
    let words =
        ["--sub", "ada", "--actor", "user", "--org", "acme", "--group", "b", "--group", "a"];
    let full =
        create(&bench, &[&words[..], &["--clearance", "internal", "--expires", "never"]].concat());
    assert_eq!((&full["groups"], &full["org"]), (&json!(["b", "a"]), &json!("acme")));
    assert_eq!((&full["actor_type"], &full["clearance"]), (&json!("user"), &json!("internal")));
    assert_eq!(full["expires_at"], Value::Null);
    assert_eq!(full["created"]["by"], WHO);
    for (words, expected) in [
        (&["--sub", "x", "--expires", "soon"][..], "`12h`, `90d` or `4w`, or `never`"),
        (&["--sub", "x", "--expires", "0d"], "or `never`"),
        (&["--sub", "x", "--actor", "root"], "expected `user`, `agent` or `system`"),
        (&["--sub", " "], "expected a name"),
        (&[], "--sub"),
    ] {
        let words = [&["key", "create"], words].concat();
        bench.run(words).exits(2).says(expected);
    }
    assert_eq!(listed(&bench).len(), 2, "nothing was made");
}

#[test]
fn a_revoked_key_stays_in_the_list_and_in_the_record() {
    let bench = Bench::new();
    let id = create(&bench, &["--sub", "svc"])["id"].as_str().unwrap().to_owned();
    let revoked = bench.run(["key", "revoke", &id, "--json"]).exits(0).json();
    assert_eq!((&revoked["state"], &revoked["revoked"]["by"]), (&json!("revoked"), &json!(WHO)));
    assert_eq!(listed(&bench), [revoked]);
    bench.run(["key", "revoke", &id]).exits(0).says("revoked");
    bench.run(["receipts", "list"]).exits(0).says("key.create").says("key.revoke");
    bench.run(["key", "revoke", "k-none"]).exits(2).says("no key `k-none` is known here");
    bench.run(["key", "revoke", "not an id"]).exits(2).says("is not an id");
}

#[test]
fn an_admin_key_needs_a_person() {
    let words = ["key", "create", "--sub", "ada", "--admin"];
    let bench = Bench::new();
    bench.run(words).exits(2).says("terminal");
    assert!(listed(&bench).is_empty());
    let bench = Bench::unattended();
    let key = bench.run(words).exits(0).out;
    assert!(key.starts_with("hpa_"), "{key}");
    assert_eq!(listed(&bench)[0]["admin"], true);
}

#[test]
fn the_store_is_that_of_the_gateways_configuration() {
    let bench = Bench::new();
    let toml = bench.home().join("gateway.toml");
    std::fs::create_dir_all(bench.home()).unwrap();
    std::fs::write(&toml, "[gateway]\nstore = \"env:NO_SUCH_STORE\"\n").unwrap();
    bench.run(["key", "list"]).exits(2).says("`gateway.store`: the variable `NO_SUCH_STORE`");
    std::fs::write(&toml, "[gateway]\nlisten = \"0.0.0.0:1\"\nlimit = 1\n").unwrap();
    bench
        .run(["key", "list"])
        .exits(2)
        .says("unknown key `gateway.limit`")
        .says("cross the network in clear");
    std::fs::write(&toml, "[gateway]\nstore = \"sqlite\"\n").unwrap();
    bench.run(["key", "list"]).exits(0).says("no keys").says("accepts no keys");
    std::fs::write(&toml, "[auth.keys]\nenabled = true\n").unwrap();
    let answer = bench.run(["key", "list"]).exits(0);
    assert!(!answer.err.contains("accepts no keys"), "{}", answer.err);
    bench.run(["key", "list", "--config", "none.toml"]).exits(2).says("none.toml");
}
