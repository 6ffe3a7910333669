//! The gateway's own handshake, in both eras.

use super::{Asked, Visit, offered};
use crate::asking::askable;
use crate::catalog::Catalog;
use crate::frame::member;
use crate::greeting::{Era, NEWEST_WITH_SESSIONS, STATELESS};
use crate::node::Node;
use crate::reply::Reply;
use crate::task_names::TASKS_EXTENSION;
use contract::surface::ListKind;
use http::HeaderValue;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The supported protocol revisions, newest first.
pub(crate) const SUPPORTED: [&str; 5] =
    [STATELESS, NEWEST_WITH_SESSIONS, "2025-06-18", "2025-03-26", "2024-11-05"];

/// Whether a revision with sessions is supported.
pub(crate) fn is_known_with_sessions(version: &str) -> bool {
    version != STATELESS && SUPPORTED.contains(&version)
}

impl Node {
    pub(super) fn answer_initialize(
        self: &Arc<Self>,
        visit: &Visit,
        asked: Asked<'_>,
        catalog: &Catalog,
    ) -> Reply {
        let version = asked.params().and_then(|params| params.protocol_version.as_deref());
        let version = version.filter(|version| is_known_with_sessions(version));
        let version = version.unwrap_or(NEWEST_WITH_SESSIONS);
        let mut result = json!({
            "protocolVersion": version,
            "capabilities": self.capabilities(visit, catalog),
            "serverInfo": {"name": "holdpoint", "version": env!("CARGO_PKG_VERSION")},
        });
        self.add_instructions(&mut result, visit, catalog);
        let capabilities =
            asked.params().and_then(|params| member(params.raw, "capabilities")).unwrap_or(b"{}");
        let id = self.sessions.begin(
            &self.shared.sealer,
            &visit.principal_id,
            &visit.scope,
            version,
            &askable(capabilities),
        );
        let mut reply = self.answer_own(visit, asked, result.to_string().into());
        match id.ok().and_then(|id| HeaderValue::from_str(&id).ok()) {
            Some(mut id) => {
                id.set_sensitive(true);
                reply.headers_mut().insert("mcp-session-id", id);
                reply
            }
            None => super::unrecorded(asked.id),
        }
    }

    pub(super) fn answer_discover(
        self: &Arc<Self>,
        visit: &Visit,
        asked: Asked<'_>,
        catalog: &Catalog,
    ) -> Reply {
        let mut result = json!({
            "resultType": "complete",
            "supportedVersions": SUPPORTED,
            "capabilities": self.capabilities(visit, catalog),
            "ttlMs": super::lists::TTL_MILLISECONDS,
            "cacheScope": "private",
            "_meta": {"io.modelcontextprotocol/serverInfo": {
                "name": "holdpoint",
                "version": env!("CARGO_PKG_VERSION"),
            }},
        });
        self.add_instructions(&mut result, visit, catalog);
        self.answer_own(visit, asked, result.to_string().into())
    }

    fn add_instructions(&self, result: &mut Value, visit: &Visit, catalog: &Catalog) {
        let authorizer = &self.shared.authorizer;
        let instructions = catalog.instructions(&visit.scope, &visit.caller, authorizer);
        if let (Some(instructions), Value::Object(members)) = (instructions, result) {
            members.insert("instructions".to_owned(), instructions.into());
        }
    }

    fn capabilities(&self, visit: &Visit, catalog: &Catalog) -> Value {
        let offered = offered(catalog, &visit.scope);
        let has = |kind: ListKind| offered.contains(&kind);
        let mut capabilities = Map::new();
        let changes = json!({"listChanged": true});
        if has(ListKind::Tools) {
            capabilities.insert("tools".to_owned(), changes.clone());
        }
        if has(ListKind::Prompts) {
            capabilities.insert("prompts".to_owned(), changes.clone());
        }
        if has(ListKind::Resources) || has(ListKind::ResourceTemplates) {
            let resources = if catalog.takes_subscriptions(&visit.scope, visit.org()) {
                json!({"listChanged": true, "subscribe": true})
            } else {
                changes
            };
            capabilities.insert("resources".to_owned(), resources);
        }
        if has(ListKind::Prompts) || has(ListKind::ResourceTemplates) {
            capabilities.insert("completions".to_owned(), json!({}));
        }
        capabilities.insert("logging".to_owned(), json!({}));
        // `tasks/list` is not offered: it would reveal which tasks exist.
        match visit.era {
            _ if !catalog.has_tasks(&visit.scope, visit.org(), visit.era) => {}
            Era::Sessions => {
                let tasks = json!({"cancel": {}, "requests": {"tools": {"call": {}}}});
                capabilities.insert("tasks".to_owned(), tasks);
            }
            Era::Stateless => {
                capabilities.insert("extensions".to_owned(), json!({TASKS_EXTENSION: {}}));
            }
        }
        Value::Object(capabilities)
    }
}
