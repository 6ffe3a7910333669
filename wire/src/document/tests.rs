use super::*;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

const LIMITS: FetchLimits = FetchLimits { bytes: 100, patience: Duration::from_secs(5) };

/// A server on loopback that gives one response, and returns the request it received.
fn server(answer: String) -> (EndpointUrl, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/keys?tenant=a", listener.local_addr().unwrap());
    let asked = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        let mut byte = [0];
        while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
            request.push(byte[0]);
        }
        stream.write_all(answer.as_bytes()).unwrap();
        String::from_utf8(request).unwrap()
    });
    (url.parse().unwrap(), asked)
}

fn answer(status: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
}

async fn fetched(url: EndpointUrl, allow_private: bool) -> Result<Vec<u8>, FetchError> {
    DocumentAddress::new(url, allow_private, None).unwrap().fetch(LIMITS).await
}

#[tokio::test]
async fn a_document_is_asked_for_by_its_path_and_query() {
    let (url, asked) = server(answer("200 OK", "{}"));
    assert_eq!(fetched(url, false).await.unwrap(), b"{}");
    assert!(asked.join().unwrap().starts_with("GET /keys?tenant=a HTTP/1.1\r\n"));
}

#[tokio::test]
async fn other_statuses_redirects_and_long_documents_are_errors() {
    let (url, _asked) = server(answer("404 Not Found", "{}"));
    assert!(matches!(fetched(url, false).await, Err(FetchError::Status(_))));
    let moved = "HTTP/1.1 302 Found\r\nlocation: /other\r\ncontent-length: 0\r\n\r\n";
    let (url, _asked) = server(moved.to_owned());
    assert!(matches!(fetched(url, false).await, Err(FetchError::Status(_))));
    let (url, _asked) = server(answer("200 OK", &"x".repeat(LIMITS.bytes)));
    assert!(fetched(url, false).await.is_ok());
    let (url, _asked) = server(answer("200 OK", &"x".repeat(LIMITS.bytes + 1)));
    assert!(matches!(fetched(url, false).await, Err(FetchError::TooLong(_))));
}

#[tokio::test]
async fn plain_http_beyond_loopback_and_private_addresses_are_refused() {
    for (url, allow_private) in [
        ("http://192.0.2.1/keys", true),
        ("https://10.0.0.1/keys", false),
        ("https://169.254.169.254/", false),
    ] {
        let refused = fetched(url.parse().unwrap(), allow_private).await;
        assert!(matches!(refused, Err(FetchError::NotReached(_))), "{url}: {refused:?}");
        let text = refused.unwrap_err().to_string();
        assert!(!text.contains("timed out"), "{text}");
    }
}

#[test]
fn certificate_authorities_are_pem_or_refused() {
    let url: EndpointUrl = "https://idp.example.com/keys".parse().unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let pem = rcgen::CertificateParams::new(vec!["idp.example.com".to_owned()])
        .unwrap()
        .self_signed(&key)
        .unwrap()
        .pem();
    assert!(DocumentAddress::new(url.clone(), false, Some(pem.as_bytes())).is_ok());
    for text in ["", "not PEM", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        let refused = DocumentAddress::new(url.clone(), false, Some(text.as_bytes()));
        assert!(refused.is_err(), "{text}");
    }
}
