//! The words a person reads, and the fewer words a model reads.
//!
//! The voice is "a silent change was caught", never "this tool is unsafe". Text for a model contains nothing
//! that was not accepted.

use crate::naming::{Approved, quoted_name, shown_name};
use crate::reason::Reason;
use crate::verdict::Verdict;
use contract::change::{ChangeClass, ChangeKind, Finding};
use contract::surface::EntryType;

/// Who reads it.
#[derive(Debug, Clone, Copy)]
pub enum Audience<'a> {
    /// On a terminal or a page: names are quoted as they are, hidden characters escaped.
    Person,
    /// In a refusal: places and names as far as the approved definition has them.
    Model(&'a Approved<'a>),
}

/// One finding as the end of a sentence that begins with the entry's name.
pub fn say(finding: &Finding, audience: Audience<'_>) -> String {
    use ChangeKind as Kind;
    let path = finding.path.as_str();
    let parameter = named_parameter(finding, audience);
    let of_parameter = |noun: &str| match &parameter {
        Some(name) => format!("{noun} {name}"),
        None => noun.to_owned(),
    };
    let about = subject(path, parameter.as_deref());
    let place = place_of_text(path, parameter.as_deref());
    match finding.kind {
        Kind::AddedRequiredParam => {
            let added = of_parameter("a new parameter");
            format!("now requires {added}: existing calls that omit it will fail")
        }
        Kind::RequiredSetExpanded => match &parameter {
            Some(name) => format!("now requires the parameter {name}, which could be left out"),
            None => "now requires a parameter that could be left out".to_owned(),
        },
        Kind::RemovedParam => match &parameter {
            Some(name) => format!("no longer has the parameter {name}"),
            None => "no longer has one of its parameters".to_owned(),
        },
        Kind::TypeChanged => format!("{about} no longer accepts every type of value that it did"),
        Kind::EnumValuesRemoved => format!("{about} no longer accepts every value that it did"),
        Kind::ConstraintNarrowed => format!("{about} now refuses values that it accepted"),
        Kind::ToolRemoved => "is not offered any more".to_owned(),
        Kind::AnnotationFlipToDestructive if path.ends_with("readOnlyHint") => {
            "no longer says that it only reads".to_owned()
        }
        Kind::AnnotationFlipToDestructive => "now says that it may destroy".to_owned(),
        Kind::OutputSchemaChanged => "declares another form of result".to_owned(),
        Kind::AddedOptionalParam => format!("has {}", of_parameter("a new optional parameter")),
        Kind::OutputSchemaAdded => "now declares the form of its result".to_owned(),
        Kind::ToolAdded => "is a new tool".to_owned(),
        Kind::DescriptionOnly if path.starts_with("/_meta/ui") => {
            "shows its user another page".to_owned()
        }
        Kind::DescriptionOnly => describes(finding, parameter.as_deref()),
        Kind::DeepSchemaUndiffable => {
            format!("{about} changed in a way that cannot be compared; look at it in full")
        }
        Kind::EnumValuesAdded => format!("{about} accepts further values"),
        Kind::TypeWidened => format!("{about} accepts further types of value"),
        Kind::ConstraintWidened => format!("{about} accepts values that it refused"),
        Kind::RequiredSetReduced => match &parameter {
            Some(name) => format!("no longer requires the parameter {name}"),
            None => "no longer requires one of its parameters".to_owned(),
        },
        Kind::DefaultChanged => {
            format!("{about} has another default: calls that omit it now have another meaning")
        }
        Kind::AnnotationChanged if path.ends_with("openWorldHint") => {
            "no longer says that it stays within its own data".to_owned()
        }
        Kind::AnnotationChanged => "no longer says that it can be repeated without harm".to_owned(),
        Kind::AnnotationLoosened => {
            format!("now claims to be less risky than it did{}", hint(path))
        }
        Kind::HeaderBindingChanged => format!("{about} is now copied into another header"),
        Kind::ExecutionChanged => {
            "now refuses plain calls, or calls as a task, that it accepted".to_owned()
        }
        Kind::MetadataChanged if path.is_empty() || path.starts_with("/inputSchema") => {
            format!("{about} is written differently; every call means the same")
        }
        Kind::MetadataChanged => "changed in a part that no call depends on".to_owned(),
        Kind::InstructionsChanged => "changed".to_owned(),
        Kind::PromptAdded => "is a new prompt".to_owned(),
        Kind::PromptRemoved => "is not offered any more".to_owned(),
        Kind::PromptChanged | Kind::ResourceChanged | Kind::TemplateChanged => {
            describes(finding, parameter.as_deref())
        }
        Kind::ResourceAdded => "is a new resource".to_owned(),
        Kind::ResourceRemoved => "is not listed any more".to_owned(),
        Kind::TemplateAdded => "is a new resource template".to_owned(),
        Kind::TemplateRemoved => "is not listed any more".to_owned(),
        Kind::CapabilitiesChanged => "offers other capabilities".to_owned(),
        Kind::IdentityChanged if path == "/name" => "calls itself by another name".to_owned(),
        Kind::IdentityChanged => "is attested as another server, or by another signer".to_owned(),
        Kind::OriginChanged => {
            "is started from another place, or reached at another address".to_owned()
        }
        Kind::OriginDetailChanged => {
            "is started in another version or with other arguments".to_owned()
        }
        Kind::MarkerFound if is_about_hidden_characters(finding) => {
            format!("has characters that a reader cannot see, {place}")
        }
        Kind::MarkerFound => format!("has wording that is written to steer a model, {place}"),
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
    audience: Audience<'_>,
) -> String {
    match (entry_type, audience) {
        (EntryType::Instructions, _) => "the server's instructions".to_owned(),
        (EntryType::Identity | EntryType::Origin, _) => "the server".to_owned(),
        (_, Audience::Person) => escape_hidden(key),
        (EntryType::Tool, Audience::Model(_)) => quoted_name(key, is_accepted),
        (EntryType::Prompt, Audience::Model(_)) => {
            format!("the prompt {}", quoted_name(key, is_accepted))
        }
        (EntryType::Resource | EntryType::Template, Audience::Model(_)) => {
            format!("the resource {}", quoted_name(key, is_accepted))
        }
    }
}

/// What a refusal is about.
#[derive(Debug, Clone, Copy)]
pub struct HeldCall<'a> {
    pub server: &'a str,
    /// The entry's name, as [`entry_name`] has it.
    pub subject: &'a str,
    pub verdict: Verdict,
    pub findings: &'a [Finding],
    pub approved: &'a Approved<'a>,
    pub versions: Versions<'a>,
}

/// The versions of a server, as far as they are known.
#[derive(Debug, Clone, Copy, Default)]
pub struct Versions<'a> {
    pub before: Option<&'a str>,
    pub now: Option<&'a str>,
}

impl Versions<'_> {
    fn say(self) -> String {
        // The server writes them: one that cannot be shown as it is says nothing as a hash.
        let shown = |version: Option<&str>| {
            version.filter(|version| shown_name(version, false) == *version).map(str::to_owned)
        };
        match (shown(self.before), shown(self.now)) {
            (Some(before), Some(now)) if before != now => {
                format!(" Version `{before}` before, `{now}` now.")
            }
            (_, Some(now)) => format!(" Server version `{now}`."),
            (_, None) => String::new(),
        }
    }
}

/// The finding that decides a verdict. In every posture a behavioral finding alone is inconclusive, so that a hold is
/// always decided by another one.
pub fn deciding(findings: &[Finding], verdict: Verdict) -> Option<&Finding> {
    let is_preferred = |finding: &Finding| match verdict {
        Verdict::Proceed => true,
        Verdict::Inconclusive => finding.class == ChangeClass::Behavioral,
        Verdict::Hold => finding.class != ChangeClass::Behavioral,
    };
    // Of two behavioral ones, the one that the posture may let through does not decide.
    let weight =
        |finding: &&Finding| (is_preferred(finding), finding.class, !finding.keeps_promises());
    findings.iter().max_by_key(weight)
}

/// What every refusal says that a person has to settle. The model reads it, so it says what the model has to do: nothing.
pub const AGENT_STOPS: &str = "Agent: stop, tell your user, and run nothing.";

/// The banner of a call that is held because its contract changed.
fn banner(call: &HeldCall<'_>, review: &str) -> String {
    let HeldCall { subject, findings, .. } = call;
    let change = deciding(findings, call.verdict).map_or_else(
        || "could not be compared with what you approved".to_owned(),
        |finding| say(finding, Audience::Model(call.approved)),
    );
    let more = match findings.len().saturating_sub(1) {
        0 => String::new(),
        1 => " (and 1 more change)".to_owned(),
        more => format!(" (and {more} more changes)"),
    };
    let versions = call.versions.say();
    format!(
        "○ holdpoint — caught a silent change: {subject} {change}{more}.{versions} Held before your agent ran it. {AGENT_STOPS} {review}  [Review · Re-pin · Validate]"
    )
}

/// What the model is told of a held call, whatever holds it.
pub fn held(reason: Reason, call: &HeldCall<'_>) -> String {
    let HeldCall { server, subject, .. } = call;
    let review = format!("A person decides: holdpoint review {server}");
    let said = match reason {
        Reason::ContractDrift | Reason::Marker if !call.findings.is_empty() => {
            return banner(call, &review);
        }
        Reason::ContractDrift | Reason::Marker => format!("{subject} is waiting for review"),
        Reason::NoPin => format!("{subject} has not been accepted on this server yet"),
        Reason::SurfaceUnreadable => {
            format!("what the server says of {subject} is invalid or ambiguous")
        }
        Reason::ServerChanged => {
            "the server changed since it was accepted, so none of its calls goes through".to_owned()
        }
        Reason::ServerPending => "the server is new and is waiting for its first review".to_owned(),
        Reason::ServerQuarantined => {
            let release = format!("A person decides: holdpoint release {server}");
            return format!(
                "○ holdpoint — a person stopped this server. Held before your agent ran it. {AGENT_STOPS} {release}"
            );
        }
        Reason::BaselineLost => format!(
            "what was accepted of {subject} is lost or was changed by a program other than Holdpoint"
        ),
        Reason::UnapprovedParameter => {
            format!("the call to {subject} uses a parameter that was not accepted yet")
        }
    };
    format!("○ holdpoint — {said}. Held before your agent ran it. {AGENT_STOPS} {review}")
}

/// What the model is told where a verdict's record cannot be made: the hold stands all the same.
pub fn held_without_provenance(server: &str) -> String {
    format!(
        "○ holdpoint — held (provenance unavailable). Held before your agent ran it. {AGENT_STOPS} A person decides: holdpoint review {server}"
    )
}

/// The parameter that a finding is about, in backticks, if it is about one that may be named.
fn named_parameter(finding: &Finding, audience: Audience<'_>) -> Option<String> {
    match audience {
        Audience::Model(approved) => approved.parameter(finding),
        Audience::Person => {
            let name = parameter(&finding.path);
            (!name.is_empty()).then(|| format!("`{}`", escape_hidden(&name)))
        }
    }
}

/// The hint that a finding is about: a term of MCP, for any audience.
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
fn subject(path: &str, parameter: Option<&str>) -> String {
    match parameter {
        Some(name) => format!("the parameter {name}"),
        None if path.starts_with("/inputSchema") => "its input".to_owned(),
        None => "it".to_owned(),
    }
}

/// A title or a description that was added, removed or changed; any other text only as described differently.
fn describes(finding: &Finding, parameter: Option<&str>) -> String {
    let path = finding.path.as_str();
    let is_about_input = path.starts_with("/inputSchema/");
    let text = match (parameter, path.strip_prefix("/inputSchema").unwrap_or(path)) {
        (Some(name), _) => return format!("describes the parameter {name} differently"),
        (None, "/description") => "description",
        (None, "/title" | "/annotations/title") => "title",
        (None, _) if is_about_input => return "describes its input differently".to_owned(),
        (None, _) => return "describes itself in other words".to_owned(),
    };
    match (&finding.before, &finding.after) {
        (None, Some(_)) if is_about_input => format!("now has a {text} for its input"),
        (None, Some(_)) => format!("now has a {text}"),
        (Some(_), None) if is_about_input => format!("no longer has a {text} for its input"),
        (Some(_), None) => format!("no longer has a {text}"),
        _ if is_about_input => format!("changed the {text} of its input"),
        _ => format!("changed its own {text}"),
    }
}

fn place_of_text(path: &str, parameter: Option<&str>) -> String {
    let own = path.strip_prefix("/inputSchema").unwrap_or(path);
    match (parameter, own) {
        (Some(name), _) => format!("about the parameter {name}"),
        (None, "/description") => "in its description".to_owned(),
        (None, "/title" | "/annotations/title") => "in its title".to_owned(),
        (None, _) if path.starts_with("/inputSchema/") => "about its input".to_owned(),
        (None, _) => "of itself".to_owned(),
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
