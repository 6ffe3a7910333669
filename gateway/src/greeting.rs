//! How the gateway greets a server on behalf of a caller, and which era of the protocol the server speaks.

use crate::link::{Ending, Link};
use serde_json::{Value, json};
use std::sync::Arc;
use wire::envelope::{Envelope, Kind, Outcome, Scanned, scan};

/// The newest revision with sessions.
pub(crate) const NEWEST_WITH_SESSIONS: &str = "2025-11-25";
/// The newest revision, which has none.
pub(crate) const STATELESS: &str = "2026-07-28";

pub(crate) const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub(crate) const META_CLIENT: &str = "io.modelcontextprotocol/clientInfo";

/// The era of the protocol that somebody speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    Sessions,
    Stateless,
}

/// What a server answered to a greeting, as far as it was accepted.
#[derive(Debug)]
pub(crate) struct Greeted {
    pub(crate) era: Era,
}

/// A server refused the greeting.
#[derive(Debug, thiserror::Error)]
#[error("the server refused the greeting with code {code}")]
pub(crate) struct Ungreeted {
    code: i64,
}

/// Greets a server: first as one with sessions, and as one without if it knows no `initialize`.
pub(crate) async fn greet(
    link: &Arc<Link>,
    known: Option<Era>,
    capabilities: &Value,
) -> Result<Greeted, Ungreeted> {
    let eras: &[Era] = match known {
        Some(Era::Sessions) | None => &[Era::Sessions, Era::Stateless],
        Some(Era::Stateless) => &[Era::Stateless, Era::Sessions],
    };
    let mut refused = None;
    for era in eras {
        let answer =
            link.ask(None, Ending::RunsOn, |id| greeting(*era, id, capabilities)).answer().await;
        let error = match scan(answer.bytes()) {
            Ok(Scanned::Message(Envelope {
                kind: Kind::Response { outcome: Outcome::Result(_), .. },
                ..
            })) => {
                if *era == Era::Sessions {
                    link.tell(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
                }
                return Ok(Greeted { era: *era });
            }
            Ok(Scanned::Message(Envelope {
                kind: Kind::Response { outcome: Outcome::Error(error), .. },
                ..
            })) => serde_json::from_slice::<Value>(error).unwrap_or_default(),
            _ => Value::Null,
        };
        let is_other_era = is_of_another_era(*era, &error);
        let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
        refused.get_or_insert(Ungreeted { code });
        if !is_other_era {
            break;
        }
    }
    Err(refused.unwrap_or(Ungreeted { code: 0 }))
}

/// Whether an error says that the server does not know this greeting.
fn is_of_another_era(era: Era, error: &Value) -> bool {
    let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
    // A status without a JSON-RPC body comes as -32011 from the engine.
    let is_unreachable =
        code == -32011 && error.pointer("/data/reason") == Some(&json!("upstream_unreachable"));
    match era {
        Era::Sessions => {
            matches!(code, -32601 | -32602 | -32600 | -32022 | -32020) || is_unreachable
        }
        Era::Stateless => matches!(code, -32601 | -32602 | -32600 | -32000) || is_unreachable,
    }
}

fn greeting(era: Era, id: u64, capabilities: &Value) -> Vec<u8> {
    let client = json!({"name": "holdpoint-gateway", "version": env!("CARGO_PKG_VERSION")});
    let message = match era {
        Era::Sessions => json!({
            "jsonrpc": "2.0",
            "id": id,
            "method": "initialize",
            "params": {
                "protocolVersion": NEWEST_WITH_SESSIONS,
                "capabilities": capabilities,
                "clientInfo": client,
            },
        }),
        Era::Stateless => json!({
            "jsonrpc": "2.0",
            "id": id,
            "method": "server/discover",
            "params": {"_meta": {
                META_VERSION: STATELESS,
                META_CAPABILITIES: capabilities,
                META_CLIENT: client,
            }},
        }),
    };
    message.to_string().into_bytes()
}
