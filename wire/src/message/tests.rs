use super::*;
use contract::json::Document;

fn check(text: &str, expected: &str) {
    let document = Document::parse(text).unwrap();
    let said = match classify(document.root()) {
        Ok(Incoming::Response { id, outcome: Outcome::Result(result) }) => {
            format!("result {id:?} {result:?}")
        }
        Ok(Incoming::Response { id, outcome: Outcome::Error(error) }) => {
            format!("error {id:?} {error:?}")
        }
        Ok(Incoming::Request { id, method }) => format!("request {id:?} {method}"),
        Ok(Incoming::Notification) => "notification".to_owned(),
        Err(error) => error.to_string(),
    };
    assert_eq!(said, expected, "{text}");
}

#[test]
fn messages_are_told_apart() {
    check(r#"{"jsonrpc":"2.0","id":"a","result":{"x":1}}"#, r#"result Some("a") {"x":1}"#);
    check(r#"{"jsonrpc":"2.0","id":null,"error":{"code":1}}"#, r#"error None {"code":1}"#);
    check(r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#, "request 7 ping");
    check(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#, "notification");
}

#[test]
fn what_is_no_message_is_said_to_be_none() {
    let none = "not a JSON-RPC 2.0 message";
    check(r#"{"level":"info"}"#, none);
    check(r#"{"id":"a","result":{}}"#, none);
    check(r#"{"jsonrpc":"1.0","id":"a","result":{}}"#, none);
    check(r#"{"jsonrpc":"2.0","id":"a"}"#, none);
    check(r#"{"jsonrpc":"2.0","id":["a"],"result":{}}"#, none);
    check(r#"{"jsonrpc":"2.0","method":7}"#, none);
    check("7", none);
    check(r#"[{"jsonrpc":"2.0","id":"a","result":{}}]"#, "a batch");
}

#[test]
fn what_two_readers_could_read_differently_is_ambiguous() {
    for text in [
        r#"{"jsonrpc":"2.0","id":"a","result":{},"Result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"a","re\u017fult":{}}"#,
        r#"{"jsonrpc":"2.0","id":"a","result":{},"error":{}}"#,
        r#"{"jsonrpc":"2.0","id":"a","method":"ping","result":{}}"#,
    ] {
        let document = Document::parse(text).unwrap();
        assert!(classify(document.root()).unwrap_err().is_ambiguous(), "{text}");
    }
}

#[test]
fn an_id_is_compared_by_type_and_value() {
    let id = RequestIds::default().next().unwrap();
    let ours = format!("\"{}\"", id.as_str());
    assert!(id.is(Document::parse(&ours).unwrap().root()));
    for other in ["1", "null", "\"\"", "[]", &ours.to_uppercase().replace('-', "_")] {
        assert!(!id.is(Document::parse(other).unwrap().root()), "{other}");
    }
}

#[test]
fn ids_are_random_and_never_repeated() {
    let mut ids = RequestIds::default();
    let (first, second) = (ids.next().unwrap(), ids.next().unwrap());
    assert_eq!(
        first.as_str().split_once('-').map(|(random, count)| (random.len(), count)),
        Some((32, "1"))
    );
    assert_ne!(first.as_str().get(..32), second.as_str().get(..32));
}

#[test]
fn a_ping_is_answered_and_other_requests_are_declined() {
    let id = Document::parse("7").unwrap();
    let client = ClientCapabilities::default();
    assert_eq!(reply(id.root(), "ping", &client), r#"{"jsonrpc":"2.0","id":7,"result":{}}"#);
    for method in ["roots/list", "sampling/createMessage", "elicitation/create", "other"] {
        assert!(reply(id.root(), method, &client).contains(r#""id":7,"error":{"code":-32601,"#));
    }
}

#[test]
fn what_was_declared_is_answered_as_if_nobody_were_there() {
    let id = Document::parse("7").unwrap();
    let check = |client: &str, method: &str, expected: &str| {
        let client = ClientCapabilities::read(client.as_bytes()).unwrap();
        let said = reply(id.root(), method, &client);
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
    let request = Request::new(id, "tools/list", &params);
    assert!(!request.text.contains('\n'));
    let document = Document::parse(&request.text).unwrap();
    let cursor = document.root().get("params").and_then(|params| params.get("cursor"));
    assert!(cursor.is_some_and(|cursor| cursor.is_text("a\nb\u{2028}")));
}
