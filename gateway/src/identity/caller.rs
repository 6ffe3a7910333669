//! An authenticated caller, and the response to a request that could not be authenticated.

use super::certificate::CertificateFault;
use super::static_key::KeyFault;
use super::token::TokenFault;
use contract::time::Timestamp;
use http::{HeaderValue, StatusCode};
use policy::Caller;
use sha2::{Digest, Sha256};

/// The SHA-256 of a token, a key or a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CredentialHash(pub [u8; 32]);

impl CredentialHash {
    pub fn of(bytes: &[u8]) -> CredentialHash {
        CredentialHash(Sha256::digest(bytes).into())
    }
}

/// The authenticated caller of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authenticated {
    pub caller: Caller,
    /// The hash of the credential.
    pub credential: CredentialHash,
    pub proof: Proof,
    /// When the credential expires; streams end then.
    pub expires_at: Option<Timestamp>,
    /// When the credential was issued: a later revocation of its principal invalidates it.
    pub since: Timestamp,
}

/// The basis of a credential, which may be withdrawn before the credential expires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    Key,
    /// A token signed by this key of this issuer.
    Token {
        issuer: String,
        key_id: String,
        key_fingerprint: [u8; 32],
    },
    /// A token issued by the gateway, descending from this sign-in.
    Minted {
        family: String,
    },
    Certificate,
}

/// A token with a verified signature and well-typed claims. Its audience depends on the request.
#[derive(Debug)]
pub(super) struct VerifiedToken {
    pub(super) caller: Caller,
    /// The index of the configured issuer.
    pub(super) issuer: usize,
    pub(super) key_id: String,
    pub(super) key_fingerprint: [u8; 32],
    pub(super) audiences: Vec<String>,
    /// Until when the token is cached; never later than `exp`.
    pub(super) cached_until: Timestamp,
    pub(super) refused_from: Timestamp,
    pub(super) issued_at: Timestamp,
}

/// Why authentication failed. For records and tests; the caller is told less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum AuthenticationFault {
    #[error("no credentials were sent")]
    NoCredentials,
    #[error("there are two `Authorization` headers, or it is not `Bearer` with one credential")]
    BadHeader,
    #[error("the principal or its key was revoked after this credential was issued")]
    Revoked,
    #[error("client certificates do not open the admin API")]
    CertificateAtAdmin,
    #[error(transparent)]
    Token(#[from] TokenFault),
    #[error(transparent)]
    Key(#[from] KeyFault),
    #[error(transparent)]
    Certificate(#[from] CertificateFault),
}

/// The refusal of an unauthenticated request, sent before its body is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unauthenticated {
    pub fault: AuthenticationFault,
    pub status: StatusCode,
    /// The value of `WWW-Authenticate`.
    pub challenge: HeaderValue,
}

impl Unauthenticated {
    /// The reason code of refusals and receipts.
    pub const REASON: &'static str = "unauthenticated";
}
