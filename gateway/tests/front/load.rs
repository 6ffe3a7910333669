//! The limits on calls in flight per caller and per server.

use crate::stage::{Setting, Stage, until};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::Semaphore;

fn is_busy(answer: &Value, limit: &str) {
    assert_eq!(answer["error"]["code"], 1029, "{answer}");
    assert_eq!(answer["error"]["data"]["reason"], "rate_limited", "{answer}");
    assert!(answer["error"]["data"]["retry_after_ms"].is_u64(), "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains(limit), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_in_flight_are_bounded_for_each_caller_and_for_each_server() {
    let gateway = "limits = { calls_per_caller = 2, calls_per_server = 3 }";
    let stage = Arc::new(Stage::open(Setting { gateway, ..Setting::default() }).await);
    let ada = stage.begin("/mcp", "ada").await;
    let eve = stage.begin("/mcp", "eve").await;
    let call = |sub: &'static str, session: &str| {
        let (stage, session) = (stage.clone(), session.to_owned());
        async move { stage.call(sub, &session, "reports__read_report", &json!({"path": "a"})).await }
    };
    for (sub, session) in [("ada", &ada), ("eve", &eve)] {
        assert!(call(sub, session).await.get("result").is_some());
    }
    let gate = Arc::new(Semaphore::new(0));
    stage.script.lock().unwrap().gate = Some(gate.clone());
    let in_flight = async |calls: usize| {
        let asked = stage.script.clone();
        until("calls reach the server", async || {
            asked.lock().unwrap().count("tools/call") == 2 + calls
        })
        .await;
    };
    let first = [tokio::spawn(call("ada", &ada)), tokio::spawn(call("ada", &ada))];
    in_flight(2).await;
    is_busy(&call("ada", &ada).await, "limits.calls_per_caller");
    let third = tokio::spawn(call("eve", &eve));
    in_flight(3).await;
    is_busy(&call("eve", &eve).await, "limits.calls_per_server");
    gate.add_permits(100);
    for waiting in first.into_iter().chain([third]) {
        let answer = waiting.await.unwrap();
        assert!(answer.get("result").is_some(), "{answer}");
    }
    for (sub, session) in [("ada", &ada), ("eve", &eve)] {
        let answer = call(sub, session).await;
        assert!(answer.get("result").is_some(), "{answer}");
    }
    let decisions = stage.decisions();
    let refused = decisions
        .iter()
        .filter(|line| line["decision"]["reason_codes"][0] == "rate_limited")
        .count();
    assert_eq!(refused, 2);
    assert_eq!(stage.script.lock().unwrap().count("tools/call"), 2 + 3 + 2);
}
