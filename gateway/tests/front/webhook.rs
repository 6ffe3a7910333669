//! Another system is notified of calls that wait for approval, and decides nothing.

use crate::stage::{Setting, Stage, tool, until};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use ring::hmac;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

const POLICIES: &str = "@id(\"ask\")\n@require_approval(\"leads\")\npermit(principal, action in Action::\"call\", resource);\n@id(\"admin\")\npermit(principal, action in [Action::\"grant\", Action::\"audit\"], resource);";
const SECRET: &str = "canary-secret-of-the-webhook-9d";
const CANARY: &str = "canary-argument-9d";

#[derive(Default)]
struct Receiver {
    /// The statuses of the next responses; 200 afterwards.
    statuses: VecDeque<u16>,
    heard: Vec<(http::HeaderMap, Bytes)>,
}

type Heard = Arc<Mutex<Receiver>>;

async fn receive(statuses: &[u16]) -> (SocketAddr, Heard) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let receiver = Receiver { statuses: statuses.iter().copied().collect(), heard: Vec::new() };
    let receiver = Arc::new(Mutex::new(receiver));
    let shared = receiver.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let shared = shared.clone();
            let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
                let shared = shared.clone();
                async move {
                    let (parts, body) = request.into_parts();
                    let body = body.collect().await.unwrap().to_bytes();
                    let mut receiver = shared.lock().unwrap();
                    receiver.heard.push((parts.headers, body));
                    let status = receiver.statuses.pop_front().unwrap_or(200);
                    // A response that asks for a grant grants nothing.
                    let body =
                        Full::new(Bytes::from_static(br#"{"decision":"grant","approved":true}"#));
                    let answer = http::Response::builder().status(status).body(body).unwrap();
                    Ok::<_, Infallible>(answer)
                }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service);
            tokio::spawn(connection);
        }
    });
    (address, receiver)
}

async fn stage(url: &str, ttl: u64, secret: &std::path::Path) -> (Stage, String) {
    let gateway = format!(
        "limits = {{ approval_wait_seconds = 0, approval_ttl_seconds = {ttl} }}\n[approval.webhook]\nurl = \"{url}\"\nsecret = \"file:{}\"",
        secret.display()
    );
    let stage = Stage::open(Setting {
        tools: vec![tool("write_report", "Writes.")],
        policies: POLICIES,
        gateway: &gateway,
        principals: &[("ada", &[])],
        admins: &[("bob", &["leads"]), ("mallory", &["interns"])],
        ..Setting::default()
    })
    .await;
    let session = stage.begin("/mcp", "ada").await;
    stage.ask("ada", &session, "tools/list", &json!({})).await;
    (stage, session)
}

fn secret() -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("{SECRET}\n")).unwrap();
    file
}

async fn call(stage: &Stage, session: &str) -> Value {
    let arguments = json!({"path": CANARY, "limit": 1});
    stage.call("ada", session, "reports__write_report", &arguments).await
}

/// The path and query of a link, which must lead to the gateway's own address.
fn path_of(link: &Value) -> String {
    assert_eq!(link["method"], "POST");
    let url = link["url"].as_str().unwrap();
    url[url.find("/admin/").unwrap() + "/admin/v1".len()..].to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_system_is_told_of_a_call_that_waits_and_its_link_needs_an_approver() {
    let (address, heard) = receive(&[]).await;
    let file = secret();
    let (stage, session) =
        stage(&format!("http://{address}/hook/{SECRET}"), 900, file.path()).await;
    let answer = call(&stage, &session).await;
    let id = answer["error"]["data"]["approval_id"].as_str().unwrap().to_owned();
    until("the receiver is told", async || heard.lock().unwrap().heard.len() == 1).await;
    let (headers, body) = heard.lock().unwrap().heard[0].clone();
    // Verify the signature as a receiver does.
    let header = |name: &str| headers[name].to_str().unwrap().to_owned();
    assert_eq!(header("webhook-id"), id);
    let signed = [format!("{id}.{}.", header("webhook-timestamp")).as_bytes(), &body].concat();
    let signature = header("webhook-signature");
    let signature = STANDARD.decode(signature.strip_prefix("v1,").unwrap()).unwrap();
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    hmac::verify(&key, &signed, &signature).unwrap();
    let text = String::from_utf8(body.to_vec()).unwrap();
    assert!(!text.contains(CANARY) && !text.contains(SECRET), "{text}");
    let told: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&told["type"], &told["data"]["approval_id"]),
        (&json!("approval.parked"), &json!(id))
    );
    assert_eq!(
        (&told["data"]["tool"], &told["data"]["groups"]),
        (&json!("write_report"), &json!(["leads"]))
    );
    // The response said to grant the call, which nevertheless still waits.
    assert_eq!(call(&stage, &session).await["error"]["data"]["approval_id"], id);
    let (grant, refuse) = (path_of(&told["data"]["grant"]), path_of(&told["data"]["refuse"]));
    let anonymous = stage.send("POST", &format!("/admin/v1{grant}"), &[], "").await;
    assert_eq!(anonymous.status, 401, "{anonymous:?}");
    let agent = stage.post(&format!("/admin/v1{grant}"), "ada", &[], "").await;
    assert!(matches!(agent.status, 401 | 403), "{agent:?}");
    assert_eq!(stage.admin("POST", &grant, "mallory").await.status, 403);
    // A link is only valid for its own decision on its own call.
    let (ticket, other) = (refuse.split_once('?').unwrap().1, grant.split_once('?').unwrap().0);
    for wrong in [format!("{other}?{ticket}"), format!("{other}?ticket=AAAA"), format!("{grant}x")]
    {
        let refused = stage.admin("POST", &wrong, "bob").await;
        assert_eq!(refused.status, 403, "{wrong}: {refused:?}");
        assert_eq!(refused.json()["error"]["reason"], "bad_ticket");
    }
    assert_eq!(stage.script.lock().unwrap().count("tools/call"), 0);
    assert_eq!(stage.admin("POST", &grant, "bob").await.status, 200);
    assert_eq!(stage.admin("POST", &grant, "bob").await.status, 409, "it counts once");
    let answer = call(&stage, &session).await;
    assert!(answer.get("result").is_some(), "{answer}");
    let metrics = stage.send("GET", "/metrics", &[], "").await.body;
    assert!(metrics.contains("holdpoint_webhook_failures_total 0"), "{metrics}");
    let kept = stage.all_text();
    assert!(kept.contains("approval.granted"));
    for canary in [CANARY, SECRET] {
        assert!(!kept.contains(canary) && !metrics.contains(canary), "{canary}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_that_fails_is_told_again_and_then_counted() {
    let (address, heard) = receive(&[500]).await;
    let file = secret();
    let (stage, session) = stage(&format!("http://{address}/hook"), 900, file.path()).await;
    call(&stage, &session).await;
    until("it is told again", async || heard.lock().unwrap().heard.len() == 2).await;
    let ids: Vec<String> = (heard.lock().unwrap().heard.iter())
        .map(|(headers, _)| headers["webhook-id"].to_str().unwrap().to_owned())
        .collect();
    assert_eq!(ids[0], ids[1], "the receiver can tell that it is the same");
    let failures = async |stage: &Stage| stage.send("GET", "/metrics", &[], "").await.body;
    assert!(failures(&stage).await.contains("holdpoint_webhook_failures_total 0"));
    // Nothing listens there, and the call only waits for ten seconds.
    let unused = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let (stage, session) =
        crate::webhook::stage(&format!("http://{unused}/hook"), 10, file.path()).await;
    call(&stage, &session).await;
    until("it is given up", async || {
        failures(&stage).await.contains("holdpoint_webhook_failures_total 1")
    })
    .await;
}
