//! Decision tables: expected decisions in TOML, which `holdpoint policy test` runs against the
//! policies.

use crate::caller::Caller;
use crate::identity::{ActorType, Identity, IdentityProof};
use crate::policies::Policies;
use crate::request::{AccessDecision, AccessRequest, AdminAction, AdminTarget};
use serde::Deserialize;
use std::fmt;

/// The most cases in one table.
const MAX_CASES: usize = 10_000;

/// Why a table is invalid.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    #[error("the table is not valid: {0}")]
    Toml(#[from] toml::de::Error),
    #[error("case {number}: {sentence}")]
    Case { number: usize, sentence: &'static str },
    #[error("the table has no cases")]
    Empty,
    #[error("the table has more than {MAX_CASES} cases")]
    TooLong,
}

/// Expected decisions.
#[derive(Debug)]
pub struct DecisionTable {
    cases: Vec<Case>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTable {
    #[serde(default)]
    case: Vec<RawCase>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCase {
    name: Option<String>,
    /// The subject.
    #[serde(rename = "as")]
    subject: String,
    issuer: Option<String>,
    #[serde(default)]
    groups: Vec<String>,
    org: Option<String>,
    #[serde(default)]
    actor: Actor,
    client_id: Option<String>,
    clearance: Option<String>,
    #[serde(default)]
    mfa: bool,
    #[serde(default)]
    proof: Proof,
    tool: Option<String>,
    input: Option<toml::Table>,
    prompt: Option<String>,
    resource: Option<String>,
    #[serde(rename = "use")]
    used: Option<String>,
    admin: Option<Admin>,
    /// The server of `resource` and `admin`.
    server: Option<String>,
    expect: Expect,
    policy: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Actor {
    #[default]
    User,
    Agent,
    System,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Proof {
    #[default]
    Token,
    Key,
    Certificate,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Admin {
    Audit,
    Approve,
    Grant,
    Operate,
}

/// What a case expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Expect {
    Permit,
    Deny,
    Approval,
}

impl fmt::Display for Expect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Expect::Permit => "permit",
            Expect::Deny => "deny",
            Expect::Approval => "approval",
        })
    }
}

#[derive(Debug)]
struct Case {
    name: String,
    caller: Caller,
    asked: Asked,
    expect: Expect,
    policy: Option<String>,
}

#[derive(Debug)]
enum Asked {
    Call { server: String, tool: String, input: Vec<u8> },
    Get { server: String, prompt: String },
    Read { server: String, uri: String },
    Use { server: String },
    Admin { action: AdminAction, server: Option<String> },
}

/// The result of one case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseResult {
    /// Counted from 1.
    pub number: usize,
    pub name: String,
    pub expected: Expect,
    pub expected_policy: Option<String>,
    pub found: AccessDecision,
    pub passed: bool,
}

impl CaseResult {
    /// The actual decision, in the terms of a table.
    pub fn outcome(&self) -> Expect {
        outcome(&self.found)
    }
}

impl fmt::Display for CaseResult {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = |policy: Option<&str>| policy.map(|id| format!(" by `{id}`")).unwrap_or_default();
        let word = if self.passed { "pass" } else { "FAIL" };
        write!(formatter, "{word} {} {}", self.number, self.name)?;
        if !self.passed {
            let expected = by(self.expected_policy.as_deref());
            let found = by(self.found.policy_id());
            let outcome = outcome(&self.found);
            write!(formatter, ": expected {}{expected}, got {outcome}{found}", self.expected)?;
        }
        Ok(())
    }
}

impl DecisionTable {
    /// Parses a table. A case without an issuer uses `default_issuer`.
    ///
    /// # Errors
    /// Fails if the text is not a valid table, or a case does not contain exactly one request.
    pub fn parse(text: &str, default_issuer: &str) -> Result<DecisionTable, TableError> {
        let raw: RawTable = toml::from_str(text)?;
        if raw.case.is_empty() {
            return Err(TableError::Empty);
        }
        if raw.case.len() > MAX_CASES {
            return Err(TableError::TooLong);
        }
        let cases = raw.case.into_iter().enumerate().map(|(at, case)| {
            let number = at + 1;
            read_case(case, default_issuer)
                .map_err(|sentence| TableError::Case { number, sentence })
        });
        Ok(DecisionTable { cases: cases.collect::<Result<_, _>>()? })
    }

    pub fn run(&self, policies: &Policies) -> Vec<CaseResult> {
        let cases = self.cases.iter().enumerate();
        cases.map(|(at, case)| case.run(at + 1, policies)).collect()
    }
}

impl Case {
    fn run(&self, number: usize, policies: &Policies) -> CaseResult {
        let found = policies.decide(&self.caller, &self.asked.request());
        let policy_fits =
            self.policy.as_deref().is_none_or(|policy| found.policy_id() == Some(policy));
        CaseResult {
            number,
            name: self.name.clone(),
            expected: self.expect,
            expected_policy: self.policy.clone(),
            passed: outcome(&found) == self.expect && policy_fits,
            found,
        }
    }
}

impl Asked {
    fn request(&self) -> AccessRequest<'_> {
        match self {
            Asked::Call { server, tool, input } => {
                AccessRequest::Call { server, tool, input: Some(input) }
            }
            Asked::Get { server, prompt } => AccessRequest::Get { server, prompt },
            Asked::Read { server, uri } => AccessRequest::Read { server, uri },
            Asked::Use { server } => AccessRequest::Use { server },
            Asked::Admin { action, server } => {
                let on = server.as_deref().map_or(AdminTarget::Gateway, AdminTarget::Server);
                AccessRequest::Admin { action: *action, on }
            }
        }
    }
}

fn outcome(decision: &AccessDecision) -> Expect {
    match decision {
        AccessDecision::Permit { approval_groups, .. } if approval_groups.is_empty() => {
            Expect::Permit
        }
        AccessDecision::Permit { .. } => Expect::Approval,
        AccessDecision::Deny { .. } => Expect::Deny,
    }
}

fn read_case(raw: RawCase, default_issuer: &str) -> Result<Case, &'static str> {
    let split = |name: &str| {
        let (server, rest) = name.split_once("__").ok_or("a name is `server__name`")?;
        Ok::<_, &'static str>((server.to_owned(), rest.to_owned()))
    };
    if raw.input.is_some() && raw.tool.is_none() {
        return Err("`input` belongs to a `tool`");
    }
    let input = match raw.input {
        Some(table) => serde_json::to_vec(&table).map_err(|_| "`input` is not JSON")?,
        None => b"{}".to_vec(),
    };
    let one = "name one of `tool`, `prompt`, `resource` with `server`, `use`, `admin`";
    let (shown, asked) = match (raw.tool, raw.prompt, raw.resource, raw.used, raw.admin) {
        (Some(name), None, None, None, None) => {
            let (server, tool) = split(&name)?;
            (name, Asked::Call { server, tool, input })
        }
        (None, Some(name), None, None, None) => {
            let (server, prompt) = split(&name)?;
            (name, Asked::Get { server, prompt })
        }
        (None, None, Some(uri), None, None) => {
            let server = raw.server.ok_or("`resource` needs `server`")?;
            (uri.clone(), Asked::Read { server, uri })
        }
        (None, None, None, Some(server), None) => (server.clone(), Asked::Use { server }),
        (None, None, None, None, Some(action)) => {
            let action = match action {
                Admin::Audit => AdminAction::Audit,
                Admin::Approve => AdminAction::Approve,
                Admin::Grant => AdminAction::Grant,
                Admin::Operate => AdminAction::Operate,
            };
            (action.as_str().to_owned(), Asked::Admin { action, server: raw.server })
        }
        _ => return Err(one),
    };
    let mut groups = raw.groups;
    groups.sort();
    groups.dedup();
    let subject = raw.subject;
    let name = raw.name.unwrap_or_else(|| format!("{subject} {shown}"));
    let identity = Identity {
        issuer: raw.issuer.unwrap_or_else(|| default_issuer.to_owned()),
        subject,
        actor_type: match raw.actor {
            Actor::User => ActorType::User,
            Actor::Agent => ActorType::Agent,
            Actor::System => ActorType::System,
        },
        client_id: raw.client_id,
        org: raw.org,
        groups,
        clearance: raw.clearance,
        mfa: raw.mfa,
        proof: match raw.proof {
            Proof::Token => IdentityProof::Token,
            Proof::Key => IdentityProof::Key,
            Proof::Certificate => IdentityProof::Certificate,
        },
    };
    let caller = Caller::new(identity);
    Ok(Case { name, caller, asked, expect: raw.expect, policy: raw.policy })
}
