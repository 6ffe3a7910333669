//! Checks the canonical form against the vectors in `conformance/canonical`: text in, bytes or a
//! refusal out.
#![allow(
    clippy::panic,
    reason = "a test may stop, also in its functions that are not marked as one"
)]

use contract::canonical::{Position, canonical_text};
use contract::json::{Document, ReadError};
use serde_json::Value;

const NUMBERS: &str = include_str!("../../conformance/canonical/numbers.json");
const STRINGS: &str = include_str!("../../conformance/canonical/strings.json");
const SETS: &str = include_str!("../../conformance/canonical/sets.json");
const REFUSED: &str = include_str!("../../conformance/canonical/refused.json");

fn vectors(file: &str) -> Vec<Value> {
    let vectors: Vec<Value> = serde_json::from_str(file).unwrap_or_default();
    assert!(vectors.len() >= 15, "a file of vectors is missing or cut");
    vectors
}

fn member<'a>(vector: &'a Value, name: &str) -> Option<&'a str> {
    vector.get(name).and_then(Value::as_str)
}

/// The bytes of a vector's input: text, or hexadecimal if they are not valid text.
fn input(vector: &Value) -> Vec<u8> {
    match (member(vector, "input"), member(vector, "inputHex")) {
        (Some(text), None) => text.as_bytes().to_vec(),
        (None, Some(digits)) => hex::decode(digits).unwrap_or_default(),
        _ => Vec::new(),
    }
}

fn form(bytes: &[u8], position: Position) -> Result<String, ReadError> {
    Document::parse_bytes(bytes).map(|document| canonical_text(document.root(), position))
}

fn check(file: &str) {
    for vector in vectors(file) {
        let position = match member(&vector, "position") {
            Some("schema") => Position::Schema,
            Some("plain") | None => Position::Plain,
            other => panic!("{other:?} is no position"),
        };
        let expected = member(&vector, "canonical").map(str::to_owned);
        let found = form(&input(&vector), position);
        assert_eq!(found.as_ref().ok(), expected.as_ref(), "{vector}\n{found:?}");
        let again = expected.map(|text| form(text.as_bytes(), position));
        if vector.get("isReadable") != Some(&Value::Bool(false)) {
            assert_eq!(again.as_ref(), Some(&found), "not a fixed point: {vector}");
        }
    }
}

#[test]
fn numbers_have_one_spelling_each() {
    check(NUMBERS);
}

#[test]
fn strings_and_members_are_written_as_rfc_8785_says() {
    check(STRINGS);
}

#[test]
fn sets_are_sorted_where_json_schema_has_them_and_nowhere_else() {
    check(SETS);
}

#[test]
fn what_can_be_read_in_more_than_one_way_is_refused_with_its_reason() {
    for vector in vectors(REFUSED) {
        let reason = match form(&input(&vector), Position::Plain) {
            Ok(form) => panic!("read as {form}: {vector}"),
            Err(ReadError::Syntax { .. }) => "syntax",
            Err(ReadError::NotUtf8 { .. }) => "not-utf-8",
            Err(ReadError::DuplicateMember { .. }) => "duplicate-member",
            Err(ReadError::LoneSurrogate { .. }) => "lone-surrogate",
            Err(ReadError::TooDeep { .. }) => "too-deep",
            Err(ReadError::NumberTooLong { .. }) => "number-too-long",
            Err(ReadError::ExponentTooLarge { .. }) => "exponent-too-large",
            Err(ReadError::TooLong) => "too-long",
        };
        assert_eq!(Some(reason), member(&vector, "error"), "{vector}");
    }
}

/// Checks the numbers in the vectors: if a double represents a value exactly, its shortest digits
/// are RFC 8785's.
#[test]
fn what_a_double_prints_shortest_is_printed_as_the_double_is() {
    let mut compared = 0;
    for vector in vectors(NUMBERS) {
        let (Some(spelling), Some(expected)) =
            (member(&vector, "input"), member(&vector, "canonical"))
        else {
            continue;
        };
        let double: f64 = spelling.parse().unwrap_or(f64::NAN);
        // Rust prints the shortest digits that read back as the same double; convert both sides to
        // the same layout.
        let shortest = form(format!("{double:e}").as_bytes(), Position::Plain);
        let is_exact = shortest.as_deref() == Ok(expected);
        let reads_back = expected.parse::<f64>() == Ok(double);
        assert!(is_exact || reads_back || !double.is_finite(), "{vector}");
        compared += usize::from(is_exact);
    }
    assert!(compared >= 40, "only {compared} vectors are what a double prints");
}
