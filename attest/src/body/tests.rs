use super::*;
use crate::fixture::{baseline, baseline_2};
use contract::json::Document;
use serde_json::{Value, json};

fn body(document: &Value) -> Result<Body, ShapeError> {
    let text = document.to_string();
    let document = Document::parse(&text).unwrap();
    Body::read(Fields::of(document.root(), "it").unwrap())
}

#[track_caller]
fn check(document: &Value, expected: &str) {
    assert_eq!(String::from_utf8(body(document).unwrap().canonical()).unwrap(), expected);
}

#[test]
fn the_body_is_sorted_without_white_space() {
    let mut document = baseline();
    document["capabilities"] = json!(["z", "mcp-server", "B"]);
    document["netAllowedHosts"] = json!(["b.example", "a.example"]);
    check(
        &document,
        r#"{"capabilities":["B","mcp-server","z"],"clearance":"restricted-plus","id":"mcp.example.mail","netAllowedHosts":["a.example","b.example"],"publisher":"acme","signerKeyId":"acme-2026","v":1,"verification":"tested","version":"2.3.1"}"#,
    );
}

#[test]
fn absent_members_are_as_the_reference_writes_them() {
    let document = json!({
        "v": 1, "id": "i", "publisher": "p", "version": "1", "clearance": "c", "capabilities": [],
        "extra": "passed over",
    });
    let ours = r#"{"capabilities":[],"clearance":"c","id":"i","netAllowedHosts":[],"publisher":"p","signerKeyId":null,"v":1,"version":"1"}"#;
    check(&document, ours);
    let reference = body(&document).unwrap().canonical_of_reference().unwrap();
    let theirs = ours.replace(r#""v":1,"#, r#""v":1,"verification":undefined,"#);
    assert_eq!(String::from_utf8(reference).unwrap(), theirs);
    assert_eq!(body(&baseline()).unwrap().canonical_of_reference(), None);
    let mut second = baseline_2();
    second["verification"] = Value::Null;
    assert_eq!(body(&second).unwrap().canonical_of_reference(), None);
}

#[test]
fn values_are_trimmed_and_elements_are_not() {
    let mut document = baseline();
    document["id"] = json!(" mcp.example.mail\n");
    document["capabilities"] = json!(["mcp-server", " a"]);
    check(
        &document,
        r#"{"capabilities":[" a","mcp-server"],"clearance":"restricted-plus","id":"mcp.example.mail","netAllowedHosts":[],"publisher":"acme","signerKeyId":"acme-2026","v":1,"verification":"tested","version":"2.3.1"}"#,
    );
}

#[test]
fn strings_are_escaped_and_sorted_as_the_reference_does() {
    let mut document = baseline();
    document["id"] = json!("a\"\\/\u{1}\n\u{7f}é😀");
    document["capabilities"] = json!(["\u{ff5e}", "😀", "é"]);
    let text = String::from_utf8(body(&document).unwrap().canonical()).unwrap();
    // Sorted by code units: the emoji's first one is below U+FF5E.
    assert!(text.starts_with("{\"capabilities\":[\"é\",\"😀\",\"\u{ff5e}\"]"), "{text}");
    assert!(text.contains("\"id\":\"a\\\"\\\\/\\u0001\\n\u{7f}é😀\""), "{text}");
}

#[test]
fn version_2_has_a_body_of_its_own() {
    check(
        &baseline_2(),
        &format!(
            r#"{{"capabilities":["mcp-server","tool.invoke"],"clearance":"restricted-plus","expires":"2027-01-01T00:00:00Z","id":"mcp.example.mail","netAllowedHosts":[],"notBefore":"2026-01-01T00:00:00Z","packageDigest":null,"publisher":"acme","signerKeyId":"acme-2026","toolClearance":{{"search":"internal"}},"toolDigests":{{"search":"{}"}},"v":2,"verification":"tested","version":"2.3.1"}}"#,
            "ab".repeat(32)
        ),
    );
    let bare = json!({ "v": 2, "id": "i", "publisher": "p", "version": "1", "clearance": "c" });
    check(
        &bare,
        r#"{"capabilities":[],"clearance":"c","expires":null,"id":"i","netAllowedHosts":[],"notBefore":null,"packageDigest":null,"publisher":"p","signerKeyId":null,"toolClearance":{},"toolDigests":{},"v":2,"verification":null,"version":"1"}"#,
    );
}

#[test]
fn members_of_version_2_are_unknown_to_version_1() {
    let mut document = baseline_2();
    document["v"] = json!(1);
    document["expires"] = json!(7);
    assert_eq!(body(&document), body(&baseline()));
}

#[test]
fn another_version_is_refused() {
    for version in
        [json!(0), json!(3), json!("1"), json!(1.0), json!(true), Value::Null, json!([1])]
    {
        let mut document = baseline();
        document["v"] = version.clone();
        let error = ShapeError::Unexpected { member: "v", expected: "1 or 2" };
        assert_eq!(body(&document), Err(error), "{version}");
    }
}

#[test]
fn members_of_another_kind_are_refused() {
    for (member, value) in [
        ("id", json!(7)),
        ("id", json!(" ")),
        ("id", Value::Null),
        ("publisher", json!({})),
        ("version", json!([])),
        ("clearance", json!(true)),
        ("capabilities", json!("mcp-server")),
        ("capabilities", json!([1])),
        ("netAllowedHosts", json!("a.example")),
        ("netAllowedHosts", json!({ "0": "a.example" })),
        ("netAllowedHosts", json!([["a.example"]])),
        ("signerKeyId", json!(1)),
        ("verification", json!(1)),
        ("notBefore", json!("2026-13-01T00:00:00Z")),
        ("notBefore", json!(0)),
        ("expires", json!("tomorrow")),
        ("expires", json!("2026-01-01T00:00:00Z")),
        ("toolClearance", json!(["search"])),
        ("toolClearance", json!({ "search": 1 })),
        ("toolDigests", json!({ "search": "AB".repeat(32) })),
        ("toolDigests", json!({ "search": "ab" })),
        ("packageDigest", json!("sha1-AAAA")),
        ("packageDigest", json!("ab".repeat(32))),
    ] {
        let mut document = baseline_2();
        assert!(body(&document).is_ok());
        document[member] = value.clone();
        assert!(body(&document).is_err(), "{member}: {value}");
    }
}

#[test]
fn lists_end_at_their_limits() {
    let texts = |count: usize| -> Value { (0..count).map(|at| format!("x{at}")).collect() };
    let tools = |count: usize| -> Value {
        (0..count)
            .map(|at| (format!("t{at}"), json!("ab".repeat(32))))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    for (member, limit, make) in [
        ("capabilities", MAX_CAPABILITIES, &texts as &dyn Fn(usize) -> Value),
        ("netAllowedHosts", MAX_HOSTS, &texts),
        ("toolClearance", MAX_TOOLS, &tools),
        ("toolDigests", MAX_TOOLS, &tools),
    ] {
        let mut document = baseline_2();
        document[member] = make(limit);
        assert!(body(&document).is_ok(), "{member}");
        document[member] = make(limit + 1);
        assert_eq!(body(&document), Err(ShapeError::TooMany { member, limit }));
    }
}
