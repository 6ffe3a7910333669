//! Checks the arguments of a call against one definition: whether its input schema accepts them,
//! and whether they have members that it does not declare.
//!
//! A validator decides, within the bounds that are checked before it is compiled. If it refuses, a
//! separate walk finds the place and the keyword, only for the message. Neither ever reveals a
//! value.

mod cache;
mod declared;
mod explain;

pub use cache::{CompiledInput, InputRulesCache, MAX_CACHED_INPUT_BYTES, MAX_CACHED_INPUTS};

use super::schema::Schema;
use super::schema::exact_value;
use super::validators::{Readings, Validators};
use super::work::Work;
use super::{Undecided, bounds};
use contract::json::{Document, Node};
use contract::pointer::Pointer;
use contract::surface::Entry;
use declared::Declared;
use serde_json::Value;

/// How to treat members that a definition does not declare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UndeclaredMembers {
    #[default]
    Refuse,
    /// Refuse them only if the schema itself has `additionalProperties: false`.
    Allow,
}

/// The place where arguments break a rule, and the rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// A JSON Pointer into the arguments.
    pub pointer: String,
    pub rule: InputRule,
}

impl Violation {
    fn new(at: &Pointer<'_>, rule: InputRule) -> Violation {
        Violation { pointer: at.to_string(), rule }
    }
}

/// A rule that arguments must satisfy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputRule {
    /// The definition declares every member.
    Declared,
    /// A keyword of the input schema accepts the value.
    Keyword(&'static str),
    /// Arguments must be an object.
    Object,
    /// Every reader interprets them the same way: no repeated member, and no number that would be
    /// rounded.
    Exact,
    /// The definition must be checkable.
    Decidable(Undecided),
}

/// The arguments of one call, parsed once for every rule.
#[derive(Debug)]
pub struct Arguments<'a> {
    document: Document<'a>,
    value: Value,
}

impl<'a> Arguments<'a> {
    /// Parses the bytes of `arguments`. `None` counts as an empty object.
    pub fn read(bytes: Option<&'a [u8]>) -> Result<Arguments<'a>, Violation> {
        let bytes = bytes.unwrap_or(b"{}");
        let inexact = || Violation::new(&Pointer::Root, InputRule::Exact);
        let document = Document::parse_bytes(bytes).map_err(|_| inexact())?;
        if !document.root().is_object() {
            return Err(Violation::new(&Pointer::Root, InputRule::Object));
        }
        let value = exact_value(document.root()).ok_or_else(inexact)?;
        Ok(Arguments { document, value })
    }

    pub fn root(&self) -> Node<'_> {
        self.document.root()
    }
}

/// Decides on the arguments of one tool. Compiled once per definition.
#[derive(Debug)]
pub struct InputRules {
    tool: Entry,
    validators: Validators,
    declared: Declared,
}

impl InputRules {
    /// Compiles the input schema of a tool. A tool without one accepts anything.
    pub fn compile(tool: &Entry) -> Result<InputRules, Undecided> {
        with_schema(tool, INPUT, |schema| {
            bounds::check(schema)?;
            Ok(InputRules {
                tool: tool.clone(),
                validators: Validators::compile(schema, Readings::Any)?,
                declared: Declared::of(schema)?,
            })
        })
    }

    /// Checks the arguments of one call.
    pub fn check(
        &self,
        arguments: &Arguments<'_>,
        undeclared: UndeclaredMembers,
    ) -> Result<(), Violation> {
        if undeclared == UndeclaredMembers::Refuse {
            self.declared.check(arguments.root())?;
        }
        for (name, _) in arguments.root().members().filter(|_| self.validators.has_undecidable()) {
            let name = name.as_str().unwrap_or_default();
            if self.validators.undecidable.contains(name.as_ref()) {
                let at = Pointer::Member(&Pointer::Root, &name);
                return Err(Violation::new(&at, InputRule::Decidable(Undecided::Schema)));
            }
        }
        match self.validators.accept(&arguments.value) {
            true => Ok(()),
            false => Err(self.explain(&arguments.value)),
        }
    }

    fn explain(&self, arguments: &Value) -> Violation {
        let found =
            with_schema(&self.tool, INPUT, |schema| Ok(explain::violation(schema, arguments)));
        let unexplained = || Violation::new(&Pointer::Root, InputRule::Keyword("inputSchema"));
        found.ok().flatten().unwrap_or_else(unexplained)
    }

    /// About how many bytes this takes.
    fn bytes(&self) -> usize {
        self.tool.raw().len() * super::COMPILED_BYTES_PER_BYTE + self.validators.pattern_bytes()
    }
}

/// Decides on the results of one tool.
#[derive(Debug)]
pub struct ResultRules(Validators);

impl ResultRules {
    /// Compiles the output schema of a tool; `None` if it declares none.
    pub fn compile(tool: &Entry) -> Result<Option<ResultRules>, Undecided> {
        let has_schema = super::read(tool)?.root().get(OUTPUT).is_some();
        let compiled = has_schema.then(|| {
            with_schema(tool, OUTPUT, |schema| {
                bounds::check(schema)?;
                Ok(ResultRules(Validators::compile(schema, Readings::Any)?))
            })
        });
        compiled.transpose()
    }

    pub fn accept(&self, structured: &Value) -> bool {
        self.0.accept(structured)
    }
}

const INPUT: &str = "inputSchema";
const OUTPUT: &str = "outputSchema";

fn with_schema<T>(
    tool: &Entry,
    member: &str,
    work: impl FnOnce(&Schema<'_>) -> Result<T, Undecided>,
) -> Result<T, Undecided> {
    let document = super::read(tool)?;
    let empty = Document::parse("{}").map_err(|_| Undecided::Unreadable)?;
    let root = document.root().get(member).unwrap_or(empty.root());
    work(&Schema::read(root, Work::on_input(root))?)
}

#[cfg(test)]
mod tests;
