//! Edits JSON-RPC messages by replacing single values. All other bytes stay unchanged.

use std::borrow::Cow;
use wire::envelope::members;

/// The position of a slice within a larger one; `None` if it is not part of it.
pub(crate) fn offset(whole: &[u8], part: &[u8]) -> Option<usize> {
    let start = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    (start + part.len() <= whole.len()).then_some(start)
}

/// The raw value of a member.
pub(crate) fn member<'a>(object: &'a [u8], name: &str) -> Option<&'a [u8]> {
    members(object).find(|(known, _)| known == name).map(|(_, value)| value)
}

/// A text as a JSON string.
pub(crate) fn quoted(text: &str) -> Vec<u8> {
    // Serializing a string cannot fail; if it did, the receiver would refuse the empty value.
    serde_json::to_vec(text).unwrap_or_default()
}

/// Edits of one message.
#[derive(Debug)]
pub(crate) struct Edits<'a> {
    whole: &'a [u8],
    edits: Vec<(usize, usize, Cow<'a, [u8]>)>,
}

impl<'a> Edits<'a> {
    pub(crate) fn of(whole: &'a [u8]) -> Edits<'a> {
        Edits { whole, edits: Vec::new() }
    }

    /// Replaces a part of the message by a value.
    pub(crate) fn replace(&mut self, part: &[u8], value: impl Into<Vec<u8>>) {
        if let Some(start) = offset(self.whole, part) {
            self.edits.push((start, part.len(), Cow::Owned(value.into())));
        }
    }

    /// Like [`Edits::replace`], with a borrowed value.
    pub(crate) fn replace_by(&mut self, part: &[u8], value: &'a [u8]) {
        if let Some(start) = offset(self.whole, part) {
            self.edits.push((start, part.len(), Cow::Borrowed(value)));
        }
    }

    /// Adds a member at the start of an object within the message, which must not have the member
    /// yet.
    pub(crate) fn insert(&mut self, object: &[u8], name: &str, value: &[u8]) {
        let Some(start) = offset(self.whole, object) else { return };
        let is_empty = members(object).next().is_none();
        let mut text = quoted(name);
        text.push(b':');
        text.extend_from_slice(value);
        if !is_empty {
            text.push(b',');
        }
        self.edits.push((start + 1, 0, text.into()));
    }

    /// Removes members from an object within the message. Must come after all insertions into that
    /// object.
    pub(crate) fn remove(&mut self, object: &[u8], names: &[&str]) {
        let Some(start) = offset(self.whole, object) else { return };
        let (mut from, mut has_kept) = (start + 1, false);
        for (name, value) in members(object) {
            let Some(end) = offset(self.whole, value).map(|at| at + value.len()) else { return };
            let rest = self.whole.get(end..).unwrap_or_default();
            // The first remaining member has no comma before it, so remove the one after it.
            let comma = rest.iter().position(|byte| !byte.is_ascii_whitespace());
            let comma = comma.filter(|at| !has_kept && rest.get(*at) == Some(&b','));
            let is_removed = names.contains(&&*name);
            if is_removed {
                let until = comma.map_or(end, |at| end + at + 1);
                self.edits.push((from, until - from, Cow::Borrowed(&[])));
                from = until;
            } else {
                (from, has_kept) = (end, true);
            }
        }
    }

    /// The edited message.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.edits.sort_by_key(|(start, ..)| *start);
        let added: usize = self.edits.iter().map(|(_, _, value)| value.len()).sum();
        let mut out = Vec::with_capacity(self.whole.len() + added);
        let mut from = 0;
        for (start, length, value) in &self.edits {
            // Of edits that overlap, only the first is applied.
            let Some(before) = self.whole.get(from..*start) else { continue };
            out.extend_from_slice(before);
            out.extend_from_slice(value);
            from = start + length;
        }
        out.extend_from_slice(self.whole.get(from..).unwrap_or_default());
        out
    }
}

/// An error response to the request with this raw id.
pub(crate) fn error(id: &[u8], code: i64, message: &str) -> Vec<u8> {
    error_with(id, code, message, None)
}

pub(crate) fn error_with(
    id: &[u8],
    code: i64,
    message: &str,
    data: Option<serde_json::Value>,
) -> Vec<u8> {
    let mut error = serde_json::json!({"code": code, "message": message});
    if let (Some(data), serde_json::Value::Object(members)) = (data, &mut error) {
        members.insert("data".to_owned(), data);
    }
    let error = error.to_string();
    [br#"{"jsonrpc":"2.0","id":"#, id, br#","error":"#, error.as_bytes(), b"}"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_replaced_changes() {
        let whole = br#"{ "id" : 1, "params": {"name":"a__b", "x": 1.0} }"#;
        let params = member(whole, "params").unwrap();
        let mut edits = Edits::of(whole);
        edits.replace(member(params, "name").unwrap(), quoted("b"));
        edits.replace_by(member(whole, "id").unwrap(), b"77");
        edits.insert(params, "_meta", b"{}");
        let expected = br#"{ "id" : 77, "params": {"_meta":{},"name":"b", "x": 1.0} }"#;
        assert_eq!(edits.finish(), expected);
    }

    #[test]
    fn a_member_of_an_empty_object_needs_no_comma() {
        let whole = br#"{"params":{ }}"#;
        let mut edits = Edits::of(whole);
        edits.insert(member(whole, "params").unwrap(), "a", b"1");
        assert_eq!(edits.finish(), br#"{"params":{"a":1 }}"#);
    }

    #[test]
    fn members_are_taken_out_with_their_commas() {
        let check = |object: &str, expected: &str| {
            let whole = format!(r#"{{"id":1,"params":{object}}}"#).into_bytes();
            let params = member(&whole, "params").unwrap();
            let mut edits = Edits::of(&whole);
            edits.remove(params, &["x", "y"]);
            let expected = format!(r#"{{"id":1,"params":{expected}}}"#);
            assert_eq!(String::from_utf8(edits.finish()).unwrap(), expected, "{object}");
        };
        check(r#"{"x":1}"#, "{}");
        check(r#"{"x":1,"y":{"x":2}}"#, "{}");
        check(r#"{"a":1,"x":2}"#, r#"{"a":1}"#);
        check(r#"{"x":1, "a":1 ,"y":2, "b":3}"#, r#"{ "a":1, "b":3}"#);
        check(r#"{"x":1,"y":2,"a":{"x":1}}"#, r#"{"a":{"x":1}}"#);
        check(r#"{"a":1,"\u0078":2,"x":3,"b":4}"#, r#"{"a":1,"b":4}"#);
        check(r#"{"a":1}"#, r#"{"a":1}"#);
    }

    #[test]
    fn an_insertion_before_a_removal_stays() {
        let whole = br#"{"x":1,"a":2}"#;
        let mut edits = Edits::of(whole);
        edits.insert(whole, "b", b"3");
        edits.remove(whole, &["x"]);
        assert_eq!(edits.finish(), br#"{"b":3,"a":2}"#);
    }

    #[test]
    fn what_is_no_part_of_the_message_replaces_nothing() {
        let mut edits = Edits::of(b"{}");
        edits.replace(b"{}elsewhere", b"x".as_slice());
        assert_eq!(edits.finish(), b"{}");
    }
}
