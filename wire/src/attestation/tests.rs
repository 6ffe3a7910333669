use super::*;
use crate::client::tests::tls_server;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use tokio_rustls::rustls::RootCertStore;

const PATHS: [&str; 2] = ["/.well-known/first", "/.well-known/second"];
const LIMITS: FetchLimits = FetchLimits { bytes: 100, patience: Duration::from_secs(5) };

/// A server on loopback with a fixed response for each path, which reports the requests it
/// received.
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
    (
        HttpEndpoint { url: url.parse().unwrap(), headers, allow_private: false, authorizer: None },
        told,
    )
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
    for status in ["410 Gone", "401 Unauthorized", "403 Forbidden"] {
        assert_eq!(fetched(answer(status, ""), ok("b")), document("b"), "{status}");
    }
    assert_eq!(fetched(no(), no()), Ok(None));
    for status in ["500 Oops", "400 Bad Request", "204 No Content", "206 Part"] {
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
    // Without a content length, the bytes are counted as they arrive.
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
        let endpoint =
            HttpEndpoint { url, headers: Vec::new(), allow_private: false, authorizer: None };
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
    let said = |trusted: &crate::client::tests::TlsServer| {
        let url = format!("https://localhost:{}/mcp", server.port).parse().unwrap();
        let endpoint =
            HttpEndpoint { url, headers: Vec::new(), allow_private: false, authorizer: None };
        let mut roots = RootCertStore::empty();
        roots.add(trusted.certificate.clone()).unwrap();
        let tls = tls::connector_with(roots).unwrap();
        fetch_with(&endpoint, &PATHS, LIMITS, Some(tls)).unwrap_err().to_string()
    };
    assert!(said(&server).contains("418"));
    assert!(said(&stranger).starts_with("no secure connection to `localhost`"));
}

/// A server that answers a handshake at `/mcp` with this, and reports every request: the head, an
/// empty line, and the body.
fn greeted(
    greeting: Greeting,
    status: &str,
    more: &str,
    body: &str,
) -> (Result<Option<String>, String>, Vec<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let (status, more, body) = (status.to_owned(), more.to_owned(), body.to_owned());
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let head = head(&mut stream);
            let lower = head.to_ascii_lowercase();
            let length = lower.split("content-length: ").nth(1).and_then(|rest| {
                rest.split("\r\n").next().and_then(|digits| digits.parse::<usize>().ok())
            });
            let mut sent = vec![0; length.unwrap_or(0)];
            stream.read_exact(&mut sent).unwrap();
            let sent = String::from_utf8(sent).unwrap();
            let id = sent.split("\"id\":").nth(1).and_then(|rest| rest.split(',').next());
            let body = body.replace("ID", id.unwrap_or("null"));
            tell.send(format!("{lower}{sent}")).unwrap();
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 {status}\r\ncontent-length: {length}\r\n{more}connection: close\r\n\r\n{body}"
            );
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    let secret = http::HeaderValue::from_static("Bearer secret");
    let headers = vec![(http::header::AUTHORIZATION, secret)];
    let endpoint =
        HttpEndpoint { url: url.parse().unwrap(), headers, allow_private: false, authorizer: None };
    let limits = FetchLimits { bytes: 10_000, ..LIMITS };
    let outcome = greet(&endpoint, greeting, limits).map_err(|error| error.to_string());
    (outcome, told.try_iter().collect())
}

const RESULT: &str = r#"{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"2025-06-18"}}"#;

#[test]
fn a_greeting_is_anonymous_and_its_session_is_deleted() {
    let more = "content-type: application/json\r\nmcp-session-id: abc\r\n";
    let (outcome, heard) = greeted(Greeting::Initialize, "200 OK", more, RESULT);
    assert_eq!(outcome, Ok(Some(r#"{"protocolVersion":"2025-06-18"}"#.to_owned())));
    let [post, delete] = heard.as_slice() else { panic!("{heard:#?}") };
    assert!(post.starts_with("post /mcp ") && post.contains(r#""method":"initialize""#), "{post}");
    assert!(post.contains(r#""capabilities":{},"clientInfo":{"name":"holdpoint""#), "{post}");
    assert!(delete.starts_with("delete /mcp ") && delete.contains("mcp-session-id: abc"));
    assert!(delete.contains("mcp-protocol-version: 2025-06-18"), "{delete}");
    assert!(heard.iter().all(|request| !request.contains("secret")), "{heard:#?}");
}

#[test]
fn a_server_without_sessions_is_asked_once() {
    let more = "content-type: application/json\r\n";
    let (outcome, heard) = greeted(Greeting::Discover, "200 OK", more, RESULT);
    assert!(matches!(outcome, Ok(Some(_))), "{outcome:?}");
    let [post] = heard.as_slice() else { panic!("{heard:#?}") };
    assert!(post.contains(r#""method":"server/discover""#), "{post}");
    assert!(post.contains(r#"clientCapabilities":{}"#), "{post}");
}

#[test]
fn a_server_that_refuses_an_anonymous_client_shows_no_document() {
    for status in ["401 Unauthorized", "403 Forbidden", "404 Not Found", "400 Bad Request"] {
        let (outcome, heard) = greeted(Greeting::Initialize, status, "", "");
        assert_eq!((outcome, heard.len()), (Ok(None), 1), "{status}");
    }
    let refusal = r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"no"}}"#;
    let json = "content-type: application/json\r\n";
    assert_eq!(greeted(Greeting::Initialize, "200 OK", json, refusal).0, Ok(None));
}

#[test]
fn a_failed_greeting_is_no_absence_of_a_document() {
    let json = "content-type: application/json\r\n";
    for (status, more, body) in [
        ("500 Oops", "", ""),
        ("307 Temporary Redirect", "location: http://127.0.0.1:1/mcp\r\n", ""),
        ("200 OK", json, "not JSON"),
    ] {
        let (outcome, heard) = greeted(Greeting::Initialize, status, more, body);
        assert!(outcome.is_err(), "{status}: {outcome:?}");
        assert_eq!(heard.len(), 1, "{status}");
    }
}

/// A request from the server that precedes its answer is received and not answered.
#[test]
fn a_server_that_asks_something_during_the_greeting_gets_no_answer() {
    let events = "content-type: text/event-stream\r\n";
    let body =
        format!("data: {}\n\ndata: {RESULT}\n\n", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    let (outcome, heard) = greeted(Greeting::Initialize, "200 OK", events, &body);
    assert!(matches!(outcome, Ok(Some(_))), "{outcome:?}");
    assert_eq!(heard.len(), 1, "{heard:#?}");
}
