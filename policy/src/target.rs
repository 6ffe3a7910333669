//! A possible target of a request, with the policies that can apply to it.

use crate::entities::{EntityError, EntityMaker};
use crate::inventory::{ServerInventory, ToolInventory};
use crate::names::qualified;
use crate::scope::{ScopeTarget, concerns};
use crate::texts::PolicyTexts;
use crate::vocabulary::{CALL, uid};
use cedar_policy::{Entity, EntityUid, PolicySet};
use std::collections::HashMap;
use std::sync::Arc;

/// The policies that can apply to a target.
#[derive(Debug)]
pub(crate) struct Relevant {
    pub set: PolicySet,
    /// Positions in the list of all policies, ascending.
    pub members: Vec<usize>,
    /// The first policy that may read the arguments.
    pub reader: Option<Arc<str>>,
}

/// A possible target, with everything that a decision needs to know about it.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub action: EntityUid,
    pub action_entities: Vec<Entity>,
    pub resource: EntityUid,
    /// `None` for a server or the gateway, which are among the base entities anyway.
    pub resource_entity: Option<Entity>,
    pub relevant: Arc<Relevant>,
    /// For a call, the tool whose arguments policies read.
    pub tool: Option<Arc<ToolInventory>>,
}

/// Creates targets. Targets with the same policies share one policy set.
pub(crate) struct TargetMaker<'a> {
    pub texts: &'a PolicyTexts,
    pub maker: &'a EntityMaker,
    relevant: HashMap<Vec<usize>, Arc<Relevant>>,
}

impl<'a> TargetMaker<'a> {
    pub(crate) fn new(texts: &'a PolicyTexts, maker: &'a EntityMaker) -> Self {
        TargetMaker { texts, maker, relevant: HashMap::new() }
    }

    pub(crate) fn tool_target(
        &mut self,
        server: &Arc<ServerInventory>,
        tool: &Arc<ToolInventory>,
    ) -> Result<Target, EntityError> {
        let entity = self.maker.tool(server, tool)?;
        let id = qualified(&server.id, &tool.name);
        let mut target = self.target(&id, true, entity, Some(server), false);
        target.tool = Some(Arc::clone(tool));
        Ok(target)
    }

    pub(crate) fn prompt_target(
        &mut self,
        server: &Arc<ServerInventory>,
        name: &str,
    ) -> Result<Target, EntityError> {
        let entity = self.maker.prompt(server, name)?;
        Ok(self.plain_target("get", entity, Some(server), false))
    }

    pub(crate) fn resource_target(
        &mut self,
        server: &Arc<ServerInventory>,
        uri: &str,
        listed: bool,
    ) -> Result<Target, EntityError> {
        let entity = self.maker.resource(server, uri, listed)?;
        Ok(self.plain_target("read", entity, Some(server), false))
    }

    pub(crate) fn gateway_target(&mut self, action: &str) -> Target {
        self.plain_target(action, self.maker.gateway(), None, true)
    }

    pub(crate) fn server_target(&mut self, action: &str, server: &Arc<ServerInventory>) -> Target {
        let id = uid(&self.maker.kinds.server, &server.id);
        let entity = Entity::with_uid(id);
        self.plain_target(action, entity, Some(server), true)
    }

    fn plain_target(
        &mut self,
        action: &str,
        entity: Entity,
        server: Option<&Arc<ServerInventory>>,
        in_base: bool,
    ) -> Target {
        self.target(action, false, entity, server, in_base)
    }

    fn target(
        &mut self,
        action: &str,
        is_tool: bool,
        entity: Entity,
        server: Option<&Arc<ServerInventory>>,
        in_base: bool,
    ) -> Target {
        let kinds = &self.maker.kinds;
        let action_id = uid(&kinds.action, action);
        let group = is_tool.then(|| uid(&kinds.action, CALL));
        let server_id = server.map(|server| uid(&kinds.server, &server.id));
        let resource = entity.uid();
        let members = {
            let target = ScopeTarget {
                action: &action_id,
                action_group: group.as_ref(),
                resource: &resource,
                server: server_id.as_ref(),
            };
            let policies = self.texts.policies.iter().enumerate();
            let relevant = policies.filter(|(_, source)| concerns(source, &target, kinds));
            relevant.map(|(position, _)| position).collect::<Vec<usize>>()
        };
        Target {
            action: action_id,
            action_entities: self.maker.action(action, is_tool),
            resource,
            resource_entity: (!in_base).then_some(entity),
            relevant: self.relevant_set(members),
            tool: None,
        }
    }

    fn relevant_set(&mut self, members: Vec<usize>) -> Arc<Relevant> {
        if let Some(known) = self.relevant.get(&members) {
            return Arc::clone(known);
        }
        let relevant = Arc::new(self.texts.relevant(members.clone()));
        self.relevant.insert(members, Arc::clone(&relevant));
        relevant
    }
}
