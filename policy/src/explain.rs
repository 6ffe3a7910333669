//! Explains why a request is permitted or denied, policy by policy.

use crate::caller::Caller;
use crate::decide::{Located, call_context, class};
use crate::policies::Policies;
use crate::request::{AccessDecision, AccessRequest, DenyReason};
use crate::source::PolicySource;
use crate::target::{Target, TargetMaker};
use cedar_policy::{
    ActionConstraint, Authorizer, Context, Entities, EntityUid, PolicySet, PrincipalConstraint,
    Request, ResourceConstraint,
};
use std::fmt;
use std::sync::Arc;

/// Why a request was decided the way it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    pub decision: AccessDecision,
    /// Rules of the gateway, and facts about the request, that are not part of any policy.
    pub notes: Vec<String>,
    /// Every policy, in the order of files and lines.
    pub policies: Vec<PolicyOutcome>,
}

/// The effect of one policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyOutcome {
    pub policy_id: Arc<str>,
    pub file: Arc<str>,
    pub line: usize,
    pub permits: bool,
    pub matched: PolicyMatch,
}

/// Whether a policy matched, and if not, which part of it failed to match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyMatch {
    Matched,
    OtherPrincipal,
    OtherAction,
    OtherResource,
    ConditionFalse,
    Failed { error: String },
}

impl fmt::Display for PolicyOutcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let effect = if self.permits { "permit" } else { "forbid" };
        write!(formatter, "{effect} `{}` ({}:{}) ", self.policy_id, self.file, self.line)?;
        match &self.matched {
            PolicyMatch::Matched => formatter.write_str("matches"),
            PolicyMatch::OtherPrincipal => formatter.write_str("is for other principals"),
            PolicyMatch::OtherAction => formatter.write_str("is for other actions"),
            PolicyMatch::OtherResource => formatter.write_str("is for other resources"),
            PolicyMatch::ConditionFalse => formatter.write_str("has a condition that is not met"),
            PolicyMatch::Failed { error } => write!(formatter, "cannot be evaluated: {error}"),
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.decision {
            AccessDecision::Permit { policy_id, approval_groups } if approval_groups.is_empty() => {
                writeln!(formatter, "permitted by `{policy_id}`")?;
            }
            AccessDecision::Permit { policy_id, approval_groups } => writeln!(
                formatter,
                "permitted by `{policy_id}` after approval by a member of {}",
                approval_groups.join(" or ")
            )?,
            AccessDecision::Deny { reason } => match reason {
                DenyReason::NoPolicyMatch => writeln!(formatter, "denied: no permit matches")?,
                DenyReason::OtherOrg => {
                    writeln!(formatter, "denied: not open to the caller's org")?;
                }
                DenyReason::NotAUser => writeln!(formatter, "denied: only a user may do this")?,
                DenyReason::Forbidden { policy_id } => {
                    writeln!(formatter, "denied by `{policy_id}`")?;
                }
                DenyReason::PolicyError { policy_id: Some(policy_id) } => {
                    writeln!(formatter, "denied: `{policy_id}` cannot be evaluated")?;
                }
                DenyReason::PolicyError { policy_id: None } => {
                    writeln!(formatter, "denied: the policies cannot be evaluated")?;
                }
            },
        }
        for note in &self.notes {
            writeln!(formatter, "  {note}")?;
        }
        for policy in &self.policies {
            writeln!(formatter, "  {policy}")?;
        }
        Ok(())
    }
}

impl Policies {
    /// Decides like [`Policies::decide`], and reports for every policy why it matched or did not.
    pub fn explain(&self, caller: &Caller, request: &AccessRequest<'_>) -> Explanation {
        let decision = self.decide(caller, request);
        let mut notes = Vec::new();
        if let AccessDecision::Deny { reason: DenyReason::OtherOrg } = &decision {
            notes.push("servers with `orgs` serve callers of those orgs only".to_owned());
        }
        let Some(target) = self.exact_target(request) else {
            notes.push("there is no such tool, prompt or server".to_owned());
            return Explanation { decision, notes, policies: Vec::new() };
        };
        let context = match call_context(&target, request) {
            Ok(context) => Some(context),
            Err(error) => {
                notes.push(format!("policies cannot read the arguments: {error}"));
                None
            }
        };
        let policies = match self.entities(caller, &target) {
            Some((principal, entities)) => {
                let asked = Asked { principal, target: &target, entities: &entities };
                let sources = self.texts.policies.iter();
                sources.map(|source| asked.outcome(source, context.as_ref())).collect()
            }
            None => Vec::new(),
        };
        Explanation { decision, notes, policies }
    }

    /// The exact target, rather than the representative of its class.
    fn exact_target(&self, request: &AccessRequest<'_>) -> Option<Target> {
        let mut targets = TargetMaker::new(&self.texts, &self.maker);
        match *request {
            AccessRequest::Call { server, tool, .. } => {
                let server = self.servers.get(server)?.server.as_ref()?;
                targets.tool_target(server, server.tools.get(tool)?).ok()
            }
            AccessRequest::Get { server, prompt } => {
                let server = self.servers.get(server)?.server.as_ref()?;
                let prompt = server.prompts.get(prompt)?;
                targets.prompt_target(server, prompt).ok()
            }
            AccessRequest::Read { server, uri } => {
                let server = self.servers.get(server)?.server.as_ref()?;
                targets.resource_target(server, uri, server.resources.contains(uri)).ok()
            }
            AccessRequest::Use { .. } | AccessRequest::Admin { .. } => match self.locate(request) {
                Located::Nothing => None,
                Located::Class(place, number) => class(place, number).cloned(),
                Located::Single(target) => Some(*target),
            },
        }
    }
}

/// A request, with everything that the parts of a policy are compared with.
struct Asked<'a> {
    principal: EntityUid,
    target: &'a Target,
    entities: &'a Entities,
}

impl Asked<'_> {
    fn outcome(&self, source: &PolicySource, context: Option<&Context>) -> PolicyOutcome {
        PolicyOutcome {
            policy_id: Arc::clone(&source.id),
            file: Arc::clone(&source.file),
            line: source.line,
            permits: source.permits,
            matched: self.matched(source, context),
        }
    }

    fn matched(&self, source: &PolicySource, context: Option<&Context>) -> PolicyMatch {
        let policy = &source.policy;
        let is_in =
            |one: &EntityUid, of: &EntityUid| one == of || self.entities.is_ancestor_of(of, one);
        let action = match policy.action_constraint() {
            ActionConstraint::Any => true,
            ActionConstraint::Eq(id) => id == self.target.action,
            ActionConstraint::In(ids) => ids.iter().any(|id| is_in(&self.target.action, id)),
        };
        if !action {
            return PolicyMatch::OtherAction;
        }
        let resource = &self.target.resource;
        let fits = match policy.resource_constraint() {
            ResourceConstraint::Any => true,
            ResourceConstraint::Eq(id) => id == *resource,
            ResourceConstraint::In(id) => is_in(resource, &id),
            ResourceConstraint::Is(of) => of == *resource.type_name(),
            ResourceConstraint::IsIn(of, id) => of == *resource.type_name() && is_in(resource, &id),
        };
        if !fits {
            return PolicyMatch::OtherResource;
        }
        let principal = &self.principal;
        let fits = match policy.principal_constraint() {
            PrincipalConstraint::Any => true,
            PrincipalConstraint::Eq(id) => id == *principal,
            PrincipalConstraint::In(id) => is_in(principal, &id),
            PrincipalConstraint::Is(of) => of == *principal.type_name(),
            PrincipalConstraint::IsIn(of, id) => {
                of == *principal.type_name() && is_in(principal, &id)
            }
        };
        if !fits {
            return PolicyMatch::OtherPrincipal;
        }
        self.condition(source, context)
    }

    /// Called when the scope matches, so that only the conditions remain.
    fn condition(&self, source: &PolicySource, context: Option<&Context>) -> PolicyMatch {
        let failed = |error: String| PolicyMatch::Failed { error };
        let context = match context {
            Some(context) => context.clone(),
            None if source.reads_context() => {
                return failed("it reads the arguments, which do not fit".to_owned());
            }
            None => Context::empty(),
        };
        let (action, resource) = (self.target.action.clone(), self.target.resource.clone());
        let request = match Request::new(self.principal.clone(), action, resource, context, None) {
            Ok(request) => request,
            Err(error) => return failed(error.to_string()),
        };
        let set = match PolicySet::from_policies([source.policy.clone()]) {
            Ok(set) => set,
            Err(error) => return failed(error.to_string()),
        };
        let response = Authorizer::new().is_authorized(&request, &set, self.entities);
        let diagnostics = response.diagnostics();
        if let Some(error) = diagnostics.errors().next() {
            return failed(error.to_string());
        }
        match diagnostics.reason().next() {
            Some(_) => PolicyMatch::Matched,
            None => PolicyMatch::ConditionFalse,
        }
    }
}
