//! Small documents that a server publishes at well-known places of its origin, fetched once each.
//!
//! The same rules hold as for calls: TLS but for loopback, private addresses only with leave. No header that was given for
//! the endpoint is sent, for whoever publishes a document does so for everybody, and no redirect is followed.

use crate::error::{Awaited, ObserveError, seconds};
use crate::http::connect::Origin;
use crate::http::tls::{self, TlsKey};
use crate::http::{body, headers};
use crate::upstream::HttpEndpoint;
use http::header::ACCEPT;
use http::{HeaderValue, Request, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::Bytes;
use std::time::Duration;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// How long all places together may take to answer.
pub const FETCH_PATIENCE: Duration = Duration::from_secs(10);

/// How much, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchLimits {
    /// The longest document.
    pub bytes: usize,
    pub patience: Duration,
}

/// Why nobody can say whether there is a document.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error(transparent)]
    NotReached(#[from] ObserveError),
    #[error("status {0}")]
    Status(StatusCode),
    #[error("more than {0} bytes")]
    TooLong(usize),
    #[error("a body in a content encoding that was not asked for")]
    Encoded,
    #[error("no answer within {} s", seconds(*.0))]
    Slow(Duration),
    #[error("a connection could not be prepared: {0}")]
    NoRuntime(std::io::Error),
}

/// Asks the places in their order and answers the first document there is; the next is asked only where one is absent.
/// It blocks, and is for threads that may.
pub fn fetch(
    endpoint: &HttpEndpoint,
    paths: &[&'static str],
    limits: FetchLimits,
) -> Result<Option<Vec<u8>>, FetchError> {
    let tls = if endpoint.url.is_secure() { Some(tls::connector()?) } else { None };
    fetch_with(endpoint, paths, limits, tls)
}

fn fetch_with(
    endpoint: &HttpEndpoint,
    paths: &[&'static str],
    limits: FetchLimits,
    tls: Option<TlsConnector>,
) -> Result<Option<Vec<u8>>, FetchError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(FetchError::NoRuntime)?;
    let answer = runtime.block_on(async {
        match timeout(limits.patience, ask_in_turn(endpoint, paths, limits, tls)).await {
            Ok(answer) => answer,
            Err(_) => Err(FetchError::Slow(limits.patience)),
        }
    });
    // A name that is still being looked up would be waited for otherwise.
    runtime.shutdown_background();
    answer
}

async fn ask_in_turn(
    endpoint: &HttpEndpoint,
    paths: &[&'static str],
    limits: FetchLimits,
    tls: Option<TlsConnector>,
) -> Result<Option<Vec<u8>>, FetchError> {
    let FetchLimits { bytes, patience } = limits;
    let HttpEndpoint { url, allow_private, .. } = endpoint;
    let origin = Origin::resolve(url, *allow_private, tls, TlsKey::default(), patience).await?;
    for path in paths {
        if let Some(document) = ask(&origin, endpoint, path, bytes).await? {
            return Ok(Some(document));
        }
    }
    Ok(None)
}

/// One place: a document, or nothing where the server says that there is none.
async fn ask(
    origin: &Origin,
    endpoint: &HttpEndpoint,
    path: &'static str,
    limit: usize,
) -> Result<Option<Vec<u8>>, FetchError> {
    let bare = HttpEndpoint { headers: Vec::new(), ..endpoint.clone() };
    let mut request = Request::new(Full::new(Bytes::new()));
    *request.uri_mut() = Uri::from_static(path);
    *request.headers_mut() = headers::of_endpoint(&bare)?;
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
    let mut live = origin.connect(Awaited::Connection).await?;
    let lost = |source| origin.lost(Awaited::Connection, source);
    let mut response = live.sender.send_request(request).await.map_err(lost)?;
    match response.status() {
        StatusCode::OK => {}
        StatusCode::NOT_FOUND | StatusCode::GONE => return Ok(None),
        status => return Err(FetchError::Status(status)),
    }
    if !headers::plain_encoding(response.headers()) {
        return Err(FetchError::Encoded);
    }
    let document = body::read(response.body_mut(), limit).await.map_err(lost)?;
    document.map(Some).ok_or(FetchError::TooLong(limit))
}

#[cfg(test)]
mod tests;
