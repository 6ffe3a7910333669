//! How a request authenticates to the server: a header, optionally a proof made for each request,
//! and the trait that provides both.
//!
//! Nothing is obtained here. A caller that signs in implements [`Authorizer`].

use http::header::WWW_AUTHENTICATE;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

/// A header that authenticates a session to a server.
pub struct Credential {
    name: HeaderName,
    value: HeaderValue,
    prover: Option<Arc<dyn Prove>>,
}

impl Credential {
    pub fn new(name: HeaderName, mut value: HeaderValue) -> Credential {
        value.set_sensitive(true);
        Credential { name, value, prover: None }
    }

    /// Adds a proof that is made for each request (RFC 9449).
    pub fn proven_by(self, prover: Arc<dyn Prove>) -> Credential {
        Credential { prover: Some(prover), ..self }
    }

    pub fn name(&self) -> &HeaderName {
        &self.name
    }

    pub fn value(&self) -> &HeaderValue {
        &self.value
    }

    pub(crate) fn prover(&self) -> Option<&dyn Prove> {
        self.prover.as_deref()
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Credential").field(&self.name).finish()
    }
}

/// Makes the `DPoP` header of a request.
pub trait Prove: Send + Sync + fmt::Debug {
    /// The nonce that the server requires in the next proof, if it has sent one.
    fn nonce(&self) -> Option<String>;

    /// The proof for a request. Returns `None` if none can be made; the server then refuses the
    /// request.
    fn prove(&self, method: &Method, url: &str, nonce: Option<&str>) -> Option<HeaderValue>;

    /// Stores the nonce that the server requires from now on. Returns it, or `None` if it is not a
    /// valid nonce.
    fn take_nonce(&self, nonce: &HeaderValue) -> Option<String>;
}

/// Why a request has no credential. The text is for the user whose request it is: what happened,
/// and what to type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withheld {
    pub words: String,
}

/// How a server refused a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialRefusal {
    pub status: StatusCode,
    /// The values of `WWW-Authenticate`.
    pub challenges: Vec<Vec<u8>>,
}

impl CredentialRefusal {
    /// Returns `None` if the credential is not the reason: a 403 without a challenge is a decision
    /// of the server.
    pub(crate) fn of(status: StatusCode, headers: &HeaderMap) -> Option<CredentialRefusal> {
        let challenges: Vec<_> = headers
            .get_all(WWW_AUTHENTICATE)
            .iter()
            .map(|value| value.as_bytes().to_vec())
            .collect();
        let is_refusal = status == StatusCode::UNAUTHORIZED
            || (status == StatusCode::FORBIDDEN && !challenges.is_empty());
        is_refusal.then_some(CredentialRefusal { status, challenges })
    }
}

/// A future that obtains a credential.
pub type Obtaining<'a, T> = Pin<Box<dyn Future<Output = Result<T, Withheld>> + Send + 'a>>;

/// Obtains the credentials for requests to a server.
pub trait Authorizer: Send + Sync + fmt::Debug {
    /// The credential for the next request; `None` if none is known to be needed.
    fn obtain(&self) -> Obtaining<'_, Option<Arc<Credential>>>;

    /// Replaces the credential that the server refused, which may have been none. Returns `None` if
    /// the refusal is final. This may take as long as the user needs to sign in.
    fn renew<'a>(
        &'a self,
        refused: Option<&'a Arc<Credential>>,
        refusal: CredentialRefusal,
    ) -> Obtaining<'a, Option<Arc<Credential>>>;

    /// Keeps the credential fresh for as long as the connection lasts. The future never completes.
    fn tend(&self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(std::future::pending())
    }
}
