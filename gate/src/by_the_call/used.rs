//! Looks up what a call uses and omits in the places of a comparison.

use super::aspects::Aspects;
use super::places::{CallMember, CallPlace, Further, Places};
use contract::json::{Kind, Node};

/// What holds a call: a parameter, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Touched<'a> {
    /// The parameter: the first step of the path.
    pub(super) parameter: std::borrow::Cow<'a, str>,
    pub(super) how: How,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// The call uses it, and it changed, or something above or below it did.
    Used(Aspects),
    /// The call omits it and relies on what that means, which changed.
    LeftOut(Aspects),
    /// Only the new definition declares it.
    Added,
    /// Only the new definition declares it, and it changes the meaning of calls that omit it.
    AddedLeftOut,
    /// The approved definition does not declare it.
    Undeclared,
}

/// Everything that holds a call with these arguments; empty if nothing it uses or omits changed.
pub(super) fn touched<'a>(places: &'a Places, arguments: Node<'a>) -> Vec<Touched<'a>> {
    let mut found = Vec::new();
    let Some(root) = places.get(0) else { return found };
    for (name, value) in arguments.members() {
        let parameter = name.as_str().unwrap_or_default();
        let how = match root.members.get(parameter.as_ref()) {
            Some(CallMember::Declared(next)) => used(places, *next, value),
            Some(CallMember::Added(_)) => Some(How::Added),
            None => undeclared(places, root, value),
        };
        found.extend(how.map(|how| Touched { parameter, how }));
    }
    // Few parameters matter when absent, so most calls look none of them up.
    for (name, member) in &root.members {
        let (aspects, how): (_, fn(Aspects) -> How) = match member {
            CallMember::Added(aspects) => (*aspects, |_| How::AddedLeftOut),
            CallMember::Declared(next) => {
                let place = places.get(*next);
                (place.map_or(Aspects::BRANCHES, |place| place.left_out), How::LeftOut)
            }
        };
        if !aspects.is_none() && arguments.get(name).is_none() {
            let how = how(aspects);
            found.push(Touched { parameter: name.as_ref().into(), how });
        }
    }
    found
}

/// Whether a used place or anything in it changed, or the value has undeclared members.
fn used(places: &Places, at: usize, value: Node<'_>) -> Option<How> {
    let Some(place) = places.get(at) else { return Some(How::Used(Aspects::BRANCHES)) };
    match place.within.is_none() {
        true => is_undeclared_in(places, at, value),
        false => Some(How::Used(place.within)),
    }
}

fn undeclared(places: &Places, place: &CallPlace, value: Node<'_>) -> Option<How> {
    match place.further {
        Further::Undeclared => Some(How::Undeclared),
        Further::Anything => None,
        Further::Open(next) => used(places, next, value),
    }
}

/// Whether a value has a member, at any level, that the older definition does not declare.
fn is_undeclared_in(places: &Places, at: usize, value: Node<'_>) -> Option<How> {
    let place = places.get(at)?;
    match value.kind() {
        Kind::Object => value.members().find_map(|(name, value)| {
            match place.members.get(name.as_str().unwrap_or_default().as_ref()) {
                Some(CallMember::Declared(next)) => is_undeclared_in(places, *next, value),
                Some(CallMember::Added(_)) => Some(How::Added),
                None => undeclared(places, place, value),
            }
        }),
        Kind::Array => value.items().find_map(|item| match place.items {
            Some(next) => is_undeclared_in(places, next, item),
            None if place.is_open => None,
            // No schema describes the elements, so none of their members is declared.
            None => has_members(item).then_some(How::Undeclared),
        }),
        Kind::Null | Kind::False | Kind::True | Kind::Number | Kind::String => None,
    }
}

fn has_members(value: Node<'_>) -> bool {
    value.members().next().is_some() || value.items().any(has_members)
}
