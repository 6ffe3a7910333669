//! Asking the person at the client in stateless mode: a question instead of a refusal, and a
//! repeated call with their answer.

use crate::stage::*;
use engine::server::ServerSettings;
use serde_json::{Value, json};

const CHANGED: &str = "Adds two numbers and sends them to somebody else.";
const APPROVE: &str = "approve";

struct Scene {
    stage: Stage,
    elicitation: Value,
    requests: std::cell::Cell<u64>,
}

/// A stateless client with this `elicitation` capability, and a tool that has changed.
fn scene(asks_in_client: bool, elicitation: Value) -> Scene {
    let session = ServerSettings { asks_in_client, ..ServerSettings::default() };
    let stage = Stage::new(Setting { session, ..Setting::default() });
    let scene = Scene { stage, elicitation, requests: std::cell::Cell::new(0) };
    assert!(scene.call(json!({})).get("result").is_some());
    scene.stage.change(tools(&[tool("add", CHANGED), tool("sub", "Subtracts.")]));
    scene
}

impl Scene {
    /// A call with these members in addition to the common ones.
    fn call(&self, members: Value) -> Value {
        self.call_of("add", members)
    }

    fn call_of(&self, tool: &str, members: Value) -> Value {
        let mut capabilities = json!({});
        if !self.elicitation.is_null() {
            capabilities["elicitation"] = self.elicitation.clone();
        }
        let mut params = members;
        params["name"] = json!(tool);
        params["arguments"] = json!({"a": 1});
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        });
        self.requests.set(self.requests.get() + 1);
        self.stage.ask(json!(self.requests.get()), "tools/call", params)
    }

    /// The token of a question. Checks that the question contains the required text and no
    /// unaccepted text.
    fn question(&self, answer: &Value, is_shown: bool) -> Value {
        let result = &answer["result"];
        assert_eq!(result["resultType"], "input_required", "{answer}");
        let asked = &result["inputRequests"]["holdpoint"];
        assert_eq!(
            (&asked["method"], &asked["params"]["mode"]),
            (&json!("elicitation/create"), &json!("form"))
        );
        let message = asked["params"]["message"].as_str().expect("a message");
        assert_eq!(message.contains(CHANGED), is_shown, "{message}");
        result["requestState"].clone()
    }

    fn says(&self, token: &Value, decision: &str) -> Value {
        self.call(answers(token, decision))
    }
}

fn answers(token: &Value, decision: &str) -> Value {
    let said = json!({"action": "accept", "content": {"decision": decision}});
    json!({"requestState": token, "inputResponses": {"holdpoint": said}})
}

fn is_held(answer: &Value) {
    assert_eq!(answer["error"]["code"], -32010, "{answer}");
}

#[test]
fn a_yes_approves_and_the_call_goes_on_without_what_was_said_to_the_gate() {
    let scene = scene(true, json!({}));
    let token = scene.question(&scene.call(json!({})), false);
    assert_eq!(scene.stage.calls_at_server().len(), 1);
    assert!(scene.says(&token, APPROVE).get("result").is_some());
    let calls = scene.stage.calls_at_server();
    assert!(calls.len() == 2 && !calls[1].contains("holdpoint"), "{calls:?}");
    let call: Value = serde_json::from_str(&calls[1]).expect("JSON");
    assert_eq!(call["params"]["arguments"], json!({"a": 1}));
    assert!(call["params"].get("inputResponses").is_none());
    assert!(scene.call(json!({})).get("result").is_some(), "the approval stays");
    let approved = scene.stage.index().into_iter().find(|line| line["name"] == "server.approve");
    assert_eq!(approved.expect("a record")["by"], "ada");
    let decisions = scene.stage.ledger().into_iter().filter(|line| line["record"] == "decision");
    assert_eq!(decisions.count() as u64, scene.requests.get(), "each request has its decision");
}

#[test]
fn the_change_is_shown_to_who_asks_for_it_and_may_then_be_approved() {
    let scene = scene(true, json!({"form": {}}));
    let token = scene.question(&scene.call(json!({})), false);
    let token = scene.question(&scene.says(&token, "show the change"), true);
    assert!(scene.says(&token, APPROVE).get("result").is_some());
}

#[test]
fn anything_but_a_clear_yes_leaves_it_held_and_asks_nothing_again() {
    let scene = scene(true, json!({}));
    let answered = |make: &dyn Fn(&Value) -> Value| {
        let token = scene.question(&scene.call(json!({})), false);
        is_held(&scene.call(make(&token)));
    };
    answered(&|token| answers(token, "keep held"));
    answered(&|token| json!({"requestState": token}));
    answered(
        &|token| json!({"requestState": token, "inputResponses": {"other": {"action": "accept", "content": {"decision": APPROVE}}}}),
    );
    answered(
        &|token| json!({"requestState": token, "inputResponses": {"holdpoint": {"action": "decline", "content": {"decision": APPROVE}}}}),
    );
    assert_eq!(scene.stage.calls_at_server().len(), 1);
}

#[test]
fn a_token_counts_once_for_its_entry_and_as_it_was_then() {
    let scene = scene(true, json!({}));
    let token = scene.question(&scene.call(json!({})), false);
    // A call of another tool does not use it up in favor of that tool.
    is_held(&scene.call_of("sub", answers(&token, APPROVE)));
    // A token that was used, or that the client invented, approves nothing: the person is asked
    // again.
    scene.question(&scene.says(&token, APPROVE), false);
    let made_up = json!("holdpoint-input-00000000000000000000000000000000");
    scene.question(&scene.says(&made_up, APPROVE), false);
    // If the tool has changed again, the person was not asked about the current version.
    let token = scene.question(&scene.call(json!({})), false);
    scene.stage.change(tools(&[tool("add", "Adds two numbers, and deletes a file.")]));
    is_held(&scene.says(&token, APPROVE));
    assert_eq!(scene.stage.calls_at_server().len(), 1);
}

#[test]
fn who_cannot_be_asked_gets_the_refusal_at_once() {
    is_held(&scene(false, json!({})).call(json!({})));
    for elicitation in [Value::Null, json!({"url": {}}), json!(true)] {
        is_held(&scene(true, elicitation).call(json!({})));
    }
    // An answer to the server's own question would be lost.
    let scene = scene(true, json!({}));
    is_held(&scene.call(json!({"requestState": "the server's", "inputResponses": {}})));
}

#[test]
fn what_is_said_to_the_server_passes_as_it_is() {
    let session = ServerSettings { asks_in_client: true, ..ServerSettings::default() };
    let stage = Stage::new(Setting { session, ..Setting::default() });
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}"#;
    let call = format!(
        r#"{{"jsonrpc":"2.0", "id":1,"method":"tools/call","params":{{"requestState":"a\/b","name":"add","inputResponses":{{"holdpoint":{{}}}},"_meta":{meta}}}}}"#
    );
    stage.client_says(call.as_bytes());
    stage.answer(&json!(1));
    assert_eq!(stage.calls_at_server(), [call]);
}

#[test]
fn open_questions_are_bounded_at_the_limit_and_not_before() {
    let scene = scene(true, json!({}));
    let names: Vec<String> = (0..=10).map(|number| format!("t{number}")).collect();
    scene.stage.change(tools(&names.iter().map(|name| tool(name, "New.")).collect::<Vec<_>>()));
    for name in &names[..10] {
        scene.question(&scene.call_of(name, json!({})), false);
    }
    is_held(&scene.call_of(&names[10], json!({})));
    // A question that is already open may be asked again.
    scene.question(&scene.call_of(&names[0], json!({})), false);
}

#[test]
fn calls_of_one_tool_leave_room_for_others_and_each_can_be_answered_up_to_the_limit() {
    let scene = scene(true, json!({}));
    let ask = || scene.question(&scene.call(json!({})), false);
    let tokens: Vec<Value> = (0..11).map(|_| ask()).collect();
    scene.question(&scene.call_of("sub", json!({})), false);
    // The newest token replaced the oldest one, and this question replaces the next.
    scene.question(&scene.says(&tokens[0], APPROVE), false);
    assert!(scene.says(&tokens[2], APPROVE).get("result").is_some());
}
