//! A schema as the comparison sees it: references followed, `allOf` parts merged if that changes
//! nothing, and `anyOf [T, null]` read as a set of types.

use super::document::{Place, SchemaDocument, Target};
use super::type_set::TypeSet;
use crate::canonical::{Position, canonical};
use crate::json::{Kind, Node};
use crate::sorted::{SortedMap, SortedSet};
use std::borrow::Cow;

/// Chains of references are followed up to this length.
const MAX_REFERENCE_CHAIN: usize = 32;

/// Everything a schema says about one instance location.
#[derive(Debug, Clone)]
pub(super) struct View<'a> {
    /// The place of the schema itself.
    pub(super) place: Place<'a>,
    /// Whether this is the boolean schema `false`.
    pub(super) is_never: bool,
    pub(super) types: TypeSet,
    /// The place of `type`.
    pub(super) type_place: Option<Place<'a>>,
    /// Every `enum` and `const`. A value must be in all of them.
    pub(super) values: Vec<Place<'a>>,
    pub(super) required: SortedSet<Cow<'a, str>>,
    pub(super) properties: SortedMap<Cow<'a, str>, Place<'a>>,
    /// Assertions that can be compared separately, by keyword.
    pub(super) keywords: SortedMap<Cow<'a, str>, Place<'a>>,
    /// Keywords without a rule: either equal or undiffable.
    pub(super) opaque: SortedMap<Cow<'a, str>, Place<'a>>,
    pub(super) all_of: Vec<Place<'a>>,
    pub(super) any_of: Vec<Place<'a>>,
    pub(super) one_of: Vec<Place<'a>>,
    /// Texts that a model reads: `description`, `title`, `examples`, `$comment` and `deprecated:
    /// true`.
    pub(super) texts: Vec<(&'static str, Place<'a>)>,
    pub(super) default: Option<Place<'a>>,
    pub(super) header: Option<Place<'a>>,
}

impl<'a> View<'a> {
    /// The schema that accepts everything, at the place of another schema.
    pub(super) fn anything(place: Place<'a>) -> View<'a> {
        View {
            place,
            is_never: false,
            types: TypeSet::ALL,
            type_place: None,
            values: Vec::new(),
            required: SortedSet::new(),
            properties: SortedMap::new(),
            keywords: SortedMap::new(),
            opaque: SortedMap::new(),
            all_of: Vec::new(),
            any_of: Vec::new(),
            one_of: Vec::new(),
            texts: Vec::new(),
            default: None,
            header: None,
        }
    }

    pub(super) fn has_combinator(&self) -> bool {
        !(self.all_of.is_empty() && self.any_of.is_empty() && self.one_of.is_empty())
    }

    /// Whether it accepts every value.
    pub(super) fn is_anything(&self) -> bool {
        self.adds_nothing_to_branches() && !self.has_combinator()
    }

    /// Whether it accepts every value that its branches accept.
    pub(super) fn adds_nothing_to_branches(&self) -> bool {
        !self.is_never
            && self.types == TypeSet::ALL
            && self.values.is_empty()
            && self.required.is_empty()
            && self.properties.is_empty()
            && self.keywords.is_empty()
            && self.opaque.is_empty()
    }

    /// Whether merging would change the meaning of a keyword. Some keywords depend on what their
    /// own schema does not mention or on a sibling keyword, so schemas with them are not merged.
    fn must_stay_apart(&self, other: &View<'a>) -> bool {
        const TOGETHER: [&[&str]; 4] = [
            &["items", "prefixItems", "additionalItems"],
            &["contains", "minContains", "maxContains"],
            &["if", "then", "else"],
            &["contentEncoding", "contentMediaType", "contentSchema"],
        ];
        let says = |view: &View<'a>, keyword: &str| {
            view.keywords.contains_key(keyword) || view.opaque.contains_key(keyword)
        };
        let says_any = |view: &View<'a>, group: &[&str]| group.iter().any(|word| says(view, word));
        let counts_members =
            |view: &View<'a>| says_any(view, &["additionalProperties", "patternProperties"]);
        let counts_all =
            |view: &View<'a>| view.opaque.keys().any(|keyword| keyword.starts_with("unevaluated"));
        let declares = |view: &View<'a>| !view.properties.is_empty() || counts_members(view);
        counts_members(self) && declares(other)
            || counts_members(other) && declares(self)
            || counts_all(self) && !other.is_anything()
            || counts_all(other) && !self.is_anything()
            || TOGETHER.iter().any(|group| says_any(self, group) && says_any(other, group))
    }

    /// Whether the other view's assertions can be added to these without losing or changing any.
    fn can_merge(&self, other: &View<'a>) -> bool {
        let same = |left: &Place<'_>, right: &Place<'_>| {
            left.node.index() == right.node.index() || left.node.raw() == right.node.raw()
        };
        let compatible = |ours: &SortedMap<Cow<'a, str>, Place<'a>>,
                          theirs: &SortedMap<Cow<'a, str>, Place<'a>>| {
            theirs
                .iter()
                .all(|(name, place)| ours.get(name).is_none_or(|our_place| same(our_place, place)))
        };
        compatible(&self.properties, &other.properties)
            && compatible(&self.keywords, &other.keywords)
            && compatible(&self.opaque, &other.opaque)
            && (self.any_of.is_empty() || other.any_of.is_empty())
            && (self.one_of.is_empty() || other.one_of.is_empty())
            && (self.default.is_none() || other.default.is_none())
            && (self.header.is_none() || other.header.is_none())
    }

    fn merge(&mut self, other: View<'a>) {
        self.is_never |= other.is_never;
        self.types = self.types.intersection(other.types);
        self.type_place = self.type_place.take().or(other.type_place);
        self.values.extend(other.values);
        self.required.extend(other.required);
        self.properties.extend(other.properties);
        self.keywords.extend(other.keywords);
        self.opaque.extend(other.opaque);
        self.all_of.extend(other.all_of);
        self.any_of.extend(other.any_of);
        self.one_of.extend(other.one_of);
        self.texts.extend(other.texts);
        self.default = self.default.take().or(other.default);
        self.header = self.header.take().or(other.header);
    }

    /// This view with the other view's texts, default and header, so that only what the two accept
    /// is compared.
    pub(super) fn with_texts_of(mut self, other: &View<'a>) -> View<'a> {
        self.texts = other.texts.clone();
        self.default = other.default.clone();
        self.header = other.header.clone();
        self
    }

    /// The work that copying this view takes.
    pub(super) fn weight(&self) -> u64 {
        let branches = self.all_of.len() + self.any_of.len() + self.one_of.len();
        let sets = self.properties.len() + self.required.len() + self.keywords.len();
        let parts = [branches, sets, self.opaque.len(), self.texts.len(), self.values.len()];
        1 + parts.into_iter().sum::<usize>() as u64 / 2
    }

    /// The work that [`View::allowed_values`] takes.
    pub(super) fn values_weight(&self) -> u64 {
        self.values.iter().map(|place| place.node.weight()).sum()
    }

    /// This view merged with one branch of a combinator that was removed from it, if they can be
    /// merged.
    pub(super) fn with_branch(&self, branch: View<'a>) -> Option<View<'a>> {
        if self.must_stay_apart(&branch) || !self.can_merge(&branch) {
            return None;
        }
        let mut merged = self.clone();
        merged.merge(branch);
        Some(merged)
    }

    /// The types of all values listed in `enum` and `const`.
    pub(super) fn listed_types(&self) -> TypeSet {
        let listed = self.values.iter().flat_map(|place| listed_values(place));
        listed.map(TypeSet::of_value).fold(TypeSet::NONE, TypeSet::union)
    }

    /// The values that `enum` and `const` allow, as canonical bytes. Returns `None` if neither is
    /// present.
    pub(super) fn allowed_values(&self) -> Option<AllowedValues> {
        let mut sets = self.values.iter().map(|place| {
            listed_values(place)
                .into_iter()
                .map(|node| (canonical(node, Position::Plain), TypeSet::of_value(node)))
                .collect::<SortedMap<_, _>>()
        });
        let mut allowed = sets.next()?;
        for other in sets {
            allowed.retain(|value, _| other.contains_key(value));
        }
        allowed.retain(|_, value_type| value_type.is_within(self.types));
        Some(allowed)
    }
}

/// Values as canonical bytes, each with its type.
pub(super) type AllowedValues = SortedMap<Vec<u8>, TypeSet>;

/// Builds views of one document and counts the work.
#[derive(Debug)]
pub(super) struct Viewer<'a, 'w> {
    pub(super) document: &'w SchemaDocument<'a>,
    pub(super) work: &'w mut u64,
    /// The schemas that references led to, by index.
    pub(super) referenced: &'w mut SortedSet<u32>,
}

impl<'a> Viewer<'a, '_> {
    pub(super) fn view(&mut self, place: &Place<'a>) -> View<'a> {
        self.view_within(place, &mut Vec::new())
    }

    /// `open` are the schemas that this one is being merged into. A reference back to one of them
    /// is not followed.
    fn view_within(&mut self, place: &Place<'a>, open: &mut Vec<u32>) -> View<'a> {
        *self.work = self.work.saturating_sub(2);
        let mut view = View::anything(place.clone());
        match place.node.kind() {
            // Once the work has run out, results are discarded anyway.
            _ if *self.work == 0 => {}
            Kind::True => {}
            Kind::False => view.is_never = true,
            Kind::Object => {
                open.push(place.node.index());
                self.absorb(&mut view, place, open);
                open.pop();
            }
            // Not a schema: either equal or undiffable.
            _ => {
                view.opaque.insert(Cow::Borrowed(""), place.clone());
            }
        }
        view
    }

    fn absorb(&mut self, view: &mut View<'a>, place: &Place<'a>, open: &mut Vec<u32>) {
        let mut parts: Vec<Place<'a>> = Vec::new();
        let dialect = self.document.dialect;
        let recursive = || place.member("$recursiveRef").filter(|_| dialect.has("$recursiveRef"));
        let reference = place.member("$ref").or_else(recursive);
        let siblings_count = reference.is_none() || dialect.reads_siblings_of_references();
        for (name, member) in place.members() {
            *self.work = self.work.saturating_sub(1);
            if siblings_count || is_annotation(&name) {
                self.keyword(view, &name, member, &mut parts);
            }
        }
        if let Some(reference) = reference {
            self.reference(view, reference, open);
        }
        for part in parts {
            self.part(view, part, open);
        }
        self.read_null_branch(view);
    }

    #[expect(clippy::ptr_arg, reason = "it is kept as it was borrowed from the document")]
    fn keyword(
        &mut self,
        view: &mut View<'a>,
        name: &Cow<'a, str>,
        member: Place<'a>,
        parts: &mut Vec<Place<'a>>,
    ) {
        let node = member.node;
        match name.as_ref() {
            "type" => match TypeSet::parse(node) {
                Some(types) => {
                    view.types = types;
                    view.type_place = Some(member);
                }
                None => drop(view.opaque.insert(name.clone(), member)),
            },
            "enum" if node.is_array() => {
                *self.work = self.work.saturating_sub(u64::from(node.size()));
                view.values.push(member);
            }
            "const" => view.values.push(member),
            "required"
                if node.items().all(|item| item.kind() == Kind::String) && node.is_array() =>
            {
                *self.work = self.work.saturating_sub(u64::from(node.size()));
                view.required = node.items().filter_map(Node::as_str).collect();
            }
            "properties" if node.is_object() => {
                *self.work = self.work.saturating_sub(member.node.members().count() as u64);
                view.properties = member.members().collect();
            }
            "allOf" if node.is_array() => *parts = self.items(&member),
            "anyOf" if node.items().next().is_some() => view.any_of = self.items(&member),
            "oneOf" if node.items().next().is_some() => view.one_of = self.items(&member),
            "description" => view.texts.push(("description", member)),
            "title" => view.texts.push(("title", member)),
            "examples" => view.texts.push(("examples", member)),
            "$comment" => view.texts.push(("$comment", member)),
            "deprecated" if node.kind() == Kind::True => view.texts.push(("deprecated", member)),
            // `false` means the same as absence.
            "deprecated" if node.kind() == Kind::False => {}
            "default" => view.default = Some(member),
            "x-mcp-header" => view.header = Some(member),
            // These say nothing about an instance: references lead into them, and they are compared
            // at the document's root.
            "$ref" | "$defs" | "definitions" | "$id" => {}
            "$schema" if self.is_root(&view.place) => {}
            "$recursiveRef" if self.document.dialect.has("$recursiveRef") => {}
            keyword if keyword != "$recursiveRef" && !self.document.dialect.has(keyword) => {}
            // If no other keyword applies to the same object, unevaluated properties are just the
            // undeclared ones.
            "unevaluatedProperties" if evaluates_only_its_own(view.place.node) => {
                view.keywords.insert(Cow::Borrowed("additionalProperties"), member);
            }
            keyword if is_comparable(keyword) => {
                view.keywords.insert(name.clone(), member);
            }
            _ => {
                view.opaque.insert(name.clone(), member);
            }
        }
    }

    fn items(&mut self, list: &Place<'a>) -> Vec<Place<'a>> {
        let items = list.items();
        *self.work = self.work.saturating_sub(items.len() as u64);
        items
    }

    fn is_root(&self, place: &Place<'a>) -> bool {
        place.node.index() == self.document.root.node.index()
    }

    fn reference(&mut self, view: &mut View<'a>, reference: Place<'a>, open: &mut Vec<u32>) {
        *self.work = self.work.saturating_sub(4);
        let target = match reference.node.as_str() {
            Some(text) => self.document.resolve(&text, self.work),
            None => Target::Elsewhere,
        };
        match target {
            Target::Schema(target) if !open.contains(&target.node.index()) => {
                self.referenced.insert(target.node.index());
                self.part(view, target, open);
            }
            // A schema that refers only to itself, or a reference to another document: compared as
            // a string.
            _ => {
                view.opaque.insert(Cow::Borrowed("$ref"), reference);
            }
        }
    }

    /// Adds a schema that must hold as well: merged if nothing is lost, otherwise kept as a branch.
    fn part(&mut self, view: &mut View<'a>, part: Place<'a>, open: &mut Vec<u32>) {
        if open.contains(&part.node.index()) || open.len() >= MAX_REFERENCE_CHAIN || *self.work == 0
        {
            view.all_of.push(part);
            return;
        }
        let other = self.view_within(&part, open);
        if !view.must_stay_apart(&other) && view.can_merge(&other) {
            view.merge(other);
        } else {
            view.all_of.push(part);
        }
    }

    /// Reads `anyOf [T, null]` as T with `null` among its types, if nothing in T would then wrongly
    /// apply to null.
    fn read_null_branch(&mut self, view: &mut View<'a>) {
        for is_one_of in [false, true] {
            let branches = if is_one_of { &view.one_of } else { &view.any_of };
            let [first, second] = branches.as_slice() else { continue };
            let (null, other) = if is_null_schema(first) {
                (first.clone(), second.clone())
            } else if is_null_schema(second) {
                (second.clone(), first.clone())
            } else {
                continue;
            };
            let mut bare = view.clone();
            bare.any_of = if is_one_of { bare.any_of } else { Vec::new() };
            bare.one_of = if is_one_of { Vec::new() } else { bare.one_of };
            if !bare.is_anything() || other.node.get("$ref").is_some() || !other.node.is_object() {
                continue;
            }
            let inner = self.view_within(&other, &mut vec![view.place.node.index()]);
            let is_plain = inner.values.is_empty()
                && inner.opaque.is_empty()
                && !inner.has_combinator()
                && !inner.is_never
                && inner.types != TypeSet::ALL
                && !inner.types.overlaps(TypeSet::NULL);
            if !is_plain || !bare.can_merge(&inner) {
                continue;
            }
            let types = inner.types.union(TypeSet::NULL);
            bare.merge(inner);
            bare.types = types;
            for text in ["description", "title", "$comment", "examples"] {
                if let Some(place) = null.member(text) {
                    bare.texts.push((text, place));
                }
            }
            *view = bare;
        }
    }
}

/// The values that an `enum` or a `const` lists.
fn listed_values<'a>(place: &Place<'a>) -> Vec<Node<'a>> {
    // A `const` may itself be an array, so check the keyword.
    match place.path.ends_with("const") {
        true => vec![place.node],
        false => place.node.items().collect(),
    }
}

pub(super) fn is_null_schema(place: &Place<'_>) -> bool {
    place.node.is_object()
        && place.node.get("type").is_some_and(|kind| kind.is_text("null"))
        && place.node.members().all(|(name, _)| {
            let name = name.as_str().unwrap_or_default();
            name == "type"
                || matches!(name.as_ref(), "description" | "title" | "$comment" | "examples")
        })
}

/// Whether a schema has none of the keywords through which another schema declares members of the
/// same object.
fn evaluates_only_its_own(schema: Node<'_>) -> bool {
    const OTHERS: [&str; 13] = [
        "$dynamicRef",
        "$recursiveRef",
        "$ref",
        "additionalProperties",
        "allOf",
        "anyOf",
        "dependencies",
        "dependentSchemas",
        "else",
        "if",
        "not",
        "oneOf",
        "then",
    ];
    !schema.members().any(|(name, _)| OTHERS.iter().any(|other| name.is_text(other)))
}

/// Keywords that assert nothing.
fn is_annotation(keyword: &str) -> bool {
    matches!(
        keyword,
        "description"
            | "title"
            | "examples"
            | "$comment"
            | "default"
            | "deprecated"
            | "x-mcp-header"
    )
}

/// Assertions with a rule of their own.
fn is_comparable(keyword: &str) -> bool {
    matches!(
        keyword,
        "minimum"
            | "maximum"
            | "exclusiveMinimum"
            | "exclusiveMaximum"
            | "multipleOf"
            | "minLength"
            | "maxLength"
            | "pattern"
            | "format"
            | "items"
            | "prefixItems"
            | "additionalItems"
            | "minItems"
            | "maxItems"
            | "uniqueItems"
            | "additionalProperties"
            | "minProperties"
            | "maxProperties"
            | "propertyNames"
            | "dependentRequired"
    )
}
