//! A caller who proved who it is, and what a request that did not is answered with.

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

/// A request's caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authenticated {
    pub caller: Caller,
    /// Which credential proved it.
    pub credential: CredentialHash,
    pub proof: Proof,
    /// The moment from which on the credential proves nothing; streams end then.
    pub expires_at: Option<Timestamp>,
    /// When the credential was issued: a later revocation of its principal ends it.
    pub since: Timestamp,
}

/// What a credential rests on, which may be withdrawn before it expires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    Key,
    /// Signed by this key of this issuer.
    Token {
        issuer: String,
        key_id: String,
        key_fingerprint: [u8; 32],
    },
    /// A token of the gateway's own, which descends from this sign-in.
    Minted {
        family: String,
    },
    Certificate,
}

/// A token whose signature and types were verified. Its audience depends on the request.
#[derive(Debug)]
pub(super) struct VerifiedToken {
    pub(super) caller: Caller,
    /// Which of the configured issuers.
    pub(super) issuer: usize,
    pub(super) key_id: String,
    pub(super) key_fingerprint: [u8; 32],
    pub(super) audiences: Vec<String>,
    /// Until when it is believed without verifying it again; never past `exp`.
    pub(super) cached_until: Timestamp,
    pub(super) refused_from: Timestamp,
    pub(super) issued_at: Timestamp,
}

/// What was wrong. For records and tests; strangers are told less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum AuthenticationFault {
    #[error("no credentials were sent")]
    NoCredentials,
    #[error("the `Authorization` header is there twice, or is not `Bearer` with one credential")]
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

/// A request without a caller: answered before its body is read.
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
