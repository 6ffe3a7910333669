//! `gateway init`, and the result of `--check` on its output.

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
        .says("variables that the gateway needs: NOTES_X_KEY, FILES_TOKEN");
    let path = bench.home().join("gateway.toml");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("command = [\"sh\"]\nenv = { TOKEN = \"env:FILES_TOKEN\" }"), "{text}");
    let policy = fs::read_to_string(bench.home().join("policies/servers.cedar")).unwrap();
    assert!(policy.contains("resource in Server::\"notes\""), "{policy}");
    assert!(!text.contains("s3cret") && !policy.contains("s3cret"), "a secret was copied");
    // Only the variables are missing: a command without a trust level is confined.
    bench.run(["gateway", "--check"]).exits(2).says("the variable `FILES_TOKEN` is not set");
    let mut check = bench.command(["gateway", "--check"]);
    check.env("FILES_TOKEN", "x").env("NOTES_X_KEY", "y");
    answer(check)
        .exits(0)
        .says("6 OAuth proxy: not applicable: `[oauth_proxy]` is not configured")
        .says("2 authentication and transport: met")
        .says("8 sandbox: met (every command runs confined)");
    let mut open = bench.command(["gateway", "--check"]);
    open.env("FILES_TOKEN", "x").env("NOTES_X_KEY", "y");
    let confined = "command = [\"sh\"]";
    fs::write(&path, text.replace(confined, &format!("{confined}\ndanger_unconfined = true")))
        .unwrap();
    answer(open).exits(0).says("8 sandbox: not met: `files` are not trusted");
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

#[test]
fn servers_that_people_sign_in_to_are_named() {
    let bench = Bench::new();
    bench.file("client", "gateway:secret");
    let file = "[[auth.issuer]]\nissuer = \"http://127.0.0.1:9\"\naudience = \"a\"\njwks_uri = \"http://127.0.0.1:9/jwks\"\nclient = \"file:client\"\n\
        [[server]]\nid = \"notes\"\nurl = \"http://127.0.0.1:9/mcp\"\ncredentials = { mode = \"user\" }\n";
    bench.file("gateway.toml", file);
    bench
        .run(["gateway", "--check", "--config", "gateway.toml"])
        .exits(0)
        .says("5 no token passthrough: met")
        .says("each person signs in to `notes` with an account of their own");
    bench.file("gateway.toml", file.replace("credentials = { mode = \"user\" }\n", ""));
    let without = bench.run(["gateway", "--check", "--config", "gateway.toml"]).exits(0);
    without.says("a call with one in it is refused)");
}
