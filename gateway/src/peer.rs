//! Requests between nodes: the connection, what a forwarded request states about its caller, and
//! the address that accepts other nodes' requests.

mod client;
mod door;
pub(crate) mod passport;
mod tls;
pub(crate) mod told;

pub(crate) use client::{PeerClient, RelayFault};
pub use door::serve_peers;
pub(crate) use passport::{RELAY_AS, RELAY_FOR, RELAY_TO, RelayKind};
pub(crate) use tls::PeerTls;

/// The largest headers of a request between nodes: those of the caller's request, and the caller's
/// identity.
const MAX_HEADER_BYTES: u32 = 256 * 1024;
/// How much data of one request may be in transit before the receiver reads it.
const STREAM_WINDOW_BYTES: u32 = 64 * 1024;
/// Large enough that slow readers never block other requests.
const CONNECTION_WINDOW_BYTES: u32 = 1 << 30;
/// The most concurrent requests from one node to another, including streams.
const MAX_RELAYED: u32 = 4_096;
