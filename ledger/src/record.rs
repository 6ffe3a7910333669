//! The content of receipts: a decision before a call is dispatched, its outcome afterwards, and
//! events.
//!
//! Fields are declared in canonical order, so that serializing them in order gives the canonical
//! form. Nothing here can carry an argument, a result or a credential: there is no member for one,
//! and texts are cut at [`MAX_TEXT_BYTES`].

use crate::digits;
use contract::time::Timestamp;
use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

pub(crate) mod text;

pub use text::{MAX_TEXT_BYTES, MAX_WORDS, Text, Words};

/// A record to be written.
#[derive(Debug, Clone, Copy)]
pub enum Record<'a> {
    Decision(&'a Decision<'a>),
    Outcome(&'a Outcome),
    Event(&'a Event<'a>),
}

impl Record<'_> {
    pub fn ts(&self) -> Timestamp {
        match self {
            Record::Decision(decision) => decision.ts,
            Record::Outcome(outcome) => outcome.ts,
            Record::Event(event) => event.ts,
        }
    }
}

/// 128 random bits that identify a receipt, written as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReceiptId(pub [u8; 16]);

/// The text is not 32 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a receipt id has 32 hexadecimal digits")]
pub struct BadReceiptId;

impl fmt::Display for ReceiptId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for ReceiptId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ReceiptId({self})")
    }
}

impl FromStr for ReceiptId {
    type Err = BadReceiptId;

    fn from_str(text: &str) -> Result<Self, BadReceiptId> {
        // Lines have lower-case digits, but people may type others.
        let bytes = digits::decode(text.as_bytes())
            .or_else(|| digits::decode(text.to_ascii_lowercase().as_bytes()));
        bytes.map(ReceiptId).ok_or(BadReceiptId)
    }
}

impl Serialize for ReceiptId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        text::hex_digits::<16, 32, S>(self.0, serializer)
    }
}

/// SHA-256 or HMAC-SHA-256, written as 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest32(pub [u8; 32]);

impl Serialize for Digest32 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        text::hex_digits::<32, 64, S>(self.0, serializer)
    }
}

/// The decision on one request of a client, made before anything is dispatched.
#[derive(Debug, Clone)]
pub struct Decision<'a> {
    pub ts: Timestamp,
    pub receipt_id: ReceiptId,
    pub trace_id: Option<Text<'a>>,
    pub principal: Principal<'a>,
    pub mcp: Mcp<'a>,
    pub request: Request,
    pub decision: Ruling<'a>,
    pub token_handling: TokenHandling<'a>,
    pub sandbox: Option<Sandbox>,
    pub approval: Option<Approval<'a>>,
    pub drift: Option<Drift<'a>>,
    pub admission: Option<Admission<'a>>,
    pub incident_mode: bool,
    pub latency_us: Latency,
}

/// The caller of the request.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Principal<'a> {
    pub actor_type: ActorType,
    pub client_id: Option<Text<'a>>,
    pub org_id: Option<Text<'a>>,
    pub sub: Text<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ActorType {
    User,
    Agent,
    System,
}

/// The subject of the request.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Mcp<'a> {
    pub method: Text<'a>,
    pub server_id: Text<'a>,
    /// The tool, prompt or resource, under the name that the client used.
    pub tool_name: Option<Text<'a>>,
    pub trust_level: TrustLevel,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrustLevel {
    Internal,
    Verified,
    Community,
    Unknown,
}

/// The arguments, represented only by a hash and a size.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Request {
    pub args_hash: Option<Digest32>,
    /// How `args_hash` was computed.
    pub args_hash_kind: ArgsHashKind,
    pub size_bytes_in: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ArgsHashKind {
    /// HMAC-SHA-256 with a key of the home: equal arguments can be recognized, but guesses cannot
    /// be tested.
    Keyed,
    /// SHA-256.
    Plain,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub struct Ruling<'a> {
    pub policy_id: Option<Text<'a>>,
    pub reason_codes: Words<'a>,
    pub result: RulingResult,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RulingResult {
    Allow,
    Deny,
    RequireApproval,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub struct TokenHandling<'a> {
    pub audience: Option<Text<'a>>,
    pub mode: TokenMode,
    pub passthrough_detected: bool,
    /// The configured source of the credential for the server; `None` if none was sent.
    pub source: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenMode {
    Exchanged,
    Vault,
    Blocked,
    None,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub struct Sandbox {
    pub fs_policy: FsPolicy,
    pub level: SandboxLevel,
    pub net_policy: NetPolicy,
}

/// How strictly a server is confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxLevel {
    Full,
    Partial,
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FsPolicy {
    WorkspaceOnly,
    ReadOnly,
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NetPolicy {
    Allowlist,
    BlockAll,
    None,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub struct Approval<'a> {
    #[serde(serialize_with = "text::optional_moment")]
    pub approved_at: Option<Timestamp>,
    pub approved_by: Option<Text<'a>>,
    pub required: bool,
    pub step_up: StepUp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepUp {
    Mfa,
    None,
}

/// The findings of the drift gate.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Drift<'a> {
    pub definition_hash: BeforeAfter,
    pub entry_hash: BeforeAfter,
    /// What the verdict does and does not mean. Missing, like `verdict_scope`, if the provenance
    /// could not be computed.
    pub framing: Option<&'static str>,
    pub kinds: Words<'a>,
    pub safety_relevant: bool,
    pub tier_reached: u8,
    /// `PROCEED`, `HOLD` or `INCONCLUSIVE`.
    pub verdict: &'static str,
    pub verdict_scope: Option<&'static str>,
    /// The age of the observation that the verdict is based on.
    pub view_age_ms: u64,
}

#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct BeforeAfter {
    pub after: Option<Digest32>,
    pub before: Option<Digest32>,
}

/// The findings of attested admission.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Admission<'a> {
    /// The age of the cached result.
    pub age_ms: Option<u64>,
    pub clearance: Option<Text<'a>>,
    /// Set if a failure was tolerated.
    pub note: Option<&'static str>,
    /// The reason code, unless the verdict is `ok`.
    pub reason: Option<&'static str>,
    pub signer: Option<Text<'a>>,
    pub verdict: AdmissionVerdict,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AdmissionVerdict {
    Ok,
    Warn,
    Deny,
}

/// Microseconds spent by the gate itself and by the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Latency {
    pub ours: u64,
    pub theirs: Option<u64>,
}

/// The end of a dispatched request.
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    pub ts: Timestamp,
    pub receipt_id: ReceiptId,
    pub status: OutcomeStatus,
    pub size_bytes_out: u64,
    pub latency_us: Latency,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeStatus {
    Success,
    Error,
    Timeout,
}

/// Anything that is not a single request: a person's act, bookkeeping of a chain, an incident.
#[derive(Debug, Clone)]
pub struct Event<'a> {
    pub ts: Timestamp,
    /// `server.approve`, `chain.opened`, `incident.on`, …
    pub name: &'a str,
    /// The actor, if it was a person.
    pub by: Option<Text<'a>>,
    pub server_id: Option<Text<'a>>,
    /// Only hashes, counts and names, written by Holdpoint.
    pub data: Option<&'a serde_json::Value>,
}

#[cfg(test)]
mod tests;
