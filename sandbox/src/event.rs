//! The events that the embedder receives while a program runs confined.

use crate::observed::Access;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// Receives each event on the egress thread, so it must return quickly.
pub type Events = Arc<dyn Fn(Event) + Send + Sync>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// An attempt to reach the network was blocked.
    Blocked(Blocked),
    /// A connection to an allowed host was established.
    Connected { host: String, port: u16 },
    /// The program used a file. Only with [`crate::Profile::observe`].
    Access(Access),
    /// The program could not be confined and was not started.
    Failed(String),
    /// The program ended. `code` is its exit code, or 128 plus the number of the signal that ended
    /// it.
    Ended { code: i32 },
}

/// An attempt to reach the network that was blocked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocked {
    /// The requested name, or the address if the program did not use a name.
    pub host: String,
    /// `None` if only a name was looked up.
    pub port: Option<u16>,
    pub reason: BlockReason,
    /// How many attempts this event represents: more than one if they came faster than they are
    /// reported.
    pub count: u64,
}

/// Why an attempt was blocked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockReason {
    /// The allowlist does not contain the host, or not with this port.
    NotAllowed,
    /// The name resolved only to addresses that must not be reached.
    PrivateAddress,
    /// The connection did not start with a TLS handshake.
    NotTls,
    /// The server name in the TLS handshake differs from the requested host.
    ServerName,
    /// The name could not be resolved.
    NotResolved,
    /// No address of the host accepted the connection.
    Unreachable,
    /// An incident closed all egress.
    Closed,
    /// Too many connections at the same time.
    TooMany,
}

impl BlockReason {
    /// The stable code of this reason, used in receipts.
    pub fn code(self) -> &'static str {
        match self {
            BlockReason::NotAllowed => "not_allowed",
            BlockReason::PrivateAddress => "private_address",
            BlockReason::NotTls => "not_tls",
            BlockReason::ServerName => "server_name",
            BlockReason::NotResolved => "not_resolved",
            BlockReason::Unreachable => "unreachable",
            BlockReason::Closed => "closed",
            BlockReason::TooMany => "too_many",
        }
    }
}

impl fmt::Display for BlockReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            BlockReason::NotAllowed => "is not on the allowlist",
            BlockReason::PrivateAddress => "resolves to an address that is not public",
            BlockReason::NotTls => "is allowed by TLS only",
            BlockReason::ServerName => "was asked for under another TLS server name",
            BlockReason::NotResolved => "could not be resolved",
            BlockReason::Unreachable => "could not be connected to",
            BlockReason::Closed => "is closed: an incident blocks all egress",
            BlockReason::TooMany => "has too many connections",
        })
    }
}

impl Blocked {
    /// The allowlist entry that would allow this attempt. `None` if no entry would.
    pub fn allow_entry(&self) -> Option<String> {
        let port = self.port.unwrap_or(443);
        let is_address = self.host.parse::<IpAddr>().is_ok();
        let with_port = match self.host.parse::<IpAddr>() {
            Ok(IpAddr::V6(address)) => format!("[{address}]:{port}"),
            _ if port == 443 && !is_address => self.host.clone(),
            _ => format!("{}:{port}", self.host),
        };
        match self.reason {
            // Only the default port is normally TLS.
            BlockReason::NotAllowed if port == 443 || is_address => Some(with_port),
            BlockReason::NotAllowed | BlockReason::NotTls => {
                Some(format!("tcp:{}:{port}", self.host))
            }
            BlockReason::PrivateAddress => Some(format!("private:{with_port}")),
            BlockReason::ServerName
            | BlockReason::NotResolved
            | BlockReason::Unreachable
            | BlockReason::Closed
            | BlockReason::TooMany => None,
        }
    }
}
