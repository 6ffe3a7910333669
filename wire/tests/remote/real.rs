//! A real server over streamable HTTP: concurrent calls, its own requests, and a lost connection.
//!
//! `scripts/install-test-tools` installs it into `HOLDPOINT_TEST_SERVERS`, or else
//! `.cache/servers`. If it is missing, the test prints that; with `CI=true` that is a failure.
#![cfg(unix)]

use crate::client::{Client, Heard, endpoint, notification, request};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use testing::ListeningServer;
use wire::remote::{Outbound, RemoteLimits};

/// A proxy that can cut all of its connections.
struct Cutter {
    port: u16,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Cutter {
    fn before(server: u16) -> Cutter {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let open = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::clone(&open);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let far = TcpStream::connect(("127.0.0.1", server)).unwrap();
                for (from, to) in [(&client, &far), (&far, &client)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    std::thread::spawn(move || pass_on(from, to));
                }
                connections.lock().unwrap().extend([client, far]);
            }
        });
        Cutter { port, open }
    }

    fn cut(&self) {
        for stream in self.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn pass_on(mut from: TcpStream, mut to: TcpStream) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

fn with_params(id: u32, method: &str, params: &Value) -> Outbound {
    let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    Outbound { body: body.to_string().into_bytes(), ..request(id, method) }
}

fn call(id: u32, tool: &str, arguments: &Value) -> Outbound {
    let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": id}});
    with_params(id, "tools/call", &params)
}

/// Receives messages up to the first that matches, ignoring the others.
fn hear_until(client: &Client, wanted: impl Fn(&Value) -> bool) -> Value {
    loop {
        match client.hear() {
            Heard::Message(text) => {
                let message = serde_json::from_str(&text).unwrap();
                if wanted(&message) {
                    return message;
                }
            }
            other => panic!("{other:?}"),
        }
    }
}

fn converse(release: &Path) {
    let server = ListeningServer::start(release);
    let cutter = Cutter::before(server.port);
    let url = format!("http://127.0.0.1:{}/mcp", cutter.port);
    let client = Client::with(endpoint(&url), RemoteLimits::default());
    let params = json!({
        "protocolVersion": "2025-06-18",
        "capabilities": {"roots": {}},
        "clientInfo": {"name": "test", "version": "1"},
    });
    client.send(with_params(0, "initialize", &params)).unwrap();
    hear_until(&client, |message| message["id"] == 0);
    client.send(notification("notifications/initialized", "{}")).unwrap();
    client.send(with_params(1, "tools/list", &json!({}))).unwrap();
    let listed = hear_until(&client, |message| message["id"] == 1);
    let tools = listed["result"]["tools"].as_array().unwrap();
    let long = tools.iter().map(|tool| tool["name"].as_str().unwrap());
    let long = long.into_iter().find(|name| name.to_lowercase().contains("long")).unwrap();

    client.send(call(2, long, &json!({"duration": 3, "steps": 6}))).unwrap();
    let progress = |message: &Value| message["params"]["progressToken"] == 2;
    hear_until(&client, progress);
    client.send(call(3, "echo", &json!({"message": "hello"}))).unwrap();
    let echoed = hear_until(&client, |message| !message["id"].is_null() && message["id"] != "x");
    assert_eq!(echoed["id"], 3, "the fast call was not kept waiting: {echoed}");
    assert!(echoed["result"]["content"][0]["text"].as_str().unwrap().contains("hello"));
    cutter.cut();
    let finished = hear_until(&client, |message| message["id"] == 2);
    assert!(finished["result"]["content"][0]["text"].is_string(), "{finished}");
    client.send(call(4, "echo", &json!({"message": "again"}))).unwrap();
    hear_until(&client, |message| message["id"] == 4);
    let rest = client.finish();
    assert!(rest.iter().all(|heard| matches!(heard, Heard::Message(_))), "{rest:?}");
}

#[test]
fn server_everything_is_spoken_to_and_a_cut_connection_loses_nothing() {
    for release in testing::releases("server-everything").unwrap_or_default() {
        converse(&release);
    }
}
