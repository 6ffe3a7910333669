//! Requests to an HTTP service that the configuration names: a token endpoint, a secrets store, a
//! JSON API.
//!
//! The address rules are the same as for calls: TLS except on loopback, private addresses only with
//! permission. No redirect is followed, so a request reaches no other service.

use crate::attestation::{FetchError, FetchLimits};
use crate::document::roots;
use crate::endpoint::EndpointUrl;
use crate::error::{Awaited, ObserveError};
use crate::http::connect::Origin;
use crate::http::tls::{self, TlsKey};
use crate::http::{body, headers};
use crate::upstream::HttpEndpoint;
use http::header::{ACCEPT, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::Bytes;
use std::fmt;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// The address of a service.
#[derive(Clone)]
pub struct ServiceAddress {
    endpoint: HttpEndpoint,
    tls: Option<TlsConnector>,
    refuses_loopback: bool,
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
    /// Everything after the address, including the query; empty for the address itself.
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

/// A service's response.
pub struct ServiceAnswer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub location: Option<String>,
    /// Seconds to wait before the next request, if the response says so.
    pub retry_after_seconds: Option<u64>,
    pub body: Vec<u8>,
}

impl fmt::Debug for ServiceAnswer {
    /// The body may be a secret.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("ServiceAnswer").field(&self.status).finish()
    }
}

/// The body of a request.
#[derive(Clone)]
pub enum ServiceBody {
    Json(Vec<u8>),
    /// `application/x-www-form-urlencoded`.
    Form(String),
    /// `application/octet-stream`.
    Bytes(Vec<u8>),
}

impl ServiceBody {
    fn into_parts(self) -> (HeaderValue, Bytes) {
        match self {
            ServiceBody::Json(bytes) => (headers::json(), bytes.into()),
            ServiceBody::Form(text) => {
                (HeaderValue::from_static("application/x-www-form-urlencoded"), text.into())
            }
            ServiceBody::Bytes(bytes) => {
                (HeaderValue::from_static("application/octet-stream"), bytes.into())
            }
        }
    }
}

impl fmt::Debug for ServiceBody {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            ServiceBody::Json(_) => "Json(..)",
            ServiceBody::Form(_) => "Form(..)",
            ServiceBody::Bytes(_) => "Bytes(..)",
        })
    }
}

impl ServiceAddress {
    /// Without certificate authorities (PEM), the system's are used.
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
        let endpoint = HttpEndpoint { url, headers: Vec::new(), allow_private, authorizer: None };
        Ok(ServiceAddress { endpoint, tls, refuses_loopback: false })
    }

    /// For an address that another machine named: it must not lead to this machine, whatever the
    /// name resolves to.
    pub fn off_this_machine(mut self) -> ServiceAddress {
        self.refuses_loopback = true;
        self
    }

    /// Sends one request and reads the response. The name is resolved each time, and its addresses
    /// are checked.
    pub async fn send(
        &self,
        request: ServiceRequest,
        limits: FetchLimits,
    ) -> Result<(StatusCode, Vec<u8>), FetchError> {
        self.exchange(request, limits).await.map(|answer| (answer.status, answer.body))
    }

    /// Like [`Self::send`], and also returns where the response redirects to. The redirect is not
    /// followed.
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
        let mut origin = Origin::resolve(url, *allow_private, tls, key, limits.patience).await?;
        if self.refuses_loopback {
            origin = origin.without_loopback()?;
        }
        let request = self.request_of(asked)?;
        let mut live = origin.connect(Awaited::Connection).await?;
        let lost = |source| -> ObserveError { origin.lost(Awaited::Connection, source) };
        let mut response =
            live.line.send(request).await.map_err(|error| lost(error.into_error()))?;
        if !headers::plain_encoding(response.headers()) {
            return Err(FetchError::Encoded);
        }
        let status = response.status();
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let location = location.map(str::to_owned);
        let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let retry_after_seconds = retry_after.and_then(|text| text.trim().parse().ok());
        let headers = std::mem::take(response.headers_mut());
        let body =
            body::read(&mut live.line, response.body_mut(), limits.bytes).await.map_err(lost)?;
        let body = body.ok_or(FetchError::TooLong(limits.bytes))?;
        Ok(ServiceAnswer { status, headers, location, retry_after_seconds, body })
    }

    /// The bytes that a request would send, without sending them. A secret header is printed as
    /// `<secret>`.
    pub(crate) fn printed(&self, asked: ServiceRequest) -> Result<Vec<u8>, FetchError> {
        let body = asked.body.clone().map(|body| body.into_parts().1).unwrap_or_default();
        let request = self.request_of(asked)?;
        let mut bytes = format!("{} {} HTTP/1.1\r\n", request.method(), request.uri()).into_bytes();
        for (name, value) in request.headers() {
            bytes.extend_from_slice(name.as_str().as_bytes());
            bytes.extend_from_slice(b": ");
            let value = if value.is_sensitive() { b"<secret>" } else { value.as_bytes() };
            bytes.extend_from_slice(value);
            bytes.extend_from_slice(b"\r\n");
        }
        if request.method() == Method::POST {
            bytes.extend_from_slice(format!("content-length: {}\r\n", body.len()).as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(&body);
        Ok(bytes)
    }

    /// Builds the HTTP request.
    fn request_of(&self, asked: ServiceRequest) -> Result<Request<Full<Bytes>>, FetchError> {
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
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn an_address_that_another_machine_named_does_not_lead_to_this_one() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let limits = FetchLimits { bytes: 10, patience: Duration::from_millis(500) };
        for host in ["127.0.0.1", "localhost"] {
            let url = format!("http://{host}:{port}/").parse().unwrap();
            let address = ServiceAddress::new(url, true, None).unwrap().off_this_machine();
            let refused = address.exchange(ServiceRequest::default(), limits).await.unwrap_err();
            assert!(refused.is_address_refused(), "{refused}");
        }
        // Without the rule, the server is contacted but does not respond.
        let url = format!("http://127.0.0.1:{port}/").parse().unwrap();
        let open = ServiceAddress::new(url, false, None).unwrap();
        let silent = open.exchange(ServiceRequest::default(), limits).await.unwrap_err();
        assert!(matches!(silent, FetchError::Slow(_)), "{silent}");
    }
}
