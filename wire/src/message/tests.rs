use super::*;
use crate::envelope::{Kind, Scanned, scan};
use contract::json::Document;

/// The reply to a request with the id 7.
fn reply_to(method: &str, client: &str) -> String {
    let client = ClientCapabilities::read(client.as_bytes()).unwrap();
    let request = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}"}}"#);
    let Ok(Scanned::Message(envelope)) = scan(request.as_bytes()) else { panic!("{request}") };
    let Kind::Request { id, method } = envelope.kind else { panic!("{request}") };
    reply(&id, &method, &client)
}

#[test]
fn an_id_is_compared_by_type_and_value() {
    let id = RequestIds::default().next().unwrap();
    let is_ours = |raw: &str| {
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{raw},"result":{{}}}}"#);
        let Ok(Scanned::Message(envelope)) = scan(answer.as_bytes()) else { panic!("{answer}") };
        let Kind::Response { id: known, .. } = envelope.kind else { panic!("{answer}") };
        known.is_some_and(|known| id.is(&known))
    };
    assert!(is_ours(id.raw()));
    assert!(is_ours(&id.raw().replace('-', "\\u002d")));
    for other in ["1", "null", "\"\"", &id.raw().replace('-', "_")] {
        assert!(!is_ours(other), "{other}");
    }
}

#[test]
fn ids_are_random_and_never_repeated() {
    let mut ids = RequestIds::default();
    let (first, second) = (ids.next().unwrap(), ids.next().unwrap());
    let text = first.raw().trim_matches('"');
    assert_eq!(text.split_once('-').map(|(random, count)| (random.len(), count)), Some((32, "1")));
    assert_ne!(first.raw().get(..33), second.raw().get(..33));
}

#[test]
fn a_ping_is_answered_and_other_requests_are_declined() {
    assert_eq!(reply_to("ping", "{}"), r#"{"jsonrpc":"2.0","id":7,"result":{}}"#);
    for method in ["roots/list", "sampling/createMessage", "elicitation/create", "other"] {
        assert!(reply_to(method, "{}").contains(r#""id":7,"error":{"code":-32601,"#));
    }
}

#[test]
fn what_was_declared_is_answered_as_if_nobody_were_there() {
    let check = |client: &str, method: &str, expected: &str| {
        let said = reply_to(method, client);
        assert!(said.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":7,{expected}"#)), "{said}");
    };
    let all = r#"{"roots":{"listChanged":true},"sampling":{},"elicitation":{}}"#;
    check(all, "roots/list", r#""result":{"roots":[]}}"#);
    check(all, "elicitation/create", r#""result":{"action":"cancel"}}"#);
    check(all, "sampling/createMessage", r#""error":{"code":-1,"#);
    check(all, "ping", r#""result":{}}"#);
    check(all, "tasks/list", r#""error":{"code":-32601,"#);
    check(r#"{"sampling":{}}"#, "roots/list", r#""error":{"code":-32601,"#);
    check(r#"{"roots":{}}"#, "elicitation/create", r#""error":{"code":-32601,"#);
    check(r#"{"roots":{}}"#, "sampling/createMessage", r#""error":{"code":-32601,"#);
}

#[test]
fn a_request_is_one_line_whatever_its_parameters() {
    let id = RequestIds::default().next().unwrap();
    let params = serde_json::json!({ "cursor": "a\nb\u{2028}" });
    let request = Request::new(id, "tools/list", &params.to_string());
    assert!(!request.text.contains('\n'));
    let document = Document::parse(&request.text).unwrap();
    let cursor = document.root().get("params").and_then(|params| params.get("cursor"));
    assert!(cursor.is_some_and(|cursor| cursor.is_text("a\nb\u{2028}")));
}
