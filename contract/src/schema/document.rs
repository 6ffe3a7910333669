//! One schema document: its dialect, its references, and the features that make a comparison
//! uncertain.

use super::path::Path;
use crate::canonical::Position;
use crate::json::{Kind, Node};
use crate::percent::percent_decoded;
use std::borrow::Cow;
use std::rc::Rc;

/// A schema with its place.
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

    /// The elements of an array, with their places.
    pub(super) fn items(&self) -> Vec<Place<'a>> {
        let place = |(index, node)| Place { node, path: self.path.item(index) };
        self.node.items().enumerate().map(place).collect()
    }

    /// The members of an object, with their places.
    pub(super) fn members(&self) -> impl Iterator<Item = (Cow<'a, str>, Place<'a>)> {
        let path = self.path.clone();
        self.node.members().map(move |(key, node)| {
            let name = key.as_str().unwrap_or_default();
            (name.clone(), Place { node, path: path.step(name) })
        })
    }
}

/// The rules by which a schema is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Draft7,
    Draft2019,
    Draft2020,
}

impl Dialect {
    /// Whether keywords next to a `$ref` have an effect.
    pub(super) fn reads_siblings_of_references(self) -> bool {
        match self {
            Dialect::Draft7 => false,
            Dialect::Draft2019 | Dialect::Draft2020 => true,
        }
    }

    /// Whether the dialect has a keyword that some dialects lack. An unknown keyword asserts
    /// nothing.
    pub(super) fn has(self, keyword: &str) -> bool {
        match keyword {
            "prefixItems" => self == Dialect::Draft2020,
            "additionalItems" => self != Dialect::Draft2020,
            "$recursiveRef" => self == Dialect::Draft2019,
            "dependentRequired"
            | "dependentSchemas"
            | "unevaluatedItems"
            | "unevaluatedProperties"
            | "minContains"
            | "maxContains" => self != Dialect::Draft7,
            _ => true,
        }
    }
}

/// The dialect that `$schema` declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Declared {
    Nothing,
    Known(Dialect),
    Unknown,
}

/// The findings of a walk over all subschemas of a document.
#[derive(Debug, Default)]
pub(super) struct Features {
    /// The schemas that have a `$ref`, by index, sorted.
    references: Vec<u32>,
    /// All schemas by index, sorted. Anything else that a pointer leads to has not been examined.
    schemas: Vec<u32>,
    /// The document has a name that references may use.
    has_name: bool,
    /// The document is one of draft 2019-09.
    is_2019: bool,
    /// A keyword whose meaning differs between the dialects is in use.
    pub(super) is_dialect_sensitive: bool,
    /// The document has a dynamic or a named reference, whose target cannot be known without
    /// resolving base URIs.
    has_named_references: bool,
    /// Every `$id` below the root, as written.
    nested_ids: Vec<String>,
}

impl Features {
    pub(super) fn has_reference_within(&self, node: Node<'_>) -> bool {
        let start = self.references.partition_point(|&index| index < node.index());
        let end = node.index().saturating_add(node.size());
        self.references.get(start).is_some_and(|&index| index < end)
    }

    /// Whether following pointers resolves the references of both documents correctly. A nested
    /// `$id` changes the meaning of references near it, so nested ids must be equal on both sides
    /// and must not occur together with references.
    pub(super) fn can_follow_references(&self, other: &Features) -> bool {
        let has_references = !self.references.is_empty() || !other.references.is_empty();
        let has_ids = !self.nested_ids.is_empty() || !other.nested_ids.is_empty();
        let mut ids = (self.nested_ids.clone(), other.nested_ids.clone());
        ids.0.sort_unstable();
        ids.1.sort_unstable();
        let is_ambiguous = self.has_named_references || other.has_named_references;
        !is_ambiguous && ids.0 == ids.1 && (!has_ids || !has_references)
    }

    pub(super) fn of(root: Node<'_>) -> Features {
        let has_name = root.get("$id").is_some() || root.get("id").is_some();
        let declared = SchemaDocument::declared(root);
        let is_2019 = declared == Declared::Known(Dialect::Draft2019);
        let mut features = Features { has_name, is_2019, ..Features::default() };
        features.schema(root, true);
        features.references.sort_unstable();
        features.schemas.sort_unstable();
        features
    }

    fn schema(&mut self, node: Node<'_>, is_root: bool) {
        self.schemas.push(node.index());
        let mut has_reference = false;
        let mut has_other_assertion = false;
        for (key, value) in node.members() {
            let key = key.as_str().unwrap_or_default();
            match key.as_ref() {
                "$ref" => {
                    has_reference = true;
                    self.reference(value);
                }
                // In a document without anchors it refers to the root.
                "$recursiveRef" if self.is_2019 && value.is_text("#") => {
                    has_reference = true;
                    self.is_dialect_sensitive = true;
                    self.has_named_references |= node.get("$ref").is_some();
                }
                "$dynamicRef" | "$recursiveRef" | "$dynamicAnchor" | "$recursiveAnchor" => {
                    self.has_named_references = true;
                }
                "$id" | "id" if !is_root && value.kind() == Kind::String => {
                    self.nested_ids.push(value.as_str().unwrap_or_default().into_owned());
                }
                "description" | "title" | "default" | "deprecated" | "examples" | "$comment"
                | "$defs" | "definitions" => {}
                _ => has_other_assertion = true,
            }
            self.keyword(&key, value);
        }
        if has_reference {
            self.references.push(node.index());
            self.is_dialect_sensitive |= has_other_assertion;
        }
    }

    /// A named reference can lead anywhere in a document: to an anchor, or to the document itself
    /// by its `$id`.
    fn reference(&mut self, value: Node<'_>) {
        let Some(text) = value.as_str() else { return };
        self.has_named_references |= match text.strip_prefix('#') {
            Some(fragment) => !fragment.is_empty() && !fragment.starts_with('/'),
            None => self.has_name,
        };
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
            | "maxContains" => self.is_dialect_sensitive = true,
            "items" if value.is_array() => self.is_dialect_sensitive = true,
            _ => {}
        }
        // Which keywords hold schemas is defined once, in `Position`, which the canonical form uses
        // too.
        match Position::of_keyword(keyword) {
            Position::SchemaMap | Position::SetMap => {
                value.members().for_each(|(_, schema)| self.schema(schema, false));
            }
            Position::SchemaList if value.is_array() => {
                value.items().for_each(|schema| self.schema(schema, false));
            }
            Position::Schema | Position::SchemaList => self.schema(value, false),
            Position::Plain | Position::Set => {}
        }
    }
}

/// A whole schema document, read in one dialect.
#[derive(Debug)]
pub(super) struct SchemaDocument<'a> {
    pub(super) root: Place<'a>,
    pub(super) dialect: Dialect,
    pub(super) features: Rc<Features>,
}

/// The target of a `$ref`.
#[derive(Debug, Clone)]
pub(super) enum Target<'a> {
    Schema(Place<'a>),
    /// Another document, or nothing. It is never fetched; the reference is compared as a string.
    Elsewhere,
}

impl<'a> SchemaDocument<'a> {
    pub(super) fn declared(root: Node<'_>) -> Declared {
        let Some(schema) = root.get("$schema") else { return Declared::Nothing };
        let Some(uri) = schema.as_str() else { return Declared::Unknown };
        match uri.trim_end_matches('#') {
            "http://json-schema.org/draft-07/schema"
            | "https://json-schema.org/draft-07/schema" => Declared::Known(Dialect::Draft7),
            "https://json-schema.org/draft/2019-09/schema"
            | "http://json-schema.org/draft/2019-09/schema" => Declared::Known(Dialect::Draft2019),
            "https://json-schema.org/draft/2020-12/schema"
            | "http://json-schema.org/draft/2020-12/schema" => Declared::Known(Dialect::Draft2020),
            _ => Declared::Unknown,
        }
    }

    /// Resolves a reference within the document. Searching an object's members counts as work.
    pub(super) fn resolve(&self, reference: &str, work: &mut u64) -> Target<'a> {
        let Some(fragment) = reference.strip_prefix('#') else { return Target::Elsewhere };
        if fragment.is_empty() {
            return Target::Schema(self.root.clone());
        }
        *work = work.saturating_sub(fragment.len() as u64 / 32);
        // Once the work has run out, results are discarded anyway.
        if *work == 0 {
            return Target::Elsewhere;
        }
        let Some(decoded) = percent_decoded(fragment) else { return Target::Elsewhere };
        if !decoded.starts_with('/') {
            return Target::Elsewhere;
        }
        let mut place = self.root.clone();
        for step in decoded.split('/').skip(1) {
            *work = work.saturating_sub(1 + place.node.members().count() as u64 / 4);
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
        match self.features.schemas.binary_search(&place.node.index()) {
            Ok(_) => Target::Schema(place),
            Err(_) => Target::Elsewhere,
        }
    }
}
