//! Whether the policies permit a caller's request, and the name under which its acts are recorded.

use super::operation::{Operation, Reach};
use super::refusal::AdminError;
use super::{AdminInput, AdminVisit};
use crate::node::Node;
use contract::hash::sha256_hex;
use engine::recorder::now;
use gate::server::ServerId;
use policy::{
    AccessDecision, AccessRequest, AdminAction, AdminTarget, Caller, Identity, principal_id,
};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use store::{By, MAX_NAME_BYTES};

/// What the caller may use with an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Access {
    Gateway,
    Server(ServerId),
    /// The servers that the caller may see.
    Servers(BTreeSet<ServerId>),
}

impl Access {
    /// The server named in the path.
    pub(super) fn server(self) -> Result<ServerId, AdminError> {
        match self {
            Access::Server(id) => Ok(id),
            Access::Gateway | Access::Servers(_) => Err(AdminError::Internal),
        }
    }

    pub(super) fn has(&self, id: &ServerId) -> bool {
        match self {
            Access::Gateway => true,
            Access::Server(only) => only == id,
            Access::Servers(ids) => ids.contains(id),
        }
    }
}

impl AdminVisit {
    /// The part of the operation that the policies permit, or why they do not permit it.
    pub(super) fn permit(
        &self,
        operation: Operation,
        input: &AdminInput,
    ) -> Result<Access, AdminError> {
        let action = operation.action();
        match operation.reach() {
            Reach::Gateway => {
                self.ask(action, AdminTarget::Gateway, None).map(|()| Access::Gateway)
            }
            Reach::Server => self.permit_server(action, input.parameter("id")),
            Reach::NamedServer => match input.query("server") {
                None => self.ask(action, AdminTarget::Gateway, None).map(|()| Access::Gateway),
                Some(id) => self.permit_server(action, id),
            },
            Reach::EachServer => self.permit_each(action),
        }
    }

    fn permit_server(&self, action: AdminAction, name: &str) -> Result<Access, AdminError> {
        let id = name.parse::<ServerId>().ok();
        let known = id.filter(|id| self.node.catalog().servers.contains_key(id));
        let Some(id) = known else {
            // Only callers who may ask about any server may learn which servers exist.
            self.ask(action, AdminTarget::Gateway, None)?;
            return Err(AdminError::UnknownServer(name.to_owned()));
        };
        self.ask(action, AdminTarget::Server(id.as_str()), Some(&id))?;
        Ok(Access::Server(id))
    }

    fn permit_each(&self, action: AdminAction) -> Result<Access, AdminError> {
        let gateway = self.ask(action, AdminTarget::Gateway, None);
        let catalog = self.node.catalog();
        let mut permitted = BTreeSet::new();
        for id in catalog.servers.keys() {
            if self.ask(action, AdminTarget::Server(id.as_str()), Some(id)).is_ok() {
                permitted.insert(id.clone());
            }
        }
        match gateway {
            Err(denied) if permitted.is_empty() => Err(denied),
            Ok(()) | Err(_) => Ok(Access::Servers(permitted)),
        }
    }

    fn ask(
        &self,
        action: AdminAction,
        on: AdminTarget<'_>,
        server: Option<&ServerId>,
    ) -> Result<(), AdminError> {
        let policies = self.node.shared.authorizer.policies();
        let denied = |reason: &'static str| AdminError::Denied { reason, server: server.cloned() };
        match policies.decide(&self.caller, &AccessRequest::Admin { action, on }) {
            AccessDecision::Permit { approval_groups, .. } if approval_groups.is_empty() => Ok(()),
            // An administrator's request cannot be put up for approval.
            AccessDecision::Permit { .. } => Err(denied("approval_required")),
            AccessDecision::Deny { reason } => Err(denied(reason.code())),
        }
    }

    /// Refuses a caller that is not a person.
    pub(super) fn need_user(&self) -> Result<(), AdminError> {
        match self.is_user() {
            true => Ok(()),
            false => Err(AdminError::Denied { reason: "forbidden", server: None }),
        }
    }

    pub(super) fn is_user(&self) -> bool {
        self.caller.identity().actor_type == policy::ActorType::User
    }

    /// Performs an act in the caller's name.
    pub(super) fn by<T>(&self, act: impl FnOnce(By<'_>) -> T) -> T {
        let name = name_of(self.caller.identity());
        act(By { name: &name, at: now() })
    }
}

impl Node {
    /// Whether a caller may read the gateway's records.
    pub(crate) fn may_audit(&self, caller: &Caller) -> bool {
        let request = AccessRequest::Admin { action: AdminAction::Audit, on: AdminTarget::Gateway };
        self.shared.authorizer.policies().decide(caller, &request).is_permit()
    }

    /// Records the refusal of an identified caller.
    pub(super) fn record_denied(
        &self,
        caller: &Caller,
        operation: Operation,
        reason: &str,
        server: Option<&ServerId>,
    ) {
        self.counts.admin_refused.fetch_add(1, Ordering::Relaxed);
        let data = json!({
            "operation": operation.id(),
            "action": operation.action().as_str(),
            "reason": reason,
        });
        let server = server.map_or("gateway", ServerId::as_str);
        let name = name_of(caller.identity());
        self.shared.recorder.event(server, "admin.refused", Some(&name), &data);
    }
}

/// The name that acts are recorded under: issuer and subject. A name that is too long is cut and
/// completed by a hash.
pub(crate) fn name_of(identity: &Identity) -> String {
    const KEPT: usize = 160;
    let name = principal_id(&identity.issuer, &identity.subject);
    if name.len() <= MAX_NAME_BYTES {
        return name;
    }
    let end = (0..=KEPT).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
    let beginning = name.get(..end).unwrap_or_default();
    format!("{beginning}… sha256:{}", sha256_hex(name.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use policy::{ActorType, IdentityProof};

    #[test]
    fn two_long_names_stay_apart_and_fit_into_a_record() {
        let name = |subject: &str| {
            name_of(&Identity {
                issuer: "https://idp.example.com".to_owned(),
                subject: subject.to_owned(),
                actor_type: ActorType::User,
                client_id: None,
                org: None,
                groups: Vec::new(),
                clearance: None,
                mfa: false,
                proof: IdentityProof::Token,
            })
        };
        assert_eq!(name("ada"), "https://idp.example.com|ada");
        let long = "ä".repeat(300);
        assert!(name(&long).len() <= MAX_NAME_BYTES);
        assert_ne!(name(&long), name(&format!("{long}x")));
    }
}
