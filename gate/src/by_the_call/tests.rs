use super::*;
use contract::diff::diff_entry;
use contract::surface::{EntryId, EntryType};

fn tool(schema: &str) -> Entry {
    let id = EntryId::new(EntryType::Tool, "t");
    Entry::from_raw(id, &format!(r#"{{"name":"t","inputSchema":{schema}}}"#)).unwrap()
}

fn object(properties: &str) -> String {
    format!(r#"{{"type":"object","properties":{{{properties}}}}}"#)
}

fn rules(old: &str, new: &str) -> CallRules {
    rules_of_three(old, old, new)
}

fn rules_of_three(approved: &str, accepted: &str, new: &str) -> CallRules {
    let (approved, accepted, new) = (tool(approved), tool(accepted), tool(new));
    let findings = diff_entry(Some(&approved), Some(&new)).map(|diff| diff.findings);
    let (approved, accepted, new) = (&approved, &accepted, &new);
    let findings = &findings.unwrap_or_default();
    CallRules::of(ToolChange { approved, accepted, new, findings, defers_text: false })
}

fn ruling(old: &str, new: &str, call: &str) -> CallRuling {
    rules(old, new).judge(Some(call.as_bytes()))
}

#[track_caller]
fn proceeds(old: &str, new: &str, call: &str) {
    assert_eq!(ruling(old, new, call), CallRuling::Proceed, "{call}");
}

/// Checks that the call is held for these kinds and parameters.
#[track_caller]
fn holds(old: &str, new: &str, call: &str, kinds: &[&str], parameters: &[&str]) {
    let CallRuling::Hold(hold) = ruling(old, new, call) else { panic!("{call} goes through") };
    let found: Vec<&str> = hold.kinds.iter().map(|kind| kind.as_str()).collect();
    assert_eq!(
        (found.as_slice(), hold.parameters.as_slice()),
        (kinds, &*owned(parameters)),
        "{call}"
    );
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[track_caller]
fn cause(old: &str, new: &str, call: &str, expected: CallCause) {
    let CallRuling::Hold(hold) = ruling(old, new, call) else { panic!("{call} goes through") };
    assert_eq!(hold.cause, expected, "{call}");
}

#[test]
fn a_call_that_does_not_use_the_edited_dry_run_goes_through_and_one_that_uses_it_is_held() {
    let schema = |text: &str| {
        object(&format!(
            r#""path":{{"type":"string"}},"dry_run":{{"type":"boolean","description":"{text}"}}"#
        ))
    };
    let (old, new) = (schema("Only report what would be deleted"), schema("Delete at once"));
    proceeds(&old, &new, r#"{"path":"a"}"#);
    holds(&old, &new, r#"{"path":"a","dry_run":true}"#, &["description-only"], &["dry_run"]);
    // A text about what happens without the parameter affects calls that omit it.
    let new = schema("Only report what would be deleted. Off by default");
    holds(&old, &new, r#"{"path":"a"}"#, &["description-only"], &["dry_run"]);
}

#[test]
fn a_removed_parameter_holds_calls_that_use_it_and_with_a_default_those_that_omit_it() {
    let old = |mode: &str| object(&format!(r#""path":{{"type":"string"}},"mode":{mode}"#));
    let new = object(r#""path":{"type":"string"}"#);
    let plain = old(r#"{"type":"string"}"#);
    proceeds(&plain, &new, r#"{"path":"a"}"#);
    holds(&plain, &new, r#"{"path":"a","mode":"x"}"#, &["removed-param"], &["mode"]);
    let preset = old(r#"{"type":"string","default":"safe"}"#);
    holds(&preset, &new, r#"{"path":"a"}"#, &["removed-param"], &["mode"]);
    proceeds(&old(r#"{"default":null}"#), &new, r#"{"path":"a"}"#);
    let spoken = old(r#"{"type":"string","description":"If omitted, nothing is deleted"}"#);
    holds(&spoken, &new, r#"{"path":"a"}"#, &["removed-param"], &["mode"]);
}

#[test]
fn an_edit_of_a_definition_reaches_every_parameter_that_refers_to_it() {
    let schema = |text: &str| {
        format!(
            r##"{{"type":"object","properties":{{"a":{{"$ref":"#/$defs/A"}},"list":{{"type":"array","items":{{"$ref":"#/$defs/B"}}}},"c":{{"type":"string"}}}},"$defs":{{"A":{{"type":"object","properties":{{"b":{{"$ref":"#/$defs/B"}}}}}},"B":{{"type":"string","description":"{text}"}}}}}}"##
        )
    };
    let (old, new) = (schema("one"), schema("two"));
    proceeds(&old, &new, r#"{"c":"x"}"#);
    for (call, name) in
        [(r#"{"a":{"b":"x"}}"#, "a"), (r#"{"a":{}}"#, "a"), (r#"{"list":[]}"#, "list")]
    {
        holds(&old, &new, call, &["description-only"], &[name]);
    }
}

#[test]
fn a_format_from_cents_to_dollars_holds_calls_that_use_the_parameter() {
    let schema = |format: &str| {
        object(&format!(r#""amount":{{"type":"integer",{format}}},"to":{{"type":"string"}}"#))
    };
    let (old, new) = (schema(r#""format":"cents""#), schema(r#""format":"dollars""#));
    holds(&old, &new, r#"{"amount":5,"to":"a"}"#, &["constraint-narrowed"], &["amount"]);
    proceeds(&old, &new, r#"{"to":"a"}"#);
    for keyword in ["contentEncoding", "contentMediaType", "contentSchema"] {
        let value = |value: &str| match keyword {
            "contentSchema" => format!(r#""contentSchema":{{"title":"{value}"}}"#),
            _ => format!(r#""{keyword}":"{value}""#),
        };
        let (old, new) = (schema(&value("a")), schema(&value("b")));
        assert!(ruling(&old, &new, r#"{"amount":5}"#).is_held(), "{keyword}");
    }
}

#[test]
fn defaults_inside_a_left_out_object_count() {
    let schema = |default: u8| {
        object(&format!(
            r#""options":{{"type":"object","properties":{{"retry":{{"type":"object","properties":{{"times":{{"type":"integer","default":{default}}}}}}}}}}},"path":{{"type":"string"}}"#
        ))
    };
    let (old, new) = (schema(1), schema(9));
    for call in
        [r#"{"path":"a"}"#, "{}", r#"{"options":{}}"#, r#"{"options":{"retry":{"times":1}}}"#]
    {
        holds(&old, &new, call, &["default-changed"], &["options"]);
    }
    proceeds(&old, &old, "{}");
}

#[test]
fn a_default_of_another_value_holds_a_call_that_leaves_it_out_and_null_is_none() {
    let schema = |rest: &str| object(&format!(r#""n":{{"type":["integer","null"]{rest}}}"#));
    holds(
        &schema(r#","default":1"#),
        &schema(r#","default":2"#),
        "{}",
        &["default-changed"],
        &["n"],
    );
    holds(&schema(""), &schema(r#","default":2"#), "{}", &["default-changed"], &["n"]);
    proceeds(&schema(""), &schema(r#","default":null"#), "{}");
    proceeds(&schema(r#","default":1"#), &schema(r#","default":1.0"#), "{}");
}

#[test]
fn members_that_the_approved_schema_does_not_declare_are_held_at_every_level() {
    let old = object(
        r#""path":{"type":"string"},"o":{"type":"object","properties":{"a":{"type":"string"}}},"map":{"type":"object","additionalProperties":{"type":"object","properties":{"k":{"type":"string"}}}},"free":{"type":"object","additionalProperties":true},"list":{"type":"array"},"gone":{}"#,
    );
    let new = old.replace(r#","gone":{}"#, "");
    for call in [
        r#"{"path":"a"}"#,
        r#"{"o":{"a":"x"}}"#,
        r#"{"map":{"any":{"k":"x"}}}"#,
        r#"{"free":{"x":{"y":[{"z":1}]}}}"#,
        r#"{"list":[1,[2]]}"#,
    ] {
        proceeds(&old, &new, call);
    }
    for call in [
        r#"{"Path":"a"}"#,
        r#"{"path":"a","extra":1}"#,
        r#"{"o":{"A":"x"}}"#,
        r#"{"map":{"any":{"K":"x"}}}"#,
        r#"{"list":[[{"a":1}]]}"#,
    ] {
        cause(&old, &new, call, CallCause::Undeclared);
    }
}

#[test]
fn a_parameter_that_only_the_new_definition_has_is_held() {
    let old = object(r#""a":{"type":"string"},"gone":{}"#);
    let new = object(r#""a":{"type":"string"},"b":{"type":"string"}"#);
    proceeds(&old, &new, r#"{"a":"x"}"#);
    holds(&old, &new, r#"{"a":"x","b":"y"}"#, &["added-optional-param"], &["b"]);
}

#[test]
fn arguments_are_valid_under_the_approved_the_accepted_and_the_new_schema() {
    let schema = |limits: &str| object(&format!(r#""n":{{"type":"integer",{limits}}},"a":{{}}"#));
    let (old, new) = (schema(r#""maximum":10"#), schema(r#""maximum":5"#));
    proceeds(&old, &new, r#"{"n":3}"#);
    holds(&old, &new, r#"{"n":7}"#, &["constraint-narrowed"], &["n"]);
    cause(&old, &new, r#"{"n":7}"#, CallCause::Invalid);
    // The approved definition already refused it, so the change is not the cause.
    cause(&new, &old, r#"{"n":7}"#, CallCause::InvalidBefore);
    cause(&old, &new, r#"{"n":11}"#, CallCause::InvalidBefore);
    let rules = rules_of_three(&schema(r#""maximum":10"#), &schema(r#""minimum":2"#), &old);
    assert_eq!(rules.judge(Some(br#"{"n":3}"#)), CallRuling::Proceed);
    assert!(rules.judge(Some(br#"{"n":1}"#)).is_held());
    let required = r#"{"type":"object","properties":{"a":{},"n":{"type":"integer","maximum":10}},"required":["a"]}"#;
    holds(&old, required, r#"{"n":3}"#, &["required-set-expanded"], &["a"]);
    assert!(super::tests::rules(&old, required).judge(None).is_held());
    proceeds(&old, required, r#"{"a":1}"#);
}

#[test]
fn the_accepted_definition_counts_like_the_approved_one() {
    let schema = |text: &str| object(&format!(r#""a":{{"description":"{text}"}},"b":{{}}"#));
    let rules = rules_of_three(&schema("one"), &schema("two"), &schema("one"));
    assert!(rules.judge(Some(br#"{"a":1}"#)).is_held());
    assert_eq!(rules.judge(Some(br#"{"b":1}"#)), CallRuling::Proceed);
}

#[test]
fn without_a_dialect_both_decide() {
    // `prefixItems` means nothing in draft-07, and neither does a list of `items` in 2020-12.
    let old = object(r#""a":{"type":"array","prefixItems":[{"type":"string"}]},"gone":{}"#);
    let new = object(r#""a":{"type":"array","prefixItems":[{"type":"string"}]}"#);
    proceeds(&old, &new, r#"{"a":["x"]}"#);
    cause(&old, &new, r#"{"a":[1]}"#, CallCause::InvalidBefore);
    let (old, new) = (old.replace("prefixItems", "items"), new.replace("prefixItems", "items"));
    let declared = |schema: &str| {
        schema.replacen('{', r#"{"$schema":"http://json-schema.org/draft-07/schema#","#, 1)
    };
    cause(&declared(&old), &declared(&new), r#"{"a":[1]}"#, CallCause::InvalidBefore);
    proceeds(&declared(&old), &declared(&new), r#"{"a":["x"]}"#);
    let other = old.replacen('{', r#"{"$schema":"http://json-schema.org/draft-04/schema#","#, 1);
    cause(&other, &new, "{}", CallCause::Undecided(Undecided::Dialect));
}

#[test]
fn another_type_holds_and_one_that_is_written_differently_does_not() {
    let schema = |a: &str| object(&format!(r#""a":{a},"b":{{}}"#));
    let (text, number) =
        (schema(r#"{"type":"string"}"#), schema(r#"{"type":["integer","string"]}"#));
    holds(&number, &text, r#"{"a":"x"}"#, &["type-changed"], &["a"]);
    holds(&text, &number, r#"{"a":"x"}"#, &["type-widened"], &["a"]);
    proceeds(&text, &number, r#"{"b":1}"#);
    proceeds(&text, &schema(r#"{"allOf":[{"type":["string"]}]}"#), r#"{"a":"x"}"#);
}

#[test]
fn what_changed_above_a_used_path_holds_it_too() {
    let schema = |text: &str| {
        object(&format!(
            r#""o":{{"type":"object","description":"{text}","properties":{{"a":{{"type":"string"}}}}}}"#
        ))
    };
    holds(&schema("one"), &schema("two"), r#"{"o":{"a":"x"}}"#, &["description-only"], &["o"]);
}

#[test]
fn text_of_the_whole_input_and_text_that_no_parameter_reaches_hold_the_tool() {
    let with = |rest: &str| format!(r#"{{"type":"object","properties":{{"a":{{}}}},{rest}}}"#);
    let pair = |rest: &str, word: &str| with(&rest.replace("WORD", word));
    for rest in [
        r#""description":"WORD words""#,
        r#""title":"WORD words""#,
        r#""$defs":{"X":{"description":"WORD"}}"#,
        r#""$defs":{"X":{"type":"string","default":"WORD"}}"#,
        r#""$defs":{"X":{"format":"WORD"}}"#,
        r#""$defs":{"X":{"properties":{"WORD":{}}}}"#,
        r#""anyOf":[{"required":["a"]},{"title":"WORD it"}]"#,
        r#""not":{"required":["WORD"]}"#,
    ] {
        let (old, new) = (pair(rest, "one"), pair(rest, "two"));
        cause(&old, &new, "{}", CallCause::WholeTool);
        proceeds(&old, &old, "{}");
    }
    // A class name generated by a framework does not count as text.
    proceeds(&with(r#""title":"OldArgs""#), &with(r#""title":"NewArgs""#), "{}");
}

#[test]
fn alternatives_that_changed_hold_their_parameter_and_those_that_did_not_are_compared_with_their_references()
 {
    let schema = |limit: u8, text: &str| {
        format!(
            r##"{{"type":"object","properties":{{"a":{{"anyOf":[{{"$ref":"#/$defs/A"}},{{"type":"integer","maximum":{limit}}}]}},"b":{{}}}},"$defs":{{"A":{{"type":"string","description":"{text}"}}}}}}"##
        )
    };
    let old = schema(9, "one");
    proceeds(&old, &schema(8, "one"), r#"{"b":1}"#);
    for new in [schema(8, "one"), schema(9, "two")] {
        assert!(ruling(&old, &new, r#"{"a":3}"#).is_held());
    }
    // The alternative null only means that the value may be null.
    let nullable = |text: &str| {
        object(&format!(
            r#""a":{{"anyOf":[{{"type":"string","enum":["x",{text}]}},{{"type":"null"}}]}},"b":{{}}"#
        ))
    };
    proceeds(&nullable(r#""y""#), &nullable(r#""z""#), r#"{"a":"x"}"#);
    holds(
        &nullable(r#""y""#),
        &nullable(r#""z""#),
        r#"{"a":"y"}"#,
        &["enum-values-removed"],
        &["a"],
    );
}

#[test]
fn a_left_out_parameter_whose_alternatives_changed_is_held_if_any_default_is_in_it() {
    let schema = |limit: u8, rest: &str| {
        object(&format!(
            r#""a":{{"anyOf":[{{"type":"object","properties":{{"x":{{"type":"integer"{rest}}}}}}},{{"type":"integer","maximum":{limit}}}]}}"#
        ))
    };
    proceeds(&schema(1, ""), &schema(2, ""), "{}");
    let preset = r#","default":7"#;
    assert!(ruling(&schema(1, preset), &schema(2, preset), "{}").is_held());
}

#[test]
fn a_change_that_concerns_no_call_reaches_none() {
    let (old, new) = (r#"{"properties":{"a":{}}}"#, object(r#""a":{}"#));
    let CallReach::Parameters(reached) = rules(old, &new).reach() else { panic!("every call") };
    assert!(reached.is_empty(), "{reached:?}");
    let CallReach::Parameters(reached) = rules(&new, &object("")).reach() else { panic!("every") };
    assert!(!reached.is_empty());
    let closed = r#"{"type":"object","properties":{"a":{}},"minProperties":1}"#;
    let CallReach::Parameters(reached) = rules(&new, closed).reach() else { panic!("every") };
    assert!(reached.is_open && !reached.is_empty());
}

#[test]
fn duplicate_members_and_numbers_that_readers_round_are_held() {
    let (old, new) = (object(r#""a":{},"gone":{}"#), object(r#""a":{}"#));
    proceeds(&old, &new, r#"{"a":9007199254740993}"#);
    for call in [
        r#"{"a":1,"a":1}"#,
        r#"{"a":1,"\u0061":1}"#,
        r#"{"a":18446744073709551617}"#,
        r#"{"a":1e400}"#,
        r#"{"a":"#,
        "null null",
    ] {
        cause(&old, &new, call, CallCause::Ambiguous);
    }
}

#[test]
fn a_parameter_text_is_ignored_where_it_is_deferred() {
    let schema = |text: &str| {
        object(&format!(r#""a":{{"description":"{text}. Off by default"}},"gone":{{}}"#))
    };
    let (old, new) = (tool(&schema("one")), tool(&schema("two").replace(r#","gone":{}"#, "")));
    let change =
        ToolChange { approved: &old, accepted: &old, new: &new, findings: &[], defers_text: true };
    let rules = CallRules::of(change);
    assert_eq!(rules.judge(Some(br#"{"a":1}"#)), CallRuling::Proceed);
    assert_eq!(rules.judge(None), CallRuling::Proceed);
    assert!(rules.judge(Some(br#"{"gone":1}"#)).is_held());
    assert!(CallRules::of(ToolChange { defers_text: false, ..change }).judge(None).is_held());
}

#[test]
fn schemas_that_cannot_be_followed_are_undecided() {
    let with = |rest: &str| format!(r#"{{"type":"object","properties":{{"a":{{}},"b":{rest}}}}}"#);
    let old = object(r#""a":{}"#);
    for (rest, why) in [
        (r#"{"$ref":"https://example.com/s.json"}"#, Undecided::Reference),
        (r##"{"$ref":"#name"}"##, Undecided::Reference),
        (r##"{"$ref":"#/$defs/None"}"##, Undecided::Reference),
        (r#"{"$id":"x"}"#, Undecided::Reference),
        (r##"{"$dynamicRef":"#x"}"##, Undecided::Reference),
        (r##"{"$ref":"#/properties/b"}"##, Undecided::Cycle),
        (r#"{"maximum":18446744073709551617}"#, Undecided::Number),
        (r#"{"type":"nothing"}"#, Undecided::Schema),
    ] {
        cause(&old, &with(rest), "{}", CallCause::Undecided(why));
        cause(&with(rest), &old, "{}", CallCause::Undecided(why));
    }
    // A pattern that needs backtracking only affects its parameter.
    for pattern in ["(?=a)b", r"(a)\\1", "((a{100}){100}){100}"] {
        let new = with(&format!(r#"{{"pattern":"{pattern}"}}"#));
        let CallRuling::Hold(hold) = ruling(&new, &new, r#"{"b":"x"}"#) else {
            panic!("{pattern}")
        };
        let why = CallCause::Undecided(Undecided::Schema);
        assert_eq!((hold.cause, hold.parameters), (why, owned(&["b"])));
        proceeds(&new, &new, "{}");
    }
    // A recursive schema that descends into the call describes a tree.
    let tree = r##"{"type":"object","properties":{"a":{"$ref":"#"},"gone":{}}}"##;
    let new = r##"{"type":"object","properties":{"a":{"$ref":"#"}}}"##;
    proceeds(new, new, r#"{"a":{"a":{}}}"#);
    holds(tree, new, r#"{"a":{"a":{}}}"#, &["removed-param"], &["a"]);
}

/// Each level refers twice to the next one.
fn doubling(levels: usize, step: &str) -> String {
    let level = |n: usize| {
        let next = format!(r##"{{"$ref":"#/$defs/d{}"}}"##, n + 1);
        format!(r#""d{n}":{{"allOf":[{next},{next}]}}"#)
    };
    let definitions: Vec<String> = (0..levels).map(level).collect();
    format!(
        r##"{{"type":"object","properties":{{"a":{{"$ref":"#/$defs/d0"}}}},"$defs":{{{},"d{levels}":{step}}}}}"##,
        definitions.join(",")
    )
}

#[test]
fn a_schema_that_doubles_at_every_level_is_undecided_before_it_is_compiled() {
    let old = object(r#""a":{}"#);
    let many = CallCause::Undecided(Undecided::TooManySubschemas);
    cause(&old, &doubling(28, "{}"), "{}", many);
    let CallRuling::Hold(hold) = ruling(&old, &doubling(5, "{}"), "{}") else { return };
    assert_ne!(hold.cause, many);
}

#[test]
fn doubling_with_each_step_into_the_call_is_undecided() {
    let leaf = r##"{"properties":{"x":{"$ref":"#/$defs/d0"}}}"##;
    let many = CallCause::Undecided(Undecided::TooManySubschemas);
    cause(&object(r#""a":{}"#), &doubling(1, leaf), "{}", many);
    let counting = |levels: usize| {
        let inner = r#"{"unevaluatedProperties":false,"allOf":["#.repeat(levels);
        format!("{inner}{{}}{}", "]}".repeat(levels))
    };
    cause(&object(""), &counting(28), "{}", many);
}

#[test]
fn hostile_schemas_are_undecided_in_milliseconds() {
    let started = std::time::Instant::now();
    for _ in 0..10 {
        assert!(rules("{}", &doubling(28, "{}")).judge(None).is_held());
        let pattern = object(r#""a":{"pattern":"(a+)+\\1$"}"#);
        assert!(rules(&pattern, &pattern).judge(Some(br#"{"a":"aaa"}"#)).is_held());
    }
    // Without the bounds, one of them takes minutes. The limit is 1 ms each, with a margin for slow
    // machines and debug builds.
    assert!(started.elapsed() < std::time::Duration::from_millis(20 * 50));
}

#[test]
fn long_chains_of_references_and_wide_definitions_end() {
    let chain = |n: usize| format!(r##""d{n}":{{"$ref":"#/$defs/d{}"}}"##, n + 1);
    let chain: Vec<String> = (0..1_500).map(chain).collect();
    let schema = format!(
        r##"{{"properties":{{"a":{{"$ref":"#/$defs/d0"}}}},"$defs":{{{},"d1500":{{}}}}}}"##,
        chain.join(",")
    );
    cause("{}", &schema, "{}", CallCause::Undecided(Undecided::TooManySubschemas));
    let wide = |parameters: usize| {
        let wide: Vec<String> =
            (0..parameters).map(|n| format!(r##""p{n}":{{"$ref":"#/$defs/X"}}"##)).collect();
        format!(r#"{{"properties":{{{}}},"$defs":{{"X":{{}}}}}}"#, wide.join(","))
    };
    let most = wide(MAX_SUBSCHEMAS - 2);
    proceeds(&most, &most, r#"{"p7":1}"#);
    let more = wide(MAX_SUBSCHEMAS - 1);
    cause(&more, &more, r#"{"p7":1}"#, CallCause::Undecided(Undecided::TooLarge));
}

#[test]
fn schemas_and_patterns_over_the_limits_are_undecided() {
    let long = format!(r#"{{"description":"{}"}}"#, "x".repeat(MAX_SCHEMA_BYTES));
    cause("{}", &long, "{}", CallCause::Undecided(Undecided::TooLarge));
    let many: Vec<String> =
        (0..=MAX_PATTERNS).map(|n| format!(r#""p{n}":{{"pattern":"a"}}"#)).collect();
    cause("{}", &object(&many.join(",")), "{}", CallCause::Undecided(Undecided::Patterns));
    let long = format!(r#"{{"patternProperties":{{"{}":{{}}}}}}"#, "a".repeat(MAX_PATTERN_BYTES));
    cause("{}", &long, "{}", CallCause::Undecided(Undecided::Patterns));
}

#[test]
fn rules_are_kept_by_the_hashes_of_the_definitions_and_their_number_is_bounded() {
    let cache = CallRulesCache::default();
    let old = tool("{}");
    let rules = |new: &Entry, defers_text| {
        cache.rules(ToolChange { approved: &old, accepted: &old, new, findings: &[], defers_text })
    };
    let new = tool(&object(r#""a":{}"#));
    let first = rules(&new, false);
    assert!(std::sync::Arc::ptr_eq(&first, &rules(&new, false)));
    assert!(!std::sync::Arc::ptr_eq(&first, &rules(&new, true)));
    for n in 0..MAX_CACHED_RULES {
        let _ = rules(&tool(&object(&format!(r#""a{n}":{{}}"#))), false);
    }
    assert!(!std::sync::Arc::ptr_eq(&first, &rules(&new, false)), "the oldest were dropped");
    let first = rules(&new, false);
    let large = |n: usize| {
        let text = format!("{n}{}", "x".repeat(MAX_CACHED_BYTES / 4));
        tool(&format!(r#"{{"description":"{text}"}}"#))
    };
    let before: Vec<_> = (0..4).map(|n| rules(&large(n), false)).collect();
    let is_kept = |n: usize| std::sync::Arc::ptr_eq(&before[n], &rules(&large(n), false));
    assert!((0..4).any(|n| !is_kept(n)), "they are too large together");
    assert!(std::sync::Arc::ptr_eq(&first, &rules(&new, false)), "the heaviest were dropped");
}
