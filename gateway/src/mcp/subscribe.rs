//! `subscriptions/listen`: the stream on which a client of the stateless era hears of changes.

use super::{Asked, Visit};
use crate::frame;
use crate::node::Node;
use crate::reply::{self, Reply};
use crate::sessions::StreamFilter;
use contract::surface::ListKind;
use engine::reason::ReasonCode;
use http::StatusCode;
use ledger::record::OutcomeStatus;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// How often a comment is sent on a stream that is otherwise silent.
pub(crate) const KEEP_ALIVE_PAUSE: Duration = Duration::from_secs(15);

impl Node {
    pub(super) fn answer_listen(self: &Arc<Self>, visit: &Visit, asked: Asked<'_>) -> Reply {
        let params = asked.params().map(|params| params.raw).unwrap_or(b"{}");
        let wanted = frame::member(params, "notifications").unwrap_or(b"{}");
        let is_wanted = |name: &str| frame::member(wanted, name) == Some(b"true");
        let mut lists = HashSet::new();
        if is_wanted("toolsListChanged") {
            lists.insert(ListKind::Tools);
        }
        if is_wanted("promptsListChanged") {
            lists.insert(ListKind::Prompts);
        }
        if is_wanted("resourcesListChanged") {
            lists.extend([ListKind::Resources, ListKind::ResourceTemplates]);
        }
        let honored: serde_json::Map<String, serde_json::Value> =
            ["toolsListChanged", "promptsListChanged", "resourcesListChanged"]
                .into_iter()
                .filter(|name| is_wanted(name))
                .map(|name| (name.to_owned(), true.into()))
                .collect();
        let filter = StreamFilter { lists: Some(lists), subscription: Some(asked.id.to_vec()) };
        let stream =
            self.sessions.listen((&visit.principal_id, &visit.caller), None, &visit.scope, filter);
        let Some((sender, receiver)) = stream else {
            let _ = self.record_refusal(visit, asked, ReasonCode::RateLimited);
            let words = "○ holdpoint — too many streams of this caller are open";
            return reply::json(StatusCode::OK, [frame::error(asked.id, 1029, words).into()]);
        };
        let Some(receipt) = self.record_own(visit, asked, &engine::decide::Ruling::Allow) else {
            return super::unrecorded(asked.id);
        };
        let recorder = &self.shared.recorder;
        recorder.outcome(receipt, OutcomeStatus::Success, 0, visit.begun.elapsed(), Duration::ZERO);
        let id = String::from_utf8_lossy(asked.id).into_owned();
        let acknowledged = serde_json::json!({"notifications": honored}).to_string();
        let acknowledged = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}},{}"#,
            acknowledged.get(1..).unwrap_or_default()
        ) + "}";
        let _ = sender.try_send(reply::event(&[acknowledged.as_bytes()]));
        self.keep_alive(sender, visit);
        reply::events(receiver)
    }

    /// Sends comments on a stream until its client has left, its identity has expired, or the gateway ends.
    pub(crate) fn keep_alive(
        self: &Arc<Self>,
        sender: tokio::sync::mpsc::Sender<bytes::Bytes>,
        visit: &Visit,
    ) {
        let mut stop = self.stopping();
        let until = visit.expires;
        tokio::spawn(async move {
            let expired = tokio::time::sleep(until.unwrap_or(Duration::from_secs(24 * 60 * 60)));
            tokio::pin!(expired);
            loop {
                tokio::select! {
                    () = tokio::time::sleep(KEEP_ALIVE_PAUSE) => {
                        if sender.try_send(reply::KEEP_ALIVE).is_err() {
                            return;
                        }
                    }
                    () = sender.closed() => return,
                    () = &mut expired => return,
                    _ = stop.changed() => return,
                }
            }
        });
    }
}
