//! Clients with different capabilities may be shown different lists.

use crate::stage::*;
use gate::server::ServerStatus;
use serde_json::json;
use store::Store;

fn both() -> String {
    tools(&[tool("add", "Adds."), tool("ask", "Asks the user.")])
}

fn only_add() -> String {
    tools(&[tool("add", "Adds.")])
}

fn status(stage: &Stage) -> Option<ServerStatus> {
    stage.store().server(&server_id()).expect("a store").map(|server| server.status)
}

#[test]
fn what_one_view_lacks_is_no_removal_for_another() {
    let script = Script { tools: both(), ..Script::default() };
    let stage = Stage::new(Setting { script, ..Setting::default() });
    stage.greet(&json!({"elicitation": {}}));
    assert_eq!(stage.list(1).len(), 2);
    // The tools of the new view are listed as soon as it exists.
    stage.change_unsaid(only_add());
    stage.greet(&json!({}));
    assert_eq!(stage.list(2).len(), 1);
    assert!(stage.call(3, "add", json!({})).get("result").is_some());
    assert_eq!(status(&stage), Some(ServerStatus::Verified));
}

#[test]
fn what_a_view_showed_and_lacks_now_is_removed_from_it() {
    let script = Script { tools: only_add(), ..Script::default() };
    let stage = Stage::new(Setting { script, ..Setting::default() });
    stage.greet(&json!({}));
    assert_eq!(stage.list(1).len(), 1);
    stage.greet(&json!({"elicitation": {}}));
    stage.change(both());
    stage.list(2);
    stage.change(tools(&[tool("ask", "Asks the user.")]));
    let refused = stage.call(3, "add", json!({}));
    assert_eq!(refused["error"]["data"]["kinds"], json!(["tool-removed"]), "{refused}");
    assert_eq!(status(&stage), Some(ServerStatus::Changed));
}

#[test]
fn after_a_restart_another_view_misses_nothing_and_the_recorded_one_does() {
    for (capabilities, expected) in
        [(json!({}), ServerStatus::Verified), (json!({"elicitation": {}}), ServerStatus::Changed)]
    {
        let script = Script { tools: both(), ..Script::default() };
        let stage = Stage::new(Setting { script, ..Setting::default() });
        stage.greet(&json!({"elicitation": {}}));
        assert_eq!(stage.list(1).len(), 2);
        let script = Script { tools: only_add(), ..Script::default() };
        let stage = stage.again(Setting { script, ..Setting::default() });
        stage.greet(&capabilities);
        stage.list(2);
        assert_eq!(status(&stage), Some(expected), "{capabilities}");
    }
}
