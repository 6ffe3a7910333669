//! Whether two schemas are equivalent, following references on both sides.

use super::Undecided;
use super::schema::{Schema, is_reference};
use contract::canonical::{Position, canonical};
use contract::json::Node;
use contract::sorted::SortedMap;
use std::borrow::Cow;
use std::collections::HashSet;

/// Compares subschemas of two documents. Pairs that were compared, or are being compared, count as
/// equivalent: if they are not, the comparison that reached them first reports it.
#[derive(Debug)]
pub(super) struct Sameness<'s, 'a> {
    old: &'s Schema<'a>,
    new: &'s Schema<'a>,
    same: HashSet<(u32, u32)>,
    /// The pairs that the current comparison assumes to be equivalent.
    assumed: Vec<(u32, u32)>,
}

impl<'s, 'a> Sameness<'s, 'a> {
    pub(super) fn new(old: &'s Schema<'a>, new: &'s Schema<'a>) -> Sameness<'s, 'a> {
        Sameness { old, new, same: HashSet::new(), assumed: Vec::new() }
    }

    /// Whether alternatives and conditions are the same, in the same order.
    pub(super) fn of_loose(
        &mut self,
        old: &[(Cow<'a, str>, Node<'a>)],
        new: &[(Cow<'a, str>, Node<'a>)],
    ) -> Result<bool, Undecided> {
        if old.len() != new.len() {
            return Ok(false);
        }
        // A failed comparison may have made wrong assumptions, so the next one must not reuse them.
        self.assumed.clear();
        for ((old_keyword, old), (new_keyword, new)) in old.iter().zip(new) {
            let position = Position::of_keyword(old_keyword);
            if old_keyword != new_keyword || !self.of_values(*old, *new, position)? {
                for pair in self.assumed.drain(..) {
                    self.same.remove(&pair);
                }
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn of_values(
        &mut self,
        old: Node<'a>,
        new: Node<'a>,
        position: Position,
    ) -> Result<bool, Undecided> {
        self.old.work.spend(1)?;
        match position {
            Position::Plain | Position::Set => self.of_canonical(old, new, position),
            _ if old.is_array() && new.is_array() => {
                let is_schemas = position == Position::SchemaList;
                let (old_items, new_items): (Vec<_>, Vec<_>) =
                    (old.items().collect(), new.items().collect());
                if !is_schemas || old_items.len() != new_items.len() {
                    return Ok(!is_schemas && self.of_canonical(old, new, position)?);
                }
                for (old, new) in old_items.into_iter().zip(new_items) {
                    if !self.of_values(old, new, Position::Schema)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            _ if old.is_object() && new.is_object() => self.of_objects(old, new, position),
            _ => self.of_canonical(old, new, position),
        }
    }

    fn of_canonical(
        &self,
        old: Node<'a>,
        new: Node<'a>,
        position: Position,
    ) -> Result<bool, Undecided> {
        self.old.work.spend_on_all(old)?;
        self.new.work.spend_on_all(new)?;
        Ok(canonical(old, position) == canonical(new, position))
    }

    fn of_objects(
        &mut self,
        old: Node<'a>,
        new: Node<'a>,
        position: Position,
    ) -> Result<bool, Undecided> {
        let is_schema = matches!(position, Position::Schema | Position::SchemaList);
        if is_schema {
            let pair = (old.index(), new.index());
            if !self.same.insert(pair) {
                return Ok(true);
            }
            self.assumed.push(pair);
        }
        self.old.work.spend_on(old)?;
        self.new.work.spend_on(new)?;
        let members = |node: Node<'a>| -> SortedMap<Cow<'a, str>, Node<'a>> {
            let members = node.members();
            members.map(|(name, value)| (name.as_str().unwrap_or_default(), value)).collect()
        };
        let (old_members, new_members) = (members(old), members(new));
        if !old_members.keys().eq(new_members.keys()) {
            return Ok(false);
        }
        for ((name, old), new) in old_members.into_iter().zip(new_members.into_values()) {
            let is_same = match (is_schema, name.as_ref()) {
                (true, keyword) if is_reference(keyword) => {
                    let (old, new) = (self.old.resolve(old)?, self.new.resolve(new)?);
                    self.of_values(old, new, Position::Schema)?
                }
                // Definitions are compared when a reference to them is compared.
                (true, "$defs" | "definitions") => true,
                (true, keyword) => self.of_values(old, new, Position::of_keyword(keyword))?,
                (false, _) if old.is_array() => self.of_canonical(old, new, Position::Set)?,
                (false, _) => self.of_values(old, new, Position::Schema)?,
            };
            if !is_same {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
