//! What the gateway keeps of people's sign-ins: grants of other servers, consents, refresh tokens of its own, and what was used
//! once. The content of a record is sealed by the gateway; the store neither reads nor checks it.

use crate::act::within;
use crate::api_key::MAX_PRINCIPAL_BYTES;
use crate::error::StoreError;
use crate::named::id_type;
use gate::time::Timestamp;

/// The longest sealed content of a record, in bytes.
pub const MAX_SEALED_BYTES: usize = 64 * 1024;
/// The longest name of an owner: an issuer and a subject.
const MAX_OWNER_BYTES: usize = 4 * MAX_PRINCIPAL_BYTES;
/// The most records of one kind that one owner has.
pub const MAX_SIGN_INS_PER_OWNER: usize = 1_000;

id_type! {
    /// The name of a record among those of its kind.
    SignInName
}

id_type! {
    /// Names one process's claim on a record.
    ClaimId
}

/// What a record is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SignInKind {
    /// A person's access to a server, with its refresh token.
    Grant,
    /// That a person lets a client act for them.
    Consent,
    /// The refresh tokens that descend from one sign-in at the gateway.
    Family,
    /// A code, link or state that must not be used again.
    Used,
    /// A sign-in at a server's authorization server that has begun.
    Pending,
    /// A family whose access tokens do not count any more although they have not expired.
    Revoked,
}

impl SignInKind {
    pub const ALL: [SignInKind; 6] = [
        SignInKind::Grant,
        SignInKind::Consent,
        SignInKind::Family,
        SignInKind::Used,
        SignInKind::Pending,
        SignInKind::Revoked,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            SignInKind::Grant => "grant",
            SignInKind::Consent => "consent",
            SignInKind::Family => "family",
            SignInKind::Used => "used",
            SignInKind::Pending => "pending",
            SignInKind::Revoked => "revoked",
        }
    }
}

/// A record of a sign-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignIn {
    pub kind: SignInKind,
    pub name: SignInName,
    /// Whose it is, for lists and removal. What counts is the owner in the sealed content.
    pub owner: String,
    pub at: Timestamp,
    pub expires_at: Timestamp,
    pub sealed: String,
}

impl SignIn {
    pub(crate) fn check_limits(&self) -> Result<(), StoreError> {
        within("the owner of a sign-in", self.owner.len(), MAX_OWNER_BYTES)?;
        within("the content of a sign-in", self.sealed.len(), MAX_SEALED_BYTES)
    }
}

/// Whether a process may replace a record.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Claimed {
    /// It may, until the claim ends.
    Yours(Box<SignIn>),
    /// Another process does that just now.
    Elsewhere,
    Unknown,
}

/// Sign-ins, shared by all processes.
pub trait SignInStore {
    /// Writes a record over the one with its name, if there is one. Claims on that one end.
    fn put_sign_in(&mut self, record: &SignIn) -> Result<(), StoreError>;

    /// Writes a record unless there is one with its name. Returns whether it was written.
    fn add_sign_in(&mut self, record: &SignIn) -> Result<bool, StoreError>;

    fn sign_in(&self, kind: SignInKind, name: &SignInName) -> Result<Option<SignIn>, StoreError>;

    /// The records of an owner, oldest first.
    fn sign_ins_of(&self, kind: SignInKind, owner: &str) -> Result<Vec<SignIn>, StoreError>;

    /// All records of a kind, oldest first.
    fn sign_ins(&self, kind: SignInKind) -> Result<Vec<SignIn>, StoreError>;

    /// Returns whether there was one.
    fn remove_sign_in(&mut self, kind: SignInKind, name: &SignInName) -> Result<bool, StoreError>;

    /// Takes a record for this process until a moment, so that no other replaces it meanwhile.
    fn claim_sign_in(
        &mut self,
        kind: SignInKind,
        name: &SignInName,
        claim: &ClaimId,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Claimed, StoreError>;

    /// Ends a claim, with a new record in the place of the old one where there is one. Returns whether the claim was still
    /// this process's; if not, nothing is written.
    fn end_claim(
        &mut self,
        kind: SignInKind,
        name: &SignInName,
        claim: &ClaimId,
        replacement: Option<&SignIn>,
    ) -> Result<bool, StoreError>;

    /// Removes records that have expired. Returns how many.
    fn expire_sign_ins(&mut self, now: Timestamp) -> Result<u64, StoreError>;
}
