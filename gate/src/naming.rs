//! Names and places as a refusal shows them. A model reads refusals, so no name in one may carry a
//! message from the server.
//!
//! INVARIANT: every name chosen by the server reaches a client through [`shown_name`] or
//! [`Approved`].

use contract::change::{ChangeKind, Finding};
use contract::hash::sha256_hex;
use contract::json::{Document, Node};
use contract::markers::{self, ToolNames};
use contract::names;
use contract::surface::Entry;

/// The longest accepted name that is shown.
const MAX_ACCEPTED_CHARACTERS: usize = 64;
/// The longest new name that is shown.
const MAX_NEW_CHARACTERS: usize = 40;
/// Words that could make a refusal look like approval.
const REASSURING: [&str; 8] =
    ["safe", "verified", "trusted", "approved", "allowed", "clear", "passed", "secure"];

/// A name as it appears in a refusal: unchanged if it cannot carry a message, otherwise the first 8
/// digits of its hash.
pub fn shown_name(name: &str, is_accepted: bool) -> String {
    let (longest, reassuring) =
        if is_accepted { (MAX_ACCEPTED_CHARACTERS, 1) } else { (MAX_NEW_CHARACTERS, 0) };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    let is_shown = (1..=longest).contains(&name.len())
        && name.bytes().all(is_plain)
        && reassuring_words(name) <= reassuring
        && !has_marker(name);
    if is_shown { name.to_owned() } else { first_digits(name) }
}

/// Like [`shown_name`], in backticks for use in a sentence.
pub fn quoted_name(name: &str, is_accepted: bool) -> String {
    format!("`{}`", shown_name(name, is_accepted))
}

/// A tool's name for use in a sentence, without an article.
pub fn named_tool(name: &str, is_accepted: bool) -> String {
    let shown = shown_name(name, is_accepted);
    if shown == name {
        format!("tool called `{shown}`")
    } else {
        format!("tool whose name has the hash `{shown}`")
    }
}

fn first_digits(name: &str) -> String {
    sha256_hex(name.as_bytes()).chars().take(8).collect()
}

fn reassuring_words(name: &str) -> usize {
    let lower = name.to_ascii_lowercase();
    REASSURING.iter().map(|word| lower.matches(word).count()).sum()
}

fn has_marker(name: &str) -> bool {
    let spaced = name.replace(['_', '-', '.'], " ");
    [name, spaced.as_str()].into_iter().any(|text| {
        let mut json = Vec::new();
        contract::json::escape_into(text, &mut json);
        let json = String::from_utf8(json).unwrap_or_default();
        let document = Document::parse(&json);
        document.is_ok_and(|text| !markers::scan(text.root(), &ToolNames::default()).is_empty())
    })
}

/// The approved definition of an entry: a refusal shows the places of findings only as far as they
/// exist in it.
#[derive(Debug, Default)]
pub struct Approved<'e> {
    document: Option<Document<'e>>,
}

impl<'e> Approved<'e> {
    pub fn of(entry: Option<&'e Entry>) -> Approved<'e> {
        Approved { document: entry.and_then(|entry| entry.document().ok()) }
    }

    /// The place of a finding as a JSON Pointer, truncated where the approved definition ends.
    pub fn pointer(&self, finding: &Finding) -> String {
        let steps = self.walk(finding).steps.into_iter();
        steps.map(|step| format!("/{}", step.replace('~', "~0").replace('/', "~1"))).collect()
    }

    /// The parameter that a finding is about, in backticks and in the notation of [`DottedName`].
    /// Returns `None` if the finding is about no parameter, or about one that must not be named.
    pub fn parameter(&self, finding: &Finding) -> Option<String> {
        let Walk { names, name, is_whole, .. } = self.walk(finding);
        let path = names.join(".");
        if !is_whole || names.is_empty() {
            return None;
        }
        // Each name is harmless, but all of them together must be harmless too.
        let shown = shown_name(&path, true);
        Some(if shown == path { format!("`{}`", name.text) } else { format!("`{shown}`") })
    }

    fn walk(&self, finding: &Finding) -> Walk {
        let mut walk = Walk::default();
        let mut node = self.document.as_ref().map(Document::root);
        let mut is_name = false;
        let mut steps = finding.path.split('/').skip(1).peekable();
        while let Some(step) = steps.next() {
            let step = step.replace("~1", "/").replace("~0", "~");
            node = node.and_then(|node| child(node, &step));
            if is_name {
                // The only new name that is shown is that of an added parameter.
                let is_added = steps.peek().is_none() && adds_parameter(finding.kind);
                if node.is_none() && !is_added {
                    return walk;
                }
                let shown = shown_name(&step, node.is_some());
                walk.names.push(shown.clone());
                walk.name.step(&shown);
                walk.steps.push(shown);
                is_name = false;
                continue;
            }
            walk.name.step(&step);
            is_name = HOLDS_NAMES.contains(&step.as_str());
            let is_ours = is_name || is_index(&step) || is_keyword(&step);
            if !is_ours && node.is_none() {
                return walk;
            }
            let is_of_definitions = matches!(step.as_str(), "$defs" | "definitions");
            walk.steps.push(if is_ours { step } else { shown_name(&step, true) });
            if is_of_definitions {
                return walk;
            }
        }
        walk.is_whole = true;
        walk
    }
}

/// How far a pointer may be shown.
#[derive(Default)]
struct Walk {
    steps: Vec<String>,
    /// The parameter names among the steps.
    names: Vec<String>,
    name: DottedName,
    is_whole: bool,
}

/// The name of a place in a schema, made from the steps of a pointer: dots for nested members
/// (`user.id`), brackets for the items of a list (`ids[]`), and an asterisk for undeclared members
/// (`labels.*`).
#[derive(Debug, Default)]
pub(crate) struct DottedName {
    pub(crate) text: String,
    /// The next step is a name or an index rather than a keyword.
    next: Option<Next>,
}

#[derive(Debug, Clone, Copy)]
enum Next {
    Name,
    Other,
}

impl DottedName {
    pub(crate) fn step(&mut self, step: &str) {
        match self.next.take() {
            Some(Next::Name) => {
                let dot = if self.text.is_empty() { "" } else { "." };
                self.text = format!("{}{dot}{step}", self.text);
                return;
            }
            Some(Next::Other) => return,
            None => {}
        }
        let is_in_list = step.bytes().all(|byte| byte.is_ascii_digit());
        match step {
            "properties" | "$defs" | "definitions" => self.next = Some(Next::Name),
            "items" | "additionalItems" | "contains" | "unevaluatedItems" => self.push("[]"),
            "prefixItems" => {
                self.push("[]");
                self.next = Some(Next::Other);
            }
            "additionalProperties" | "unevaluatedProperties" => self.push(".*"),
            "patternProperties" => {
                self.push(".*");
                self.next = Some(Next::Other);
            }
            // In older dialects `items` may be a list itself, and branches have an index.
            _ if is_in_list => {}
            "dependentSchemas" | "dependentRequired" | "dependencies" => {
                self.next = Some(Next::Other);
            }
            _ => {}
        }
    }

    /// Appends a suffix to a name. The whole input or result has no name.
    fn push(&mut self, mark: &str) {
        if !self.text.is_empty() {
            self.text.push_str(mark);
        }
    }
}

/// A JSON Pointer into an unaccepted entry, for programs: keywords and indices are unchanged, and
/// each name is shown as [`shown_name`] shows a new one. It ends at `$defs`, whose names are never
/// shown.
pub fn shown_pointer(pointer: &str) -> String {
    let mut steps = Vec::new();
    let mut names = String::new();
    let mut is_name = false;
    for step in pointer.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        let holds_names = HOLDS_NAMES.contains(&step.as_str());
        let is_ours = !is_name && (holds_names || is_index(&step) || is_keyword(&step));
        is_name = is_ours && holds_names;
        if !is_ours {
            names.push_str(&step);
            names.push('.');
        }
        let is_end = is_ours && matches!(step.as_str(), "$defs" | "definitions");
        steps.push((is_ours, step));
        if is_end {
            break;
        }
    }
    // Each name may be harmless, but all of them together must be harmless too.
    let is_told = !has_marker(&names) && reassuring_words(&names) == 0;
    let show = |(is_ours, step): (bool, String)| match (is_ours, is_told) {
        (true, _) => format!("/{step}"),
        (false, true) => format!("/{}", shown_name(&step, false)),
        (false, false) => format!("/{}", first_digits(&step)),
    };
    steps.into_iter().map(show).collect()
}

fn child<'a>(node: Node<'a>, step: &str) -> Option<Node<'a>> {
    if node.is_array() {
        return node.items().nth(step.parse().ok()?);
    }
    node.get(step)
}

fn adds_parameter(kind: ChangeKind) -> bool {
    matches!(kind, ChangeKind::AddedRequiredParam | ChangeKind::AddedOptionalParam)
}

fn is_index(step: &str) -> bool {
    (1..=5).contains(&step.len()) && step.bytes().all(|byte| byte.is_ascii_digit())
}

/// Keywords whose members have names chosen by the server.
const HOLDS_NAMES: [&str; 5] =
    ["properties", "patternProperties", "dependentSchemas", "dependentRequired", "dependencies"];

fn is_keyword(step: &str) -> bool {
    let members = [names::TOOL, names::TOOL_ANNOTATIONS, names::EXECUTION, names::PROMPT];
    let members = members.into_iter().chain([names::RESOURCE, &OF_SERVERS, &OF_SCHEMAS]);
    members.into_iter().any(|known| known.contains(&step))
}

/// Members of identities and origins, which Holdpoint itself writes.
const OF_SERVERS: [&str; 10] = [
    "attestedId",
    "capabilities",
    "signer",
    "kind",
    "package",
    "program",
    "url",
    "version",
    "digest",
    "tls",
];

/// Keywords of JSON Schema, and of MCP in schemas.
const OF_SCHEMAS: [&str; 47] = [
    "$comment",
    "$defs",
    "$id",
    "$ref",
    "$schema",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "default",
    "definitions",
    "else",
    "enum",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "if",
    "items",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "prefixItems",
    "propertyNames",
    "readOnly",
    "required",
    "then",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
    "writeOnly",
    "deprecated",
    "x-mcp-header",
];

#[cfg(test)]
mod tests;
