//! Answers list requests from the recorded observations, limited to what the caller may use.

use super::{Asked, INVALID_PARAMS, Visit};
use crate::catalog::Scope;
use crate::frame::{self, Edits};
use crate::greeting::Era;
use crate::node::Node;
use crate::reply::{self, Reply};
use crate::sign_in::as_elicitation;
use bytes::Bytes;
use contract::surface::ListKind;
use engine::credentials::Unavailable;
use engine::reason::ReasonCode;
use http::StatusCode;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// How long a client of the stateless era may cache a list.
pub(super) const TTL_MILLISECONDS: u64 = 5_000;
/// How long to wait for a server that was never observed.
const FIRST_SIGHT: Duration = Duration::from_secs(2);

impl Node {
    pub(super) async fn answer_list(
        self: &Arc<Self>,
        visit: &Visit,
        asked: Asked<'_>,
        kind: ListKind,
    ) -> Reply {
        let cursor = asked.params().and_then(|params| params.cursor);
        if cursor.is_some_and(|cursor| cursor != b"null") {
            // The gateway's lists have a single page.
            let words = "an unknown cursor: list again from the beginning";
            return self.refuse(visit, asked, StatusCode::OK, INVALID_PARAMS, words);
        }
        self.see_unseen(visit, FIRST_SIGHT).await;
        if let Some(refusal) = self.list_after_sign_in(visit, asked).await {
            return refusal;
        }
        let catalog = self.catalog();
        let list = catalog.list(&visit.scope, kind, &visit.caller, &self.shared.authorizer);
        let list = match visit.era {
            Era::Sessions => list,
            Era::Stateless => cacheable(&list),
        };
        self.answer_own(visit, asked, list)
    }
}

impl Node {
    /// Refuses a list of one server whose tools are unknown because each caller must sign in first.
    async fn list_after_sign_in(&self, visit: &Visit, asked: Asked<'_>) -> Option<Reply> {
        let Scope::Server(id) = &visit.scope else { return None };
        let catalog = self.catalog();
        let known = catalog.servers.get(id)?;
        if known.situation.is_some() || !known.server.broker.is_per_person() {
            return None;
        }
        let why = known.server.broker.obtain(&visit.inbound).await.err()?;
        let reason = ReasonCode::CredentialUnavailable;
        if self.record_refusal(visit, asked, reason).is_none() {
            return Some(super::unrecorded(asked.id));
        }
        let mut data = json!({"reason": reason.as_str(), "server": id.as_str()});
        let is_asked = matches!(why, Unavailable::SignInNeeded);
        let link = is_asked.then(|| self.sign_in_link(visit, &known.server)).flatten();
        if let (Some(link), Some(data)) = (&link, data.as_object_mut()) {
            data.insert("sign_in".to_owned(), link.as_str().into());
        }
        let mut message = frame::error_with(asked.id, reason.code(), why.words(), Some(data));
        if let Some(link) = link {
            message = as_elicitation(message, visit, id.as_str(), &link);
        }
        Some(reply::json(StatusCode::OK, [message.into()]))
    }
}

/// A caller's list in the form of the stateless era.
fn cacheable(list: &[u8]) -> Bytes {
    let mut edits = Edits::of(list);
    let ttl = TTL_MILLISECONDS.to_string();
    let members = format!(r#""complete","ttlMs":{ttl},"cacheScope":"private""#);
    edits.insert(list, "resultType", members.as_bytes());
    edits.finish().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_for_one_caller_is_private() {
        let list = cacheable(br#"{"tools":[{"name":"a"}]}"#);
        let list: serde_json::Value = serde_json::from_slice(&list).unwrap();
        assert_eq!(list["cacheScope"], "private");
        assert_eq!(list["resultType"], "complete");
        assert_eq!(list["tools"][0]["name"], "a");
    }
}
