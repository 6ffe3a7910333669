use super::*;
use crate::http::tests::tls_server;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use tokio_rustls::rustls::RootCertStore;

const PATHS: [&str; 2] = ["/.well-known/first", "/.well-known/second"];
const LIMITS: FetchLimits = FetchLimits { bytes: 100, patience: Duration::from_secs(5) };

/// A server on loopback that answers each path by what is given for it, and tells what it was asked.
fn server(answers: [String; 2]) -> (HttpEndpoint, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp?x=1", listener.local_addr().unwrap());
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let request = head(&mut stream);
            let at = PATHS.iter().position(|path| request.starts_with(&format!("GET {path} ")));
            tell.send(request).unwrap();
            let _ = stream.write_all(answers[at.unwrap()].as_bytes());
            if answers[at.unwrap()].is_empty() {
                std::mem::forget(stream);
            }
        }
    });
    let secret = http::HeaderValue::from_static("Bearer secret");
    let headers = vec![(http::header::AUTHORIZATION, secret)];
    (HttpEndpoint { url: url.parse().unwrap(), headers, allow_private: false }, told)
}

fn head(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let mut byte = [0];
    while !text.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
        text.extend_from_slice(&byte);
    }
    String::from_utf8(text).unwrap()
}

fn answer(status: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
}

fn fetched(first: String, second: String) -> Result<Option<Vec<u8>>, String> {
    let (endpoint, _told) = server([first, second]);
    fetch(&endpoint, &PATHS, LIMITS).map_err(|error| error.to_string())
}

#[test]
fn the_next_place_is_asked_only_where_a_document_is_absent() {
    let document = |text: &str| Ok(Some(text.as_bytes().to_vec()));
    let (ok, no) = (|text: &str| answer("200 OK", text), || answer("404 Not Found", "nothing"));
    assert_eq!(fetched(ok("a"), ok("b")), document("a"));
    assert_eq!(fetched(no(), ok("b")), document("b"));
    assert_eq!(fetched(answer("410 Gone", ""), ok("b")), document("b"));
    assert_eq!(fetched(no(), no()), Ok(None));
    for status in ["500 Oops", "401 Unauthorized", "403 Forbidden", "204 No Content", "206 Part"] {
        let error = fetched(answer(status, ""), ok("b")).unwrap_err();
        assert!(error.starts_with("status "), "{error}");
    }
}

#[test]
fn no_redirect_is_followed() {
    let moved = "HTTP/1.1 302 Found\r\nlocation: /.well-known/second\r\ncontent-length: 0\r\n\r\n";
    let error = fetched(moved.to_owned(), answer("200 OK", "b")).unwrap_err();
    assert!(error.contains("302"), "{error}");
}

#[test]
fn a_document_is_read_up_to_the_limit_and_not_past_it() {
    let none = || answer("404 Not Found", "");
    let at = "x".repeat(LIMITS.bytes);
    assert_eq!(fetched(answer("200 OK", &at), none()), Ok(Some(at.clone().into_bytes())));
    let past = format!("{at}x");
    assert_eq!(fetched(answer("200 OK", &past), none()), Err("more than 100 bytes".to_owned()));
    // Without a length it is counted as it comes.
    let endless = format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{past}");
    assert_eq!(fetched(endless, none()), Err("more than 100 bytes".to_owned()));
}

#[test]
fn a_server_that_does_not_answer_is_not_waited_for() {
    let (endpoint, _told) = server([String::new(), String::new()]);
    let limits = FetchLimits { patience: Duration::from_millis(200), ..LIMITS };
    let error = fetch(&endpoint, &PATHS, limits).unwrap_err();
    assert!(matches!(error, FetchError::Slow(_)), "{error}");
}

#[test]
fn credentials_for_the_endpoint_are_not_sent() {
    let (endpoint, told) = server([answer("200 OK", "a"), String::new()]);
    assert!(fetch(&endpoint, &PATHS, LIMITS).is_ok());
    let request = told.recv().unwrap().to_ascii_lowercase();
    assert!(request.contains("host: 127.0.0.1:") && !request.contains("secret"), "{request}");
}

#[test]
fn private_addresses_and_plain_http_elsewhere_are_refused() {
    let refused = |url: &str| {
        let url = url.parse().unwrap();
        let endpoint = HttpEndpoint { url, headers: Vec::new(), allow_private: false };
        fetch(&endpoint, &PATHS, LIMITS).unwrap_err().to_string()
    };
    assert!(refused("https://10.0.0.1/mcp").contains("allow private addresses"));
    assert!(refused("http://1.1.1.1/mcp").contains("use https"));
}

#[test]
fn only_a_trusted_certificate_is_believed() {
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            tell.send((tls_server("localhost").await, tls_server("localhost").await)).unwrap();
            std::future::pending::<()>().await;
        });
    });
    let (server, stranger) = told.recv().unwrap();
    let said = |trusted: &crate::http::tests::TlsServer| {
        let url = format!("https://localhost:{}/mcp", server.port).parse().unwrap();
        let endpoint = HttpEndpoint { url, headers: Vec::new(), allow_private: false };
        let mut roots = RootCertStore::empty();
        roots.add(trusted.certificate.clone()).unwrap();
        let tls = tls::connector_with(roots).unwrap();
        fetch_with(&endpoint, &PATHS, LIMITS, Some(tls)).unwrap_err().to_string()
    };
    assert!(said(&server).contains("418"));
    assert!(said(&stranger).starts_with("no secure connection to `localhost`"));
}
