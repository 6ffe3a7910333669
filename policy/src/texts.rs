//! All policies of a configuration, and facts about them that do not depend on an inventory.

use crate::source::PolicySource;
use crate::target::Relevant;
use crate::vocabulary::{ACTION, PLAIN_ACTIONS, RESOURCE};
use cedar_policy::{EntityUid, PolicyId, PolicySet};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct PolicyTexts {
    /// In file order.
    pub policies: Vec<Arc<PolicySource>>,
    positions: HashMap<PolicyId, usize>,
    /// Every entity that a policy names.
    pub named: HashSet<EntityUid>,
    /// The ids of the tool actions among these entities.
    pub named_actions: Vec<String>,
    /// Whether a policy may read `name` or `uri`, which differ between targets that are otherwise
    /// alike.
    pub reads_names: bool,
    pub names_resources: bool,
}

impl PolicyTexts {
    pub(crate) fn new(policies: Vec<Arc<PolicySource>>) -> PolicyTexts {
        let positions = policies.iter().enumerate();
        let positions = positions.map(|(at, source)| (source.policy.id().clone(), at)).collect();
        let named: HashSet<EntityUid> =
            policies.iter().flat_map(|source| source.literals.iter().cloned()).collect();
        let named_actions: BTreeSet<String> = named
            .iter()
            .filter(|id| id.type_name().to_string() == ACTION)
            .map(|id| id.id().unescaped().to_owned())
            .filter(|id| !PLAIN_ACTIONS.contains(&id.as_str()) && id.contains("__"))
            .collect();
        PolicyTexts {
            positions,
            named_actions: named_actions.into_iter().collect(),
            reads_names: policies.iter().any(|p| p.mentions("name") || p.mentions("uri")),
            names_resources: named.iter().any(|id| id.type_name().to_string() == RESOURCE),
            named,
            policies,
        }
    }

    pub(crate) fn is_named(&self, id: &EntityUid) -> bool {
        self.named.contains(id)
    }

    /// The earliest of these policies in file order.
    pub(crate) fn first<'a>(
        &self,
        ids: impl Iterator<Item = &'a PolicyId>,
    ) -> Option<&Arc<PolicySource>> {
        let position = ids.filter_map(|id| self.positions.get(id)).min()?;
        self.policies.get(*position)
    }

    /// A policy with its position in file order.
    pub(crate) fn placed(&self, id: &PolicyId) -> Option<(usize, &Arc<PolicySource>)> {
        let position = *self.positions.get(id)?;
        Some((position, self.policies.get(position)?))
    }

    pub(crate) fn by_id(&self, id: &PolicyId) -> Option<&Arc<PolicySource>> {
        self.policies.get(*self.positions.get(id)?)
    }

    /// The policies at these positions as one set.
    pub(crate) fn relevant(&self, members: Vec<usize>) -> Relevant {
        let sources: Vec<&Arc<PolicySource>> =
            members.iter().filter_map(|position| self.policies.get(*position)).collect();
        let mut set = PolicySet::new();
        let mut complete = true;
        for source in &sources {
            // Ids are unique, so every policy can be added. If adding one fails, nothing may be
            // permitted.
            complete &= set.add(source.policy.clone()).is_ok();
        }
        let reader = sources.iter().find(|source| source.reads_context());
        let reader = reader.map(|source| Arc::clone(&source.id));
        Relevant { set: if complete { set } else { PolicySet::new() }, members, reader }
    }
}
