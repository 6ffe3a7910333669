//! Requests that go on to a server.

use super::rounds::{Rounds, UNOFFERED, asks_unoffered, input_required};
use super::{
    Asked, HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, Visit, decode_header, with_result_type,
};
use crate::call_slots::{CallSlot, SlotLimits};
use crate::catalog::{Catalog, CatalogServer, Scope};
use crate::frame::{self, Edits, member, quoted};
use crate::greeting::{Era, META_CAPABILITIES, META_CLIENT, META_VERSION, STATELESS};
use crate::link::{Ending, Given, LinkRequest, Surroundings};
use crate::node::Node;
use crate::pending::Answer;
use crate::reply::{self, Reply};
use crate::request_state::{self, StateBinding};
use crate::server::{GatewayServer, LinkError, LinkKey, ReadyLink};
use bytes::Bytes;
use contract::json::Document;
use contract::surface::{EntryId, EntryType, ListKind};
use engine::call::{Call, Method, Subject, Target};
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
        let state =
            state.map(|(given, binding)| request_state::open(&self.shared.sealer, binding, given));
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
        let ready = match open {
            Some(ready) => ready,
            None => match self.start(&visit, &server, &key, &unlinked).await {
                Ok(ready) => ready,
                Err(refusal) => return *refusal,
            },
        };
        let era = ready.era;
        let token = asked.meta().and_then(|meta| member(meta, PROGRESS_TOKEN));
        let ending = match visit.era {
            Era::Sessions => Ending::RunsOn,
            Era::Stateless => Ending::Cancels,
        };
        let mut sent = None;
        let may_ask = visit.era == Era::Sessions && era == Era::Stateless && visit.takes_events;
        let surroundings = Surroundings {
            trace_id: visit.trace_id.clone(),
            headers: forwarded(&visit.forwardable, &server),
        };
        let mut request = ready.link.ask_in(&surroundings, token, ending, |number| {
            let own = Own { name: name.as_deref(), state: state.as_deref() };
            let frame = rewritten(asked, own, number, token, (era, &key.capabilities));
            sent = may_ask.then(|| frame.clone());
            frame
        });
        request.take_slot(Some(slot));
        let rounds = sent.map(|sent| Rounds::new(&ready.link, sent, token));
        self.carry(visit, asked.id.into(), request, binding, rounds).await
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
    fn call_slot(
        &self,
        visit: &Visit,
        server: &GatewayServer,
        unlinked: &Unlinked<'_>,
    ) -> Result<CallSlot, Box<Reply>> {
        let limits = &self.shared.settings().front.limits;
        let limits =
            SlotLimits { per_caller: limits.calls_per_caller, per_server: limits.calls_per_server };
        self.call_slots.take(&visit.principal_id, &server.calls, limits).map_err(|full| {
            let words = format!("○ holdpoint — {full}; try again once one of them is answered");
            let engine = &server.engine;
            let unpermitted = engine.refuse_unpermitted(unlinked);
            let refusal = unpermitted.unwrap_or_else(|| engine.refuse_busy(unlinked, &words));
            Box::new(reply::json(StatusCode::OK, [refusal.into()]))
        })
    }

    /// Opens the link to a server for a caller that may make the call.
    async fn start(
        self: &Arc<Self>,
        visit: &Visit,
        server: &Arc<GatewayServer>,
        key: &LinkKey,
        unlinked: &Unlinked<'_>,
    ) -> Result<Arc<ReadyLink>, Box<Reply>> {
        let refused = |refusal: Vec<u8>| Box::new(reply::json(StatusCode::OK, [refusal.into()]));
        let opening = server.link(key, &visit.principal, || self.listener(visit, server));
        match tokio::time::timeout(START_PATIENCE, opening).await {
            Ok(Ok(ready)) => Ok(ready),
            Ok(Err(error)) => Err(Box::new(self.refuse_unreached(server, unlinked, &error))),
            Err(_) => {
                let words = "○ holdpoint — the server did not start in time";
                Err(refused(server.engine.refuse_unreached(unlinked, words)))
            }
        }
    }

    /// Waits for what a request gives: one answer as JSON, or a stream if anything comes before it.
    async fn carry(
        self: &Arc<Self>,
        visit: Visit,
        id: Vec<u8>,
        mut request: LinkRequest,
        binding: Option<StateBinding>,
        mut rounds: Option<Rounds>,
    ) -> Reply {
        let session = visit.session.as_ref().map(|session| session.number);
        // Where neither end is of the stateless era, no answer asks for anything.
        let may_ask = binding.is_some() || rounds.is_some();
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
                    return reply::json(
                        status,
                        self.shown(&answer, &id, binding.as_ref(), visit.era),
                    );
                }
                Given::Message(message) if visit.hears(&message) => {
                    break Given::Message(message);
                }
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
                    Some(Given::Message(message)) => {
                        match node.questions.pass(session, request.link(), &message) {
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
                                match node.next_round(rounds, &answer, session, &sender).await {
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
                                let parts = node.shown(&answer, &id, binding.as_ref(), visit.era);
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
    fn shown(
        &self,
        answer: &Answer,
        id: &[u8],
        binding: Option<&StateBinding>,
        era: Era,
    ) -> Vec<Bytes> {
        let Some(binding) = binding.filter(|_| era == Era::Stateless) else {
            return answer.with_id(id).into();
        };
        let Ok(Scanned::Message(Envelope {
            kind: Kind::Response { outcome: Outcome::Result(result), .. },
            ..
        })) = scan(answer.bytes())
        else {
            return answer.with_id(id).into();
        };
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
        let beginning = [br#"{"jsonrpc":"2.0","id":"#.as_slice(), id, br#","result":"#].concat();
        vec![beginning.into(), result, Bytes::from_static(b"}")]
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
        let askable = match (&visit.session, visit.era) {
            (Some(session), Era::Sessions) if is_own && is_trusted => session.askable.clone(),
            (None, Era::Stateless) if is_trusted => visit.askable.clone(),
            _ => b"{}".to_vec(),
        };
        let asks = askable != b"{}";
        let is_command = matches!(settings.reach, Reach::Command(_));
        let session = own.filter(|_| is_own && (asks || is_command));
        LinkKey {
            caller: visit.caller.key(),
            session,
            capabilities: askable.into(),
            era: visit.era,
        }
    }
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
fn is_ambiguous(asked: Asked<'_>) -> bool {
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

/// What a server calls things, where the client calls them otherwise.
#[derive(Debug, Clone, Copy)]
struct Own<'a> {
    name: Option<&'a str>,
    /// The server's own `requestState`, as raw JSON.
    state: Option<&'a [u8]>,
}

/// The request as the server gets it: with our number as its id and progress token, under the server's own name, and in the
/// era that the server speaks.
fn rewritten(
    asked: Asked<'_>,
    Own { name, state }: Own<'_>,
    number: u64,
    token: Option<&[u8]>,
    (to, capabilities): (Era, &[u8]),
) -> Vec<u8> {
    let mut edits = Edits::of(asked.envelope.raw);
    let number = number.to_string();
    edits.replace(asked.id, number.clone());
    if let Some(token) = token {
        edits.replace(token, number);
    }
    let params = asked.params().map(|params| params.raw);
    if let (Some(given), Some(state)) =
        (params.and_then(|params| member(params, "requestState")), state)
    {
        edits.replace(given, state);
    }
    if let (Some(params), Some(name)) = (params, name) {
        let own = match asked.method {
            "completion/complete" => member(params, "ref").and_then(|about| member(about, "name")),
            _ => member(params, "name"),
        };
        if let Some(own) = own {
            edits.replace(own, quoted(name));
        }
    }
    // The engine reads what these are about without escapes.
    let subject: &[&str] = match asked.method {
        "completion/complete" => &["type", "uri"],
        "resources/subscribe" | "resources/unsubscribe" => &["uri"],
        _ => &[],
    };
    let about = match asked.method {
        "completion/complete" => params.and_then(|params| member(params, "ref")),
        _ => params,
    };
    for raw in subject.iter().filter_map(|name| member(about?, name)) {
        if let (true, Ok(text)) = (raw.contains(&b'\\'), serde_json::from_slice::<String>(raw)) {
            edits.replace(raw, quoted(&text));
        }
    }
    if to == Era::Stateless {
        let client =
            format!(r#"{{"name":"holdpoint-gateway","version":"{}"}}"#, env!("CARGO_PKG_VERSION"));
        let version = format!("\"{STATELESS}\"");
        let capabilities = String::from_utf8_lossy(capabilities);
        let own = [
            (META_VERSION, version.as_str()),
            (META_CAPABILITIES, &*capabilities),
            (META_CLIENT, &client),
        ];
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

const TOOK_TOO_LONG: &str =
    "○ holdpoint — the call took longer than it may (limits.call_max_seconds)";

fn timed_out(id: &[u8]) -> Reply {
    reply::json(StatusCode::OK, [frame::error(id, -32011, TOOK_TOO_LONG).into()])
}

fn cancelled(id: &[u8]) -> Reply {
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
