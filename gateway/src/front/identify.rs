//! Who makes a request. Nothing of a request is read before this is known, its headers aside.

use super::Identified;
use crate::identity::{Authenticated, Resource, Unauthenticated, protected_resource_metadata};
use crate::node::Node;
use crate::reply::{self, Reply};
use bytes::Bytes;
use engine::recorder::now;
use http::StatusCode;
use http::header::WWW_AUTHENTICATE;
use http::request::Parts;
use std::time::Duration;

impl Node {
    /// Whether a request is for this gateway at all: a page of another site may have sent it.
    pub(super) fn check_names(&self, parts: &Parts) -> Result<(), Box<Reply>> {
        self.names.load().check(&parts.uri, &parts.headers).map_err(|not_ours| {
            self.strangers.note(self, "not_ours", &not_ours.to_string());
            Box::new(reply::text(StatusCode::FORBIDDEN, not_ours.to_string()))
        })
    }

    pub(crate) async fn identify(
        &self,
        parts: &Parts,
        resource: Resource<'_>,
    ) -> Result<Identified, Box<Reply>> {
        let now = now();
        let found = self.authenticator.authenticate(&parts.headers, None, resource, now).await;
        match found {
            Ok(Authenticated { caller, expires_at, credential: _ }) => {
                let left = expires_at.map(|at| u64::try_from(at.0 - now.0).unwrap_or_default());
                Ok(Identified { caller, expires_in: left.map(Duration::from_millis) })
            }
            Err(refused) => Err(Box::new(self.refuse_stranger(&refused))),
        }
    }

    fn refuse_stranger(&self, refused: &Unauthenticated) -> Reply {
        self.strangers.note(self, Unauthenticated::REASON, &refused.fault.to_string());
        // Strangers are told what kind of proof is missing, and no more.
        let body = serde_json::json!({
            "jsonrpc": "2.0",
            "id": null,
            "error": {
                "code": 1013,
                "message": "○ holdpoint — this request has no valid identity",
                "data": {"reason": Unauthenticated::REASON},
            },
        });
        let mut reply = reply::json(refused.status, [Bytes::from(body.to_string())]);
        reply.headers_mut().insert(WWW_AUTHENTICATE, refused.challenge.clone());
        reply
    }

    /// The document of RFC 9728 for the resource at a path.
    pub(super) fn resource_metadata(&self, path: &str) -> Reply {
        let resource = match (path, super::Route::of(path)) {
            ("/admin", _) => Resource::Admin,
            ("" | "/", _) => Resource::Mcp { path: "/mcp" },
            (path, Some(super::Route::Mcp { .. })) => Resource::Mcp { path },
            (_, _) => return reply::empty(StatusCode::NOT_FOUND),
        };
        let settings = &self.shared.settings;
        let document = protected_resource_metadata(
            resource,
            &settings.front.public_url,
            &settings.auth.issuers,
        );
        reply::json(StatusCode::OK, [Bytes::from(document.to_string())])
    }
}
