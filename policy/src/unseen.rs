//! Servers that were never observed. Since it is unknown what they offer, a caller may start one
//! only if a policy could permit some tool, prompt, resource or other method that the server might
//! turn out to have.

use crate::caller::Caller;
use crate::names::qualified;
use crate::partial::outline;
use crate::policies::Policies;
use crate::request::AccessRequest;
use crate::scope::concerns_action;
use crate::source::PolicySource;
use crate::vocabulary::{CALL, uid};
use cedar_policy::{
    Entities, EntityTypeName, EntityUid, PartialEntityUid, PrincipalConstraint, ResourceConstraint,
};
use std::sync::Arc;

/// Something that a server might have: the action on it, and the type of its target.
struct Part {
    action: EntityUid,
    /// The group `call`, if it is a tool.
    group: Option<EntityUid>,
    of: EntityTypeName,
}

impl Policies {
    /// Whether a policy could permit the caller anything on a server of which only the id is known.
    /// If a policy depends on what the server offers, assumes that it matches. A policy about other
    /// callers or servers never counts.
    pub fn could_use(&self, caller: &Caller, server: &str) -> bool {
        let Some(place) = self.servers.get(server) else { return false };
        let request = AccessRequest::Use { server };
        if self.refused_outright(caller.identity(), &request).is_some() {
            return false;
        }
        let (shard, key) = (caller.key().shard(), (caller.key(), place.epoch));
        if let Some(known) = self.caches.unseen.get(shard, &key) {
            return known;
        }
        let could = self.decide(caller, &request).is_permit()
            || self.parts(server).iter().any(|part| self.could_permit_part(caller, server, part));
        self.caches.unseen.insert(shard, key, could);
        could
    }

    /// Everything that a server might have: the tools that policies name, and all others as one.
    fn parts(&self, server: &str) -> Vec<Part> {
        let kinds = &self.maker.kinds;
        let part = |action: &str, of: &EntityTypeName| Part {
            action: uid(&kinds.action, action),
            group: None,
            of: of.clone(),
        };
        let mut parts = vec![
            part(CALL, &kinds.tool),
            part("get", &kinds.prompt),
            part("read", &kinds.resource),
        ];
        let own = qualified(server, "");
        for action in self.texts.named_actions.iter().filter(|action| action.starts_with(&own)) {
            let group = Some(uid(&kinds.action, CALL));
            parts.push(Part { group, ..part(action, &kinds.tool) });
        }
        parts
    }

    fn could_permit_part(&self, caller: &Caller, server: &str, part: &Part) -> bool {
        let policies = self.texts.policies.iter().enumerate();
        let concerned: Vec<(usize, &Arc<PolicySource>)> = policies
            .filter(|(_, source)| {
                concerns_action(source, &part.action, part.group.as_ref())
                    && self.may_be_about(source, server, &part.of)
            })
            .collect();
        if !concerned.iter().any(|(_, source)| source.permits) {
            return false;
        }
        let Some((principal, entities)) = self.entities_of(caller, &part.action) else {
            return false;
        };
        // Arguments have a type only once a tool is known, so policies that read them cannot be
        // evaluated yet.
        let (readers, general): (Vec<_>, Vec<_>) =
            concerned.into_iter().partition(|(_, source)| source.reads_context());
        let is_open = readers
            .iter()
            .any(|(_, source)| source.permits && is_about_caller(source, &principal, &entities));
        let general = general.into_iter().map(|(position, _)| position).collect();
        let set = self.texts.relevant(general).set;
        let ids = (principal, part.action.clone(), PartialEntityUid::new(part.of.clone(), None));
        let schema = &self.gateway.schema;
        match outline(&set, ids, &entities, schema) {
            Ok(mut outline) => {
                outline.open_permits |= is_open;
                outline.could_permit()
            }
            Err(_) => false,
        }
    }

    fn entities_of(&self, caller: &Caller, action: &EntityUid) -> Option<(EntityUid, Entities)> {
        let principal = self.maker.principal(caller.identity()).ok()?;
        let id = principal.uid();
        let is_tool = action.id().unescaped().contains("__");
        let mut added = vec![principal];
        added.extend(self.maker.action(action.id().unescaped(), is_tool));
        Some((id, self.base.clone().add_entities(added, None).ok()?))
    }

    /// Whether the resource part of a scope allows a match with a part of this server.
    fn may_be_about(&self, source: &PolicySource, server: &str, of: &EntityTypeName) -> bool {
        let kinds = &self.maker.kinds;
        let is_here = |id: &EntityUid| {
            let (kind, name) = (id.type_name(), id.id().unescaped());
            if *kind == kinds.server {
                name == server
            } else if [&kinds.tool, &kinds.prompt, &kinds.resource].contains(&kind) {
                name.starts_with(&qualified(server, ""))
            } else {
                // The evaluation knows the organizations of servers.
                true
            }
        };
        match source.policy.resource_constraint() {
            ResourceConstraint::Any => true,
            ResourceConstraint::Eq(id) | ResourceConstraint::In(id) => is_here(&id),
            ResourceConstraint::Is(kind) => kind == *of,
            ResourceConstraint::IsIn(kind, id) => kind == *of && is_here(&id),
        }
    }
}

/// Whether the principal part of a scope matches the caller.
fn is_about_caller(source: &PolicySource, principal: &EntityUid, entities: &Entities) -> bool {
    let is_in = |id: &EntityUid| id == principal || entities.is_ancestor_of(id, principal);
    match source.policy.principal_constraint() {
        PrincipalConstraint::Any => true,
        PrincipalConstraint::Eq(id) => id == *principal,
        PrincipalConstraint::In(id) => is_in(&id),
        PrincipalConstraint::Is(kind) => kind == *principal.type_name(),
        PrincipalConstraint::IsIn(kind, id) => kind == *principal.type_name() && is_in(&id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ActorType, Identity, IdentityProof, Inventory, ServerInventory};

    fn caller(subject: &str, groups: &[&str]) -> Caller {
        Caller::new(Identity {
            issuer: String::new(),
            subject: subject.to_owned(),
            actor_type: ActorType::Agent,
            client_id: None,
            org: None,
            groups: groups.iter().map(ToString::to_string).collect(),
            clearance: None,
            mfa: false,
            proof: IdentityProof::Key,
        })
    }

    /// Checks whether ada of `writers`, and eve without a group, could use `files`.
    fn check(text: &str, expected: (bool, bool)) {
        let servers = ["files", "other"].map(|id| ServerInventory::builder(id).build());
        let policies = Policies::compile(&[("p", text)], None, &Inventory::new(servers)).unwrap();
        for _ in 0..2 {
            let could = |caller: &Caller| policies.could_use(caller, "files");
            let found = (could(&caller("ada", &["writers"])), could(&caller("eve", &[])));
            assert_eq!(found, expected, "{text}");
        }
        assert!(!policies.could_use(&caller("ada", &["writers"]), "nothing"));
    }

    #[test]
    fn a_server_may_be_started_for_callers_that_some_policy_is_about() {
        check("permit(principal, action, resource);", (true, true));
        check(r#"permit(principal in Group::"writers", action, resource);"#, (true, false));
        check(
            r#"permit(principal in Group::"writers", action in Action::"call", resource in Server::"files");"#,
            (true, false),
        );
        check(
            r#"permit(principal, action == Action::"get", resource) when { principal in Group::"writers" };"#,
            (true, false),
        );
        check(
            r#"permit(principal == Principal::"|eve", action == Action::"files__read", resource);"#,
            (false, true),
        );
        check(
            r#"permit(principal, action in Action::"call", resource) when { resource.risk == "low" };"#,
            (true, true),
        );
        check(
            r#"permit(principal in Group::"writers", action in Action::"call", resource) when { context.input has a };"#,
            (true, false),
        );
        check(r#"permit(principal, action == Action::"use", resource);"#, (true, true));
    }

    #[test]
    fn a_server_is_started_for_no_caller_where_policies_are_about_others() {
        check("", (false, false));
        check(
            r#"permit(principal, action in Action::"call", resource in Server::"other");"#,
            (false, false),
        );
        check(r#"permit(principal, action == Action::"other__read", resource);"#, (false, false));
        check(
            r#"permit(principal, action == Action::"read", resource == Resource::"other__a://b");"#,
            (false, false),
        );
        check(r#"permit(principal, action == Action::"audit", resource);"#, (false, false));
        check(
            "permit(principal, action, resource);\nforbid(principal, action, resource);",
            (false, false),
        );
        check(
            "permit(principal, action, resource);\nforbid(principal in Group::\"writers\", action, resource);",
            (false, true),
        );
    }
}
