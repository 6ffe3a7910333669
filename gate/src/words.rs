//! The words a person reads, and the fewer words a model reads.
//!
//! The voice is "a silent change was caught", never "this tool is unsafe". What goes to a model carries no text that
//! nobody accepted.

use crate::reason::Reason;
use contract::change::{ChangeKind, Finding};
use contract::hash::sha256_hex;
use contract::json::Document;
use contract::markers;
use contract::surface::EntryType;

/// Who reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// On a terminal or a page: names are quoted as they are, hidden characters escaped.
    Person,
    /// In a refusal: a new name only if it can carry no message.
    Model,
}

/// One finding as the end of a sentence that begins with the entry's name.
pub fn say(finding: &Finding, audience: Audience) -> String {
    use ChangeKind as Kind;
    let old = |path: &str| quoted(&parameter(path), audience, true);
    let new = |path: &str| quoted(&parameter(path), audience, false);
    let path = finding.path.as_str();
    // Without a before, the name itself may be new.
    let is_known = finding.before.is_some();
    let about = subject(path, audience, is_known);
    match finding.kind {
        Kind::AddedRequiredParam => {
            format!(
                "now requires a new parameter {}: existing calls that omit it will fail",
                new(path)
            )
        }
        Kind::RequiredSetExpanded => {
            format!("now requires the parameter {}, which could be left out", old(path))
        }
        Kind::RemovedParam => format!("no longer has the parameter {}", old(path)),
        Kind::TypeChanged => format!("{about} no longer accepts every type of value that it did"),
        Kind::EnumValuesRemoved => format!("{about} no longer accepts every value that it did"),
        Kind::ConstraintNarrowed => format!("{about} now refuses values that it accepted"),
        Kind::ToolRemoved => "is not offered any more".to_owned(),
        Kind::AnnotationFlipToDestructive if path.ends_with("readOnlyHint") => {
            "no longer says that it only reads".to_owned()
        }
        Kind::AnnotationFlipToDestructive => "now says that it may destroy".to_owned(),
        Kind::OutputSchemaChanged => "declares another form of result".to_owned(),
        Kind::AddedOptionalParam => format!("has a new optional parameter {}", new(path)),
        Kind::OutputSchemaAdded => "now declares the form of its result".to_owned(),
        Kind::ToolAdded => "is a new tool".to_owned(),
        Kind::DescriptionOnly => {
            format!("says something else {}", place_of_text(path, audience, is_known))
        }
        Kind::DeepSchemaUndiffable => {
            format!("{about} changed in a way that cannot be compared; look at it in full")
        }
        Kind::EnumValuesAdded => format!("{about} accepts further values"),
        Kind::TypeWidened => format!("{about} accepts further types of value"),
        Kind::ConstraintWidened => format!("{about} accepts values that it refused"),
        Kind::RequiredSetReduced => format!("no longer requires the parameter {}", old(path)),
        Kind::DefaultChanged => {
            format!("{about} has another default: calls that omit it now mean something else")
        }
        Kind::AnnotationChanged if path.ends_with("openWorldHint") => {
            "no longer says that it stays within its own data".to_owned()
        }
        Kind::AnnotationChanged => "no longer says that it can be repeated without harm".to_owned(),
        Kind::AnnotationLoosened => {
            format!("now claims to be less risky than it did{}", hint(path))
        }
        Kind::HeaderBindingChanged => format!("{about} is now copied into another header"),
        Kind::MetadataChanged if path.is_empty() || path.starts_with("/inputSchema") => {
            format!("{about} is written differently; every call means the same")
        }
        Kind::MetadataChanged => format!("{about} changed; no call depends on it"),
        Kind::InstructionsChanged => "tell the model something else".to_owned(),
        Kind::PromptAdded => "is a new prompt".to_owned(),
        Kind::PromptRemoved => "is not offered any more".to_owned(),
        Kind::PromptChanged | Kind::ResourceChanged | Kind::TemplateChanged => {
            format!("says something else {}", place_of_text(path, audience, is_known))
        }
        Kind::ResourceAdded => "is a new resource".to_owned(),
        Kind::ResourceRemoved => "is not listed any more".to_owned(),
        Kind::TemplateAdded => "is a new resource template".to_owned(),
        Kind::TemplateRemoved => "is not listed any more".to_owned(),
        Kind::CapabilitiesChanged => "offers other capabilities".to_owned(),
        Kind::IdentityChanged if path == "/name" => "calls itself by another name".to_owned(),
        Kind::IdentityChanged => {
            "is vouched for as another server, or by another signer".to_owned()
        }
        Kind::OriginChanged => "is started from, or reached at, another place".to_owned(),
        Kind::OriginDetailChanged => {
            "is started in another version or with other arguments".to_owned()
        }
        Kind::MarkerFound if is_about_hidden_characters(finding) => {
            format!(
                "has characters that a reader cannot see, {}",
                place_of_text(path, audience, is_known)
            )
        }
        Kind::MarkerFound => format!(
            "has wording that is written to steer a model, {}",
            place_of_text(path, audience, is_known)
        ),
    }
}

/// Markers name their rule first.
fn is_about_hidden_characters(finding: &Finding) -> bool {
    finding.after.as_deref().is_some_and(|after| after.starts_with("hidden."))
}

/// How an entry is called at the start of a sentence.
pub fn entry_name(
    entry_type: EntryType,
    key: &str,
    is_accepted: bool,
    audience: Audience,
) -> String {
    match entry_type {
        EntryType::Instructions => "the server's instructions".to_owned(),
        EntryType::Identity | EntryType::Origin => "the server".to_owned(),
        EntryType::Tool | EntryType::Prompt | EntryType::Resource | EntryType::Template => {
            match audience {
                Audience::Person => escape_hidden(key),
                Audience::Model => model_name(key, is_accepted),
            }
        }
    }
}

/// The banner of a held call.
pub fn banner(server: &str, subject: &str, findings: &[Finding]) -> String {
    let said = findings.iter().max_by_key(|finding| finding.class);
    let change = said.map_or_else(
        || "its contract could not be compared with what you approved".to_owned(),
        |finding| say(finding, Audience::Model),
    );
    format!(
        "○ holdpoint — caught a silent change: {subject} {change}. Held before your agent ran it. \
         A person decides: holdpoint review {server}  [Review · Re-pin · Validate]"
    )
}

/// What the model is told of a held call, whatever holds it.
pub fn held(reason: Reason, server: &str, subject: &str, findings: &[Finding]) -> String {
    let review = format!("A person decides: holdpoint review {server}");
    match reason {
        Reason::ContractDrift | Reason::Marker if !findings.is_empty() => {
            banner(server, subject, findings)
        }
        Reason::ContractDrift | Reason::Marker => format!(
            "○ holdpoint — {subject} waits for a look. Held before your agent ran it. {review}"
        ),
        Reason::NoPin => format!(
            "○ holdpoint — {subject} is not among what was accepted of this server. Held before your agent ran it. {review}"
        ),
        Reason::SurfaceUnreadable => format!(
            "○ holdpoint — what the server says of {subject} cannot be read in exactly one way. Held before your agent ran it. {review}"
        ),
        Reason::ServerChanged => format!(
            "○ holdpoint — the server changed since it was accepted, so none of its calls goes through. Held before your agent ran it. {review}"
        ),
        Reason::ServerPending => format!(
            "○ holdpoint — the server is new and waits for a first look. Held before your agent ran it. {review}"
        ),
        Reason::ServerQuarantined => format!(
            "○ holdpoint — a person stopped this server. Held before your agent ran it. A person decides: holdpoint release {server}"
        ),
        Reason::BaselineLost => format!(
            "○ holdpoint — what was accepted of {subject} is lost or was changed by something else than holdpoint. Held before your agent ran it. {review}"
        ),
        Reason::UnapprovedParameter => format!(
            "○ holdpoint — the call to {subject} uses a parameter that nobody accepted yet. Held before your agent ran it. {review}"
        ),
    }
}

/// A JSON Pointer for a model: steps that are neither a word of JSON Schema or MCP nor harmless are told by their hash.
pub fn model_path(path: &str) -> String {
    let steps = path
        .split('/')
        .map(|step| if step.is_empty() { String::new() } else { model_name(step, false) });
    steps.collect::<Vec<_>>().join("/")
}

/// The banner where a verdict's record cannot be made: the hold stands all the same.
pub const BANNER_WITHOUT_PROVENANCE: &str = "○ holdpoint — held (provenance unavailable)";

fn quoted(name: &str, audience: Audience, is_accepted: bool) -> String {
    match audience {
        Audience::Person => format!("`{}`", escape_hidden(name)),
        Audience::Model => format!("({})", model_name(name, is_accepted)),
    }
}

/// The hint that a finding is about: one of MCP's own words, whoever reads it.
fn hint(path: &str) -> &'static str {
    match path.rsplit('/').next() {
        Some("readOnlyHint") => " (only reads)",
        Some("destructiveHint") => " (destroys nothing)",
        Some("idempotentHint") => " (can be repeated)",
        Some("openWorldHint") => " (stays within its own data)",
        _ => "",
    }
}

/// What within the entry a finding is about: a parameter, or the whole of it.
fn subject(path: &str, audience: Audience, is_known: bool) -> String {
    let name = parameter(path);
    if name.is_empty() {
        return if path.starts_with("/inputSchema") {
            "its input".to_owned()
        } else {
            "it".to_owned()
        };
    }
    format!("the parameter {}", quoted(&name, audience, is_known))
}

fn place_of_text(path: &str, audience: Audience, is_known: bool) -> String {
    let name = parameter(path);
    if name.is_empty() {
        match path.rsplit('/').next() {
            Some("description") => "in its description".to_owned(),
            Some("title") => "in its title".to_owned(),
            _ => "of itself".to_owned(),
        }
    } else {
        format!("about the parameter {}", quoted(&name, audience, is_known))
    }
}

/// The parameter that a pointer leads to or into, with dots for what is nested.
fn parameter(path: &str) -> String {
    let steps: Vec<String> =
        path.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect();
    let mut names = Vec::new();
    let mut rest = steps.as_slice();
    while let [first, tail @ ..] = rest {
        rest = tail;
        let [name, after @ ..] = tail else { break };
        if matches!(first.as_str(), "properties" | "$defs" | "definitions") {
            names.push(name.as_str());
            rest = after;
        }
    }
    names.join(".")
}

/// A name that a model may be told: one that was accepted, or one that can carry no message; else part of its hash.
pub fn model_name(name: &str, is_accepted: bool) -> String {
    if is_accepted && name.chars().all(|c| !c.is_control()) && name.len() <= 128
        || is_harmless_name(name)
    {
        return name.to_owned();
    }
    sha256_hex(name.as_bytes()).chars().take(8).collect()
}

/// `[A-Za-z0-9_-]{1,32}`, without a marker and without a word that reads like an all-clear.
fn is_harmless_name(name: &str) -> bool {
    const GREEN_WORDS: [&str; 8] =
        ["safe", "verified", "trusted", "approved", "allowed", "clear", "passed", "secure"];
    let is_plain = (1..=32).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    let lower = name.to_ascii_lowercase();
    is_plain && !GREEN_WORDS.iter().any(|word| lower.contains(word)) && !has_marker(name)
}

fn has_marker(name: &str) -> bool {
    let spaced = name.replace(['_', '-'], " ");
    [name, spaced.as_str()].into_iter().any(|text| {
        let mut json = Vec::new();
        contract::json::escape_into(text, &mut json);
        let json = String::from_utf8(json).unwrap_or_default();
        Document::parse(&json).is_ok_and(|document| !markers::scan(document.root()).is_empty())
    })
}

/// A text for a terminal or a page: nothing in it can move the cursor, reorder letters or hide.
pub fn escape_hidden(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if is_hidden(character) {
            out.extend(character.escape_unicode());
        } else {
            out.push(character);
        }
    }
    out
}

pub use contract::hidden::is_hidden;

#[cfg(test)]
mod tests;
