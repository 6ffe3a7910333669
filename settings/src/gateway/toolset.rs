//! `[[toolset]]`: a subset of the tools, served at a separate path.

use super::mistake::{Mistakes, Place};
use super::server::ServerSettings;
use super::tables::ToolsetTable;
use gate::server::ServerId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The tools of a set by server, under the servers' own names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Toolset {
    pub tools: BTreeMap<ServerId, BTreeSet<String>>,
}

/// The servers that could be read, so that a set is not blamed for naming an unreadable one.
pub(super) struct Named<'a> {
    pub(super) servers: &'a BTreeMap<ServerId, Arc<ServerSettings>>,
    pub(super) written_ids: &'a BTreeSet<String>,
}

pub(super) fn read(
    tables: &[ToolsetTable],
    named: &Named<'_>,
    mistakes: &mut Mistakes<'_>,
) -> BTreeMap<ServerId, Toolset> {
    let mut sets = BTreeMap::new();
    for (index, table) in tables.iter().enumerate() {
        let place = Place::top().key("toolset").index(index);
        let toolset = members(table, named, &place.key("tools"), mistakes);
        let Some(id) = table.id.as_deref() else {
            mistakes.add(&place.key("id"), "missing: type `id = \"…\"`, the name in its path");
            continue;
        };
        match id.parse::<ServerId>() {
            Ok(id) if !sets.contains_key(&id) => {
                sets.insert(id, toolset);
            }
            Ok(_) => mistakes.add(&place.key("id"), "another toolset has this id"),
            Err(_) => mistakes.add(
                &place.key("id"),
                format!("`{id}` cannot be an id: use lower-case letters, digits, `.`, `_` and `-`, at most 64, without `__`"),
            ),
        }
    }
    sets
}

fn members(
    table: &ToolsetTable,
    named: &Named<'_>,
    place: &Place,
    mistakes: &mut Mistakes<'_>,
) -> Toolset {
    let mut toolset = Toolset::default();
    if table.tools.is_empty() {
        mistakes.add(place, "has no tools: name them as `server__tool`");
    }
    for (index, name) in table.tools.iter().enumerate() {
        let place = place.index(index);
        // An id never contains `__` or ends in `_`, so the tool's name starts after the first `__`.
        let Some((server, tool)) = name.split_once("__").filter(|(_, tool)| !tool.is_empty())
        else {
            mistakes.add(&place, format!("`{name}` is not `server__tool`"));
            continue;
        };
        if !named.written_ids.contains(server) {
            let likeness = |id: &&String| strsim::jaro_winkler(id, server);
            let nearest = named
                .written_ids
                .iter()
                .max_by(|left, right| likeness(left).total_cmp(&likeness(right)));
            let suggestion = nearest.map(|id| format!("; did you mean `{id}__{tool}`?"));
            let problem =
                format!("no server `{server}` is configured{}", suggestion.unwrap_or_default());
            mistakes.add(&place, problem);
            continue;
        }
        let Some((id, settings)) = named.servers.iter().find(|(id, _)| id.as_str() == server)
        else {
            continue;
        };
        if !settings.may_serve(tool) {
            let problem = format!(
                "`{tool}` is not among the tools of `{server}`: add it to that server's `allowed_tools`"
            );
            mistakes.add(&place, problem);
        }
        toolset.tools.entry(id.clone()).or_default().insert(tool.to_owned());
    }
    toolset
}
