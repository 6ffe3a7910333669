//! Requests that go on to a server.

use super::carry::Showing;
use super::given_state::RequestBinding;
use super::rewrite::{Own, rewritten};
use super::rounds::Rounds;
use super::tasks::{TaskPart, asks_for_task, may_make_task};
use super::{Asked, HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, Visit, decode_header};
use crate::call_slots::{CallSlot, SlotLimits};
use crate::catalog::{Catalog, CatalogServer, Scope};
use crate::frame::{self, Edits, member};
use crate::greeting::Era;
use crate::link::{Ending, LinkRequest, Surroundings};
use crate::node::Node;
use crate::presented::Presented;
use crate::reply::{self, Reply};
use crate::request_state::{GivenState, NotOurState};
use crate::server::{GatewayServer, LinkError, LinkKey, ReadyLink};
use crate::task_id::{MAX_TASK_ARGUMENTS_BYTES, TaskTicket};
use crate::task_names::{TASKS_EXTENSION, related_task_in};
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
use wire::envelope::members;
use wire::remote::MirroredParameters;

/// The headers by which a trace goes on.
pub(crate) const TRACE_HEADERS: [HeaderName; 2] =
    [HeaderName::from_static("traceparent"), HeaderName::from_static("tracestate")];
/// How long a server may take until it is ready to be called.
const START_PATIENCE: Duration = Duration::from_secs(60);

/// The member of `_meta` by which a request asks for progress.
const PROGRESS_TOKEN: &str = "progressToken";

/// Where a request goes, and what it is called there.
pub(super) struct Destination<'c> {
    pub(super) known: &'c CatalogServer,
    /// The server's own name for the tool or prompt.
    pub(super) name: Option<String>,
    /// What a method that is gated by no entry is about.
    subject: Option<EntryId>,
}

/// A request whose server is known.
#[derive(Clone, Copy)]
struct Onward<'a> {
    asked: Asked<'a>,
    known: &'a CatalogServer,
    /// The server's own name for the tool or prompt.
    name: Option<&'a str>,
    unlinked: &'a Unlinked<'a>,
    /// A client of the older era asks for a task in place of the result.
    wants_task: bool,
}

impl<'a> Onward<'a> {
    fn server(&self) -> &'a Arc<GatewayServer> {
        &self.known.server
    }
}

/// What a request takes along on its link.
struct Luggage {
    key: LinkKey,
    slot: CallSlot,
    presented: Option<Presented>,
    bound: RequestBinding,
}

impl Node {
    pub(super) async fn forward(
        self: &Arc<Self>,
        visit: Box<Visit>,
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
        let unobserved;
        let situation: &Situation = match &known.situation {
            Some(situation) => situation,
            None => {
                unobserved = Box::new(self.unobserved(&known.server));
                &unobserved
            }
        };
        let mut call = visit.call_of(asked, name.as_deref());
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
        let name = name.as_deref();
        let onward = Onward { asked, known, name, unlinked: &unlinked, wants_task };
        match self.dispatch(&visit, onward).await {
            Ok((request, showing, rounds)) => {
                self.carry(visit, asked.id, request, showing, rounds).await
            }
            Err(answer) => *answer,
        }
    }

    /// Sends a request to its server, over a link that is open or opened for it. Returns what carries it to its answer, or
    /// the answer to a request that is not sent.
    async fn dispatch(
        self: &Arc<Self>,
        visit: &Visit,
        onward: Onward<'_>,
    ) -> Result<(LinkRequest, Showing, Option<Rounds>), Box<Reply>> {
        let Onward { asked, unlinked, wants_task, .. } = onward;
        let server = onward.server();
        if wants_task && !may_make_task(asked) {
            let words = format!(
                "a call that is made as a task has at most {MAX_TASK_ARGUMENTS_BYTES} bytes of arguments"
            );
            let refusal = self.refuse(visit, asked, StatusCode::OK, INVALID_PARAMS, &words);
            return Err(Box::new(refusal));
        }
        if self.cluster.is_some() {
            let elsewhere = Box::pin(self.answer_elsewhere(visit, asked, server, unlinked));
            if let Some(answered) = elsewhere.await {
                return Err(Box::new(answered));
            }
        }
        let bound = self.bind(visit, asked, server, &unlinked.call);
        self.sign_in_first(visit, onward, bound.as_ref()).await?;
        let key = self.link_key(visit, server);
        let open = server.open_link_of(&key);
        let bound = self.check_unsent(visit, onward, open.is_some(), bound)?;
        let slot = self.call_slot(visit, server, unlinked)?;
        let mut presented = self.present(visit, asked, server, unlinked, Some(&bound)).await?;
        let ready = match open {
            Some(ready) => ready,
            // Boxed: what is rare must not make the future of every call larger.
            None => Box::pin(self.start(visit, server, &key, unlinked, &mut presented)).await?,
        };
        if wants_task && !(ready.era == Era::Sessions && ready.has_tasks) {
            return Err(Box::new(self.refuse_method(visit, asked)));
        }
        if (visit.era, ready.era) == (Era::Sessions, Era::Stateless)
            && matches!(asked.method, "resources/subscribe" | "resources/unsubscribe")
        {
            let answer = Box::pin(self.answer_subscribe(visit.clone(), asked, server, key));
            return Err(Box::new(answer.await));
        }
        let luggage = Luggage { key, slot, presented, bound };
        self.dispatch_on(visit, onward, &ready, luggage)
    }

    /// Refuses a call to a server whose tools are not known yet, because each caller has to sign in to it first. No policy can name its
    /// tools before that.
    async fn sign_in_first(
        &self,
        visit: &Visit,
        onward: Onward<'_>,
        bound: Result<&RequestBinding, &NotOurState>,
    ) -> Result<(), Box<Reply>> {
        let server = onward.server();
        let is_unseen = onward.known.situation.is_none() && server.broker.is_per_person();
        if !is_unseen || !self.shared.authorizer.could_use(&visit.caller, server.id()) {
            return Ok(());
        }
        let Ok(bound) = bound else { return Err(self.refuse_state(visit, onward.asked)) };
        match Box::pin(server.broker.obtain(&visit.inbound)).await {
            Ok(_) => Ok(()),
            Err(why) => {
                Err(self.refuse_unavailable(visit, server, onward.unlinked, &why, Some(bound)))
            }
        }
    }

    fn refuse_state(&self, visit: &Visit, asked: Asked<'_>) -> Box<Reply> {
        let words = "`requestState` was not given for this request, or too long ago";
        Box::new(self.refuse(visit, asked, StatusCode::OK, INVALID_PARAMS, words))
    }

    /// Checks what has to be right before a link is opened or used.
    fn check_unsent(
        &self,
        visit: &Visit,
        Onward { asked, known, unlinked, .. }: Onward<'_>,
        has_link: bool,
        bound: Result<RequestBinding, NotOurState>,
    ) -> Result<RequestBinding, Box<Reply>> {
        let server = &known.server;
        let has_binding = bound.as_ref().map_or(true, |bound| bound.binding.is_some());
        // INVARIANT: a caller that may not make the call has nothing started for it, and learns nothing about the call's
        // arguments. On an open link the session decides, before anything else is looked at.
        if (!has_link || has_binding)
            && let Some(refusal) = server.engine.refuse_unpermitted(unlinked)
        {
            return Err(Box::new(reply::json(StatusCode::OK, [refusal.into()])));
        }
        let Ok(bound) = bound else { return Err(self.refuse_state(visit, asked)) };
        if visit.era == Era::Stateless
            && let Some(refusal) = self.check_parameters(visit, asked, known, unlinked)
        {
            return Err(Box::new(refusal));
        }
        Ok(bound)
    }

    /// Hands a request to its link, which decides on it and sends it. Returns what carries it to its answer.
    fn dispatch_on(
        &self,
        visit: &Visit,
        onward: Onward<'_>,
        ready: &ReadyLink,
        Luggage { key, slot, presented, bound }: Luggage,
    ) -> Result<(LinkRequest, Showing, Option<Rounds>), Box<Reply>> {
        let Onward { asked, name, .. } = onward;
        let (server, era) = (onward.server(), ready.era);
        let related = asked.meta().and_then(related_task_in);
        let related = match related {
            Some(raw) => match self.own_task(visit, server, raw) {
                Some(own) => Some((raw, own)),
                None => {
                    let refusal = self.refuse_task(visit, asked, ReasonCode::UnknownTool);
                    return Err(Box::new(refusal));
                }
            },
            None => None,
        };
        let task = task_part(visit, onward, era, &key);
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
        let surroundings = self.surroundings(visit, server, presented);
        let (state, answers_gateway) = match &bound.given {
            Some(GivenState::Servers(state)) => (Some(state.as_slice()), false),
            Some(GivenState::SignIn) => (None, true),
            None => (None, false),
        };
        let mut request = ready.link.ask_in(&surroundings, token, ending, |number| {
            let own = Own { name, state, answers_gateway, related, level: level.as_deref() };
            let frame = rewritten(asked, own, number, token, (era, &key.capabilities));
            sent = may_ask.then(|| frame.clone());
            frame
        });
        request.take_slot(Some(slot));
        let presented = surroundings.presented;
        let rounds = sent.map(|sent| Rounds::new(&ready.link, sent, token).presenting(presented));
        Ok((request, Showing { binding: bound.binding, task }, rounds))
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
            session: visit.session.as_ref().map(|session| session.number),
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
        let limits = &self.shared.glance().front.limits;
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
                Err(self.refuse_unavailable(visit, server, unlinked, &Unavailable::Refused, None))
            }
            Ok(Err(LinkError::NoSecret(why))) => {
                Err(self.refuse_unavailable(visit, server, unlinked, &why, None))
            }
            Ok(Err(error)) => Err(Box::new(self.refuse_unreached(server, unlinked, &error))),
            Err(_) => {
                let words = "○ holdpoint — the server did not start in time";
                Err(refused(server.engine.refuse_unreached(unlinked, words)))
            }
        }
    }

    pub(super) fn destination<'c>(
        &self,
        visit: &Visit,
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
        let call = Call { kind: Method::of(asked.method), ..visit.call(asked) };
        let situation = self.own_situation();
        let unlinked = Unlinked {
            call,
            id: asked.id,
            principal: &visit.principal,
            situation: &situation,
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

/// What a task that the request may make is known by afterwards.
fn task_part(visit: &Visit, onward: Onward<'_>, era: Era, key: &LinkKey) -> TaskPart {
    let Onward { asked, unlinked, wants_task, .. } = onward;
    let may_be_task = visit.takes_tasks && asked.method == "tools/call";
    if !wants_task && !may_be_task {
        return TaskPart::Nothing;
    }
    let tool = unlinked.call.target.map(|target| target.key.to_owned());
    TaskPart::Makes(Box::new(TaskTicket {
        server: onward.server().id().clone(),
        era,
        tool: tool.unwrap_or_default(),
        arguments: unlinked.call.arguments.map(<[u8]>::to_vec),
        capabilities: key.capabilities.to_vec(),
        task: String::new(),
    }))
}

/// The raw token by which a request asks for progress.
pub(super) fn progress_token(asked: Asked<'_>) -> Option<&[u8]> {
    asked.meta().and_then(|meta| member(meta, PROGRESS_TOKEN))
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
        TRACE_HEADERS.contains(name) || reach.forward_headers.contains(name.as_str())
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
