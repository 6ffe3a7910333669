//! Walks two schemas side by side.

use super::applicable::{Applicable, Part};
use super::document::{Dialect, Features, Place, SchemaDocument};
use super::path::Path;
use super::type_set::TypeSet;
use super::view::{View, Viewer};
use super::{MAX_FINDINGS, MAX_LEVELS, WORK_BASE, WORK_PER_WEIGHT};
use crate::canonical::{Position, bounded_text, canonical, is_same, write_members};
use crate::change::{ChangeClass, ChangeKind, Finding};
use crate::detail::{Detail, TypeChange};
use crate::diff::Budget;
use crate::json::Node;
use crate::sorted::{SortedMap, SortedSet};
use std::borrow::Cow;
use std::collections::HashSet;
use std::rc::Rc;

pub(super) type Names<'a> = SortedSet<Cow<'a, str>>;

/// What the instances of the schema are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// Arguments of a call. They contain only members that the old schema declares, unless it has
    /// `additionalProperties`. A removed parameter breaks them even if the new schema would accept
    /// it as an additional member.
    Arguments,
    /// Results, with any members. A member that the new schema does not declare counts as an
    /// additional member.
    Results,
}

/// Which of the two schemas a value belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Old,
    New,
}

/// The facts about an instance location besides the two schemas being compared there. Branches of
/// combinators are compared one by one, but the branches next to them matter too.
#[derive(Debug, Clone)]
pub(super) struct Location<'a> {
    /// The schemas of the location as a whole, by index.
    pub(super) at: (u32, u32),
    /// The name of the property at this location, if it is a property.
    pub(super) name: Option<Cow<'a, str>>,
    pub(super) level: usize,
    pub(super) old_applicable: Rc<Applicable<'a>>,
    pub(super) new_declared: Rc<Names<'a>>,
    /// The members that every instance of the old schema has.
    pub(super) old_required: Rc<Names<'a>>,
}

/// A pair of schemas under comparison, with the context that affects the findings.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Visit<'a> {
    /// The schemas of a location, with the old schemas elsewhere that also apply to it.
    Location(u32, u32, Vec<u32>),
    /// Two branches of a location, with the members that its old instances certainly have.
    Branch(u32, u32, (u32, u32), Rc<Names<'a>>),
}

#[derive(Debug)]
pub(super) struct Comparison<'a> {
    old: SchemaDocument<'a>,
    new: SchemaDocument<'a>,
    pub(super) findings: Vec<Finding>,
    /// The pairs that have been visited; branches once per location they apply to. This ends
    /// cycles.
    pub(super) visited: HashSet<Visit<'a>>,
    /// The schemas that references led to, old and new.
    pub(super) referenced: (SortedSet<u32>, SortedSet<u32>),
    pub(super) work: u64,
    pointer: &'a str,
    pub(super) reading: Reading,
    /// How many enclosing branches do not apply to every value.
    branches: usize,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(
        old: (Node<'a>, Rc<Features>),
        new: (Node<'a>, Rc<Features>),
        dialect: Dialect,
        pointer: &'a str,
    ) -> Self {
        let weight = old.0.weight() + new.0.weight();
        let document = |(node, features)| {
            let root = Place { node, path: Path::root(pointer) };
            SchemaDocument { root, dialect, features }
        };
        Comparison {
            old: document(old),
            new: document(new),
            findings: Vec::new(),
            visited: HashSet::new(),
            referenced: (SortedSet::new(), SortedSet::new()),
            work: WORK_BASE + weight * WORK_PER_WEIGHT,
            pointer,
            reading: Reading::Arguments,
            branches: 0,
        }
    }

    pub(super) fn reading(self, reading: Reading) -> Self {
        Comparison { reading, ..self }
    }

    pub(super) fn run(mut self, budget: &mut Budget) -> Vec<Finding> {
        let (old, new) = (self.old.root.clone(), self.new.root.clone());
        let granted = budget.grant(self.work);
        self.work = granted;
        self.schemas(&old, &new, None, 0, Part::Alone);
        self.definitions(&old, &new);
        budget.spend(granted - self.work.min(granted));
        if self.work == 0 {
            let reason = Some("the comparison needs more work than it may do");
            let path = self.pointer;
            self.findings.push(Finding::new(ChangeKind::DeepSchemaUndiffable, path, None, reason));
        }
        self.findings
    }

    pub(super) fn document(&self, side: Side) -> &SchemaDocument<'a> {
        match side {
            Side::Old => &self.old,
            Side::New => &self.new,
        }
    }

    pub(super) fn view(&mut self, side: Side, place: &Place<'a>) -> View<'a> {
        let (document, referenced) = match side {
            Side::Old => (&self.old, &mut self.referenced.0),
            Side::New => (&self.new, &mut self.referenced.1),
        };
        Viewer { document, work: &mut self.work, referenced }.view(place)
    }

    pub(super) fn charge(&mut self, work: u64) {
        self.work = self.work.saturating_sub(work);
    }

    pub(super) fn report(
        &mut self,
        kind: ChangeKind,
        path: &Path<'a>,
        before: Option<Node<'a>>,
        after: Option<Node<'a>>,
    ) {
        if self.findings.len() >= MAX_FINDINGS {
            self.work = 0;
        }
        // Findings made after the work ran out may be wrong; the schemas are reported as undiffable
        // instead.
        if self.work == 0 {
            return;
        }
        let text = |node: Option<Node<'a>>| node.map(|node| bounded_text(node, Position::Schema));
        let (before, after) = (text(before), text(after));
        self.findings.push(Finding::new(kind, path.pointer(), before.as_deref(), after.as_deref()));
    }

    /// Reports a change of a keyword that is present in the old schema, in the new one, or in both.
    pub(super) fn report_change(
        &mut self,
        kind: ChangeKind,
        old: Option<&Place<'a>>,
        new: Option<&Place<'a>>,
    ) {
        let Some(place) = new.or(old) else { return };
        let path = place.path.clone();
        self.report(kind, &path, old.map(|place| place.node), new.map(|place| place.node));
    }

    /// Reports a change with its exact detail, except inside one of several branches.
    pub(super) fn report_detail(
        &mut self,
        kind: ChangeKind,
        old: Option<&Place<'a>>,
        new: Option<&Place<'a>>,
        detail: Detail,
    ) {
        let found = self.findings.len();
        self.report_change(kind, old, new);
        if let (Some(finding), 0) = (self.findings.get_mut(found), self.branches) {
            finding.detail = Some(detail);
        }
    }

    /// Runs a comparison inside a branch, where keywords do not apply to every value.
    pub(super) fn inside_branch(&mut self, compare: impl FnOnce(&mut Self)) {
        self.branches += 1;
        compare(self);
        self.branches -= 1;
    }

    /// Compares two schemas of one instance location. Other branches may apply to the same part.
    pub(super) fn schemas(
        &mut self,
        old: &Place<'a>,
        new: &Place<'a>,
        name: Option<&Cow<'a, str>>,
        level: usize,
        part: Part<'_, 'a>,
    ) {
        let is_byte_equal = self.is_byte_equal(old, new);
        let has_reference = self.old.features.has_reference_within(old.node)
            || self.new.features.has_reference_within(new.node);
        if is_byte_equal && !has_reference || self.work == 0 {
            return;
        }
        let elsewhere = self.applicable_to(part);
        if !self.enter_location(old, new, &elsewhere) {
            return;
        }
        if level > MAX_LEVELS && !is_byte_equal {
            self.report_change(ChangeKind::DeepSchemaUndiffable, Some(old), Some(new));
            return;
        }
        let found = self.findings.len();
        let (old_view, new_view) = (self.view(Side::Old, old), self.view(Side::New, new));
        let location = self.location(&old_view, &new_view, name, level, &elsewhere);
        self.views(&old_view, &new_view, &location);
        // Every keyword was compared and none was found to differ, so the schemas are equivalent.
        if self.findings.len() != found {
            return;
        }
        let is_equal =
            if level == 0 { self.is_equal_root(old, new) } else { self.is_equal(old, new) };
        if !is_equal {
            self.report_change(ChangeKind::MetadataChanged, Some(old), Some(new));
        }
    }

    /// Whether two documents are equal except for the parts that are compared separately.
    fn is_equal_root(&mut self, old: &Place<'a>, new: &Place<'a>) -> bool {
        let form = |place: &Place<'a>| {
            if !place.node.is_object() {
                return canonical(place.node, Position::Schema);
            }
            let apart = ["$defs", "definitions", "$schema", "$id"];
            let position =
                |name: &str| (!apart.contains(&name)).then(|| Position::of_keyword(name));
            let mut out = Vec::new();
            write_members(place.node, &position, &mut out);
            out
        };
        form(old) == form(new)
    }

    /// Marks the schemas of a location as visited. Returns whether they had not been visited
    /// before.
    fn enter_location(
        &mut self,
        old: &Place<'a>,
        new: &Place<'a>,
        elsewhere: &[Place<'a>],
    ) -> bool {
        self.charge(elsewhere.len() as u64);
        let mut others: Vec<u32> = elsewhere.iter().map(|place| place.node.index()).collect();
        others.sort_unstable();
        others.dedup();
        others.retain(|&index| index != old.node.index());
        self.visited.insert(Visit::Location(old.node.index(), new.node.index(), others))
    }

    /// Like [`Self::enter_location`], for two branches of a location.
    pub(super) fn enter_branch(
        &mut self,
        old: &Place<'a>,
        new: &Place<'a>,
        location: &Location<'a>,
    ) -> bool {
        self.charge(location.old_required.len() as u64);
        let required = Rc::clone(&location.old_required);
        let (old, new) = (old.node.index(), new.node.index());
        self.visited.insert(Visit::Branch(old, new, location.at, required))
    }

    pub(super) fn location(
        &mut self,
        old: &View<'a>,
        new: &View<'a>,
        name: Option<&Cow<'a, str>>,
        level: usize,
        elsewhere: &[Place<'a>],
    ) -> Location<'a> {
        Location {
            at: (old.place.node.index(), new.place.node.index()),
            name: name.cloned(),
            level,
            old_applicable: Rc::new(self.applicable(Side::Old, old, elsewhere)),
            new_declared: Rc::new(self.applicable(Side::New, new, &[]).properties),
            old_required: Rc::new(self.certainly_required(Side::Old, old)),
        }
    }

    /// Whether two schemas have the same bytes. This is cheap unless it is done often.
    pub(super) fn is_byte_equal(&mut self, old: &Place<'a>, new: &Place<'a>) -> bool {
        const BYTES_PER_WORK: u64 = 1_024;
        let (old, new) = (old.node.raw(), new.node.raw());
        self.charge(old.len().min(new.len()) as u64 / BYTES_PER_WORK);
        old == new
    }

    pub(super) fn is_equal(&mut self, old: &Place<'a>, new: &Place<'a>) -> bool {
        if self.is_byte_equal(old, new) {
            return true;
        }
        self.charge((old.node.weight() + new.node.weight()) / 2);
        self.work > 0 && is_same(old.node, new.node, Position::Schema)
    }

    /// Compares everything that two schemas say about one location.
    pub(super) fn views(&mut self, old: &View<'a>, new: &View<'a>, location: &Location<'a>) {
        if self.work == 0 {
            return;
        }
        self.annotations(old, new, location);
        if old.is_never || new.is_never {
            match (old.is_never, new.is_never) {
                (true, false) => self.report_change(
                    ChangeKind::ConstraintWidened,
                    Some(&old.place),
                    Some(&new.place),
                ),
                (false, true) => self.report_detail(
                    ChangeKind::ConstraintNarrowed,
                    Some(&old.place),
                    Some(&new.place),
                    Detail::Types(TypeChange { before: Vec::new(), after: Vec::new() }),
                ),
                _ => {}
            }
            return;
        }
        if self.expand_lost_branches(old, new, location) {
            return;
        }
        // Keywords next to branches may have moved into or out of them, and do not apply to every
        // value.
        match old.has_combinator() || new.has_combinator() {
            true => self.inside_branch(|inside| inside.keywords(old, new, location)),
            false => self.keywords(old, new, location),
        }
        match old.adds_nothing_to_branches() && new.adds_nothing_to_branches() {
            true => self.combinators(old, new, location),
            false => self.inside_branch(|inside| inside.combinators(old, new, location)),
        }
    }

    /// Compares all keywords except the combinators.
    fn keywords(&mut self, old: &View<'a>, new: &View<'a>, location: &Location<'a>) {
        let old_types = self.effective_types(Side::Old, old);
        self.types(old, new, old_types);
        self.values(old, new, old_types);
        self.bounds(old, new, old_types);
        if old_types.overlaps(TypeSet::ARRAY) {
            self.arrays(old, new, location);
        }
        if old_types.overlaps(TypeSet::OBJECT) {
            self.objects(old, new, location);
        }
        self.listed_values(old, new, location);
        self.opaque(old, new);
    }

    /// No schema declares the parts of objects and arrays listed in `enum`, so the schemas must be
    /// equal there.
    fn listed_values(&mut self, old: &View<'a>, new: &View<'a>, location: &Location<'a>) {
        if !location.old_applicable.lists_parts {
            return;
        }
        let is_same = if old.has_combinator() || new.has_combinator() {
            self.means_the_same(&old.place, &new.place, Position::Schema, false)
        } else {
            self.are_same_members(&old.properties, &new.properties, |_| Position::Schema)
                && self.are_same_members(&old.keywords, &new.keywords, Position::of_keyword)
        };
        if !is_same {
            let (before, after) = (Some(&old.place), Some(&new.place));
            self.report_change(ChangeKind::DeepSchemaUndiffable, before, after);
        }
    }

    fn are_same_members(
        &mut self,
        old: &SortedMap<Cow<'a, str>, Place<'a>>,
        new: &SortedMap<Cow<'a, str>, Place<'a>>,
        position: impl Fn(&str) -> Position,
    ) -> bool {
        old.len() == new.len()
            && old.iter().zip(new).all(|((old_name, old), (new_name, new))| {
                old_name == new_name && self.means_the_same(old, new, position(old_name), false)
            })
    }

    /// Keywords without a rule of their own must mean the same on both sides.
    fn opaque(&mut self, old: &View<'a>, new: &View<'a>) {
        let keywords: SortedSet<_> = old.opaque.keys().chain(new.opaque.keys()).cloned().collect();
        for keyword in keywords {
            let (before, after) = (old.opaque.get(&keyword), new.opaque.get(&keyword));
            let is_same = match (before, after) {
                // These depend on their sibling keywords.
                _ if keyword.starts_with("unevaluated") => {
                    self.means_the_same(&old.place, &new.place, Position::Schema, false)
                }
                (Some(before), Some(after)) if keyword == "$ref" => {
                    self.refers_to_the_same_elsewhere(before.node, after.node)
                }
                (Some(before), Some(after)) => {
                    let position = Position::of_keyword(&keyword);
                    let position = if keyword.is_empty() { Position::Schema } else { position };
                    self.means_the_same(before, after, position, true)
                }
                _ => false,
            };
            if !is_same {
                self.report_change(ChangeKind::DeepSchemaUndiffable, before, after);
            }
        }
    }

    fn annotations(&mut self, old: &View<'a>, new: &View<'a>, location: &Location<'a>) {
        for keyword in ["description", "title", "examples", "$comment", "deprecated"] {
            self.text(keyword, old, new, location);
        }
        self.default(old.default.as_ref(), new.default.as_ref());
        let headers = old.header.iter().chain(&new.header);
        self.charge(headers.map(|place| place.node.weight()).sum());
        let form = |place: &Option<Place<'a>>| {
            place.as_ref().map(|place| canonical(place.node, Position::Plain))
        };
        if form(&old.header) != form(&new.header) {
            let (before, after) = (old.header.as_ref(), new.header.as_ref());
            let kind = ChangeKind::HeaderBindingChanged;
            self.report_detail(kind, before, after, Detail::Keyword);
        }
    }

    fn text(&mut self, keyword: &str, old: &View<'a>, new: &View<'a>, location: &Location<'a>) {
        let texts = |view: &View<'a>| -> Vec<Place<'a>> {
            let said = view.texts.iter().filter(|(said, _)| *said == keyword);
            said.map(|(_, place)| place.clone()).collect()
        };
        let (before, after) = (texts(old), texts(new));
        let raw = |places: &[Place<'a>]| -> Vec<&'a str> {
            places.iter().map(|place| place.node.raw()).collect()
        };
        let (old_raw, new_raw) = (raw(&before), raw(&after));
        let bytes: usize = old_raw.iter().map(|text| text.len()).sum();
        self.charge((old_raw.len() + bytes / 1_024) as u64);
        if old_raw == new_raw {
            return;
        }
        self.charge(before.iter().chain(&after).map(|place| place.node.weight()).sum());
        if self.work == 0 {
            return;
        }
        let form = |places: &[Place<'a>]| -> Vec<Vec<u8>> {
            places.iter().map(|place| canonical(place.node, Position::Plain)).collect()
        };
        let (old_forms, new_forms) = (form(&before), form(&after));
        if old_forms == new_forms {
            return;
        }
        let changed = |places: &[Place<'a>], forms: &[Vec<u8>], others: &[Vec<u8>]| {
            let others: SortedSet<&Vec<u8>> = others.iter().collect();
            let mut places = places.iter().zip(forms);
            places.find(|(_, form)| !others.contains(form)).map(|(place, _)| place.clone())
        };
        let was = changed(&before, &old_forms, &new_forms);
        let is = changed(&after, &new_forms, &old_forms);
        let property = location.name.as_deref();
        let spells_name = |place: &Place<'a>| is_spelling_of(place.node, property);
        let is_generated =
            |titles: &[Place<'a>]| location.level == 0 && is_generated_title(titles, self.pointer);
        let is_harmless = keyword == "title"
            && (before.iter().chain(&after).all(spells_name)
                || is_generated(&before) && is_generated(&after));
        let kind =
            if is_harmless { ChangeKind::MetadataChanged } else { ChangeKind::DescriptionOnly };
        // If the same texts are in a different order, report the first of each side.
        let (was, is) = match (was, is) {
            (None, None) => (before.first().cloned(), after.first().cloned()),
            changed => changed,
        };
        self.report_change(kind, was.as_ref(), is.as_ref());
    }

    fn default(&mut self, old: Option<&Place<'a>>, new: Option<&Place<'a>>) {
        let form = |place: &Place<'a>| canonical(place.node, Position::Plain);
        let is_null = |place: &Place<'a>| place.node.is_null();
        if let (Some(old), Some(new)) = (old, new)
            && old.node.raw() != new.node.raw()
        {
            self.charge(old.node.weight() + new.node.weight());
        }
        let kind = match (old, new) {
            (None, None) => return,
            _ if self.work == 0 => return,
            (Some(old), Some(new)) if old.node.raw() == new.node.raw() => return,
            (Some(old), Some(new)) if form(old) == form(new) => return,
            (None, Some(only)) | (Some(only), None) if is_null(only) => ChangeKind::MetadataChanged,
            _ => ChangeKind::DefaultChanged,
        };
        self.report_detail(kind, old, new, Detail::Keyword);
    }

    /// Compares unreferenced definitions and the names of all definitions. They do not affect
    /// instances, but models read them.
    fn definitions(&mut self, old: &Place<'a>, new: &Place<'a>) {
        let collect = |root: &Place<'a>| -> SortedMap<Cow<'a, str>, Place<'a>> {
            let containers =
                ["$defs", "definitions"].into_iter().filter_map(|name| root.member(name));
            containers.flat_map(|container| container.members().collect::<Vec<_>>()).collect()
        };
        let (old_members, new_members) = (collect(old), collect(new));
        let is_used = |place: &Place<'a>, referenced: &SortedSet<u32>| {
            let end = place.node.index().saturating_add(place.node.size());
            referenced.first_from(&place.node.index()).is_some_and(|index| *index < end)
        };
        let (old_used, new_used) = self.referenced.clone();
        for (name, before) in &old_members {
            self.charge(1);
            let Some(after) = new_members.get(name) else { continue };
            if self.work == 0 || self.is_equal(before, after) {
                continue;
            }
            if is_used(before, &old_used) && is_used(after, &new_used) {
                continue;
            }
            let found = std::mem::take(&mut self.findings);
            self.schemas(before, after, None, 1, Part::Alone);
            let mut inside = std::mem::replace(&mut self.findings, found);
            inside.retain(|finding| {
                finding.class == ChangeClass::Text
                    || finding.kind == ChangeKind::HeaderBindingChanged
            });
            if inside.is_empty() {
                self.report_change(ChangeKind::MetadataChanged, Some(before), Some(after));
            }
            self.findings.extend(inside);
            if self.findings.len() > MAX_FINDINGS {
                self.work = 0;
                return;
            }
        }
        let names = |members: &SortedMap<Cow<'a, str>, Place<'a>>, root: &Place<'a>| {
            let names: Vec<_> = members.keys().cloned().collect();
            (names, root.node.get("$defs").is_some(), root.node.get("definitions").is_some())
        };
        if names(&old_members, old) != names(&new_members, new) {
            let container = |root: &Place<'a>| root.member("$defs").or(root.member("definitions"));
            let (before, after) = (container(old), container(new));
            self.report_change(ChangeKind::MetadataChanged, before.as_ref(), after.as_ref());
        }
        let identifier = |root: &Place<'a>| root.member("$id");
        let (before, after) = (identifier(old), identifier(new));
        if before.as_ref().map(|id| id.node.raw()) != after.as_ref().map(|id| id.node.raw()) {
            self.report_change(ChangeKind::MetadataChanged, before.as_ref(), after.as_ref());
        }
    }

    /// Runs a comparison and discards its findings. Returns whether none of them was a break.
    pub(super) fn holds(&mut self, attempt: impl FnOnce(&mut Self)) -> bool {
        let findings = std::mem::take(&mut self.findings);
        let visited = std::mem::take(&mut self.visited);
        attempt(self);
        let found = std::mem::replace(&mut self.findings, findings);
        self.visited = visited;
        let reading = self.reading;
        self.work > 0 && !found.iter().any(|finding| reading.is_broken_by(finding))
    }
}

impl Reading {
    /// Whether a finding means that a previously accepted instance may now be refused.
    pub(super) fn is_broken_by(self, finding: &Finding) -> bool {
        match (self, finding.kind) {
            // Whether the new schema accepts the member as an additional one is compared
            // separately.
            (Reading::Results, ChangeKind::RemovedParam) => false,
            // Before, a result could have any value under that name.
            (Reading::Results, ChangeKind::AddedOptionalParam) => true,
            _ => matches!(finding.class, ChangeClass::Breaking | ChangeClass::FailSafe),
        }
    }
}

/// Whether a document has a single title, which belongs to its root and is an identifier.
fn is_generated_title(titles: &[Place<'_>], root: &str) -> bool {
    let [title] = titles else { return false };
    is_identifier(title.node) && title.path.pointer() == format!("{root}/title")
}

/// Whether a title is a single identifier: frameworks generate such titles from class names.
pub(super) fn is_identifier(title: Node<'_>) -> bool {
    const LONGEST: usize = 64;
    let Some(title) = title.as_str() else { return false };
    let is_start = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    title.len() <= LONGEST
        && title.bytes().next().is_some_and(is_start)
        && title.bytes().all(is_part)
}

/// Whether a title only spells a property's name differently (`User ID` for `user_id`).
pub(crate) fn is_spelling_of(title: Node<'_>, name: Option<&str>) -> bool {
    // Only word separators are dropped: any other character in a title adds something to the name.
    let letters = |text: &str| -> String {
        let is_separator = |c: &char| matches!(c, ' ' | '_' | '-' | '.' | '/');
        text.chars().filter(|c| !is_separator(c)).flat_map(char::to_lowercase).collect()
    };
    match (title.as_str(), name) {
        (Some(title), Some(name)) => letters(&title) == letters(name) && !letters(name).is_empty(),
        _ => false,
    }
}
