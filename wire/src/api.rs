//! Requests to a JSON API that the user named, with a bearer token: the admin API of a gateway.
//! Private addresses are allowed, since the user typed the address.

use crate::attestation::{FetchError, FetchLimits};
use crate::endpoint::EndpointUrl;
use crate::service::{ServiceAddress, ServiceBody, ServiceRequest};
use http::header::AUTHORIZATION;
use http::{HeaderValue, Method, StatusCode};

/// The address of an API, and the token that gives access to it.
#[derive(Debug)]
pub struct ApiAddress {
    service: ServiceAddress,
    /// Marked as sensitive, so that debug output hides it.
    authorization: HeaderValue,
}

impl ApiAddress {
    /// Every path is appended to `url`.
    pub fn new(url: EndpointUrl, token: &str) -> Result<ApiAddress, FetchError> {
        let mut authorization =
            HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| FetchError::Address)?;
        authorization.set_sensitive(true);
        Ok(ApiAddress { service: ServiceAddress::new(url, true, None)?, authorization })
    }

    /// Sends one request. `path` is everything after the address, including the query. Returns the
    /// status and the body.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
        limits: FetchLimits,
    ) -> Result<(StatusCode, Vec<u8>), FetchError> {
        let headers = vec![(AUTHORIZATION, self.authorization.clone())];
        let body = body.map(ServiceBody::Json);
        let request = ServiceRequest { method, path: path.to_owned(), headers, body };
        self.service.send(request, limits).await
    }
}
