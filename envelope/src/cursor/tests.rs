use super::*;
use serde_json::value::RawValue;

fn walk(text: &[u8]) -> Result<&[u8], Fault> {
    let mut cursor = Cursor::new(text);
    cursor.white_space();
    let value = cursor.value()?;
    cursor.end().map(|()| value)
}

/// Compares with `serde_json`, which accepts the same syntax for a raw value: no limit on numbers,
/// surrogates or nesting.
fn check(text: &str) {
    let theirs: Option<&RawValue> = serde_json::from_str(text).ok();
    let ours = walk(text.as_bytes()).ok();
    assert_eq!(ours, theirs.map(|value| value.get().as_bytes()), "{text:?}");
}

#[test]
fn what_is_json_is_what_serde_json_says() {
    let values = [
        "null",
        "nul",
        "nulll",
        "true",
        "tru",
        "false",
        "False",
        "0",
        "-0",
        "00",
        "01",
        "-",
        "-01",
        "1.",
        ".5",
        "1.5",
        "1.e1",
        "1e",
        "1e+",
        "1e5",
        "1E-05",
        "+1",
        "NaN",
        "Infinity",
        "0x10",
        "1_000",
        "\"\"",
        "\"",
        "\"a",
        "'a'",
        r#""\"""#,
        r#""\""#,
        r#""\x""#,
        r#""\u12""#,
        r#""\u12g4""#,
        r#""\uD800""#,
        r#""\ud83d\ude00""#,
        r#""\U0041""#,
        "\"\u{7f}\"",
        "\"\u{0}\"",
        "\"\u{1f}\"",
        "\"\t\"",
        "\"\n\"",
        "\"é€😀\"",
        "[]",
        "[",
        "]",
        "[1]",
        "[1,]",
        "[,1]",
        "[1 2]",
        "[1,2",
        "[1}",
        "{}",
        "{",
        "}",
        r#"{"a"}"#,
        r#"{"a":}"#,
        r#"{"a":1"#,
        r#"{"a":1,}"#,
        r#"{,"a":1}"#,
        r#"{a:1}"#,
        r#"{1:1}"#,
        r#"{"a":1]"#,
        r#"{"a":1 "b":2}"#,
        r#"{"a":1,"b":[{}]}"#,
        r#"{"a"::1}"#,
        "[[],{}]",
        "[{]}",
        "[1]]",
        "1 2",
        "1,",
        "",
        "\u{feff}1",
        "\u{a0}1",
        "1\u{b}",
        "/**/1",
        "// \n1",
        "[1]//",
        "\0",
        "1\0",
    ];
    for value in values {
        check(value);
        for around in [
            (" ", "\t"),
            ("\n", "\r"),
            ("[", "]"),
            ("[0,", "]"),
            ("{\"a\":", "}"),
            ("{\"a\":0,\"\\n\":", ",\"b\":[]}"),
            ("[[[", "]]]"),
            ("{\"a\":{\"b\":[", "]}}"),
        ] {
            check(&format!("{}{value}{}", around.0, around.1));
        }
    }
}

#[test]
fn every_byte_is_seen_at_every_place_of_a_string() {
    // Words, blocks and trailing bytes are each scanned by different code.
    for length in 0..=200 {
        let plain = format!("\"{}\"", "x".repeat(length));
        assert_eq!(walk(plain.as_bytes()), Ok(plain.as_bytes()));
        for place in 1..=length {
            for byte in [0, 0x0a, 0x1f, b'"'] {
                let mut text = plain.clone().into_bytes();
                text[place] = byte;
                assert_eq!(walk(&text), Err(Fault::Syntax), "{byte:#x} at {place} of {length}");
            }
            for byte in [0x20, 0x21, 0x23, 0x5b, 0x5d, 0x7f, 0x80, 0xff] {
                let mut text = plain.clone().into_bytes();
                text[place] = byte;
                assert_eq!(walk(&text), Ok(&text[..]), "{byte:#x} at {place} of {length}");
            }
        }
        for place in 1..length {
            let mut text = plain.clone().into_bytes();
            (text[place], text[place + 1]) = (b'\\', b'"');
            assert_eq!(walk(&text), Ok(&text[..]), "an escape at {place} of {length}");
        }
    }
}

#[test]
fn brackets_are_matched_at_any_depth() {
    let nested = |depth: usize, open: &str, close: &str| {
        format!("{}0{}", open.repeat(depth), close.repeat(depth))
    };
    for depth in [1, 2, 63, 64, 65, 127, 128, 129, 640, 641, MAX_SCAN_DEPTH] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[{\"a\":[", "]}]")] {
            let depth = if open.len() > 5 { depth.div_ceil(4) } else { depth };
            let text = nested(depth, open, close);
            assert_eq!(walk(text.as_bytes()), Ok(text.as_bytes()), "{depth} {open}");
            let short = &text[..text.len() - 1];
            assert_eq!(walk(short.as_bytes()), Err(Fault::Syntax), "{depth} {open}");
            let wrong = format!("{short}{}", if close.ends_with(']') { '}' } else { ']' });
            assert_eq!(walk(wrong.as_bytes()), Err(Fault::Syntax), "{depth} {open}");
        }
    }
}

#[test]
fn a_bracket_that_does_not_fit_is_seen_below_the_words_of_the_stack() {
    // The outermost bracket is an object's and the last closing one is an array's.
    for depth in [63, 64, 65, 128, 129] {
        let inner = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(walk(format!("{{\"a\":{inner}}}").as_bytes()).is_ok(), "{depth}");
        assert!(walk(format!("{{\"a\":{inner}]").as_bytes()).is_err(), "{depth}");
        assert!(walk(format!("[{{\"a\":{inner},\"b\":{inner}}},{inner}]").as_bytes()).is_ok());
        assert!(walk(format!("[{{\"a\":{inner},{inner}}}]").as_bytes()).is_err(), "{depth}");
    }
}

#[test]
fn nesting_is_walked_to_the_limit_and_no_further() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(walk(nested(MAX_SCAN_DEPTH).as_bytes()).is_ok());
    assert_eq!(walk(nested(MAX_SCAN_DEPTH + 1).as_bytes()), Err(Fault::TooDeep));
    assert_eq!(walk("[".repeat(1_000_000).as_bytes()), Err(Fault::TooDeep));
    assert_eq!(walk("{\"\":".repeat(1_000_000).as_bytes()), Err(Fault::TooDeep));
}
