//! The hashes: SHA-256, written as lower-case hex, with one type per meaning.

use crate::canonical::Sink;
use crate::json::append;
use sha2::{Digest, Sha256};

/// Text that is not 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a hash has 64 hexadecimal digits")]
pub struct BadHash;

/// Defines a newtype of 32 bytes that is written as lower-case hex: `struct $name([u8; 32])`.
#[macro_export]
macro_rules! hex_bytes {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        pub struct $name([u8; 32]);

        impl $name {
            pub const fn from_bytes(bytes: [u8; 32]) -> Self {
                Self(bytes)
            }

            pub const fn as_bytes(&self) -> &[u8; 32] {
                &self.0
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                formatter.write_str(&$crate::hash::hex_of(&self.0))
            }
        }

        impl ::std::fmt::Debug for $name {
            fn fmt(&self, formatter: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                write!(formatter, "{}({self})", stringify!($name))
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = $crate::hash::BadHash;

            fn from_str(text: &str) -> Result<Self, $crate::hash::BadHash> {
                $crate::hash::bytes_of(text).map(Self)
            }
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    };
}

/// Encodes bytes as lower-case hex.
pub fn hex_of(bytes: &[u8; 32]) -> String {
    hex::encode(bytes)
}

/// Decodes 64 hexadecimal digits.
pub fn bytes_of(text: &str) -> Result<[u8; 32], BadHash> {
    let mut bytes = [0; 32];
    hex::decode_to_slice(text, &mut bytes).map_err(|_| BadHash)?;
    Ok(bytes)
}

macro_rules! hash_type {
    ($(#[$meta:meta])* $name:ident) => {
        hex_bytes! {
            $(#[$meta])*
            #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
            $name
        }

        impl $name {
            /// Hashes some bytes.
            pub fn of(bytes: &[u8]) -> Self {
                Self(Sha256::digest(bytes).into())
            }
        }
    };
}

hash_type! {
    /// A tool's hash: canonical `{name, description?, inputSchema}`. Other installs and the corpus
    /// compare this hash.
    DefinitionHash
}
hash_type! {
    /// Any entry's hash: the canonical form of every member that counts. The gate compares this
    /// hash.
    EntryHash
}
hash_type! {
    /// The hash of a server's whole surface, over the sorted entries' types, keys and entry hashes.
    SurfaceHash
}

/// Incremental SHA-256. Canonical bytes come a few at a time, so they are buffered into larger
/// pieces.
#[derive(Clone, Default, Debug)]
pub(crate) struct Hasher {
    state: Sha256,
    pending: Vec<u8>,
}

const PENDING_BYTES: usize = 4_096;

impl Sink for Hasher {
    #[cfg_attr(holdpoint_small, optimize(speed))]
    fn put(&mut self, bytes: &[u8]) {
        if self.pending.len() + bytes.len() > PENDING_BYTES {
            self.state.update(&self.pending);
            self.pending.clear();
        }
        if bytes.len() > PENDING_BYTES {
            self.state.update(bytes);
        } else {
            append(bytes, &mut self.pending);
        }
    }
}

impl Hasher {
    #[cfg_attr(holdpoint_small, optimize(speed))]
    pub(crate) fn finish(mut self) -> [u8; 32] {
        self.state.update(&self.pending);
        self.state.finalize().into()
    }
}

/// The SHA-256 of some bytes as lower-case hex.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}
