//! A `WWW-Authenticate` header may be any bytes. The parsed challenge is within limits, and parsing
//! is deterministic.

use oauth::Challenge;
use oauth::challenge::MAX_CHALLENGE_BYTES;

pub fn run(bytes: &[u8]) {
    let read = Challenge::read([bytes]);
    assert_eq!(read, Challenge::read([bytes]));
    // Two headers are equivalent to one with a comma between them.
    let joined = [bytes, b"," as &[u8], b"Negotiate"].concat();
    if joined.len() <= MAX_CHALLENGE_BYTES {
        assert_eq!(Challenge::read([bytes, b"Negotiate"]), Challenge::read([joined.as_slice()]));
    }
    let Some(challenge) = read else { return };
    assert!(bytes.len() <= MAX_CHALLENGE_BYTES);
    let text = std::str::from_utf8(bytes).expect("a challenge is text");
    for scope in &challenge.scopes {
        assert!(!scope.is_empty() && !scope.contains([' ', '"', '\\']));
        assert!(text.contains('\\') || text.contains(scope.as_str()));
    }
    for value in [&challenge.resource_metadata, &challenge.error].into_iter().flatten() {
        assert!(text.contains('\\') || text.contains(value.as_str()));
    }
}
