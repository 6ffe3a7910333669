//! The key that words of launches are hashed with, derived from the one that pins are authenticated with: all nodes that
//! share a database share both.

use crate::authenticate::{derived_key, word_hash};
use crate::error::HomeError;
use crate::home::failed;
use crate::key::{KEY_BYTES, Key};
use std::fmt;
use std::io;
use std::path::Path;

/// Hashes words of launches that are not kept in clear.
#[derive(Clone)]
pub struct LaunchKey([u8; KEY_BYTES]);

impl LaunchKey {
    pub(crate) fn of(pins_key: &Key) -> LaunchKey {
        LaunchKey(derived_key(pins_key, "holdpoint launch key 1"))
    }

    /// A key that is kept nowhere: what is hashed with it can be compared with nothing. For a home without a key, where
    /// nothing is pinned or no pin can be trusted.
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
