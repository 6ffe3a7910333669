//! Rewrites a request into the form that the server gets.

use super::Asked;
use crate::frame::{Edits, member, quoted};
use crate::greeting::{
    Era, META_CAPABILITIES, META_CLIENT, META_LOG_LEVEL, META_VERSION, STATELESS,
};

/// The server's own values, where the client's differ.
#[derive(Debug)]
pub(super) struct Own<'a> {
    pub(super) name: Option<&'a str>,
    /// The server's own `requestState`, as raw JSON.
    pub(super) state: Option<&'a [u8]>,
    /// Whether the request answers the gateway's question for a sign-in, which the server must not
    /// see.
    pub(super) answers_gateway: bool,
    /// The raw id of the task that the request belongs to, and the server's own id for it.
    pub(super) related: Option<(&'a [u8], String)>,
    /// The log level of a session, if the server gets it with each request.
    pub(super) level: Option<&'a str>,
}

/// The request for the server: with our number as its id and progress token, the server's own name,
/// and in the server's era.
pub(super) fn rewritten(
    asked: Asked<'_>,
    Own { name, state, answers_gateway, related, level }: Own<'_>,
    number: u64,
    token: Option<&[u8]>,
    (to, capabilities): (Era, &[u8]),
) -> Vec<u8> {
    let number = number.to_string();
    let mut edits = Edits::of(asked.envelope.raw);
    edits.replace_by(asked.id, number.as_bytes());
    if let Some(token) = token {
        edits.replace_by(token, number.as_bytes());
    }
    if let Some((given, own)) = &related {
        edits.replace(given, quoted(own));
    }
    let params = asked.params().map(|params| params.raw);
    if let (Some(given), Some(state)) =
        (asked.params().and_then(|params| params.request_state), state)
    {
        edits.replace(given, state);
    }
    if let (Some(params), Some(name)) = (params, name) {
        let own = match asked.method {
            "completion/complete" => member(params, "ref").and_then(|about| member(about, "name")),
            _ => member(params, "name"),
        };
        if let Some(own) = own {
            edits.replace(own, quoted(name));
        }
    }
    // Write these without escapes, as the engine reads them.
    let subject: &[&str] = match asked.method {
        "completion/complete" => &["type", "uri"],
        "resources/subscribe" | "resources/unsubscribe" => &["uri"],
        _ => &[],
    };
    let about = match asked.method {
        "completion/complete" => params.and_then(|params| member(params, "ref")),
        _ => params,
    };
    for raw in subject.iter().filter_map(|name| member(about?, name)) {
        if let (true, Ok(text)) = (raw.contains(&b'\\'), serde_json::from_slice::<String>(raw)) {
            edits.replace(raw, quoted(&text));
        }
    }
    if to == Era::Stateless {
        let client =
            format!(r#"{{"name":"holdpoint-gateway","version":"{}"}}"#, env!("CARGO_PKG_VERSION"));
        let version = format!("\"{STATELESS}\"");
        let capabilities = String::from_utf8_lossy(capabilities);
        let level = level.map(|level| format!("\"{level}\""));
        let mut own = vec![
            (META_VERSION, version.as_str()),
            (META_CAPABILITIES, &*capabilities),
            (META_CLIENT, &client),
        ];
        own.extend(level.as_deref().map(|level| (META_LOG_LEVEL, level)));
        match (asked.meta(), params) {
            (Some(meta), _) => {
                for (name, value) in own {
                    match member(meta, name) {
                        Some(given) => edits.replace(given, value),
                        None => edits.insert(meta, name, value.as_bytes()),
                    }
                }
            }
            (None, Some(params)) => {
                let members = own.iter().map(|(name, value)| format!("\"{name}\":{value}"));
                let members = members.collect::<Vec<_>>().join(",");
                edits.insert(params, "_meta", format!("{{{members}}}").as_bytes());
            }
            (None, None) => {}
        }
    }
    if let (true, Some(params)) = (answers_gateway, params) {
        edits.remove(params, &["requestState", "inputResponses"]);
    }
    edits.finish()
}
