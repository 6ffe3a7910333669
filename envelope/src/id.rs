//! Request ids: their original bytes, and the key they are compared by.

use super::text::Text;
use std::borrow::{Borrow, Cow};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// The longest id that is accepted, including quotes: the id of every pending request is stored.
pub const MAX_ID_BYTES: usize = 4 * 1024;

/// An id: a string or a number, compared by type and bytes. `1` equals neither `"1"` nor `1.0`.
///
/// Strings are equal if they decode to the same text: an answer may spell `"a\/b"` as `"a/b"`.
/// Numbers must be spelled the same.
#[derive(Debug, Clone)]
pub struct Id<'a> {
    raw: &'a [u8],
    key: Cow<'a, [u8]>,
}

impl<'a> Id<'a> {
    /// A numeric id from its token.
    pub(super) fn number(raw: &'a [u8]) -> Self {
        Id { raw, key: Cow::Borrowed(raw) }
    }

    /// A string id from its token. Returns `None` if it contains a lone surrogate.
    pub(super) fn string(raw: &'a [u8], text: Text<'a>) -> Option<Self> {
        if text.escapes == 0 {
            return Some(Id { raw, key: Cow::Borrowed(raw) });
        }
        // The opening quote distinguishes it from a number.
        let key = format!("\"{}\"", text.decode()?);
        Some(Id { raw, key: Cow::Owned(key.into_bytes()) })
    }

    /// The original token, to be sent back unchanged.
    pub fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// The key that ids are compared by, also for lookups in a map of [`OwnedId`]s.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    pub fn to_owned(&self) -> OwnedId {
        let key = (*self.key != *self.raw).then(|| self.key.as_ref().into());
        OwnedId { raw: Token::of(self.raw), key }
    }
}

/// An id that outlives its message. A map of these can be queried with [`Id::key`] without an
/// allocation.
#[derive(Debug, Clone)]
pub struct OwnedId {
    raw: Token,
    /// Set if the key differs from the token.
    key: Option<Box<[u8]>>,
}

impl OwnedId {
    /// The original token, to be sent back unchanged.
    pub fn raw(&self) -> &[u8] {
        match &self.raw {
            Token::Short { bytes, count } => bytes.get(..usize::from(*count)).unwrap_or_default(),
            Token::Long(bytes) => bytes,
        }
    }

    /// See [`Id::key`].
    pub fn key(&self) -> &[u8] {
        self.key.as_deref().unwrap_or_else(|| self.raw())
    }

    pub fn as_id(&self) -> Id<'_> {
        Id { raw: self.raw(), key: Cow::Borrowed(self.key()) }
    }
}

/// The bytes of an id. Most ids are short and stored inline, because every pending request stores
/// one.
#[derive(Debug, Clone)]
enum Token {
    Short { bytes: [u8; SHORT_BYTES], count: u8 },
    Long(Box<[u8]>),
}

const SHORT_BYTES: usize = 22;

impl Token {
    fn of(raw: &[u8]) -> Token {
        let mut bytes = [0; SHORT_BYTES];
        match (bytes.get_mut(..raw.len()), u8::try_from(raw.len())) {
            (Some(place), Ok(count)) => {
                place.copy_from_slice(raw);
                Token::Short { bytes, count }
            }
            _ => Token::Long(raw.into()),
        }
    }
}

impl Borrow<[u8]> for OwnedId {
    fn borrow(&self) -> &[u8] {
        self.key()
    }
}

/// INVARIANT: equality, order and hash of both types are those of the key, as `Borrow` requires.
macro_rules! compare_by_key {
    ($($type:ty),*) => {$(
        impl PartialEq for $type {
            fn eq(&self, other: &Self) -> bool {
                self.key() == other.key()
            }
        }

        impl Eq for $type {}

        impl PartialOrd for $type {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        impl Ord for $type {
            fn cmp(&self, other: &Self) -> Ordering {
                self.key().cmp(other.key())
            }
        }

        impl Hash for $type {
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.key().hash(state);
            }
        }
    )*};
}

compare_by_key!(Id<'_>, OwnedId);

impl PartialEq<OwnedId> for Id<'_> {
    fn eq(&self, other: &OwnedId) -> bool {
        self.key() == other.key()
    }
}

/// The key of an id that occurs in a message's parameters; see [`Id::key`].
pub fn key_of(raw: &[u8]) -> Vec<u8> {
    let text: Option<String> = serde_json::from_slice(raw).ok();
    text.map_or_else(|| raw.to_vec(), |text| format!("\"{text}\"").into_bytes())
}
