use super::*;

fn error(text: &str) -> ReadError {
    Document::parse(text).expect_err(text)
}

#[test]
fn values_keep_the_bytes_they_came_as() {
    let text = r#" {"a" : [1.0, 1e2 ,"\u00e9"], "b":{} , "c":null} "#;
    let document = Document::parse(text).unwrap();
    let root = document.root();
    assert_eq!(root.raw(), text.trim());
    assert_eq!(root.get("a").unwrap().raw(), r#"[1.0, 1e2 ,"\u00e9"]"#);
    let items: Vec<_> = root.get("a").unwrap().items().map(Node::raw).collect();
    assert_eq!(items, ["1.0", "1e2", r#""\u00e9""#]);
    assert_eq!(root.get("a").unwrap().items().last().unwrap().as_str().unwrap(), "é");
    assert_eq!(root.get("b").unwrap().members().count(), 0);
    assert!(root.get("c").unwrap().is_null());
    assert!(root.get("d").is_none());
    assert_eq!(root.members().count(), 3);
}

#[test]
fn duplicate_members_are_refused_after_unescaping() {
    assert!(matches!(error(r#"{"a":1,"\u0061":2}"#), ReadError::DuplicateMember { .. }));
    assert!(matches!(error(r#"[{"x":{"a":1,"b":2,"a":3}}]"#), ReadError::DuplicateMember { .. }));
    let many: Vec<String> = (0..50).map(|n| format!("\"k{n}\":0")).collect();
    let text = format!("{{{}}}", many.join(","));
    assert!(Document::parse(&text).is_ok());
    let text = format!("{{{},\"k7\":1}}", many.join(","));
    assert!(matches!(error(&text), ReadError::DuplicateMember { name, .. } if name == "k7"));
}

#[test]
fn lone_surrogates_are_refused_and_pairs_are_read() {
    for text in
        [r#""\ud800""#, r#""\udc00""#, r#""\ud800\u0041""#, r#""\ud800x""#, r#"{"\ud83d":1}"#]
    {
        assert!(matches!(error(text), ReadError::LoneSurrogate { .. }), "{text}");
    }
    let document = Document::parse(r#""\ud83d\ude00""#).unwrap();
    assert_eq!(document.root().as_str().unwrap(), "😀");
}

#[test]
fn nesting_is_read_to_the_limit_and_no_further() {
    let nested = |depth: usize| format!("{}0{}", "[".repeat(depth), "]".repeat(depth));
    assert!(Document::parse(&nested(MAX_DEPTH)).is_ok());
    assert!(matches!(error(&nested(MAX_DEPTH + 1)), ReadError::TooDeep { .. }));
    assert!(matches!(error(&"[".repeat(1_000_000)), ReadError::TooDeep { .. }));
    let objects = |depth: usize| format!("{}0{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    assert!(Document::parse(&objects(MAX_DEPTH)).is_ok());
    assert!(matches!(error(&objects(MAX_DEPTH + 1)), ReadError::TooDeep { .. }));
}

#[test]
fn numbers_are_read_to_the_limits_and_no_further() {
    assert!(Document::parse(&"1".repeat(MAX_NUMBER_LENGTH)).is_ok());
    assert!(matches!(error(&"1".repeat(MAX_NUMBER_LENGTH + 1)), ReadError::NumberTooLong { .. }));
    for text in ["1e10000", "1e-10000", "1E+10000"] {
        assert!(Document::parse(text).is_ok(), "{text}");
    }
    for text in ["1e10001", "1e-10001", "1e99999999999999999999999"] {
        assert!(matches!(error(text), ReadError::ExponentTooLarge { .. }), "{text}");
    }
}

#[test]
fn what_is_not_json_is_a_syntax_error() {
    for text in [
        "",
        " ",
        "{",
        "[1,]",
        "{\"a\":1,}",
        "{'a':1}",
        "01",
        "+1",
        "1.",
        ".5",
        "1e",
        "-",
        "tru",
        "nul",
        "\"a",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\n\"",
        "[1] 2",
        "{\"a\" 1}",
        "{1:2}",
        "NaN",
        "Infinity",
        "\u{feff}1",
        "// x\n1",
        "[1 2]",
    ] {
        assert!(error(text).is_syntax(), "{text:?}");
    }
    assert!(matches!(Document::parse_bytes(b"\"\xff\""), Err(ReadError::NotUtf8 { offset: 1 })));
}

#[test]
fn the_slots_are_allocated_once_and_stay_within_seven_times_the_text() {
    for text in
        ["[0,0,0,0,0,0,0,0]", "[[],[],[]]", r#"{"a":0,"b":{},"c":[{}]}"#, "0", r#"["a,b:c{["]"#]
    {
        let document = Document::parse(text).unwrap();
        assert!(document.slots.len() <= text.len(), "{text}");
    }
    let text = format!("[{}0]", "0,".repeat(100_000));
    let document = Document::parse(&text).unwrap();
    assert!(document.slots.capacity() * size_of::<Slot>() <= text.len() * 6 + 64);
}

/// One character after the other, as RFC 8785 says.
fn escaped(text: &str) -> String {
    let escape = |character: char| match character {
        '"' | '\\' => format!("\\{character}"),
        '\u{8}' => "\\b".to_owned(),
        '\t' => "\\t".to_owned(),
        '\n' => "\\n".to_owned(),
        '\u{c}' => "\\f".to_owned(),
        '\r' => "\\r".to_owned(),
        '\0'..' ' => format!("\\u{:04x}", u32::from(character)),
        _ => character.to_string(),
    };
    format!("\"{}\"", text.chars().map(escape).collect::<String>())
}

proptest::proptest! {
    /// Texts that end before, at and behind the ends of the words and blocks that are read and written at once.
    #[test]
    fn a_string_is_escaped_wherever_its_characters_stand(
        parts in proptest::collection::vec("[a-z\u{e9}]{0,9}[\"\\\\\u{0}-\u{1f}]{0,3}", 0..120),
    ) {
        let text = parts.concat();
        let mut out = Vec::new();
        escape_into(&text, &mut out);
        proptest::prop_assert_eq!(String::from_utf8(out).unwrap(), escaped(&text));
    }
}
