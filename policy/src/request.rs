//! Requests to the policies, and their decisions.

use std::sync::Arc;

/// Something that a caller wants to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessRequest<'a> {
    /// Call a tool with these arguments, as the JSON text of the call. `None` counts as `{}`.
    Call {
        server: &'a str,
        tool: &'a str,
        input: Option<&'a [u8]>,
    },
    /// Get a prompt.
    Get {
        server: &'a str,
        prompt: &'a str,
    },
    /// Read a resource, listed or not.
    Read {
        server: &'a str,
        uri: &'a str,
    },
    /// Use any other method of a server.
    Use {
        server: &'a str,
    },
    Admin {
        action: AdminAction,
        on: AdminTarget<'a>,
    },
}

/// The actions of administrators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AdminAction {
    /// Read receipts, findings and statistics.
    Audit,
    /// Approve, quarantine or release what a server offers.
    Approve,
    /// Grant or refuse a call that waits for approval.
    Grant,
    /// Incident mode, revocation, reload.
    Operate,
}

impl AdminAction {
    pub const ALL: [AdminAction; 4] =
        [AdminAction::Audit, AdminAction::Approve, AdminAction::Grant, AdminAction::Operate];

    pub fn as_str(self) -> &'static str {
        match self {
            AdminAction::Audit => "audit",
            AdminAction::Approve => "approve",
            AdminAction::Grant => "grant",
            AdminAction::Operate => "operate",
        }
    }

    /// Whether only a person may do this, whatever the policies say: an agent must not approve its
    /// own calls or drift.
    pub fn needs_a_user(self) -> bool {
        match self {
            AdminAction::Approve | AdminAction::Grant => true,
            AdminAction::Audit | AdminAction::Operate => false,
        }
    }
}

/// The target of an administrator's action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdminTarget<'a> {
    Gateway,
    Server(&'a str),
}

/// The decision on an [`AccessRequest`].
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessDecision {
    Permit {
        /// The first matching permit, or the first that requires approval if one does.
        policy_id: Arc<str>,
        /// A member of any of these groups must approve. If empty, no approval is needed.
        approval_groups: Arc<[Arc<str>]>,
    },
    Deny {
        reason: DenyReason,
    },
}

impl AccessDecision {
    pub(crate) fn no_match() -> AccessDecision {
        AccessDecision::Deny { reason: DenyReason::NoPolicyMatch }
    }

    pub(crate) fn error(policy_id: Option<Arc<str>>) -> AccessDecision {
        AccessDecision::Deny { reason: DenyReason::PolicyError { policy_id } }
    }

    pub fn is_permit(&self) -> bool {
        matches!(self, AccessDecision::Permit { .. })
    }

    /// The deciding policy, if any.
    pub fn policy_id(&self) -> Option<&str> {
        match self {
            AccessDecision::Permit { policy_id, .. } => Some(policy_id),
            AccessDecision::Deny { reason } => reason.policy_id(),
        }
    }
}

/// Why a request is denied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DenyReason {
    /// No permit matches, or the target does not exist.
    NoPolicyMatch,
    /// The server belongs to other orgs than the caller's. The caller sees the same as for
    /// [`DenyReason::NoPolicyMatch`].
    OtherOrg,
    /// Only a person may do this.
    NotAUser,
    Forbidden {
        policy_id: Arc<str>,
    },
    /// A policy could not be evaluated. Cedar would skip it, and skipping a forbid would permit the
    /// call.
    PolicyError {
        policy_id: Option<Arc<str>>,
    },
}

impl DenyReason {
    /// The stable reason code used in receipts.
    pub fn code(&self) -> &'static str {
        match self {
            DenyReason::NoPolicyMatch | DenyReason::OtherOrg => "no_policy_match",
            DenyReason::NotAUser | DenyReason::Forbidden { .. } => "forbidden",
            DenyReason::PolicyError { .. } => "policy_error",
        }
    }

    pub fn policy_id(&self) -> Option<&str> {
        match self {
            DenyReason::NoPolicyMatch | DenyReason::OtherOrg | DenyReason::NotAUser => None,
            DenyReason::Forbidden { policy_id } => Some(policy_id),
            DenyReason::PolicyError { policy_id } => policy_id.as_deref(),
        }
    }
}
