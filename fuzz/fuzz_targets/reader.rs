//! The reader takes any bytes: it answers or refuses, and every value it answers reads again from its own bytes.
#![no_main]

use contract::json::{Document, Kind, Node};
use libfuzzer_sys::fuzz_target;

/// Reading each value again costs the square of the nesting, so only this many are.
const VALUES_READ_AGAIN: usize = 64;

fuzz_target!(|bytes: &[u8]| {
    // A capture has its own ways through the reader: lists, limits, repeated entries.
    if let Ok(surface) = contract::surface::read_capture(bytes) {
        let again = contract::surface::read_capture(surface.to_capture().as_bytes());
        let again = again.expect("a capture that was written can be read");
        assert_eq!(again.surface_hash(), surface.surface_hash());
    }
    let Ok(document) = Document::parse_bytes(bytes) else { return };
    let mut left = VALUES_READ_AGAIN;
    walk(document.root(), &mut left);
});

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
