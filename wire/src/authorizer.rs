//! What a request shows the server to prove who asks: a header, a proof that is made for each request, and where both come from.
//!
//! Nothing is obtained here. A caller that signs in implements [`Authorizer`].

use http::header::WWW_AUTHENTICATE;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

/// A header by which a session proves to a server who it is, or that it may ask.
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

    /// The same, with a proof of its own for each request (RFC 9449).
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
    /// The nonce that the server wants in the next proof, if it has named one.
    fn nonce(&self) -> Option<String>;

    /// The proof for a request; `None` if none can be made, and then the server refuses it.
    fn prove(&self, method: &Method, url: &str, nonce: Option<&str>) -> Option<HeaderValue>;

    /// Takes the nonce that the server wants in proofs from now on. Returns it, or `None` if it cannot be sent back.
    fn take_nonce(&self, nonce: &HeaderValue) -> Option<String>;
}

/// Why a request has nothing to show. The words are for the person whose request it is: what happened, and what to type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withheld {
    pub words: String,
}

/// How a server refused what it was shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialRefusal {
    pub status: StatusCode,
    /// The values of `WWW-Authenticate`.
    pub challenges: Vec<Vec<u8>>,
}

impl CredentialRefusal {
    /// `None` if it is not because of the credential: a 403 without a challenge is a decision of the server.
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

/// A credential that has to be waited for.
pub type Obtaining<'a, T> = Pin<Box<dyn Future<Output = Result<T, Withheld>> + Send + 'a>>;

/// Obtains what requests show a server.
pub trait Authorizer: Send + Sync + fmt::Debug {
    /// What the next request shows; `None` if nothing is known to be needed.
    fn obtain(&self) -> Obtaining<'_, Option<Arc<Credential>>>;

    /// What replaces what the server refused, which may have been nothing; `None` if the refusal stands. It may take as long as
    /// a person needs to sign in.
    fn renew<'a>(
        &'a self,
        refused: Option<&'a Arc<Credential>>,
        refusal: CredentialRefusal,
    ) -> Obtaining<'a, Option<Arc<Credential>>>;

    /// Keeps the credential fresh for as long as the connection lasts. It does not end.
    fn tend(&self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(std::future::pending())
    }
}
