//! Counts the work for deciding on the calls of one change. All steps share it, and a schema that
//! needs more is undecided, which holds the tool.

use super::Undecided;
use contract::json::{Kind, Node};
use std::cell::Cell;
use std::rc::Rc;

/// The base work for every change, and the allowance for each value of its schemas and for each
/// unit of their bytes. A unit is about the work of visiting one member of a schema. Real changes
/// take less than a quarter of it.
const UNITS: u64 = 20_000;
const UNITS_PER_VALUE: u64 = 4;
const UNITS_PER_BYTES: u64 = 2;
/// Additional work for checking arguments against one schema. Its bounds are checked once per
/// definition, and a tool whose definition is undecided cannot be called at all: real schemas of
/// nested messages take some hundred thousand units.
const INPUT_UNITS: u64 = 1_000_000;
/// This many bytes of text cost one unit.
const BYTES_PER_UNIT: u64 = 16;

/// The work that is left. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Work(Rc<Cell<u64>>);

impl Work {
    /// The work allowed for these schemas together.
    pub(super) fn on(schemas: &[Node<'_>]) -> Work {
        let of = |schema: &Node<'_>| {
            let bytes = schema.raw().len() as u64 / BYTES_PER_UNIT;
            u64::from(schema.size()) * UNITS_PER_VALUE + bytes * UNITS_PER_BYTES
        };
        Work(Rc::new(Cell::new(UNITS + schemas.iter().map(of).sum::<u64>())))
    }

    /// The work allowed for compiling one schema to check arguments.
    pub(super) fn on_input(schema: Node<'_>) -> Work {
        let Work(left) = Work::on(&[schema]);
        left.set(left.get().saturating_add(INPUT_UNITS));
        Work(left)
    }

    pub(super) fn spend(&self, units: usize) -> Result<(), Undecided> {
        let left = self.0.get().checked_sub(units as u64);
        self.0.set(left.unwrap_or(0));
        left.map(|_| ()).ok_or(Undecided::TooMuchWork)
    }

    /// Spends the cost of visiting the members of a subschema and comparing its texts, excluding
    /// nested subschemas.
    pub(super) fn spend_on(&self, schema: Node<'_>) -> Result<(), Undecided> {
        let cost = |(name, value): (Node<'_>, Node<'_>)| {
            let is_text =
                value.kind() == Kind::String || name.is_text("default") || name.is_text("examples");
            1 + if is_text { bytes(value) } else { 0 }
        };
        self.spend(1 + schema.members().map(cost).sum::<usize>())
    }

    /// Spends the cost of traversing a whole value.
    pub(super) fn spend_on_all(&self, value: Node<'_>) -> Result<(), Undecided> {
        self.spend(value.size() as usize + bytes(value))
    }
}

fn bytes(value: Node<'_>) -> usize {
    value.raw().len() / BYTES_PER_UNIT as usize
}
