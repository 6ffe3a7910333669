//! One line of a chain: how it is written, and how it is read back in a single pass over its bytes.
//!
//! A line is the canonical JSON of its record. Its `hash` is over the line with the member `hash` cut out, so writing
//! and checking it need no second form of the line.

use crate::digits;
use crate::folder::MAX_LINE_BYTES;
use crate::record::{
    Admission, Approval, Decision, Digest32, Drift, Event, Latency, Mcp, Outcome, OutcomeStatus,
    Principal, ReceiptId, Record, Request, Ruling, Sandbox, Text, TokenHandling,
};
use contract::canonical::{Position, canonical_text};
use contract::json::Document;
use contract::time::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use std::fmt;

mod json;
mod scan;

pub(crate) use scan::is_torn;
pub use scan::{BadLine, Line, LineKind, MAX_NESTING, scan};

/// The hash of one line, which the next line names as `prev`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct LineHash(pub [u8; 32]);

impl LineHash {
    /// What the first line of a chain has as `prev`.
    pub const NONE: LineHash = LineHash([0; 32]);
}

impl fmt::Display for LineHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for LineHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "LineHash({self})")
    }
}

impl Serialize for LineHash {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Digest32(self.0).serialize(serializer)
    }
}

impl std::str::FromStr for LineHash {
    type Err = contract::hash::BadHash;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        digits::decode(text.as_bytes()).map(LineHash).ok_or(contract::hash::BadHash)
    }
}

/// Why a record cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    #[error("a line of {0} bytes is longer than {MAX_LINE_BYTES}")]
    TooLong(usize),
    #[error("a record that JSON cannot say: {0}")]
    Json(#[from] serde_json::Error),
    #[error("an event's data that has no canonical form: {0}")]
    Data(#[from] contract::json::ReadError),
}

/// Where a line stands in its chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub seq: u64,
    pub prev: LineHash,
}

const HASH_NAME: &[u8] = b"\"hash\":\"";
const HASH_DIGITS: usize = 64;

/// What most lines have room in.
const USUAL_LINE_BYTES: usize = 2_048;

/// Appends a record's line, with its newline, to `out`. After an error `out` holds nothing more than before.
pub fn encode(
    record: &Record<'_>,
    place: Place,
    out: &mut Vec<u8>,
) -> Result<LineHash, EncodeError> {
    Encoder::default().encode(record, place, out)
}

/// Writes the lines of one chain.
#[derive(Debug, Default)]
pub struct Encoder {
    beginning: Beginning,
}

impl Encoder {
    /// See [`encode`].
    pub fn encode(
        &mut self,
        record: &Record<'_>,
        place: Place,
        out: &mut Vec<u8>,
    ) -> Result<LineHash, EncodeError> {
        let start = out.len();
        out.reserve(USUAL_LINE_BYTES);
        let written = self.write_line(record, place, out, start);
        if written.is_err() {
            out.truncate(start);
        }
        written
    }

    fn write_line(
        &mut self,
        record: &Record<'_>,
        place: Place,
        out: &mut Vec<u8>,
        start: usize,
    ) -> Result<LineHash, EncodeError> {
        match record {
            Record::Decision(decision) => {
                json::write(&DecisionHead::of(decision), out)?;
                self.write_rest(out, start, &DecisionTail::of(decision, place))
            }
            Record::Outcome(outcome) => {
                out.extend_from_slice(b"{}");
                self.write_rest(out, start, &OutcomeTail::of(outcome, place))
            }
            Record::Event(event) => {
                let data = event.data.map(canonical_data).transpose()?;
                serde_json::to_writer(&mut *out, &EventHead { by: event.by, data })?;
                self.write_rest(out, start, &EventTail::of(event, place))
            }
        }
    }

    /// `out` holds the members before `hash` as an object of their own; the rest follows with the hash over both.
    fn write_rest(
        &mut self,
        out: &mut Vec<u8>,
        start: usize,
        tail: &impl Serialize,
    ) -> Result<LineHash, EncodeError> {
        let (hash, digits_at) = self.write_members(out, start, tail)?;
        if let Some(digits) = out.get_mut(digits_at..digits_at + HASH_DIGITS) {
            digits.copy_from_slice(&digits::encode::<32, HASH_DIGITS>(&hash.0));
        }
        out.push(b'\n');
        let length = out.len() - start;
        if length > MAX_LINE_BYTES { Err(EncodeError::TooLong(length)) } else { Ok(hash) }
    }

    fn write_members(
        &mut self,
        out: &mut Vec<u8>,
        start: usize,
        tail: &impl Serialize,
    ) -> Result<(LineHash, usize), EncodeError> {
        out.pop();
        if out.last() != Some(&b'{') {
            out.push(b',');
        }
        let hash_at = out.len();
        out.extend_from_slice(HASH_NAME);
        let digits_at = out.len();
        out.extend_from_slice(&[b'0'; HASH_DIGITS]);
        out.push(b'"');
        // The tail's opening brace becomes the comma after the hash.
        let comma_at = out.len();
        json::write(tail, out)?;
        if let Some(brace) = out.get_mut(comma_at) {
            *brace = b',';
        }
        let before = out.get(start..hash_at).unwrap_or_default();
        let after = out.get(comma_at + 1..).unwrap_or_default();
        Ok((self.beginning.hash(before, after), digits_at))
    }
}

/// The hash over the bytes from `start`, those between `cut_from` and `cut_to` left out.
fn hash_without(bytes: &[u8], start: usize, cut_from: usize, cut_to: usize) -> LineHash {
    let mut state = Sha256::new();
    state.update(bytes.get(start..cut_from).unwrap_or_default());
    state.update(bytes.get(cut_to..).unwrap_or_default());
    LineHash(state.finalize().into())
}

/// What the line before began with, and the hash over that. Decisions on one tool begin alike, with the hashes of its
/// contract: that is a third of the line, and hashing it costs more than seeing that it is the same.
#[derive(Debug, Default)]
struct Beginning {
    bytes: Vec<u8>,
    state: Sha256,
}

impl Beginning {
    /// A beginning ends where the hash function's block does, and before what differs from call to call.
    const BLOCK: usize = 64;
    const DIFFERING: usize = 24;

    /// The hash over a line of two parts.
    fn hash(&mut self, before: &[u8], after: &[u8]) -> LineHash {
        let blocks = before.len().saturating_sub(Self::DIFFERING) / Self::BLOCK;
        let (beginning, rest) =
            before.split_at_checked(blocks * Self::BLOCK).unwrap_or((&[], before));
        let mut state = if beginning.is_empty() {
            Sha256::new()
        } else {
            if beginning != self.bytes {
                self.state = Sha256::new_with_prefix(beginning);
                self.bytes.clear();
                self.bytes.extend_from_slice(beginning);
            }
            self.state.clone()
        };
        state.update(rest);
        state.update(after);
        LineHash(state.finalize().into())
    }
}

/// Events are rare: their data takes the long way through the canonical form.
fn canonical_data(data: &serde_json::Value) -> Result<Box<RawValue>, EncodeError> {
    let text = data.to_string();
    let canonical = canonical_text(Document::parse(&text)?.root(), Position::Plain);
    Ok(RawValue::from_string(canonical)?)
}

/// A moment as the ledger writes it.
#[derive(Debug, Clone, Copy)]
struct Moment(Timestamp);

impl Serialize for Moment {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        crate::record::text::moment(self.0, serializer)
    }
}

#[derive(Serialize)]
struct DecisionHead<'a> {
    admission: &'a Option<Admission<'a>>,
    approval: &'a Option<Approval<'a>>,
    decision: Ruling<'a>,
    drift: &'a Option<Drift<'a>>,
}

impl<'a> DecisionHead<'a> {
    fn of(decision: &'a Decision<'a>) -> Self {
        DecisionHead {
            admission: &decision.admission,
            approval: &decision.approval,
            decision: decision.decision,
            drift: &decision.drift,
        }
    }
}

#[derive(Serialize)]
struct DecisionTail<'a> {
    incident_mode: bool,
    latency_us: Latency,
    mcp: Mcp<'a>,
    prev: LineHash,
    principal: Principal<'a>,
    receipt_id: ReceiptId,
    record: &'static str,
    request: Request,
    sandbox: Option<Sandbox>,
    seq: u64,
    token_handling: TokenHandling<'a>,
    trace_id: Option<Text<'a>>,
    ts: Moment,
}

impl<'a> DecisionTail<'a> {
    fn of(decision: &Decision<'a>, place: Place) -> Self {
        DecisionTail {
            incident_mode: decision.incident_mode,
            latency_us: decision.latency_us,
            mcp: decision.mcp,
            prev: place.prev,
            principal: decision.principal,
            receipt_id: decision.receipt_id,
            record: "decision",
            request: decision.request,
            sandbox: decision.sandbox,
            seq: place.seq,
            token_handling: decision.token_handling,
            trace_id: decision.trace_id,
            ts: Moment(decision.ts),
        }
    }
}

#[derive(Serialize)]
struct OutcomeTail {
    latency_us: Latency,
    outcome: OutcomeMember,
    prev: LineHash,
    receipt_id: ReceiptId,
    record: &'static str,
    seq: u64,
    ts: Moment,
}

#[derive(Serialize)]
struct OutcomeMember {
    size_bytes_out: u64,
    status: OutcomeStatus,
}

impl OutcomeTail {
    fn of(outcome: &Outcome, place: Place) -> Self {
        OutcomeTail {
            latency_us: outcome.latency_us,
            outcome: OutcomeMember {
                size_bytes_out: outcome.size_bytes_out,
                status: outcome.status,
            },
            prev: place.prev,
            receipt_id: outcome.receipt_id,
            record: "outcome",
            seq: place.seq,
            ts: Moment(outcome.ts),
        }
    }
}

#[derive(Serialize)]
struct EventHead<'a> {
    by: Option<Text<'a>>,
    data: Option<Box<RawValue>>,
}

#[derive(Serialize)]
struct EventTail<'a> {
    name: Text<'a>,
    prev: LineHash,
    record: &'static str,
    seq: u64,
    server_id: Option<Text<'a>>,
    ts: Moment,
}

impl<'a> EventTail<'a> {
    fn of(event: &Event<'a>, place: Place) -> Self {
        EventTail {
            name: Text(event.name),
            prev: place.prev,
            record: "event",
            seq: place.seq,
            server_id: event.server_id,
            ts: Moment(event.ts),
        }
    }
}

#[cfg(test)]
mod tests;
