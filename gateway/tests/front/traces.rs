//! Spans of calls as a collector receives them.

use crate::stage::{Setting, Stage, until};
use bytes::Bytes;
use http_body_util::{BodyExt, Collected, Full};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

/// The paths, headers and bodies of the requests to a collector.
pub(crate) type Taken = Arc<Mutex<Vec<(String, http::HeaderMap, String)>>>;

pub(crate) async fn collector(status: u16) -> (SocketAddr, Taken) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let taken = Taken::default();
    let kept = taken.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let kept = kept.clone();
            let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
                let kept = kept.clone();
                async move {
                    let (parts, body) = request.into_parts();
                    let body = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
                    let text = String::from_utf8_lossy(&body).into_owned();
                    kept.lock().unwrap().push((parts.uri.path().to_owned(), parts.headers, text));
                    let response = http::Response::builder().status(status);
                    Ok::<_, Infallible>(response.body(Full::new(Bytes::from("{}"))).unwrap())
                }
            });
            let connection = hyper::server::conn::http1::Builder::new();
            tokio::spawn(connection.serve_connection(TokioIo::new(stream), service));
        }
    });
    (address, taken)
}

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

async fn call(stage: &Stage, session: &str, flags: &str) -> Value {
    let parent = format!("00-{TRACE}-00f067aa0ba902b7-{flags}");
    let headers = [("mcp-session-id", session), ("traceparent", &parent)];
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "reports__read_report", "arguments": {"path": "an-argument"},
    }});
    stage.post("/mcp", "ada", &headers, &body.to_string()).await.json()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_has_spans_in_its_callers_trace_and_no_secret_in_them() {
    let (address, taken) = collector(200).await;
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("key");
    std::fs::write(&secret, "collector-key").unwrap();
    let server = format!(
        "[traces]\notlp = \"http://{address}\"\notlp_headers = {{ x-key = \"file:{}\" }}",
        secret.display()
    );
    let stage = Stage::open(Setting { server: &server, ..Setting::default() }).await;
    let session = stage.begin("/mcp", "ada").await;
    assert!(call(&stage, &session, "00").await.get("result").is_some());
    assert!(call(&stage, &session, "01").await.get("result").is_some());
    let exported = "holdpoint_traced_calls_total{outcome=\"exported\"}";
    // The handshake, and the one call that its caller has recorded.
    until("spans are exported", async || stage.metric(exported).await >= 2.0).await;
    let taken = taken.lock().unwrap();
    let all: String = taken.iter().map(|(.., body)| body.as_str()).collect();
    for hidden in ["an-argument", stage.key("ada"), &session, "collector-key"] {
        assert!(!all.contains(hidden), "{hidden}: {all}");
    }
    assert!(taken.iter().all(|(path, ..)| path == "/v1/traces"));
    assert!(taken.iter().all(|(_, headers, _)| headers["x-key"] == "collector-key"));
    let spans: Vec<Value> = taken
        .iter()
        .flat_map(|(.., body)| {
            let body: Value = serde_json::from_str(body).unwrap();
            body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone()
        })
        .filter(|span| span["traceId"] == TRACE)
        .collect();
    let names: Vec<&str> = spans.iter().map(|span| span["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["front tools/call", "decision", "upstream"]);
    assert_eq!(spans[0]["parentSpanId"], "00f067aa0ba902b7");
    for part in &spans[1..] {
        assert_eq!(part["parentSpanId"], spans[0]["spanId"]);
        assert!(part["attributes"].to_string().contains("reports"), "{part}");
    }
    let time = |span: &Value, name: &str| span[name].as_str().unwrap().parse::<u128>().unwrap();
    assert_eq!(time(&spans[1], "endTimeUnixNano"), time(&spans[2], "startTimeUnixNano"));
    assert!(time(&spans[2], "endTimeUnixNano") <= time(&spans[0], "endTimeUnixNano"));
    // The server's own spans are children of ours.
    let script = stage.script.lock().unwrap();
    let sent = script.asked.iter().rev().find(|(method, ..)| method == "tools/call").unwrap();
    let parent = format!("00-{TRACE}-{}-01", spans[2]["spanId"].as_str().unwrap());
    assert_eq!(sent.1["traceparent"], parent.as_str());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_go_on_while_a_collector_refuses_and_nothing_is_sent_by_default() {
    let (address, _) = collector(503).await;
    let server = format!("[traces]\notlp = \"http://{address}\"");
    let stage = Stage::open(Setting { server: &server, ..Setting::default() }).await;
    let session = stage.begin("/mcp", "ada").await;
    assert!(call(&stage, &session, "01").await.get("result").is_some());
    let failed = "holdpoint_traced_calls_total{outcome=\"failed\"}";
    until("spans are given up", async || stage.metric(failed).await >= 2.0).await;
    let plain = Stage::open(Setting::default()).await;
    let session = plain.begin("/mcp", "ada").await;
    assert!(call(&plain, &session, "01").await.get("result").is_some());
    let metrics = plain.send("GET", "/metrics", &[], "").await.body;
    assert!(!metrics.contains("traced_calls"), "{metrics}");
}

/// A name that no server offers may be a misplaced argument, and so may a URI.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_name_that_was_not_accepted_is_in_a_span() {
    const CANARY: &str = "canary-in-a-name-31f";
    let (address, taken) = collector(200).await;
    let server = format!("[traces]\notlp = \"http://{address}\"");
    let stage = Stage::open(Setting { server: &server, ..Setting::default() }).await;
    let session = stage.begin("/servers/reports/mcp", "ada").await;
    let post = async |method: &str, params: Value| {
        let parent = format!("00-{TRACE}-00f067aa0ba902b7-01");
        let headers = [("mcp-session-id", session.as_str()), ("traceparent", parent.as_str())];
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        stage.post("/servers/reports/mcp", "ada", &headers, &body.to_string()).await
    };
    post("tools/call", json!({"name": "read_report", "arguments": {"path": CANARY}})).await;
    post("tools/call", json!({"name": CANARY, "arguments": {}})).await;
    post("resources/read", json!({"uri": format!("file:///{CANARY}")})).await;
    post("prompts/get", json!({"name": CANARY})).await;
    post("completion/complete", json!({"ref": {"type": "ref/prompt", "name": CANARY}})).await;
    let sent =
        || -> String { taken.lock().unwrap().iter().map(|(.., body)| body.as_str()).collect() };
    until("spans are exported", async || {
        let all = sent();
        ["read_report", "resources/read", "prompts/get"].iter().all(|name| all.contains(name))
    })
    .await;
    assert!(!sent().contains(CANARY), "{}", sent());
}
