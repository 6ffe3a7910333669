//! Everything that can be called: servers with their tools, prompts and resources, as configured
//! and accepted by the operator.
//!
//! Everything is shared through `Arc`, so that a new inventory after a change of one server only
//! copies that server.

use crate::class::{Risk, Trust};
use crate::typing::{InputShape, type_of_schema};
use contract::json::Node;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The behavior that a tool's accepted annotations promise, with MCP's defaults applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ToolHints {
    pub read_only: bool,
    pub destructive: bool,
    pub idempotent: bool,
    pub open_world: bool,
}

impl Default for ToolHints {
    /// MCP's defaults for a tool without annotations.
    fn default() -> ToolHints {
        ToolHints { read_only: false, destructive: true, idempotent: false, open_world: true }
    }
}

impl ToolHints {
    /// The effective hints of annotations. Unless it says otherwise, a read-only tool is
    /// non-destructive and idempotent.
    pub fn of(
        read_only: Option<bool>,
        destructive: Option<bool>,
        idempotent: Option<bool>,
        open_world: Option<bool>,
    ) -> ToolHints {
        let usual = ToolHints::default();
        let read_only = read_only.unwrap_or(usual.read_only);
        ToolHints {
            read_only,
            destructive: destructive.unwrap_or(!read_only),
            idempotent: idempotent.unwrap_or(read_only),
            open_world: open_world.unwrap_or(usual.open_world),
        }
    }

    /// The effective hints of the `annotations` of a tool's definition. A hint that is not a
    /// boolean counts as absent.
    pub fn of_annotations(annotations: Option<Node<'_>>) -> ToolHints {
        let hint = |name| annotations.and_then(|all| all.get(name)).and_then(Node::as_bool);
        ToolHints::of(
            hint("readOnlyHint"),
            hint("destructiveHint"),
            hint("idempotentHint"),
            hint("openWorldHint"),
        )
    }
}

/// One accepted tool.
#[derive(Debug, PartialEq, Eq)]
pub struct ToolInventory {
    pub(crate) name: Arc<str>,
    pub(crate) risk: Risk,
    pub(crate) hints: ToolHints,
    pub(crate) input: InputShape,
}

impl ToolInventory {
    /// A tool with its accepted input schema as JSON. Parts of the schema that policies cannot read
    /// are omitted.
    pub fn new(name: &str, risk: Risk, hints: ToolHints, input_schema: &[u8]) -> ToolInventory {
        ToolInventory { name: name.into(), risk, hints, input: type_of_schema(input_schema) }
    }

    /// A tool from its accepted entry in `tools/list`.
    pub fn from_definition(name: &str, risk: Risk, definition: Node<'_>) -> ToolInventory {
        let hints = ToolHints::of_annotations(definition.get("annotations"));
        let schema = definition.get("inputSchema").map_or("{}", Node::raw);
        ToolInventory::new(name, risk, hints, schema.as_bytes())
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn hints(&self) -> ToolHints {
        self.hints
    }

    /// The type of `context.input` for policies.
    pub fn input(&self) -> &InputShape {
        &self.input
    }
}

/// One server as policies see it.
#[derive(Debug, PartialEq, Eq)]
pub struct ServerInventory {
    pub(crate) id: Arc<str>,
    pub(crate) trust: Trust,
    pub(crate) risk: Risk,
    pub(crate) incident: bool,
    /// If empty, the server serves every org.
    pub(crate) orgs: Vec<Arc<str>>,
    pub(crate) tools: BTreeMap<Arc<str>, Arc<ToolInventory>>,
    pub(crate) prompts: BTreeSet<Arc<str>>,
    pub(crate) resources: BTreeSet<Arc<str>>,
}

impl ServerInventory {
    pub fn builder(id: &str) -> ServerBuilder {
        ServerBuilder(ServerInventory {
            id: id.into(),
            trust: Trust::default(),
            risk: Risk::default(),
            incident: false,
            orgs: Vec::new(),
            tools: BTreeMap::new(),
            prompts: BTreeSet::new(),
            resources: BTreeSet::new(),
        })
    }

    /// A builder that starts from this server, for example to set its incident flag.
    pub fn to_builder(&self) -> ServerBuilder {
        ServerBuilder(ServerInventory {
            id: Arc::clone(&self.id),
            trust: self.trust,
            risk: self.risk,
            incident: self.incident,
            orgs: self.orgs.clone(),
            tools: self.tools.clone(),
            prompts: self.prompts.clone(),
            resources: self.resources.clone(),
        })
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn tools(&self) -> impl Iterator<Item = &Arc<ToolInventory>> {
        self.tools.values()
    }
}

/// Builds a server. Adding a tool, prompt or resource a second time replaces the first one.
#[derive(Debug)]
pub struct ServerBuilder(ServerInventory);

impl ServerBuilder {
    #[must_use]
    pub fn trust(mut self, trust: Trust) -> Self {
        self.0.trust = trust;
        self
    }

    #[must_use]
    pub fn risk(mut self, risk: Risk) -> Self {
        self.0.risk = risk;
        self
    }

    #[must_use]
    pub fn incident(mut self, incident: bool) -> Self {
        self.0.incident = incident;
        self
    }

    #[must_use]
    pub fn org(mut self, org: &str) -> Self {
        self.0.orgs.push(org.into());
        self.0.orgs.sort();
        self.0.orgs.dedup();
        self
    }

    #[must_use]
    pub fn tool(mut self, tool: impl Into<Arc<ToolInventory>>) -> Self {
        let tool = tool.into();
        self.0.tools.insert(Arc::clone(&tool.name), tool);
        self
    }

    #[must_use]
    pub fn prompt(mut self, name: &str) -> Self {
        self.0.prompts.insert(name.into());
        self
    }

    #[must_use]
    pub fn resource(mut self, uri: &str) -> Self {
        self.0.resources.insert(uri.into());
        self
    }

    #[must_use]
    pub fn build(self) -> Arc<ServerInventory> {
        Arc::new(self.0)
    }
}

/// All servers. A clone copies one pointer per server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inventory {
    servers: BTreeMap<Arc<str>, Arc<ServerInventory>>,
}

impl Inventory {
    pub fn new(servers: impl IntoIterator<Item = Arc<ServerInventory>>) -> Inventory {
        let servers = servers.into_iter().map(|server| (Arc::clone(&server.id), server)).collect();
        Inventory { servers }
    }

    /// A copy of this inventory with one server added or replaced.
    #[must_use]
    pub fn with_server(&self, server: Arc<ServerInventory>) -> Inventory {
        let mut changed = self.clone();
        changed.servers.insert(Arc::clone(&server.id), server);
        changed
    }

    #[must_use]
    pub fn without_server(&self, id: &str) -> Inventory {
        let mut changed = self.clone();
        changed.servers.remove(id);
        changed
    }

    pub fn server(&self, id: &str) -> Option<&Arc<ServerInventory>> {
        self.servers.get(id)
    }

    pub fn servers(&self) -> impl Iterator<Item = &Arc<ServerInventory>> {
        self.servers.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::json::Document;

    fn check(annotations: &str, expected: [bool; 4]) {
        let text = format!(
            r#"{{"name":"t","annotations":{annotations},"inputSchema":{{"properties":{{"a":{{"type":"string"}}}}}}}}"#
        );
        let document = Document::parse(&text).unwrap();
        let tool = ToolInventory::from_definition("t", Risk::Low, document.root());
        let hints = tool.hints();
        let found = [hints.read_only, hints.destructive, hints.idempotent, hints.open_world];
        assert_eq!(found, expected, "{annotations}");
        assert_eq!(tool.input().members().count(), 1);
    }

    #[test]
    fn absent_hints_are_what_mcp_assumes() {
        check("{}", [false, true, false, true]);
        check("null", [false, true, false, true]);
        check(r#"{"readOnlyHint":"yes"}"#, [false, true, false, true]);
        check(r#"{"destructiveHint":false,"idempotentHint":true}"#, [false, false, true, true]);
    }

    #[test]
    fn a_tool_that_only_reads_destroys_nothing() {
        check(r#"{"readOnlyHint":true,"openWorldHint":false}"#, [true, false, true, false]);
        check(r#"{"readOnlyHint":true,"destructiveHint":true}"#, [true, true, true, true]);
    }
}
