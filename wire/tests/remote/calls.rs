//! Many calls at once, their connections, and how they end.

use crate::client::{Client, Heard, cancel, endpoint, limits, request, response};
use crate::server::{
    Gate, Seen, Server, Step, accepted, chunk, event, json, respond, result, stream_end,
    stream_head,
};
use crate::sessions::{no_stream, session};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use wire::HttpEndpoint;
use wire::remote::{FailureKind, RemoteLimits, remote};

fn answered(id: u32) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
}

#[test]
fn a_fast_call_is_answered_while_a_slow_one_streams() {
    let gate = Gate::new();
    let held = gate.clone();
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#;
    let server = Server::start(move |request| match request.rpc_method() {
        "slow" => vec![
            stream_head(""),
            event(progress),
            Step::Wait(held.clone()),
            event(progress),
            event(&result(request, "{}")),
            stream_end(),
        ],
        _ => json(&result(request, "{}")),
    });
    let client = Client::new(&server);
    client.ask(1, "slow");
    assert_eq!(client.hear_message(), progress);
    for id in 2..20 {
        client.ask(id, "fast");
        assert_eq!(client.hear_message(), answered(id));
    }
    gate.open();
    assert_eq!(client.hear_message(), progress);
    assert_eq!(client.hear_message(), answered(1));
    client.finish();
}

#[test]
fn one_connection_serves_calls_one_after_the_other() {
    let server = Server::start(|request| match request.body["id"].as_u64() {
        Some(id) if id % 2 == 0 => {
            // In one piece, so that the end arrives together with the answer.
            let steps = [stream_head(""), event(&result(request, "{}")), stream_end()];
            let pieces = steps.into_iter().flat_map(|step| match step {
                Step::Write(bytes) => bytes,
                _ => Vec::new(),
            });
            vec![Step::Write(pieces.collect())]
        }
        _ => json(&result(request, "{}")),
    });
    let client = Client::new(&server);
    for id in 0..10 {
        client.ask(id, "a");
        assert_eq!(client.hear_message(), answered(id));
    }
    assert_eq!(server.seen().iter().map(|seen| seen.connection).max(), Some(0));
    client.finish();
}

#[test]
fn a_connection_that_the_server_closes_is_replaced_and_no_call_is_sent_twice() {
    let server = Server::start(|request| {
        let closing = "content-type: application/json\r\nconnection: close\r\n";
        let mut steps = respond("200 OK", closing, &result(request, "{}"));
        steps.push(Step::Close);
        steps
    });
    let client = Client::new(&server);
    for id in 0..5 {
        client.ask(id, "a");
        assert_eq!(client.hear_message(), answered(id));
    }
    assert_eq!(server.seen().len(), 5);
    client.finish();
    let server = Server::start(|request| match request.rpc_method() {
        "dies" => vec![Step::Close],
        _ => json(&result(request, "{}")),
    });
    let client = Client::new(&server);
    client.ask(1, "a");
    client.hear_message();
    client.ask(2, "dies");
    let (kind, text) = client.hear_failure(2);
    assert_eq!(kind, FailureKind::Unreachable);
    assert!(text.starts_with("the connection to `127.0.0.1` was lost"), "{text}");
    assert_eq!(server.seen().len(), 2, "a call that may have been carried out is not sent again");
    client.finish();
}

/// A server that holds calls until the gate is open.
fn holding(gate: Gate) -> Server {
    Server::start(move |request| {
        let mut steps = json(&result(request, "{}"));
        if request.rpc_method() == "hold" {
            steps.insert(0, Step::Wait(gate.clone()));
        }
        steps
    })
}

#[test]
fn calls_past_the_limit_wait_and_are_not_lost() {
    const MAX_REQUESTS: usize = 64;
    let gate = Gate::new();
    let server = holding(gate.clone());
    let client = Client::new(&server);
    for id in 0..MAX_REQUESTS as u32 {
        client.ask(id, "hold");
    }
    server.wait_for(|seen| seen.rpc_method() == "hold", MAX_REQUESTS);
    client.ask(1_000, "past");
    // A later notification has room and reaches the server.
    client.tell("notifications/x");
    server.wait_for(|seen| seen.rpc_method() == "notifications/x", 1);
    assert!(server.seen().iter().all(|seen| seen.rpc_method() != "past"));
    gate.open();
    let mut heard: Vec<_> = (0..=MAX_REQUESTS).map(|_| client.hear_message()).collect();
    heard.sort();
    let mut expected: Vec<_> = (0..MAX_REQUESTS as u32).chain([1_000]).map(answered).collect();
    expected.sort();
    assert_eq!(heard, expected);
    client.finish();
}

#[test]
fn a_call_that_waits_is_cancelled_without_having_been_sent() {
    let gate = Gate::new();
    let server = holding(gate.clone());
    let client = Client::new(&server);
    for id in 0..64 {
        client.ask(id, "hold");
    }
    client.ask(1_000, "waits");
    client.send(cancel(1_000)).unwrap();
    assert_eq!(client.hear_failure(1_000).0, FailureKind::Cancelled);
    gate.open();
    for _ in 0..64 {
        client.hear_message();
    }
    assert_eq!(client.finish(), []);
    assert!(server.seen().iter().all(|seen| seen.rpc_method() == "hold"));
}

#[test]
fn the_sender_blocks_when_everything_is_full_and_goes_on_when_there_is_room() {
    let gate = Gate::new();
    let server = holding(gate.clone());
    let client = Client::new(&server);
    let sender = client.sender.clone().unwrap();
    // In flight, waiting, and in the queue.
    let places: u32 = 64 + 256 + 4;
    let (sent, count) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        for id in 0..places + 2 {
            sender.send(request(id, "hold")).unwrap();
            sent.send(()).unwrap();
        }
    });
    let sent = |number: u32| {
        (0..number).for_each(|_| count.recv_timeout(crate::server::PATIENCE).unwrap());
    };
    let is_held = |seen: &Seen| seen.rpc_method() == "hold";
    sent(places);
    server.wait_for(is_held, 64);
    assert!(count.try_recv().is_err(), "one past the limit blocks");
    // Each answer makes room for one more.
    gate.let_through(1);
    client.hear_message();
    sent(1);
    server.wait_for(is_held, 65);
    assert!(count.try_recv().is_err(), "the next one blocks again");
    gate.open();
    sent(1);
    thread.join().unwrap();
    for _ in 0..=places {
        client.hear_message();
    }
    client.finish();
}

#[test]
fn notifications_arrive_in_their_order() {
    let server = session(no_stream, |_| accepted());
    let client = Client::new(&server);
    client.initialize();
    let names: Vec<_> = (0..50).map(|number| format!("notifications/n{number}")).collect();
    for name in &names {
        client.tell(name);
    }
    client.finish();
    let seen = server.seen();
    let arrived: Vec<_> = seen.iter().map(Seen::rpc_method).filter(|m| m.contains("/n")).collect();
    assert_eq!(arrived, names);
}

#[test]
fn calls_are_still_answered_when_the_senders_are_gone_but_not_for_ever() {
    let gate = Gate::new();
    let server = holding(gate.clone());
    let mut client = Client::new(&server);
    client.ask(1, "hold");
    server.wait_for(|seen| seen.rpc_method() == "hold", 1);
    client.close();
    gate.open();
    assert_eq!(client.finish(), [Heard::Message(answered(1))]);

    let server = holding(Gate::new());
    let limits = RemoteLimits { shutdown_grace: Duration::from_millis(100), ..limits() };
    let client = Client::with(endpoint(&server.url()), limits);
    client.ask(1, "hold");
    server.wait_for(|seen| seen.rpc_method() == "hold", 1);
    let text = "the connection to the server was ended before the answer came".to_owned();
    let kind = FailureKind::Unreachable;
    assert_eq!(client.finish(), [Heard::Failed { id: "1".to_owned(), kind, text }]);
}

#[test]
fn a_server_that_says_nothing_is_given_up() {
    let server = Server::start(|request| match request.rpc_method() {
        "streams" => vec![stream_head(""), chunk(": hello\n\n"), Step::AwaitClosing],
        "body" => vec![
            Step::Write(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{".to_vec()),
            Step::AwaitClosing,
        ],
        _ => vec![Step::AwaitClosing],
    });
    let limits = RemoteLimits { idle_timeout: Duration::from_millis(300), ..limits() };
    let client = Client::with(endpoint(&server.url()), limits);
    for (id, method) in [(1, "silent"), (2, "streams"), (3, "body")] {
        client.ask(id, method);
        let expected = (FailureKind::TimedOut, "the server sent nothing for 0.3 s".to_owned());
        assert_eq!(client.hear_failure(id), expected, "{method}");
    }
    server.wait_for(|seen| seen.method == "CLOSED", 3);
    client.finish();
}

#[test]
fn given_headers_go_with_everything_and_those_of_the_protocol_are_refused() {
    let server = session(no_stream, |request| json(&result(request, "{}")));
    let with = |name: &str| HttpEndpoint {
        headers: vec![(name.parse().unwrap(), "Bearer hidden".parse().unwrap())],
        ..endpoint(&server.url())
    };
    let client = Client::with(with("authorization"), limits());
    client.initialize();
    server.wait_for(|seen| seen.method == "GET", 1);
    client.finish();
    let seen = server.seen();
    assert!(seen.iter().all(|seen| seen.header("authorization") == Some("Bearer hidden")));
    let client = Client::with(with("mcp-session-id"), limits());
    match client.hear() {
        Heard::Ended { text, .. } => {
            assert_eq!(
                text,
                "the header `mcp-session-id` is set by the protocol and cannot be given"
            );
        }
        other => panic!("{other:?}"),
    }
    client.finish();
    assert_eq!(server.seen().len(), seen.len());
}

#[test]
fn nothing_of_a_message_is_in_what_is_shown_for_debugging() {
    let (sender, far) = remote(endpoint("http://127.0.0.1:1/"), limits());
    let mut message = request(1, "tools/call");
    message.body = b"secret".to_vec();
    message.name = Some("secret".to_owned());
    assert!(!format!("{message:?} {sender:?} {far:?}").contains("secret"));
}

#[test]
fn a_port_where_nobody_listens_fails_each_call_and_is_tried_again() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let client = Client::with(endpoint(&format!("http://{address}/")), limits());
    client.ask(1, "a");
    let (kind, text) = client.hear_failure(1);
    assert_eq!(kind, FailureKind::Unreachable);
    assert!(text.starts_with("could not connect to `127.0.0.1`"), "{text}");
    let up = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&up);
    let _server = Server::start_at(&address.to_string(), move |request| {
        seen.store(true, Ordering::Release);
        json(&result(request, "{}"))
    });
    client.ask(2, "a");
    assert_eq!(client.hear_message(), answered(2));
    assert!(up.load(Ordering::Acquire));
    client.finish();
}

#[test]
fn statuses_are_said_in_words_without_what_the_body_says() {
    let server = Server::start(|request| {
        respond(&format!("{} Whatever", request.rpc_method()), "", "secret token abc")
    });
    let client = Client::new(&server);
    let check = |id: u32, status: &str, expected: &str| {
        client.ask(id, status);
        assert_eq!(client.hear_failure(id), (FailureKind::Unreachable, expected.to_owned()));
    };
    check(1, "500", "the server answered with status 500 Internal Server Error");
    check(
        2,
        "403",
        "the server answered with status 403 Forbidden; it refuses this client or its credentials",
    );
    client.finish();
}

/// A server with a session that accepts messages of this kind only once the gate is open.
fn reluctant(gate: Gate, is_held: impl Fn(&Seen) -> bool + Send + Sync + 'static) -> Server {
    session(no_stream, move |request| {
        let is_request = request.rpc_method() != "" && !request.body["id"].is_null();
        let mut steps = if is_request { json(&result(request, "{}")) } else { accepted() };
        if is_held(request) {
            steps.insert(0, Step::Wait(gate.clone()));
        }
        steps
    })
}

#[test]
fn answers_to_the_server_have_places_of_their_own_up_to_a_limit() {
    const MAX_RESPONSES: usize = 16;
    let gate = Gate::new();
    let is_held = |request: &Seen| !request.body["id"].is_null();
    let server = reluctant(gate.clone(), is_held);
    let client = Client::new(&server);
    client.initialize();
    for id in 0..65 {
        client.ask(id, "waits for an answer");
    }
    for id in 0..=MAX_RESPONSES as u32 {
        client.send(response(id)).unwrap();
    }
    let is_response = |seen: &Seen| seen.body.get("result").is_some();
    server.wait_for(is_response, MAX_RESPONSES);
    client.barrier();
    assert_eq!(server.wait_for(is_response, MAX_RESPONSES).len(), MAX_RESPONSES);
    gate.open();
    server.wait_for(is_response, MAX_RESPONSES + 1);
    client.finish();
}

#[test]
fn a_notification_that_is_not_accepted_does_not_keep_the_next_one_for_ever() {
    let is_held = |request: &Seen| request.rpc_method() == "notifications/a";
    let server = reluctant(Gate::new(), is_held);
    let limits = RemoteLimits { accept_timeout: Duration::from_millis(200), ..limits() };
    let client = Client::with(endpoint(&server.url()), limits);
    client.initialize();
    client.tell("notifications/a");
    client.tell("notifications/b");
    server.wait_for(|seen| seen.rpc_method() == "notifications/a", 1);
    assert!(server.seen().iter().all(|seen| seen.rpc_method() != "notifications/b"));
    server.wait_for(|seen| seen.rpc_method() == "notifications/b", 1);
    client.finish();
}

#[test]
fn a_connection_is_kept_behind_an_acceptance_with_a_body_up_to_the_limit() {
    let connections = |bytes: usize| {
        let server = session(no_stream, move |_| respond("200 OK", "", &"x".repeat(bytes)));
        let client = Client::new(&server);
        client.initialize();
        server.wait_for(|seen| seen.method == "GET", 1);
        client.tell("notifications/a");
        client.tell("notifications/b");
        client.finish();
        let seen = server.seen();
        let of = |name: &str| seen.iter().find(|s| s.rpc_method() == name).unwrap().connection;
        (of("notifications/a"), of("notifications/b"))
    };
    let (first, second) = connections(64 * 1024);
    assert_eq!(first, second);
    let (first, second) = connections(64 * 1024 + 1);
    assert_ne!(first, second);
}
