//! Requests from one node to another: the connection, what a forwarded request says of its caller, and the address where other
//! nodes' requests come in.

mod client;
mod door;
pub(crate) mod passport;
mod tls;
pub(crate) mod told;

pub(crate) use client::{PeerClient, RelayFault};
pub use door::serve_peers;
pub(crate) use passport::{RELAY_AS, RELAY_FOR, RELAY_TO, RelayKind};
pub(crate) use tls::PeerTls;

/// The largest headers of a request between nodes: those of a caller's request, and what is known of the caller.
const MAX_HEADER_BYTES: u32 = 256 * 1024;
/// What one request may have under way before the other end reads it.
const STREAM_WINDOW_BYTES: u32 = 64 * 1024;
/// So much that no number of slow readers keeps others waiting.
const CONNECTION_WINDOW_BYTES: u32 = 1 << 30;
/// The most requests at once from one node to another, streams included.
const MAX_RELAYED: u32 = 4_096;
