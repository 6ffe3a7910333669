//! Fetches a server's attestation document before the server may be used: from the well-known paths
//! of its origin, or from the result of a handshake by the gate itself.
//!
//! The address rules are the same as for calls: TLS except on loopback, private addresses only with
//! permission. INVARIANT: none of the headers configured for the endpoint is sent, and no redirect
//! is followed, because the server has not been admitted yet.

use crate::Answer;
use crate::client::{Asked, Client, Correlator, HttpTransport, StdioTransport, Stop};
use crate::document::{self, Fetched};
use crate::error::{Awaited, ObserveError, seconds};
use crate::http::connect::Origin;
use crate::http::tls::{self, TlsKey};
use crate::limits::ObserveLimits;
use crate::observe::handshake::{DISCOVER, INITIALIZE, discover_params, initialize_params};
use crate::process::ServerStart;
use crate::revision::Revision;
use crate::upstream::{HttpEndpoint, StdioLaunch};
use contract::client::ClientCapabilities;
use http::{StatusCode, Uri};
use std::time::Duration;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;

/// The total time allowed for all paths to answer.
pub const FETCH_PATIENCE: Duration = Duration::from_secs(10);

/// How long a program may take to exit by itself after the greeting.
const END_GRACE: Duration = Duration::from_secs(1);

/// The limits of one fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchLimits {
    /// The largest document accepted, in bytes.
    pub bytes: usize,
    pub patience: Duration,
}

impl FetchLimits {
    /// The same limits, as a client takes them.
    fn bounds(self) -> ObserveLimits {
        let FetchLimits { bytes, patience } = self;
        ObserveLimits {
            start_timeout: patience,
            frame_bytes: bytes,
            shutdown_grace: END_GRACE,
            ..ObserveLimits::default()
        }
    }
}

/// The handshake request that asks a server for an in-band document, by the era that the client
/// uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Greeting {
    /// `initialize`.
    Initialize,
    /// `server/discover`, in the stateless era.
    Discover,
}

impl Greeting {
    fn method(self) -> &'static str {
        match self {
            Greeting::Initialize => INITIALIZE,
            Greeting::Discover => DISCOVER,
        }
    }

    /// The parameters, declaring no client capability.
    fn params(self) -> String {
        let nothing = ClientCapabilities::default();
        match self {
            Greeting::Initialize => initialize_params(&nothing),
            Greeting::Discover => discover_params(&nothing),
        }
    }

    fn awaited(self) -> Awaited {
        match self {
            Greeting::Initialize => Awaited::Initialize,
            Greeting::Discover => Awaited::Discover,
        }
    }

    fn stateless(self) -> Option<Revision> {
        match self {
            Greeting::Initialize => None,
            Greeting::Discover => Some(Revision::NEWEST_STATELESS),
        }
    }
}

/// Why it could not be determined whether there is a document.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error(transparent)]
    NotReached(#[from] ObserveError),
    #[error("the address has characters that cannot be sent")]
    Address,
    #[error("status {0}")]
    Status(StatusCode),
    #[error("more than {0} bytes")]
    TooLong(usize),
    #[error("a body in a content encoding that was not asked for")]
    Encoded,
    #[error("no answer within {} s", seconds(*.0))]
    Slow(Duration),
    #[error("the answer to `{method}` cannot be read: {reason}")]
    Unreadable { method: &'static str, reason: String },
    #[error("a connection could not be prepared: {0}")]
    NoRuntime(std::io::Error),
    #[error("the program could not be started: {0}")]
    NotStarted(std::io::Error),
    #[error("the program ended without an answer")]
    Ended,
}

impl FetchError {
    /// Whether no request was sent because the server's address is not allowed.
    pub fn is_address_refused(&self) -> bool {
        let FetchError::NotReached(error) = self else { return false };
        matches!(
            error,
            ObserveError::AddressRefused { .. }
                | ObserveError::PrivateAddressRefused { .. }
                | ObserveError::PlainHttp { .. }
        )
    }
}

/// Requests the paths in order and returns the first document. The next path is requested only if
/// the previous one has none. Blocks.
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
    block_on(async {
        match timeout(limits.patience, ask_in_turn(endpoint, paths, limits, tls)).await {
            Ok(answer) => answer,
            Err(_) => Err(FetchError::Slow(limits.patience)),
        }
    })
}

/// Sends a server one handshake as `holdpoint`, without the endpoint's headers, and returns its
/// result. A session opened by it is deleted again; `initialized` is never sent and no stream is
/// opened. Returns `None` if the server refuses an anonymous client (any 4xx status, or a JSON-RPC
/// error). Blocks.
pub fn greet(
    endpoint: &HttpEndpoint,
    greeting: Greeting,
    limits: FetchLimits,
) -> Result<Option<String>, FetchError> {
    block_on(async {
        let transport = HttpTransport::open(&bare(endpoint), &limits.bounds(), None).await?;
        let mut server = Client::over_http(transport, Correlator::silent());
        let answer = ask_once(&mut server, greeting, limits.patience).await;
        server.close().await;
        answer
    })
}

/// Starts a program, sends it one handshake as `holdpoint`, calls `look` while the program is still
/// running, and ends it. Returns its result, or `None` if it refuses. The program's own requests
/// are not answered. Blocks.
pub fn greet_program<T>(
    launch: &StdioLaunch,
    start: ServerStart,
    greeting: Greeting,
    limits: FetchLimits,
    look: impl FnOnce() -> T,
) -> Result<(Option<String>, T), FetchError> {
    block_on(async {
        let transport = StdioTransport::start_as(launch, start, &limits.bounds());
        let transport = transport.map_err(FetchError::NotStarted)?;
        let mut server = Client::over_stdio(transport, Correlator::silent());
        let answer = ask_once(&mut server, greeting, limits.patience).await;
        let seen = look();
        server.close().await;
        Ok((answer?, seen))
    })
}

async fn ask_once(
    server: &mut Client,
    greeting: Greeting,
    patience: Duration,
) -> Result<Option<String>, FetchError> {
    let (method, awaited, stateless) =
        (greeting.method(), greeting.awaited(), greeting.stateless());
    let deadline = Instant::now() + patience;
    match server.ask(method, &greeting.params(), stateless, awaited, deadline).await {
        Ok(Asked::Answer(Answer::Result(result))) => Ok(Some(result.to_string())),
        Ok(Asked::Answer(Answer::Error { .. }))
        | Err(Stop::Error(ObserveError::NeedsSignIn { .. })) => Ok(None),
        Ok(Asked::Answer(Answer::Unreadable(reason))) => {
            Err(FetchError::Unreadable { method, reason })
        }
        Ok(Asked::Nothing) => Err(FetchError::Slow(patience)),
        Ok(Asked::Status(status)) if status.is_client_error() => Ok(None),
        Ok(Asked::Status(status)) => Err(FetchError::Status(status)),
        Err(Stop::Error(error)) => Err(error.into()),
        Err(Stop::Ended(_)) => Err(FetchError::Ended),
    }
}

/// Runs a future to completion on a runtime of its own.
fn block_on<T>(work: impl Future<Output = Result<T, FetchError>>) -> Result<T, FetchError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(FetchError::NoRuntime)?;
    let outcome = runtime.block_on(work);
    // Do not wait for a pending name lookup.
    runtime.shutdown_background();
    outcome
}

/// The endpoint without its configured headers and without its query, since both may contain a key.
fn bare(endpoint: &HttpEndpoint) -> HttpEndpoint {
    HttpEndpoint {
        url: endpoint.url.without_query(),
        headers: Vec::new(),
        allow_private: endpoint.allow_private,
        authorizer: None,
    }
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

/// Requests one path. 401 and 403 count as no document, because the server shows none to the
/// public: repeating the request with the operator's credentials is not an option before the server
/// is admitted.
async fn ask(
    origin: &Origin,
    endpoint: &HttpEndpoint,
    path: &'static str,
    limit: usize,
) -> Result<Option<Vec<u8>>, FetchError> {
    match document::get(origin, endpoint, Uri::from_static(path), limit).await? {
        Fetched::Document(document) => Ok(Some(document)),
        Fetched::Status(
            StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::NOT_FOUND
            | StatusCode::GONE,
        ) => Ok(None),
        Fetched::Status(status) => Err(FetchError::Status(status)),
    }
}

#[cfg(test)]
mod tests;
