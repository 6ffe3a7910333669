//! Requests that go on to a server.

use super::{Asked, Visit};
use crate::catalog::{Catalog, CatalogServer};
use crate::frame::{self, Edits, member, quoted};
use crate::greeting::{Era, META_CAPABILITIES, META_CLIENT, META_VERSION, STATELESS};
use crate::link::{Ending, Given, LinkRequest};
use crate::node::Node;
use crate::pending::Answer;
use crate::reply::{self, Reply};
use crate::server::{GatewayServer, LinkError, LinkKey};
use bytes::Bytes;
use contract::surface::ListKind;
use engine::call::{Call, Method, Target};
use engine::server::Unlinked;
use engine::situation::Situation;
use http::StatusCode;
use settings::gateway::{Instance, Reach};
use std::sync::Arc;
use std::time::Duration;
use wire::envelope::{Envelope, Kind, Outcome, Scanned, scan};

/// How long a server may take until it is ready to be called.
const START_PATIENCE: Duration = Duration::from_secs(60);

/// Where a request goes, and what it is called there.
struct Destination<'c> {
    known: &'c CatalogServer,
    /// The server's own name for the tool or prompt.
    name: Option<String>,
}

impl Node {
    pub(super) async fn forward(
        self: &Arc<Self>,
        visit: Visit,
        asked: Asked<'_>,
        catalog: &Catalog,
    ) -> Reply {
        let Some(Destination { known, name }) = self.destination(&visit, asked, catalog) else {
            return self.refuse_unknown(&visit, asked);
        };
        let server = known.server.clone();
        let unobserved;
        let situation: &Situation = match &known.situation {
            Some(situation) => situation,
            None => {
                unobserved = self.unobserved(&server);
                &unobserved
            }
        };
        let mut call = asked.call();
        if let (Some(target), Some(name)) = (&mut call.target, &name) {
            *target = Target { key: name, ..*target };
        }
        let unlinked = Unlinked {
            call,
            id: asked.id,
            principal: &visit.principal,
            situation,
            trace_id: visit.trace_id.as_deref(),
            begun: visit.begun,
        };
        // Nothing is started for a caller that may not make the call.
        if let Some(refusal) = server.engine.refuse_unpermitted(&unlinked) {
            return reply::json(StatusCode::OK, [refusal.into()]);
        }
        let key = self.link_key(&visit, &server);
        let opening = server.link(&key, &visit.principal, || self.listener(&visit, &server));
        let ready = match tokio::time::timeout(START_PATIENCE, opening).await {
            Ok(Ok(ready)) => ready,
            Ok(Err(error)) => return self.refuse_unreached(&server, &unlinked, &error),
            Err(_) => {
                let words = "○ holdpoint — the server did not start in time";
                let refusal = server.engine.refuse_unreached(&unlinked, words);
                return reply::json(StatusCode::OK, [refusal.into()]);
            }
        };
        let era = ready.greeted.era;
        let token = asked.meta().and_then(|meta| member(meta, "progressToken"));
        let ending = match visit.era {
            Era::Sessions => Ending::RunsOn,
            Era::Stateless => Ending::Cancels,
        };
        let request = ready.link.ask(token, ending, |number| {
            rewritten(asked, name.as_deref(), number, token, (visit.era, era))
        });
        self.carry(visit, asked.id.into(), request).await
    }

    /// Waits for what a request gives: one answer as JSON, or a stream if anything comes before it.
    async fn carry(self: &Arc<Self>, visit: Visit, id: Vec<u8>, mut request: LinkRequest) -> Reply {
        let guard = self.in_flight(&visit, &id);
        let limit = Duration::from_secs(self.shared.settings.front.limits.call_max_seconds);
        let first = tokio::select! {
            given = request.next() => given,
            () = tokio::time::sleep(limit) => return timed_out(&id),
            () = guard.cancelled() => return cancelled(&id),
        };
        let first = match first {
            Given::Answer(answer) => {
                return reply::json(StatusCode::OK, shown(&answer, &id, visit.era));
            }
            Given::Message(_) if !visit.takes_events => {
                let answer = tokio::select! {
                    answer = request.answer() => answer,
                    () = tokio::time::sleep(limit) => return timed_out(&id),
                    () = guard.cancelled() => return cancelled(&id),
                };
                return reply::json(StatusCode::OK, shown(&answer, &id, visit.era));
            }
            Given::Message(message) => message,
        };
        let (sender, receiver) = tokio::sync::mpsc::channel(16);
        tokio::spawn(async move {
            if sender.send(reply::event(&[&first])).await.is_err() {
                return;
            }
            let over = tokio::time::sleep(limit);
            tokio::pin!(over);
            loop {
                let event = tokio::select! {
                    given = request.next() => match given {
                        Given::Message(message) => reply::event(&[&message]),
                        Given::Answer(answer) => {
                            let parts = shown(&answer, &id, visit.era);
                            let parts: Vec<&[u8]> = parts.iter().map(AsRef::as_ref).collect();
                            let _ = sender.send(reply::event(&parts)).await;
                            return;
                        }
                    },
                    () = tokio::time::sleep(super::subscribe::KEEP_ALIVE_PAUSE) => reply::KEEP_ALIVE,
                    () = sender.closed() => return,
                    () = guard.cancelled() => return,
                    () = &mut over => return,
                };
                if sender.send(event).await.is_err() {
                    return;
                }
            }
        });
        reply::events(receiver)
    }

    fn destination<'c>(
        &self,
        visit: &'c Visit,
        asked: Asked<'_>,
        catalog: &'c Catalog,
    ) -> Option<Destination<'c>> {
        let params = asked.params().filter(|params| params.is_object && !params.is_odd)?;
        let named = |kind: ListKind, name: &str| {
            let found = catalog.resolve(&visit.scope, visit.org(), kind, name)?;
            Some(Destination { known: found.server, name: Some(found.name) })
        };
        let addressed = |uri: &str| {
            let authorizer = &self.shared.authorizer;
            let known = catalog.resolve_resource(&visit.scope, &visit.caller, authorizer, uri)?;
            Some(Destination { known, name: None })
        };
        match asked.method {
            "tools/call" => named(ListKind::Tools, params.name.as_deref()?),
            "prompts/get" => named(ListKind::Prompts, params.name.as_deref()?),
            "completion/complete" => {
                let about = member(params.raw, "ref")?;
                let text = |name: &str| -> Option<String> {
                    serde_json::from_slice(member(about, name)?).ok()
                };
                match text("name") {
                    Some(name) => named(ListKind::Prompts, &name),
                    None => addressed(&text("uri")?),
                }
            }
            _ => addressed(params.uri.as_deref()?),
        }
    }

    /// Refuses what no server has. What a caller may not use is answered in exactly the same way by the engine.
    fn refuse_unknown(&self, visit: &Visit, asked: Asked<'_>) -> Reply {
        let call = asked.call();
        let call = Call { kind: Method::of(asked.method), ..call };
        let unlinked = Unlinked {
            call,
            id: asked.id,
            principal: &visit.principal,
            situation: &self.own_situation,
            trace_id: visit.trace_id.as_deref(),
            begun: visit.begun,
        };
        reply::json(StatusCode::OK, [self.refuse_nowhere(&unlinked).into()])
    }

    fn refuse_unreached(
        &self,
        server: &GatewayServer,
        unlinked: &Unlinked<'_>,
        error: &LinkError,
    ) -> Reply {
        self.remark(&format!("`{}`: {error}", server.id()));
        let words = "○ holdpoint — the server could not be reached or started";
        let refusal = server.engine.refuse_unreached(unlinked, words);
        reply::json(StatusCode::OK, [refusal.into()])
    }

    pub(crate) fn link_key(&self, visit: &Visit, server: &GatewayServer) -> LinkKey {
        let session = match &server.settings.reach {
            Reach::Command(command) if command.instance == Instance::Session => {
                visit.session.as_ref().map(|session| session.number)
            }
            Reach::Command(_) | Reach::Url(_) => None,
        };
        LinkKey { caller: visit.caller.key(), session }
    }
}

/// The request as the server gets it: with our number as its id and progress token, under the server's own name, and in the
/// era that the server speaks.
fn rewritten(
    asked: Asked<'_>,
    name: Option<&str>,
    number: u64,
    token: Option<&[u8]>,
    (_from, to): (Era, Era),
) -> Vec<u8> {
    let mut edits = Edits::of(asked.envelope.raw);
    let number = number.to_string();
    edits.replace(asked.id, number.clone());
    if let Some(token) = token {
        edits.replace(token, number);
    }
    let params = asked.params().map(|params| params.raw);
    if let (Some(params), Some(name)) = (params, name) {
        let own = match asked.method {
            "completion/complete" => member(params, "ref").and_then(|about| member(about, "name")),
            _ => member(params, "name"),
        };
        if let Some(own) = own {
            edits.replace(own, quoted(name));
        }
    }
    if to == Era::Stateless {
        let client =
            format!(r#"{{"name":"holdpoint-gateway","version":"{}"}}"#, env!("CARGO_PKG_VERSION"));
        let version = format!("\"{STATELESS}\"");
        let own =
            [(META_VERSION, version.as_str()), (META_CAPABILITIES, "{}"), (META_CLIENT, &client)];
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
                let members = own.map(|(name, value)| format!("\"{name}\":{value}")).join(",");
                edits.insert(params, "_meta", format!("{{{members}}}").as_bytes());
            }
            (None, None) => {}
        }
    }
    edits.finish()
}

/// An answer as the client gets it: under the client's own id, and with what its era needs.
fn shown(answer: &Answer, id: &[u8], era: Era) -> Vec<Bytes> {
    if era == Era::Stateless
        && let Ok(Scanned::Message(Envelope {
            kind: Kind::Response { outcome: Outcome::Result(result), id: Some(own) },
            ..
        })) = scan(answer.bytes())
        && member(result, "resultType").is_none()
    {
        let mut edits = Edits::of(answer.bytes());
        edits.replace(own.raw(), id);
        edits.insert(result, "resultType", br#""complete""#);
        return vec![edits.finish().into()];
    }
    answer.with_id(id).into()
}

fn timed_out(id: &[u8]) -> Reply {
    let words = "○ holdpoint — the call took longer than it may (limits.call_max_seconds)";
    reply::json(StatusCode::OK, [frame::error(id, -32011, words).into()])
}

fn cancelled(id: &[u8]) -> Reply {
    reply::json(
        StatusCode::OK,
        [frame::error(id, -32011, "○ holdpoint — the call was cancelled").into()],
    )
}
