//! The gateway over TLS: both versions of HTTP, client certificates as identities, and certificates
//! replaced while connections are open.
#![allow(clippy::unwrap_used, clippy::panic, reason = "all of it is a test")]

use gateway::{Node, serve};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType};
use settings::gateway::GatewaySettings;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use store::Home;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

const PATIENCE: Duration = Duration::from_secs(20);
const SUBJECT: &str = "spiffe://example.com/reports";

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new(name: &str) -> Authority {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn sign(&self, params: &CertificateParams) -> (CertificateDer<'static>, KeyPair, String) {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        (certificate.der().clone(), key, certificate.pem())
    }

    /// Writes a certificate for the gateway into a folder.
    fn issue(&self, folder: &Path) {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let (_, key, pem) = self.sign(&CertificateParams::new(names).unwrap());
        std::fs::write(folder.join("key.pem"), key.serialize_pem()).unwrap();
        std::fs::write(folder.join("cert.pem"), pem).unwrap();
    }

    fn client(&self, uris: &[&str]) -> (CertificateDer<'static>, KeyPair) {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "a name that does not count");
        let uris = uris.iter().map(|uri| SanType::URI((*uri).try_into().unwrap()));
        params.subject_alt_names = uris.collect();
        let (certificate, key, _) = self.sign(&params);
        (certificate, key)
    }
}

struct Gateway {
    folder: tempfile::TempDir,
    address: SocketAddr,
    node: Arc<Node>,
}

impl Gateway {
    async fn start(server: &Authority, clients: Option<&Authority>) -> Gateway {
        let folder = tempfile::tempdir().unwrap();
        server.issue(folder.path());
        let mut tls = r#"cert = "file:cert.pem", key = "file:key.pem""#.to_owned();
        if let Some(clients) = clients {
            std::fs::write(folder.path().join("ca.pem"), clients.0.pem()).unwrap();
            tls += r#", client_ca = "file:ca.pem""#;
        }
        let text = format!(
            "[gateway]\nlisten = \"127.0.0.1:0\"\ntls = {{ {tls} }}\n[auth.keys]\nenabled = true\n"
        );
        Gateway::open(folder, &text).await
    }

    async fn open(folder: tempfile::TempDir, text: &str) -> Gateway {
        let settings = Arc::new(GatewaySettings::read(text, folder.path()).unwrap());
        let home = Home::open(&folder.path().join("home")).unwrap();
        let listen = settings.front.listen;
        let handle = tokio::runtime::Handle::current();
        let remark = Arc::new(|_: &str| {});
        let node = Node::open(settings, home, Default::default(), remark, handle).unwrap();
        let (address, _) = serve(node.clone(), listen).await.unwrap();
        Gateway { folder, address, node }
    }

    async fn connect(&self, client: ClientConfig) -> std::io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(self.address).await?;
        let connector = tokio_rustls::TlsConnector::from(Arc::new(client));
        connector.connect("localhost".try_into().unwrap(), stream).await
    }
}

fn trusting(server: &Authority, versions: &[&[u8]]) -> RootsAnd {
    let mut roots = RootCertStore::empty();
    roots.add(server.0.der().clone()).unwrap();
    RootsAnd { roots, alpn: versions.iter().map(|version| version.to_vec()).collect() }
}

struct RootsAnd {
    roots: RootCertStore,
    alpn: Vec<Vec<u8>>,
}

impl RootsAnd {
    fn without_certificate(self) -> ClientConfig {
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(self.roots)
            .with_no_client_auth();
        config.alpn_protocols = self.alpn;
        config
    }

    fn with(self, (certificate, key): (CertificateDer<'static>, KeyPair)) -> ClientConfig {
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(self.roots)
            .with_client_auth_cert(vec![certificate], key)
            .unwrap();
        config.alpn_protocols = self.alpn;
        config
    }
}

fn initialize(address: SocketAddr) -> Request<Full<bytes::Bytes>> {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    Request::post(format!("https://localhost:{}/mcp", address.port()))
        .header("host", format!("localhost:{}", address.port()))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(body.into())
        .unwrap()
}

/// The status of `initialize` over a connection.
async fn status(gateway: &Gateway, client: ClientConfig) -> std::io::Result<StatusCode> {
    let stream = gateway.connect(client).await?;
    let is_second = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let request = initialize(gateway.address);
    let answer = if is_second {
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
                .await
                .map_err(std::io::Error::other)?;
        tokio::spawn(connection);
        let answer = sender.send_request(request).await.map_err(std::io::Error::other)?;
        assert_eq!(answer.version(), http::Version::HTTP_2);
        answer
    } else {
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(std::io::Error::other)?;
        tokio::spawn(connection);
        sender.send_request(request).await.map_err(std::io::Error::other)?
    };
    let status = answer.status();
    let _ = answer.into_body().collect().await;
    Ok(status)
}

fn has_receipt_of(folder: &Path, subject: &str) -> bool {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if std::fs::read(&path).is_ok_and(|bytes| {
                bytes.windows(subject.len()).any(|part| part == subject.as_bytes())
            }) {
                return true;
            }
        }
    }
    false
}

#[tokio::test(flavor = "multi_thread")]
async fn both_versions_of_http_are_served_and_strangers_are_refused() {
    let server = Authority::new("server");
    let gateway = Gateway::start(&server, None).await;
    for version in [&b"h2"[..], b"http/1.1"] {
        let client = trusting(&server, &[version]).without_certificate();
        let stream = gateway.connect(client.clone()).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(version));
        assert_eq!(status(&gateway, client).await.unwrap(), StatusCode::UNAUTHORIZED);
    }
    // A client that uses plain HTTP gets no HTTP response.
    let plain = TcpStream::connect(gateway.address).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(plain)).await.unwrap();
    tokio::spawn(connection);
    assert!(sender.send_request(initialize(gateway.address)).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_uri_of_a_client_certificate_is_the_caller() {
    let (server, clients) = (Authority::new("server"), Authority::new("clients"));
    let gateway = Gateway::start(&server, Some(&clients)).await;
    let trusting = |version: &[u8]| trusting(&server, &[version]);
    for version in [&b"h2"[..], b"http/1.1"] {
        let client = trusting(version).with(clients.client(&[SUBJECT, "spiffe://other"]));
        assert_eq!(status(&gateway, client).await.unwrap(), StatusCode::OK);
    }
    // Certificates are optional, and one without a URI identifies no caller.
    let without = trusting(b"h2").without_certificate();
    assert_eq!(status(&gateway, without).await.unwrap(), StatusCode::UNAUTHORIZED);
    let nameless = trusting(b"h2").with(clients.client(&[]));
    assert_eq!(status(&gateway, nameless).await.unwrap(), StatusCode::UNAUTHORIZED);
    // A certificate of an unknown authority ends the handshake.
    let stranger = trusting(b"h2").with(Authority::new("clients").client(&[SUBJECT]));
    status(&gateway, stranger).await.unwrap_err();
    let home = gateway.folder.path().join("home");
    gateway.node.clone().shut_down(Duration::from_secs(1)).await;
    assert!(has_receipt_of(&home, SUBJECT));
    assert!(!has_receipt_of(&home, "spiffe://other"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_certificate_is_taken_over_and_open_connections_stay() {
    let (first, second) = (Authority::new("first"), Authority::new("second"));
    let gateway = Gateway::start(&first, None).await;
    let old = || trusting(&first, &[b"h2"]).without_certificate();
    let new = || trusting(&second, &[b"h2"]).without_certificate();
    let stream = gateway.connect(old()).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
    tokio::spawn(connection);
    gateway.connect(new()).await.unwrap_err();

    // A partially written pair is not loaded.
    let cert = gateway.folder.path().join("cert.pem");
    let before = std::fs::read(&cert).unwrap();
    second.issue(gateway.folder.path());
    std::fs::write(&cert, before).unwrap();
    let refused = gateway.node.renew_tls().unwrap_err().to_string();
    assert!(refused.contains("`cert` and `key` do not go together"), "{refused}");
    gateway.connect(old()).await.unwrap();

    second.issue(gateway.folder.path());
    // The files are checked automatically.
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while gateway.connect(new()).await.is_err() {
        assert!(tokio::time::Instant::now() < deadline, "the new certificate is not taken over");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    gateway.connect(old()).await.unwrap_err();
    let answer = sender.send_request(initialize(gateway.address)).await.unwrap();
    assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_proxies_that_are_named_may_connect() {
    for (range, is_served) in [("127.0.0.1/32", true), ("10.0.0.0/8", false)] {
        let text = format!(
            "[gateway]\nlisten = \"127.0.0.1:0\"\npublic_url = \"https://mcp.example.com\"\ntls = {{ terminated_by = [\"{range}\"] }}\n"
        );
        let gateway = Gateway::open(tempfile::tempdir().unwrap(), &text).await;
        let plain = TcpStream::connect(gateway.address).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(plain)).await.unwrap();
        tokio::spawn(connection);
        let answer = sender.send_request(initialize(gateway.address)).await;
        assert_eq!(answer.is_ok(), is_served, "{range}");
    }
}

#[tokio::test]
async fn files_that_are_not_what_they_should_be_are_named() {
    let folder = tempfile::tempdir().unwrap();
    Authority::new("server").issue(folder.path());
    std::fs::write(folder.path().join("empty.pem"), "").unwrap();
    for (tls, expected) in [
        (r#"cert = "file:none.pem", key = "file:key.pem""#, "`gateway.tls.cert`: `"),
        (r#"cert = "file:empty.pem", key = "file:key.pem""#, "there is no certificate in PEM"),
        (r#"cert = "file:cert.pem", key = "file:cert.pem""#, "there is no private key in PEM"),
        (
            r#"cert = "file:cert.pem", key = "file:key.pem", client_ca = "file:key.pem""#,
            "`gateway.tls.client_ca`: there is no certificate in PEM",
        ),
    ] {
        let text = format!("[gateway]\ntls = {{ {tls} }}\n");
        let settings = Arc::new(GatewaySettings::read(&text, folder.path()).unwrap());
        let home = Home::open(&folder.path().join("home")).unwrap();
        let handle = tokio::runtime::Handle::current();
        let opened = Node::open(settings, home, Default::default(), Arc::new(|_: &str| {}), handle);
        let error = opened.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
