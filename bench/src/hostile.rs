//! Inputs that cost as much as the limits allow.

pub mod lists;

/// Pairs of tools before and after a change, each with a name.
pub fn pairs() -> Vec<(&'static str, String, String)> {
    let tool = |schema: String| format!(r#"[{{"name":"t","inputSchema":{schema}}}]"#);
    let list = |count: usize, item: &dyn Fn(usize) -> String| -> String {
        (0..count).map(item).collect::<Vec<_>>().join(",")
    };
    let mut pairs = Vec::new();
    let mut pair = |name, old: String, new: String| pairs.push((name, tool(old), tool(new)));
    // Similar but distinct branches: matching them could be quadratic.
    let branches = |bound: usize| {
        list(6_000, &|n| format!(r#"{{"type":"string","maxLength":{}}}"#, n + bound))
    };
    pair(
        "any_of",
        format!(r#"{{"anyOf":[{}]}}"#, branches(1)),
        format!(r#"{{"anyOf":[{}]}}"#, branches(9_000)),
    );
    pair(
        "one_of",
        format!(r#"{{"oneOf":[{}]}}"#, branches(1)),
        format!(r#"{{"oneOf":[{}]}}"#, branches(9_000)),
    );
    pair(
        "all_of",
        format!(r#"{{"allOf":[{}]}}"#, branches(1)),
        format!(r#"{{"allOf":[{}]}}"#, branches(9_000)),
    );
    // A chain of references, each to two others.
    let chain = |kind: &str| {
        let definitions = list(4_000, &|n| {
            format!(
                r##""d{n}":{{"anyOf":[{{"$ref":"#/$defs/d{}"}},{{"$ref":"#/$defs/d{}"}}],"x":"{kind}"}}"##,
                n + 1,
                n + 2
            )
        });
        format!(
            r##"{{"properties":{{"p":{{"$ref":"#/$defs/d0"}}}},"$defs":{{{definitions},"d4000":{{"type":"{kind}"}},"d4001":{{"type":"{kind}"}}}}}}"##
        )
    };
    pair("references", chain("string"), chain("integer"));
    // Every property is another path to the same definition.
    let many = |kind: &str| {
        let properties = list(12_000, &|n| format!(r##""p{n}":{{"$ref":"#/$defs/a"}}"##));
        format!(r##"{{"properties":{{{properties}}},"$defs":{{"a":{{"type":"{kind}"}}}}}}"##)
    };
    pair("one_definition", many("string"), many("integer"));
    let properties = |kind: &str| {
        format!(
            r#"{{"properties":{{{}}}}}"#,
            list(20_000, &|n| format!(r#""p{n}":{{"type":"{kind}"}}"#))
        )
    };
    pair("properties", properties("string"), properties("integer"));
    let values =
        |first: usize| format!(r#"{{"enum":[{}]}}"#, list(100_000, &|n| (n + first).to_string()));
    pair("values", values(100_000), values(200_000));
    let deep = |leaf: &str| {
        let mut schema = leaf.to_owned();
        for _ in 0..60 {
            schema = format!(r#"{{"properties":{{"p":{schema}}}}}"#);
        }
        schema
    };
    pair("deep", deep(r#"{"type":"string"}"#), deep(r#"{"type":"integer"}"#));
    let nested = |leaf: &str| {
        let mut schema = leaf.to_owned();
        for _ in 0..11 {
            schema = format!(r#"{{"anyOf":[{schema},{{"allOf":[{schema}]}}]}}"#);
        }
        schema
    };
    pair("nested_branches", nested(r#"{"type":"string"}"#), nested(r#"{"type":"integer"}"#));
    // Every property refers to a large definition that asserts little.
    let wordy = |kind: &str| {
        let properties = list(1_000, &|n| format!(r##""p{n}":{{"$ref":"#/$defs/a"}}"##));
        let examples = list(100_000, &|_| "0".to_owned());
        format!(
            r##"{{"properties":{{{properties}}},"$defs":{{"a":{{"type":{kind},"examples":[{examples}]}}}}}}"##
        )
    };
    pair("wordy_definition", wordy(r#""string""#), wordy(r#"["string","null"]"#));
    let long_name = "n".repeat(300_000);
    let long = |kind: &str| {
        let inner = list(8_000, &|n| format!(r#""p{n}":{{"type":"{kind}"}}"#));
        format!(r#"{{"properties":{{"{long_name}":{{"properties":{{{inner}}}}}}}}}"#)
    };
    pair("long_name", long("string"), long("integer"));
    // Members that MCP does not define, next to the schema.
    let members = |count: usize| {
        format!(
            r#"[{{"name":"t","inputSchema":{{}},{}}}]"#,
            list(count, &|n| format!(r#""k{n}":0"#))
        )
    };
    pairs.push(("members", members(80_000), members(79_999)));
    let annotations = |count: usize| {
        format!(
            r#"[{{"name":"t","annotations":{{{}}}}}]"#,
            list(count, &|n| format!(r#""k{n}":0"#))
        )
    };
    pairs.push(("annotations", annotations(80_000), annotations(79_999)));
    pairs
}

/// Texts whose parse tree is as large as possible relative to their bytes.
pub fn bulky() -> Vec<(&'static str, String)> {
    let tools = |member: &dyn Fn(usize) -> String| {
        let tools: Vec<String> =
            (0..15).map(|n| format!(r#"{{"name":"t{n}","_meta":{}}}"#, member(n))).collect();
        format!(r#"{{"tools":[{}]}}"#, tools.join(","))
    };
    vec![
        ("numbers", tools(&|_| format!("[{}0]", "0,".repeat(500_000)))),
        ("empty arrays", tools(&|_| format!("[{}[]]", "[],".repeat(330_000)))),
        (
            "small members",
            tools(&|_| {
                format!(
                    "{{{}\"z\":0}}",
                    (0..110_000).map(|n| format!("\"{n:x}\":0,")).collect::<String>()
                )
            }),
        ),
        ("one string", tools(&|_| format!("\"{}\"", "words and words ".repeat(62_000)))),
        ("escapes", tools(&|_| format!("\"{}\"", "\\u0041".repeat(165_000)))),
        ("like real ones", crate::likeness::tools(9_000, None)),
    ]
}
