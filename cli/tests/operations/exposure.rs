//! A gateway refuses to start where unauthenticated callers could use it.

use crate::bench::Bench;

#[test]
fn an_address_that_others_reach_needs_tls_and_authentication() {
    let bench = Bench::new();
    bench.file(
        "gateway.toml",
        "[gateway]\nlisten = \"0.0.0.0:0\"\npublic_url = \"https://mcp.example.com\"\n",
    );
    for words in [
        &["gateway", "--config", "gateway.toml"][..],
        &["gateway", "--check", "--config", "gateway.toml"],
    ] {
        let refused = bench.run(words).exits(2);
        assert!(refused.out.is_empty(), "{}", refused.out);
        refused
            .says("`gateway.listen`: 0.0.0.0:0 can be reached from other machines, so tokens and results would cross the network in clear: set `gateway.tls`")
            .says("no caller could prove who it is: add an `[[auth.issuer]]`, or `[auth.keys]`");
    }
}

#[test]
fn without_a_file_one_is_told_how_to_get_one() {
    Bench::new().run(["gateway"]).exits(2).says("`holdpoint gateway init` writes one");
}

#[test]
fn a_certificate_that_is_missing_is_named() {
    let bench = Bench::new();
    bench.file(
        "gateway.toml",
        "[gateway]\ntls = { cert = \"file:no.pem\", key = \"file:no.key\" }\n[auth.keys]\nenabled = true\n",
    );
    bench.run(["gateway", "--config", "gateway.toml"]).exits(2).says("`gateway.tls.cert`: `");
}
