use super::*;
use crate::json::Document;

fn is_tool(text: &str) -> bool {
    let start = text.find('[').unwrap();
    let end = text.find(']').unwrap();
    let plain = text.replace(['[', ']'], "");
    is_written_like_a_tool(plain.as_bytes(), start, end - 1)
}

#[test]
fn names_are_told_from_values_paths_and_brands() {
    for name in [
        "call [send_email]",
        "[listIssues] first",
        "`[list-issues]`",
        "'[ListIssues]'",
        "[github_create_issue]",
        "the [weather_now] tool",
        "function [frobnicate_all]",
        "[frobnicate_all]()",
    ] {
        assert!(is_tool(name), "{name}");
    }
    for other in [
        "[user_id]",
        "[query_params]",
        "[get_token]",
        "[max_results]",
        "[SEND_EMAIL]",
        "/[send_email]",
        "[send_email]/x",
        "[send_email].py",
        "{[send_email]}",
        "$[send_email]",
        "[send_email]=1",
        "[GitHub]",
        "[iPhone]",
        "[macOS]",
        "[get-started]",
        "[setting]",
        "[get]",
    ] {
        assert!(!is_tool(other), "{other}");
    }
    let longest = format!("[get_{}]", "x".repeat(60));
    assert!(is_tool(&longest) && !is_tool(&longest.replace(']', "x]")));
}

#[test]
fn a_name_is_own_in_any_spelling_and_with_any_prefix() {
    let entry = Document::parse(
        r#"{"name":"a","inputSchema":{"properties":{"send_later":{"enum":["get_all"]}}}}"#,
    )
    .unwrap();
    let tools = ToolNames::new(["github_list_issues", "search"]);
    let mut own = OwnNames::new(&tools, entry.root());
    for name in [
        "github_list_issues",
        "listIssues",
        "list-issues",
        "mcp_github_list_issues",
        "send_later",
        "get_all",
    ] {
        assert!(own.contains(name.as_bytes()), "{name}");
    }
    for name in ["list_pulls", "issues", "send_now", "list_issues_all"] {
        assert!(!own.contains(name.as_bytes()), "{name}");
    }
}

#[test]
fn names_are_equal_by_what_they_hold() {
    let names = ToolNames::new(["one_two", "three_four"]);
    assert_eq!(names, names.clone());
    assert_eq!(names, ToolNames::new(["three_four", "one_two"]));
    assert_ne!(names, ToolNames::new(["one_two"]));
}

#[test]
fn the_verbs_are_in_order_and_the_endings_are_last_parts() {
    assert!(VERBS.is_sorted_by(|left, right| left < right));
    let is_last_part = |of: &&[u8]| of.iter().rposition(|&byte| byte == b'_') == Some(0);
    assert!(OF_VALUES.iter().all(is_last_part));
}
