//! Derives the type of `context.input` from a tool's accepted input schema.
//!
//! The schema is untrusted: depth, members and steps are bounded, and anything that cannot be typed
//! is omitted with a reason. A server can only make its own tools less readable for policies; it
//! can never change the meaning of a policy.

use contract::json::{Document, Kind, Node};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The deepest nesting of records and sets in a type.
pub(crate) const MAX_TYPE_DEPTH: usize = 8;
/// The most members in a tool's type, over all its records.
pub(crate) const MAX_TYPE_MEMBERS: usize = 1_000;
/// The most schema nodes visited for one tool. A reference counts each time it is followed.
const MAX_STEPS: usize = 20_000;
/// How many omitted members are remembered for messages.
const MAX_REMEMBERED: usize = 256;
/// The longest member name that is typed, in bytes.
const MAX_NAME_BYTES: usize = 512;

/// A type that a policy can read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum InputType {
    String,
    Long,
    Bool,
    Decimal,
    Set(Box<InputType>),
    Record(BTreeMap<Arc<str>, InputMember>),
}

/// A member of a record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct InputMember {
    pub of: InputType,
    /// Whether it is always present and never `null`.
    pub required: bool,
}

/// The typed members of a tool's input, and the members without a type.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InputShape {
    pub(crate) members: BTreeMap<Arc<str>, InputMember>,
    left_out: BTreeMap<String, &'static str>,
}

impl InputShape {
    pub fn members(&self) -> impl Iterator<Item = (&str, &InputMember)> {
        self.members.iter().map(|(name, member)| (&**name, member))
    }

    /// The members that policies cannot read, by path (`options.filter`), with the reason.
    pub fn left_out(&self) -> impl Iterator<Item = (&str, &'static str)> {
        self.left_out.iter().map(|(path, reason)| (path.as_str(), *reason))
    }

    /// The type in Cedar's JSON schema format.
    pub(crate) fn to_cedar(&self) -> Value {
        record_to_cedar(&self.members)
    }
}

fn record_to_cedar(members: &BTreeMap<Arc<str>, InputMember>) -> Value {
    let attributes = members.iter().map(|(name, member)| {
        let mut of = type_to_cedar(&member.of);
        if let Value::Object(fields) = &mut of {
            fields.insert("required".to_owned(), Value::Bool(member.required));
        }
        (name.to_string(), of)
    });
    json!({ "type": "Record", "attributes": Value::Object(attributes.collect()) })
}

fn type_to_cedar(of: &InputType) -> Value {
    match of {
        InputType::String => json!({ "type": "String" }),
        InputType::Long => json!({ "type": "Long" }),
        InputType::Bool => json!({ "type": "Boolean" }),
        InputType::Decimal => json!({ "type": "Extension", "name": "decimal" }),
        InputType::Set(element) => json!({ "type": "Set", "element": type_to_cedar(element) }),
        InputType::Record(members) => record_to_cedar(members),
    }
}

/// The shape of a tool's input. An unreadable schema results in an empty shape.
pub(crate) fn type_of_schema(schema: &[u8]) -> InputShape {
    let Ok(document) = Document::parse_bytes(schema) else {
        let left_out = BTreeMap::from([(String::new(), "the schema is not valid JSON")]);
        return InputShape { members: BTreeMap::new(), left_out };
    };
    let mut typing = Typing {
        root: document.root(),
        members_left: MAX_TYPE_MEMBERS,
        steps_left: MAX_STEPS,
        references: Vec::new(),
        path: Vec::new(),
        left_out: BTreeMap::new(),
    };
    let members = match typing.nullable(document.root(), 0) {
        Ok(Typed { of: Some(InputType::Record(members)), .. }) => members,
        Ok(_) => BTreeMap::new(),
        Err(reason) => {
            typing.leave_out(reason);
            BTreeMap::new()
        }
    };
    InputShape { members, left_out: typing.left_out }
}

type Reason = &'static str;

const TOO_DEEP: Reason = "it is nested too deeply";
const TOO_MANY: Reason = "the schema has too many members";
const RECURSIVE: Reason = "its schema refers to itself";
const BAD_REFERENCE: Reason = "its schema has a reference that leads nowhere";
const MIXED: Reason = "it may have values of several types";
const FREE_OBJECT: Reason = "it is an object without declared members";
const FREE_ARRAY: Reason = "it is an array without one type of items";
const NO_TYPE: Reason = "its schema names no type";
const LONG_NAME: Reason = "its name is too long";

/// What a schema allows: values of one type, `null`, or both.
struct Typed {
    of: Option<InputType>,
    null: bool,
}

struct Typing<'a> {
    root: Node<'a>,
    members_left: usize,
    steps_left: usize,
    /// The references being followed, to detect a cycle.
    references: Vec<u32>,
    path: Vec<String>,
    left_out: BTreeMap<String, Reason>,
}

impl<'a> Typing<'a> {
    fn leave_out(&mut self, reason: Reason) {
        if self.left_out.len() < MAX_REMEMBERED {
            self.left_out.insert(self.path.join("."), reason);
        }
    }

    fn nullable(&mut self, schema: Node<'a>, depth: usize) -> Result<Typed, Reason> {
        self.steps_left = self.steps_left.checked_sub(1).ok_or(TOO_MANY)?;
        if depth > MAX_TYPE_DEPTH {
            return Err(TOO_DEEP);
        }
        if !schema.is_object() {
            return Err(NO_TYPE);
        }
        if let Some(reference) = schema.get("$ref") {
            return self.referenced(reference, depth);
        }
        if let Some(words) = schema.get("type") {
            return self.declared(schema, words, depth);
        }
        if let Some(choices) = schema.get("anyOf").or_else(|| schema.get("oneOf")) {
            return self.alternatives(choices, depth);
        }
        if let Some(parts) = schema.get("allOf") {
            let mut parts = parts.items();
            return match (parts.next(), parts.next()) {
                (Some(only), None) => self.nullable(only, depth),
                _ => Err(MIXED),
            };
        }
        if let Some(constant) = schema.get("const") {
            return of_values(std::iter::once(constant));
        }
        if let Some(values) = schema.get("enum") {
            return of_values(values.items());
        }
        if schema.get("properties").is_some() {
            return Ok(Typed { of: Some(self.record(schema, depth)?), null: false });
        }
        Err(NO_TYPE)
    }

    fn referenced(&mut self, reference: Node<'a>, depth: usize) -> Result<Typed, Reason> {
        let reference = reference.as_str().ok_or(BAD_REFERENCE)?;
        let target = resolve(self.root, &reference).ok_or(BAD_REFERENCE)?;
        if self.references.contains(&target.index()) {
            return Err(RECURSIVE);
        }
        self.references.push(target.index());
        let typed = self.nullable(target, depth);
        self.references.pop();
        typed
    }

    /// Reads `type`: one word, or several of which one may be `null`.
    fn declared(
        &mut self,
        schema: Node<'a>,
        words: Node<'a>,
        depth: usize,
    ) -> Result<Typed, Reason> {
        let listed: Vec<Cow<'a, str>> = match words.kind() {
            Kind::String => words.as_str().into_iter().collect(),
            Kind::Array => words.items().filter_map(Node::as_str).take(8).collect(),
            _ => Vec::new(),
        };
        let null = listed.iter().any(|word| word == "null")
            || schema.get("nullable").and_then(Node::as_bool) == Some(true);
        let mut others: Vec<&str> = listed.iter().map(AsRef::as_ref).collect();
        others.retain(|word| *word != "null");
        others.sort_unstable();
        others.dedup();
        let of = match others.as_slice() {
            [] if null => None,
            [] => return Err(NO_TYPE),
            ["string"] => Some(InputType::String),
            ["boolean"] => Some(InputType::Bool),
            ["integer"] => Some(InputType::Long),
            ["number"] | ["integer", "number"] => Some(InputType::Decimal),
            ["object"] => Some(self.record(schema, depth)?),
            ["array"] => Some(self.set(schema, depth)?),
            _ => return Err(MIXED),
        };
        Ok(Typed { of, null })
    }

    fn set(&mut self, schema: Node<'a>, depth: usize) -> Result<InputType, Reason> {
        let items = schema.get("items").filter(|items| items.is_object()).ok_or(FREE_ARRAY)?;
        if schema.get("prefixItems").is_some() {
            return Err(FREE_ARRAY);
        }
        match self.nullable(items, depth + 1)? {
            Typed { of: Some(element), null: false } => Ok(InputType::Set(Box::new(element))),
            _ => Err(MIXED),
        }
    }

    fn record(&mut self, schema: Node<'a>, depth: usize) -> Result<InputType, Reason> {
        let Some(properties) = schema.get("properties").filter(|members| members.is_object())
        else {
            return if depth == 0 {
                Ok(InputType::Record(BTreeMap::new()))
            } else {
                Err(FREE_OBJECT)
            };
        };
        let required: Vec<Node<'a>> =
            schema.get("required").into_iter().flat_map(Node::items).collect();
        let mut members = BTreeMap::new();
        for (name, member) in properties.members() {
            let name = name.as_str().unwrap_or_default();
            self.path.push(name.to_string());
            match self.member(&name, member, depth) {
                Ok(Typed { of: Some(of), null }) => {
                    let required = !null && required.iter().any(|word| word.is_text(&name));
                    members.insert(Arc::from(&*name), InputMember { of, required });
                }
                Ok(Typed { of: None, .. }) => self.leave_out(NO_TYPE),
                Err(reason) => self.leave_out(reason),
            }
            self.path.pop();
        }
        Ok(InputType::Record(members))
    }

    fn member(&mut self, name: &str, schema: Node<'a>, depth: usize) -> Result<Typed, Reason> {
        if name.len() > MAX_NAME_BYTES {
            return Err(LONG_NAME);
        }
        self.members_left = self.members_left.checked_sub(1).ok_or(TOO_MANY)?;
        self.nullable(schema, depth + 1)
    }

    /// If all alternatives except `null` have the same type, that is the type.
    fn alternatives(&mut self, choices: Node<'a>, depth: usize) -> Result<Typed, Reason> {
        let mut typed = Typed { of: None, null: false };
        for choice in choices.items() {
            let next = self.nullable(choice, depth)?;
            typed.null |= next.null;
            match (&typed.of, next.of) {
                (_, None) => {}
                (None, Some(of)) => typed.of = Some(of),
                (Some(one), Some(other)) if *one == other => {}
                (Some(_), Some(_)) => return Err(MIXED),
            }
        }
        if typed.of.is_none() && !typed.null { Err(NO_TYPE) } else { Ok(typed) }
    }
}

/// The type of enumerated values.
fn of_values<'a>(values: impl Iterator<Item = Node<'a>>) -> Result<Typed, Reason> {
    let mut typed = Typed { of: None, null: false };
    for value in values {
        let of = match value.kind() {
            Kind::Null => {
                typed.null = true;
                continue;
            }
            Kind::String => InputType::String,
            Kind::True | Kind::False => InputType::Bool,
            Kind::Number => {
                let spelling = value.as_number().unwrap_or_default();
                let whole = contract::decimal::Decimal::parse(spelling).is_integer();
                if whole { InputType::Long } else { InputType::Decimal }
            }
            Kind::Array | Kind::Object => return Err(MIXED),
        };
        match &typed.of {
            None => typed.of = Some(of),
            Some(one) if *one == of => {}
            Some(_) => return Err(MIXED),
        }
    }
    Ok(typed)
}

/// Resolves a JSON Pointer within the document. References to other documents are never followed.
fn resolve<'a>(root: Node<'a>, reference: &str) -> Option<Node<'a>> {
    let pointer = reference.strip_prefix('#')?;
    if pointer.is_empty() {
        return Some(root);
    }
    let mut node = root;
    for step in pointer.strip_prefix('/')?.split('/') {
        let step = step.replace("~1", "/").replace("~0", "~");
        node = match node.kind() {
            Kind::Object => node.get(&step)?,
            Kind::Array => node.items().nth(step.parse().ok()?)?,
            _ => return None,
        };
    }
    Some(node)
}

#[cfg(test)]
mod tests;
