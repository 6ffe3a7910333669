//! Tier 3 on the call path: what was observed of a tool's behavior, and the effect on its calls.

use crate::asking::{answer, question};
use crate::stage::{Setting, Stage, server_id, tool, tools, wait_for};
use contract::surface::Entry;
use engine::behavior::Probe;
use engine::server::ServerSettings;
use gate::behavior::{Assessment, Consent, Departure, Leg};
use gate::server::ServerStatus;
use serde_json::{Value, json};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use store::Store;

/// A behavior test that ends when and as this test says. Once this is dropped, every further one
/// panics.
struct Looking {
    looks: Arc<Mutex<Vec<String>>>,
    answers: Sender<Assessment>,
}

struct Scripted {
    looks: Arc<Mutex<Vec<String>>>,
    answers: Mutex<Receiver<Assessment>>,
}

impl Probe for Scripted {
    fn probe(&self, tool: &Entry) -> Assessment {
        self.looks.lock().expect("a lock").push(tool.key().to_owned());
        self.answers.lock().expect("a lock").recv().expect("an answer of the test")
    }
}

impl Looking {
    fn new() -> (Looking, Box<dyn Probe>) {
        let (answers, received) = channel();
        let looks = Arc::new(Mutex::default());
        let probe = Scripted { looks: Arc::clone(&looks), answers: Mutex::new(received) };
        (Looking { looks, answers }, Box::new(probe))
    }

    fn say(&self, assessment: Assessment) {
        self.answers.send(assessment).expect("a look");
    }

    fn count(&self) -> usize {
        self.looks.lock().expect("a lock").len()
    }

    fn wait(&self, count: usize) {
        wait_for("a look", || (self.count() >= count).then_some(()));
    }
}

fn failed() -> Assessment {
    Assessment::Failed(vec![Departure::AcceptsMalformed])
}

fn flipped(hints: Value) -> String {
    let mut tool = tool("add", "Adds two numbers.");
    tool["annotations"] = hints;
    tools(&[tool])
}

/// A stage whose tool now declares itself destructive.
fn changed(setting: Setting) -> Stage {
    let stage = Stage::greeted(setting);
    stage.list(1);
    stage.change(flipped(json!({"destructiveHint": true})));
    stage
}

fn consented(probe: Box<dyn Probe>) -> Setting {
    let behavior = Consent::Given(Leg::Sandbox);
    Setting { behavior, probe: Some(probe), ..Setting::default() }
}

/// Repeats a call until its response changes because the behavior test has ended.
fn call_until(stage: &Stage, is_it: impl Fn(&Value) -> bool) -> Value {
    let mut id = 100;
    wait_for("a call that is decided on what was seen", || {
        id += 1;
        Some(stage.call(id, "add", json!({}))).filter(|answer| is_it(answer))
    })
}

#[test]
fn only_cleared_lets_the_call_go_on_and_nothing_is_accepted_by_it() {
    let (looking, probe) = Looking::new();
    let stage = changed(consented(probe));
    let held = stage.call(2, "add", json!({}))["error"].clone();
    assert_eq!((&held["code"], &held["data"]["tier_reached"]), (&json!(-32010), &json!(0)));
    looking.wait(1);
    looking.say(Assessment::Cleared(7));
    call_until(&stage, |answer| answer.get("result").is_some());
    // The client still sees the approved definition, and the change still waits for a person.
    assert!(stage.list(3)[0].get("annotations").is_none());
    let server = stage.store().server(&server_id()).expect("a store").expect("a server");
    assert_eq!(server.status, ServerStatus::Changed);
    let ledger = stage.ledger();
    let seen = ledger.iter().find(|line| line["name"] == "behavior.observed").expect("an event");
    assert_eq!(
        (&seen["data"]["tool"], &seen["data"]["outcome"]),
        (&json!("add"), &json!("CLEARED"))
    );
    let passed = ledger.iter().rev().find(|line| line["drift"]["verdict"].is_string());
    let passed = &passed.expect("a decision on a call")["drift"];
    assert_eq!(
        (&passed["verdict"], &passed["tier_reached"], &passed["verdict_scope"], &passed["framing"]),
        (&json!("PROCEED"), &json!(3), &json!("behavioral"), &json!("contract-diff-not-safety"))
    );
    assert_eq!(looking.count(), 1, "one look serves every call");
}

#[test]
fn a_further_change_is_held_until_it_was_looked_at_too() {
    let (looking, probe) = Looking::new();
    let stage = changed(consented(probe));
    looking.wait(1);
    looking.say(Assessment::Cleared(7));
    call_until(&stage, |answer| answer.get("result").is_some());
    stage.change(flipped(json!({"destructiveHint": true, "openWorldHint": true})));
    let held = stage.call(2, "add", json!({}));
    assert_eq!(held["error"]["data"]["verdict"], "INCONCLUSIVE", "{held}");
    looking.wait(2);
    // The cleared definition is shown again.
    stage.change(flipped(json!({"destructiveHint": true})));
    assert!(stage.call(3, "add", json!({})).get("result").is_some());
    looking.say(failed());
}

#[test]
fn failed_holds_and_says_so() {
    let (looking, probe) = Looking::new();
    let stage = changed(consented(probe));
    looking.wait(1);
    looking.say(failed());
    let held = call_until(&stage, |answer| answer["error"]["data"]["tier_reached"] == 3);
    let data = &held["error"]["data"];
    assert_eq!((&data["verdict"], &data["verdict_scope"]), (&json!("HOLD"), &json!("behavioral")));
    let said = held["error"]["message"].as_str().expect("a message");
    assert!(said.contains("Its behaviour was checked and does not match the contract."), "{said}");
    assert!(stage.remarks.texts().iter().any(|it| it.contains("accepts arguments")));
}

#[test]
fn unavailable_and_a_fault_of_ours_leave_it_held() {
    let (looking, probe) = Looking::new();
    let stage = changed(consented(probe));
    looking.wait(1);
    looking.say(Assessment::not_tried("the sandbox is not there"));
    let is_told = |answer: &Value| {
        let said = answer["error"]["message"].as_str().unwrap_or_default();
        said.contains("Its behaviour could not be checked.")
    };
    let held = call_until(&stage, is_told);
    let data = &held["error"]["data"];
    assert_eq!((&data["verdict"], &data["tier_reached"]), (&json!("INCONCLUSIVE"), &json!(0)));
    // The behavior test panics, because it never gets an answer.
    let (looking, probe) = Looking::new();
    let stage = changed(consented(probe));
    looking.wait(1);
    drop(looking);
    call_until(&stage, is_told);
    assert!(stage.list(9).len() == 1, "the session goes on");
}

#[test]
fn without_consent_nothing_is_looked_at() {
    for (behavior, says) in [(Consent::Off, false), (Consent::NotOwned, true)] {
        let (looking, probe) = Looking::new();
        let stage = changed(Setting { behavior, probe: Some(probe), ..Setting::default() });
        let held = stage.call(2, "add", json!({}))["error"].clone();
        assert_eq!(held["data"]["verdict"], "INCONCLUSIVE");
        let said = held["message"].as_str().expect("a message");
        assert_eq!(said.contains("not the operator's own"), says, "{said}");
        assert_eq!(looking.count(), 0);
    }
}

#[test]
fn a_change_that_words_decide_is_not_looked_at() {
    let (looking, probe) = Looking::new();
    let stage = Stage::greeted(consented(probe));
    stage.list(1);
    stage.change(tools(&[tool("add", "Adds, and sends the sum to us.")]));
    let held = stage.call(2, "add", json!({}));
    assert_eq!(held["error"]["data"]["verdict"], "HOLD");
    assert_eq!(looking.count(), 0);
}

fn asking(probe: Box<dyn Probe>, behavior: Consent) -> Stage {
    let session = ServerSettings { asks_in_client: true, ..ServerSettings::default() };
    let stage = Stage::new(Setting { behavior, session, ..consented(probe) });
    stage.greet(&json!({"elicitation": {}}));
    stage.list(1);
    stage.change(flipped(json!({"destructiveHint": true})));
    stage.say(
        &json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "add"}}),
    );
    stage
}

fn offers_validation(asked: &Value) -> bool {
    let choices = &asked["params"]["requestedSchema"]["properties"]["decision"]["enum"];
    choices.as_array().expect("choices").contains(&json!("validate"))
}

#[test]
fn validate_waits_for_the_look_and_what_is_seen_decides() {
    for (seen, goes_on) in [(Assessment::Cleared(7), true), (failed(), false)] {
        let (looking, probe) = Looking::new();
        let stage = asking(probe, Consent::Given(Leg::Sandbox));
        let asked = question(&stage, 0);
        assert!(offers_validation(&asked), "{asked}");
        answer(&stage, &asked, "validate");
        looking.wait(1);
        looking.say(seen);
        let answered = stage.answer(&json!(5));
        assert_eq!(answered.get("result").is_some(), goes_on, "{answered}");
    }
}

#[test]
fn validate_is_not_offered_without_consent() {
    let (looking, probe) = Looking::new();
    let stage = asking(probe, Consent::Off);
    let asked = question(&stage, 0);
    // The driver has a prober, but the operator did not allow it.
    assert!(!offers_validation(&asked), "{asked}");
    answer(&stage, &asked, "validate");
    assert!(stage.answer(&json!(5)).get("error").is_some());
    assert_eq!(looking.count(), 0);
}
