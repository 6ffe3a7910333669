//! The revisions of MCP, and the two eras they belong to.

use std::fmt;
use std::str::FromStr;

/// A published revision of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Revision {
    November2024,
    March2025,
    June2025,
    November2025,
    July2026,
}

impl Revision {
    pub const ALL: [Revision; 5] = [
        Revision::November2024,
        Revision::March2025,
        Revision::June2025,
        Revision::November2025,
        Revision::July2026,
    ];

    /// The newest revision that begins with `initialize`.
    pub const NEWEST_INITIALIZE: Revision = Revision::November2025;
    /// The newest revision without sessions.
    pub const NEWEST_STATELESS: Revision = Revision::July2026;

    pub const fn as_str(self) -> &'static str {
        match self {
            Revision::November2024 => "2024-11-05",
            Revision::March2025 => "2025-03-26",
            Revision::June2025 => "2025-06-18",
            Revision::November2025 => "2025-11-25",
            Revision::July2026 => "2026-07-28",
        }
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A text that does not name a revision of the protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a revision of the protocol")]
pub struct UnknownRevision;

impl FromStr for Revision {
    type Err = UnknownRevision;

    fn from_str(text: &str) -> Result<Self, UnknownRevision> {
        Revision::ALL.into_iter().find(|revision| revision.as_str() == text).ok_or(UnknownRevision)
    }
}

/// How to talk to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// A session that begins with `initialize`.
    Initialize { protocol_version: Revision },
    /// No session: each request carries the version, and `server/discover` replaces `initialize`.
    Stateless { protocol_version: Revision },
}

impl Era {
    /// The revision that every request carries in the stateless era.
    pub fn stateless(self) -> Option<Revision> {
        match self {
            Era::Initialize { .. } => None,
            Era::Stateless { protocol_version } => Some(protocol_version),
        }
    }

    pub fn protocol_version(self) -> Revision {
        match self {
            Era::Initialize { protocol_version } | Era::Stateless { protocol_version } => {
                protocol_version
            }
        }
    }
}
