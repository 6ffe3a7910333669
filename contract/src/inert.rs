//! The inert-text rule: whether an entry's new text can be accepted without review.

use crate::canonical::{Position, canonical};
use crate::json::{Kind, Node};
use crate::markers::{KnownStrings, Marker, ToolNames, push_pointer_name, scan, scan_new};
use crate::sorted::SortedSet;

/// The most references from new properties that are followed; an entry with more is not inert.
pub const MAX_REFERENCES: usize = 256;

/// How much new text still counts as inert, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InertLimits {
    /// The longest new string.
    pub string_max: usize,
    /// The total of all new strings of an entry, including names, each counted once.
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
    /// A new property fixes a value: a default other than null, a `const`, or an `enum` of one.
    Preset {
        pointer: String,
    },
}

/// Returns a reason why an entry's new text is not inert compared with the approved entry, or
/// `None` if it is inert.
///
/// A string or a member's name is new if it occurs nowhere in the approved entry; without an
/// approved entry all of them are new. `tools` are the names of the server's own tools.
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
        // Report the first one in document order, so that every run gives the same result.
        if length > limits.string_max && longest.is_none_or(|(index, _)| node.index() < index) {
            longest = Some((node.index(), length));
        }
    }
    if let Some((index, length)) = longest {
        return Some(NotInert::StringTooLong { pointer: pointer_to(new, index), length });
    }
    (total > limits.entry_max).then_some(NotInert::TooMuchText { total })
}

/// The JSON pointer of a string value, or of the member that a string names.
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

/// Walks the new and the old entry in parallel. `pointer` is the current place, and is left at the
/// preset once one is found.
struct PresetSearch<'a> {
    /// The input or output schema that references are resolved in.
    schema: Node<'a>,
    pointer: String,
    /// Values already visited through a reference: each is visited once, so cycles end.
    followed: SortedSet<u32>,
    references: usize,
}

/// The members of an object sorted by name, at four bytes per member.
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
    /// Searches below a value that is not part of a new property.
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

    /// Whether the schema of a new property fixes a value: directly, in a branch or through a
    /// reference.
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
                // These hold values, not schemas, so nothing in them is a preset.
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

    /// Whether a reference's target fixes a value. A reference that cannot be followed counts as if
    /// it did.
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

    /// The target of a reference within the same schema.
    fn target(&self, reference: &str) -> Option<Node<'a>> {
        let path = reference.strip_prefix('#')?;
        path.split('/').skip(1).try_fold(self.schema, |node, step| {
            let name = step.replace("~1", "/").replace("~0", "~");
            node.get(&name).or_else(|| name.parse().ok().and_then(|index| node.items().nth(index)))
        })
    }

    /// Descends one step, and returns unless a preset was found there.
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

/// Whether a list holds a single distinct value, possibly repeated.
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
