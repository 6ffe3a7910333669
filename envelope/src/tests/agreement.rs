//! Generated frames, intact and damaged, are read here exactly as by `serde_json` and the strict
//! reader.
//!
//! Refused here but read by `serde_json`: non-messages, ambiguous frames, nesting past the limit.
//! Read here but refused by `serde_json` as a value: lone surrogates and numbers too large for a
//! double in values, and nesting past 128.
use super::*;
use contract::json::{Document, ReadError};
use serde_json::Value;
use serde_json::value::RawValue;

const FRAMES: u64 = 20_000;

/// Pseudo-random numbers that are the same on each run.
struct Source(u64);

impl Source {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(count).unwrap()).unwrap()
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    fn space(&mut self) -> &'static str {
        self.one(&["", "", "", "", "", "", " ", "\t", "  "])
    }

    fn value(&mut self, depth: usize) -> String {
        if depth == 0 || self.below(3) > 0 {
            return self
                .one(&[
                    "0",
                    "-1.5e7",
                    "null",
                    "true",
                    "\"\"",
                    "\"a\"",
                    r#""\u0061\n""#,
                    r#""\ud83d\ude00""#,
                    "\"é\"",
                    "{}",
                    "[]",
                    "12345678901234567890",
                    "\"2.0\"",
                    "\"tools/call\"",
                ])
                .to_owned();
        }
        let is_object = self.below(2) == 0;
        let parts: Vec<_> = (0..self.below(4))
            .map(|number| {
                let (space, value) = (self.space(), self.value(depth - 1));
                if is_object { format!("{space}\"k{number}\":{value}") } else { value }
            })
            .collect();
        let inner = parts.join(",");
        if is_object { format!("{{{inner}}}") } else { format!("[{inner}]") }
    }

    fn members(&mut self, names: &[&str], depth: usize) -> String {
        let parts: Vec<_> = (0..self.below(6))
            .map(|_| {
                let (name, value) = (self.one(names), self.value(depth));
                format!("{}\"{name}\"{}:{}{value}", self.space(), self.space(), self.space())
            })
            .collect();
        parts.join(",")
    }

    fn frame(&mut self) -> String {
        let params = [
            "name",
            "arguments",
            "_meta",
            "cursor",
            "uri",
            "x",
            "y",
            r"n\u0061me",
            "Name",
            "NAMES",
            "taſk",
            "ref",
        ];
        let others = ["x", "y", "z", "Method", "iD", r"i\u0064", "paramſ", "extra", "result"];
        let mut parts = vec![r#""jsonrpc":"2.0""#.to_owned()];
        if self.below(4) > 0 {
            let id = self.one(&["1", "\"a\"", r#""\u0061""#, "-3.5", "null", "[]"]);
            parts.push(format!("\"id\":{id}"));
        }
        match self.below(3) {
            0 => parts.push(format!("\"result\":{}", self.value(4))),
            1 => parts.push(r#""method":"tools\/call""#.to_owned()),
            _ => parts.push(r#""method":"x""#.to_owned()),
        }
        if self.below(3) > 0 {
            let inside = self.members(&params, 3);
            parts.push(format!("\"params\":{{{inside}}}"));
        }
        if self.below(4) == 0 {
            parts.push(format!("\"{}\":{}", self.one(&others), self.value(2)));
        }
        if self.below(2) == 0 {
            let (left, right) = (self.below(parts.len()), self.below(parts.len()));
            parts.swap(left, right);
        }
        format!("{}{{{}}}{}", self.space(), parts.join(","), self.space())
    }

    fn damage(&mut self, frame: &str) -> String {
        let mut bytes = frame.as_bytes().to_vec();
        for _ in 0..=self.below(3) {
            let place = self.below(bytes.len());
            match self.below(3) {
                0 => drop(bytes.remove(place)),
                1 => bytes.insert(place, b"{}[]\",:\\0-e.u\x01 "[self.below(15)]),
                _ => bytes[place] = b"{}[]\",:\\0-e.u\x01 "[self.below(15)],
            }
            if bytes.is_empty() {
                break;
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

fn is_json_to_serde(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

fn check_syntax(frame: &str) -> bool {
    let is_json = !scan(frame.as_bytes()).is_err_and(|error| error.kind == ScanErrorKind::NotJson);
    assert_eq!(is_json, is_json_to_serde(frame), "{frame}");
    is_json
}

#[test]
fn what_is_json_is_what_serde_json_says_however_it_is_damaged() {
    let mut source = Source(0x9e37_79b9_7f4a_7c15);
    let mut counts = (0, 0);
    for _ in 0..FRAMES {
        let frame = source.frame();
        assert!(check_syntax(&frame), "{frame}");
        let damaged = source.damage(&frame);
        if check_syntax(&damaged) {
            counts.0 += 1;
        } else {
            counts.1 += 1;
        }
    }
    assert!(counts.0 > 1_000 && counts.1 > 1_000, "{counts:?}");
}

fn parsed(raw: &[u8]) -> Value {
    serde_json::from_slice(raw).unwrap()
}

/// The parts that were read are the members that `serde_json` finds.
fn check_parts(envelope: &Envelope<'_>, value: &Value) {
    let id = match &envelope.kind {
        Kind::Request { id, .. } | Kind::Response { id: Some(id), .. } => parsed(id.raw()),
        Kind::Notification { .. } => {
            assert_eq!(value.get("id"), None);
            Value::Null
        }
        Kind::Response { id: None, .. } => Value::Null,
    };
    assert_eq!(value.get("id").cloned().unwrap_or_default(), id);
    match &envelope.kind {
        Kind::Request { method, .. } | Kind::Notification { method } => {
            assert_eq!(value["method"], **method);
        }
        Kind::Response { outcome: Outcome::Result(raw), .. } => {
            assert_eq!(value["result"], parsed(raw));
        }
        Kind::Response { outcome: Outcome::Error(raw), .. } => {
            assert_eq!(value["error"], parsed(raw));
        }
    }
    let Some(params) = &envelope.params else {
        assert_eq!(value.get("params"), None);
        return;
    };
    assert_eq!(parsed(params.raw), value["params"]);
    for (name, text) in [("name", &params.name), ("uri", &params.uri)] {
        match value["params"].get(name) {
            Some(Value::String(expected)) => assert_eq!(text.as_deref(), Some(expected.as_str())),
            Some(_) => assert!(text.is_none() && params.is_odd),
            None => assert_eq!(*text, None),
        }
    }
    for (name, raw) in
        [("cursor", params.cursor), ("arguments", params.arguments), ("_meta", params.meta)]
    {
        assert_eq!(raw.map(parsed).as_ref(), value["params"].get(name));
    }
}

#[test]
fn what_is_read_of_a_message_is_what_serde_json_reads() {
    let mut source = Source(0x2545_f491_4f6c_dd1d);
    let mut messages = 0;
    for _ in 0..FRAMES {
        let mut frame = source.frame();
        if source.below(3) == 0 {
            frame = source.damage(&frame);
        }
        if let Ok(Scanned::Message(envelope)) = scan(frame.as_bytes()) {
            let Ok(value) = serde_json::from_str::<Value>(&frame) else {
                // Damage creates lone surrogates and large exponents.
                assert!(is_json_to_serde(&frame), "{frame}");
                continue;
            };
            messages += 1;
            check_parts(&envelope, &value);
        }
    }
    assert!(messages > 3_000, "{messages}");
}

#[test]
fn members_that_appear_twice_are_those_the_strict_reader_finds() {
    let mut source = Source(0xda94_2042_e4dd_58b5);
    let mut counts = (0, 0);
    for _ in 0..FRAMES {
        // No values that contain objects, because the strict reader checks those too.
        let names = ["name", "x", r"\u0078", "y", r"nam\u0065", "ref"];
        let (params, others) = (source.members(&names, 0), source.members(&["z", r"\u007a"], 0));
        let others = if others.is_empty() { others } else { format!(",{others}") };
        let frame = format!(r#"{{"jsonrpc":"2.0","method":"m","params":{{{params}}}{others}}}"#);
        let is_repeated = match scan(frame.as_bytes()) {
            Ok(_) => false,
            Err(error) => {
                let repeated = [Ambiguity::RepeatedMember, Ambiguity::RepeatedParameter];
                assert!(repeated.map(ScanErrorKind::Ambiguous).contains(&error.kind), "{frame}");
                true
            }
        };
        let strict = Document::parse(&frame);
        let expected = matches!(strict, Err(ReadError::DuplicateMember { .. }));
        assert_eq!(is_repeated, expected, "{frame}");
        if is_repeated {
            counts.0 += 1;
        } else {
            counts.1 += 1;
        }
    }
    assert!(counts.0 > 1_000 && counts.1 > 1_000, "{counts:?}");
}

#[test]
fn members_that_fold_are_those_that_contract_names() {
    let letters = ['m', 'e', 't', 'h', 'o', 'd', 'M', 'E', 'T', 'H', 'O', 'D', 'ı', 'i', 'I', 'd'];
    let mut source = Source(0x1234_5678_9abc_def1);
    let mut folded = 0;
    for _ in 0..FRAMES {
        let name: String = if source.below(2) == 0 {
            "method"
                .chars()
                .map(
                    |letter| {
                        if source.below(2) == 0 { letter.to_ascii_uppercase() } else { letter }
                    },
                )
                .collect()
        } else {
            (0..2).map(|_| letters[source.below(letters.len())]).collect()
        };
        let frame = format!(r#"{{"jsonrpc":"2.0","{name}":"x","result":0}}"#);
        let ours = matches!(
            scan(frame.as_bytes()).map_err(|error| error.kind),
            Err(ScanErrorKind::Ambiguous(Ambiguity::FoldedMember(_)))
        );
        let theirs = contract::names::folds_to(&name, &super::super::ENVELOPE).is_some();
        assert_eq!(ours, theirs, "{frame}");
        folded += u64::from(ours);
    }
    assert!(folded > 1_000, "{folded}");
}

#[test]
fn what_serde_json_refuses_for_its_limits_passes_in_values() {
    let with = |value: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"result":{value}}}"#);
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for value in [r#""\ud800""#, "1e999", &deep] {
        let frame = with(value);
        message(&frame);
        assert!(serde_json::from_str::<Value>(&frame).is_err(), "{frame}");
        assert!(is_json_to_serde(&frame), "{frame}");
    }
}
