//! The four states, and the one function that gives them.

use crate::finding::Severity;
use crate::grade::Grade;
use crate::word::closed_words;

/// Whether verdicts may say ALLOW and DENY. The gate for it is 150 human labels with a false-positive rate of at most 2 %
/// (upper 95 % bound); there are none yet.
pub const GRADUATED: bool = false;

closed_words! {
    /// How the reading went.
    Status ("status") {
        Ok => "OK",
        Error => "ERROR",
    }
}

closed_words! {
    /// What the screen advises. Not a verdict of the gate: it stops and permits no call.
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
    /// Whether those that judged intent agree. One judge, and none, agree.
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
    /// Whether a verdict still counts for the definition that is asked about.
    Validity ("validity") {
        Current => "current",
        Expired => "expired",
        Changed => "changed",
    }
}

/// All that a state depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evidence {
    pub contract: Contract,
    /// The highest severity that was found.
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
    /// The state of what has no verdict.
    pub const UNVERIFIED: State = State { status: Status::Error, directive: Directive::Unverified };

    /// The state that this evidence gives today.
    pub fn of(evidence: Evidence) -> State {
        State::graduated(evidence, GRADUATED)
    }

    /// The state as it is, or would be, if verdicts may say ALLOW and DENY.
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
