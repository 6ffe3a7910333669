//! `gateway init` and what `--check` says of its result.

use crate::bench::Bench;
use std::fs;

#[test]
fn a_file_to_begin_with_is_checked_and_never_overwritten() {
    let bench = Bench::new();
    fs::write(
        bench.path(".claude.json"),
        r#"{"mcpServers":{"notes":{"command":"notes-server","env":{"TOKEN":"s3cret"}}}}"#,
    )
    .unwrap();
    bench.run(["gateway", "init"]).exits(0).says("are written");
    let text = fs::read_to_string(bench.home().join("gateway.toml")).unwrap();
    assert!(text.contains("#   notes  ("), "{text}");
    assert!(!text.contains("s3cret"), "a secret was copied");
    bench
        .run(["gateway", "--check"])
        .exits(0)
        .says("no server is configured: add a `[[server]]`")
        .says("6 OAuth proxy: not applicable (the gateway signs nobody in")
        .says("2 authentication and transport: met");
    fs::write(bench.home().join("gateway.toml"), "# mine\n").unwrap();
    bench.run(["gateway", "init"]).exits(2).says("exists already and is left as it is");
    assert_eq!(fs::read_to_string(bench.home().join("gateway.toml")).unwrap(), "# mine\n");
}

#[test]
fn without_a_way_to_prove_an_identity_the_requirement_is_not_met() {
    let bench = Bench::new();
    bench.file("gateway.toml", "");
    let checked = bench.run(["gateway", "--check", "--config", "gateway.toml"]).exits(0);
    checked.says("2 authentication and transport: not met");
}
