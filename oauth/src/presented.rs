//! Presents a grant in requests to the MCP server: the `Authorization` header and, if the token is
//! bound to a key, a proof for each request.

use crate::client::random;
use crate::dpop::{self, DpopKey, Proven};
use crate::secret::Secret;
use crate::token::Grant;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Method};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use wire::authorizer::{Credential, Prove};
use zeroize::Zeroizing;

impl Grant {
    /// The credential for requests. `None` without an access token.
    pub fn credential(&self) -> Option<Credential> {
        let token = self.access_token.as_ref()?;
        let scheme = if self.dpop.is_some() { "DPoP" } else { "Bearer" };
        let value = Zeroizing::new(format!("{scheme} {}", token.expose()));
        let credential = Credential::new(AUTHORIZATION, HeaderValue::from_str(&value).ok()?);
        Some(match &self.dpop {
            None => credential,
            Some(key) => credential.proven_by(Arc::new(Prover {
                key: key.clone(),
                token: token.clone(),
                nonce: Mutex::default(),
            })),
        })
    }
}

/// Makes proofs for requests that present one token.
struct Prover {
    key: DpopKey,
    token: Secret,
    /// The nonce that the server requires in the next proof.
    nonce: Mutex<Option<String>>,
}

impl fmt::Debug for Prover {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Prover").field(&self.key).finish()
    }
}

impl Prove for Prover {
    fn nonce(&self) -> Option<String> {
        self.nonce.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn prove(&self, method: &Method, url: &str, nonce: Option<&str>) -> Option<HeaderValue> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        let proven = Proven {
            method: method.as_str(),
            url,
            now_seconds: i64::try_from(now.as_secs()).ok()?,
            id: random().ok()?,
            nonce,
            token: Some(&self.token),
        };
        HeaderValue::from_str(&self.key.prove(proven).ok()?).ok()
    }

    fn take_nonce(&self, nonce: &HeaderValue) -> Option<String> {
        let nonce = dpop::nonce(nonce.as_bytes())?;
        *self.nonce.lock().unwrap_or_else(PoisonError::into_inner) = Some(nonce.clone());
        Some(nonce)
    }
}
