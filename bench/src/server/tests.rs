use super::*;
use crate::peer::Request;

fn answer(server: &mut Server, line: &[u8]) -> String {
    let mut output = Vec::new();
    server.answer(line, &mut output).unwrap();
    String::from_utf8(output).unwrap()
}

#[test]
fn a_call_is_answered_with_its_text() {
    let mut server = Server::new(2, 0);
    for size in [0, 100, 10_000] {
        let mut request = Request::call(0, size);
        let line = request.numbered(7).to_vec();
        let told = answer(&mut server, line.strip_suffix(b"\n").unwrap());
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        assert_eq!(told["id"], 1_000_000_007);
        assert_eq!(told["result"]["content"][0]["text"].as_str().map(str::len), Some(size));
    }
    let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{COUNT}"}}"#);
    assert!(answer(&mut server, line.as_bytes()).contains(r#""result":3"#));
}

#[test]
fn lists_come_in_pages() {
    let mut server = Server::new(PAGE_TOOLS + 1, 0);
    let first = br#"{"jsonrpc":"2.0","id":"a","method":"tools/list","params":{}}"#;
    let told: serde_json::Value = serde_json::from_str(&answer(&mut server, first)).unwrap();
    assert_eq!(told["id"], "a");
    assert_eq!(told["result"]["tools"].as_array().map(Vec::len), Some(PAGE_TOOLS));
    assert_eq!(told["result"]["nextCursor"], "1");
    let second = br#"{"jsonrpc":"2.0","id":"a","method":"tools/list","params":{"cursor":"1"}}"#;
    let told: serde_json::Value = serde_json::from_str(&answer(&mut server, second)).unwrap();
    assert_eq!(told["result"]["tools"].as_array().map(Vec::len), Some(1));
    assert_eq!(told["result"]["nextCursor"], serde_json::Value::Null);
}

#[test]
fn a_change_is_told_before_it_is_answered_and_changes_one_tool() {
    let mut server = Server::new(3, 0);
    let before = server.pages.concat();
    let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{CHANGE}"}}"#);
    let told = answer(&mut server, line.as_bytes());
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines, [CHANGED, r#"{"jsonrpc":"2.0","id":1,"result":1}"#]);
    let after = server.pages.concat();
    assert_ne!(before, after);
    assert_eq!(after, Server::new(3, 1).pages.concat());
}

#[test]
fn a_notification_is_not_answered() {
    let line = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(answer(&mut Server::new(1, 0), line), "");
}
