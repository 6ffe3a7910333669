//! Verdicts, and the provenance that every shown verdict must have.

use std::fmt;

/// The decision on a call, ordered by strength.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    Proceed,
    /// Held until behavior can be observed. This is not a weaker proceed.
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

    /// Whether the call is not forwarded.
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

/// The kind of evidence behind a verdict.
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

/// The claims of a verdict and, more importantly, what it does not claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Nothing changed.
    Healthy,
    /// Something changed. Whether it is dangerous is left open.
    ContractDiffNotSafety,
    /// Only observed behavior could settle it.
    BehavioralNeeded,
    /// The change is shown without judging it, and nothing is stopped.
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

/// How a verdict was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Provenance {
    /// The deepest tier that actually ran, rather than one that was merely available.
    pub tier_reached: u8,
    pub verdict_scope: Scope,
    pub framing: Framing,
}

impl Provenance {
    /// The provenance of a verdict based on the comparison alone.
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

/// A verdict as it leaves the gate, in a refusal, a receipt or a document, with its provenance.
///
/// INVARIANT: no verdict but HOLD is shown without its provenance.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct SurfacedVerdict {
    verdict: Verdict,
    safety_relevant: bool,
    /// Absent if it could not be made; the verdict is then a hold.
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

    /// The verdict on an entry that matches its accepted version.
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
