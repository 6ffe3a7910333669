//! The inventory and the callers that these tests share.

use policy::{
    AccessDecision, AccessRequest, ActorType, Caller, DenyReason, Identity, IdentityProof,
    Inventory, Policies, Risk, ServerInventory, ToolHints, ToolInventory, Trust,
};
use std::sync::Arc;

pub(crate) const PATH_SCHEMA: &str = r#"{"type":"object","required":["path"],"properties":{
    "path":{"type":"string"},"limit":{"type":"integer"},"free":{}}}"#;

pub(crate) fn tool(name: &str, risk: Risk, schema: &str) -> ToolInventory {
    ToolInventory::new(name, risk, ToolHints::default(), schema.as_bytes())
}

pub(crate) fn reading_tool(name: &str) -> ToolInventory {
    let hints =
        ToolHints { read_only: true, destructive: false, idempotent: true, open_world: false };
    ToolInventory::new(name, Risk::Low, hints, PATH_SCHEMA.as_bytes())
}

pub(crate) fn files() -> Arc<ServerInventory> {
    ServerInventory::builder("files")
        .trust(Trust::Internal)
        .risk(Risk::Medium)
        .tool(reading_tool("read_file"))
        .tool(tool("write_file", Risk::High, PATH_SCHEMA))
        .tool(tool("wipe", Risk::Critical, "{}"))
        .prompt("summary")
        .resource("file:///a")
        .build()
}

pub(crate) fn issues() -> Arc<ServerInventory> {
    ServerInventory::builder("issues")
        .trust(Trust::Verified)
        .risk(Risk::Low)
        .tool(tool(
            "search",
            Risk::Low,
            r#"{"type":"object","properties":{"q":{"type":"string"}}}"#,
        ))
        .build()
}

pub(crate) fn inventory() -> Inventory {
    Inventory::new([files(), issues()])
}

pub(crate) fn identity(subject: &str, groups: &[&str]) -> Identity {
    Identity {
        issuer: "https://idp".to_owned(),
        subject: subject.to_owned(),
        actor_type: ActorType::User,
        client_id: None,
        org: None,
        groups: groups.iter().map(ToString::to_string).collect(),
        clearance: None,
        mfa: false,
        proof: IdentityProof::Token,
    }
}

pub(crate) fn caller(groups: &[&str]) -> Caller {
    Caller::new(identity("alice", groups))
}

pub(crate) fn compile(text: &str) -> Policies {
    compile_over(text, &inventory())
}

pub(crate) fn compile_over(text: &str, inventory: &Inventory) -> Policies {
    match Policies::compile(&[("p.cedar", text)], None, inventory) {
        Ok(policies) => policies,
        Err(problems) => panic!("{}", sentences(&problems).join("\n")),
    }
}

pub(crate) fn sentences(problems: &[policy::PolicyProblem]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

/// The mistakes in a policy text.
pub(crate) fn mistakes(text: &str) -> Vec<String> {
    match Policies::compile(&[("p.cedar", text)], None, &inventory()) {
        Ok(_) => Vec::new(),
        Err(problems) => sentences(&problems),
    }
}

/// Decides a request given as text: `files__read_file {"path":"/a"}`.
pub(crate) fn decide(policies: &Policies, caller: &Caller, call: &str) -> String {
    let (name, input) = call.split_once(' ').unwrap_or((call, "{}"));
    let (server, tool) = name.split_once("__").unwrap();
    let request = AccessRequest::Call { server, tool, input: Some(input.as_bytes()) };
    shown(&policies.decide(caller, &request))
}

pub(crate) fn shown(decision: &AccessDecision) -> String {
    match decision {
        AccessDecision::Permit { policy_id, approval_groups } if approval_groups.is_empty() => {
            format!("permit {policy_id}")
        }
        AccessDecision::Permit { policy_id, approval_groups } => {
            format!("approval {policy_id} {}", approval_groups.join(","))
        }
        AccessDecision::Deny { reason } => match reason {
            DenyReason::NoPolicyMatch => "no match".to_owned(),
            DenyReason::OtherOrg => "other org".to_owned(),
            DenyReason::NotAUser => "not a user".to_owned(),
            DenyReason::Forbidden { policy_id } => format!("forbid {policy_id}"),
            DenyReason::PolicyError { policy_id } => {
                format!("error {}", policy_id.as_deref().unwrap_or("?"))
            }
        },
    }
}

pub(crate) fn seen(policies: &Policies, caller: &Caller, server: &str) -> String {
    policies.visible(caller, server).tools().collect::<Vec<_>>().join(" ")
}
