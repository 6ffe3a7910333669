//! People's tokens for one server: read from the store, and refreshed by one node at a time.
//!
//! INVARIANT: a token is only used for the person who signed in. The names of the person and the
//! server are sealed with it.

use super::records::{SignIns, after, name_of, random_id};
use super::upstream::{client_of, person_reach};
use crate::identity::WrittenIdentity;
use crate::resources::Shared;
use crate::sealed::SealError;
use contract::time::Timestamp;
use engine::credentials::{PersonToken, PersonTokens, Unavailable};
use engine::principal::Principal;
use engine::recorder::{Recorder, now};
use oauth::SignInError;
use oauth::token::Freshness;
use policy::{Identity, IdentityProof};
use serde::{Deserialize, Serialize};
use serde_json::json;
use settings::gateway::{ServerSettings, UrlSettings, UserGrantSettings, WebUrl};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use store::{ClaimId, Claimed, SignIn, SignInKind, SignInName, StoreError};
use wire::remote::Credential;
use zeroize::Zeroizing;

/// A grant that no call has used for this long is deleted.
const GRANT_SECONDS: u64 = 180 * 86_400;
/// How long one node may take to refresh a token: longer than its request to the authorization
/// server can take.
const CLAIM_SECONDS: u64 = 45;
/// The interval and number of polls while another node refreshes.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
const MAX_POLLS: usize = 200;
/// The assumed lifetime of a token without a stated one.
const UNTOLD_LIFETIME: Duration = Duration::from_secs(300);

/// A person's access to a server, as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct StoredGrant {
    pub(super) person: WrittenIdentity,
    pub(super) server: String,
    pub(super) grant: oauth::Grant,
}

impl StoredGrant {
    /// Whether the tokens are for a server at this address. INVARIANT: they are sent to no other
    /// address, even if the operator has since changed the server's address or its `issuer`.
    pub(super) fn is_for(&self, url: &UrlSettings, user: &UserGrantSettings) -> bool {
        let is_issuers = |issuer: &WebUrl| issuer.as_str() == self.grant.issuer;
        self.grant.endpoint == url.url.as_str() && user.issuer.as_ref().is_none_or(is_issuers)
    }
}

/// The name of the record of a person's access to a server.
pub(super) fn grant_name(principal: &str, server: &str) -> Result<SignInName, SealError> {
    name_of(&["grant", principal, server])
}

impl SignIns {
    /// The record of a grant obtained or refreshed at this moment.
    pub(super) fn grant_record(
        &self,
        stored: &StoredGrant,
        now: Timestamp,
    ) -> Result<SignIn, SealError> {
        let principal = stored.person.principal();
        let named = (SignInKind::Grant, grant_name(&principal, &stored.server)?);
        let since = Timestamp(stored.grant.since);
        self.record(named, &principal, (since, after(now, GRANT_SECONDS)), stored)
    }

    /// The grant in a record, unless the person was revoked since.
    pub(super) fn open_grant(&self, record: &SignIn) -> Option<StoredGrant> {
        let stored: StoredGrant = self.open(record)?;
        let since = Timestamp(stored.grant.since);
        (!self.is_revoked(&stored.person, since)).then_some(stored)
    }
}

/// People's tokens for one server.
pub(crate) struct PersonGrants(Arc<ServerGrants>);

struct ServerGrants {
    server: String,
    url: UrlSettings,
    user: UserGrantSettings,
    sign_ins: Arc<SignIns>,
    client: oauth::Client,
    recorder: Arc<Recorder>,
}

impl std::fmt::Debug for PersonGrants {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("PersonGrants").field(&self.0.server).finish()
    }
}

impl PersonGrants {
    /// The tokens for a server that people sign in to.
    pub(crate) fn of(settings: &ServerSettings, shared: &Shared) -> Result<PersonGrants, String> {
        let reach = person_reach(&settings.reach);
        let (url, user) = reach.ok_or("people do not sign in to this server")?;
        let client = client_of(url, user)?;
        Ok(PersonGrants(Arc::new(ServerGrants {
            server: settings.id.to_string(),
            url: url.clone(),
            user: user.clone(),
            sign_ins: shared.sign_ins.clone(),
            client,
            recorder: shared.recorder.clone(),
        })))
    }
}

impl PersonTokens for PersonGrants {
    fn token<'a>(
        &'a self,
        principal: &'a Principal,
        refused: Option<&'a Credential>,
    ) -> Pin<Box<dyn Future<Output = Result<PersonToken, Unavailable>> + Send + 'a>> {
        let caller = principal.caller.as_ref().map(policy::Caller::identity);
        // A static key or certificate does not identify a person, whatever its subject.
        let person = caller.filter(|identity| identity.proof == IdentityProof::Token);
        let owner =
            person.map(|Identity { issuer, subject, .. }| policy::principal_id(issuer, subject));
        let refused = refused.and_then(|refused| refused.value().to_str().ok());
        let refused = refused.map(|value| Zeroizing::new(value.to_owned()));
        let own = Arc::clone(&self.0);
        Box::pin(async move {
            let owner = owner.ok_or(Unavailable::NoPerson)?;
            // In a separate task: a caller that disconnects must not lose a refresh token that was
            // just rotated.
            let obtained = tokio::spawn(async move { own.obtain(&owner, refused).await });
            obtained.await.unwrap_or(Err(Unavailable::JustFailed))
        })
    }
}

impl ServerGrants {
    async fn obtain(
        &self,
        owner: &str,
        refused: Option<Zeroizing<String>>,
    ) -> Result<PersonToken, Unavailable> {
        let name = grant_name(owner, &self.server).map_err(|_| Unavailable::JustFailed)?;
        for _ in 0..MAX_POLLS {
            let now = now();
            let stored = self.read(owner, &name).await?;
            let is_refused = refused.as_ref().is_some_and(|refused| is_shown_as(&stored, refused));
            let freshness = stored.grant.freshness(now);
            if freshness == Freshness::Fresh && !is_refused {
                return token_of(&stored, now);
            }
            if !stored.grant.can_refresh() {
                return match (freshness, is_refused) {
                    (Freshness::Ending, false) => token_of(&stored, now),
                    _ => Err(Unavailable::SignInNeeded),
                };
            }
            match self.refresh(owner, &name, refused.as_deref().map(String::as_str), now).await? {
                Some(refreshed) => return token_of(&refreshed, now),
                None => tokio::time::sleep(POLL_INTERVAL).await,
            }
        }
        Err(Unavailable::JustFailed)
    }

    async fn read(&self, owner: &str, name: &SignInName) -> Result<StoredGrant, Unavailable> {
        let wanted = name.clone();
        let record = self
            .sign_ins
            .with_store(move |store| store.sign_in(SignInKind::Grant, &wanted))
            .await
            .map_err(|error| self.lost(&error))?;
        let record = record.filter(|record| now() < record.expires_at);
        let stored = record.and_then(|record| self.sign_ins.open_grant(&record));
        stored.filter(|stored| self.is_own(owner, stored)).ok_or(Unavailable::SignInNeeded)
    }

    fn is_own(&self, owner: &str, stored: &StoredGrant) -> bool {
        stored.person.principal() == owner
            && stored.server == self.server
            && stored.is_for(&self.url, &self.user)
    }

    /// Refreshes a grant. Returns `None` if another node is doing so; the caller then checks again.
    async fn refresh(
        &self,
        owner: &str,
        name: &SignInName,
        refused: Option<&str>,
        now: Timestamp,
    ) -> Result<Option<StoredGrant>, Unavailable> {
        let claim = random_id().ok().and_then(|id| id.parse::<ClaimId>().ok());
        let claim = claim.ok_or(Unavailable::JustFailed)?;
        let (wanted, held) = (name.clone(), claim.clone());
        let claimed = self.sign_ins.with_store(move |store| {
            let until = after(now, CLAIM_SECONDS);
            store.claim_sign_in(SignInKind::Grant, &wanted, &held, now, until)
        });
        let record = match claimed.await.map_err(|error| self.lost(&error))? {
            Claimed::Yours(record) => record,
            Claimed::Elsewhere => return Ok(None),
            Claimed::Unknown => return Err(Unavailable::SignInNeeded),
        };
        let stored = self.sign_ins.open_grant(&record);
        let Some(stored) = stored.filter(|stored| self.is_own(owner, stored)) else {
            return Err(Unavailable::SignInNeeded);
        };
        let is_refused = refused.is_some_and(|refused| is_shown_as(&stored, refused));
        if stored.grant.freshness(now) == Freshness::Fresh && !is_refused {
            // Another node refreshed it between the check and the claim.
            self.end(name, &claim, None).await?;
            return Ok(Some(stored));
        }
        match self.client.refresh(&stored.grant, now).await {
            Ok(grant) => {
                self.keep(name, &claim, StoredGrant { grant, ..stored }, now).await.map(Some)
            }
            Err(error) if error.needs_sign_in() => {
                self.end(name, &claim, None).await?;
                self.forget(owner, name, error.code()).await?;
                Err(Unavailable::SignInNeeded)
            }
            Err(error) => {
                self.end(name, &claim, None).await?;
                match stored.grant.freshness(now) {
                    Freshness::Fresh | Freshness::Ending if !is_refused => Ok(Some(stored)),
                    _ => Err(unreachable_server(&error)),
                }
            }
        }
    }

    /// Stores a refreshed grant.
    async fn keep(
        &self,
        name: &SignInName,
        claim: &ClaimId,
        stored: StoredGrant,
        now: Timestamp,
    ) -> Result<StoredGrant, Unavailable> {
        let record =
            self.sign_ins.grant_record(&stored, now).map_err(|_| Unavailable::JustFailed)?;
        if self.end(name, claim, Some(record)).await? {
            return Ok(stored);
        }
        // The person signed out or in again meanwhile, so revoke the refreshed tokens.
        let _ = self.client.revoke(&stored.grant, now).await;
        Err(Unavailable::SignInNeeded)
    }

    async fn end(
        &self,
        name: &SignInName,
        claim: &ClaimId,
        replacement: Option<SignIn>,
    ) -> Result<bool, Unavailable> {
        let (name, claim) = (name.clone(), claim.clone());
        let ended = self.sign_ins.with_store(move |store| {
            store.end_claim(SignInKind::Grant, &name, &claim, replacement.as_ref())
        });
        ended.await.map_err(|error| self.lost(&error))
    }

    async fn forget(&self, owner: &str, name: &SignInName, why: &str) -> Result<(), Unavailable> {
        let name = name.clone();
        let removed = self
            .sign_ins
            .with_store(move |store| store.remove_sign_in(SignInKind::Grant, &name))
            .await
            .map_err(|error| self.lost(&error))?;
        if removed {
            let data = json!({"reason": why});
            self.recorder.event(&self.server, "sign_in.ended", Some(owner), &data);
        }
        Ok(())
    }

    fn lost(&self, error: &StoreError) -> Unavailable {
        let data = json!({"fault": error.to_string()});
        self.recorder.event(&self.server, "sign_in.store_failed", None, &data);
        Unavailable::JustFailed
    }
}

/// Whether the access token of a grant is the one in this header.
fn is_shown_as(stored: &StoredGrant, header: &str) -> bool {
    let shown = header.split_once(' ').map(|(_scheme, token)| token);
    let token = stored.grant.access_token.as_ref();
    token.is_some_and(|token| shown == Some(token.expose()))
}

/// The token in the form for the server: with a proof for each request if it is bound to the
/// grant's key.
fn token_of(stored: &StoredGrant, now: Timestamp) -> Result<PersonToken, Unavailable> {
    if stored.grant.access_token.is_none() {
        return Err(Unavailable::SignInNeeded);
    }
    let credential = stored.grant.credential().ok_or(Unavailable::NotAHeader)?;
    let left = stored.grant.expires_at.map(|at| u64::try_from(at.saturating_sub(now.0)));
    let lifetime = match left {
        Some(left) => Duration::from_millis(left.unwrap_or_default()),
        None => UNTOLD_LIFETIME,
    };
    Ok(PersonToken { credential, lifetime })
}

fn unreachable_server(error: &SignInError) -> Unavailable {
    Unavailable::SignInFailed { code: error.code(), words: error.to_string() }
}
