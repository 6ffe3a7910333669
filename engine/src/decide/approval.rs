//! Calls that a person has to approve, as the path and the session ask for it. At a gateway it is another person: who may
//! approve, and where it is recorded, is behind a trait. In front of one client it is the person at that client.

use crate::principal::Principal;
use contract::hash::EntryHash;
use contract::time::Timestamp;
use gate::server::ServerId;
use ledger::record::StepUp;

/// Who has to approve a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Approver {
    /// A member of one of these groups.
    Groups(Vec<String>),
    /// The person at the client that makes the call.
    PersonAtClient,
}

impl Approver {
    /// What a call without the approval is answered with, where it cannot be asked for.
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
    /// What the person at the client says of the call, with the tool's entry as it is now.
    PersonAtClient(EntryHash),
}

/// The very call that is to be approved, as it would be dispatched.
#[derive(Debug, Clone, Copy)]
pub struct ApprovalRequest<'a> {
    pub principal: &'a Principal,
    pub server: &'a ServerId,
    pub tool: &'a str,
    /// The hash of the tool's entry as it is now.
    pub contract: [u8; 32],
    pub arguments: Option<&'a [u8]>,
    /// What the client answers to questions of the server with this call.
    pub input_responses: Option<&'a [u8]>,
    pub groups: &'a [String],
    pub policy: Option<&'a str>,
}

/// An approval that a call goes on with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalGrant {
    pub by: String,
    pub at: Timestamp,
    pub step_up: StepUp,
    /// What the desk uses up before the call is dispatched. A yes of the person at the client is kept with its request.
    pub taken: Option<TakenApproval>,
}

/// An approval that the desk keeps for a call for a few seconds.
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
    /// The approval is used up by this call.
    Used,
    /// It is not the call's any more, or the store cannot be written.
    Lost,
}

/// What is known of a call's approval.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum ApprovalAnswer {
    /// It was granted, and counts for this call alone.
    Granted(ApprovalGrant),
    /// A person decides.
    Waits { id: String },
    /// A person said no.
    Refused,
    /// It cannot be asked for now.
    Unavailable { why: &'static str },
}

/// Goes on with a call that waits.
pub type ResumeCall = Box<dyn Fn() + Send + Sync>;

/// Where approvals are asked for.
pub trait ApprovalDesk: std::fmt::Debug + Send + Sync {
    /// Takes a grant for this call, or asks for one.
    fn ask(&self, request: &ApprovalRequest<'_>) -> ApprovalAnswer;

    /// Uses up a grant that was taken. To be called when the decision on the call is written, and before it is sent: a grant
    /// whose process is killed in between is still there.
    fn use_up(&self, taken: &TakenApproval) -> ApprovalUse;

    /// Calls `resume` when a person has decided, or when the call has waited for long enough: then it is asked for again.
    fn watch(&self, id: &str, resume: ResumeCall);
}
