//! How fresh a view must be for a call to be dispatched.

use crate::stage::{Script, Setting, Stage, tool, tools, wait_until};
use contract::surface::ListKind;
use engine::server::ServerSettings;
use engine::server::driver::SessionWake;
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn aged(max_age: Duration) -> Setting {
    let session = ServerSettings { relist_max_age: max_age, ..ServerSettings::default() };
    Setting { session, ..Setting::default() }
}

fn lists(stage: &Stage) -> usize {
    stage.server.texts().into_iter().filter(|text| text.contains("tools/list")).count()
}

#[test]
fn a_change_that_the_server_keeps_to_itself_is_found_when_the_view_is_old() {
    let max_age = Duration::from_millis(200);
    let stage = Stage::greeted(aged(max_age));
    assert!(stage.call(1, "add", json!({})).get("result").is_some());
    stage.script.lock().expect("a lock").tools = tools(&[tool("add", "Something else.")]);
    let listed_before = Instant::now();
    wait_until("the view to be old", || listed_before.elapsed() > max_age);
    assert_eq!(stage.call(2, "add", json!({}))["error"]["code"], -32010);
}

#[test]
fn a_view_that_is_young_is_not_asked_for_again() {
    let stage = Stage::greeted(Setting::default());
    assert!(stage.call(1, "add", json!({})).get("result").is_some());
    let before = lists(&stage);
    for id in 2..50 {
        assert!(stage.call(id, "add", json!({})).get("result").is_some());
    }
    assert_eq!(lists(&stage), before);
}

#[test]
fn with_an_age_of_zero_every_call_looks_first() {
    let stage = Stage::greeted(aged(Duration::ZERO));
    assert!(stage.call(1, "add", json!({})).get("result").is_some());
    for id in 2..6 {
        let before = lists(&stage);
        assert!(stage.call(id, "add", json!({})).get("result").is_some());
        assert_eq!(lists(&stage), before + 1);
    }
    stage.script.lock().expect("a lock").tools = tools(&[tool("add", "Something else.")]);
    assert_eq!(stage.call(9, "add", json!({}))["error"]["code"], -32010);
}

#[test]
fn calls_that_wait_share_one_list() {
    let script = Script { answers_lists: false, ..Script::default() };
    let mut stage = Stage::greeted(Setting { script, ..Setting::default() });
    for id in 0..20 {
        stage.say(
            &json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "add"}}),
        );
    }
    let list = stage.server_hears("a list", |message| message["method"] == "tools/list");
    let tools = Script::default().tools;
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"tools":{tools}}}}}"#, list["id"]);
    stage.server_says(answer.as_bytes());
    for id in 0..20 {
        assert!(stage.answer(&json!(id)).get("result").is_some());
    }
    stage.end_keeper();
    assert_eq!(lists(&stage), 1);
}

/// The server answered the list request before the call arrived, and changed in between.
#[test]
fn with_an_age_of_zero_a_call_does_not_join_a_list_that_was_asked_for_before_it() {
    let stage = Stage::greeted(aged(Duration::ZERO));
    assert!(stage.call(1, "add", json!({})).get("result").is_some());
    stage.script.lock().expect("a lock").answers_lists = false;
    let before = lists(&stage);
    let call = |id: u64| {
        stage.say(
            &json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "add"}}),
        );
    };
    // Answers the newest list request once there are this many.
    let answer = |count: usize, tools: &str| {
        wait_until("a list", || lists(&stage) == before + count);
        let asked = stage.server.texts().into_iter().rfind(|text| text.contains("tools/list"));
        let asked: serde_json::Value = serde_json::from_str(&asked.expect("a list")).expect("JSON");
        let id = &asked["id"];
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":{tools}}}}}"#);
        stage.server_says(answer.as_bytes());
    };
    call(2);
    wait_until("a list", || lists(&stage) == before + 1);
    call(3);
    answer(1, &Script::default().tools);
    assert!(stage.answer(&json!(2)).get("result").is_some());
    answer(2, &tools(&[tool("add", "Something else.")]));
    assert_eq!(stage.answer(&json!(3))["error"]["code"], -32010);
}

#[test]
fn a_flood_of_changes_makes_no_flood_of_lists() {
    let mut stage = Stage::greeted(Setting::default());
    stage.list(1);
    let before = lists(&stage);
    for _ in 0..10_000 {
        stage.server_says(br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    }
    stage.end_keeper();
    assert!(lists(&stage) <= before + 2, "{} lists", lists(&stage) - before);
}

#[test]
fn other_messages_do_not_wait_for_a_list() {
    let script = Script { answers_lists: false, ..Script::default() };
    let stage = Stage::greeted(Setting { script, ..Setting::default() });
    stage.say(
        &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add"}}),
    );
    assert!(stage.ask(json!(2), "ping", json!({})).get("result").is_some());
}

#[test]
fn a_cancellation_follows_the_call_that_waited() {
    let script = Script { answers_lists: false, answers_calls: false, ..Script::default() };
    let stage = Stage::greeted(Setting { script, ..Setting::default() });
    stage.say(
        &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add"}}),
    );
    let list = stage.server_hears("a list", |message| message["method"] == "tools/list");
    stage.say(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}),
    );
    stage.say(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}),
    );
    let tools = Script::default().tools;
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"tools":{tools}}}}}"#, list["id"]);
    stage.server_says(answer.as_bytes());
    stage.server_hears("the cancellation", |message| message["params"]["requestId"] == 1);
    let heard = stage.server.texts();
    let call = heard.iter().position(|text| text.contains("tools/call")).expect("the call");
    let cancelled: Vec<usize> = heard
        .iter()
        .enumerate()
        .filter(|(_, text)| text.contains("cancelled") && text.contains("\"requestId\":1"))
        .map(|(at, _)| at)
        .collect();
    assert!(matches!(cancelled.as_slice(), [at] if *at > call), "{heard:?}");
}

#[test]
fn a_call_that_takes_too_long_is_answered_and_cancelled() {
    let script = Script { answers_calls: false, ..Script::default() };
    let session = ServerSettings {
        call_timeout: Some(Duration::from_millis(200)),
        ..ServerSettings::default()
    };
    let stage = Stage::greeted(Setting { script, session, ..Setting::default() });
    let answer = stage.call(1, "add", json!({}));
    assert_eq!(answer["error"]["data"]["reason"], "timeout");
    stage
        .server_hears("the cancellation", |message| message["method"] == "notifications/cancelled");
    stage.server_says(br#"{"jsonrpc":"2.0","id":1,"result":{"late":1}}"#);
    assert!(!stage.client.texts().iter().any(|text| text.contains("late")));
}

#[test]
fn when_the_server_ends_everything_that_waits_is_answered() {
    let script = Script { answers_calls: false, ..Script::default() };
    let stage = Stage::greeted(Setting { script, ..Setting::default() });
    stage.list(1);
    stage.say(
        &json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "add"}}),
    );
    stage.server_hears("the call", |message| message["id"] == 5);
    stage.session.server_ended();
    assert_eq!(stage.answer(&json!(5))["error"]["code"], -32011);
    assert_eq!(stage.call(6, "add", json!({}))["error"]["data"]["reason"], "upstream_unreachable");
}

#[test]
fn a_client_that_does_not_wait_for_the_handshake_has_only_offered_lists_fetched() {
    let info = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info});
    let greeting = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let lines = [greeting.to_string(), list.to_string()];
    for _ in 0..8 {
        let stage = Stage::new(Setting::default());
        let (has_begun, is_answered) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            // The keeper runs repeatedly while the server's handshake response is being read.
            scope.spawn(|| {
                wait_until("the handshake", || has_begun.load(Ordering::Relaxed));
                while !is_answered.load(Ordering::Relaxed) {
                    stage.wake_keeper(SessionWake::Relist(ListKind::Tools));
                    std::thread::yield_now();
                }
            });
            // Both messages are read before the server gets the first one.
            stage.session.client_said(lines[0].as_bytes(), true);
            has_begun.store(true, Ordering::Relaxed);
            stage.client_says(lines[1].as_bytes());
            assert!(stage.answer(&json!(2)).get("result").is_some());
            is_answered.store(true, Ordering::Relaxed);
        });
        let asked = stage.server.texts();
        assert!(!asked.iter().any(|text| text.contains("prompts/list")), "{asked:?}");
    }
}
