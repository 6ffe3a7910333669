//! Why a sign-in failed, in messages that a person can act on. They contain no secrets; servers'
//! texts are quoted and truncated.

use std::sync::Arc;
use wire::ServerText;
use wire::attestation::FetchError;

/// Why a sign-in, a refresh or a revocation failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SignInError {
    #[error("the server does not ask for a sign-in")]
    NotAsked,
    #[error("`{place}` could not be reached: {source}")]
    NotReached { place: String, source: Arc<FetchError> },
    #[error("`{place}` answered with status {status}{}", .code.as_ref().map(|code| format!(" ({code})")).unwrap_or_default())]
    Status { place: String, status: u16, code: Option<String> },
    #[error("`{place}` redirects (status {status}); redirects are not followed")]
    Redirect { place: String, status: u16 },
    #[error("the answer of `{place}` cannot be used: {problem}")]
    Unusable { place: String, problem: &'static str },
    #[error(
        "`{name}` in the sign-in's metadata is not an address that may be used: `{url}` ({problem})"
    )]
    BadAddress { name: &'static str, url: ServerText, problem: &'static str },
    #[error(
        "the server says that its tokens are for `{resource}`, which differs from its own address; \
         a token for it could be used elsewhere"
    )]
    ResourceMismatch { resource: ServerText },
    #[error("the server names no authorization server, and has no metadata of one itself")]
    NoAuthorizationServer,
    #[error(
        "the metadata at the authorization server `{issuer}` is for another issuer (`{found}`)"
    )]
    MetadataIssuer { issuer: ServerText, found: ServerText },
    #[error("the client is for the issuer `{expected}`, and the server now names `{found}`")]
    OtherIssuer { expected: ServerText, found: ServerText },
    #[error(
        "the authorization server does not offer PKCE with S256, without which a code could be stolen"
    )]
    NoPkce,
    #[error("the authorization server does not offer the authorization code grant")]
    NoCodeGrant,
    #[error(
        "the authorization server only accepts registered clients; register one there and provide its id"
    )]
    NoRegistration,
    #[error("a client secret needs the issuer that it belongs to")]
    SecretWithoutIssuer,
    #[error("the response has a missing or wrong `state`: it does not belong to this sign-in")]
    StateMismatch,
    #[error(
        "the answer came from another issuer (`{found}`) than the one that was asked (`{expected}`)"
    )]
    IssuerMismatch { expected: ServerText, found: ServerText },
    #[error(
        "the answer does not say which issuer it is from, though the authorization server says that its answers do"
    )]
    IssuerMissing,
    #[error("the answer in the browser cannot be read: {0}")]
    BadAnswer(&'static str),
    #[error("the authorization server refused the sign-in: {code}")]
    Denied { code: String },
    #[error("the sign-in has ended at the authorization server ({code}); sign in again")]
    GrantEnded { code: String },
    #[error("there is no refresh token; sign in again")]
    NoRefreshToken,
    #[error(
        "the server asks for scopes (`{scopes}`) that the last sign-in did not get; it is not asked again"
    )]
    ScopesNotGranted { scopes: ServerText },
    #[error("there is no randomness: {0}")]
    NoRandomness(String),
}

impl SignInError {
    /// A stable code, for receipts and programs.
    pub fn code(&self) -> &'static str {
        match self {
            SignInError::NotAsked => "not_asked",
            SignInError::NotReached { source, .. } if source.is_address_refused() => {
                "address_refused"
            }
            SignInError::NotReached { .. } => "not_reached",
            SignInError::Status { .. } => "status",
            SignInError::Redirect { .. } => "redirect_refused",
            SignInError::Unusable { .. } => "unusable_answer",
            SignInError::BadAddress { .. } => "bad_address",
            SignInError::ResourceMismatch { .. } => "resource_mismatch",
            SignInError::NoAuthorizationServer => "no_authorization_server",
            SignInError::MetadataIssuer { .. } => "metadata_issuer_mismatch",
            SignInError::OtherIssuer { .. } => "issuer_changed",
            SignInError::NoPkce => "no_pkce",
            SignInError::NoCodeGrant => "no_code_grant",
            SignInError::NoRegistration => "no_registration",
            SignInError::SecretWithoutIssuer => "secret_without_issuer",
            SignInError::StateMismatch => "state_mismatch",
            SignInError::IssuerMismatch { .. } => "issuer_mismatch",
            SignInError::IssuerMissing => "issuer_missing",
            SignInError::BadAnswer(_) => "bad_answer",
            SignInError::Denied { .. } => "denied",
            SignInError::GrantEnded { .. } => "grant_ended",
            SignInError::NoRefreshToken => "no_refresh_token",
            SignInError::ScopesNotGranted { .. } => "scopes_not_granted",
            SignInError::NoRandomness(_) => "no_randomness",
        }
    }

    /// Whether a new sign-in is required.
    pub fn needs_sign_in(&self) -> bool {
        matches!(self, SignInError::GrantEnded { .. } | SignInError::NoRefreshToken)
    }
}
