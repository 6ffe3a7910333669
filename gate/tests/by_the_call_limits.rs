//! Shield by the call with schemas designed to cost time or memory, and with harmless edits that it
//! must not treat as a change of the whole tool.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "all of this file is a test, also the functions that are not marked as one"
)]

use contract::diff::diff_entry;
use contract::surface::{Entry, EntryId, EntryType};
use gate::by_the_call::{
    CallCause, CallRules, CallRulesCache, CallRuling, MAX_CACHED_BYTES, ToolChange, Undecided,
};
use std::sync::Arc;

#[path = "calls/pairs.rs"]
#[allow(dead_code, unreachable_pub, reason = "only one function of it is needed")]
mod pairs;

fn tool(schema: &str) -> Entry {
    let id = EntryId::new(EntryType::Tool, "t");
    Entry::from_raw(id, &format!(r#"{{"name":"t","inputSchema":{schema}}}"#)).unwrap()
}

fn rules(old: &str, new: &str) -> CallRules {
    let (old, new) = (tool(old), tool(new));
    let findings = diff_entry(Some(&old), Some(&new)).map(|diff| diff.findings);
    let findings = &findings.unwrap_or_default();
    CallRules::of(ToolChange {
        approved: &old,
        accepted: &old,
        new: &new,
        findings,
        defers_text: false,
    })
}

/// Why the call is held, if it is.
fn cause(old: &str, new: &str, call: &str) -> Option<CallCause> {
    match rules(old, new).judge(Some(call.as_bytes())) {
        CallRuling::Proceed => None,
        CallRuling::Hold(hold) => Some(hold.cause),
    }
}

fn object(properties: &str) -> String {
    format!(r#"{{"type":"object","properties":{{{properties}}}}}"#)
}

fn joined(count: usize, part: impl Fn(usize) -> String) -> String {
    (0..count).map(part).collect::<Vec<_>>().join(",")
}

const OLD: &str = r#"{"type":"object","properties":{"a":{"type":"string"},"gone":{}}}"#;
const CALL: &str = r#"{"a":"x"}"#;
const TOO_MUCH: Option<CallCause> = Some(CallCause::Undecided(Undecided::TooMuchWork));
const TOO_LARGE: Option<CallCause> = Some(CallCause::Undecided(Undecided::TooLarge));

/// Parameters that all refer to one definition.
fn sharing(parameters: usize, definition: &str) -> String {
    let parameters = joined(parameters, |n| format!(r##""p{n}":{{"$ref":"#/$defs/B"}}"##));
    format!(
        r#"{{"type":"object","properties":{{"a":{{"type":"string"}},{parameters}}},"$defs":{{"B":{definition}}}}}"#
    )
}

fn wide(members: usize) -> String {
    format!(r#"{{"properties":{{{}}}}}"#, joined(members, |n| format!(r#""m{n}":{{}}"#)))
}

#[test]
fn new_parameters_that_share_a_wide_definition_cost_its_members_once() {
    assert_eq!(cause(OLD, &sharing(400, &wide(1_500)), CALL), None);
    assert_eq!(cause(OLD, &sharing(400, &wide(8_000)), CALL), TOO_LARGE);
}

#[test]
fn parameters_of_both_sides_that_share_a_wide_definition_are_undecided() {
    let both = |parameters: usize, members: usize| {
        let new = sharing(parameters, &wide(members));
        let old = new.replacen(r#""a":{"type":"string"}"#, r#""a":{"type":"string"},"gone":{}"#, 1);
        cause(&old, &new, CALL)
    };
    assert_eq!(both(20, 100), None);
    assert_eq!(both(400, 1_500), TOO_MUCH);
    assert_eq!(both(50, 900), TOO_MUCH);
}

#[test]
fn alternatives_that_concern_many_members_are_undecided() {
    let definition = |parts: usize, members: usize| {
        let parts = joined(parts, |n| format!(r#"{{"additionalProperties":{{"minLength":{n}}}}}"#));
        let members = joined(members, |n| format!(r#""m{n}":{{}}"#));
        format!(r#"{{"allOf":[{parts}],"properties":{{{members}}}}}"#)
    };
    assert_eq!(cause(OLD, &sharing(300, &definition(3, 20)), CALL), None);
    assert_eq!(cause(OLD, &sharing(300, &definition(120, 300)), CALL), TOO_MUCH);
}

#[test]
fn unknown_keywords_and_long_texts_behind_many_references_are_undecided() {
    let junk = |count: usize| format!("{{{}}}", joined(count, |n| format!(r#""x{n}":1"#)));
    assert_eq!(cause(OLD, &sharing(400, &junk(20)), CALL), None);
    assert_eq!(cause(OLD, &sharing(400, &junk(8_000)), CALL), TOO_MUCH);
    let text = |count: usize| format!(r#"{{"description":"{}"}}"#, "the words ".repeat(count));
    assert_eq!(cause(OLD, &sharing(100, &text(20)), CALL), None);
    assert_eq!(cause(OLD, &sharing(100, &text(20_000)), CALL), TOO_MUCH);
    // One parameter with an equally long text costs only its bytes.
    assert_eq!(cause(OLD, &sharing(1, &text(20_000)), CALL), None);
}

/// A chain of places in an order in which gathering the changes needs one round per place.
#[test]
fn a_chain_that_is_gathered_against_its_order_is_undecided() {
    let schema = |each: usize, text: &str| {
        let all = joined(each, |n| format!(r##"{{"$ref":"#/$defs/c{n}"}}"##));
        let chain = joined(each, |n| {
            let next = if n == 0 { "last".to_owned() } else { format!("c{}", n - 1) };
            format!(r##""c{n}":{{"properties":{{"n{n:03}":{{"$ref":"#/$defs/{next}"}}}}}}"##)
        });
        format!(
            r##"{{"type":"object","properties":{{"a":{{"type":"string"}},"b":{{"allOf":[{all}]}}}},"$defs":{{{chain},"last":{{"description":"{text}"}}}}}}"##
        )
    };
    assert_eq!(cause(&schema(20, "one"), &schema(20, "two"), CALL), None);
    assert_eq!(cause(&schema(330, "one"), &schema(330, "two"), CALL), TOO_MUCH);
}

#[test]
fn a_schema_that_doubles_with_each_step_into_the_call_is_read_once_for_each_level() {
    let levels = joined(18, |n| {
        let next = format!(r##"{{"$ref":"#/$defs/d{}"}}"##, n + 1);
        format!(r#""d{n}":{{"properties":{{"x":{next},"y":{next}}}}}"#)
    });
    let new = format!(
        r##"{{"type":"object","properties":{{"a":{{"type":"string"}},"b":{{"$ref":"#/$defs/d0"}}}},"$defs":{{{levels},"d18":{{}}}}}}"##
    );
    assert_eq!(cause(OLD, &new, CALL), None);
}

/// The current or peak memory of this process in megabytes. Zero if the system does not report it.
fn memory(field: &str) -> usize {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(field)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0) / 1024
}

/// Each value of the call breaks 900 rules. A validator that is asked for its errors computes
/// 900,000 of them.
#[test]
fn a_refused_call_makes_no_list_of_errors() {
    let parts = joined(900, |_| r#"{"maximum":0}"#.to_owned());
    let items = format!(r#"{{"type":"integer","allOf":[{parts}]}}"#);
    let alternatives =
        format!(r#"{{"anyOf":[{{"type":"null"}},{{"type":"integer","allOf":[{parts}]}}]}}"#);
    let call = format!(r#"{{"q":"x","ids":[{}]}}"#, joined(1_000, |_| "7".to_owned()));
    let schema = |items: &str| {
        object(&format!(r#""q":{{"type":"string"}},"ids":{{"type":"array","items":{items}}}"#))
    };
    let cases =
        [(r#"{"type":"integer"}"#, items), (r#"{"type":["integer","null"]}"#, alternatives)];
    for (old, new) in cases {
        let rules = rules(&schema(old), &schema(&new));
        let before = memory("VmHWM");
        let CallRuling::Hold(hold) = rules.judge(Some(call.as_bytes())) else { panic!("proceeds") };
        assert_eq!((hold.cause, hold.parameters), (CallCause::Invalid, vec!["ids".to_owned()]));
        let grew = memory("VmHWM").saturating_sub(before);
        assert!(grew < 64, "{grew} MB");
    }
}

fn with_patterns(count: usize, pattern: &str) -> String {
    let parameters =
        joined(count, |n| format!(r#""p{n}":{{"type":"string","pattern":"^{pattern}x{n}$"}}"#));
    object(&format!(r#""a":{{"type":"string"}},{parameters}"#))
}

#[test]
fn many_patterns_have_to_be_small_ones() {
    assert_eq!(cause(OLD, &with_patterns(20, "[A-Za-z0-9_-]{1,20}"), CALL), None);
    assert_eq!(cause(OLD, &with_patterns(1, r"\\p{Lu}{2}"), CALL), None);
    let refused = Some(CallCause::Undecided(Undecided::Schema));
    for (count, pattern) in [(30, r"\\p{Lu}{2}"), (1, r"\\p{Lu}{40}")] {
        let schema = with_patterns(count, pattern);
        assert_eq!(cause(&schema, &schema, r#"{"a":"x","p0":"y"}"#), refused);
        assert_eq!(cause(OLD, &schema, CALL), None, "it has none of those parameters");
    }
    let many = Some(CallCause::Undecided(Undecided::Patterns));
    assert_eq!(cause(OLD, &with_patterns(60, "a"), CALL), many);
}

#[test]
fn rules_with_many_patterns_are_not_kept_once_they_are_compiled() {
    let cache = CallRulesCache::default();
    let old = tool(OLD);
    let kept = |schema: &str| {
        let new = tool(schema);
        let change = ToolChange {
            approved: &old,
            accepted: &old,
            new: &new,
            findings: &[],
            defers_text: false,
        };
        cache.rules(change)
    };
    let plain = kept(&object(r#""a":{"type":"string"}"#));
    let heavy: Vec<String> = (1..6).map(|n| with_patterns(20, &"a".repeat(n))).collect();
    let before: Vec<_> = heavy.iter().map(|schema| kept(schema)).collect();
    let is_kept = |n: usize| Arc::ptr_eq(&before[n], &kept(&heavy[n]));
    assert!((0..5).all(is_kept), "none of them is compiled");
    for rules in &before {
        assert!(!rules.judge(Some(CALL.as_bytes())).is_held());
    }
    let _ = kept(OLD);
    assert!((0..5).any(|n| !is_kept(n)), "over {MAX_CACHED_BYTES} bytes");
    assert!(Arc::ptr_eq(&plain, &kept(&object(r#""a":{"type":"string"}"#))));
}

// ---- edits that are not about the whole tool ----

#[test]
fn a_parameter_that_may_not_be_null_any_more_holds_the_calls_that_use_it() {
    let null = object(
        r#""a":{"type":"string"},"b":{"anyOf":[{"type":"string"},{"type":"null"}],"default":null}"#,
    );
    let plain = object(r#""a":{"type":"string"},"b":{"type":"string"}"#);
    for (old, new) in [(&null, &plain), (&plain, &null)] {
        assert_eq!(cause(old, new, CALL), None);
        assert_eq!(cause(old, new, r#"{"a":"x","b":"y"}"#), Some(CallCause::Touched));
    }
    // An alternative that has a text is more than just "or null".
    let said = null.replace(r#"{"type":"null"}"#, r#"{"type":"null","description":"delete all"}"#);
    assert!(cause(&null, &said, r#"{"a":"x","b":"y"}"#).is_some());
}

#[test]
fn or_null_may_be_written_as_an_alternative_or_in_a_list_of_types() {
    let old =
        object(r#""a":{"anyOf":[{"type":"string"},{"type":"null"}],"default":null},"gone":{}"#);
    let new = object(r#""a":{"type":["string","null"],"default":null}"#);
    assert_eq!(cause(&old, &new, CALL), None);
    assert_eq!(cause(&old, &new, r#"{"a":null}"#), None);
    let other = object(r#""a":{"type":["integer","null"],"default":null}"#);
    assert!(cause(&old, &other, CALL).is_some());
}

#[test]
fn a_parameter_that_comes_or_goes_may_refer_to_a_definition_that_alternatives_refer_to() {
    let schema = |text: &str, rest: &str| {
        format!(
            r##"{{"type":"object","properties":{{"a":{{"type":"string"}},"f":{{"anyOf":[{{"$ref":"#/$defs/A"}},{{"$ref":"#/$defs/B"}}]}}{rest}}},"$defs":{{"A":{{"type":"object","description":"{text}","properties":{{"n":{{"type":"string"}}}}}},"B":{{"type":"string"}}}}}}"##
        )
    };
    let other = r##","other":{"$ref":"#/$defs/A"}"##;
    let plain = schema("one", r#","gone":{"type":"string"}"#);
    assert_eq!(cause(&plain, &schema("one", other), CALL), None);
    assert_eq!(cause(&schema("one", other), &schema("one", ""), CALL), None);
    let uses = r#"{"a":"x","f":{"n":"y"}}"#;
    assert_eq!(cause(&plain, &schema("one", other), uses), None);
    assert!(cause(&plain, &schema("two", other), uses).is_some());
    assert!(cause(&schema("one", other), &schema("two", ""), uses).is_some());
}

/// Counts how many real upgrades affect the whole tool.
#[test]
fn few_real_upgrades_are_about_the_whole_tool() {
    let Some(root) = testing::corpus() else { return };
    let (mut all, mut whole, mut undecided) = (0, 0, Vec::new());
    for (old, new) in pairs::adjacent(&root) {
        all += 1;
        match cause(&old.to_string(), &new.to_string(), r#"{"no such parameter":1}"#) {
            Some(CallCause::WholeTool) => whole += 1,
            Some(CallCause::Undecided(why)) => undecided.push(why),
            _ => {}
        }
    }
    assert!(whole * 40 <= all, "{whole} of {all}");
    assert!(!undecided.contains(&Undecided::TooMuchWork), "{undecided:?}");
    assert!(!undecided.contains(&Undecided::TooLarge), "{undecided:?}");
}

/// The cost of the largest schema, whether its calls are decided or not.
#[test]
fn unknown_keywords_behind_many_references_are_decided_or_given_up_soon() {
    let junk = |count: usize| format!("{{{}}}", joined(count, |n| format!(r#""x{n}":1"#)));
    let nested = |count: usize| {
        format!(r#"{{"x":{{{}}}}}"#, joined(count, |n| format!(r#""x{n}":[{{"y":1}}]"#)))
    };
    let branching = |count: usize| {
        let branches = joined(count, |n| format!(r#"{{"x{n}":1,"type":"string"}}"#));
        format!(r#"{{"anyOf":[{branches}]}}"#)
    };
    for (parameters, definition) in
        [(400, junk(8_000)), (1_900, junk(1_000)), (400, nested(4_000)), (100, branching(800))]
    {
        let new = sharing(parameters, &definition);
        let old = new.replacen(r#""a":{"type":"string"}"#, r#""a":{"type":"string"},"gone":{}"#, 1);
        let rules = rules(&old, &new);
        let took = testing::processor_time(|| drop(rules.judge(Some(CALL.as_bytes()))));
        eprintln!("{parameters} parameters, {} bytes: {took:?}", new.len());
        // Measured on a slow machine in a debug build, next to other tests.
        assert!(took < std::time::Duration::from_secs(2), "{took:?}");
    }
}
