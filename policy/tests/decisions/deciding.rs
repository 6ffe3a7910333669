//! Permits, forbids, errors and approvals.

use crate::scene::{
    caller, compile, compile_over, decide, files, identity, inventory, seen, shown, tool,
};
use policy::{AccessRequest, Caller, Inventory, Risk, ServerInventory};

#[test]
fn without_policies_everything_is_denied() {
    let policies = compile("");
    assert_eq!(decide(&policies, &caller(&[]), "files__read_file"), "no match");
    assert_eq!(seen(&policies, &caller(&[]), "files"), "");
}

#[test]
fn a_group_may_call_one_tool_and_others_may_not() {
    let policies = compile(
        r#"@id("readers") permit(principal in Group::"staff", action == Action::"files__read_file", resource);"#,
    );
    let staff = caller(&["staff"]);
    assert_eq!(decide(&policies, &staff, "files__read_file {}"), "permit readers");
    assert_eq!(decide(&policies, &staff, "files__write_file {}"), "no match");
    assert_eq!(decide(&policies, &caller(&["guests"]), "files__read_file {}"), "no match");
    assert_eq!(decide(&policies, &staff, "files__none"), "no match");
    assert_eq!(decide(&policies, &staff, "none__read_file"), "no match");
    assert_eq!(seen(&policies, &staff, "files"), "read_file");
    assert_eq!(seen(&policies, &caller(&["guests"]), "files"), "");
}

#[test]
fn every_call_can_be_permitted_by_attributes() {
    let policies = compile(
        r#"@id("calm") permit(principal, action in Action::"call", resource)
           when { resource.risk_rank <= 1 && !resource.destructive && resource.server.trust == "internal" };"#,
    );
    assert_eq!(decide(&policies, &caller(&[]), "files__read_file"), "permit calm");
    assert_eq!(decide(&policies, &caller(&[]), "files__write_file"), "no match");
    assert_eq!(decide(&policies, &caller(&[]), "issues__search"), "no match");
}

#[test]
fn a_forbid_wins_over_a_permit() {
    let policies = compile(
        r#"@id("all") permit(principal, action in Action::"call", resource);
           @id("never") forbid(principal, action in Action::"call", resource) when { resource.risk == "critical" };"#,
    );
    assert_eq!(decide(&policies, &caller(&[]), "files__wipe"), "forbid never");
    assert_eq!(decide(&policies, &caller(&[]), "files__write_file"), "permit all");
    assert_eq!(seen(&policies, &caller(&[]), "files"), "read_file write_file");
}

#[test]
fn arguments_decide_where_policies_read_them() {
    let policies = compile(
        r#"@id("work") permit(principal, action in [Action::"files__read_file", Action::"files__write_file"], resource)
           when { context.input.path like "/work/*" };"#,
    );
    let check = |call: &str, expected: &str| {
        assert_eq!(decide(&policies, &caller(&[]), call), expected, "{call}");
    };
    check(r#"files__read_file {"path":"/work/a"}"#, "permit work");
    check(r#"files__read_file {"path":"/etc/a"}"#, "no match");
    check(r#"files__read_file {"path":5}"#, "error work");
    check(r#"files__read_file {}"#, "error work");
    check(r#"files__read_file {"path":"/work/a","path":"/etc"}"#, "error work");
    check(r#"files__read_file [1]"#, "error work");
    check(r#"files__read_file {"path":"/work/a","limit":99999999999999999999}"#, "error work");
    check(r#"files__wipe {"path":"/work/a"}"#, "no match");
    assert_eq!(seen(&policies, &caller(&[]), "files"), "read_file write_file");
}

#[test]
fn arguments_that_no_matching_policy_reads_do_not_matter() {
    let policies = compile(
        r#"@id("plain") permit(principal in Group::"a", action in Action::"call", resource);
           @id("reader") permit(principal in Group::"b", action == Action::"files__read_file", resource)
           when { context.input.path == "/x" };"#,
    );
    let broken = r#"files__read_file {"path":5}"#;
    assert_eq!(decide(&policies, &caller(&["a"]), broken), "permit plain");
    assert_eq!(decide(&policies, &caller(&["a", "b"]), broken), "error reader");
    assert_eq!(decide(&policies, &caller(&["b"]), broken), "error reader");
}

#[test]
fn a_forbid_on_arguments_works_over_all_tools_that_have_them() {
    let policies = compile(
        r#"@id("all") permit(principal, action in Action::"call", resource);
           @id("etc") forbid(principal, action in Action::"call", resource)
           when { context.input has path && context.input.path like "/etc/*" };"#,
    );
    let check = |call: &str, expected: &str| {
        assert_eq!(decide(&policies, &caller(&[]), call), expected, "{call}");
    };
    check(r#"files__read_file {"path":"/etc/passwd"}"#, "forbid etc");
    check(r#"files__read_file {"path":"/work"}"#, "permit all");
    check(r#"issues__search {"path":"/etc/passwd"}"#, "permit all");
    assert_eq!(seen(&policies, &caller(&[]), "files"), "read_file wipe write_file");
}

#[test]
fn an_error_in_a_forbid_denies() {
    let policies = compile(
        r#"@id("all") permit(principal, action in Action::"call", resource);
           @id("overflow") forbid(principal, action == Action::"files__read_file", resource)
           when { context.input has limit && context.input.limit + 9223372036854775807 > 0 };"#,
    );
    let check = |call: &str, expected: &str| {
        assert_eq!(decide(&policies, &caller(&[]), call), expected, "{call}");
    };
    check(r#"files__read_file {"path":"","limit":1}"#, "error overflow");
    check(r#"files__read_file {"path":"","limit":0}"#, "forbid overflow");
    check(r#"files__read_file {"path":"","limit":-9223372036854775807}"#, "permit all");
    check(r#"files__read_file {"path":""}"#, "permit all");
    check(r#"files__write_file {"path":"","limit":1}"#, "permit all");
}

#[test]
fn an_error_without_arguments_denies_and_hides() {
    let policies = compile(
        r#"@id("all") permit(principal, action in Action::"call", resource);
           @id("overflow") forbid(principal, action in Action::"call", resource)
           when { resource.risk_rank == 0 && resource.risk_rank + 9223372036854775807 + 1 > 0 };"#,
    );
    assert_eq!(decide(&policies, &caller(&[]), "files__read_file"), "error overflow");
    assert_eq!(decide(&policies, &caller(&[]), "files__write_file"), "permit all");
    assert_eq!(seen(&policies, &caller(&[]), "files"), "wipe write_file");
}

#[test]
fn any_matching_permit_can_require_approval() {
    let policies = compile(
        r#"@id("all") permit(principal, action in Action::"call", resource);
           @id("ask") @require_approval("security, leads")
           permit(principal, action in Action::"call", resource) when { resource.risk == "critical" };
           @id("ask-more") @require_approval("owners")
           permit(principal, action == Action::"files__wipe", resource);"#,
    );
    let check = |call: &str, expected: &str| {
        assert_eq!(decide(&policies, &caller(&[]), call), expected, "{call}");
    };
    check("files__wipe", "approval ask leads,owners,security");
    check("files__read_file", "permit all");
    assert_eq!(seen(&policies, &caller(&[]), "files"), "read_file wipe write_file");
}

#[test]
fn approval_can_depend_on_arguments() {
    let policies = compile(
        r#"@id("all") permit(principal, action in Action::"call", resource);
           @id("ask") @require_approval("security")
           permit(principal, action == Action::"files__write_file", resource)
           when { context.input.path like "/prod/*" };"#,
    );
    let check = |call: &str, expected: &str| {
        assert_eq!(decide(&policies, &caller(&[]), call), expected, "{call}");
    };
    check(r#"files__write_file {"path":"/prod/x"}"#, "approval ask security");
    check(r#"files__write_file {"path":"/test/x"}"#, "permit all");
}

#[test]
fn prompts_resources_and_use_have_actions_of_their_own() {
    let policies = compile(
        r#"@id("get") permit(principal, action == Action::"get", resource == Prompt::"files__summary");
           @id("read") permit(principal, action == Action::"read", resource in Server::"files") when { resource.listed };
           @id("use") permit(principal, action == Action::"use", resource == Server::"files");"#,
    );
    let ask = |request| shown(&policies.decide(&caller(&[]), &request));
    assert_eq!(ask(AccessRequest::Get { server: "files", prompt: "summary" }), "permit get");
    assert_eq!(ask(AccessRequest::Get { server: "files", prompt: "other" }), "no match");
    assert_eq!(ask(AccessRequest::Read { server: "files", uri: "file:///a" }), "permit read");
    assert_eq!(ask(AccessRequest::Read { server: "files", uri: "file:///b" }), "no match");
    assert_eq!(ask(AccessRequest::Read { server: "issues", uri: "file:///a" }), "no match");
    assert_eq!(ask(AccessRequest::Use { server: "files" }), "permit use");
    assert_eq!(ask(AccessRequest::Use { server: "issues" }), "no match");
    assert_eq!(decide(&policies, &caller(&[]), "files__read_file"), "no match");
    let visible = policies.visible(&caller(&[]), "files");
    assert!(visible.has_prompt("summary") && visible.has_resource("file:///a"));
    assert!(!visible.has_resource("file:///b") && !visible.has_tool("read_file"));
}

#[test]
fn unlisted_resources_can_be_told_apart_by_uri() {
    let policies = compile(
        r#"@id("logs") permit(principal, action == Action::"read", resource in Server::"files")
           when { resource.uri like "log://*" };"#,
    );
    let ask =
        |uri| shown(&policies.decide(&caller(&[]), &AccessRequest::Read { server: "files", uri }));
    assert_eq!(ask("log://today"), "permit logs");
    assert_eq!(ask("file:///a"), "no match");
    assert_eq!(ask("file:///etc"), "no match");
}

#[test]
fn tools_can_be_told_apart_by_name() {
    let policies = compile(
        r#"@id("reads") permit(principal, action in Action::"call", resource) when { resource.name like "read_*" };"#,
    );
    assert_eq!(decide(&policies, &caller(&[]), "files__read_file"), "permit reads");
    assert_eq!(decide(&policies, &caller(&[]), "files__write_file"), "no match");
}

#[test]
fn an_incident_on_one_server_denies_there_only() {
    let text = r#"@id("all") permit(principal, action in Action::"call", resource);
        @id("incident") forbid(principal, action in Action::"call", resource)
        when { resource.server.incident && resource.risk_rank >= 2 };"#;
    let policies = compile(text);
    assert_eq!(decide(&policies, &caller(&[]), "files__write_file"), "permit all");
    let hot = inventory().with_server(files().to_builder().incident(true).build());
    let (policies, problems) = policies.refresh(&hot);
    assert_eq!(problems, []);
    assert_eq!(decide(&policies, &caller(&[]), "files__write_file"), "forbid incident");
    assert_eq!(decide(&policies, &caller(&[]), "files__read_file"), "permit all");
    assert_eq!(decide(&policies, &caller(&[]), "issues__search"), "permit all");
    assert_eq!(seen(&policies, &caller(&[]), "files"), "read_file");
    let (policies, _) = policies.refresh(&inventory());
    assert_eq!(decide(&policies, &caller(&[]), "files__write_file"), "permit all");
}

#[test]
fn a_server_of_an_org_serves_that_org_only() {
    let server = ServerInventory::builder("files").org("acme").tool(tool("t", Risk::Low, "{}"));
    let policies = compile_over(
        r#"@id("all") permit(principal, action in Action::"call", resource);"#,
        &Inventory::new([server.build()]),
    );
    let of = |org: Option<&str>| {
        Caller::new(policy::Identity { org: org.map(str::to_owned), ..identity("alice", &[]) })
    };
    assert_eq!(decide(&policies, &of(Some("acme")), "files__t"), "permit all");
    assert_eq!(decide(&policies, &of(Some("other")), "files__t"), "other org");
    assert_eq!(decide(&policies, &of(None), "files__t"), "other org");
    assert_eq!(seen(&policies, &of(Some("acme")), "files"), "t");
    assert_eq!(seen(&policies, &of(Some("other")), "files"), "");
}

#[test]
fn the_attributes_of_a_caller_can_be_read() {
    let policies = compile(
        r#"@id("agents") permit(principal, action in Action::"call", resource) when {
            principal.actor_type == "user" && principal.mfa && principal has clearance &&
            principal.clearance == "secret" && principal has client_id && principal.client_id == "cli" &&
            principal.issuer == "https://idp" && principal.subject == "alice" && principal.proof == "token" &&
            principal in Org::"acme" };"#,
    );
    let full = policy::Identity {
        mfa: true,
        clearance: Some("secret".to_owned()),
        client_id: Some("cli".to_owned()),
        org: Some("acme".to_owned()),
        ..identity("alice", &[])
    };
    assert_eq!(decide(&policies, &Caller::new(full.clone()), "files__wipe"), "permit agents");
    let changed = policy::Identity { mfa: false, ..full.clone() };
    assert_eq!(decide(&policies, &Caller::new(changed), "files__wipe"), "no match");
    let changed = policy::Identity { clearance: None, ..full };
    assert_eq!(decide(&policies, &Caller::new(changed), "files__wipe"), "no match");
}

#[test]
fn principals_of_two_issuers_are_two() {
    let policies = compile(
        r#"@id("me") permit(principal == Principal::"https://idp|alice", action in Action::"call", resource);"#,
    );
    assert_eq!(decide(&policies, &caller(&[]), "files__wipe"), "permit me");
    let other = policy::Identity { issuer: "https://evil".to_owned(), ..identity("alice", &[]) };
    assert_eq!(decide(&policies, &Caller::new(other), "files__wipe"), "no match");
    let crafted = policy::Identity { issuer: "https:".to_owned(), ..identity("//idp|alice", &[]) };
    assert_eq!(decide(&policies, &Caller::new(crafted), "files__wipe"), "no match");
}

#[test]
fn among_a_hundred_policies_the_one_that_matches_decides() {
    let mut text = String::from(
        r#"@id("never") forbid(principal in Group::"banned", action in Action::"call", resource);"#,
    );
    for number in 0..100 {
        text += &format!(
            "@id(\"p{number}\") permit(principal in Group::\"g{number}\", \
             action == Action::\"files__read_file\", resource) \
             when {{ context.input.path like \"/{number}/*\" }};\n"
        );
    }
    let policies = compile(&text);
    for number in [0, 57, 99] {
        let group = format!("g{number}");
        let call = |path: usize| format!(r#"files__read_file {{"path":"/{path}/a"}}"#);
        let expected = format!("permit p{number}");
        assert_eq!(decide(&policies, &caller(&[&group]), &call(number)), expected);
        assert_eq!(decide(&policies, &caller(&[&group]), &call(number + 1)), "no match");
        let banned = caller(&["banned", &group]);
        assert_eq!(decide(&policies, &banned, &call(number)), "forbid never");
        assert_eq!(seen(&policies, &caller(&[&group]), "files"), "read_file");
        assert_eq!(seen(&policies, &banned, "files"), "");
    }
}
