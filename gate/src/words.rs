//! The texts that a person reads, and the more restricted texts that a model reads.
//!
//! The tone is "a silent change was caught", never "this tool is unsafe". Text for a model contains
//! nothing unaccepted.

use crate::by_the_call::CallCause;
use crate::judge::Judgement;
use crate::naming::{Approved, DottedName, named_tool, quoted_name, shown_name};
use crate::reason::Reason;
use crate::sentences::{self, Values};
use crate::tiers::{Behavior, CorpusAnswer, Opinion};
use crate::verdict::Verdict;
use contract::change::{ChangeClass, ChangeKind, Finding, Meaning};
use contract::detail::Detail;
use contract::surface::EntryType;
use std::fmt;

mod several;

/// The reader of a text.
#[derive(Debug, Clone, Copy)]
pub enum Audience<'a> {
    /// On a terminal or a page: names are quoted unchanged, with hidden characters escaped.
    Person,
    /// In a refusal: places and names only as far as the approved definition has them.
    Model(&'a Approved<'a>),
}

/// Describes one finding, without the name of the entry.
pub fn say(finding: &Finding, audience: Audience<'_>) -> String {
    match phrase(finding, audience) {
        Phrase::Predicate(text) | Phrase::Sentence(text) => text,
    }
}

/// A sentence about one finding of an entry called `name`.
pub fn say_of(name: &str, finding: &Finding, audience: Audience<'_>) -> String {
    match phrase(finding, audience) {
        Phrase::Predicate(text) => format!("{name} {text}"),
        Phrase::Sentence(text) => format!("{name}: {text}"),
    }
}

/// A sentence about a finding that several entries share; `names` lists them.
pub fn say_of_several(names: &str, finding: &Finding, audience: Audience<'_>) -> String {
    match phrase(finding, audience) {
        Phrase::Predicate(text) => format!("{names} {}", several::plural(&text)),
        Phrase::Sentence(text) => format!("{names}: {text}"),
    }
}

/// A text about an entry.
enum Phrase {
    /// The end of a sentence that starts with the entry's name.
    Predicate(String),
    /// A sentence about a part of the entry.
    Sentence(String),
}

fn phrase(finding: &Finding, audience: Audience<'_>) -> Phrase {
    use ChangeKind as Kind;
    let subject = subject(finding, audience);
    let schema = |otherwise: &str| {
        let exact = sentences::sentence(finding, &subject, Values::Arguments, audience);
        Phrase::Sentence(exact.unwrap_or_else(|| format!("{subject} {otherwise}")))
    };
    match finding.kind {
        Kind::TypeChanged => schema("no longer accepts every type of value that it did"),
        Kind::EnumValuesRemoved => schema("no longer accepts every value that it did"),
        Kind::ConstraintNarrowed if finding.before.is_none() && is_property(&finding.path) => {
            schema("is now declared, and may refuse values that it accepted undeclared")
        }
        Kind::ConstraintNarrowed => schema("may now refuse values that it accepted"),
        Kind::EnumValuesAdded => schema("accepts further values"),
        Kind::TypeWidened => schema("accepts further types of value"),
        Kind::ConstraintWidened => schema("accepts values that it refused"),
        Kind::DefaultChanged => {
            schema("has a different default: calls that omit it may now mean something different")
        }
        Kind::HeaderBindingChanged => schema("is now copied into a different header, or into none"),
        Kind::DeepSchemaUndiffable if is_about_schema(finding) => Phrase::Sentence(format!(
            "{subject} changed in a way that cannot be compared; review it in full"
        )),
        Kind::OutputSchemaChanged => {
            let name = |part: &Finding| named_parameter(part, audience);
            match sentences::results(finding, name, audience) {
                Some(sentence) => Phrase::Sentence(sentence),
                None if finding.after.is_none() => {
                    Phrase::Predicate("no longer declares the form of its result".to_owned())
                }
                None => Phrase::Predicate("changed its output schema".to_owned()),
            }
        }
        Kind::MetadataChanged if is_generated_title(finding) => {
            Phrase::Sentence("a generated title changed".to_owned())
        }
        Kind::MetadataChanged if is_about_schema(finding) => schema(rewritten(finding)),
        Kind::AnnotationFlipToDestructive if finding.meaning == Some(Meaning::EffectiveSame) => {
            let words = "`destructiveHint: true` is now written down; MCP assumed it before";
            Phrase::Sentence(words.to_owned())
        }
        _ => Phrase::Predicate(predicate(finding, audience)),
    }
}

/// Describes a change of a schema's metadata by the keyword that changed.
fn rewritten(finding: &Finding) -> &'static str {
    let keyword = finding.path.rsplit('/').next().unwrap_or_default();
    let is_keyword = !is_property(&finding.path);
    match (keyword, &finding.before, &finding.after) {
        ("$schema", None, Some(_)) if is_keyword => "now names its dialect of JSON Schema",
        ("$schema", Some(_), None) if is_keyword => "no longer names its dialect of JSON Schema",
        ("$schema", ..) if is_keyword => {
            "names a different dialect of JSON Schema, and means the same"
        }
        ("title", _, Some(_)) if is_keyword => "has a different title, which only spells its name",
        ("title", _, None) if is_keyword => "no longer has a title, which only spelled its name",
        ("default", None, _) if is_keyword => "now has null as its default, which says nothing",
        ("default", _, None) if is_keyword => {
            "no longer has null as its default, which said nothing"
        }
        _ => "is written differently and means the same",
    }
}

/// Whether a pointer ends with the name of a property.
fn is_property(path: &str) -> bool {
    let mut steps = path.rsplit('/');
    let _name = steps.next();
    steps.next() == Some("properties")
}

fn is_about_schema(finding: &Finding) -> bool {
    finding.path.starts_with("/inputSchema") || finding.path.starts_with("/outputSchema")
}

/// Whether a finding is about the title of a whole input or output schema, which frameworks
/// generate.
fn is_generated_title(finding: &Finding) -> bool {
    finding.kind == ChangeKind::MetadataChanged
        && matches!(finding.path.as_str(), "/inputSchema/title" | "/outputSchema/title")
}

/// The part of the entry that a finding is about: a parameter, a member of results, or the whole
/// input or result.
fn subject(finding: &Finding, audience: Audience<'_>) -> String {
    let is_result = finding.path.starts_with("/outputSchema");
    // The keyword describes the value that it stands in, rather than the additional members that it
    // is named for.
    let is_of_object = matches!(finding.detail, Some(Detail::Keyword));
    let path = finding.path.as_str();
    let around = path.strip_suffix("/additionalProperties");
    let location = match around.or_else(|| path.strip_suffix("/unevaluatedProperties")) {
        Some(path) if is_of_object || sentences::closes_object(finding) => {
            named_parameter(&Finding { path: path.to_owned(), ..finding.clone() }, audience)
        }
        Some(_) | None => named_parameter(finding, audience),
    };
    match (location, is_result) {
        (Some(name), false) => name,
        (Some(name), true) => format!("{name} in results"),
        (None, false) => "its input".to_owned(),
        (None, true) => "the form of its results".to_owned(),
    }
}

/// The end of a sentence that starts with the entry's name.
fn predicate(finding: &Finding, audience: Audience<'_>) -> String {
    use ChangeKind as Kind;
    let path = finding.path.as_str();
    let parameter = named_parameter(finding, audience);
    let of_parameter = |noun: &str| match &parameter {
        Some(name) => format!("{noun} {name}"),
        None => noun.to_owned(),
    };
    let place = place_of_text(path, parameter.as_deref());
    let said = match finding.kind {
        Kind::AddedRequiredParam if is_of_new_tool(finding) => {
            return format!("requires {}", of_parameter("the parameter"));
        }
        Kind::AddedRequiredParam => {
            let added = of_parameter("a new parameter");
            return format!("now requires {added}: existing calls that omit it will fail");
        }
        Kind::RequiredSetExpanded => match &parameter {
            Some(name) => {
                return format!("now requires the parameter {name}, which was optional");
            }
            None => "now requires a parameter that was optional",
        },
        Kind::RemovedParam => match &parameter {
            Some(name) => return format!("no longer has the parameter {name}"),
            None => "no longer has one of its parameters",
        },
        Kind::ToolRemoved | Kind::PromptRemoved => "is no longer offered",
        Kind::AnnotationFlipToDestructive if path.ends_with("readOnlyHint") => {
            "no longer declares itself read-only"
        }
        Kind::AnnotationFlipToDestructive if finding.after.is_none() => {
            "no longer declares itself non-destructive"
        }
        Kind::AnnotationFlipToDestructive if is_of_new_tool(finding) => {
            "declares itself destructive"
        }
        Kind::AnnotationFlipToDestructive => "now declares itself destructive",
        Kind::AddedOptionalParam => {
            return format!("has {}", of_parameter("a new optional parameter"));
        }
        Kind::OutputSchemaAdded => "now declares the form of its result",
        Kind::ToolAdded => "is a new tool",
        Kind::DescriptionOnly if path.starts_with("/_meta/ui") => "shows the user a different page",
        Kind::DescriptionOnly
        | Kind::PromptChanged
        | Kind::ResourceChanged
        | Kind::TemplateChanged => return describes(finding, parameter.as_deref()),
        Kind::DeepSchemaUndiffable => "changed in a way that cannot be compared; review it in full",
        Kind::RequiredSetReduced => match &parameter {
            Some(name) => return format!("no longer requires the parameter {name}"),
            None => "no longer requires one of its parameters",
        },
        Kind::AnnotationChanged if path.ends_with("openWorldHint") => {
            "no longer says that it stays within its own data"
        }
        Kind::AnnotationChanged => "no longer says that it can be repeated without harm",
        Kind::AnnotationLoosened => {
            return loosened(finding);
        }
        Kind::ExecutionChanged => "now refuses plain calls, or calls as a task, that it accepted",
        Kind::MetadataChanged => "changed in a part that no call depends on",
        Kind::InstructionsChanged => "changed",
        Kind::PromptAdded => "is a new prompt",
        Kind::ResourceAdded => "is a new resource",
        Kind::TemplateAdded => "is a new resource template",
        Kind::ResourceRemoved | Kind::TemplateRemoved => "is no longer listed",
        Kind::CapabilitiesChanged => "declares different capabilities",
        Kind::IdentityChanged if path == "/name" => "has a different name",
        Kind::IdentityChanged => "is attested as a different server, or by a different signer",
        Kind::OriginChanged => {
            "is started from a different place, or reached at a different address"
        }
        Kind::OriginDetailChanged => {
            "is started in a different version or with different arguments"
        }
        Kind::MarkerFound if is_about_hidden_characters(finding) => {
            return format!("has characters that a reader cannot see, {place}");
        }
        Kind::MarkerFound => {
            return format!("has wording designed to steer a model, {place}");
        }
        // These have sentences of their own.
        Kind::TypeChanged
        | Kind::EnumValuesRemoved
        | Kind::ConstraintNarrowed
        | Kind::EnumValuesAdded
        | Kind::TypeWidened
        | Kind::ConstraintWidened
        | Kind::DefaultChanged
        | Kind::HeaderBindingChanged
        | Kind::OutputSchemaChanged => "changed",
    };
    said.to_owned()
}

/// A marker finding starts with its rule.
fn is_about_hidden_characters(finding: &Finding) -> bool {
    finding.after.as_deref().is_some_and(|after| after.starts_with("hidden."))
}

/// The name of an entry at the start of a sentence.
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

/// Where the person decides who is mentioned in a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reviewer<'a> {
    /// In a terminal, about this server.
    Terminal(&'a str),
    /// In the application that the gate is embedded in.
    Application,
}

impl fmt::Display for Reviewer<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reviewer::Terminal(server) => {
                write!(formatter, "A person decides: holdpoint review {server}")
            }
            Reviewer::Application => formatter.write_str("A person decides in this application."),
        }
    }
}

/// The subject of a refusal.
#[derive(Debug, Clone, Copy)]
pub struct HeldCall<'a> {
    pub reviewer: Reviewer<'a>,
    /// The entry's name, as returned by [`entry_name`].
    pub subject: &'a str,
    pub verdict: Verdict,
    pub findings: &'a [Finding],
    pub approved: &'a Approved<'a>,
    pub versions: Versions<'a>,
    /// The answer of tier 3 of the ladder.
    pub behavior: Behavior,
    /// The answers of the other tiers in our own sentences; either empty or starting with a space.
    pub others: &'a str,
}

/// The versions of a server, as far as they are known.
#[derive(Debug, Clone, Copy, Default)]
pub struct Versions<'a> {
    pub before: Option<&'a str>,
    pub now: Option<&'a str>,
}

impl Versions<'_> {
    fn say(self) -> String {
        // The server writes its versions. One that must not be shown would be a hash, which is
        // useless, so it is dropped.
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

/// The finding that decides a verdict. A behavioral finding alone is inconclusive in every posture,
/// so a hold is always decided by another finding.
pub fn deciding(findings: &[Finding], verdict: Verdict) -> Option<&Finding> {
    let is_preferred = |finding: &Finding| match verdict {
        Verdict::Proceed => true,
        Verdict::Inconclusive => finding.class == ChangeClass::Behavioral,
        Verdict::Hold => finding.class != ChangeClass::Behavioral,
    };
    // Of two behavioral findings, the one that the posture may let through does not decide.
    let weight = |finding: &&Finding| {
        let is_deciding = (is_preferred(finding), finding.class, !finding.keeps_promises());
        (is_deciding, finding.path == "/description")
    };
    let decides = findings.iter().max_by_key(weight);
    // What a new tool requires affects no existing user, so report that the tool is new.
    let is_new = |finding: &&Finding| finding.kind == ChangeKind::ToolAdded;
    match decides {
        Some(finding) if is_of_new_tool(finding) => findings.iter().find(is_new).or(decides),
        decides => decides,
    }
}

/// Part of every refusal that a person has to settle. A model reads it, so it says what the model
/// has to do: nothing.
pub const AGENT_STOPS: &str = "Agent: stop, tell your user, and run nothing.";

/// Added to a refusal by the call: the agent must not try to find arguments that pass.
pub const NO_OTHER_ARGUMENTS: &str =
    "Do not try other arguments: every call of this tool is held for the rest of the session.";

/// The first line of a refusal that is based on findings. `caught` says what was found.
fn banner(caught: &str, call: &HeldCall<'_>, more: &str) -> String {
    let (change, review) = (change_of(caught, call, more), call.reviewer);
    let (observed, others) = (observed(call.behavior), call.others);
    format!("{change}{observed}{others} Held before your agent ran it. {AGENT_STOPS} {review}")
}

/// The observed behavior of the tool, if it was tested.
fn observed(behavior: Behavior) -> &'static str {
    match behavior {
        Behavior::NotRun | Behavior::Cleared => "",
        Behavior::Declined => {
            " Its behaviour was not checked: it is not the operator's own server."
        }
        Behavior::Unavailable => " Its behaviour could not be checked.",
        Behavior::Failed => " Its behaviour was checked and does not match the contract.",
    }
}

/// The answers of tiers 1 and 2 and the drift network about a change. Fixed sentences: nothing
/// received over the network is quoted.
pub fn said_by_others(judgement: &Judgement) -> String {
    let mut said = String::new();
    if let Some(climbed) = &judgement.climbed {
        if climbed.corpus == CorpusAnswer::Dangerous {
            said.push_str(
                " The directory that the operator named lists this definition as dangerous.",
            );
        }
        if climbed.opinion == Opinion::Suspicious {
            said.push_str(" The model that the operator named finds the change suspicious.");
        }
    }
    if let Some(advisory) = &judgement.advisory {
        said.push(' ');
        said.push_str(&advisory.sentence());
    }
    said
}

/// The message for the model about one call that is held because of what it uses.
pub fn held_by_the_call(call: &HeldCall<'_>, cause: CallCause) -> String {
    let change = change_of("caught a silent change", call, &and_more_changes(call.findings));
    let (why, review) = (cause.words(), call.reviewer);
    format!(
        "{change} Held before your agent ran it: {why}. {AGENT_STOPS} {NO_OTHER_ARGUMENTS} {review}"
    )
}

/// The deciding change, the number of further ones, and the versions.
fn change_of(caught: &str, call: &HeldCall<'_>, more: &str) -> String {
    let HeldCall { subject, findings, .. } = call;
    let change = match deciding(findings, call.verdict) {
        None => format!(": {subject} could not be compared with what you approved"),
        Some(finding) => match phrase(finding, Audience::Model(call.approved)) {
            Phrase::Predicate(text) => format!(": {subject} {text}"),
            Phrase::Sentence(text) => format!(" in {subject}: {text}"),
        },
    };
    let versions = call.versions.say();
    format!("○ holdpoint — {caught}{change}{more}.{versions}")
}

/// The number of changes besides the one described.
fn and_more_changes(findings: &[Finding]) -> String {
    match findings.len().saturating_sub(1) {
        0 => String::new(),
        1 => " (and 1 more change)".to_owned(),
        more => format!(" (and {more} more changes)"),
    }
}

/// The number of markers besides the one described: in a new entry nothing else counts as a change.
fn and_more_places(findings: &[Finding]) -> String {
    let markers = findings.iter().filter(|finding| finding.class == ChangeClass::Marker);
    match markers.count().saturating_sub(1) {
        0 => String::new(),
        1 => " (and 1 more such place)".to_owned(),
        more => format!(" (and {more} more such places)"),
    }
}

/// Whether a marker decides about an entry that was never accepted.
fn is_marked_at_first_sight(reason: Reason, findings: &[Finding], verdict: Verdict) -> bool {
    let is_marker = |finding: &Finding| finding.class == ChangeClass::Marker;
    reason == Reason::NoPin && deciding(findings, verdict).is_some_and(is_marker)
}

/// The description of the stub for a tool that was held when it was first seen.
pub fn stub(review: Reviewer<'_>, judged: &Judgement) -> String {
    let why = why_at_first_sight("the tool", judged);
    format!(
        "Held by Holdpoint and not available: {why}. If it is needed, tell your user and run nothing. {review}"
    )
}

/// The message for the person about an entry that is held when it is first seen. The model may see
/// it too, so it contains no text from the server.
pub fn held_at_first_sight(server: &str, judged: &Judgement) -> String {
    let audience = Audience::Model(&Approved::default());
    let name = entry_name(judged.id.entry_type, &judged.id.key, false, audience);
    let why = why_at_first_sight(&name, judged);
    format!(
        "○ holdpoint — held when first seen: {why}. A person decides: holdpoint review {server}"
    )
}

fn why_at_first_sight(name: &str, judged: &Judgement) -> String {
    let audience = Audience::Model(&Approved::default());
    let why = deciding(&judged.findings, judged.verdict).map_or_else(
        || format!("{name} is waiting for review"),
        |finding| say_of(name, finding, audience),
    );
    format!("{why}{}", and_more_places(&judged.findings))
}

/// The message for the model about a held call, for any reason.
pub fn held(reason: Reason, call: &HeldCall<'_>) -> String {
    let HeldCall { reviewer: review, subject, .. } = call;
    let said = match reason {
        Reason::ContractDrift | Reason::Marker if !call.findings.is_empty() => {
            let more = and_more_changes(call.findings);
            return banner("caught a silent change", call, &more);
        }
        Reason::NoPin if is_marked_at_first_sight(reason, call.findings, call.verdict) => {
            let more = and_more_places(call.findings);
            return banner("held when first seen", call, &more);
        }
        Reason::ContractDrift | Reason::Marker => format!("{subject} is waiting for review"),
        Reason::NoPin => format!("{subject} has not been accepted on this server yet"),
        Reason::SurfaceUnreadable => {
            format!("the server's definition of {subject} is invalid or ambiguous")
        }
        Reason::ServerChanged => {
            "the server changed since it was accepted, so none of its calls goes through".to_owned()
        }
        Reason::ServerPending => "the server is new and is waiting for its first review".to_owned(),
        Reason::ServerQuarantined => {
            let release = match review {
                Reviewer::Terminal(server) => {
                    format!("A person decides: holdpoint release {server}")
                }
                Reviewer::Application => review.to_string(),
            };
            return format!(
                "○ holdpoint — a person stopped this server. Held before your agent ran it. {AGENT_STOPS} {release}"
            );
        }
        Reason::BaselineLost => format!(
            "the accepted version of {subject} is lost, or a program other than Holdpoint changed it"
        ),
        Reason::UnapprovedParameter => {
            format!("the call to {subject} uses a parameter that was not accepted yet")
        }
    };
    format!("○ holdpoint — {said}. Held before your agent ran it. {AGENT_STOPS} {review}")
}

/// The message for the model if a verdict's provenance cannot be made. The call is held all the
/// same.
pub fn held_without_provenance(review: Reviewer<'_>) -> String {
    format!(
        "○ holdpoint — held (provenance unavailable). Held before your agent ran it. {AGENT_STOPS} {review}"
    )
}

/// The message for the model about a call of a tool that the server does not list.
pub fn not_listed(tool: &str) -> String {
    let tool = named_tool(tool, false);
    format!("○ holdpoint — the server lists no {tool}; check its list for the right name")
}

/// The parameter that a finding is about in backticks, if it may be named.
fn named_parameter(finding: &Finding, audience: Audience<'_>) -> Option<String> {
    match audience {
        Audience::Model(approved) => approved.parameter(finding),
        Audience::Person => {
            let name = parameter(&finding.path);
            (!name.is_empty()).then(|| format!("`{}`", escape_hidden(&name)))
        }
    }
}

/// Whether a finding is about a tool that did not exist before.
fn is_of_new_tool(finding: &Finding) -> bool {
    finding.detail == Some(Detail::NewTool)
}

/// Describes a hint that now claims less risk. Hint names are MCP terms, so any reader may see
/// them.
fn loosened(finding: &Finding) -> String {
    let claim = match finding.path.rsplit('/').next() {
        Some("readOnlyHint") => "declares itself read-only",
        Some("destructiveHint") => "declares itself non-destructive",
        Some("idempotentHint") => "says that it can be repeated",
        Some("openWorldHint") => "says that it stays within its own data",
        _ => return "now claims to be less risky than it did".to_owned(),
    };
    match finding.before {
        None => format!("now {claim}; it did not say before"),
        Some(_) => format!("now {claim}; it said otherwise before"),
    }
}

/// Describes a title or a description that was added, removed or changed. For other texts it only
/// says that the description differs.
fn describes(finding: &Finding, parameter: Option<&str>) -> String {
    let path = finding.path.as_str();
    let is_about_input = path.starts_with("/inputSchema/");
    if path.ends_with("/deprecated") && !is_property(path) && is_about_schema(finding) {
        let not = if finding.after.is_some() { "now" } else { "no longer" };
        return match (parameter, is_about_input) {
            (Some(name), true) => format!("{not} marks the parameter {name} as deprecated"),
            (None, true) => format!("{not} marks its input as deprecated"),
            (Some(name), false) => format!("{not} marks {name} in results as deprecated"),
            (None, false) => format!("{not} marks its results as deprecated"),
        };
    }
    let text = match (parameter, path.strip_prefix("/inputSchema").unwrap_or(path)) {
        (Some(name), _) if path.starts_with("/outputSchema/") => {
            return format!("describes {name} in results differently");
        }
        (None, _) if path.starts_with("/outputSchema/") => {
            return "describes its results differently".to_owned();
        }
        (Some(name), _) => return format!("describes the parameter {name} differently"),
        (None, "/description") => "description",
        (None, "/title" | "/annotations/title") => "title",
        (None, _) if is_about_input => return "describes its input differently".to_owned(),
        (None, _) => return "describes itself differently".to_owned(),
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
        (Some(name), _) if path.starts_with("/outputSchema/") => format!("about {name} in results"),
        (None, _) if path.starts_with("/outputSchema/") => "about its results".to_owned(),
        (Some(name), _) => format!("about the parameter {name}"),
        (None, "/description") => "in its description".to_owned(),
        (None, "/title" | "/annotations/title") => "in its title".to_owned(),
        (None, _) if path.starts_with("/inputSchema/") => "about its input".to_owned(),
        (None, _) => "of itself".to_owned(),
    }
}

/// The parameter that contains a pointer's target, in the notation of [`DottedName`].
fn parameter(path: &str) -> String {
    let mut name = DottedName::default();
    for step in path.split('/').skip(1) {
        name.step(&step.replace("~1", "/").replace("~0", "~"));
    }
    name.text
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
