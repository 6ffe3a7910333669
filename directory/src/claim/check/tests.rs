use super::*;
use ed25519_dalek::SigningKey;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

#[test]
fn lines_are_read_from_files_and_manifests_and_nonsense_has_none() {
    assert_eq!(read_file(br#"{"claims":["v1 a b c"],"more":1}"#), ["v1 a b c"]);
    assert_eq!(read_npm_manifest(br#"{"name":"x","holdpoint":"v1 a b c"}"#), ["v1 a b c"]);
    assert_eq!(read_npm_manifest(br#"{"holdpoint":["v1 a","v1 b",3]}"#), ["v1 a", "v1 b"]);
    let readme = r##"{"info":{"description":"# Title\n<!-- holdpoint: v1 a b c -->\nholdpoint: v1 d\nsee holdpoint: no"}}"##;
    assert_eq!(read_pypi_manifest(readme.as_bytes()), ["v1 a b c", "v1 d"]);
    for nonsense in
        [&b""[..], b"[]", b"{}", br#"{"claims":"v1"}"#, br#"{"info":{"description":7}}"#]
    {
        assert!(read_file(nonsense).is_empty());
        assert!(read_npm_manifest(nonsense).is_empty());
        assert!(read_pypi_manifest(nonsense).is_empty());
    }
    let large = format!(r#"{{"claims":["{}"]}}"#, "x".repeat(MAX_FILE_BYTES));
    assert!(read_file(large.as_bytes()).is_empty());
}

/// Answers every connection in the same way, after reading the start of the request.
fn stranger(answer: impl Fn(&mut TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4_096]);
            answer(&mut stream);
        }
    });
    address
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn look(
    method: Method,
    web: SocketAddr,
    dns: SocketAddr,
    allow_private: bool,
) -> Result<String, NotFound> {
    let dialer = Dialer::new(allow_private, None).with_pause(Duration::ZERO);
    let checker = Checker::new(dialer, Resolver::new(&[dns]), Registries::default(), Vec::new());
    let key = SigningKey::from_bytes(&[1; 32]).verifying_key().to_bytes();
    let (server, key) = ("com.example/a".parse().unwrap(), ClaimKey::from_bytes(key).unwrap());
    let place = Place::Domain {
        name: "example.com".to_owned(),
        has_records: true,
        well_known: format!("http://{web}/.well-known/holdpoint.json"),
    };
    let sought = Sought { server: &server, key: &key, nonce: "n", method };
    block_on(checker.find(sought, &[place]))
}

/// A file with the line that [`look`] looks for.
fn claims_file() -> String {
    let key = ClaimKey::from_bytes(SigningKey::from_bytes(&[1; 32]).verifying_key().to_bytes());
    let said = line(&"com.example/a".parse().unwrap(), &key.unwrap(), "n");
    serde_json::json!({ "claims": [said] }).to_string()
}

fn http(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}\r\n{body}", body.len())
}

#[test]
fn hosts_that_redirect_flood_or_talk_nonsense_show_no_claim() {
    let nowhere: SocketAddr = "127.0.0.1:1".parse().unwrap();
    let good = stranger(|stream| {
        let _ = stream.write_all(http("200 OK", "", &claims_file()).as_bytes());
    });
    assert_eq!(look(Method::WellKnown, good, nowhere, true).unwrap(), "example.com");
    let private = look(Method::WellKnown, good, nowhere, false);
    assert!(matches!(private, Err(NotFound::Dial(_))), "{private:?}");

    let to_good = format!("location: http://{good}/.well-known/holdpoint.json\r\n");
    let redirecting = stranger(move |stream| {
        let _ = stream.write_all(http("302 Found", &to_good, &claims_file()).as_bytes());
    });
    let flooding = stranger(|stream| {
        let head = format!("HTTP/1.1 200 OK\r\n\r\n{}", claims_file());
        let _ = stream.write_all(head.as_bytes());
        while stream.write_all(&[b' '; 65_536]).is_ok() {}
    });
    let failing = stranger(|stream| {
        let _ = stream.write_all(http("500 Oops", "", &claims_file()).as_bytes());
    });
    let silent = stranger(|_| {});
    for host in [redirecting, flooding, failing, silent] {
        let refused = look(Method::WellKnown, host, nowhere, true);
        assert!(matches!(refused, Err(NotFound::Dial(_))), "{refused:?}");
    }
    let odd = stranger(|stream| {
        let _ = stream.write_all(http("200 OK", "", "<html>v1 com.example/a</html>").as_bytes());
    });
    assert!(matches!(look(Method::WellKnown, odd, nowhere, true), Err(NotFound::Absent)));
}

#[test]
fn resolvers_that_hang_up_or_talk_nonsense_show_no_claim() {
    let nowhere: SocketAddr = "127.0.0.1:1".parse().unwrap();
    let hanging_up = stranger(|_| {});
    let nonsense = stranger(|stream| {
        let _ = stream.write_all(&[0, 20]);
        let _ = stream.write_all(&[0xff; 20]);
    });
    let endless = stranger(|stream| {
        let _ = stream.write_all(&[0xff, 0xff]);
        while stream.write_all(&[0; 65_536]).is_ok() {}
    });
    for resolver in [nowhere, hanging_up, nonsense, endless] {
        let refused = look(Method::Dns, nowhere, resolver, true);
        assert!(matches!(refused, Err(NotFound::Dns(_))), "{refused:?}");
    }
    assert!(matches!(look(Method::Manifest, nowhere, nowhere, true), Err(NotFound::Method)));
}
