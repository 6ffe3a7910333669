//! What the gateway presents to a server instead of the caller's token: nothing, a secret, or a
//! token made for that server.
//!
//! INVARIANT: a caller's token ends here. It is sent to the configured token endpoint as the
//! subject of an exchange, and to no server. No secret appears in a log, an error or a receipt;
//! copies in memory are wiped on drop, except for those that the HTTP library makes.

mod age;
mod cell;
mod claims;
mod grant;
mod inbound;
mod passthrough;
mod person;
mod secret;
mod unavailable;
mod vault;

pub use age::AgeError;
pub use inbound::{BOUND_HEADER, CallerKey, Inbound};
pub use passthrough::Needles;
pub use person::{PersonToken, PersonTokens};
pub use secret::{Secret, SecretReader};
pub use unavailable::Unavailable;
pub use vault::{BadVault, Vault};

use crate::principal::Principal;
use crate::situation::Situation;
use cell::{Cells, Fetched};
use claims::Claims;
use grant::{GrantChain, Issued};
use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue};
use ledger::record::TokenMode;
use settings::SecretName;
use settings::gateway::{Credentials, GrantKind};
use std::sync::Arc;
use wire::remote::Credential;
use zeroize::Zeroizing;

/// How the presented credential is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenUse {
    pub mode: TokenMode,
    /// The configured mode.
    pub source: &'static str,
    pub audience: Option<Arc<str>>,
}

impl Default for TokenUse {
    fn default() -> TokenUse {
        TokenUse { mode: TokenMode::None, source: "none", audience: None }
    }
}

impl TokenUse {
    pub fn of(credentials: &Credentials) -> TokenUse {
        match credentials {
            Credentials::None => TokenUse::default(),
            Credentials::Secret { .. } => {
                TokenUse { mode: TokenMode::Vault, source: "vault", audience: None }
            }
            Credentials::Grant(grant) => TokenUse {
                mode: TokenMode::Exchanged,
                source: match grant.kind {
                    GrantKind::Exchange => "exchange",
                    GrantKind::ClientCredentials => "client_credentials",
                },
                audience: Some(grant.audience.as_str().into()),
            },
            Credentials::User(grant) => TokenUse {
                mode: TokenMode::Exchanged,
                source: "user",
                audience: Some(grant.audience.as_str().into()),
            },
            Credentials::Bound { audience } => TokenUse {
                mode: TokenMode::None,
                source: "bound",
                audience: Some(audience.as_str().into()),
            },
        }
    }
}

/// Obtains the credential for one server, and keeps it while it is valid.
#[derive(Debug)]
pub struct Broker {
    source: Source,
    cells: Cells,
}

#[derive(Debug)]
enum Source {
    None,
    Secret { name: SecretName, reader: SecretReader, header: HeaderName, scheme: Option<String> },
    Grant { chain: GrantChain, is_exchange: bool },
    Person(Arc<dyn PersonTokens>),
    Bound { server: String, audience: String },
}

/// Why a broker cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum BadCredentials {
    #[error("`credentials`: {0}")]
    Secret(#[from] settings::SecretError),
    #[error("`credentials.header`: not the name of a header")]
    Header,
    #[error("`credentials.token_endpoint`: {0}")]
    Endpoint(String),
    #[error("`credentials`: {0}")]
    People(String),
    #[error("`credentials.revocation_endpoint`: {0}")]
    RevocationEndpoint(String),
}

impl Broker {
    /// Creates a broker without making any requests. `people` provides the tokens that people
    /// signed in for, if configured. Secrets in the environment and in files are read once, so that
    /// mistakes are found at startup.
    pub fn open(
        server: &str,
        credentials: &Credentials,
        reader: &SecretReader,
        people: impl FnOnce() -> Result<Arc<dyn PersonTokens>, String>,
    ) -> Result<Broker, BadCredentials> {
        let source = match credentials {
            Credentials::None => Source::None,
            Credentials::Secret { secret, header, scheme } => {
                reader.check(secret)?;
                let header = header.parse().map_err(|_| BadCredentials::Header)?;
                let (name, reader) = (secret.clone(), reader.clone());
                Source::Secret { name, reader, header, scheme: scheme.clone() }
            }
            Credentials::Grant(grant) => {
                reader.check(&grant.client)?;
                let is_exchange = grant.kind == GrantKind::Exchange;
                Source::Grant { chain: GrantChain::of(grant, reader)?, is_exchange }
            }
            Credentials::User(_) => Source::Person(people().map_err(BadCredentials::People)?),
            Credentials::Bound { audience } => {
                Source::Bound { server: server.to_owned(), audience: audience.clone() }
            }
        };
        Ok(Broker { source, cells: Cells::default() })
    }

    /// Whether no credential is presented.
    pub fn is_none(&self) -> bool {
        matches!(self.source, Source::None)
    }

    /// Whether each person signs in to the server separately.
    pub fn is_per_person(&self) -> bool {
        matches!(self.source, Source::Person(_))
    }

    /// Distinguishes one caller's credential from another's. Two callers with different keys never
    /// share a session with the server. `None` if the credential is the same for all callers.
    pub fn key_of(&self, inbound: &Inbound) -> Option<CallerKey> {
        match &self.source {
            Source::None | Source::Secret { .. } => None,
            Source::Grant { is_exchange, .. } => inbound.key().filter(|_| *is_exchange),
            // A person has one account there, whichever token or client their calls use.
            Source::Person(_) => inbound.principal().map(|principal| person::key_of(principal)),
            Source::Bound { server, .. } => inbound.bound_key(server),
        }
    }

    /// A valid credential obtained earlier, without waiting.
    pub fn ready(&self, inbound: &Inbound) -> Option<Arc<Credential>> {
        match &self.source {
            Source::None | Source::Bound { .. } => None,
            Source::Secret { .. } | Source::Grant { .. } | Source::Person(_) => {
                self.cells.ready(self.key_of(inbound))
            }
        }
    }

    /// The credential for a caller; `None` if none is presented.
    pub async fn obtain(&self, inbound: &Inbound) -> Result<Option<Arc<Credential>>, Unavailable> {
        match &self.source {
            Source::None => Ok(None),
            Source::Bound { server, audience } => {
                bound(inbound, server, audience).map(Arc::new).map(Some)
            }
            Source::Secret { .. } | Source::Grant { .. } | Source::Person(_) => {
                let fetch = || self.fetch(inbound, None);
                let (key, owner) = (self.key_of(inbound), self.owner_of(inbound));
                self.cells.obtain(key, owner, fetch).await.map(Some)
            }
        }
    }

    /// The credential to present after the server refused one. A server that refuses everything
    /// does not cause a request to the authorization server for each call.
    pub async fn renew(
        &self,
        inbound: &Inbound,
        refused: &Arc<Credential>,
    ) -> Result<Arc<Credential>, Unavailable> {
        match &self.source {
            Source::None | Source::Bound { .. } => Err(Unavailable::Refused),
            Source::Secret { .. } | Source::Grant { .. } | Source::Person(_) => {
                let fetch = || self.fetch(inbound, Some(refused));
                let (key, owner) = (self.key_of(inbound), self.owner_of(inbound));
                self.cells.renew(key, owner, refused, fetch).await
            }
        }
    }

    /// The principal whose credential it is; `None` if it is the same for all callers.
    fn owner_of<'i>(&self, inbound: &'i Inbound) -> Option<&'i Arc<Principal>> {
        self.key_of(inbound).and(inbound.principal())
    }

    /// Drops the credentials of callers that were revoked since, or all of them if the server was.
    /// Returns the tokens that must be revoked with their issuer.
    pub fn forget_revoked(&self, situation: &Situation) -> Vec<Arc<Credential>> {
        let forgotten = self.cells.forget(|owner, obtained_at| {
            situation.is_server_revoked(obtained_at)
                || owner.is_some_and(|owner| situation.revoked(owner).is_some())
        });
        match &self.source {
            Source::Grant { chain, .. } if chain.can_revoke() => forgotten,
            Source::None
            | Source::Secret { .. }
            | Source::Grant { .. }
            | Source::Person(_)
            | Source::Bound { .. } => Vec::new(),
        }
    }

    /// Drops people's tokens, so that the next call reads them from storage again: a person may
    /// have signed out or in again at another node.
    pub fn forget_people(&self) {
        if let Source::Person(_) = &self.source {
            drop(self.cells.forget(|_, _| true));
        }
    }

    /// Revokes a token with its issuer (RFC 7009).
    pub async fn revoke(&self, forgotten: &Credential) -> Result<(), Unavailable> {
        let Source::Grant { chain, .. } = &self.source else { return Ok(()) };
        let value = forgotten.value().to_str().map_err(|_| Unavailable::NotAHeader)?;
        match value.strip_prefix("Bearer ") {
            Some(token) => chain.revoke(token).await,
            None => Ok(()),
        }
    }

    async fn fetch(
        &self,
        inbound: &Inbound,
        refused: Option<&Credential>,
    ) -> Result<Fetched, Unavailable> {
        match &self.source {
            Source::None | Source::Bound { .. } => Err(Unavailable::Refused),
            Source::Secret { name, reader, header, scheme } => {
                let secret = reader.read(name).await?;
                let value = match scheme {
                    Some(scheme) => Zeroizing::new(format!("{scheme} {}", secret.expose())),
                    None => Zeroizing::new(secret.expose().to_owned()),
                };
                let credential = Credential::new(header.clone(), header_value(&value)?);
                let lifetime = reader.lifetime(name);
                Ok(Fetched { credential, renew_after: lifetime.fresh, counts_for: lifetime.stale })
            }
            Source::Person(people) => {
                let principal = inbound.principal().ok_or(Unavailable::NoPerson)?;
                let PersonToken { credential, lifetime } = people.token(principal, refused).await?;
                Ok(Fetched::expiring(credential, lifetime))
            }
            Source::Grant { chain, is_exchange } => {
                let subject = match is_exchange {
                    true => Some(inbound.exchangeable().ok_or(Unavailable::NoSubject)?),
                    false => None,
                };
                let Issued { token, lifetime } = chain.run(subject).await?;
                // If the authorization server returned the subject token, the exchange would become
                // a passthrough. Tokens that are not exchanged are shared by callers, and no caller
                // may make such a token unavailable to the others.
                if *is_exchange && inbound.own_token_occurs_in(token.expose().as_bytes()) {
                    return Err(Unavailable::SameToken);
                }
                let value = Zeroizing::new(format!("Bearer {}", token.expose()));
                let credential = Credential::new(AUTHORIZATION, header_value(&value)?);
                Ok(Fetched::expiring(credential, lifetime))
            }
        }
    }
}

/// The token for this server that the caller sent with its request.
fn bound(inbound: &Inbound, server: &str, audience: &str) -> Result<Credential, Unavailable> {
    let token = inbound.bound_token(server)?;
    let claims = Claims::of(token).ok_or(Unavailable::BoundNotJwt)?;
    if !claims.is_for(audience) {
        return Err(Unavailable::BoundAudience);
    }
    if claims.is_expired(crate::recorder::now()) {
        return Err(Unavailable::BoundExpired);
    }
    let value = Zeroizing::new(format!("Bearer {token}"));
    Ok(Credential::new(AUTHORIZATION, header_value(&value)?))
}

fn header_value(text: &str) -> Result<HeaderValue, Unavailable> {
    HeaderValue::from_str(text).map_err(|_| Unavailable::NotAHeader)
}

#[cfg(test)]
mod tests;
