//! One thing that was found, and where.

use crate::dimension::Dimension;
use crate::word::closed_words;
use contract::surface::EntryId;

closed_words! {
    /// How much a finding weighs. Ordered: the highest decides.
    Severity ("severity") {
        Low => "low",
        Medium => "medium",
        High => "high",
    }
}

/// One place of a contract that a rule fires on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub dimension: Dimension,
    pub severity: Severity,
    /// The rule's stable id, such as `exfiltration.copy-to-address`.
    pub rule: &'static str,
    /// A fixed sentence of ours that says why; no text of the server.
    pub reason: &'static str,
    pub entry: EntryId,
    /// JSON pointer into the entry, as it stands: names in it are the server's. Programs are shown [`Finding::place`].
    pub pointer: String,
    /// The server's words, bounded, hidden characters escaped. For persons only.
    pub excerpt: String,
}

impl Finding {
    /// Where it is, for a program: names as a refusal shows names that nobody accepted (`gate::naming`).
    pub fn place(&self) -> String {
        gate::naming::shown_pointer(&self.pointer)
    }

    /// The entry's key, for a program.
    pub fn entry_name(&self) -> String {
        gate::naming::shown_name(&self.entry.key, false)
    }
}
