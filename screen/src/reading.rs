//! Reads a whole surface: all strings and schemas of every entry, in all deterministic dimensions.

mod capability;
mod concepts;
mod disguised;
mod launch;
mod markers;
mod rules;
mod sentences;
mod shadowing;
mod strings;
mod words;

pub use launch::LaunchLine;

use crate::dimension::{Dimension, DimensionResult};
use crate::finding::{Finding, Severity};
use crate::grade::Grade;
use crate::state::Judges;
use crate::verdict::{Binding, EntryVerdict, Screening};
use capability::Found;
use contract::json::{Document, Node, escape_into};
use contract::markers::{MarkerClass, ToolNames, excerpt_of, scan};
use contract::surface::{Entry, EntryType, Surface};
use contract::time::Timestamp;
use std::collections::BTreeSet;
use strings::{Role, Text, texts};

/// The most findings per entry; an entry with this many has failed in any case.
pub const MAX_FINDINGS: usize = 64;
/// The shortest text that is checked for disguises.
const MIN_DISGUISED: usize = 16;
/// The longest total text of an entry whose strings are also read as one text.
const MAX_JOINED: usize = 64 * 1024;

/// The opinion of a configured model on an entry (the intent dimension).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opinion {
    LikelyHostile(Severity),
    LikelyBenign,
    Abstains,
}

/// The result of trying the tool's behaviour (the conformance dimension).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conformance {
    NotRun,
    Conforms,
    Violates,
}

/// The context of a reading besides the contract.
#[derive(Debug, Clone)]
pub struct Context {
    pub grade: Grade,
    pub at: Timestamp,
    /// Other names of the server: its registry name, package, host.
    pub names: Vec<String>,
    pub launch: Option<LaunchLine>,
}

impl Context {
    pub fn new(grade: Grade, at: Timestamp) -> Context {
        Context { grade, at, names: Vec::new(), launch: None }
    }
}

/// Reads a surface in the deterministic dimensions. Intent and conformance are not run.
pub fn read(surface: &Surface, context: &Context) -> Screening {
    read_with(surface, context, |_| (Vec::new(), Conformance::NotRun))
}

/// Like [`read`], with opinions on each entry and the results of trying its behaviour.
pub fn read_with(
    surface: &Surface,
    context: &Context,
    judged: impl Fn(&Entry) -> (Vec<Opinion>, Conformance),
) -> Screening {
    let reader = Reader::new(surface, context);
    let verdict = |entry: &Entry| {
        let (opinions, conformance) = judged(entry);
        reader.verdict(entry, &opinions, conformance)
    };
    Screening {
        surface_hash: surface.surface_hash(),
        grade: context.grade,
        screened_at: context.at,
        expires_at: context.grade.expires_at(context.at),
        entries: surface.entries().map(verdict).collect(),
    }
}

struct Reader<'s> {
    context: &'s Context,
    tools: ToolNames,
    /// All names of the server, in lower case.
    called: String,
    twins: BTreeSet<&'s str>,
}

impl<'s> Reader<'s> {
    fn new(surface: &'s Surface, context: &'s Context) -> Reader<'s> {
        let identity = surface.entries().filter(|entry| entry.entry_type() == EntryType::Identity);
        let mut called: String = identity.map(Entry::raw).collect();
        for name in &context.names {
            called.push(' ');
            called.push_str(name);
        }
        let names =
            surface.entries().filter(|entry| entry.entry_type() == EntryType::Tool).map(Entry::key);
        Reader {
            context,
            tools: ToolNames::of(surface),
            called: called.to_lowercase(),
            twins: shadowing::twin_names(names).into_iter().collect(),
        }
    }

    fn verdict(
        &self,
        entry: &Entry,
        opinions: &[Opinion],
        conformance: Conformance,
    ) -> EntryVerdict {
        let mut findings = self.findings(entry);
        findings.truncate(MAX_FINDINGS);
        let of = |&dimension: &Dimension| match dimension {
            Dimension::Intent => intent(entry, opinions),
            Dimension::Conformance => conforming(entry, conformance),
            _ => {
                let of_it = findings.iter().filter(|finding| finding.dimension == dimension);
                DimensionResult::of(dimension, of_it.cloned().collect())
            }
        };
        let is_hostile = |opinion: &Opinion| matches!(opinion, Opinion::LikelyHostile(_));
        let disagree = opinions.iter().any(is_hostile) && opinions.contains(&Opinion::LikelyBenign);
        EntryVerdict {
            entry: entry.id().clone(),
            binding: Binding {
                definition_hash: entry.definition_hash(),
                entry_hash: entry.entry_hash(),
            },
            judges: if disagree { Judges::Disagree } else { Judges::Agree },
            dimensions: Dimension::ALL.iter().map(of).collect(),
            grade: self.context.grade,
            screened_at: self.context.at,
            expires_at: self.context.grade.expires_at(self.context.at),
        }
    }

    fn findings(&self, entry: &Entry) -> Vec<Finding> {
        let Ok(document) = entry.document() else { return Vec::new() };
        let mut gathered = Gathered { entry, findings: Vec::new() };
        if entry.entry_type() == EntryType::Origin {
            let launch = self.context.launch.as_ref().and_then(launch::unpinned);
            launch.into_iter().for_each(|found| gathered.found(found));
            return gathered.findings;
        }
        for marker in scan(document.root(), &self.tools) {
            let (dimension, severity, reason) = markers::meaning(marker.class);
            let rule = marker.rule;
            gathered.push(Finding {
                dimension,
                severity,
                rule,
                reason,
                entry: entry.id().clone(),
                pointer: marker.pointer,
                excerpt: marker.excerpt,
            });
        }
        let texts = texts(document.root());
        texts.iter().for_each(|text| self.text(text, &mut gathered));
        self.joined(&texts, &mut gathered);
        if entry.entry_type() == EntryType::Tool {
            self.structure(entry, document.root(), &mut gathered);
        }
        gathered.findings
    }

    /// Reads one string: its sentences, and the texts that it may disguise.
    fn text(&self, text: &Text, gathered: &mut Gathered<'_>) {
        if text.text.len() < MIN_DISGUISED && text.text.is_ascii() {
            return;
        }
        for (rule, span) in fired(&text.text) {
            gathered.rule(rule, &text.pointer, excerpt_of(&text.text, span.start, span.end));
        }
        if let Some((start, end)) = disguised::mixed_script_word(&text.text) {
            gathered.found_in(
                Found {
                    rule: "hidden.mixed-scripts",
                    dimension: Dimension::HiddenInstructions,
                    severity: Severity::Medium,
                    reason: "has a word in letters of two scripts that look alike",
                    pointer: text.pointer.clone(),
                },
                excerpt_of(&text.text, start, end),
            );
        }
        if text.role == Role::Name || text.text.len() < MIN_DISGUISED {
            return;
        }
        for disguise in disguised::readings(&text.text) {
            self.disguise(&disguise, text, gathered);
        }
    }

    fn disguise(&self, disguise: &disguised::Disguise, text: &Text, gathered: &mut Gathered<'_>) {
        // Skip what the plain text already says.
        let plain: BTreeSet<&str> = fired(&text.text).map(|(rule, _)| rule.id).collect();
        let hidden = fired(&disguise.text)
            .find(|(rule, _)| rule.severity == Severity::High && !plain.contains(rule.id));
        let is_marked = !marked(&disguise.text, &self.tools).is_empty()
            && marked(&text.text, &self.tools).is_empty();
        let severity = match (hidden.is_some() || is_marked, disguise.is_ordinary) {
            (true, _) => Severity::High,
            (false, false) => Severity::Medium,
            (false, true) => return,
        };
        let reason = match severity {
            Severity::High => "has an order to the reader in a form that a person does not read",
            Severity::Medium | Severity::Low => "has encoded prose, which a person does not read",
        };
        let found = Found {
            rule: disguise.how,
            dimension: Dimension::HiddenInstructions,
            severity,
            reason,
            pointer: text.pointer.clone(),
        };
        gathered.found_in(found, excerpt_of(&disguise.text, 0, disguise.text.len()));
    }

    /// Reads the strings of an entry as one text: an instruction may be spread over several of
    /// them.
    fn joined(&self, texts: &[Text], gathered: &mut Gathered<'_>) {
        let values = || texts.iter().filter(|text| text.role == Role::Value && text.is_prose());
        if values().nth(1).is_none() || gathered.worst() == Some(Severity::High) {
            return;
        }
        let joined: Vec<&str> = values().map(|text| text.text.as_str()).collect();
        let joined = joined.join(" ");
        if joined.len() > MAX_JOINED {
            return;
        }
        // Names of tools and words like "first" co-occur by chance; instructions to the reader do
        // not.
        let is_order = |class: &MarkerClass| match class {
            MarkerClass::InstructionOverride
            | MarkerClass::Concealment
            | MarkerClass::SecretReading
            | MarkerClass::Exfiltration => true,
            MarkerClass::HiddenCharacters
            | MarkerClass::Preemption
            | MarkerClass::ContextCapture
            | MarkerClass::RoleTag
            | MarkerClass::ToolOrder
            | MarkerClass::DecodedCommand => false,
        };
        if marked(&joined, &self.tools).iter().any(is_order) {
            gathered.found(Found {
                rule: "injection.spread-over-strings",
                dimension: Dimension::Injection,
                severity: Severity::Medium,
                reason: "has strings that are an order to the reader when they are read one after the other",
                pointer: String::new(),
            });
        }
    }

    fn structure(&self, entry: &Entry, tool: Node<'_>, gathered: &mut Gathered<'_>) {
        let description = tool.get("description").and_then(Node::as_str).unwrap_or_default();
        let called = format!("{} {}", self.called, description.to_lowercase());
        let shadowed = shadowing::shadowed_name(entry.key(), &called);
        let twin = self.twins.contains(entry.key()).then(shadowing::twin);
        let found = shadowed
            .into_iter()
            .chain(twin)
            .chain(capability::contradictions(entry.key(), tool))
            .chain(capability::captures(tool));
        found.for_each(|found| gathered.found(found));
    }
}

/// The rules that match a text, each once, with the matching sentence.
fn fired(text: &str) -> impl Iterator<Item = (&'static rules::Rule, std::ops::Range<usize>)> {
    let sentences = sentences::sentences(text);
    rules::RULES.iter().filter_map(move |rule| {
        let sentence = sentences.iter().find(|sentence| rule.fires(sentence))?;
        Some((rule, sentence.span.clone()))
    })
}

/// The marker classes that a text trips by itself.
fn marked(text: &str, tools: &ToolNames) -> Vec<MarkerClass> {
    let mut json = Vec::new();
    escape_into(text, &mut json);
    let json = String::from_utf8(json).unwrap_or_default();
    let Ok(document) = Document::parse(&json) else { return Vec::new() };
    scan(document.root(), tools).iter().map(|marker| marker.class).collect()
}

fn intent(entry: &Entry, opinions: &[Opinion]) -> DimensionResult {
    let severity = opinions.iter().filter_map(|opinion| match opinion {
        Opinion::LikelyHostile(severity) => Some(*severity),
        Opinion::LikelyBenign | Opinion::Abstains => None,
    });
    if opinions.iter().all(|opinion| *opinion == Opinion::Abstains) {
        return DimensionResult::not_run(Dimension::Intent, "no model judged the intent");
    }
    let findings = severity.max().map(|severity| Finding {
        dimension: Dimension::Intent,
        severity,
        rule: "intent.likely-hostile",
        reason: "a model that the operator named takes it for hostile; an opinion",
        entry: entry.id().clone(),
        pointer: String::new(),
        excerpt: String::new(),
    });
    DimensionResult::of(Dimension::Intent, findings.into_iter().collect())
}

fn conforming(entry: &Entry, conformance: Conformance) -> DimensionResult {
    let findings = match conformance {
        Conformance::NotRun => {
            return DimensionResult::not_run(
                Dimension::Conformance,
                "the tool's behavior was not tried",
            );
        }
        Conformance::Conforms => Vec::new(),
        Conformance::Violates => vec![Finding {
            dimension: Dimension::Conformance,
            severity: Severity::High,
            rule: "conformance.violates",
            reason: "did not behave as it declares when it was tried",
            entry: entry.id().clone(),
            pointer: String::new(),
            excerpt: String::new(),
        }],
    };
    DimensionResult::of(Dimension::Conformance, findings)
}

/// The findings of one entry, without duplicates of a rule at one place.
struct Gathered<'e> {
    entry: &'e Entry,
    findings: Vec<Finding>,
}

impl Gathered<'_> {
    fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }

    fn push(&mut self, finding: Finding) {
        let is_known =
            |other: &Finding| other.rule == finding.rule && other.pointer == finding.pointer;
        if self.findings.len() < MAX_FINDINGS && !self.findings.iter().any(is_known) {
            self.findings.push(finding);
        }
    }

    /// Adds a rule's finding, unless an equally severe one of the same dimension is known at that
    /// place.
    fn rule(&mut self, rule: &rules::Rule, pointer: &str, excerpt: String) {
        let covers = |other: &Finding| {
            other.pointer == pointer
                && other.dimension == rule.dimension
                && other.severity >= rule.severity
        };
        if self.findings.iter().any(covers) {
            return;
        }
        let (dimension, severity) = (rule.dimension, rule.severity);
        let found = Found {
            rule: rule.id,
            dimension,
            severity,
            reason: rule.reason,
            pointer: pointer.to_owned(),
        };
        self.found_in(found, excerpt);
    }

    fn found(&mut self, found: Found) {
        self.found_in(found, String::new());
    }

    fn found_in(&mut self, found: Found, excerpt: String) {
        let Found { rule, dimension, severity, reason, pointer } = found;
        let entry = self.entry.id().clone();
        self.push(Finding { dimension, severity, rule, reason, entry, pointer, excerpt });
    }
}

#[cfg(test)]
mod tests;
