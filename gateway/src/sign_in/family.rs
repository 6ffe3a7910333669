//! All tokens that descend from one sign-in of a client. Each refresh token can be used once; reuse
//! ends the family, because either holder of the token may be the attacker.

use super::records::{SignIns, after, random_id};
use super::refused::SignInRefusal;
use crate::identity::{MintedToken, WrittenIdentity};
use contract::time::Timestamp;
use serde::{Deserialize, Serialize};
use settings::gateway::ProxySettings;
use std::sync::Arc;
use std::time::Duration;
use store::{ClaimId, Claimed, SignIn, SignInKind, SignInName};

/// How long one node may take to replace a refresh token.
const CLAIM_SECONDS: u64 = 10;
/// The polling interval while another node finishes.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
const MAX_POLLS: usize = 40;

/// The stored state of a client's sign-in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Family {
    pub(super) identity: WrittenIdentity,
    pub(super) client_id: String,
    pub(super) resource: String,
    pub(super) scopes: Vec<String>,
    pub(super) signed_in_at: i64,
    /// The current refresh token's generation: how many came before it.
    pub(super) generation: u64,
}

/// A refresh token, before it is sealed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RefreshToken {
    pub(super) family: String,
    pub(super) generation: u64,
    pub(super) client_id: String,
}

impl Family {
    /// Issues a new access token.
    pub(super) fn access_token(
        &self,
        id: &str,
        proxy: &ProxySettings,
        now: Timestamp,
    ) -> MintedToken {
        MintedToken {
            family: id.to_owned(),
            identity: self.identity.clone(),
            resource: self.resource.clone(),
            signed_in_at: self.signed_in_at,
            expires_at: after(now, proxy.access_seconds).0,
        }
    }

    pub(super) fn refresh_token(&self, id: &str) -> RefreshToken {
        RefreshToken {
            family: id.to_owned(),
            generation: self.generation,
            client_id: self.client_id.clone(),
        }
    }
}

fn name(id: &str) -> Result<SignInName, SignInRefusal> {
    id.parse().map_err(|_| SignInRefusal::RefreshToken)
}

impl SignIns {
    /// Starts a family, unless reuse of its code has ended it in the meantime.
    pub(super) async fn begin_family(
        self: &Arc<Self>,
        id: &str,
        family: &Family,
        proxy: &ProxySettings,
        now: Timestamp,
    ) -> Result<(), SignInRefusal> {
        let times = (now, after(now, proxy.refresh_seconds));
        let named = (SignInKind::Family, name(id)?);
        let record = self.record(named, &family.identity.principal(), times, family)?;
        let has_begun = self.with_store(move |store| {
            store.put_sign_in(&record)?;
            // Check after the write: ending a family first records the revocation, and then removes
            // the family.
            let is_ended = store.sign_in(SignInKind::Revoked, &record.name)?.is_some();
            if is_ended {
                store.remove_sign_in(SignInKind::Family, &record.name)?;
            }
            Ok(!is_ended)
        });
        has_begun.await?.then_some(()).ok_or(SignInRefusal::CodeReplayed)
    }

    /// Uses up a refresh token. Returns the family with its new generation.
    pub(super) async fn rotate(
        self: &Arc<Self>,
        token: &RefreshToken,
        now: Timestamp,
    ) -> Result<Family, SignInRefusal> {
        let claim: ClaimId = random_id()?.parse().map_err(|_| SignInRefusal::RefreshToken)?;
        let record = self.claim_family(&token.family, &claim, now).await?;
        let end = |replacement: Option<SignIn>| {
            let (name, claim) = (record.name.clone(), claim.clone());
            self.with_store(move |store| {
                store.end_claim(SignInKind::Family, &name, &claim, replacement.as_ref())
            })
        };
        let family: Option<Family> = self.open(&record).filter(|_| now < record.expires_at);
        let Some(family) = family.filter(|family| family.client_id == token.client_id) else {
            end(None).await?;
            return Err(SignInRefusal::RefreshToken);
        };
        if family.generation != token.generation {
            end(None).await?;
            return Err(SignInRefusal::RefreshReused);
        }
        let next = Family { generation: family.generation.saturating_add(1), ..family };
        let named = (SignInKind::Family, record.name.clone());
        let times = (record.at, record.expires_at);
        let replacement = self.record(named, &record.owner, times, &next)?;
        match end(Some(replacement)).await? {
            true => Ok(next),
            // The family was revoked in the meantime, or this node took too long.
            false => Err(SignInRefusal::Ended),
        }
    }

    async fn claim_family(
        self: &Arc<Self>,
        id: &str,
        claim: &ClaimId,
        now: Timestamp,
    ) -> Result<SignIn, SignInRefusal> {
        let name = name(id)?;
        for _ in 0..MAX_POLLS {
            let (name, claim) = (name.clone(), claim.clone());
            let claimed = self.with_store(move |store| {
                let until = after(now, CLAIM_SECONDS);
                store.claim_sign_in(SignInKind::Family, &name, &claim, now, until)
            });
            match claimed.await? {
                Claimed::Yours(record) => return Ok(*record),
                Claimed::Unknown => return Err(SignInRefusal::Ended),
                Claimed::Elsewhere => tokio::time::sleep(POLL_INTERVAL).await,
            }
        }
        Err(SignInRefusal::RefreshToken)
    }

    /// Ends a family: invalidates its refresh token and its access tokens. Returns its owner.
    pub(super) async fn end_family(
        self: &Arc<Self>,
        id: &str,
        proxy: &ProxySettings,
        now: Timestamp,
    ) -> Result<Option<Family>, SignInRefusal> {
        let name = name(id)?;
        let revoked = SignIn {
            kind: SignInKind::Revoked,
            name: name.clone(),
            owner: id.to_owned(),
            at: now,
            // As long as an access token issued just now can live.
            expires_at: after(now, proxy.access_seconds + CLAIM_SECONDS),
            sealed: String::new(),
        };
        let record = self
            .with_store(move |store| {
                let record = store.sign_in(SignInKind::Family, &name)?;
                store.put_sign_in(&revoked)?;
                store.remove_sign_in(SignInKind::Family, &name)?;
                Ok(record)
            })
            .await?;
        Ok(record.and_then(|record| self.open(&record)))
    }
}
