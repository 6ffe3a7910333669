//! Points a host at a gateway: one entry is added to its servers, or removed again. The other
//! entries stay unchanged.

use super::{
    Manner, Part, Rewritten, Server, TextError, Wiring, WiringState, described, split_mark,
};
use crate::document::{Node, Style, Syntax, Value, parse};
use crate::edit::Editor;
use crate::entry::{GATEWAY_NAME, gateway_address};
use crate::place::{Step, at, entries, is_entry};
use crate::render;
use crate::table::{HttpForm, KeyReference, Layout};
use crate::wire::Kept;
use std::fmt;

/// The gateway that a host is pointed at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayEntry {
    /// The full address of an MCP path.
    pub url: String,
    pub key: GatewayKey,
}

/// How the host authenticates to the gateway.
#[derive(Clone, PartialEq, Eq)]
pub enum GatewayKey {
    /// Nothing in the file: the host signs in, or has a certificate.
    None,
    /// A variable that the host reads.
    Variable(String),
    /// A variable if the host can refer to one, otherwise the key itself.
    Literal { variable: Option<String>, key: String },
}

/// Omits the key.
impl fmt::Debug for GatewayKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GatewayKey::None => formatter.write_str("None"),
            GatewayKey::Variable(name) => write!(formatter, "Variable({name})"),
            GatewayKey::Literal { variable, .. } => write!(formatter, "Literal({variable:?}, …)"),
        }
    }
}

/// Why a host cannot be pointed at a gateway.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GatewayError {
    #[error("its host reads no HTTP servers from this file: add the gateway in the host itself")]
    NoHttp,
    #[error(
        "its host cannot name a variable in a header: with `--write-key` the key itself is written into the file"
    )]
    NoReference,
    #[error("has a server named `{GATEWAY_NAME}` already: rename it, or take it out with `unwire`")]
    NameTaken,
    #[error("is invalid or ambiguous: {0}")]
    Text(#[from] TextError),
}

/// The value of an entry's header, or the variable that provides it.
enum Credential {
    None,
    Header(String),
    /// The header, and the list of variables that the host looks up for it.
    Listed {
        header: String,
        list: &'static str,
        variable: String,
    },
    Bearer {
        member: &'static str,
        variable: String,
    },
}

impl Credential {
    fn of(
        key: &GatewayKey,
        form: &HttpForm,
        manner: &Manner<'_>,
    ) -> Result<Credential, GatewayError> {
        let (variable, literal) = match key {
            GatewayKey::None => return Ok(Credential::None),
            GatewayKey::Variable(name) => (Some(name), None),
            GatewayKey::Literal { variable, key } => (variable.as_ref(), Some(key)),
        };
        let referred = variable.and_then(|variable| {
            let bearer = |reference: String| Credential::Header(format!("Bearer {reference}"));
            match form.reference {
                KeyReference::Braces => Some(bearer(format!("${{{variable}}}"))),
                KeyReference::Environment => Some(bearer(format!("${{env:{variable}}}"))),
                KeyReference::Curly => Some(bearer(format!("{{env:{variable}}}"))),
                KeyReference::Secrets => Some(bearer(format!("${{{{ secrets.{variable} }}}}"))),
                KeyReference::Listed(list) => Some(Credential::Listed {
                    header: format!("Bearer ${{{variable}}}"),
                    list,
                    variable: variable.clone(),
                }),
                KeyReference::Bearer => {
                    let (member, _) = manner.host.shape.bearer?;
                    Some(Credential::Bearer { member, variable: variable.clone() })
                }
                KeyReference::Nothing => None,
            }
        });
        match (referred, literal) {
            (Some(referred), _) => Ok(referred),
            (None, Some(key)) => Ok(Credential::Header(format!("Bearer {key}"))),
            (None, None) => Err(GatewayError::NoReference),
        }
    }
}

/// Adds the entry of a gateway. If it already exists, nothing changes.
pub fn add_gateway(
    text: &str,
    manner: &Manner<'_>,
    entry: &GatewayEntry,
) -> Result<Rewritten, GatewayError> {
    let form = manner.host.http.ok_or(GatewayError::NoHttp)?;
    let (mark, body) = split_mark(text);
    let root = parse(manner.syntax, body).map_err(TextError::from)?;
    let found = entries(root.as_ref(), manner.host).map_err(TextError::from)?;
    let named = found.iter().find(|known| known.name == GATEWAY_NAME && known.project.is_none());
    if let Some(named) = named {
        return match gateway_address(named, manner.host.shape) {
            Some(url) if url == entry.url => Ok(unchanged(text)),
            _ => Err(GatewayError::NameTaken),
        };
    }
    let members = members(entry, form, manner)?;
    let container = Container::of(root.as_ref(), manner);
    let added = container.text(manner.syntax, &members);
    let (text_after, added) = container.insert(body, root.as_ref(), manner, &added)?;
    let after = parse(manner.syntax, &text_after).ok().flatten();
    let place = added_place(after.as_ref(), manner, entry).ok_or(TextError::Unsafe)?;
    let is_sound = same_but_added(root.as_ref(), after.as_ref(), &place);
    if !is_sound {
        return Err(TextError::Unsafe.into());
    }
    let text = format!("{mark}{text_after}");
    let server = gateways(&text, manner)?.pop().ok_or(TextError::Unsafe)?;
    let added = match &entry.key {
        GatewayKey::Literal { key, .. } => added.replace(key.as_str(), "…"),
        GatewayKey::None | GatewayKey::Variable(_) => added,
    };
    Ok(Rewritten {
        text,
        wirings: vec![Wiring { place, id: server.id.clone(), kept: Kept::default() }],
        changed: vec![server],
        parts: vec![vec![Part { removed: String::new(), added: added.trim().to_owned() }]],
    })
}

/// Removes the entry of a gateway if `wire` added it.
pub(super) fn remove_gateway(
    text: &str,
    manner: &Manner<'_>,
    wirings: &[Wiring],
) -> Result<Option<(String, Server)>, TextError> {
    let (mark, body) = split_mark(text);
    let root = parse(manner.syntax, body)?;
    let Some(server) = gateways(text, manner)?
        .into_iter()
        .find(|server| wirings.iter().any(|wiring| wiring.id == server.id))
    else {
        return Ok(None);
    };
    let found = entries(root.as_ref(), manner.host)?;
    let entry = found.iter().find(|entry| {
        entry.name == server.name && gateway_address(entry, manner.host.shape).is_some()
    });
    let Some(entry) = entry else { return Ok(None) };
    let after = match manner.syntax {
        Syntax::Toml if Container::of(root.as_ref(), manner).has_headings => {
            without_table(body, manner).ok_or(TextError::Unsafe)?
        }
        Syntax::Json | Syntax::Yaml | Syntax::Toml => {
            let mut editor = Editor::new(body, manner.syntax);
            let (parent, last) = entry.place.split_at(entry.place.len().saturating_sub(1));
            let holder = root.as_ref().and_then(|root| at(root, parent));
            match (holder.map(|holder| &holder.value), last) {
                (Some(Value::Map(map)), [Step::Name(name)]) => {
                    editor.remove(map, map.member(name).ok_or(TextError::Unsafe)?);
                }
                (Some(Value::List(list)), [Step::Number(number)]) => {
                    editor.remove_item(list, *number);
                }
                _ => return Err(TextError::Unsafe),
            }
            editor.finish().ok_or(TextError::Unsafe)?
        }
    };
    let read = parse(manner.syntax, &after).map_err(|_| TextError::Unsafe)?;
    let is_sound = same_but_added(read.as_ref(), root.as_ref(), &entry.place);
    if is_sound { Ok(Some((format!("{mark}{after}"), server))) } else { Err(TextError::Unsafe) }
}

/// The gateway entries in a text.
fn gateways(text: &str, manner: &Manner<'_>) -> Result<Vec<Server>, TextError> {
    let (_, body) = split_mark(text);
    let root = parse(manner.syntax, body)?;
    let found = entries(root.as_ref(), manner.host)?;
    let described = described(&found, manner, false).into_iter();
    Ok(described.filter(|server| matches!(server.state, WiringState::Gateway { .. })).collect())
}

fn unchanged(text: &str) -> Rewritten {
    let text = text.to_owned();
    Rewritten { text, changed: Vec::new(), wirings: Vec::new(), parts: Vec::new() }
}

/// The members of the entry, each with its name and its value in this syntax.
fn members(
    entry: &GatewayEntry,
    form: &HttpForm,
    manner: &Manner<'_>,
) -> Result<Vec<(String, String)>, GatewayError> {
    let (shape, syntax) = (manner.host.shape, manner.syntax);
    let mut members: Vec<(String, String)> = Vec::new();
    let mut add = |name: &str, value: String| members.push((name.to_owned(), value));
    for (name, value) in form.members {
        add(name, (*value).to_owned());
    }
    if let Some(kind) = form.kind {
        add(shape.kind, render::string(kind));
    }
    let address = shape.addresses.first().ok_or(GatewayError::NoHttp)?;
    add(address.member, render::string(&entry.url));
    let header = match Credential::of(&entry.key, form, manner)? {
        Credential::None => None,
        Credential::Header(header) => Some(header),
        Credential::Listed { header, list, variable } => {
            add(list, render::list(&[variable]));
            Some(header)
        }
        Credential::Bearer { member, variable } => {
            add(member, render::string(&variable));
            None
        }
    };
    if let Some(header) = header {
        let header = render::member(syntax, "Authorization", &render::string(&header));
        let headers = render::map(&[header]);
        match form.headers_in {
            Some(outer) => {
                add(outer, render::map(&[render::member(syntax, shape.headers, &headers)]));
            }
            None => add(shape.headers, headers),
        }
    }
    Ok(members)
}

/// The part of a text that contains the servers, or will contain them.
struct Container {
    path: &'static [&'static str],
    is_list: bool,
    /// The entry gets its own heading, like tables in TOML.
    has_headings: bool,
}

impl Container {
    /// The first one that exists, otherwise the one that the host writes.
    fn of(root: Option<&Node>, manner: &Manner<'_>) -> Container {
        let of_layout = |layout: &Layout| match layout {
            Layout::Named(path) => Some(Container { path, is_list: false, has_headings: false }),
            Layout::Listed(path) => Some(Container { path, is_list: true, has_headings: false }),
            Layout::PerProject { .. } => None,
        };
        let all: Vec<Container> = manner.host.layouts.iter().filter_map(of_layout).collect();
        let is_there = |container: &&Container| {
            let node = root.and_then(|root| at(root, &steps(container.path)));
            node.is_some_and(|node| match &node.value {
                Value::Map(map) => !container.is_list && !is_entry(map, manner.host.shape),
                Value::List(_) => container.is_list,
                Value::Text(_) | Value::Other(_) => false,
            })
        };
        let usual = all.iter().min_by_key(|container| container.path.len());
        let chosen = all.iter().find(is_there).or(usual);
        let (path, is_list) =
            chosen.map_or((&[][..], false), |chosen| (chosen.path, chosen.is_list));
        let node = root.and_then(|root| at(root, &steps(path)));
        let is_inline = node.and_then(Node::map).is_some_and(|map| map.style == Style::Flow);
        let has_headings = manner.syntax == Syntax::Toml && !is_inline;
        Container { path, is_list, has_headings }
    }

    /// The text of the entry, as an item or as a member.
    fn text(&self, syntax: Syntax, members: &[(String, String)]) -> String {
        let written = |(name, value): &(String, String)| render::member(syntax, name, value);
        if self.has_headings {
            let lines: Vec<String> = members.iter().map(written).collect();
            return format!("[{}.{GATEWAY_NAME}]\n{}\n", self.path.join("."), lines.join("\n"));
        }
        if self.is_list {
            let name = render::member(syntax, "name", &render::string(GATEWAY_NAME));
            let all: Vec<String> =
                std::iter::once(name).chain(members.iter().map(written)).collect();
            return render::map(&all);
        }
        let all: Vec<String> = members.iter().map(written).collect();
        render::member(syntax, GATEWAY_NAME, &render::map(&all))
    }

    /// Inserts the entry. Returns the new text and the inserted part.
    fn insert(
        &self,
        body: &str,
        root: Option<&Node>,
        manner: &Manner<'_>,
        entry: &str,
    ) -> Result<(String, String), TextError> {
        if self.has_headings {
            let newline = if body.contains("\r\n") { "\r\n" } else { "\n" };
            let entry = entry.replace('\n', newline);
            let gap = match body {
                "" => "",
                body if body.ends_with('\n') => newline,
                _ => &format!("{newline}{newline}"),
            };
            return Ok((format!("{body}{gap}{entry}"), entry));
        }
        // A file with only comments is parsed as an empty value.
        let root = root.filter(
            |root| !matches!(&root.value, Value::Other(word) if word.is_empty() || word == "~"),
        );
        // The deepest existing part of the path.
        let mut depth = root.map_or(0, |_| self.path.len());
        let mut holder = None;
        while let Some(root) = root {
            holder = at(root, &steps(self.path.get(..depth).unwrap_or_default()));
            if holder.is_some() || depth == 0 {
                break;
            }
            depth -= 1;
        }
        let mut added = entry.to_owned();
        if depth < self.path.len() {
            added = match self.is_list {
                true => format!("[{added}]"),
                false => format!("{{ {added} }}"),
            };
            for name in self.path.iter().skip(depth + 1).rev() {
                added = format!("{{ {} }}", render::member(manner.syntax, name, &added));
            }
            let name = self.path.get(depth).copied().unwrap_or_default();
            added = render::member(manner.syntax, name, &added);
        }
        let Some(holder) = holder else {
            // The file is empty except for white space and comments.
            let whole = match manner.syntax {
                Syntax::Json => format!("{{ {added} }}\n"),
                Syntax::Yaml | Syntax::Toml => format!("{added}\n"),
            };
            let gap = if body.is_empty() || body.ends_with('\n') { "" } else { "\n" };
            return Ok((format!("{body}{gap}{whole}"), whole));
        };
        let mut editor = Editor::new(body, manner.syntax);
        match &holder.value {
            Value::Map(map) => match map.members.last() {
                Some(last) => editor.insert_behind(map, last, &added),
                None => editor.insert_first(holder, map, &added),
            },
            Value::List(list) => editor.append_item(holder, list, &added),
            Value::Other(word) if matches!(word.as_str(), "null" | "~" | "") => {
                let whole = if self.is_list && depth == self.path.len() {
                    format!("[{added}]")
                } else {
                    format!("{{ {added} }}")
                };
                let space = if word.is_empty() { " " } else { "" };
                editor.replace(holder.span.clone(), format!("{space}{whole}"));
            }
            Value::Text(_) | Value::Other(_) => return Err(TextError::Unsafe),
        }
        let text = editor.finish().ok_or(TextError::Unsafe)?;
        Ok((text, added))
    }
}

fn steps(path: &[&str]) -> Vec<Step> {
    path.iter().map(|name| Step::Name((*name).to_owned())).collect()
}

/// The place of the entry in the new text.
fn added_place(
    after: Option<&Node>,
    manner: &Manner<'_>,
    meant: &GatewayEntry,
) -> Option<Vec<Step>> {
    let found = entries(after, manner.host).ok()?;
    let entry = found.iter().find(|entry| entry.name == GATEWAY_NAME)?;
    let url = gateway_address(entry, manner.host.shape)?;
    (url == meant.url).then(|| entry.place.clone())
}

/// Whether two documents have the same meaning, except for additions along this path.
fn same_but_added(before: Option<&Node>, after: Option<&Node>, way: &[Step]) -> bool {
    let Some(after) = after else { return false };
    let is_nothing = |node: &Node| match &node.value {
        Value::Other(word) => matches!(word.as_str(), "null" | "~" | ""),
        Value::Map(map) => map.members.is_empty(),
        Value::List(list) => list.items.is_empty(),
        Value::Text(_) => false,
    };
    let before = before.filter(|node| !is_nothing(node));
    match (way, &after.value) {
        ([Step::Name(name), rest @ ..], Value::Map(after)) => {
            let before = before.map(|node| node.map());
            let members = match before {
                None => &[][..],
                Some(Some(map)) => map.members.as_slice(),
                Some(None) => return false,
            };
            let others = after.members.iter().filter(|member| member.key != *name);
            let others_before = members.iter().filter(|member| member.key != *name);
            let inner = members.iter().find(|member| member.key == *name);
            let inner_after = after.members.iter().find(|member| member.key == *name);
            let is_same = others.eq(others_before);
            match (rest, inner) {
                ([], None) => is_same && inner_after.is_some(),
                ([], Some(_)) => false,
                (rest, inner) => {
                    let inner = inner.map(|member| &member.node);
                    is_same && same_but_added(inner, inner_after.map(|member| &member.node), rest)
                }
            }
        }
        ([Step::Number(number)], Value::List(after)) => {
            let before: &[Node] = match before.map(|node| node.list()) {
                None => &[],
                Some(Some(list)) => &list.items,
                Some(None) => return false,
            };
            let mut items = after.items.clone();
            *number < items.len() && {
                items.remove(*number);
                items == before
            }
        }
        _ => false,
    }
}

/// A TOML text without the entry's table.
fn without_table(body: &str, manner: &Manner<'_>) -> Option<String> {
    let path = Container::of(None, manner).path;
    let heading = format!("[{}.{GATEWAY_NAME}]", path.join("."));
    let mut lines: Vec<&str> = body.split_inclusive('\n').collect();
    let begin = lines.iter().position(|line| line.trim() == heading)?;
    let rest = lines.get(begin + 1..)?.iter();
    let length = rest.take_while(|line| !line.trim_start().starts_with('[')).count();
    lines.drain(begin..begin + 1 + length);
    // The line that separated it from the preceding text.
    let is_empty = |line: &&str| line.trim().is_empty();
    if begin == lines.len() && lines.last().is_some_and(is_empty) {
        lines.pop();
    }
    Some(lines.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_not_in_what_is_printed_of_it() {
        let key = GatewayKey::Literal { variable: None, key: "hp_secret".to_owned() };
        assert!(!format!("{key:?}").contains("secret"));
    }
}
