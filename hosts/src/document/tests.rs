use super::*;

fn nested(syntax: Syntax, depth: usize) -> String {
    let (open, close) = ("[".repeat(depth), "]".repeat(depth));
    match syntax {
        Syntax::Json | Syntax::Yaml => format!("{open}{close}"),
        Syntax::Toml => format!("a = {open}{close}"),
    }
}

#[test]
fn nesting_is_followed_to_the_limit_and_no_further() {
    for syntax in [Syntax::Json, Syntax::Yaml, Syntax::Toml] {
        // The document of a TOML file counts as one level.
        let extra = usize::from(syntax != Syntax::Toml);
        assert!(parse(syntax, &nested(syntax, MAX_DEPTH + extra)).is_ok(), "{syntax:?}");
        assert!(parse(syntax, &nested(syntax, MAX_DEPTH + extra + 1)).is_err(), "{syntax:?}");
        assert!(parse(syntax, &nested(syntax, 100_000)).is_err(), "{syntax:?}");
    }
}

/// Checks that every text of the tree is at the position that the tree gives.
#[track_caller]
fn check_spans(syntax: Syntax, text: &str, expected: &[&str]) {
    fn walk<'t>(node: &Node, text: &'t str, found: &mut Vec<&'t str>) {
        match &node.value {
            Value::Text(_) | Value::Other(_) => found.push(&text[node.span.clone()]),
            Value::List(list) => list.items.iter().for_each(|item| walk(item, text, found)),
            Value::Map(map) => map.members.iter().for_each(|member| {
                found.push(&text[member.key_span.clone()]);
                walk(&member.node, text, found);
            }),
        }
    }
    let mut found = Vec::new();
    walk(&parse(syntax, text).unwrap().unwrap(), text, &mut found);
    assert_eq!(found, expected, "{text}");
}

#[test]
fn parts_of_json_are_where_the_tree_says() {
    check_spans(
        Syntax::Json,
        "{ /*é*/ \"ä\" : [1.50, \"\\u00e9\\\"\", true,], // x\n\t\"b\":null }",
        &["\"ä\"", "1.50", "\"\\u00e9\\\"\"", "true", "\"b\"", "null"],
    );
}

#[test]
fn parts_of_toml_are_where_the_tree_says() {
    check_spans(
        Syntax::Toml,
        "\"é\" = 'x' # c\r\n[\"a b\" . c]\r\nd.e = [ 1, \"\"\"t\"\"\" ]\r\nf = { g = 2026-01-01 }\r\n",
        &["\"é\"", "'x'", "\"a b\"", "c", "d", "e", "1", "\"\"\"t\"\"\"", "f", "g", "2026-01-01"],
    );
}

#[test]
fn parts_of_yaml_are_where_the_tree_says() {
    check_spans(
        Syntax::Yaml,
        "é: plain words # no\r\n'k''q':   'it''s' # c\r\nlist:\r\n- a\r\n-   \"b \\\" c\" #d\r\nflow: {x: [y, 'z']} # e\r\nend: ~",
        &[
            "é",
            "plain words",
            "'k''q'",
            "'it''s'",
            "list",
            "a",
            "\"b \\\" c\"",
            "flow",
            "x",
            "y",
            "'z'",
            "end",
            "~",
        ],
    );
}

#[test]
fn what_only_some_readers_accept_is_refused() {
    for text in [
        "{a: 1}",
        "{'a': 1}",
        "{\"a\": 0x1}",
        "{\"a\": +1}",
        "{\"a\" 1}",
        "{\"a\": 1 \"b\": 2}",
        "{\"a\": NaN}",
    ] {
        assert!(parse(Syntax::Json, text).is_err(), "{text}");
    }
    assert!(parse(Syntax::Json, "{\"a\": 1, /* c */ }").is_ok());
}

#[test]
fn numbers_and_truths_of_yaml_are_no_texts() {
    for word in ["1", "1.5", "-3", "0x1f", "1e3", "true", "No", "null", "~", "12:30"] {
        let node = parse(Syntax::Yaml, word).unwrap().unwrap();
        assert!(node.text().is_none(), "{word}");
    }
    for word in ["npx", "-y", "1.2.3-beta", "a1", "./x", "..", "mcp-server", "'1'", "\"true\""] {
        let node = parse(Syntax::Yaml, word).unwrap().unwrap();
        assert!(node.text().is_some(), "{word}");
    }
}

#[test]
fn an_error_says_where() {
    let error = parse(Syntax::Json, "{\n  \"a\": ]\n}").unwrap_err();
    assert!(error.to_string().starts_with("line 2, column 8:"), "{error}");
    let error = parse(Syntax::Toml, "a = 1\nb = \n").unwrap_err();
    assert!(error.to_string().starts_with("line 2, column "), "{error}");
}
