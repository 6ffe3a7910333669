//! A tool's annotations: hints that a server gives about itself, with MCP's defaults for the absent
//! ones.

use super::{finding, paired};
use crate::canonical::{Position, canonical};
use crate::change::{ChangeKind, Finding, Meaning};
use crate::json::Node;
use crate::schema;

/// Whether a tool declares itself destructive.
pub(super) fn declares_destructive(tool: Node<'_>) -> bool {
    let hint = tool.get("annotations").and_then(|annotations| annotations.get("destructiveHint"));
    hint.and_then(Node::as_bool) == Some(true)
}

pub(super) fn compare(
    old: Option<Node<'_>>,
    new: Option<Node<'_>>,
    tool_name: Option<&str>,
) -> Vec<Finding> {
    let is_object =
        |node: Option<Node<'_>>| node.is_none_or(|node| node.is_object() || node.is_null());
    if !is_object(old) || !is_object(new) {
        return vec![finding(ChangeKind::DeepSchemaUndiffable, "/annotations", old, new)];
    }
    if old.is_none() && new.is_none() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (name, (before, after)) in paired(old, new) {
        let form = |node: Option<Node<'_>>| node.map(|node| canonical(node, Position::Plain));
        if form(before) == form(after) {
            continue;
        }
        let kind = match name.as_ref() {
            "title" => schema::title_change(before, after, tool_name),
            "readOnlyHint" | "destructiveHint" | "idempotentHint" | "openWorldHint" => {
                hint(&name, before, after)
            }
            _ => ChangeKind::MetadataChanged,
        };
        let path = format!("/annotations/{}", schema::pointer_step(&name));
        let is_same = kind == ChangeKind::AnnotationFlipToDestructive
            && name == "destructiveHint"
            && is_effectively_same(old, new);
        let meaning = is_same.then_some(Meaning::EffectiveSame);
        findings.push(finding(kind, &path, before, after).meaning(meaning));
    }
    if findings.is_empty() {
        findings.push(finding(ChangeKind::MetadataChanged, "/annotations", old, new));
    }
    findings
}

/// Whether a tool is exactly as destructive as before, once MCP's default for an absent
/// `destructiveHint` (true) is applied.
///
/// Clients ignore that hint if `readOnlyHint` is true, and may interpret a hint that is not a
/// boolean in any way. In both cases the effect is unknown, so this returns `false`.
fn is_effectively_same(old: Option<Node<'_>>, new: Option<Node<'_>>) -> bool {
    let is_plain = |side: Option<Node<'_>>| {
        let are_booleans = HINTS
            .iter()
            .filter_map(|name| hint_of(side, name))
            .all(|hint| hint.as_bool().is_some());
        side.is_none_or(Node::is_object)
            && are_booleans
            && hint_of(side, "readOnlyHint").and_then(Node::as_bool) != Some(true)
    };
    let is_destructive = |side: Option<Node<'_>>| {
        hint_of(side, "destructiveHint").and_then(Node::as_bool).unwrap_or(true)
    };
    is_plain(old) && is_plain(new) && is_destructive(old) == is_destructive(new)
}

fn hint_of<'a>(annotations: Option<Node<'a>>, name: &str) -> Option<Node<'a>> {
    annotations.and_then(|annotations| annotations.get(name))
}

const HINTS: [&str; 4] = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];

/// Classifies the change of one hint.
fn hint(name: &str, before: Option<Node<'_>>, after: Option<Node<'_>>) -> ChangeKind {
    let is_boolean = |node: Option<Node<'_>>| node.is_none_or(|node| node.as_bool().is_some());
    if !is_boolean(before) || !is_boolean(after) {
        return ChangeKind::DeepSchemaUndiffable;
    }
    let (was, is) = (before.and_then(Node::as_bool), after.and_then(Node::as_bool));
    match (name, was, is) {
        // Newly declared true, or the explicit `false` was removed: an absent hint means true.
        ("destructiveHint", _, Some(true)) => ChangeKind::AnnotationFlipToDestructive,
        ("destructiveHint", Some(false), None) => ChangeKind::AnnotationFlipToDestructive,
        ("destructiveHint", _, Some(false)) => ChangeKind::AnnotationLoosened,
        ("readOnlyHint", Some(true), _) => ChangeKind::AnnotationFlipToDestructive,
        ("readOnlyHint", _, Some(true)) => ChangeKind::AnnotationLoosened,
        // An absent hint means true.
        ("openWorldHint", Some(false), _) => ChangeKind::AnnotationChanged,
        ("openWorldHint", _, Some(false)) => ChangeKind::AnnotationLoosened,
        // An absent hint means false.
        ("idempotentHint", Some(true), _) => ChangeKind::AnnotationChanged,
        ("idempotentHint", _, Some(true)) => ChangeKind::AnnotationLoosened,
        // The default was made explicit, or is no longer explicit.
        _ => ChangeKind::MetadataChanged,
    }
}
