//! Calls that a person must approve, as seen by the path and the session. At a gateway this is
//! another person; a trait hides who may approve and where approvals are recorded. In front of a
//! single client it is the person at that client.

use crate::principal::Principal;
use contract::hash::EntryHash;
use contract::time::Timestamp;
use gate::server::ServerId;
use ledger::record::StepUp;

/// Who must approve a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Approver {
    /// A member of one of these groups.
    Groups(Vec<String>),
    /// The person at the client that makes the call.
    PersonAtClient,
}

impl Approver {
    /// The refusal of a call whose approval cannot be requested.
    pub(super) fn words(&self) -> String {
        match self {
            Approver::Groups(groups) => format!(
                "○ holdpoint — this call needs the approval of another person, a member of {}",
                groups.join(" or ")
            ),
            Approver::PersonAtClient => {
                "○ holdpoint — the person at the client has to allow this call".to_owned()
            }
        }
    }
}

/// What a call waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AwaitedApproval {
    /// The approval with this id, at the desk.
    Desk(String),
    /// The decision of the person at the client, with the hash of the tool's current entry.
    PersonAtClient(EntryHash),
}

/// The exact call to be approved, as it would be dispatched.
#[derive(Debug, Clone, Copy)]
pub struct ApprovalRequest<'a> {
    pub principal: &'a Principal,
    pub server: &'a ServerId,
    pub tool: &'a str,
    /// The hash of the tool's current entry.
    pub contract: [u8; 32],
    pub arguments: Option<&'a [u8]>,
    /// The client's answers to the server's questions that accompany this call.
    pub input_responses: Option<&'a [u8]>,
    pub groups: &'a [String],
    pub policy: Option<&'a str>,
}

/// An approval that lets a call proceed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalGrant {
    pub by: String,
    pub at: Timestamp,
    pub step_up: StepUp,
    /// What to use up at the desk before the call is dispatched. An approval by the person at the
    /// client is stored with its request.
    pub taken: Option<TakenApproval>,
}

/// An approval that the desk reserves for a call for a few seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenApproval {
    pub id: String,
    pub server: String,
    pub at: Timestamp,
}

/// Whether a call may be dispatched with the approval that was taken for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum ApprovalUse {
    /// This call has used up the approval.
    Used,
    /// The approval no longer belongs to the call, or the store cannot be written.
    Lost,
}

/// The state of a call's approval.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum ApprovalAnswer {
    /// It was granted, for this call only.
    Granted(ApprovalGrant),
    /// A person has yet to decide.
    Waits { id: String },
    /// A person refused it.
    Refused,
    /// It cannot be requested now.
    Unavailable { why: &'static str },
}

/// Resumes a waiting call.
pub type ResumeCall = Box<dyn Fn() + Send + Sync>;

/// The place where approvals are requested.
pub trait ApprovalDesk: std::fmt::Debug + Send + Sync {
    /// Takes an existing grant for this call, or requests one.
    fn ask(&self, request: &ApprovalRequest<'_>) -> ApprovalAnswer;

    /// Uses up a grant that was taken. To be called after the decision on the call is written and
    /// before the call is sent, so that a grant survives if the process is killed in between.
    fn use_up(&self, taken: &TakenApproval) -> ApprovalUse;

    /// Calls `resume` when a person has decided or the wait has timed out. The approval must then
    /// be requested again.
    fn watch(&self, id: &str, resume: ResumeCall);
}
