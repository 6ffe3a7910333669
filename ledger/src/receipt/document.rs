//! The assembled receipt. Members are in the order in which they are printed.

use crate::folder::ChainId;
use crate::record::{OutcomeStatus, ReceiptId, RulingResult};
use contract::time::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An item to list or export.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Item {
    Receipt(Box<Receipt>),
    Event(EventReceipt),
}

impl Item {
    pub fn ts(&self) -> Timestamp {
        match self {
            Item::Receipt(receipt) => receipt.ts,
            Item::Event(event) => event.ts,
        }
    }

    pub fn chain(&self) -> &ChainId {
        match self {
            Item::Receipt(receipt) => &receipt.chain,
            Item::Event(event) => &event.chain,
        }
    }

    pub fn seq(&self) -> u64 {
        match self {
            Item::Receipt(receipt) => receipt.seq,
            Item::Event(event) => event.seq,
        }
    }
}

/// A decision with its outcome.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Receipt {
    #[serde(serialize_with = "write_moment")]
    pub ts: Timestamp,
    pub receipt_id: ReceiptId,
    pub trace_id: Option<String>,
    pub principal: Principal,
    pub mcp: Mcp,
    pub request: Request,
    pub decision: Ruling,
    pub token_handling: TokenHandling,
    pub sandbox: Option<Sandbox>,
    pub approval: Option<Approval>,
    pub outcome: Option<Outcome>,
    pub drift: Option<Drift>,
    pub admission: Option<Admission>,
    pub incident_mode: bool,
    pub latency_us: Latency,
    pub state: ReceiptState,
    #[serde(serialize_with = "write_optional_moment")]
    pub ended_at: Option<Timestamp>,
    pub chain: ChainId,
    /// The position and hash of the decision's line, followed by those of the outcome's line.
    pub seq: u64,
    pub hash: String,
    pub outcome_seq: Option<u64>,
    pub outcome_hash: Option<String>,
}

/// The state of a call, as far as the ledger knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReceiptState {
    /// It was denied or needs approval: it was not dispatched and will have no outcome.
    Refused,
    /// It was dispatched and its outcome is recorded.
    Ended,
    /// It was dispatched, but has no recorded outcome yet.
    Open,
    /// It was dispatched, but its process ended without recording an outcome.
    NoOutcome,
}

impl ReceiptState {
    pub const fn as_str(self) -> &'static str {
        match self {
            ReceiptState::Refused => "refused",
            ReceiptState::Ended => "ended",
            ReceiptState::Open => "open",
            ReceiptState::NoOutcome => "no_outcome",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    pub sub: String,
    pub actor_type: String,
    pub client_id: Option<String>,
    pub org_id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mcp {
    pub method: String,
    pub server_id: String,
    pub tool_name: Option<String>,
    pub trust_level: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    pub args_hash: Option<String>,
    pub args_hash_kind: String,
    pub size_bytes_in: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ruling {
    #[serde(deserialize_with = "read_result")]
    pub result: RulingResult,
    pub policy_id: Option<String>,
    pub reason_codes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenHandling {
    pub mode: String,
    pub audience: Option<String>,
    pub passthrough_detected: bool,
    /// Missing in receipts of earlier versions.
    #[serde(default)]
    pub source: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    /// Missing in receipts of earlier versions.
    #[serde(default)]
    pub level: Option<String>,
    pub fs_policy: String,
    pub net_policy: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    pub required: bool,
    pub approved_by: Option<String>,
    pub approved_at: Option<String>,
    pub step_up: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    #[serde(deserialize_with = "read_status")]
    pub status: OutcomeStatus,
    pub size_bytes_out: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drift {
    pub verdict: String,
    pub kinds: Vec<String>,
    pub definition_hash: BeforeAfter,
    pub entry_hash: BeforeAfter,
    pub tier_reached: u8,
    /// Missing in receipts of earlier versions, like the next two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict_scope: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub framing: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub safety_relevant: Option<bool>,
    pub view_age_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BeforeAfter {
    pub before: Option<String>,
    pub after: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admission {
    pub verdict: String,
    /// Missing in lines of earlier releases, like the note.
    #[serde(default)]
    pub reason: Option<String>,
    #[serde(default)]
    pub note: Option<String>,
    pub signer: Option<String>,
    pub clearance: Option<String>,
    pub age_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Latency {
    pub ours: u64,
    pub theirs: Option<u64>,
}

/// An event, which does not belong to a single request.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EventReceipt {
    #[serde(serialize_with = "write_moment")]
    pub ts: Timestamp,
    pub name: String,
    pub by: Option<String>,
    pub server_id: Option<String>,
    pub data: Option<serde_json::Value>,
    pub chain: ChainId,
    pub seq: u64,
    pub hash: String,
}

impl EventReceipt {
    /// Whether the event is bookkeeping of the chains, which most readers are not interested in.
    pub fn is_bookkeeping(&self) -> bool {
        self.name.starts_with("chain.")
    }
}

pub(crate) const fn result_word(result: RulingResult) -> &'static str {
    match result {
        RulingResult::Allow => "allow",
        RulingResult::Deny => "deny",
        RulingResult::RequireApproval => "require_approval",
    }
}

pub(crate) const fn status_word(status: OutcomeStatus) -> &'static str {
    match status {
        OutcomeStatus::Success => "success",
        OutcomeStatus::Error => "error",
        OutcomeStatus::Timeout => "timeout",
    }
}

impl Ruling {
    /// The result as written in the ledger.
    pub const fn word(&self) -> &'static str {
        result_word(self.result)
    }
}

impl Outcome {
    /// The status as written in the ledger.
    pub const fn word(&self) -> &'static str {
        status_word(self.status)
    }
}

fn read_result<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RulingResult, D::Error> {
    let word = String::deserialize(deserializer)?;
    let known = [RulingResult::Allow, RulingResult::Deny, RulingResult::RequireApproval];
    let found = known.into_iter().find(|result| result_word(*result) == word);
    found.ok_or_else(|| serde::de::Error::custom("a result that is not known"))
}

fn read_status<'de, D: Deserializer<'de>>(deserializer: D) -> Result<OutcomeStatus, D::Error> {
    let word = String::deserialize(deserializer)?;
    let known = [OutcomeStatus::Success, OutcomeStatus::Error, OutcomeStatus::Timeout];
    let found = known.into_iter().find(|status| status_word(*status) == word);
    found.ok_or_else(|| serde::de::Error::custom("a status that is not known"))
}

pub(super) fn read_moment<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Timestamp, D::Error> {
    let text = String::deserialize(deserializer)?;
    Timestamp::parse(&text).ok_or_else(|| serde::de::Error::custom("no moment"))
}

pub(super) fn read_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ReceiptId, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
}

fn write_moment<S: Serializer>(moment: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&moment.precise())
}

fn write_optional_moment<S: Serializer>(
    moment: &Option<Timestamp>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match moment {
        Some(moment) => write_moment(moment, serializer),
        None => serializer.serialize_none(),
    }
}
