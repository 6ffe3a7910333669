//! Connections to one origin: its name is resolved once, the addresses are checked, and no others
//! are connected to.

use super::address::{self, AddressClass, Reach};
use super::silence::Silence;
use super::tls::{self, TlsKey};
use crate::endpoint::{EndpointUrl, NamedBy};
use crate::error::{Awaited, ObserveError};
use crate::limits::{CONNECT_TIMEOUT, MAX_ADDRESSES, MAX_HEADER_BYTES};
use ::http::{Request, Response};
use http_body_util::Full;
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::rt::{Read, Write};
use hyper_util::rt::TokioIo;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

/// A scheme, host and port, with the addresses that may be connected to.
pub(crate) struct Origin {
    url: EndpointUrl,
    allow_private: bool,
    /// The one that last accepted a connection comes first.
    addresses: Mutex<Vec<SocketAddr>>,
    tls: Option<TlsConnector>,
    tls_key: TlsKey,
}

impl std::fmt::Debug for Origin {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = formatter.debug_struct("Origin");
        out.field("host", &self.url.host())
            .field("addresses", &self.addresses)
            .finish_non_exhaustive()
    }
}

/// An open connection. Dropping it closes it. Only the task that uses it drives its I/O: handing
/// each message from task to task took longer than everything else done with it.
pub(crate) struct Live {
    pub(crate) line: Line,
    /// The timeout for waiting on this connection.
    pub(crate) silence: Silence,
}

/// Sends requests and reads responses.
pub(crate) struct Line {
    sender: SendRequest<Full<Bytes>>,
    driver: Driver,
}

/// The future that does the connection's I/O; `None` once the connection is closed.
type Driver = Option<Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>>;

impl std::fmt::Debug for Live {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Live").finish_non_exhaustive()
    }
}

impl Line {
    /// Sends a request. The error returns the request if no byte of it was written.
    pub(crate) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Full<Bytes>>>> {
        let Line { sender, driver } = self;
        let mut sending = pin!(sender.try_send_request(request));
        poll_fn(|context| poll_moved(driver, context, |context| sending.as_mut().poll(context)))
            .await
    }

    /// The next piece of a response body on this connection.
    pub(crate) async fn frame(
        &mut self,
        body: &mut Incoming,
    ) -> Option<Result<Frame<Bytes>, hyper::Error>> {
        let driver = &mut self.driver;
        poll_fn(|context| {
            poll_moved(driver, context, |context| Pin::new(&mut *body).poll_frame(context))
        })
        .await
    }
}

/// Polls a future that waits for the connection. If it is not ready, drives the connection and
/// polls again.
fn poll_moved<T>(
    driver: &mut Driver,
    context: &mut Context<'_>,
    mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
) -> Poll<T> {
    let polled = poll(context);
    let Some(moving) = driver.as_mut().filter(|_| polled.is_pending()) else { return polled };
    if moving.as_mut().poll(context).is_ready() {
        // The connection is closed; polling again tells the waiting future why.
        *driver = None;
    }
    poll(context)
}

impl Origin {
    /// Resolves a host's addresses and checks them. No other address is ever connected to.
    pub(crate) async fn resolve(
        url: &EndpointUrl,
        allow_private: bool,
        tls: Option<TlsConnector>,
        tls_key: TlsKey,
        patience: Duration,
    ) -> Result<Origin, ObserveError> {
        let addresses = lookup(url, allow_private, patience).await?;
        Ok(Origin {
            url: url.clone(),
            allow_private,
            addresses: Mutex::new(addresses),
            tls,
            tls_key,
        })
    }

    /// Removes loopback addresses.
    pub(crate) fn without_loopback(self) -> Result<Origin, ObserveError> {
        let mut addresses = self.addresses().clone();
        let first = addresses.first().map(SocketAddr::ip);
        let class = AddressClass::Loopback;
        addresses.retain(|address| address::classify(address.ip()) != class);
        if let (true, Some(address)) = (addresses.is_empty(), first) {
            let host = self.host().to_owned();
            return Err(ObserveError::AddressRefused { host, address, class });
        }
        Ok(Origin { addresses: Mutex::new(addresses), ..self })
    }

    /// Resolves the name again, with the same checks: the addresses of a server may change while it
    /// is in use.
    pub(crate) async fn refresh(&self) -> Result<Refreshed, ObserveError> {
        let found = lookup(&self.url, self.allow_private, CONNECT_TIMEOUT).await?;
        let mut addresses = self.addresses();
        if found.iter().all(|address| addresses.contains(address)) {
            return Ok(Refreshed::Same);
        }
        *addresses = found;
        Ok(Refreshed::Changed)
    }

    pub(crate) fn host(&self) -> &str {
        self.url.host()
    }

    pub(crate) fn lost(&self, awaited: Awaited, source: hyper::Error) -> ObserveError {
        ObserveError::ConnectionLost { host: self.host().to_owned(), awaited, source }
    }

    pub(crate) async fn connect(&self, awaited: Awaited) -> Result<Live, ObserveError> {
        let stream = self.connect_tcp().await?;
        let Some(tls) = &self.tls else {
            return self.start(TokioIo::new(stream), awaited).await;
        };
        let failed = |source| ObserveError::Tls { host: self.host().to_owned(), source };
        let name = ServerName::try_from(self.host().to_owned())
            .map_err(|error| failed(std::io::Error::other(error)))?;
        let stream = match timeout(CONNECT_TIMEOUT, tls.connect(name, stream)).await {
            Ok(stream) => stream.map_err(failed)?,
            Err(_) => return Err(failed(std::io::Error::from(std::io::ErrorKind::TimedOut))),
        };
        let certificates = stream.get_ref().1.peer_certificates();
        let key = certificates.and_then(|chain| chain.first()).and_then(tls::key_hash);
        self.tls_key.note(key.as_deref());
        self.start(TokioIo::new(stream), awaited).await
    }

    /// Tries the addresses in order. The one that accepts is tried first the next time.
    async fn connect_tcp(&self) -> Result<TcpStream, ObserveError> {
        let mut failure = None;
        let addresses = self.addresses().clone();
        for address in addresses {
            let source = match timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    // Requests are small and waited for, so delaying them gains nothing.
                    let _ = stream.set_nodelay(true);
                    // The sort is stable, so the other addresses keep their order.
                    self.addresses().sort_by_key(|&other| other != address);
                    return Ok(stream);
                }
                Ok(Err(source)) => source,
                Err(_) => std::io::Error::from(std::io::ErrorKind::TimedOut),
            };
            failure.get_or_insert((address.ip(), source));
        }
        let host = self.host().to_owned();
        Err(match failure {
            Some((address, source)) => ObserveError::CannotConnect { host, address, source },
            None => {
                let source = std::io::Error::from(std::io::ErrorKind::AddrNotAvailable);
                ObserveError::NotResolved { host, source }
            }
        })
    }

    fn addresses(&self) -> MutexGuard<'_, Vec<SocketAddr>> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn start<I>(&self, io: I, awaited: Awaited) -> Result<Live, ObserveError>
    where
        I: Read + Write + Unpin + Send + 'static,
    {
        // Of headers hyper takes 100 by itself. Where it is told a number, it sets memory for so many up for each answer.
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(MAX_HEADER_BYTES)
            .handshake(io)
            .await
            .map_err(|source| self.lost(awaited, source))?;
        let line = Line { sender, driver: Some(Box::pin(connection)) };
        Ok(Live { line, silence: Silence::default() })
    }
}

/// The result of resolving a name again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refreshed {
    /// There are new addresses.
    Changed,
    Same,
}

/// The addresses of a host that may be connected to.
async fn lookup(
    url: &EndpointUrl,
    allow_private: bool,
    patience: Duration,
) -> Result<Vec<SocketAddr>, ObserveError> {
    let host = url.host().to_owned();
    let found = async {
        let found = lookup_host((url.host(), url.port())).await?;
        Ok(found.collect::<Vec<_>>())
    };
    let found = match timeout(patience.min(CONNECT_TIMEOUT), found).await {
        Ok(found) => found,
        Err(_) => Err(std::io::Error::from(std::io::ErrorKind::TimedOut)),
    };
    match found {
        Ok(found) => match url.named_by() {
            NamedBy::Operator => {
                permitted(&found, |address| check(&host, address, url.is_secure(), allow_private))
            }
            NamedBy::Stranger => permitted(&found, |address| {
                check_stranger(&host, address, url.is_secure(), allow_private)
            }),
        },
        Err(source) => Err(ObserveError::NotResolved { host, source }),
    }
}

/// The permitted addresses among those found; if there are none, the reason why the first one is
/// not permitted.
fn permitted(
    found: &[SocketAddr],
    check: impl Fn(SocketAddr) -> Result<(), ObserveError>,
) -> Result<Vec<SocketAddr>, ObserveError> {
    let mut allowed = Vec::new();
    let mut refusal = None;
    for &address in found.iter().take(MAX_ADDRESSES) {
        match check(address) {
            Ok(()) => allowed.push(address),
            Err(error) => {
                refusal.get_or_insert(error);
            }
        }
    }
    match refusal {
        Some(error) if allowed.is_empty() => Err(error),
        _ => Ok(allowed),
    }
}

fn check(
    host: &str,
    address: SocketAddr,
    secure: bool,
    allow_private: bool,
) -> Result<(), ObserveError> {
    let (host, address) = (host.to_owned(), address.ip());
    let class = address::classify(address);
    match address::reach(class) {
        Reach::Refused => Err(ObserveError::AddressRefused { host, address, class }),
        Reach::NeedsAllowPrivate if !allow_private => {
            Err(ObserveError::PrivateAddressRefused { host, address, class })
        }
        Reach::Allowed | Reach::NeedsAllowPrivate => {
            if secure || class == AddressClass::Loopback {
                Ok(())
            } else {
                Err(ObserveError::PlainHttp { host, address })
            }
        }
    }
}

/// The rule for URLs chosen by a third party.
fn check_stranger(
    host: &str,
    address: SocketAddr,
    secure: bool,
    allow_private: bool,
) -> Result<(), ObserveError> {
    let class = address::classify(address.ip());
    let (host, port, address) = (host.to_owned(), address.port(), address.ip());
    match class {
        AddressClass::Metadata | AddressClass::LinkLocal => {
            Err(ObserveError::AddressRefused { host, address, class })
        }
        AddressClass::Loopback if !allow_private => {
            Err(ObserveError::PrivateAddressRefused { host, address, class })
        }
        _ if !allow_private && (!secure || port != 443) => {
            Err(ObserveError::StrangersPort { host, port })
        }
        _ => check(&host, SocketAddr::new(address, port), secure, allow_private),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge_stranger(address: &str, secure: bool, allow_private: bool) -> String {
        let address: SocketAddr = address.parse().unwrap();
        match check_stranger("host", address, secure, allow_private) {
            Ok(()) => "allowed".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_strangers_url_reaches_public_addresses_on_443_only() {
        assert_eq!(judge_stranger("1.1.1.1:443", true, false), "allowed");
        assert!(judge_stranger("1.1.1.1:8443", true, false).contains("port 443"));
        assert!(judge_stranger("1.1.1.1:443", false, false).contains("port 443"));
        assert!(judge_stranger("127.0.0.1:443", true, false).contains("loopback"));
        assert!(judge_stranger("[::ffff:127.0.0.1]:443", true, false).contains("loopback"));
        assert!(judge_stranger("10.0.0.1:443", true, false).contains("private"));
    }

    #[test]
    fn allowing_private_addresses_never_allows_metadata_and_link_local_ones() {
        assert_eq!(judge_stranger("127.0.0.1:3000", false, true), "allowed");
        assert_eq!(judge_stranger("10.0.0.1:8443", true, true), "allowed");
        assert!(judge_stranger("10.0.0.1:80", false, true).contains("use https"));
        assert!(judge_stranger("169.254.169.254:443", true, true).contains("metadata"));
        assert!(judge_stranger("169.254.7.7:443", true, true).contains("link-local"));
        assert!(judge_stranger("[fe80::1]:443", true, true).contains("link-local"));
    }

    #[test]
    fn a_strangers_name_with_an_inward_and_a_public_address_is_reached_at_the_public_one_only() {
        let found = ["127.0.0.1:443", "10.0.0.1:443", "1.1.1.1:443", "169.254.169.254:443"];
        let found: Vec<SocketAddr> = found.iter().map(|text| text.parse().unwrap()).collect();
        let reached = |allow_private: bool| {
            permitted(&found, |address| check_stranger("host", address, true, allow_private))
                .unwrap()
        };
        assert_eq!(reached(false), [found[2]]);
        assert_eq!(reached(true), found[..3], "never the metadata service");
    }

    fn judge(addresses: &[&str], secure: bool, allow_private: bool) -> String {
        let found: Vec<SocketAddr> =
            addresses.iter().map(|text| SocketAddr::new(text.parse().unwrap(), 1)).collect();
        match permitted(&found, |address| check("host", address, secure, allow_private)) {
            Ok(allowed) => allowed.iter().map(|a| a.ip().to_string()).collect::<Vec<_>>().join(" "),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn private_addresses_need_leave_and_others_never_get_it() {
        assert!(judge(&["10.0.0.1"], true, false).contains("allow private addresses"));
        assert_eq!(judge(&["10.0.0.1"], true, true), "10.0.0.1");
        assert!(judge(&["169.254.169.254"], true, false).contains("metadata"));
        assert!(judge(&["0.0.0.0"], true, true).contains("unspecified"));
        assert_eq!(judge(&["1.1.1.1", "127.0.0.1", "::1"], true, false), "1.1.1.1 127.0.0.1 ::1");
    }

    #[test]
    fn a_name_with_a_forbidden_and_an_allowed_address_is_reached_at_the_allowed_one_only() {
        assert_eq!(judge(&["10.0.0.1", "1.1.1.1"], true, false), "1.1.1.1");
    }

    #[test]
    fn no_more_addresses_are_tried_than_the_limit() {
        let at = vec!["1.1.1.1"; MAX_ADDRESSES];
        assert_eq!(judge(&at, true, false).split(' ').count(), MAX_ADDRESSES);
        let past = vec!["1.1.1.1"; MAX_ADDRESSES + 1];
        assert_eq!(judge(&past, true, false).split(' ').count(), MAX_ADDRESSES);
    }

    #[tokio::test]
    async fn a_name_is_looked_up_again_with_the_same_checks() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let origin = |host: &str| Origin {
            url: format!("http://{host}:{}/", address.port()).parse().unwrap(),
            allow_private: false,
            addresses: Mutex::new(vec![SocketAddr::new(address.ip(), 1)]),
            tls: None,
            tls_key: TlsKey::default(),
        };
        let moved = origin("127.0.0.1");
        assert!(moved.connect(Awaited::Connection).await.is_err());
        assert_eq!(moved.refresh().await.unwrap(), Refreshed::Changed);
        assert!(moved.connect(Awaited::Connection).await.is_ok());
        assert_eq!(moved.refresh().await.unwrap(), Refreshed::Same);
        let refused = origin("10.0.0.1").refresh().await;
        assert!(matches!(refused, Err(ObserveError::PrivateAddressRefused { .. })), "{refused:?}");
    }

    #[test]
    fn plain_http_is_for_loopback_only() {
        assert_eq!(judge(&["127.0.0.1", "1.1.1.1"], false, false), "127.0.0.1");
        assert!(judge(&["1.1.1.1"], false, false).contains("use https"));
        assert!(judge(&["10.0.0.1"], false, true).contains("use https"));
    }
}
