//! Objects: their properties, which of them are required, and which other members are allowed.

use super::applicable::Part;
use super::compare::{Comparison, Location, Reading, Side};
use super::document::Place;
use super::view::View;
use crate::change::ChangeKind;
use crate::detail::Detail;
use crate::json::{Kind, Node};
use crate::sorted::SortedSet;
use std::borrow::Cow;

impl<'a> Comparison<'a> {
    pub(super) fn objects(&mut self, old: &View<'a>, new: &View<'a>, location: &Location<'a>) {
        let names: SortedSet<&Cow<'a, str>> =
            old.properties.keys().chain(new.properties.keys()).collect();
        self.charge(names.len() as u64);
        // A member that only one branch requires counts as required.
        let required = match new.has_combinator() {
            true => self.possibly_required(Side::New, new),
            false => new.required.clone(),
        };
        for name in names {
            if self.work == 0 {
                return;
            }
            match (old.properties.get(name), new.properties.get(name)) {
                (Some(before), Some(after)) => {
                    let part = Part::Member(&location.old_applicable, name);
                    self.schemas(before, after, Some(name), location.level + 1, part);
                }
                (Some(before), None) => self.lost_property(name, before, new, location),
                (None, Some(after)) => {
                    let is_required = required.contains(name);
                    self.gained_property(name, after, old, is_required, location);
                }
                (None, None) => {}
            }
        }
        self.required(old, new, location);
        self.further_members(old, new, location);
        self.property_names(old, new);
        self.dependents(old, new, location);
    }

    #[expect(clippy::ptr_arg, reason = "it is kept as it was borrowed from the document")]
    fn lost_property(
        &mut self,
        name: &Cow<'a, str>,
        before: &Place<'a>,
        new: &View<'a>,
        location: &Location<'a>,
    ) {
        if !location.new_declared.contains(name) {
            self.report_change(ChangeKind::RemovedParam, Some(before), None);
            match self.reading {
                Reading::Arguments => return,
                Reading::Results => {}
            }
        }
        // The property is declared in another branch or nowhere; this schema treats it as an
        // additional member.
        if let Some(further) = new.keywords.get("additionalProperties") {
            let further = further.clone();
            let part = Part::Member(&location.old_applicable, name);
            self.schemas(before, &further, Some(name), location.level + 1, part);
        }
        if new.opaque.contains_key("patternProperties") {
            self.report_change(ChangeKind::DeepSchemaUndiffable, Some(before), None);
        }
    }

    #[expect(clippy::ptr_arg, reason = "it is kept as it was borrowed from the document")]
    fn gained_property(
        &mut self,
        name: &Cow<'a, str>,
        after: &Place<'a>,
        old: &View<'a>,
        is_required: bool,
        location: &Location<'a>,
    ) {
        let was_declared = location.old_applicable.names.contains(name);
        if !was_declared {
            let kind = if is_required {
                ChangeKind::AddedRequiredParam
            } else {
                ChangeKind::AddedOptionalParam
            };
            self.report_change(kind, None, Some(after));
            self.charge(u64::from(after.node.size()));
            if binds_a_header(after) {
                self.report_change(ChangeKind::HeaderBindingChanged, None, Some(after));
            }
        }
        if old.opaque.contains_key("patternProperties") {
            return self.report_change(ChangeKind::DeepSchemaUndiffable, None, Some(after));
        }
        let level = location.level + 1;
        let part = Part::Member(&location.old_applicable, name);
        match old.keywords.get("additionalProperties") {
            // The member could not be given before, so no valid instance has it.
            Some(further) if further.node.kind() == Kind::False => {}
            // The member could be given before as an additional one. Whatever was accepted then
            // must still be accepted.
            Some(further) => {
                let further = self.view(Side::Old, &further.clone());
                self.must_accept(further, after, level, part);
            }
            None if was_declared || location.old_applicable.is_open => {
                self.against_anything(&old.place, after, level, part);
            }
            None => {}
        }
    }

    fn required(&mut self, old: &View<'a>, new: &View<'a>, location: &Location<'a>) {
        for name in &new.required {
            let is_new_property =
                !location.old_applicable.names.contains(name) && new.properties.contains_key(name);
            if location.old_required.contains(name)
                || old.required.contains(name)
                || is_new_property
            {
                continue;
            }
            let property = new.properties.get(name);
            let keyword = new.place.path.step("required");
            let path = property.map_or(keyword, |property| property.path.clone());
            let kind = if location.old_applicable.names.contains(name) {
                ChangeKind::RequiredSetExpanded
            } else {
                ChangeKind::AddedRequiredParam
            };
            self.report(kind, &path, None, property.map(|place| place.node));
        }
        let still_required = self.certainly_required(Side::New, new);
        for name in &old.required {
            if still_required.contains(name) || !location.new_declared.contains(name) {
                continue;
            }
            let property = new.properties.get(name).or(old.properties.get(name));
            let keyword = old.place.path.step("required");
            let path = property.map_or(keyword, |property| property.path.clone());
            self.report(
                ChangeKind::RequiredSetReduced,
                &path,
                property.map(|place| place.node),
                None,
            );
        }
    }

    fn further_members(&mut self, old: &View<'a>, new: &View<'a>, location: &Location<'a>) {
        let keyword = "additionalProperties";
        let (before, after) = (old.keywords.get(keyword), new.keywords.get(keyword));
        let free = |comparison: &mut Self, side: Side, place: Option<&Place<'a>>| {
            place.is_none_or(|place| comparison.view(side, place).is_anything())
        };
        let (was_free, is_free) = (free(self, Side::Old, before), free(self, Side::New, after));
        match (before, after) {
            _ if was_free && is_free => {}
            (_, Some(_)) if was_free => {
                let kind = ChangeKind::ConstraintNarrowed;
                self.report_detail(kind, before, after, Detail::Keyword);
            }
            (Some(_), _) if is_free => {
                let kind = ChangeKind::ConstraintWidened;
                self.report_detail(kind, before, after, Detail::Keyword);
            }
            (Some(before), Some(after)) => {
                let part = Part::AnyMember(&location.old_applicable);
                self.schemas(before, after, None, location.level + 1, part);
            }
            (None, _) | (_, None) => {}
        }
    }

    fn property_names(&mut self, old: &View<'a>, new: &View<'a>) {
        let (before, after) =
            (old.keywords.get("propertyNames"), new.keywords.get("propertyNames"));
        match (before, after) {
            (None, None) => {}
            (None, Some(after)) => {
                if !self.view(Side::New, after).is_anything() {
                    self.report_change(ChangeKind::ConstraintNarrowed, None, Some(after));
                }
            }
            (Some(before), None) => {
                if !self.view(Side::Old, before).is_anything() {
                    self.report_change(ChangeKind::ConstraintWidened, Some(before), None);
                }
            }
            (Some(before), Some(after)) => {
                if !self.means_the_same(before, after, crate::canonical::Position::Schema, true) {
                    self.report_change(ChangeKind::DeepSchemaUndiffable, Some(before), Some(after));
                }
            }
        }
    }

    /// `dependentRequired`: additional dependents refuse more.
    fn dependents(&mut self, old: &View<'a>, new: &View<'a>, location: &Location<'a>) {
        let keyword = "dependentRequired";
        let (before, after) = (old.keywords.get(keyword), new.keywords.get(keyword));
        self.charge(before.iter().chain(&after).map(|place| place.node.weight()).sum());
        if self.work == 0 {
            return;
        }
        type Dependents<'a> = crate::sorted::SortedMap<Cow<'a, str>, SortedSet<Cow<'a, str>>>;
        let read = |place: Option<&Place<'a>>| -> Dependents<'a> {
            let Some(place) = place else { return Dependents::new() };
            let names = |place: Place<'a>| place.node.items().filter_map(Node::as_str).collect();
            place.members().map(|(name, place)| (name, names(place))).collect()
        };
        let (was, is) = (read(before), read(after));
        let asks_more = |these: &Dependents<'a>, those: &Dependents<'a>| {
            these.iter().any(|(trigger, names)| {
                names.iter().any(|name| {
                    let is_known = those.get(trigger).is_some_and(|names| names.contains(name));
                    !is_known && name != trigger
                })
            })
        };
        let is_certain = |(trigger, names): (&Cow<'a, str>, &SortedSet<Cow<'a, str>>)| {
            names.iter().all(|name| {
                was.get(trigger).is_some_and(|names| names.contains(name))
                    || location.old_required.contains(name)
                    || name == trigger
            })
        };
        if !is.iter().all(is_certain) {
            self.report_change(ChangeKind::ConstraintNarrowed, before, after);
        }
        if asks_more(&was, &is) {
            self.report_change(ChangeKind::ConstraintWidened, before, after);
        }
    }
}

/// Whether any part of a schema makes a client copy an argument into a header.
fn binds_a_header(place: &Place<'_>) -> bool {
    let mut open = vec![place.node];
    while let Some(node) = open.pop() {
        if node.members().any(|(name, _)| name.is_text("x-mcp-header")) {
            return true;
        }
        open.extend(node.members().map(|(_, value)| value).chain(node.items()));
    }
    false
}
