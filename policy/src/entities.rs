//! Cedar entities for principals and servers, and for the tools, prompts and resources that servers
//! offer.

use crate::caller::proof_word;
use crate::class::Risk;
use crate::entities_file::{ExtraEntities, ExtraEntity};
use crate::identity::Identity;
use crate::inventory::{Inventory, ServerInventory, ToolInventory};
use crate::names;
use crate::vocabulary::{
    CALL, GATEWAY_ID, GROUP, Kinds, ORG, PRINCIPAL, PROMPT, RESOURCE, SERVER, TOOL, uid,
};
use cedar_policy::{Entities, Entity, EntityTypeName, EntityUid, RestrictedExpression};
use std::collections::{HashMap, HashSet};

/// An entity could not be built. This happens only for attribute values that Cedar cannot evaluate,
/// and ours are literals.
#[derive(Debug, thiserror::Error)]
#[error("cannot build the entity `{id}`")]
pub(crate) struct EntityError {
    id: String,
    #[source]
    source: Box<dyn std::error::Error + Send + Sync>,
}

/// Builds entities, including what the entities file adds to each.
#[derive(Debug)]
pub(crate) struct EntityMaker {
    pub kinds: Kinds,
    pub extra: ExtraEntities,
}

type Attributes = HashMap<String, RestrictedExpression>;

impl EntityMaker {
    fn make(
        &self,
        id: EntityUid,
        mut attributes: Attributes,
        mut parents: HashSet<EntityUid>,
        extra: Option<&ExtraEntity>,
    ) -> Result<Entity, EntityError> {
        if let Some(extra) = extra {
            for (name, value) in &extra.attributes {
                attributes.entry(name.clone()).or_insert_with(|| value.expression());
            }
            parents.extend(extra.parents.iter().map(|group| uid(&self.kinds.group, group)));
        }
        let shown = id.to_string();
        Entity::new(id, attributes, parents)
            .map_err(|source| EntityError { id: shown, source: Box::new(source) })
    }

    pub(crate) fn principal(&self, identity: &Identity) -> Result<Entity, EntityError> {
        let id = names::principal(&identity.issuer, &identity.subject);
        let mut attributes = Attributes::from([
            text("issuer", &identity.issuer),
            text("subject", &identity.subject),
            text("actor_type", identity.actor_type.as_str()),
            text("proof", proof_word(identity.proof)),
            flag("mfa", identity.mfa),
        ]);
        let optional = [
            ("client_id", &identity.client_id),
            ("org", &identity.org),
            ("clearance", &identity.clearance),
        ];
        attributes.extend(
            optional.into_iter().filter_map(|(name, value)| Some(text(name, value.as_deref()?))),
        );
        let groups = identity.groups.iter().map(|group| uid(&self.kinds.group, group));
        let org = identity.org.iter().map(|org| uid(&self.kinds.org, org));
        let extra = self.extra.get(PRINCIPAL, &id);
        self.make(uid(&self.kinds.principal, &id), attributes, groups.chain(org).collect(), extra)
    }

    pub(crate) fn server(&self, server: &ServerInventory) -> Result<Entity, EntityError> {
        let mut attributes = Attributes::from([
            text("trust", server.trust.as_str()),
            flag("incident", server.incident),
        ]);
        attributes.extend(risk(server.risk));
        let orgs = server.orgs.iter().map(|org| uid(&self.kinds.org, org)).collect();
        let extra = self.extra.get(SERVER, &server.id);
        self.make(uid(&self.kinds.server, &server.id), attributes, orgs, extra)
    }

    pub(crate) fn tool(
        &self,
        server: &ServerInventory,
        tool: &ToolInventory,
    ) -> Result<Entity, EntityError> {
        let mut attributes = Attributes::from([
            text("name", &tool.name),
            flag("read_only", tool.hints.read_only),
            flag("destructive", tool.hints.destructive),
            flag("idempotent", tool.hints.idempotent),
            flag("open_world", tool.hints.open_world),
        ]);
        attributes.extend(risk(tool.risk));
        self.part(&self.kinds.tool, TOOL, server, &tool.name, attributes)
    }

    pub(crate) fn prompt(
        &self,
        server: &ServerInventory,
        name: &str,
    ) -> Result<Entity, EntityError> {
        let mut attributes = Attributes::from([text("name", name)]);
        attributes.extend(risk(server.risk));
        self.part(&self.kinds.prompt, PROMPT, server, name, attributes)
    }

    pub(crate) fn resource(
        &self,
        server: &ServerInventory,
        uri: &str,
        listed: bool,
    ) -> Result<Entity, EntityError> {
        let mut attributes = Attributes::from([text("uri", uri), flag("listed", listed)]);
        attributes.extend(risk(server.risk));
        self.part(&self.kinds.resource, RESOURCE, server, uri, attributes)
    }

    fn part(
        &self,
        kind: &EntityTypeName,
        of: &'static str,
        server: &ServerInventory,
        name: &str,
        mut attributes: Attributes,
    ) -> Result<Entity, EntityError> {
        let parent = uid(&self.kinds.server, &server.id);
        attributes
            .insert("server".to_owned(), RestrictedExpression::new_entity_uid(parent.clone()));
        let id = names::qualified(&server.id, name);
        let extra = self.extra.get(of, &id);
        self.make(uid(kind, &id), attributes, HashSet::from([parent]), extra)
    }

    /// Whether the entities file gives attributes to individual prompts or resources.
    pub(crate) fn describes_parts(&self) -> bool {
        [PROMPT, RESOURCE].iter().any(|of| self.extra.of_type(of).next().is_some())
    }

    pub(crate) fn gateway(&self) -> Entity {
        Entity::new_no_attrs(uid(&self.kinds.gateway, GATEWAY_ID), HashSet::new())
    }

    /// An action and, for a tool's action, the group that contains it.
    pub(crate) fn action(&self, id: &str, is_tool: bool) -> Vec<Entity> {
        let action = uid(&self.kinds.action, id);
        if !is_tool {
            return vec![Entity::new_no_attrs(action, HashSet::new())];
        }
        let call = uid(&self.kinds.action, CALL);
        vec![
            Entity::new_no_attrs(action, HashSet::from([call.clone()])),
            Entity::new_no_attrs(call, HashSet::new()),
        ]
    }

    /// The entities that every decision uses: servers, groups and orgs, and each part of a server
    /// that a policy names.
    pub(crate) fn base(
        &self,
        inventory: &Inventory,
        named: &HashSet<EntityUid>,
    ) -> Result<Entities, EntityError> {
        let mut all = vec![self.gateway()];
        for (group, extra) in self.extra.of_type(GROUP) {
            let id = uid(&self.kinds.group, group);
            all.push(self.make(id, Attributes::new(), HashSet::new(), Some(extra))?);
        }
        for (org, extra) in self.extra.of_type(ORG) {
            let id = uid(&self.kinds.org, org);
            all.push(self.make(id, Attributes::new(), HashSet::new(), Some(extra))?);
        }
        for server in inventory.servers() {
            all.push(self.server(server)?);
            let is_named = |kind: &EntityTypeName, name: &str| {
                named.contains(&uid(kind, &names::qualified(&server.id, name)))
            };
            for tool in server.tools.values().filter(|tool| is_named(&self.kinds.tool, &tool.name))
            {
                all.push(self.tool(server, tool)?);
            }
            for prompt in server.prompts.iter().filter(|name| is_named(&self.kinds.prompt, name)) {
                all.push(self.prompt(server, prompt)?);
            }
            for uri in server.resources.iter().filter(|uri| is_named(&self.kinds.resource, uri)) {
                all.push(self.resource(server, uri, true)?);
            }
        }
        Entities::from_entities(all, None)
            .map_err(|source| EntityError { id: "all".to_owned(), source: Box::new(source) })
    }
}

fn text(name: &str, value: &str) -> (String, RestrictedExpression) {
    (name.to_owned(), RestrictedExpression::new_string(value.to_owned()))
}

fn flag(name: &str, value: bool) -> (String, RestrictedExpression) {
    (name.to_owned(), RestrictedExpression::new_bool(value))
}

fn risk(risk: Risk) -> [(String, RestrictedExpression); 2] {
    let rank = RestrictedExpression::new_long(i64::from(risk.rank()));
    [text("risk", risk.as_str()), ("risk_rank".to_owned(), rank)]
}
