//! Whether what an entry newly says can go in without a look: the inert-text rule.

use crate::canonical::{Position, canonical};
use crate::json::{Kind, Node};
use crate::markers::{KnownStrings, Marker, ToolNames, push_pointer_name, scan, scan_new};
use crate::sorted::SortedSet;

/// The most references of new properties that are followed; an entry with more is not inert.
pub const MAX_REFERENCES: usize = 256;

/// How much new text is still inert, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InertLimits {
    /// The longest new string.
    pub string_max: usize,
    /// All new strings of an entry together, names included, each counted once.
    pub entry_max: usize,
}

impl Default for InertLimits {
    fn default() -> Self {
        InertLimits { string_max: 400, entry_max: 1_000 }
    }
}

/// Why new text is not inert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotInert {
    /// A new string has a marker.
    Marker(Marker),
    StringTooLong {
        pointer: String,
        length: usize,
    },
    TooMuchText {
        total: usize,
    },
    /// A new property comes with a value: a default other than null, a `const`, or an `enum` of one.
    Preset {
        pointer: String,
    },
}

/// Looks for a reason why an entry's new text is not inert against the approved entry; none means that it is.
///
/// New is a string, or a member's name, that the approved entry has nowhere; without an approved entry all are. `tools`
/// are the server's own.
pub fn not_inert(
    old: Option<Node<'_>>,
    new: Node<'_>,
    tools: &ToolNames,
    limits: &InertLimits,
) -> Option<NotInert> {
    let markers = old.map_or_else(|| scan(new, tools), |old| scan_new(new, old, tools));
    if let Some(marker) = markers.into_iter().next() {
        return Some(NotInert::Marker(marker));
    }
    too_much_text(old, new, limits).or_else(|| preset(old, new))
}

fn too_much_text(old: Option<Node<'_>>, new: Node<'_>, limits: &InertLimits) -> Option<NotInert> {
    let known = old.map(KnownStrings::of);
    let mut total = 0_usize;
    let mut longest: Option<(u32, usize)> = None;
    for node in KnownStrings::of(new).distinct() {
        let text = node.as_str().unwrap_or_default();
        if known.as_ref().is_some_and(|known| known.contains(&text)) {
            continue;
        }
        let length = text.chars().count();
        total = total.saturating_add(length);
        // The first one in the order of the text is named, so that the answer is the same on every run.
        if length > limits.string_max && longest.is_none_or(|(index, _)| node.index() < index) {
            longest = Some((node.index(), length));
        }
    }
    if let Some((index, length)) = longest {
        return Some(NotInert::StringTooLong { pointer: pointer_to(new, index), length });
    }
    (total > limits.entry_max).then_some(NotInert::TooMuchText { total })
}

/// The JSON pointer of a string, or of the member whose name it is.
fn pointer_to(root: Node<'_>, index: u32) -> String {
    let holds =
        |node: Node<'_>| (node.index()..node.index().saturating_add(node.size())).contains(&index);
    let mut pointer = String::new();
    let mut node = root;
    while node.index() != index {
        if let Some((name, value)) =
            node.members().find(|(name, value)| name.index() == index || holds(*value))
        {
            push_pointer_name(&mut pointer, &name.as_str().unwrap_or_default());
            if name.index() == index {
                break;
            }
            node = value;
        } else if let Some((at, item)) = node.items().enumerate().find(|(_, item)| holds(*item)) {
            push_pointer_name(&mut pointer, &at.to_string());
            node = item;
        } else {
            break;
        }
    }
    pointer
}

fn preset(old: Option<Node<'_>>, new: Node<'_>) -> Option<NotInert> {
    let mut search = PresetSearch {
        schema: new,
        pointer: String::new(),
        followed: SortedSet::new(),
        references: 0,
    };
    let found = search.value(old, new);
    found.then_some(NotInert::Preset { pointer: search.pointer })
}

/// Walks the new entry and the old one in parallel. `pointer` is the current place, and stays once a preset is found.
struct PresetSearch<'a> {
    /// What references resolve in: the input or output schema around.
    schema: Node<'a>,
    pointer: String,
    /// Values already looked at by way of a reference, so that each is looked at once and cycles end.
    followed: SortedSet<u32>,
    references: usize,
}

/// The members of an object in the order of their names, four bytes a member.
struct MemberIndex<'a> {
    object: Node<'a>,
    names: Vec<u32>,
}

impl<'a> MemberIndex<'a> {
    fn of(object: Node<'a>) -> Self {
        let mut names: Vec<u32> = object.members().map(|(name, _)| name.index()).collect();
        names.sort_unstable_by(|&left, &right| {
            object.at(left).as_str().cmp(&object.at(right).as_str())
        });
        MemberIndex { object, names }
    }

    fn get(&self, name: &str) -> Option<Node<'a>> {
        let text = |index: u32| self.object.at(index).as_str().unwrap_or_default();
        let at = self.names.binary_search_by(|&index| text(index).as_ref().cmp(name)).ok()?;
        self.names.get(at).map(|&index| self.object.at(index.saturating_add(1)))
    }
}

impl<'a> PresetSearch<'a> {
    /// Looks below a value that is not part of a new property.
    fn value(&mut self, old: Option<Node<'_>>, new: Node<'a>) -> bool {
        match new.kind() {
            Kind::Object => {
                let old = old.map(MemberIndex::of);
                new.members().any(|(name, value)| {
                    let text = name.as_str().unwrap_or_default();
                    let former = old.as_ref().and_then(|old| old.get(&text));
                    let outer = self.schema;
                    if text == "inputSchema" || text == "outputSchema" {
                        self.schema = value;
                    }
                    let found = self.step(&text, |search| match text.as_ref() {
                        "properties" if value.is_object() => search.properties(former, value),
                        _ => search.value(former, value),
                    });
                    self.schema = outer;
                    found
                })
            }
            Kind::Array => {
                let mut former = old.map(Node::items);
                new.items().enumerate().any(|(index, item)| {
                    let old = former.as_mut().and_then(Iterator::next);
                    self.step(&index.to_string(), |search| search.value(old, item))
                })
            }
            _ => false,
        }
    }

    fn properties(&mut self, old: Option<Node<'_>>, new: Node<'a>) -> bool {
        let old = old.map(MemberIndex::of);
        new.members().any(|(name, property)| {
            let text = name.as_str().unwrap_or_default();
            let former = old.as_ref().and_then(|old| old.get(&text));
            self.step(&text, |search| match former {
                Some(_) => search.value(former, property),
                None => search.new_property(property),
            })
        })
    }

    /// Whether the schema of a new property fixes a value, itself, in a branch or by way of a reference.
    fn new_property(&mut self, schema: Node<'a>) -> bool {
        if schema.is_array() {
            return schema.items().enumerate().any(|(index, item)| {
                self.step(&index.to_string(), |search| search.new_property(item))
            });
        }
        if is_preset(schema) {
            return true;
        }
        if let Some(reference) = schema.get("$ref").and_then(Node::as_str)
            && self.reference(&reference)
        {
            return true;
        }
        schema.members().any(|(name, value)| {
            let text = name.as_str().unwrap_or_default();
            match text.as_ref() {
                // Values, not schemas: what they hold presets nothing.
                "default" | "const" | "enum" | "examples" | "required" => false,
                "properties" | "patternProperties" | "$defs" | "definitions"
                | "dependentSchemas" => self.step(&text, |search| {
                    value.members().any(|(name, below)| {
                        let name = name.as_str().unwrap_or_default();
                        search.step(&name, |search| search.new_property(below))
                    })
                }),
                _ => self.step(&text, |search| search.new_property(value)),
            }
        })
    }

    /// Whether what a reference points to fixes a value. One that cannot be followed counts as if it did.
    fn reference(&mut self, reference: &str) -> bool {
        self.references += 1;
        if self.references > MAX_REFERENCES {
            return true;
        }
        match self.target(reference) {
            Some(target) => self.followed.insert(target.index()) && self.new_property(target),
            None => true,
        }
    }

    /// What a reference within the same schema points to.
    fn target(&self, reference: &str) -> Option<Node<'a>> {
        let path = reference.strip_prefix('#')?;
        path.split('/').skip(1).try_fold(self.schema, |node, step| {
            let name = step.replace("~1", "/").replace("~0", "~");
            node.get(&name).or_else(|| name.parse().ok().and_then(|index| node.items().nth(index)))
        })
    }

    /// Goes one step down, and back up unless a preset was found there.
    fn step(&mut self, name: &str, look: impl FnOnce(&mut Self) -> bool) -> bool {
        let length = self.pointer.len();
        push_pointer_name(&mut self.pointer, name);
        let found = look(self);
        if !found {
            self.pointer.truncate(length);
        }
        found
    }
}

/// A set of one, however often it is written.
fn is_one_value(values: Node<'_>) -> bool {
    let mut items = values.items();
    let Some(first) = items.next() else { return false };
    let first = canonical(first, Position::Plain);
    items.all(|item| canonical(item, Position::Plain) == first)
}

fn is_preset(schema: Node<'_>) -> bool {
    schema.get("const").is_some()
        || schema.get("default").is_some_and(|value| !value.is_null())
        || schema.get("enum").is_some_and(is_one_value)
}

#[cfg(test)]
mod tests;
