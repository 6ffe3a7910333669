//! The scenario's server: both protocol eras, the lists of its phase, and calls that return their arguments.

use super::battery::Case;
use super::phase::{Phase, Stage};
use serde_json::{Map, Value, json};
use std::io::Write;
use wire::Revision;

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
/// The lists that a capture can have: method, member and capability.
const LISTS: &[(&str, &str, &str)] = &[
    ("tools/list", "tools", "tools"),
    ("prompts/list", "prompts", "prompts"),
    ("resources/list", "resources", "resources"),
    ("resources/templates/list", "resourceTemplates", "resources"),
];
/// The most subscriptions that are kept.
pub(super) const MAX_SUBSCRIPTIONS: usize = 16;

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;

/// The answer to a request: a result, or an error code with a message.
type Answer = Result<Value, (i64, String)>;

#[derive(Debug)]
pub(crate) struct Server<W> {
    case: Case,
    stage: Stage,
    output: W,
    phase: Phase,
    has_session: bool,
    /// The ids of open `subscriptions/listen` requests.
    subscriptions: Vec<Value>,
    calls: u64,
    pub(crate) change_on_call: Option<u64>,
    pub(crate) is_withholding: bool,
}

impl<W: Write> Server<W> {
    pub(crate) fn new(case: Case, stage: Stage, output: W) -> Server<W> {
        let phase = stage.phase().unwrap_or(Phase::Before);
        Server {
            case,
            stage,
            output,
            phase,
            has_session: false,
            subscriptions: Vec::new(),
            calls: 0,
            change_on_call: None,
            is_withholding: false,
        }
    }

    /// Handles one line from the client. Reads the phase first, so that the answer matches the file.
    pub(crate) fn hear(&mut self, line: &[u8]) -> std::io::Result<()> {
        self.look()?;
        let Ok(message) = serde_json::from_slice::<Value>(line) else {
            let error = json!({ "code": PARSE_ERROR, "message": "not JSON" });
            return self.say(&json!({ "jsonrpc": "2.0", "id": null, "error": error }));
        };
        let method = message.get("method").and_then(Value::as_str);
        match (method, message.get("id")) {
            (Some("subscriptions/listen"), Some(id)) => self.subscribe(id, &message),
            (Some(method), Some(id)) => {
                let answer = self.answer(method, message.get("params").unwrap_or(&Value::Null));
                self.reply(id, answer)?;
                if method == "tools/call" { self.count_call() } else { Ok(()) }
            }
            (Some("notifications/cancelled"), None) => {
                let cancelled = message.pointer("/params/requestId");
                self.subscriptions.retain(|id| Some(id) != cancelled);
                Ok(())
            }
            // Notifications need no answer, and this server sends no requests that a response could be for.
            (Some(_), None) => Ok(()),
            (None, Some(_)) if message.get("result").or(message.get("error")).is_some() => Ok(()),
            (None, id) => {
                let id = id.cloned().unwrap_or_default();
                self.reply(&id, Err((INVALID_REQUEST, "not a request".to_owned())))
            }
        }
    }

    #[cfg(test)]
    pub(super) fn output_for_tests(&mut self) -> &mut W {
        &mut self.output
    }

    /// Reads the file, and notifies subscribers of a change.
    pub(crate) fn look(&mut self) -> std::io::Result<()> {
        let now = self.stage.phase().unwrap_or(self.phase);
        if std::mem::replace(&mut self.phase, now) == now || self.is_withholding {
            return Ok(());
        }
        let mut notices: Vec<Value> = self
            .subscriptions
            .iter()
            .map(|id| json!({ "_meta": { SUBSCRIPTION: id } }))
            .map(|params| json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": params }))
            .collect();
        if self.has_session {
            notices.push(json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
        }
        notices.iter().try_for_each(|notice| self.say(notice))
    }

    fn count_call(&mut self) -> std::io::Result<()> {
        self.calls = self.calls.saturating_add(1);
        if self.change_on_call == Some(self.calls) {
            self.stage.set(Phase::After)?;
            return self.look();
        }
        Ok(())
    }

    fn subscribe(&mut self, id: &Value, message: &Value) -> std::io::Result<()> {
        if self.subscriptions.len() == MAX_SUBSCRIPTIONS {
            return self.reply(id, Err((INVALID_REQUEST, "too many subscriptions".to_owned())));
        }
        let wants = message.pointer("/params/notifications/toolsListChanged") == Some(&json!(true));
        let honoured = if wants { json!({ "toolsListChanged": true }) } else { json!({}) };
        if wants {
            self.subscriptions.push(id.clone());
        }
        let params = json!({ "_meta": { SUBSCRIPTION: id }, "notifications": honoured });
        let method = "notifications/subscriptions/acknowledged";
        self.say(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
    }

    fn answer(&mut self, method: &str, params: &Value) -> Answer {
        match method {
            "initialize" => {
                self.has_session = true;
                Ok(self.introduction("protocolVersion", json!(session_version(params))))
            }
            "server/discover" => {
                let versions = json!([Revision::July2026.as_str()]);
                Ok(self.introduction("supportedVersions", versions))
            }
            "ping" => Ok(json!({})),
            "tools/call" => self.call(params),
            _ => self.list(method),
        }
    }

    /// The server's identity and capabilities.
    fn introduction(&self, member: &str, versions: Value) -> Value {
        let mut capabilities = Map::new();
        for (_, list, capability) in LISTS {
            if self.surface().get(list).is_some() {
                capabilities.insert((*capability).to_owned(), json!({ "listChanged": true }));
            }
        }
        let mut said = Map::new();
        said.insert(member.to_owned(), versions);
        said.insert("capabilities".to_owned(), Value::Object(capabilities));
        let version = env!("CARGO_PKG_VERSION");
        said.insert("serverInfo".to_owned(), json!({ "name": "scenario", "version": version }));
        if let Some(instructions) = self.surface().get("instructions") {
            said.insert("instructions".to_owned(), instructions.clone());
        }
        Value::Object(said)
    }

    fn list(&self, method: &str) -> Answer {
        let known = LISTS.iter().find(|(known, ..)| *known == method);
        let entries = known.and_then(|(_, list, _)| Some((list, self.surface().get(list)?)));
        match entries {
            Some((list, entries)) => Ok(json!({ *list: entries })),
            None => Err((METHOD_NOT_FOUND, "no such method".to_owned())),
        }
    }

    fn call(&self, params: &Value) -> Answer {
        let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
        let mut tools = self.surface().get("tools").and_then(Value::as_array).into_iter().flatten();
        let Some(tool) = tools.find(|tool| tool.get("name").is_some_and(|known| known == name))
        else {
            return Err((INVALID_PARAMS, "no such tool".to_owned()));
        };
        let arguments = params.get("arguments").cloned().unwrap_or(json!({}));
        let text = format!("{name} got {arguments}");
        let mut result = json!({ "content": [{ "type": "text", "text": text }] });
        if let (Some(schema), Some(result)) = (tool.get("outputSchema"), result.as_object_mut()) {
            result.insert("structuredContent".to_owned(), example(schema));
        }
        Ok(result)
    }

    fn surface(&self) -> &Value {
        match self.phase {
            Phase::Before => &self.case.before,
            Phase::After => &self.case.after,
        }
    }

    fn reply(&mut self, id: &Value, answer: Answer) -> std::io::Result<()> {
        let message = match answer {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err((code, message)) => {
                let error = json!({ "code": code, "message": message });
                json!({ "jsonrpc": "2.0", "id": id, "error": error })
            }
        };
        self.say(&message)
    }

    fn say(&mut self, message: &Value) -> std::io::Result<()> {
        let mut line = message.to_string();
        line.push('\n');
        self.output.write_all(line.as_bytes())?;
        self.output.flush()
    }
}

/// The requested version if that version has sessions, else the newest version that does.
fn session_version(params: &Value) -> &'static str {
    let asked = params.get("protocolVersion").and_then(Value::as_str);
    let asked = asked.and_then(|asked| asked.parse::<Revision>().ok());
    match asked {
        Some(Revision::July2026) | None => Revision::November2025.as_str(),
        Some(asked) => asked.as_str(),
    }
}

/// An object with the members that a schema requires.
fn example(schema: &Value) -> Value {
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let members = required.filter_map(Value::as_str).map(|name| {
        let kind = schema.pointer("/properties").and_then(|all| all.get(name)?.get("type"));
        let value = match kind.and_then(Value::as_str) {
            Some("string") => json!("an example"),
            Some("integer" | "number") => json!(1),
            Some("boolean") => json!(true),
            _ => Value::Null,
        };
        (name.to_owned(), value)
    });
    Value::Object(members.collect())
}
