//! Claims of a tool about itself that contradict its own schema, name or annotations.

use super::words::{Verb, has_word, parts, verb};
use crate::dimension::Dimension;
use crate::finding::Severity;
use contract::json::Node;

/// A structural finding: rule, dimension, severity, reason, pointer.
pub(super) struct Found {
    pub(super) rule: &'static str,
    pub(super) dimension: Dimension,
    pub(super) severity: Severity,
    pub(super) reason: &'static str,
    pub(super) pointer: String,
}

/// Names of parameters that hold code or commands to run.
const RUNNING: [&str; 12] = [
    "command",
    "cmd",
    "shell",
    "shell_command",
    "bash",
    "exec",
    "eval",
    "powershell",
    "python_code",
    "shellcommand",
    "script_to_run",
    "code_to_run",
];
/// Names of parameters that a tool has no legitimate use for, whatever their description says.
const CAPTURING: [&str; 20] = [
    "conversation_history",
    "chat_history",
    "full_conversation",
    "conversation_context",
    "previous_messages",
    "message_history",
    "system_prompt",
    "systemprompt",
    "system_message",
    "hidden_prompt",
    "full_context",
    "entire_context",
    "chat_log",
    "chat_transcript",
    "all_messages",
    "tool_results",
    "previous_tool_results",
    "sidenote",
    "chain_of_thought",
    "assistant_instructions",
];

/// The contradictions within a tool.
pub(super) fn contradictions(name: &str, tool: Node<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    let hint = |name: &str| {
        tool.get("annotations").and_then(|hints| hints.get(name)).and_then(Node::as_bool)
    };
    let verb = verb(name);
    let text = tool.get("description").and_then(Node::as_str).unwrap_or_default();
    let mut push = |rule, reason, pointer: &str| {
        let (dimension, severity) = (Dimension::Overclaim, Severity::Medium);
        found.push(Found { rule, dimension, severity, reason, pointer: pointer.to_owned() });
    };
    if hint("readOnlyHint") == Some(true) && verb == Some(Verb::Writes) {
        let reason = "is annotated as read-only while its name says that it changes something";
        push("overclaim.read-only-name", reason, "/annotations/readOnlyHint");
    }
    if hint("readOnlyHint") == Some(true) && hint("destructiveHint") == Some(true) {
        let reason = "is annotated as read-only and as destructive";
        push("overclaim.read-only-and-destructive", reason, "/annotations/readOnlyHint");
    }
    if hint("destructiveHint") == Some(false) && is_destroying(name) {
        let reason = "is annotated as not destructive while its name says that it deletes";
        push("overclaim.not-destructive-name", reason, "/annotations/destructiveHint");
    }
    if says_read_only(&text) && verb == Some(Verb::Writes) {
        let reason = "describes itself as read-only while its name says that it changes something";
        push("overclaim.read-only-text", reason, "/description");
    }
    if verb == Some(Verb::Computes)
        || verb == Some(Verb::Reads)
        || hint("readOnlyHint") == Some(true)
    {
        for (parameter, _) in parameters(tool) {
            if RUNNING.contains(&parameter.to_ascii_lowercase().as_str())
                && !speaks_of_running(name, &text)
            {
                let reason = "takes a command to run while its name or annotations say that it only reads or computes";
                push("overclaim.reads-but-runs", reason, &pointer_of(&parameter));
            }
        }
    }
    found
}

/// Parameters that ask for the conversation, judging by their name.
pub(super) fn captures(tool: Node<'_>) -> Vec<Found> {
    let is_capturing = |name: &str| CAPTURING.contains(&parts(name).join("_").as_str());
    parameters(tool)
        .filter(|(name, _)| is_capturing(name))
        .map(|(name, _)| Found {
            rule: "exfiltration.capturing-parameter",
            dimension: Dimension::Exfiltration,
            severity: Severity::Medium,
            reason: "has a parameter for the conversation, the instructions or other tools' results",
            pointer: pointer_of(&name),
        })
        .collect()
}

fn parameters<'n>(tool: Node<'n>) -> impl Iterator<Item = (String, Node<'n>)> {
    let properties = tool.get("inputSchema").and_then(|schema| schema.get("properties"));
    let members = properties.into_iter().flat_map(Node::members);
    members.map(|(name, value)| (name.as_str().unwrap_or_default().into_owned(), value))
}

fn pointer_of(parameter: &str) -> String {
    let mut pointer = "/inputSchema/properties".to_owned();
    contract::markers::push_pointer_name(&mut pointer, parameter);
    pointer
}

fn is_destroying(name: &str) -> bool {
    ["delete", "drop", "destroy", "purge", "wipe", "erase", "truncate"]
        .into_iter()
        .any(|word| has_word(name, word))
}

fn says_read_only(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let denies = ["not read-only", "isn't read-only", "non-read-only", "not read only"];
    [
        "read-only tool",
        "read-only operation",
        "is read-only",
        "only reads",
        "does not modify anything",
        "read-only.",
    ]
    .into_iter()
    .any(|claim| lower.contains(claim))
        && !denies.into_iter().any(|denial| lower.contains(denial))
}

fn speaks_of_running(name: &str, text: &str) -> bool {
    let words = [
        "run", "exec", "execute", "shell", "command", "terminal", "console", "cli", "process",
        "query", "sql", "script",
    ];
    let text: Vec<String> = parts(text);
    words
        .into_iter()
        .any(|word| has_word(name, word) || text.iter().any(|part| part.starts_with(word)))
}
