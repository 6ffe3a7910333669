//! Who makes a request. Nothing of a request is read before this is known, its headers aside.

use super::{Door, Identified, Peer};
use crate::front_checks::NotOurs;
use crate::identity::{
    Resource, Unauthenticated, VerifiedCertificate, protected_resource_metadata,
};
use crate::node::Node;
use crate::reply::{self, Reply};
use bytes::Bytes;
use engine::recorder::now;
use http::StatusCode;
use http::header::{ORIGIN, WWW_AUTHENTICATE};
use http::request::Parts;
use settings::gateway::Transport;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

impl Node {
    /// Whether a request is for this gateway at all: a page of another site may have sent it.
    pub(super) fn check_names(&self, parts: &Parts, peer: &Peer) -> Result<(), Box<Reply>> {
        let checked = match &peer.door {
            Door::Main => self.names.load().check(&parts.uri, &parts.headers),
            Door::Admin(names) => {
                let front = &self.shared.settings().front;
                names.with_origins_of(front).check(&parts.uri, &parts.headers)
            }
            // It is reached by whatever name the network gives it. No page of a browser has anything to read there.
            Door::Metrics if parts.headers.contains_key(ORIGIN) => Err(NotOurs::Origin),
            Door::Metrics => Ok(()),
        };
        checked.map_err(|not_ours| {
            self.strangers.note(
                self,
                self.source(parts, Some(peer)),
                "not_ours",
                &not_ours.to_string(),
            );
            Box::new(reply::text(StatusCode::FORBIDDEN, not_ours.to_string()))
        })
    }

    pub(crate) async fn identify(
        &self,
        parts: &Parts,
        peer: Option<&Peer>,
        resource: Resource<'_>,
    ) -> Result<Identified, Box<Reply>> {
        let now = now();
        let certificate = peer.and_then(|peer| peer.certificate.as_ref()).map(VerifiedCertificate);
        let found =
            self.authenticator().authenticate(&parts.headers, certificate, resource, now).await;
        match found {
            Ok(found) => {
                let left =
                    found.expires_at.map(|at| u64::try_from(at.0 - now.0).unwrap_or_default());
                let last_id = peer.map(|peer| peer.last_id.clone());
                Ok(Identified { found, expires_in: left.map(Duration::from_millis), last_id })
            }
            Err(refused) => Err(Box::new(self.refuse_stranger(self.source(parts, peer), &refused))),
        }
    }

    /// Where a request came from. A proxy that ends TLS says it, in the last place of `X-Forwarded-For`, which is its own.
    pub(crate) fn source(&self, parts: &Parts, peer: Option<&Peer>) -> Option<IpAddr> {
        let peer = peer.map(|peer| peer.address);
        match &self.shared.settings().front.transport {
            Transport::TerminatedBy(_) => {
                let told = parts.headers.get_all("x-forwarded-for").iter().next_back();
                let told = told.and_then(|value| value.to_str().ok());
                let last = told.and_then(|value| value.rsplit(',').next());
                last.and_then(|text| text.trim().parse().ok()).or(peer)
            }
            Transport::Loopback | Transport::Tls { .. } => peer,
        }
    }

    /// Returns once an identity has expired or was withdrawn, for streams that must end then.
    pub(super) fn identity_ends(
        self: &Arc<Self>,
        identified: Identified,
    ) -> impl Future<Output = ()> + Send + 'static {
        let Identified { found, expires_in, .. } = identified;
        let (node, mut changed) = (Arc::downgrade(self), self.keys_changed.subscribe());
        let expired = async move {
            match expires_in {
                Some(left) => tokio::time::sleep(left).await,
                None => std::future::pending().await,
            }
        };
        let withdrawn = async move {
            loop {
                let Some(node) = node.upgrade() else { return };
                if !node.authenticator().still_counts(&found, now()) {
                    return;
                }
                drop(node);
                if changed.changed().await.is_err() {
                    return;
                }
            }
        };
        async move {
            tokio::select! {
                () = expired => {}
                () = withdrawn => {}
            }
        }
    }

    fn refuse_stranger(&self, source: Option<IpAddr>, refused: &Unauthenticated) -> Reply {
        self.strangers.note(self, source, Unauthenticated::REASON, &refused.fault.to_string());
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
        let settings = self.shared.settings();
        let document = protected_resource_metadata(
            resource,
            &settings.front.public_url,
            &settings.auth.issuers,
            settings.oauth_proxy.is_some(),
        );
        reply::json(StatusCode::OK, [Bytes::from(document.to_string())])
    }
}
