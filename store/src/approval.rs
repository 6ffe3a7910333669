//! Calls that wait for approval: parked, granted or refused by a person other than the caller, and
//! used once.

use crate::act::within;
use crate::api_key::MAX_PRINCIPAL_BYTES;
use crate::by::{By, Signed};
use crate::error::StoreError;
use crate::named::id_type;
use contract::hash::EntryHash;
use gate::server::ServerId;
use gate::time::Timestamp;
use std::fmt;

/// The longest tool name of a parked call, in bytes.
pub const MAX_TOOL_BYTES: usize = 4_096;
/// The most calls that can wait at the same time.
pub const MAX_PARKED_CALLS: usize = 10_000;
/// How long an approval is kept after it was used, refused or expired. People's decisions remain in
/// the events.
pub const KEPT_APPROVAL_DAYS: i64 = 30;
/// How long a taken grant is reserved for its taker. A grant that is not used by then, because the
/// process was killed, can be taken again.
pub const KEPT_FOR_TAKER_MILLISECONDS: i64 = 5_000;

id_type! {
    /// The id of an approval.
    ApprovalId
}

/// The hash of a call's arguments, as in the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ArgsHash(pub [u8; 32]);

/// What an approval is bound to: this principal, this tool as pinned, these arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallBinding {
    pub principal: String,
    pub server: ServerId,
    pub tool: String,
    pub contract_hash: EntryHash,
    pub args_hash: ArgsHash,
}

impl CallBinding {
    pub(crate) fn check_limits(&self) -> Result<(), StoreError> {
        within("the name of a principal", self.principal.len(), MAX_PRINCIPAL_BYTES)?;
        within("the name of a tool", self.tool.len(), MAX_TOOL_BYTES)
    }
}

/// The state of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalState {
    Parked,
    Granted,
    Refused,
    Used,
    Expired,
}

impl ApprovalState {
    pub const ALL: [ApprovalState; 5] = [
        ApprovalState::Parked,
        ApprovalState::Granted,
        ApprovalState::Refused,
        ApprovalState::Used,
        ApprovalState::Expired,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            ApprovalState::Parked => "parked",
            ApprovalState::Granted => "granted",
            ApprovalState::Refused => "refused",
            ApprovalState::Used => "used",
            ApprovalState::Expired => "expired",
        }
    }
}

impl fmt::Display for ApprovalState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A person's decision on a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalDecision {
    Grant {
        /// Whether the person authenticated with more than one factor.
        mfa: bool,
    },
    Refuse,
}

/// A recorded approval of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallApproval {
    pub id: ApprovalId,
    pub call: CallBinding,
    pub state: ApprovalState,
    pub parked_at: Timestamp,
    pub expires_at: Timestamp,
    pub decided: Option<Signed>,
    /// Whether the person who granted it authenticated with more than one factor.
    pub mfa: bool,
    /// When a call last took it.
    pub taken_at: Option<Timestamp>,
}

/// Whether a call may proceed with an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Taken {
    /// It may, once [`ApprovalStore::use_approval`] has used it up.
    Taken(Box<CallApproval>),
    /// It was not granted, was already used, or has expired. `Granted` means that another call has
    /// just taken it.
    Not(ApprovalState),
    /// The approval is for a different call.
    OtherCall,
    Unknown,
    /// Another program changed the granted calls, or restored an earlier state. Existing grants no
    /// longer count; new calls can be parked and granted as before.
    Doubted,
}

/// Whether a call that took an approval may be dispatched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Spent {
    /// It may: the approval is used up.
    Spent,
    /// It may not: the approval was taken again, was already used or has expired.
    NotHeld,
    /// It may not, for the reason of [`Taken::Doubted`].
    Doubted,
}

/// Approvals of calls, shared by all processes.
///
/// A call takes its approval, its decision is recorded, the approval is used up and the call is
/// dispatched, in this order. A process that is killed before the approval is used up has
/// dispatched nothing, so another call may take it.
pub trait ApprovalStore {
    /// Parks a call until a person decides or `expires_at` is reached.
    fn park_call(
        &mut self,
        id: &ApprovalId,
        call: &CallBinding,
        at: Timestamp,
        expires_at: Timestamp,
    ) -> Result<(), StoreError>;

    fn approval(&self, id: &ApprovalId) -> Result<Option<CallApproval>, StoreError>;

    /// The calls that wait for a decision, oldest first.
    fn parked_calls(&self, now: Timestamp) -> Result<Vec<CallApproval>, StoreError>;

    /// Grants or refuses a waiting call. A principal cannot decide on their own call.
    fn decide_call(
        &mut self,
        id: &ApprovalId,
        decision: ApprovalDecision,
        by: By<'_>,
    ) -> Result<(), StoreError>;

    /// Takes an approval for a call and reserves it for [`KEPT_FOR_TAKER_MILLISECONDS`]. Of several
    /// concurrent takers, exactly one succeeds.
    fn take_approval(
        &mut self,
        id: &ApprovalId,
        call: &CallBinding,
        at: Timestamp,
    ) -> Result<Taken, StoreError>;

    /// Uses up an approval that was taken at this moment, unless it has expired. Of all callers
    /// that ever took it, only one succeeds.
    fn use_approval(
        &mut self,
        id: &ApprovalId,
        taken_at: Timestamp,
        now: Timestamp,
    ) -> Result<Spent, StoreError>;

    /// How often the set of granted calls has changed; it only grows. This handle remembers the
    /// highest count that it has seen: in a database with a lower count, which must be an older
    /// copy, no grant counts.
    fn grant_count(&self) -> Result<i64, StoreError>;

    /// Marks calls as expired that were not decided or used in time, deletes old ones, and returns
    /// how many expired.
    fn expire_approvals(&mut self, now: Timestamp) -> Result<u64, StoreError>;
}
