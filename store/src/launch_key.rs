//! The key that hashes the words of launches. It is derived from the key that authenticates pins:
//! nodes that share a database share both.

use crate::authenticate::{derived_key, word_hash};
use crate::error::HomeError;
use crate::home::failed;
use crate::key::{KEY_BYTES, Key};
use std::fmt;
use std::io;
use std::path::Path;

/// Hashes the words of launches that are not stored in clear text.
#[derive(Clone)]
pub struct LaunchKey([u8; KEY_BYTES]);

impl LaunchKey {
    pub(crate) fn of(pins_key: &Key) -> LaunchKey {
        LaunchKey(derived_key(pins_key, "holdpoint launch key 1"))
    }

    /// A throwaway key: its hashes match no others. For a home without a key, where nothing is
    /// pinned or no pin can be trusted.
    pub fn unkept() -> Result<LaunchKey, HomeError> {
        let mut bytes = [0; KEY_BYTES];
        let no_randomness = failed("find randomness for", Path::new("a key"));
        getrandom::fill(&mut bytes).map_err(|error| no_randomness(io::Error::other(error)))?;
        Ok(LaunchKey(bytes))
    }

    pub(crate) fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    /// The keyed hash of a word, in hexadecimal digits.
    pub fn hash(&self, word: &str) -> String {
        hex::encode(word_hash(&Key::from_bytes(self.0), word))
    }
}

impl fmt::Debug for LaunchKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("LaunchKey")
    }
}
