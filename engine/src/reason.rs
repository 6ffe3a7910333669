//! Why a request is refused: the closed list of reason codes, each with its JSON-RPC error code.

use gate::reason::Reason as DriftReason;
use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReasonCode {
    Drift(DriftReason),
    /// Admission of the server, or of one of its tools.
    Admission(attest::Reason),
    UnknownServer,
    UnknownTool,
    Unauthenticated,
    NoPolicyMatch,
    Forbidden,
    PolicyError,
    ApprovalRequired,
    /// An argument that the approved definition does not declare.
    UnknownField,
    SchemaViolation,
    PayloadTooLarge,
    TooDeep,
    PathOutsideWorkspace,
    EgressNotAllowed,
    RateLimited,
    PassthroughBlocked,
    CredentialUnavailable,
    QuotaExceeded,
    KillSwitch,
    EgressBlocked,
    SessionQuarantined,
    UpstreamUnreachable,
    UpstreamUnreadable,
    Timeout,
    Internal,
    LedgerUnavailable,
    AmbiguousMessage,
    BadFrame,
}

impl ReasonCode {
    pub const fn as_str(self) -> &'static str {
        match self {
            ReasonCode::Drift(reason) => reason.as_str(),
            ReasonCode::Admission(reason) => reason.as_str(),
            ReasonCode::UnknownServer => "unknown_server",
            ReasonCode::UnknownTool => "unknown_tool",
            ReasonCode::Unauthenticated => "unauthenticated",
            ReasonCode::NoPolicyMatch => "no_policy_match",
            ReasonCode::Forbidden => "forbidden",
            ReasonCode::PolicyError => "policy_error",
            ReasonCode::ApprovalRequired => "approval_required",
            ReasonCode::UnknownField => "unknown_field",
            ReasonCode::SchemaViolation => "schema_violation",
            ReasonCode::PayloadTooLarge => "payload_too_large",
            ReasonCode::TooDeep => "too_deep",
            ReasonCode::PathOutsideWorkspace => "path_outside_workspace",
            ReasonCode::EgressNotAllowed => "egress_not_allowed",
            ReasonCode::RateLimited => "rate_limited",
            ReasonCode::PassthroughBlocked => "passthrough_blocked",
            ReasonCode::CredentialUnavailable => "credential_unavailable",
            ReasonCode::QuotaExceeded => "quota_exceeded",
            ReasonCode::KillSwitch => "kill_switch",
            ReasonCode::EgressBlocked => "egress_blocked",
            ReasonCode::SessionQuarantined => "session_quarantined",
            ReasonCode::UpstreamUnreachable => "upstream_unreachable",
            ReasonCode::UpstreamUnreadable => "upstream_unreadable",
            ReasonCode::Timeout => "timeout",
            ReasonCode::Internal => "internal",
            ReasonCode::LedgerUnavailable => "ledger_unavailable",
            ReasonCode::AmbiguousMessage => "ambiguous_message",
            ReasonCode::BadFrame => "bad_frame",
        }
    }

    /// Whether only a person can resolve it, so that an agent's retries or workarounds are useless.
    pub const fn needs_person(self) -> bool {
        match self {
            ReasonCode::Drift(_)
            | ReasonCode::Admission(_)
            | ReasonCode::UnknownServer
            | ReasonCode::Unauthenticated
            | ReasonCode::NoPolicyMatch
            | ReasonCode::Forbidden
            | ReasonCode::PolicyError
            | ReasonCode::ApprovalRequired
            | ReasonCode::CredentialUnavailable
            | ReasonCode::KillSwitch
            | ReasonCode::EgressBlocked
            | ReasonCode::SessionQuarantined
            | ReasonCode::UpstreamUnreachable
            | ReasonCode::Internal
            | ReasonCode::LedgerUnavailable => true,
            ReasonCode::UnknownTool
            | ReasonCode::UnknownField
            | ReasonCode::SchemaViolation
            | ReasonCode::PayloadTooLarge
            | ReasonCode::TooDeep
            | ReasonCode::PathOutsideWorkspace
            | ReasonCode::EgressNotAllowed
            | ReasonCode::RateLimited
            | ReasonCode::PassthroughBlocked
            | ReasonCode::QuotaExceeded
            | ReasonCode::UpstreamUnreadable
            | ReasonCode::Timeout
            | ReasonCode::AmbiguousMessage
            | ReasonCode::BadFrame => false,
        }
    }

    /// Whether it concerns what the caller may use, regardless of the server's contract and
    /// admission.
    pub const fn is_about_caller(self) -> bool {
        matches!(
            self,
            ReasonCode::Admission(attest::Reason::ToolNotAdmitted)
                | ReasonCode::Unauthenticated
                | ReasonCode::NoPolicyMatch
                | ReasonCode::Forbidden
                | ReasonCode::PolicyError
                | ReasonCode::ApprovalRequired
        )
    }

    /// The JSON-RPC error code.
    pub const fn code(self) -> i64 {
        match self {
            ReasonCode::Drift(_) => -32010,
            ReasonCode::UpstreamUnreachable
            | ReasonCode::UpstreamUnreadable
            | ReasonCode::Timeout => -32011,
            ReasonCode::Internal | ReasonCode::LedgerUnavailable => -32012,
            ReasonCode::Admission(_)
            | ReasonCode::UnknownServer
            | ReasonCode::UnknownTool
            | ReasonCode::Unauthenticated
            | ReasonCode::NoPolicyMatch
            | ReasonCode::Forbidden
            | ReasonCode::PolicyError
            | ReasonCode::UnknownField
            | ReasonCode::SchemaViolation
            | ReasonCode::PayloadTooLarge
            | ReasonCode::TooDeep
            | ReasonCode::PassthroughBlocked
            | ReasonCode::CredentialUnavailable
            | ReasonCode::PathOutsideWorkspace
            | ReasonCode::EgressNotAllowed
            | ReasonCode::KillSwitch
            | ReasonCode::EgressBlocked
            | ReasonCode::SessionQuarantined => 1013,
            ReasonCode::ApprovalRequired => 1014,
            ReasonCode::RateLimited | ReasonCode::QuotaExceeded => 1029,
            ReasonCode::AmbiguousMessage | ReasonCode::BadFrame => -32600,
        }
    }
}

impl fmt::Display for ReasonCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
