//! Scans a line: finds its top-level members in one pass, without parsing their values.

use super::{HASH_DIGITS, HASH_NAME, LineHash, hash_without};
use crate::digits;
use std::str;

/// The deepest accepted nesting: far more than any record has.
pub const MAX_NESTING: u32 = 32;

/// Why some bytes are not a line that Holdpoint wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadLine {
    #[error("it is not a JSON object in canonical form (byte {at})")]
    Malformed { at: usize },
    #[error("it has no member `{0}` of the right form")]
    Member(&'static str),
    #[error("its hash does not match its content")]
    WrongHash,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// A decision; `awaits_outcome` if the request was allowed.
    Decision {
        awaits_outcome: bool,
    },
    Outcome,
    Event,
}

/// A line with a correct hash. Values are spans of its original bytes.
#[derive(Debug, Clone, Copy)]
pub struct Line<'l> {
    pub seq: u64,
    pub prev: LineHash,
    pub hash: LineHash,
    pub kind: LineKind,
    /// The text of the timestamp, without quotes.
    pub ts: &'l str,
    /// Only for a decision or an outcome.
    pub receipt_id: Option<&'l str>,
    /// Only for an event.
    pub name: Option<&'l str>,
    pub bytes: &'l [u8],
}

/// Scans a line, given without its newline, and checks its hash.
pub fn scan(bytes: &[u8]) -> Result<Line<'_>, BadLine> {
    let members = Members::read(bytes)?;
    let seq = number(members.seq.ok_or(BadLine::Member("seq"))?).ok_or(BadLine::Member("seq"))?;
    let prev = digest(members.prev).ok_or(BadLine::Member("prev"))?;
    let hash = digest(members.hash).ok_or(BadLine::Member("hash"))?;
    let ts = text(members.ts).ok_or(BadLine::Member("ts"))?;
    let receipt_id = text(members.receipt_id);
    let name = text(members.name);
    let kind = match text(members.record) {
        Some("decision") if receipt_id.is_some() => {
            let ruling = members.decision.ok_or(BadLine::Member("decision"))?;
            LineKind::Decision { awaits_outcome: ruling.ends_with(b"\"result\":\"allow\"}") }
        }
        Some("outcome") if receipt_id.is_some() => LineKind::Outcome,
        Some("decision" | "outcome") => return Err(BadLine::Member("receipt_id")),
        Some("event") if name.is_some() => LineKind::Event,
        Some("event") => return Err(BadLine::Member("name")),
        _ => return Err(BadLine::Member("record")),
    };
    // `hash` is never the last member: `record` and others come after it, so a comma follows.
    let cut_from = members.hash_at;
    let cut_to = cut_from + HASH_NAME.len() + HASH_DIGITS + 2;
    if hash_without(bytes, 0, cut_from, cut_to) != hash {
        return Err(BadLine::WrongHash);
    }
    Ok(Line { seq, prev, hash, kind, ts, receipt_id, name, bytes })
}

/// Whether some bytes can result from an interrupted write: the beginning of a line, or zeros that
/// a crash can leave.
pub(crate) fn is_torn(bytes: &[u8]) -> bool {
    let written = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let bytes = bytes.get(..written).unwrap_or_default();
    if bytes.is_empty() {
        return true;
    }
    match Members::read(bytes) {
        Ok(_) => true,
        Err(BadLine::Malformed { at }) => at >= bytes.len(),
        Err(_) => false,
    }
}

/// The values of the top-level members that the chain needs.
#[derive(Debug, Default)]
struct Members<'l> {
    decision: Option<&'l [u8]>,
    hash: Option<&'l [u8]>,
    /// The position of the member name `hash`.
    hash_at: usize,
    name: Option<&'l [u8]>,
    prev: Option<&'l [u8]>,
    receipt_id: Option<&'l [u8]>,
    record: Option<&'l [u8]>,
    seq: Option<&'l [u8]>,
    ts: Option<&'l [u8]>,
}

impl<'l> Members<'l> {
    fn read(bytes: &'l [u8]) -> Result<Self, BadLine> {
        let mut cursor = Cursor { bytes, at: 0 };
        let mut members = Members::default();
        let mut before: &[u8] = b"";
        cursor.expect(b'{')?;
        loop {
            let name_at = cursor.at;
            let name = cursor.string()?;
            // Names must ascend, as in the canonical form, so none can occur twice.
            if name <= before {
                return Err(BadLine::Malformed { at: name_at });
            }
            before = name;
            cursor.expect(b':')?;
            let value = cursor.value()?;
            match name {
                b"decision" => members.decision = Some(value),
                b"hash" => (members.hash, members.hash_at) = (Some(value), name_at),
                b"name" => members.name = Some(value),
                b"prev" => members.prev = Some(value),
                b"receipt_id" => members.receipt_id = Some(value),
                b"record" => members.record = Some(value),
                b"seq" => members.seq = Some(value),
                b"ts" => members.ts = Some(value),
                _ => {}
            }
            if cursor.peek() == Some(b'}') {
                cursor.at += 1;
                break;
            }
            cursor.expect(b',')?;
        }
        if cursor.at == bytes.len() {
            Ok(members)
        } else {
            Err(BadLine::Malformed { at: cursor.at })
        }
    }
}

/// A position in a line. Running past the end gives [`BadLine::Malformed`] at the line's length.
struct Cursor<'l> {
    bytes: &'l [u8],
    at: usize,
}

impl<'l> Cursor<'l> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn malformed<T>(&self) -> Result<T, BadLine> {
        Err(BadLine::Malformed { at: self.at.min(self.bytes.len()) })
    }

    fn expect(&mut self, byte: u8) -> Result<(), BadLine> {
        if self.peek() != Some(byte) {
            return self.malformed();
        }
        self.at += 1;
        Ok(())
    }

    /// The content of a string, with escapes unchanged.
    fn string(&mut self) -> Result<&'l [u8], BadLine> {
        self.expect(b'"')?;
        let start = self.at;
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let is_plain = |byte: &u8| *byte >= 0x20 && !matches!(byte, b'"' | b'\\');
            self.at += rest.iter().take_while(|byte| is_plain(byte)).count();
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    self.at += 1;
                    if self.peek().is_none_or(|byte| byte < 0x20) {
                        return self.malformed();
                    }
                    self.at += 1;
                }
                _ => return self.malformed(),
            }
        }
        let inside = self.bytes.get(start..self.at).unwrap_or_default();
        self.at += 1;
        Ok(inside)
    }

    /// Skips any value. For an object or array, only brackets and strings are matched.
    fn value(&mut self) -> Result<&'l [u8], BadLine> {
        let start = self.at;
        let mut depth = 0_u32;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.string()?;
                }
                Some(b'{' | b'[') => {
                    depth += 1;
                    if depth > MAX_NESTING {
                        return self.malformed();
                    }
                    self.at += 1;
                    continue;
                }
                Some(b'}' | b']') if depth > 0 => {
                    depth -= 1;
                    self.at += 1;
                }
                Some(b',' | b':') if depth > 0 => {
                    self.at += 1;
                    continue;
                }
                Some(b'0'..=b'9' | b'a'..=b'z' | b'-') => self.plain(),
                _ => return self.malformed(),
            }
            if depth == 0 {
                return Ok(self.bytes.get(start..self.at).unwrap_or_default());
            }
        }
    }

    /// Skips a number or a literal.
    fn plain(&mut self) {
        while let Some(b'0'..=b'9' | b'a'..=b'z' | b'-') = self.peek() {
            self.at += 1;
        }
    }
}

fn number(value: &[u8]) -> Option<u64> {
    let is_canonical = value.first() != Some(&b'0') || value.len() == 1;
    if !is_canonical || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    str::from_utf8(value).ok()?.parse().ok()
}

/// The content of a string without escapes.
fn text(value: Option<&[u8]>) -> Option<&str> {
    let inside = value?.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if inside.contains(&b'\\') {
        return None;
    }
    str::from_utf8(inside).ok()
}

fn digest(value: Option<&[u8]>) -> Option<LineHash> {
    let digits = value?.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    digits::decode(digits).map(LineHash)
}
