//! Access tokens that the gateway itself issues as an authorization server. They are sealed with
//! the key that nodes share, so that every node can read them and only nodes can create them.

use super::WrittenIdentity;
use super::caller::{Authenticated, AuthenticationFault, CredentialHash, Proof};
use super::metadata::Resource;
use super::token::TokenFault;
use crate::sealed::{Purpose, SealError, Sealer};
use contract::time::Timestamp;
use policy::{Caller, IdentityProof};
use serde::{Deserialize, Serialize};
use settings::gateway::WebOrigin;
use std::collections::HashSet;
use std::sync::Arc;
use store::{SignInKind, Store, StoreError};

/// The prefix of these tokens.
pub(crate) const ACCESS_PREFIX: &str = "hpt_";

/// The sealed content of an access token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MintedToken {
    /// The sign-in that it descends from.
    pub(crate) family: String,
    pub(crate) identity: WrittenIdentity,
    /// The exact URL that the token is for.
    pub(crate) resource: String,
    /// When the person signed in: a later revocation invalidates the token.
    pub(crate) signed_in_at: i64,
    pub(crate) expires_at: i64,
}

impl MintedToken {
    pub(crate) fn seal(&self, sealer: &Sealer) -> Result<String, SealError> {
        let content = serde_json::to_vec(self).map_err(|_| SealError::Key)?;
        Ok(format!("{ACCESS_PREFIX}{}", sealer.seal(Purpose::AccessToken, &content)?))
    }

    pub(crate) fn open(sealer: &Sealer, token: &str) -> Option<MintedToken> {
        let sealed = token.strip_prefix(ACCESS_PREFIX)?;
        serde_json::from_slice(&sealer.open(Purpose::AccessToken, sealed)?).ok()
    }
}

/// Reads tokens that the gateway issued.
#[derive(Debug)]
pub(crate) struct MintedTokens {
    pub(crate) sealer: Arc<Sealer>,
    /// The identity provider that people sign in at.
    pub(crate) issuer: String,
}

impl MintedTokens {
    pub(super) fn check(
        &self,
        token: &str,
        resource: Resource<'_>,
        public_url: &WebOrigin,
        now: Timestamp,
    ) -> Result<Authenticated, AuthenticationFault> {
        let read = MintedToken::open(&self.sealer, token).ok_or(TokenFault::NotAToken)?;
        if read.identity.issuer != self.issuer {
            return Err(TokenFault::UnknownIssuer.into());
        }
        if now.0 >= read.expires_at {
            return Err(TokenFault::Expired.into());
        }
        // INVARIANT: a token is for a single URL, and never for the admin API.
        let is_for = match resource {
            Resource::Mcp { .. } => read.resource == resource.url(public_url),
            Resource::Admin => false,
        };
        if !is_for {
            return Err(TokenFault::Audience.into());
        }
        let identity = read.identity.read(IdentityProof::Token).ok_or(TokenFault::NotAToken)?;
        Ok(Authenticated {
            caller: Caller::new(identity),
            credential: CredentialHash::of(token.as_bytes()),
            proof: Proof::Minted { family: read.family },
            expires_at: Some(Timestamp(read.expires_at)),
            since: Timestamp(read.signed_in_at),
        })
    }
}

/// The families whose access tokens are revoked.
pub(super) fn revoked_families(store: &dyn Store) -> Result<HashSet<String>, StoreError> {
    let revoked = store.sign_ins(SignInKind::Revoked)?;
    Ok(revoked.into_iter().map(|record| record.name.to_string()).collect())
}
