//! State in one node's process can be reached through every node.

use crate::fleet::{Database, Fleet, count, count_soon};
use crate::http_client::Caller;
use serde_json::{Value, json};
use std::io::Write;
use std::net::TcpStream;
use testing::{wait_for, wait_until};

#[test]
fn a_session_is_served_by_the_node_that_began_it_whichever_node_is_asked() {
    let Some(database) = Database::shared() else { return };
    let fleet = Fleet::start(database, 3, "", "session");
    let caller = fleet.caller(0);
    let (process, first) = count_soon(&caller);
    for (node, expected) in [(1, first + 1), (2, first + 2), (0, first + 3), (1, first + 4)] {
        let at = caller.at(fleet.nodes[node].address);
        assert_eq!(count(&at), (process.clone(), expected), "through node {node}");
    }
    // Another session has its own process.
    let other = fleet.caller(1);
    let (another, _) = count_soon(&other);
    assert_ne!(another, process);
    // Its stream is opened at its own node, through another one.
    let second = caller.at(fleet.nodes[1].address);
    let mut stream = second.listen();
    let head = stream.head();
    assert!(head[0].contains(" 200 "), "{head:?}");
    assert!(head.iter().any(|line| line.to_lowercase().contains("text/event-stream")), "{head:?}");
    // Ended through one node, the session and its stream end at every node.
    let ended = second.send("DELETE", "").finish();
    assert_eq!(ended.status, 204, "{}", ended.body);
    assert!(stream.rest().contains("keep-alive"), "the stream ends with the session");
    for node in &fleet.nodes {
        let refused = caller.at(node.address).ask("ping", &json!({}));
        assert_eq!(refused.status, 404, "{}", refused.body);
    }
    assert_eq!(count(&other.at(fleet.nodes[2].address)).0, another);
}

#[test]
fn a_session_is_no_other_callers_through_any_node() {
    let Some(database) = Database::shared() else { return };
    let fleet = Fleet::start(database, 2, "", "session");
    let made =
        fleet.run(0, &["key", "create", "--sub", "eve", "--json", "--config", "gateway.toml"]);
    let eve = made.exits(0).json()["key"].as_str().unwrap().to_owned();
    let caller = fleet.caller(0);
    count_soon(&caller);
    wait_until("the key to count", || {
        Caller::new(fleet.nodes[1].address, &eve).initialize().status == 200
    });
    let stolen = Caller { key: eve, ..caller.at(fleet.nodes[1].address) };
    assert_eq!(stolen.ask("tools/list", &json!({})).status, 404);
    assert_eq!(stolen.send("DELETE", "").finish().status, 404);
    count(&caller.at(fleet.nodes[1].address));
}

#[test]
fn a_caller_has_one_process_of_a_server_in_all_sessions_and_nodes() {
    let Some(database) = Database::shared() else { return };
    let fleet = Fleet::start(database, 3, "", "principal");
    let callers: Vec<Caller> = (0..3).map(|node| fleet.caller(node)).collect();
    let (process, mut expected) = count_soon(&callers[0]);
    for (session, node) in [(1, 1), (2, 2), (1, 0), (2, 1), (0, 2)] {
        let at = callers[session].at(fleet.nodes[node].address);
        expected += 1;
        assert_eq!(count_soon(&at), (process.clone(), expected), "session {session}, node {node}");
    }
    // Each era has its own process, on the same node.
    let counted: Vec<(String, u64)> = (fleet.nodes.iter())
        .map(|node| stateless(&Caller::new(node.address, &fleet.key), "count"))
        .map(|message| crate::fleet::counted(&message))
        .collect();
    assert!(counted.iter().all(|(other, _)| *other == counted[0].0), "{counted:?}");
    assert_eq!(counted.iter().map(|(_, number)| *number).collect::<Vec<_>>(), [1, 2, 3]);
    expected += 3;
    // Each call is recorded once, by the node that decided on it.
    let receipts = fleet.admin(1, "/receipts?server=counter&tool=count&limit=1000");
    let recorded = receipts["receipts"].as_array().unwrap();
    let allowed = recorded.iter().filter(|one| one["decision"]["result"] == "allow").count();
    assert_eq!(allowed as u64, expected, "{receipts}");
}

/// A call in the stateless era.
fn stateless(caller: &Caller, tool: &str) -> Value {
    let name = format!("counter__{tool}");
    let body = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "name": name,
            "arguments": {},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
            },
        },
    });
    let headers = format!(
        "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: {name}\r\n"
    );
    caller.send_with("POST", &headers, &body.to_string()).finish().message()
}

#[test]
fn a_call_that_another_node_carries_can_be_cancelled_and_streams() {
    let Some(database) = Database::shared() else { return };
    let fleet = Fleet::start(database, 2, "", "principal");
    let (first, second) = (fleet.caller(0), fleet.caller(1));
    let (process, before) = count_soon(&first);
    count_soon(&second);
    // The response is a stream whose first event arrives while the call is in progress.
    let mut asked = second.begin_to_ask("tools/call", &json!({"name": "counter__wait"}));
    let head = asked.head();
    assert!(head.iter().any(|line| line.to_lowercase().contains("text/event-stream")), "{head:?}");
    let cancel = json!({
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": 1},
    });
    // Cancelled through a different node than the one that received the call.
    let cancelled = second.at(fleet.nodes[0].address).send("POST", &cancel.to_string()).finish();
    assert_eq!(cancelled.status, 202);
    let rest = asked.rest();
    assert!(rest.contains("waiting"), "{rest}");
    assert_eq!(count(&first), (process, before + 2));
}

#[test]
fn what_a_process_says_outside_of_a_call_is_heard_at_every_node_and_by_its_caller_alone() {
    let Some(database) = Database::shared() else { return };
    let fleet = Fleet::start(database, 3, "", "principal");
    let words = ["key", "create", "--json", "--config", "gateway.toml", "--sub", "other"];
    let other = fleet.run(0, &words).exits(0).json()["key"].as_str().unwrap().to_owned();
    // Each caller's process is at the first node; the listening session is the second node's,
    // reached through the third.
    let listening = |key: &str| {
        let at_first = Caller::begin(fleet.nodes[0].address, key);
        let (process, _) = count_soon(&at_first);
        let session = Caller::begin(fleet.nodes[1].address, key);
        assert_eq!(count_soon(&session).0, process);
        let mut stream = session.at(fleet.nodes[2].address).listen();
        let head = stream.head();
        assert!(head[0].contains("200"), "{head:?}");
        (at_first, process, stream)
    };
    let (first, own, mut stream) = listening(&fleet.key);
    let (second, others, mut other_stream) = listening(&other);
    for (caller, process, stream) in
        [(first, own, &mut stream), (second, others, &mut other_stream)]
    {
        // A node learns within a second that another one has joined.
        let heard = std::thread::scope(|scope| {
            let hearing = scope.spawn(|| stream.event());
            wait_until("the message to be heard", || {
                caller.call("counter__count", &json!({ "announce": true }));
                hearing.is_finished()
            });
            hearing.join().unwrap()
        });
        assert_eq!(heard["params"]["data"], format!("said by {process}"), "{heard}");
    }
}

#[test]
fn what_a_node_had_that_is_gone_begins_again_elsewhere() {
    let Some(database) = Database::shared() else { return };
    let mut fleet = Fleet::start(database, 2, "", "principal");
    let (lost, kept) = (fleet.caller(0), fleet.caller(1));
    let (process, _) = count_soon(&lost);
    assert_eq!(count_soon(&kept).0, process);
    fleet.nodes[0].kill();
    let at = lost.at(fleet.nodes[1].address);
    let mut codes = Vec::new();
    wait_until("the session to be over", || {
        let response = at.ask("ping", &json!({}));
        codes.push(response.status);
        response.status == 404
    });
    assert!(codes.iter().all(|status| [200, 404].contains(status)), "{codes:?}");
    // The other caller continues with a new process. Until the node counts as gone, calls return an
    // error.
    let (another, number) = wait_for("the server to run again", || {
        let message = kept.call("counter__count", &json!({}));
        match message.get("result") {
            Some(_) => Some(crate::fleet::counted(&message)),
            None => {
                assert_eq!(message["error"]["code"], -32011, "{message}");
                None
            }
        }
    });
    assert_ne!(another, process);
    assert_eq!(number, 1);
    let receipts = fleet.admin(1, "/receipts");
    assert_eq!(receipts["missing"], json!([fleet.nodes[0].peer]), "{receipts}");
}

#[test]
fn a_node_that_ends_in_order_is_gone_at_once() {
    let Some(database) = Database::shared() else { return };
    let mut fleet = Fleet::start(database, 2, "", "session");
    let caller = fleet.caller(0);
    count_soon(&caller);
    fleet.nodes[0].end();
    let at = caller.at(fleet.nodes[1].address);
    wait_until("the session to be over", || at.ask("ping", &json!({})).status == 404);
}

#[test]
fn receipts_of_all_nodes_are_listed_by_each() {
    let Some(database) = Database::shared() else { return };
    let fleet = Fleet::start(database, 3, "", "session");
    for node in 0..3 {
        count_soon(&fleet.caller(node));
    }
    wait_until("every node to know the others", || {
        (0..3).all(|node| fleet.admin(node, "/receipts")["nodes"].as_array().unwrap().len() == 2)
    });
    for node in 0..3 {
        let document = fleet.admin(node, "/receipts?server=counter&decision=allowed&limit=1000");
        let receipts = document["receipts"].as_array().unwrap();
        let chains: std::collections::BTreeSet<&str> =
            receipts.iter().map(|one| one["chain"].as_str().unwrap()).collect();
        assert!(chains.len() >= 3, "{document}");
        let moments: Vec<&str> = receipts.iter().map(|one| one["ts"].as_str().unwrap()).collect();
        assert!(moments.is_sorted_by(|one, next| one >= next), "{moments:?}");
        assert_eq!(document["missing"], json!([]));
        let one = fleet.admin(node, "/receipts?limit=1");
        assert_eq!(one["receipts"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn a_connection_to_the_peer_address_without_the_cluster_key_gets_nothing() {
    let Some(database) = Database::shared() else { return };
    let fleet = Fleet::start(database, 1, "", "session");
    let peer = &fleet.nodes[0].peer;
    let request = b"GET /healthz HTTP/1.1\r\nhost: a\r\nholdpoint-relay-to: 0\r\n\r\n".as_slice();
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".as_slice();
    for sent in [request, preface, b"\x16\x03\x01\xff\xff"] {
        let mut stream = TcpStream::connect(peer).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        stream.write_all(sent).unwrap();
        let mut heard = Vec::new();
        let _ = std::io::Read::read_to_end(&mut stream, &mut heard);
        assert!(!heard.starts_with(b"HTTP") && heard.len() < 64, "{heard:?}");
    }
    wait_until("the refusal to be recorded", || {
        let receipts = fleet.admin(0, "/receipts?events=true");
        receipts.to_string().contains("did not prove the key of the nodes")
    });
}
