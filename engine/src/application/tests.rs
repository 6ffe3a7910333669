use super::*;
use proptest::prelude::*;
use std::sync::mpsc::TryRecvError;

/// The output, line by line.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Written {
    fn lines(&self) -> Vec<String> {
        let bytes = self.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
    }
}

fn output() -> (Written, ApplicationOutput) {
    let written = Written::default();
    (written.clone(), ApplicationOutput::new(Box::new(written)))
}

fn first(text: &str) -> Result<Open, BadLine> {
    let input = io::Cursor::new(text.as_bytes().to_vec());
    ApplicationInput::new(Box::new(input)).open().unwrap()
}

#[test]
fn a_session_is_opened_by_one_line_of_this_version() {
    let open = first("{\"open\":{\"version\":1,\"server\":\"reports\"}}\n").unwrap();
    assert_eq!((open.server.as_str(), open.relist_max_age), ("reports", None));
    let aged =
        first("{\"open\":{\"relistMaxAge\":86400,\"version\":1,\"server\":\"r\"}}\n").unwrap();
    assert_eq!(aged.relist_max_age, Some(86_400));
}

#[test]
fn what_does_not_open_a_session_is_told_apart() {
    let check = |line: &str, expected: BadLine| {
        assert_eq!(first(&format!("{line}\n")).unwrap_err(), expected, "{line}");
    };
    // A later version may have unknown members.
    check(r#"{"open":{"version":2,"endpoint":"x"}}"#, BadLine::OtherVersion(2));
    check(r#"{"open":{"version":1,"server":"r","posture":"monitor"}}"#, BadLine::Open);
    check(r#"{"open":{"version":1,"server":"r","server":"s"}}"#, BadLine::Open);
    check(r#"{"open":{"version":1,"server":"r","relistMaxAge":86401}}"#, BadLine::Open);
    check(r#"{"open":{"server":"r"}}"#, BadLine::Open);
    check(r#"{"client":{}}"#, BadLine::OutOfPlace);
    check(r#"{"open":{},"client":{}}"#, BadLine::NotOne);
    check(r#"{"close":{}}"#, BadLine::NotOne);
    check("", BadLine::NotOne);
    check("\u{0}", BadLine::NotOne);
    assert_eq!(first("").unwrap_err(), BadLine::Ended);
    assert_eq!(first("{\"open\":").unwrap_err(), BadLine::Ended);
}

#[test]
fn the_first_line_has_a_limit() {
    let line = |bytes: usize| {
        let open = r#"{"open":{"version":1,"server":""}}"#;
        open.replace("\"\"", &format!("\"{}\"", "a".repeat(bytes - open.len())))
    };
    let at = first(&format!("{}\n", line(AROUND_BYTES))).unwrap();
    assert_eq!(at.server.len(), AROUND_BYTES - 34);
    let past = first(&format!("{}\n", line(AROUND_BYTES + 1))).unwrap_err();
    assert_eq!(past, BadLine::TooLong);
}

#[test]
fn a_message_keeps_its_bytes() {
    let line = br#" {"client" : {"id":1,  "n": 1.00e400,"s":"\ud800\u0041"} } "#;
    let Said::Client(message) = Said::read(line).unwrap() else { panic!("a client's message") };
    assert_eq!(message.get(), r#"{"id":1,  "n": 1.00e400,"s":"\ud800\u0041"}"#);
}

#[test]
fn only_an_answer_to_a_request_that_was_not_sent_is_the_gates_own() {
    let (written, output) = output();
    let (mut client, mut server, _end) = output.ends();
    let sent =
        Outgoing { frame: br#"{"id":"\u0061"}"#, id: Some(br#""\u0061""#), ..Outgoing::default() };
    server.gather(&sent);
    server.flush_free().unwrap();
    // The server spells the id differently; the second answer to it cannot be from the server.
    for _ in 0..2 {
        client.write(&ToClient { parts: &[b"{", b"}"], answers: Some(br#""a""#) }).unwrap();
    }
    client.write(&ToClient { parts: &[b"{}"], answers: None }).unwrap();
    let expected = [
        r#"{"toServer":{"id":"\u0061"}}"#,
        r#"{"toClient":{}}"#,
        r#"{"answer":{}}"#,
        r#"{"toClient":{}}"#,
    ];
    assert_eq!(written.lines(), expected);
}

#[test]
fn a_closed_session_sends_nothing_and_says_that_it_ended() {
    let (written, output) = output();
    let (_, mut server, end) = output.ends();
    assert_eq!(end.try_recv(), Err(TryRecvError::Empty));
    server.close();
    assert_eq!(end.try_recv(), Err(TryRecvError::Disconnected));
    let message = FreeMessage::notification(b"{}", "notifications/cancelled");
    assert!(server.send(&message).is_err());
    assert!(server.flush_free().is_err());
    assert!(written.lines().is_empty());
}

proptest! {
    #[test]
    fn any_line_is_read_or_refused(line in any::<Vec<u8>>()) {
        let _ = Said::read(&line);
    }

    #[test]
    fn any_json_is_handed_over_as_it_came(text in "[ -~]{0,40}") {
        let message = serde_json::to_string(&text).unwrap();
        let line = format!("{{\"server\":{message}}}");
        let read = Said::read(line.as_bytes()).unwrap();
        let Said::Server(read) = read else { panic!("a server's message") };
        prop_assert_eq!(read.get(), message);
    }
}
