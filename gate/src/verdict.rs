//! Verdicts, and the record without which none is shown.

use std::fmt;

/// What is to happen with a call. The order is the order of strength.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    Proceed,
    /// Held until behaviour can be observed. Not a softer proceed.
    Inconclusive,
    Hold,
}

impl Verdict {
    pub const ALL: [Verdict; 3] = [Verdict::Proceed, Verdict::Inconclusive, Verdict::Hold];

    pub const fn as_str(self) -> &'static str {
        match self {
            Verdict::Proceed => "PROCEED",
            Verdict::Inconclusive => "INCONCLUSIVE",
            Verdict::Hold => "HOLD",
        }
    }

    /// Whether the call stays where it is.
    pub const fn is_held(self) -> bool {
        match self {
            Verdict::Proceed => false,
            Verdict::Inconclusive | Verdict::Hold => true,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl serde::Serialize for Verdict {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// What kind of evidence stands behind a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    Structural,
    Semantic,
    Behavioral,
}

/// What a verdict says and, above all, what it does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Framing {
    /// Nothing changed.
    Healthy,
    /// Something changed; whether it is dangerous is not said.
    ContractDiffNotSafety,
    /// Only behaviour could settle it.
    BehavioralNeeded,
    /// It is shown, nobody is blamed and nothing is stopped.
    VisibilityNotBlame,
}

/// How a verdict came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Provenance {
    /// The deepest tier that ran, never one that was merely offered.
    pub tier_reached: u8,
    pub verdict_scope: Scope,
    pub framing: Framing,
}

impl Provenance {
    /// The provenance of a verdict that the contract's comparison alone gave.
    pub fn structural(verdict: Verdict, has_findings: bool) -> Provenance {
        let framing = match verdict {
            Verdict::Hold => Framing::ContractDiffNotSafety,
            Verdict::Inconclusive => Framing::BehavioralNeeded,
            Verdict::Proceed if has_findings => Framing::VisibilityNotBlame,
            Verdict::Proceed => Framing::Healthy,
        };
        Provenance { tier_reached: 0, verdict_scope: Scope::Structural, framing }
    }
}
