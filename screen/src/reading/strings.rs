//! All strings of an entry, with their locations.

use contract::json::{Kind, Node};
use contract::markers::push_pointer_name;

/// The most strings per entry, and the most bytes per string, that are read. An entry is at most 1
/// MiB.
pub(super) const MAX_STRINGS: usize = 20_000;

/// The role of a string within its entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The name of a member, such as a parameter.
    Name,
    /// A value that a model or person reads as prose or data.
    Value,
}

#[derive(Debug)]
pub(super) struct Text {
    pub(super) pointer: String,
    pub(super) text: String,
    pub(super) role: Role,
}

impl Text {
    /// Whether the string is read as prose: not a schema keyword or the entry's own name.
    pub(super) fn is_prose(&self) -> bool {
        let last =
            self.pointer.rsplit('/').find(|step| !step.bytes().all(|byte| byte.is_ascii_digit()));
        let is_keyword = |name: &str| {
            matches!(
                name,
                "type"
                    | "format"
                    | "pattern"
                    | "required"
                    | "$ref"
                    | "$schema"
                    | "$id"
                    | "name"
                    | "uri"
                    | "mimeType"
            )
        };
        !last.is_some_and(is_keyword)
    }
}

/// The strings of an entry, in the order of its text.
pub(super) fn texts(root: Node<'_>) -> Vec<Text> {
    let mut walk = Walk { texts: Vec::new(), pointer: String::new() };
    walk.value(root);
    walk.texts
}

struct Walk {
    texts: Vec<Text>,
    pointer: String,
}

impl Walk {
    /// The parser limits the depth of this recursion.
    fn value(&mut self, node: Node<'_>) {
        if self.texts.len() >= MAX_STRINGS {
            return;
        }
        match node.kind() {
            Kind::String => self.string(node, Role::Value),
            Kind::Array => {
                for (index, item) in node.items().enumerate() {
                    self.below(&index.to_string(), |walk| walk.value(item));
                }
            }
            Kind::Object => {
                for (name, value) in node.members() {
                    self.below(&name.as_str().unwrap_or_default(), |walk| {
                        walk.string(name, Role::Name);
                        walk.value(value);
                    });
                }
            }
            Kind::Null | Kind::False | Kind::True | Kind::Number => {}
        }
    }

    fn below(&mut self, name: &str, read: impl FnOnce(&mut Walk)) {
        let length = self.pointer.len();
        push_pointer_name(&mut self.pointer, name);
        read(self);
        self.pointer.truncate(length);
    }

    fn string(&mut self, node: Node<'_>, role: Role) {
        let Some(text) = node.as_str() else { return };
        // Skip images: they are not text.
        if !text.starts_with("data:image/") {
            let (pointer, text) = (self.pointer.clone(), text.into_owned());
            self.texts.push(Text { pointer, text, role });
        }
    }
}
