//! The protocol between an application and its gate: one JSON object with one member per line. The
//! set of members is closed.

use serde::Deserialize;
use serde_json::value::RawValue;

/// The protocol version. A line with a different version is refused before the rest of it is read.
pub const VERSION: u64 = 1;
/// The highest maximum list age that may be requested, in seconds.
const MAX_RELIST_AGE: u64 = 86_400;

/// One line from the application.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Said<'l> {
    /// The first line, and only the first.
    #[serde(borrow)]
    Open(&'l RawValue),
    /// A message that the application's client wants to send to the server.
    #[serde(borrow)]
    Client(&'l RawValue),
    /// A message that came from the server.
    #[serde(borrow)]
    Server(&'l RawValue),
    /// Requests the changes that wait for a decision.
    Review(ReviewRequest),
    /// Approves a waiting change by its hash.
    Approve(ApproveRequest),
    /// The connection to the server was lost.
    Lost(Nothing),
}

/// Begins a session.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Open {
    pub version: u64,
    /// The server's id, as typed after `--server`.
    pub server: String,
    /// The maximum age in seconds of the lists that a call is decided on.
    #[serde(default)]
    pub relist_max_age: Option<u64>,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReviewRequest {
    pub id: u64,
    /// Only the changes that wait for this tool.
    #[serde(default)]
    pub tool: Option<String>,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApproveRequest {
    pub id: u64,
    /// Without it, the hash alone selects the entry to approve.
    #[serde(default)]
    pub tool: Option<String>,
    pub hash: String,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// Why a line was refused. It contains nothing from the line, which may be a call's arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadLine {
    #[error("a line is not one JSON object with one member of the protocol")]
    NotOne,
    #[error("a line is longer than a message may be")]
    TooLong,
    #[error("the input ended before the session was opened")]
    Ended,
    #[error("`open` must be the first line, and only the first")]
    OutOfPlace,
    #[error("`open` must have `version` and `server`; `relistMaxAge` may be at most 86400")]
    Open,
    #[error("the application speaks version {0} of the protocol, this gate version {VERSION}")]
    OtherVersion(u64),
}

impl BadLine {
    /// The reason code that programs match on.
    pub fn reason(self) -> &'static str {
        match self {
            BadLine::OtherVersion(_) => "other_version",
            BadLine::NotOne
            | BadLine::TooLong
            | BadLine::Ended
            | BadLine::OutOfPlace
            | BadLine::Open => "bad_line",
        }
    }
}

impl<'l> Said<'l> {
    pub fn read(line: &'l [u8]) -> Result<Said<'l>, BadLine> {
        serde_json::from_slice(line).map_err(|_| BadLine::NotOne)
    }
}

impl Open {
    pub fn read(text: &RawValue) -> Result<Open, BadLine> {
        /// Ignores unknown members, which a later version may have.
        #[derive(Deserialize)]
        struct AnyVersion {
            version: u64,
        }
        let AnyVersion { version } = serde_json::from_str(text.get()).map_err(|_| BadLine::Open)?;
        if version != VERSION {
            return Err(BadLine::OtherVersion(version));
        }
        let open: Open = serde_json::from_str(text.get()).map_err(|_| BadLine::Open)?;
        match open.relist_max_age {
            Some(age) if age > MAX_RELIST_AGE => Err(BadLine::Open),
            Some(_) | None => Ok(open),
        }
    }
}
