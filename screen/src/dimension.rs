//! The dimensions that a contract is read for.

use crate::finding::{Finding, Severity};
use crate::word::closed_words;

closed_words! {
    /// A question that the screen asks about a contract.
    Dimension ("dimension") {
        /// Text that people do not see, or that is to be kept from the user.
        HiddenInstructions => "hidden-instructions",
        /// Reading secrets, sending data out, capturing the conversation.
        Exfiltration => "exfiltration",
        /// Instructions to the model: overrides, roles, decoded commands.
        Injection => "injection",
        /// Claims that the contract itself contradicts, or that no server can make about itself.
        Overclaim => "overclaim",
        /// Names and instructions that concern tools of other servers.
        Shadowing => "shadowing",
        /// The opinion of a model that the operator configured. Not run without one.
        Intent => "intent",
        /// Whether the tool behaves as it declares (the battery of tier 3). Only run on request.
        Conformance => "conformance",
    }
}

impl Dimension {
    /// Whether the screen itself can judge the dimension, without a model and without calling a
    /// tool.
    pub const fn is_deterministic(self) -> bool {
        match self {
            Dimension::HiddenInstructions
            | Dimension::Exfiltration
            | Dimension::Injection
            | Dimension::Overclaim
            | Dimension::Shadowing => true,
            Dimension::Intent | Dimension::Conformance => false,
        }
    }
}

closed_words! {
    /// The outcome of a dimension.
    Outcome ("outcome") {
        Pass => "pass",
        Fail => "fail",
        NotRun => "not-run",
    }
}

/// One dimension of a verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DimensionResult {
    pub dimension: Dimension,
    pub outcome: Outcome,
    /// The highest severity of the findings.
    pub severity: Option<Severity>,
    /// A fixed sentence; never text of the server.
    pub rationale: &'static str,
    pub findings: Vec<Finding>,
}

impl DimensionResult {
    /// The result of a dimension that was read, from its findings.
    pub fn of(dimension: Dimension, findings: Vec<Finding>) -> DimensionResult {
        let severity = findings.iter().map(|finding| finding.severity).max();
        let (outcome, rationale) = match severity {
            None => (Outcome::Pass, "read; nothing was found"),
            Some(_) => (Outcome::Fail, "read; see the findings"),
        };
        DimensionResult { dimension, outcome, severity, rationale, findings }
    }

    pub fn not_run(dimension: Dimension, rationale: &'static str) -> DimensionResult {
        let (severity, findings) = (None, Vec::new());
        DimensionResult { dimension, outcome: Outcome::NotRun, severity, rationale, findings }
    }
}
