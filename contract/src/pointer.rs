//! A place in a JSON value, as a linked chain on the stack. It is written out as a JSON Pointer
//! (RFC 6901) only when it is reported.

use crate::schema::pointer_step;
use std::fmt;

/// The place of a value below the root where a walk began.
#[derive(Debug, Clone, Copy)]
pub enum Pointer<'p> {
    Root,
    Member(&'p Pointer<'p>, &'p str),
    Item(&'p Pointer<'p>, usize),
}

impl Pointer<'_> {
    /// The number of steps from the root.
    pub fn depth(&self) -> usize {
        match self {
            Pointer::Root => 0,
            Pointer::Member(parent, _) | Pointer::Item(parent, _) => 1 + parent.depth(),
        }
    }
}

impl fmt::Display for Pointer<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pointer::Root => Ok(()),
            Pointer::Member(parent, name) => write!(formatter, "{parent}/{}", pointer_step(name)),
            Pointer::Item(parent, index) => write!(formatter, "{parent}/{index}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_written_as_a_pointer_with_escapes() {
        let member = Pointer::Member(&Pointer::Root, "a/b~c");
        let item = Pointer::Item(&member, 3);
        assert_eq!(item.to_string(), "/a~1b~0c/3");
        assert_eq!((Pointer::Root.to_string(), item.depth()), (String::new(), 2));
    }
}
