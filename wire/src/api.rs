//! Requests to a JSON API that a person named, with a bearer token: the admin API of a gateway.
//!
//! The address rules are those of calls: TLS except on loopback. Private addresses are allowed, since the person typed the
//! address. No redirect is followed, so the token goes nowhere else.

use crate::attestation::{FetchError, FetchLimits};
use crate::endpoint::EndpointUrl;
use crate::error::{Awaited, ObserveError};
use crate::http::connect::Origin;
use crate::http::tls::{self, TlsKey};
use crate::http::{body, headers};
use crate::upstream::HttpEndpoint;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::Bytes;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// An API and the token that opens it.
pub struct ApiAddress {
    endpoint: HttpEndpoint,
    tls: Option<TlsConnector>,
}

impl std::fmt::Debug for ApiAddress {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("ApiAddress").field(&self.endpoint.url).finish()
    }
}

impl ApiAddress {
    /// `url` is the beginning of every path.
    pub fn new(url: EndpointUrl, token: &str) -> Result<ApiAddress, FetchError> {
        let tls = match url.is_secure() {
            true => Some(tls::connector()?),
            false => None,
        };
        let mut value =
            HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| FetchError::Address)?;
        value.set_sensitive(true);
        let endpoint =
            HttpEndpoint { url, headers: vec![(AUTHORIZATION, value)], allow_private: true };
        Ok(ApiAddress { endpoint, tls })
    }

    /// Sends one request. `path` is everything behind the address, with the query. Returns the status and the body.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
        limits: FetchLimits,
    ) -> Result<(StatusCode, Vec<u8>), FetchError> {
        match timeout(limits.patience, self.exchange(method, path, body, limits)).await {
            Ok(answered) => answered,
            Err(_) => Err(FetchError::Slow(limits.patience)),
        }
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
        limits: FetchLimits,
    ) -> Result<(StatusCode, Vec<u8>), FetchError> {
        let HttpEndpoint { url, allow_private, .. } = &self.endpoint;
        let origin = Origin::resolve(
            url,
            *allow_private,
            self.tls.clone(),
            TlsKey::default(),
            limits.patience,
        )
        .await?;
        let beginning = headers::path_of(&self.endpoint);
        let beginning = beginning.path().trim_end_matches('/');
        let uri: Uri = format!("{beginning}{path}").parse().map_err(|_| FetchError::Address)?;
        let has_body = body.is_some();
        let mut request = Request::new(Full::new(Bytes::from(body.unwrap_or_default())));
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers::of_endpoint(&self.endpoint)?;
        request.headers_mut().insert(ACCEPT, headers::json());
        if has_body {
            request.headers_mut().insert(CONTENT_TYPE, headers::json());
        }
        let mut live = origin.connect(Awaited::Connection).await?;
        let lost = |source| -> ObserveError { origin.lost(Awaited::Connection, source) };
        let mut response = live.sender.send_request(request).await.map_err(lost)?;
        if !headers::plain_encoding(response.headers()) {
            return Err(FetchError::Encoded);
        }
        let status = response.status();
        let document = body::read(response.body_mut(), limits.bytes).await.map_err(lost)?;
        document.map(|document| (status, document)).ok_or(FetchError::TooLong(limits.bytes))
    }
}
