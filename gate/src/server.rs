//! A server's id and its status.

use std::fmt;
use std::str::FromStr;

/// A server's id: `[a-z0-9][a-z0-9._-]{0,63}`, without `__`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerId(String);

/// The text is not a valid server id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a server id: lower-case letters, digits, `.`, `_` and `-`, at most 64, without `__`"
)]
pub struct BadServerId(pub String);

impl ServerId {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ServerId {
    type Err = BadServerId;

    fn from_str(text: &str) -> Result<Self, BadServerId> {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let starts_well = text.bytes().next().is_some_and(is_plain);
        let is_well_made = text.bytes().all(|byte| is_plain(byte) || b"._-".contains(&byte));
        if starts_well && is_well_made && text.len() <= 64 && !text.contains("__") {
            Ok(ServerId(text.to_owned()))
        } else {
            Err(BadServerId(text.to_owned()))
        }
    }
}

impl fmt::Display for ServerId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl<'de> serde::Deserialize<'de> for ServerId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl serde::Serialize for ServerId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// The status of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ServerStatus {
    /// Nothing is pinned yet.
    Unbaselined,
    /// Nothing is held.
    Verified,
    /// At least one entry is held.
    Changed,
    /// The first use awaits approval.
    Pending,
    /// A person stopped the server.
    Quarantined,
}

impl ServerStatus {
    pub const ALL: [ServerStatus; 5] = [
        ServerStatus::Unbaselined,
        ServerStatus::Verified,
        ServerStatus::Changed,
        ServerStatus::Pending,
        ServerStatus::Quarantined,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            ServerStatus::Unbaselined => "unbaselined",
            ServerStatus::Verified => "verified",
            ServerStatus::Changed => "changed",
            ServerStatus::Pending => "pending",
            ServerStatus::Quarantined => "quarantined",
        }
    }
}

impl fmt::Display for ServerStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl serde::Serialize for ServerStatus {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
