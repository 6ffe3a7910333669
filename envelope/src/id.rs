//! The id of a request: the bytes it came as, and what it is compared by.

use super::text::Text;
use std::borrow::{Borrow, Cow};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// The longest id that is read, quotes included: each one that waits for its answer is kept.
pub const MAX_ID_BYTES: usize = 4 * 1024;

/// An id, which is a string or a number, by type and bytes: `1` is neither `"1"` nor `1.0`.
///
/// Two strings are one id if they say the same: an answer may spell `"a\/b"` as `"a/b"`. Numbers have to be spelled alike.
#[derive(Debug, Clone)]
pub struct Id<'a> {
    raw: &'a [u8],
    key: Cow<'a, [u8]>,
}

impl<'a> Id<'a> {
    /// A number by its token.
    pub(super) fn number(raw: &'a [u8]) -> Self {
        Id { raw, key: Cow::Borrowed(raw) }
    }

    /// A string by its token; nothing where there is a lone surrogate in it.
    pub(super) fn string(raw: &'a [u8], text: Text<'a>) -> Option<Self> {
        if text.escapes == 0 {
            return Some(Id { raw, key: Cow::Borrowed(raw) });
        }
        // The opening quote alone tells it from a number.
        let key = format!("\"{}\"", text.decode()?);
        Some(Id { raw, key: Cow::Owned(key.into_bytes()) })
    }

    /// The token as it came, to be sent back.
    pub fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// What ids are compared by, and looked up by in a map of [`OwnedId`]s.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    pub fn to_owned(&self) -> OwnedId {
        let key = (*self.key != *self.raw).then(|| self.key.as_ref().into());
        OwnedId { raw: Token::of(self.raw), key }
    }
}

/// An id that outlives its message. A map of these is asked with [`Id::key`], without an allocation.
#[derive(Debug, Clone)]
pub struct OwnedId {
    raw: Token,
    /// Where it is not the token itself.
    key: Option<Box<[u8]>>,
}

impl OwnedId {
    /// The token as it came, to be sent back.
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

/// The bytes of an id. Those of most are few and lie in it: each request on its way is kept by its id.
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

/// INVARIANT: equality, order and hash of both are those of the key, as `Borrow` asks for.
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

/// What an id in the parameters of a message is compared by, as [`Id::key`] has it.
pub fn key_of(raw: &[u8]) -> Vec<u8> {
    let text: Option<String> = serde_json::from_slice(raw).ok();
    text.map_or_else(|| raw.to_vec(), |text| format!("\"{text}\"").into_bytes())
}
