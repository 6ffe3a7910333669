//! Answers the engine's questions from the policies.

use arc_swap::ArcSwap;
use contract::surface::{EntryType, ListKind};
use engine::call::{Call, Method, Subject, Target};
use engine::decide::{Authorization, Authorizer, Unauthorized};
use engine::principal::Principal;
use gate::server::ServerId;
use gate::view::{ListView, Visible};
use policy::{
    AccessDecision, AccessRequest, Caller, DenyReason, IdentityKey, Policies, VisibleSet,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The most filters that are cached. When there are more, the cache is cleared.
const MAX_FILTERS: usize = 10_000;

/// The current policies.
#[derive(Debug)]
pub(crate) struct PolicyAuthorizer {
    policies: ArcSwap<Policies>,
    filters: Mutex<HashMap<FilterKey, Arc<Visible>>>,
    /// A hash over the text of the policies.
    digest: ArcSwap<[u8; 32]>,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct FilterKey {
    caller: IdentityKey,
    server: ServerId,
    kind: ListKind,
}

impl PolicyAuthorizer {
    pub(crate) fn new(policies: Policies) -> PolicyAuthorizer {
        PolicyAuthorizer {
            policies: ArcSwap::from_pointee(policies),
            filters: Mutex::default(),
            digest: ArcSwap::from_pointee([0; 32]),
        }
    }

    pub(crate) fn policies(&self) -> Arc<Policies> {
        self.policies.load_full()
    }

    /// A hash over the text of the policies: an approval is only valid under the policies that
    /// asked for it.
    pub(crate) fn digest(&self) -> [u8; 32] {
        **self.digest.load()
    }

    /// Sets the hash of the policies' text.
    pub(crate) fn written(&self, digest: [u8; 32]) {
        self.digest.store(Arc::new(digest));
    }

    /// Replaces the policies.
    pub(crate) fn replace(&self, policies: Policies) {
        self.policies.store(Arc::new(policies));
        self.filters.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The parts of a server that a caller may see.
    pub(crate) fn visible_set(&self, caller: &Caller, server: &ServerId) -> Arc<VisibleSet> {
        self.policies.load().visible(caller, server.as_str())
    }

    /// Whether any policy could permit a caller anything on a server that was never observed.
    pub(crate) fn could_use(&self, caller: &Caller, server: &ServerId) -> bool {
        self.policies.load().could_use(caller, server.as_str())
    }
}

/// Whether a caller may see an entry of a list.
pub(crate) fn is_visible(set: &VisibleSet, kind: ListKind, key: &str) -> bool {
    match kind {
        ListKind::Tools => set.has_tool(key),
        ListKind::Prompts => set.has_prompt(key),
        // A template represents resources that are not listed individually.
        ListKind::Resources | ListKind::ResourceTemplates => set.has_resource(key),
    }
}

impl Authorizer for PolicyAuthorizer {
    fn authorize(
        &self,
        principal: &Principal,
        server: &ServerId,
        call: &Call<'_>,
    ) -> Authorization {
        let Some(caller) = &principal.caller else {
            let why = Unauthorized::NoPolicyMatch;
            return Authorization::Deny { why, policy: None, is_hidden: true };
        };
        let policies = self.policies.load();
        let server_name = server.as_str();
        let request = match (call.kind, call.target) {
            (Method::Use(EntryType::Tool), Some(target)) => {
                AccessRequest::Call { server: server_name, tool: target.key, input: call.arguments }
            }
            (Method::Use(EntryType::Prompt), Some(target)) => {
                AccessRequest::Get { server: server_name, prompt: target.key }
            }
            (Method::Use(_), Some(target)) => {
                AccessRequest::Read { server: server_name, uri: target.key }
            }
            // A call whose target is ambiguous is permitted nothing.
            (Method::Use(_), None) => {
                let why = Unauthorized::NoPolicyMatch;
                return Authorization::Deny { why, policy: None, is_hidden: true };
            }
            (Method::Other | Method::Handshake | Method::List(_) | Method::Ping, _) => {
                match call.subject {
                    Subject::Server => AccessRequest::Use { server: server_name },
                    Subject::Entry(Target { entry_type: EntryType::Prompt, key }) => {
                        AccessRequest::Get { server: server_name, prompt: key }
                    }
                    Subject::Entry(Target { key, .. }) => {
                        AccessRequest::Read { server: server_name, uri: key }
                    }
                    Subject::Task { tool, arguments } => {
                        AccessRequest::Call { server: server_name, tool, input: arguments }
                    }
                    Subject::Unclear => {
                        let why = Unauthorized::NoPolicyMatch;
                        return Authorization::Deny { why, policy: None, is_hidden: true };
                    }
                }
            }
        };
        match policies.decide(caller, &request) {
            // A task only exists if its call was approved, so asking for its result needs no
            // further approval. Giving it further input does: no person has seen that input.
            AccessDecision::Permit { policy_id, approval_groups }
                if approval_groups.is_empty()
                    || (matches!(call.subject, Subject::Task { .. })
                        && call.method != "tasks/update") =>
            {
                Authorization::Permit { policy: Some(policy_id) }
            }
            AccessDecision::Permit { policy_id, approval_groups } => Authorization::NeedsApproval {
                policy: Some(policy_id),
                groups: approval_groups.iter().map(ToString::to_string).collect(),
            },
            AccessDecision::Deny { reason } => {
                let is_hidden = !policies.could_permit(caller, &request);
                let (why, policy) = match reason {
                    DenyReason::NoPolicyMatch | DenyReason::OtherOrg => {
                        (Unauthorized::NoPolicyMatch, None)
                    }
                    DenyReason::NotAUser => (Unauthorized::Forbidden, None),
                    DenyReason::Forbidden { policy_id } => {
                        (Unauthorized::Forbidden, Some(policy_id))
                    }
                    DenyReason::PolicyError { policy_id } => (Unauthorized::PolicyError, policy_id),
                };
                Authorization::Deny { why, policy, is_hidden }
            }
        }
    }

    fn visible(
        &self,
        principal: &Principal,
        server: &ServerId,
        kind: ListKind,
        list: &ListView,
    ) -> Arc<Visible> {
        let Some(caller) = &principal.caller else { return Arc::new(list.visible(|_| false)) };
        let key = FilterKey { caller: caller.key(), server: server.clone(), kind };
        let mut filters = self.filters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = filters.get(&key).filter(|known| known.is_for(list)) {
            return known.clone();
        }
        let set = self.visible_set(caller, server);
        let visible = Arc::new(list.visible(|entry| is_visible(&set, kind, entry)));
        if filters.len() >= MAX_FILTERS {
            filters.clear();
        }
        filters.insert(key, visible.clone());
        visible
    }
}
