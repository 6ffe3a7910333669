//! Shutdown of a gateway: calls are answered, no process is left, and the receipts are signed.

use crate::bench::Bench;
use crate::running::{Gateway, WaitingServer, said};
use serde_json::json;

#[test]
fn a_call_in_flight_finishes_and_the_receipts_are_signed() {
    let bench = Bench::new();
    let one = WaitingServer::new(&bench, "one");
    let gateway = Gateway::start(bench, &one.table("one", ""));
    let caller = gateway.caller();
    assert_eq!(caller.tools(), ["one__wait"]);
    let mut stream = caller.listen();
    assert!(stream.head()[0].contains(" 200 "));
    let call = caller.begin_to_ask("tools/call", &json!({"name": "one__wait", "arguments": {}}));
    one.was_called();
    gateway.terminate();
    // The stream ends at once; the call continues.
    let heard = stream.rest();
    assert!(heard.ends_with("0\r\n\r\n"), "the stream was cut off: {heard}");
    one.let_go();
    assert_eq!(said(&call.finish().message()), "done");
    let (bench, ended) = gateway.finish();
    ended.exits(0);
    assert_eq!(one.running(), Vec::<String>::new());
    bench.run(["receipts", "verify"]).exits(0).says("0 lines are not covered by a checkpoint yet");
}

#[test]
fn a_server_that_ignores_the_end_of_its_input_is_not_left_behind() {
    let bench = Bench::new();
    let end = "trap '' TERM HUP\nsleep 1000 &\necho $! >> FOLDER/pids\nwhile :; do sleep 0.1; done";
    let folder = bench.path("one");
    let end = end.replace("FOLDER", folder.to_str().unwrap());
    let one = WaitingServer::ending(&bench, "one", &end);
    one.let_go();
    for instance in ["principal", "shared"] {
        let _ = std::fs::remove_file(folder.join("pids"));
        let bench = Bench::new();
        let gateway =
            Gateway::start(bench, &one.table("one", &format!("instance = \"{instance}\"")));
        let caller = gateway.caller();
        assert_eq!(caller.tools(), ["one__wait"]);
        assert_eq!(said(&caller.call("one__wait", &json!({}))), "done");
        assert_eq!(one.running().len(), 1, "{instance}");
        gateway.end().1.exits(0);
        assert_eq!(one.pids().len(), 2, "{instance}: its input was not closed");
        assert_eq!(one.running(), Vec::<String>::new(), "{instance}");
    }
}
