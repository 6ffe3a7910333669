//! The name by which a document identifies its signer and the trust root identifies a key.

use crate::limits::MAX_KEY_ID_BYTES;
use crate::shape::trim;
use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a key's id has 1 to {MAX_KEY_ID_BYTES} bytes, and no white space around it")]
pub struct BadKeyId;

impl KeyId {
    pub fn parse(text: &str) -> Result<KeyId, BadKeyId> {
        let is_fit = !text.is_empty() && text.len() <= MAX_KEY_ID_BYTES && trim(text) == text;
        if is_fit { Ok(KeyId(text.to_owned())) } else { Err(BadKeyId) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::str::FromStr for KeyId {
    type Err = BadKeyId;

    fn from_str(text: &str) -> Result<KeyId, BadKeyId> {
        KeyId::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_ends_at_its_limit() {
        let at_limit = "k".repeat(MAX_KEY_ID_BYTES);
        assert_eq!(KeyId::parse(&at_limit).unwrap().as_str(), at_limit);
        for text in ["", " a", "a\n", "\u{feff}a", &"k".repeat(MAX_KEY_ID_BYTES + 1)] {
            assert_eq!(KeyId::parse(text), Err(BadKeyId), "{text:?}");
        }
    }
}
