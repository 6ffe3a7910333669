//! Lists: from what was recorded of the servers, for what the caller may use.

use super::{Asked, INVALID_PARAMS, Visit};
use crate::frame::Edits;
use crate::greeting::Era;
use crate::node::Node;
use crate::reply::Reply;
use bytes::Bytes;
use contract::surface::ListKind;
use http::StatusCode;
use std::sync::Arc;
use std::time::Duration;

/// How long a client of the stateless era may keep a list.
pub(super) const TTL_MILLISECONDS: u64 = 5_000;
/// How long a server that was never observed is waited for.
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
            // A list is one page here.
            let words = "an unknown cursor: list again from the beginning";
            return self.refuse(visit, asked, StatusCode::OK, INVALID_PARAMS, words);
        }
        self.see_unseen(visit, FIRST_SIGHT).await;
        let catalog = self.catalog();
        let list = catalog.list(&visit.scope, kind, &visit.caller, &self.shared.authorizer);
        let list = match visit.era {
            Era::Sessions => list,
            Era::Stateless => cacheable(&list),
        };
        self.answer_own(visit, asked, list)
    }
}

/// A list that was made for one caller, as the stateless era has it.
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
