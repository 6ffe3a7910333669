//! Every refusal names the place and the rule.

use super::*;
use contract::surface::{EntryId, EntryType};
use std::sync::Arc;

fn tool(schema: &str) -> Entry {
    let raw = format!(r#"{{"name":"t","inputSchema":{schema}}}"#);
    Entry::from_raw(EntryId::new(EntryType::Tool, "t"), &raw).unwrap()
}

fn checked(schema: &str, arguments: &str, undeclared: UndeclaredMembers) -> String {
    let rules = match InputRules::compile(&tool(schema)) {
        Ok(rules) => rules,
        Err(why) => return format!("undecided: {why}"),
    };
    let found = Arguments::read(Some(arguments.as_bytes()))
        .and_then(|arguments| rules.check(&arguments, undeclared));
    match found {
        Ok(()) => "fine".to_owned(),
        Err(Violation { pointer, rule: InputRule::Keyword(word) }) => format!("{pointer} {word}"),
        Err(Violation { pointer, rule }) => format!("{pointer} {rule:?}"),
    }
}

#[track_caller]
fn check(schema: &str, arguments: &str, expected: &str) {
    let found = checked(schema, arguments, UndeclaredMembers::Refuse);
    assert_eq!(found, expected, "{schema} {arguments}");
}

const REPORT: &str = r##"{"type":"object","required":["owner"],"properties":{
    "owner":{"type":"string","minLength":1,"maxLength":5},
    "count":{"type":"integer","minimum":1,"maximum":9},
    "mode":{"enum":["a","b"]},
    "tags":{"type":"array","maxItems":2,"items":{"type":"string"}},
    "place":{"$ref":"#/$defs/Place"},
    "when":{"anyOf":[{"type":"string","pattern":"^[0-9-]+$"},{"type":"null"}]}},
    "$defs":{"Place":{"type":"object","required":["x"],"properties":{"x":{"type":"number"},"in":{"$ref":"#/$defs/Place"}}}}}"##;

#[test]
fn a_refusal_names_the_place_and_the_keyword() {
    for (arguments, expected) in [
        (r#"{"owner":"ada"}"#, "fine"),
        ("{}", "/owner required"),
        (r#"{"owner":""}"#, "/owner minLength"),
        (r#"{"owner":"ada lovelace"}"#, "/owner maxLength"),
        (r#"{"owner":7}"#, "/owner type"),
        (r#"{"owner":"ada","count":10}"#, "/count maximum"),
        (r#"{"owner":"ada","count":9.0}"#, "fine"),
        (r#"{"owner":"ada","count":1.5}"#, "/count type"),
        (r#"{"owner":"ada","mode":"c"}"#, "/mode enum"),
        (r#"{"owner":"ada","tags":["x","y","z"]}"#, "/tags maxItems"),
        (r#"{"owner":"ada","tags":["x",1]}"#, "/tags/1 type"),
        (r#"{"owner":"ada","place":{"x":1,"in":{"x":"1"}}}"#, "/place/in/x type"),
        (r#"{"owner":"ada","place":{"in":{"x":1}}}"#, "/place/x required"),
        (r#"{"owner":"ada","when":"tomorrow"}"#, "/when anyOf"),
        (r#"{"owner":"ada","when":null}"#, "fine"),
        (r#"{"owner":"ada","count":1,"count":2}"#, " Exact"),
        (r#"{"owner":"ada","count":1e400}"#, " Exact"),
        (r#"{"owner":"ada"#, " Exact"),
        ("[]", " Object"),
    ] {
        check(REPORT, arguments, expected);
    }
}

#[test]
fn members_that_no_definition_declares_are_refused_at_every_level() {
    check(REPORT, r#"{"owner":"ada","x":1}"#, "/x Declared");
    check(REPORT, r#"{"owner":"ada","place":{"x":1,"y":2}}"#, "/place/y Declared");
    check(
        REPORT,
        r#"{"owner":"ada","place":{"x":1,"in":{"x":1,"~/":2}}}"#,
        "/place/in/~0~1 Declared",
    );
    let found = checked(REPORT, r#"{"owner":"ada","x":1}"#, UndeclaredMembers::Allow);
    assert_eq!(found, "fine");
}

#[test]
fn where_a_schema_names_nothing_or_speaks_of_further_members_all_are_declared() {
    for open in [
        r#"{"type":"object"}"#,
        r#"{"type":"object","properties":{}}"#,
        r#"{"properties":{"a":{}},"additionalProperties":true}"#,
        r#"{"properties":{"a":{}},"additionalProperties":{"type":"integer"}}"#,
        r#"{"properties":{"a":{}},"patternProperties":{"^x$":{}}}"#,
        r#"{"properties":{"a":{}},"allOf":[{"additionalProperties":true}]}"#,
        r#"{"properties":{"a":{}},"anyOf":[{"properties":{"x":{}}},{"properties":{"y":{}}}]}"#,
        r#"{"properties":{"a":{}},"if":{"properties":{"x":{"const":1}}},"then":{"required":["a"]}}"#,
        r##"{"properties":{"a":{}},"allOf":[{"$ref":"#/$defs/A"}],"$defs":{"A":{"properties":{"x":{}}}}}"##,
    ] {
        check(open, r#"{"a":1,"x":2}"#, "fine");
    }
    let closed = r#"{"properties":{"a":{}},"additionalProperties":false}"#;
    check(closed, r#"{"a":1,"x":2}"#, "/x Declared");
    let found = checked(closed, r#"{"a":1,"x":2}"#, UndeclaredMembers::Allow);
    assert_eq!(found, "/x Declared", "the schema itself refuses it");
}

#[test]
fn a_schema_that_names_no_dialect_counts_in_those_that_it_is_valid_in() {
    let tuple = r#"{"properties":{"at":{"items":[{"type":"number"},{"type":"string"}]}}}"#;
    check(tuple, r#"{"at":[1,"a"]}"#, "fine");
    check(tuple, r#"{"at":[1,2]}"#, "/at/1 type");
}

#[test]
fn what_cannot_be_decided_is_refused() {
    let wide = |count: usize| {
        let parts = vec![r#"{"type":"object"}"#; count].join(",");
        format!(r#"{{"allOf":[{parts}]}}"#)
    };
    check(&wide(super::super::MAX_APPLIED - 1), "{}", "fine");
    let over = checked(&wide(super::super::MAX_APPLIED), "{}", UndeclaredMembers::Refuse);
    assert!(over.starts_with("undecided: more than 1000 subschemas"), "{over}");
    let fetched = r#"{"properties":{"a":{"$ref":"https://example.com/a.json"}}}"#;
    assert!(checked(fetched, "{}", UndeclaredMembers::Refuse).contains("reference"));
    let dialect = r#"{"$schema":"http://json-schema.org/draft-04/schema#"}"#;
    assert!(checked(dialect, "{}", UndeclaredMembers::Refuse).contains("dialect"));
    let pattern = r#"{"properties":{"a":{"pattern":"\\p{Unheard}"},"b":{}}}"#;
    check(pattern, r#"{"b":1}"#, "fine");
    // Only calls that use the parameter depend on its pattern.
    check(pattern, r#"{"a":"x"}"#, "/a Decidable(Schema)");
}

#[test]
fn patterns_that_look_around_are_checked_and_may_not_go_back_for_good() {
    let email = r#"{"properties":{"a":{"pattern":"^(?!\\.)(?!.*\\.\\.)[a-z.]+@[a-z.]+$"}}}"#;
    check(email, r#"{"a":"a.b@example.com"}"#, "fine");
    check(email, r#"{"a":"a..b@example.com"}"#, "/a pattern");
    let endless = r#"{"properties":{"a":{"pattern":"^(?=(a+)+$)(a+)+\\1$"}}}"#;
    let begun = std::time::Instant::now();
    check(endless, &format!(r#"{{"a":"{}b"}}"#, "a".repeat(60)), "/a pattern");
    assert!(begun.elapsed() < std::time::Duration::from_secs(2));
}

#[test]
fn compiled_rules_are_kept_up_to_their_limits() {
    let cache = InputRulesCache::default();
    let numbered = |n: usize| tool(&format!(r#"{{"title":"{n}","type":"object"}}"#));
    let first = cache.rules(&numbered(0)).unwrap();
    assert!(Arc::ptr_eq(&first, &cache.rules(&numbered(0)).unwrap()));
    for n in 0..MAX_CACHED_INPUTS {
        cache.rules(&numbered(n)).unwrap();
    }
    assert_eq!(cache.size().0, MAX_CACHED_INPUTS);
    cache.rules(&numbered(MAX_CACHED_INPUTS)).unwrap();
    assert_eq!(cache.size().0, MAX_CACHED_INPUTS / 10 * 9, "the least used ones go");
    assert!(!Arc::ptr_eq(&first, &cache.rules(&numbered(0)).unwrap()));
}

#[test]
fn heavy_rules_are_bounded_by_their_bytes() {
    let cache = InputRulesCache::default();
    for n in 0..40 {
        let patterns: Vec<String> =
            (0..32).map(|p| format!(r#""p{p}":{{"pattern":"^a{p}-{n}$"}}"#)).collect();
        cache.rules(&tool(&format!(r#"{{"properties":{{{}}}}}"#, patterns.join(",")))).unwrap();
        assert!(cache.size().1 <= MAX_CACHED_INPUT_BYTES);
    }
    assert!(cache.size().0 > 0);
}

/// The validator receives the same values that another reader parses from the same bytes.
#[test]
fn arguments_are_read_as_another_reader_reads_them() {
    for text in [
        r#"{}"#,
        r#"{"a":1,"b":-1,"c":0,"d":-0,"e":1.50,"f":1e3,"g":18446744073709551615,"h":-0.0}"#,
        r#"{"a":"","b":"\u00e9\ud83d\ude00\n","\u0061b":[[],{},[{"x":null}],true,false]}"#,
        r#" { "z" : [ 1 , "2" ] , "a" : { "b" : { } } } "#,
    ] {
        let read = Arguments::read(Some(text.as_bytes())).unwrap();
        let other: Value = serde_json::from_str(text).unwrap();
        assert_eq!(read.value, other, "{text}");
        assert_eq!(read.value.to_string(), other.to_string(), "{text}");
    }
    let nested = |levels: usize| format!("{{\"a\":{}1{}}}", "[".repeat(levels), "]".repeat(levels));
    assert!(Arguments::read(Some(nested(127).as_bytes())).is_ok());
    for refused in [
        nested(128).as_str(),
        r#"{"a":18446744073709551617}"#,
        r#"{"a":{"$serde_json::private::Number":"1"}}"#,
        r#"{"a":"\ud800"}"#,
        r#"{"a":1,"\u0061":2}"#,
    ] {
        let found = Arguments::read(Some(refused.as_bytes())).map(|_| ()).unwrap_err();
        assert_eq!(found.rule, InputRule::Exact, "{refused}");
    }
}
