//! Connections to a collector configured by the operator: any address is allowed, and every wait
//! has a timeout.

use super::destination::Address;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UdpSocket, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// The timeout for resolving a name, for connecting to one address, and for the TLS handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The most addresses of one name that are tried.
const MAX_ADDRESSES: usize = 8;

/// A bidirectional stream.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Trusts the system's certificates and the given ones, or Mozilla's if there are none.
pub(super) fn connector(trusted: &[CertificateDer<'static>]) -> io::Result<TlsConnector> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots.add_parsable_certificates(trusted.iter().cloned());
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// A stream to an address, using TLS if a connector is given.
pub(super) async fn stream(
    address: &Address,
    tls: Option<&TlsConnector>,
) -> io::Result<Box<dyn Stream>> {
    let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for found in resolve(address).await? {
        match bounded(TcpStream::connect(found)).await {
            Ok(plain) => {
                let _ = plain.set_nodelay(true);
                let Some(tls) = tls else { return Ok(Box::new(plain)) };
                let name = ServerName::try_from(address.host.clone()).map_err(io::Error::other)?;
                return Ok(Box::new(bounded(tls.connect(name, plain)).await?));
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// A datagram socket to an address.
pub(super) async fn datagrams(address: &Address) -> io::Result<UdpSocket> {
    let found = resolve(address).await?;
    let to = found.first().ok_or(io::ErrorKind::AddrNotAvailable)?;
    let any: SocketAddr = if to.is_ipv4() {
        (std::net::Ipv4Addr::UNSPECIFIED, 0).into()
    } else {
        (std::net::Ipv6Addr::UNSPECIFIED, 0).into()
    };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(to).await?;
    Ok(socket)
}

async fn resolve(address: &Address) -> io::Result<Vec<SocketAddr>> {
    let found = bounded(lookup_host((address.host.as_str(), address.port))).await?;
    Ok(found.take(MAX_ADDRESSES).collect())
}

async fn bounded<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    match timeout(CONNECT_TIMEOUT, work).await {
        Ok(outcome) => outcome,
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}
