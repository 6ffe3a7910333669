//! The marker scan of any text terminates, stays within its limits, and finds nothing new in
//! approved text.

use contract::inert::{InertLimits, not_inert};
use contract::json::{Document, Node, escape_into};
use contract::markers::{MAX_EXCERPT, MAX_MARKERS, Marker, ToolNames, scan, scan_new};

pub fn run(bytes: &[u8]) {
    if let Ok(document) = Document::parse_bytes(bytes) {
        check(document.root());
    }
    // Most inputs are not JSON: use them as the text of a tool, and as the name of a parameter.
    let text = String::from_utf8_lossy(bytes);
    let mut quoted = Vec::new();
    escape_into(&text, &mut quoted);
    let quoted = String::from_utf8(quoted).expect("an escaped text is text");
    let tool = format!(
        r#"{{"name":"a","description":{quoted},"inputSchema":{{"properties":{{{quoted}:{{}}}}}}}}"#
    );
    let document = Document::parse(&tool).expect("an escaped text is a JSON string");
    check(document.root());
}

fn check(entry: Node<'_>) {
    let tools = ToolNames::new(["search", "list_issues"]);
    let markers = scan(entry, &tools);
    assert!(markers.len() <= MAX_MARKERS);
    markers.iter().for_each(check_marker);
    assert_eq!(markers, scan(entry, &tools));
    assert!(scan_new(entry, entry, &tools).is_empty());
    let limits = InertLimits::default();
    assert_eq!(not_inert(Some(entry), entry, &tools, &limits), None);
    if !markers.is_empty() {
        assert!(not_inert(None, entry, &tools, &limits).is_some(), "marked text is never inert");
    }
}

fn check_marker(marker: &Marker) {
    assert!(marker.excerpt.chars().count() <= MAX_EXCERPT, "{:?}", marker.excerpt);
    assert!(!marker.excerpt.chars().any(char::is_control), "{:?}", marker.excerpt);
    assert!(marker.pointer.is_empty() || marker.pointer.starts_with('/'), "{:?}", marker.pointer);
}
