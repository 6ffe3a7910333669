//! Checks a wired remote server's entry member by member: nothing is lost, and nothing remains that
//! a host would refuse.

use super::same_members;
use crate::document::{Map, Node};
use crate::guard::ADDRESS_VARIABLE;
use crate::table::Shape;
use std::collections::BTreeMap;

/// A map of texts by name. Returns `None` if a value is not a text.
fn texts(map: &Map, name: &str) -> Option<BTreeMap<String, String>> {
    let Some(node) = map.node(name) else { return Some(BTreeMap::new()) };
    let members = node.map()?.members.iter();
    members.map(|member| Some((member.key.clone(), member.node.text()?.to_owned()))).collect()
}

/// Whether an entry with an address and one with a gate instead have the same meaning.
pub(super) fn is_remote(
    unwired: &Map,
    wired: &Map,
    url: &str,
    headers: &[(String, String)],
    shape: &Shape,
) -> bool {
    let addresses: Vec<&str> = shape.addresses.iter().map(|address| address.member).collect();
    let (bearer, passes) = shape.bearer.unwrap_or(("", ""));
    let is_clean =
        !addresses.iter().chain([&shape.headers, &bearer]).any(|name| wired.member(name).is_some());
    let ours = [
        &addresses[..],
        &[
            shape.command,
            shape.arguments,
            shape.environment,
            shape.headers,
            shape.kind,
            bearer,
            passes,
        ],
    ]
    .concat();
    let is_kind = match unwired.node(shape.kind) {
        Some(_) => wired.node(shape.kind).and_then(Node::text) == Some(shape.started),
        None => wired.node(shape.kind).is_none(),
    };
    is_clean
        && is_kind
        && same_members(unwired, wired, &ours)
        && is_environment(unwired, wired, url, headers, shape).unwrap_or(false)
}

/// Whether the wired entry's variables are the unwired one's variables and headers, plus the
/// address if it is hidden.
fn is_environment(
    unwired: &Map,
    wired: &Map,
    url: &str,
    headers: &[(String, String)],
    shape: &Shape,
) -> Option<bool> {
    let address =
        shape.addresses.iter().find_map(|address| unwired.node(address.member)?.text())?;
    let mut expected = texts(unwired, shape.environment)?;
    match url.strip_prefix("env:") {
        Some(variable) if variable == ADDRESS_VARIABLE => {
            expected.insert(variable.to_owned(), address.to_owned());
        }
        Some(_) => return Some(false),
        None if url != address => return Some(false),
        None => {}
    }
    let mut left = texts(unwired, shape.headers)?;
    let mut bearer = shape.bearer.and_then(|(name, _)| unwired.node(name)?.text());
    for (name, source) in headers {
        if let Some(variable) = source.strip_prefix("env:") {
            expected.insert(variable.to_owned(), left.remove(name)?);
        } else if source.strip_prefix("bearer-env:") == bearer && bearer.is_some() {
            let passed = wired.node(shape.bearer?.1)?.list()?;
            let words: Option<Vec<&str>> = passed.items.iter().map(Node::text).collect();
            if words? != [bearer.take()?] {
                return Some(false);
            }
        } else {
            return Some(false);
        }
    }
    Some(left.is_empty() && bearer.is_none() && texts(wired, shape.environment)? == expected)
}
