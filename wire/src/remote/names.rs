//! Names as header values: plain if possible, otherwise in the base64 form that revision 2026-07-28
//! defines.

use super::limits::MAX_HEADER_VALUE_BYTES;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::HeaderValue;

const OPENING: &str = "=?base64?";
const CLOSING: &str = "?=";

/// The header value for a name. Returns `None` if it would be too long, which leaves the refusal to
/// the server.
pub(super) fn header_value(name: &str) -> Option<HeaderValue> {
    if name.len() > MAX_HEADER_VALUE_BYTES {
        return None;
    }
    let text = if is_plain(name) {
        name.to_owned()
    } else {
        format!("{OPENING}{}{CLOSING}", BASE64_STANDARD.encode(name))
    };
    let mut value =
        HeaderValue::from_str(&text).ok().filter(|v| v.len() <= MAX_HEADER_VALUE_BYTES)?;
    // The URI of a resource may hold a secret.
    value.set_sensitive(true);
    Some(value)
}

/// Whether a name is printable ASCII without surrounding spaces, and cannot be mistaken for the
/// encoded form.
fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| (0x20..=0x7e).contains(&byte))
        && name.trim_matches(' ').len() == name.len()
        && !name.starts_with(OPENING)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, expected: &str) {
        let value = header_value(name).unwrap();
        assert_eq!(value.to_str().unwrap(), expected);
        assert!(value.is_sensitive());
    }

    #[test]
    fn plain_names_stay_as_they_are() {
        check("get_weather", "get_weather");
        check("two words", "two words");
        check("file:///a?b=c", "file:///a?b=c");
    }

    #[test]
    fn other_names_are_encoded() {
        check("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?=");
        check(" padded ", "=?base64?IHBhZGRlZCA=?=");
        check("line1\nline2", "=?base64?bGluZTEKbGluZTI=?=");
        check("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=");
        check("", "=?base64??=");
    }

    #[test]
    fn a_value_at_the_limit_is_sent_and_one_past_it_is_not() {
        assert!(header_value(&"x".repeat(MAX_HEADER_VALUE_BYTES)).is_some());
        assert!(header_value(&"x".repeat(MAX_HEADER_VALUE_BYTES + 1)).is_none());
        let encoded = (MAX_HEADER_VALUE_BYTES - OPENING.len() - CLOSING.len()) / 4 * 3;
        assert!(header_value(&"\u{1}".repeat(encoded)).is_some());
        assert!(header_value(&"\u{1}".repeat(encoded + 1)).is_none());
    }
}
