//! Why a sign-in is refused: a stable code for receipts, the OAuth error code, and a message for a
//! person or a client.

use super::provider::ProviderError;
use super::{Asked, SignInRoute, page};
use crate::front::Peer;
use crate::identity::NotAPerson;
use crate::reply::{self, Reply};
use crate::sealed::SealError;
use bytes::Bytes;
use http::StatusCode;
use oauth::SignInError;
use serde_json::json;
use settings::gateway::BadRedirectUri;
use std::sync::Arc;
use store::StoreError;

/// The event of a refused sign-in.
pub(crate) const REFUSED_EVENT: &str = "oauth.refused";

/// Why a sign-in request is refused.
#[derive(Debug, thiserror::Error)]
pub(super) enum SignInRefusal {
    #[error("the request cannot be read: {0}")]
    BadRequest(&'static str),
    #[error("a parameter is there twice")]
    RepeatedParameter,
    #[error("`{0}` is missing")]
    Missing(&'static str),
    #[error("this client is not known here")]
    UnknownClient,
    #[error("documents of this host are not accepted as clients")]
    ClientHost,
    #[error("the client's metadata document cannot be used: {0}")]
    ClientDocument(String),
    #[error("the redirect address cannot be used: {0}")]
    RedirectUri(#[from] BadRedirectUri),
    #[error("the client did not register this redirect address")]
    UnregisteredRedirect,
    #[error("only `response_type=code` is served")]
    ResponseType,
    #[error("a PKCE challenge with the method S256 is required")]
    Pkce,
    #[error("none of these scopes is known")]
    Scope,
    #[error("tokens are issued for the MCP paths of this gateway only")]
    Target,
    #[error("this grant type is not served")]
    GrantType,
    #[error("the code is not valid")]
    Code,
    #[error("the code was used before")]
    CodeReplayed,
    #[error("the code was issued to another client")]
    OtherClient,
    #[error("the redirect address is not the one that the code was issued for")]
    OtherRedirect,
    #[error("the code verifier does not fit")]
    Verifier,
    #[error("the refresh token is not valid")]
    RefreshToken,
    #[error("the refresh token was used before, so the sign-in has ended")]
    RefreshReused,
    #[error("the sign-in has ended")]
    Ended,
    #[error("another page shows this one in a frame")]
    Framed,
    #[error("this form was not shown to this browser, or a while ago")]
    Csrf,
    #[error("this sign-in was not begun in this browser, or a while ago")]
    State,
    #[error("this sign-in was completed before")]
    StateReplayed,
    #[error("the answer names another issuer")]
    Issuer,
    #[error("the identity provider refused the sign-in")]
    ProviderDenied,
    #[error("the identity provider: {0}")]
    Provider(Box<ProviderError>),
    #[error("the identity provider's token: {0}")]
    NotAPerson(#[from] NotAPerson),
    #[error("this person's access was revoked")]
    Revoked,
    #[error("the link is not valid, or has expired")]
    Link,
    #[error("the link was used before")]
    LinkUsed,
    #[error("the link is for another person")]
    OtherPerson,
    #[error("people do not sign in to this server")]
    NoSuchServer,
    #[error("the server's sign-in: {0}")]
    Upstream(String),
    #[error("the server's sign-in: {0} ({code})", code = .0.code())]
    UpstreamAnswer(#[source] Box<SignInError>),
    #[error("the server's authorization server refused the sign-in")]
    UpstreamDenied,
    #[error("the store: {0}")]
    Store(Box<StoreError>),
    #[error("{0}")]
    Seal(#[from] SealError),
}

impl From<ProviderError> for SignInRefusal {
    fn from(error: ProviderError) -> SignInRefusal {
        SignInRefusal::Provider(Box::new(error))
    }
}

impl From<StoreError> for SignInRefusal {
    fn from(error: StoreError) -> SignInRefusal {
        SignInRefusal::Store(Box::new(error))
    }
}

impl SignInRefusal {
    /// The code in receipts, which is stable.
    pub(super) fn code(&self) -> &'static str {
        match self {
            SignInRefusal::BadRequest(_) | SignInRefusal::Missing(_) => "oauth_bad_request",
            SignInRefusal::RepeatedParameter => "oauth_repeated_parameter",
            SignInRefusal::UnknownClient => "oauth_unknown_client",
            SignInRefusal::ClientHost => "oauth_client_host",
            SignInRefusal::ClientDocument(_) => "oauth_client_document",
            SignInRefusal::RedirectUri(_) | SignInRefusal::UnregisteredRedirect => {
                "oauth_redirect_uri"
            }
            SignInRefusal::ResponseType => "oauth_response_type",
            SignInRefusal::Pkce => "oauth_pkce",
            SignInRefusal::Scope => "oauth_scope",
            SignInRefusal::Target => "oauth_target",
            SignInRefusal::GrantType => "oauth_grant_type",
            SignInRefusal::Code => "oauth_code",
            SignInRefusal::CodeReplayed => "oauth_code_replayed",
            SignInRefusal::OtherClient => "oauth_other_client",
            SignInRefusal::OtherRedirect => "oauth_other_redirect",
            SignInRefusal::Verifier => "oauth_verifier",
            SignInRefusal::RefreshToken => "oauth_refresh_token",
            SignInRefusal::RefreshReused => "oauth_refresh_reused",
            SignInRefusal::Ended => "oauth_ended",
            SignInRefusal::Framed => "oauth_framed",
            SignInRefusal::Csrf => "oauth_csrf",
            SignInRefusal::State => "oauth_state",
            SignInRefusal::StateReplayed => "oauth_state_replayed",
            SignInRefusal::Issuer => "oauth_issuer",
            SignInRefusal::ProviderDenied => "oauth_provider_denied",
            SignInRefusal::Provider(_) => "oauth_provider",
            SignInRefusal::NotAPerson(_) => "oauth_id_token",
            SignInRefusal::Revoked => "oauth_revoked",
            SignInRefusal::Link => "sign_in_link",
            SignInRefusal::LinkUsed => "sign_in_link_used",
            SignInRefusal::OtherPerson => "sign_in_other_person",
            SignInRefusal::NoSuchServer => "sign_in_no_such_server",
            SignInRefusal::Upstream(_) | SignInRefusal::UpstreamAnswer(_) => "sign_in_upstream",
            SignInRefusal::UpstreamDenied => "sign_in_upstream_denied",
            SignInRefusal::Store(_) | SignInRefusal::Seal(_) => "oauth_internal",
        }
    }

    /// The cause of a failed sign-in at a server, as the code that `holdpoint sign-in` uses.
    fn cause(&self) -> Option<&'static str> {
        match self {
            SignInRefusal::UpstreamAnswer(error) => Some(error.code()),
            _ => None,
        }
    }

    /// The error code of RFC 6749 or RFC 8707.
    pub(super) fn oauth_error(&self) -> &'static str {
        match self {
            SignInRefusal::UnknownClient
            | SignInRefusal::ClientHost
            | SignInRefusal::ClientDocument(_) => "invalid_client",
            SignInRefusal::ResponseType => "unsupported_response_type",
            SignInRefusal::Scope => "invalid_scope",
            SignInRefusal::Target => "invalid_target",
            SignInRefusal::GrantType => "unsupported_grant_type",
            SignInRefusal::Code
            | SignInRefusal::CodeReplayed
            | SignInRefusal::OtherClient
            | SignInRefusal::OtherRedirect
            | SignInRefusal::Verifier
            | SignInRefusal::RefreshToken
            | SignInRefusal::RefreshReused
            | SignInRefusal::Ended
            | SignInRefusal::Revoked => "invalid_grant",
            SignInRefusal::ProviderDenied => "access_denied",
            SignInRefusal::Provider(_) | SignInRefusal::Store(_) | SignInRefusal::Seal(_) => {
                "server_error"
            }
            _ => "invalid_request",
        }
    }

    fn status(&self) -> StatusCode {
        match self {
            SignInRefusal::Store(_) | SignInRefusal::Seal(_) => StatusCode::SERVICE_UNAVAILABLE,
            SignInRefusal::Provider(_)
            | SignInRefusal::Upstream(_)
            | SignInRefusal::UpstreamAnswer(_) => StatusCode::BAD_GATEWAY,
            SignInRefusal::OtherPerson
            | SignInRefusal::Revoked
            | SignInRefusal::Csrf
            | SignInRefusal::Framed => StatusCode::FORBIDDEN,
            SignInRefusal::NoSuchServer => StatusCode::NOT_FOUND,
            _ => StatusCode::BAD_REQUEST,
        }
    }

    /// What the person can do about it.
    fn advice(&self) -> &'static str {
        match self {
            SignInRefusal::UnknownClient
            | SignInRefusal::ClientHost
            | SignInRefusal::ClientDocument(_) => {
                "The application that sent you here is not one that this gateway accepts. If you trust it, ask the person who runs the gateway to add it."
            }
            SignInRefusal::RedirectUri(_) | SignInRefusal::UnregisteredRedirect => {
                "The application asked to send you to an address that it did not register. This can be an attempt to steal your sign-in: do not repeat it."
            }
            SignInRefusal::OtherPerson => {
                "If someone sent it to you, do not use it: their application would act with your account. If it is your own, sign in with the account that you use in the application."
            }
            SignInRefusal::Link | SignInRefusal::LinkUsed => {
                "Links work once, for ten minutes. Repeat what you did in the application to get a new one."
            }
            SignInRefusal::Framed => {
                "The page around this one may try to have you press a button that you do not see. Close it, and begin again in the application."
            }
            SignInRefusal::Csrf | SignInRefusal::State | SignInRefusal::StateReplayed => {
                "Begin again in the application. If you did not start a sign-in, close this page."
            }
            SignInRefusal::Revoked => "Ask the person who runs the gateway.",
            SignInRefusal::ProviderDenied | SignInRefusal::UpstreamDenied => {
                "Nothing was allowed. You can close this page, or begin again in the application."
            }
            SignInRefusal::Store(_)
            | SignInRefusal::Seal(_)
            | SignInRefusal::Provider(_)
            | SignInRefusal::Upstream(_)
            | SignInRefusal::UpstreamAnswer(_) => {
                "Try again in a moment. If it stays, tell the person who runs the gateway."
            }
            _ => "The application sent a request that cannot be used. Tell its maker.",
        }
    }

    /// The message for a stranger. Internal errors are only for the operator.
    fn shown(&self) -> String {
        match self {
            SignInRefusal::Store(_) | SignInRefusal::Seal(_) => {
                "the gateway cannot do this at the moment".to_owned()
            }
            SignInRefusal::Provider(_) => {
                "the identity provider does not answer as expected".to_owned()
            }
            SignInRefusal::NotAPerson(_) => {
                "the identity provider's answer does not belong to this sign-in".to_owned()
            }
            other => other.to_string(),
        }
    }
}

impl Asked<'_> {
    /// The response to a refused request; also records it.
    pub(super) fn refuse(&self, route: &SignInRoute, refusal: &SignInRefusal) -> Reply {
        self.note_refused(refusal);
        match route {
            SignInRoute::Token | SignInRoute::Revoke | SignInRoute::Metadata => {
                let body =
                    json!({"error": refusal.oauth_error(), "error_description": refusal.shown()});
                // RFC 6749 §5.2 has a single status for errors of the client.
                let status = match refusal.status() {
                    status if status.is_server_error() => status,
                    _ => StatusCode::BAD_REQUEST,
                };
                reply::json(status, [Bytes::from(body.to_string())])
            }
            _ => page::refused(refusal.status(), &refusal.shown(), refusal.advice()),
        }
    }

    pub(super) fn note_refused(&self, refusal: &SignInRefusal) {
        let peer = self.parts.extensions.get::<Arc<Peer>>();
        let source = self.node.source(self.parts, peer.map(AsRef::as_ref));
        let (code, fault) = (refusal.code(), refusal.to_string());
        if matches!(code, "oauth_internal" | "oauth_provider" | "sign_in_upstream") {
            self.node.remark(&format!("a sign-in failed: {fault}"));
        }
        self.node.strangers.note_sign_in(self.node, source, (code, refusal.cause()), &fault);
    }
}
