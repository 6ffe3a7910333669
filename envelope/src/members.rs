//! Iterates over the members of an object that was scanned as part of a frame.

use super::cursor::Cursor;
use std::borrow::Cow;

/// The members of an object in order: the unescaped name and the raw value. Iteration ends where
/// the bytes stop being a valid object. A lone surrogate in a name becomes U+FFFD.
pub fn members(object: &[u8]) -> Members<'_> {
    let mut cursor = Cursor::new(object);
    cursor.white_space();
    let is_object = cursor.peek() == Some(b'{') && cursor.enter().is_ok();
    Members { cursor: is_object.then_some(cursor), is_first: true }
}

/// The names of an object's own members, as in [`members`].
pub fn member_names(object: &[u8]) -> impl Iterator<Item = Cow<'_, str>> {
    members(object).map(|(name, _)| name)
}

/// See [`members`].
#[derive(Debug, Clone)]
pub struct Members<'a> {
    cursor: Option<Cursor<'a>>,
    is_first: bool,
}

impl<'a> Iterator for Members<'a> {
    type Item = (Cow<'a, str>, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let member = self.cursor.as_mut().and_then(|cursor| {
            let name = cursor.member(self.is_first).ok()??;
            Some((name.decode_lossy(), cursor.value().ok()?))
        });
        self.is_first = false;
        if member.is_none() {
            self.cursor = None;
        }
        member
    }
}
