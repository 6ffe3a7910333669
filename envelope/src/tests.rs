use super::*;
use std::collections::HashMap;

mod agreement;
mod parts;
mod speed;

fn message(frame: &str) -> Envelope<'_> {
    match scan(frame.as_bytes()) {
        Ok(Scanned::Message(envelope)) => envelope,
        other => panic!("{frame}: {other:?}"),
    }
}

fn batch(frame: &str) -> Batch<'_> {
    match scan(frame.as_bytes()) {
        Ok(Scanned::Batch(batch)) => batch,
        other => panic!("{frame}: {other:?}"),
    }
}

fn refusal(frame: impl AsRef<[u8]>) -> ScanError {
    let frame = frame.as_ref();
    scan(frame).expect_err(&String::from_utf8_lossy(frame))
}

fn kind(frame: impl AsRef<[u8]>) -> ScanErrorKind {
    refusal(frame).kind
}

fn ambiguity(frame: impl AsRef<[u8]>) -> Ambiguity {
    let error = refusal(frame);
    assert!(error.is_ambiguous());
    match error.kind {
        ScanErrorKind::Ambiguous(ambiguity) => ambiguity,
        other => panic!("{other:?}"),
    }
}

fn id_of(error: &ScanError) -> Option<&str> {
    error.id.as_ref().map(|id| std::str::from_utf8(id.raw()).unwrap())
}

#[test]
fn messages_are_told_apart() {
    let request = message(r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#);
    let Kind::Request { id, method } = request.kind else { panic!("{request:?}") };
    assert_eq!((id.raw(), &*method), (&b"7"[..], "tools/list"));
    assert_eq!(request.params, None);

    let notification = message(r#"{"method":"notifications/initialized","jsonrpc":"2.0"}"#);
    let method = Cow::Borrowed("notifications/initialized");
    assert_eq!(notification.kind, Kind::Notification { method });

    let result = message(r#"{"jsonrpc":"2.0","id":"a","result":{"x": [1] }}"#);
    let Kind::Response { id: Some(id), outcome } = result.kind else { panic!("{result:?}") };
    assert_eq!((id.raw(), outcome), (&b"\"a\""[..], Outcome::Result(br#"{"x": [1] }"#)));

    let error = message(r#"{"jsonrpc":"2.0","id":null,"error":{"code":1}}"#);
    assert_eq!(error.kind, Kind::Response { id: None, outcome: Outcome::Error(br#"{"code":1}"#) });
    let without_id = message(r#"{"jsonrpc":"2.0","error":{"code":1}}"#);
    assert_eq!(without_id.kind, error.kind);
}

#[test]
fn an_ordinary_message_is_borrowed_from_its_frame() {
    let frame = r#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"echo"}}"#;
    let envelope = message(frame);
    assert!(matches!(envelope.kind, Kind::Request { method: Cow::Borrowed(_), .. }));
    assert!(matches!(envelope.params.unwrap().name, Some(Cow::Borrowed("echo"))));
}

#[test]
fn the_parts_of_params_keep_their_bytes() {
    let frame = r#" {"jsonrpc":"2.0","id":1,"method":"tools/call","params": {
        "name":"a\u0062c","arguments":{"x" : 1.0},"_meta":{"progressToken":1},"cursor":"c",
        "uri":"file:\/\/x","requestId":"9","level":"debug","protocolVersion":"2025-06-18",
        "other":true} } "#
        .replace('\n', " ");
    let envelope = message(&frame);
    assert_eq!(envelope.raw, frame.trim().as_bytes());
    let params = envelope.params.unwrap();
    assert!(params.raw.starts_with(b"{ ") && params.raw.ends_with(b"true}"));
    assert!(params.is_object && !params.is_odd);
    assert_eq!(params.name.as_deref(), Some("abc"));
    assert_eq!(params.uri.as_deref(), Some("file://x"));
    assert_eq!(params.level.as_deref(), Some("debug"));
    assert_eq!(params.protocol_version.as_deref(), Some("2025-06-18"));
    assert_eq!(params.arguments, Some(&br#"{"x" : 1.0}"#[..]));
    assert_eq!(params.meta, Some(&br#"{"progressToken":1}"#[..]));
    assert_eq!(params.cursor, Some(&br#""c""#[..]));
    assert_eq!(params.request_id, Some(&br#""9""#[..]));
}

#[test]
fn a_request_state_or_task_is_found_among_the_parameters_and_twice_it_is_refused() {
    let frame = |members: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{{members}}}}}"#)
    };
    let state = r#""requestState":"a\u0062""#;
    let found = frame(&format!(r#""name":"t",{state},"arguments":{{"requestState":1}}"#));
    let params = message(&found).params.unwrap();
    assert_eq!(params.request_state, Some(br#""a\u0062""#.as_slice()));
    let inner = frame(r#""arguments":{"requestState":1}"#);
    assert_eq!(message(&inner).params.unwrap().request_state, None);
    let as_task = frame(r#""arguments":{"task":1},"task":{"ttl":5}"#);
    assert_eq!(message(&as_task).params.unwrap().task, Some(br#"{"ttl":5}"#.as_slice()));
    let repeated = frame(&format!("{state},{state}"));
    assert_eq!(ambiguity(repeated), Ambiguity::RepeatedParameter);
}

#[test]
fn a_name_that_is_no_string_is_absent_and_odd() {
    for value in ["1", "null", "true", "{}", "[\"echo\"]"] {
        for member in ["name", "uri", "level", "protocolVersion"] {
            let frame =
                format!(r#"{{"jsonrpc":"2.0","method":"m","params":{{"{member}":{value}}}}}"#);
            let params = message(&frame).params.unwrap();
            assert!(params.is_odd, "{frame}");
            assert_eq!((params.name, params.uri), (None, None), "{frame}");
        }
        let frame = format!(r#"{{"jsonrpc":"2.0","method":"m","params":{{"cursor":{value}}}}}"#);
        let params = message(&frame).params.unwrap();
        assert!(!params.is_odd && params.cursor == Some(value.as_bytes()), "{frame}");
    }
}

#[test]
fn params_are_an_object_an_array_or_nothing() {
    let with = |params: &str| format!(r#"{{"jsonrpc":"2.0","method":"m","params":{params}}}"#);
    assert!(message(&with("{}")).params.unwrap().is_object);
    for other in ["[]", r#"[{"name":"a","name":"b"}]"#, "null"] {
        let frame = with(other);
        let params = message(&frame).params.unwrap();
        assert!(!params.is_object && params.name.is_none());
        assert_eq!(params.raw, other.as_bytes());
    }
    for other in ["1", "\"x\"", "true", "false"] {
        assert_eq!(kind(with(other)), ScanErrorKind::NotAMessage);
    }
}

#[test]
fn depth_is_that_of_the_whole_message() {
    assert_eq!(message(r#"{"jsonrpc":"2.0","method":"m"}"#).depth, 1);
    assert_eq!(message(r#"{"jsonrpc":"2.0","method":"m","params":{}}"#).depth, 2);
    let deep = r#"{"jsonrpc":"2.0","method":"m","params":{"arguments":{"a":[[0]]}},"x":[]}"#;
    assert_eq!(message(deep).depth, 5);
    assert_eq!(message(r#"{"jsonrpc":"2.0","id":1,"result":[[[]]]}"#).depth, 4);
    let two =
        batch(r#"[{"jsonrpc":"2.0","method":"m","params":[[[]]]},{"jsonrpc":"2.0","method":"m"}]"#);
    let depths: Vec<_> =
        two.elements.iter().map(|one| one.message.as_ref().unwrap().depth).collect();
    assert_eq!(depths, [4, 1]);
}

#[test]
fn nesting_is_read_to_the_limit_and_no_further() {
    let nested = |depth: usize| {
        let (open, close) = ("[".repeat(depth - 1), "]".repeat(depth - 1));
        format!(r#"{{"jsonrpc":"2.0","id":5,"result":{open}{close}}}"#)
    };
    assert_eq!(message(&nested(MAX_SCAN_DEPTH)).depth, MAX_SCAN_DEPTH);
    assert_eq!(kind(nested(MAX_SCAN_DEPTH + 1)), ScanErrorKind::TooDeep);
    assert!(!refusal(nested(MAX_SCAN_DEPTH + 1)).is_ambiguous());
    // A batch counts as one level.
    assert_eq!(batch(&format!("[{}]", nested(MAX_SCAN_DEPTH - 1))).elements.len(), 1);
    assert_eq!(kind(format!("[{}]", nested(MAX_SCAN_DEPTH))), ScanErrorKind::TooDeep);
}

#[test]
fn what_is_no_json_is_refused_as_that() {
    let good = r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"name":"x","arguments":{}}}"#;
    message(good);
    for bad in [
        "",
        " ",
        "starting server",
        "{",
        "[",
        r#"{"jsonrpc":"2.0","id":1,"method":"m"}}"#,
        r#"{"jsonrpc":"2.0","id":01,"method":"m"}"#,
        r#"{"jsonrpc":"2.0","method":"m",}"#,
        r#"{"jsonrpc":"2.0","method":"\x"}"#,
        r#"{jsonrpc:"2.0","method":"m"}"#,
        "{\"jsonrpc\":\"2.0\",\"method\":\"a\tb\"}",
        r#"{"jsonrpc":"2.0","method":"m"}{}"#,
        r#"[{"jsonrpc":"2.0","method":"m"}"#,
        r#"[{"jsonrpc":"2.0","method":"m"},]"#,
    ] {
        let error = refusal(bad);
        assert_eq!((error.kind, error.id.clone()), (ScanErrorKind::NotJson, None), "{bad}");
        assert!(!error.is_ambiguous());
    }
    for end in 0..good.len() {
        assert_eq!(kind(&good[..end]), ScanErrorKind::NotJson, "{}", &good[..end]);
    }
    assert_eq!(kind(format!("\u{feff}{good}")), ScanErrorKind::NotJson);
    assert_eq!(kind(format!("{good}\u{feff}")), ScanErrorKind::NotJson);
    assert_eq!(kind(format!("{good}\0")), ScanErrorKind::NotJson);
}

#[test]
fn what_is_no_utf8_is_refused_as_that() {
    let frame = |name: &[u8]| {
        [&br#"{"jsonrpc":"2.0","method":"m","params":{"a":""#[..], name, b"\"}}"].concat()
    };
    assert!(scan(&frame("é".as_bytes())).is_ok());
    for bad in [&b"\xff"[..], b"\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"\xf5\x80\x80\x80"] {
        assert_eq!(kind(frame(bad)), ScanErrorKind::NotUtf8);
    }
}

#[test]
fn json_that_is_no_message_is_refused_as_that() {
    for bad in [
        "1",
        "\"x\"",
        "null",
        "{}",
        r#"{"jsonrpc":"2.0"}"#,
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"id":1,"method":"m"}"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#,
        r#"{"jsonrpc":2.0,"id":1,"method":"m"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":5}"#,
        r#"{"jsonrpc":"2.0","id":true,"method":"m"}"#,
        r#"{"jsonrpc":"2.0","id":[],"method":"m"}"#,
        r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#,
        r#"{"jsonrpc":"2.0","id":{},"result":1}"#,
        // A log line, whatever its member names.
        r#"{"level":"info","Error":"none","msg":"x","msg":"y"}"#,
    ] {
        let error = refusal(bad);
        assert_eq!(error.kind, ScanErrorKind::NotAMessage, "{bad}");
        assert!(!error.is_ambiguous());
    }
    // The version is decoded like any other string.
    message(r#"{"jsonrpc":"2\u002e0","id":1,"method":"m"}"#);
}

#[test]
fn members_that_appear_twice_are_refused() {
    let twice = [
        r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"a","m\u0065thod":"b"}"#,
        r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"a"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{},"params":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":1,"result":2}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"a","x":0,"x":0}"#,
    ];
    for frame in twice {
        assert_eq!(ambiguity(frame), Ambiguity::RepeatedMember, "{frame}");
        assert_eq!(id_of(&refusal(frame)), Some("1"), "{frame}");
    }
    for params in [
        r#"{"name":"a","name":"b"}"#,
        r#"{"name":"a","nam\u0065":"b"}"#,
        r#"{"x":1,"x":1}"#,
        r#"{"arguments":{},"_meta":{},"arguments":{}}"#,
        r#"{"ref":1,"ref":1}"#,
    ] {
        let frame = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{params}}}"#);
        assert_eq!(ambiguity(&frame), Ambiguity::RepeatedParameter, "{frame}");
    }
    // The contents of a value that is not read here are checked by the code that reads them.
    message(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"arguments":{"a":1,"a":2}}}"#);
    message(r#"{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}"#);
}

#[test]
fn members_that_appear_twice_are_found_among_many() {
    let frame = |names: &[String]| {
        let members: Vec<_> = names.iter().map(|name| format!("\"{name}\":0")).collect();
        format!(r#"{{"jsonrpc":"2.0","method":"m","params":{{{}}}}}"#, members.join(","))
    };
    for count in [2, 7, 8, 9, 10, 16, 17, 100] {
        let names: Vec<_> = (0..count).map(|number| format!("n{number}")).collect();
        message(&frame(&names));
        for (first, last) in
            [(0, count - 1), (count / 2, count - 1), (0, 1), (count - 2, count - 1)]
        {
            let mut names = names.clone();
            if first == last {
                continue;
            }
            names[last] = names[first].clone();
            assert_eq!(ambiguity(frame(&names)), Ambiguity::RepeatedParameter, "{first} {last}");
        }
    }
}

#[test]
fn members_are_counted_to_the_limit_and_no_further() {
    let members = |count: usize| {
        let members: Vec<_> = (0..count).map(|number| format!("\"n{number}\":0")).collect();
        members.join(",")
    };
    let params =
        |count| format!(r#"{{"jsonrpc":"2.0","method":"m","params":{{{}}}}}"#, members(count));
    message(&params(MAX_MEMBERS));
    assert_eq!(kind(params(MAX_MEMBERS + 1)), ScanErrorKind::TooManyMembers);
    let top = |count| format!(r#"{{"jsonrpc":"2.0","method":"m",{}}}"#, members(count - 2));
    message(&top(MAX_MEMBERS));
    assert_eq!(kind(top(MAX_MEMBERS + 1)), ScanErrorKind::TooManyMembers);
}

#[test]
fn members_that_fold_to_the_protocols_are_refused_alone_too() {
    for (name, member) in [
        ("Method", "method"),
        ("METHOD", "method"),
        (r"\u004dethod", "method"),
        ("paramſ", "params"),
        ("Params", "params"),
        (r"param\u017f", "params"),
        ("Id", "id"),
        ("ID", "id"),
        ("ıd", "id"),
        ("reſult", "result"),
        ("Result", "result"),
        ("Error", "error"),
        ("JSONRPC", "jsonrpc"),
        ("jſonrpc", "jsonrpc"),
        ("id ", "id"),
        (r"id\u0000", "id"),
        ("met\u{200d}hod", "method"),
    ] {
        for frame in [
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","{name}":0}}"#),
            format!(r#"{{"{name}":{{}},"jsonrpc":"2.0","id":1,"result":0}}"#),
        ] {
            assert_eq!(ambiguity(&frame), Ambiguity::FoldedMember(member), "{frame}");
            let id = (member != "id").then_some("1");
            assert_eq!(id_of(&refusal(&frame)), id, "{frame}");
        }
    }
    assert_eq!(ambiguity(r#"{"Jsonrpc":"2.0","method":"m"}"#), Ambiguity::FoldedMember("jsonrpc"));
    message(r#"{"jsonrpc":"2.0","method":"m","methods":0,"meth":0,"ids":0,"":0,"ｍethod":0}"#);
}

#[test]
fn parameters_that_fold_to_the_protocols_are_refused_alone_too() {
    let with = |name: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"{name}":"x"}}}}"#)
    };
    for member in PARAMETERS {
        message(&with(member));
        let upper = member.to_uppercase();
        assert_eq!(ambiguity(with(&upper)), Ambiguity::FoldedParameter(member), "{upper}");
    }
    for (name, member) in [
        ("Name", "name"),
        (r"\u006eamE", "name"),
        ("taſK", "task"),
        ("tas\u{212a}", "task"),
        ("progreſſToken", "progressToken"),
        ("progreßToken", "progressToken"),
        ("URI", "uri"),
        ("requeﬆId", "requestId"),
        ("requestid", "requestId"),
        ("_Meta", "_meta"),
        ("clientinfo", "clientInfo"),
        ("uRı", "uri"),
        ("uri ", "uri"),
        (r"name\u0000", "name"),
        ("na\u{200b}me", "name"),
        ("\u{feff}arguments", "arguments"),
    ] {
        assert_eq!(ambiguity(with(name)), Ambiguity::FoldedParameter(member), "{name}");
    }
    for name in ["names", "Argument2", "meta", "request_id", "na me", "ｎame", "nаme"] {
        message(&with(name));
    }
    // Names that are ambiguous in `params` are allowed at the top level, and vice versa.
    message(r#"{"jsonrpc":"2.0","method":"m","Name":1,"params":{"Method":1,"ID":1}}"#);
}

#[test]
fn a_method_that_some_readers_take_for_one_of_mcp_is_refused() {
    for (method, meant) in [
        ("TOOLS/CALL", "tools/call"),
        ("tools/call/", "tools/call"),
        (r"tools/call\u0000", "tools/call"),
        (r"tool\u017f/call", "tools/call"),
        ("Sampling/createMessage", "sampling/createMessage"),
        ("notifications/tools/List_changed", "notifications/tools/list_changed"),
    ] {
        let request = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#);
        assert_eq!(ambiguity(&request), Ambiguity::FoldedMethod(meant), "{method}");
        assert_eq!(id_of(&refusal(&request)), Some("1"), "{method}");
        let notification = format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#);
        assert_eq!(ambiguity(&notification), Ambiguity::FoldedMethod(meant), "{method}");
    }
    message(r#"{"jsonrpc":"2.0","id":1,"method":"ui/initialize"}"#);
}

#[test]
fn a_message_of_two_kinds_is_refused() {
    for frame in [
        r#"{"jsonrpc":"2.0","id":1,"method":"m","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{},"method":"m"}"#,
        r#"{"jsonrpc":"2.0","method":"m","result":null}"#,
    ] {
        assert_eq!(ambiguity(frame), Ambiguity::MethodAndOutcome, "{frame}");
    }
    let both = r#"{"jsonrpc":"2.0","id":1,"result":{},"error":null}"#;
    assert_eq!(ambiguity(both), Ambiguity::BothOutcomes);
    assert_eq!(id_of(&refusal(both)), Some("1"));
}

#[test]
fn a_request_whose_id_is_null_is_no_notification() {
    assert_eq!(ambiguity(r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#), Ambiguity::NullId);
    assert!(matches!(message(r#"{"jsonrpc":"2.0","method":"m"}"#).kind, Kind::Notification { .. }));
}

#[test]
fn a_line_break_inside_a_frame_is_refused() {
    let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"rm"}}"#;
    let around = |before: &str, after: &str| {
        let method = "notifications/progress";
        format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{before}{call}{after}}}"#)
    };
    message(&around("", ""));
    message(&around(" ", "\t"));
    for (before, after) in [("\r", "\r"), ("\n", ""), ("", "\r"), ("\r\n", "\r\n"), (" \r ", "")] {
        assert_eq!(ambiguity(around(before, after)), Ambiguity::LineBreak);
    }
    for place in [0, 1, 10, call.len() - 1, call.len()] {
        for line_break in ["\r", "\n"] {
            let frame = format!("{}{line_break}{}", &call[..place], &call[place..]);
            assert_eq!(ambiguity(&frame), Ambiguity::LineBreak, "{frame:?}");
            assert_eq!(ambiguity(format!("[{frame}]")), Ambiguity::LineBreak, "{frame:?}");
        }
    }
    assert_eq!(id_of(&refusal(format!("\r{call}"))), Some("2"));
    // Inside a string a line break is not JSON either, but some readers may still read the message
    // after it.
    assert_eq!(ambiguity(format!("{{\"a\":\"\r{call}\r\"}}")), Ambiguity::LineBreak);
    // A log line with a progress bar does not look like a message to any reader.
    assert_eq!(kind("10 %\r20 %\rdone"), ScanErrorKind::NotJson);
    message(r#"{"jsonrpc":"2.0","method":"m","params":{"a":"\r\n"}}"#);
}

#[test]
fn half_a_surrogate_pair_is_refused_where_the_protocol_reads_and_passed_elsewhere() {
    let frame = |method: &str, name: &str, value: &str, argument: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"name":"{value}","{name}":1,"arguments":{{"{argument}":"{argument}"}}}}}}"#
        )
    };
    message(&frame(r"\ud83d\ude00", r"\ud83d\ude00", r"\ud83d\ude00", r"\ud83d\ude00"));
    message(&frame("m", "n", "v", r"\ud800"));
    for half in [r"\ud800", r"\udc00", r"\ud83d\u0041", r"\ude00\ud83d", r"a\ud83dx"] {
        assert_eq!(ambiguity(frame(half, "n", "v", "a")), Ambiguity::LoneSurrogate, "{half}");
        assert_eq!(ambiguity(frame("m", half, "v", "a")), Ambiguity::LoneSurrogate, "{half}");
        assert_eq!(ambiguity(frame("m", "n", half, "a")), Ambiguity::LoneSurrogate, "{half}");
        let top = format!(r#"{{"jsonrpc":"2.0","method":"m","{half}":1}}"#);
        assert_eq!(ambiguity(top), Ambiguity::LoneSurrogate, "{half}");
        let id = format!(r#"{{"jsonrpc":"2.0","method":"m","id":"{half}"}}"#);
        assert_eq!(ambiguity(id), Ambiguity::LoneSurrogate, "{half}");
    }
}

#[test]
fn the_first_thing_that_is_wrong_is_told_and_syntax_before_all() {
    let frame = r#"{"jsonrpc":"2.0","Method":1,"id":1,"id":2,"method":"m"}"#;
    assert_eq!(ambiguity(frame), Ambiguity::FoldedMember("method"));
    assert_eq!(refusal(frame).id, None);
    assert_eq!(kind(format!("{frame}x")), ScanErrorKind::NotJson);
}

#[test]
fn batches_are_read_element_by_element() {
    let frame = r#" [ {"jsonrpc":"2.0","id":1,"method":"a"} ,{"jsonrpc":"2.0","method":"b"},
        1,{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":3,"Method":"c"},[] ] "#
        .replace('\n', " ");
    let batch = batch(&frame);
    assert_eq!(batch.raw, frame.trim().as_bytes());
    let kinds: Vec<_> = batch
        .elements
        .iter()
        .map(|element| match &element.message {
            Ok(Envelope { kind: Kind::Request { .. }, .. }) => "request",
            Ok(Envelope { kind: Kind::Notification { .. }, .. }) => "notification",
            Ok(Envelope { kind: Kind::Response { .. }, .. }) => "response",
            Err(error) if error.is_ambiguous() => "ambiguous",
            Err(_) => "other",
        })
        .collect();
    let expected = ["request", "notification", "other", "response", "ambiguous", "other"];
    assert_eq!(kinds, expected);
    for element in &batch.elements {
        match scan(element.raw) {
            Ok(Scanned::Message(alone)) => assert_eq!(element.message.as_ref(), Ok(&alone)),
            Ok(Scanned::Batch(_)) => panic!("a batch in a batch"),
            Err(error) if element.raw == b"[]" => {
                assert_eq!(error.kind, ScanErrorKind::EmptyBatch);
            }
            Err(error) => assert_eq!(element.message.as_ref(), Err(&error)),
        }
    }
}

#[test]
fn batches_are_read_to_the_limit_and_no_further() {
    let of = |count: usize| {
        let elements: Vec<_> = (0..count)
            .map(|number| format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"m"}}"#))
            .collect();
        format!("[{}]", elements.join(","))
    };
    assert_eq!(batch(&of(1)).elements.len(), 1);
    assert_eq!(batch(&of(MAX_BATCH)).elements.len(), MAX_BATCH);
    assert_eq!(kind(of(MAX_BATCH + 1)), ScanErrorKind::BatchTooLong);
    // The error names every request that is waiting for an answer.
    let told = |count: usize| refusal(of(count)).batch.len();
    assert_eq!(told(MAX_BATCH + 1), MAX_BATCH + 1);
    assert_eq!((told(MAX_REFUSED), told(MAX_REFUSED + 1)), (MAX_REFUSED, MAX_REFUSED));
    assert_eq!(kind("[]"), ScanErrorKind::EmptyBatch);
    assert_eq!(kind(" [ ] "), ScanErrorKind::EmptyBatch);
    // Elements past the limit must be valid JSON too.
    assert_eq!(kind(of(MAX_BATCH + 1).replace("100,", "100,,")), ScanErrorKind::NotJson);
}

#[test]
fn two_requests_of_a_batch_with_one_id_are_refused() {
    let two = |first: &str, second: &str| {
        format!(
            r#"[{{"jsonrpc":"2.0","id":{first},"method":"a"}},{{"jsonrpc":"2.0","id":{second},"method":"b"}}]"#
        )
    };
    for (first, second) in [("1", "1"), ("\"a\"", "\"a\""), ("\"a\"", r#""\u0061""#)] {
        let error = refusal(two(first, second));
        assert_eq!(error.kind, ScanErrorKind::RepeatedId);
        assert!(error.is_ambiguous());
        assert_eq!(error.batch.len(), 1, "each id once");
    }
    for (first, second) in [("1", "2"), ("1", "\"1\""), ("\"a\"", "\"A\"")] {
        batch(&two(first, second));
    }
    let answers = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    batch(&format!("[{answers},{answers}]"));
}

#[test]
fn words_of_an_error_hold_nothing_of_the_frame() {
    let error = refusal(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"NAME":"secret"}}"#);
    let words = "some readers confuse a member of `params` with `name`";
    assert_eq!(error.to_string(), words);
    assert_eq!(kind("secret").to_string(), "not JSON");
}

#[test]
fn ids_are_found_by_type_and_what_they_say() {
    let id = |token: &str| {
        let frame = format!(r#"{{"jsonrpc":"2.0","id":{token},"method":"m"}}"#);
        match message(&frame).kind {
            Kind::Request { id, .. } => {
                assert_eq!(id.raw(), token.as_bytes());
                id.to_owned()
            }
            other => panic!("{other:?}"),
        }
    };
    let mut waiting = HashMap::new();
    for token in ["1", "\"1\"", "1.0", r#""a\/b""#, "\"\""] {
        assert!(waiting.insert(id(token), token).is_none(), "{token}");
    }
    let frame = r#"{"jsonrpc":"2.0","id":"a/b","result":1}"#;
    let Kind::Response { id: Some(answered), .. } = message(frame).kind else { panic!() };
    assert_eq!(waiting.get(answered.key()), Some(&r#""a\/b""#));
    assert_eq!(waiting.get(id("\"1\"").key()), Some(&"\"1\""));
    assert_eq!(waiting.get(id("1").key()), Some(&"1"));
    for other in ["01", "\"01\"", "1e0", "\"a\""] {
        assert_eq!(waiting.get(other.as_bytes()), None, "{other}");
    }
    assert_eq!(id(r#""a\/b""#), id("\"a/b\""));
    assert_ne!(id(r#""\"1\"""#), id("\"1\""));
    assert_eq!(id(r#""a\/b""#).raw(), br#""a\/b""#);
    for digits in [20, 21, 22, 23, 24, MAX_ID_BYTES] {
        let token = "7".repeat(digits);
        let kept = id(&token);
        assert_eq!((kept.raw(), kept.key()), (token.as_bytes(), token.as_bytes()), "{digits}");
        assert_eq!((kept.clone(), kept.as_id().raw()), (kept.clone(), token.as_bytes()));
        assert_ne!(kept, id(&token.replacen('7', "8", 1)));
    }
}

#[test]
fn ids_are_read_to_the_limit_and_no_further() {
    let string = |bytes: usize| {
        format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"m"}}"#, "x".repeat(bytes - 2))
    };
    let number =
        |bytes: usize| format!(r#"{{"jsonrpc":"2.0","id":{},"result":1}}"#, "1".repeat(bytes));
    message(&string(MAX_ID_BYTES));
    message(&number(MAX_ID_BYTES));
    assert_eq!(kind(string(MAX_ID_BYTES + 1)), ScanErrorKind::IdTooLong);
    assert_eq!(kind(number(MAX_ID_BYTES + 1)), ScanErrorKind::IdTooLong);
}
