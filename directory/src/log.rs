//! The public history: one append-only log of entries, published as C2SP tlog-tiles with signed checkpoints.
//!
//! `tile` and `proof` are pure; `publish` writes files; `reader` verifies a log with nothing but a
//! URL and the log's public key.

pub mod anchor;
pub mod lease;
pub mod ots;
pub mod proof;
pub mod publish;
pub mod reader;
pub mod signer;
pub mod tile;
pub mod witness;

use contract::canonical::{Position, canonical};
use contract::json::Document;

/// The longest entry: its length takes two bytes in a bundle.
pub const MAX_ENTRY_BYTES: usize = 65_535;

/// The origin of a log: the public URL without its scheme, and `/log`.
pub fn origin(public_url: &str) -> String {
    let rest = public_url.split_once("://").map_or(public_url, |(_, rest)| rest);
    format!("{}/log", rest.trim_end_matches('/'))
}

/// The canonical form of JSON that we wrote; `None` if it is not JSON.
pub fn canonical_bytes(json: &str) -> Option<Vec<u8>> {
    let document = Document::parse(json).ok()?;
    Some(canonical(document.root(), Position::Plain))
}
