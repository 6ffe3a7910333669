//! Types, allowed values, and the bounds of numbers, strings, arrays and objects.

use super::compare::{Comparison, Side};
use super::document::Place;
use super::type_set::TypeSet;
use super::view::{AllowedValues, View};
use crate::canonical::{Position, canonical};
use crate::change::ChangeKind;
use crate::decimal::Decimal;
use crate::detail::{Detail, LimitChange, LimitValue, Limited, Listed, TypeChange, ValueChange};
use crate::json::Kind;
use crate::sorted::SortedMap;
use std::cmp::Ordering;

/// A limit that values must keep to, if the schema sets one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Bound {
    value: Decimal,
    is_exclusive: bool,
}

/// Which way a limit points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    AtLeast,
    AtMost,
}

impl Bound {
    /// The inclusive bound that admits the same integers, if it is small enough.
    fn of_integers(&self, direction: Direction) -> Option<Bound> {
        let whole = self.value.is_integer();
        let value = match direction {
            Direction::AtLeast if self.is_exclusive && whole => {
                self.value.floor()?.checked_add(1)?
            }
            Direction::AtLeast => self.value.ceiling()?,
            Direction::AtMost if self.is_exclusive && whole => {
                self.value.floor()?.checked_sub(1)?
            }
            Direction::AtMost => self.value.floor()?,
        };
        Some(Bound { value: Decimal::parse(&value.to_string()), is_exclusive: false })
    }
}

impl Direction {
    /// Compares two bounds: whether the new one refuses more, less or the same.
    fn tightening(self, old: &Bound, new: &Bound) -> Ordering {
        let by_value = match self {
            Direction::AtLeast => new.value.cmp(&old.value),
            Direction::AtMost => old.value.cmp(&new.value),
        };
        by_value.then(new.is_exclusive.cmp(&old.is_exclusive))
    }
}

/// The limits of one kind of value: the keywords, the types they apply to, and the value that means
/// no limit.
struct Limit {
    of: Limited,
    keyword: &'static str,
    exclusive: Option<&'static str>,
    direction: Direction,
    types: TypeSet,
    says_nothing: Option<i128>,
}

const LIMITS: [Limit; 8] = [
    limit(
        Limited::Minimum,
        "minimum",
        Some("exclusiveMinimum"),
        Direction::AtLeast,
        TypeSet::NUMBER,
    ),
    limit(
        Limited::Maximum,
        "maximum",
        Some("exclusiveMaximum"),
        Direction::AtMost,
        TypeSet::NUMBER,
    ),
    limit(Limited::MinLength, "minLength", None, Direction::AtLeast, TypeSet::STRING),
    limit(Limited::MaxLength, "maxLength", None, Direction::AtMost, TypeSet::STRING),
    limit(Limited::MinItems, "minItems", None, Direction::AtLeast, TypeSet::ARRAY),
    limit(Limited::MaxItems, "maxItems", None, Direction::AtMost, TypeSet::ARRAY),
    limit(Limited::MinProperties, "minProperties", None, Direction::AtLeast, TypeSet::OBJECT),
    limit(Limited::MaxProperties, "maxProperties", None, Direction::AtMost, TypeSet::OBJECT),
];

const fn limit(
    of: Limited,
    keyword: &'static str,
    exclusive: Option<&'static str>,
    direction: Direction,
    types: TypeSet,
) -> Limit {
    let is_count = exclusive.is_none();
    let says_nothing = match direction {
        Direction::AtLeast if is_count => Some(0),
        _ => None,
    };
    Limit { of, keyword, exclusive, direction, types, says_nothing }
}

impl Limit {
    /// The bounds that a schema sets, with their places.
    fn bounds<'a>(&self, view: &View<'a>) -> Vec<(Bound, Place<'a>)> {
        let nothing = self.says_nothing.map(|value| Decimal::parse(&value.to_string()));
        let keywords = std::iter::once(self.keyword).chain(self.exclusive);
        let bounds = keywords.filter_map(|keyword| {
            let place = view.keywords.get(keyword)?.clone();
            let value = Decimal::parse(place.node.raw());
            Some((Bound { value, is_exclusive: Some(keyword) == self.exclusive }, place))
        });
        let says_something =
            |bound: &Bound| nothing.as_ref().is_none_or(|nothing| bound.value > *nothing);
        bounds.filter(|(bound, _)| says_something(bound)).collect()
    }
}

/// Whether two equivalent bounds use a different keyword or a different spelling of the number.
fn is_spelled_differently(
    old: &Option<(Bound, Place<'_>)>,
    new: &Option<(Bound, Place<'_>)>,
) -> bool {
    let spelled = |bound: &Option<(Bound, Place<'_>)>| {
        bound.as_ref().map(|(_, place)| (place.path.last(), Decimal::parse(place.node.raw())))
    };
    spelled(old) != spelled(new)
}

/// The values of one list that the other list lacks.
fn listed_without(list: Option<&AllowedValues>, other: Option<&AllowedValues>) -> Listed {
    let is_missing = |value: &&Vec<u8>| other.is_none_or(|other| !other.contains_key(*value));
    Listed::of(list.into_iter().flat_map(SortedMap::keys).filter(is_missing))
}

/// Whether every number that a schema accepts is an integer, because of its types, its listed
/// values or its `multipleOf`.
fn admits_integers_only(view: &View<'_>, types: TypeSet) -> bool {
    let is_whole = |place: &Place<'_>| {
        let is_number = place.node.kind() == Kind::Number;
        let step = Decimal::parse(place.node.raw());
        is_number && step.is_integer() && !step.is_zero() && !step.is_negative()
    };
    types.intersection(TypeSet::NUMBER).is_within(TypeSet::INTEGER)
        || view.keywords.get("multipleOf").is_some_and(is_whole)
}

impl<'a> Comparison<'a> {
    pub(super) fn types(&mut self, old: &View<'a>, new: &View<'a>, old_types: TypeSet) {
        let new_types = self.effective_types(Side::New, new);
        let place = |view: &View<'a>| view.type_place.clone().unwrap_or_else(|| view.place.clone());
        let (before, after) = (place(old), place(new));
        // Types excluded by `enum` and `const` are reported as values, not as types.
        if !old_types.is_within(new.types) {
            let detail = TypeChange { before: old_types.names(), after: new.types.names() };
            let kind = ChangeKind::TypeChanged;
            self.report_detail(kind, Some(&before), Some(&after), Detail::Types(detail));
        } else if !new.types.is_within(old.types) && !new_types.is_within(old_types) {
            let detail = TypeChange { before: old_types.names(), after: new_types.names() };
            let kind = ChangeKind::TypeWidened;
            self.report_detail(kind, Some(&before), Some(&after), Detail::Types(detail));
        }
    }

    pub(super) fn values(&mut self, old: &View<'a>, new: &View<'a>, old_types: TypeSet) {
        let (before, after) = (old.values.first(), new.values.first());
        self.charge(old.values_weight() + new.values_weight());
        if self.work == 0 {
            return;
        }
        let (was, is) = (old.allowed_values(), new.allowed_values());
        let detail = Detail::Values(ValueChange {
            was_listed: was.is_some(),
            is_listed: is.is_some(),
            removed: listed_without(was.as_ref(), is.as_ref()),
            added: listed_without(is.as_ref(), was.as_ref()),
        });
        let mut report = |kind: ChangeKind| self.report_detail(kind, before, after, detail.clone());
        match (was, is) {
            (None, None) => {}
            (Some(_), None) => report(ChangeKind::EnumValuesAdded),
            (None, Some(allowed)) => {
                // Types with few values may be listed in full.
                let is_listed = |value: &[u8]| allowed.contains_key(value);
                let is_complete = old_types.each().all(|one| match one {
                    TypeSet::NULL => is_listed(b"null"),
                    TypeSet::BOOLEAN => is_listed(b"true") && is_listed(b"false"),
                    _ => false,
                });
                if !is_complete {
                    report(ChangeKind::EnumValuesRemoved);
                }
            }
            (Some(old_allowed), Some(new_allowed)) => {
                if old_allowed.keys().any(|value| !new_allowed.contains_key(value)) {
                    report(ChangeKind::EnumValuesRemoved);
                }
                if new_allowed.keys().any(|value| !old_allowed.contains_key(value)) {
                    report(ChangeKind::EnumValuesAdded);
                }
            }
        }
    }

    pub(super) fn bounds(&mut self, old: &View<'a>, new: &View<'a>, old_types: TypeSet) {
        for limit in &LIMITS {
            // A limit that disappears together with its type is part of the type's change.
            let is_type_gone = !new.types.overlaps(limit.types);
            let is_limit_gone = !new.keywords.contains_key(limit.keyword);
            if old_types.overlaps(limit.types) && !(is_type_gone && is_limit_gone) {
                self.limit(limit, old, new, admits_integers_only(old, old_types));
            }
        }
        if old_types.overlaps(TypeSet::NUMBER) {
            self.multiple_of(old, new);
        }
        if old_types.overlaps(TypeSet::STRING) {
            self.word("pattern", old, new);
        }
        // Formats apply to strings, and some (`int32`) to numbers.
        if old_types.overlaps(TypeSet::STRING.union(TypeSet::NUMBER)) {
            self.word("format", old, new);
        }
        if old_types.overlaps(TypeSet::ARRAY) {
            self.unique_items(old, new);
        }
    }

    /// `is_of_integers` means that the old schema admits no number but integers, so bounds are
    /// compared by the integers that they admit.
    fn limit(&mut self, limit: &Limit, old: &View<'a>, new: &View<'a>, is_of_integers: bool) {
        let keywords = || std::iter::once(limit.keyword).chain(limit.exclusive);
        let places = |view: &View<'a>| -> Vec<Place<'a>> {
            keywords().filter_map(|keyword| view.keywords.get(keyword).cloned()).collect()
        };
        let (before, after) = (places(old), places(new));
        let is_number = |place: &Place<'a>| place.node.kind() == Kind::Number;
        if !before.iter().chain(&after).all(is_number) {
            let form = |places: &[Place<'a>]| -> Vec<_> {
                places.iter().map(|place| canonical(place.node, Position::Plain)).collect()
            };
            if form(&before) != form(&after) {
                self.report_change(ChangeKind::DeepSchemaUndiffable, before.first(), after.first());
            }
            return;
        }
        let (mut old_bounds, mut new_bounds) = (limit.bounds(old), limit.bounds(new));
        if is_of_integers && limit.exclusive.is_some() {
            let whole = |bounds: &[(Bound, Place<'a>)]| -> Option<Vec<(Bound, Place<'a>)>> {
                let bounds = bounds.iter().map(|(bound, place)| {
                    Some((bound.of_integers(limit.direction)?, place.clone()))
                });
                bounds.collect()
            };
            // Bounds that are too large to convert are left unchanged on both sides.
            if let (Some(old), Some(new)) = (whole(&old_bounds), whole(&new_bounds)) {
                (old_bounds, new_bounds) = (old, new);
            }
        }
        let tightest = |bounds: Vec<(Bound, Place<'a>)>| {
            let order = |left: &Bound, right: &Bound| limit.direction.tightening(right, left);
            bounds.into_iter().max_by(|left, right| order(&left.0, &right.0))
        };
        let (before, after) = (tightest(old_bounds), tightest(new_bounds));
        let kind = match (&before, &after) {
            (None, None) => return,
            (None, Some(_)) => ChangeKind::ConstraintNarrowed,
            (Some(_), None) => ChangeKind::ConstraintWidened,
            (Some((old, _)), Some((new, _))) => match limit.direction.tightening(old, new) {
                Ordering::Greater => ChangeKind::ConstraintNarrowed,
                Ordering::Less => ChangeKind::ConstraintWidened,
                // A different keyword or a different spelling of the number, with the same effect.
                Ordering::Equal if is_spelled_differently(&before, &after) => {
                    ChangeKind::MetadataChanged
                }
                Ordering::Equal => return,
            },
        };
        let value = |bound: &Option<(Bound, Place<'a>)>| {
            bound.as_ref().map(|(bound, _)| LimitValue {
                number: bound.value.to_string(),
                is_exclusive: bound.is_exclusive,
            })
        };
        let change = LimitChange { of: limit.of, before: value(&before), after: value(&after) };
        let place = |bound: Option<(Bound, Place<'a>)>| bound.map(|(_, place)| place);
        let (before, after) = (place(before), place(after));
        self.report_detail(kind, before.as_ref(), after.as_ref(), Detail::Limit(change));
    }

    fn multiple_of(&mut self, old: &View<'a>, new: &View<'a>) {
        let (before, after) = (old.keywords.get("multipleOf"), new.keywords.get("multipleOf"));
        let value = |place: &Place<'a>| Decimal::parse(place.node.raw());
        let is_number = |place: &&Place<'a>| place.node.kind() == Kind::Number;
        let kind = match (before, after) {
            (None, None) => return,
            _ if !before.iter().chain(&after).all(is_number) => {
                let form = |place: &Place<'a>| canonical(place.node, Position::Plain);
                if before.map(form) == after.map(form) {
                    return;
                }
                ChangeKind::DeepSchemaUndiffable
            }
            (None, Some(_)) => ChangeKind::ConstraintNarrowed,
            (Some(_), None) => ChangeKind::ConstraintWidened,
            (Some(before), Some(after)) if value(before) == value(after) => return,
            (Some(before), Some(after)) => {
                match (value(before).to_i128(), value(after).to_i128()) {
                    (Some(before), Some(after)) if after > 0 && before % after == 0 => {
                        ChangeKind::ConstraintWidened
                    }
                    _ => ChangeKind::ConstraintNarrowed,
                }
            }
        };
        self.report_keyword(kind, before, after);
    }

    /// Compares `pattern` or `format`: the values are either equal or not.
    fn word(&mut self, keyword: &str, old: &View<'a>, new: &View<'a>) {
        let (before, after) = (old.keywords.get(keyword), new.keywords.get(keyword));
        let words = before.iter().chain(&after);
        self.charge(words.map(|place| place.node.weight()).sum());
        let form = |place: &Place<'a>| canonical(place.node, Position::Plain);
        let kind = match (before, after) {
            (None, None) => return,
            (Some(before), Some(after)) if form(before) == form(after) => return,
            (Some(_), None) => ChangeKind::ConstraintWidened,
            _ => ChangeKind::ConstraintNarrowed,
        };
        self.report_keyword(kind, before, after);
    }

    fn unique_items(&mut self, old: &View<'a>, new: &View<'a>) {
        let (before, after) = (old.keywords.get("uniqueItems"), new.keywords.get("uniqueItems"));
        let is_asked = |place: Option<&Place<'a>>| place.map(|place| place.node.as_bool());
        let kind = match (is_asked(before), is_asked(after)) {
            (Some(None), _) | (_, Some(None)) => ChangeKind::DeepSchemaUndiffable,
            (Some(Some(true)), Some(Some(true))) => return,
            (_, Some(Some(true))) => ChangeKind::ConstraintNarrowed,
            (Some(Some(true)), _) => ChangeKind::ConstraintWidened,
            _ => return,
        };
        if kind == ChangeKind::DeepSchemaUndiffable
            && before.map(|place| place.node.raw()) == after.map(|place| place.node.raw())
        {
            return;
        }
        self.report_keyword(kind, before, after);
    }

    fn report_keyword(
        &mut self,
        kind: ChangeKind,
        before: Option<&Place<'a>>,
        after: Option<&Place<'a>>,
    ) {
        self.report_detail(kind, before, after, Detail::Keyword);
    }
}
