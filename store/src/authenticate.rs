//! HMAC-SHA-256 over pins and over each server's list of pins.
//!
//! Every field is prefixed with its length, so that no two different rows encode to the same bytes.

use crate::database::Cell;
use crate::key::Key;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// All fields of a pin's row except its authentication tag.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PinFields<'a> {
    pub(crate) server: &'a str,
    pub(crate) seq: i64,
    pub(crate) entry_type: &'a str,
    pub(crate) key: &'a str,
    pub(crate) entry_hash: &'a str,
    pub(crate) definition_hash: Option<&'a str>,
    pub(crate) raw: &'a str,
    pub(crate) basis: &'a str,
    pub(crate) at: i64,
    pub(crate) by: &'a str,
    pub(crate) withdrawn_at: Option<i64>,
    pub(crate) withdrawn_by: Option<&'a str>,
}

impl PinFields<'_> {
    pub(crate) fn authentication(&self, key: &Key) -> [u8; 32] {
        self.fed(key).finish()
    }

    pub(crate) fn matches(&self, key: &Key, authentication: &[u8]) -> bool {
        self.fed(key).matches(authentication)
    }

    fn fed(&self, key: &Key) -> Authenticator {
        let mut state = Authenticator::new(key, "holdpoint pin 1");
        state.text(self.server);
        state.number(self.seq);
        state.text(self.entry_type);
        state.text(self.key);
        state.text(self.entry_hash);
        state.optional_text(self.definition_hash);
        state.text(self.raw);
        state.text(self.basis);
        state.number(self.at);
        state.text(self.by);
        state.optional_number(self.withdrawn_at);
        state.optional_text(self.withdrawn_by);
        state
    }
}

/// The seal of a server: over its pins in order, and over the fields of its own row that affect
/// decisions.
#[derive(Debug)]
pub(crate) struct Seal(Authenticator);

/// The sealed fields of a server's row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SealedFields<'a> {
    pub(crate) status: &'a str,
    /// Sealed because `check ID` executes it.
    pub(crate) launch: Option<&'a str>,
    pub(crate) first_seen: i64,
    /// How often the server was sealed. The ledger uses the count to detect an older copy that was
    /// put back.
    pub(crate) seal_count: i64,
}

impl Seal {
    pub(crate) fn new(key: &Key, server: &str) -> Seal {
        let mut state = Authenticator::new(key, "holdpoint seal 1");
        state.text(server);
        Seal(state)
    }

    /// The entry's name and the withdrawal are sealed in addition to the row's tag: a row that does
    /// not authenticate cannot be trusted to name the entry to hold.
    pub(crate) fn pin(
        &mut self,
        seq: i64,
        entry_type: &[u8],
        key: &[u8],
        is_withdrawn: bool,
        authentication: &[u8],
    ) {
        self.0.text("pin");
        self.0.number(seq);
        self.0.bytes(entry_type);
        self.0.bytes(key);
        self.0.number(i64::from(is_withdrawn));
        self.0.bytes(authentication);
    }

    pub(crate) fn finish(self, fields: SealedFields<'_>) -> [u8; 32] {
        self.closed(fields).finish()
    }

    pub(crate) fn matches(self, fields: SealedFields<'_>, seal: &[u8]) -> bool {
        self.closed(fields).matches(seal)
    }

    fn closed(mut self, fields: SealedFields<'_>) -> Authenticator {
        self.0.text("server");
        self.0.text(fields.status);
        self.0.optional_text(fields.launch);
        self.0.number(fields.first_seen);
        self.0.number(fields.seal_count);
        self.0
    }
}

/// A seal over rows that belong to no server.
#[derive(Debug)]
pub(crate) struct StateSeal(Authenticator);

impl StateSeal {
    /// `purpose` separates domains, so that one seal cannot pass as another.
    pub(crate) fn new(key: &Key, purpose: &str) -> StateSeal {
        StateSeal(Authenticator::new(key, purpose))
    }

    /// Marks the rows that follow as belonging to this table.
    pub(crate) fn table(&mut self, name: &str) {
        self.0.text("table");
        self.0.text(name);
    }

    pub(crate) fn row<'c>(&mut self, cells: impl Iterator<Item = Cell<'c>>) {
        self.0.text("row");
        for cell in cells {
            let (kind, number) = match cell {
                Cell::Null => (0, 0),
                Cell::Integer(number) => (1, number),
                Cell::Text(_) => (2, 0),
                Cell::Bytes(_) => (3, 0),
                Cell::Other => (4, 0),
            };
            self.0.number(kind);
            self.0.number(number);
            self.0.bytes(cell.raw_bytes());
        }
    }

    pub(crate) fn finish(self, count: i64) -> [u8; 32] {
        self.counted(count).finish()
    }

    pub(crate) fn matches(self, count: i64, seal: &[u8]) -> bool {
        self.counted(count).matches(seal)
    }

    fn counted(mut self, count: i64) -> Authenticator {
        self.0.text("count");
        self.0.number(count);
        self.0
    }
}

/// A check value that identifies the key to its holders and reveals nothing to others.
pub(crate) fn key_check(key: &Key) -> [u8; 32] {
    Authenticator::new(key, "holdpoint key check 1").finish()
}

pub(crate) fn matches_check(key: &Key, check: &[u8]) -> bool {
    Authenticator::new(key, "holdpoint key check 1").matches(check)
}

/// Derives a key for a different purpose.
pub(crate) fn derived_key(key: &Key, purpose: &str) -> [u8; 32] {
    Authenticator::new(key, purpose).finish()
}

/// The keyed hash of a word of a launch.
pub(crate) fn word_hash(key: &Key, word: &str) -> [u8; 32] {
    let mut state = Authenticator::new(key, "holdpoint launch word 1");
    state.text(word);
    state.finish()
}

/// The keyed hash of a whole launch.
pub(crate) fn launch_hash(key: &Key, parts: &[&[u8]]) -> [u8; 32] {
    let mut state = Authenticator::new(key, "holdpoint launch identity 1");
    parts.iter().for_each(|part| state.bytes(part));
    state.finish()
}

#[derive(Debug)]
struct Authenticator(Hmac<Sha256>);

impl Authenticator {
    /// `purpose` separates domains, so that a pin's tag cannot pass as that of anything else.
    fn new(key: &Key, purpose: &str) -> Authenticator {
        let block: &hmac::digest::Key<Hmac<Sha256>> = &padded(key).into();
        let mut state = Authenticator(Hmac::new(block));
        state.text(purpose);
        state
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn number(&mut self, number: i64) {
        self.bytes(&number.to_le_bytes());
    }

    fn optional_text(&mut self, text: Option<&str>) {
        self.number(i64::from(text.is_some()));
        self.text(text.unwrap_or_default());
    }

    fn optional_number(&mut self, number: Option<i64>) {
        self.number(i64::from(number.is_some()));
        self.number(number.unwrap_or_default());
    }

    fn finish(self) -> [u8; 32] {
        self.0.finalize().into_bytes().into()
    }

    /// Compares in constant time.
    fn matches(self, authentication: &[u8]) -> bool {
        self.0.verify_slice(authentication).is_ok()
    }
}

/// HMAC pads a shorter key with zeros to its block size, so this is the same key, in a form whose
/// length is always accepted.
pub(crate) fn padded(key: &Key) -> [u8; 64] {
    let mut block = [0; 64];
    for (to, from) in block.iter_mut().zip(key.as_bytes()) {
        *to = *from;
    }
    block
}

#[cfg(test)]
mod tests;
