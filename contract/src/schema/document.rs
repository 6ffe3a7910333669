//! One schema document: its dialect, its references, and what in it keeps a comparison from being sure.

use super::path::Path;
use crate::json::{Kind, Node};
use std::borrow::Cow;

/// A schema and where it stands.
#[derive(Debug, Clone)]
pub(super) struct Place<'a> {
    pub(super) node: Node<'a>,
    pub(super) path: Path<'a>,
}

impl<'a> Place<'a> {
    pub(super) fn member(&self, name: &str) -> Option<Place<'a>> {
        self.node.members().find(|(key, _)| key.is_text(name)).map(|(key, node)| {
            let step = key.as_str().unwrap_or_default();
            Place { node, path: self.path.step(step) }
        })
    }

    /// The elements of an array, each in its place.
    pub(super) fn items(&self) -> Vec<Place<'a>> {
        let place = |(index, node)| Place { node, path: self.path.item(index) };
        self.node.items().enumerate().map(place).collect()
    }

    /// The members of an object, each in its place.
    pub(super) fn members(&self) -> impl Iterator<Item = (Cow<'a, str>, Place<'a>)> {
        let path = self.path.clone();
        self.node.members().map(move |(key, node)| {
            let name = key.as_str().unwrap_or_default();
            (name.clone(), Place { node, path: path.step(name) })
        })
    }
}

/// How a schema is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Draft7,
    Draft2020,
}

/// What `$schema` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Declared {
    Nothing,
    Known(Dialect),
    Unknown,
}

/// What a walk over all subschemas of a document found.
#[derive(Debug, Default)]
pub(super) struct Features {
    /// The schemas that have a `$ref`, by index, sorted.
    references: Vec<u32>,
    /// A keyword whose meaning differs between the dialects is in use.
    pub(super) is_dialect_sensitive: bool,
    /// A nested `$id` or a dynamic reference: what a reference means cannot be told without resolving base URIs.
    pub(super) has_own_scopes: bool,
}

impl Features {
    pub(super) fn has_reference_within(&self, node: Node<'_>) -> bool {
        let start = self.references.partition_point(|&index| index < node.index());
        let end = node.index().saturating_add(node.size());
        self.references.get(start).is_some_and(|&index| index < end)
    }

    pub(super) fn of(root: Node<'_>) -> Features {
        let mut features = Features::default();
        features.schema(root, true);
        features.references.sort_unstable();
        features
    }

    fn schema(&mut self, node: Node<'_>, is_root: bool) {
        let mut has_reference = false;
        let mut has_other_assertion = false;
        for (key, value) in node.members() {
            let key = key.as_str().unwrap_or_default();
            match key.as_ref() {
                "$ref" => has_reference = true,
                "$dynamicRef" | "$recursiveRef" | "$dynamicAnchor" | "$recursiveAnchor" => {
                    self.has_own_scopes = true;
                }
                "$id" | "id" if !is_root && value.kind() == Kind::String => {
                    self.has_own_scopes = true;
                }
                "description" | "title" | "default" | "examples" | "$comment" | "$defs"
                | "definitions" => {}
                _ => has_other_assertion = true,
            }
            self.keyword(&key, value);
        }
        if has_reference {
            self.references.push(node.index());
            self.is_dialect_sensitive |= has_other_assertion;
        }
    }

    fn keyword(&mut self, keyword: &str, value: Node<'_>) {
        match keyword {
            "prefixItems"
            | "additionalItems"
            | "dependentRequired"
            | "dependentSchemas"
            | "dependencies"
            | "unevaluatedItems"
            | "unevaluatedProperties"
            | "minContains"
            | "maxContains"
            | "$anchor" => self.is_dialect_sensitive = true,
            "items" if value.is_array() => self.is_dialect_sensitive = true,
            _ => {}
        }
        match keyword {
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
            | "dependencies" => {
                value.members().for_each(|(_, schema)| self.schema(schema, false));
            }
            "allOf" | "anyOf" | "oneOf" | "prefixItems" | "items" if value.is_array() => {
                value.items().for_each(|schema| self.schema(schema, false));
            }
            "items"
            | "additionalProperties"
            | "additionalItems"
            | "contains"
            | "not"
            | "if"
            | "then"
            | "else"
            | "propertyNames"
            | "unevaluatedProperties"
            | "unevaluatedItems"
            | "contentSchema" => self.schema(value, false),
            _ => {}
        }
    }
}

/// A whole schema document, read in one dialect.
#[derive(Debug)]
pub(super) struct SchemaDocument<'a> {
    pub(super) root: Place<'a>,
    pub(super) dialect: Dialect,
    pub(super) features: Features,
}

/// What a `$ref` leads to.
#[derive(Debug, Clone)]
pub(super) enum Target<'a> {
    Schema(Place<'a>),
    /// Another document, or nothing: never fetched, compared by its string.
    Elsewhere,
}

impl<'a> SchemaDocument<'a> {
    pub(super) fn declared(root: Node<'_>) -> Declared {
        let Some(schema) = root.get("$schema") else { return Declared::Nothing };
        let Some(uri) = schema.as_str() else { return Declared::Unknown };
        match uri.trim_end_matches('#') {
            "http://json-schema.org/draft-07/schema"
            | "https://json-schema.org/draft-07/schema"
            | "http://json-schema.org/draft-06/schema" => Declared::Known(Dialect::Draft7),
            "https://json-schema.org/draft/2020-12/schema"
            | "http://json-schema.org/draft/2020-12/schema" => Declared::Known(Dialect::Draft2020),
            _ => Declared::Unknown,
        }
    }

    /// Follows a reference within the document. Looking through an object's members counts as work.
    pub(super) fn resolve(&self, reference: &str, work: &mut u64) -> Target<'a> {
        let Some(fragment) = reference.strip_prefix('#') else { return Target::Elsewhere };
        if fragment.is_empty() {
            return Target::Schema(self.root.clone());
        }
        let Some(decoded) = percent_decode(fragment) else { return Target::Elsewhere };
        if !decoded.starts_with('/') {
            return self.anchor(&decoded);
        }
        let mut place = self.root.clone();
        for step in decoded.split('/').skip(1) {
            *work = work.saturating_sub(1 + place.node.members().count() as u64 / 8);
            let name = step.replace("~1", "/").replace("~0", "~");
            let next = if place.node.is_array() {
                let index = name.parse::<usize>().ok();
                let item = index.and_then(|index| place.node.items().nth(index));
                item.map(|node| Place { node, path: place.path.step(name) })
            } else {
                place.member(&name)
            };
            match next {
                Some(next) => place = next,
                None => return Target::Elsewhere,
            }
        }
        match place.node.kind() {
            Kind::Object | Kind::True | Kind::False => Target::Schema(place),
            _ => Target::Elsewhere,
        }
    }

    /// Anchors are looked for among the definitions, where they are written; elsewhere they count as not found.
    fn anchor(&self, name: &str) -> Target<'a> {
        for container in ["$defs", "definitions"] {
            let Some(container) = self.root.member(container) else { continue };
            for (_, place) in container.members() {
                let named = |keyword: &str, expected: &str| {
                    place.node.get(keyword).is_some_and(|anchor| anchor.is_text(expected))
                };
                if self.dialect == Dialect::Draft2020 && named("$anchor", name) {
                    return Target::Schema(place);
                }
            }
        }
        Target::Elsewhere
    }
}

fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let high = char::from(rest.next()?).to_digit(16)?;
            let low = char::from(rest.next()?).to_digit(16)?;
            bytes.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}
