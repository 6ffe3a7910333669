//! Mistakes in policies, and names that must not confuse the compiler.

use crate::scene::{
    PATH_SCHEMA, caller, compile, compile_over, decide, files, inventory, mistakes, seen,
    sentences, tool,
};
use policy::{Inventory, Policies, Risk, STARTER_POLICIES, ServerInventory};

fn check(text: &str, expected: &[&str]) {
    assert_eq!(mistakes(text), expected, "{text}");
}

#[test]
fn all_mistakes_are_reported_at_once_with_file_line_and_id() {
    let files = [
        ("a.cedar", "permit(principal, action, resource)\nwhen { principal.nose == 1 };"),
        ("b.cedar", "\n\npermit(principal action, resource);"),
        ("c.cedar", "@id(\"x\")\npermit(principal, action == Action::\"cal\", resource);"),
    ];
    let problems = Policies::compile(&files, None, &inventory()).unwrap_err();
    let found = sentences(&problems);
    assert!(found.len() >= 3, "{found:?}");
    assert!(
        found
            .iter()
            .any(|line| line.starts_with("a.cedar:2: policy `a.cedar:1`: attribute `nose`")),
        "{found:?}"
    );
    assert!(found.iter().any(|line| line.starts_with("b.cedar:3: ")), "{found:?}");
    assert!(
        found.iter().any(|line| line.starts_with("c.cedar:2: policy `x`: unrecognized action")),
        "{found:?}"
    );
}

#[test]
fn reading_an_argument_without_a_type_says_why() {
    check(
        r#"@id("p") permit(principal, action == Action::"files__read_file", resource) when { context.input.free == 1 };"#,
        &[
            "p.cedar:1: policy `p`: reads `context.input.free`, which has no type in the approved schema \
           of `files__read_file`: its schema names no type",
        ],
    );
    check(
        r#"@id("p") permit(principal, action == Action::"files__read_file", resource) when { context.input.other == 1 };"#,
        &["p.cedar:1: policy `p`: reads `context.input.other`, which the approved schema of \
           `files__read_file` does not declare; only declared arguments can be read"],
    );
    check(
        r#"@id("p") permit(principal, action == Action::"files__read_file", resource) when { context.input.limit > 1 };"#,
        &[
            "p.cedar:1: policy `p`: reads `context.input.limit`, which calls of `files__read_file` may leave \
           out; test it first with `context.input has limit &&`",
        ],
    );
}

#[test]
fn ids_are_unique_and_default_to_file_and_line() {
    check(
        "@id(\"x\") permit(principal, action, resource);\n@id(\"x\") forbid(principal, action, resource);",
        &["p.cedar:2: policy `x`: the policy at p.cedar:1 has the same id"],
    );
    check(
        "permit(principal, action, resource);forbid(principal, action, resource);",
        &["p.cedar:1: policy `p.cedar:1`: the policy at p.cedar:1 has the same id"],
    );
    let policies =
        compile("\npermit(principal, action, resource);\nforbid(principal, action, resource);");
    let ids: Vec<&str> = policies.ids().map(|(id, _, _)| id).collect();
    assert_eq!(ids, ["p.cedar:2", "p.cedar:3"]);
    let anything = "permit(principal, action, resource);";
    let files = [("/etc/a/p.cedar", anything), ("/etc/b/p.cedar", anything)];
    let problems = Policies::compile(&files, None, &inventory()).unwrap_err();
    let expected =
        "/etc/b/p.cedar:1: policy `p.cedar:1`: the policy at /etc/a/p.cedar:1 has the same id";
    assert_eq!(sentences(&problems), [expected]);
}

#[test]
fn approval_annotations_are_checked() {
    let on = |annotation: &str, effect: &str| {
        mistakes(&format!(
            r#"@id("p") {annotation} {effect}(principal, action in Action::"call", resource);"#
        ))
    };
    assert_eq!(on(r#"@require_approval("a")"#, "permit").len(), 0);
    assert_eq!(on(r#"@description("a")"#, "permit").len(), 0);
    let wrong = on(r#"@require_approval("a")"#, "forbid");
    assert_eq!(
        wrong,
        ["p.cedar:1: policy `p`: `@require_approval` belongs on a permit; a forbid always denies"]
    );
    let wrong = on(r#"@require_approval(" , ")"#, "permit");
    assert_eq!(wrong, ["p.cedar:1: policy `p`: `@require_approval` names no group"]);
    let wrong = on(r#"@requires_approval("a")"#, "permit");
    assert_eq!(
        wrong,
        [
            "p.cedar:1: policy `p`: `@requires_approval` is not known; did you mean `@require_approval`?"
        ]
    );
}

#[test]
fn templates_are_refused() {
    check(
        "permit(principal == ?principal, action, resource);",
        &["p.cedar:1: templates (`?principal`, `?resource`) are not supported"],
    );
}

#[test]
fn a_policy_over_everything_is_told_to_narrow_down() {
    let found = mistakes(
        r#"@id("p") permit(principal, action, resource) when { resource.risk == "low" };"#,
    );
    assert!(found.iter().any(|line| line.contains("narrow it")), "{found:?}");
}

#[test]
fn a_tool_that_is_not_known_yet_is_a_warning_and_matches_once_it_appears() {
    let text = r#"@id("later") permit(principal, action == Action::"files__later", resource)
        when { context.input.path like "/work/*" };
        @id("list") permit(principal, action in [Action::"files__later", Action::"files__wipe"], resource);
        @id("server") permit(principal, action in Action::"call", resource in Server::"gone");"#;
    let policies = compile(text);
    assert_eq!(
        sentences(policies.warnings()),
        [
            r#"p.cedar:1: warning: policy `later`: Action::"files__later" is not known yet, so this part matches nothing"#,
            r#"p.cedar:3: warning: policy `list`: Action::"files__later" is not known yet, so this part matches nothing"#,
            r#"p.cedar:4: warning: policy `server`: Server::"gone" is not known yet, so this part matches nothing"#,
        ]
    );
    assert_eq!(decide(&policies, &caller(&[]), "files__later"), "no match");
    assert_eq!(decide(&policies, &caller(&[]), "files__wipe"), "permit list");
    let grown = files().to_builder().tool(tool("later", Risk::Low, PATH_SCHEMA)).build();
    let (policies, problems) = policies.refresh(&inventory().with_server(grown));
    assert_eq!(problems, []);
    let call = r#"files__later {"path":"/work/x"}"#;
    assert_eq!(decide(&policies, &caller(&[]), call), "permit later");
}

#[test]
fn a_tool_that_no_longer_fits_a_policy_is_denied_and_others_are_not() {
    let text = r#"@id("all") permit(principal, action in Action::"call", resource);
        @id("etc") forbid(principal, action in Action::"call", resource)
        when { context.input has path && context.input.path like "/etc/*" };"#;
    let policies = compile(text);
    let schema =
        r#"{"type":"object","properties":{"path":{"type":"array","items":{"type":"string"}}}}"#;
    let changed = files().to_builder().tool(tool("read_file", Risk::Low, schema)).build();
    let changed = inventory().with_server(changed);
    assert!(Policies::compile(&[("p.cedar", text)], None, &changed).is_err());
    let (policies, problems) = policies.refresh(&changed);
    assert_eq!(problems.len(), 1, "{problems:?}");
    let check = |call: &str, expected: &str| {
        assert_eq!(decide(&policies, &caller(&[]), call), expected, "{call}");
    };
    check(r#"files__read_file {"path":["/work"]}"#, "error etc");
    check(r#"files__write_file {"path":"/work"}"#, "permit all");
    check(r#"issues__search {}"#, "permit all");
    assert_eq!(seen(&policies, &caller(&[]), "files"), "wipe write_file");
}

const HOSTILE_NAMES: [&str; 16] = [
    "in",
    "permit",
    "__cedar",
    "__cedar::x",
    "if",
    "a-b.c/d e",
    "ünïcödé",
    "\"quoted\"",
    "back\\slash",
    "new\nline",
    "",
    "_",
    "__",
    "nul\u{0}",
    "\u{202e}rtl",
    "🙂",
];

#[test]
fn hostile_names_of_tools_and_arguments_work() {
    let long = "x".repeat(128);
    let names = HOSTILE_NAMES.iter().copied().chain([long.as_str()]);
    let mut server = ServerInventory::builder("odd-server.v2");
    let mut text = String::new();
    for (number, name) in names.clone().enumerate() {
        let schema = serde_json::json!({
            "type": "object", "required": [name], "properties": { name: { "type": "string" } },
        });
        server = server.tool(tool(name, Risk::Low, &schema.to_string()));
        if number % 2 == 0 {
            let (action, member) = (name.escape_default(), name.escape_default());
            // Cedar's escapes have the same syntax as Rust's.
            text += &format!(
                "@id(\"p{number}\") permit(principal, action == Action::\"odd-server.v2__{action}\", resource) \
                 when {{ context.input[\"{member}\"] == \"yes\" }};\n"
            );
        }
    }
    let policies = compile_over(&text, &Inventory::new([server.build()]));
    for (number, name) in names.enumerate() {
        let ask = |value: &str| {
            let input = serde_json::json!({ name: value }).to_string();
            let request = policy::AccessRequest::Call {
                server: "odd-server.v2",
                tool: name,
                input: Some(input.as_bytes()),
            };
            crate::scene::shown(&policies.decide(&caller(&[]), &request))
        };
        let expected =
            if number % 2 == 0 { format!("permit p{number}") } else { "no match".to_owned() };
        assert_eq!(ask("yes"), expected, "{name:?}");
        assert_eq!(ask("no"), "no match", "{name:?}");
    }
}

#[test]
fn two_names_that_join_alike_are_two_tools() {
    let one = ServerInventory::builder("a").tool(tool("b__c", Risk::Low, "{}")).build();
    let other = ServerInventory::builder("a__b").tool(tool("c", Risk::Low, "{}")).build();
    let third = ServerInventory::builder("a_").tool(tool("b", Risk::Low, "{}")).build();
    let fourth = ServerInventory::builder("a").tool(tool("_b", Risk::Low, "{}")).build();
    let text = r#"@id("p") permit(principal, action == Action::"a__b__c", resource);"#;
    let policies = compile_over(text, &Inventory::new([one, other]));
    let ask = |policies: &Policies, server, tool| {
        let request = policy::AccessRequest::Call { server, tool, input: None };
        crate::scene::shown(&policies.decide(&caller(&[]), &request))
    };
    assert_eq!(ask(&policies, "a", "b__c"), "permit p");
    assert_eq!(ask(&policies, "a__b", "c"), "no match");
    let text = r#"@id("p") permit(principal, action == Action::"a___b", resource);"#;
    let policies = compile_over(text, &Inventory::new([third, fourth]));
    assert_eq!(ask(&policies, "a", "_b"), "permit p");
    assert_eq!(ask(&policies, "a_", "b"), "no match");
}

#[test]
fn hostile_schemas_compile() {
    let deep = "[".repeat(100) + &"]".repeat(100);
    let schemas = [
        "{",
        "[]",
        "null",
        "\"x\"",
        &deep,
        r##"{"$ref":"#"}"##,
        r##"{"type":"object","properties":{"a":{"$ref":"#"}}}"##,
        r##"{"type":"object","properties":{"a":{"$ref":"#/properties/b"},"b":{"$ref":"#/properties/a"}}}"##,
        r#"{"type":"object","properties":[]}"#,
        r#"{"type":"object","properties":{"__entity":{"type":"string"},"__extn":{"type":"string"}}}"#,
        r#"{"type":"object","required":"a","properties":{"a":{"type":"string"}}}"#,
    ];
    for schema in schemas {
        let server = ServerInventory::builder("s").tool(tool("t", Risk::Low, schema)).build();
        let text = r#"@id("p") permit(principal, action in Action::"call", resource) unless { context.input has zzz };"#;
        let policies = compile_over(text, &Inventory::new([server]));
        let found = decide(
            &policies,
            &caller(&[]),
            r#"s__t {"zzz":1,"__entity":{"type":"Tool","id":"x"}}"#,
        );
        assert!(found == "permit p" || found == "error p", "{schema}: {found}");
    }
}

#[test]
fn the_starter_policies_compile_and_do_what_they_say() {
    let policies = Policies::compile(&STARTER_POLICIES, None, &inventory()).unwrap();
    assert_eq!(sentences(policies.warnings()), [""; 0]);
    let check = |groups: &[&str], call: &str, expected: &str| {
        assert_eq!(decide(&policies, &caller(groups), call), expected, "{groups:?} {call}");
    };
    check(&[], "files__read_file", "permit starter-readers");
    check(&[], "files__write_file", "no match");
    check(&["files-team"], "files__write_file", "permit starter-files-team");
    check(&["files-team"], "issues__search", "no match");
    check(&["operators"], "files__wipe", "approval starter-critical approvers");
    check(&[], "files__wipe", "no match");
}
