//! Determines from scopes alone which policies can apply to a target.

use crate::source::PolicySource;
use crate::vocabulary::Kinds;
use cedar_policy::{ActionConstraint, EntityTypeName, EntityUid, ResourceConstraint};

/// What a policy's scope is compared with.
#[derive(Debug)]
pub(crate) struct ScopeTarget<'a> {
    pub action: &'a EntityUid,
    /// The group `call`, if the target is a tool.
    pub action_group: Option<&'a EntityUid>,
    pub resource: &'a EntityUid,
    pub server: Option<&'a EntityUid>,
}

/// Whether the action and resource parts of the scope allow a match. If this returns false, the
/// policy evaluates to false for every principal, without an error. If in doubt, returns true.
pub(crate) fn concerns(source: &PolicySource, target: &ScopeTarget<'_>, kinds: &Kinds) -> bool {
    concerns_action(source, target.action, target.action_group)
        && match source.policy.resource_constraint() {
            ResourceConstraint::Any => true,
            ResourceConstraint::Eq(id) => id == *target.resource,
            ResourceConstraint::In(id) => may_be_in(&id, target, kinds),
            ResourceConstraint::Is(of) => is_type(&of, target),
            ResourceConstraint::IsIn(of, id) => {
                is_type(&of, target) && may_be_in(&id, target, kinds)
            }
        }
}

/// Like [`concerns`], by the action part of the scope alone.
pub(crate) fn concerns_action(
    source: &PolicySource,
    action: &EntityUid,
    group: Option<&EntityUid>,
) -> bool {
    match source.policy.action_constraint() {
        ActionConstraint::Any => true,
        ActionConstraint::Eq(id) => id == *action,
        ActionConstraint::In(ids) => ids.iter().any(|id| id == action || Some(id) == group),
    }
}

fn is_type(of: &EntityTypeName, target: &ScopeTarget<'_>) -> bool {
    of == target.resource.type_name()
}

fn may_be_in(id: &EntityUid, target: &ScopeTarget<'_>, kinds: &Kinds) -> bool {
    if id == target.resource || Some(id) == target.server {
        return true;
    }
    // Only orgs are above servers, and only servers are above their parts. Membership in orgs is
    // left to the evaluation.
    let of = id.type_name();
    ![&kinds.server, &kinds.tool, &kinds.prompt, &kinds.resource].contains(&of)
}
