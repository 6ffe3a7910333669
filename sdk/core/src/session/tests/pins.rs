//! What is kept of pins between sessions, and how a held change is accepted.

use super::*;

/// A stage on which `make` has changed and was held.
fn held() -> (Stage, Value) {
    let mut stage = Stage::guard();
    stage.call("make", json!({}));
    stage.tools[0] = tool("make", "Other words.");
    stage.pass_time(31);
    let held = stage.call("make", json!({}));
    assert_eq!(reason(&held), "contract_drift");
    (stage, held)
}

fn hash(held: &Value) -> String {
    held["refuse"]["data"]["entry_hash"]["after"].as_str().unwrap().to_owned()
}

#[test]
fn the_held_hash_is_accepted_and_no_other() {
    let (mut stage, held) = held();
    let hash = hash(&held);
    let repin = |stage: &mut Stage, key: &str, hash: &str| {
        stage.session.repin("tool", key, hash, "ada", stage.now)
    };
    assert_eq!(repin(&mut stage, "make", &"0".repeat(64)), Err(RepinError::OtherHash));
    assert_eq!(repin(&mut stage, "make", &hash[..16]), Err(RepinError::OtherHash));
    assert_eq!(repin(&mut stage, "send", &hash), Err(RepinError::NothingWaits));
    let actions = repin(&mut stage, "make", &hash).unwrap().unwrap();
    stage.carry_out(&actions);
    assert_eq!(stage.call("make", json!({}))["method"], "tools/call");
    assert_eq!(stage.list(), ["Other words.", "Sends it."]);
    // Across a restart it is accepted, and the next change is not.
    let mut next = Stage::with_pins(&json!({}), stage.store);
    next.tools[0] = tool("make", "Other words.");
    assert_eq!(next.call("make", json!({}))["method"], "tools/call");
    next.tools[0] = tool("make", "Yet others.");
    next.pass_time(31);
    assert_eq!(reason(&next.call("make", json!({}))), "contract_drift");
}

#[test]
fn what_changed_again_after_it_was_held_is_not_accepted() {
    let (mut stage, held) = held();
    stage.tools[0] = tool("make", "And others.");
    stage.pass_time(31);
    stage.call("make", json!({}));
    let repinned = stage.session.repin("tool", "make", &hash(&held), "ada", stage.now);
    assert_eq!(repinned, Err(RepinError::OtherHash));
}

#[test]
fn a_review_has_both_definitions_in_full() {
    let (stage, held) = held();
    let review: Value =
        serde_json::from_str(&stage.session.review("tool", "make").unwrap()).unwrap();
    let before: Value = serde_json::from_str(review["before"].as_str().unwrap()).unwrap();
    assert_eq!(before, tool("make", "Makes a report."));
    let after: Value = serde_json::from_str(review["after"].as_str().unwrap()).unwrap();
    assert_eq!(after, tool("make", "Other words."));
    assert_eq!(review["hash"], hash(&held));
    assert_eq!(review["findings"][0]["kind"], "description-only");
    assert_eq!(stage.session.review("tool", "send"), None);
    let waiting: Value = serde_json::from_str(&stage.session.waiting()).unwrap();
    assert_eq!(waiting, json!([review]));
}

#[test]
fn nothing_goes_on_before_the_pins_are_written() {
    let mut stage = Stage::guard();
    stage.can_write = false;
    let refused = stage.call("make", json!({}));
    assert_eq!((reason(&refused), &refused["refuse"]["code"]), ("internal", &json!(-32012)));
    let again = stage.call("make", json!({}));
    assert_eq!(reason(&again), "internal");
    assert!(stage.sent.is_empty());
    stage.can_write = true;
    assert_eq!(stage.call("make", json!({}))["method"], "tools/call");
}

#[test]
fn pins_that_another_process_wrote_count() {
    let (mut stage, held) = held();
    // Another process has the same pins, sees the same change, and accepts it.
    let mut other = Stage::with_pins(&json!({}), stage.store.clone());
    other.tools[0] = tool("make", "Other words.");
    other.call("make", json!({}));
    let actions = other.session.repin("tool", "make", &hash(&held), "ada", NOW).unwrap().unwrap();
    other.carry_out(&actions);
    let actions = stage.session.load(other.store.as_deref().unwrap(), stage.now).unwrap();
    assert_eq!(actions, None);
    assert_eq!(stage.call("make", json!({}))["method"], "tools/call");
}

#[test]
fn first_pins_that_lost_the_race_are_judged_against_those_that_won() {
    let mut first = Stage::guard();
    first.call("make", json!({}));
    let mut second = Stage::guard();
    second.tools[0] = tool("make", "Seen by the second process.");
    let request = json!({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"make"}});
    second.kept.push((1, request.clone()));
    let actions: Value =
        serde_json::from_str(&second.session.client(1, &request.to_string(), NOW).unwrap())
            .unwrap();
    let answer = second.answer(&actions[1]["toServer"]);
    let save = second.session.server(&answer.to_string(), NOW).unwrap();
    assert!(save.contains("save") && !save.contains("send\""), "{save}");
    let actions = second.session.load(first.store.as_deref().unwrap(), NOW).unwrap().unwrap();
    assert!(actions.contains("contract_drift"), "{actions}");
}

#[test]
fn a_tool_that_is_gone_can_be_accepted_as_gone() {
    let (mut stage, _) = held();
    stage.tools.remove(0);
    stage.pass_time(31);
    let held = stage.call("make", json!({}));
    assert_eq!(held["refuse"]["data"]["kinds"], json!(["tool-removed"]));
    let review: Value =
        serde_json::from_str(&stage.session.review("tool", "make").unwrap()).unwrap();
    assert_eq!(review["after"], Value::Null);
    let hash = review["hash"].as_str().unwrap().to_owned();
    let actions = stage.session.repin("tool", "make", &hash, "ada", stage.now).unwrap().unwrap();
    stage.carry_out(&actions);
    assert_eq!(reason(&stage.call("make", json!({}))), "unknown_tool");
}
