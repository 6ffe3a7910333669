use super::*;
use crate::scenario::phase::Phase;
use serde_json::{Value, json};

/// A server for one case, with its output in memory and its own state file.
struct Played {
    server: Mutex<Server<Vec<u8>>>,
    stage: Stage,
    folder: tempfile::TempDir,
}

impl Played {
    fn new(name: &str) -> Played {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let case = battery::find(name).unwrap().unwrap();
        let server = Mutex::new(Server::new(case, Stage::new(&path), Vec::new()));
        Played { server, stage: Stage::new(&path), folder }
    }

    fn hear(&self, message: &Value) -> Vec<Value> {
        self.hear_bytes(message.to_string().as_bytes())
    }

    fn hear_bytes(&self, bytes: &[u8]) -> Vec<Value> {
        let mut server = self.server.lock().unwrap();
        server.hear(bytes).unwrap();
        let said = String::from_utf8(std::mem::take(server.output_for_tests())).unwrap();
        said.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn ask(&self, method: &str, params: &Value) -> Value {
        let request = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        let mut said = self.hear(&request);
        assert_eq!(said.last().unwrap()["id"], 7, "{said:?}");
        said.pop().unwrap()
    }

    fn tools(&self) -> Value {
        self.ask("tools/list", &json!({}))["result"]["tools"].clone()
    }
}

const LIST_CHANGED: &str = "notifications/tools/list_changed";

#[test]
fn every_case_is_served_before_and_after() {
    assert_eq!(battery::names().count(), 14);
    for name in battery::names() {
        let case = battery::find(name).unwrap().unwrap();
        let played = Played::new(name);
        assert_eq!(played.tools(), case.before["tools"], "{name}");
        played.stage.set(Phase::After).unwrap();
        assert_eq!(played.tools(), case.after["tools"], "{name}");
        played.stage.set(Phase::Before).unwrap();
        assert_eq!(played.tools(), case.before["tools"], "{name}");
        let said = played.ask("tools/call", &json!({ "name": "make_report" }));
        assert_eq!(said["result"]["content"][0]["text"], "make_report got {}", "{name}");
    }
    assert!(battery::find("unheard_of").unwrap().is_none());
}

#[test]
fn a_change_is_told_to_those_who_began_a_session() {
    let played = Played::new("added_required");
    played.stage.set(Phase::After).unwrap();
    assert_eq!(played.hear(&json!({ "method": "notifications/x" })), Vec::<Value>::new());
    played.ask("initialize", &json!({ "protocolVersion": "2025-06-18" }));
    played.stage.set(Phase::Before).unwrap();
    let said = played.hear(&json!({ "method": "notifications/x" }));
    assert_eq!(said.len(), 1);
    assert_eq!(said[0]["method"], LIST_CHANGED);
    assert_eq!(played.hear(&json!({ "method": "notifications/x" })), Vec::<Value>::new());
}

#[test]
fn a_change_is_told_to_those_who_subscribed_until_they_cancel() {
    let played = Played::new("added_required");
    let listen = |wants: bool| json!({ "id": "s", "method": "subscriptions/listen", "params": { "notifications": { "toolsListChanged": wants } } });
    let said = played.hear(&listen(false));
    assert_eq!(said[0]["params"]["notifications"], json!({}));
    played.stage.set(Phase::After).unwrap();
    assert_eq!(played.hear(&json!({ "method": "notifications/x" })), Vec::<Value>::new());
    let said = played.hear(&listen(true));
    assert_eq!(said[0]["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(said[0]["params"]["notifications"], json!({ "toolsListChanged": true }));
    played.stage.set(Phase::Before).unwrap();
    let said = played.hear(&json!({ "method": "notifications/x" }));
    assert_eq!(said[0]["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "s");
    played.hear(&json!({ "method": "notifications/cancelled", "params": { "requestId": "s" } }));
    played.stage.set(Phase::After).unwrap();
    assert_eq!(played.hear(&json!({ "method": "notifications/x" })), Vec::<Value>::new());
}

#[test]
fn a_withheld_change_is_made_without_a_notification() {
    let played = Played::new("added_required");
    played.server.lock().unwrap().is_withholding = true;
    played.ask("initialize", &json!({}));
    let before = played.tools();
    played.stage.set(Phase::After).unwrap();
    assert_eq!(played.hear(&json!({ "method": "notifications/x" })), Vec::<Value>::new());
    assert_ne!(played.tools(), before);
}

#[test]
fn the_change_comes_with_the_call_that_was_named_and_not_before() {
    let played = Played::new("added_required");
    played.server.lock().unwrap().change_on_call = Some(2);
    played.ask("initialize", &json!({}));
    let call = json!({ "id": 1, "method": "tools/call", "params": { "name": "make_report" } });
    assert_eq!(played.hear(&call).len(), 1);
    assert_eq!(played.stage.phase(), None);
    let said = played.hear(&call);
    assert_eq!((&said[0]["id"], &said[1]["method"]), (&json!(1), &json!(LIST_CHANGED)));
    // A new process sees the same phase.
    assert_eq!(played.stage.phase(), Some(Phase::After));
}

#[test]
fn both_eras_are_spoken() {
    let played = Played::new("added_required");
    for (asked, given) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("tomorrow", "2025-11-25"),
    ] {
        let said = played.ask("initialize", &json!({ "protocolVersion": asked }));
        assert_eq!(said["result"]["protocolVersion"], given);
        assert_eq!(said["result"]["capabilities"], json!({ "tools": { "listChanged": true } }));
    }
    let said = played.ask("server/discover", &json!({}));
    assert_eq!(said["result"]["supportedVersions"], json!(["2026-07-28"]));
}

#[test]
fn what_has_an_output_schema_is_answered_as_it_says() {
    let played = Played::new("output_changed");
    let call = || played.ask("tools/call", &json!({ "name": "make_report" }))["result"].clone();
    assert!(call()["structuredContent"]["url"].is_string());
    played.stage.set(Phase::After).unwrap();
    assert!(call()["structuredContent"]["location"].is_string());
    let without = Played::new("added_required");
    let said = without.ask("tools/call", &json!({ "name": "make_report" }));
    assert!(said["result"].get("structuredContent").is_none());
}

#[test]
fn what_it_does_not_know_is_refused() {
    let played = Played::new("added_required");
    assert_eq!(played.ask("prompts/list", &json!({}))["error"]["code"], -32601);
    assert_eq!(played.ask("tools/call", &json!({ "name": "x" }))["error"]["code"], -32602);
    assert_eq!(played.hear(&json!([]))[0]["error"]["code"], -32600);
    assert_eq!(played.hear_bytes(b"}{")[0]["error"]["code"], -32700);
    assert_eq!(played.hear(&json!({ "id": 1, "result": {} })), Vec::<Value>::new());
}

#[test]
fn subscriptions_are_bounded() {
    let played = Played::new("added_required");
    let listen = |id: usize| json!({ "id": id, "method": "subscriptions/listen", "params": { "notifications": { "toolsListChanged": true } } });
    for id in 0..server::MAX_SUBSCRIPTIONS {
        assert!(played.hear(&listen(id))[0].get("error").is_none());
    }
    assert_eq!(played.hear(&listen(99))[0]["error"]["code"], -32600);
}

#[test]
fn lines_are_bounded() {
    let played = Played::new("added_required");
    let limit = usize::try_from(MAX_LINE_BYTES).unwrap();
    let mut line = vec![b' '; limit];
    line[limit - 1] = b'\n';
    assert_eq!(serve(&played.server, line.as_slice()).unwrap(), Exit::Fine);
    line.insert(0, b' ');
    assert_eq!(serve(&played.server, line.as_slice()).unwrap_err().exit, Exit::Unreachable);
}

#[test]
fn every_byte_that_is_read_is_recorded() {
    let played = Played::new("added_required");
    let path = played.folder.path().join("record");
    for bytes in [b"{\"id\":1}\r\n \n".as_slice(), b"half a line"] {
        let record = Some(open_record(&path).unwrap());
        assert_eq!(serve(&played.server, Recorded { input: bytes, record }).unwrap(), Exit::Fine);
    }
    assert_eq!(std::fs::read(path).unwrap(), b"{\"id\":1}\r\n \nhalf a line");
}
