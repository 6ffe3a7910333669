//! The only way out to services other than the user's own servers: registries, calendars, claims
//! and the network.
//!
//! It uses https on port 443 to public addresses, resolved once per request. It follows no
//! redirects and sends no credentials except those that a call carries. `allow_private` admits
//! private and loopback addresses, for tests and for directories inside an organization.

use crate::attestation::{FetchError, FetchLimits};
use crate::service::{ServiceAddress, ServiceBody, ServiceRequest};
use crate::{BadUrl, EndpointUrl};
use http::header::{ACCEPT, AUTHORIZATION, USER_AGENT};
use http::{HeaderName, HeaderValue, Method, StatusCode};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The largest response.
pub const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;
/// The timeout for one request, from the name lookup to the last byte.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// The pause between two requests to the same host.
pub const HOST_PAUSE: Duration = Duration::from_secs(1);
/// The longest `Retry-After` that is honored; a longer one ends the attempt.
pub const MAX_RETRY_WAIT: Duration = Duration::from_secs(120);
/// The most hosts whose last request time is remembered.
const MAX_HOSTS: usize = 4_096;
/// How much of the body of an error response is kept.
const MAX_ERROR_BYTES: usize = 1_024;

/// Why a request did not get a usable response.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    #[error("`{url}`: {source}")]
    Url { url: String, source: BadUrl },
    #[error("`{url}`: {source}")]
    Fetch { url: String, source: Box<FetchError> },
    #[error("`{url}` answered with status {status}")]
    Status {
        url: String,
        status: StatusCode,
        retry_after_seconds: Option<u64>,
        /// The beginning of the body.
        body: Vec<u8>,
    },
}

impl DialError {
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            DialError::Status { status, .. } => Some(*status),
            DialError::Url { .. } | DialError::Fetch { .. } => None,
        }
    }
}

/// Makes requests, with a pause between requests to the same host.
#[derive(Debug)]
pub struct Dialer {
    allow_private: bool,
    user_agent: HeaderValue,
    limits: FetchLimits,
    pause: Duration,
    /// When each host was last contacted.
    asked: Mutex<HashMap<String, Instant>>,
}

/// One request.
#[derive(Debug, Default)]
pub struct Call<'a> {
    pub url: &'a str,
    pub accept: Option<&'static str>,
    /// Sends this body with POST; otherwise the request is a GET.
    pub body: Option<ServiceBody>,
    /// Our own key at this service.
    pub bearer: Option<Bearer<'a>>,
    /// Our own key at this service, sent in a separate header.
    pub key_header: Option<(&'static str, Bearer<'a>)>,
    /// A version header that the service requires.
    pub version_header: Option<(&'static str, &'static str)>,
    /// Never retries, whatever `Retry-After` says.
    pub once: bool,
}

/// A key that a call carries. It is never printed.
#[derive(Clone, Copy)]
pub struct Bearer<'a>(pub &'a str);

impl fmt::Debug for Bearer<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Bearer(..)")
    }
}

impl Dialer {
    /// `contact`, if given, tells the operator of a service how to reach us.
    pub fn new(allow_private: bool, contact: Option<&str>) -> Dialer {
        let name = concat!("holdpoint/", env!("CARGO_PKG_VERSION"));
        let user_agent = contact
            .and_then(|contact| HeaderValue::from_str(&format!("{name} (+{contact})")).ok())
            .unwrap_or_else(|| HeaderValue::from_static(name));
        Dialer {
            allow_private,
            user_agent,
            limits: FetchLimits { bytes: MAX_ANSWER_BYTES, patience: PATIENCE },
            pause: HOST_PAUSE,
            asked: Mutex::default(),
        }
    }

    /// Replaces the pause between requests to the same host.
    #[must_use]
    pub fn with_pause(self, pause: Duration) -> Dialer {
        Dialer { pause, ..self }
    }

    /// Replaces the limits on a response.
    #[must_use]
    pub fn with_limits(self, limits: FetchLimits) -> Dialer {
        Dialer { limits, ..self }
    }

    pub fn allows_private(&self) -> bool {
        self.allow_private
    }

    /// The address of a third-party server; it is checked when it is connected to.
    pub fn endpoint(&self, url: &str) -> Result<EndpointUrl, DialError> {
        let bad = |source| DialError::Url { url: url.to_owned(), source };
        Ok(url.parse::<EndpointUrl>().map_err(bad)?.of_stranger())
    }

    /// Returns the body of a successful response. Honors `Retry-After` once.
    pub async fn get(&self, url: &str, accept: &'static str) -> Result<Vec<u8>, DialError> {
        self.call(Call { url, accept: Some(accept), ..Call::default() }).await
    }

    pub async fn call(&self, call: Call<'_>) -> Result<Vec<u8>, DialError> {
        let first = self.once(&call).await;
        if call.once {
            return first;
        }
        let Err(DialError::Status { status, retry_after_seconds: Some(seconds), .. }) = &first
        else {
            return first;
        };
        let wait = Duration::from_secs(*seconds);
        let may_retry =
            matches!(*status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        if !may_retry || wait > MAX_RETRY_WAIT {
            return first;
        }
        tokio::time::sleep(wait).await;
        self.once(&call).await
    }

    async fn once(&self, call: &Call<'_>) -> Result<Vec<u8>, DialError> {
        let url = self.endpoint(call.url)?;
        let fetch = |source: FetchError| DialError::Fetch {
            url: call.url.to_owned(),
            source: Box::new(source),
        };
        self.wait_for_turn(&url.host_and_port()).await;
        let service =
            ServiceAddress::new(url, self.allow_private, None).map_err(|e| fetch(e.into()))?;
        let request = self.request_of(call).map_err(fetch)?;
        let answer = service.exchange(request, self.limits).await.map_err(fetch)?;
        if answer.status.is_success() {
            return Ok(answer.body);
        }
        Err(DialError::Status {
            url: call.url.to_owned(),
            status: answer.status,
            retry_after_seconds: answer.retry_after_seconds,
            body: answer.body.into_iter().take(MAX_ERROR_BYTES).collect(),
        })
    }

    /// The bytes that a call would send, without sending them or resolving its name. A key is
    /// printed as `<secret>`.
    pub fn printed(&self, call: &Call<'_>) -> Result<Vec<u8>, DialError> {
        let fetch = |source: FetchError| DialError::Fetch {
            url: call.url.to_owned(),
            source: Box::new(source),
        };
        let url = self.endpoint(call.url)?;
        let service =
            ServiceAddress::new(url, self.allow_private, None).map_err(|e| fetch(e.into()))?;
        self.request_of(call).and_then(|request| service.printed(request)).map_err(fetch)
    }

    fn request_of(&self, call: &Call<'_>) -> Result<ServiceRequest, FetchError> {
        let mut headers = vec![(USER_AGENT, self.user_agent.clone())];
        headers.extend(call.accept.map(|accept| (ACCEPT, HeaderValue::from_static(accept))));
        if let Some(Bearer(key)) = call.bearer {
            headers.push((AUTHORIZATION, secret(&format!("Bearer {key}"))?));
        }
        if let Some((name, Bearer(key))) = call.key_header {
            headers.push((HeaderName::from_static(name), secret(key)?));
        }
        if let Some((name, value)) = call.version_header {
            headers.push((HeaderName::from_static(name), HeaderValue::from_static(value)));
        }
        Ok(ServiceRequest {
            method: if call.body.is_some() { Method::POST } else { Method::GET },
            path: String::new(),
            headers,
            body: call.body.clone(),
        })
    }

    /// Waits until this host may be contacted again, and reserves the slot.
    async fn wait_for_turn(&self, host: &str) {
        let wait = {
            let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            if asked.len() >= MAX_HOSTS {
                asked.retain(|_, next| *next > now);
            }
            let turn = asked.get(host).map_or(now, |next| (*next).max(now));
            asked.insert(host.to_owned(), turn + self.pause);
            turn.saturating_duration_since(now)
        };
        tokio::time::sleep(wait).await;
    }
}

fn secret(text: &str) -> Result<HeaderValue, FetchError> {
    let mut value = HeaderValue::from_str(text).map_err(|_| FetchError::Address)?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests;
