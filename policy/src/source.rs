//! Policies as text files: parses them, names them, and finds out what they read.

use crate::problem::{PolicyProblem, Severity, offset_of, text_of};
use cedar_policy::{Effect, EntityUid, Policy, PolicyId, PolicySet};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;
use std::sync::Arc;

/// One policy, with everything that can be derived from its text.
#[derive(Debug)]
pub(crate) struct PolicySource {
    pub id: Arc<str>,
    pub file: Arc<str>,
    pub line: usize,
    pub policy: Policy,
    pub permits: bool,
    /// The groups in `@require_approval`.
    pub approval: Vec<Arc<str>>,
    /// Every entity that the policy names, in its scope or its conditions.
    pub literals: Vec<EntityUid>,
    /// Every string in the conditions, including attribute and variable names. Anything not listed
    /// here is not read.
    words: BTreeSet<String>,
}

impl PolicySource {
    /// Whether the policy may read the context. If in doubt, returns true.
    pub(crate) fn reads_context(&self) -> bool {
        self.mentions("context")
    }

    /// Whether the policy may read an attribute with this name. If in doubt, returns true.
    pub(crate) fn mentions(&self, attribute: &str) -> bool {
        self.words.contains(attribute)
    }

    pub(crate) fn problem(
        &self,
        severity: Severity,
        line: usize,
        sentence: String,
    ) -> PolicyProblem {
        PolicyProblem {
            severity,
            file: Arc::clone(&self.file),
            line,
            policy_id: Some(Arc::clone(&self.id)),
            sentence,
        }
    }
}

/// All policies of all files, with every mistake found.
#[derive(Debug, Default)]
pub(crate) struct ParsedSources {
    pub policies: Vec<Arc<PolicySource>>,
    pub texts: BTreeMap<Arc<str>, Arc<str>>,
    pub problems: Vec<PolicyProblem>,
}

impl ParsedSources {
    pub(crate) fn line(&self, file: &str, offset: usize) -> usize {
        self.texts.get(file).map_or(0, |text| line_at(text, offset))
    }
}

pub(crate) fn parse_sources<N: AsRef<str>, T: AsRef<str>>(files: &[(N, T)]) -> ParsedSources {
    let mut parsed = ParsedSources::default();
    for (name, text) in files {
        let file: Arc<str> = name.as_ref().into();
        let text: Arc<str> = text.as_ref().into();
        if parsed.texts.insert(Arc::clone(&file), Arc::clone(&text)).is_some() {
            let sentence = "two policy files have this name".to_owned();
            parsed.problems.push(file_problem(&file, 0, sentence));
        }
        parse_file(&file, &text, &mut parsed);
    }
    report_repeated_ids(&mut parsed);
    parsed
}

fn parse_file(file: &Arc<str>, text: &str, parsed: &mut ParsedSources) {
    let set = match PolicySet::from_str(text) {
        Ok(set) => set,
        Err(errors) => {
            for error in errors.iter() {
                let line = offset_of(error).map_or(0, |offset| line_at(text, offset));
                parsed.problems.push(file_problem(file, line, text_of(error)));
            }
            return;
        }
    };
    for template in set.templates() {
        let line = template.as_ref().loc().map_or(0, |loc| line_at(text, loc.start()));
        let sentence = "templates (`?principal`, `?resource`) are not supported".to_owned();
        parsed.problems.push(file_problem(file, line, sentence));
    }
    let mut placed: Vec<(usize, &Policy)> =
        set.policies().map(|policy| (offset_in_file(policy), policy)).collect();
    placed.sort_by_key(|(offset, _)| *offset);
    for (offset, policy) in placed {
        let source = read_policy(file, line_at(text, offset), policy);
        check_annotations(&source, &mut parsed.problems);
        parsed.policies.push(Arc::new(source));
    }
}

fn offset_in_file(policy: &Policy) -> usize {
    match policy.as_ref().loc() {
        Some(location) => location.start(),
        None => 0,
    }
}

fn read_policy(file: &Arc<str>, line: usize, policy: &Policy) -> PolicySource {
    let id: Arc<str> = match policy.annotation("id") {
        Some(id) if !id.is_empty() => id.into(),
        _ => format!("{}:{line}", base_name(file)).into(),
    };
    let groups = policy.annotation("require_approval").unwrap_or_default();
    let mut words = BTreeSet::new();
    if let Some(conditions) = policy.to_json().ok().as_ref().and_then(|json| json.get("conditions"))
    {
        collect_words(conditions, &mut words);
    } else {
        // If a policy's conditions cannot be examined, assume that it reads everything.
        words.extend(["context", "name", "uri"].map(str::to_owned));
    }
    PolicySource {
        policy: policy.new_id(PolicyId::new(&*id)),
        id,
        file: Arc::clone(file),
        line,
        permits: policy.effect() == Effect::Permit,
        approval: groups
            .split(',')
            .map(str::trim)
            .filter(|g| !g.is_empty())
            .map(Arc::from)
            .collect(),
        literals: policy.entity_literals(),
        words,
    }
}

fn check_annotations(source: &PolicySource, problems: &mut Vec<PolicyProblem>) {
    let mut complain = |sentence: String| {
        problems.push(source.problem(Severity::Error, source.line, sentence));
    };
    for (name, value) in source.policy.annotations() {
        if name == "id" && value.is_empty() {
            complain("`@id` is empty".to_owned());
        } else if name == "require_approval" && !source.permits {
            complain("`@require_approval` belongs on a permit; a forbid always denies".to_owned());
        } else if name == "require_approval" && source.approval.is_empty() {
            complain("`@require_approval` names no group".to_owned());
        } else if name != "require_approval" && name.to_lowercase().contains("appro") {
            // With a misspelled annotation, calls would proceed without the intended approval.
            complain(format!("`@{name}` is not known; did you mean `@require_approval`?"));
        }
    }
}

fn report_repeated_ids(parsed: &mut ParsedSources) {
    let mut first: BTreeMap<Arc<str>, Arc<PolicySource>> = BTreeMap::new();
    let mut unique = Vec::with_capacity(parsed.policies.len());
    for source in std::mem::take(&mut parsed.policies) {
        if let Some(other) = first.get(&source.id) {
            let sentence = format!("the policy at {}:{} has the same id", other.file, other.line);
            parsed.problems.push(source.problem(Severity::Error, source.line, sentence));
            continue;
        }
        first.insert(Arc::clone(&source.id), Arc::clone(&source));
        unique.push(source);
    }
    parsed.policies = unique;
}

fn collect_words(value: &Value, words: &mut BTreeSet<String>) {
    match value {
        Value::String(word) => {
            words.insert(word.clone());
        }
        Value::Array(items) => items.iter().for_each(|item| collect_words(item, words)),
        Value::Object(members) => members.values().for_each(|item| collect_words(item, words)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn file_problem(file: &Arc<str>, line: usize, sentence: String) -> PolicyProblem {
    PolicyProblem {
        severity: Severity::Error,
        file: Arc::clone(file),
        line,
        policy_id: None,
        sentence,
    }
}

/// The last part of a path: receipts must not reveal where a file is stored.
fn base_name(file: &str) -> &str {
    file.rsplit(['/', '\\']).next().unwrap_or(file)
}

/// The line of a byte offset, counted from 1.
fn line_at(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    before.iter().filter(|&&byte| byte == b'\n').count() + 1
}
