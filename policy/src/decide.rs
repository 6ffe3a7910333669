//! Decides one request.

use crate::caller::Caller;
use crate::entities::EntityMaker;
use crate::identity::{ActorType, Identity};
use crate::input::{InputError, context_of, empty_context};
use crate::inventory::ServerInventory;
use crate::partial::{Outline, outline};
use crate::place::{ClassNumber, Place};
use crate::policies::Policies;
use crate::request::{AccessDecision, AccessRequest, AdminTarget, DenyReason};
use crate::target::{Target, TargetMaker};
use cedar_policy::{
    Authorizer, Context, Decision, Entities, Entity, PartialEntityUid, PolicyId, Request, Response,
};
use std::sync::Arc;

/// The facts about a class of targets for one caller, independent of the arguments.
#[derive(Debug, Clone)]
pub(crate) enum ClassOutcome {
    Decided(AccessDecision),
    /// The arguments decide. `could_permit` says whether any arguments may lead to a permit.
    Depends {
        could_permit: bool,
    },
}

/// The target of a request.
pub(crate) enum Located<'a> {
    Nothing,
    Class(&'a Place, ClassNumber),
    /// An unlisted resource, when policies distinguish such resources by URI.
    Single(Box<Target>),
}

impl Policies {
    /// Decides whether the caller may make the request. A target that does not exist is denied just
    /// like one that no policy permits.
    ///
    /// The arguments of a call are parsed only if a policy that could match reads them.
    pub fn decide(&self, caller: &Caller, request: &AccessRequest<'_>) -> AccessDecision {
        if let Some(reason) = self.refused_outright(caller.identity(), request) {
            return AccessDecision::Deny { reason };
        }
        match self.locate(request) {
            Located::Nothing => AccessDecision::no_match(),
            Located::Single(target) => self.evaluate(caller, &target, empty_context()),
            Located::Class(place, number) => match self.outcome(caller, place, number) {
                ClassOutcome::Decided(decision) => decision,
                ClassOutcome::Depends { .. } => {
                    let Some(target) = class(place, number) else {
                        return AccessDecision::no_match();
                    };
                    self.evaluate_call(caller, target, request)
                }
            },
        }
    }

    /// Applies the rules that policies cannot override: the caller's org, and that only people may
    /// approve.
    pub(crate) fn refused_outright(
        &self,
        identity: &Identity,
        request: &AccessRequest<'_>,
    ) -> Option<DenyReason> {
        let server = |id: &str| self.servers.get(id).and_then(|place| place.server.as_deref());
        match *request {
            AccessRequest::Call { server: id, .. }
            | AccessRequest::Get { server: id, .. }
            | AccessRequest::Read { server: id, .. }
            | AccessRequest::Use { server: id } => {
                let serves = server(id).is_none_or(|server| serves_org(server, identity));
                (!serves).then_some(DenyReason::OtherOrg)
            }
            AccessRequest::Admin { action, on } => {
                if action.needs_a_user() && identity.actor_type != ActorType::User {
                    return Some(DenyReason::NotAUser);
                }
                let manages = match on {
                    AdminTarget::Gateway => identity.org.is_none(),
                    AdminTarget::Server(id) => match server(id) {
                        // Administrators without an org belong to the gateway itself.
                        Some(server) => {
                            identity.org.is_none()
                                || (!server.orgs.is_empty() && serves_org(server, identity))
                        }
                        None => true,
                    },
                };
                (!manages).then_some(DenyReason::OtherOrg)
            }
        }
    }

    pub(crate) fn locate(&self, request: &AccessRequest<'_>) -> Located<'_> {
        let found = match *request {
            AccessRequest::Call { server, tool, .. } => {
                self.servers.get(server).and_then(|place| Some((place, place.tools.get(tool)?)))
            }
            AccessRequest::Get { server, prompt } => {
                self.servers.get(server).and_then(|place| Some((place, place.prompts.get(prompt)?)))
            }
            AccessRequest::Read { server, uri } => return self.locate_resource(server, uri),
            AccessRequest::Use { server } => {
                self.servers.get(server).and_then(|place| Some((place, place.server_use.as_ref()?)))
            }
            AccessRequest::Admin { action, on } => match on {
                AdminTarget::Gateway => Some(&self.gateway),
                AdminTarget::Server(server) => self.servers.get(server),
            }
            .and_then(|place| Some((place, place.admin.get(&action)?))),
        };
        found.map_or(Located::Nothing, |(place, number)| Located::Class(place, *number))
    }

    fn locate_resource(&self, server: &str, uri: &str) -> Located<'_> {
        let Some(place) = self.servers.get(server) else { return Located::Nothing };
        if let Some(number) = place.resources.get(uri).copied().or(place.unlisted) {
            return Located::Class(place, number);
        }
        let Some(server) = &place.server else { return Located::Nothing };
        match TargetMaker::new(&self.texts, &self.maker).resource_target(server, uri, false) {
            Ok(target) => Located::Single(Box::new(target)),
            Err(_) => Located::Nothing,
        }
    }

    /// The facts about a class for this caller, from the cache if possible.
    pub(crate) fn outcome(
        &self,
        caller: &Caller,
        place: &Place,
        number: ClassNumber,
    ) -> ClassOutcome {
        let key = (caller.key(), place.epoch, number);
        let shard = caller.key().shard();
        if let Some(known) = self.caches.decisions.get(shard, &key) {
            return known;
        }
        let outcome = match class(place, number) {
            Some(target) => self.fresh_outcome(caller, place, target),
            None => ClassOutcome::Decided(AccessDecision::no_match()),
        };
        self.caches.decisions.insert(shard, key, outcome.clone());
        outcome
    }

    fn fresh_outcome(&self, caller: &Caller, place: &Place, target: &Target) -> ClassOutcome {
        let Some(reader) = &target.relevant.reader else {
            return ClassOutcome::Decided(self.evaluate(caller, target, empty_context()));
        };
        let failed = || ClassOutcome::Decided(AccessDecision::error(Some(Arc::clone(reader))));
        let Some((principal, entities)) = self.entities(caller, target) else { return failed() };
        let resource = PartialEntityUid::from_concrete(target.resource.clone());
        let ids = (principal, target.action.clone(), resource);
        match outline(&target.relevant.set, ids, &entities, &place.schema) {
            Ok(outline) => self.outcome_of(&outline),
            Err(_) => failed(),
        }
    }

    /// Whatever the outline settles holds for all arguments. A forbid takes precedence over an
    /// error, and an error over a permit.
    fn outcome_of(&self, outline: &Outline) -> ClassOutcome {
        if !outline.matching_forbids.is_empty() {
            return ClassOutcome::Decided(self.forbidden(outline.matching_forbids.iter()));
        }
        if !outline.failing.is_empty() {
            // No arguments can lead to a permit, but a forbid that reads them must still be
            // evaluated so that it is reported.
            if outline.open_forbids {
                return ClassOutcome::Depends { could_permit: false };
            }
            return ClassOutcome::Decided(self.failing(outline.failing.iter()));
        }
        if outline.open_permits || outline.open_forbids {
            let could_permit = outline.open_permits || !outline.matching_permits.is_empty();
            return ClassOutcome::Depends { could_permit };
        }
        ClassOutcome::Decided(self.permitted(outline.matching_permits.iter()))
    }

    fn evaluate_call(
        &self,
        caller: &Caller,
        target: &Target,
        request: &AccessRequest<'_>,
    ) -> AccessDecision {
        match call_context(target, request) {
            Ok(context) => self.evaluate(caller, target, context),
            Err(_) => AccessDecision::error(target.relevant.reader.clone()),
        }
    }

    pub(crate) fn evaluate(
        &self,
        caller: &Caller,
        target: &Target,
        context: Context,
    ) -> AccessDecision {
        if target.relevant.members.is_empty() {
            return AccessDecision::no_match();
        }
        let Some((principal, entities)) = self.entities(caller, target) else {
            return AccessDecision::error(None);
        };
        let (action, resource) = (target.action.clone(), target.resource.clone());
        let Ok(request) = Request::new(principal, action, resource, context, None) else {
            return AccessDecision::error(None);
        };
        let response = Authorizer::new().is_authorized(&request, &target.relevant.set, &entities);
        self.verdict(&response)
    }

    fn verdict(&self, response: &Response) -> AccessDecision {
        let diagnostics = response.diagnostics();
        let denied = response.decision() == Decision::Deny;
        if denied && diagnostics.reason().next().is_some() {
            return self.forbidden(diagnostics.reason());
        }
        if diagnostics.errors().next().is_some() {
            return self.failing(diagnostics.errors().map(error_policy));
        }
        if denied {
            return AccessDecision::no_match();
        }
        self.permitted(diagnostics.reason())
    }

    /// The principal's id, and the entities that a decision about the target uses.
    pub(crate) fn entities(
        &self,
        caller: &Caller,
        target: &Target,
    ) -> Option<(cedar_policy::EntityUid, Entities)> {
        let maker: &EntityMaker = &self.maker;
        let principal = maker.principal(caller.identity()).ok()?;
        let id = principal.uid();
        let resource = target.resource_entity.iter().cloned();
        let resource = resource.filter(|entity| self.base.get(&entity.uid()).is_none());
        let added: Vec<Entity> = std::iter::once(principal)
            .chain(resource)
            .chain(target.action_entities.iter().cloned())
            .collect();
        let entities = self.base.clone().add_entities(added, None).ok()?;
        Some((id, entities))
    }

    fn forbidden<'a>(&self, ids: impl Iterator<Item = &'a PolicyId>) -> AccessDecision {
        let reason = match self.texts.first(ids) {
            Some(source) => DenyReason::Forbidden { policy_id: Arc::clone(&source.id) },
            None => DenyReason::NoPolicyMatch,
        };
        AccessDecision::Deny { reason }
    }

    fn failing<'a>(&self, ids: impl Iterator<Item = &'a PolicyId>) -> AccessDecision {
        AccessDecision::error(self.texts.first(ids).map(|source| Arc::clone(&source.id)))
    }

    /// Combines matching permits: if any of them requires approval, the call waits for one.
    fn permitted<'a>(&self, ids: impl Iterator<Item = &'a PolicyId>) -> AccessDecision {
        let mut matching: Vec<_> = ids.filter_map(|id| self.texts.placed(id)).collect();
        matching.sort_by_key(|(position, _)| *position);
        let asking = matching.iter().find(|(_, source)| !source.approval.is_empty());
        let Some((_, deciding)) = asking.or(matching.first()) else {
            return AccessDecision::no_match();
        };
        let mut groups: Vec<Arc<str>> =
            matching.iter().flat_map(|(_, source)| source.approval.iter().cloned()).collect();
        groups.sort();
        groups.dedup();
        AccessDecision::Permit {
            policy_id: Arc::clone(&deciding.id),
            approval_groups: groups.into(),
        }
    }
}

/// The Cedar context of a request.
pub(crate) fn call_context(
    target: &Target,
    request: &AccessRequest<'_>,
) -> Result<Context, InputError> {
    match (&target.tool, request) {
        (Some(tool), AccessRequest::Call { input, .. }) => context_of(&tool.input, *input),
        _ => Ok(empty_context()),
    }
}

pub(crate) fn class(place: &Place, number: ClassNumber) -> Option<&Target> {
    place.classes.get(usize::try_from(number).ok()?)
}

fn serves_org(server: &ServerInventory, identity: &Identity) -> bool {
    server.orgs.is_empty()
        || identity.org.as_deref().is_some_and(|org| server.orgs.iter().any(|one| **one == *org))
}

fn error_policy(error: &cedar_policy::AuthorizationError) -> &PolicyId {
    match error {
        cedar_policy::AuthorizationError::PolicyEvaluationError(error) => error.policy_id(),
    }
}
