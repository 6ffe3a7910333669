//! A caller of the gateway under test: one MCP session over streamable HTTP.

use http::HeaderValue;
use http::header::AUTHORIZATION;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use wire::remote::{Heard, Outbound, RemoteLimits, RemoteSession, TlsKey};
use wire::{EndpointUrl, HttpEndpoint};

/// The response timeout.
const PATIENCE: Duration = Duration::from_secs(60);
/// The most pages of a list.
const MAX_PAGES: usize = 100;

/// The gateway's response to a request.
#[derive(Debug)]
pub(super) enum Answered {
    Result(Value),
    /// A JSON-RPC error, or a result that is marked as an error.
    Refused(String),
    /// No JSON-RPC response: an HTTP status, or a broken connection.
    Failed(String),
}

impl Answered {
    /// Why the gateway refused the request; `None` if it did not.
    pub(super) fn refusal(&self) -> Option<&str> {
        match self {
            Answered::Result(_) => None,
            Answered::Refused(why) | Answered::Failed(why) => Some(why),
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Answered::Result(result) => result.pointer("/content/0/text")?.as_str(),
            Answered::Refused(_) | Answered::Failed(_) => None,
        }
    }
}

pub(super) struct SuiteCaller {
    session: RemoteSession,
    ids: AtomicU64,
}

impl SuiteCaller {
    /// Opens a session.
    pub(super) async fn begin(url: &EndpointUrl, token: &str) -> Result<SuiteCaller, String> {
        let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
            .map_err(|_| "the token does not fit into a header".to_owned())?;
        value.set_sensitive(true);
        let endpoint = HttpEndpoint {
            url: url.clone(),
            headers: vec![(AUTHORIZATION, value)],
            allow_private: true,
            authorizer: None,
        };
        let session = RemoteSession::open(&endpoint, RemoteLimits::default(), TlsKey::default())
            .await
            .map_err(|error| error.to_string())?;
        let caller = SuiteCaller { session, ids: AtomicU64::new(1) };
        let client = json!({"name": "holdpoint-conformance", "version": env!("CARGO_PKG_VERSION")});
        let params =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        match caller.ask("initialize", params).await {
            Answered::Result(_) => {}
            Answered::Refused(why) | Answered::Failed(why) => return Err(why),
        }
        let method = "notifications/initialized";
        let body = json!({"jsonrpc": "2.0", "method": method}).to_string().into_bytes();
        let told = Outbound { body, method: Some(method.to_owned()), ..Outbound::default() };
        let _ = caller.session.tell(told).await;
        Ok(caller)
    }

    pub(super) async fn ask(&self, method: &str, params: Value) -> Answered {
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let message = Outbound {
            body: body.to_string().into_bytes(),
            method: Some(method.to_owned()),
            id: Some(id.to_string().into_bytes()),
            ..Outbound::default()
        };
        let mut answer = None;
        let hear = |heard: Heard| {
            if let Heard::Answer(bytes) = heard {
                answer = serde_json::from_slice::<Value>(&bytes).ok();
            }
        };
        match tokio::time::timeout(PATIENCE, self.session.ask(message, hear)).await {
            Ok(Ok(())) => read(&answer.unwrap_or_default()),
            Ok(Err(failure)) => Answered::Failed(failure.to_string()),
            Err(_) => Answered::Failed(format!("no answer within {} s", PATIENCE.as_secs())),
        }
    }

    pub(super) async fn call(&self, tool: &str, arguments: Value) -> Answered {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    /// The names of all tools.
    pub(super) async fn tools(&self) -> Result<Vec<String>, String> {
        let mut names = Vec::new();
        let mut params = json!({});
        for _ in 0..MAX_PAGES {
            let page = match self.ask("tools/list", params).await {
                Answered::Result(page) => page,
                Answered::Refused(why) | Answered::Failed(why) => return Err(why),
            };
            let tools = page.get("tools").and_then(Value::as_array).into_iter().flatten();
            names.extend(tools.filter_map(|tool| Some(tool.get("name")?.as_str()?.to_owned())));
            match page.get("nextCursor").and_then(Value::as_str) {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => return Ok(names),
            }
        }
        Err(format!("the list has more than {MAX_PAGES} pages"))
    }
}

fn read(answer: &Value) -> Answered {
    if let Some(error) = answer.get("error") {
        let reason = error.pointer("/data/reason").and_then(Value::as_str);
        let code = error["code"].as_i64().unwrap_or_default();
        return Answered::Refused(match reason {
            Some(reason) => format!("error {code}, {reason}"),
            None => format!("error {code}"),
        });
    }
    match answer.get("result") {
        Some(result) if result["isError"] == true => {
            Answered::Refused("a result with `isError`".to_owned())
        }
        Some(result) => Answered::Result(result.clone()),
        None => Answered::Failed("neither a result nor an error".to_owned()),
    }
}
