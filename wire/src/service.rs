//! Requests to an HTTP service that the configuration names: a token endpoint, a secrets store, a JSON API.
//!
//! The address rules are those of calls: TLS except on loopback, private addresses only with permission. No redirect is
//! followed, so what is sent goes nowhere else.

use crate::attestation::{FetchError, FetchLimits};
use crate::document::roots;
use crate::endpoint::EndpointUrl;
use crate::error::{Awaited, ObserveError};
use crate::http::connect::Origin;
use crate::http::tls::{self, TlsKey};
use crate::http::{body, headers};
use crate::upstream::HttpEndpoint;
use http::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use http::{HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::Bytes;
use std::fmt;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// Where a service is.
#[derive(Clone)]
pub struct ServiceAddress {
    endpoint: HttpEndpoint,
    tls: Option<TlsConnector>,
}

impl fmt::Debug for ServiceAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("ServiceAddress").field(&self.endpoint.url).finish()
    }
}

/// One request to a service.
#[derive(Default)]
pub struct ServiceRequest {
    pub method: Method,
    /// Everything behind the address, with the query; empty for the address itself.
    pub path: String,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub body: Option<ServiceBody>,
}

impl fmt::Debug for ServiceRequest {
    /// Headers and the body may be secrets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = formatter.debug_struct("ServiceRequest");
        out.field("method", &self.method).field("path", &self.path).finish_non_exhaustive()
    }
}

/// What a service answered.
pub struct ServiceAnswer {
    pub status: StatusCode,
    pub location: Option<String>,
    pub body: Vec<u8>,
}

impl fmt::Debug for ServiceAnswer {
    /// The body may be a secret.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("ServiceAnswer").field(&self.status).finish()
    }
}

/// What is sent.
pub enum ServiceBody {
    Json(Vec<u8>),
    /// `application/x-www-form-urlencoded`.
    Form(String),
}

impl ServiceBody {
    fn into_parts(self) -> (HeaderValue, Bytes) {
        match self {
            ServiceBody::Json(bytes) => (headers::json(), bytes.into()),
            ServiceBody::Form(text) => {
                (HeaderValue::from_static("application/x-www-form-urlencoded"), text.into())
            }
        }
    }
}

impl fmt::Debug for ServiceBody {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            ServiceBody::Json(_) => "Json(..)",
            ServiceBody::Form(_) => "Form(..)",
        })
    }
}

impl ServiceAddress {
    /// Without certificate authorities (PEM) those of this system count.
    pub fn new(
        url: EndpointUrl,
        allow_private: bool,
        authorities: Option<&[u8]>,
    ) -> Result<ServiceAddress, ObserveError> {
        let tls = match authorities {
            _ if !url.is_secure() => None,
            None => Some(tls::connector()?),
            Some(pem) => Some(tls::connector_with(roots(pem)?)?),
        };
        let endpoint = HttpEndpoint { url, headers: Vec::new(), allow_private };
        Ok(ServiceAddress { endpoint, tls })
    }

    /// Sends one request and reads its answer. The name is resolved each time, and the addresses are checked.
    pub async fn send(
        &self,
        request: ServiceRequest,
        limits: FetchLimits,
    ) -> Result<(StatusCode, Vec<u8>), FetchError> {
        self.exchange(request, limits).await.map(|answer| (answer.status, answer.body))
    }

    /// The same with where the answer redirects to, which is not followed.
    pub async fn exchange(
        &self,
        request: ServiceRequest,
        limits: FetchLimits,
    ) -> Result<ServiceAnswer, FetchError> {
        match timeout(limits.patience, self.exchange_unbounded(request, limits)).await {
            Ok(answered) => answered,
            Err(_) => Err(FetchError::Slow(limits.patience)),
        }
    }

    async fn exchange_unbounded(
        &self,
        asked: ServiceRequest,
        limits: FetchLimits,
    ) -> Result<ServiceAnswer, FetchError> {
        let HttpEndpoint { url, allow_private, .. } = &self.endpoint;
        let (tls, key) = (self.tls.clone(), TlsKey::default());
        let origin = Origin::resolve(url, *allow_private, tls, key, limits.patience).await?;
        let ServiceRequest { method, path, headers: own, body } = asked;
        let uri: Uri = match path.as_str() {
            "" => headers::path_of(&self.endpoint),
            path => {
                let beginning = headers::path_of(&self.endpoint);
                let beginning = beginning.path().trim_end_matches('/');
                format!("{beginning}{path}").parse().map_err(|_| FetchError::Address)?
            }
        };
        let (media_type, body) = body.map(ServiceBody::into_parts).unzip();
        let mut request = Request::new(Full::new(body.unwrap_or_default()));
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers::of_endpoint(&self.endpoint)?;
        request.headers_mut().insert(ACCEPT, headers::json());
        if let Some(media_type) = media_type {
            request.headers_mut().insert(CONTENT_TYPE, media_type);
        }
        for (name, value) in own {
            request.headers_mut().insert(name, value);
        }
        let mut live = origin.connect(Awaited::Connection).await?;
        let lost = |source| -> ObserveError { origin.lost(Awaited::Connection, source) };
        let mut response = live.sender.send_request(request).await.map_err(lost)?;
        if !headers::plain_encoding(response.headers()) {
            return Err(FetchError::Encoded);
        }
        let status = response.status();
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let location = location.map(str::to_owned);
        let body = body::read(response.body_mut(), limits.bytes).await.map_err(lost)?;
        let body = body.ok_or(FetchError::TooLong(limits.bytes))?;
        Ok(ServiceAnswer { status, location, body })
    }
}
