//! The only place that uses Cedar's partial evaluation (`tpe`), which is experimental.

use cedar_policy::{
    Entities, EntityUid, PartialEntities, PartialEntityUid, PartialRequest, PolicyId, PolicySet,
    Schema,
};

/// The facts about a call before its arguments are known.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    pub matching_permits: Vec<PolicyId>,
    pub matching_forbids: Vec<PolicyId>,
    pub failing: Vec<PolicyId>,
    /// Whether a permit, or a forbid, depends on the arguments.
    pub open_permits: bool,
    pub open_forbids: bool,
}

/// The policies could not be evaluated for this tool, for example because one does not fit its
/// accepted arguments.
#[derive(Debug, thiserror::Error)]
#[error("the policies cannot be evaluated for this tool: {0}")]
pub(crate) struct OutlineError(String);

impl Outline {
    /// Whether some arguments (and some resource, if it is unknown) may lead to a permit.
    pub(crate) fn could_permit(&self) -> bool {
        let is_denied = !self.matching_forbids.is_empty() || !self.failing.is_empty();
        !is_denied && (self.open_permits || !self.matching_permits.is_empty())
    }
}

/// Evaluates the policies with an unknown context. Every policy must fit the schema of the action.
pub(crate) fn outline(
    policies: &PolicySet,
    (principal, action, resource): (EntityUid, EntityUid, PartialEntityUid),
    entities: &Entities,
    schema: &Schema,
) -> Result<Outline, OutlineError> {
    let failed = |error: &dyn std::fmt::Display| OutlineError(error.to_string());
    let request = PartialRequest::new(
        PartialEntityUid::from_concrete(principal),
        action,
        resource,
        None,
        schema,
    )
    .map_err(|error| failed(&error))?;
    let entities =
        PartialEntities::from_concrete(entities.clone(), schema).map_err(|error| failed(&error))?;
    let response = policies.tpe(&request, &entities, schema).map_err(|error| failed(&error))?;
    Ok(Outline {
        matching_permits: response.true_permits().cloned().collect(),
        matching_forbids: response.true_forbids().cloned().collect(),
        failing: response.error_permits().chain(response.error_forbids()).cloned().collect(),
        open_permits: response.residual_permits().next().is_some(),
        open_forbids: response.residual_forbids().next().is_some(),
    })
}
