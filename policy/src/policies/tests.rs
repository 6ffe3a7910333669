use super::*;
use crate::{
    AccessRequest, ActorType, Caller, Identity, IdentityProof, Risk, ToolHints, ToolInventory,
};

fn caller(number: usize) -> Caller {
    Caller::new(Identity {
        issuer: String::new(),
        subject: number.to_string(),
        actor_type: ActorType::Agent,
        client_id: None,
        org: None,
        groups: Vec::new(),
        clearance: None,
        mfa: false,
        proof: IdentityProof::Key,
    })
}

fn policies(tools: usize, text: &str) -> Policies {
    let mut server = ServerInventory::builder("s");
    for number in 0..tools {
        let name = format!("t{number}");
        let schema = br#"{"type":"object","properties":{"a":{"type":"string"}}}"#;
        server = server.tool(ToolInventory::new(&name, Risk::Low, ToolHints::default(), schema));
    }
    let inventory = Inventory::new([server.build()]);
    Policies::compile(&[("p", text)], None, &inventory).unwrap()
}

#[test]
fn caches_stay_within_their_limits_and_decisions_stay_right() {
    let policies =
        policies(3, r#"permit(principal == Principal::"|7", action in Action::"call", resource);"#)
            .with_cache_limits(64, 32);
    for _ in 0..2 {
        for number in 0..500 {
            let caller = caller(number);
            let request = AccessRequest::Call { server: "s", tool: "t0", input: None };
            assert_eq!(policies.decide(&caller, &request).is_permit(), number == 7);
            assert_eq!(policies.visible(&caller, "s").has_tool("t1"), number == 7);
            assert!(policies.caches.decisions.len() <= 64);
            assert!(policies.caches.visible.len() <= 32);
        }
    }
    assert!(policies.caches.decisions.len() > 30);
}

#[test]
fn tools_that_policies_do_not_tell_apart_are_one_class() {
    let classes = |text: &str| {
        let policies = policies(50, text);
        let place = policies.servers.get("s").unwrap();
        let numbers: std::collections::BTreeSet<_> = place.tools.values().collect();
        numbers.len()
    };
    assert_eq!(classes(r#"permit(principal, action in Action::"call", resource);"#), 1);
    assert_eq!(classes(r#"permit(principal, action == Action::"s__t7", resource);"#), 2);
    let by_tool = r#"permit(principal, action in Action::"call", resource)
        when { resource == Tool::"s__t7" || resource == Tool::"s__t9" };"#;
    assert_eq!(classes(by_tool), 3);
    let by_name = r#"permit(principal, action in Action::"call", resource) when { resource.name like "t*" };"#;
    assert_eq!(classes(by_name), 50);
    let by_input = r#"permit(principal, action in Action::"call", resource)
        when { context.input has a && context.input.a == "x" };"#;
    assert_eq!(classes(by_input), 1);
}

#[test]
fn a_refresh_keeps_what_did_not_change() {
    let tool = |name: &str| ToolInventory::new(name, Risk::Low, ToolHints::default(), b"{}");
    let one = ServerInventory::builder("one").tool(tool("t")).build();
    let two = ServerInventory::builder("two").tool(tool("t")).build();
    let inventory = Inventory::new([Arc::clone(&one), Arc::clone(&two)]);
    let text = r#"permit(principal, action in Action::"call", resource);"#;
    let before = Policies::compile(&[("p", text)], None, &inventory).unwrap();
    let epoch = |policies: &Policies, id: &str| policies.servers.get(id).unwrap().epoch;
    let grown = two.to_builder().tool(tool("u")).build();
    let (after, _) = before.refresh(&inventory.with_server(grown));
    assert_eq!(epoch(&before, "one"), epoch(&after, "one"));
    assert_ne!(epoch(&before, "two"), epoch(&after, "two"));
    let hot = two.to_builder().incident(true).build();
    let (after, _) = before.refresh(&inventory.with_server(hot));
    assert_ne!(epoch(&before, "one"), epoch(&after, "one"));
    assert!(after.servers.contains_key("two"));
    let (after, _) = before.refresh(&inventory.without_server("two"));
    assert!(!after.servers.contains_key("two"));
}

#[test]
fn a_cached_decision_is_not_used_for_another_identity_tool_or_inventory() {
    let text = r#"permit(principal == Principal::"|1", action == Action::"s__t0", resource);"#;
    let policies = policies(2, text);
    let ask = |number, tool| {
        policies.decide(&caller(number), &AccessRequest::Call { server: "s", tool, input: None })
    };
    for _ in 0..3 {
        assert!(ask(1, "t0").is_permit());
        assert!(!ask(2, "t0").is_permit());
        assert!(!ask(1, "t1").is_permit());
    }
}
