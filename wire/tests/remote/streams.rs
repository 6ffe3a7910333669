//! Streams that break off, and how they are resumed.

use crate::client::{Client, endpoint, limits};
use crate::server::{
    Seen, Server, Step, chunk, event, event_with_id, json, respond, result, stream_end, stream_head,
};
use crate::sessions::session;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wire::remote::{FailureKind, RemoteLimits};

const NOTE: &str = r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"late":true}}"#;

/// A server whose POST stream is given up to the point where it breaks. `get` answers GETs that
/// name an event; others are refused.
fn breaking(
    post: impl Fn(&Seen) -> Vec<Step> + Send + Sync + 'static,
    get: impl Fn(&Seen) -> Vec<Step> + Send + Sync + 'static,
) -> Server {
    session(
        move |request| match request.header("last-event-id") {
            Some(_) => get(request),
            None => respond("405 Method Not Allowed", "", ""),
        },
        post,
    )
}

#[test]
fn a_stream_that_broke_off_goes_on_behind_its_last_event() {
    let server = breaking(
        |_| vec![stream_head(""), chunk("retry: 50\n\n"), event_with_id("p-1", NOTE), Step::Close],
        |_| vec![stream_head(""), event_with_id("p-2", ANSWER), stream_end()],
    );
    let client = Client::new(&server);
    client.initialize();
    client.ask(1, "a");
    assert_eq!(client.hear_message(), NOTE);
    assert_eq!(client.hear_message(), ANSWER);
    let resumed = server.wait_for(|seen| seen.header("last-event-id").is_some(), 1);
    assert_eq!(resumed[0].header("last-event-id"), Some("p-1"));
    assert_eq!(resumed[0].header("mcp-session-id"), Some("s-1"));
    assert_eq!(resumed[0].header("mcp-protocol-version"), Some("2025-11-25"));
    assert_eq!(client.finish(), []);
    let posted = server.seen().iter().filter(|seen| seen.rpc_method() == "a").count();
    assert_eq!(posted, 1);
}

#[test]
fn a_server_that_wants_to_be_polled_is_polled_as_often_as_it_takes() {
    let polls = Arc::new(Mutex::new(0));
    let count = Arc::clone(&polls);
    let server = breaking(
        |_| vec![stream_head(""), chunk("id: 0\nretry: 50\ndata:\n\n"), stream_end()],
        move |_| {
            let mut polls = count.lock().unwrap();
            *polls += 1;
            match *polls {
                10 => vec![stream_head(""), event(ANSWER), stream_end()],
                number => {
                    vec![stream_head(""), chunk(&format!("id: {number}\ndata:\n\n")), stream_end()]
                }
            }
        },
    );
    let client = Client::new(&server);
    client.initialize();
    client.ask(1, "a");
    assert_eq!(client.hear_message(), ANSWER);
    client.finish();
}

#[test]
fn a_stream_without_event_ids_is_not_taken_up_again() {
    let server = breaking(|_| vec![stream_head(""), event(NOTE), stream_end()], |_| json(ANSWER));
    let client = Client::new(&server);
    client.initialize();
    client.ask(1, "a");
    assert_eq!(client.hear_message(), NOTE);
    let text = "the server's answer cannot be read: the event stream ended before the answer";
    assert_eq!(client.hear_failure(1), (FailureKind::Unreadable, text.to_owned()));
    client.finish();
    let server = breaking(|_| vec![stream_head(""), event(NOTE), Step::Close], |_| json(ANSWER));
    let client = Client::new(&server);
    client.initialize();
    client.ask(1, "a");
    assert_eq!(client.hear_message(), NOTE);
    let (kind, text) = client.hear_failure(1);
    assert_eq!(kind, FailureKind::Unreachable);
    assert!(text.contains("was lost before the answer came"), "{text}");
    client.finish();
}

#[test]
fn a_stream_is_asked_for_up_to_the_limit() {
    let broken = |_: &Seen| {
        vec![stream_head(""), chunk("retry: 50\n\n"), event_with_id("p-1", NOTE), Step::Close]
    };
    let asked = |server: &Server| {
        server.seen().iter().filter(|seen| seen.header("last-event-id").is_some()).count()
    };
    let server = breaking(broken, |_| respond("503 Service Unavailable", "", ""));
    let client = Client::new(&server);
    client.initialize();
    client.ask(1, "a");
    assert_eq!(client.hear_message(), NOTE);
    let (kind, text) = client.hear_failure(1);
    assert_eq!(kind, FailureKind::Unreachable);
    assert_eq!(text, "the server answered with status 503 Service Unavailable");
    assert_eq!(asked(&server), 5);
    client.finish();

    let server = breaking(broken, |_| respond("405 Method Not Allowed", "", ""));
    let client = Client::new(&server);
    client.initialize();
    client.ask(1, "a");
    assert_eq!(client.hear_message(), NOTE);
    assert!(client.hear_failure(1).1.contains("was lost before the answer came"));
    assert_eq!(asked(&server), 1);
    client.finish();
}

#[test]
fn a_session_that_is_gone_when_a_stream_is_taken_up_ends_everything() {
    let server = breaking(
        |_| vec![stream_head(""), chunk("id: p\nretry: 50\ndata:\n\n"), Step::Close],
        |_| respond("404 Not Found", "", ""),
    );
    let client = Client::new(&server);
    client.initialize();
    client.ask(1, "a");
    assert!(client.hear_failure(1).1.contains("no longer knows this session"));
    assert!(matches!(client.hear(), crate::client::Heard::Ended { .. }));
    client.finish();
}

#[test]
fn an_answer_on_a_stream_that_stays_open_is_heard_at_once_and_the_stream_left_after_a_while() {
    let server = Server::start(|request| {
        vec![stream_head(""), event(&result(request, "{}")), Step::AwaitClosing]
    });
    let client = Client::new(&server);
    client.ask(1, "a");
    client.hear_message();
    server.wait_for(|seen| seen.method == "CLOSED", 1);
    assert_eq!(client.finish(), []);
}

#[test]
fn a_server_that_forgets_a_stream_once_it_has_given_what_was_missed_is_asked_again() {
    let asked = Arc::new(Mutex::new(0));
    let count = Arc::clone(&asked);
    let server = breaking(
        |_| vec![stream_head(""), chunk("id: p\nretry: 50\ndata:\n\n"), Step::Close],
        move |_| {
            *count.lock().unwrap() += 1;
            match *count.lock().unwrap() {
                1 => vec![stream_head(""), event_with_id("q", NOTE), Step::AwaitClosing],
                _ => vec![stream_head(""), event(ANSWER), stream_end()],
            }
        },
    );
    let client = Client::new(&server);
    client.initialize();
    client.ask(1, "a");
    assert_eq!(client.hear_message(), NOTE);
    assert_eq!(client.hear_message(), ANSWER);
    let resumed = server.wait_for(|seen| seen.header("last-event-id").is_some(), 2);
    assert_eq!(resumed[1].header("last-event-id"), Some("q"));
    client.finish();
}

#[test]
fn a_stream_that_stays_silent_however_often_it_is_taken_up_is_given_up() {
    let server = breaking(
        |_| vec![stream_head(""), chunk("id: p\nretry: 50\ndata:\n\n"), Step::Close],
        |_| vec![stream_head(""), chunk(": here\n\n"), Step::AwaitClosing],
    );
    let limits = RemoteLimits { idle_timeout: Duration::from_millis(400), ..limits() };
    let client = Client::with(endpoint(&server.url()), limits);
    client.initialize();
    client.ask(1, "a");
    let expected = (FailureKind::TimedOut, "the server sent nothing for 0.4 s".to_owned());
    assert_eq!(client.hear_failure(1), expected);
    client.finish();
}
