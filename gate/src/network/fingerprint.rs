//! Fingerprints of entries, which the drift network compares instead of hashes.
//!
//! All members know the salt. It prevents outsiders from matching a fingerprint with public
//! contracts; a member can still recognize a contract that it can guess.

use contract::hash::EntryHash;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

const DOMAIN: &[u8] = b"holdpoint-drift-v1\n";

contract::hex_bytes! {
    /// HMAC-SHA-256(salt, `holdpoint-drift-v1\n` ‖ entry hash).
    #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    Fingerprint
}
contract::hex_bytes! {
    /// The salt that a directory's members use for fingerprints.
    #[derive(Clone, Copy, PartialEq, Eq)]
    Salt
}

impl Salt {
    pub fn fingerprint(&self, entry: EntryHash) -> Fingerprint {
        let mut mac = Hmac::<Sha256>::new(&self.block().into());
        mac.update(DOMAIN);
        mac.update(entry.as_bytes());
        Fingerprint(mac.finalize().into_bytes().into())
    }

    /// The key as a full block: HMAC pads a shorter key with zeros anyway, and a full block leaves
    /// no error to handle.
    fn block(&self) -> [u8; 64] {
        let mut block = [0; 64];
        for (to, from) in block.iter_mut().zip(self.0) {
            *to = from;
        }
        block
    }
}
