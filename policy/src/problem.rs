//! Describes problems with policies in sentences for the person who wrote them.

use crate::inventory::Inventory;
use crate::names::qualified;
use cedar_policy::{ValidationError, ValidationWarning};
use miette::Diagnostic;
use std::fmt;
use std::sync::Arc;

/// Whether a problem prevents the policies from being used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Error,
    Warning,
}

/// One mistake in a policy file or in the entities file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyProblem {
    pub severity: Severity,
    pub file: Arc<str>,
    /// Counted from 1; 0 if the problem concerns the whole file.
    pub line: usize,
    pub policy_id: Option<Arc<str>>,
    pub sentence: String,
}

impl fmt::Display for PolicyProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.file)?;
        if self.line > 0 {
            write!(formatter, ":{}", self.line)?;
        }
        formatter.write_str(": ")?;
        if self.severity == Severity::Warning {
            formatter.write_str("warning: ")?;
        }
        if let Some(id) = &self.policy_id {
            write!(formatter, "policy `{id}`: ")?;
        }
        formatter.write_str(&self.sentence)
    }
}

/// The byte offset in the file that a Cedar diagnostic points to.
pub(crate) fn offset_of(diagnostic: &dyn Diagnostic) -> Option<usize> {
    diagnostic.labels().and_then(|mut labels| labels.next()).map(|label| label.offset())
}

/// A diagnostic's message and help text as one sentence.
pub(crate) fn text_of(diagnostic: &dyn Diagnostic) -> String {
    match diagnostic.help() {
        Some(help) => format!("{diagnostic}; {help}"),
        None => diagnostic.to_string(),
    }
}

/// Describes a validation error in terms of tools and arguments rather than Cedar's types.
pub(crate) fn validation_sentence(error: &ValidationError, inventory: &Inventory) -> String {
    let prefix = format!("for policy `{}`, ", error.policy_id());
    let text = text_of(error);
    let text = text.strip_prefix(&prefix).unwrap_or(&text).to_owned();
    match error {
        ValidationError::UnsafeAttributeAccess(_) => {
            untyped_sentence(&text, inventory).unwrap_or_else(|| attribute_sentence(&text))
        }
        ValidationError::UnsafeOptionalAttributeAccess(_) => match input_access(&text) {
            Some((path, tool)) => format!(
                "reads `context.{path}`, which calls of `{tool}` may leave out; \
                 test it first with `{} &&`",
                has_guard(&path)
            ),
            None => text,
        },
        ValidationError::NonLitExtConstructor(_) => {
            "extension functions such as `decimal` take a literal only".to_owned()
        }
        _ => text,
    }
}

pub(crate) fn warning_sentence(warning: &ValidationWarning) -> String {
    let prefix = format!("for policy `{}`, ", warning.policy_id());
    let text = text_of(warning);
    text.strip_prefix(&prefix).unwrap_or(&text).to_owned()
}

fn attribute_sentence(text: &str) -> String {
    if text.contains("on entity type `Gateway`") || text.contains("on entity type `Server`") {
        return format!(
            "{text}; the policy also covers admin actions: narrow it, for example with \
             `action in Action::\"call\"`"
        );
    }
    text.to_owned()
}

/// Explains why an input member cannot be read, if the message is about one.
fn untyped_sentence(text: &str, inventory: &Inventory) -> Option<String> {
    let (path, tool) = input_access(text)?;
    let within = path.strip_prefix("input.")?;
    let known = inventory.servers().find_map(|server| {
        let tools = server.tools.values();
        tools.into_iter().find(|known| qualified(&server.id, &known.name) == tool)
    });
    let reason = known.and_then(|known| {
        let exact = known.input.left_out().find(|(left, _)| *left == within);
        exact.map(|(_, reason)| reason)
    });
    Some(match reason {
        Some(reason) => format!(
            "reads `context.{path}`, which has no type in the approved schema of `{tool}`: {reason}"
        ),
        None => format!(
            "reads `context.{path}`, which the approved schema of `{tool}` does not declare; \
             only declared arguments can be read"
        ),
    })
}

/// The path and the tool in a message about access to the context. Only for messages: nothing is
/// decided on this text.
fn input_access(text: &str) -> Option<(String, String)> {
    let (before, after) = text.split_once(" in context for ")?;
    let path = before.split('`').nth(1)?.to_owned();
    let tool = after.strip_prefix("Action::\"")?;
    let tool = tool.split_once('"').map(|(tool, _)| tool)?;
    Some((path, tool.to_owned()))
}

fn has_guard(path: &str) -> String {
    match path.rsplit_once('.') {
        Some((record, member)) => format!("context.{record} has {member}"),
        None => format!("context has {path}"),
    }
}
