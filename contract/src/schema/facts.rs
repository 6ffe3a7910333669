//! Facts that follow from a schema as a whole: the types it allows, the names it declares, the
//! members it certainly requires.

use super::compare::{Comparison, Names, Side};
use super::document::{Dialect, Place, Target};
use super::type_set::TypeSet;
use super::view::View;
use crate::canonical::{Position, canonical};
use crate::diff::Budget;
use crate::json::{Kind, Node};
use crate::sorted::SortedSet;

/// Nested combinators are followed down to this depth; nothing is assumed about deeper ones.
const MAX_NESTED_COMBINATORS: usize = 8;

impl<'a> Comparison<'a> {
    /// The types that an accepted instance can have. This never omits a possible type.
    pub(super) fn effective_types(&mut self, side: Side, view: &View<'a>) -> TypeSet {
        self.effective_types_within(side, view, 0)
    }

    fn effective_types_within(&mut self, side: Side, view: &View<'a>, depth: usize) -> TypeSet {
        if view.is_never {
            return TypeSet::NONE;
        }
        let mut types = view.types;
        self.charge(view.values_weight());
        if self.work == 0 {
            return types;
        }
        if let Some(values) = view.allowed_values() {
            types = values.into_values().fold(TypeSet::NONE, TypeSet::union).intersection(types);
        }
        if depth >= MAX_NESTED_COMBINATORS {
            return types;
        }
        for part in &view.all_of {
            let part = self.view(side, part);
            types = types.intersection(self.effective_types_within(side, &part, depth + 1));
        }
        for branches in [&view.any_of, &view.one_of] {
            if branches.is_empty() {
                continue;
            }
            let mut together = TypeSet::NONE;
            for branch in branches {
                let branch = self.view(side, branch);
                together = together.union(self.effective_types_within(side, &branch, depth + 1));
            }
            types = types.intersection(together);
        }
        types
    }

    /// The members that every accepted object has. Of alternative branches, only members that all
    /// of them require count.
    pub(super) fn certainly_required(&mut self, side: Side, view: &View<'a>) -> Names<'a> {
        self.required_within(side, view, 0, true)
    }

    /// The members that at least one branch requires.
    pub(super) fn possibly_required(&mut self, side: Side, view: &View<'a>) -> Names<'a> {
        self.required_within(side, view, 0, false)
    }

    fn required_within(
        &mut self,
        side: Side,
        view: &View<'a>,
        depth: usize,
        certainly: bool,
    ) -> Names<'a> {
        let mut names = view.required.clone();
        self.charge(names.len() as u64 / 2);
        if depth >= MAX_NESTED_COMBINATORS || self.work == 0 {
            return names;
        }
        for part in &view.all_of {
            let part = self.view(side, part);
            names.extend(self.required_within(side, &part, depth + 1, certainly));
        }
        for branches in [&view.any_of, &view.one_of] {
            let mut common: Option<Names<'a>> = None;
            for branch in branches {
                let branch = self.view(side, branch);
                let required = self.required_within(side, &branch, depth + 1, certainly);
                match &mut common {
                    None => common = Some(required),
                    Some(common) if certainly => common.retain(|name| required.contains(name)),
                    Some(common) => common.extend(required),
                }
            }
            names.extend(common.unwrap_or_default());
        }
        names
    }

    /// The parameters of the new schema that some call must give, with their pointers, up to `most`
    /// of them.
    pub(super) fn all_required(
        mut self,
        most: usize,
        budget: &mut Budget,
    ) -> Option<Vec<(String, String)>> {
        self.work = budget.grant(self.work);
        let granted = self.work;
        let root = self.document(Side::New).root.clone();
        let view = self.view(Side::New, &root);
        let names = self.possibly_required(Side::New, &view);
        let place = |name: &str| match view.properties.get(name) {
            Some(place) => place.path.pointer(),
            None => root.path.step("required").pointer(),
        };
        budget.spend(granted - self.work);
        let all = names.iter().map(|name| (name.to_string(), place(name)));
        (self.work > 0).then(|| all.take(most).collect())
    }

    /// Whether no value can satisfy both branches.
    pub(super) fn are_disjoint(&mut self, side: Side, left: &View<'a>, right: &View<'a>) -> bool {
        let weight = left.values_weight() + right.values_weight();
        self.charge(weight + left.required.len().min(right.required.len()) as u64);
        if self.work == 0 {
            return false;
        }
        let (left_types, right_types) =
            (self.effective_types(side, left), self.effective_types(side, right));
        let common = left_types.intersection(right_types);
        if common.is_empty() {
            return true;
        }
        if let (Some(left), Some(right)) = (left.allowed_values(), right.allowed_values())
            && left.keys().all(|value| !right.contains_key(value))
        {
            return true;
        }
        // Objects are disjoint if both require a member whose allowed values do not overlap.
        common == TypeSet::OBJECT
            && left
                .required
                .intersection(&right.required)
                .cloned()
                .collect::<SortedSet<_>>()
                .iter()
                .any(|name| {
                    let values = |comparison: &mut Self, view: &View<'a>| {
                        let place = view.properties.get(name)?.clone();
                        let view = comparison.view(side, &place);
                        comparison.charge(view.values_weight());
                        view.allowed_values().filter(|_| comparison.work > 0)
                    };
                    match (values(self, left), values(self, right)) {
                        (Some(left), Some(right)) => {
                            left.keys().all(|value| !right.contains_key(value))
                        }
                        _ => false,
                    }
                })
    }

    pub(super) fn are_pairwise_disjoint(&mut self, side: Side, branches: &[Place<'a>]) -> bool {
        const MOST_BRANCHES: usize = 64;
        if branches.len() > MOST_BRANCHES {
            return false;
        }
        let views: Vec<View<'a>> = branches.iter().map(|branch| self.view(side, branch)).collect();
        views.iter().enumerate().all(|(index, left)| {
            views.iter().skip(index + 1).all(|right| self.are_disjoint(side, left, right))
        })
    }

    /// Whether two values are the same once references are followed. With `texts`, their texts must
    /// be the same too.
    pub(super) fn means_the_same(
        &mut self,
        old: &Place<'a>,
        new: &Place<'a>,
        position: Position,
        texts: bool,
    ) -> bool {
        let mut open = SortedSet::new();
        self.same_values(old.node, new.node, position, texts, &mut open)
    }

    fn same_values(
        &mut self,
        old: Node<'a>,
        new: Node<'a>,
        position: Position,
        texts: bool,
        open: &mut SortedSet<(u32, u32)>,
    ) -> bool {
        self.charge(1);
        if self.work == 0 || old.kind() != new.kind() {
            return false;
        }
        let has_reference = self.document(Side::Old).features.has_reference_within(old)
            || self.document(Side::New).features.has_reference_within(new);
        if !has_reference && (texts || position == Position::Plain || position == Position::Set) {
            self.charge(old.weight() / 2);
            return old.raw() == new.raw() || canonical(old, position) == canonical(new, position);
        }
        match old.kind() {
            Kind::Array => {
                old.items().count() == new.items().count()
                    && old.items().zip(new.items()).all(|(old, new)| {
                        self.same_values(old, new, position.of_item(), texts, open)
                    })
            }
            Kind::Object => self.same_objects(old, new, position, texts, open),
            _ => {
                self.charge(old.weight());
                canonical(old, position) == canonical(new, position)
            }
        }
    }

    fn same_objects(
        &mut self,
        old: Node<'a>,
        new: Node<'a>,
        position: Position,
        texts: bool,
        open: &mut SortedSet<(u32, u32)>,
    ) -> bool {
        let is_schema = matches!(position, Position::Schema | Position::SchemaList | Position::Set);
        if is_schema && !open.insert((old.index(), new.index())) {
            return true;
        }
        let counts = |name: &str| {
            texts
                || !is_schema
                || !matches!(name, "description" | "title" | "examples" | "$comment" | "default")
        };
        let members = |node: Node<'a>| {
            let members =
                node.members().map(|(name, value)| (name.as_str().unwrap_or_default(), value));
            members.filter(|(name, _)| counts(name)).collect::<crate::sorted::SortedMap<_, _>>()
        };
        let (old_members, new_members) = (members(old), members(new));
        self.charge(old_members.len() as u64);
        let dialect = self.document(Side::Old).dialect;
        old_members.len() == new_members.len()
            && old_members.iter().all(|(name, &old)| {
                let Some(&new) = new_members.get(name) else { return false };
                if is_schema && is_reference(name, dialect) {
                    return self.same_references(old, new, texts, open);
                }
                let position = if position == Position::Set { Position::Schema } else { position };
                self.same_values(old, new, position.of_member(name), texts, open)
            })
    }

    fn same_references(
        &mut self,
        old: Node<'a>,
        new: Node<'a>,
        texts: bool,
        open: &mut SortedSet<(u32, u32)>,
    ) -> bool {
        let (Some(old_text), Some(new_text)) = (old.as_str(), new.as_str()) else { return false };
        let mut work = self.work;
        let old_target = self.document(Side::Old).resolve(&old_text, &mut work);
        let new_target = self.document(Side::New).resolve(&new_text, &mut work);
        self.work = work;
        match (old_target, new_target) {
            (Target::Schema(old), Target::Schema(new)) => {
                self.referenced.0.insert(old.node.index());
                self.referenced.1.insert(new.node.index());
                self.same_values(old.node, new.node, Position::Schema, texts, open)
            }
            (Target::Elsewhere, Target::Elsewhere) => self.refers_to_the_same_elsewhere(old, new),
            _ => false,
        }
    }

    /// Whether two references to another document are to the same one.
    pub(super) fn refers_to_the_same_elsewhere(&self, old: Node<'a>, new: Node<'a>) -> bool {
        let is_outside = |node: Node<'a>| node.as_str().is_some_and(|text| !text.starts_with('#'));
        is_outside(old) && old.as_str() == new.as_str()
    }
}

/// Whether a keyword refers to another schema of the document.
fn is_reference(keyword: &str, dialect: Dialect) -> bool {
    keyword == "$ref" || keyword == "$recursiveRef" && dialect.has(keyword)
}
