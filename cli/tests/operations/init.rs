//! `gateway init` and what `--check` says of its result.

use crate::bench::{Bench, answer};
use std::fs;

#[test]
fn a_file_to_begin_with_is_checked_and_never_overwritten() {
    let bench = Bench::new();
    fs::write(
        bench.path(".claude.json"),
        r#"{"mcpServers":{"notes":{"type":"http","url":"http://127.0.0.1:9/mcp","headers":{"X-Key":"s3cret"}},"files":{"command":"sh","env":{"TOKEN":"s3cret"}}}}"#,
    )
    .unwrap();
    bench
        .run(["gateway", "init"])
        .exits(0)
        .says("are written")
        .says("2 servers of this machine's hosts are in it")
        .says("`danger_unconfined = true`")
        .says("variables that the gateway needs: NOTES_X_KEY, FILES_TOKEN");
    let path = bench.home().join("gateway.toml");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("command = [\"sh\"]\nenv = { TOKEN = \"env:FILES_TOKEN\" }"), "{text}");
    let policy = fs::read_to_string(bench.home().join("policies/servers.cedar")).unwrap();
    assert!(policy.contains("resource in Server::\"notes\""), "{policy}");
    assert!(!text.contains("s3cret") && !policy.contains("s3cret"), "a secret was copied");
    // What is left is whom to trust, and the variables.
    bench.run(["gateway", "--check"]).exits(2).says("a command of trust `unknown`");
    fs::write(&path, text.replace("\"unknown\"", "\"internal\"")).unwrap();
    bench.run(["gateway", "--check"]).exits(2).says("the variable `FILES_TOKEN` is not set");
    let mut check = bench.command(["gateway", "--check"]);
    check.env("FILES_TOKEN", "x").env("NOTES_X_KEY", "y");
    answer(check)
        .exits(0)
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
