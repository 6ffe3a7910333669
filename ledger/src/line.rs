//! One line of a chain: how it is written, and how it is read back in a single pass over its bytes.
//!
//! A line is the canonical JSON of its record. Its `hash` is over the line with the member `hash` cut out, so writing
//! and checking it need no second form of the line. It is written in two steps: a [`Draft`] first, by any thread, then
//! its place in the chain, by the one that holds it.

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

/// What a place in a chain adds to a line at most: the member `hash`, the digits of `prev` and those of `seq`.
const MAX_PLACE_BYTES: usize =
    HASH_NAME.len() + HASH_DIGITS + 2 + HASH_DIGITS + digits::MAX_DECIMAL_DIGITS;

/// The length of most lines, at most.
const USUAL_LINE_BYTES: usize = 2_048;

/// What a buffer keeps after a line that was much longer.
const MAX_KEPT_BYTES: usize = 8 * USUAL_LINE_BYTES;

/// Appends a record's line, with its newline, to `out`. After an error `out` holds nothing more than before.
pub fn encode(
    record: &Record<'_>,
    place: Place,
    out: &mut Vec<u8>,
) -> Result<LineHash, EncodeError> {
    Ok(Encoder::default().draft(record)?.place(place, out))
}

/// Encodes records. It is used again and again: it keeps its buffer, and what the lines have in common.
#[derive(Debug, Default)]
pub struct Encoder {
    bytes: Vec<u8>,
    outline: Outline,
    beginnings: Beginnings,
    moments: Moments,
}

impl Encoder {
    /// Does all of a line that does not depend on its place in a chain.
    pub fn draft(&mut self, record: &Record<'_>) -> Result<Draft<'_>, EncodeError> {
        let out = &mut self.bytes;
        out.clear();
        out.shrink_to(MAX_KEPT_BYTES);
        out.reserve(USUAL_LINE_BYTES);
        let gaps = match record {
            Record::Decision(decision) => {
                json::write(&DecisionHead::of(decision), out)?;
                write_parts(out, &decision_parts(decision))?
            }
            Record::Outcome(outcome) => write_parts(out, &outcome_parts(outcome))?,
            Record::Event(event) => {
                let data = event.data.map(canonical_data).transpose()?;
                serde_json::to_writer(&mut *out, &EventHead { by: event.by, data })?;
                write_parts(out, &event_parts(event))?
            }
        };
        self.moments.push(record.ts(), out);
        out.extend_from_slice(b"\"}\n");
        let longest = out.len() + MAX_PLACE_BYTES;
        if longest > MAX_LINE_BYTES {
            return Err(EncodeError::TooLong(longest));
        }
        let (state, hashed) = self.beginnings.hash(out, gaps);
        let is_outcome = matches!(record, Record::Outcome(_));
        self.outline = Outline { ts: record.ts(), is_outcome, gaps, state, hashed };
        Ok(Draft { bytes: &self.bytes, outline: &self.outline })
    }
}

/// A line without its place in a chain: `hash` and the values of `prev` and `seq` are missing. Little is left to do for
/// the thread that holds the chain.
#[derive(Debug, Clone, Copy)]
pub struct Draft<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) outline: &'a Outline,
}

/// What is known of a draft in addition to its bytes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outline {
    ts: Timestamp,
    is_outcome: bool,
    gaps: Gaps,
    /// The hash function's state after the first bytes, whole blocks of them.
    state: Sha256,
    hashed: usize,
}

/// Where in a draft the member `hash`, the digits of `prev` and those of `seq` are missing.
#[derive(Debug, Clone, Copy, Default)]
struct Gaps {
    hash: usize,
    prev: usize,
    seq: usize,
}

impl Draft<'_> {
    pub fn ts(&self) -> Timestamp {
        self.outline.ts
    }

    pub fn is_outcome(&self) -> bool {
        self.outline.is_outcome
    }

    /// Appends the line, with its newline, to `out`.
    pub fn place(&self, place: Place, out: &mut Vec<u8>) -> LineHash {
        contract::trip::trip("ledger", self.bytes);
        let Gaps { hash: hash_at, prev: prev_at, seq: seq_at } = self.outline.gaps;
        let bytes = |from: usize, to: usize| self.bytes.get(from..to).unwrap_or_default();
        out.reserve(self.bytes.len() + MAX_PLACE_BYTES);
        let start = out.len();
        out.extend_from_slice(bytes(0, hash_at));
        let name_at = out.len();
        out.extend_from_slice(HASH_NAME);
        let digits_at = out.len();
        out.extend_from_slice(&[b'0'; HASH_DIGITS]);
        out.extend_from_slice(b"\",");
        let behind = out.len();
        out.extend_from_slice(bytes(hash_at, prev_at));
        out.extend_from_slice(&digits::encode::<32, HASH_DIGITS>(&place.prev.0));
        out.extend_from_slice(bytes(prev_at, seq_at));
        digits::push_decimal(place.seq, out);
        out.extend_from_slice(bytes(seq_at, self.bytes.len()));
        let mut state = self.outline.state.clone();
        let rest = match self.outline.hashed.checked_sub(hash_at) {
            Some(hashed) => behind + hashed,
            None => {
                state.update(out.get(start + self.outline.hashed..name_at).unwrap_or_default());
                behind
            }
        };
        state.update(out.get(rest..out.len() - 1).unwrap_or_default());
        let hash = LineHash(state.finalize().into());
        if let Some(digits) = out.get_mut(digits_at..digits_at + HASH_DIGITS) {
            digits.copy_from_slice(&digits::encode::<32, HASH_DIGITS>(&hash.0));
        }
        hash
    }
}

/// The members of a record that follow `hash`, in three parts: before `prev`, up to `seq`, and up to `ts`, the last.
type Parts<A, B, C> = (A, B, C);

/// `out` holds nothing, or the members before `hash` as an object of their own. The others follow, up to the value of `ts`.
fn write_parts(
    out: &mut Vec<u8>,
    (before_prev, before_seq, rest): &Parts<impl Serialize, impl Serialize, impl Serialize>,
) -> Result<Gaps, EncodeError> {
    let is_first = out.pop().is_none();
    let hash = out.len() + 1;
    write_part(out, before_prev)?;
    if is_first && let Some(brace) = out.first_mut() {
        *brace = b'{';
    }
    out.extend_from_slice(b",\"prev\":\"");
    let prev = out.len();
    out.push(b'"');
    write_part(out, before_seq)?;
    out.extend_from_slice(b",\"seq\":");
    let seq = out.len();
    write_part(out, rest)?;
    if out.last() != Some(&b',') {
        out.push(b',');
    }
    out.extend_from_slice(b"\"ts\":\"");
    Ok(Gaps { hash, prev, seq })
}

/// Appends the members of a structure, a comma before each.
fn write_part(out: &mut Vec<u8>, part: &impl Serialize) -> Result<(), EncodeError> {
    let brace_at = out.len();
    json::write(part, out)?;
    out.pop();
    if let Some(brace) = out.get_mut(brace_at) {
        *brace = b',';
    }
    Ok(())
}

/// The hash over the bytes from `start`, those between `cut_from` and `cut_to` left out.
fn hash_without(bytes: &[u8], start: usize, cut_from: usize, cut_to: usize) -> LineHash {
    let mut state = Sha256::new();
    state.update(bytes.get(start..cut_from).unwrap_or_default());
    state.update(bytes.get(cut_to..).unwrap_or_default());
    LineHash(state.finalize().into())
}

/// What the lines before began with, and the hashes over that. Decisions on one tool begin alike, with the hashes of its
/// contract: that is a third of the line, and hashing it costs more than seeing that it is the same.
#[derive(Debug, Default)]
struct Beginnings {
    /// Each has one place, by [`Beginnings::place`]. Made with the first of them.
    known: Vec<Beginning>,
}

#[derive(Debug, Clone, Default)]
struct Beginning {
    bytes: Vec<u8>,
    state: Sha256,
}

impl Beginnings {
    /// Some dozen tools may be called in turn.
    const PLACES: usize = 64;
    /// A beginning ends where the hash function's block does, and before what differs from call to call.
    const BLOCK: usize = 64;
    const DIFFERING: usize = 24;
    /// Longer ones are those of events, which have nothing in common.
    const MAX_BYTES: usize = 2_048;

    /// The hash over all whole blocks before `prev`, and how many bytes they are.
    fn hash(&mut self, draft: &[u8], gaps: Gaps) -> (Sha256, usize) {
        let blocks = |bytes: usize| bytes / Self::BLOCK * Self::BLOCK;
        let hashed = blocks(gaps.prev);
        let alike = Some(blocks(gaps.hash.saturating_sub(Self::DIFFERING)))
            .filter(|alike| (1..=Self::MAX_BYTES).contains(alike));
        let mut state = match alike.and_then(|alike| draft.get(..alike)) {
            None => Sha256::new(),
            Some(beginning) => self.known(beginning),
        };
        state.update(draft.get(alike.unwrap_or(0)..hashed).unwrap_or_default());
        (state, hashed)
    }

    /// The hash over a beginning, which is remembered in the place of the one that was there before.
    fn known(&mut self, beginning: &[u8]) -> Sha256 {
        self.known.resize(Self::PLACES, Beginning::default());
        let Some(known) = self.known.get_mut(Self::place(beginning)) else {
            return Sha256::new_with_prefix(beginning);
        };
        if beginning != known.bytes {
            known.state = Sha256::new_with_prefix(beginning);
            known.bytes.clear();
            known.bytes.extend_from_slice(beginning);
        }
        known.state.clone()
    }

    /// Any mixture of all bytes will do: what is found there is compared.
    fn place(beginning: &[u8]) -> usize {
        let words = beginning.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        let mixed = words.fold(0, u64::wrapping_add).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as usize % Self::PLACES
    }
}

/// Events are rare: their data takes the long way through the canonical form.
fn canonical_data(data: &serde_json::Value) -> Result<Box<RawValue>, EncodeError> {
    let text = data.to_string();
    let canonical = canonical_text(Document::parse(&text)?.root(), Position::Plain);
    Ok(RawValue::from_string(canonical)?)
}

/// Writes moments. Those of one second differ in their last digits only.
#[derive(Debug, Default)]
struct Moments {
    /// The second, and the text of its moments up to the milliseconds.
    last: Option<(i64, [u8; 20])>,
}

impl Moments {
    fn push(&mut self, moment: Timestamp, out: &mut Vec<u8>) {
        let second = moment.0.div_euclid(1_000);
        let text = match self.last {
            Some((last, text)) if last == second => Some(text),
            _ => moment.precise_text().and_then(|text| text.first_chunk().copied()),
        };
        let Some(text) = text else {
            // Years that do not have four digits.
            return out.extend_from_slice(moment.precise().to_string().as_bytes());
        };
        self.last = Some((second, text));
        let milliseconds = moment.0.rem_euclid(1_000);
        let digit = |unit: i64| b'0' + (milliseconds / unit % 10) as u8;
        out.extend_from_slice(&text);
        out.extend_from_slice(&[digit(100), digit(10), digit(1), b'Z']);
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

type DecisionParts<'a> = Parts<DecisionAbout<'a>, DecisionRequest<'a>, DecisionRest<'a>>;

#[derive(Serialize)]
struct DecisionAbout<'a> {
    incident_mode: bool,
    latency_us: Latency,
    mcp: Mcp<'a>,
}

#[derive(Serialize)]
struct DecisionRequest<'a> {
    principal: Principal<'a>,
    receipt_id: ReceiptId,
    record: &'static str,
    request: Request,
    sandbox: Option<Sandbox>,
}

#[derive(Serialize)]
struct DecisionRest<'a> {
    token_handling: TokenHandling<'a>,
    trace_id: Option<Text<'a>>,
}

fn decision_parts<'a>(decision: &Decision<'a>) -> DecisionParts<'a> {
    let Decision { incident_mode, latency_us, mcp, .. } = *decision;
    let Decision { principal, receipt_id, request, sandbox, .. } = *decision;
    let Decision { token_handling, trace_id, .. } = *decision;
    (
        DecisionAbout { incident_mode, latency_us, mcp },
        DecisionRequest { principal, receipt_id, record: "decision", request, sandbox },
        DecisionRest { token_handling, trace_id },
    )
}

#[derive(Serialize)]
struct OutcomeAbout {
    latency_us: Latency,
    outcome: OutcomeMember,
}

#[derive(Serialize)]
struct OutcomeMember {
    size_bytes_out: u64,
    status: OutcomeStatus,
}

#[derive(Serialize)]
struct OutcomeRecord {
    receipt_id: ReceiptId,
    record: &'static str,
}

/// An outcome has no member between `seq` and `ts`.
#[derive(Serialize)]
struct OutcomeRest {}

fn outcome_parts(outcome: &Outcome) -> Parts<OutcomeAbout, OutcomeRecord, OutcomeRest> {
    let Outcome { ts: _, receipt_id, status, size_bytes_out, latency_us } = *outcome;
    (
        OutcomeAbout { latency_us, outcome: OutcomeMember { size_bytes_out, status } },
        OutcomeRecord { receipt_id, record: "outcome" },
        OutcomeRest {},
    )
}

#[derive(Serialize)]
struct EventHead<'a> {
    by: Option<Text<'a>>,
    data: Option<Box<RawValue>>,
}

#[derive(Serialize)]
struct EventName<'a> {
    name: Text<'a>,
}

#[derive(Serialize)]
struct EventRecord {
    record: &'static str,
}

#[derive(Serialize)]
struct EventRest<'a> {
    server_id: Option<Text<'a>>,
}

fn event_parts<'a>(event: &Event<'a>) -> Parts<EventName<'a>, EventRecord, EventRest<'a>> {
    (
        EventName { name: Text(event.name) },
        EventRecord { record: "event" },
        EventRest { server_id: event.server_id },
    )
}

#[cfg(test)]
mod tests;
