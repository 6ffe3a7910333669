//! The members that an input schema declares at each place of a call, over references and
//! combinators.
//!
//! If it declares none by name, or allows additional members, every member counts as declared.

use super::{InputRule, Violation};
use crate::by_the_call::Undecided;
use crate::by_the_call::applied::Applied;
use crate::by_the_call::schema::{Schema, parts, properties};
use contract::json::{Kind, Node};
use contract::pointer::Pointer;
use contract::sorted::SortedMap;
use std::collections::HashMap;

/// The most places of one schema.
const MAX_PLACES: usize = 10_000;

/// All places of a call. The first one is the arguments as a whole.
#[derive(Debug)]
pub(super) struct Declared(Vec<DeclaredPlace>);

#[derive(Debug, Default)]
struct DeclaredPlace {
    members: HashMap<Box<str>, usize>,
    /// Unnamed members are declared too.
    is_open: bool,
    /// The place of those members.
    further: Option<usize>,
    items: Option<usize>,
}

impl Declared {
    /// The bounds of the schema have been checked.
    pub(super) fn of(schema: &Schema<'_>) -> Result<Declared, Undecided> {
        let mut walk = Walk { schema, places: Vec::new(), known: HashMap::new(), waiting: vec![] };
        walk.place(vec![schema.root])?;
        while let Some((place, nodes)) = walk.waiting.pop() {
            walk.look_into(place, &nodes)?;
        }
        Ok(Declared(walk.places))
    }

    pub(super) fn check(&self, arguments: Node<'_>) -> Result<(), Violation> {
        self.check_at(0, arguments, &Pointer::Root)
    }

    fn check_at(&self, at: usize, value: Node<'_>, path: &Pointer<'_>) -> Result<(), Violation> {
        let Some(place) = self.0.get(at) else { return Ok(()) };
        match value.kind() {
            Kind::Object => {
                for (name, value) in value.members() {
                    let name = name.as_str().unwrap_or_default();
                    let path = Pointer::Member(path, &name);
                    let next = match place.members.get(name.as_ref()) {
                        Some(next) => Some(*next),
                        None if place.is_open => place.further,
                        None => return Err(Violation::new(&path, InputRule::Declared)),
                    };
                    next.map_or(Ok(()), |next| self.check_at(next, value, &path))?;
                }
                Ok(())
            }
            Kind::Array => {
                let Some(items) = place.items else { return Ok(()) };
                let mut all = value.items().enumerate();
                all.try_for_each(|(n, item)| self.check_at(items, item, &Pointer::Item(path, n)))
            }
            Kind::Null | Kind::False | Kind::True | Kind::Number | Kind::String => Ok(()),
        }
    }
}

struct Walk<'s, 'a> {
    schema: &'s Schema<'a>,
    places: Vec<DeclaredPlace>,
    known: HashMap<Vec<u32>, usize>,
    waiting: Vec<(usize, Vec<Node<'a>>)>,
}

impl<'a> Walk<'_, 'a> {
    /// The place where these schemas apply. A new place is queued and visited later.
    fn place(&mut self, nodes: Vec<Node<'a>>) -> Result<usize, Undecided> {
        let mut key: Vec<u32> = nodes.iter().map(|node| node.index()).collect();
        key.sort_unstable();
        key.dedup();
        let next = self.places.len();
        let place = *self.known.entry(key).or_insert(next);
        if place == next {
            if next >= MAX_PLACES {
                return Err(Undecided::TooLarge);
            }
            self.places.push(DeclaredPlace::default());
            self.waiting.push((place, nodes));
        }
        Ok(place)
    }

    fn look_into(&mut self, at: usize, nodes: &[Node<'a>]) -> Result<(), Undecided> {
        let applied = Applied::of(self.schema, nodes)?;
        let mut named: SortedMap<Box<str>, Vec<Node<'a>>> = SortedMap::new();
        let (mut further, mut items) = (Vec::new(), Vec::new());
        let mut is_open = false;
        // A condition declares the members that it tests.
        let conditions = applied.loose.iter().filter(|(keyword, _)| keyword == "if");
        let conditions = conditions.map(|(_, condition)| *condition);
        for node in applied.declaring().chain(conditions) {
            for (name, property) in properties(node) {
                self.schema.work.spend(1)?;
                named.get_or_default(name.as_ref().into()).push(property);
            }
            for (keyword, value) in node.members() {
                let keyword = keyword.as_str().unwrap_or_default();
                match keyword.as_ref() {
                    "additionalProperties" | "unevaluatedProperties" | "patternProperties" => {
                        let said = parts(&keyword, value);
                        is_open |= said.iter().any(|part| part.kind() != Kind::False);
                        further.extend(said);
                    }
                    "items" | "prefixItems" | "additionalItems" | "unevaluatedItems" => {
                        items.extend(parts(&keyword, value));
                    }
                    _ => {}
                }
            }
        }
        let mut found =
            DeclaredPlace { is_open: is_open || named.is_empty(), ..DeclaredPlace::default() };
        for (name, mut schemas) in named {
            // Schemas for members by pattern may apply to a named one too.
            schemas.extend(&further);
            found.members.insert(name, self.place(schemas)?);
        }
        found.further = (!further.is_empty()).then(|| self.place(further)).transpose()?;
        found.items = (!items.is_empty()).then(|| self.place(items)).transpose()?;
        if let Some(place) = self.places.get_mut(at) {
            *place = found;
        }
        Ok(())
    }
}
