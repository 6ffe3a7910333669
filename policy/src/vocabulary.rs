//! The entity types and actions that policies use, as a Cedar schema.

use crate::inventory::ServerInventory;
use crate::names::qualified;
use cedar_policy::{EntityId, EntityTypeName, EntityUid, ParseErrors, Schema, SchemaError};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

pub(crate) const PRINCIPAL: &str = "Principal";
pub(crate) const GROUP: &str = "Group";
pub(crate) const ORG: &str = "Org";
pub(crate) const SERVER: &str = "Server";
pub(crate) const TOOL: &str = "Tool";
pub(crate) const PROMPT: &str = "Prompt";
pub(crate) const RESOURCE: &str = "Resource";
pub(crate) const GATEWAY: &str = "Gateway";
pub(crate) const ACTION: &str = "Action";

/// The id of the only `Gateway` entity.
pub(crate) const GATEWAY_ID: &str = "gateway";
pub(crate) const CALL: &str = "call";
/// The actions that do not belong to a tool. A tool's action contains `__`, so it cannot be one of
/// these.
pub(crate) const PLAIN_ACTIONS: [&str; 8] =
    [CALL, "get", "read", "use", "audit", "approve", "grant", "operate"];

/// Attributes that the entities file adds: for each entity type, from name to Cedar type. All of
/// them are optional.
pub(crate) type ExtraAttributes = BTreeMap<&'static str, BTreeMap<String, Value>>;

/// The parsed names of the entity types.
#[derive(Debug, Clone)]
pub(crate) struct Kinds {
    pub principal: EntityTypeName,
    pub group: EntityTypeName,
    pub org: EntityTypeName,
    pub server: EntityTypeName,
    pub tool: EntityTypeName,
    pub prompt: EntityTypeName,
    pub resource: EntityTypeName,
    pub gateway: EntityTypeName,
    pub action: EntityTypeName,
}

impl Kinds {
    pub(crate) fn parse() -> Result<Kinds, Box<ParseErrors>> {
        let parse = |name: &str| name.parse().map_err(Box::new);
        Ok(Kinds {
            principal: parse(PRINCIPAL)?,
            group: parse(GROUP)?,
            org: parse(ORG)?,
            server: parse(SERVER)?,
            tool: parse(TOOL)?,
            prompt: parse(PROMPT)?,
            resource: parse(RESOURCE)?,
            gateway: parse(GATEWAY)?,
            action: parse(ACTION)?,
        })
    }
}

/// An entity's id from any text.
pub(crate) fn uid(of: &EntityTypeName, id: &str) -> EntityUid {
    EntityUid::from_type_name_and_id(of.clone(), EntityId::new(id))
}

/// The parts of the schema besides the entity types: the actions of a server's tools, and those
/// that policies name although the server lacks them.
pub(crate) struct Vocabulary<'a> {
    pub extra: &'a ExtraAttributes,
    /// The tool actions that policies name, whether known or not.
    pub named: &'a [String],
    /// Whether the named actions can be checked without knowing their arguments.
    pub named_apply: bool,
    pub server: Option<&'a ServerInventory>,
}

impl Vocabulary<'_> {
    pub(crate) fn schema(&self) -> Result<Schema, Box<SchemaError>> {
        let namespace = json!({ "entityTypes": self.entity_types(), "actions": self.actions() });
        Schema::from_json_value(json!({ "": namespace })).map_err(Box::new)
    }

    fn entity_types(&self) -> Value {
        let string = || json!({ "type": "String" });
        let optional = || json!({ "type": "String", "required": false });
        let boolean = || json!({ "type": "Boolean" });
        let long = || json!({ "type": "Long" });
        let server = || json!({ "type": "Entity", "name": SERVER });
        let mut types = Map::new();
        let mut add = |name: &'static str, parents: &[&str], attributes: Value| {
            let mut attributes = attributes;
            if let (Value::Object(all), Some(extra)) = (&mut attributes, self.extra.get(name)) {
                all.extend(extra.iter().map(|(name, of)| (name.clone(), of.clone())));
            }
            let shape = json!({ "type": "Record", "attributes": attributes });
            types.insert(name.to_owned(), json!({ "memberOfTypes": parents, "shape": shape }));
        };
        add(
            PRINCIPAL,
            &[GROUP, ORG],
            json!({
                "issuer": string(), "subject": string(), "actor_type": string(), "proof": string(),
                "mfa": boolean(), "client_id": optional(), "org": optional(), "clearance": optional(),
            }),
        );
        add(GROUP, &[GROUP], json!({}));
        add(ORG, &[], json!({}));
        add(GATEWAY, &[], json!({}));
        add(
            SERVER,
            &[ORG],
            json!({
                "trust": string(), "risk": string(), "risk_rank": long(), "incident": boolean(),
            }),
        );
        add(
            TOOL,
            &[SERVER],
            json!({
                "name": string(), "server": server(), "risk": string(), "risk_rank": long(),
                "read_only": boolean(), "destructive": boolean(), "idempotent": boolean(),
                "open_world": boolean(),
            }),
        );
        let part = || json!({ "server": server(), "risk": string(), "risk_rank": long() });
        let with = |mut attributes: Value, name: &str, of: Value| {
            if let Value::Object(all) = &mut attributes {
                all.insert(name.to_owned(), of);
            }
            attributes
        };
        add(PROMPT, &[SERVER], with(part(), "name", string()));
        add(RESOURCE, &[SERVER], with(with(part(), "uri", string()), "listed", boolean()));
        Value::Object(types)
    }

    fn actions(&self) -> Value {
        let mut actions = Map::new();
        let applies = |resources: &[&str], context: Value| json!({ "principalTypes": [PRINCIPAL], "resourceTypes": resources, "context": context });
        let empty = || json!({ "type": "Record", "attributes": {} });
        let call_context = |input: Value| {
            let mut input = input;
            if let Value::Object(fields) = &mut input {
                fields.insert("required".to_owned(), Value::Bool(true));
            }
            json!({ "type": "Record", "attributes": { "input": input } })
        };
        let tool = |context: Option<Value>| {
            let mut action = json!({ "memberOf": [{ "id": CALL }] });
            if let (Value::Object(fields), Some(context)) = (&mut action, context) {
                fields.insert("appliesTo".to_owned(), applies(&[TOOL], context));
            }
            action
        };
        for (name, resources) in [
            ("get", &[PROMPT] as &[&str]),
            ("read", &[RESOURCE]),
            ("use", &[SERVER]),
            ("audit", &[SERVER, GATEWAY]),
            ("approve", &[SERVER, GATEWAY]),
            ("grant", &[SERVER, GATEWAY]),
            ("operate", &[SERVER, GATEWAY]),
        ] {
            actions.insert(name.to_owned(), json!({ "appliesTo": applies(resources, empty()) }));
        }
        // A policy about all calls is checked on `call` itself, which represents any tool.
        let call = if self.named_apply {
            json!({ "appliesTo": applies(&[TOOL], call_context(empty())) })
        } else {
            json!({})
        };
        actions.insert(CALL.to_owned(), call);
        for name in self.named {
            let context = self.named_apply.then(|| call_context(empty()));
            actions.insert(name.clone(), tool(context));
        }
        for (server, known) in
            self.server.iter().flat_map(|server| server.tools.values().map(move |t| (server, t)))
        {
            let context = call_context(known.input.to_cedar());
            actions.insert(qualified(&server.id, &known.name), tool(Some(context)));
        }
        Value::Object(actions)
    }
}
