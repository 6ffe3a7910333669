//! Why there is no credential for a server. Contains no secrets or tokens.

use super::age::AgeError;
use settings::SecretError;
use std::sync::Arc;
use wire::attestation::FetchError;

/// Why there is no credential for a server. The messages are for the operator; callers get
/// [`Unavailable::words`].
#[derive(Debug, Clone, thiserror::Error)]
pub enum Unavailable {
    #[error(
        "the caller has no access token that could be exchanged: it has a key, a certificate, or a token of the gateway's own"
    )]
    NoSubject,
    #[error("the caller sent no token for this server in `Holdpoint-Upstream-Authorization`")]
    NotSent,
    #[error("`Holdpoint-Upstream-Authorization` cannot be read, or names a server twice")]
    BadBoundHeader,
    #[error("the token for this server is not a JWT whose audience can be read")]
    BoundNotJwt,
    #[error("the token for this server was issued for another audience")]
    BoundAudience,
    #[error("the token for this server has expired")]
    BoundExpired,
    #[error("this server requires a person to sign in, but the caller uses a key or a certificate")]
    NoPerson,
    #[error("the person has not signed in to this server, or that sign-in has ended")]
    SignInNeeded,
    #[error("the token could not be refreshed: {words}")]
    SignInFailed { code: &'static str, words: String },
    #[error("the server refused the credential, also after it was renewed")]
    Refused,
    #[error("a recent attempt to obtain it failed; not retrying yet")]
    JustFailed,
    #[error("the secret: {0}")]
    Secret(Arc<SecretError>),
    #[error("the secret does not fit into a header")]
    NotAHeader,
    #[error("`{place}` could not be reached: {source}")]
    NotReached { place: String, source: Arc<FetchError> },
    #[error("`{place}` answered status {status}{}", .code.as_deref().map(|code| format!(" ({code})")).unwrap_or_default())]
    Status { place: String, status: u16, code: Option<String> },
    #[error("the answer of `{place}` cannot be used: {problem}")]
    Unusable { place: String, problem: &'static str },
    #[error("the authorization server returned the caller's own token")]
    SameToken,
    #[error("`{place}`: {source}")]
    Encrypted { place: String, source: AgeError },
    #[error("no Vault is configured")]
    NoVault,
}

impl From<SecretError> for Unavailable {
    fn from(error: SecretError) -> Unavailable {
        Unavailable::Secret(Arc::new(error))
    }
}

impl Unavailable {
    /// The message for the caller. It says what the caller can do, and reveals nothing about the
    /// gateway's configuration.
    pub fn words(&self) -> &'static str {
        match self {
            Unavailable::NoSubject => {
                "○ holdpoint — this server needs a caller with an access token of the identity provider; a key, a certificate or a token of the gateway cannot be exchanged for one"
            }
            Unavailable::NotSent => {
                "○ holdpoint — this server needs a token of yours for it: send `Holdpoint-Upstream-Authorization: SERVER TOKEN`"
            }
            Unavailable::BadBoundHeader => {
                "○ holdpoint — `Holdpoint-Upstream-Authorization` has to be `SERVER TOKEN`, once for each server"
            }
            Unavailable::BoundNotJwt => {
                "○ holdpoint — the token for this server has to be a JWT with an audience"
            }
            Unavailable::BoundAudience => {
                "○ holdpoint — the token for this server was issued for another audience"
            }
            Unavailable::BoundExpired => "○ holdpoint — the token for this server has expired",
            Unavailable::NoPerson => {
                "○ holdpoint — this server needs a person who signed in to the gateway; a key or a certificate cannot sign in to it"
            }
            Unavailable::SignInNeeded => {
                "○ holdpoint — you have to sign in to this server once: open the address in `data.sign_in`, then repeat the call"
            }
            Unavailable::Refused => {
                "○ holdpoint — the server does not accept the gateway's credential for you"
            }
            Unavailable::JustFailed
            | Unavailable::Encrypted { .. }
            | Unavailable::Secret(_)
            | Unavailable::NotAHeader
            | Unavailable::NotReached { .. }
            | Unavailable::Status { .. }
            | Unavailable::Unusable { .. }
            | Unavailable::SameToken
            | Unavailable::SignInFailed { .. }
            | Unavailable::NoVault => {
                "○ holdpoint — the gateway has no credential for this server at the moment"
            }
        }
    }

    /// Whether only the person can fix it, by signing in.
    pub fn needs_person(&self) -> bool {
        matches!(self, Unavailable::SignInNeeded | Unavailable::NoPerson)
    }

    /// Whether the caller's token would have been sent to the server.
    pub fn is_passthrough(&self) -> bool {
        matches!(self, Unavailable::SameToken)
    }
}
