//! JSON Schema's types as a set. `number` is `integer` plus the non-integers, so inclusion is a
//! subset test.

use crate::decimal::Decimal;
use crate::detail::TypeChange;
use crate::json::{Kind, Node};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TypeSet(u8);

impl TypeSet {
    pub(super) const NONE: TypeSet = TypeSet(0);
    pub(super) const NULL: TypeSet = TypeSet(1);
    pub(super) const BOOLEAN: TypeSet = TypeSet(2);
    pub(super) const OBJECT: TypeSet = TypeSet(4);
    pub(super) const ARRAY: TypeSet = TypeSet(8);
    pub(super) const STRING: TypeSet = TypeSet(16);
    pub(super) const INTEGER: TypeSet = TypeSet(32);
    const FRACTION: TypeSet = TypeSet(64);
    pub(super) const NUMBER: TypeSet = TypeSet(32 | 64);
    pub(super) const ALL: TypeSet = TypeSet(127);

    /// Reads the value of `type`. Returns `None` if it is not a type of JSON Schema.
    pub(super) fn parse(node: Node<'_>) -> Option<TypeSet> {
        if node.is_array() {
            return node.items().try_fold(TypeSet::NONE, |set, item| {
                Some(set.union(TypeSet::named(&item.as_str()?)?))
            });
        }
        TypeSet::named(&node.as_str()?)
    }

    fn named(name: &str) -> Option<TypeSet> {
        Some(match name {
            "null" => TypeSet::NULL,
            "boolean" => TypeSet::BOOLEAN,
            "object" => TypeSet::OBJECT,
            "array" => TypeSet::ARRAY,
            "string" => TypeSet::STRING,
            "integer" => TypeSet::INTEGER,
            "number" => TypeSet::NUMBER,
            _ => return None,
        })
    }

    /// The type of a value.
    pub(super) fn of_value(node: Node<'_>) -> TypeSet {
        match node.kind() {
            Kind::Null => TypeSet::NULL,
            Kind::False | Kind::True => TypeSet::BOOLEAN,
            Kind::Number if Decimal::parse(node.raw()).is_integer() => TypeSet::INTEGER,
            Kind::Number => TypeSet::FRACTION,
            Kind::String => TypeSet::STRING,
            Kind::Array => TypeSet::ARRAY,
            Kind::Object => TypeSet::OBJECT,
        }
    }

    pub(super) const fn union(self, other: TypeSet) -> TypeSet {
        TypeSet(self.0 | other.0)
    }

    pub(super) const fn intersection(self, other: TypeSet) -> TypeSet {
        TypeSet(self.0 & other.0)
    }

    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) const fn is_within(self, other: TypeSet) -> bool {
        self.0 & !other.0 == 0
    }

    pub(super) const fn overlaps(self, other: TypeSet) -> bool {
        self.0 & other.0 != 0
    }

    /// The names of the types in the set, as in [`TypeChange::ALL`]. `integer` is named only if
    /// `number` is not.
    pub(super) fn names(self) -> Vec<&'static str> {
        let named = |name: &&'static str| match *name {
            "string" => self.overlaps(TypeSet::STRING),
            "number" => self.overlaps(TypeSet::NUMBER),
            "boolean" => self.overlaps(TypeSet::BOOLEAN),
            "object" => self.overlaps(TypeSet::OBJECT),
            "array" => self.overlaps(TypeSet::ARRAY),
            _ => self.overlaps(TypeSet::NULL),
        };
        let spelled = |name: &'static str| match name {
            "number" if !self.overlaps(TypeSet::FRACTION) => "integer",
            _ => name,
        };
        TypeChange::ALL.into_iter().filter(named).map(spelled).collect()
    }

    /// Each type in the set, as a set with one member.
    pub(super) fn each(self) -> impl Iterator<Item = TypeSet> {
        (0..7).map(|bit| TypeSet(1 << bit)).filter(move |one| one.is_within(self))
    }
}
