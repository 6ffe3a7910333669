use super::*;
use crate::http::tls;
use crate::upstream::HttpEndpoint;
use rcgen::{CertificateParams, KeyPair, PublicKeyData};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

pub(crate) struct TlsServer {
    pub(crate) port: u16,
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) key_hash: String,
}

/// A server on loopback with a certificate for this name, which responds 204 to everything.
pub(crate) async fn tls_server(name: &str) -> TlsServer {
    let key = KeyPair::generate().unwrap();
    let key_hash = hex::encode(Sha256::digest(key.subject_public_key_info()));
    let certificate = CertificateParams::new([name.to_owned()]).unwrap().self_signed(&key).unwrap();
    let certificate = certificate.der().clone();
    let private = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], private)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut bytes = [0_u8; 4096];
            let _ = stream.read(&mut bytes).await;
            let _ = stream.write_all(b"HTTP/1.1 418 Teapot\r\ncontent-length: 0\r\n\r\n").await;
        }
    });
    TlsServer { port, certificate, key_hash }
}

/// Requests `https://localhost`, trusting this certificate. Returns the status or the error's text,
/// and the key.
async fn ask(port: u16, trusted: CertificateDer<'static>) -> (String, Option<String>) {
    let mut roots = RootCertStore::empty();
    roots.add(trusted).unwrap();
    let endpoint = HttpEndpoint {
        url: format!("https://localhost:{port}/mcp").parse().unwrap(),
        headers: Vec::new(),
        allow_private: false,
        authorizer: None,
    };
    let tls = tls::connector_with(roots).unwrap();
    let limits = ObserveLimits::default();
    let transport = HttpTransport::open(&endpoint, &limits, Some(tls)).await.unwrap();
    let mut client = Client::over_http(transport, Correlator::silent());
    let deadline = Instant::now() + Duration::from_secs(20);
    let said = match client.ask("initialize", "{}", None, Awaited::Initialize, deadline).await {
        Ok(Asked::Status(status)) => status.as_str().to_owned(),
        Err(Stop::Error(error)) => error.to_string(),
        other => format!("{other:?}"),
    };
    (said, client.close().await.tls_key)
}

#[tokio::test]
async fn the_public_key_of_a_trusted_server_is_reported() {
    let server = tls_server("localhost").await;
    let (said, key) = ask(server.port, server.certificate).await;
    assert_eq!(said, "418");
    assert_eq!(key, Some(server.key_hash));
}

#[tokio::test]
async fn an_untrusted_certificate_and_one_for_another_name_are_refused() {
    let server = tls_server("localhost").await;
    let stranger = tls_server("localhost").await;
    let (said, key) = ask(server.port, stranger.certificate).await;
    assert!(said.starts_with("no secure connection to `localhost`"), "{said}");
    assert_eq!(key, None);
    let other = tls_server("other.example").await;
    let (said, _) = ask(other.port, other.certificate).await;
    assert!(said.starts_with("no secure connection to `localhost`"), "{said}");
}
