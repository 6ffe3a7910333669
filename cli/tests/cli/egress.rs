//! No command sends anything on its own: every command runs in a network namespace whose only
//! connection is monitored.

use crate::bench::*;
use crate::secrets::{Stage, every_command, with};
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use testing::watched::{Packet, WORLD, Watched, send};

/// Separates the part that must be silent from the part that must be seen.
const CONTROLS: &[u8] = b"from here on the watcher has to see something";

#[test]
fn with_nothing_configured_no_command_sends_a_packet() {
    Watched {
        test: "egress::with_nothing_configured_no_command_sends_a_packet",
        world: &|| (),
        product: &|| {
            every_command_once();
            a_gateway_and_a_directory_that_serve();
            controls();
            String::new()
        },
        check: &|(), packets, _| {
            let controls = packets.iter().position(|packet| packet.payload == CONTROLS);
            let (before, after) = packets.split_at(controls.expect("the watcher sees a datagram"));
            assert!(before.is_empty(), "packets that left: {before:#?}");
            is_seen(after, "a name look-up", |packet| {
                packet.is_name_look_up() && contains(&packet.payload, b"\x07control\x07example")
            });
            for family in ["IPv4", "IPv6"] {
                is_seen(after, family, |packet| {
                    packet.to.is_some_and(|to| to.is_ipv6()) == (family == "IPv6")
                        && packet.to_port == 9
                        && packet.protocol == Some(6)
                });
            }
        },
    }
    .run();
}

#[track_caller]
fn is_seen(packets: &[Packet], what: &str, is_it: impl Fn(&Packet) -> bool) {
    assert!(packets.iter().any(is_it), "the watcher did not see {what}: {packets:#?}");
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Runs every command of the binary on a home with a server whose tool changed. Addresses that
/// commands need are on loopback.
fn every_command_once() {
    let stage = Stage::new();
    let words = ["npx", "-y", "reports-mcp"].map(str::to_owned);
    stage.keep(with(stage.command(&["pin"]), &words), 0);
    stage.host(&words);
    stage.server.lists(&json!([report_tool_with_owner()]));
    stage.keep(with(stage.command(&["check"]), &words), 10);
    stage.host(&words);
    let status = stage.run(&["status", "--json"], 0).json();
    let id = status["servers"][0]["id"].as_str().unwrap();
    stage.run(&["history", id], 0);
    stage.run(&["show", id], 0);
    every_command::run(&stage, &words);
    assert_eq!(stage.pages.not_run(), [""; 0], "commands that this test does not run");
}

/// Runs a gateway that forwards a call, and a directory that serves a page.
fn a_gateway_and_a_directory_that_serve() {
    let bench = Bench::new();
    let server = FolderServer::new(&bench, &json!([report_tool()]));
    server.answers("tools/call", json!({ "content": [] }).to_string());
    let unknown = json!({"code": -32601, "message": "no such method"});
    server.sends(
        "server/discover",
        format!("{{\"jsonrpc\":\"2.0\",\"id\":$ID,\"error\":{unknown}}}"),
    );
    let launch = json!(server.launch().iter().map(|it| it.to_str().unwrap()).collect::<Vec<_>>());
    bench.file("all.cedar", "@id(\"all\") permit (principal, action, resource);");
    let settings = format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\n[auth.keys]\nenabled = true\n[policy]\nfiles = [\"*.cedar\"]\n\
         [[server]]\nid = \"reports\"\ntrust = \"internal\"\nrisk = \"low\"\ncommand = {launch}\n"
    );
    bench.file("gateway.toml", settings);
    let key = bench.run(["key", "create", "--sub", "ada", "--json", "--config", "gateway.toml"]);
    let key = key.exits(0).json()["key"].as_str().unwrap().to_owned();
    let gateway = Serving::start(bench.command(["gateway", "--config", "gateway.toml"]));
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "reports__make_report", "arguments": {"title": "t"}, "_meta": meta}});
    let headers = format!(
        "authorization: Bearer {key}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n\
         mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: reports__make_report\r\n"
    );
    let answer = gateway.ask("POST /mcp", &headers, &call.to_string());
    assert!(answer.contains("\"result\""), "{answer}");
    drop(gateway);

    bench.file(
        "directory.toml",
        "public_url = \"http://directory.example\"\n[network]\nallow_private = true\n",
    );
    bench.file("targets.txt", "com.example/weather http://127.0.0.1:1/mcp\n");
    let crawl = ["crawl", "--targets", "targets.txt", "--config", "directory.toml"];
    bench.run(crawl).exits(0).says("com.example/weather");
    let words = ["directory", "--listen", "127.0.0.1:0", "--config", "directory.toml"];
    let directory = Serving::start(bench.command(words));
    for path in ["GET /", "GET /stats", "GET /log/checkpoint"] {
        let answer = directory.ask(path, "", "");
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
    }
}

/// Requested connections are seen: a name lookup, and connections over IPv4 and IPv6.
fn controls() {
    send(CONTROLS);
    let bench = Bench::new();
    let world = format!("https://{WORLD}:9/mcp");
    for url in ["https://control.example/mcp", &world, "https://[2001:db8:117::1]:9/mcp"] {
        bench.run(["capture", "--allow-private", "--url", url]).exits(11);
    }
}

/// A listening process, ended on drop.
struct Serving {
    child: Child,
    address: String,
}

impl Serving {
    fn start(mut command: Command) -> Serving {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.strip_prefix("listening on ").unwrap().split(": ").next().unwrap();
        Serving { child, address: address.trim().to_owned() }
    }

    fn ask(&self, what: &str, headers: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let (address, length) = (&self.address, body.len());
        let request = format!(
            "{what} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
