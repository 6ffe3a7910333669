//! Greets a server on behalf of a caller, and finds out which era of the protocol the server
//! speaks.

use crate::frame::member;
use crate::link::{Ending, Link};
use crate::task_names::TASKS_EXTENSION;
use engine::reason::ReasonCode;
use serde_json::{Value, json};
use std::sync::Arc;
use wire::envelope::{Envelope, Kind, Outcome, Scanned, scan};

/// The newest protocol revision with sessions.
pub(crate) const NEWEST_WITH_SESSIONS: &str = "2025-11-25";
/// The newest protocol revision, which has no sessions.
pub(crate) const STATELESS: &str = "2026-07-28";

pub(crate) const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub(crate) const META_LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
pub(crate) const META_CLIENT: &str = "io.modelcontextprotocol/clientInfo";

/// The protocol era of a client or server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Era {
    Sessions,
    Stateless,
}

/// The result of a successful greeting.
#[derive(Debug)]
pub(crate) struct Greeted {
    /// The era to use with the server.
    pub(crate) era: Era,
    /// What is known about the server's eras from now on.
    pub(crate) spoken: u8,
    /// Whether the server supports tasks in that era.
    pub(crate) has_tasks: bool,
}

/// Set if the server does not speak this era.
const NO_SESSIONS: u8 = 1;
const NO_STATELESS: u8 = 2;

/// Why a server refused the greeting.
#[derive(Debug, thiserror::Error)]
#[error("the server refused the greeting with code {code}")]
pub(crate) struct Ungreeted {
    code: i64,
    /// Whether the server rejected the credential.
    pub(crate) is_credential_refused: bool,
}

/// Greets a server in the caller's era, or in the other one if the server does not know that.
/// `spoken` is what is already known about the server's eras.
pub(crate) async fn greet(
    link: &Arc<Link>,
    wanted: Era,
    mut spoken: u8,
    capabilities: &Value,
) -> Result<Greeted, Ungreeted> {
    let eras = match wanted {
        Era::Sessions => [Era::Sessions, Era::Stateless],
        Era::Stateless => [Era::Stateless, Era::Sessions],
    };
    let mut refused = None;
    for era in &eras {
        let (flag, offered) = match era {
            // A caller without a session cannot be asked anything during a request.
            Era::Sessions if wanted == Era::Stateless => (NO_SESSIONS, &json!({})),
            Era::Sessions => (NO_SESSIONS, capabilities),
            Era::Stateless => (NO_STATELESS, capabilities),
        };
        if spoken & flag != 0 && spoken != NO_SESSIONS | NO_STATELESS {
            continue;
        }
        let mut answer =
            link.ask(None, Ending::RunsOn, |id| greeting(*era, id, offered)).answer().await;
        if *era == Era::Stateless && is_asked_to_retry(answer.bytes()) {
            answer =
                link.ask(None, Ending::RunsOn, |id| greeting(*era, id, offered)).answer().await;
        }
        let error = match scan(answer.bytes()) {
            Ok(Scanned::Message(Envelope {
                kind: Kind::Response { outcome: Outcome::Result(result), .. },
                ..
            })) if *era == Era::Sessions || is_discovered(result) => {
                if *era == Era::Sessions {
                    link.tell(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
                }
                let capabilities = member(result, "capabilities").unwrap_or_default();
                let has_tasks = has_tasks(capabilities, *era);
                return Ok(Greeted { era: *era, spoken: spoken & !flag, has_tasks });
            }
            Ok(Scanned::Message(Envelope {
                kind: Kind::Response { outcome: Outcome::Error(error), .. },
                ..
            })) => serde_json::from_slice::<Value>(error).unwrap_or_default(),
            // Not a response to this greeting: try the other one.
            _ => json!({"code": -32601}),
        };
        let is_other_era = is_of_another_era(*era, &error);
        let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
        let reason = error.pointer("/data/reason").and_then(Value::as_str);
        let is_credential_refused = reason == Some(ReasonCode::CredentialUnavailable.as_str());
        refused.get_or_insert(Ungreeted { code, is_credential_refused });
        if !is_other_era {
            break;
        }
        spoken |= flag;
    }
    Err(refused.unwrap_or(Ungreeted { code: 0, is_credential_refused: false }))
}

/// Whether a result is a response to `server/discover`. Some servers answer unknown methods with an
/// empty result.
fn is_discovered(result: &[u8]) -> bool {
    let versions = member(result, "supportedVersions");
    let versions: Vec<String> =
        versions.and_then(|raw| serde_json::from_slice(raw).ok()).unwrap_or_default();
    versions.iter().any(|version| version == STATELESS)
}

/// Whether a server refused the version but lists it as supported, in which case it is greeted
/// again.
fn is_asked_to_retry(answer: &[u8]) -> bool {
    let error = member(answer, "error").unwrap_or_default();
    let supported = member(error, "data").and_then(|data| member(data, "supported"));
    let supported: Vec<String> =
        supported.and_then(|raw| serde_json::from_slice(raw).ok()).unwrap_or_default();
    member(error, "code") == Some(b"-32022") && supported.iter().any(|version| version == STATELESS)
}

/// Whether these capabilities include tasks in an era.
pub(crate) fn has_tasks(capabilities: &[u8], era: Era) -> bool {
    let path: &[&str] = match era {
        Era::Sessions => &["tasks", "requests", "tools", "call"],
        Era::Stateless => &["extensions", TASKS_EXTENSION],
    };
    path.iter().try_fold(capabilities, |object, name| member(object, name)).is_some()
}

/// Whether an error means that the server does not know this greeting.
fn is_of_another_era(era: Era, error: &Value) -> bool {
    let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
    // The engine reports a status without a JSON-RPC body, and an empty result, as -32011.
    let is_because =
        |reason: &str| code == -32011 && error.pointer("/data/reason") == Some(&json!(reason));
    let is_unreachable = is_because("upstream_unreachable");
    match era {
        Era::Sessions => {
            matches!(code, -32601 | -32602 | -32600 | -32022 | -32020) || is_unreachable
        }
        Era::Stateless => {
            matches!(code, -32601 | -32602 | -32600 | -32000)
                || is_unreachable
                || is_because("upstream_unreadable")
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_tasks_in_the_era_that_it_says() {
        let older = br#"{"tasks":{"list":{},"requests":{"tools":{"call":{}}}}}"#;
        let newer = br#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
        assert!(has_tasks(older, Era::Sessions) && !has_tasks(older, Era::Stateless));
        assert!(has_tasks(newer, Era::Stateless) && !has_tasks(newer, Era::Sessions));
        assert!(!has_tasks(br#"{"tasks":{"list":{}}}"#, Era::Sessions));
        assert!(!has_tasks(b"", Era::Sessions));
    }

    #[test]
    fn a_version_that_a_server_refuses_and_speaks_is_tried_again() {
        let refused = |supported: &str, code: i64| {
            format!(r#"{{"id":1,"error":{{"code":{code},"data":{{"supported":[{supported}]}}}}}}"#)
        };
        assert!(is_asked_to_retry(refused(r#""2026-07-28""#, -32022).as_bytes()));
        assert!(!is_asked_to_retry(refused(r#""2025-11-25""#, -32022).as_bytes()));
        assert!(!is_asked_to_retry(refused(r#""2026-07-28""#, -32601).as_bytes()));
        assert!(!is_asked_to_retry(br#"{"id":1,"result":{}}"#));
    }

    #[test]
    fn an_empty_result_is_no_answer_to_the_greeting() {
        assert!(is_discovered(br#"{"supportedVersions":["2026-07-28"]}"#));
        for other in
            ["{}", r#"{"supportedVersions":["2025-11-25"]}"#, r#"{"resultType":"complete"}"#]
        {
            assert!(!is_discovered(other.as_bytes()), "{other}");
        }
    }
}
