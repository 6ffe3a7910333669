//! Streams that a client resumes, and questions that end with the request they belong to.

use crate::stage::{Setting, Stage};
use serde_json::{Value, json};

const PATH: &str = "/servers/reports/mcp";
const CALL: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"read_report","arguments":{"path":"a"}}}"#;

/// A server that ends the stream of a call after its first event, and sends the answer to a client
/// that reconnects.
async fn with_pauses() -> Stage {
    let stage = Stage::open(Setting::default()).await;
    let answer =
        r#"{"jsonrpc":"2.0","id":"ID","result":{"content":[{"type":"text","text":"later"}]}}"#;
    let mut script = stage.script.lock().unwrap();
    let first = "id: e1\nretry: 60\ndata: \n\n".to_owned();
    script.instead.insert("tools/call".to_owned(), (200, "text/event-stream", first));
    let rest = format!("id: e2\ndata: {answer}\n\n");
    script.instead.insert("GET".to_owned(), (200, "text/event-stream", rest));
    drop(script);
    stage
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_goes_on_with_a_stream_that_its_server_ended() {
    let stage = with_pauses().await;
    let session = stage.begin(PATH, "ada").await;
    let own = [("mcp-session-id", session.as_str())];
    let mut stream = stage.listen(PATH, "ada", &own, CALL).await;
    assert_eq!(stream.read().await, None, "the stream ends where the server's does");
    let last = stream.last_id.clone().expect("an event with an id");
    assert!(!last.contains("e1"), "{last}");
    let resume = [("mcp-session-id", session.as_str()), ("last-event-id", last.as_str())];
    let mut rest = stage.open_stream(PATH, "ada", &resume).await;
    let answer = rest.next().await;
    assert_eq!(
        (&answer["id"], &answer["result"]["content"][0]["text"]),
        (&json!(7), &json!("later"))
    );
    assert_eq!(rest.read().await, None);
    // It can be read again, from the beginning and from its end.
    let mut again = stage.open_stream(PATH, "ada", &resume).await;
    assert_eq!(again.next().await, answer);
    let end = again.last_id.clone().unwrap();
    let resume = [("mcp-session-id", session.as_str()), ("last-event-id", end.as_str())];
    assert_eq!(stage.open_stream(PATH, "ada", &resume).await.read().await, None);
    let asked = stage.script.lock().unwrap();
    let upstream: Vec<&Value> = asked.asked.iter().map(|(_, _, message)| message).collect();
    let calls = upstream.iter().filter(|message| message["method"] == "tools/call").count();
    assert_eq!(calls, 1, "the call was made once");
    let resumed = asked.asked.iter().find(|(method, ..)| method == "GET").unwrap();
    assert_eq!(resumed.1["last-event-id"], "e1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_or_forged_event_is_unknown_and_recorded() {
    let stage = with_pauses().await;
    let session = stage.begin(PATH, "ada").await;
    let own = [("mcp-session-id", session.as_str())];
    let mut stream = stage.listen(PATH, "ada", &own, CALL).await;
    stream.read().await;
    let last = stream.last_id.clone().unwrap();
    let (other, eve) = (stage.begin(PATH, "ada").await, stage.begin(PATH, "eve").await);
    let forged = format!("{}{}", if last.starts_with('A') { "B" } else { "A" }, &last[1..]);
    for (name, sub, session, id) in [
        ("another caller", "eve", &eve, &last),
        ("another session", "ada", &other, &last),
        ("a forged id", "ada", &session, &forged),
        ("the server's own id", "ada", &session, &"e1".to_owned()),
        ("a session's id", "ada", &session, &session),
    ] {
        let dropped = |stage: &Stage| {
            let lines = stage.receipts().into_iter();
            lines.filter(|line| line["name"] == "mcp.message.dropped").count()
        };
        let before = dropped(&stage);
        let headers = [("mcp-session-id", session.as_str()), ("last-event-id", id.as_str())];
        let refused = stage.open_stream(PATH, sub, &headers).await;
        assert_eq!(refused.status, 400, "{name}");
        testing::wait_until("a record of the refusal", || dropped(&stage) > before);
    }
    // No stream can be resumed on the path of all servers.
    let session = stage.begin("/mcp", "ada").await;
    let call = CALL.replace("read_report", "reports__read_report");
    let own = [("mcp-session-id", session.as_str())];
    let answer = stage.post("/mcp", "ada", &own, &call).await;
    assert!(!answer.body.contains("id: "), "{answer:?}");
    assert_eq!(answer.json()["result"]["content"][0]["text"], "later", "{answer:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_ends_with_the_request_that_it_belongs_to() {
    let stage = Stage::open(Setting::default()).await;
    // A server without sessions that asks for input before it answers.
    let discover = json!({"jsonrpc": "2.0", "id": "ID", "result": {
        "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
    }});
    let refusal = json!({"jsonrpc": "2.0", "id": "ID", "error": {"code": -32022, "message": "no"}});
    let wants = json!({"jsonrpc": "2.0", "id": "ID", "result": {
        "resultType": "input_required",
        "inputRequests": {"a": {"method": "elicitation/create", "params": {"message": "which one?"}}},
    }});
    stage.script.lock().unwrap().instead.extend([
        ("initialize".to_owned(), (400, "application/json", refusal.to_string())),
        ("server/discover".to_owned(), (200, "application/json", discover.to_string())),
        ("tools/call".to_owned(), (200, "application/json", wants.to_string())),
    ]);
    let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}"#;
    let begun = stage.post(PATH, "ada", &[], initialize).await;
    let session = begun.headers["mcp-session-id"].to_str().unwrap().to_owned();
    let own = [("mcp-session-id", session.as_str())];
    let mut stream = stage.listen(PATH, "ada", &own, CALL).await;
    let question = stream.next().await;
    assert_eq!(question["params"]["message"], "which one?", "{question}");
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
    assert_eq!(stage.post(PATH, "ada", &own, cancel).await.status, 202);
    // The stream ends at once, and an answer that arrives now causes no further request.
    assert_eq!(stream.read().await, None);
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}});
    assert_eq!(stage.post(PATH, "ada", &own, &answer.to_string()).await.status, 202);
    stage.ask("ada", &stage.begin("/mcp", "ada").await, "tools/list", &json!({})).await;
    let calls = |stage: &Stage| {
        let script = stage.script.lock().unwrap();
        script.asked.iter().filter(|(method, ..)| method == "tools/call").count()
    };
    assert_eq!(calls(&stage), 1);
}
