//! Which addresses are reached, and over which transport.

use crate::client::{Client, Heard, endpoint, limits, request};
use crate::server::{Server, json, result};
use wire::HttpEndpoint;
use wire::remote::{FailureKind, remote};

/// The first event from an endpoint that cannot be reached.
fn ended(endpoint: HttpEndpoint) -> String {
    let client = Client::with(endpoint, limits());
    let text = match client.hear() {
        Heard::Ended { kind: FailureKind::Unreachable, text } => text,
        other => panic!("{other:?}"),
    };
    assert_eq!(client.finish(), []);
    text
}

#[test]
fn loopback_is_reached_by_name_and_over_ipv6() {
    let server = Server::start(|request| json(&result(request, "{}")));
    let url = format!("http://localhost:{}/mcp", server.address.port());
    let client = Client::with(endpoint(&url), limits());
    client.ask(1, "a");
    client.hear_message();
    client.finish();
    let server = Server::start_at("[::1]:0", |request| json(&result(request, "{}")));
    let client = Client::new(&server);
    client.ask(1, "a");
    client.hear_message();
    assert_eq!(client.key.known(), None, "there is no key without TLS");
    client.finish();
    assert_eq!(server.seen()[0].header("host"), Some(server.address.to_string().as_str()));
}

#[test]
fn private_addresses_are_refused_before_anything_is_connected() {
    let said = ended(endpoint("https://10.0.0.1/mcp"));
    assert!(said.contains("a private address: refused; allow private addresses"), "{said}");
    let said = ended(endpoint("https://[::ffff:169.254.169.254]/mcp"));
    assert!(said.contains("metadata"), "{said}");
    // The kernel would route it to this host, so a connection attempt would succeed.
    let server = Server::start_at("0.0.0.0:0", |request| json(&result(request, "{}")));
    let said = ended(endpoint(&format!("http://0.0.0.0:{}/mcp", server.address.port())));
    assert!(said.contains("an unspecified address: refused"), "{said}");
    assert!(server.seen().is_empty());
}

#[test]
fn plain_http_is_for_loopback_only_whatever_else_is_allowed() {
    let said = ended(HttpEndpoint { allow_private: true, ..endpoint("http://10.0.0.1/mcp") });
    assert!(said.contains("plain http is for loopback addresses only"), "{said}");
    let said = ended(endpoint("http://1.1.1.1/mcp"));
    assert!(said.contains("plain http is for loopback addresses only"), "{said}");
}

#[test]
fn what_was_in_the_queue_of_a_refused_endpoint_fails_and_nothing_more_is_taken() {
    let (sender, far) = remote(endpoint("https://10.0.0.1/mcp"), limits());
    sender.send(request(1, "a")).unwrap();
    let mut heard = Vec::new();
    far.serve(&mut |inbound| heard.push(format!("{inbound:?}")));
    assert_eq!(heard.len(), 2, "{heard:?}");
    assert!(heard[0].starts_with("Failed { id: [49], failure: NeverReached"), "{heard:?}");
    assert!(heard[1].starts_with("Ended("), "{heard:?}");
    assert!(sender.send(request(2, "a")).is_err());
}
