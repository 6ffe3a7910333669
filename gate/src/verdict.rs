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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    Structural,
    Semantic,
    Behavioral,
}

impl Scope {
    pub const fn as_str(self) -> &'static str {
        match self {
            Scope::Structural => "structural",
            Scope::Semantic => "semantic",
            Scope::Behavioral => "behavioral",
        }
    }
}

impl serde::Serialize for Scope {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// What a verdict says and, above all, what it does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Nothing changed.
    Healthy,
    /// Something changed; whether it is dangerous is not said.
    ContractDiffNotSafety,
    /// Only behaviour could settle it.
    BehavioralNeeded,
    /// The change is shown, without blame, and nothing is stopped.
    VisibilityNotBlame,
}

impl Framing {
    pub const fn as_str(self) -> &'static str {
        match self {
            Framing::Healthy => "healthy",
            Framing::ContractDiffNotSafety => "contract-diff-not-safety",
            Framing::BehavioralNeeded => "behavioral-needed",
            Framing::VisibilityNotBlame => "visibility-not-blame",
        }
    }
}

impl serde::Serialize for Framing {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
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

/// A verdict as it leaves the gate, in a refusal, a receipt or a document: with what stands behind it.
///
/// INVARIANT: no verdict but HOLD is shown without its provenance.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct SurfacedVerdict {
    verdict: Verdict,
    safety_relevant: bool,
    /// Absent where it could not be made; then the verdict is a hold.
    provenance: Option<Provenance>,
}

impl SurfacedVerdict {
    pub fn new(
        verdict: Verdict,
        is_safety_relevant: bool,
        provenance: Option<Provenance>,
    ) -> SurfacedVerdict {
        match provenance {
            Some(_) => SurfacedVerdict { verdict, safety_relevant: is_safety_relevant, provenance },
            None => SurfacedVerdict { verdict: Verdict::Hold, safety_relevant: true, provenance },
        }
    }

    /// The verdict of an entry that is what was accepted.
    pub fn unchanged() -> SurfacedVerdict {
        let provenance = Provenance::structural(Verdict::Proceed, false);
        SurfacedVerdict::new(Verdict::Proceed, false, Some(provenance))
    }

    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    pub fn is_safety_relevant(&self) -> bool {
        self.safety_relevant
    }

    pub fn provenance(&self) -> Option<Provenance> {
        self.provenance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_without_its_provenance_is_a_hold() {
        for verdict in Verdict::ALL {
            let shown = SurfacedVerdict::new(verdict, false, None);
            assert_eq!((shown.verdict(), shown.is_safety_relevant()), (Verdict::Hold, true));
            let provenance = Provenance::structural(verdict, true);
            assert_eq!(SurfacedVerdict::new(verdict, false, Some(provenance)).verdict(), verdict);
        }
    }
}
