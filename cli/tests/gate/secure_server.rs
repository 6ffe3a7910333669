//! An MCP server over HTTPS on loopback, with a certificate from its own authority, that publishes
//! its attestation and records requests.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

pub(crate) const FIRST_PLACE: &str = "/.well-known/mcp-attestation";
const SECOND_PLACE: &str = "/.well-known/enclawed-clearance.json";

/// The pause before each byte of a dripped document.
const DRIP: Duration = Duration::from_millis(100);

/// The response at the first well-known path. The second path has none unless stated.
pub(crate) enum Published {
    Document(String),
    /// A redirect to the second path, which has this document.
    Moved(String),
    /// The length at once, then one byte at a time.
    Dripped(String),
    /// The request is read but never answered.
    Silence,
}

pub(crate) struct SecureServer {
    port: u16,
    /// The certificate authority to trust, as PEM.
    pub(crate) authority: String,
    seen: Arc<Mutex<Vec<String>>>,
}

pub(crate) type Encrypted = StreamOwned<ServerConnection, TcpStream>;
type Stream = BufReader<Encrypted>;

struct Request {
    /// Such as `GET /mcp`.
    what: String,
    body: Value,
}

impl SecureServer {
    /// Its certificate is valid for `localhost` and `127.0.0.1`.
    pub(crate) fn start(published: Published) -> SecureServer {
        let (authority, config) = identity(&["localhost", "127.0.0.1"]);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (inside, published) = (Arc::clone(&seen), Arc::new(published));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (seen, published) = (Arc::clone(&inside), Arc::clone(&published));
                let stream = BufReader::new(encrypted(&config, stream.unwrap()));
                // A client that disconnects or rejects the certificate is no error here.
                std::thread::spawn(move || serve(stream, &published, &seen));
            }
        });
        SecureServer { port, authority, seen }
    }

    pub(crate) fn url(&self, host: &str) -> String {
        format!("https://{host}:{}/mcp", self.port)
    }

    /// The number of requests with an MCP method or a path (`GET /path`).
    pub(crate) fn times_asked(&self, what: &str) -> usize {
        self.seen.lock().unwrap().iter().filter(|seen| *seen == what).count()
    }
}

/// The server's side of TLS on a connection.
pub(crate) fn encrypted(config: &Arc<ServerConfig>, stream: TcpStream) -> Encrypted {
    StreamOwned::new(ServerConnection::new(Arc::clone(config)).unwrap(), stream)
}

/// A certificate authority, and the server's certificate from it for these names.
pub(crate) fn identity(names: &[&str]) -> (String, Arc<ServerConfig>) {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &authority).unwrap();
    let private = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)
        .unwrap();
    (authority.pem(), Arc::new(config))
}

fn serve(
    mut stream: Stream,
    published: &Published,
    seen: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    while let Some(Request { what, body }) = read(&mut stream)? {
        let method = body["method"].as_str();
        seen.lock().unwrap().push(method.unwrap_or(&what).to_owned());
        match what.strip_prefix("GET ") {
            Some(FIRST_PLACE) => publish(&mut stream, published)?,
            Some(SECOND_PLACE) => match published {
                Published::Moved(document) => send(&mut stream, "200 OK", "", document)?,
                _ => send(&mut stream, "404 Not Found", "", "")?,
            },
            // There is no event stream besides the responses.
            Some(_) => send(&mut stream, "405 Method Not Allowed", "", "")?,
            None => match answer(&body) {
                Some(message) => {
                    let kind = "content-type: application/json\r\n";
                    send(&mut stream, "200 OK", kind, &message.to_string())?;
                }
                None => send(&mut stream, "202 Accepted", "", "")?,
            },
        }
    }
    Ok(())
}

fn publish(stream: &mut Stream, published: &Published) -> std::io::Result<()> {
    match published {
        Published::Document(document) => send(stream, "200 OK", "", document),
        Published::Moved(_) => {
            send(stream, "302 Found", &format!("location: {SECOND_PLACE}\r\n"), "")
        }
        Published::Dripped(document) => {
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", document.len());
            stream.get_mut().write_all(head.as_bytes())?;
            for byte in document.bytes() {
                stream.get_mut().write_all(&[byte])?;
                stream.get_mut().flush()?;
                std::thread::sleep(DRIP);
            }
            Ok(())
        }
        // Until the client disconnects.
        Published::Silence => std::io::copy(stream, &mut std::io::sink()).map(|_| ()),
    }
}

fn send(stream: &mut Stream, status: &str, headers: &str, body: &str) -> std::io::Result<()> {
    let length = body.len();
    let answer = format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n{body}");
    stream.get_mut().write_all(answer.as_bytes())?;
    stream.get_mut().flush()
}

fn read(stream: &mut Stream) -> std::io::Result<Option<Request>> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let what = line.trim_end().trim_end_matches(" HTTP/1.1").to_owned();
    let mut length = 0;
    loop {
        line.clear();
        stream.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(Some(Request { what, body: serde_json::from_slice(&body).unwrap_or_default() }))
}

/// The response to a message, if it is a request.
fn answer(message: &Value) -> Option<Value> {
    let id = message.get("id")?;
    let result = match message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": "2025-06-18",
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "secure", "version": "1" },
        }),
        "tools/list" => {
            let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
            json!({ "tools": [tool("echo"), tool("drop")] })
        }
        "tools/call" => {
            let said = &message["params"]["arguments"]["say"];
            json!({ "content": [{ "type": "text", "text": said }] })
        }
        _ => json!({}),
    };
    Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}
