//! A tool's `execution` and `_meta`. Both are metadata, except for the members that decide how the
//! tool is called and which page a user is shown.

use super::{Pair, finding, is_same, paired};
use crate::canonical::Position;
use crate::change::{ChangeKind, Finding};
use crate::json::Node;
use std::borrow::Cow;

/// The page that a host shows to its user. The second spelling is the older one, which hosts still
/// read.
const PAGE: [&[&str]; 2] = [&["ui", "resourceUri"], &["ui/resourceUri"]];

/// `taskSupport` says whether a plain call is refused (`required`) or a task is (`forbidden`, the
/// default).
pub(super) fn execution(old: Option<Node<'_>>, new: Option<Node<'_>>) -> Vec<Finding> {
    let (was, is) = (at(old, &["taskSupport"]), at(new, &["taskSupport"]));
    let mut findings = Vec::new();
    let is_harmless = match (task_support(was).as_deref(), task_support(is).as_deref()) {
        (Some(before), Some(after)) if before == after => true,
        // Both calls and tasks are allowed now, where only one of them was.
        (Some("forbidden" | "required"), Some("optional")) => true,
        _ => differs((was, is)).is_none(),
    };
    if !is_harmless {
        let path = "/execution/taskSupport";
        findings.push(finding(ChangeKind::ExecutionChanged, path, was, is));
    }
    let others = paired(old, new).into_iter().filter(|(name, _)| name != "taskSupport");
    let is_other_changed = others.into_iter().any(|(_, pair)| differs(pair).is_some());
    if findings.is_empty() || is_other_changed {
        findings.push(finding(ChangeKind::MetadataChanged, "/execution", old, new));
    }
    findings
}

pub(super) fn meta(old: Option<Node<'_>>, new: Option<Node<'_>>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for steps in PAGE {
        if let Some((before, after)) = differs((at(old, steps), at(new, steps))) {
            let steps: Vec<String> =
                steps.iter().map(|step| crate::schema::pointer_step(step)).collect();
            let path = format!("/_meta/{}", steps.join("/"));
            findings.push(finding(ChangeKind::DescriptionOnly, &path, before, after));
        }
    }
    if findings.is_empty() || is_more_than_page(old, new) {
        findings.push(finding(ChangeKind::MetadataChanged, "/_meta", old, new));
    }
    findings
}

/// The value of `taskSupport`; `None` if it is not a string.
fn task_support(node: Option<Node<'_>>) -> Option<Cow<'_, str>> {
    node.map_or(Some("forbidden".into()), Node::as_str)
}

fn at<'a>(node: Option<Node<'a>>, steps: &[&str]) -> Option<Node<'a>> {
    steps.iter().try_fold(node?, |node, step| node.get(step))
}

/// Whether anything besides the page changed.
fn is_more_than_page(old: Option<Node<'_>>, new: Option<Node<'_>>) -> bool {
    let inside = |node: Option<Node<'_>>| node.is_none_or(Node::is_object);
    paired(old, new).into_iter().any(|(name, pair)| match name.as_ref() {
        "ui/resourceUri" => false,
        "ui" if inside(pair.0) && inside(pair.1) => paired(pair.0, pair.1)
            .into_iter()
            .any(|(name, pair)| name != "resourceUri" && differs(pair).is_some()),
        _ => differs(pair).is_some(),
    })
}

/// The pair, if its two sides differ.
fn differs((before, after): Pair<'_>) -> Option<Pair<'_>> {
    (!is_same((before, after), Position::Plain)).then_some((before, after))
}

#[cfg(test)]
mod tests {
    use crate::diff::diff_entry;
    use crate::surface::{Entry, EntryId, EntryType};

    fn check(old: &str, new: &str, expected: &[&str]) {
        let tool = |member: &str| {
            let comma = if member.is_empty() { "" } else { "," };
            let raw = format!(r#"{{"name":"t","inputSchema":{{}}{comma}{member}}}"#);
            Entry::from_raw(EntryId::new(EntryType::Tool, "t"), &raw).unwrap()
        };
        let diff = diff_entry(Some(&tool(old)), Some(&tool(new))).unwrap();
        let found: Vec<String> =
            diff.findings.iter().map(|found| format!("{} {}", found.kind, found.path)).collect();
        assert_eq!(found, expected, "{old} to {new}");
    }

    fn support(word: &str) -> String {
        format!(r#""execution":{{"taskSupport":"{word}"}}"#)
    }

    #[test]
    fn task_support_that_refuses_calls_or_tasks_is_breaking_and_otherwise_metadata() {
        let changed = ["execution-changed /execution/taskSupport"];
        for (old, new) in [
            ("forbidden", "required"),
            ("optional", "required"),
            ("optional", "forbidden"),
            ("required", "forbidden"),
            ("optional", "sometimes"),
        ] {
            check(&support(old), &support(new), &changed);
        }
        check("", &support("required"), &changed);
        check(&support("required"), "", &changed);
        check(&support("optional"), r#""execution":{"taskSupport":1}"#, &changed);
        for (old, new) in [("forbidden", "optional"), ("required", "optional")] {
            check(&support(old), &support(new), &["metadata-changed /execution"]);
        }
        check("", &support("forbidden"), &["metadata-changed /execution"]);
        check(
            &support("optional"),
            r#""execution":{"taskSupport":"required","x":1}"#,
            &["metadata-changed /execution", "execution-changed /execution/taskSupport"],
        );
    }

    #[test]
    fn the_page_that_a_person_is_shown_is_text_and_the_rest_of_meta_is_not() {
        let page = |uri: &str| format!(r#""_meta":{{"ui":{{"resourceUri":"{uri}","x":1}},"v":1}}"#);
        let text = ["description-only /_meta/ui/resourceUri"];
        check(&page("ui://a"), &page("ui://b"), &text);
        check(
            r#""_meta":{"ui/resourceUri":"ui://a"}"#,
            r#""_meta":{"ui/resourceUri":"ui://b"}"#,
            &["description-only /_meta/ui~1resourceUri"],
        );
        check(
            "",
            &page("ui://a"),
            &["metadata-changed /_meta", "description-only /_meta/ui/resourceUri"],
        );
        let both = page("ui://b").replace(r#""v":1"#, r#""v":2"#);
        let and_more = ["metadata-changed /_meta", "description-only /_meta/ui/resourceUri"];
        check(&page("ui://a"), &both, &and_more);
        check(r#""_meta":{"v":1}"#, r#""_meta":{"v":2}"#, &["metadata-changed /_meta"]);
    }
}
