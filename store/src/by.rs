//! The actor and the time of a write that a person causes.

use crate::act::{MAX_NAME_BYTES, within};
use crate::error::StoreError;
use gate::time::Timestamp;

/// An actor and a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct By<'a> {
    /// A person's name, or `holdpoint` if no person was asked.
    pub name: &'a str,
    pub at: Timestamp,
}

impl By<'_> {
    pub(crate) fn check(self) -> Result<(), StoreError> {
        if self.name.is_empty() {
            return Err(StoreError::Nameless);
        }
        within("the name of who acts", self.name.len(), MAX_NAME_BYTES)
    }
}

/// The same in owned form, as stored.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Signed {
    pub by: String,
    pub at: Timestamp,
}

/// An action by a person that concerns no server's pins: an incident, an API key, the approval of a
/// call.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct StoreEvent {
    pub seq: i64,
    pub at: Timestamp,
    pub by: String,
    /// `incident.on`, `key.revoke`, `approval.grant`, …
    pub action: String,
    /// The key, approval, server, … that the action concerned.
    pub subject: Option<String>,
    pub detail: Option<String>,
}
