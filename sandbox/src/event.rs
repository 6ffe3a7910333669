//! What the embedder is told while a program runs confined.

use crate::observed::Access;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// Gets each event, on the egress thread: it must return quickly.
pub type Events = Arc<dyn Fn(Event) + Send + Sync>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// An attempt to reach the network was stopped.
    Blocked(Blocked),
    /// A connection to an allowed host was made.
    Connected { host: String, port: u16 },
    /// The program used a file. Only with [`crate::Profile::observe`].
    Access(Access),
    /// The program could not be confined and was not started.
    Failed(String),
    /// The program ended: its exit code, or 128 and the number of the signal that ended it.
    Ended { code: i32 },
}

/// An attempt to reach the network that was stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocked {
    /// The name that was asked for, or the address where the program named none.
    pub host: String,
    /// Not known where only a name was asked for.
    pub port: Option<u16>,
    pub reason: BlockReason,
    /// How many attempts this event stands for: more than one where they came faster than they are reported.
    pub count: u64,
}

/// Why an attempt was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockReason {
    /// The host, or its port, is not on the allowlist.
    NotAllowed,
    /// The name resolved to addresses none of which may be reached.
    PrivateAddress,
    /// The connection did not begin with a TLS handshake.
    NotTls,
    /// The server name in the TLS handshake is not the host that was asked for.
    ServerName,
    /// The name could not be resolved.
    NotResolved,
    /// None of the addresses of the host answered.
    Unreachable,
    /// All egress is closed by an incident.
    Closed,
    /// Too many connections at a time.
    TooMany,
}

impl BlockReason {
    /// The stable code of this reason, as receipts have it.
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
    /// The entry of the allowlist that would allow this attempt. `None` where no entry would.
    pub fn allow_entry(&self) -> Option<String> {
        let port = self.port.unwrap_or(443);
        let is_address = self.host.parse::<IpAddr>().is_ok();
        let with_port = match self.host.parse::<IpAddr>() {
            Ok(IpAddr::V6(address)) => format!("[{address}]:{port}"),
            _ if port == 443 && !is_address => self.host.clone(),
            _ => format!("{}:{port}", self.host),
        };
        match self.reason {
            // Only the usual port is TLS as a rule.
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
