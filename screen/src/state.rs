//! The four states, and the only function that assigns them.

use crate::finding::Severity;
use crate::grade::Grade;
use crate::word::closed_words;

/// Whether verdicts may be ALLOW and DENY. This requires 150 human labels with a false-positive
/// rate of at most 2 % (upper 95 % bound); there are none yet.
pub const GRADUATED: bool = false;

closed_words! {
    /// The status of the reading.
    Status ("status") {
        Ok => "OK",
        Error => "ERROR",
    }
}

closed_words! {
    /// The screen's advice. It is not a verdict of the gate: it neither stops nor permits a call.
    Directive ("directive") {
        Allow => "ALLOW",
        Deny => "DENY",
        Review => "REVIEW",
        Unverified => "UNVERIFIED",
    }
}

closed_words! {
    /// Whether there was a contract to read.
    Contract ("contract") {
        Read => "read",
        Missing => "missing",
    }
}

closed_words! {
    /// Whether the judges of intent agree. A single judge, or none, counts as agreement.
    Judges ("judges") {
        Agree => "agree",
        Disagree => "disagree",
    }
}

closed_words! {
    /// Whether every dimension was run.
    Coverage ("coverage") {
        Whole => "whole",
        Partial => "partial",
    }
}

closed_words! {
    /// Whether a verdict is still valid for the definition in question.
    Validity ("validity") {
        Current => "current",
        Expired => "expired",
        Changed => "changed",
    }
}

/// Everything that the state depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evidence {
    pub contract: Contract,
    /// The highest severity of all findings.
    pub worst: Option<Severity>,
    pub judges: Judges,
    pub coverage: Coverage,
    pub grade: Grade,
    pub validity: Validity,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    pub status: Status,
    pub directive: Directive,
}

impl State {
    /// The state without a verdict.
    pub const UNVERIFIED: State = State { status: Status::Error, directive: Directive::Unverified };

    /// The current state for this evidence.
    pub fn of(evidence: Evidence) -> State {
        State::graduated(evidence, GRADUATED)
    }

    /// The state for this evidence, if verdicts may or may not be ALLOW and DENY.
    pub fn graduated(evidence: Evidence, is_graduated: bool) -> State {
        if evidence.contract == Contract::Missing
            || evidence.grade == Grade::Unverified
            || evidence.validity != Validity::Current
        {
            return State::UNVERIFIED;
        }
        let is_open = evidence.judges == Judges::Disagree
            || evidence.coverage == Coverage::Partial
            || !evidence.grade.is_l1();
        let directive = match evidence.worst {
            Some(Severity::High) => Directive::Deny,
            Some(Severity::Medium) => Directive::Review,
            Some(Severity::Low) | None if is_open => Directive::Review,
            Some(Severity::Low) | None => Directive::Allow,
        };
        let directive = match directive {
            Directive::Allow | Directive::Deny if !is_graduated => Directive::Review,
            other => other,
        };
        State { status: Status::Ok, directive }
    }
}

#[cfg(test)]
mod tests;
