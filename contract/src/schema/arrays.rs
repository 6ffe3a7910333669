//! Arrays: the schemas of their elements, by position and for the rest.

use super::MAX_LEVELS;
use super::applicable::Part;
use super::compare::{Comparison, Location, Side};
use super::document::{Dialect, Place};
use super::view::View;
use crate::canonical::Position;
use crate::change::{ChangeClass, ChangeKind};

/// The schemas of the first elements and the one of all others.
struct Elements<'a> {
    first: Vec<Place<'a>>,
    rest: Option<Place<'a>>,
}

impl<'a> Comparison<'a> {
    pub(super) fn arrays(&mut self, old: &View<'a>, new: &View<'a>, location: &Location<'a>) {
        let elements = (self.elements(Side::Old, old), self.elements(Side::New, new));
        let (Some(old_elements), Some(new_elements)) = elements else {
            let (before, after) = (old.keywords.get("items"), new.keywords.get("items"));
            let first = (old.keywords.get("prefixItems"), new.keywords.get("prefixItems"));
            let is_same = [(before, after), first].into_iter().all(|pair| match pair {
                (Some(before), Some(after)) => {
                    self.means_the_same(before, after, Position::SchemaList, true)
                }
                (None, None) => true,
                _ => false,
            });
            if !is_same {
                self.report_change(ChangeKind::DeepSchemaUndiffable, before, after);
            }
            return;
        };
        let count = old_elements.first.len().max(new_elements.first.len());
        self.charge(count as u64);
        for index in 0..count {
            if self.work == 0 {
                return;
            }
            let before = old_elements.first.get(index).or(old_elements.rest.as_ref());
            let after = new_elements.first.get(index).or(new_elements.rest.as_ref());
            self.element(before, after, old, location);
        }
        self.element(old_elements.rest.as_ref(), new_elements.rest.as_ref(), old, location);
    }

    /// Reads the keywords of the dialect. Returns `None` if their form does not match the dialect.
    fn elements(&self, side: Side, view: &View<'a>) -> Option<Elements<'a>> {
        let items = view.keywords.get("items");
        let list = items.filter(|items| items.node.is_array());
        match self.document(side).dialect {
            Dialect::Draft2020 => {
                let first = view.keywords.get("prefixItems").map(Place::items).unwrap_or_default();
                list.is_none().then(|| Elements { first, rest: items.cloned() })
            }
            Dialect::Draft7 | Dialect::Draft2019 => Some(match list {
                Some(list) => {
                    let rest = view.keywords.get("additionalItems").cloned();
                    Elements { first: list.items(), rest }
                }
                None => Elements { first: Vec::new(), rest: items.cloned() },
            }),
        }
    }

    /// Compares the schemas of an element. A missing schema accepts everything.
    fn element(
        &mut self,
        before: Option<&Place<'a>>,
        after: Option<&Place<'a>>,
        old: &View<'a>,
        location: &Location<'a>,
    ) {
        let level = location.level + 1;
        match (before, after) {
            (None, None) => {}
            (Some(before), Some(after)) => {
                let part = Part::Element(&location.old_applicable);
                self.schemas(before, after, None, level, part);
            }
            (None, Some(after)) => {
                let part = Part::Element(&location.old_applicable);
                self.against_anything(&old.place, after, level, part);
            }
            (Some(before), None) => {
                if !self.view(Side::Old, before).is_anything() {
                    self.report_change(ChangeKind::ConstraintWidened, Some(before), None);
                }
            }
        }
    }

    /// Compares a schema that appeared where anything was accepted before.
    pub(super) fn against_anything(
        &mut self,
        at: &Place<'a>,
        after: &Place<'a>,
        level: usize,
        part: Part<'_, 'a>,
    ) {
        let anything = View::anything(Place { node: at.node, path: after.path.clone() });
        self.must_accept(anything, after, level, part);
    }

    /// Reports once if a schema that appeared in a place refuses values that were accepted there.
    ///
    /// The report is a single finding because the whole schema appeared, and its texts appeared
    /// with it.
    pub(super) fn must_accept(
        &mut self,
        old: View<'a>,
        after: &Place<'a>,
        level: usize,
        part: Part<'_, 'a>,
    ) {
        let new = self.view(Side::New, after);
        if new.is_anything() || level > MAX_LEVELS {
            if level > MAX_LEVELS {
                self.report_change(ChangeKind::DeepSchemaUndiffable, None, Some(after));
            }
            return;
        }
        let old = old.with_texts_of(&new);
        let kept = self.findings.len();
        let elsewhere = self.applicable_to(part);
        let location = self.location(&old, &new, None, level, &elsewhere);
        // The findings of this attempt are discarded, so the pairs it visited must not count as
        // compared.
        let visited = self.visited.clone();
        self.charge(visited.len() as u64 / 2);
        self.views(&old, &new, &location);
        self.visited = visited;
        let found = self.findings.split_off(kept.min(self.findings.len()));
        if found.iter().any(|finding| finding.class == ChangeClass::FailSafe) {
            self.report_change(ChangeKind::DeepSchemaUndiffable, None, Some(after));
        } else if found.iter().any(|finding| self.reading.is_broken_by(finding)) {
            self.report_change(ChangeKind::ConstraintNarrowed, None, Some(after));
        }
    }
}
