use super::*;
use crate::surface::EntryId;

fn additions(old: &str, new: &str) -> Additions {
    let tool = |schema: &str| {
        let raw = format!(r#"{{"name":"t","inputSchema":{schema}}}"#);
        Entry::from_raw(EntryId::new(EntryType::Tool, "t"), &raw).unwrap()
    };
    Additions::between(&tool(old), &tool(new))
}

#[track_caller]
fn check(old: &str, new: &str, used: &[&str], unused: &[&str]) {
    let additions = additions(old, new);
    for call in used {
        assert!(additions.are_used_by(call.as_bytes()), "{call} uses what is new: {additions:?}");
    }
    for call in unused {
        assert!(!additions.are_used_by(call.as_bytes()), "{call} uses nothing new: {additions:?}");
    }
}

#[test]
fn a_new_parameter_is_found_at_the_top_and_nested() {
    check(
        r#"{"properties":{"a":{"properties":{"x":{}}}}}"#,
        r#"{"properties":{"a":{"properties":{"x":{},"y":{}}},"b":{}}}"#,
        &[r#"{"b":1}"#, r#"{"a":{"y":1}}"#],
        &["{}", r#"{"a":{"x":1}}"#, r#"{"y":1}"#, r#"{"a":{"b":1}}"#, "[]", "null"],
    );
}

#[test]
fn a_new_parameter_in_a_branch_of_the_root_is_found() {
    for keyword in ["anyOf", "oneOf", "allOf"] {
        let schema = |inner: &str| {
            format!(
                r#"{{"{keyword}":[{{"properties":{{"a":{{"properties":{{{inner}}}}}}}}},{{}}]}}"#
            )
        };
        let (old, new) = (schema(r#""x":{}"#), schema(r#""x":{},"y":{}"#));
        check(&old, &new, &[r#"{"a":{"y":1}}"#], &[r#"{"a":{"x":1}}"#]);
    }
    // An entirely new branch.
    check(
        r#"{"anyOf":[{"properties":{"a":{}}}]}"#,
        r#"{"anyOf":[{"properties":{"a":{}}},{"properties":{"b":{}}}]}"#,
        &[r#"{"b":1}"#],
        &[r#"{"a":1}"#],
    );
}

#[test]
fn a_new_parameter_in_the_values_of_a_map_or_list_is_found() {
    for (keyword, used, unused) in [
        ("additionalProperties", r#"{"any":{"y":1}}"#, r#"{"any":{"x":1}}"#),
        ("unevaluatedProperties", r#"{"any":{"y":1}}"#, r#"{"any":{"x":1}}"#),
    ] {
        let schema = |inner: &str| format!(r#"{{"{keyword}":{{"properties":{{{inner}}}}}}}"#);
        check(&schema(r#""x":{}"#), &schema(r#""x":{},"y":{}"#), &[used], &[unused]);
    }
    check(
        r#"{"properties":{"l":{"items":{"properties":{"x":{}}}}}}"#,
        r#"{"properties":{"l":{"items":{"properties":{"x":{},"y":{}}}}}}"#,
        &[r#"{"l":[{"x":1},{"y":1}]}"#],
        &[r#"{"l":[{"x":1}]}"#],
    );
}

#[test]
fn what_a_map_declares_does_not_count_for_a_parameter_with_a_name() {
    check(
        r#"{"properties":{"a":{"properties":{"x":{}}}},"additionalProperties":{"properties":{"y":{}}}}"#,
        r#"{"properties":{"a":{"properties":{"x":{},"y":{}}}},"additionalProperties":{"properties":{"y":{}}}}"#,
        &[r#"{"a":{"y":1}}"#],
        &[r#"{"b":{"y":1}}"#],
    );
}

#[test]
fn references_are_followed_also_where_they_lead_back() {
    let schema = |inner: &str| {
        format!(
            r##"{{"properties":{{"a":{{"$ref":"#/$defs/N"}}}},"$defs":{{"N":{{"properties":{{"child":{{"$ref":"#/$defs/N"}}{inner}}}}}}}}}"##
        )
    };
    check(
        &schema(""),
        &schema(r#","y":{}"#),
        &[r#"{"a":{"y":1}}"#, r#"{"a":{"child":{"child":{"y":1}}}}"#],
        &[r#"{"a":{"child":{"child":{}}}}"#, r#"{"y":1}"#],
    );
}

#[test]
fn equal_definitions_add_nothing_and_the_arguments_are_not_read() {
    let schema = r#"{"properties":{"a":{}},"patternProperties":{"^x":{"properties":{"p":{}}}}}"#;
    assert_eq!(additions(schema, schema), Additions::None);
    assert!(!Additions::None.are_used_by(b"not JSON"));
    let some = additions("{}", r#"{"properties":{"b":{}}}"#);
    assert!(some.are_used_by(br#"{"a":1,"a":2}"#), "two readers could read it differently");
}

#[test]
fn the_work_is_bounded_and_past_it_every_call_counts() {
    // Each level refers twice to the next one: 2^40 places as a tree, 40 as a graph.
    let levels = |last: &str| {
        let mut defs: Vec<String> = (0..40)
            .map(|level| {
                let next = level + 1;
                format!(r##""d{level}":{{"properties":{{"l":{{"$ref":"#/$defs/d{next}"}},"r":{{"$ref":"#/$defs/d{next}"}}}}}}"##)
            })
            .collect();
        defs.push(format!(r#""d40":{last}"#));
        format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{}}}}}"##, defs.join(","))
    };
    assert!(matches!(
        additions(&levels("{}"), &levels(r#"{"properties":{"y":{}}}"#)),
        Additions::At(_)
    ));
    let branches = |count: usize| {
        let branch = |number| format!(r#"{{"properties":{{"p{number}":{{}}}}}}"#);
        format!(r#"{{"anyOf":[{}]}}"#, (0..count).map(branch).collect::<Vec<_>>().join(","))
    };
    assert_eq!(additions(&branches(9_000), &branches(9_001)), Additions::Unknown);
    assert!(Additions::Unknown.are_used_by(b"{}"));
}

/// Some servers, including those using the official Python library, parse such text as the value.
#[test]
fn a_new_parameter_in_the_json_text_of_an_object_is_found() {
    let schema = |inner: &str| {
        format!(
            r#"{{"properties":{{"k":{{"properties":{{"a":{{}}{inner}}}}},"l":{{"items":{{"properties":{{"a":{{}}{inner}}}}}}},"s":{{"type":"string"}}}}}}"#
        )
    };
    check(
        &schema(""),
        &schema(r#","cmd":{}"#),
        &[
            r#"{"k":"{\"a\":1,\"cmd\":\"rm\"}"}"#,
            r#"{"k":" {\"cmd\":1,}"}"#,
            r#"{"l":"[{\"cmd\":1}]"}"#,
            r#"{"l":["{\"cmd\":1}"]}"#,
        ],
        &[r#"{"k":"{\"a\":1}"}"#, r#"{"s":"{\"cmd\":1}"}"#, r#"{"k":"cmd"}"#],
    );
}

#[test]
fn a_new_argument_of_a_prompt_is_found() {
    let prompt = |arguments: &str| {
        let raw = format!(r#"{{"name":"p","arguments":[{arguments}]}}"#);
        Entry::from_raw(EntryId::new(EntryType::Prompt, "p"), &raw).unwrap()
    };
    let additions =
        Additions::between(&prompt(r#"{"name":"a"}"#), &prompt(r#"{"name":"a"},{"name":"b"}"#));
    assert!(additions.are_used_by(br#"{"b":"x"}"#));
    assert!(!additions.are_used_by(br#"{"a":"x"}"#));
}
