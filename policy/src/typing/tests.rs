use super::*;
use proptest::prelude::*;

fn check(schema: &str, expected: &str) {
    let shape = type_of_schema(schema.as_bytes());
    assert_eq!(shown(&InputType::Record(shape.members)), expected, "{schema}");
}

fn check_left_out(schema: &str, path: &str, reason: &str) {
    let shape = type_of_schema(schema.as_bytes());
    let found = shape.left_out().find(|(left, _)| *left == path);
    assert_eq!(found, Some((path, reason)), "{schema}");
}

fn shown(of: &InputType) -> String {
    match of {
        InputType::String => "String".to_owned(),
        InputType::Long => "Long".to_owned(),
        InputType::Bool => "Bool".to_owned(),
        InputType::Decimal => "decimal".to_owned(),
        InputType::Set(element) => format!("Set<{}>", shown(element)),
        InputType::Record(members) => {
            let members = members.iter().map(|(name, member)| {
                format!("{name}{}: {}", if member.required { "" } else { "?" }, shown(&member.of))
            });
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
    }
}

fn object(properties: &str) -> String {
    format!(r#"{{"type":"object","properties":{{{properties}}}}}"#)
}

#[test]
fn plain_types_and_optionality_are_kept() {
    check(
        r#"{"type":"object","required":["a","d"],"properties":{"a":{"type":"string"},
            "b":{"type":"integer"},"c":{"type":"boolean"},"d":{"type":"number"},
            "e":{"type":"array","items":{"type":"integer"}},
            "f":{"type":"object","properties":{"g":{"type":"string"}},"required":["g"]}}}"#,
        "{a: String, b?: Long, c?: Bool, d: decimal, e?: Set<Long>, f?: {g: String}}",
    );
    check(r#"{"type":"object"}"#, "{}");
    check(r#"{}"#, "{}");
}

#[test]
fn null_makes_a_member_optional() {
    check(
        r#"{"type":"object","required":["a","b","c","d"],"properties":{
            "a":{"anyOf":[{"type":"string"},{"type":"null"}]},"b":{"type":["integer","null"]},
            "c":{"type":"string","nullable":true},"d":{"enum":["x",null]}}}"#,
        "{a?: String, b?: Long, c?: String, d?: String}",
    );
}

#[test]
fn references_values_and_like_alternatives_are_typed() {
    check(
        r##"{"type":"object","$defs":{"P":{"type":"string"},"a/b":{"type":"integer"}},"properties":{
            "a":{"$ref":"#/$defs/P"},"b":{"$ref":"#/$defs/a~1b"},"c":{"const":5},
            "d":{"enum":["x","y"]},"e":{"oneOf":[{"const":"x"},{"type":"string"}]},
            "f":{"allOf":[{"$ref":"#/$defs/P"}]}}}"##,
        "{a?: String, b?: Long, c?: Long, d?: String, e?: String, f?: String}",
    );
}

#[test]
fn what_has_no_single_type_is_left_out_with_a_reason() {
    check_left_out(&object(r#""a":{"type":["string","integer"]}"#), "a", MIXED);
    check_left_out(&object(r#""a":{"anyOf":[{"type":"string"},{"type":"integer"}]}"#), "a", MIXED);
    check_left_out(&object(r#""a":{"type":"array"}"#), "a", FREE_ARRAY);
    check_left_out(&object(r#""a":{"type":"object"}"#), "a", FREE_OBJECT);
    check_left_out(&object(r#""a":{}"#), "a", NO_TYPE);
    check_left_out(&object(r#""a":true"#), "a", NO_TYPE);
    check_left_out(&object(r##""a":{"$ref":"#/none"}"##), "a", BAD_REFERENCE);
    check_left_out(&object(r#""a":{"$ref":"https://example.com/x"}"#), "a", BAD_REFERENCE);
    check_left_out(&object(r#""a":{"type":"object","properties":{"b":{}}}"#), "a.b", NO_TYPE);
    check(&object(r#""a":{},"b":{"type":"string"}"#), "{b?: String}");
}

#[test]
fn recursion_ends() {
    let tree = r##"{"type":"object","properties":{"node":{"$ref":"#/$defs/N"}},"$defs":{"N":{
        "type":"object","properties":{"value":{"type":"string"},"next":{"$ref":"#/$defs/N"}}}}}"##;
    check(tree, "{node?: {value?: String}}");
    check_left_out(tree, "node.next", RECURSIVE);
    check(r##"{"$ref":"#"}"##, "{}");
}

#[test]
fn references_that_multiply_are_bounded() {
    let mut schema =
        r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{"##.to_owned();
    for level in 0..40 {
        let next = level + 1;
        let members: Vec<String> =
            (0..10).map(|n| format!(r##""m{n}":{{"$ref":"#/$defs/d{next}"}}"##)).collect();
        schema +=
            &format!(r#""d{level}":{{"type":"object","properties":{{{}}}}},"#, members.join(","));
    }
    schema += r#""d40":{"type":"string"}}}"#;
    let shape = type_of_schema(schema.as_bytes());
    assert!(count(&InputType::Record(shape.members)) <= MAX_TYPE_MEMBERS);
}

#[test]
fn depth_and_width_are_bounded() {
    let mut deep = r#"{"type":"string"}"#.to_owned();
    for _ in 0..50 {
        deep = object(&format!(r#""a":{deep}"#));
    }
    let shape = type_of_schema(deep.as_bytes());
    assert!(depth(&InputType::Record(shape.members)) <= MAX_TYPE_DEPTH + 1);
    let wide: Vec<String> = (0..5_000).map(|n| format!(r#""p{n}":{{"type":"string"}}"#)).collect();
    let shape = type_of_schema(object(&wide.join(",")).as_bytes());
    assert_eq!(shape.members.len(), MAX_TYPE_MEMBERS);
    assert_eq!(shape.left_out.len(), MAX_REMEMBERED);
}

#[test]
fn a_schema_that_is_no_json_gives_nothing() {
    check("{", "{}");
    check(r#"{"a":1,"a":2}"#, "{}");
    check("[1]", "{}");
}

fn count(of: &InputType) -> usize {
    match of {
        InputType::Set(element) => count(element),
        InputType::Record(members) => {
            members.values().map(|member| 1 + count(&member.of)).sum::<usize>()
        }
        _ => 0,
    }
}

fn depth(of: &InputType) -> usize {
    match of {
        InputType::Set(element) => 1 + depth(element),
        InputType::Record(members) => {
            1 + members.values().map(|member| depth(&member.of)).max().unwrap_or(0)
        }
        _ => 0,
    }
}

/// Generates text that resembles a schema often enough to reach every branch.
fn schema_text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just(r#"{"type":"string"}"#.to_owned()),
        Just(r#"{"type":["integer","null"]}"#.to_owned()),
        Just(r##"{"$ref":"#/properties/a"}"##.to_owned()),
        Just(r##"{"$ref":"#"}"##.to_owned()),
        Just(r#"{"enum":["x",1,null]}"#.to_owned()),
        Just(r#"{"const":1.5}"#.to_owned()),
        Just("true".to_owned()),
        Just("7".to_owned()),
        Just(r#"{"type":5}"#.to_owned()),
    ];
    leaf.prop_recursive(5, 40, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|all| {
                let names = ["a", "in", "", "ü \u{0}x"];
                let members: Vec<String> = all
                    .iter()
                    .zip(names)
                    .map(|(schema, name)| {
                        format!("{}:{schema}", serde_json::to_string(name).unwrap())
                    })
                    .collect();
                format!(
                    r#"{{"type":"object","required":["a",3],"properties":{{{}}}}}"#,
                    members.join(",")
                )
            }),
            inner.clone().prop_map(|item| format!(r#"{{"type":"array","items":{item}}}"#)),
            prop::collection::vec(inner.clone(), 0..3)
                .prop_map(|all| format!(r#"{{"anyOf":[{}]}}"#, all.join(","))),
            inner.prop_map(|only| format!(r#"{{"allOf":[{only}]}}"#)),
        ]
    })
}

proptest! {
    #[test]
    fn no_schema_panics_and_cedar_takes_every_type(schema in schema_text()) {
        let tool = crate::ToolInventory::new(
            "t", crate::Risk::Low, crate::ToolHints::default(), schema.as_bytes());
        let server = crate::ServerInventory::builder("s").tool(tool).build();
        let inventory = crate::Inventory::new([server]);
        let policies = [("p", "permit(principal, action, resource);")];
        prop_assert!(crate::Policies::compile(&policies, None, &inventory).is_ok());
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = type_of_schema(&bytes);
    }
}
