//! Two people, one tool that needs approval.

use crate::stage::{Setting, Stage, tool, until};
use serde_json::{Value, json};

const POLICIES: &str = "@id(\"ask\")\n@require_approval(\"leads\")\npermit(principal, action in Action::\"call\", resource);\n@id(\"admin\")\npermit(principal, action in [Action::\"grant\", Action::\"audit\"], resource);";
const CANARY: &str = "canary-5b1e77";

async fn stage(limits: &str) -> (Stage, String) {
    let stage = Stage::open(Setting {
        tools: vec![tool("write_report", "Writes.")],
        policies: POLICIES,
        gateway: limits,
        principals: &[("ada", &["leads"]), ("eve", &[])],
        admins: &[("bob", &["leads"]), ("ada", &["leads"]), ("mallory", &["interns"])],
        ..Setting::default()
    })
    .await;
    let session = stage.begin("/mcp", "ada").await;
    stage.ask("ada", &session, "tools/list", &json!({})).await;
    (stage, session)
}

fn arguments(limit: u64) -> Value {
    json!({"path": CANARY, "limit": limit})
}

/// The calls that wait for approval.
async fn waiting(stage: &Stage, admin: &str) -> Vec<Value> {
    let answer = stage.admin("GET", "/approvals", admin).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["approvals"].as_array().unwrap().clone()
}

async fn one_waiting(stage: &Stage, admin: &str) -> Value {
    until("a call waits", async || waiting(stage, admin).await.len() == 1).await;
    waiting(stage, admin).await.remove(0)
}

async fn decide(stage: &Stage, admin: &str, id: &Value, act: &str) -> u16 {
    let path = format!("/approvals/{}/{act}", id.as_str().unwrap());
    stage.admin("POST", &path, admin).await.status
}

fn calls(stage: &Stage) -> usize {
    stage.script.lock().unwrap().count("tools/call")
}

fn decisions(stage: &Stage) -> Vec<Value> {
    let all = stage.decisions().into_iter();
    all.filter(|line| line["mcp"]["method"] == "tools/call").collect()
}

const WAITS: &str = "limits = { approval_wait_seconds = 20, approval_ttl_seconds = 900 }";
const ANSWERS: &str = "limits = { approval_wait_seconds = 0, approval_ttl_seconds = 900 }";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_waits_for_another_person_and_is_made_once() {
    let (stage, session) = stage(WAITS).await;
    let arguments = arguments(1);
    let call = || stage.call("ada", &session, "reports__write_report", &arguments);
    // Refused first.
    let refusing = async {
        let shown = one_waiting(&stage, "bob").await;
        assert_eq!(shown["arguments"], arguments, "the approver sees what would be sent");
        assert_eq!((&shown["tool"], calls(&stage)), (&json!("write_report"), 0));
        assert!(waiting(&stage, "mallory").await.is_empty(), "not one of the group");
        assert_eq!(decide(&stage, "mallory", &shown["id"], "grant").await, 403);
        assert_eq!(decide(&stage, "ada", &shown["id"], "grant").await, 403, "their own call");
        assert_eq!(decide(&stage, "bob", &shown["id"], "refuse").await, 200);
        assert_eq!(decide(&stage, "bob", &shown["id"], "grant").await, 409, "it was refused");
    };
    let (answer, ()) = tokio::join!(call(), refusing);
    assert_eq!(answer["error"]["data"]["reason"], "forbidden", "{answer}");
    assert_eq!(calls(&stage), 0);
    // Asked again, and granted.
    let granting = async {
        let shown = one_waiting(&stage, "bob").await;
        assert_eq!(decide(&stage, "bob", &shown["id"], "grant").await, 200);
    };
    let (answer, ()) = tokio::join!(call(), granting);
    assert!(answer.get("result").is_some(), "{answer}");
    assert_eq!(calls(&stage), 1);
    // Each call has one decision line, and the second one names the approver.
    let lines = decisions(&stage);
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert_eq!(lines[0]["decision"]["result"], "deny");
    let approval = &lines[1]["approval"];
    assert_eq!((&approval["required"], &approval["step_up"]), (&json!(true), &json!("none")));
    assert!(approval["approved_by"].as_str().unwrap().ends_with("|bob"), "{approval}");
    assert!(approval["approved_at"].is_string(), "{approval}");
    let events = stage.receipts();
    let named = |name: &str| events.iter().filter(|line| line["name"] == name).count();
    let names = ["approval.parked", "approval.granted", "approval.refused"];
    assert_eq!(names.map(named), [2, 1, 1]);
    let metrics = stage.send("GET", "/metrics", &[], "").await.body;
    let text = stage.all_text();
    assert!(text.contains("approval.parked"));
    assert!(!text.contains(CANARY) && !metrics.contains(CANARY), "no argument is recorded");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_counts_for_one_retry_of_the_same_call_only() {
    let (stage, session) = stage(ANSWERS).await;
    let call =
        async |limit| stage.call("ada", &session, "reports__write_report", &arguments(limit)).await;
    let answer = call(1).await;
    let error = &answer["error"];
    assert_eq!(
        (&error["code"], &error["data"]["reason"]),
        (&json!(1014), &json!("approval_required"))
    );
    let id = error["data"]["approval_id"].clone();
    assert_eq!(call(1).await["error"]["data"]["approval_id"], id, "the same approval");
    assert_eq!(decide(&stage, "bob", &id, "grant").await, 200);
    // A call with other arguments is a different call.
    let other = call(2).await;
    assert_eq!(other["error"]["code"], 1014, "{other}");
    assert_ne!(other["error"]["data"]["approval_id"], id);
    assert_eq!(calls(&stage), 0);
    // Another caller's call is a different call.
    let session = stage.begin("/mcp", "eve").await;
    let eve = stage.call("eve", &session, "reports__write_report", &arguments(1)).await;
    assert_eq!(eve["error"]["code"], 1014, "{eve}");
    // The same members in a different order are the same call.
    let answer = call(1).await;
    assert!(answer.get("result").is_some(), "{answer}");
    let replayed = call(1).await;
    assert_eq!(replayed["error"]["code"], 1014, "{replayed}");
    assert_ne!(replayed["error"]["data"]["approval_id"], id);
    assert_eq!(calls(&stage), 1);
    assert_eq!(decide(&stage, "bob", &id, "grant").await, 409, "it was used");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_caller_cannot_take_the_room_of_all_that_wait() {
    let (stage, session) = stage(ANSWERS).await;
    let call =
        async |limit| stage.call("ada", &session, "reports__write_report", &arguments(limit)).await;
    for limit in 1..=64 {
        let answer = call(limit).await;
        assert!(answer["error"]["data"]["approval_id"].is_string(), "{answer}");
    }
    let answer = call(65).await;
    assert_eq!(answer["error"]["code"], 1014, "{answer}");
    assert!(answer["error"]["data"].get("approval_id").is_none(), "{answer}");
    let session = stage.begin("/mcp", "eve").await;
    let eve = stage.call("eve", &session, "reports__write_report", &arguments(1)).await;
    assert!(eve["error"]["data"]["approval_id"].is_string(), "{eve}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_survives_its_node_and_a_request_does_not() {
    let (stage, session) = stage(ANSWERS).await;
    let call = async |stage: &Stage, session: &str, limit| {
        stage.call("ada", session, "reports__write_report", &arguments(limit)).await
    };
    let granted = call(&stage, &session, 1).await["error"]["data"]["approval_id"].clone();
    let waits = call(&stage, &session, 2).await["error"]["data"]["approval_id"].clone();
    assert_eq!(decide(&stage, "bob", &granted, "grant").await, 200);
    stage.node.clone().shut_down(std::time::Duration::from_secs(1)).await;
    let again = stage.restarted().await;
    assert!(waiting(&again, "bob").await.is_empty(), "nothing shows what it would be");
    assert_eq!(decide(&again, "bob", &waits, "grant").await, 409);
    let session = again.begin("/mcp", "ada").await;
    assert_eq!(call(&again, &session, 2).await["error"]["code"], 1014);
    assert_eq!(calls(&again), 0, "nothing was dispatched that was not granted");
    let answer = call(&again, &session, 1).await;
    assert!(answer.get("result").is_some(), "{answer}");
    assert_eq!(calls(&again), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_of_one_organization_decides_on_no_call_of_another() {
    let stage = Stage::open(Setting {
        tools: vec![tool("write_report", "Writes.")],
        policies: POLICIES,
        gateway: ANSWERS,
        principals: &[("ada@acme", &[])],
        admins: &[("bob@acme", &["leads"]), ("carol@umbrella", &["leads"]), ("dora", &["leads"])],
        server: "orgs = [\"acme\", \"umbrella\"]",
    })
    .await;
    let session = stage.begin("/mcp", "ada@acme").await;
    stage.ask("ada@acme", &session, "tools/list", &json!({})).await;
    let call = async || {
        let arguments = arguments(1);
        stage.call("ada@acme", &session, "reports__write_report", &arguments).await
    };
    let id = call().await["error"]["data"]["approval_id"].clone();
    assert!(waiting(&stage, "carol@umbrella").await.is_empty());
    for act in ["grant", "refuse"] {
        let said = decide(&stage, "carol@umbrella", &id, act).await;
        assert_eq!(said, 409, "they are not told that there is such a call");
    }
    assert_eq!(call().await["error"]["data"]["approval_id"], id, "it waits still");
    // People of the same organization, or of none, may see it.
    assert_eq!(waiting(&stage, "dora").await.len(), 1);
    assert_eq!(waiting(&stage, "bob@acme").await.len(), 1);
    assert_eq!(decide(&stage, "bob@acme", &id, "grant").await, 200);
    let answer = call().await;
    assert!(answer.get("result").is_some(), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_is_for_the_people_and_the_policy_that_had_to_be_asked() {
    const BY_GROUP: &str = "@id(\"staff\")\n@require_approval(\"leads\")\npermit(principal in Group::\"staff\", action in Action::\"call\", resource);\n@id(\"temps\")\n@require_approval(\"security\")\npermit(principal in Group::\"temps\", action in Action::\"call\", resource);\n@id(\"guests\")\n@require_approval(\"leads\")\npermit(principal in Group::\"guests\", action in Action::\"call\", resource);\n@id(\"admin\")\npermit(principal, action == Action::\"grant\", resource);";
    let stage = Stage::open(Setting {
        tools: vec![tool("write_report", "Writes.")],
        policies: BY_GROUP,
        gateway: ANSWERS,
        // One principal that comes back with different groups.
        principals: &[("ada#1", &["staff"]), ("ada#2", &["temps"]), ("ada#3", &["guests"])],
        admins: &[("bob", &["leads"])],
        ..Setting::default()
    })
    .await;
    let mut ids = Vec::new();
    for key in ["ada#1", "ada#2", "ada#3", "ada#1"] {
        let session = stage.begin("/mcp", key).await;
        stage.ask(key, &session, "tools/list", &json!({})).await;
        let answer = stage.call(key, &session, "reports__write_report", &arguments(1)).await;
        match ids.len() {
            0 => {
                let id = answer["error"]["data"]["approval_id"].clone();
                assert_eq!(decide(&stage, "bob", &id, "grant").await, 200, "{answer}");
                ids.push(id);
            }
            // Other people would have to decide, or a different policy asks the same people.
            1 | 2 => {
                assert_eq!(answer["error"]["code"], 1014, "{key}: {answer}");
                let id = answer["error"]["data"]["approval_id"].clone();
                assert!(!ids.contains(&id));
                ids.push(id);
            }
            _ => assert!(answer.get("result").is_some(), "{answer}"),
        }
    }
    assert_eq!(calls(&stage), 1);
}

async fn in_flight(stage: &Stage) -> Value {
    stage.admin("GET", "/stats", "bob").await.json()["calls_in_flight"].clone()
}

fn frame(limit: u64) -> String {
    let params = json!({"name": "reports__write_report", "arguments": arguments(limit)});
    json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_whose_client_left_while_it_waited_for_a_person_is_not_made() {
    let (stage, session) = stage(WAITS).await;
    let waits = async || waiting(&stage, "bob").await.len() == 1;
    stage.post_and_leave(("ada", &session), &frame(1), waits).await;
    until("the call has ended", async || in_flight(&stage).await == 0).await;
    let id = one_waiting(&stage, "bob").await["id"].clone();
    assert_eq!(decide(&stage, "bob", &id, "grant").await, 200);
    // The grant applies to the same call, whose client waits for the answer.
    let answer = stage.call("ada", &session, "reports__write_report", &arguments(1)).await;
    assert!(answer.get("result").is_some(), "{answer}");
    assert_eq!(calls(&stage), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_whose_client_left_while_it_waited_for_a_list_uses_up_no_grant() {
    let (first, session) = stage(ANSWERS).await;
    let asked = first.call("ada", &session, "reports__write_report", &arguments(1)).await;
    assert_eq!(decide(&first, "bob", &asked["error"]["data"]["approval_id"], "grant").await, 200);
    first.node.clone().shut_down(std::time::Duration::from_secs(1)).await;
    // The next node has to list the tools before it makes a call, and the server is slow.
    let list_gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    first.script.lock().unwrap().list_gate = Some(list_gate.clone());
    let lists = first.script.lock().unwrap().count("tools/list");
    let stage = first.restarted().await;
    let session = stage.begin("/mcp", "ada").await;
    let waits = async || {
        let is_listing = stage.script.lock().unwrap().count("tools/list") > lists;
        is_listing && in_flight(&stage).await == 1
    };
    stage.post_and_leave(("ada", &session), &frame(1), waits).await;
    until("the client has left", async || in_flight(&stage).await == 0).await;
    list_gate.add_permits(1_000);
    let answer = stage.call("ada", &session, "reports__write_report", &arguments(1)).await;
    assert!(answer.get("result").is_some(), "{answer}");
    assert_eq!(calls(&stage), 1, "the first one was not made");
}
