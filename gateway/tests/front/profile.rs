//! Tests 1, 2 and 9 of the gateway profile, from `conformance/gateway/profile.json`.

use crate::stage::{Setting, Stage, tool};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_profile_holds_step_by_step() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../conformance/gateway/profile.json");
    let profile: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let tools = profile["tools"].as_array().unwrap().iter();
    let tools = tools.map(|name| tool(name.as_str().unwrap(), "Does something.")).collect();
    let principals: Vec<(String, Vec<String>)> = profile["principals"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, groups)| {
            let groups = groups.as_array().unwrap().iter();
            (name.clone(), groups.map(|group| group.as_str().unwrap().to_owned()).collect())
        })
        .collect();
    let groups: Vec<(&str, Vec<&str>)> = principals
        .iter()
        .map(|(name, groups)| (name.as_str(), groups.iter().map(String::as_str).collect()))
        .collect();
    let principals: Vec<(&str, &[&str])> =
        groups.iter().map(|(name, groups)| (*name, groups.as_slice())).collect();
    let policies = profile["policies"].as_str().unwrap();
    let stage =
        Stage::open(Setting { tools, policies, principals: &principals, ..Setting::default() })
            .await;
    for step in profile["steps"].as_array().unwrap() {
        let (name, sub) = (&step["name"], step["as"].as_str().unwrap());
        let session = stage.begin("/mcp", sub).await;
        let before = stage.decisions().len();
        let answer = match step["tool"].as_str() {
            Some(tool) => stage.call(sub, &session, tool, &step["arguments"]).await,
            None => stage.ask(sub, &session, step["method"].as_str().unwrap(), &json!({})).await,
        };
        let expect = &step["expect"];
        if let Some(tools) = expect.get("tools") {
            let mut listed: Vec<&str> = answer["result"]["tools"]
                .as_array()
                .unwrap_or_else(|| panic!("{name}: {answer}"))
                .iter()
                .map(|tool| tool["name"].as_str().unwrap())
                .collect();
            listed.sort_unstable();
            assert_eq!(&json!(listed), tools, "{name}");
        }
        if let Some(text) = expect.get("text") {
            assert_eq!(&answer["result"]["content"][0]["text"], text, "{name}: {answer}");
        }
        if let Some(code) = expect.get("code") {
            assert_eq!(&answer["error"]["code"], code, "{name}: {answer}");
            assert_eq!(&answer["error"]["data"]["reason"], &expect["reason"], "{name}: {answer}");
        }
        let decisions = stage.decisions();
        assert!(decisions.len() > before, "{name}: no decision was recorded");
        for decision in &decisions[before..] {
            for member in profile["receipt_members"].as_array().unwrap() {
                assert!(decision.get(member.as_str().unwrap()).is_some(), "{name}: {decision}");
            }
            assert_eq!(decision["token_handling"]["passthrough_detected"], false);
            assert_eq!(decision["principal"]["sub"], sub);
        }
        if let Some(receipt) = step.get("receipt") {
            let id = &answer["error"]["data"]["receipt_id"];
            let is_it = |decision: &&Value| match id.as_str() {
                Some(_) => decision["receipt_id"] == *id,
                None => decision["mcp"]["method"] == "tools/call",
            };
            let decision = decisions.iter().rev().find(is_it).unwrap_or_else(|| panic!("{name}"));
            assert_eq!(decision["decision"]["result"], receipt["result"], "{name}: {decision}");
            if let Some(reasons) = receipt.get("reasons") {
                assert_eq!(&decision["decision"]["reason_codes"], reasons, "{name}: {decision}");
            }
            if let Some(policy) = receipt.get("policy") {
                assert_eq!(&decision["decision"]["policy_id"], policy, "{name}: {decision}");
            }
        }
    }
    // Every allowed call has one outcome.
    let lines = stage.receipts();
    let of =
        |record: &str| lines.iter().filter(|line| line["record"] == record).collect::<Vec<_>>();
    for decision in of("decision").iter().filter(|line| line["decision"]["result"] == "allow") {
        let id = &decision["receipt_id"];
        let outcomes = of("outcome").iter().filter(|line| line["receipt_id"] == *id).count();
        assert_eq!(outcomes, 1, "{decision}");
    }
    stage.node.clone().shut_down(std::time::Duration::from_secs(1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_caller_could_never_use_is_answered_like_what_does_not_exist() {
    let policies =
        "@id(\"some\")\npermit(principal, action == Action::\"reports__read_report\", resource);";
    let tools = vec![tool("read_report", "Reads."), tool("write_report", "Writes.")];
    let stage = Stage::open(Setting { tools, policies, ..Setting::default() }).await;
    let session = stage.begin("/mcp", "ada").await;
    stage.ask("ada", &session, "tools/list", &json!({})).await;
    let mut answers = Vec::new();
    for name in ["reports__write_report", "reports__no_such", "elsewhere__no_such", "plain"] {
        let mut answer = stage.call("ada", &session, name, &json!({"path": "a"})).await;
        let id = answer["error"]["data"]["receipt_id"].take();
        assert!(id.is_string(), "{answer}");
        answers.push(answer);
    }
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "{answers:#?}");
}
