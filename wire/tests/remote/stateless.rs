//! The stateless era: headers made from each request, and cancellation by closing.

use crate::client::{Client, cancel, stateless};
use crate::server::{
    Gate, Server, Step, chunk, event, event_with_id, json, result, stream_end, stream_head,
};
use wire::remote::{FailureKind, Outbound};

#[test]
fn each_request_has_its_headers_and_there_is_no_session_and_no_stream() {
    let server = Server::start(|request| {
        let headers = "content-type: application/json\r\nmcp-session-id: s-1\r\n";
        crate::server::respond("200 OK", headers, &result(request, "{}"))
    });
    let client = Client::new(&server);
    let names = [None, Some("get_weather"), Some("wetter_für")];
    for (id, name) in (1..).zip(names) {
        client.send(stateless(id, "tools/call", name)).unwrap();
        client.hear_message();
    }
    let note = stateless(0, "notifications/x", None);
    client.send(Outbound { id: None, ..note }).unwrap();
    assert_eq!(client.finish(), []);
    let seen = server.seen();
    assert_eq!(seen.len(), 4, "{seen:?}");
    for request in &seen {
        assert_eq!(request.method, "POST");
        assert_eq!(request.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(request.header("mcp-method"), Some(request.rpc_method()));
        assert_eq!(request.header("mcp-session-id"), None);
    }
    let sent: Vec<_> = seen.iter().map(|seen| seen.header("mcp-name")).collect();
    assert_eq!(sent, [None, Some("get_weather"), Some("=?base64?d2V0dGVyX2bDvHI=?="), None]);
}

#[test]
fn a_request_is_cancelled_by_closing_its_stream_and_others_go_on() {
    let gate = Gate::new();
    let held = gate.clone();
    let server = Server::start(move |request| match request.rpc_method() {
        "cancelled" => vec![stream_head(""), chunk(": alive\n\n"), Step::AwaitClosing],
        "other" => vec![
            stream_head(""),
            Step::Wait(held.clone()),
            event(&result(request, "{}")),
            stream_end(),
        ],
        _ => json(&result(request, "{}")),
    });
    let client = Client::new(&server);
    client.send(stateless(1, "cancelled", None)).unwrap();
    client.send(stateless(2, "other", None)).unwrap();
    server.wait_for(|seen| seen.method == "POST", 2);
    client.send(cancel(1)).unwrap();
    assert_eq!(client.hear_failure(1).0, FailureKind::Cancelled);
    server.wait_for(|seen| seen.method == "CLOSED", 1);
    client.send(cancel(77)).unwrap();
    gate.open();
    assert_eq!(client.hear_message(), r#"{"jsonrpc":"2.0","id":2,"result":{}}"#);
    assert_eq!(client.finish(), []);
    assert!(server.seen().iter().all(|seen| seen.rpc_method() != "notifications/cancelled"));
}

#[test]
fn a_stream_is_not_taken_up_again() {
    let server = Server::start(|_| {
        let note = r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#;
        vec![stream_head(""), event_with_id("1", note), stream_end()]
    });
    let client = Client::new(&server);
    client.send(stateless(1, "a", None)).unwrap();
    client.hear_message();
    assert_eq!(client.hear_failure(1).0, FailureKind::Unreadable);
    client.finish();
    assert_eq!(server.seen().len(), 1);
}

#[test]
fn a_stream_of_subscriptions_stays_open_beside_calls() {
    let gate = Gate::new();
    let held = gate.clone();
    let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let server = Server::start(move |request| match request.rpc_method() {
        "subscriptions/listen" => vec![
            stream_head(""),
            event(changed),
            Step::Wait(held.clone()),
            event(changed),
            Step::AwaitClosing,
        ],
        _ => json(&result(request, "{}")),
    });
    let client = Client::new(&server);
    client.send(stateless(1, "subscriptions/listen", None)).unwrap();
    assert_eq!(client.hear_message(), changed);
    client.send(stateless(2, "tools/call", Some("a"))).unwrap();
    assert!(client.hear_message().contains("result"));
    gate.open();
    assert_eq!(client.hear_message(), changed);
    client.send(cancel(1)).unwrap();
    assert_eq!(client.hear_failure(1).0, FailureKind::Cancelled);
    server.wait_for(|seen| seen.method == "CLOSED", 1);
    client.finish();
}
