//! The tokens in a caller's request, for the credential broker and the search for token
//! passthrough.

use crate::front::Identified;
use crate::identity::Proof;
use crate::node::Node;
use engine::credentials::{BOUND_HEADER, CallerKey, Inbound, Needles};
use engine::principal::Principal;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName};
use std::sync::Arc;

const BOUND: HeaderName = HeaderName::from_static(BOUND_HEADER);

impl Node {
    /// The tokens of this caller's request. The search patterns for messages to servers are built
    /// once per credential.
    pub(crate) fn inbound(
        &self,
        identified: &Identified,
        principal: &Arc<Principal>,
        headers: &HeaderMap,
    ) -> Arc<Inbound> {
        let hash = identified.found.credential;
        let key = CallerKey(hash.0);
        let authorization = headers.get(AUTHORIZATION);
        let token = authorization.and_then(|value| value.to_str().ok()?.split_once(' '));
        let inbound = match (&identified.found.proof, token) {
            (Proof::Key | Proof::Token { .. } | Proof::Minted { .. }, Some((_, token))) => {
                let needles = self.needles.find(&hash).unwrap_or_else(|| {
                    let needles = Arc::new(Needles::of(token.trim_start_matches(' ').as_bytes()));
                    self.needles.keep(hash, needles.clone());
                    needles
                });
                // Another authorization server would not know the subject of a token that the
                // gateway issued.
                let is_token = matches!(identified.found.proof, Proof::Token { .. });
                Inbound::of(authorization, key, is_token, Some(needles))
            }
            (_, _) => Inbound::of(None, key, false, None),
        };
        let inbound = inbound.owned_by(principal.clone());
        Arc::new(inbound.with_bound(headers.get_all(BOUND).iter()))
    }
}
