//! Warns about names in policies that the inventory lacks. These are not errors, because the tool
//! may appear later.

use crate::inventory::Inventory;
use crate::names::qualified;
use crate::problem::{PolicyProblem, Severity};
use crate::texts::PolicyTexts;
use crate::vocabulary::{Kinds, PLAIN_ACTIONS, uid};
use cedar_policy::EntityUid;
use std::collections::{BTreeSet, HashSet};

pub(crate) fn unknown_names(
    texts: &PolicyTexts,
    kinds: &Kinds,
    inventory: &Inventory,
) -> Vec<PolicyProblem> {
    if texts.named.is_empty() {
        return Vec::new();
    }
    let known = known_names(kinds, inventory);
    let checked = [&kinds.action, &kinds.server, &kinds.tool, &kinds.prompt];
    let mut problems = Vec::new();
    for source in &texts.policies {
        let unknown = source.literals.iter().filter(|id| checked.contains(&id.type_name()));
        let unknown = unknown.filter(|id| !known.contains(*id));
        let unknown: BTreeSet<String> =
            unknown.filter(|id| is_name(id, kinds)).map(ToString::to_string).collect();
        for name in unknown {
            let sentence = format!("{name} is not known yet, so this part matches nothing");
            problems.push(source.problem(Severity::Warning, source.line, sentence));
        }
    }
    problems
}

/// Whether an inventory could contain the id. An action without `__` is a mistake that validation
/// reports.
fn is_name(id: &EntityUid, kinds: &Kinds) -> bool {
    *id.type_name() != kinds.action || id.id().unescaped().contains("__")
}

fn known_names(kinds: &Kinds, inventory: &Inventory) -> HashSet<EntityUid> {
    let mut known: HashSet<EntityUid> =
        PLAIN_ACTIONS.iter().map(|action| uid(&kinds.action, action)).collect();
    for server in inventory.servers() {
        known.insert(uid(&kinds.server, &server.id));
        for tool in server.tools.keys() {
            let id = qualified(&server.id, tool);
            known.insert(uid(&kinds.action, &id));
            known.insert(uid(&kinds.tool, &id));
        }
        for prompt in &server.prompts {
            known.insert(uid(&kinds.prompt, &qualified(&server.id, prompt)));
        }
    }
    known
}
