//! Requests that go on to a server.

use super::resume::Carried;
use super::rewrite::{Own, rewritten};
use super::rounds::{Rounds, UNOFFERED, asks_unoffered, input_required};
use super::tasks::{NOT_THE_TASK, TaskPart, asks_for_task, made_task, may_make_task};
use super::{
    Asked, HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, Visit, decode_header, with_result_type,
};
use crate::asking::AskedFor;
use crate::call_slots::{CallSlot, SlotLimits};
use crate::catalog::{Catalog, CatalogServer, Scope};
use crate::frame::{self, Edits, member};
use crate::greeting::Era;
use crate::link::{Ending, Given, Link, LinkRequest, Surroundings};
use crate::node::Node;
use crate::pending::Answer;
use crate::presented::Presented;
use crate::reply::{self, Reply};
use crate::request_state::{self, StateBinding};
use crate::server::{GatewayServer, LinkError, LinkKey, ReadyLink};
use crate::task_id::{MAX_TASK_ARGUMENTS_BYTES, TaskTicket};
use crate::task_names::{TASKS_EXTENSION, related_task};
use bytes::Bytes;
use contract::json::Document;
use contract::surface::{EntryId, EntryType, ListKind};
use engine::call::{Call, Method, Subject, Target};
use engine::credentials::Unavailable;
use engine::reason::ReasonCode;
use engine::server::Unlinked;
use engine::situation::Situation;
use http::{HeaderName, HeaderValue, StatusCode};
use policy::Trust;
use settings::gateway::{Instance, Reach};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use unicode_normalization::UnicodeNormalization;
use wire::envelope::{Envelope, Kind, Outcome, Scanned, members, scan};
use wire::remote::MirroredParameters;

/// The headers by which a trace goes on.
pub(crate) const TRACE_HEADERS: [&str; 2] = ["traceparent", "tracestate"];
/// How long a server may take until it is ready to be called.
const START_PATIENCE: Duration = Duration::from_secs(60);

/// The member of `_meta` by which a request asks for progress.
const PROGRESS_TOKEN: &str = "progressToken";

/// Where a request goes, and what it is called there.
struct Destination<'c> {
    known: &'c CatalogServer,
    /// The server's own name for the tool or prompt.
    name: Option<String>,
    /// What a method that is gated by no entry is about.
    subject: Option<EntryId>,
}

impl Node {
    pub(super) async fn forward(
        self: &Arc<Self>,
        visit: Visit,
        asked: Asked<'_>,
        catalog: &Catalog,
    ) -> Reply {
        // INVARIANT: what is authorized is what is forwarded. Two readers could take different ones of two equal members. This
        // comes before the destination, so that the refusal does not tell which servers there are.
        if is_ambiguous(asked) {
            let _ = self.record_refusal(&visit, asked, ReasonCode::AmbiguousMessage);
            let words = "○ holdpoint — the arguments or `_meta` cannot be read in exactly one way";
            let refusal = frame::error(asked.id, INVALID_REQUEST, words);
            return reply::json(StatusCode::OK, [refusal.into()]);
        }
        let Some(Destination { known, name, subject }) = self.destination(&visit, asked, catalog)
        else {
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
        if let Some(EntryId { entry_type, key }) = &subject {
            call.subject = Subject::Entry(Target { entry_type: *entry_type, key });
        }
        let unlinked = Unlinked {
            call,
            id: asked.id,
            principal: &visit.principal,
            situation,
            trace_id: visit.trace_id.as_deref(),
            begun: visit.begun,
        };
        let wants_task = visit.era == Era::Sessions && asks_for_task(asked);
        if wants_task && !may_make_task(asked) {
            let words = format!(
                "a call that is made as a task has at most {MAX_TASK_ARGUMENTS_BYTES} bytes of arguments"
            );
            return self.refuse(&visit, asked, StatusCode::OK, INVALID_PARAMS, &words);
        }
        if let Some(answered) = self.answer_elsewhere(&visit, asked, &server, &unlinked).await {
            return answered;
        }
        let key = self.link_key(&visit, &server);
        let open = server.open_link_of(&key);
        let given = asked.params().and_then(|params| member(params.raw, "requestState"));
        // INVARIANT: a caller that may not make the call has nothing started for it, and learns nothing about the call's
        // arguments. On an open link the session decides, before anything else is looked at.
        if (open.is_none() || given.is_some() || visit.era == Era::Stateless)
            && let Some(refusal) = server.engine.refuse_unpermitted(&unlinked)
        {
            return reply::json(StatusCode::OK, [refusal.into()]);
        }
        // Only the stateless era has such states; making one reads all arguments.
        let binding = (given.is_some() || visit.era == Era::Stateless).then(|| {
            StateBinding::of(
                &visit.principal_id,
                server.id(),
                asked.method,
                unlinked.call.target.map(|target| target.key),
                unlinked.call.arguments,
            )
        });
        let state = given.zip(binding.as_ref());
        let revoked =
            state.and_then(|_| self.authenticator().revoked().principal(visit.caller.identity()));
        let state = state.map(|(given, binding)| {
            request_state::open(&self.shared.sealer, binding, given, revoked)
        });
        let Ok(state) = state.transpose() else {
            let words = "`requestState` was not given for this request, or too long ago";
            return self.refuse(&visit, asked, StatusCode::OK, INVALID_PARAMS, words);
        };
        if visit.era == Era::Stateless
            && let Some(refusal) = self.check_parameters(&visit, asked, known, &unlinked)
        {
            return refusal;
        }
        let slot = match self.call_slot(&visit, &server, &unlinked) {
            Ok(slot) => slot,
            Err(refusal) => return *refusal,
        };
        let mut presented = match self.present(&visit, asked, &server, &unlinked).await {
            Ok(presented) => presented,
            Err(refusal) => return *refusal,
        };
        let ready = match open {
            Some(ready) => ready,
            // Boxed: what is rare must not make the future of every call larger.
            None => {
                match Box::pin(self.start(&visit, &server, &key, &unlinked, &mut presented)).await {
                    Ok(ready) => ready,
                    Err(refusal) => return *refusal,
                }
            }
        };
        let era = ready.era;
        if wants_task && !(era == Era::Sessions && ready.has_tasks) {
            return self.refuse_method(&visit, asked);
        }
        if (visit.era, era) == (Era::Sessions, Era::Stateless)
            && matches!(asked.method, "resources/subscribe" | "resources/unsubscribe")
        {
            return self.answer_subscribe(visit, asked, &server, key).await;
        }
        let related = asked.params().and_then(|params| related_task(params.raw));
        let related = related.map(|raw| self.own_task(&visit, &server, raw).map(|own| (raw, own)));
        if matches!(related, Some(None)) {
            return self.refuse_task(&visit, asked, ReasonCode::UnknownTool);
        }
        let task = if wants_task || (visit.takes_tasks && asked.method == "tools/call") {
            let tool = unlinked.call.target.map(|target| target.key.to_owned());
            TaskPart::Makes(Box::new(TaskTicket {
                server: server.id().clone(),
                era,
                tool: tool.unwrap_or_default(),
                arguments: unlinked.call.arguments.map(<[u8]>::to_vec),
                capabilities: key.capabilities.to_vec(),
                task: String::new(),
            }))
        } else {
            TaskPart::Nothing
        };
        let token = progress_token(asked);
        let ending = match visit.era {
            Era::Sessions => Ending::RunsOn,
            Era::Stateless => Ending::Cancels,
        };
        let mut sent = None;
        let may_ask = visit.era == Era::Sessions && era == Era::Stateless && visit.takes_events;
        let level = match &visit.session {
            Some(session) if era == Era::Stateless => self.sessions.level(session.number),
            Some(_) | None => None,
        };
        let surroundings = self.surroundings(&visit, &server, presented);
        let mut request = ready.link.ask_in(&surroundings, token, ending, |number| {
            let related = related.flatten();
            let (name, state, level) = (name.as_deref(), state.as_deref(), level.as_deref());
            let own = Own { name, state, related, level };
            let frame = rewritten(asked, own, number, token, (era, &key.capabilities));
            sent = may_ask.then(|| frame.clone());
            frame
        });
        request.take_slot(Some(slot));
        let presented = surroundings.presented;
        let rounds = sent.map(|sent| Rounds::new(&ready.link, sent, token).presenting(presented));
        let showing = Showing { binding, task };
        self.carry(visit, asked.id.into(), request, showing, rounds).await
    }

    /// What of a client's HTTP request goes on to a server, and what the server is shown.
    pub(super) fn surroundings<'a>(
        &self,
        visit: &Visit,
        server: &GatewayServer,
        presented: Option<Presented>,
    ) -> Surroundings<'a> {
        Surroundings {
            trace_id: visit.trace_id.clone(),
            headers: forwarded(&visit.forwardable, server),
            subject: None,
            presented,
        }
    }

    /// The server's own id of a task that a request belongs to, if the task is the caller's and that server's.
    fn own_task(&self, visit: &Visit, server: &GatewayServer, raw: &[u8]) -> Option<String> {
        let id: String = serde_json::from_slice(raw).ok()?;
        let ticket = self.open_task(visit, &id)?;
        (ticket.server == *server.id() && ticket.era == visit.era).then_some(ticket.task)
    }

    /// Has a server looked at that a request is about and that was never observed. Returns the catalog with it.
    pub(super) async fn see_called(
        self: &Arc<Self>,
        visit: &Visit,
        asked: Asked<'_>,
        catalog: &Catalog,
    ) -> Option<Arc<Catalog>> {
        let name = asked.params()?.name.as_deref()?;
        let kind = match asked.method {
            "tools/call" => ListKind::Tools,
            "prompts/get" => ListKind::Prompts,
            _ => return None,
        };
        let found = catalog.resolve(&visit.scope, visit.org(), kind, name)?;
        if found.server.situation.is_some() {
            return None;
        }
        let scope = Scope::Server(found.server.server.id().clone());
        self.see_unseen(&Visit { scope, ..visit.clone() }, START_PATIENCE).await;
        Some(self.catalog())
    }

    /// A place among the calls in flight. Where there is none, a caller that may not make the call does not learn that the
    /// server is busy.
    pub(super) fn call_slot(
        &self,
        visit: &Visit,
        server: &GatewayServer,
        unlinked: &Unlinked<'_>,
    ) -> Result<CallSlot, Box<Reply>> {
        let limits = &self.shared.settings().front.limits;
        let limits =
            SlotLimits { per_caller: limits.calls_per_caller, per_server: limits.calls_per_server };
        let taken = self.call_slots.take(&visit.principal_id, &server.calls, limits);
        let traced = |slot: CallSlot| match &visit.span {
            Some(span) => {
                // Only a name that was accepted: another, or the URI of a resource, may be an argument in disguise.
                let view = &unlinked.situation.view;
                let tool = unlinked.call.target.filter(|target| {
                    target.entry_type == EntryType::Tool && view.definition(*target).is_some()
                });
                span.goes_to(server.id(), tool.map(|target| target.key));
                slot.traced(span.clone())
            }
            None => slot,
        };
        taken.map(traced).map_err(|full| {
            let words = format!("○ holdpoint — {full}; try again once one of them is answered");
            let engine = &server.engine;
            let unpermitted = engine.refuse_unpermitted(unlinked);
            let refusal = unpermitted.unwrap_or_else(|| engine.refuse_busy(unlinked, &words));
            Box::new(reply::json(StatusCode::OK, [refusal.into()]))
        })
    }

    /// Opens the link to a server for a caller that may make the call.
    pub(super) async fn start(
        self: &Arc<Self>,
        visit: &Visit,
        server: &Arc<GatewayServer>,
        key: &LinkKey,
        unlinked: &Unlinked<'_>,
        presented: &mut Option<Presented>,
    ) -> Result<Arc<ReadyLink>, Box<Reply>> {
        let refused = |refusal: Vec<u8>| Box::new(reply::json(StatusCode::OK, [refusal.into()]));
        let opening = self.link(visit, server, key, presented);
        match tokio::time::timeout(START_PATIENCE, opening).await {
            Ok(Ok(ready)) => Ok(ready),
            Ok(Err(error)) if error.is_credential_refused() => {
                Err(self.refuse_unavailable(server, unlinked, &Unavailable::Refused))
            }
            Ok(Err(LinkError::NoSecret(why))) => {
                Err(self.refuse_unavailable(server, unlinked, &why))
            }
            Ok(Err(error)) => Err(Box::new(self.refuse_unreached(server, unlinked, &error))),
            Err(_) => {
                let words = "○ holdpoint — the server did not start in time";
                Err(refused(server.engine.refuse_unreached(unlinked, words)))
            }
        }
    }

    /// Waits for what a request gives: one answer as JSON, or a stream if anything comes before it.
    pub(super) async fn carry(
        self: &Arc<Self>,
        visit: Visit,
        id: Vec<u8>,
        mut request: LinkRequest,
        showing: Showing,
        mut rounds: Option<Rounds>,
    ) -> Reply {
        let session = visit.session.as_ref().map(|session| session.number);
        // Where neither end is of the stateless era, no answer asks for anything.
        let may_ask = showing.binding.is_some() || rounds.is_some();
        let guard = self.in_flight(&visit, &id);
        let limit = Duration::from_secs(self.shared.settings().front.limits.call_max_seconds);
        let over = tokio::time::sleep(limit);
        tokio::pin!(over);
        let first = loop {
            let given = tokio::select! {
                given = request.next() => given,
                () = &mut over => {
                    request.cancel();
                    return timed_out(&id);
                }
                () = guard.cancelled() => {
                    request.cancel();
                    return cancelled(&id);
                }
            };
            match given {
                Given::Answer(answer)
                    if may_ask && asks_unoffered(request.link(), answer.bytes()) =>
                {
                    let refusal = frame::error(&id, -32603, UNOFFERED);
                    return reply::json(StatusCode::OK, [refusal.into()]);
                }
                Given::Answer(answer)
                    if rounds.is_some()
                        && session.is_some()
                        && input_required(answer.bytes()).is_some() =>
                {
                    break Given::Answer(answer);
                }
                Given::Answer(answer) => {
                    let status = status_of(&answer, visit.era);
                    let shown = self.shown(&visit, request.link(), &answer, &id, &showing);
                    return reply::json(status, shown);
                }
                Given::Message(message) if visit.hears(&message) => {
                    break Given::Message(message);
                }
                Given::Resumable { retry } => {
                    let replay = self.replay_of(&visit, retry).filter(|_| rounds.is_none());
                    if let Some(replay) = replay {
                        let (in_flight, deadline) = (guard, over.deadline());
                        let carried = Carried { visit, id, request, showing, in_flight, deadline };
                        return self.carry_resumable(carried, &replay);
                    }
                }
                Given::Paused => {}
                // A client that takes no stream cannot be asked either.
                Given::Message(message) => {
                    self.questions.pass(None, request.link(), &message);
                }
            }
        };
        let node = self.clone();
        let (sender, receiver) = tokio::sync::mpsc::channel(16);
        let over = tokio::time::sleep_until(over.deadline());
        tokio::spawn(async move {
            tokio::pin!(over);
            let mut asked_for = AskedFor::new(node.clone(), session);
            let mut given = Some(first);
            loop {
                let next = match given.take() {
                    Some(given) => Some(given),
                    None => tokio::select! {
                        given = request.next() => Some(given),
                        () = tokio::time::sleep(super::subscribe::KEEP_ALIVE_PAUSE) => None,
                        () = sender.closed() => return,
                        () = guard.cancelled() => return request.cancel(),
                        () = &mut over => {
                            request.cancel();
                            let late = frame::error(&id, -32011, TOOK_TOO_LONG);
                            let _ = sender.try_send(reply::event(&[&late]));
                            return;
                        }
                    },
                };
                let event = match next {
                    None => reply::KEEP_ALIVE,
                    Some(Given::Message(message)) if !visit.hears(&message) => continue,
                    Some(Given::Resumable { .. } | Given::Paused) => continue,
                    Some(Given::Message(message)) => {
                        match asked_for.pass(request.link(), &message) {
                            Some(message) => reply::event(&[&message]),
                            None => continue,
                        }
                    }
                    Some(Given::Answer(answer)) => {
                        let asks = may_ask && input_required(answer.bytes()).is_some();
                        let event = match (&mut rounds, session) {
                            _ if asks && asks_unoffered(request.link(), answer.bytes()) => {
                                reply::event(&[&frame::error(&id, -32603, UNOFFERED)])
                            }
                            (Some(rounds), Some(session)) if asks => {
                                // A question ends with the request that it belongs to.
                                let next = tokio::select! {
                                    next = node.next_round(rounds, &answer, session, &sender) => next,
                                    () = guard.cancelled() => return,
                                    () = sender.closed() => return,
                                    () = &mut over => Err(TOOK_TOO_LONG),
                                };
                                match next {
                                    Ok(mut next) => {
                                        request.give_slot(&mut next);
                                        request = next;
                                        continue;
                                    }
                                    Err(words) => {
                                        reply::event(&[&frame::error(&id, -32603, words)])
                                    }
                                }
                            }
                            _ => {
                                let parts =
                                    node.shown(&visit, request.link(), &answer, &id, &showing);
                                let parts: Vec<&[u8]> = parts.iter().map(AsRef::as_ref).collect();
                                reply::event(&parts)
                            }
                        };
                        tokio::select! {
                            _ = sender.send(event) => {}
                            () = &mut over => {}
                        }
                        return;
                    }
                };
                // A client that does not read keeps nothing for longer than a call may take.
                let is_sent = tokio::select! {
                    sent = sender.send(event) => sent.is_ok(),
                    () = &mut over => {
                        request.cancel();
                        false
                    }
                };
                if !is_sent {
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
            Some(Destination { known: found.server, name: Some(found.name), subject: None })
        };
        let addressed = |uri: &str| {
            let authorizer = &self.shared.authorizer;
            let known = catalog.resolve_resource(&visit.scope, &visit.caller, authorizer, uri)?;
            Some(Destination { known, name: None, subject: None })
        };
        match asked.method {
            "tools/call" => named(ListKind::Tools, params.name.as_deref()?),
            "prompts/get" => named(ListKind::Prompts, params.name.as_deref()?),
            "completion/complete" => {
                let EntryId { entry_type, key } = reference(params.raw)?;
                let found = match entry_type {
                    EntryType::Prompt => named(ListKind::Prompts, &key)?,
                    _ => addressed(&key)?,
                };
                let key = found.name.clone().unwrap_or(key);
                Some(Destination { subject: Some(EntryId::new(entry_type, key)), ..found })
            }
            "resources/subscribe" | "resources/unsubscribe" => {
                let uri = params.uri.as_deref()?;
                let subject = Some(EntryId::new(EntryType::Resource, uri));
                Some(Destination { subject, ..addressed(uri)? })
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

    /// An answer as the client gets it: under the client's own id, and with what its era needs.
    pub(super) fn shown(
        &self,
        visit: &Visit,
        link: &Link,
        answer: &Answer,
        id: &[u8],
        Showing { binding, task }: &Showing,
    ) -> Vec<Bytes> {
        let has_task = !matches!(task, TaskPart::Nothing);
        let binding = binding.as_ref().filter(|_| visit.era == Era::Stateless);
        if binding.is_none() && !has_task {
            return answer.with_id(id).into();
        }
        let Ok(Scanned::Message(Envelope {
            kind: Kind::Response { outcome: Outcome::Result(result), .. },
            ..
        })) = scan(answer.bytes())
        else {
            return answer.with_id(id).into();
        };
        let whose = (&visit.principal_id, visit.era);
        match self.shown_task(link, result, task, whose) {
            Some(Ok(result)) => return answered(id, result.into()),
            Some(Err(words)) => return vec![frame::error(id, -32603, words).into()],
            None => {}
        }
        let Some(binding) = binding else { return answer.with_id(id).into() };
        if made_task(result, visit.era).is_some() {
            return vec![frame::error(id, -32603, NOT_THE_TASK).into()];
        }
        let sealed = request_state::seal(&self.shared.sealer, binding, result);
        let has_type = member(result, "resultType").is_some();
        let is_read = member(result, "contents").is_some();
        if sealed.is_none() && has_type && !is_read {
            return answer.with_id(id).into();
        }
        let result = sealed.as_deref().unwrap_or(result);
        let mut result =
            if has_type { Bytes::copy_from_slice(result) } else { with_result_type(result) };
        if is_read {
            result = private(&result);
        }
        answered(id, result)
    }

    /// Whether the headers that a tool's definition asks for say what the arguments say.
    fn check_parameters(
        &self,
        visit: &Visit,
        asked: Asked<'_>,
        known: &CatalogServer,
        unlinked: &Unlinked<'_>,
    ) -> Option<Reply> {
        let target = unlinked.call.target?;
        let list = known.situation.as_ref()?.view.list(ListKind::Tools)?;
        let (_, raw) = list.entries().find(|(key, _)| *key == target.key)?;
        let definition = std::str::from_utf8(raw).ok()?;
        let mirrored =
            MirroredParameters::of_tool(definition).ok().filter(|one| !one.is_empty())?;
        let expected = mirrored.headers(unlinked.call.arguments).ok();
        let is_same = expected.is_some_and(|expected| {
            mirrored.names().all(|name| {
                let expected = expected.iter().find(|header| header.name() == name);
                let mut given = visit.parameters.iter().filter(|(given, _)| given == name);
                match (expected, given.next(), given.next()) {
                    (None, None, _) => true,
                    (Some(expected), Some((_, given)), None) => {
                        is_same_value(expected.value(), given.as_bytes())
                    }
                    _ => false,
                }
            })
        });
        if is_same {
            return None;
        }
        let words = "an `Mcp-Param-` header does not agree with the arguments, or is missing";
        Some(self.refuse(visit, asked, StatusCode::BAD_REQUEST, HEADER_MISMATCH, words))
    }

    pub(crate) fn link_key(&self, visit: &Visit, server: &GatewayServer) -> LinkKey {
        let settings = &server.settings;
        let own = visit.session.as_ref().map(|session| session.number);
        let is_trusted = matches!(settings.trust, Trust::Internal | Trust::Verified);
        // Only a server that serves one session alone, and that the operator trusts, may ask the client of that session.
        let is_own = match &settings.reach {
            Reach::Command(command) => command.instance == Instance::Session,
            Reach::Url(_) => is_trusted,
        };
        let mut askable = match (&visit.session, visit.era) {
            (Some(session), Era::Sessions) if is_own && is_trusted => session.askable.clone(),
            (None, Era::Stateless) if is_trusted => visit.askable.clone(),
            _ => b"{}".to_vec(),
        };
        let asks = askable != b"{}";
        if visit.takes_tasks {
            askable = with_tasks(&askable);
        }
        let is_command = matches!(settings.reach, Reach::Command(_));
        let session = own.filter(|_| is_own && (asks || is_command));
        LinkKey {
            caller: visit.caller.key(),
            session,
            capabilities: askable.into(),
            era: visit.era,
            credential: server.broker.key_of(&visit.inbound),
        }
    }
}

/// What the answer to a request is made of before the client gets it.
#[derive(Debug, Default)]
pub(super) struct Showing {
    /// What a `requestState` in it is bound to.
    pub(super) binding: Option<StateBinding>,
    pub(super) task: TaskPart,
}

/// The raw token by which a request asks for progress.
pub(super) fn progress_token(asked: Asked<'_>) -> Option<&[u8]> {
    asked.meta().and_then(|meta| member(meta, PROGRESS_TOKEN))
}

fn answered(id: &[u8], result: Bytes) -> Vec<Bytes> {
    let beginning = [br#"{"jsonrpc":"2.0","id":"#.as_slice(), id, br#","result":"#].concat();
    vec![beginning.into(), result, Bytes::from_static(b"}")]
}

/// Capabilities with the tasks extension among them.
fn with_tasks(capabilities: &[u8]) -> Vec<u8> {
    let mut edits = Edits::of(capabilities);
    let extension = format!(r#"{{"{TASKS_EXTENSION}":{{}}}}"#);
    edits.insert(capabilities, "extensions", extension.as_bytes());
    edits.finish()
}

/// The headers of a client that go on to a server: the trace, and what the operator configured for that server.
fn forwarded(
    given: &[(HeaderName, HeaderValue)],
    server: &GatewayServer,
) -> Vec<(HeaderName, HeaderValue)> {
    let Reach::Url(reach) = &server.settings.reach else { return Vec::new() };
    let goes_on = |name: &HeaderName| {
        TRACE_HEADERS.contains(&name.as_str()) || reach.forward_headers.contains(name.as_str())
    };
    given.iter().filter(|(name, _)| goes_on(name)).cloned().collect()
}

/// Whether two readers could take the arguments or `_meta` for different ones.
pub(super) fn is_ambiguous(asked: Asked<'_>) -> bool {
    let arguments = asked.params().and_then(|params| params.arguments);
    let parts = [arguments, asked.meta()].into_iter().flatten();
    let is_folded = |(name, _): (Cow<'_, str>, &[u8])| {
        let folded = name.nfkc().flat_map(char::to_lowercase);
        name != PROGRESS_TOKEN && folded.eq(PROGRESS_TOKEN.chars().flat_map(char::to_lowercase))
    };
    parts.into_iter().any(|part| Document::parse_bytes(part).is_err())
        || asked.meta().is_some_and(|meta| members(meta).any(is_folded))
}

/// The entry that `completion/complete` is about; `None` if it cannot be read in one way.
fn reference(params: &[u8]) -> Option<EntryId> {
    let about = member(params, "ref")?;
    Document::parse_bytes(about).ok()?;
    let text = |name: &str| -> Option<String> { serde_json::from_slice(member(about, name)?).ok() };
    match text("type")?.as_str() {
        "ref/prompt" => Some(EntryId::new(EntryType::Prompt, text("name")?)),
        "ref/resource" => Some(EntryId::new(EntryType::Resource, text("uri")?)),
        _ => None,
    }
}

/// Whether two header values say the same: numbers may be spelled differently, and text may be encoded.
fn is_same_value(expected: &[u8], given: &[u8]) -> bool {
    let decoded = |value: &[u8]| decode_header(std::str::from_utf8(value).ok()?);
    match (decoded(expected), decoded(given)) {
        (Some(expected), Some(given)) if expected == given => true,
        (Some(expected), Some(given)) => {
            let numbers = (expected.parse::<f64>(), given.parse::<f64>());
            matches!(numbers, (Ok(expected), Ok(given)) if expected.to_bits() == given.to_bits())
        }
        _ => false,
    }
}

/// A resource as it may be kept by the client that read it, and by no cache that others read from: who may read it is
/// decided for each caller.
fn private(result: &[u8]) -> Bytes {
    let mut edits = Edits::of(result);
    match member(result, "cacheScope") {
        Some(scope) => edits.replace(scope, *br#""private""#),
        None => edits.insert(result, "cacheScope", br#""private""#),
    }
    if member(result, "ttlMs").is_none() {
        edits.insert(result, "ttlMs", b"0");
    }
    edits.finish().into()
}

/// The status of an answer. The stateless era gives some errors one of their own.
fn status_of(answer: &Answer, era: Era) -> StatusCode {
    if era == Era::Sessions {
        return StatusCode::OK;
    }
    let Ok(Scanned::Message(Envelope {
        kind: Kind::Response { outcome: Outcome::Error(error), .. },
        ..
    })) = scan(answer.bytes())
    else {
        return StatusCode::OK;
    };
    match member(error, "code") {
        Some(b"-32020" | b"-32021" | b"-32022") => StatusCode::BAD_REQUEST,
        Some(b"-32601") => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    }
}

pub(super) const TOOK_TOO_LONG: &str =
    "○ holdpoint — the call took longer than it may (limits.call_max_seconds)";

fn timed_out(id: &[u8]) -> Reply {
    reply::json(StatusCode::OK, [frame::error(id, -32011, TOOK_TOO_LONG).into()])
}

pub(crate) fn cancelled(id: &[u8]) -> Reply {
    reply::json(
        StatusCode::OK,
        [frame::error(id, -32011, "○ holdpoint — the call was cancelled").into()],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_caller_read_is_kept_for_no_other() {
        let check = |result: &str, expected: &str| {
            let shown = private(result.as_bytes());
            let shown: serde_json::Value = serde_json::from_slice(&shown).unwrap();
            assert_eq!(
                shown,
                serde_json::from_str::<serde_json::Value>(expected).unwrap(),
                "{result}"
            );
        };
        check(r#"{"contents":[]}"#, r#"{"contents":[],"ttlMs":0,"cacheScope":"private"}"#);
        check(
            r#"{"contents":[],"ttlMs":60000,"cacheScope":"public"}"#,
            r#"{"contents":[],"ttlMs":60000,"cacheScope":"private"}"#,
        );
    }
}
