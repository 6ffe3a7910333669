//! Sessions and principals that tripped an anomaly rule. Their calls are denied until a person releases them.

use crate::act::within;
use crate::error::StoreError;
use crate::named::id_type;
use gate::time::Timestamp;
use sha2::{Digest, Sha256};

/// The most quarantines that are kept.
pub const MAX_QUARANTINES: usize = 10_000;
/// The longest name of a quarantined principal, session or rule, in bytes.
pub const MAX_QUARANTINED_BYTES: usize = 1_024;

id_type! {
    /// The id of a quarantine. It is derived from the principal and the session, so that a session
    /// has one quarantine.
    QuarantineId
}

impl QuarantineId {
    pub fn of(principal: &str, session: Option<&str>) -> QuarantineId {
        let mut hash = Sha256::new();
        for part in [principal, session.unwrap_or_default()] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        hash.update([u8::from(session.is_some())]);
        let hash: [u8; 32] = hash.finalize().into();
        QuarantineId(hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect())
    }
}

/// A session, or a principal without one, whose calls are denied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantine {
    /// The subject, with its issuer if it has one.
    pub principal: String,
    /// The principal's session; `None` for all calls that it makes without one.
    pub session: Option<String>,
    /// The rule that was tripped.
    pub rule: String,
    pub at: Timestamp,
}

impl Quarantine {
    pub fn id(&self) -> QuarantineId {
        QuarantineId::of(&self.principal, self.session.as_deref())
    }

    pub(crate) fn check_limits(&self) -> Result<(), StoreError> {
        let names = [Some(&self.principal), self.session.as_ref(), Some(&self.rule)];
        let longest = names.into_iter().flatten().map(String::len).max().unwrap_or_default();
        within("the name of what is quarantined", longest, MAX_QUARANTINED_BYTES)
    }
}
