//! Tokens: the response of a token endpoint, and the grant that is stored.

use crate::authorization::{Pending, granted};
use crate::dpop::DpopKey;
use crate::reading::{Problem, object};
use crate::registration::RegisteredClient;
use crate::secret::Secret;
use contract::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The longest token that is accepted.
pub const MAX_TOKEN_BYTES: usize = 16 * 1024;
/// The longest lifetime that is believed.
const MAX_LIFETIME: Duration = Duration::from_secs(30 * 24 * 3_600);
/// How long before its expiry an access token is replaced, and the fraction of a short lifetime
/// used instead. Lifetimes are measured by this machine's clock from before the request, so that
/// the clocks of two machines need not agree.
const EXPIRY_MARGIN: Duration = Duration::from_secs(60);
const MARGIN_PART: u32 = 5;

/// What a person granted: the tokens, and everything needed to refresh and revoke them. It is
/// secret.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Grant {
    pub issuer: String,
    /// The address of the MCP server that the person signed in to.
    pub endpoint: String,
    /// The resource that the tokens are for (RFC 8707).
    pub resource: String,
    pub scopes: Vec<String>,
    pub client: RegisteredClient,
    pub token_endpoint: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub revocation_endpoint: Option<String>,
    /// `None` if it was too long to be stored; it is then refreshed before its first use.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub access_token: Option<Secret>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub refresh_token: Option<Secret>,
    /// When to replace the access token, and when it expires; in milliseconds since 1970. `None` if
    /// the server does not say: the token is used until the server refuses it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub renew_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub expires_at: Option<i64>,
    /// The key that the access token is bound to.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dpop: Option<DpopKey>,
    /// When the person signed in, in milliseconds since 1970.
    pub since: i64,
}

/// The state of an access token at a given time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    Fresh,
    /// It is still valid, but should be replaced.
    Ending,
    Ended,
}

impl Grant {
    pub fn freshness(&self, now: Timestamp) -> Freshness {
        if self.access_token.is_none() || self.expires_at.is_some_and(|at| now.0 >= at) {
            return Freshness::Ended;
        }
        match self.renew_at {
            Some(at) if now.0 >= at => Freshness::Ending,
            Some(_) | None => Freshness::Fresh,
        }
    }

    pub fn can_refresh(&self) -> bool {
        self.refresh_token.is_some()
    }

    /// Whether another grant replaced this one, in the same sign-in or a later one.
    pub fn is_replaced_by(&self, other: &Grant) -> bool {
        self.access_token != other.access_token || self.refresh_token != other.refresh_token
    }

    /// The grant from the response to a code. `asked_at` is the time before the request.
    pub(crate) fn of(pending: Pending, body: &[u8], asked_at: Timestamp) -> Result<Grant, Problem> {
        let answer = TokenAnswer::read(body)?;
        let Pending { client, dpop, found, scopes, .. } = pending;
        let grant = Grant {
            issuer: found.server.issuer,
            endpoint: found.endpoint,
            resource: found.resource,
            scopes,
            client,
            token_endpoint: found.server.token_endpoint,
            revocation_endpoint: found.server.revocation_endpoint,
            access_token: None,
            refresh_token: None,
            renew_at: None,
            expires_at: None,
            dpop,
            since: asked_at.0,
        };
        grant.with(answer, asked_at)
    }

    /// The grant after a refresh.
    pub(crate) fn refreshed(&self, body: &[u8], asked_at: Timestamp) -> Result<Grant, Problem> {
        self.clone().with(TokenAnswer::read(body)?, asked_at)
    }

    fn with(mut self, answer: TokenAnswer, asked_at: Timestamp) -> Result<Grant, Problem> {
        match answer.kind {
            // A server may issue an unbound token although a proof was sent.
            TokenKind::Bearer => self.dpop = None,
            TokenKind::Dpop if self.dpop.is_none() => {
                return Err("the token is bound to a key that was not shown");
            }
            TokenKind::Dpop => {}
        }
        self.scopes = granted(answer.scope.as_deref(), &self.scopes);
        self.access_token = Some(answer.access_token);
        // A server that rotates refresh tokens sends a new one; otherwise the old one stays valid.
        self.refresh_token = answer.refresh_token.or(self.refresh_token);
        let lifetime =
            answer.expires_in.map(|seconds| Duration::from_secs(seconds).min(MAX_LIFETIME));
        let after = |duration: Duration| {
            asked_at.0.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
        };
        self.expires_at = lifetime.map(after);
        self.renew_at = lifetime.map(|lifetime| {
            after(lifetime.saturating_sub(EXPIRY_MARGIN.min(lifetime / MARGIN_PART)))
        });
        Ok(self)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenKind {
    Bearer,
    Dpop,
}

/// The members of a response that are used.
struct TokenAnswer {
    access_token: Secret,
    refresh_token: Option<Secret>,
    kind: TokenKind,
    expires_in: Option<u64>,
    scope: Option<String>,
}

impl TokenAnswer {
    fn read(body: &[u8]) -> Result<TokenAnswer, Problem> {
        object(body, |members| {
            let kind = members.needed("token_type", "it has no `token_type`")?;
            let kind = match kind.to_ascii_lowercase().as_str() {
                "bearer" => TokenKind::Bearer,
                "dpop" => TokenKind::Dpop,
                _ => return Err("the token is neither of the type `Bearer` nor `DPoP`"),
            };
            let refresh_token = members.token("refresh_token")?;
            Ok(TokenAnswer {
                access_token: members.token("access_token")?.ok_or("it has no `access_token`")?,
                refresh_token,
                kind,
                expires_in: members.whole("expires_in")?,
                scope: members.text("scope")?,
            })
        })
    }
}

/// A token that can be sent in a header or a form.
pub(crate) fn checked(text: String) -> Result<Secret, Problem> {
    let is_token = !text.is_empty()
        && text.len() <= MAX_TOKEN_BYTES
        && text.bytes().all(|byte| byte.is_ascii_graphic());
    match is_token {
        true => Ok(Secret::new(text)),
        false => Err("a token in it is empty, too long, or has characters of no token"),
    }
}

#[cfg(test)]
mod tests;
