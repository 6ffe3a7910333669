//! The era of `initialize`: the session, its header, its stream and its end.

use crate::client::{Client, Heard, cancel, request, response, stateless};
use crate::server::{
    Gate, Seen, Server, Step, accepted, chunk, event, event_with_id, json, respond, result,
    stream_end, stream_head,
};
use wire::remote::{Closed, FailureKind, Outbound};

pub const INITIALIZED: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{}}"#;

/// A server with sessions; its responses to a GET and to other requests are given.
pub fn session(
    get: impl Fn(&Seen) -> Vec<Step> + Send + Sync + 'static,
    other: impl Fn(&Seen) -> Vec<Step> + Send + Sync + 'static,
) -> Server {
    Server::start(move |request| match (request.method.as_str(), request.rpc_method()) {
        ("GET", _) => get(request),
        ("DELETE", _) => respond("200 OK", "", ""),
        (_, "initialize") => {
            let headers = "content-type: application/json\r\nMcp-Session-Id: s-1\r\n";
            respond("200 OK", headers, &result(request, INITIALIZED))
        }
        (_, "notifications/initialized") => accepted(),
        _ => other(request),
    })
}

pub fn no_stream(_: &Seen) -> Vec<Step> {
    respond("405 Method Not Allowed", "allow: POST\r\n", "")
}

#[test]
fn the_session_and_its_version_go_with_everything_after_initialize() {
    let server = session(no_stream, |request| json(&result(request, "{}")));
    let client = Client::new(&server);
    client.initialize();
    client.ask(1, "tools/list");
    assert_eq!(client.hear_message(), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    server.wait_for(|seen| seen.method == "GET", 1);
    assert_eq!(client.finish(), []);
    let seen = server.seen();
    let steps: Vec<_> = seen.iter().map(|s| (s.method.as_str(), s.rpc_method())).collect();
    assert_eq!(&steps[..2], [("POST", "initialize"), ("POST", "notifications/initialized")]);
    assert_eq!(steps.last(), Some(&("DELETE", "")));
    assert_eq!(seen[0].header("mcp-session-id"), None);
    assert_eq!(seen[0].header("mcp-protocol-version"), None);
    for request in &seen[1..] {
        assert_eq!(request.header("mcp-session-id"), Some("s-1"), "{request:?}");
        assert_eq!(request.header("mcp-protocol-version"), Some("2025-11-25"), "{request:?}");
        assert_eq!(request.header("mcp-method"), None);
    }
    let accept = |method: &str| {
        let request = seen.iter().find(|seen| seen.method == method).unwrap();
        request.header("accept").unwrap().to_owned()
    };
    assert_eq!(accept("POST"), "application/json, text/event-stream");
    assert_eq!(accept("GET"), "text/event-stream");
}

#[test]
fn messages_wait_until_the_session_is_known_and_announced() {
    let (answer, accept) = (Gate::new(), Gate::new());
    let (answered, acceptance) = (answer.clone(), accept.clone());
    let server = Server::start(move |request| match request.rpc_method() {
        "initialize" => {
            let headers = "content-type: application/json\r\nMcp-Session-Id: s-1\r\n";
            let mut steps = respond("200 OK", headers, &result(request, INITIALIZED));
            steps.insert(0, Step::Wait(answered.clone()));
            steps
        }
        "notifications/initialized" => {
            let mut steps = accepted();
            steps.insert(0, Step::Wait(acceptance.clone()));
            steps
        }
        _ if request.method == "POST" => json(&result(request, "{}")),
        _ => no_stream(request),
    });
    let client = Client::new(&server);
    client.ask(0, "initialize");
    client.tell("notifications/initialized");
    client.ask(1, "tools/list");
    server.wait_for(|seen| seen.rpc_method() == "initialize", 1);
    client.barrier();
    assert_eq!(server.seen().len(), 1);
    answer.open();
    client.hear_message();
    server.wait_for(|seen| seen.rpc_method() == "notifications/initialized", 1);
    client.barrier();
    assert_eq!(server.seen().len(), 2);
    accept.open();
    client.hear_message();
    let list = server.wait_for(|seen| seen.rpc_method() == "tools/list", 1);
    assert_eq!(list[0].header("mcp-session-id"), Some("s-1"));
    client.finish();
}

#[test]
fn a_session_that_begins_on_a_stream_is_entered_before_its_answer() {
    let answered = Gate::new();
    let gate = answered.clone();
    let server =
        Server::start(move |request| match (request.method.as_str(), request.rpc_method()) {
            ("POST", "initialize") => vec![
                stream_head("mcp-session-id: s-2\r\n"),
                event(r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#),
                Step::Wait(gate.clone()),
                event(&result(request, INITIALIZED)),
                stream_end(),
            ],
            ("POST", "x") => json(&result(request, "{}")),
            ("POST", _) => accepted(),
            _ => no_stream(request),
        });
    let client = Client::new(&server);
    client.ask(0, "initialize");
    assert!(client.hear_message().contains("ping"));
    client.send(response(9)).unwrap();
    let ping = server.wait_for(|seen| seen.body["id"] == 9, 1);
    assert_eq!(ping[0].header("mcp-session-id"), Some("s-2"));
    assert_eq!(ping[0].header("mcp-protocol-version"), None);
    answered.open();
    assert!(client.hear_message().contains("protocolVersion"));
    client.tell("notifications/initialized");
    client.ask(1, "x");
    client.hear_message();
    let asked = server.wait_for(|seen| seen.rpc_method() == "x", 1);
    assert_eq!(asked[0].header("mcp-session-id"), Some("s-2"));
    assert_eq!(asked[0].header("mcp-protocol-version"), Some("2025-11-25"));
    client.finish();
}

#[test]
fn without_a_session_there_is_nothing_to_end() {
    let server = Server::start(|request| match request.rpc_method() {
        "initialize" => json(&result(request, INITIALIZED)),
        _ if request.method == "POST" => accepted(),
        _ => no_stream(request),
    });
    let client = Client::new(&server);
    client.initialize();
    let opened = server.wait_for(|seen| seen.method == "GET", 1);
    assert_eq!(opened[0].header("mcp-session-id"), None);
    client.finish();
    assert!(server.seen().iter().all(|seen| seen.method != "DELETE"));
}

#[test]
fn what_the_server_sends_unasked_is_heard_and_its_requests_are_answered() {
    let server = session(
        |_| {
            let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
            let asks = r#"{"jsonrpc":"2.0","id":5,"method":"roots/list"}"#;
            vec![stream_head(""), event(changed), event(asks), Step::AwaitClosing]
        },
        |_| accepted(),
    );
    let client = Client::new(&server);
    client.initialize();
    assert!(client.hear_message().contains("list_changed"));
    assert!(client.hear_message().contains("roots/list"));
    client.send(response(5)).unwrap();
    let answered = server.wait_for(|seen| seen.body["id"] == 5, 1);
    assert_eq!(answered[0].body["result"], serde_json::json!({}));
    assert_eq!(answered[0].header("mcp-session-id"), Some("s-1"));
    assert_eq!(client.finish(), []);
    server.wait_for(|seen| seen.method == "CLOSED", 1);
}

#[test]
fn the_servers_stream_is_opened_again_behind_the_last_event() {
    let note = |name: &str| format!(r#"{{"jsonrpc":"2.0","method":"notifications/{name}"}}"#);
    let server = session(
        move |request| match request.header("last-event-id") {
            None => vec![
                stream_head(""),
                chunk("retry: 60\n\n"),
                event_with_id("e-1", &note("first")),
                Step::Close,
            ],
            Some("e-1") => {
                vec![stream_head(""), event_with_id("e-2", &note("second")), stream_end()]
            }
            Some(_) => vec![stream_head(""), event(&note("third")), Step::AwaitClosing],
        },
        |_| accepted(),
    );
    let client = Client::new(&server);
    client.initialize();
    for name in ["first", "second", "third"] {
        assert_eq!(client.hear_message(), note(name));
    }
    let opened = server.wait_for(|seen| seen.method == "GET", 3);
    assert_eq!(opened[1].header("last-event-id"), Some("e-1"));
    assert_eq!(opened[2].header("last-event-id"), Some("e-2"));
    client.finish();
}

#[test]
fn a_stream_that_is_refused_is_not_asked_for_again_and_one_that_fails_is() {
    let refused = session(no_stream, |_| accepted());
    let failing = session(
        |_| {
            let mut steps = respond("503 Service Unavailable", "", "");
            steps.push(Step::Close);
            steps
        },
        |_| accepted(),
    );
    let clients = [Client::new(&refused), Client::new(&failing)];
    clients.iter().for_each(Client::initialize);
    failing.wait_for(|seen| seen.method == "GET", 2);
    assert_eq!(refused.wait_for(|seen| seen.method == "GET", 1).len(), 1);
    for client in clients {
        assert_eq!(client.finish(), []);
    }
}

#[test]
fn a_session_that_the_server_forgot_ends_everything() {
    let server = session(no_stream, |request| match request.rpc_method() {
        "hangs" => vec![Step::AwaitClosing],
        _ => respond(
            "404 Not Found",
            "content-type: application/json\r\n",
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#,
        ),
    });
    let client = Client::new(&server);
    client.initialize();
    client.ask(1, "hangs");
    server.wait_for(|seen| seen.rpc_method() == "hangs", 1);
    client.ask(2, "tools/call");
    let sentence = "the server no longer knows this session (status 404); reconnect";
    let failed = |id: u32| {
        let (id, text) = (id.to_string(), sentence.to_owned());
        Heard::Failed { id, kind: FailureKind::Unreachable, text }
    };
    assert_eq!(client.hear(), failed(2));
    assert_eq!(client.hear(), failed(1));
    let (kind, text) = (FailureKind::Unreachable, sentence.to_owned());
    assert_eq!(client.hear(), Heard::Ended { kind, text });
    assert_eq!(client.send(response(1)), Err(Closed));
    assert_eq!(client.finish(), []);
    assert!(server.seen().iter().all(|seen| seen.method != "DELETE"), "there is nothing to end");
}

#[test]
fn a_404_that_answers_the_request_or_comes_without_a_session_ends_nothing() {
    let answer = |request: &Seen| {
        let id = &request.body["id"];
        let text =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"no"}}}}"#);
        respond("404 Not Found", "content-type: application/json\r\n", &text)
    };
    let server = session(no_stream, answer);
    let client = Client::new(&server);
    client.initialize();
    client.ask(1, "unknown");
    assert!(client.hear_message().contains("-32601"));
    client.ask(2, "unknown");
    assert!(client.hear_message().contains("-32601"));
    client.finish();
    let server = Server::start(|_| respond("404 Not Found", "", ""));
    let client = Client::new(&server);
    client.ask(1, "a");
    assert!(client.hear_failure(1).1.contains("status 404"));
    client.ask(2, "a");
    assert!(client.hear_failure(2).1.contains("status 404"));
    client.finish();
}

#[test]
fn a_cancelled_call_gives_its_place_back_though_the_server_never_closes_its_stream() {
    let server = session(no_stream, |request| match request.rpc_method() {
        "slow" => vec![stream_head(""), chunk(": alive\n\n"), Step::AwaitClosing],
        _ => accepted(),
    });
    let client = Client::new(&server);
    client.initialize();
    client.ask(1, "slow");
    server.wait_for(|seen| seen.rpc_method() == "slow", 1);
    client.send(cancel(1)).unwrap();
    server.wait_for(|seen| seen.rpc_method() == "notifications/cancelled", 1);
    assert_eq!(client.hear_failure(1).0, FailureKind::Cancelled);
    server.wait_for(|seen| seen.method == "CLOSED", 1);
    client.finish();
}

#[test]
fn a_greeting_is_given_up_alone_though_the_next_one_has_its_id() {
    let greetings = std::sync::atomic::AtomicUsize::new(0);
    let server = Server::start(move |request| {
        match greetings.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => vec![Step::AwaitClosing],
            _ => json(&result(request, INITIALIZED)),
        }
    });
    let client = Client::new(&server);
    let greeting = |mark: u8| Outbound { mark: Some([mark; 16]), ..request(1, "initialize") };
    let give_up = |mark: u8| Outbound { mark: Some([mark; 16]), ..cancel(1) };
    client.send(greeting(1)).unwrap();
    server.wait_for(|seen| seen.rpc_method() == "initialize", 1);
    client.send(greeting(2)).unwrap();
    // Giving up a request that no longer exists has no effect.
    client.send(give_up(3)).unwrap();
    client.send(give_up(1)).unwrap();
    assert!(client.hear_message().contains("protocolVersion"), "the second is answered");
    client.send(give_up(1)).unwrap();
    client.finish();
}

#[test]
fn in_a_session_the_version_that_a_message_carries_itself_changes_nothing() {
    let server = session(no_stream, |request| json(&result(request, "{}")));
    let client = Client::new(&server);
    client.initialize();
    client.send(stateless(1, "tools/call", Some("a"))).unwrap();
    client.hear_message();
    client.finish();
    let called = server.wait_for(|seen| seen.rpc_method() == "tools/call", 1);
    assert_eq!(called[0].header("mcp-session-id"), Some("s-1"));
    assert_eq!(called[0].header("mcp-protocol-version"), Some("2025-11-25"));
    assert_eq!((called[0].header("mcp-method"), called[0].header("mcp-name")), (None, None));
}

#[test]
fn a_second_session_takes_the_place_of_the_first_with_its_stream() {
    let server = session(|_| vec![stream_head(""), Step::AwaitClosing], |_| accepted());
    let client = Client::new(&server);
    client.initialize();
    server.wait_for(|seen| seen.method == "GET", 1);
    client.initialize();
    server.wait_for(|seen| seen.method == "GET", 2);
    assert_eq!(server.wait_for(|seen| seen.method == "CLOSED", 1).len(), 1);
    let begun = server.wait_for(|seen| seen.rpc_method() == "initialize", 2);
    assert_eq!(begun[1].header("mcp-session-id"), None);
    assert_eq!(begun[1].header("mcp-protocol-version"), None);
    client.finish();
}
