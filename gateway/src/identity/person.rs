//! A person who signed in with a browser, identified by the issuer's ID token for that sign-in.

use super::token::{TokenFault, UnverifiedToken};
use super::{Authenticator, MAX_TOKEN_BYTES, WrittenIdentity, signer};
use contract::time::Timestamp;

/// Claims by which people recognize an account, best first. They are displayed and never used for
/// decisions.
const SHOWN_CLAIMS: [&str; 3] = ["email", "preferred_username", "name"];

/// A person who signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SignedInPerson {
    pub(crate) identity: WrittenIdentity,
    /// A name by which the person recognizes the account.
    pub(crate) shown: String,
}

/// Why an ID token does not identify a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotAPerson {
    #[error(transparent)]
    Token(#[from] TokenFault),
    #[error("the token is of another issuer than the one that was asked")]
    Issuer,
    #[error("the token was issued to another client")]
    Client,
    #[error("the token is of another sign-in")]
    Nonce,
}

impl Authenticator {
    /// The person in an ID token that the issuer gave to this client for the sign-in with this
    /// nonce.
    pub(crate) async fn person(
        &self,
        issuer: &str,
        token: &str,
        client_id: &str,
        nonce: &str,
        now: Timestamp,
    ) -> Result<SignedInPerson, NotAPerson> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(TokenFault::TooLong.into());
        }
        let unverified = UnverifiedToken::parse(token)?;
        let claims = unverified.claims()?;
        if claims.issuer()? != issuer {
            return Err(NotAPerson::Issuer);
        }
        let known = self.issuers.iter().find(|known| known.settings.issuer == issuer);
        let known = known.ok_or(TokenFault::UnknownIssuer)?;
        let read = claims.read(&known.settings.claims)?;
        read.check_time(now)?;
        signer(known, token, &unverified, now).await?;
        // OpenID Connect Core §3.1.3.7: the token must be for this client, even if it also names
        // others.
        let is_ours = read.audiences.iter().any(|audience| audience == client_id);
        let is_for_others = read.audiences.len() > 1;
        let party = claims.plain("azp");
        let party_is_other = party.as_deref().is_some_and(|party| party != client_id);
        if !is_ours || party_is_other || (is_for_others && party.is_none()) {
            return Err(NotAPerson::Client);
        }
        let found = claims.plain("nonce").unwrap_or_default();
        // The nonce is not secret, since it went through the browser: no constant-time comparison
        // is needed.
        if found != nonce {
            return Err(NotAPerson::Nonce);
        }
        let shown = SHOWN_CLAIMS.into_iter().find_map(|name| claims.plain(name));
        let shown = shown.filter(|text| !text.is_empty() && text.len() <= 200);
        let shown = shown.unwrap_or_else(|| read.identity.subject.clone());
        let identity = WrittenIdentity::of(&read.identity);
        Ok(SignedInPerson { identity, shown })
    }
}
