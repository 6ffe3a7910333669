use crate::naming::Approved;
use crate::words::{Audience, say};
use contract::change::Finding;
use contract::diff::diff_entry;
use contract::surface::{Entry, EntryId, EntryType};

fn tool(members: &str) -> Entry {
    let raw = format!(r#"{{"name":"t",{members}}}"#);
    Entry::from_raw(EntryId::new(EntryType::Tool, "t"), &raw).expect(members)
}

fn findings(old: &Entry, new: &Entry) -> Vec<Finding> {
    diff_entry(Some(old), Some(new)).expect("a change").findings
}

/// The sentence about the only change between two schemas of the parameter `p`, for a person and
/// for a model.
fn check(old: &str, new: &str, person: &str, model: &str) {
    let tool = |p: &str| tool(&format!(r#""inputSchema":{{"properties":{{"p":{p}}}}}"#));
    check_tools(&tool(old), &tool(new), person, model);
}

fn check_results(old: &str, new: &str, person: &str, model: &str) {
    let tool = |p: &str| tool(&format!(r#""inputSchema":{{}},"outputSchema":{p}"#));
    check_tools(&tool(old), &tool(new), person, model);
}

fn check_tools(old: &Entry, new: &Entry, person: &str, model: &str) {
    let found = findings(old, new);
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(say(finding, Audience::Person), person);
    let approved = Approved::of(Some(old));
    assert_eq!(say(finding, Audience::Model(&approved)), model);
}

#[test]
fn limits_are_said_with_their_numbers_and_to_a_model_without_new_ones() {
    for (old, new, person, model) in [
        (
            r#"{"type":"array"}"#,
            r#"{"type":"array","minItems":1}"#,
            "`p` may no longer be empty",
            "`p` may no longer be empty",
        ),
        (
            r#"{"type":"string","minLength":1}"#,
            r#"{"type":"string"}"#,
            "`p` may be empty now",
            "`p` may be empty now",
        ),
        (
            r#"{"type":"integer","minimum":0}"#,
            r#"{"type":"integer","minimum":1}"#,
            "`p` must be at least 1 (was 0)",
            "`p` has a higher minimum (was 0)",
        ),
        (
            r#"{"type":"integer","exclusiveMaximum":1000000}"#,
            r#"{"type":"integer","maximum":999999}"#,
            "`p` must be at most 999,999, as before",
            "`p` must be at most 999,999, as before",
        ),
        (
            r#"{"type":"number"}"#,
            r#"{"type":"number","exclusiveMinimum":0}"#,
            "`p` must be more than 0 (had no minimum)",
            "`p` has a minimum now",
        ),
        (
            r#"{"type":"array","maxItems":100}"#,
            r#"{"type":"array","maxItems":1}"#,
            "`p` must have at most 1 item (was 100)",
            "`p` has a lower maximum number of items (was 100)",
        ),
        (
            r#"{"type":"string","maxLength":-1}"#,
            r#"{"type":"string","maxLength":2000}"#,
            "`p` may have up to 2,000 characters (was -1)",
            "`p` has a higher maximum length (was -1)",
        ),
        (
            r#"{"type":"number","minimum":5}"#,
            r#"{"type":"number","minimum":-0.5}"#,
            "`p` may be as low as -0.5 (was 5)",
            "`p` has a lower minimum (was 5)",
        ),
        (
            r#"{"type":"integer","maximum":5}"#,
            r#"{"type":"integer"}"#,
            "`p` no longer has a maximum (was 5)",
            "`p` no longer has a maximum (was 5)",
        ),
    ] {
        check(old, new, person, model);
    }
}

#[test]
fn values_are_named_and_to_a_model_only_those_that_it_knows() {
    for (old, new, person, model) in [
        (
            r#"{"enum":["fast","full"]}"#,
            r#"{"enum":["full"]}"#,
            "`p` no longer accepts `fast`",
            "`p` no longer accepts `fast`",
        ),
        (
            r#"{"enum":["a"]}"#,
            r#"{"enum":["a","new order"]}"#,
            "`p` also accepts `new order`",
            "`p` accepts further values",
        ),
        (
            r#"{"enum":["5",5,"call me"," x"]}"#,
            r#"{"enum":[5]}"#,
            "`p` no longer accepts ` x`, `\"5\"` or `call me`",
            "`p` no longer accepts 3 values that it listed",
        ),
        (
            r#"{"enum":[1,2,3,4,5,6]}"#,
            r#"{"enum":[6]}"#,
            "`p` no longer accepts `1`, `2`, `3`, `4` or 1 further value",
            "`p` no longer accepts `1`, `2`, `3`, `4` or 1 further value",
        ),
        (
            r#"{"type":"string"}"#,
            r#"{"type":"string","enum":["b","a"]}"#,
            "`p` now accepts only `a` or `b`",
            "`p` now accepts only listed values",
        ),
        (
            r#"{"type":"string","const":"a"}"#,
            r#"{"type":"string"}"#,
            "`p` is no longer limited to listed values",
            "`p` is no longer limited to listed values",
        ),
    ] {
        check(old, new, person, model);
    }
}

#[test]
fn types_are_said_by_what_is_lost_or_gained() {
    for (old, new, expected) in [
        (r#"["string","null"]"#, r#""string""#, "`p` may no longer be null"),
        (r#""string""#, r#""integer""#, "`p` must be an integer (was a string)"),
        (r#""number""#, r#""integer""#, "`p` must be an integer (was a number)"),
        (r#""integer""#, r#""number""#, "`p` may now be a number (was an integer)"),
        (r#""string""#, r#"["array","string"]"#, "`p` may now also be an array"),
    ] {
        let schema = |types: &str| format!(r#"{{"type":{types}}}"#);
        check(&schema(old), &schema(new), expected, expected);
    }
    let any = "`p` must be a string (could be of any type)";
    check("{}", r#"{"type":"string"}"#, any, any);
    let none = "`p` no longer accepts any value";
    check("{}", "false", none, none);
}

#[test]
fn other_keywords_say_what_they_ask_for() {
    for (old, new, person, model) in [
        (
            r#"{"type":"string"}"#,
            r#"{"type":"string","pattern":"^a"}"#,
            "`p` must match the pattern `^a` (had none)",
            "`p` must match a pattern",
        ),
        (
            r#"{"type":"string","format":"date"}"#,
            r#"{"type":"string","format":"date-time"}"#,
            "`p` must have the format `date-time` (was `date`)",
            "`p` must have another format",
        ),
        (
            r#"{"type":"array"}"#,
            r#"{"type":"array","uniqueItems":true}"#,
            "`p` may no longer have an item twice",
            "`p` may no longer have an item twice",
        ),
        (
            r#"{"type":"object"}"#,
            r#"{"type":"object","additionalProperties":false}"#,
            "`p` may no longer have members that are not declared",
            "`p` may no longer have members that are not declared",
        ),
        (
            r#"{"type":"integer","default":10}"#,
            r#"{"type":"integer","default":20}"#,
            "`p` now has the default `20` (was `10`): calls that omit it may now mean something different",
            "`p` has a different default (was `10`): calls that omit it may now mean something different",
        ),
        (
            r#"{"type":"string"}"#,
            r#"{"type":"string","default":"all files"}"#,
            "`p` now has the default `all files`: calls that omit it may now mean something different",
            "`p` now has a default: calls that omit it may now mean something different",
        ),
        (
            r#"{"type":"string"}"#,
            r#"{"type":"string","x-mcp-header":"X"}"#,
            "`p` is now copied into a header",
            "`p` is now copied into a header",
        ),
    ] {
        check(old, new, person, model);
    }
    let long = "x".repeat(300);
    let (old, new) = (r#"{"type":"string"}"#, format!(r#"{{"type":"string","pattern":"{long}"}}"#));
    check(old, &new, "`p` must match a pattern", "`p` must match a pattern");
}

#[test]
fn what_one_of_several_branches_says_is_not_said_of_every_value() {
    let branches = |bound: &str| {
        format!(r#"{{"anyOf":[{{"type":"string"}},{{"type":"integer","maximum":{bound}}}]}}"#)
    };
    let vague = "`p` may now refuse values that it accepted";
    check(&branches("9"), &branches("5"), vague, vague);
    let optional =
        |values: &str| format!(r#"{{"anyOf":[{{"type":"null"}},{{"enum":[{values}]}}]}}"#);
    let exact = "`p` no longer accepts `b`";
    check(&optional(r#""a","b""#), &optional(r#""a""#), exact, exact);
    let items = |least: &str| format!(r#"{{"type":"array","items":{{"type":"integer"{least}}}}}"#);
    let person = "`p[]` must be at least 1 (had no minimum)";
    check(&items(""), &items(r#","minimum":1"#), person, "`p[]` has a minimum now");
}

#[test]
fn results_are_said_by_the_change_that_matters_most() {
    let open = r#"{"properties":{"a":{"type":"string"},"items":{}},"required":["a","items"]}"#;
    for (new, expected) in [
        (
            r#"{"properties":{"a":{"type":"string"},"items":{}},"required":["a"]}"#,
            "results may now lack `items`",
        ),
        (
            r#"{"properties":{"a":{"type":"string"}},"required":["a"]}"#,
            "results no longer declare `items`",
        ),
        (
            r#"{"properties":{"a":{"type":"string"},"items":{},"n":{}},"required":["a","items"]}"#,
            "results may now have `n`",
        ),
        (
            r#"{"properties":{"a":{"type":["string","null"]},"items":{},"n":{}},"required":["a","items"]}"#,
            "`a` in results may now also be null (and 1 more change of its results)",
        ),
    ] {
        check_results(open, new, expected, expected);
    }
    let values = |values: &str| format!(r#"{{"properties":{{"s":{{"enum":[{values}]}}}}}}"#);
    check_results(
        &values(r#""on""#),
        &values(r#""on","off""#),
        "`s` in results may also be `off`",
        "the declared form of `s` in results changed",
    );
    let (old, new) = (tool(r#""outputSchema":{}"#), tool(r#""inputSchema":{}"#));
    let gone = findings(&old, &new);
    let gone = gone.iter().find(|finding| finding.path == "/outputSchema").unwrap();
    assert_eq!(say(gone, Audience::Person), "no longer declares the form of its result");
}

#[test]
fn a_hint_that_says_what_was_assumed_is_said_to_do_so_and_another_is_not() {
    let hints = |hints: &str| tool(&format!(r#""annotations":{{{hints}}}"#));
    let (none, destroys) = (hints(""), hints(r#""destructiveHint":true"#));
    let assumed = "`destructiveHint: true` is now written down; MCP assumed it before";
    check_tools(&none, &destroys, assumed, assumed);
    let denied = hints(r#""destructiveHint":false"#);
    let now = "now declares itself destructive";
    check_tools(&denied, &destroys, now, now);
    let withdrawn = "no longer declares itself non-destructive";
    check_tools(&denied, &none, withdrawn, withdrawn);
}

#[test]
fn a_generated_title_is_told_without_its_words() {
    let titled = |title: &str| tool(&format!(r#""inputSchema":{{"title":"{title}"}}"#));
    let found = findings(&titled("aArguments"), &titled("AInput"));
    assert_eq!(found.len(), 1);
    assert_eq!(say(&found[0], Audience::Person), "a generated title changed");
}
