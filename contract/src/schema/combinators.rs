//! `allOf`, `anyOf`, `oneOf`: branches are matched and compared one by one.

use super::compare::{Comparison, Location, Side};
use super::document::Place;
use super::type_set::TypeSet;
use super::view::{View, is_null_schema};
use crate::canonical::{Position, canonical};
use crate::change::{ChangeClass, ChangeKind};
use crate::json::Node;
use crate::sorted::{SortedMap, SortedSet};
use std::collections::VecDeque;
use std::rc::Rc;

/// The branches of the old schema, paired with the branches of the new one that they became.
struct Matched<'a> {
    pairs: Vec<(Place<'a>, Place<'a>)>,
    lost: Vec<Place<'a>>,
    gained: Vec<Place<'a>>,
}

impl<'a> Comparison<'a> {
    /// Handles an old schema with branches whose replacement has none: the new schema must accept
    /// each old branch, combined with the keywords around it. Returns whether the comparison was
    /// made.
    pub(super) fn expand_lost_branches(
        &mut self,
        old: &View<'a>,
        new: &View<'a>,
        location: &Location<'a>,
    ) -> bool {
        let has_none = new.any_of.is_empty() && new.one_of.is_empty();
        let (branches, rest) = match (old.any_of.is_empty(), old.one_of.is_empty()) {
            _ if !has_none => return false,
            (false, true) => (&old.any_of, View { any_of: Vec::new(), ..old.clone() }),
            (true, false) => (&old.one_of, View { one_of: Vec::new(), ..old.clone() }),
            _ => return false,
        };
        let level = location.level + 1;
        if level > super::MAX_LEVELS {
            self.report_change(
                ChangeKind::DeepSchemaUndiffable,
                Some(&old.place),
                Some(&new.place),
            );
            return true;
        }
        // The keywords around the branches have already been compared.
        let rest = rest.with_texts_of(new);
        let silent = View::anything(old.place.clone());
        let mut merged = Vec::new();
        for branch in branches {
            self.charge(rest.weight());
            if self.work == 0 {
                return true;
            }
            let branch = self.view(Side::Old, branch).with_texts_of(&silent);
            match rest.with_branch(branch) {
                Some(view) => merged.push(view),
                None => return false,
            }
        }
        let whole = self.effective_types(Side::Old, old);
        let new_types = self.effective_types(Side::New, new);
        let first = self.findings.len();
        for view in merged {
            if self.work == 0 {
                return true;
            }
            let required = self.certainly_required(Side::Old, &view);
            let location = Location { level, old_required: Rc::new(required), ..location.clone() };
            self.inside_branch(|comparison| comparison.views(&view, new, &location));
        }
        // Each branch is narrower than the union of all of them, so drop findings that are wider
        // only in comparison with one branch.
        let is_type_wider = !new_types.is_within(whole);
        let still_required = self.certainly_required(Side::New, new);
        let is_required_fewer = !location.old_required.is_subset(&still_required);
        let mut index = 0;
        self.findings.retain(|finding| {
            index += 1;
            index <= first
                || match finding.kind {
                    ChangeKind::TypeWidened => is_type_wider,
                    ChangeKind::RequiredSetReduced => is_required_fewer,
                    _ => true,
                }
        });
        true
    }

    pub(super) fn combinators(&mut self, old: &View<'a>, new: &View<'a>, location: &Location<'a>) {
        self.all_of(old, new, location);
        let old_switches = !old.any_of.is_empty() && old.one_of.is_empty();
        let new_switches = new.any_of.is_empty() && !new.one_of.is_empty();
        if old_switches && new_switches {
            self.any_of_to_one_of(old, new, location);
            return;
        }
        if old.any_of.is_empty()
            && !old.one_of.is_empty()
            && !new.any_of.is_empty()
            && new.one_of.is_empty()
        {
            self.branches(&old.one_of, &new.any_of, location);
            let path = new.place.path.step("anyOf");
            self.report(ChangeKind::ConstraintWidened, &path, None, None);
            return;
        }
        match (old.any_of.is_empty(), new.any_of.is_empty()) {
            (true, true) => {}
            (false, false) => {
                self.branches(&old.any_of, &new.any_of, location);
            }
            (true, false) => self.appeared(old, new, &new.any_of, "anyOf", location),
            (false, true) => self.disappeared(old, "anyOf"),
        }
        match (old.one_of.is_empty(), new.one_of.is_empty()) {
            (true, true) => {}
            (false, false) => self.one_of(old, new, location),
            (true, false) => {
                if self.are_pairwise_disjoint(Side::New, &new.one_of) {
                    self.appeared(old, new, &new.one_of, "oneOf", location);
                } else {
                    let path = new.place.path.step("oneOf");
                    self.report(ChangeKind::ConstraintNarrowed, &path, None, None);
                }
            }
            (false, true) => self.disappeared(old, "oneOf"),
        }
    }

    fn disappeared(&mut self, old: &View<'a>, keyword: &str) {
        let place = old.place.member(keyword);
        self.report_change(
            ChangeKind::ConstraintWidened,
            place.as_ref().or(Some(&old.place)),
            None,
        );
    }

    /// Every part of the new schema must accept what the old schema accepted.
    fn all_of(&mut self, old: &View<'a>, new: &View<'a>, location: &Location<'a>) {
        if old.all_of.is_empty() && new.all_of.is_empty() {
            return;
        }
        let matched = self.matched(&old.all_of, &new.all_of);
        for (before, after) in &matched.pairs {
            self.inside_branch(|comparison| comparison.branch(before, after, location));
        }
        let before =
            View { all_of: Vec::new(), any_of: Vec::new(), one_of: Vec::new(), ..old.clone() };
        let inner = Location { level: location.level + 1, ..location.clone() };
        if inner.level > super::MAX_LEVELS && !matched.gained.is_empty() {
            let path = new.place.path.step("allOf");
            return self.report(ChangeKind::DeepSchemaUndiffable, &path, None, None);
        }
        for after in &matched.gained {
            self.charge(before.weight());
            if self.work == 0 {
                return;
            }
            // Its texts are new together with it, so only the values that it refuses matter.
            let after = self.view(Side::New, after);
            let before = before.clone().with_texts_of(&after);
            self.inside_branch(|comparison| comparison.views(&before, &after, &inner));
        }
        for before in &matched.lost {
            self.report_change(ChangeKind::ConstraintWidened, Some(before), None);
        }
    }

    /// Compares two branches, given the facts about the location they apply to.
    fn branch(&mut self, before: &Place<'a>, after: &Place<'a>, location: &Location<'a>) {
        let has_reference = self.document(Side::Old).features.has_reference_within(before.node)
            || self.document(Side::New).features.has_reference_within(after.node);
        if self.work == 0 || !has_reference && self.is_byte_equal(before, after) {
            return;
        }
        let level = location.level + 1;
        if level > super::MAX_LEVELS {
            self.report_change(ChangeKind::DeepSchemaUndiffable, Some(before), Some(after));
            return;
        }
        let found = self.findings.len();
        let (old, new) = (self.view(Side::Old, before), self.view(Side::New, after));
        let mut required = self.certainly_required(Side::Old, &old);
        self.charge(location.old_required.len() as u64);
        required.extend(location.old_required.iter().cloned());
        let inner = Location { level, old_required: Rc::new(required), ..location.clone() };
        if !self.enter_branch(before, after, &inner) {
            return;
        }
        self.views(&old, &new, &inner);
        if self.findings.len() == found && !self.is_equal(before, after) {
            self.report_change(ChangeKind::MetadataChanged, Some(before), Some(after));
        }
    }

    /// Every branch of the old schema must have become a branch of the new one that accepts at
    /// least as much.
    fn branches(
        &mut self,
        old: &[Place<'a>],
        new: &[Place<'a>],
        location: &Location<'a>,
    ) -> Matched<'a> {
        let matched = self.matched(old, new);
        // If the only other branch is `null`, a branch applies to every other value.
        let others = |places: &[Place<'a>]| places.iter().filter(|at| !is_null_schema(at)).count();
        let is_alone = others(old) == 1 && others(new) == 1;
        for (before, after) in &matched.pairs {
            match is_alone {
                true => self.branch(before, after, location),
                false => self.inside_branch(|inside| inside.branch(before, after, location)),
            }
        }
        let (old_types, new_types) = (self.types_of(Side::Old, old), self.types_of(Side::New, new));
        for before in &matched.lost {
            let types = self.types_of(Side::Old, std::slice::from_ref(before));
            let is_type_lost = !types.overlaps(new_types);
            let kind =
                if is_type_lost { ChangeKind::TypeChanged } else { ChangeKind::ConstraintNarrowed };
            self.report_change(kind, Some(before), None);
        }
        for after in &matched.gained {
            let types = self.types_of(Side::New, std::slice::from_ref(after));
            let is_type_new = !types.overlaps(old_types);
            let kind =
                if is_type_new { ChangeKind::TypeWidened } else { ChangeKind::ConstraintWidened };
            self.report_change(kind, None, Some(after));
        }
        matched
    }

    fn types_of(&mut self, side: Side, branches: &[Place<'a>]) -> TypeSet {
        branches.iter().fold(TypeSet::NONE, |types, branch| {
            let branch = self.view(side, branch);
            types.union(self.effective_types(side, &branch))
        })
    }

    /// In `oneOf`, a wider branch can overlap another branch, and values in the overlap are then
    /// refused.
    fn one_of(&mut self, old: &View<'a>, new: &View<'a>, location: &Location<'a>) {
        let found = self.findings.len();
        let matched = self.branches(&old.one_of, &new.one_of, location);
        if self.are_pairwise_disjoint(Side::New, &new.one_of) {
            return;
        }
        let path = new.place.path.step("oneOf");
        if !matched.gained.is_empty() {
            // A new branch does not make `oneOf` wider by itself: a value that two branches accept
            // is refused.
            let gained: SortedSet<String> =
                matched.gained.iter().map(|branch| branch.path.pointer()).collect();
            let mut index = 0;
            self.findings.retain(|finding| {
                index += 1;
                let is_widening = finding.class == ChangeClass::Widening;
                index <= found || !(is_widening && gained.contains(&finding.path))
            });
            self.report(ChangeKind::ConstraintNarrowed, &path, None, None);
        }
        let is_unchanged = matched
            .pairs
            .iter()
            .all(|(before, after)| self.means_the_same(before, after, Position::Schema, false));
        if !is_unchanged {
            self.report(ChangeKind::DeepSchemaUndiffable, &path, None, None);
        }
    }

    fn any_of_to_one_of(&mut self, old: &View<'a>, new: &View<'a>, location: &Location<'a>) {
        self.branches(&old.any_of, &new.one_of, location);
        if !self.are_pairwise_disjoint(Side::New, &new.one_of) {
            let path = new.place.path.step("oneOf");
            self.report(ChangeKind::ConstraintNarrowed, &path, None, None);
        }
    }

    /// Branches appeared where there were none. Each accepted type of value needs a branch that
    /// accepts all of its values.
    fn appeared(
        &mut self,
        old: &View<'a>,
        new: &View<'a>,
        branches: &[Place<'a>],
        keyword: &'static str,
        location: &Location<'a>,
    ) {
        let old_types = self.effective_types(Side::Old, old);
        let views: Vec<View<'a>> =
            branches.iter().map(|branch| self.view(Side::New, branch)).collect();
        let new_types: Vec<TypeSet> =
            views.iter().map(|view| self.effective_types(Side::New, view)).collect();
        let inner = Location { level: location.level + 1, ..location.clone() };
        if inner.level > super::MAX_LEVELS {
            let path = new.place.path.step(keyword);
            return self.report(ChangeKind::DeepSchemaUndiffable, &path, None, None);
        }
        let is_accepted = old_types.each().all(|one| {
            views.iter().zip(&new_types).any(|(branch, types)| {
                self.charge(old.weight());
                if self.work == 0 {
                    return false;
                }
                let narrowed = View { types: old.types.intersection(one), ..old.clone() };
                let narrowed = narrowed.with_texts_of(branch);
                types.overlaps(one)
                    && self.holds(|comparison| comparison.views(&narrowed, branch, &inner))
            })
        });
        if is_accepted {
            return;
        }
        let together = new_types.into_iter().fold(TypeSet::NONE, TypeSet::union);
        if !old_types.is_within(together) {
            let path = new.place.path.step(keyword);
            return self.report(ChangeKind::TypeChanged, &path, None, None);
        }
        let found = self.findings.len();
        let mut is_about_more = false;
        for branch in &views {
            if self.work == 0 {
                return;
            }
            let required = self.possibly_required(Side::New, branch);
            for name in required.iter().filter(|name| !location.old_required.contains(*name)) {
                let property = new.properties.get(name).or(branch.properties.get(name));
                let path =
                    property.map_or(branch.place.path.step("required"), |place| place.path.clone());
                let is_old = location.old_applicable.names.contains(name);
                let kind = if is_old {
                    ChangeKind::RequiredSetExpanded
                } else {
                    ChangeKind::AddedRequiredParam
                };
                self.report(kind, &path, None, property.map(|place| place.node));
            }
            let bare = View { required: Default::default(), ..branch.clone() };
            is_about_more |=
                required.is_empty() || !bare.is_anything() && bare.types != TypeSet::OBJECT;
        }
        if is_about_more || self.findings.len() == found {
            let path = new.place.path.step(keyword);
            self.report(ChangeKind::ConstraintNarrowed, &path, None, None);
        }
    }

    /// Matches branches: first equal ones, then those that refer to the same definition, then by
    /// type. Each pass reads every branch once, however many there are.
    fn matched(&mut self, old: &[Place<'a>], new: &[Place<'a>]) -> Matched<'a> {
        let mut matching = Matching {
            lost: old.to_vec(),
            gained: new.iter().cloned().map(Some).collect(),
            pairs: Vec::new(),
        };
        let form = |comparison: &mut Self, _: Side, place: &Place<'a>| {
            comparison.charge(1 + place.node.weight() / 2);
            (comparison.work > 0).then(|| canonical(place.node, Position::Schema))
        };
        matching.pair_equal(self, form);
        let label = |comparison: &mut Self, _: Side, place: &Place<'a>| {
            comparison.charge(1);
            ["$ref", "title"].into_iter().find_map(|keyword| place.node.get(keyword)).map(Node::raw)
        };
        matching.pair_equal(self, label);
        let types = |comparison: &mut Self, side: Side, place: &Place<'a>| {
            let view = comparison.view(side, place);
            let types = comparison.effective_types(side, &view);
            (comparison.work > 0).then_some(types)
        };
        matching.pair_equal(self, types);
        matching.pair_by(self, types, |types, free| {
            let overlapping = free.iter_mut().filter(|(other, _)| types.overlaps(**other));
            let indices = overlapping.map(|(_, indices)| indices);
            let there = indices.filter(|indices| !indices.is_empty());
            there.min_by_key(|indices| indices.front().copied())
        });
        let Matching { lost, gained, pairs } = matching;
        Matched { pairs, lost, gained: gained.into_iter().flatten().collect() }
    }
}

/// Branches during matching.
struct Matching<'a> {
    /// The old branches without a partner.
    lost: Vec<Place<'a>>,
    /// The new branches; each becomes `None` once it has a partner.
    gained: Vec<Option<Place<'a>>>,
    pairs: Vec<(Place<'a>, Place<'a>)>,
}

/// The indices of the unmatched branches with a given key, in order.
type Keyed<K> = SortedMap<K, VecDeque<usize>>;

impl<'a> Matching<'a> {
    /// Pairs each old branch with the first unmatched new branch that has the same key.
    fn pair_equal<K: Ord>(
        &mut self,
        comparison: &mut Comparison<'a>,
        key: impl Fn(&mut Comparison<'a>, Side, &Place<'a>) -> Option<K>,
    ) {
        self.pair_by(comparison, key, |key, free| free.get_mut(key));
    }

    /// Pairs each old branch with the first unmatched new branch that `find` selects by its key.
    fn pair_by<K: Ord>(
        &mut self,
        comparison: &mut Comparison<'a>,
        key: impl Fn(&mut Comparison<'a>, Side, &Place<'a>) -> Option<K>,
        find: impl for<'k> Fn(&K, &'k mut Keyed<K>) -> Option<&'k mut VecDeque<usize>>,
    ) {
        if self.lost.is_empty() {
            return;
        }
        let mut free: Keyed<K> = Keyed::new();
        for (index, place) in self.gained.iter().enumerate() {
            let Some(place) = place else { continue };
            if let Some(key) = key(comparison, Side::New, place) {
                free.get_or_default(key).push_back(index);
            }
        }
        for before in std::mem::take(&mut self.lost) {
            let key = key(comparison, Side::Old, &before);
            let index = key.and_then(|key| find(&key, &mut free)?.pop_front());
            match index.and_then(|index| self.gained.get_mut(index)?.take()) {
                Some(after) => self.pairs.push((before, after)),
                None => self.lost.push(before),
            }
        }
    }
}
