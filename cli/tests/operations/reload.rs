//! A changed file is applied completely or not at all, and calls in flight finish.

use crate::bench::Bench;
use crate::running::{Gateway, WaitingServer, said, write_settings};
use serde_json::json;
use testing::wait_for;

#[test]
fn servers_come_and_go_and_those_that_did_not_change_stay() {
    let bench = Bench::new();
    let (one, two) = (WaitingServer::new(&bench, "one"), WaitingServer::new(&bench, "two"));
    one.let_go();
    two.let_go();
    let gateway = Gateway::start(bench, &one.table("one", ""));
    let caller = gateway.caller();
    assert_eq!(caller.tools(), ["one__wait"]);
    assert_eq!(said(&caller.call("one__wait", &json!({}))), "done");
    let before = one.running();
    assert_eq!(before.len(), 1);

    write_settings(gateway.bench(), &(one.table("one", "") + &two.table("two", "")));
    gateway.reload().exits(0).says("added: `two`").never_says("changed:");
    assert_eq!(caller.tools(), ["one__wait", "two__wait"]);
    assert_eq!(said(&caller.call("two__wait", &json!({}))), "done");
    assert_eq!(said(&caller.call("one__wait", &json!({}))), "done");
    assert_eq!(one.running(), before, "a server that did not change was replaced");

    write_settings(gateway.bench(), &two.table("two", ""));
    gateway.reload().exits(0).says("removed: `one`");
    assert_eq!(caller.tools(), ["two__wait"]);
    wait_for("the removed server to end", || one.running().is_empty().then_some(()));
    assert!(caller.call("one__wait", &json!({}))["error"].is_object());

    write_settings(
        gateway.bench(),
        &two.table("two", "risk = \"medium\"").replacen("risk = \"low\"\n", "", 1),
    );
    gateway.reload().exits(0).says("changed: `two`");
    assert_eq!(said(&caller.call("two__wait", &json!({}))), "done");
    gateway.end().1.exits(0);
}

#[test]
fn a_call_to_a_server_that_is_removed_finishes() {
    let bench = Bench::new();
    let one = WaitingServer::new(&bench, "one");
    let gateway = Gateway::start(bench, &one.table("one", ""));
    let caller = gateway.caller();
    assert_eq!(caller.tools(), ["one__wait"]);
    let call = caller.begin_to_ask("tools/call", &json!({"name": "one__wait", "arguments": {}}));
    one.was_called();
    write_settings(gateway.bench(), "");
    gateway.reload().exits(0).says("removed: `one`");
    assert_eq!(one.running().len(), 1, "the server ended before its call");
    one.let_go();
    assert_eq!(said(&call.finish().message()), "done");
    wait_for("the removed server to end", || one.running().is_empty().then_some(()));
    gateway.end().1.exits(0);
}

#[test]
fn a_mistake_changes_nothing() {
    let bench = Bench::new();
    let one = WaitingServer::new(&bench, "one");
    one.let_go();
    let gateway = Gateway::start(bench, &one.table("one", ""));
    let caller = gateway.caller();
    assert_eq!(caller.tools(), ["one__wait"]);

    write_settings(gateway.bench(), "[[server]]\nid = \"a__b\"\n");
    gateway.reload().exits(2).says("a__b");
    // A mistake that only the running gateway can detect.
    write_settings(
        gateway.bench(),
        "[[server]]\nid = \"gone\"\ntrust = \"internal\"\ncommand = [\"/no/such/program\"]\n",
    );
    gateway
        .reload()
        .exits(2)
        .says("nothing was changed: `server.gone`: the program `/no/such/program` was not found");
    write_settings(gateway.bench(), &one.table("one", ""));
    gateway
        .bench()
        .file("all.cedar", "permit (principal, action == Action::\"nonsense\", resource);");
    gateway.reload().exits(2).says("nothing was changed");
    assert_eq!(said(&caller.call("one__wait", &json!({}))), "done");

    // Policies apply once they are correct.
    gateway.bench().file("all.cedar", "@id(\"none\") forbid (principal, action, resource);");
    gateway.reload().exits(0);
    assert_eq!(caller.tools(), Vec::<String>::new());
    gateway.end().1.exits(0);
}

#[test]
fn keys_that_need_a_restart_are_named() {
    let gateway = Gateway::start(Bench::new(), "");
    let text = std::fs::read_to_string(gateway.bench().path("gateway.toml")).unwrap();
    gateway.bench().file("gateway.toml", text.replace("127.0.0.1:0", "127.0.0.1:1"));
    gateway.reload().exits(0).says("restart the gateway for `gateway.listen`");
    assert_eq!(gateway.caller().tools(), Vec::<String>::new());
    gateway.end().1.exits(0);
}

#[test]
fn without_a_gateway_there_is_nothing_to_reload() {
    let bench = Bench::new();
    bench.run(["gateway", "reload"]).exits(11).says("no gateway runs from this home");
    let gateway = Gateway::start(bench, "");
    let other = gateway.bench().file("other.toml", "");
    let words = ["gateway", "reload", "--config", other.to_str().unwrap()];
    gateway.bench().run(words).exits(2).says("restart it to use another file");
    let (bench, ended) = gateway.end();
    ended.exits(0);
    bench.run(["gateway", "reload"]).exits(11);
}
