//! What all servers offer, according to the last observation of each. Lists are built from this
//! without starting any server.

use crate::authorizer::{PolicyAuthorizer, is_visible};
use crate::frame::{Edits, member, quoted};
use crate::greeting::{Era, has_tasks};
use crate::server::GatewayServer;
use bytes::Bytes;
use contract::json::Document;
use contract::surface::ListKind;
use engine::situation::Situation;
use gate::server::{ServerId, ServerStatus};
use policy::{Caller, IdentityKey, Inventory, ServerInventory, ToolInventory};
use settings::gateway::{Reach, ServerSettings, Toolset};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use unicode_normalization::UnicodeNormalization;

/// The most rendered lists that are cached. When there are more, the cache is cleared.
const MAX_KEPT_LISTS: usize = 1_000;

/// The path that a caller uses, which decides what it finds and under which names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Scope {
    /// All servers combined.
    All,
    /// One server, with its own names.
    Server(ServerId),
    /// A set of tools.
    Set(ServerId),
}

/// A server as last recorded.
#[derive(Debug)]
pub(crate) struct CatalogServer {
    pub(crate) server: Arc<GatewayServer>,
    /// `None` if it was never observed.
    pub(crate) situation: Option<Arc<Situation>>,
    pub(crate) status: ServerStatus,
}

/// All servers as last recorded. A catalog is immutable and replaced as a whole.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    pub(crate) servers: BTreeMap<ServerId, CatalogServer>,
    pub(crate) toolsets: BTreeMap<ServerId, Toolset>,
    /// Names at `/mcp` that could be mistaken for one another, with their servers and own names.
    pub(crate) confusable: Vec<Vec<String>>,
    withheld: HashSet<String>,
    /// Every header that is forwarded to some server.
    pub(crate) forward_headers: HashSet<String>,
    /// Whether some server was never observed.
    pub(crate) has_unseen: bool,
    lists: Mutex<HashMap<ListKey, Bytes>>,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ListKey {
    caller: IdentityKey,
    scope: Scope,
    kind: ListKind,
}

/// The item that a name at `/mcp` refers to.
#[derive(Debug)]
pub(crate) struct Resolved<'c> {
    pub(crate) server: &'c CatalogServer,
    /// The server's own name for the item.
    pub(crate) name: String,
}

impl Catalog {
    pub(crate) fn new(
        servers: BTreeMap<ServerId, CatalogServer>,
        toolsets: BTreeMap<ServerId, Toolset>,
    ) -> Catalog {
        let reaches = servers.values().filter_map(|known| match &known.server.settings.reach {
            Reach::Url(reach) => Some(&reach.forward_headers),
            Reach::Command(_) => None,
        });
        let forward_headers = reaches.flatten().cloned().collect();
        let has_unseen = servers.values().any(|known| known.situation.is_none());
        let mut catalog =
            Catalog { servers, toolsets, forward_headers, has_unseen, ..Catalog::default() };
        catalog.find_confusable();
        catalog
    }

    /// The servers in the catalog.
    pub(crate) fn servers(&self) -> crate::node::Servers {
        self.servers.iter().map(|(id, known)| (id.clone(), known.server.clone())).collect()
    }

    /// Whether the catalog was built from exactly these situations.
    pub(crate) fn is_of(&self, servers: &BTreeMap<ServerId, CatalogServer>) -> bool {
        self.servers.len() == servers.len()
            && self.servers.iter().zip(servers).all(|((id, own), (other, known))| {
                let is_same = match (&own.situation, &known.situation) {
                    (Some(own), Some(known)) => Arc::ptr_eq(own, known),
                    (None, None) => true,
                    (Some(_), None) | (None, Some(_)) => false,
                };
                id == other && is_same && own.status == known.status
            })
    }

    /// Finds names that a reader could mistake for one another. They are withheld until the
    /// operator renames one of them.
    fn find_confusable(&mut self) {
        let mut by_look: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for known in self.servers.values() {
            let Some(list) =
                known.situation.as_ref().and_then(|known| known.view.list(ListKind::Tools))
            else {
                continue;
            };
            for (name, _) in list.entries() {
                let shown = known.server.settings.shown_name(name);
                by_look.entry(appearance_of(&shown)).or_default().push(shown);
            }
        }
        let alike = by_look.into_values().filter(|names| names.len() > 1);
        self.confusable = alike.collect();
        self.withheld = self.confusable.iter().flatten().cloned().collect();
    }

    /// The servers in a scope that callers of this organization can find.
    pub(crate) fn in_scope<'c, 's>(
        &'c self,
        scope: &'s Scope,
        org: Option<&'s str>,
    ) -> impl Iterator<Item = (&'c ServerId, &'c CatalogServer)> {
        self.servers.iter().filter(move |(id, known)| {
            let is_in = match scope {
                Scope::All => true,
                Scope::Server(only) => only == *id,
                Scope::Set(set) => {
                    self.toolsets.get(set).is_some_and(|set| set.tools.contains_key(*id))
                }
            };
            is_in && known.server.settings.serves(org)
        })
    }

    /// Whether a caller may find anything in a scope: judged by what was accepted of its servers,
    /// or by the policies alone if nothing was accepted yet.
    pub(crate) fn may_find(
        &self,
        scope: &Scope,
        caller: &Caller,
        policies: &PolicyAuthorizer,
    ) -> bool {
        self.in_scope(scope, caller.identity().org.as_deref()).any(|(id, known)| {
            let is_accepted = known.situation.as_ref().is_some_and(|known| known.view.has_lists());
            if !is_accepted {
                return policies.could_use(caller, id);
            }
            let visible = policies.visible_set(caller, id);
            match scope {
                Scope::All | Scope::Server(_) => !visible.is_empty(),
                Scope::Set(_) => visible
                    .tools()
                    .any(|tool| self.has(scope, &known.server.settings, ListKind::Tools, tool)),
            }
        })
    }

    /// Whether a scope has a tool of a server under this name.
    fn has(&self, scope: &Scope, settings: &ServerSettings, kind: ListKind, name: &str) -> bool {
        match scope {
            Scope::Server(_) => true,
            Scope::All => {
                // Hardly any gateway withholds something, and the name is put together only where one does.
                kind != ListKind::Tools
                    || self.withheld.is_empty()
                    || !self.withheld.contains(&settings.shown_name(name))
            }
            Scope::Set(set) => {
                let tools = self.toolsets.get(set).and_then(|set| set.tools.get(&settings.id));
                kind == ListKind::Tools && tools.is_some_and(|tools| tools.contains(name))
            }
        }
    }

    /// Finds the tool or prompt that a name refers to.
    pub(crate) fn resolve(
        &self,
        scope: &Scope,
        org: Option<&str>,
        kind: ListKind,
        name: &str,
    ) -> Option<Resolved<'_>> {
        if let Scope::Server(id) = scope {
            let server = self.servers.get(id).filter(|known| known.server.settings.serves(org))?;
            return Some(Resolved { server, name: name.to_owned() });
        }
        let (id, shown) = name.split_once("__")?;
        let known = self.servers.get(&id.parse::<ServerId>().ok()?)?;
        let settings = &known.server.settings;
        if !settings.serves(org) {
            return None;
        }
        let own = settings.names.iter().find(|(_, renamed)| *renamed == shown);
        let own = match own {
            Some((own, _)) => own.as_str(),
            // After renaming, the server's own name no longer refers to the item.
            None if settings.names.contains_key(shown) => return None,
            None => shown,
        };
        self.has(scope, settings, kind, own)
            .then(|| Resolved { server: known, name: own.to_owned() })
    }

    /// Finds the server of a resource: by its exact address, then by template. Returns `None` if
    /// two servers match.
    pub(crate) fn resolve_resource<'c>(
        &'c self,
        scope: &Scope,
        caller: &Caller,
        policies: &PolicyAuthorizer,
        uri: &str,
    ) -> Option<&'c CatalogServer> {
        let org = caller.identity().org.as_deref();
        if let Scope::Server(id) = scope {
            return self.servers.get(id).filter(|known| known.server.settings.serves(org));
        }
        let listed = |known: &CatalogServer, kind: ListKind, matches: &dyn Fn(&str) -> bool| {
            let list = known.situation.as_ref().and_then(|known| known.view.list(kind));
            list.is_some_and(|list| list.entries().any(|(key, _)| matches(key)))
        };
        let visible = |id: &ServerId| !policies.visible_set(caller, id).is_empty();
        let find = |kind: ListKind, matches: &dyn Fn(&str) -> bool| {
            let all = self.in_scope(scope, org).filter(|(id, _)| visible(id));
            all.map(|(_, known)| known).filter(|known| listed(known, kind, matches)).collect()
        };
        let exact: Vec<&CatalogServer> = find(ListKind::Resources, &|key| key == uri);
        let found = if exact.is_empty() {
            find(ListKind::ResourceTemplates, &|template| fits(template, uri))
        } else {
            exact
        };
        match found.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Clears the cached lists, so that they are built with the current policies.
    pub(crate) fn forget_lists(&self) {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The result of a list for a caller, as JSON without `nextCursor`.
    pub(crate) fn list(
        &self,
        scope: &Scope,
        kind: ListKind,
        caller: &Caller,
        policies: &PolicyAuthorizer,
    ) -> Bytes {
        let key = ListKey { caller: caller.key(), scope: scope.clone(), kind };
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lists.get(&key) {
            return known.clone();
        }
        let made = self.make_list(scope, kind, caller, policies);
        if lists.len() >= MAX_KEPT_LISTS {
            lists.clear();
        }
        lists.insert(key, made.clone());
        made
    }

    fn make_list(
        &self,
        scope: &Scope,
        kind: ListKind,
        caller: &Caller,
        policies: &PolicyAuthorizer,
    ) -> Bytes {
        let mut out = format!(r#"{{"{}":["#, kind.member()).into_bytes();
        let begins = out.len();
        for (id, known) in self.in_scope(scope, caller.identity().org.as_deref()) {
            let list = known.situation.as_ref().and_then(|known| known.view.list(kind));
            let Some(list) = list else { continue };
            let set = policies.visible_set(caller, id);
            let settings = &known.server.settings;
            for (name, raw) in list.entries() {
                if !is_visible(&set, kind, name) || !self.has(scope, settings, kind, name) {
                    continue;
                }
                if out.len() > begins {
                    out.push(b',');
                }
                let is_named = matches!(kind, ListKind::Tools | ListKind::Prompts);
                match member(raw, "name").filter(|_| is_named && !matches!(scope, Scope::Server(_)))
                {
                    Some(own) => {
                        let mut edits = Edits::of(raw);
                        edits.replace(own, quoted(&settings.shown_name(name)));
                        out.extend_from_slice(&edits.finish());
                    }
                    None => out.extend_from_slice(raw),
                }
            }
        }
        out.extend_from_slice(b"]}");
        out.into()
    }

    /// The instructions of all servers of which the caller sees something, each under a heading.
    pub(crate) fn instructions(
        &self,
        scope: &Scope,
        caller: &Caller,
        policies: &PolicyAuthorizer,
    ) -> Option<String> {
        let mut joined = String::new();
        for (id, known) in self.in_scope(scope, caller.identity().org.as_deref()) {
            let Some(situation) = &known.situation else { continue };
            let Some(accepted) = situation.view.instructions() else { continue };
            if policies.visible_set(caller, id).is_empty() {
                continue;
            }
            match scope {
                Scope::Server(_) => return Some(accepted.to_owned()),
                Scope::All | Scope::Set(_) => {
                    joined.push_str(&format!("# {id}\n{accepted}\n\n"));
                }
            }
        }
        (!joined.is_empty()).then(|| joined.trim_end().to_owned())
    }

    /// Whether a scope offers any item of a kind.
    pub(crate) fn offers(&self, scope: &Scope, kind: ListKind) -> bool {
        self.servers.iter().any(|(id, known)| {
            let is_in = match scope {
                Scope::All => true,
                Scope::Server(only) => only == id,
                Scope::Set(_) => kind == ListKind::Tools,
            };
            // A server that was never observed may have anything.
            is_in
                && known
                    .situation
                    .as_ref()
                    .is_none_or(|situation| situation.view.list(kind).is_some())
        })
    }

    /// Whether a server in this scope supports tasks in an era, according to its last greeting or
    /// the recorded observation.
    pub(crate) fn has_tasks(&self, scope: &Scope, org: Option<&str>, era: Era) -> bool {
        self.in_scope(scope, org).any(|(_, known)| {
            let recorded = known.situation.as_ref().and_then(|known| known.view.capabilities());
            known.server.has_tasks(era)
                || recorded.is_some_and(|recorded| has_tasks(recorded.as_bytes(), era))
        })
    }

    /// Whether a server in this scope supports resource subscriptions.
    pub(crate) fn takes_subscriptions(&self, scope: &Scope, org: Option<&str>) -> bool {
        self.in_scope(scope, org).any(|(_, known)| {
            let recorded = known.situation.as_ref().and_then(|known| known.view.capabilities());
            let resources = recorded.and_then(|said| member(said.as_bytes(), "resources"));
            resources.is_some_and(|resources| member(resources, "subscribe") == Some(b"true"))
        })
    }

    /// Whether a scope has a tool of a server.
    pub(crate) fn offers_tool(&self, scope: &Scope, known: &CatalogServer, tool: &str) -> bool {
        self.has(scope, &known.server.settings, ListKind::Tools, tool)
    }

    /// The inventory that policies are compiled against: the accepted items, as classified by the
    /// operator.
    pub(crate) fn inventory(&self) -> Inventory {
        Inventory::new(self.servers.values().map(inventory_of))
    }
}

fn inventory_of(known: &CatalogServer) -> Arc<ServerInventory> {
    let settings = &known.server.settings;
    let is_incident = known.situation.as_ref().is_some_and(|known| known.switches.is_incident());
    let mut builder = ServerInventory::builder(settings.id.as_str())
        .trust(settings.trust)
        .risk(settings.risk)
        .incident(is_incident);
    for org in settings.orgs.iter().flatten() {
        builder = builder.org(org);
    }
    let Some(situation) = &known.situation else { return builder.build() };
    for kind in ListKind::ALL {
        let Some(list) = situation.view.list(kind) else { continue };
        for (name, raw) in list.entries() {
            builder = match kind {
                ListKind::Tools => match Document::parse_bytes(raw) {
                    Ok(definition) => {
                        let risk = settings.risk_of(name);
                        builder.tool(ToolInventory::from_definition(name, risk, definition.root()))
                    }
                    // A definition that cannot be parsed unambiguously is left out, so that it
                    // cannot be called.
                    Err(_) => builder,
                },
                ListKind::Prompts => builder.prompt(name),
                ListKind::Resources | ListKind::ResourceTemplates => builder.resource(name),
            };
        }
    }
    builder.build()
}

/// The appearance of a name: compatible characters, case and separators make no difference.
fn appearance_of(name: &str) -> String {
    let plain = name.nfkc().flat_map(char::to_lowercase);
    plain.filter(|character| !matches!(character, '_' | '-' | '.' | ' ')).collect()
}

/// Whether an address matches an RFC 6570 template with simple expressions, each of which matches
/// any text.
fn fits(template: &str, uri: &str) -> bool {
    let mut rest = uri;
    let mut parts = template.split('{');
    let Some(first) = parts.next() else { return false };
    let Some(after) = rest.strip_prefix(first) else { return false };
    rest = after;
    for part in parts {
        let Some((_, literal)) = part.split_once('}') else { return false };
        if literal.is_empty() {
            rest = "";
            continue;
        }
        let Some(at) = rest.find(literal) else { return false };
        rest = rest.get(at + literal.len()..).unwrap_or_default();
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_alike_are_found() {
        assert_eq!(appearance_of("files__read-file"), appearance_of("files__Read_File"));
        assert_eq!(appearance_of("files__ｒead"), appearance_of("files__read"));
        assert_ne!(appearance_of("files__read"), appearance_of("files__write"));
    }

    #[test]
    fn an_address_fits_a_template_with_its_literals_in_order() {
        assert!(fits("test://template/{id}/data", "test://template/7/data"));
        assert!(fits("file:///{path}", "file:///a/b"));
        assert!(!fits("test://template/{id}/data", "test://template/7/other"));
        assert!(!fits("test://a", "test://b"));
        assert!(fits("test://a", "test://a"));
    }
}
