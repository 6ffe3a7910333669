//! What people decide in another process applies to every call that begins afterwards.

use crate::stage::{Arrived, Script, Setting, Stage, at, server_id, tool, tools};
use contract::surface::EntryType;
use engine::judge::FirstUsePolicy;
use gate::pins::Basis;
use gate::server::ServerStatus;
use serde_json::json;
use std::time::{Duration, Instant};
use store::{
    Act, By, Incident, IncidentLevel, IncidentScope, IncidentStore, NewPin, RevokedKind, Store,
};

fn act(stage: &Stage, name: &'static str, status: ServerStatus) {
    let server = server_id();
    let mut act = Act::new(&server, at(), "ada", name);
    act.status = Some(status);
    stage.store().record(act).expect("an act");
}

/// Approves the last observed entries, like `holdpoint approve`.
fn approve_all(stage: &Stage) {
    approve_only(stage, |_| true);
}

fn approve_only(stage: &Stage, is_approved: fn(EntryType) -> bool) {
    let mut store = stage.store();
    let server = server_id();
    let snapshot = store.snapshot(&server).expect("a snapshot");
    let surface =
        snapshot.observation.as_ref().expect("an observation").surface().expect("a surface");
    let mut act = Act::new(&server, at(), "ada", "server.approve");
    act.expect = Some(snapshot.revision());
    act.status = Some(ServerStatus::Verified);
    let entries = surface.entries().filter(|entry| is_approved(entry.entry_type())).cloned();
    act.pins = entries.map(|entry| NewPin { entry, basis: Basis::Person }).collect();
    store.record(act).expect("an act");
}

#[test]
fn an_approval_counts_for_the_next_call_and_the_client_is_told() {
    let stage = Stage::greeted(Setting::default());
    stage.list(1);
    stage.change(tools(&[tool("add", "Adds all numbers.")]));
    assert_eq!(stage.call(2, "add", json!({}))["error"]["code"], -32010);
    approve_all(&stage);
    assert!(stage.call(3, "add", json!({})).get("result").is_some());
    assert_eq!(stage.list(4)[0]["description"], "Adds all numbers.");
    stage.client_hears("to list again", |message| {
        message["method"] == "notifications/tools/list_changed"
    });
    // The act records its decisions; a gate that notices the act adds nothing.
    let outcomes = stage.index().into_iter();
    let is_outcome =
        |name: &serde_json::Value| name.as_str().is_some_and(|name| name.starts_with("outcome."));
    assert_eq!(outcomes.filter(|line| is_outcome(&line["name"])).count(), 0);
}

#[test]
fn without_a_call_the_client_is_told_too() {
    let stage = Stage::greeted(Setting::default());
    stage.list(1);
    stage.change(tools(&[tool("add", "Adds all numbers.")]));
    assert_eq!(stage.call(2, "add", json!({}))["error"]["code"], -32010);
    approve_all(&stage);
    stage.client_hears("to list again", |message| {
        message["method"] == "notifications/tools/list_changed"
    });
}

#[test]
fn a_quarantine_counts_at_once_for_what_is_no_call_too() {
    let mut stage = Stage::greeted(Setting::default());
    assert!(stage.call(1, "add", json!({})).get("result").is_some());
    act(&stage, "server.quarantine", ServerStatus::Quarantined);
    assert_eq!(stage.ask(json!(2), "x/unknown", json!({}))["error"]["code"], -32010);
    act(&stage, "server.release", ServerStatus::Verified);
    assert!(stage.call(3, "add", json!({})).get("result").is_some());
    act(&stage, "server.quarantine", ServerStatus::Quarantined);
    let at_server = stage.server.all().len();
    stage.say(&json!({"jsonrpc": "2.0", "method": "notifications/x"}));
    stage.end_keeper();
    assert_eq!(stage.server.all().len(), at_server);
}

#[test]
fn a_quarantine_stops_everything_and_a_release_ends_it() {
    let mut stage = Stage::greeted(Setting::default());
    assert!(stage.call(1, "add", json!({})).get("result").is_some());
    act(&stage, "server.quarantine", ServerStatus::Quarantined);
    let held = stage.call(2, "add", json!({}));
    assert_eq!(held["error"]["data"]["reason"], "server_quarantined");
    assert_eq!(stage.ask(json!(3), "x/unknown", json!({}))["error"]["code"], -32010);
    assert!(stage.ask(json!(4), "ping", json!({})).get("result").is_some());
    assert_eq!(stage.refused_list(5)["data"]["reason"], "server_quarantined");
    stage.say(&json!({"jsonrpc": "2.0", "method": "notifications/x"}));
    stage.server_says(br#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#);
    stage.server_says(br#"{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage"}"#);
    act(&stage, "server.release", ServerStatus::Verified);
    assert!(stage.call(6, "add", json!({})).get("result").is_some());
    stage.end_keeper();
    let has =
        |arrived: &Arrived, word: &str| arrived.texts().iter().any(|text| text.contains(word));
    assert!(!has(&stage.server, "notifications/x"), "nothing goes up");
    assert!(!has(&stage.client, "notifications/message"), "nothing comes down");
    assert!(!has(&stage.client, "sampling/createMessage"), "nothing comes down");
}

#[test]
fn who_was_refused_a_list_is_told_of_the_release_and_lists_again() {
    for listed in [tools(&[tool("add", "Adds two numbers.")]), tools(&[])] {
        let script = Script { tools: listed.clone(), ..Script::default() };
        let stage = Stage::greeted(Setting { script, ..Setting::default() });
        let before = stage.list(1);
        let told = || {
            let texts = stage.client.texts();
            texts.iter().filter(|text| text.contains("notifications/tools/list_changed")).count()
        };
        act(&stage, "server.quarantine", ServerStatus::Quarantined);
        crate::stage::wait_for("to be told of the stop", || (told() == 1).then_some(()));
        let refused = stage.refused_list(2);
        assert_eq!(refused["data"]["review"], json!(["holdpoint", "release", "calc"]));
        let message = refused["message"].as_str().expect("a message");
        assert!(message.contains("holdpoint release calc"), "{message}");
        act(&stage, "server.release", ServerStatus::Verified);
        crate::stage::wait_for("to be told of the release", || (told() == 2).then_some(()));
        assert_eq!(stage.list(3), before, "{listed}");
    }
}

#[test]
fn an_incident_denies_every_call_of_its_servers_until_it_ends() {
    let stage = Stage::greeted(Setting::default());
    assert!(stage.call(1, "add", json!({})).get("result").is_some());
    let by = |name| By { name, at: at() };
    let incident = |scope| Incident { level: IncidentLevel::Critical, scope, reason: None };
    let other = ["other".parse().expect("an id")].into_iter().collect();
    let mut store = stage.store();
    store.begin_incident(&incident(IncidentScope::servers(other)), by("ada")).expect("an incident");
    assert!(stage.call(2, "add", json!({})).get("result").is_some());
    store.begin_incident(&incident(IncidentScope::All), by("ada")).expect("an incident");
    let denied = stage.call(3, "add", json!({}));
    assert_eq!(
        (&denied["error"]["code"], &denied["error"]["data"]["reason"]),
        (&json!(1013), &json!("kill_switch"))
    );
    let message = denied["error"]["message"].as_str().expect("a message");
    assert!(message.contains("`holdpoint incident off --reason TEXT`. Agent: stop"), "{message}");
    store.end_incident("over", by("ada")).expect("an end");
    assert!(stage.call(4, "add", json!({})).get("result").is_some());
    assert_eq!(stage.calls_at_server().len(), 3);
}

#[test]
fn what_is_benign_is_pinned_anew_without_asking() {
    let stage = Stage::greeted(Setting::default());
    stage.list(1);
    let mut wider = tool("add", "Adds two numbers.");
    wider["inputSchema"]["properties"]["b"] = json!({"type": "number"});
    stage.change(tools(&[wider.clone()]));
    assert!(stage.call(2, "add", json!({"b": 1})).get("result").is_some());
    assert_eq!(stage.list(3)[0], wider);
    let history = stage.store().history(&server_id()).expect("history");
    assert!(history.iter().any(|event| event.basis == Some(Basis::Auto)));
}

/// This many tools, each with these additional optional parameters.
fn wider(count: usize, parameters: &[&str]) -> String {
    let wider = |index: usize| {
        let mut tool = tool(&format!("add{index:02}"), "Adds two numbers.");
        for parameter in parameters {
            tool["inputSchema"]["properties"][parameter] = json!({"type": "number"});
        }
        tool
    };
    tools(&(0..count).map(wider).collect::<Vec<_>>())
}

fn auto_pins(stage: &Stage) -> usize {
    let history = stage.store().history(&server_id()).expect("history");
    history.iter().filter(|event| event.basis == Some(Basis::Auto)).count()
}

/// How many tools are shown as the server defines them now.
fn shown_with(stage: &Stage, id: u64, parameter: &str) -> usize {
    let list = stage.list(id);
    let is_wider =
        |tool: &&serde_json::Value| tool["inputSchema"]["properties"].get(parameter).is_some();
    list.iter().filter(is_wider).count()
}

#[test]
fn exactly_twenty_changes_a_day_are_accepted_without_asking_and_each_has_a_pin() {
    let script = Script { tools: wider(45, &[]), ..Script::default() };
    let stage = Stage::greeted(Setting { script, ..Setting::default() });
    assert_eq!(stage.list(1).len(), 45);
    stage.change(wider(45, &["b"]));
    assert_eq!(shown_with(&stage, 2, "b"), 20);
    assert_eq!(auto_pins(&stage), 20);
    let answers =
        (0..45).map(|index| stage.call(100 + index, &format!("add{index:02}"), json!({})));
    assert_eq!(answers.filter(|answer| answer.get("result").is_some()).count(), 20);
    // No further changes are accepted when the entries are judged again or change again.
    act(&stage, "server.quarantine", ServerStatus::Quarantined);
    assert_eq!(stage.refused_list(3)["data"]["reason"], "server_quarantined");
    act(&stage, "server.release", ServerStatus::Changed);
    assert_eq!(shown_with(&stage, 4, "b"), 20);
    stage.change(wider(45, &["b", "c"]));
    assert_eq!(shown_with(&stage, 5, "c"), 0);
    assert_eq!(auto_pins(&stage), 20);
}

#[test]
fn a_second_session_of_the_same_server_accepts_no_further_changes_that_day() {
    let script = |parameters: &[&str]| Script { tools: wider(15, parameters), ..Script::default() };
    let setting = |script| Setting { script, ..Setting::default() };
    let stage = Stage::greeted(setting(script(&[])));
    stage.list(1);
    stage.change(wider(15, &["b"]));
    assert_eq!(shown_with(&stage, 2, "b"), 15);
    let stage = stage.again(setting(script(&["b", "c"])));
    stage.greet(&json!({}));
    assert_eq!(shown_with(&stage, 3, "c"), 5);
    assert_eq!(auto_pins(&stage), 20);
}

/// A list that takes long to compare with the same list for another word, especially in a debug
/// build.
fn slow_list(word: &str) -> String {
    let branch = |index: usize| {
        let name = format!("p{index}");
        json!({"title": format!("{index}{word}"), "properties": {name.clone(): {"description": word}}, "required": [name]})
    };
    let branches: Vec<serde_json::Value> = (0..2_000).map(branch).collect();
    let tool =
        |index: usize| json!({"name": format!("slow{index}"), "inputSchema": {"anyOf": branches}});
    tools(&(0..12).map(tool).collect::<Vec<_>>())
}

#[test]
fn a_call_after_a_quarantine_waits_for_no_comparison() {
    let script = Script { tools: slow_list("a"), ..Script::default() };
    let stage = Stage::greeted(Setting { script, ..Setting::default() });
    assert_eq!(stage.list(1).len(), 12);
    stage.change(slow_list("b"));
    act(&stage, "server.quarantine", ServerStatus::Quarantined);
    // Only a call of a listed tool waits for the comparison.
    let begun = Instant::now();
    stage.say(
        &json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "slow1"}}),
    );
    let is_compared = || stage.client.texts().iter().any(|text| text.contains("\"id\":2,"));
    let (mut longest, mut id) = (Duration::ZERO, 100);
    while !is_compared() {
        let asked = Instant::now();
        let held = stage.ask(json!(id), "x/unknown", json!({}));
        longest = longest.max(asked.elapsed());
        assert_eq!(held["error"]["data"]["reason"], "server_quarantined");
        id += 1;
    }
    let compared = begun.elapsed();
    assert!(id > 101, "only one request was made in {compared:?}");
    assert!(longest * 4 < compared, "{longest:?}, with {compared:?} of comparing");
}

#[test]
fn a_server_that_is_stopped_does_not_get_the_answers_that_it_waited_for() {
    let mut stage = Stage::greeted(Setting::default());
    stage.list(1);
    for id in ["s1", "s2"] {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": "sampling/createMessage"});
        stage.server_says(request.to_string().as_bytes());
    }
    let answer = |id: &str| json!({"jsonrpc": "2.0", "id": id, "result": {"role": "assistant"}});
    stage.say(&answer("s1"));
    act(&stage, "server.quarantine", ServerStatus::Quarantined);
    stage.say(&answer("s2"));
    stage.end_keeper();
    let heard = stage.server.texts();
    assert_eq!(heard.iter().filter(|text| text.contains("assistant")).count(), 1);
    let dropped = stage.ledger().into_iter().filter(|line| line["name"] == "mcp.response.dropped");
    assert_eq!(
        dropped.map(|line| line["data"]["reason"].clone()).collect::<Vec<_>>(),
        ["server_stopped"]
    );
}

#[test]
fn a_server_that_was_revoked_is_told_apart_from_an_incident() {
    let stage = Stage::greeted(Setting::default());
    assert!(stage.call(1, "add", json!({})).get("result").is_some());
    let by = By { name: "ada", at: engine::recorder::now() };
    stage.store().revoke(RevokedKind::Server, server_id().as_str(), by).expect("a revocation");
    let denied = stage.call(2, "add", json!({}));
    assert_eq!(
        (&denied["error"]["code"], &denied["error"]["data"]["reason"]),
        (&json!(1013), &json!("session_quarantined"))
    );
    let message = denied["error"]["message"].as_str().expect("a message");
    assert!(
        message.contains("then restarts it in the client. Agent: stop")
            && !message.contains("incident")
    );
}

/// The server may take as long as it likes to answer its lists.
#[test]
fn a_server_that_will_wait_for_a_person_is_stopped_before_its_lists_are_there() {
    let setting = Setting { first_use: FirstUsePolicy::Approve, ..Setting::default() };
    let mut stage = Stage::new(setting);
    let at_client = stage.client.all().len();
    stage.server_says(br#"{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage"}"#);
    stage.server_says(br#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#);
    stage.end_keeper();
    assert_eq!(stage.client.all().len(), at_client);
}

fn asked_at_first(program: &'static str) -> Setting {
    let first_use = FirstUsePolicy::Approve;
    Setting { first_use, program: Some(program), ..Setting::default() }
}

fn bases(stage: &Stage) -> Vec<(EntryType, Basis)> {
    let pins = stage.store().pins(&server_id()).expect("pins");
    let pins = pins.iter().flat_map(|(id, pins)| pins.iter().map(|pin| (id.entry_type, pin.basis)));
    pins.collect()
}

#[test]
fn a_first_approval_is_of_one_program_and_of_no_other_under_its_id() {
    let stage = Stage::greeted(asked_at_first("calc"));
    assert_eq!(stage.refused_list(1)["data"]["reason"], "server_pending");
    approve_all(&stage);
    assert!(stage.call(2, "add", json!({})).get("result").is_some());
    assert_eq!(bases(&stage).len(), 3, "a tool, the identity and the origin");
    let other = stage.again(asked_at_first("another"));
    other.greet(&json!({}));
    let held = other.call(3, "add", json!({}));
    assert_eq!(held["error"]["data"]["kinds"], json!(["origin-changed"]), "{held}");
    assert!(other.calls_at_server().is_empty());
    assert!(bases(&other).iter().all(|(_, basis)| *basis == Basis::Person));
}

#[test]
fn a_server_with_pins_and_none_of_its_origin_is_held_and_nothing_of_it_pinned_without_asking() {
    let stage = Stage::greeted(asked_at_first("calc"));
    assert_eq!(stage.refused_list(1)["data"]["reason"], "server_pending");
    approve_only(&stage, |entry_type| entry_type == EntryType::Tool);
    let held = stage.call(2, "add", json!({}));
    assert_eq!(held["error"]["data"]["reason"], "no_pin", "{held}");
    // It is observed again, and still no person was asked.
    stage.change(tools(&[tool("add", "Adds two numbers.")]));
    assert_eq!(stage.refused_list(3)["data"]["reason"], "no_pin");
    assert_eq!(bases(&stage), [(EntryType::Tool, Basis::Person)]);
    assert!(stage.calls_at_server().is_empty());
    approve_all(&stage);
    assert!(stage.call(4, "add", json!({})).get("result").is_some());
}

#[test]
fn a_server_that_was_never_approved_serves_nothing_when_it_is_released() {
    let stage = Stage::greeted(asked_at_first("calc"));
    assert_eq!(stage.refused_list(1)["data"]["reason"], "server_pending");
    act(&stage, "server.quarantine", ServerStatus::Quarantined);
    assert_eq!(stage.refused_list(2)["data"]["reason"], "server_quarantined");
    act(&stage, "server.release", ServerStatus::Unbaselined);
    assert!(stage.call(3, "add", json!({})).get("error").is_some());
    // A new observation makes it wait again.
    stage.change(tools(&[tool("add", "Adds two numbers.")]));
    assert!(stage.call(4, "add", json!({})).get("error").is_some());
    assert!(bases(&stage).is_empty());
    assert!(stage.calls_at_server().is_empty());
}
