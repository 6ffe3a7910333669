//! Tokens for servers that every person signs in to with their own account.

use super::inbound::CallerKey;
use super::unavailable::Unavailable;
use crate::principal::Principal;
use sha2::{Digest, Sha256};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;
use wire::remote::Credential;

/// A person's token for one server, with its lifetime.
#[derive(Debug)]
pub struct PersonToken {
    pub credential: Credential,
    pub lifetime: Duration,
}

/// Stores the tokens that people signed in for at one server.
pub trait PersonTokens: fmt::Debug + Send + Sync {
    /// The token of a person. If `refused` is given, the server rejected that token, and a
    /// different one is returned.
    fn token<'a>(
        &'a self,
        principal: &'a Principal,
        refused: Option<&'a Credential>,
    ) -> Pin<Box<dyn Future<Output = Result<PersonToken, Unavailable>> + Send + 'a>>;
}

/// Distinguishes one person from another.
pub(super) fn key_of(principal: &Principal) -> CallerKey {
    CallerKey(Sha256::digest(principal.whole_name().as_bytes()).into())
}
