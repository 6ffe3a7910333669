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
    let text = format!(r#"{{"id":{},"jsonrpc":"2.0","result":{{ "a" : 1e2 }}}}"#, id.raw());
    let heard = Correlator::default().hear(text.as_bytes(), &id);
    assert_eq!(heard, Heard::Answer(Answer::Result(r#"{ "a" : 1e2 }"#.into())));
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
fn what_reads_two_ways_is_held_against_the_request_that_it_may_answer() {
    let id = waiting();
    let mut correlator = Correlator::default();
    let twice = unreadable(correlator.hear(br#"{"jsonrpc":"2.0","a":1,"a":2}"#, &id));
    assert!(twice.contains("appears twice"), "{twice}");
    let mut bytes = format!(r#"{{"id":{},"a":""#, id.raw()).into_bytes();
    bytes.extend_from_slice(b"\xff\"}");
    assert_eq!(unreadable(correlator.hear(&bytes, &id)), "invalid UTF-8");
    let both = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}},"error":{{}}}}"#);
    let reason = unreadable(correlator.hear(both(id.raw()).as_bytes(), &id));
    assert!(reason.contains("both a `result`"), "{reason}");
    assert_eq!(correlator.hear(both("\"x\"").as_bytes(), &id), Heard::Nothing);
    assert_eq!(correlator.notes().len(), 1);
}

#[test]
fn a_log_line_is_no_answer_whatever_it_looks_like() {
    let id = waiting();
    let mut correlator = Correlator::default();
    for line in ["[INFO] 10 %\r[INFO] 20 %", "[]", "[1]", r#"{"a":1,"a":2}"#] {
        assert_eq!(correlator.hear(line.as_bytes(), &id), Heard::Nothing, "{line}");
    }
}

#[test]
fn an_answer_in_a_batch_is_unreadable_and_other_batches_are_dropped() {
    let id = waiting();
    let mut correlator = Correlator::default();
    let batch = |id: &str| format!(r#"[{{"jsonrpc":"2.0","id":{id},"result":{{}}}}]"#);
    assert!(unreadable(correlator.hear(batch(id.raw()).as_bytes(), &id)).contains("batch"));
    assert_eq!(correlator.hear(batch("1").as_bytes(), &id), Heard::Nothing);
    assert!(correlator.notes()[0].contains("unexpected batch"), "{:?}", correlator.notes());
}

#[test]
fn an_over_long_line_is_held_against_the_request_only_if_it_may_answer_it() {
    let id = waiting();
    let mut correlator = Correlator::default();
    let mut hear = |beginning: &str, end: &str| {
        correlator.hear_too_long(beginning.as_bytes(), end.as_bytes(), 10, &id)
    };
    let ours = format!(r#"{{"id":{},"result":{{"x"#, id.raw());
    assert!(unreadable(hear(&ours, "x")).contains("10 bytes"));
    assert!(unreadable(hear(r#"{"jsonrpc":"2.0","result":{"x"#, "x")).contains("10 bytes"));
    assert_eq!(hear("####", "####"), Heard::Nothing);
    assert_eq!(hear(r#"{"id":7,"result":{"x"#, "x"), Heard::Nothing);
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
