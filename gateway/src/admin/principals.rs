//! Explains what a principal would see and why, for policy authors.

use super::refusal::AdminError;
use super::{AdminInput, AdminVisit};
use crate::identity::KEY_ISSUER;
use contract::surface::ListKind;
use policy::{
    AccessDecision, AccessRequest, ActorType, Caller, Explanation, Identity, IdentityProof,
    PolicyMatch,
};
use serde_json::{Value, json};

/// The most tools that one response explains.
const MAX_TOOLS: usize = 2_000;

impl AdminVisit {
    /// The tools of every server, each with whether the principal sees it and which policies
    /// decide.
    pub(super) fn principal_tools(&self, input: &AdminInput) -> Result<Value, AdminError> {
        let caller = self.principal(input)?;
        let policies = self.node.shared.authorizer.policies();
        let catalog = self.node.catalog();
        let org = caller.identity().org.as_deref();
        let only = input.query("server");
        let mut tools = Vec::new();
        let mut is_cut = false;
        for (id, known) in &catalog.servers {
            if only.is_some_and(|only| only != id.as_str()) {
                continue;
            }
            let list = known.situation.as_ref().and_then(|now| now.view.list(ListKind::Tools));
            let visible = policies.visible(&caller, id.as_str());
            let is_served = known.server.settings.serves(org);
            for (name, _) in list.iter().flat_map(|list| list.entries()) {
                is_cut |= tools.len() >= MAX_TOOLS;
                if is_cut {
                    break;
                }
                let request = AccessRequest::Call { server: id.as_str(), tool: name, input: None };
                let why = policies.explain(&caller, &request);
                let is_visible = is_served && visible.has_tool(name);
                tools.push(json!({
                    "server": id,
                    "tool": name,
                    "shown_as": known.server.settings.shown_name(name),
                    "visible": is_visible,
                    "call": decision(&why, is_visible),
                    "policies": deciding(&why),
                    "notes": why.notes,
                }));
            }
        }
        let identity = caller.identity();
        Ok(json!({
            "principal": {
                "issuer": identity.issuer,
                "sub": identity.subject,
                "actor_type": identity.actor_type.as_str(),
                "org": identity.org,
                "groups": identity.groups,
                "clearance": identity.clearance,
                "mfa": identity.mfa,
            },
            "tools": tools,
            "complete": !is_cut,
        }))
    }

    /// The principal of a static key as recorded. Tokens' subjects are not recorded, so for them
    /// the query states the claims.
    fn principal(&self, input: &AdminInput) -> Result<Caller, AdminError> {
        let subject = input.parameter("sub");
        let issuer = input.query("issuer").unwrap_or(KEY_ISSUER);
        let described = ["actor_type", "org", "group", "clearance", "mfa", "client_id"];
        let is_described = described.iter().any(|name| input.query(name).is_some());
        if issuer == KEY_ISSUER && !is_described {
            let known = self.node.who.load().caller_of_key(subject);
            return known.ok_or_else(|| {
                AdminError::Input(format!(
                    "no key stands for `{subject}`: name the `issuer` of its tokens, with `actor_type`, `org`, `group`, `clearance` and `mfa` as they say"
                ))
            });
        }
        let actor_type = match input.query("actor_type") {
            None | Some("agent") => ActorType::Agent,
            Some("user") => ActorType::User,
            Some("system") => ActorType::System,
            Some(_) => {
                let words = "`actor_type` is `agent`, `user` or `system`";
                return Err(AdminError::Input(words.to_owned()));
            }
        };
        let mut groups: Vec<String> = input.queries("group").map(str::to_owned).collect();
        groups.sort_unstable();
        groups.dedup();
        let text = |name: &str| input.query(name).map(str::to_owned);
        let is_key = issuer == KEY_ISSUER;
        Ok(Caller::new(Identity {
            issuer: issuer.to_owned(),
            subject: subject.to_owned(),
            actor_type,
            client_id: text("client_id"),
            org: text("org"),
            groups,
            clearance: text("clearance"),
            mfa: input.switch("mfa")?,
            proof: if is_key { IdentityProof::Key } else { IdentityProof::Token },
        }))
    }
}

/// The decision on a call without arguments, in one word.
fn decision(why: &Explanation, is_visible: bool) -> &'static str {
    match &why.decision {
        AccessDecision::Permit { approval_groups, .. } if approval_groups.is_empty() => "permitted",
        AccessDecision::Permit { .. } => "needs_approval",
        AccessDecision::Deny { .. } if is_visible => "depends_on_arguments",
        AccessDecision::Deny { reason } => reason.code(),
    }
}

/// The policies that matched, that could not be evaluated, or whose condition was not met.
fn deciding(why: &Explanation) -> Vec<Value> {
    let of_one = |outcome: &policy::PolicyOutcome| {
        let matched = match &outcome.matched {
            PolicyMatch::Matched => "matches",
            PolicyMatch::ConditionFalse => "condition_not_met",
            PolicyMatch::Failed { .. } => "failed",
            PolicyMatch::OtherPrincipal | PolicyMatch::OtherAction | PolicyMatch::OtherResource => {
                return None;
            }
        };
        Some(json!({
            "id": &*outcome.policy_id,
            "file": &*outcome.file,
            "line": outcome.line,
            "effect": if outcome.permits { "permit" } else { "forbid" },
            "outcome": matched,
        }))
    };
    why.policies.iter().filter_map(of_one).collect()
}
