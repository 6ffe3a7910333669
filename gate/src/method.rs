//! How the gate treats a client's method, and the entry that a request is about.

use contract::surface::{EntryType, ListKind};
use envelope::Params;

/// The entry of the server's surface that a call is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target<'a> {
    pub entry_type: EntryType,
    pub key: &'a str,
}

/// How the gate treats a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// `initialize` or `server/discover`: the gate modifies the response.
    Handshake,
    /// Answered by the gate from its own view.
    List(ListKind),
    /// Gated by the entry that it is about.
    Use(EntryType),
    /// Forwarded even while the server is stopped.
    Ping,
    Other,
}

impl Method {
    pub fn of(name: &str) -> Method {
        match name {
            "initialize" | "server/discover" => Method::Handshake,
            "ping" => Method::Ping,
            "tools/call" => Method::Use(EntryType::Tool),
            "prompts/get" => Method::Use(EntryType::Prompt),
            "resources/read" => Method::Use(EntryType::Resource),
            _ => ListKind::ALL
                .into_iter()
                .find(|list| list.method() == name)
                .map_or(Method::Other, Method::List),
        }
    }

    /// The list that must be known before the method can be decided on.
    pub fn list(self) -> Option<ListKind> {
        match self {
            Method::List(list) => Some(list),
            Method::Use(entry_type) => entry_type.list(),
            Method::Handshake | Method::Ping | Method::Other => None,
        }
    }

    /// The entry that a gated call is about. Returns `None` if it cannot be read unambiguously.
    pub fn target<'a>(self, params: Option<&'a Params<'a>>) -> Option<Target<'a>> {
        let Method::Use(entry_type) = self else { return None };
        let params = params.filter(|params| params.is_object && !params.is_odd)?;
        let key = match entry_type {
            EntryType::Resource => params.uri.as_deref(),
            _ => params.name.as_deref(),
        };
        key.map(|key| Target { entry_type, key })
    }
}
