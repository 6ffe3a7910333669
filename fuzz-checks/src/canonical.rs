//! The canonical form is a fixed point: it can be parsed, and its own canonical form and hash are
//! the same bytes.

use contract::canonical::{Position, canonical};
use contract::json::{Document, ReadError};
use contract::surface::{Entry, EntryId, EntryType};

pub fn run(bytes: &[u8]) {
    let Ok(document) = Document::parse_bytes(bytes) else { return };
    for position in [Position::Plain, Position::Schema, Position::SchemaMap, Position::Set] {
        let once = canonical(document.root(), position);
        let Some(again) = read_again(&once) else { return };
        assert_eq!(canonical(again.root(), position), once, "{position:?}");
    }
    let text = canonical(document.root(), Position::Plain);
    let text = String::from_utf8(text).expect("a canonical form is text");
    for entry_type in EntryType::ALL {
        let id = EntryId::new(entry_type, "key");
        let came = Entry::from_raw(id.clone(), document.root().raw()).expect("it was read before");
        let rewritten = Entry::from_raw(id, &text).expect("a canonical form is JSON");
        assert_eq!(came.entry_hash(), rewritten.entry_hash(), "{entry_type}");
        assert_eq!(came.definition_hash(), rewritten.definition_hash(), "{entry_type}");
    }
}

/// The reader limits the notation of numbers. At that limit, the canonical notation can be a few
/// characters longer, or its exponent larger (`991e10000` is `9.91e+10002`): only then may it fail
/// to parse.
fn read_again(canonical: &[u8]) -> Option<Document<'_>> {
    match Document::parse_bytes(canonical) {
        Ok(document) => Some(document),
        Err(ReadError::ExponentTooLarge { .. } | ReadError::NumberTooLong { .. }) => None,
        Err(error) => panic!("a canonical form is not JSON: {error}"),
    }
}
