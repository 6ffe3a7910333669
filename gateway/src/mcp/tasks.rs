//! Tasks: calls that a server answers later. The caller knows a task by a sealed id, and each
//! request about it is authorized like the call that created it. Tasks are only offered in the era
//! in which the server supports them.

use super::carry::Showing;
use super::forward::is_ambiguous;
use super::rounds::asks_for_unoffered;
use super::{Asked, INVALID_PARAMS, METHOD_NOT_FOUND, Visit, with_result_type};
use crate::catalog::{Catalog, CatalogServer};
use crate::frame::{self, Edits, member, quoted};
use crate::greeting::{Era, META_CAPABILITIES};
use crate::link::{Ending, Link, Surroundings};
use crate::node::Node;
use crate::reply::{self, Reply};
use crate::server::LinkKey;
use crate::task_id::{MAX_TASK_ARGUMENTS_BYTES, TaskTicket};
use crate::task_names::{TASKS_EXTENSION, TaskName, related_task, renamed};
use contract::json::Document;
use engine::call::{Call, Subject};
use engine::decide::{Authorization, Authorizer, Unauthorized};
use engine::reason::ReasonCode;
use engine::server::Unlinked;
use http::StatusCode;
use std::sync::Arc;
use std::time::Duration;

/// The request needs a capability that the client did not declare.
const MISSING_CAPABILITY: i64 = -32021;
/// How long to keep a process after a task was created or queried in it.
const KEPT_FOR_TASK: Duration = Duration::from_secs(60 * 60);

const UNKNOWN_TASK: &str = "there is no such task; it may have expired";
/// The message to a client whose server named a wrong task, or created one that it was not offered
/// to.
pub(super) const NOT_THE_TASK: &str =
    "○ holdpoint — the server answered with a task that this request cannot have";

/// How the answer to a request may concern a task.
#[derive(Debug, Default)]
pub(super) enum TaskPart {
    #[default]
    Nothing,
    /// It may name a task that the call creates. The task's id is still missing in the ticket.
    Makes(Box<TaskTicket>),
    About(TaskName),
}

/// Whether the client declares support for tasks.
pub(super) fn knows_tasks(capabilities: &[u8]) -> bool {
    let extensions = member(capabilities, "extensions");
    extensions.is_some_and(|extensions| member(extensions, TASKS_EXTENSION).is_some())
}

/// Whether the arguments of a call fit into the id of a task.
pub(super) fn may_make_task(asked: Asked<'_>) -> bool {
    let arguments = asked.params().and_then(|params| params.arguments);
    arguments.is_none_or(|arguments| arguments.len() <= MAX_TASK_ARGUMENTS_BYTES)
}

/// Whether a call of the older era asks to be run as a task.
pub(super) fn asks_for_task(asked: Asked<'_>) -> bool {
    let task = asked.params().and_then(|params| params.task);
    asked.method == "tools/call" && task.is_some_and(|task| task != b"null")
}

impl Node {
    pub(super) async fn answer_task(
        self: &Arc<Self>,
        visit: Box<Visit>,
        asked: Asked<'_>,
        catalog: &Catalog,
    ) -> Reply {
        if let Some(refusal) = self.refuse_without_tasks(&visit, asked, catalog) {
            return refusal;
        }
        let params = asked.params().filter(|params| params.is_object && !params.is_odd);
        let given = params.and_then(|params| member(params.raw, "taskId"));
        let is_clear = params.is_some_and(|params| Document::parse_bytes(params.raw).is_ok());
        if !is_clear || is_ambiguous(asked) {
            let _ = self.record_refusal(&visit, asked, ReasonCode::AmbiguousMessage);
            let words = "○ holdpoint — the parameters cannot be read in exactly one way";
            let refusal = frame::error(asked.id, super::INVALID_REQUEST, words);
            return reply::json(StatusCode::OK, [refusal.into()]);
        }
        let id = given.and_then(|given| serde_json::from_slice::<String>(given).ok());
        let found = id.and_then(|id| self.find_task(&visit, catalog, id));
        let (known, name, ticket) = match found {
            Some(found) => found,
            None => return self.refuse_task(&visit, asked, ReasonCode::UnknownTool),
        };
        let subject = subject_of(&ticket);
        if let Err(reason) = self.authorizes_task(&visit, &ticket) {
            return self.refuse_task(&visit, asked, reason);
        }
        let server = known.server.clone();
        let unobserved = self.unobserved(&server);
        let unlinked = Unlinked {
            call: Call { subject, ..visit.call(asked) },
            id: asked.id,
            principal: &visit.principal,
            situation: known.situation.as_deref().unwrap_or(&unobserved),
            trace_id: visit.trace_id.as_deref(),
            begun: visit.begun,
        };
        if let Some(answered) = self.answer_elsewhere(&visit, asked, &server, &unlinked).await {
            return answered;
        }
        let slot = match self.call_slot(&visit, &server, &unlinked) {
            Ok(slot) => slot,
            Err(refusal) => return *refusal,
        };
        let mut presented = match self.present(&visit, asked, &server, &unlinked, None).await {
            Ok(presented) => presented,
            Err(refusal) => return *refusal,
        };
        let key = self.task_link(&visit, &ticket, &server);
        let ready = match server.open_link_of(&key) {
            Some(ready) => ready,
            None => match self.start(&visit, &server, &key, &unlinked, &mut presented).await {
                Ok(ready) => ready,
                Err(refusal) => return *refusal,
            },
        };
        if ready.era != visit.era {
            return self.refuse_method(&visit, asked);
        }
        ready.link.keep_for(KEPT_FOR_TASK);
        let ending = match visit.era {
            Era::Sessions => Ending::RunsOn,
            Era::Stateless => Ending::Cancels,
        };
        let surroundings = Surroundings {
            subject: Some(subject),
            ..self.surroundings(&visit, &server, presented)
        };
        let token = super::forward::progress_token(asked);
        let mut request = ready.link.ask_in(&surroundings, token, ending, |number| {
            let mut edits = Edits::of(asked.envelope.raw);
            edits.replace(asked.id, number.to_string());
            if let Some(token) = token {
                edits.replace(token, number.to_string());
            }
            if let Some(given) = given {
                edits.replace(given, quoted(&ticket.task));
            }
            let declared = asked.meta().and_then(|meta| member(meta, META_CAPABILITIES));
            if let (Some(declared), Era::Stateless) = (declared, visit.era) {
                edits.replace(declared, key.capabilities.to_vec());
            }
            edits.finish()
        });
        request.take_slot(Some(slot));
        let showing = Showing { task: TaskPart::About(name), ..Showing::default() };
        self.carry(visit, asked.id, request, showing, None).await
    }

    /// Refuses a task request if the path has no tasks, or if the client did not declare support
    /// for them.
    pub(super) fn refuse_without_tasks(
        &self,
        visit: &Visit,
        asked: Asked<'_>,
        catalog: &Catalog,
    ) -> Option<Reply> {
        if !catalog.has_tasks(&visit.scope, visit.org(), visit.era) {
            return Some(self.refuse_method(visit, asked));
        }
        if visit.era == Era::Sessions || visit.takes_tasks {
            return None;
        }
        let _ = self.record_refusal(visit, asked, ReasonCode::BadFrame);
        let data =
            serde_json::json!({"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}});
        let words = "the client has to say that it knows tasks";
        let refusal = frame::error_with(asked.id, MISSING_CAPABILITY, words, Some(data));
        Some(reply::json(StatusCode::BAD_REQUEST, [refusal.into()]))
    }

    pub(super) fn refuse_method(&self, visit: &Visit, asked: Asked<'_>) -> Reply {
        let status = match visit.era {
            Era::Sessions => StatusCode::OK,
            Era::Stateless => StatusCode::NOT_FOUND,
        };
        self.refuse(visit, asked, status, METHOD_NOT_FOUND, "there is no such method here")
    }

    /// Refuses a task that this caller may not use, with the same response as for one that does not
    /// exist.
    pub(super) fn refuse_task(&self, visit: &Visit, asked: Asked<'_>, reason: ReasonCode) -> Reply {
        if self.record_refusal(visit, asked, reason).is_none() {
            return super::unrecorded(asked.id);
        }
        let refusal = frame::error(asked.id, INVALID_PARAMS, UNKNOWN_TASK);
        reply::json(StatusCode::OK, [refusal.into()])
    }

    /// The ticket in a task id, if the id is this caller's.
    pub(super) fn open_task(&self, visit: &Visit, id: &str) -> Option<TaskTicket> {
        let revoked = self.authenticator().revoked().principal(visit.caller.identity());
        TaskTicket::open(&self.shared.sealer, &visit.principal_id, id, revoked)
    }

    /// The task and server of an id, if the caller may use both here.
    pub(super) fn find_task<'c>(
        &self,
        visit: &'c Visit,
        catalog: &'c Catalog,
        id: String,
    ) -> Option<(&'c CatalogServer, TaskName, TaskTicket)> {
        let ticket = self.open_task(visit, &id)?;
        let mut servers = catalog.in_scope(&visit.scope, visit.org());
        let (_, known) = servers.find(|(server, _)| **server == ticket.server)?;
        let is_here = catalog.offers_tool(&visit.scope, known, &ticket.tool);
        if !is_here || ticket.era != visit.era {
            return None;
        }
        Some((known, TaskName { own: ticket.task.clone(), given: id }, ticket))
    }

    /// Whether the caller may make the call that created a task.
    pub(super) fn authorizes_task(
        &self,
        visit: &Visit,
        ticket: &TaskTicket,
    ) -> Result<(), ReasonCode> {
        self.authorizes(visit, &ticket.server, subject_of(ticket))
    }

    /// Whether the caller may use a subject.
    pub(super) fn authorizes(
        &self,
        visit: &Visit,
        server: &gate::server::ServerId,
        subject: Subject<'_>,
    ) -> Result<(), ReasonCode> {
        let call = Call::about(subject);
        match self.shared.authorizer.authorize(&visit.principal, server, &call) {
            Authorization::Permit { .. } => Ok(()),
            Authorization::NeedsApproval { .. } => Err(ReasonCode::ApprovalRequired),
            Authorization::Deny { why: Unauthorized::NoPolicyMatch, .. } => {
                Err(ReasonCode::NoPolicyMatch)
            }
            Authorization::Deny { why: Unauthorized::Forbidden, .. } => Err(ReasonCode::Forbidden),
            Authorization::Deny { why: Unauthorized::PolicyError, .. } => {
                Err(ReasonCode::PolicyError)
            }
        }
    }

    /// The link on which a task was created.
    pub(super) fn task_link(
        &self,
        visit: &Visit,
        ticket: &TaskTicket,
        server: &crate::server::GatewayServer,
    ) -> LinkKey {
        let key = self.link_key(visit, server);
        match visit.era {
            Era::Sessions => key,
            Era::Stateless => LinkKey { capabilities: ticket.capabilities.clone().into(), ..key },
        }
    }

    /// A result that names a task, rewritten for the client; `None` if it names none.
    pub(super) fn shown_task(
        &self,
        link: &Link,
        result: &[u8],
        part: &TaskPart,
        (principal, era): (&crate::sessions::PrincipalId, Era),
    ) -> Option<Result<Vec<u8>, &'static str>> {
        match part {
            TaskPart::Nothing => None,
            TaskPart::Makes(ticket) => {
                let own = made_task(result, era)?;
                Some(self.named_task(link, result, own, ticket, principal).ok_or(NOT_THE_TASK))
            }
            TaskPart::About(name) => {
                if asks_for_unoffered(link, result) {
                    return Some(Err(super::rounds::UNOFFERED));
                }
                let shown = renamed(result, name).map_err(|_| NOT_THE_TASK);
                Some(shown.map(|shown| match era {
                    Era::Sessions => shown,
                    Era::Stateless => with_result_type(&shown).into(),
                }))
            }
        }
    }

    /// The result that names a new task, with the caller's id in it.
    fn named_task(
        &self,
        link: &Link,
        result: &[u8],
        own: &[u8],
        ticket: &TaskTicket,
        principal: &crate::sessions::PrincipalId,
    ) -> Option<Vec<u8>> {
        let task: String = serde_json::from_slice(own).ok()?;
        let ticket = TaskTicket { task: task.clone(), ..ticket.clone() };
        let given = ticket.seal(&self.shared.sealer, principal)?;
        let mut edits = Edits::of(result);
        edits.replace(own, quoted(&given));
        if let Some(related) = related_task(result) {
            let related_id: String = serde_json::from_slice(related).ok()?;
            if related_id != task {
                return None;
            }
            edits.replace(related, quoted(&given));
        }
        link.keep_for(KEPT_FOR_TASK);
        link.tasks().add(TaskName { own: task, given });
        Some(edits.finish())
    }
}

/// The subject that a request about a task is authorized as.
pub(super) fn subject_of(ticket: &TaskTicket) -> Subject<'_> {
    Subject::Task { tool: &ticket.tool, arguments: ticket.arguments.as_deref() }
}

/// The raw id of the task that a call created, if any.
pub(super) fn made_task(result: &[u8], era: Era) -> Option<&[u8]> {
    match era {
        Era::Sessions => member(member(result, "task")?, "taskId"),
        Era::Stateless => {
            let is_task = member(result, "resultType") == Some(br#""task""#);
            is_task.then(|| member(result, "taskId").unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_knows_tasks_if_it_says_so() {
        assert!(knows_tasks(br#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#));
        for other in [r#"{}"#, r#"{"tasks":{}}"#, r#"{"extensions":{"x":{}}}"#] {
            assert!(!knows_tasks(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn a_task_is_found_where_its_era_has_it() {
        let older = br#"{"task":{"taskId":"a"}}"#;
        let newer = br#"{"resultType":"task","taskId":"a"}"#;
        assert_eq!(made_task(older, Era::Sessions), Some(br#""a""#.as_slice()));
        assert_eq!(made_task(older, Era::Stateless), None);
        assert_eq!(made_task(newer, Era::Stateless), Some(br#""a""#.as_slice()));
        assert_eq!(made_task(newer, Era::Sessions), None);
        // A task result without an id is not an ordinary result either.
        assert_eq!(made_task(br#"{"resultType":"task"}"#, Era::Stateless), Some(b"".as_slice()));
    }
}
