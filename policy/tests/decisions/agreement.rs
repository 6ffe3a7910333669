//! Lists and calls agree, and the optimized decision agrees with evaluating every policy
//! separately.

use crate::scene::{PATH_SCHEMA, identity, reading_tool, tool};
use policy::{
    AccessDecision, AccessRequest, Caller, DenyReason, Explanation, Identity, Inventory, Policies,
    PolicyMatch, Risk, ServerInventory,
};
use proptest::prelude::*;

fn inventory(incident: bool) -> Inventory {
    let files = ServerInventory::builder("files")
        .incident(incident)
        .tool(reading_tool("read_file"))
        .tool(reading_tool("stat_file"))
        .tool(tool("write_file", Risk::High, PATH_SCHEMA))
        .tool(tool("wipe", Risk::Critical, "{}"))
        .build();
    let issues = ServerInventory::builder("issues")
        .org("acme")
        .tool(tool(
            "search",
            Risk::Low,
            r#"{"type":"object","properties":{"limit":{"type":"integer"}}}"#,
        ))
        .build();
    Inventory::new([files, issues])
}

const TOOLS: [(&str, &str); 5] = [
    ("files", "read_file"),
    ("files", "stat_file"),
    ("files", "write_file"),
    ("files", "wipe"),
    ("issues", "search"),
];

fn one_of(choices: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    prop::sample::select(choices)
}

fn policy_text() -> impl Strategy<Value = String> {
    let principal = one_of(&[
        "principal",
        r#"principal in Group::"a""#,
        r#"principal in Group::"b""#,
        r#"principal == Principal::"https://idp|alice""#,
        r#"principal in Org::"acme""#,
    ]);
    let action = one_of(&[
        r#"action in Action::"call""#,
        r#"action in Action::"call""#,
        r#"action == Action::"files__read_file""#,
        r#"action in [Action::"files__wipe", Action::"issues__search"]"#,
        r#"action == Action::"files__unknown""#,
    ]);
    let resource = one_of(&[
        "resource",
        r#"resource in Server::"files""#,
        r#"resource in Org::"acme""#,
        r#"resource == Tool::"files__stat_file""#,
        "resource is Tool",
    ]);
    let condition = one_of(&[
        "",
        "",
        "when { resource.risk_rank <= 1 }",
        "when { resource.destructive }",
        "when { resource.server.incident }",
        "unless { principal.mfa }",
        r#"when { context.input has path && context.input.path like "/work/*" }"#,
        r#"unless { context.input has path && context.input.path == "/etc" }"#,
        "when { context.input has limit && context.input.limit > 5 }",
        "when { context.input has limit && context.input.limit + 9223372036854775807 > 0 }",
        "when { resource.risk_rank * 9223372036854775807 > 5 }",
        r#"when { resource.name like "*_file" }"#,
    ]);
    let effect = one_of(&["permit", "permit", "forbid"]);
    (effect, principal, action, resource, condition)
        .prop_map(|(e, p, a, r, c)| format!("{e}({p}, {a}, {r}) {c};"))
}

fn callers() -> impl Strategy<Value = Identity> {
    let groups = prop::sample::subsequence(vec!["a", "b"], 0..=2);
    (one_of(&["alice", "bob"]), groups, any::<bool>(), any::<bool>()).prop_map(
        |(subject, groups, mfa, acme)| Identity {
            mfa,
            org: acme.then(|| "acme".to_owned()),
            ..identity(subject, &groups)
        },
    )
}

fn inputs() -> impl Strategy<Value = String> {
    let path = one_of(&["/work/a", "/etc", ""]);
    (path, prop::option::of(-3_i64..10)).prop_map(|(path, limit)| match limit {
        Some(limit) => format!(r#"{{"path":"{path}","limit":{limit}}}"#),
        None => format!(r#"{{"path":"{path}"}}"#),
    })
}

/// The decision that follows from the effect of each policy.
fn expected(explanation: &Explanation) -> &'static str {
    let any = |permits: bool| {
        let of = explanation.policies.iter().filter(move |policy| policy.permits == permits);
        of.into_iter().any(|policy| policy.matched == PolicyMatch::Matched)
    };
    let failed =
        |policy: &policy::PolicyOutcome| matches!(policy.matched, PolicyMatch::Failed { .. });
    if any(false) {
        "forbidden"
    } else if explanation.policies.iter().any(failed) {
        "error"
    } else if any(true) {
        "permit"
    } else {
        "no match"
    }
}

fn found(decision: &AccessDecision) -> &'static str {
    match decision {
        AccessDecision::Permit { .. } => "permit",
        AccessDecision::Deny { reason } => match reason {
            DenyReason::NoPolicyMatch => "no match",
            DenyReason::Forbidden { .. } => "forbidden",
            DenyReason::PolicyError { .. } => "error",
            DenyReason::OtherOrg | DenyReason::NotAUser => "refused",
        },
    }
}

proptest! {
    // Each case compiles policies and makes up to a hundred decisions.
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases / 4, ..ProptestConfig::default()
    })]

    #[test]
    fn what_is_permitted_is_listed_and_every_decision_follows_from_the_policies(
        texts in prop::collection::vec(policy_text(), 0..6),
        identities in prop::collection::vec(callers(), 1..3),
        inputs in prop::collection::vec(inputs(), 1..4),
        incident in any::<bool>(),
    ) {
        let policies = Policies::compile(&[("p", texts.join("\n"))], None, &inventory(incident));
        let policies = policies.map_err(|problems| TestCaseError::fail(format!("{problems:?}")))?;
        for identity in identities {
            let caller = Caller::new(identity);
            for (server, tool) in TOOLS {
                let listed = policies.visible(&caller, server).has_tool(tool);
                for input in inputs.iter().map(String::as_str).chain([r#"{"path":7,"limit":1e30}"#, "[", "{}"]) {
                    let request = AccessRequest::Call { server, tool, input: Some(input.as_bytes()) };
                    let explanation = policies.explain(&caller, &request);
                    let decision = policies.decide(&caller, &request);
                    prop_assert_eq!(&explanation.decision, &decision);
                    prop_assert!(listed || !decision.is_permit(), "{} {}", tool, input);
                    prop_assert_eq!(listed, policies.could_permit(&caller, &request));
                    if input.starts_with(r#"{"path":""#) && found(&decision) != "refused" {
                        prop_assert_eq!(found(&decision), expected(&explanation), "{} {}", tool, input);
                    }
                }
            }
        }
    }
}
