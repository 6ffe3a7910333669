//! `subscriptions/listen`: the stream on which a client of the stateless era receives notifications
//! of changes.

use super::watch::{MAX_WATCHED, Sink, Watch, Watched};
use super::{Asked, INVALID_PARAMS, Visit};
use crate::catalog::Catalog;
use crate::frame;
use crate::node::Node;
use crate::reply::{self, Reply};
use crate::server::{GatewayServer, LinkKey};
use crate::sessions::StreamFilter;
use contract::surface::{EntryType, ListKind};
use engine::call::{Subject, Target};
use engine::reason::ReasonCode;
use http::StatusCode;
use ledger::record::OutcomeStatus;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// How often a comment is sent on a silent stream.
pub(crate) const KEEP_ALIVE_PAUSE: Duration = Duration::from_secs(15);

/// Something to be notified of, and the link that reports it.
type Wanted = (Arc<GatewayServer>, LinkKey, Watched);

/// The client's ids of the watched tasks, and the addresses of the watched resources.
fn named(watched: &[Wanted]) -> (Vec<String>, Vec<String>) {
    let (mut tasks, mut resources) = (Vec::new(), Vec::new());
    for (.., watched) in watched {
        match watched {
            Watched::Task(name, _) => tasks.push(name.given.clone()),
            Watched::Resource(uri) => resources.push(uri.clone()),
        }
    }
    (tasks, resources)
}

impl Node {
    pub(super) fn answer_listen(
        self: &Arc<Self>,
        visit: &Visit,
        asked: Asked<'_>,
        catalog: &Catalog,
    ) -> Reply {
        let params = asked.params().map(|params| params.raw).unwrap_or(b"{}");
        let wanted = frame::member(params, "notifications").unwrap_or(b"{}");
        let watched = match self.wanted(visit, asked, catalog, wanted) {
            Ok(watched) => watched,
            Err(refusal) => return *refusal,
        };
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
        let mut honored: serde_json::Map<String, serde_json::Value> =
            ["toolsListChanged", "promptsListChanged", "resourcesListChanged"]
                .into_iter()
                .filter(|name| is_wanted(name))
                .map(|name| (name.to_owned(), true.into()))
                .collect();
        let (tasks, resources) = named(&watched);
        if !tasks.is_empty() {
            honored.insert("taskIds".to_owned(), tasks.into());
        }
        if frame::member(wanted, "resourceSubscriptions").is_some() {
            honored.insert("resourceSubscriptions".to_owned(), resources.clone().into());
        }
        let filter = StreamFilter {
            lists: Some(lists),
            resources: resources.into_iter().collect(),
            subscription: Some(asked.id.to_vec()),
        };
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
        for (server, key, watched) in watched {
            let sink = Sink::Stream { sender: sender.clone(), subscription: asked.id.to_vec() };
            let watch = Watch { visit: visit.clone(), server, key, watched, sink };
            tokio::spawn(self.clone().watch(watch, None));
        }
        self.keep_alive(&sender, visit);
        reply::events(receiver)
    }

    /// The tasks and resources that a client wants to watch. A resource that it may not read is
    /// left out; a task that is not its own is refused.
    fn wanted(
        &self,
        visit: &Visit,
        asked: Asked<'_>,
        catalog: &Catalog,
        wanted: &[u8],
    ) -> Result<Vec<Wanted>, Box<Reply>> {
        let texts = |name: &str| match frame::member(wanted, name) {
            Some(raw) => serde_json::from_slice::<Vec<String>>(raw).ok(),
            None => Some(Vec::new()),
        };
        let (Some(tasks), Some(uris)) = (texts("taskIds"), texts("resourceSubscriptions")) else {
            let words = "`taskIds` and `resourceSubscriptions` are lists of texts";
            return Err(self.refuse(visit, asked, StatusCode::OK, INVALID_PARAMS, words).into());
        };
        if tasks.len() + uris.len() > MAX_WATCHED {
            let words = format!("a stream can watch at most {MAX_WATCHED} tasks and resources");
            return Err(self.refuse(visit, asked, StatusCode::OK, INVALID_PARAMS, &words).into());
        }
        let refused = || self.refuse_without_tasks(visit, asked, catalog);
        if !tasks.is_empty()
            && let Some(refusal) = refused()
        {
            return Err(refusal.into());
        }
        let mut all = Vec::new();
        for id in tasks {
            let found = self.find_task(visit, catalog, id).ok_or(ReasonCode::UnknownTool);
            let found = found.and_then(|(known, name, ticket)| {
                self.authorizes_task(visit, &ticket).map(|()| (known, name, ticket))
            });
            match found {
                Ok((known, name, ticket)) => {
                    let key = self.task_link(visit, &ticket, &known.server);
                    all.push((known.server.clone(), key, Watched::Task(name, ticket.into())));
                }
                Err(reason) => return Err(self.refuse_task(visit, asked, reason).into()),
            }
        }
        let authorizer = &self.shared.authorizer;
        for uri in uris {
            let known = catalog.resolve_resource(&visit.scope, &visit.caller, authorizer, &uri);
            let Some(known) = known else { continue };
            let target = Target { entry_type: EntryType::Resource, key: &uri };
            if self.authorizes(visit, known.server.id(), Subject::Entry(target)).is_ok() {
                let key = self.link_key(visit, &known.server);
                all.push((known.server.clone(), key, Watched::Resource(uri)));
            }
        }
        Ok(all)
    }

    /// Sends comments on a stream until its client disconnects, its identity expires, or the
    /// gateway shuts down.
    pub(crate) fn keep_alive(
        self: &Arc<Self>,
        sender: &tokio::sync::mpsc::Sender<bytes::Bytes>,
        visit: &Visit,
    ) {
        let mut stop = self.stopping();
        let until = visit.expires;
        // Hold the sender weakly: the stream must end when its session does.
        let sender = sender.downgrade();
        tokio::spawn(async move {
            let expired = tokio::time::sleep(until.unwrap_or(Duration::from_secs(24 * 60 * 60)));
            tokio::pin!(expired);
            loop {
                tokio::select! {
                    () = tokio::time::sleep(KEEP_ALIVE_PAUSE) => {
                        let Some(sender) = sender.upgrade() else { return };
                        if sender.try_send(reply::KEEP_ALIVE).is_err() {
                            return;
                        }
                    }
                    () = &mut expired => return,
                    _ = stop.changed() => return,
                }
            }
        });
    }
}
