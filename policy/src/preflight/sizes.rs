//! How long the texts, lists and objects of a call may be.

use contract::json::{Kind, Node};
use contract::pointer::Pointer;

/// What arguments may be at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeLimits {
    /// Of a text, unescaped, and of a member's name.
    pub string_bytes: usize,
    /// Of a list, and members of an object.
    pub array_items: usize,
}

impl Default for SizeLimits {
    fn default() -> Self {
        SizeLimits { string_bytes: 1024 * 1024, array_items: 10_000 }
    }
}

/// What is over its limit, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooBig {
    pub pointer: String,
    /// The key of the limit.
    pub limit: &'static str,
    pub most: usize,
}

impl SizeLimits {
    pub fn check(&self, arguments: Node<'_>) -> Result<(), TooBig> {
        // A call within both limits as a whole is not looked through: its size is that of its bytes.
        let is_small = arguments.raw().len() <= self.string_bytes
            && arguments.size() as usize <= self.array_items;
        if is_small { Ok(()) } else { self.look(arguments, &Pointer::Root) }
    }

    fn look(&self, value: Node<'_>, at: &Pointer<'_>) -> Result<(), TooBig> {
        let SizeLimits { string_bytes, array_items } = *self;
        let long = |at: &Pointer<'_>| TooBig {
            pointer: at.to_string(),
            limit: "string_bytes",
            most: string_bytes,
        };
        let many = || TooBig { pointer: at.to_string(), limit: "array_items", most: array_items };
        match value.kind() {
            Kind::String => match value.as_str().is_some_and(|text| text.len() > string_bytes) {
                true => Err(long(at)),
                false => Ok(()),
            },
            Kind::Array => value.items().enumerate().try_for_each(|(n, item)| match n {
                n if n >= array_items => Err(many()),
                n => self.look(item, &Pointer::Item(at, n)),
            }),
            Kind::Object => value.members().enumerate().try_for_each(|(n, (name, member))| {
                let name = name.as_str().unwrap_or_default();
                let inside = Pointer::Member(at, &name);
                match n {
                    n if n >= array_items => Err(many()),
                    _ if name.len() > string_bytes => Err(long(&inside)),
                    _ => self.look(member, &inside),
                }
            }),
            Kind::Null | Kind::False | Kind::True | Kind::Number => Ok(()),
        }
    }
}
