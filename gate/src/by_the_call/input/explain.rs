//! Finds the place and the keyword that arguments were refused for. It decides nothing: the
//! validator has already refused them.
//!
//! The validator is not asked for its errors, because it computes all errors of alternatives before
//! it returns the first one. Instead, single keywords are tried in a validator of their own.

use super::{InputRule, Violation};
use crate::by_the_call::schema::{Schema, is_reference};
use crate::by_the_call::validators::accepts_keyword;
use contract::json::{Kind, Node};
use contract::pointer::Pointer;
use serde_json::Value;
use std::cell::RefCell;

/// The most subschemas that are visited. If no reason is found by then, the arguments as a whole
/// are named.
const MAX_STEPS: usize = 1_000;

/// Keywords that test a single value without a subschema. `type` comes first, because consequences
/// of it would mislead.
const KEYWORDS: [&str; 17] = [
    "type",
    "const",
    "enum",
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "dependentRequired",
];

/// Keywords that are named if nothing else explains a refusal.
const UNEXPLAINED: [&str; 13] = [
    "oneOf",
    "not",
    "if",
    "contains",
    "propertyNames",
    "patternProperties",
    "dependentSchemas",
    "dependencies",
    "unevaluatedProperties",
    "unevaluatedItems",
    "minContains",
    "maxContains",
    "$ref",
];

/// The first violation found. Returns `None` if this walk cannot find the reason.
pub(super) fn violation(schema: &Schema<'_>, arguments: &Value) -> Option<Violation> {
    let walk = Walk { schema, steps: RefCell::new(0), suspect: RefCell::new(None) };
    let found = walk.look(schema.root, arguments, &Pointer::Root);
    found.map(|found| found.violation).or_else(|| walk.suspect.into_inner().map(|it| it.violation))
}

struct Found {
    depth: usize,
    violation: Violation,
}

impl Found {
    fn new(path: &Pointer<'_>, rule: &'static str) -> Found {
        let violation = Violation::new(path, InputRule::Keyword(rule));
        Found { depth: path.depth(), violation }
    }
}

struct Walk<'s, 'a> {
    schema: &'s Schema<'a>,
    steps: RefCell<usize>,
    /// The deepest place with a keyword that was not tried.
    suspect: RefCell<Option<Found>>,
}

impl<'a> Walk<'_, 'a> {
    fn look(&self, node: Node<'a>, value: &Value, path: &Pointer<'_>) -> Option<Found> {
        {
            let mut steps = self.steps.borrow_mut();
            *steps += 1;
            if *steps > MAX_STEPS {
                return None;
            }
        }
        if node.kind() == Kind::False {
            return Some(Found::new(path, "false"));
        }
        let own = KEYWORDS.into_iter().find(|keyword| {
            node.get(keyword).is_some_and(|said| !accepts_keyword(keyword, said, value))
        });
        if let Some(keyword) = own {
            return Some(Found::new(path, keyword));
        }
        self.missing(node, value, path)
            .or_else(|| self.members(node, value, path))
            .or_else(|| self.items(node, value, path))
            .or_else(|| self.combined(node, value, path))
            .or_else(|| {
                self.suspect_of(node, path);
                None
            })
    }

    /// A missing member is reported at the place where it should be.
    fn missing(&self, node: Node<'a>, value: &Value, path: &Pointer<'_>) -> Option<Found> {
        let members = value.as_object()?;
        let mut required = node.get("required")?.items().filter_map(Node::as_str);
        let missing = required.find(|name| !members.contains_key(name.as_ref()))?;
        Some(Found::new(&Pointer::Member(path, &missing), "required"))
    }

    fn members(&self, node: Node<'a>, value: &Value, path: &Pointer<'_>) -> Option<Found> {
        let properties = node.get("properties");
        let has_patterns = node.get("patternProperties").is_some();
        let further = node.get("additionalProperties").filter(|_| !has_patterns);
        for (name, member) in value.as_object()? {
            let at = Pointer::Member(path, name);
            let found = match (properties.and_then(|all| all.get(name)), further) {
                (Some(property), _) => self.look(property, member, &at),
                (None, Some(further)) if further.kind() == Kind::False => {
                    let violation = Violation::new(&at, InputRule::Declared);
                    Some(Found { depth: at.depth(), violation })
                }
                (None, Some(further)) => self.look(further, member, &at),
                (None, None) => None,
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }

    fn items(&self, node: Node<'a>, value: &Value, path: &Pointer<'_>) -> Option<Found> {
        let elements = value.as_array()?;
        let items = node.get("items");
        let first = node.get("prefixItems").or(items.filter(|items| items.is_array()));
        let first: Vec<Node<'a>> = first.map(|all| all.items().collect()).unwrap_or_default();
        let rest = items.filter(|items| !items.is_array()).or(node.get("additionalItems"));
        elements.iter().enumerate().find_map(|(n, element)| {
            self.look(first.get(n).copied().or(rest)?, element, &Pointer::Item(path, n))
        })
    }

    fn combined(&self, node: Node<'a>, value: &Value, path: &Pointer<'_>) -> Option<Found> {
        for (keyword, said) in node.members() {
            let keyword = keyword.as_str().unwrap_or_default();
            let found = match keyword.as_ref() {
                reference if is_reference(reference) => {
                    self.schema.resolve(said).ok().and_then(|next| self.look(next, value, path))
                }
                "allOf" => said.items().find_map(|part| self.look(part, value, path)),
                "anyOf" => self.alternatives("anyOf", said, value, path),
                "oneOf" => self.alternatives("oneOf", said, value, path),
                _ => None,
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Returns `None` if an alternative may accept the value. If exactly one alternative fits down
    /// to this place, reports what that one refuses further inside.
    fn alternatives(
        &self,
        keyword: &'static str,
        said: Node<'a>,
        value: &Value,
        path: &Pointer<'_>,
    ) -> Option<Found> {
        let mut all = Vec::new();
        for branch in said.items() {
            all.push(self.look(branch, value, path)?);
        }
        let mut deeper = all.into_iter().filter(|found| found.depth > path.depth());
        match (deeper.next(), deeper.next()) {
            (Some(only), None) => Some(only),
            _ => Some(Found::new(path, keyword)),
        }
    }

    fn suspect_of(&self, node: Node<'a>, path: &Pointer<'_>) {
        let Some(keyword) = UNEXPLAINED.into_iter().find(|keyword| node.get(keyword).is_some())
        else {
            return;
        };
        let mut suspect = self.suspect.borrow_mut();
        if suspect.as_ref().is_none_or(|known| known.depth < path.depth()) {
            *suspect = Some(Found::new(path, keyword));
        }
    }
}
