//! Which messages count as answers, and how all others are handled.

use crate::client::{Client, Heard, endpoint, limits, request, response};
use crate::server::{
    Seen, Server, Step, accepted, chunk, event, json, respond, result, stream_end, stream_head,
};
use crate::sessions::{no_stream, session};
use std::time::Duration;
use wire::remote::{FailureKind, Outbound, RemoteLimits};

/// What the client receives when a request is answered like this.
fn heard(answer: impl Fn(&Seen) -> Vec<Step> + Send + Sync + 'static) -> Heard {
    let server = Server::start(answer);
    let client = Client::new(&server);
    client.ask(1, "a");
    let heard = client.hear();
    assert_eq!(client.finish(), []);
    heard
}

fn message(text: &str) -> Heard {
    Heard::Message(text.to_owned())
}

fn failed(kind: FailureKind, text: &str) -> Heard {
    Heard::Failed { id: "1".to_owned(), kind, text: text.to_owned() }
}

fn unreadable(reason: &str) -> Heard {
    failed(FailureKind::Unreadable, &format!("the server's answer cannot be read: {reason}"))
}

/// A response of exactly this many bytes.
fn sized(request: &Seen, bytes: usize) -> String {
    let empty = result(request, r#"{"x":""}"#);
    let filling = "x".repeat(bytes - empty.len());
    result(request, &format!(r#"{{"x":"{filling}"}}"#))
}

const JSON: &str = "content-type: application/json\r\n";

#[test]
fn the_bytes_of_an_answer_stay_as_they_are() {
    let text = r#"{ "result" : {"a":1e2,"a":1.0,"ü":"\u00fc"},"id":1, "jsonrpc":"2.0","_x":null }"#;
    assert_eq!(heard(move |_| json(text)), message(text));
    assert_eq!(heard(move |_| vec![stream_head(""), event(text), stream_end()]), message(text));
}

#[test]
fn line_breaks_between_tokens_become_spaces_and_within_strings_are_refused() {
    let broken = "{\n  \"jsonrpc\": \"2.0\",\r\n  \"id\": 1,\n\"result\": {\"a\":\"\\n\"}}\n";
    let whole = "{   \"jsonrpc\": \"2.0\",    \"id\": 1, \"result\": {\"a\":\"\\n\"}} ";
    assert_eq!(heard(move |_| json(broken)), message(whole));
    let lines = "data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":1,\"result\":{}}\n\n";
    let streamed = heard(move |_| vec![stream_head(""), chunk(lines), stream_end()]);
    assert_eq!(streamed, message("{\"jsonrpc\":\"2.0\", \"id\":1,\"result\":{}}"));
    let within = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"x\ny\"}}";
    assert_eq!(heard(move |_| json(within)), unreadable("a line break within a JSON string"));
    let lines = "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"x\ndata: y\"}}\n\n";
    let streamed = heard(move |_| vec![stream_head(""), chunk(lines), stream_end()]);
    assert_eq!(streamed, unreadable("a line break within a JSON string"));
}

#[test]
fn bodies_and_events_are_read_at_the_limit_and_not_one_past_it() {
    let limit = limits().frame_bytes;
    let streamed = |request: &Seen, bytes: usize| {
        vec![stream_head(""), event(&sized(request, bytes)), stream_end()]
    };
    for at in [
        heard(move |request| json(&sized(request, limit))),
        heard(move |request| streamed(request, limit)),
    ] {
        assert!(matches!(at, Heard::Message(text) if text.len() == limit));
    }
    let expected = unreadable(&format!("a message longer than {limit} bytes"));
    assert_eq!(heard(move |request| json(&sized(request, limit + 1))), expected);
    assert_eq!(heard(move |request| streamed(request, limit + 1)), expected);
    let endless = heard(|_| vec![stream_head(""), chunk(&"x".repeat(50_000)), Step::AwaitClosing]);
    assert_eq!(endless, expected);
}

#[test]
fn a_body_that_is_not_the_answer_is_none() {
    let not =
        |status: &str| unreadable(&format!("status {status} with a body that is not the answer"));
    assert_eq!(heard(|_| accepted()), not("202 Accepted"));
    assert_eq!(heard(|_| json("hello")), not("200 OK"));
    assert_eq!(heard(|_| json(r#"{"jsonrpc":"2.0","id":2,"result":{}}"#)), not("200 OK"));
    assert_eq!(heard(|_| json(r#"{"jsonrpc":"2.0","id":"1","result":{}}"#)), not("200 OK"));
    assert_eq!(heard(|_| json(r#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#)), not("200 OK"));
    let twice = r#"{"jsonrpc":"2.0","id":1,"id":1,"result":{}}"#;
    assert_eq!(heard(move |_| json(twice)), not("200 OK"));
    let packed = heard(|request| {
        let headers = format!("{JSON}content-encoding: gzip\r\n");
        respond("200 OK", &headers, &result(request, "{}"))
    });
    assert_eq!(packed, unreadable("a body in a content encoding that was not asked for"));
    let plain = heard(|request| {
        let headers = format!("{JSON}content-encoding: identity\r\n");
        respond("200 OK", &headers, &result(request, "{}"))
    });
    assert_eq!(plain, message(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#));
}

#[test]
fn an_answer_has_a_hundred_headers_at_most() {
    let answered = |headers: usize| {
        // The type and the length are two more.
        let more: String = (2..headers).map(|number| format!("x-{number}: y\r\n")).collect();
        heard(move |request| respond("200 OK", &format!("{JSON}{more}"), &result(request, "{}")))
    };
    let whole = message(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    assert_eq!(answered(100), whole);
    assert_ne!(answered(101), whole);
}

#[test]
fn a_refusing_status_with_an_error_of_the_protocol_is_an_answer_with_the_requests_id() {
    let refused =
        |status: &'static str, body: &'static str| heard(move |_| respond(status, JSON, body));
    let own = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"x"}}"#;
    assert_eq!(refused("400 Bad Request", own), message(own));
    let without = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"x"}}"#;
    assert_eq!(refused("400 Bad Request", without), message(own));
    let other = r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32602,"message":"x"}}"#;
    assert_eq!(refused("406 Not Acceptable", other), message(own));
    assert_eq!(refused("200 OK", without), message(own));
    let status = "the server answered with status 400 Bad Request";
    let expected = failed(FailureKind::Unreachable, status);
    let result = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    assert_eq!(refused("400 Bad Request", result), expected);
    assert_eq!(refused("400 Bad Request", r#"{"error":"x"}"#), expected);
}

#[test]
fn a_sign_in_is_asked_for() {
    let plain = heard(|_| respond("401 Unauthorized", "", ""));
    let text = "the server needs a sign-in (status 401, without WWW-Authenticate); give its token as a header";
    assert_eq!(plain, failed(FailureKind::NeedsSignIn, text));
    let challenged = heard(|_| {
        let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}"#;
        respond("401 Unauthorized", "www-authenticate: Bearer realm=\"x\"\r\n", error)
    });
    let text =
        "the server needs a sign-in (status 401 with WWW-Authenticate); give its token as a header";
    assert_eq!(challenged, failed(FailureKind::NeedsSignIn, text));
}

#[test]
fn redirects_are_followed_neither_elsewhere_nor_within_the_server() {
    let target = Server::start(|request| json(&result(request, "{}")));
    let elsewhere = format!("location: http://{}/mcp?token=1\r\n", target.address);
    let origin = format!("http://{}", target.address);
    let locations = [
        (elsewhere, origin),
        ("location: /other\r\n".to_owned(), "another path of the same server".to_owned()),
    ];
    for (location, shown) in locations {
        let server = Server::start(move |_| respond("307 Temporary Redirect", &location, ""));
        let client = Client::new(&server);
        client.ask(1, "a");
        let text = format!(
            "the server redirects to `{shown}` (status 307 Temporary Redirect); redirects are not followed, give that URL yourself if you trust it"
        );
        assert_eq!(client.hear_failure(1), (FailureKind::Unreachable, text));
        client.finish();
        assert_eq!(server.seen().len(), 1);
    }
    assert!(target.seen().is_empty());
}

#[test]
fn everything_on_a_stream_is_heard_in_order_and_behind_the_answer_too() {
    let note = |number: u32| format!(r#"{{"jsonrpc":"2.0","method":"notifications/n{number}"}}"#);
    let server = Server::start(move |request| {
        let mut steps = vec![stream_head("")];
        steps.extend((0..40).map(|number| event(&note(number))));
        steps.push(event(r#"{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage"}"#));
        steps.push(event("not JSON at all"));
        steps.push(event(&result(request, "{}")));
        steps.push(event(&note(40)));
        steps.push(stream_end());
        steps
    });
    let client = Client::new(&server);
    client.ask(1, "a");
    for number in 0..40 {
        assert_eq!(client.hear_message(), note(number));
    }
    assert!(client.hear_message().contains("sampling/createMessage"));
    assert_eq!(client.hear_message(), "not JSON at all");
    assert_eq!(client.hear_message(), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    assert_eq!(client.hear_message(), note(40));
    client.finish();
}

#[test]
fn ids_are_compared_by_type_and_by_what_they_say() {
    let server = Server::start(|_| json(r#"{"jsonrpc":"2.0","id":"a/b","result":{}}"#));
    let client = Client::new(&server);
    let with_id = |id: &str| Outbound { id: Some(id.as_bytes().to_vec()), ..request(0, "a") };
    client.send(with_id(r#""a\/b""#)).unwrap();
    assert!(client.hear_message().contains("a/b"));
    client.send(with_id(r#""a\\b""#)).unwrap();
    assert!(matches!(client.hear(), Heard::Failed { id, .. } if id == r#""a\\b""#));
    client.finish();
}

#[test]
fn a_notification_or_response_that_is_refused_stops_nothing() {
    let server = session(no_stream, |request| match request.body["id"].as_u64() {
        Some(1) => json(&result(request, "{}")),
        _ => respond("500 Internal Server Error", "", ""),
    });
    let client = Client::new(&server);
    client.initialize();
    client.tell("notifications/x");
    client.send(response(7)).unwrap();
    server.wait_for(|seen| seen.rpc_method() == "notifications/x", 1);
    server.wait_for(|seen| seen.body["id"] == 7, 1);
    client.ask(1, "a");
    assert_eq!(client.hear_message(), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    assert_eq!(client.finish(), []);
}

#[test]
fn a_notification_is_through_with_its_status_whatever_comes_behind() {
    let server = session(no_stream, |request| match request.rpc_method() {
        "notifications/x" => vec![stream_head(""), Step::AwaitClosing],
        _ => accepted(),
    });
    let client = Client::new(&server);
    client.initialize();
    client.tell("notifications/x");
    client.tell("notifications/y");
    server.wait_for(|seen| seen.rpc_method() == "notifications/y", 1);
    server.wait_for(|seen| seen.method == "CLOSED", 1);
    client.finish();
}

#[test]
fn what_is_unfinished_on_all_streams_together_is_bounded() {
    let limit = limits().frame_bytes;
    let server = Server::start(move |request| match request.rpc_method() {
        "fills" => {
            vec![
                stream_head(""),
                chunk(&format!("data: {}", "x".repeat(limit - 10))),
                Step::AwaitClosing,
            ]
        }
        "body" => vec![
            Step::Write(format!("HTTP/1.1 200 OK\r\ncontent-length: {limit}\r\n\r\n").into()),
            Step::Write(vec![b'x'; limit - 10]),
            Step::AwaitClosing,
        ],
        _ => json(&result(request, "{}")),
    });
    let limits = RemoteLimits { shutdown_grace: Duration::ZERO, ..limits() };
    let client = Client::with(endpoint(&server.url()), limits);
    for id in 0..12 {
        client.ask(id, if id % 2 == 0 { "fills" } else { "body" });
    }
    // There is room for eight. Which of the others fail depends on the order in which their bytes
    // arrive.
    let expected = format!(
        "the server's answer cannot be read: more than {} bytes of unfinished messages at once",
        8 * limit
    );
    for _ in 0..4 {
        let heard = client.hear();
        let Heard::Failed { kind: FailureKind::Unreadable, text, .. } = heard else {
            panic!("expected a failure, heard {heard:?}");
        };
        assert_eq!(text, expected);
    }
    client.ask(12, "small");
    assert_eq!(client.hear_message(), r#"{"jsonrpc":"2.0","id":12,"result":{}}"#);
    let rest = client.finish();
    let is_cut_off =
        |heard: &Heard| matches!(heard, Heard::Failed { kind: FailureKind::Unreachable, .. });
    assert!(rest.len() == 8 && rest.iter().all(is_cut_off), "{rest:?}");
}

#[test]
fn an_answer_in_a_batch_on_a_stream_ends_the_request() {
    let server = Server::start(|request| {
        let batch = format!(
            r#"[{{"jsonrpc":"2.0","method":"notifications/x"}},{}]"#,
            result(request, "{}")
        );
        vec![stream_head(""), crate::server::event_with_id("7", &batch), stream_end()]
    });
    let client = Client::new(&server);
    client.ask(1, "a");
    assert!(client.hear_message().starts_with(r#"[{"jsonrpc""#));
    assert_eq!(client.finish(), []);
    assert!(server.seen().iter().all(|seen| seen.method == "POST"), "it is not asked for again");
}
