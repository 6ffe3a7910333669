//! Parses one line: its record and its position. Unknown members are ignored.

use super::document::{
    Admission, Approval, Drift, EventReceipt, Latency, Mcp, Outcome, Principal, Receipt,
    ReceiptState, Request, Ruling, Sandbox, TokenHandling, read_id, read_moment,
};
use super::reading::Position;
use crate::folder::{ChainId, SegmentNumber};
use crate::record::{ReceiptId, RulingResult};
use contract::time::Timestamp;
use serde::Deserialize;
use std::borrow::Cow;
use std::fmt;

/// The position of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spot {
    pub chain: ChainId,
    pub segment: SegmentNumber,
    /// The number of the line within the segment, counted from 1.
    pub line: u64,
    /// The start of the line, and of the line after it.
    pub start: Position,
    pub next: Position,
}

/// A problem to report, after which reading continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub chain: Option<ChainId>,
    pub segment: Option<SegmentNumber>,
    pub line: Option<u64>,
    /// A sentence that quotes nothing from the line.
    pub say: String,
}

impl fmt::Display for Note {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut start = "";
        if let Some(chain) = &self.chain {
            write!(formatter, "chain {chain}")?;
            start = ", ";
        }
        if let Some(segment) = self.segment {
            write!(formatter, "{start}segment {segment}")?;
            start = ", ";
        }
        if let Some(line) = self.line {
            write!(formatter, "{start}line {line}")?;
        }
        let colon = if self.chain.is_some() { ": " } else { "" };
        write!(formatter, "{colon}{}", self.say)
    }
}

/// The record in a line.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    Decision(Box<Decision>),
    Outcome { ts: Timestamp, seq: u64, hash: String, end: End },
    Event(EventReceipt),
}

impl Entry {
    pub fn ts(&self) -> Timestamp {
        match self {
            Entry::Decision(decision) => decision.ts,
            Entry::Outcome { ts, .. } => *ts,
            Entry::Event(event) => event.ts,
        }
    }
}

/// The end of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    pub receipt_id: ReceiptId,
    pub outcome: Outcome,
    pub latency_us: Latency,
}

/// A decision as recorded in its line.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Decision {
    #[serde(deserialize_with = "read_moment")]
    pub ts: Timestamp,
    #[serde(deserialize_with = "read_id")]
    pub receipt_id: ReceiptId,
    pub trace_id: Option<String>,
    pub principal: Principal,
    pub mcp: Mcp,
    pub request: Request,
    pub decision: Ruling,
    pub token_handling: TokenHandling,
    pub sandbox: Option<Sandbox>,
    pub approval: Option<Approval>,
    pub drift: Option<Drift>,
    pub admission: Option<Admission>,
    pub incident_mode: bool,
    pub latency_us: Latency,
    pub seq: u64,
    pub hash: String,
}

impl Decision {
    /// Whether an outcome is expected.
    pub fn is_dispatched(&self) -> bool {
        match self.decision.result {
            RulingResult::Allow => true,
            RulingResult::Deny | RulingResult::RequireApproval => false,
        }
    }

    /// The receipt while there is no outcome.
    pub fn into_receipt(self, chain: ChainId) -> Receipt {
        let state = if self.is_dispatched() { ReceiptState::Open } else { ReceiptState::Refused };
        Receipt {
            ts: self.ts,
            receipt_id: self.receipt_id,
            trace_id: self.trace_id,
            principal: self.principal,
            mcp: self.mcp,
            request: self.request,
            decision: self.decision,
            token_handling: self.token_handling,
            sandbox: self.sandbox,
            approval: self.approval,
            outcome: None,
            drift: self.drift,
            admission: self.admission,
            incident_mode: self.incident_mode,
            latency_us: self.latency_us,
            state,
            ended_at: None,
            chain,
            seq: self.seq,
            hash: self.hash,
            outcome_seq: None,
            outcome_hash: None,
        }
    }
}

impl Receipt {
    /// Adds the outcome.
    pub(super) fn end(&mut self, ts: Timestamp, seq: u64, hash: String, end: End) {
        self.outcome = Some(end.outcome);
        self.latency_us = end.latency_us;
        self.state = ReceiptState::Ended;
        self.ended_at = Some(ts);
        self.outcome_seq = Some(seq);
        self.outcome_hash = Some(hash);
    }
}

#[derive(Deserialize)]
struct Kind<'l> {
    #[serde(borrow)]
    record: Cow<'l, str>,
}

#[derive(Deserialize)]
struct OutcomeLine {
    #[serde(deserialize_with = "read_moment")]
    ts: Timestamp,
    #[serde(deserialize_with = "read_id")]
    receipt_id: ReceiptId,
    outcome: Outcome,
    latency_us: Latency,
    seq: u64,
    hash: String,
}

#[derive(Deserialize)]
struct EventLine {
    #[serde(deserialize_with = "read_moment")]
    ts: Timestamp,
    name: String,
    by: Option<String>,
    server_id: Option<String>,
    data: Option<serde_json::Value>,
    seq: u64,
    hash: String,
}

/// Parses a line, or says in a few fixed words what it is instead.
pub(super) fn read_line(bytes: &[u8], chain: &ChainId) -> Result<Entry, &'static str> {
    let kind: Kind<'_> = serde_json::from_slice(bytes).map_err(|error| unreadable(&error))?;
    match kind.record.as_ref() {
        "decision" => Ok(Entry::Decision(Box::new(parse(bytes)?))),
        "outcome" => {
            let OutcomeLine { ts, receipt_id, outcome, latency_us, seq, hash } = parse(bytes)?;
            Ok(Entry::Outcome { ts, seq, hash, end: End { receipt_id, outcome, latency_us } })
        }
        "event" => {
            let EventLine { ts, name, by, server_id, data, seq, hash } = parse(bytes)?;
            let chain = chain.clone();
            Ok(Entry::Event(EventReceipt { ts, name, by, server_id, data, chain, seq, hash }))
        }
        _ => Err("a kind of record that is not known"),
    }
}

fn parse<'l, T: Deserialize<'l>>(bytes: &'l [u8]) -> Result<T, &'static str> {
    serde_json::from_slice(bytes).map_err(|error| unreadable(&error))
}

/// The reason for a parse error. The parser's own message is not used, because it quotes the line.
fn unreadable(error: &serde_json::Error) -> &'static str {
    if error.is_data() { "JSON that is no record of a receipt or of an event" } else { "not JSON" }
}
