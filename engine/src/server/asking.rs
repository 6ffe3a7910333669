//! Questions to the person at the client: about a held call, if the configuration allows it, and to
//! allow a call of a tool that the configuration names.
//!
//! A "yes" is an approval by that person, and is recorded as one. Any other answer, or none, leaves
//! the call held or refused.

use crate::requests::ParkedCall;
use contract::hash::EntryHash;
use contract::surface::{Entry, EntryId};
use gate::judge::Judgement;
use gate::words::{Audience, escape_hidden, say_of};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use wire::envelope::members;

/// The timeout for a person's answer.
pub(crate) const ANSWER_PATIENCE: Duration = Duration::from_secs(300);
/// The most questions open at the same time. Calls held meanwhile are refused without one.
pub(crate) const MAX_QUESTIONS: usize = 10;
/// The most characters of a definition, or of a call's arguments, that a question shows.
const MAX_SHOWN_CHARACTERS: usize = 8_000;

const APPROVE: &str = "approve";
const KEEP: &str = "keep held";
const SHOW: &str = "show the change";
const VALIDATE: &str = "validate";
const ALLOW: &str = "allow this call once";
const REFUSE: &str = "refuse";

/// An open question.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) about: About,
    pub(super) deadline: Instant,
}

/// What a question is about.
#[derive(Debug)]
pub(super) enum About {
    /// A held entry. `hash` is what would be approved and nothing else, whatever the server shows
    /// meanwhile.
    Entry { entry: EntryId, hash: Option<EntryHash> },
    /// One call, which waits.
    Call(ParkedCall),
}

impl About {
    pub(super) fn entry(&self) -> Option<&EntryId> {
        match self {
            About::Entry { entry, .. } => Some(entry),
            About::Call(_) => None,
        }
    }
}

/// The person's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    /// They approve the change.
    Approve,
    /// They allow the call.
    Allow,
    Keep,
    Show,
    /// They request a test of the tool's behavior.
    Validate,
}

/// Parses the client's response. Anything but a clear yes is a no.
pub(crate) fn read_answer(message: &[u8]) -> Said {
    let member = |object: &[u8], name: &str| {
        members(object).find(|(known, _)| known == name).map(|(_, value)| value.to_vec())
    };
    let text = |value: Vec<u8>| serde_json::from_slice::<String>(&value).ok();
    let Some(result) = member(message, "result") else { return Said::Keep };
    let action = member(&result, "action").and_then(text);
    let decision =
        member(&result, "content").and_then(|content| member(&content, "decision")).and_then(text);
    match (action.as_deref(), decision.as_deref()) {
        (Some("accept"), Some(APPROVE)) => Said::Approve,
        (Some("accept"), Some(ALLOW)) => Said::Allow,
        (Some("accept"), Some(SHOW)) => Said::Show,
        (Some("accept"), Some(VALIDATE)) => Said::Validate,
        _ => Said::Keep,
    }
}

/// The parameters of the question. The first question contains no unaccepted text; the change
/// itself is shown to a person who asks for it.
pub(crate) fn parameters(banner: &str, change: Option<&Judgement>, can_validate: bool) -> Value {
    let (message, mut choices) = match change {
        None => (banner.to_owned(), vec![APPROVE, KEEP, SHOW]),
        Some(judgement) => (in_full(judgement), vec![APPROVE, KEEP]),
    };
    choices.extend(can_validate.then_some(VALIDATE));
    form(&message, "What should become of the change?", &choices)
}

/// The parameters of the question whether a call may be made.
pub(crate) fn call_parameters(message: &str) -> Value {
    form(message, "May this call be made?", &[ALLOW, REFUSE])
}

fn form(message: &str, title: &str, choices: &[&str]) -> Value {
    json!({
        "message": message,
        "requestedSchema": {
            "type": "object",
            "properties": {
                "decision": {"type": "string", "title": title, "enum": choices},
            },
            "required": ["decision"],
        },
    })
}

/// Describes a call to the person who must allow it. Nothing written by the agent can look like the
/// gate's text.
pub(crate) fn call_in_words(server: &str, tool: &str, arguments: Option<&[u8]>) -> String {
    let arguments = String::from_utf8_lossy(arguments.unwrap_or(b"none"));
    let length = arguments.chars().count();
    let shown: String = arguments.chars().take(MAX_SHOWN_CHARACTERS).collect();
    let shown = escape_hidden(&shown);
    let rest = match length > MAX_SHOWN_CHARACTERS {
        true => format!("… (only the first {MAX_SHOWN_CHARACTERS} of {length} characters)"),
        false => String::new(),
    };
    format!(
        "holdpoint: the agent wants to call {} of the server {server}, which needs your approval each time\n\
         arguments, in the agent's words: {shown}{rest}",
        escape_hidden(tool)
    )
}

fn in_full(judgement: &Judgement) -> String {
    let mut lines =
        vec![format!("holdpoint: what changed of {}", escape_hidden(&judgement.id.key))];
    lines.extend(judgement.findings.iter().map(|finding| {
        let name = escape_hidden(&judgement.id.key);
        format!("- {}", say_of(&name, finding, Audience::Person))
    }));
    for (name, entry) in [("before (approved)", &judgement.before), ("now", &judgement.after)] {
        let text = entry.as_ref().map_or("nothing", Entry::raw);
        lines.push(format!("{name}, in the server's words: {}", cut(&escape_hidden(text))));
    }
    lines.join("\n")
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN_CHARACTERS) {
        None => text.to_owned(),
        Some((end, _)) => {
            let kept = text.get(..end).unwrap_or_default();
            format!("{kept}… (all of it: holdpoint review)")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_approves() {
        let said = |result: &str| {
            read_answer(format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#).as_bytes())
        };
        assert_eq!(said(r#"{"action":"accept","content":{"decision":"approve"}}"#), Said::Approve);
        assert_eq!(
            said(r#"{"action":"accept","content":{"decision":"show the change"}}"#),
            Said::Show
        );
        for other in [
            r#"{"action":"accept","content":{"decision":"keep held"}}"#,
            r#"{"action":"accept","content":{"decision":"Approve"}}"#,
            r#"{"action":"accept","content":{}}"#,
            r#"{"action":"accept"}"#,
            r#"{"action":"decline","content":{"decision":"approve"}}"#,
            r#"{"action":"cancel"}"#,
            r#"{"content":{"decision":"approve"}}"#,
            "[]",
        ] {
            assert_eq!(said(other), Said::Keep, "{other}");
        }
        assert_eq!(read_answer(br#"{"jsonrpc":"2.0","id":1,"error":{"code":-1}}"#), Said::Keep);
    }

    #[test]
    fn a_long_definition_is_cut_one_past_the_limit_and_not_at_it() {
        let at = "x".repeat(MAX_SHOWN_CHARACTERS);
        assert_eq!(cut(&at), at);
        assert!(cut(&format!("{at}x")).ends_with("review)"));
    }

    #[test]
    fn long_arguments_are_cut_one_past_the_limit_and_not_at_it() {
        let at = "ü".repeat(MAX_SHOWN_CHARACTERS);
        assert!(call_in_words("files", "write", Some(at.as_bytes())).ends_with(&at));
        let shown = call_in_words("files", "write", Some(format!("{at}x").as_bytes()));
        assert!(shown.ends_with("ü… (only the first 8000 of 8001 characters)"), "{shown}");
    }

    #[test]
    fn only_the_yes_to_a_call_allows_it() {
        let said = |decision: &str| {
            let result = json!({"action": "accept", "content": {"decision": decision}});
            read_answer(json!({"id": 1, "result": result}).to_string().as_bytes())
        };
        assert_eq!(said(ALLOW), Said::Allow);
        assert_eq!([said(REFUSE), said("Allow this call once")], [Said::Keep; 2]);
    }
}
