//! Fetches a document at an address that the operator configured, such as a key set, with a plain
//! GET.
//!
//! The address rules are the same as for calls: TLS except on loopback, private addresses only with
//! permission. No redirect is followed, and no credentials are sent.

use crate::attestation::{FetchError, FetchLimits};
use crate::endpoint::EndpointUrl;
use crate::error::{Awaited, ObserveError};
use crate::http::connect::Origin;
use crate::http::tls::{self, TlsKey};
use crate::http::{body, headers};
use crate::upstream::HttpEndpoint;
use http::header::ACCEPT;
use http::{HeaderValue, Request, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::Bytes;
use std::fmt;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

/// The address of a document.
pub struct DocumentAddress {
    endpoint: HttpEndpoint,
    tls: Option<TlsConnector>,
}

impl fmt::Debug for DocumentAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("DocumentAddress").field(&self.endpoint.url).finish()
    }
}

impl DocumentAddress {
    /// Without certificate authorities (PEM), the system's are used.
    pub fn new(
        url: EndpointUrl,
        allow_private: bool,
        authorities: Option<&[u8]>,
    ) -> Result<DocumentAddress, ObserveError> {
        let tls = match authorities {
            _ if !url.is_secure() => None,
            None => Some(tls::connector()?),
            Some(pem) => Some(tls::connector_with(roots(pem)?)?),
        };
        let endpoint = HttpEndpoint { url, headers: Vec::new(), allow_private, authorizer: None };
        Ok(DocumentAddress { endpoint, tls })
    }

    /// Fetches the document. The name is resolved each time, and its addresses are checked.
    pub async fn fetch(&self, limits: FetchLimits) -> Result<Vec<u8>, FetchError> {
        let FetchLimits { bytes, patience } = limits;
        let HttpEndpoint { url, allow_private, .. } = &self.endpoint;
        let fetched = async {
            let tls = self.tls.clone();
            let key = TlsKey::default();
            let origin = Origin::resolve(url, *allow_private, tls, key, patience).await?;
            let uri: Uri = url.path_and_query().parse().map_err(|_| FetchError::Address)?;
            match get(&origin, &self.endpoint, uri, bytes).await? {
                Fetched::Document(document) => Ok(document),
                Fetched::Status(status) => Err(FetchError::Status(status)),
            }
        };
        match timeout(patience, fetched).await {
            Ok(fetched) => fetched,
            Err(_) => Err(FetchError::Slow(patience)),
        }
    }
}

pub(crate) fn roots(pem: &[u8]) -> Result<RootCertStore, ObserveError> {
    let unreadable = |problem: String| ObserveError::Tls {
        host: "any".to_owned(),
        source: std::io::Error::other(problem),
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| unreadable(error.to_string()))?;
        roots.add(certificate).map_err(|error| unreadable(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(unreadable("there is no PEM certificate in it".to_owned()));
    }
    Ok(roots)
}

/// The outcome of a GET.
pub(crate) enum Fetched {
    Document(Vec<u8>),
    /// A status other than 200.
    Status(StatusCode),
}

/// Requests one document of an origin. INVARIANT: none of the endpoint's headers is sent.
pub(crate) async fn get(
    origin: &Origin,
    endpoint: &HttpEndpoint,
    uri: Uri,
    limit: usize,
) -> Result<Fetched, FetchError> {
    let bare = HttpEndpoint {
        url: endpoint.url.without_query(),
        headers: Vec::new(),
        allow_private: endpoint.allow_private,
        authorizer: None,
    };
    let mut request = Request::new(Full::new(Bytes::new()));
    *request.uri_mut() = uri;
    *request.headers_mut() = headers::of_endpoint(&bare)?;
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
    let mut live = origin.connect(Awaited::Connection).await?;
    let lost = |source| origin.lost(Awaited::Connection, source);
    let mut response = live.line.send(request).await.map_err(|error| lost(error.into_error()))?;
    if response.status() != StatusCode::OK {
        return Ok(Fetched::Status(response.status()));
    }
    if !headers::plain_encoding(response.headers()) {
        return Err(FetchError::Encoded);
    }
    let document = body::read(&mut live.line, response.body_mut(), limit).await.map_err(lost)?;
    document.map(Fetched::Document).ok_or(FetchError::TooLong(limit))
}

#[cfg(test)]
mod tests;
