//! Size limits for the texts, lists and objects of a call.

use contract::json::{Kind, Node};
use contract::pointer::Pointer;

/// The size limits for arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeLimits {
    /// The longest unescaped text or member name.
    pub string_bytes: usize,
    /// The most items in a list, or members in an object.
    pub array_items: usize,
}

impl Default for SizeLimits {
    fn default() -> Self {
        SizeLimits { string_bytes: 1024 * 1024, array_items: 10_000 }
    }
}

/// The limit that is exceeded, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooBig {
    pub pointer: String,
    /// The limit's key in the configuration.
    pub limit: &'static str,
    pub most: usize,
}

impl SizeLimits {
    pub fn check(&self, arguments: Node<'_>) -> Result<(), TooBig> {
        // If the call as a whole is within both limits, so is every part of it.
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
