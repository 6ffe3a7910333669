//! Fingerprints of entries: what the drift network compares instead of hashes.
//!
//! The salt is known to all members. It keeps outsiders from matching a fingerprint with public contracts; a member can
//! still recognize a contract that it can guess.

use contract::hash::{BadHash, EntryHash};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;
use std::str::FromStr;

const DOMAIN: &[u8] = b"holdpoint-drift-v1\n";

/// HMAC-SHA-256(salt, `holdpoint-drift-v1\n` ‖ entry hash).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint([u8; 32]);

/// What a directory's members salt fingerprints with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Salt([u8; 32]);

impl Salt {
    pub fn fingerprint(&self, entry: EntryHash) -> Fingerprint {
        let mut mac = Hmac::<Sha256>::new(&self.block().into());
        mac.update(DOMAIN);
        mac.update(entry.as_bytes());
        Fingerprint(mac.finalize().into_bytes().into())
    }

    /// The key as a whole block: HMAC pads a shorter key with zeros. Made so, no error is left to handle.
    fn block(&self) -> [u8; 64] {
        let mut block = [0; 64];
        for (to, from) in block.iter_mut().zip(self.0) {
            *to = from;
        }
        block
    }
}

macro_rules! hex_bytes {
    ($($name:ident),*) => {$(
        impl $name {
            pub const fn from_bytes(bytes: [u8; 32]) -> Self {
                Self(bytes)
            }

            pub const fn as_bytes(&self) -> &[u8; 32] {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&hex::encode(self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, "{}({self})", stringify!($name))
            }
        }

        impl FromStr for $name {
            type Err = BadHash;

            fn from_str(text: &str) -> Result<Self, BadHash> {
                let mut bytes = [0; 32];
                hex::decode_to_slice(text, &mut bytes).map_err(|_| BadHash)?;
                Ok(Self(bytes))
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    )*};
}

hex_bytes!(Fingerprint, Salt);
