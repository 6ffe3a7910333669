//! Who does something, and when: with every write that a person causes.

use crate::act::{MAX_NAME_BYTES, within};
use crate::error::StoreError;
use gate::time::Timestamp;

/// A person's hand, at a moment.
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

/// The same as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Signed {
    pub by: String,
    pub at: Timestamp,
}

/// Something that a person did that is about no server's pins: an incident, an API key, a call's approval.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct StoreEvent {
    pub seq: i64,
    pub at: Timestamp,
    pub by: String,
    /// `incident.on`, `key.revoke`, `approval.grant`, …
    pub action: String,
    /// The key, approval, server, … that it was done to.
    pub subject: Option<String>,
    pub detail: Option<String>,
}
