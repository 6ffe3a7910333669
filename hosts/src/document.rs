//! A configuration file as a tree in which every part knows its position in the text.
//!
//! One tree type serves three syntaxes, so that finding, wiring and unwiring are implemented once.
//! The tree is never converted back to text: changes are made to the text itself, at the positions
//! in the tree.

mod json;
mod toml;
mod yaml;

use std::ops::Range;

/// The deepest nesting that is accepted.
pub const MAX_DEPTH: usize = 64;

/// The syntaxes of hosts' files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// JSON with comments and trailing commas.
    Json,
    Toml,
    Yaml,
}

impl Syntax {
    /// The syntax for a file name extension.
    pub fn of_name(name: &str) -> Option<Syntax> {
        match name.rsplit('.').next()?.to_ascii_lowercase().as_str() {
            "json" | "jsonc" | "json5" => Some(Syntax::Json),
            "toml" => Some(Syntax::Toml),
            "yaml" | "yml" => Some(Syntax::Yaml),
            _ => None,
        }
    }
}

/// Why a text cannot be read unambiguously.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SyntaxError {
    #[error("line {line}, column {column}: {what}")]
    Wrong { line: usize, column: usize, what: String },
    #[error("it is nested more than {MAX_DEPTH} levels deep")]
    TooDeep,
    #[error("it has several documents")]
    SeveralDocuments,
}

/// A part of the text.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) span: Range<usize>,
    pub(crate) value: Value,
    /// Used in several places of the document, or tagged with a type: changing it here would have
    /// side effects.
    pub(crate) is_shared: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Text(String),
    /// A number, a date, true, false or null, as written.
    Other(String),
    List(List),
    Map(Map),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct List {
    pub(crate) items: Vec<Node>,
    pub(crate) style: Style,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Map {
    pub(crate) members: Vec<Member>,
    pub(crate) style: Style,
    /// Its name is written before each of its members (`a.b = 1`), so it cannot be renamed in one
    /// place.
    pub(crate) is_dotted: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) key: String,
    pub(crate) key_span: Range<usize>,
    pub(crate) node: Node,
}

/// How parts are separated: by brackets and commas, or by lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Flow,
    Lines,
}

/// Parts are equal if their contents are, wherever they are.
impl PartialEq for Node {
    fn eq(&self, other: &Node) -> bool {
        self.value == other.value
    }
}

impl PartialEq for Member {
    fn eq(&self, other: &Member) -> bool {
        self.key == other.key && self.node == other.node
    }
}

impl Node {
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn map(&self) -> Option<&Map> {
        match &self.value {
            Value::Map(map) => Some(map),
            _ => None,
        }
    }

    pub(crate) fn list(&self) -> Option<&List> {
        match &self.value {
            Value::List(list) => Some(list),
            _ => None,
        }
    }

    /// Whether this, or anything in it, is shared.
    pub(crate) fn has_shared(&self) -> bool {
        self.is_shared
            || match &self.value {
                Value::Text(_) | Value::Other(_) => false,
                Value::List(list) => list.items.iter().any(Node::has_shared),
                Value::Map(map) => map.members.iter().any(|member| member.node.has_shared()),
            }
    }
}

impl Map {
    /// The member with a name. If there are two, hosts differ in which one they use, so neither is
    /// returned.
    pub(crate) fn member(&self, key: &str) -> Option<&Member> {
        let mut found = self.members.iter().filter(|member| member.key == key);
        let first = found.next()?;
        found.next().is_none().then_some(first)
    }

    pub(crate) fn node(&self, key: &str) -> Option<&Node> {
        self.member(key).map(|member| &member.node)
    }

    /// A name that occurs twice for a case-insensitive reader.
    pub(crate) fn repeated_in_any_case(&self) -> Option<&str> {
        let mut seen = std::collections::HashSet::new();
        let keys = self.members.iter().map(|member| member.key.as_str());
        keys.into_iter().find(|key| !seen.insert(key.to_ascii_lowercase()))
    }

    /// A name that occurs twice.
    pub(crate) fn repeated(&self) -> Option<&str> {
        let mut seen = std::collections::HashSet::new();
        self.members.iter().map(|member| member.key.as_str()).find(|key| !seen.insert(*key))
    }
}

/// Parses a text. An empty one has no root.
pub(crate) fn parse(syntax: Syntax, text: &str) -> Result<Option<Node>, SyntaxError> {
    match syntax {
        Syntax::Json => json::parse(text),
        Syntax::Toml => toml::parse(text).map(Some),
        Syntax::Yaml => yaml::parse(text),
    }
}

/// The line and column of a position in a text, counted from 1.
fn position(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let column = before.get(line_start..).map_or(0, |line| line.chars().count());
    (before.matches('\n').count() + 1, column + 1)
}

#[cfg(test)]
mod tests;
