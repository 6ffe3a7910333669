use super::*;
use crate::change::Meaning;
use crate::json::Document;

/// The kinds reported between two schemas, each with its pointer, sorted.
fn kinds(old: &str, new: &str) -> Vec<String> {
    let (old, new) = (Document::parse(old).expect(old), Document::parse(new).expect(new));
    let findings = compare(old.root(), new.root(), "");
    let mut kinds: Vec<String> =
        findings.iter().map(|finding| format!("{} {}", finding.kind, finding.path)).collect();
    kinds.sort();
    kinds
}

fn check(old: &str, new: &str, expected: &[&str]) {
    assert_eq!(kinds(old, new), expected, "\n  {old}\n  {new}");
}

fn object(properties: &str, rest: &str) -> String {
    format!(r#"{{"type":"object","properties":{{{properties}}}{rest}}}"#)
}

/// Compares two schemas of a single property `p`.
fn check_property(old: &str, new: &str, expected: &[&str]) {
    let expected: Vec<String> = expected
        .iter()
        .map(|line| match line.split_once(' ') {
            Some((kind, path)) => format!("{kind} /properties/p{path}"),
            None => format!("{line} /properties/p"),
        })
        .collect();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    check(&object(&format!("\"p\":{old}"), ""), &object(&format!("\"p\":{new}"), ""), &expected);
}

#[test]
fn parameters_come_and_go() {
    let base = object(r#""a":{"type":"string"}"#, r#","required":["a"]"#);
    check(
        &base,
        &object(r#""a":{"type":"string"},"b":{}"#, r#","required":["a"]"#),
        &["added-optional-param /properties/b"],
    );
    check(
        &base,
        &object(r#""a":{"type":"string"},"b":{}"#, r#","required":["a","b"]"#),
        &["added-required-param /properties/b"],
    );
    check(&base, &object("", ""), &["removed-param /properties/a"]);
    check(&base, &object(r#""a":{"type":"string"}"#, ""), &["required-set-reduced /properties/a"]);
    check(
        &object(r#""a":{}"#, ""),
        &object(r#""a":{}"#, r#","required":["a"]"#),
        &["required-set-expanded /properties/a"],
    );
    check(
        &object(r#""a":{}"#, ""),
        &object(r#""a":{}"#, r#","required":["z"]"#),
        &["added-required-param /required"],
    );
}

#[test]
fn types_are_sets() {
    check_property(r#"{"type":"integer"}"#, r#"{"type":"string"}"#, &["type-changed /type"]);
    check_property(r#"{"type":"integer"}"#, r#"{"type":"number"}"#, &["type-widened /type"]);
    check_property(r#"{"type":"number"}"#, r#"{"type":"integer"}"#, &["type-changed /type"]);
    check_property(
        r#"{"type":"string"}"#,
        r#"{"type":["string","null"]}"#,
        &["type-widened /type"],
    );
    check_property(
        r#"{"type":["string","null"]}"#,
        r#"{"type":"string"}"#,
        &["type-changed /type"],
    );
    check_property(r#"{"type":"string"}"#, r#"{"type":["string"]}"#, &["metadata-changed"]);
    check_property("{}", r#"{"type":"string"}"#, &["type-changed /type"]);
    check_property(r#"{"type":"string"}"#, "{}", &["type-widened"]);
    check_property(r#"{"type":"string"}"#, "true", &["type-widened"]);
    check_property(r#"{"type":"string"}"#, "false", &["constraint-narrowed"]);
    check_property("{}", "true", &["metadata-changed"]);
    check_property(
        r#"{"type":"strin"}"#,
        r#"{"type":"string"}"#,
        &["deep-schema-undiffable /type", "type-changed /type"],
    );
}

#[test]
fn values_are_sets() {
    check_property(r#"{"enum":["a","b"]}"#, r#"{"enum":["a"]}"#, &["enum-values-removed /enum"]);
    check_property(r#"{"enum":["a"]}"#, r#"{"enum":["b","a"]}"#, &["enum-values-added /enum"]);
    check_property(
        r#"{"enum":["a"]}"#,
        r#"{"enum":["b"]}"#,
        &["enum-values-added /enum", "enum-values-removed /enum"],
    );
    check_property(
        r#"{"type":"string"}"#,
        r#"{"type":"string","enum":["a"]}"#,
        &["enum-values-removed /enum"],
    );
    check_property(
        r#"{"type":"string"}"#,
        r#"{"type":"string","const":"a"}"#,
        &["enum-values-removed /const"],
    );
    check_property(
        r#"{"type":"string","enum":["a"]}"#,
        r#"{"type":"string"}"#,
        &["enum-values-added /enum"],
    );
    check_property(r#"{"const":"a"}"#, r#"{"enum":["a"]}"#, &["metadata-changed"]);
    check_property(r#"{"enum":["a"]}"#, r#"{"type":"string","enum":["a"]}"#, &["metadata-changed"]);
    check_property(r#"{"type":"boolean"}"#, r#"{"enum":[true,false]}"#, &["metadata-changed"]);
    check_property(r#"{"enum":[1]}"#, r#"{"enum":[1.0]}"#, &[]);
}

#[test]
fn bounds_narrow_and_widen() {
    let narrowed = |old: &str, new: &str, path: &str| {
        check_property(old, new, &[&format!("constraint-narrowed {path}")]);
        check_property(new, old, &[&format!("constraint-widened {path}")]);
    };
    narrowed(
        r#"{"type":"integer","maximum":1000}"#,
        r#"{"type":"integer","maximum":10}"#,
        "/maximum",
    );
    narrowed(r#"{"type":"integer"}"#, r#"{"type":"integer","minimum":0}"#, "/minimum");
    check_property(
        r#"{"minimum":0}"#,
        r#"{"exclusiveMinimum":0}"#,
        &["constraint-narrowed /exclusiveMinimum"],
    );
    check_property(
        r#"{"exclusiveMinimum":0}"#,
        r#"{"minimum":0}"#,
        &["constraint-widened /minimum"],
    );
    narrowed(r#"{"type":"string"}"#, r#"{"type":"string","minLength":1}"#, "/minLength");
    narrowed(r#"{"type":"string"}"#, r#"{"type":"string","pattern":"^a"}"#, "/pattern");
    narrowed(r#"{"type":"string"}"#, r#"{"type":"string","format":"email"}"#, "/format");
    narrowed(r#"{"type":"array"}"#, r#"{"type":"array","uniqueItems":true}"#, "/uniqueItems");
    narrowed(r#"{"type":"array"}"#, r#"{"type":"array","maxItems":3}"#, "/maxItems");
    narrowed(
        r#"{"type":"object"}"#,
        r#"{"type":"object","additionalProperties":false}"#,
        "/additionalProperties",
    );
    narrowed(
        r#"{"type":"integer","multipleOf":2}"#,
        r#"{"type":"integer","multipleOf":4}"#,
        "/multipleOf",
    );
    check_property(
        r#"{"type":"string","pattern":"a"}"#,
        r#"{"type":"string","pattern":"b"}"#,
        &["constraint-narrowed /pattern"],
    );
    check_property(
        r#"{"minimum":9007199254740992}"#,
        r#"{"minimum":9007199254740993}"#,
        &["constraint-narrowed /minimum"],
    );
}

#[test]
fn what_means_the_same_is_metadata() {
    check_property(
        r#"{"type":"string"}"#,
        r#"{"type":"string","minLength":0}"#,
        &["metadata-changed"],
    );
    check_property(
        r#"{"type":"object"}"#,
        r#"{"type":"object","additionalProperties":true}"#,
        &["metadata-changed"],
    );
    check_property(
        r#"{"type":"object"}"#,
        r#"{"type":"object","additionalProperties":{}}"#,
        &["metadata-changed"],
    );
    check_property(
        r#"{"type":"object"}"#,
        r#"{"type":"object","required":[]}"#,
        &["metadata-changed"],
    );
    check_property(
        r#"{"type":"array"}"#,
        r#"{"type":"array","uniqueItems":false,"items":true}"#,
        &["metadata-changed"],
    );
    check_property(
        r#"{"type":"integer"}"#,
        r#"{"type":"integer","minLength":5}"#,
        &["metadata-changed"],
    );
    check_property(
        r#"{"type":"string"}"#,
        r#"{"type":"string","title":"P"}"#,
        &["metadata-changed /title"],
    );
    check_property(
        r#"{"type":"string"}"#,
        r#"{"type":"string","default":null}"#,
        &["metadata-changed /default"],
    );
    check_property(
        r#"{"anyOf":[{"type":"string"},{"type":"null"}]}"#,
        r#"{"type":["string","null"]}"#,
        &["metadata-changed"],
    );
    check_property(
        r#"{"anyOf":[{"type":"string"},{"type":"integer"}]}"#,
        r#"{"type":["string","integer"]}"#,
        &["metadata-changed"],
    );
    check_property(
        r#"{"type":["string","integer"]}"#,
        r#"{"anyOf":[{"type":"string"},{"type":"integer"}]}"#,
        &["metadata-changed"],
    );
    check_property(
        r#"{"anyOf":[{"type":"string"},{"type":"integer"}]}"#,
        r#"{"anyOf":[{"type":"integer"},{"type":"string"}]}"#,
        &["metadata-changed"],
    );
    check_property(
        r#"{"allOf":[{"type":"string"}]}"#,
        r#"{"type":"string"}"#,
        &["metadata-changed"],
    );
    check(
        r#"{"type":"object"}"#,
        r#"{"type":"object","$schema":"http://json-schema.org/draft-07/schema#"}"#,
        &["metadata-changed /$schema"],
    );
}

#[test]
fn text_is_text_wherever_it_stands() {
    check_property(
        r#"{"type":"string","description":"a"}"#,
        r#"{"type":"string","description":"b"}"#,
        &["description-only /description"],
    );
    check_property(
        r#"{"type":"string"}"#,
        r#"{"type":"string","title":"Other"}"#,
        &["description-only /title"],
    );
    check_property(
        r#"{"type":"string"}"#,
        r#"{"type":"string","examples":["x"]}"#,
        &["description-only /examples"],
    );
    check_property(
        r#"{"type":"string","$comment":"x"}"#,
        r#"{"type":"string"}"#,
        &["description-only /$comment"],
    );
    check_property(
        r#"{"description":"a","anyOf":[{"type":"string"},{"type":"null"}]}"#,
        r#"{"description":"a","type":["string","null"]}"#,
        &["metadata-changed"],
    );
    check_property(
        r#"{"anyOf":[{"type":"string","description":"a"},{"type":"null"}]}"#,
        r#"{"type":["string","null"],"description":"b"}"#,
        &["description-only /description"],
    );
    let with = |text: &str| {
        format!(
            r##"{{"properties":{{"p":{{"$ref":"#/$defs/A"}}}},"$defs":{{"A":{{"type":"string","description":"{text}"}}}}}}"##
        )
    };
    check(&with("a"), &with("b"), &["description-only /$defs/A/description"]);
    let unused =
        |text: &str| format!(r##"{{"type":"object","$defs":{{"A":{{"description":"{text}"}}}}}}"##);
    check(&unused("a"), &unused("b"), &["description-only /$defs/A/description"]);
}

#[test]
fn defaults_of_old_parameters_break() {
    check_property(
        r#"{"type":"string"}"#,
        r#"{"type":"string","default":"x"}"#,
        &["default-changed /default"],
    );
    check_property(r#"{"default":1}"#, r#"{"default":2}"#, &["default-changed /default"]);
    check_property(r#"{"default":1}"#, "{}", &["default-changed /default"]);
    check_property(r#"{"default":1}"#, r#"{"default":1.0}"#, &[]);
    check_property(r#"{"default":null}"#, r#"{"default":0}"#, &["default-changed /default"]);
}

#[test]
fn references_are_compared_by_what_they_mean() {
    let with = |name: &str, container: &str, body: &str| {
        format!(
            r##"{{"properties":{{"p":{{"$ref":"#/{container}/{name}"}},"q":{{"$ref":"#/{container}/{name}"}}}},"{container}":{{"{name}":{body}}}}}"##
        )
    };
    let base = with("A", "$defs", r#"{"type":"string"}"#);
    check(&base, &with("A", "$defs", r#"{"type":"integer"}"#), &["type-changed /$defs/A/type"]);
    check(
        &base,
        &with("B", "$defs", r#"{"type":"string"}"#),
        &[
            "metadata-changed /$defs",
            "metadata-changed /properties/p",
            "metadata-changed /properties/q",
        ],
    );
    check(
        &base,
        &with("A", "definitions", r#"{"type":"string"}"#),
        &[
            "metadata-changed /definitions",
            "metadata-changed /properties/p",
            "metadata-changed /properties/q",
        ],
    );
    check(
        &base,
        r#"{"properties":{"p":{"type":"string"},"q":{"type":"string"}}}"#,
        &[
            "metadata-changed /$defs",
            "metadata-changed /properties/p",
            "metadata-changed /properties/q",
        ],
    );
    let tree = |extra: &str| {
        format!(
            r##"{{"properties":{{"t":{{"$ref":"#/$defs/T"}}}},"$defs":{{"T":{{"type":"object","properties":{{"v":{{"type":"string"}}{extra},"kids":{{"type":"array","items":{{"$ref":"#/$defs/T"}}}}}}}}}}}}"##
        )
    };
    check(&tree(""), &tree(r#","w":{}"#), &["added-optional-param /$defs/T/properties/w"]);
    check(
        r##"{"properties":{"p":{"$ref":"https://example.com/a"}}}"##,
        r##"{"properties":{"p":{"$ref":"https://example.com/b"}}}"##,
        &["deep-schema-undiffable /properties/p/$ref"],
    );
    check(
        r##"{"properties":{"p":{"$ref":"#/$defs/A"}},"$defs":{"A":{"not":{"$ref":"#/$defs/B"}},"B":{"type":"string"}}}"##,
        r##"{"properties":{"p":{"$ref":"#/$defs/A"}},"$defs":{"A":{"not":{"$ref":"#/$defs/B"}},"B":{"type":["string","null"]}}}"##,
        &["deep-schema-undiffable /$defs/A/not"],
    );
}

#[test]
fn the_five_pairs_that_an_earlier_draft_got_wrong() {
    for (old, new) in [
        (
            r#"{"properties":{"a":{},"b":{}},"anyOf":[{"required":["a"]},{"required":["b"]}]}"#,
            r#"{"properties":{"a":{},"b":{}},"required":["a","b"]}"#,
        ),
        (
            r#"{"anyOf":[{"type":"string","enum":["a"]},{"type":"null"}]}"#,
            r#"{"type":["string","null"],"enum":["a"]}"#,
        ),
        (
            r#"{"properties":{"a":{},"b":{}},"additionalProperties":false}"#,
            r#"{"allOf":[{"properties":{"a":{}},"additionalProperties":false},{"properties":{"b":{}}}]}"#,
        ),
        (
            r#"{"properties":{"a":{}},"additionalProperties":{"type":"string"}}"#,
            r#"{"properties":{"a":{},"bcc":{"type":"array"}},"additionalProperties":{"type":"string"}}"#,
        ),
        (
            r#"{"anyOf":[{"type":"number"},{"type":"integer"}]}"#,
            r#"{"oneOf":[{"type":"number"},{"type":"integer"}]}"#,
        ),
    ] {
        let (old_document, new_document) =
            (Document::parse(old).unwrap(), Document::parse(new).unwrap());
        let findings = compare(old_document.root(), new_document.root(), "");
        assert!(
            findings
                .iter()
                .any(|finding| matches!(finding.class, crate::change::ChangeClass::Breaking)),
            "{old}\n{new}\n{findings:?}"
        );
    }
}

#[test]
fn required_over_combinators() {
    check(
        r#"{"properties":{"a":{},"b":{}}}"#,
        r#"{"properties":{"a":{},"b":{}},"anyOf":[{"required":["a"]},{"required":["b"]}]}"#,
        &["required-set-expanded /properties/a", "required-set-expanded /properties/b"],
    );
    check(
        r#"{"properties":{"a":{},"b":{}},"anyOf":[{"required":["a"]},{"required":["a","b"]}]}"#,
        r#"{"properties":{"a":{},"b":{}},"required":["a"]}"#,
        &["metadata-changed "],
    );
    check(
        r#"{"properties":{"a":{"description":"x"},"b":{}},"anyOf":[{"required":["a"]},{"required":["b"]}]}"#,
        r#"{"properties":{"a":{"description":"y"},"b":{}},"anyOf":[{"required":["a"]},{"required":["b"]}]}"#,
        &["description-only /properties/a/description"],
    );
    check(
        r#"{"properties":{"a":{}}}"#,
        r#"{"properties":{"a":{}},"allOf":[{"required":["a"]}]}"#,
        &["required-set-expanded /properties/a"],
    );
}

#[test]
fn branches_are_matched() {
    let one_of = |branches: &str| format!(r#"{{"oneOf":[{branches}]}}"#);
    let string = r#"{"type":"string"}"#;
    let integer = r#"{"type":"integer"}"#;
    let any_of = |branches: &[&str]| format!(r#"{{"anyOf":[{}]}}"#, branches.join(","));
    let array = r#"{"type":"array"}"#;
    check_property(
        &any_of(&[string, integer, array]),
        &any_of(&[string, array]),
        &["type-changed /anyOf/1"],
    );
    check_property(
        &any_of(&[string, array]),
        &any_of(&[string, integer, array]),
        &["type-widened /anyOf/1"],
    );
    check_property(
        &one_of(&[string, array].join(",")),
        &one_of(&[string, integer, array].join(",")),
        &["type-widened /oneOf/1"],
    );
    check_property(
        &one_of(r#"{"type":"number"},{"type":"string"}"#),
        &one_of(r#"{"type":"number"},{"type":"string"},{"type":"integer","minimum":0}"#),
        &["constraint-narrowed /oneOf"],
    );
    check_property(
        &any_of(&[r#"{"type":"string","maxLength":5}"#, integer, array]),
        &any_of(&[r#"{"type":"string","maxLength":3}"#, integer, array]),
        &["constraint-narrowed /anyOf/0/maxLength"],
    );
    let shapes = |first: &str| {
        format!(
            r#"{{"oneOf":[{{"type":"object","properties":{{"kind":{{"const":"a"}},"x":{first}}},"required":["kind"]}},{{"type":"object","properties":{{"kind":{{"const":"b"}}}},"required":["kind"]}}]}}"#
        )
    };
    check_property(
        &shapes(string),
        &shapes(r#"{"type":["string","null"]}"#),
        &["type-widened /oneOf/0/properties/x/type"],
    );
}

#[test]
fn maps_are_open() {
    check(
        r#"{"properties":{"a":{}},"additionalProperties":{"type":"string"}}"#,
        r#"{"properties":{"a":{},"b":{"type":"string"}},"additionalProperties":{"type":"string"}}"#,
        &["added-optional-param /properties/b"],
    );
    check(
        r#"{"properties":{"a":{}},"additionalProperties":false}"#,
        r#"{"properties":{"a":{},"b":{"type":"string"}},"additionalProperties":false}"#,
        &["added-optional-param /properties/b"],
    );
    check(
        r#"{"properties":{"a":{}},"additionalProperties":true}"#,
        r#"{"properties":{"a":{},"b":{"type":"string"}},"additionalProperties":true}"#,
        &["added-optional-param /properties/b", "constraint-narrowed /properties/b"],
    );
    check(
        r#"{"properties":{"a":{}},"patternProperties":{"^b":{"type":"string"}}}"#,
        r#"{"properties":{"a":{},"b":{"type":"string"}},"patternProperties":{"^b":{"type":"string"}}}"#,
        &["added-optional-param /properties/b", "deep-schema-undiffable /properties/b"],
    );
}

#[test]
fn what_has_no_rule_is_undiffable() {
    for keyword in
        ["not", "if", "contains", "unevaluatedItems", "x-vendor", "contentEncoding", "deprecated"]
    {
        let new = format!(r#"{{"type":"string","{keyword}":{{"type":"null"}}}}"#);
        let found = kinds(
            r#"{"properties":{"p":{"type":"string"}}}"#,
            &format!(r#"{{"properties":{{"p":{new}}}}}"#),
        );
        assert_eq!(found, [format!("deep-schema-undiffable /properties/p/{keyword}")]);
    }
    check_property(
        r#"{"x-mcp-header":"A"}"#,
        r#"{"x-mcp-header":"B"}"#,
        &["header-binding-changed /x-mcp-header"],
    );
    check(
        &object("", ""),
        &object(r#""p":{"x-mcp-header":"B"}"#, ""),
        &["added-optional-param /properties/p", "header-binding-changed /properties/p"],
    );
    let nested = |id: &str| format!(r#"{{"properties":{{"p":{{"$id":"{id}","type":"string"}}}}}}"#);
    check(&nested("a"), &nested("b"), &["deep-schema-undiffable "]);
}

#[test]
fn a_parameter_that_is_deprecated_says_so() {
    let deprecated = r#"{"type":"string","deprecated":true}"#;
    check_property(r#"{"type":"string"}"#, deprecated, &["description-only /deprecated"]);
    check_property(deprecated, r#"{"type":"string"}"#, &["description-only /deprecated"]);
    check_property(
        r#"{"type":"string"}"#,
        r#"{"type":"string","deprecated":false}"#,
        &["metadata-changed"],
    );
    // Unreferenced definitions are read too.
    let unused = |text: &str| object("", &format!(r#","$defs":{{"D":{{"type":"string"{text}}}}}"#));
    check(&unused(""), &unused(r#","deprecated":true"#), &["description-only /$defs/D/deprecated"]);
}

#[test]
fn draft_2019_09_is_read_as_it_is_written() {
    let with = |rest: &str| {
        format!(r#"{{"$schema":"https://json-schema.org/draft/2019-09/schema",{rest}}}"#)
    };
    let items = |rest: &str| with(&format!(r#""items":[{{"type":"string"}}]{rest}"#));
    check(
        &items(""),
        &items(r#","additionalItems":false"#),
        &["constraint-narrowed /additionalItems"],
    );
    // `prefixItems` is not a keyword of this draft, so it asserts nothing.
    check(
        &with(r#""type":"array""#),
        &with(r#""type":"array","prefixItems":[{"type":"string"}]"#),
        &["metadata-changed "],
    );
    let dependent = |names: &str| with(&format!(r#""dependentRequired":{{"a":[{names}]}}"#));
    check(&dependent(""), &dependent(r#""b""#), &["constraint-narrowed /dependentRequired"]);
    let tree = |rest: &str| {
        with(&format!(
            r##""properties":{{"a":{{"type":"string"{rest}}},"sub":{{"$recursiveRef":"#"}}}}"##
        ))
    };
    check(&tree(""), &tree(r#","maxLength":3"#), &["constraint-narrowed /properties/a/maxLength"]);
    let anchored = |schema: &str| schema.replacen('{', r#"{"$recursiveAnchor":true,"#, 1);
    check(
        &anchored(&tree("")),
        &anchored(&tree(r#","maxLength":3"#)),
        &["deep-schema-undiffable "],
    );
    let other = tree("").replace("2019-09", "2020-12");
    check(&tree(""), &other, &["deep-schema-undiffable "]);
}

#[test]
fn what_is_not_evaluated_is_what_is_not_declared_where_no_other_part_declares_members() {
    let closed = |properties: &str, rest: &str| {
        format!(
            r#"{{"$schema":"https://json-schema.org/draft/2020-12/schema","properties":{{{properties}}},"unevaluatedProperties":false{rest}}}"#
        )
    };
    let (one, two) = (r#""a":{}"#, r#""a":{},"b":{}"#);
    check(&closed(one, ""), &closed(two, ""), &["added-optional-param /properties/b"]);
    check(&closed(two, ""), &closed(one, ""), &["removed-param /properties/b"]);
    let part = r#","allOf":[{"properties":{"c":{}}}]"#;
    assert!(
        kinds(&closed(one, part), &closed(two, part))
            .contains(&"deep-schema-undiffable /unevaluatedProperties".to_owned())
    );
}

#[test]
fn depth_is_walked_to_the_limit_and_no_further() {
    let nested = |levels: usize, leaf: &str| {
        let open = r#"{"type":"object","properties":{"p":"#.repeat(levels);
        format!("{open}{leaf}{}", "}}".repeat(levels))
    };
    let at = |levels| {
        kinds(&nested(levels, r#"{"type":"string"}"#), &nested(levels, r#"{"type":"integer"}"#))
    };
    assert!(at(MAX_LEVELS)[0].starts_with("type-changed"));
    assert!(at(MAX_LEVELS + 1)[0].starts_with("deep-schema-undiffable"));
}

#[test]
fn findings_are_listed_to_the_limit_and_what_is_beyond_is_undiffable() {
    let many = |count: usize, kind: &str| {
        let properties: Vec<String> =
            (0..count).map(|n| format!(r#""p{n}":{{"type":"{kind}"}}"#)).collect();
        object(&properties.join(","), "")
    };
    assert_eq!(
        kinds(&many(MAX_FINDINGS, "string"), &many(MAX_FINDINGS, "integer")).len(),
        MAX_FINDINGS
    );
    let beyond = kinds(&many(MAX_FINDINGS + 1, "string"), &many(MAX_FINDINGS + 1, "integer"));
    assert_eq!(beyond.len(), MAX_FINDINGS + 1);
    assert!(beyond.iter().any(|finding| finding == "deep-schema-undiffable "));
}

#[test]
fn a_narrowing_in_either_dialect_counts_where_none_is_named() {
    // Draft-07 ignores keywords next to `$ref`; 2020-12 does not.
    let with = |rest: &str| {
        format!(
            r##"{{"properties":{{"p":{{"$ref":"#/$defs/A"{rest}}}}},"$defs":{{"A":{{"type":"string"}}}}}}"##
        )
    };
    check(&with(""), &with(r#","maxLength":3"#), &["constraint-narrowed /properties/p/maxLength"]);
    let items = |rest: &str| {
        format!(
            r#"{{"properties":{{"p":{{"type":"array","items":[{{"type":"string"}}]{rest}}}}}}}"#
        )
    };
    let found = kinds(&items(""), &items(r#","additionalItems":false"#));
    assert!(
        found.contains(&"constraint-narrowed /properties/p/additionalItems".to_owned()),
        "{found:?}"
    );
}

/// Whether the kind is reported between two schemas of a single property `p`.
fn finds(kind: &str, old: &str, new: &str) {
    let found = kinds(&object(&format!("\"p\":{old}"), ""), &object(&format!("\"p\":{new}"), ""));
    assert!(found.iter().any(|line| line.starts_with(kind)), "{kind}: {found:?}\n  {old}\n  {new}");
}

#[test]
fn a_binding_or_a_default_is_found_in_whatever_branch_it_hides() {
    let string = r#"{"type":"string"}"#;
    finds("header-binding-changed", string, r#"{"type":"string","anyOf":[{"x-mcp-header":"A"}]}"#);
    finds("default-changed", string, r#"{"type":"string","anyOf":[{"default":"x"}]}"#);
    let two = r#"{"anyOf":[{"type":"string"},{"type":"integer"}]}"#;
    let three =
        r#"{"anyOf":[{"type":"string"},{"type":"integer"},{"type":"boolean","x-mcp-header":"X"}]}"#;
    finds("header-binding-changed", two, three);
    finds("header-binding-changed", three, two);
    finds("default-changed", r#"{"type":"array"}"#, r#"{"type":"array","items":{"default":1}}"#);
    check(
        &object("", ""),
        &object(r#""b":{"x\u002dmcp-header":"A"}"#, ""),
        &["added-optional-param /properties/b", "header-binding-changed /properties/b"],
    );
}

#[test]
fn text_is_found_where_no_instance_leads() {
    for (old, new) in [
        (
            r#"{"type":"object","additionalProperties":{"description":"A"}}"#,
            r#"{"type":"object","additionalProperties":{"description":"B"}}"#,
        ),
        (r#"{"type":"array"}"#, r#"{"type":"array","items":{"description":"B"}}"#),
        (r#"{"type":"object"}"#, r#"{"type":"object","propertyNames":{"description":"B"}}"#),
        (r#"{"type":"string"}"#, r#"{"type":"string","anyOf":[{"description":"B"}]}"#),
        (
            r#"{"type":"string","properties":{"x":{"description":"A"}}}"#,
            r#"{"type":"string","properties":{"x":{"description":"B"}}}"#,
        ),
        (
            r#"{"type":"string","$defs":{"x":{"description":"A"}}}"#,
            r#"{"type":"string","$defs":{"x":{"description":"B"}}}"#,
        ),
        (
            r#"{"type":"string","description":"A","allOf":[{"description":"B"}]}"#,
            r#"{"type":"string","description":"B","allOf":[{"description":"A"}]}"#,
        ),
        (r#"{"type":"string"}"#, r#"{"type":"string","title":"P","allOf":[{"title":"Q"}]}"#),
        (r#"{"type":"string"}"#, r#"{"type":"string","title":"p \u2620 q"}"#),
    ] {
        finds("description-only", old, new);
    }
    let found =
        kinds(r#"{"type":"object"}"#, r#"{"type":"object","$defs":{"x":{"description":"B"}}}"#);
    assert!(found.iter().any(|line| line.starts_with("description-only")), "{found:?}");
    // What a new parameter brings with it is not reported separately.
    check(
        r#"{"properties":{}}"#,
        r##"{"properties":{"b":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":"string","description":"B"}}}"##,
        &["added-optional-param /properties/b", "metadata-changed /$defs"],
    );
    // A comparison made for a new member must not suppress the same comparison elsewhere.
    let with = |text: &str, properties: &str| {
        format!(
            r##"{{"type":"object","additionalProperties":{{"$ref":"#/$defs/X"}}{properties},"$defs":{{"X":{{"type":"object","properties":{{"a":{{"type":"string","description":"{text}"}}}}}}}}}}"##
        )
    };
    let found = kinds(&with("A", ""), &with("B", r##","properties":{"p":{"$ref":"#/$defs/X"}}"##));
    assert!(found.iter().any(|line| line.starts_with("description-only")), "{found:?}");
}

#[test]
fn odd_keywords_are_never_passed_over() {
    finds("deep-schema-undiffable", r#"{"type":"string"}"#, r#"{"type":"string","anyOf":[]}"#);
    finds("deep-schema-undiffable", r#"{"type":"string"}"#, r#"{"type":"string","oneOf":[]}"#);
    finds(
        "deep-schema-undiffable",
        r#"{"type":"number","multipleOf":4}"#,
        r#"{"type":"number","multipleOf":"2"}"#,
    );
    finds(
        "deep-schema-undiffable",
        r#"{"type":"number","multipleOf":"4"}"#,
        r#"{"type":"number","multipleOf":2}"#,
    );
    finds("deep-schema-undiffable", r#"{"type":"string"}"#, r#"{"type":"string","$anchor":"x"}"#);
    check(
        r#"{"properties":{"a":{}},"required":["a"]}"#,
        r#"{"properties":{},"required":["a"]}"#,
        &["removed-param /properties/a"],
    );
    let items = |kind: &str| {
        format!(
            r#"{{"$schema":"https://json-schema.org/draft/2020-12/schema","properties":{{"p":{{"type":"array","items":[{{}}],"prefixItems":[{{"type":"{kind}"}}]}}}}}}"#
        )
    };
    assert!(kinds(&items("string"), &items("integer"))[0].starts_with("deep-schema-undiffable"));
}

#[test]
fn branches_that_lead_back_to_themselves_end() {
    let filler = vec!["0"; 60_000].join(",");
    let definitions = format!(r#""$defs":{{"p":{{"examples":[{filler}]}}}}"#);
    let old = format!(r##"{{"anyOf":[{{"$ref":"#"}}],{definitions}}}"##);
    let new = format!(r#"{{"title":"x",{definitions}}}"#);
    assert!(!kinds(&old, &new).is_empty());
    let old = format!(r##"{{"type":"object",{definitions}}}"##);
    let new = format!(
        r##"{{"allOf":[{{"additionalProperties":{{}},"allOf":[{{"$ref":"#"}}]}}],{definitions}}}"##
    );
    assert!(!kinds(&old, &new).is_empty());
}

#[test]
fn much_new_text_cannot_hide_what_stands_behind_it() {
    let with = |count: usize, text: &str| {
        let inner: Vec<String> =
            (0..count).map(|n| format!(r#""q{n}":{{"description":"{n}"}}"#)).collect();
        let new = format!(r#""b":{{"type":"object","properties":{{{}}}}}"#, inner.join(","));
        object(&format!(r#"{new},"z":{{"type":"array","items":{{"description":"{text}"}}}}"#), "")
    };
    let old = object(r#""z":{"type":"array","items":{"description":"A"}}"#, "");
    assert_eq!(kinds(&old, &with(900, "A")), ["added-optional-param /properties/b"]);
    let found = kinds(&old, &with(MAX_FINDINGS + 1, "B"));
    assert!(found.iter().any(|line| line.starts_with("deep-schema-undiffable")), "{found:?}");
}

#[test]
fn one_change_among_many_properties_and_branches_is_within_the_work() {
    let many = |kind: &str| {
        let properties: Vec<String> =
            (0..1_000).map(|n| format!(r#""p{n}":{{"type":"string"}}"#)).collect();
        let branches: Vec<String> = (0..1_000)
            .map(|n| format!(r#"{{"properties":{{"q{n}":{{"type":"string"}}}}}}"#))
            .collect();
        let (properties, branches) = (properties.join(","), branches.join(","));
        format!(r#"{{"properties":{{"z":{{"type":{kind}}},{properties}}},"anyOf":[{branches}]}}"#)
    };
    check(
        &many(r#""string""#),
        &many(r#"["string","null"]"#),
        &["type-widened /properties/z/type"],
    );
}

#[test]
fn formats_are_of_strings_and_numbers() {
    check_property(
        r#"{"type":"integer","format":"int64"}"#,
        r#"{"type":"integer","format":"int32"}"#,
        &["constraint-narrowed /format"],
    );
    check_property(
        r#"{"type":"boolean"}"#,
        r#"{"type":"boolean","format":"date"}"#,
        &["metadata-changed"],
    );
}

#[test]
fn text_that_is_gone_is_told_beside_a_parameter_whose_name_begins_alike() {
    let with = |a: &str, ab: &str| {
        format!(r#"{{"$defs":{{"D":{{"properties":{{"a":{{{a}}},"ab":{{{ab}}}}}}}}}}}"#)
    };
    let (old, new) =
        (with(r#""description":"x""#, r#""description":"y""#), with("", r#""description":"z""#));
    let found = kinds(&old, &new);
    for path in ["a", "ab"] {
        let expected = format!("description-only /$defs/D/properties/{path}/description");
        assert!(found.contains(&expected), "{expected}: {found:?}");
    }
}

#[test]
fn bounds_of_integers_are_compared_by_the_integers_they_admit() {
    for (old, new) in [
        (r#""exclusiveMaximum":1000000"#, r#""maximum":999999"#),
        (r#""exclusiveMinimum":0"#, r#""minimum":1"#),
        (r#""exclusiveMinimum":-0.5"#, r#""minimum":0"#),
        (r#""maximum":9.5"#, r#""exclusiveMaximum":10"#),
        (r#""maximum":9,"exclusiveMaximum":20"#, r#""exclusiveMaximum":10"#),
    ] {
        for of in [
            r#""type":"integer""#,
            r#""type":["null","integer"]"#,
            r#""enum":[1,5,"x"]"#,
            r#""type":"number","multipleOf":1"#,
        ] {
            let schema = |bound: &str| format!("{{{of},{bound}}}");
            let object = |bound: &str| object(&format!("\"p\":{}", schema(bound)), "");
            for (old, new) in [(old, new), (new, old)] {
                let found = kinds(&object(old), &object(new));
                let is_metadata =
                    |line: &String| line.starts_with("metadata-changed /properties/p");
                assert!(!found.is_empty() && found.iter().all(is_metadata), "{of}: {found:?}");
            }
        }
        // For non-integer numbers the two bounds differ, in one direction or the other.
        for of in [r#""type":"number""#, r#""type":["integer","number"]"#, r#""multipleOf":0.5"#] {
            let schema = |bound: &str| format!(r#"{{"properties":{{"p":{{{of},{bound}}}}}}}"#);
            let both = [kinds(&schema(old), &schema(new)), kinds(&schema(new), &schema(old))];
            assert!(both.concat().iter().any(|line| line.starts_with("constraint-narrowed")));
        }
    }
    check_property(
        r#"{"type":"integer","maximum":10}"#,
        r#"{"type":"integer","exclusiveMaximum":10}"#,
        &["constraint-narrowed /exclusiveMaximum"],
    );
    // Bounds that are too large to convert are compared as written.
    check_property(
        r#"{"type":"integer","maximum":1e60}"#,
        r#"{"type":"integer","exclusiveMaximum":1e60}"#,
        &["constraint-narrowed /exclusiveMaximum"],
    );
    for bound in [r#""exclusiveMaximum":true"#, r#""exclusiveMinimum":false"#] {
        let new = format!(r#"{{"type":"integer","maximum":10,"minimum":1,{bound}}}"#);
        finds("deep-schema-undiffable", r#"{"type":"integer","maximum":10,"minimum":1}"#, &new);
    }
}

#[test]
fn the_title_of_a_schema_is_metadata_only_where_it_was_and_is_an_identifier() {
    let titled = |title: &str| format!(r#"{{"title":{title},"type":"object"}}"#);
    let long = |length: usize| format!("\"{}\"", "x".repeat(length));
    let generated = titled(r#""tArguments""#);
    for title in [r#""_T1""#, r#""\u0054Input""#, &long(64)] {
        check(&generated, &titled(title), &["metadata-changed /title"]);
    }
    for title in [r#""T Input""#, r#""1T""#, r#""""#, r#""T-Input""#, r#""Tï""#, "1", &long(65)] {
        check(&generated, &titled(title), &["description-only /title"]);
        check(&titled(title), &generated, &["description-only /title"]);
    }
    check(r#"{"type":"object"}"#, &generated, &["description-only /title"]);
    check(&generated, r#"{"type":"object"}"#, &["description-only /title"]);
    // The title of a definition is not the schema's own title.
    let referring =
        |title: &str| format!(r##"{{"$ref":"#/$defs/M","$defs":{{"M":{{"title":"{title}"}}}}}}"##);
    check(&referring("A"), &referring("B"), &["description-only /$defs/M/title"]);
}

fn results(old: &str, new: &str) -> Results {
    let (old, new) = (Document::parse(old).expect(old), Document::parse(new).expect(new));
    compare_results(old.root(), new.root(), "")
}

#[test]
fn results_are_within_where_the_old_schema_allows_all_that_the_new_one_does() {
    let open = r#"{"properties":{"a":{"type":"string"}}}"#;
    for (old, new, is_within) in [
        (open, r#"{"properties":{"a":{"type":"string"},"b":{}}}"#, true),
        (open, r#"{"properties":{"a":{"type":"string"}},"required":["a"]}"#, true),
        (open, r#"{"properties":{"a":{"enum":["x"]}}}"#, true),
        (open, r#"{"properties":{}}"#, false),
        (open, r#"{"properties":{"a":{}}}"#, false),
        (open, r#"{"properties":{"a":{"type":["string","null"]}}}"#, false),
        ("{}", open, true),
        (open, "{}", false),
        (r#"{"items":{"properties":{"a":{"type":"string"}}}}"#, "{}", false),
        (r#"{"type":"array","items":{"properties":{"a":{}}}}"#, r#"{"type":"array"}"#, false),
        (
            r#"{"properties":{},"additionalProperties":false}"#,
            r#"{"properties":{"b":{}},"additionalProperties":false}"#,
            false,
        ),
        (
            r#"{"additionalProperties":{"type":"string"}}"#,
            r#"{"properties":{"b":{"type":"string"}},"additionalProperties":{"type":"string"}}"#,
            true,
        ),
        (
            r#"{"patternProperties":{"^b":{"type":"string"}}}"#,
            r#"{"properties":{"b":{}},"patternProperties":{"^b":{"type":"string"}}}"#,
            false,
        ),
        (r#"{"default":1,"type":"integer"}"#, r#"{"default":2,"type":"integer"}"#, false),
    ] {
        let expected = if is_within { Meaning::ResultsWithin } else { Meaning::ResultsOutside };
        assert_eq!(results(old, new).change, Some(expected), "\n  {old}\n  {new}");
    }
    for new in [r#"{"properties":{"a":{"type":["string"]}}}"#, r#"{"title":"T"}"#] {
        let old = if new.contains("title") { r#"{"title":"S"}"# } else { open };
        let compared = results(old, new);
        assert_eq!(compared.change, None);
        assert_eq!(compared.said.len(), 1);
    }
}

#[test]
fn results_that_cannot_be_compared_with_the_work_that_is_left_are_outside() {
    let old = Document::parse(r#"{"type":"object","properties":{"a":{"type":"string"}}}"#).unwrap();
    let new = Document::parse(r#"{"type":"object","properties":{"a":{"const":"x"}}}"#).unwrap();
    let compared = |units| {
        let mut budget = crate::diff::Budget::of(units);
        compare_results_within(old.root(), new.root(), "", &mut budget).change
    };
    assert_eq!(compared(100_000), Some(Meaning::ResultsWithin));
    assert_eq!(compared(10), Some(Meaning::ResultsOutside));
}
