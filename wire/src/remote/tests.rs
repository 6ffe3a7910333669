use super::*;
use crate::client::tests::{TlsServer, tls_server};
use tokio_rustls::rustls::RootCertStore;

/// Sends a request to `https://localhost` on this server, trusting another server's certificate.
/// Returns what was received.
fn asked(server: &TlsServer, trusted: &TlsServer) -> (String, TlsKey) {
    let endpoint = HttpEndpoint {
        url: format!("https://localhost:{}/mcp", server.port).parse().unwrap(),
        headers: Vec::new(),
        allow_private: false,
        authorizer: None,
    };
    let mut roots = RootCertStore::empty();
    roots.add(trusted.certificate.clone()).unwrap();
    let (sender, mut remote) = remote(endpoint, RemoteLimits::default());
    remote.tls = Some(tls::connector_with(roots).unwrap());
    let key = remote.tls_key();
    assert_eq!(key.known(), None);
    let body = br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#.to_vec();
    let method = Some("tools/list".to_owned());
    sender.send(Outbound { body, method, id: Some(b"1".to_vec()), ..Outbound::default() }).unwrap();
    drop(sender);
    let mut heard = Vec::new();
    remote.serve(&mut |inbound| match inbound {
        Inbound::Failed { failure, .. } => heard.push(failure.to_string()),
        other => heard.push(format!("{other:?}")),
    });
    (heard.join("; "), key)
}

#[test]
fn the_servers_key_is_known_after_the_first_connection_and_only_if_it_is_trusted() {
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            tell.send((tls_server("localhost").await, tls_server("localhost").await)).unwrap();
            std::future::pending::<()>().await;
        });
    });
    let (server, stranger) = told.recv().unwrap();
    let (said, key) = asked(&server, &server);
    assert!(said.contains("status 418"), "{said}");
    assert_eq!(key.known(), Some(server.key_hash.as_str()));
    let (said, key) = asked(&server, &stranger);
    assert!(said.starts_with("no secure connection to `localhost`"), "{said}");
    assert_eq!(key.known(), None);
}
