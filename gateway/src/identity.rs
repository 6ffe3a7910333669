//! Authenticates callers by an access token of a configured issuer, a static key, or a client
//! certificate. All checks come before the body of a request is read. The time is passed as an
//! argument.

mod caller;
mod certificate;
mod crypto;
mod issuer;
mod key_set;
mod metadata;
mod minted;
mod person;
mod revoked;
mod static_key;
mod token;
mod written;

use crate::recent::Recent;
use arc_swap::ArcSwap;
use caller::VerifiedToken;
use contract::time::Timestamp;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use issuer::{HttpKeySet, Issuer};
use jsonwebtoken::Validation;
use policy::{Caller, Identity};
use serde::de::IgnoredAny;
use settings::gateway::{AuthSettings, IssuerSettings, WebOrigin};
use static_key::{KeyRing, is_static_key};
use std::collections::HashSet;
use std::sync::Arc;
use store::{Store, StoreError};
use token::UnverifiedToken;

pub use caller::{Authenticated, AuthenticationFault, CredentialHash, Proof, Unauthenticated};
pub use certificate::{CertificateFault, VerifiedCertificate};
pub use issuer::{FETCH_INTERVAL_SECONDS, IssuerError, KeySetSource, MAX_KEY_SET_AGE_SECONDS};
pub use key_set::BadKeySet;
pub use metadata::{METADATA_PATH, Resource, protected_resource_metadata};
pub(crate) use minted::{ACCESS_PREFIX, MintedToken, MintedTokens};
pub(crate) use person::{NotAPerson, SignedInPerson};
pub(crate) use revoked::RevokedCallers;
pub use static_key::{KEY_ISSUER, KeyFault, StaticKey};
pub use token::{CLOCK_SKEW_SECONDS, MAX_TOKEN_BYTES, TokenFault};
pub(crate) use written::WrittenIdentity;

/// How long a verified token is cached.
const TOKEN_CACHE_SECONDS: i64 = 300;

/// Authenticates callers.
#[derive(Debug)]
pub struct Authenticator {
    public_url: WebOrigin,
    issuers: Vec<Issuer>,
    are_keys_enabled: bool,
    /// Recently verified tokens.
    tokens: Recent<VerifiedToken>,
    keys: KeyRing,
    revoked: ArcSwap<RevokedCallers>,
    /// Reads tokens issued by the gateway itself, if it issues any.
    minted: Option<MintedTokens>,
    revoked_families: ArcSwap<HashSet<String>>,
}

impl Authenticator {
    /// Fetches nothing yet. No static key is valid before [`Authenticator::reload_keys`].
    pub fn new(auth: &AuthSettings, public_url: &WebOrigin) -> Result<Authenticator, IssuerError> {
        let mut sources: Vec<(IssuerSettings, Box<dyn KeySetSource>)> = Vec::new();
        for settings in &auth.issuers {
            sources.push((settings.clone(), Box::new(HttpKeySet::new(settings)?)));
        }
        Ok(Authenticator::with_sources(sources, auth.keys, public_url))
    }

    /// The same with key sets from other sources, for tests.
    pub fn with_sources(
        sources: Vec<(IssuerSettings, Box<dyn KeySetSource>)>,
        are_keys_enabled: bool,
        public_url: &WebOrigin,
    ) -> Authenticator {
        crypto::install();
        let issuers =
            sources.into_iter().map(|(settings, source)| Issuer::new(settings, source)).collect();
        Authenticator {
            public_url: public_url.clone(),
            issuers,
            are_keys_enabled,
            tokens: Recent::default(),
            keys: KeyRing::default(),
            revoked: ArcSwap::default(),
            minted: None,
            revoked_families: ArcSwap::default(),
        }
    }

    /// Also accepts tokens that the gateway issued.
    #[must_use]
    pub(crate) fn minting(self, minted: Option<MintedTokens>) -> Authenticator {
        Authenticator { minted, ..self }
    }

    /// Loads the static keys and the revocations from the store: at the start, and whenever the
    /// store changes. On an error no key is valid, and revocations stay in force.
    pub fn reload_keys(&self, store: &dyn Store) -> Result<(), StoreError> {
        let revoked = store.incident().map(|state| RevokedCallers::of(&state.revocations));
        let keys = if self.are_keys_enabled { self.keys.reload(store) } else { Ok(()) };
        self.revoked.store(Arc::new(revoked?));
        if self.minted.is_some() {
            self.revoked_families.store(Arc::new(minted::revoked_families(store)?));
        }
        keys
    }

    /// The revoked callers, with the time of each revocation.
    pub(crate) fn revoked(&self) -> Arc<RevokedCallers> {
        self.revoked.load_full()
    }

    /// Whether a credential issued at this moment is no longer valid because its principal or key
    /// was revoked.
    fn is_revoked(&self, caller: &Caller, credential: CredentialHash, since: Timestamp) -> bool {
        let revoked = self.revoked.load();
        let by_key = || self.keys.id_of(credential).and_then(|id| revoked.key(credential, &id));
        let by_key = if revoked.has_keys() { by_key() } else { None };
        let at = revoked.principal(caller.identity()).max(by_key);
        at.is_some_and(|at| at >= since)
    }

    /// The caller of an MCP key, by its subject.
    pub(crate) fn caller_of_key(&self, subject: &str) -> Option<Caller> {
        self.keys.caller_of(subject)
    }

    /// Whether a caller uses keys and none of them is valid any more.
    pub(crate) fn has_left(&self, caller: &Caller, now: Timestamp) -> bool {
        let Identity { issuer, subject, .. } = caller.identity();
        issuer == KEY_ISSUER && !self.keys.has_any_of(subject, now)
    }

    /// Records the days on which keys were used. For a timer, because it writes to the store.
    pub fn write_key_uses(&self, store: &mut dyn Store) -> Result<(), StoreError> {
        self.keys.write_uses(store)
    }

    /// Fetches every key set again, so that a key that its issuer withdrew becomes invalid. For a
    /// timer, every five minutes. Returns the problems by issuer; the keys of a failing issuer stay
    /// valid for [`MAX_KEY_SET_AGE_SECONDS`].
    pub async fn renew_key_sets(&self, now: Timestamp) -> Vec<(String, String)> {
        let mut problems = Vec::new();
        for issuer in &self.issuers {
            if let Err(problem) = issuer.renew(now, |_| false).await {
                problems.push((issuer.settings.issuer.clone(), problem));
            }
        }
        problems
    }

    /// Authenticates the caller of a request for a resource.
    pub async fn authenticate(
        &self,
        headers: &HeaderMap,
        certificate: Option<VerifiedCertificate<'_>>,
        resource: Resource<'_>,
        now: Timestamp,
    ) -> Result<Authenticated, Unauthenticated> {
        let refused = |fault| Unauthenticated::new(fault, resource, &self.public_url);
        let bearer = bearer(headers).map_err(refused)?;
        let outcome = match (bearer, certificate) {
            // An explicit credential takes precedence over the connection's certificate, even if it
            // is invalid.
            (Some(bearer), _) if is_static_key(bearer) => self.by_key(bearer, resource, now),
            (Some(bearer), _) if bearer.starts_with(ACCESS_PREFIX) => {
                self.by_minted(bearer, resource, now)
            }
            (Some(bearer), _) => self.by_token(bearer, resource, now).await,
            (None, Some(certificate)) => by_certificate(certificate, resource),
            (None, None) => Err(AuthenticationFault::NoCredentials),
        };
        let found = outcome.map_err(refused)?;
        match self.is_revoked(&found.caller, found.credential, found.since) {
            true => Err(refused(AuthenticationFault::Revoked)),
            false => Ok(found),
        }
    }

    fn by_key(
        &self,
        key: &str,
        resource: Resource<'_>,
        now: Timestamp,
    ) -> Result<Authenticated, AuthenticationFault> {
        if !self.are_keys_enabled {
            return Err(KeyFault::Disabled.into());
        }
        let hash = CredentialHash::of(key.as_bytes());
        let (caller, expires_at, since) =
            self.keys.check(hash, resource == Resource::Admin, now)?;
        Ok(Authenticated { caller, credential: hash, proof: Proof::Key, expires_at, since })
    }

    fn by_minted(
        &self,
        token: &str,
        resource: Resource<'_>,
        now: Timestamp,
    ) -> Result<Authenticated, AuthenticationFault> {
        let minted = self.minted.as_ref().ok_or(TokenFault::UnknownIssuer)?;
        let found = minted.check(token, resource, &self.public_url, now)?;
        match &found.proof {
            Proof::Minted { family } if self.revoked_families.load().contains(family) => {
                Err(AuthenticationFault::Revoked)
            }
            _ => Ok(found),
        }
    }

    async fn by_token(
        &self,
        token: &str,
        resource: Resource<'_>,
        now: Timestamp,
    ) -> Result<Authenticated, AuthenticationFault> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(TokenFault::TooLong.into());
        }
        let hash = CredentialHash::of(token.as_bytes());
        let verified = match self.cached(&hash, now) {
            Some(verified) => verified,
            None => {
                // Boxed: a rare path must not enlarge the future of every call.
                let verified = Arc::new(Box::pin(self.verify(token, now)).await?);
                if now < verified.cached_until {
                    self.tokens.keep(hash, Arc::clone(&verified));
                }
                verified
            }
        };
        self.check_audience(&verified, resource)?;
        let proof = Proof::Token {
            issuer: verified.caller.identity().issuer.clone(),
            key_id: verified.key_id.clone(),
            key_fingerprint: verified.key_fingerprint,
        };
        let expires_at = Some(verified.refused_from);
        let (caller, since) = (verified.caller.clone(), verified.issued_at);
        Ok(Authenticated { caller, credential: hash, proof, expires_at, since })
    }

    /// Whether an accepted credential would still be accepted, apart from its expiry: neither it
    /// nor its principal was revoked, and its issuer still publishes the key that signed it.
    pub fn still_counts(&self, found: &Authenticated, now: Timestamp) -> bool {
        let Authenticated { caller, credential, proof, since, .. } = found;
        let credential = *credential;
        if self.is_revoked(caller, credential, *since) {
            return false;
        }
        match proof {
            Proof::Key => self.are_keys_enabled && self.keys.has(credential),
            Proof::Token { issuer, key_id, key_fingerprint } => {
                let issuer = self.issuers.iter().find(|one| one.settings.issuer == *issuer);
                let keys = issuer.and_then(|issuer| issuer.known(now));
                keys.is_some_and(|keys| keys.set.has(key_id, key_fingerprint))
            }
            Proof::Minted { family } => {
                self.minted.is_some() && !self.revoked_families.load().contains(family)
            }
            Proof::Certificate => true,
        }
    }

    /// The same for a credential that another node accepted. Fetches its issuer's keys if they are
    /// not known here.
    pub(crate) async fn counts_elsewhere(&self, found: &Authenticated, now: Timestamp) -> bool {
        if let Proof::Token { issuer, key_id, .. } = &found.proof
            && let Some(issuer) = self.issuers.iter().find(|one| one.settings.issuer == *issuer)
        {
            // The check below sees whether the fetch helped.
            let _ = issuer.keys_for(key_id, now).await;
        }
        self.still_counts(found, now)
    }

    /// A recently verified token whose key its issuer still publishes.
    fn cached(&self, hash: &CredentialHash, now: Timestamp) -> Option<Arc<VerifiedToken>> {
        let verified = self.tokens.find(hash)?;
        let keys = self.issuers.get(verified.issuer).and_then(|issuer| issuer.known(now));
        let has_key =
            keys.is_some_and(|keys| keys.set.has(&verified.key_id, &verified.key_fingerprint));
        if has_key && now < verified.cached_until {
            return Some(verified);
        }
        self.tokens.forget(hash);
        None
    }

    async fn verify(&self, token: &str, now: Timestamp) -> Result<VerifiedToken, TokenFault> {
        let unverified = UnverifiedToken::parse(token)?;
        let claims = unverified.claims()?;
        let named = claims.issuer()?;
        // A key is only valid for its own issuer, whatever its id.
        let found = self.issuers.iter().enumerate().find(|(_, one)| one.settings.issuer == *named);
        let (index, issuer) = found.ok_or(TokenFault::UnknownIssuer)?;
        let read = claims.read(&issuer.settings.claims)?;
        read.check_time(now)?;
        let key_fingerprint = signer(issuer, token, &unverified, now).await?;
        let cached_until = Timestamp(read.expires.0.min(now.0 + TOKEN_CACHE_SECONDS * 1_000));
        Ok(VerifiedToken {
            issuer: index,
            key_fingerprint,
            cached_until,
            refused_from: read.refused_from(),
            audiences: read.audiences,
            caller: Caller::new(read.identity),
            key_id: unverified.key_id.clone(),
            issued_at: read.issued_at,
        })
    }

    /// Checks the audience. A token for the admin API is not accepted on MCP paths and vice versa,
    /// nor is one that names both: an agent must not approve what it was held for.
    fn check_audience(
        &self,
        token: &VerifiedToken,
        resource: Resource<'_>,
    ) -> Result<(), TokenFault> {
        let admin = self.public_url.admin_audience();
        let issuer = self.issuers.get(token.issuer).ok_or(TokenFault::UnknownIssuer)?;
        let has = |audience: &str| token.audiences.iter().any(|named| named == audience);
        let is_ours = |named: &String| {
            named
                .strip_prefix(self.public_url.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let is_for_mcp = has(&issuer.settings.audience)
            || token.audiences.iter().any(|named| is_ours(named) && *named != admin);
        let is_accepted = match resource {
            Resource::Mcp { .. } => {
                let is_named =
                    has(&issuer.settings.audience) || has(&resource.url(&self.public_url));
                is_named && !has(&admin)
            }
            Resource::Admin => has(&admin) && !is_for_mcp,
        };
        if is_accepted { Ok(()) } else { Err(TokenFault::Audience) }
    }
}

/// Finds the issuer's key that signed a token, and returns its fingerprint.
async fn signer(
    issuer: &Issuer,
    token: &str,
    unverified: &UnverifiedToken,
    now: Timestamp,
) -> Result<[u8; 32], TokenFault> {
    let keys = issuer.keys_for(&unverified.key_id, now).await?;
    let mut validation = Validation::new(unverified.algorithm);
    // The library only checks the signature: the claims are checked elsewhere, more strictly and
    // with `now` as the time.
    validation.required_spec_claims.clear();
    (validation.validate_exp, validation.validate_aud) = (false, false);
    let verifies = |key: &&key_set::VerifyingKey| {
        jsonwebtoken::decode::<IgnoredAny>(token, &key.key, &validation).is_ok()
    };
    let key = keys.set.find(&unverified.key_id, unverified.algorithm).find(verifies);
    Ok(key.ok_or(TokenFault::Signature)?.fingerprint)
}

fn by_certificate(
    certificate: VerifiedCertificate<'_>,
    resource: Resource<'_>,
) -> Result<Authenticated, AuthenticationFault> {
    if resource == Resource::Admin {
        return Err(AuthenticationFault::CertificateAtAdmin);
    }
    let credential = CredentialHash::of(certificate.0);
    let caller = Caller::new(certificate.identity()?);
    let (proof, since) = (Proof::Certificate, certificate.not_before()?);
    Ok(Authenticated { caller, credential, proof, expires_at: None, since })
}

/// The bearer credential, if any. Two headers, or another scheme, are an error: a proxy may
/// interpret them differently.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, AuthenticationFault> {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let value = match (given.next(), given.next()) {
        (None, _) => return Ok(None),
        (Some(value), None) => value,
        (Some(_), Some(_)) => return Err(AuthenticationFault::BadHeader),
    };
    let text = value.to_str().map_err(|_| AuthenticationFault::BadHeader)?;
    let (scheme, credential) = text.split_once(' ').ok_or(AuthenticationFault::BadHeader)?;
    let credential = credential.trim_start_matches(' ');
    let is_whole = !credential.is_empty() && !credential.contains([' ', ',', '\t']);
    if scheme.eq_ignore_ascii_case("bearer") && is_whole {
        Ok(Some(credential))
    } else {
        Err(AuthenticationFault::BadHeader)
    }
}

#[cfg(test)]
mod tests;
