//! Modifies some members of a server's response, leaving all other bytes unchanged.

use contract::json::escape_into;
use envelope::members;
use memchr::memmem;

/// The longest text of a protocol member.
const MAX_PLAIN_CHARACTERS: usize = 64;
/// The most texts in a protocol member that is a list.
const MAX_PLAIN_ITEMS: usize = 20;

/// An object with a member replaced, added or (`None`) removed.
pub fn with_member(object: &[u8], name: &str, value: Option<&[u8]>) -> Vec<u8> {
    // Walking through a large page only to find no such member is slow. A name without any of its
    // possible escapes is found by its text.
    let has = |part: &[u8]| memmem::find(object, part).is_some();
    let may_be_escaped = || has(b"\\u") || name.contains('/') && has(b"\\/");
    let found = match has(name.as_bytes()) || may_be_escaped() {
        true => members(object).find(|(known, _)| known == name).map(|(_, span)| span),
        false => None,
    };
    match (found, value) {
        (None, None) => object.to_vec(),
        (Some(span), Some(value)) => {
            let start = offset(object, span);
            let before = object.get(..start).unwrap_or_default();
            let after = object.get(start + span.len()..).unwrap_or_default();
            [before, value, after].concat()
        }
        (None, Some(value)) => {
            let open = object.trim_ascii().strip_suffix(b"}").map(<[u8]>::trim_ascii_end);
            // Anything but an object has no members, as in `members`.
            let open = open.filter(|open| open.starts_with(b"{")).unwrap_or(b"{");
            let mut out = Vec::with_capacity(open.len() + name.len() + value.len() + 5);
            out.extend_from_slice(open);
            push_member(name, value, &mut out);
            out.push(b'}');
            out
        }
        (Some(_), None) => {
            let kept = members(object).filter(|(known, _)| known != name);
            let mut out = Vec::with_capacity(object.len());
            out.push(b'{');
            for (known, span) in kept {
                push_member(&known, span, &mut out);
            }
            out.push(b'}');
            out
        }
    }
}

fn push_member(name: &str, value: &[u8], out: &mut Vec<u8>) {
    if out.len() > 1 {
        out.push(b',');
    }
    escape_into(name, out);
    out.push(b':');
    out.extend_from_slice(value);
}

/// The offset of a part of some bytes.
pub(super) fn offset(whole: &[u8], part: &[u8]) -> usize {
    (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize)
}

/// Which members of an object are kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kept<'a> {
    pub(super) as_they_are: &'a [&'a str],
    /// Members of the protocol itself, kept only if they are [plain](is_plain).
    pub(super) if_plain: &'a [&'a str],
}

impl Kept<'_> {
    pub(super) fn has(self, name: &str, value: &[u8]) -> bool {
        self.as_they_are.contains(&name) || (self.if_plain.contains(&name) && is_plain(value))
    }

    fn has_all(self, object: &[u8]) -> bool {
        members(object).all(|(name, value)| self.has(&name, value))
    }

    /// The object without all other members.
    pub(super) fn of(self, object: &[u8]) -> Vec<u8> {
        if self.has_all(object) {
            return object.to_vec();
        }
        let mut out = vec![b'{'];
        for (name, value) in members(object).filter(|(name, value)| self.has(name, value)) {
            push_member(&name, value, &mut out);
        }
        out.push(b'}');
        out
    }
}

/// Whether a value is a number, a word, a version or an array of those, so that it cannot carry a
/// message.
pub(super) fn is_plain(value: &[u8]) -> bool {
    let is_word = |text: &str| {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
        text.len() <= MAX_PLAIN_CHARACTERS && text.bytes().all(is_part)
    };
    match serde_json::from_slice(value) {
        Ok(serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_)) => {
            true
        }
        Ok(serde_json::Value::String(text)) => is_word(&text),
        Ok(serde_json::Value::Array(items)) => {
            let is_text = |item: &serde_json::Value| item.as_str().is_some_and(is_word);
            items.len() <= MAX_PLAIN_ITEMS && items.iter().all(is_text)
        }
        Ok(serde_json::Value::Object(_)) | Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_found_however_its_name_is_escaped() {
        for object in [r#"{"a/b":7}"#, r#"{"a\/b":7}"#, r#"{"a\u002fb":7}"#, r#"{"\u0061/b":7}"#] {
            assert_eq!(with_member(object.as_bytes(), "a/b", None), b"{}", "{object}");
            let replaced = with_member(object.as_bytes(), "a/b", Some(b"8"));
            assert_eq!(replaced, object.replace('7', "8").as_bytes(), "{object}");
        }
        assert_eq!(with_member(br#"{"a":"\/"}"#, "a/b", Some(b"2")), br#"{"a":"\/","a/b":2}"#);
    }

    #[test]
    fn a_plain_value_can_carry_no_sentence() {
        for value in ["1", "null", "true", r#""2025-06-18""#, r#"["1.0.0+b-2_x"]"#, r#""""#] {
            assert!(is_plain(value.as_bytes()), "{value}");
        }
        let long = format!("\"{}\"", "a".repeat(MAX_PLAIN_CHARACTERS + 1));
        let many = serde_json::to_string(&["1"; MAX_PLAIN_ITEMS + 1]).unwrap();
        for value in ["{}", r#""two words""#, r#"[["1"]]"#, r#"["a b"]"#, "x", &long, &many] {
            assert!(!is_plain(value.as_bytes()), "{value}");
        }
        assert!(is_plain(format!("\"{}\"", "a".repeat(MAX_PLAIN_CHARACTERS)).as_bytes()));
    }

    #[test]
    fn a_member_is_replaced_added_or_left_out() {
        let check = |object: &str, value: Option<&str>, expected: &str| {
            let shaped = with_member(object.as_bytes(), "a", value.map(str::as_bytes));
            assert_eq!(String::from_utf8(shaped).unwrap(), expected, "{object}");
        };
        check(r#"{ "a" : 1, "b":{"a":2} }"#, Some("3"), r#"{ "a" : 3, "b":{"a":2} }"#);
        check(r#"{"b":{"a":2} }"#, Some("3"), r#"{"b":{"a":2},"a":3}"#);
        check(" { } ", Some("3"), r#"{"a":3}"#);
        check(r#"["a"]"#, Some("3"), r#"{"a":3}"#);
        check(r#"{"\u0061":1}"#, Some("3"), r#"{"\u0061":3}"#);
        check(r#"{"b":"a"}"#, Some("3"), r#"{"b":"a","a":3}"#);
        check(r#"{"a":1,"b":2}"#, None, r#"{"b":2}"#);
        check(r#"{"b":2}"#, None, r#"{"b":2}"#);
    }

    #[test]
    fn what_is_kept_keeps_its_bytes() {
        let kept = Kept { as_they_are: &["a"], if_plain: &["b"] };
        let check = |object: &str, expected: &str| {
            assert_eq!(kept.of(object.as_bytes()), expected.as_bytes(), "{object}");
        };
        check(r#"{ "a" : {"x": 1.0}, "b":2 }"#, r#"{ "a" : {"x": 1.0}, "b":2 }"#);
        check(r#"{ "a" : {"x": 1.0}, "b":"c d", "e":1 }"#, r#"{"a":{"x": 1.0}}"#);
    }
}
