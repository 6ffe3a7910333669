//! Finds the servers of a document according to the host's table row, and refuses documents that
//! two readers could interpret differently.

use crate::document::{Map, Node, Value};
use crate::entry::Entry;
use crate::table::{Host, Layout, Shape};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The most servers that one file may have.
pub const MAX_SERVERS: usize = 1000;
/// The most projects that one file may have servers for.
pub const MAX_PROJECTS: usize = 10_000;

/// One step on the path to an entry: a member's name, or an item's index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Step {
    Name(String),
    Number(usize),
}

/// Why the servers of a document cannot be determined.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    #[error("it has more than {MAX_SERVERS} servers")]
    TooManyServers,
    #[error("it has more than {MAX_PROJECTS} projects")]
    TooManyProjects,
    #[error("`{0}` appears twice, and hosts differ in which one they use")]
    Repeated(String),
    #[error("`{0}` does not have the form that the host writes")]
    NotServers(String),
}

/// The node at the end of a path.
pub(crate) fn at<'d>(root: &'d Node, place: &[Step]) -> Option<&'d Node> {
    place.iter().try_fold(root, |node, step| match step {
        Step::Name(name) => node.map()?.node(name),
        Step::Number(number) => node.list()?.items.get(*number),
    })
}

/// All servers of a document.
pub(crate) fn entries<'d>(
    root: Option<&'d Node>,
    host: &Host,
) -> Result<Vec<Entry<'d>>, PlaceError> {
    let mut found = Vec::new();
    let Some(root) = root else { return Ok(found) };
    let listed = host.layouts.iter().any(|layout| matches!(layout, Layout::Listed(_)));
    let named = host.layouts.iter().any(|layout| matches!(layout, Layout::Named(_)));
    for layout in host.layouts {
        match layout {
            Layout::Named(path) => {
                let place = steps(path);
                if let Some(servers) =
                    servers_at(root, &place, host.shape, Kind { is_map: true, is_list: listed })?
                {
                    take_named(servers, &place, None, &mut found)?;
                }
            }
            Layout::Listed(path) => {
                let place = steps(path);
                if let Some(servers) =
                    servers_at(root, &place, host.shape, Kind { is_map: named, is_list: true })?
                {
                    take_listed(servers, &place, &mut found)?;
                }
            }
            Layout::PerProject { outer, inner } => {
                take_projects(root, outer, inner, host.shape, &mut found)?;
            }
        }
    }
    Ok(found)
}

fn steps(path: &[&str]) -> Vec<Step> {
    path.iter().map(|name| Step::Name((*name).to_owned())).collect()
}

/// The kinds of node that may contain a host's servers.
#[derive(Debug, Clone, Copy)]
struct Kind {
    is_map: bool,
    is_list: bool,
}

/// The node that contains the servers, if it exists and is unambiguous.
fn servers_at<'d>(
    root: &'d Node,
    place: &[Step],
    shape: &Shape,
    kind: Kind,
) -> Result<Option<&'d Node>, PlaceError> {
    let mut node = root;
    for (depth, step) in place.iter().enumerate() {
        let Step::Name(name) = step else { return Ok(None) };
        let Some(map) = node.map() else { return Ok(None) };
        if map.members.iter().filter(|member| member.key == *name).nth(1).is_some() {
            return Err(PlaceError::Repeated(name.clone()));
        }
        let Some(next) = map.node(name) else { return Ok(None) };
        // A server may have the same name as the next part of the path.
        if depth > 0 && next.map().is_some_and(|map| is_entry(map, shape)) {
            return Ok(None);
        }
        node = next;
    }
    let name = || match place.last() {
        Some(Step::Name(name)) => name.clone(),
        _ => String::new(),
    };
    let is_fit = match &node.value {
        Value::Map(_) => kind.is_map,
        Value::List(_) => kind.is_list,
        Value::Other(word) => matches!(word.as_str(), "null" | "~" | ""),
        Value::Text(_) => false,
    };
    if is_fit && !node.is_shared { Ok(Some(node)) } else { Err(PlaceError::NotServers(name())) }
}

/// Whether a map is a server, rather than a node that contains servers.
pub(crate) fn is_entry(map: &Map, shape: &Shape) -> bool {
    let is_launch = |node: &Node| matches!(node.value, Value::Text(_) | Value::List(_));
    map.node(shape.command).is_some_and(is_launch)
        || shape.addresses.iter().any(|address| map.node(address.member).is_some_and(is_launch))
}

fn take_projects<'d>(
    root: &'d Node,
    outer: &str,
    inner: &[&str],
    shape: &Shape,
    found: &mut Vec<Entry<'d>>,
) -> Result<(), PlaceError> {
    let Some(projects) = root.map().and_then(|map| map.node(outer)).and_then(Node::map) else {
        return match root.map().and_then(Map::repeated) {
            Some(name) if name == outer => Err(PlaceError::Repeated(outer.to_owned())),
            _ => Ok(()),
        };
    };
    if projects.members.len() > MAX_PROJECTS {
        return Err(PlaceError::TooManyProjects);
    }
    if let Some(name) = projects.repeated() {
        return Err(PlaceError::Repeated(name.to_owned()));
    }
    for project in &projects.members {
        let kind = Kind { is_map: true, is_list: false };
        let Some(servers) = servers_at(&project.node, &steps(inner), shape, kind)? else {
            continue;
        };
        let mut place = steps(&[outer, project.key.as_str()]);
        place.extend(steps(inner));
        take_named(servers, &place, Some(&project.key), found)?;
    }
    Ok(())
}

fn take_named<'d>(
    servers: &'d Node,
    path: &[Step],
    project: Option<&str>,
    found: &mut Vec<Entry<'d>>,
) -> Result<(), PlaceError> {
    let Some(servers) = servers.map() else { return Ok(()) };
    if servers.members.len() + found.len() > MAX_SERVERS {
        return Err(PlaceError::TooManyServers);
    }
    let mut times: HashMap<&str, usize> = HashMap::new();
    for member in &servers.members {
        *times.entry(&member.key).or_default() += 1;
    }
    for member in &servers.members {
        let mut place = path.to_vec();
        place.push(Step::Name(member.key.clone()));
        // A node that itself contains servers was already handled as such.
        let is_taken = found
            .iter()
            .any(|entry| entry.place.len() > place.len() && entry.place.starts_with(&place));
        let Some(map) = member.node.map().filter(|_| !is_taken) else { continue };
        let project = project.map(str::to_owned);
        let is_repeated = times.get(member.key.as_str()).is_some_and(|times| *times > 1);
        let name = member.key.clone();
        found.push(Entry { name, project, place, node: &member.node, map, is_repeated });
    }
    Ok(())
}

fn take_listed<'d>(
    servers: &'d Node,
    path: &[Step],
    found: &mut Vec<Entry<'d>>,
) -> Result<(), PlaceError> {
    let Some(servers) = servers.list() else { return Ok(()) };
    if servers.items.len() + found.len() > MAX_SERVERS {
        return Err(PlaceError::TooManyServers);
    }
    for (number, node) in servers.items.iter().enumerate() {
        let Some(map) = node.map() else { continue };
        let Some(name) = map.node("name").and_then(Node::text) else { continue };
        let mut place = path.to_vec();
        place.push(Step::Number(number));
        let name = name.to_owned();
        found.push(Entry { name, project: None, place, node, map, is_repeated: false });
    }
    Ok(())
}
