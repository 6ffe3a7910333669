//! The content of the index: which chains exist, which of their segments were dropped, and the last
//! known state of the store.
//!
//! The index is a chain with a reserved name. Every process of the home appends to it, one at a
//! time, and signs immediately.

use crate::folder::{ChainId, SegmentNumber};
use crate::line::{Line, LineHash, LineKind};
use crate::tree::NodeHash;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Written when a chain is opened.
pub const CHAIN_LISTED: &str = "chain.listed";
/// Written when an index is started by a key that has already signed another one.
pub const CHAIN_RESTARTED: &str = "chain.anew";
/// Written before segments are dropped.
pub const CHAIN_RETENTION: &str = "chain.retention";

/// The most segments that one retention record names.
pub const MAX_DROPPED_AT_ONCE: usize = 1_000;

/// An upper bound on seal counts, which no real record reaches.
const MAX_SEAL: u64 = 1 << 53;

/// The content of the index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Index {
    /// Every chain that was ever opened, with the hash of its first line.
    pub chains: BTreeMap<ChainId, LineHash>,
    pub dropped: BTreeMap<ChainId, BTreeMap<SegmentNumber, Dropped>>,
    /// How often each server's record was sealed, as far as the ledger has seen.
    pub seals: BTreeMap<String, u64>,
    /// The last status of each server.
    pub statuses: BTreeMap<String, String>,
    /// How often the switches were sealed, as far as the ledger has seen.
    pub switch_seals: u64,
    /// When the index was started as a replacement for one that was gone.
    pub restarted_at: Option<String>,
}

/// A segment that retention dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    pub chain: ChainId,
    pub segment: SegmentNumber,
    pub first_seq: u64,
    pub lines: u64,
    /// The root of the chain's tree up to the last line of the segment.
    pub root: NodeHash,
}

impl Dropped {
    pub fn next_seq(&self) -> u64 {
        self.first_seq.saturating_add(self.lines)
    }

    fn to_json(&self) -> Value {
        json!({
            "chain": self.chain,
            "first_seq": self.first_seq,
            "lines": self.lines,
            "root": self.root,
            "segment": self.segment,
        })
    }

    fn from_json(value: &Value) -> Option<Dropped> {
        Some(Dropped {
            chain: value.get("chain")?.as_str()?.parse().ok()?,
            segment: SegmentNumber(u32::try_from(value.get("segment")?.as_u64()?).ok()?),
            first_seq: value.get("first_seq")?.as_u64()?,
            lines: value.get("lines")?.as_u64()?,
            root: value.get("root")?.as_str()?.parse().ok()?,
        })
    }
}

/// The data of a [`CHAIN_LISTED`] event.
pub fn listed_data(chain: &ChainId, first: LineHash) -> Value {
    json!({"chain": chain, "hash": first})
}

/// The data of a [`CHAIN_RETENTION`] event.
pub fn retention_data(dropped: &[Dropped]) -> Value {
    let named = dropped.iter().take(MAX_DROPPED_AT_ONCE).map(Dropped::to_json);
    json!({"dropped": named.collect::<Vec<_>>()})
}

impl Index {
    /// Applies one line of the index. Returns an error for an event of ours with impossible
    /// content.
    pub fn take(&mut self, line: &Line<'_>) -> Result<(), &'static str> {
        if line.kind != LineKind::Event {
            return Err("the index holds a receipt");
        }
        let name = line.name.unwrap_or_default();
        if name == CHAIN_RESTARTED {
            self.restarted_at = Some(line.ts.to_owned());
        }
        let is_ours = matches!(name, CHAIN_LISTED | CHAIN_RETENTION);
        if !is_ours && name.starts_with("chain.") {
            return Ok(());
        }
        let value: Value = serde_json::from_slice(line.bytes).map_err(|_| "it is not JSON")?;
        let data = value.get("data").unwrap_or(&Value::Null);
        match name {
            CHAIN_LISTED => self.take_listed(data).ok_or("it lists no chain"),
            CHAIN_RETENTION => self.take_dropped(data).ok_or("it names no dropped segments"),
            _ => {
                let server = value.get("server_id").and_then(Value::as_str);
                // A larger count could never be reached again.
                let seal = data.get("seal").and_then(Value::as_u64).filter(|seal| *seal < MAX_SEAL);
                if let (Some(server), Some(seal)) = (server, seal) {
                    let seen = self.seals.entry(server.to_owned()).or_default();
                    *seen = seal.max(*seen);
                }
                // Before seals existed, the number of the newest event was recorded here; seal
                // counts continue from it.
                let number = data.get("switch_seal").or_else(|| data.get("events"));
                let number = number.and_then(Value::as_u64).filter(|number| *number < MAX_SEAL);
                self.switch_seals = self.switch_seals.max(number.unwrap_or(0));
                let status = data.get("status").and_then(Value::as_str);
                if let (Some(server), Some(status)) = (server, status) {
                    self.statuses.insert(server.to_owned(), status.to_owned());
                }
                Ok(())
            }
        }
    }

    fn take_listed(&mut self, data: &Value) -> Option<()> {
        let chain = data.get("chain")?.as_str()?.parse().ok()?;
        let first = data.get("hash")?.as_str()?.parse().ok()?;
        self.chains.insert(chain, first);
        Some(())
    }

    fn take_dropped(&mut self, data: &Value) -> Option<()> {
        for value in data.get("dropped")?.as_array()? {
            let dropped = Dropped::from_json(value)?;
            let segments = self.dropped.entry(dropped.chain.clone()).or_default();
            segments.insert(dropped.segment, dropped);
        }
        Some(())
    }

    /// The newest dropped segment of a chain, if all segments before it were dropped too: the
    /// remaining ones start after it.
    pub fn dropped_up_to(&self, chain: &ChainId, segment: SegmentNumber) -> Option<&Dropped> {
        let dropped = self.dropped.get(chain)?;
        let all = (1..=segment.0).all(|number| dropped.contains_key(&SegmentNumber(number)));
        all.then(|| dropped.get(&segment)).flatten()
    }
}
