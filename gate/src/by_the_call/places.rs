//! The places of a call, and what changed at each between an older definition and the new one.
//!
//! Both schemas are walked in parallel along the paths of a call. Everything that applies to a
//! place is compared there, wherever the schemas define it, so an edit of a definition affects
//! every parameter that refers to it.

use super::applied::{ALL_TYPES, Applied, OBJECT, Title, types};
use super::aspects::Aspects;
use super::relied::{OmissionTexts, ReliedOn};
use super::sameness::Sameness;
use super::schema::{Schema, is_reference, properties};
use super::work::Work;
use super::{Undecided, unplaced};
use contract::json::{Kind, Node};
use contract::sorted::{SortedMap, SortedSet};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// The most places of a pair of schemas.
const MAX_PLACES: usize = 10_000;

/// All places of a call. The first one is the arguments as a whole.
#[derive(Debug)]
pub(super) struct Places {
    places: Vec<CallPlace>,
    /// A change belongs to no place: it is in an unreferenced definition.
    pub(super) unattributed: bool,
}

/// One place of a call.
#[derive(Debug, Default)]
pub(super) struct CallPlace {
    /// What changed at the place itself.
    pub(super) own: Aspects,
    /// What changed at the place and in everything below it.
    pub(super) within: Aspects,
    /// The changes that matter to a call that omits the place and everything below it.
    pub(super) left_out: Aspects,
    pub(super) members: SortedMap<Box<str>, CallMember>,
    pub(super) further: Further,
    pub(super) items: Option<usize>,
    /// The older definition allows anything here, at every level below.
    pub(super) is_open: bool,
}

/// A member that at least one of the definitions declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallMember {
    /// The older definition declares it. The new one may not.
    Declared(usize),
    /// Only the new definition declares it. A call that omits it may have a different meaning if it
    /// has a default or a text about being omitted.
    Added(Aspects),
}

/// Members that are not declared by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Further {
    #[default]
    Undeclared,
    /// The older definition allows them, and at least one definition has a schema for them.
    Open(usize),
    /// The older definition allows anything, at every level below, and the new one has no schema
    /// for them.
    Anything,
}

impl Places {
    pub(super) fn get(&self, place: usize) -> Option<&CallPlace> {
        self.places.get(place)
    }

    /// What changed about the arguments as a whole.
    pub(super) fn whole(&self) -> Aspects {
        self.places.first().map_or(Aspects::BRANCHES, |root| root.own)
    }

    /// Compares two definitions place by place. The bounds of both have been checked.
    pub(super) fn between<'a>(old: &Schema<'a>, new: &Schema<'a>) -> Result<Places, Undecided> {
        let mut walk = Walk {
            old,
            new,
            places: Vec::new(),
            known: HashMap::new(),
            waiting: Vec::new(),
            visited: (HashSet::new(), HashSet::new()),
            within: (HashSet::new(), HashSet::new()),
            sameness: Sameness::new(old, new),
            omission_texts: OmissionTexts::default(),
            relied: (ReliedOn::default(), ReliedOn::default()),
        };
        walk.place(None, vec![old.root], Some(vec![new.root]), false)?;
        while let Some(pair) = walk.waiting.pop() {
            walk.look_into(&pair)?;
        }
        let (old_visited, new_visited) =
            (&walk.visited.0 | &walk.within.0, &walk.visited.1 | &walk.within.1);
        let unattributed = unplaced::differ((old, &old_visited), (new, &new_visited))?;
        let mut places = Places { places: walk.places, unattributed };
        places.gather(&old.work)?;
        Ok(places)
    }

    /// Adds to each place what changed below it. Places that lead back to an earlier one need more
    /// than one round.
    fn gather(&mut self, work: &Work) -> Result<(), Undecided> {
        for place in &mut self.places {
            place.within = place.own;
        }
        loop {
            let mut is_stable = true;
            for at in (0..self.places.len()).rev() {
                let Some(place) = self.places.get(at) else { continue };
                work.spend(1 + place.members.len())?;
                let (mut within, mut left_out) = (place.within, place.left_out);
                let of = |next: usize| self.places.get(next);
                for member in place.members.values() {
                    let (inside, absent) = match *member {
                        CallMember::Added(aspects) => (aspects, aspects),
                        CallMember::Declared(next) => {
                            let Some(next) = of(next) else { continue };
                            (next.within, next.left_out)
                        }
                    };
                    within = within.with(inside);
                    left_out = left_out.with(absent);
                }
                let further = match place.further {
                    Further::Open(next) => Some(next),
                    Further::Undeclared | Further::Anything => None,
                };
                for next in further.into_iter().chain(place.items).filter_map(of) {
                    within = within.with(next.within);
                    left_out = left_out.with(next.left_out);
                }
                is_stable &= (within, left_out) == (place.within, place.left_out);
                if let Some(place) = self.places.get_mut(at) {
                    (place.within, place.left_out) = (within, left_out);
                }
            }
            if is_stable {
                return Ok(());
            }
        }
    }

    /// Removes changes of text: they hold nothing if a parameter's text is deferred.
    pub(super) fn ignore_text(&mut self) {
        for place in &mut self.places {
            let added = place.members.values_mut().filter_map(|member| match member {
                CallMember::Added(aspects) => Some(aspects),
                CallMember::Declared(_) => None,
            });
            let own = [&mut place.own, &mut place.within, &mut place.left_out];
            for aspects in own.into_iter().chain(added) {
                *aspects = aspects.without(Aspects::TEXT.with(Aspects::DEPRECATED));
            }
        }
    }
}

/// The two sides of one place, waiting to be visited. Without a new side, the place was removed.
struct Pair<'a> {
    place: usize,
    name: Option<Box<str>>,
    old: Vec<Node<'a>>,
    new: Option<Vec<Node<'a>>>,
    /// The old side allows anything, at every level below.
    is_open: bool,
}

type PairKey = (Option<Box<str>>, Vec<u32>, Option<Vec<u32>>, bool);

struct Walk<'s, 'a> {
    old: &'s Schema<'a>,
    new: &'s Schema<'a>,
    places: Vec<CallPlace>,
    known: HashMap<PairKey, usize>,
    waiting: Vec<Pair<'a>>,
    /// The subschemas of each side that belong to a place.
    visited: (HashSet<u32>, HashSet<u32>),
    /// Those of them that belong to a place together with everything in them.
    within: (HashSet<u32>, HashSet<u32>),
    sameness: Sameness<'s, 'a>,
    omission_texts: OmissionTexts<'a>,
    /// For each side, the defaults and texts in a subschema that calls omitting it rely on.
    relied: (ReliedOn, ReliedOn),
}

impl<'a> Walk<'_, 'a> {
    /// The place where these schemas apply. A new place is queued and visited later.
    fn place(
        &mut self,
        name: Option<&str>,
        old: Vec<Node<'a>>,
        new: Option<Vec<Node<'a>>>,
        is_open: bool,
    ) -> Result<usize, Undecided> {
        let indexes = |nodes: &[Node<'a>]| nodes.iter().map(|node| node.index()).collect();
        let name: Option<Box<str>> = name.map(Into::into);
        let key = (name.clone(), indexes(&old), new.as_deref().map(indexes), is_open);
        let next = self.places.len();
        let place = *self.known.entry(key).or_insert(next);
        if place == next {
            if next >= MAX_PLACES {
                return Err(Undecided::TooLarge);
            }
            self.places.push(CallPlace::default());
            self.waiting.push(Pair { place, name, old, new, is_open });
        }
        Ok(place)
    }

    fn look_into(&mut self, pair: &Pair<'a>) -> Result<(), Undecided> {
        let old = Applied::of(self.old, &pair.old)?;
        let new = pair.new.as_ref().map(|new| Applied::of(self.new, new)).transpose()?;
        self.visited.0.extend(old.schemas.iter().map(|node| node.index()));
        let new_schemas = new.iter().flat_map(|new| &new.schemas);
        self.visited.1.extend(new_schemas.map(|node| node.index()));
        if new.is_none() {
            // Alternatives are removed together with the place that they were for.
            reach(self.old, pair.old.clone(), &mut self.within.0)?;
        }
        let own = self.compare(pair, &old, new.as_ref())?;
        let mut found = CallPlace { own, is_open: pair.is_open, ..CallPlace::default() };
        found.left_out = self.left_out(own, &old, new.as_ref());
        if own.has(Aspects::BRANCHES) {
            // Nothing below is compared: it all counts as changed together with the place.
            let new = new.iter().flat_map(Applied::declaring);
            found.left_out = found.left_out.with(self.left_out_anywhere(old.declaring(), new)?);
        }
        if own.has(Aspects::GONE) {
            let gone = self.left_out_anywhere(old.declaring(), std::iter::empty())?;
            let is_relied_on = !gone.is_none();
            found.left_out = Aspects::GONE.when(is_relied_on);
        }
        self.look_into_members(pair, &old, new.as_ref(), &mut found)?;
        if let Some(place) = self.places.get_mut(pair.place) {
            *place = found;
        }
        Ok(())
    }

    /// What changed at the place itself.
    fn compare(
        &mut self,
        pair: &Pair<'a>,
        old: &Applied<'a>,
        new: Option<&Applied<'a>>,
    ) -> Result<Aspects, Undecided> {
        let (Some(new), Some(new_place)) = (new, &pair.new) else { return Ok(Aspects::GONE) };
        let title = match (&pair.name, pair.place) {
            (Some(name), _) => Title::OfProperty(name),
            (None, 0) => Title::OfRoot,
            (None, _) => Title::Other,
        };
        // Arguments are an object, even if no definition says so.
        let possible = if pair.place == 0 { OBJECT } else { ALL_TYPES };
        let old_types = types(self.old, &pair.old)? & possible;
        let new_types = types(self.new, new_place)? & possible;
        let is_lost = old_types & !new_types != 0;
        let is_same = self.sameness.of_loose(&old.loose, &new.loose)?;
        self.visit_all(&old.loose, &new.loose)?;
        Ok(Aspects::TEXT
            .when(old.texts(title) != new.texts(title))
            .with(Aspects::DEFAULT.when(old.defaults() != new.defaults()))
            .with(Aspects::TYPE.when(is_lost))
            .with(Aspects::WIDER_TYPE.when(!is_lost && old_types != new_types))
            .with(Aspects::DEPRECATED.when(old.is_deprecated() != new.is_deprecated()))
            .with(Aspects::FORMAT.when(old.formats() != new.formats()))
            .with(Aspects::BRANCHES.when(!is_same)))
    }

    /// Assigns the subschemas of alternatives to the place that the alternatives are for. Either
    /// they are the same on both sides, or they all count as changed with the place.
    fn visit_all(&mut self, old: &Loose<'a>, new: &Loose<'a>) -> Result<(), Undecided> {
        for (schema, loose, within) in
            [(self.old, old, &mut self.within.0), (self.new, new, &mut self.within.1)]
        {
            let parts =
                loose.iter().flat_map(|(keyword, value)| super::schema::parts(keyword, *value));
            reach(schema, parts.collect(), within)?;
        }
        Ok(())
    }

    /// What a call that omits a place relies on: any default in it, and any text about being
    /// omitted.
    fn left_out_anywhere(
        &mut self,
        old: impl Iterator<Item = Node<'a>>,
        new: impl Iterator<Item = Node<'a>>,
    ) -> Result<Aspects, Undecided> {
        let mut found = Aspects::NONE;
        for node in old {
            found = found.with(self.relied.0.of(self.old, node, &mut self.omission_texts)?);
        }
        for node in new {
            found = found.with(self.relied.1.of(self.new, node, &mut self.omission_texts)?);
        }
        Ok(found)
    }

    /// The changes of a remaining place that matter to a call that omits it.
    fn left_out(&mut self, own: Aspects, old: &Applied<'a>, new: Option<&Applied<'a>>) -> Aspects {
        let mut mentions_omission = || {
            let (old, new) = (old.sentences(), new.map(Applied::sentences).unwrap_or_default());
            // The same sentences in another order: any of them may refer to something else now.
            let texts = if old == new { old } else { old.symmetric_difference(new) };
            texts.into_iter().any(|text| self.omission_texts.has(text))
        };
        let text = Aspects::TEXT.when(own.has(Aspects::TEXT) && mentions_omission());
        Aspects::DEFAULT.when(own.has(Aspects::DEFAULT)).with(text)
    }

    fn look_into_members(
        &mut self,
        pair: &Pair<'a>,
        old: &Applied<'a>,
        new: Option<&Applied<'a>>,
        found: &mut CallPlace,
    ) -> Result<(), Undecided> {
        // If the older definition allows anything, there is nothing to compare the new one's schema
        // of a member with.
        let anything: Vec<Node<'a>> = match pair.is_open && new.is_some() {
            true => pair.old.iter().copied().filter(is_anything).collect(),
            false => Vec::new(),
        };
        let is_open = !anything.is_empty();
        let (old_named, new_named) = (named(self.old, Some(old))?, named(self.new, new)?);
        let names: SortedSet<&str> =
            old_named.keys().chain(new_named.keys()).map(AsRef::as_ref).collect();
        for name in names {
            let mut old = old_named.get(name).cloned().unwrap_or_default();
            old.extend(&anything);
            let member = match (old.is_empty(), new_named.get(name)) {
                (false, new) => {
                    CallMember::Declared(self.place(Some(name), old, new.cloned(), is_open)?)
                }
                (true, Some(new)) => {
                    // Nothing compares this member, so everything it says is new with it.
                    reach(self.new, new.clone(), &mut self.within.1)?;
                    let new = new.iter().copied();
                    CallMember::Added(self.left_out_anywhere(std::iter::empty(), new)?)
                }
                (true, None) => continue,
            };
            found.members.insert(name.into(), member);
        }
        let mut further = of_keyword(Some(old), "additionalProperties");
        further.extend(&anything);
        found.further = self.further(further, new)?;
        let (mut items, new_items) = (of_keyword(Some(old), "items"), of_keyword(new, "items"));
        if !items.is_empty() || !new_items.is_empty() {
            items.extend(&anything);
            let new = new.map(|_| new_items);
            found.items = Some(self.place(pair.name.as_deref(), items, new, is_open)?);
        }
        Ok(())
    }

    /// Compares the members that are not declared by name. `old` are the older definition's schemas
    /// for them.
    fn further(
        &mut self,
        old: Vec<Node<'a>>,
        new: Option<&Applied<'a>>,
    ) -> Result<Further, Undecided> {
        let new_further = of_keyword(new, "additionalProperties");
        let is_false = |node: &Node<'a>| node.kind() == Kind::False;
        let is_open = old.iter().any(is_anything);
        let is_silent = new_further.iter().all(|node| is_anything(node) || is_false(node));
        if old.iter().all(is_false) {
            reach(self.new, new_further, &mut self.within.1)?;
            Ok(Further::Undeclared)
        } else if is_silent && old.iter().all(is_anything) {
            reach(self.new, new_further, &mut self.within.1)?;
            Ok(Further::Anything)
        } else {
            Ok(Further::Open(self.place(None, old, new.map(|_| new_further), is_open)?))
        }
    }
}

type Loose<'a> = [(Cow<'a, str>, Node<'a>)];

type Named<'a> = SortedMap<Box<str>, Vec<Node<'a>>>;

fn named<'a>(schema: &Schema<'a>, applied: Option<&Applied<'a>>) -> Result<Named<'a>, Undecided> {
    let mut named = Named::new();
    for part in applied.into_iter().flat_map(Applied::declaring) {
        for (name, property) in properties(part) {
            schema.work.spend(1)?;
            named.get_or_default(name.as_ref().into()).push(property);
        }
    }
    Ok(named)
}

/// The schemas that a keyword holds, from all schemas that apply.
fn of_keyword<'a>(applied: Option<&Applied<'a>>, keyword: &str) -> Vec<Node<'a>> {
    let schemas = applied.into_iter().flat_map(Applied::declaring);
    schemas.filter_map(|schema| schema.get(keyword)).filter(|value| !value.is_array()).collect()
}

fn is_anything(node: &Node<'_>) -> bool {
    node.kind() == Kind::True || node.is_object() && node.members().next().is_none()
}

/// Adds every subschema of some schemas, following references, to the known ones. Returns those
/// that were added.
pub(super) fn reach<'a>(
    schema: &Schema<'a>,
    nodes: Vec<Node<'a>>,
    known: &mut HashSet<u32>,
) -> Result<Vec<Node<'a>>, Undecided> {
    let mut added = Vec::new();
    let mut waiting = nodes;
    while let Some(node) = waiting.pop() {
        schema.work.spend(1)?;
        if !known.insert(node.index()) {
            continue;
        }
        schema.work.spend_on(node)?;
        added.push(node);
        for (name, value) in node.members() {
            match name.as_str().as_deref() {
                Some("$defs" | "definitions") | None => {}
                Some(keyword) if is_reference(keyword) => waiting.push(schema.resolve(value)?),
                Some(keyword) => waiting.extend(super::schema::parts(keyword, value)),
            }
        }
    }
    Ok(added)
}
