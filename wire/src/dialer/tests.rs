use super::*;
use std::io::{Read, Write};
use std::net::TcpListener;

/// Answers each connection with the next of these texts, and returns the first line and the user
/// agent of each request.
fn serve(answers: &'static [&'static str]) -> (String, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let served = std::thread::spawn(move || {
        answers
            .iter()
            .map(|answer| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
                    head.push(byte[0]);
                }
                stream.write_all(answer.as_bytes()).unwrap();
                String::from_utf8(head).unwrap()
            })
            .collect()
    });
    (url, served)
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

#[test]
fn a_loopback_address_is_refused_unless_private_ones_are_allowed() {
    let (url, served) = serve(&["HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"]);
    let refused = block_on(Dialer::new(false, Some("a.example")).get(&url, "text/plain"));
    assert!(matches!(refused, Err(DialError::Fetch { .. })), "{refused:?}");
    let dialer = Dialer::new(true, Some("mailto:ops@a.example")).with_pause(Duration::ZERO);
    assert_eq!(block_on(dialer.get(&url, "text/plain")).unwrap(), b"ok");
    let head = served.join().unwrap().concat();
    assert!(
        head.contains("(+mailto:ops@a.example)") && head.contains("accept: text/plain"),
        "{head}"
    );
}

#[test]
fn a_redirect_is_not_followed() {
    let (url, served) = serve(&[
        "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n",
    ]);
    let dialer = Dialer::new(true, Some("a.example")).with_pause(Duration::ZERO);
    let answer = block_on(dialer.get(&url, "text/plain"));
    assert_eq!(answer.unwrap_err().status(), Some(StatusCode::FOUND));
    assert_eq!(served.join().unwrap().len(), 1);
}

#[test]
fn retry_after_is_obeyed_once_and_a_long_one_ends_the_attempt() {
    let (url, served) = serve(&[
        "HTTP/1.1 429 Slow\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.1 503 Busy\r\nretry-after: 86400\r\ncontent-length: 0\r\n\r\n",
    ]);
    let dialer = Dialer::new(true, Some("a.example")).with_pause(Duration::ZERO);
    assert_eq!(block_on(dialer.get(&url, "text/plain")).unwrap(), b"ok");
    let refused = block_on(dialer.get(&url, "text/plain"));
    assert_eq!(refused.unwrap_err().status(), Some(StatusCode::SERVICE_UNAVAILABLE));
    assert_eq!(served.join().unwrap().len(), 3);
}

#[test]
fn requests_to_one_host_wait_for_each_other() {
    let (url, served) = serve(&["HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"; 3]);
    let dialer = Dialer::new(true, Some("a.example")).with_pause(Duration::from_millis(50));
    let begun = Instant::now();
    for _ in 0..3 {
        block_on(dialer.get(&url, "text/plain")).unwrap();
    }
    assert!(begun.elapsed() >= Duration::from_millis(100));
    served.join().unwrap();
}

#[test]
fn a_call_carries_its_own_key_and_never_prints_it() {
    let (url, served) = serve(&["HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n"; 2]);
    let dialer = Dialer::new(true, None).with_pause(Duration::ZERO);
    let call = || Call { url: &url, bearer: Some(Bearer("hpn_secret")), ..Call::default() };
    assert!(!format!("{:?}", call()).contains("secret"));
    block_on(dialer.call(call())).unwrap();
    block_on(dialer.call(Call { bearer: None, ..call() })).unwrap();
    let heads = served.join().unwrap();
    assert!(heads[0].contains("authorization: Bearer hpn_secret"), "{heads:?}");
    assert!(!heads[1].contains("authorization"), "{heads:?}");
}

/// The printed request is byte for byte the one that is sent, except for the key.
#[test]
fn a_call_is_printed_as_it_is_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/api?after=3", listener.local_addr().unwrap());
    let dialer = Dialer::new(true, None).with_pause(Duration::ZERO);
    let bodies = [None, Some(ServiceBody::Json(br#"{"a":1}"#.to_vec()))];
    for body in bodies {
        let call = || Call {
            url: &url,
            accept: Some("application/json"),
            body: body.clone(),
            bearer: Some(Bearer("k1")),
            version_header: Some(("x-version", "1")),
            ..Call::default()
        };
        let printed = dialer.printed(&call()).unwrap();
        let printed = String::from_utf8(printed).unwrap();
        assert!(printed.contains("authorization: <secret>\r\n"), "{printed}");
        let announced = printed.replace("<secret>", "Bearer k1");
        let expected = announced.len();
        let heard = std::thread::scope(|scope| {
            let heard = scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut bytes = vec![0; expected];
                stream.read_exact(&mut bytes).unwrap();
                stream.write_all(b"HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n").unwrap();
                // Nothing may follow.
                let mut rest = Vec::new();
                stream.read_to_end(&mut rest).unwrap();
                bytes.extend(rest);
                bytes
            });
            block_on(dialer.call(call())).unwrap();
            heard.join().unwrap()
        });
        assert_eq!(String::from_utf8(heard).unwrap(), announced);
    }
}
