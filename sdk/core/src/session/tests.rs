use super::*;
use serde_json::{Value, json};

mod lists;
mod pins;

const NOW: i64 = 1_700_000_000_000;

/// A server that is a value, and an application that carries out what the session says.
struct Stage {
    session: Session,
    tools: Vec<Value>,
    per_page: usize,
    now: i64,
    store: Option<String>,
    can_write: bool,
    /// What reached the server, apart from the gate's own requests.
    sent: Vec<Value>,
    asked: Vec<String>,
    kept: Vec<(Ticket, Value)>,
    /// What the client got: answers, and refusals as `{"refuse": …}`.
    heard: Vec<Value>,
    /// The message of the server that is being handed in.
    said: Value,
    ticket: Ticket,
}

fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object", "properties": {"title": {"type": "string"}}}})
}

impl Stage {
    fn new(options: &Value) -> Stage {
        Stage::with_pins(options, None)
    }

    fn with_pins(options: &Value, store: Option<String>) -> Stage {
        let mut options = options.clone();
        options["server"] = json!("reports");
        Stage {
            session: Session::open(&options.to_string(), store.as_deref(), "s1").unwrap(),
            tools: vec![tool("make", "Makes a report."), tool("send", "Sends it.")],
            per_page: 100,
            now: NOW,
            store,
            can_write: true,
            sent: Vec::new(),
            asked: Vec::new(),
            kept: Vec::new(),
            heard: Vec::new(),
            said: Value::Null,
            ticket: 0,
        }
    }

    fn guard() -> Stage {
        Stage::new(&json!({}))
    }

    /// The client sends a request. Returns what it hears, or the message that reached the server.
    #[expect(clippy::needless_pass_by_value, reason = "callers write the value in place")]
    fn request(&mut self, method: &str, params: Value) -> Value {
        self.ticket += 1;
        let message = json!({"jsonrpc":"2.0","id":self.ticket,"method":method,"params":params});
        self.send(&message)
    }

    fn send(&mut self, message: &Value) -> Value {
        let (heard, sent) = (self.heard.len(), self.sent.len());
        self.kept.push((self.ticket, message.clone()));
        match self.session.client(self.ticket, &message.to_string(), self.now) {
            None => self.sent.push(message.clone()),
            Some(actions) => self.carry_out(&actions),
        }
        let heard = self.heard.get(heard).cloned();
        heard.or_else(|| self.sent.get(sent).cloned()).unwrap_or(Value::Null)
    }

    #[expect(clippy::needless_pass_by_value, reason = "callers write the value in place")]
    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    fn list(&mut self) -> Vec<String> {
        let answer = self.request("tools/list", json!({}));
        assert_eq!(answer["result"]["ttlMs"], 0, "{answer}");
        let tools = answer["result"]["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["description"].as_str().unwrap().to_owned()).collect()
    }

    fn carry_out(&mut self, actions: &str) {
        let actions: Vec<Value> = serde_json::from_str(actions).unwrap();
        for action in actions {
            let (name, value) = action.as_object().unwrap().iter().next().unwrap();
            match name.as_str() {
                "save" if self.can_write => {
                    self.store = self.session.pins(self.now);
                    assert!(self.store.is_some());
                    let next = self.session.saved(self.now);
                    next.iter().for_each(|next| self.carry_out(next));
                }
                "save" => {
                    let next = self.session.unsaved();
                    next.iter().for_each(|next| self.carry_out(next));
                }
                "send" | "watch" => {
                    let ticket = value.as_u64().unwrap() as Ticket;
                    let found = self.kept.iter().find(|(kept, _)| *kept == ticket).unwrap();
                    self.sent.push(found.1.clone());
                }
                "toServer" => {
                    let answer = self.answer(value);
                    self.server(&answer);
                }
                "toClient" => self.heard.push(value.clone()),
                "answer" => self.heard.push(value["message"].clone()),
                "answerAsSent" => {
                    let ticket = value["ticket"].as_u64().unwrap() as Ticket;
                    let asked = self.kept.iter().find(|(kept, _)| *kept == ticket).unwrap();
                    let mut answer = self.said.clone();
                    assert_eq!(value["id"], answer["id"], "the shell has that message");
                    answer["id"] = asked.1["id"].clone();
                    answer["result"]["ttlMs"] = json!(0);
                    self.heard.push(answer);
                }
                "refuse" => self.heard.push(action.clone()),
                "wait" | "drop" | "wake" | "withhold" => {}
                other => panic!("an unknown action: {other}"),
            }
        }
    }

    /// The server says something. What is passed on as it is, the client hears.
    fn server(&mut self, message: &Value) {
        let before = std::mem::replace(&mut self.said, message.clone());
        match self.session.server(&message.to_string(), self.now) {
            None => self.heard.push(message.clone()),
            Some(next) => self.carry_out(&next),
        }
        self.said = before;
    }

    fn answer(&mut self, request: &Value) -> Value {
        let method = request["method"].as_str().unwrap();
        self.asked.push(method.to_owned());
        let from: usize = request["params"]["cursor"].as_str().map_or(0, |at| at.parse().unwrap());
        let tools: Vec<&Value> = self.tools.iter().skip(from).take(self.per_page).collect();
        let mut result = match method {
            "prompts/list" => json!({"prompts": []}),
            _ => json!({"tools": tools, "ttlMs": 86_400_000}),
        };
        if from + self.per_page < self.tools.len() {
            result["nextCursor"] = json!((from + self.per_page).to_string());
        }
        json!({"jsonrpc":"2.0","id":request["id"],"result":result})
    }

    fn pass_time(&mut self, seconds: i64) {
        self.now += seconds * 1_000;
    }
}

fn reason(heard: &Value) -> &str {
    heard["refuse"]["data"]["reason"].as_str().unwrap_or("")
}

#[test]
fn an_unchanged_tool_is_called_and_a_changed_one_is_held_before_anything_is_sent() {
    let mut stage = Stage::guard();
    assert_eq!(stage.call("make", json!({"title": "x"}))["method"], "tools/call");
    stage.tools[0] = tool("make", "Makes a report and mails it.");
    stage.pass_time(31);
    let held = stage.call("make", json!({"title": "x"}));
    assert_eq!(reason(&held), "contract_drift", "{held}");
    assert_eq!(held["refuse"]["code"], -32010);
    let message = held["refuse"]["message"].as_str().unwrap();
    assert!(message.ends_with("A person decides in this application."), "{message}");
    assert!(!message.contains("mails it"), "{message}");
    assert_eq!(held["refuse"]["evidence"][0]["after"], "\"Makes a report and mails it.\"");
    assert_eq!(held["refuse"]["data"]["evidence"][0].get("after"), None);
    assert_eq!(stage.call("send", json!({}))["method"], "tools/call");
    assert_eq!(stage.sent.len(), 2);
}

#[test]
fn messages_without_an_opinion_pass_as_they_are() {
    let mut stage = Stage::guard();
    for method in ["ping", "logging/setLevel", "completion/complete", "tasks/get", "x/y"] {
        assert_eq!(stage.request(method, json!({}))["method"], method);
    }
    let answer = json!({"jsonrpc":"2.0","id":3,"result":{"roots":[]}});
    assert_eq!(stage.send(&answer), answer);
    let notification = json!({"jsonrpc":"2.0","method":"notifications/initialized"});
    assert_eq!(stage.send(&notification), notification);
    assert!(stage.asked.is_empty());
}

#[test]
fn what_could_be_read_in_two_ways_is_refused() {
    let mut stage = Stage::guard();
    for message in [
        r#"{"jsonrpc":"2.0","id":1,"method":"TOOLS/CALL","params":{"name":"make"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"make","Name":"send"}}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"make"}}"#,
        r#"[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"make"}}]"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\ud800"}}"#,
        "no JSON",
    ] {
        let actions = stage.session.client(1, message, NOW).unwrap();
        assert!(actions.contains("-32600"), "{message}: {actions}");
    }
    let said = r#"{"jsonrpc":"2.0","method":"Notifications/Tools/List_Changed"}"#;
    assert_eq!(stage.session.server(said, NOW).as_deref(), Some(r#"[{"withhold":null}]"#));
}

#[test]
fn an_unknown_tool_is_no_hold() {
    let mut stage = Stage::guard();
    let refused = stage.call("mkae", json!({}));
    assert_eq!((reason(&refused), &refused["refuse"]["code"]), ("unknown_tool", &json!(1013)));
}

#[test]
fn shield_decides_by_the_call_and_then_holds_the_tool() {
    let mut stage = Stage::new(&json!({"posture": "shield"}));
    stage.call("make", json!({}));
    stage.tools[0]["inputSchema"]["properties"]["title"]["maxLength"] = json!(3);
    stage.pass_time(31);
    assert_eq!(stage.call("make", json!({"title": "abc"}))["method"], "tools/call");
    let held = stage.call("make", json!({"title": "abcd"}));
    assert_eq!(held["refuse"]["data"]["kinds"], json!(["constraint-narrowed"]));
    assert_eq!(reason(&stage.call("make", json!({"title": "abc"}))), "contract_drift");
}

#[test]
fn a_deferred_parameter_holds_only_the_call_that_uses_it() {
    let mut stage = Stage::new(&json!({"guard": {"inertStringMax": 1}}));
    stage.call("make", json!({}));
    stage.tools[0]["inputSchema"]["properties"]["mode"] =
        json!({"type": "string", "description": "How."});
    stage.pass_time(31);
    assert_eq!(stage.call("make", json!({"title": "x"}))["method"], "tools/call");
    assert_eq!(reason(&stage.call("make", json!({"mode": "x"}))), "unapproved_parameter");
    assert_eq!(stage.list(), ["Makes a report.", "Sends it."]);
}

#[test]
fn monitor_notes_and_passes() {
    let mut stage = Stage::new(&json!({"posture": "monitor"}));
    stage.call("make", json!({}));
    stage.tools[0] = tool("make", "Another.");
    stage.pass_time(31);
    assert_eq!(stage.call("make", json!({}))["method"], "tools/call");
    assert_eq!(stage.list(), ["Another.", "Sends it."]);
}

#[test]
fn options_that_are_wrong_are_refused_in_words() {
    let check = |options: &str, words: &str| {
        let error = Session::open(options, None, "s").unwrap_err().to_string();
        assert!(error.contains(words), "{options}: {error}");
    };
    check(r#"{"server":"Reports"}"#, "not a server id");
    check(r#"{"server":"a","token":"x"}"#, "unknown field `token`");
    check(r#"{"server":"a","posture":"lax"}"#, "lax");
    check(r#"{"server":"a","relistMaxAge":-1}"#, "from 0 to 86400");
    check(r#"{"server":"a","relistMaxAge":86401}"#, "from 0 to 86400");
    assert!(Session::open(r#"{"server":"a","relistMaxAge":86400}"#, None, "s").is_ok());
}
