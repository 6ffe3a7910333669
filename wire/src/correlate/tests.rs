use super::*;
use crate::message::RequestIds;

fn waiting() -> RequestId {
    RequestIds::default().next().unwrap()
}

fn unreadable(heard: Heard) -> String {
    match heard {
        Heard::Answer(Answer::Unreadable(reason)) => reason,
        other => panic!("expected an unreadable answer, got {other:?}"),
    }
}

#[test]
fn the_answer_keeps_its_bytes() {
    let id = waiting();
    let text = format!(r#"{{"id":"{}","jsonrpc":"2.0","result":{{ "a" : 1e2 }}}}"#, id.as_str());
    let heard = Correlator::default().hear(text.as_bytes(), &id);
    assert_eq!(heard, Heard::Answer(Answer::Result(r#"{ "a" : 1e2 }"#.to_owned())));
}

#[test]
fn an_answer_with_another_id_is_dropped_and_counted() {
    let id = waiting();
    let mut correlator = Correlator::default();
    for other in ["1", "\"1\"", "null"] {
        let text = format!(r#"{{"id":{other},"jsonrpc":"2.0","result":{{}}}}"#);
        assert_eq!(correlator.hear(text.as_bytes(), &id), Heard::Nothing);
    }
    let notes = correlator.notes();
    assert_eq!(notes.len(), 1);
    assert!(notes[0].starts_with("3 lines or messages"), "{notes:?}");
}

#[test]
fn log_lines_are_dropped_and_counted() {
    let id = waiting();
    let mut correlator = Correlator::default();
    for line in ["listening", "{ not json", "", "{\"level\":\"info\"}"] {
        assert_eq!(correlator.hear(line.as_bytes(), &id), Heard::Nothing);
    }
    assert_eq!(correlator.hear(b"caf\xe9", &id), Heard::Nothing);
    assert_eq!(correlator.hear(b"{caf\xe9", &id), Heard::Nothing);
    assert_eq!(
        correlator.notes(),
        [
            "5 lines or messages from the server were each not JSON and dropped",
            "1 line or message from the server was JSON but no JSON-RPC message and dropped"
        ]
    );
}

#[test]
fn json_that_reads_two_ways_is_held_against_the_request_that_waits() {
    let id = waiting();
    let mut correlator = Correlator::default();
    let twice = unreadable(correlator.hear(br#"{"jsonrpc":"2.0","a":1,"a":2}"#, &id));
    assert!(twice.contains("appears twice"), "{twice}");
    let not_utf8 = unreadable(correlator.hear(b"{\"a\":\"\xff\"}", &id));
    assert!(not_utf8.contains("invalid UTF-8"), "{not_utf8}");
    let both = r#"{"jsonrpc":"2.0","id":"x","result":{},"error":{}}"#;
    assert!(unreadable(correlator.hear(both.as_bytes(), &id)).contains("both `result`"));
}

#[test]
fn an_over_long_line_is_held_against_the_request_only_if_it_looks_like_a_message() {
    let mut correlator = Correlator::default();
    assert!(unreadable(correlator.hear_too_long(b" {\"id", 10)).contains("10 bytes"));
    assert_eq!(correlator.hear_too_long(b"####", 10), Heard::Nothing);
    assert_eq!(correlator.notes().len(), 1);
}

#[test]
fn requests_of_the_server_are_answered_up_to_the_limit() {
    let id = waiting();
    let mut correlator = Correlator::default();
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for _ in 0..MAX_REPLIES {
        assert!(matches!(correlator.hear(ping, &id), Heard::Reply(_)));
    }
    assert!(correlator.notes().is_empty());
    assert_eq!(correlator.hear(ping, &id), Heard::Nothing);
    assert_eq!(correlator.notes().len(), 1);
}
