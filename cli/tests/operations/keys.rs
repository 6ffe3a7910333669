//! Keys that are created and revoked while the gateway runs.

use crate::bench::Bench;
use crate::http_client::Caller;
use crate::running::Gateway;
use testing::wait_for;

#[test]
fn a_key_counts_without_a_restart_until_it_is_revoked() {
    let gateway = Gateway::start(Bench::new(), "");
    let made = gateway.bench().run(["key", "create", "--sub", "late", "--config", "gateway.toml"]);
    let late = made.exits(0).out.trim().to_owned();
    let status = |key: &str| Caller::new(gateway.address, key).initialize().status;
    wait_for("the new key to count", || (status(&late) == 200).then_some(()));
    assert_eq!(status("hp_no-such-key"), 401);
    assert_eq!(status(&gateway.key), 200);
    let words = ["key", "revoke", &gateway.key_id, "--config", "gateway.toml"];
    gateway.bench().run(words).exits(0);
    wait_for("the revoked key to count no more", || (status(&gateway.key) == 401).then_some(()));
    assert_eq!(status(&late), 200);
    gateway.end().1.exits(0);
}

#[test]
fn a_revoked_key_ends_its_open_streams() {
    let gateway = Gateway::start(Bench::new(), "");
    let mut stream = gateway.caller().listen();
    assert!(stream.head()[0].contains(" 200 "));
    let words = ["key", "revoke", &gateway.key_id, "--config", "gateway.toml"];
    gateway.bench().run(words).exits(0);
    // Times out if the stream stays open.
    let heard = stream.rest();
    assert!(heard.ends_with("0\r\n\r\n"), "the stream was cut off: {heard}");
    gateway.end().1.exits(0);
}
