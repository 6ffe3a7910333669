//! Collects the schemas that apply to one value, in whichever branch: the members they declare and
//! what they say about the value's parts. If a name or a part were missed, a narrowing would look
//! like an addition.

use super::compare::{Comparison, Names, Side};
use super::document::Place;
use super::type_set::TypeSet;
use super::view::View;
use crate::json::{Kind, Node};
use crate::sorted::SortedSet;

/// The schemas that apply to one value.
#[derive(Debug, Default)]
pub(super) struct Applicable<'a> {
    /// The member names that they mention.
    pub(super) names: Names<'a>,
    /// Those names that are declared as properties; a name that is only required is not one of
    /// them.
    pub(super) properties: Names<'a>,
    /// One of the schemas allows members beyond those.
    pub(super) is_open: bool,
    /// One of the schemas lists objects or arrays in `enum` or `const`; their contents are declared
    /// nowhere else.
    pub(super) lists_parts: bool,
    /// The schemas themselves, if there are several, or if a single one has several keywords for
    /// the same part.
    views: Vec<View<'a>>,
}

/// A part of a value that several schemas may apply to. The schemas are looked up only if the part
/// changed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part<'s, 'a> {
    /// The value that the whole document describes, or one that only one schema applies to.
    Alone,
    Member(&'s Applicable<'a>, &'s str),
    AnyMember(&'s Applicable<'a>),
    Element(&'s Applicable<'a>),
}

impl<'a> Part<'_, 'a> {
    /// The schemas that apply to this part.
    fn places(self) -> Vec<Place<'a>> {
        match self {
            Part::Alone => Vec::new(),
            Part::Member(applicable, name) => applicable.of_member(name),
            Part::AnyMember(applicable) => applicable.of_members(),
            Part::Element(applicable) => applicable.of_elements(),
        }
    }

    /// The work that looking them up takes.
    fn weight(self) -> u64 {
        let views = match self {
            Part::Alone => &[],
            Part::Member(applicable, _)
            | Part::AnyMember(applicable)
            | Part::Element(applicable) => applicable.views.as_slice(),
        };
        let members = match self {
            Part::AnyMember(_) => views.iter().map(|view| view.properties.len()).sum(),
            _ => 0,
        };
        (views.len() + members) as u64 / 2
    }
}

impl<'a> Applicable<'a> {
    /// The schemas of a member, by its name or otherwise.
    fn of_member(&self, name: &str) -> Vec<Place<'a>> {
        let mut places = Vec::new();
        for view in &self.views {
            match view.properties.get(name) {
                Some(place) => places.push(place.clone()),
                None => places.extend(view.keywords.get("additionalProperties").cloned()),
            }
            places.extend(of_unnamed_members(view));
        }
        places
    }

    /// The schemas of any member.
    fn of_members(&self) -> Vec<Place<'a>> {
        let mut places = Vec::new();
        for view in &self.views {
            places.extend(view.properties.values().cloned());
            places.extend(view.keywords.get("additionalProperties").cloned());
            places.extend(of_unnamed_members(view));
        }
        places
    }

    /// The schemas of any element.
    fn of_elements(&self) -> Vec<Place<'a>> {
        let mut places = Vec::new();
        for view in &self.views {
            for keyword in ["items", "prefixItems", "additionalItems"] {
                let Some(place) = view.keywords.get(keyword) else { continue };
                match place.node.is_array() {
                    true => places.extend(place.items()),
                    false => places.push(place.clone()),
                }
            }
            for keyword in ["contains", "unevaluatedItems"] {
                places.extend(view.opaque.get(keyword).cloned());
            }
        }
        places
    }

    fn add(&mut self, view: View<'a>) {
        self.names.extend(view.properties.keys().cloned());
        self.properties.extend(view.properties.keys().cloned());
        self.names.extend(view.required.iter().cloned());
        let dependents = view.keywords.get("dependentRequired").into_iter();
        for place in dependents.chain(view.opaque.get("dependencies")) {
            for (name, dependents) in place.members() {
                self.names.insert(name);
                self.names.extend(dependents.node.items().filter_map(Node::as_str));
            }
        }
        let triggers = view.opaque.get("dependentSchemas").into_iter();
        self.names.extend(triggers.flat_map(|place| place.members().map(|(name, _)| name)));
        // A pattern may match any name.
        let further = ["additionalProperties", "unevaluatedProperties", "patternProperties"];
        self.is_open |= further.iter().any(|keyword| {
            let place = view.keywords.get(*keyword).or(view.opaque.get(*keyword));
            place.is_some_and(|place| place.node.kind() != Kind::False)
        });
        let parts = TypeSet::OBJECT.union(TypeSet::ARRAY);
        self.lists_parts |= view.listed_types().overlaps(parts);
        self.views.push(view);
    }
}

fn of_unnamed_members<'a>(view: &View<'a>) -> Vec<Place<'a>> {
    let patterns = view.opaque.get("patternProperties").into_iter();
    let by_pattern = patterns.flat_map(|place| place.members().map(|(_, schema)| schema));
    by_pattern.chain(view.opaque.get("unevaluatedProperties").cloned()).collect()
}

impl<'a> Comparison<'a> {
    /// The old schemas that apply to a part of a value.
    pub(super) fn applicable_to(&mut self, part: Part<'_, 'a>) -> Vec<Place<'a>> {
        self.charge(part.weight());
        part.places()
    }

    /// All schemas that apply to the same value as `view`. `elsewhere` are those in other branches.
    pub(super) fn applicable(
        &mut self,
        side: Side,
        view: &View<'a>,
        elsewhere: &[Place<'a>],
    ) -> Applicable<'a> {
        let mut found = Applicable::default();
        let mut seen = SortedSet::from([view.place.node.index()]);
        let mut waiting = vec![view.clone()];
        let mut places = elsewhere.to_vec();
        loop {
            for place in places.drain(..) {
                if place.node.is_object() && seen.insert(place.node.index()) {
                    waiting.push(self.view(side, &place));
                }
            }
            let Some(view) = waiting.pop() else { break };
            self.charge(view.weight());
            if self.work == 0 {
                break;
            }
            places.extend(branches(&view));
            found.add(view);
        }
        let says_twice = |view: &View<'a>| {
            ["contains", "patternProperties"]
                .iter()
                .any(|keyword| view.opaque.contains_key(*keyword))
        };
        let is_alone = found.views.len() == 1 && !found.views.iter().any(says_twice);
        if is_alone {
            found.views.clear();
        }
        found
    }
}

/// The branches of a schema that apply to the same value, including negated ones.
fn branches<'a>(view: &View<'a>) -> Vec<Place<'a>> {
    let combined = view.all_of.iter().chain(&view.any_of).chain(&view.one_of);
    let conditions = ["if", "then", "else", "not"].into_iter();
    let conditions = conditions.filter_map(|keyword| view.opaque.get(keyword));
    let dependents = ["dependentSchemas", "dependencies"].into_iter();
    let dependents = dependents
        .filter_map(|keyword| view.opaque.get(keyword))
        .flat_map(|place| place.members().map(|(_, schema)| schema));
    combined.chain(conditions).cloned().chain(dependents).collect()
}
