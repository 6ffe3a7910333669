//! Whether two schemas say the same, references followed on both sides.

use super::Undecided;
use super::schema::Schema;
use contract::canonical::{Position, canonical};
use contract::json::Node;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

/// The most pairs of subschemas that are compared.
const MAX_WORK: usize = 50_000;

/// Compares subschemas of two documents. Pairs that were compared, or are being compared, count as the same: if they are
/// not, the comparison that met them first says so.
#[derive(Debug)]
pub(super) struct Sameness<'s, 'a> {
    old: &'s Schema<'a>,
    new: &'s Schema<'a>,
    same: HashSet<(u32, u32)>,
    work: usize,
}

impl<'s, 'a> Sameness<'s, 'a> {
    pub(super) fn new(old: &'s Schema<'a>, new: &'s Schema<'a>) -> Sameness<'s, 'a> {
        Sameness { old, new, same: HashSet::new(), work: 0 }
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
        // What a comparison assumes that fails must not be believed by the next one.
        let before = self.same.clone();
        for ((old_keyword, old), (new_keyword, new)) in old.iter().zip(new) {
            let position = Position::of_keyword(old_keyword);
            if old_keyword != new_keyword || !self.of_values(*old, *new, position)? {
                self.same = before;
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
        self.work += 1;
        if self.work > MAX_WORK {
            return Err(Undecided::TooLarge);
        }
        match position {
            Position::Plain | Position::Set => {
                Ok(canonical(old, position) == canonical(new, position))
            }
            _ if old.is_array() && new.is_array() => {
                let is_schemas = position == Position::SchemaList;
                let (old_items, new_items): (Vec<_>, Vec<_>) =
                    (old.items().collect(), new.items().collect());
                if !is_schemas || old_items.len() != new_items.len() {
                    return Ok(canonical(old, position) == canonical(new, position) && !is_schemas);
                }
                for (old, new) in old_items.into_iter().zip(new_items) {
                    if !self.of_values(old, new, Position::Schema)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            _ if old.is_object() && new.is_object() => self.of_objects(old, new, position),
            _ => Ok(canonical(old, position) == canonical(new, position)),
        }
    }

    fn of_objects(
        &mut self,
        old: Node<'a>,
        new: Node<'a>,
        position: Position,
    ) -> Result<bool, Undecided> {
        let is_schema = matches!(position, Position::Schema | Position::SchemaList);
        if is_schema && !self.same.insert((old.index(), new.index())) {
            return Ok(true);
        }
        let members = |node: Node<'a>| -> BTreeMap<Cow<'a, str>, Node<'a>> {
            let members = node.members();
            members.map(|(name, value)| (name.as_str().unwrap_or_default(), value)).collect()
        };
        let (old_members, new_members) = (members(old), members(new));
        if !old_members.keys().eq(new_members.keys()) {
            return Ok(false);
        }
        for ((name, old), new) in old_members.into_iter().zip(new_members.into_values()) {
            let is_same = match (is_schema, name.as_ref()) {
                (true, "$ref") => {
                    let (old, new) = (self.old.resolve(old)?, self.new.resolve(new)?);
                    self.of_values(old, new, Position::Schema)?
                }
                // What refers to a definition is compared with it.
                (true, "$defs" | "definitions") => true,
                (true, keyword) => self.of_values(old, new, Position::of_keyword(keyword))?,
                (false, _) if old.is_array() => {
                    canonical(old, Position::Set) == canonical(new, Position::Set)
                }
                (false, _) => self.of_values(old, new, Position::Schema)?,
            };
            if !is_same {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
