//! A finding and its location.

use crate::dimension::Dimension;
use crate::word::closed_words;
use contract::surface::EntryId;

closed_words! {
    /// The severity of a finding. Ordered: the highest one decides.
    Severity ("severity") {
        Low => "low",
        Medium => "medium",
        High => "high",
    }
}

/// A place in a contract that matches a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub dimension: Dimension,
    pub severity: Severity,
    /// The stable id of the rule, such as `exfiltration.copy-to-address`.
    pub rule: &'static str,
    /// A fixed sentence that says why; never text of the server.
    pub reason: &'static str,
    pub entry: EntryId,
    /// A JSON pointer into the entry, unmodified: it contains the server's own names. Programs get
    /// [`Finding::place`].
    pub pointer: String,
    /// The server's text, of limited length and with hidden characters escaped. Only for people.
    pub excerpt: String,
}

impl Finding {
    /// The location in the form for programs: names are shown as refusals show unaccepted names
    /// (`gate::naming`).
    pub fn place(&self) -> String {
        gate::naming::shown_pointer(&self.pointer)
    }

    /// The entry's key in the form for programs.
    pub fn entry_name(&self) -> String {
        gate::naming::shown_name(&self.entry.key, false)
    }
}
