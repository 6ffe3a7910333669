//! The entities file: nested groups, members of groups, and the operator's own attributes.
//!
//! It adds to the entities that the gateway creates, and can never redefine their attributes or
//! ids.

use crate::problem::{PolicyProblem, Severity};
use crate::vocabulary::{ExtraAttributes, GROUP, ORG, PRINCIPAL, PROMPT, RESOURCE, SERVER, TOOL};
use cedar_policy::RestrictedExpression;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the file says about one entity.
#[derive(Debug, Clone, Default)]
pub(crate) struct ExtraEntity {
    pub attributes: BTreeMap<String, ExtraValue>,
    /// The ids of groups.
    pub parents: Vec<String>,
}

/// An attribute's value. It cannot be an entity, so no attribute can name a tool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ExtraValue {
    Text(String),
    Number(i64),
    Flag(bool),
    Texts(Vec<String>),
}

impl ExtraValue {
    pub(crate) fn expression(&self) -> RestrictedExpression {
        match self {
            ExtraValue::Text(text) => RestrictedExpression::new_string(text.clone()),
            ExtraValue::Number(number) => RestrictedExpression::new_long(*number),
            ExtraValue::Flag(flag) => RestrictedExpression::new_bool(*flag),
            ExtraValue::Texts(texts) => RestrictedExpression::new_set(
                texts.iter().map(|text| RestrictedExpression::new_string(text.clone())),
            ),
        }
    }

    fn cedar_type(&self) -> Value {
        match self {
            ExtraValue::Text(_) => json!({ "type": "String", "required": false }),
            ExtraValue::Number(_) => json!({ "type": "Long", "required": false }),
            ExtraValue::Flag(_) => json!({ "type": "Boolean", "required": false }),
            ExtraValue::Texts(_) => {
                json!({ "type": "Set", "element": { "type": "String" }, "required": false })
            }
        }
    }
}

/// Everything that the file adds.
#[derive(Debug, Default)]
pub(crate) struct ExtraEntities {
    entities: BTreeMap<(&'static str, String), ExtraEntity>,
    pub attributes: ExtraAttributes,
}

impl ExtraEntities {
    pub(crate) fn get(&self, of: &'static str, id: &str) -> Option<&ExtraEntity> {
        if self.entities.is_empty() {
            return None;
        }
        self.entities.get(&(of, id.to_owned()))
    }

    pub(crate) fn of_type(&self, of: &str) -> impl Iterator<Item = (&str, &ExtraEntity)> {
        let entities = self.entities.iter().filter(move |((found, _), _)| *found == of);
        entities.map(|((_, id), entity)| (id.as_str(), entity))
    }
}

/// The types that the file may describe, the attributes reserved for the gateway, and whether the
/// file may set parents.
const DESCRIBED: [(&str, &[&str], bool); 7] = [
    (
        PRINCIPAL,
        &["issuer", "subject", "actor_type", "proof", "mfa", "client_id", "org", "clearance"],
        true,
    ),
    (GROUP, &[], true),
    (ORG, &[], false),
    (SERVER, &["trust", "risk", "risk_rank", "incident"], false),
    (
        TOOL,
        &[
            "name",
            "server",
            "risk",
            "risk_rank",
            "read_only",
            "destructive",
            "idempotent",
            "open_world",
        ],
        false,
    ),
    (PROMPT, &["name", "server", "risk", "risk_rank"], false),
    (RESOURCE, &["uri", "listed", "server", "risk", "risk_rank"], false),
];

const FILE: &str = "entities";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEntity {
    uid: RawUid,
    #[serde(default)]
    attrs: BTreeMap<String, Value>,
    #[serde(default)]
    parents: Vec<RawUid>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawUid {
    #[serde(rename = "type")]
    of: String,
    id: String,
}

pub(crate) fn parse_entities(text: &str) -> (ExtraEntities, Vec<PolicyProblem>) {
    let mut extra = ExtraEntities::default();
    let mut problems = Vec::new();
    let mut complain = |sentence: String| {
        problems.push(PolicyProblem {
            severity: Severity::Error,
            file: Arc::from(FILE),
            line: 0,
            policy_id: None,
            sentence,
        });
    };
    // The strict parser runs first, because it refuses repeated members.
    if let Err(error) = contract::json::Document::parse(text) {
        complain(error.to_string());
        return (extra, problems);
    }
    let raw: Vec<RawEntity> = match serde_json::from_str(text) {
        Ok(raw) => raw,
        Err(error) => {
            complain(error.to_string());
            return (extra, problems);
        }
    };
    for entity in raw {
        add_entity(entity, &mut extra, &mut complain);
    }
    if let Some(cycle) = cycle_of_groups(&extra) {
        complain(format!("the group `{cycle}` is, by way of others, a member of itself"));
        // Drop the memberships and continue checking the rest, so that every mistake is reported.
        extra.entities.values_mut().for_each(|entity| entity.parents.clear());
    }
    (extra, problems)
}

fn add_entity(raw: RawEntity, extra: &mut ExtraEntities, complain: &mut impl FnMut(String)) {
    let shown = format!("{}::{:?}", raw.uid.of, raw.uid.id);
    let Some((of, ours, may_have_parents)) =
        DESCRIBED.into_iter().find(|(of, _, _)| *of == raw.uid.of)
    else {
        complain(format!(
            "{shown}: this file describes Principal, Group, Org, Server, Tool, Prompt and Resource only"
        ));
        return;
    };
    let mut entity = ExtraEntity::default();
    for parent in raw.parents {
        if !may_have_parents || parent.of != GROUP {
            complain(format!("{shown}: only principals and groups can be put in groups"));
        } else {
            entity.parents.push(parent.id);
        }
    }
    for (name, value) in raw.attrs {
        if ours.contains(&name.as_str()) {
            complain(format!("{shown}: `{name}` is set by the gateway and cannot be redefined"));
            continue;
        }
        let Some(value) = read_value(&value) else {
            complain(format!(
                "{shown}: `{name}` is not a string, an integer, a boolean or an array of strings"
            ));
            continue;
        };
        let types = extra.attributes.entry(of).or_default();
        let cedar_type = value.cedar_type();
        if *types.entry(name.clone()).or_insert_with(|| cedar_type.clone()) != cedar_type {
            complain(format!("{shown}: `{name}` has another type than on other entities"));
            continue;
        }
        entity.attributes.insert(name, value);
    }
    if extra.entities.insert((of, raw.uid.id), entity).is_some() {
        complain(format!("{shown} is described twice"));
    }
}

fn read_value(value: &Value) -> Option<ExtraValue> {
    match value {
        Value::String(text) => Some(ExtraValue::Text(text.clone())),
        Value::Number(number) => number.as_i64().map(ExtraValue::Number),
        Value::Bool(flag) => Some(ExtraValue::Flag(*flag)),
        Value::Array(items) => {
            let texts: Option<Vec<String>> =
                items.iter().map(|item| item.as_str().map(str::to_owned)).collect();
            texts.map(ExtraValue::Texts)
        }
        Value::Null | Value::Object(_) => None,
    }
}

/// Finds a group that is its own ancestor.
fn cycle_of_groups(extra: &ExtraEntities) -> Option<String> {
    extra.of_type(GROUP).find_map(|(start, _)| {
        let mut seen = std::collections::BTreeSet::new();
        let mut waiting = vec![start];
        while let Some(group) = waiting.pop() {
            let Some(entity) = extra.get(GROUP, group) else { continue };
            for parent in &entity.parents {
                if parent == start {
                    return Some(start.to_owned());
                }
                if seen.insert(parent.as_str()) {
                    waiting.push(parent);
                }
            }
        }
        None
    })
}
