//! Explanations and decision tables.

use crate::scene::{caller, compile, inventory};
use policy::{AccessRequest, DecisionTable, Policies, STARTER_POLICIES};

#[test]
fn an_explanation_says_of_every_policy_why() {
    let policies = compile(
        r#"@id("yes") permit(principal, action == Action::"files__read_file", resource);
@id("who") permit(principal in Group::"x", action in Action::"call", resource);
@id("what") permit(principal, action == Action::"files__wipe", resource);
@id("where") permit(principal, action in Action::"call", resource in Server::"issues");
@id("when") forbid(principal, action in Action::"call", resource) when { resource.risk == "high" };
@id("odd") permit(principal, action == Action::"files__read_file", resource)
    when { context.input has limit && context.input.limit + 9223372036854775807 > 0 };"#,
    );
    let explain = |input: &str| {
        let input = Some(input.as_bytes());
        let request = AccessRequest::Call { server: "files", tool: "read_file", input };
        policies.explain(&caller(&[]), &request).to_string()
    };
    assert_eq!(
        explain(r#"{"path":"/a"}"#),
        "permitted by `yes`\n\
         \x20 permit `yes` (p.cedar:1) matches\n\
         \x20 permit `who` (p.cedar:2) is for other principals\n\
         \x20 permit `what` (p.cedar:3) is for other actions\n\
         \x20 permit `where` (p.cedar:4) is for other resources\n\
         \x20 forbid `when` (p.cedar:5) has a condition that is not met\n\
         \x20 permit `odd` (p.cedar:6) has a condition that is not met\n"
    );
    let found = explain(r#"{"path":"/a","limit":1}"#);
    assert!(found.starts_with("denied: `odd` cannot be evaluated\n"), "{found}");
    assert!(found.contains("permit `odd` (p.cedar:6) cannot be evaluated: "), "{found}");
    let found = explain(r#"{"path":1}"#);
    assert!(
        found.contains("policies cannot read the arguments: `path` is not a string"),
        "{found}"
    );
    let request = AccessRequest::Call { server: "files", tool: "none", input: None };
    let found = policies.explain(&caller(&[]), &request).to_string();
    assert_eq!(found, "denied: no permit matches\n  there is no such tool, prompt or server\n");
}

const TABLE: &str = r#"
    [[case]]
    as = "alice"
    tool = "files__read_file"
    input = { path = "/a" }
    expect = "permit"
    policy = "starter-readers"

    [[case]]
    name = "strangers do not wipe"
    as = "mallory"
    tool = "files__wipe"
    expect = "deny"

    [[case]]
    as = "bob"
    groups = ["operators"]
    actor = "agent"
    tool = "files__wipe"
    expect = "approval"

    [[case]]
    as = "carol"
    groups = ["admins"]
    mfa = true
    admin = "operate"
    expect = "permit"

    [[case]]
    as = "carol"
    prompt = "files__summary"
    expect = "permit"

    [[case]]
    as = "carol"
    server = "files"
    resource = "file:///a"
    expect = "permit"

    [[case]]
    as = "carol"
    use = "files"
    expect = "permit"
"#;

#[test]
fn a_decision_table_passes_where_it_agrees_and_fails_where_it_does_not() {
    let policies = Policies::compile(&STARTER_POLICIES, None, &inventory()).unwrap();
    let results = DecisionTable::parse(TABLE, "https://idp").unwrap().run(&policies);
    let failed: Vec<String> =
        results.iter().filter(|case| !case.passed).map(ToString::to_string).collect();
    assert_eq!((results.len(), failed), (7, vec![]));
    let table = TABLE.replace(r#"expect = "deny""#, r#"expect = "permit""#);
    let table = table.replace(r#""starter-readers""#, r#""other""#);
    let results = DecisionTable::parse(&table, "https://idp").unwrap().run(&policies);
    let failed: Vec<String> =
        results.iter().filter(|case| !case.passed).map(ToString::to_string).collect();
    assert_eq!(
        failed,
        [
            "FAIL 1 alice files__read_file: expected permit by `other`, got permit by `starter-readers`",
            "FAIL 2 strangers do not wipe: expected permit, got deny",
        ]
    );
}

#[test]
fn a_table_with_a_mistake_is_refused() {
    let refused = |text: &str, expected: &str| {
        let error = DecisionTable::parse(text, "").unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    refused("", "no cases");
    refused("[[case]]\nas = \"a\"\nexpect = \"deny\"", "case 1: name one of");
    refused(
        "[[case]]\nas = \"a\"\ntool = \"x\"\nexpect = \"deny\"",
        "case 1: a name is `server__name`",
    );
    refused("[[case]]\nas = \"a\"\ntool = \"x__y\"\nexpect = \"maybe\"", "maybe");
    refused("[[case]]\nas = \"a\"\ntool = \"x__y\"\nexpected = \"deny\"", "expected");
    refused(
        "[[case]]\nas = \"a\"\nresource = \"x\"\nexpect = \"deny\"",
        "`resource` needs `server`",
    );
    refused(
        "[[case]]\nas = \"a\"\nuse = \"x\"\ninput = {}\nexpect = \"deny\"",
        "`input` belongs to a `tool`",
    );
}
