//! The reader accepts any bytes: it parses or refuses them, and every value it returns parses again
//! from its own bytes.

use contract::json::{Document, Kind, Node};

/// Parsing each value again is quadratic in the nesting, so the number is limited.
const VALUES_READ_AGAIN: usize = 64;

pub fn run(bytes: &[u8]) {
    // A capture is parsed with additional rules: lists, limits, repeated entries.
    if let Ok(surface) = contract::surface::read_capture(bytes) {
        let again = contract::surface::read_capture(surface.to_capture().as_bytes());
        let again = again.expect("a capture that was written can be read");
        assert_eq!(again.surface_hash(), surface.surface_hash());
    }
    let Ok(document) = Document::parse_bytes(bytes) else { return };
    if let Ok(other) = serde_json::from_slice::<serde_json::Value>(bytes) {
        compare_with_serde(document.root(), &other);
    }
    let mut left = VALUES_READ_AGAIN;
    walk(document.root(), &mut left);
}

fn walk(node: Node<'_>, left: &mut usize) {
    if *left == 0 {
        return;
    }
    *left -= 1;
    let again = Document::parse(node.raw()).expect("a value's own bytes are JSON");
    assert_eq!(again.root().kind(), node.kind());
    assert_eq!(again.root().raw(), node.raw());
    assert_eq!(again.root().size(), node.size());
    match node.kind() {
        Kind::Object => {
            for (name, value) in node.members() {
                let name = name.as_str().expect("a member's name is a string");
                let found = node.get(&name).expect("a member is found by its name");
                assert_eq!(found.index(), value.index(), "no name appears twice");
                walk(value, left);
            }
        }
        Kind::Array => node.items().for_each(|item| walk(item, left)),
        Kind::String => assert_eq!(again.root().as_str(), node.as_str()),
        Kind::Null | Kind::False | Kind::True | Kind::Number => {}
    }
}

/// Everything that is parsed here is also parsed by `serde_json`, with the same strings.
/// `serde_json` is more lenient, except for its nesting limit and for numbers that do not fit into
/// a double.
fn compare_with_serde(node: Node<'_>, other: &serde_json::Value) {
    match (node.kind(), other) {
        (Kind::Null, serde_json::Value::Null) => {}
        (Kind::True | Kind::False, serde_json::Value::Bool(value)) => {
            assert_eq!(node.as_bool(), Some(*value));
        }
        (Kind::Number, serde_json::Value::Number(_)) => {}
        (Kind::String, serde_json::Value::String(text)) => {
            assert_eq!(node.as_str().as_deref(), Some(text.as_str()));
        }
        (Kind::Array, serde_json::Value::Array(items)) => {
            assert_eq!(node.items().count(), items.len());
            node.items().zip(items).for_each(|(item, other)| compare_with_serde(item, other));
        }
        (Kind::Object, serde_json::Value::Object(members)) => {
            assert_eq!(node.members().count(), members.len());
            for (name, value) in node.members() {
                let name = name.as_str().expect("a member's name is a string");
                compare_with_serde(value, members.get(&*name).expect("the same names"));
            }
        }
        (kind, _) => panic!("{kind:?} is something else to serde_json"),
    }
}
