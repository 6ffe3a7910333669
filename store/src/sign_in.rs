//! What the gateway stores about people's sign-ins: grants of other servers, consents, its own
//! refresh tokens, and single-use values. The gateway seals the content of a record; the store
//! neither reads nor checks it.

use crate::act::within;
use crate::api_key::MAX_PRINCIPAL_BYTES;
use crate::error::StoreError;
use crate::named::id_type;
use gate::time::Timestamp;

/// The longest sealed content of a record, in bytes.
pub const MAX_SEALED_BYTES: usize = 64 * 1024;
/// The longest name of an owner: an issuer and a subject.
const MAX_OWNER_BYTES: usize = 4 * MAX_PRINCIPAL_BYTES;
/// The most records of one kind per owner.
pub const MAX_SIGN_INS_PER_OWNER: usize = 1_000;

id_type! {
    /// The name of a record, unique for its kind.
    SignInName
}

id_type! {
    /// Identifies a process's claim on a record.
    ClaimId
}

/// What a record is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SignInKind {
    /// A person's access to a server, with its refresh token.
    Grant,
    /// A person's permission for a client to act for them.
    Consent,
    /// The refresh tokens that descend from one sign-in at the gateway.
    Family,
    /// A code, link or state that must not be used again.
    Used,
    /// A sign-in in progress at a server's authorization server.
    Pending,
    /// A family whose access tokens are revoked although they have not expired.
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
    /// The owner, for lists and removal. The authoritative owner is in the sealed content.
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
    /// Another process is replacing it right now.
    Elsewhere,
    Unknown,
}

/// Sign-ins, shared by all processes.
pub trait SignInStore {
    /// Writes a record, and replaces an existing one with its name, ending claims on it.
    fn put_sign_in(&mut self, record: &SignIn) -> Result<(), StoreError>;

    /// Writes a record unless one with its name exists. Returns whether it was written.
    fn add_sign_in(&mut self, record: &SignIn) -> Result<bool, StoreError>;

    fn sign_in(&self, kind: SignInKind, name: &SignInName) -> Result<Option<SignIn>, StoreError>;

    /// The records of an owner, oldest first.
    fn sign_ins_of(&self, kind: SignInKind, owner: &str) -> Result<Vec<SignIn>, StoreError>;

    /// All records of a kind, oldest first.
    fn sign_ins(&self, kind: SignInKind) -> Result<Vec<SignIn>, StoreError>;

    /// Removes a record. Returns whether it existed.
    fn remove_sign_in(&mut self, kind: SignInKind, name: &SignInName) -> Result<bool, StoreError>;

    /// Claims a record until a moment, so that no other process replaces it meanwhile.
    fn claim_sign_in(
        &mut self,
        kind: SignInKind,
        name: &SignInName,
        claim: &ClaimId,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Claimed, StoreError>;

    /// Ends a claim, and stores the new record if one is given. Returns whether the process still
    /// held the claim; if not, writes nothing.
    fn end_claim(
        &mut self,
        kind: SignInKind,
        name: &SignInName,
        claim: &ClaimId,
        replacement: Option<&SignIn>,
    ) -> Result<bool, StoreError>;

    /// Removes expired records. Returns how many.
    fn expire_sign_ins(&mut self, now: Timestamp) -> Result<u64, StoreError>;
}
