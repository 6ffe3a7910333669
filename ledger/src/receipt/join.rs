//! Joins decisions with their outcomes in one pass over the lines.
//!
//! A receipt is emitted when it is complete: a refused one at once, a dispatched one with its
//! outcome. One without an outcome is emitted when a new process takes over its chain, or at the
//! end; it is never dropped.

use super::document::{Item, Receipt, ReceiptState};
use super::read::{Entry, Note, Spot};
use crate::folder::ChainId;
use crate::record::ReceiptId;
use std::collections::{BTreeMap, HashMap};

/// The most calls of one chain that wait for their outcomes. Above it, the oldest is emitted
/// without one, with a note.
pub const MAX_OPEN_CALLS: usize = 16_384;

/// The events with which a process takes over a chain: calls that were open before have lost their
/// process.
const TAKEN_OVER: [&str; 2] = ["chain.opened", "chain.resumed"];

/// The calls that wait for their outcomes.
#[derive(Debug, Default)]
pub struct Joiner {
    chains: BTreeMap<ChainId, OpenCalls>,
    notes: Vec<Note>,
    strays: u64,
}

#[derive(Debug, Default)]
struct OpenCalls {
    by_seq: BTreeMap<u64, (Spot, Receipt)>,
    seqs: HashMap<ReceiptId, u64>,
}

impl Joiner {
    /// Processes a line, and emits the items that it completes.
    pub fn push(&mut self, spot: &Spot, entry: Entry, out: &mut Vec<Item>) {
        match entry {
            Entry::Decision(decision) => {
                let is_dispatched = decision.is_dispatched();
                let receipt = decision.into_receipt(spot.chain.clone());
                if is_dispatched {
                    self.open(spot, receipt, out);
                } else {
                    out.push(Item::Receipt(Box::new(receipt)));
                }
            }
            Entry::Outcome { ts, seq, hash, end } => {
                let open = self.chains.get_mut(&spot.chain);
                match open.and_then(|calls| calls.take(end.receipt_id)) {
                    Some(mut receipt) => {
                        receipt.end(ts, seq, hash, end);
                        out.push(Item::Receipt(Box::new(receipt)));
                    }
                    None => self.strays += 1,
                }
            }
            Entry::Event(event) => {
                if TAKEN_OVER.contains(&event.name.as_str()) {
                    let calls = self.chains.remove(&spot.chain).unwrap_or_default();
                    out.extend(calls.into_items(ReceiptState::NoOutcome));
                }
                out.push(Item::Event(event));
            }
        }
    }

    /// Emits all waiting receipts, ordered by chain and decision.
    pub fn finish(&mut self, out: &mut Vec<Item>) {
        for calls in std::mem::take(&mut self.chains).into_values() {
            out.extend(calls.into_items(ReceiptState::Open));
        }
    }

    /// The positions of the decisions that wait for their outcomes.
    pub fn waiting(&self) -> impl Iterator<Item = (&Spot, &Receipt)> {
        self.chains
            .values()
            .flat_map(|calls| calls.by_seq.values().map(|(spot, call)| (spot, call)))
    }

    /// The number of outcomes whose decisions were not read.
    pub fn strays(&self) -> u64 {
        self.strays
    }

    pub fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    fn open(&mut self, spot: &Spot, receipt: Receipt, out: &mut Vec<Item>) {
        let calls = self.chains.entry(spot.chain.clone()).or_default();
        // An id that is used twice cannot be joined reliably: emit the earlier receipt as it is.
        let mut say = "its id was used again before it ended";
        let mut given_up = calls.take(receipt.receipt_id);
        if given_up.is_none() && calls.by_seq.len() >= MAX_OPEN_CALLS {
            say = "too many calls are open at once: its outcome is not awaited";
            given_up = calls.take_oldest();
        }
        if let Some(mut earlier) = given_up {
            earlier.state = ReceiptState::NoOutcome;
            self.notes.push(Note {
                chain: Some(spot.chain.clone()),
                segment: None,
                line: None,
                say: format!("receipt {}: {say}", earlier.receipt_id),
            });
            out.push(Item::Receipt(Box::new(earlier)));
        }
        calls.seqs.insert(receipt.receipt_id, receipt.seq);
        calls.by_seq.insert(receipt.seq, (spot.clone(), receipt));
    }
}

impl OpenCalls {
    fn take(&mut self, id: ReceiptId) -> Option<Receipt> {
        let seq = self.seqs.remove(&id)?;
        self.by_seq.remove(&seq).map(|(_, receipt)| receipt)
    }

    fn take_oldest(&mut self) -> Option<Receipt> {
        let (_, (_, receipt)) = self.by_seq.pop_first()?;
        self.seqs.remove(&receipt.receipt_id);
        Some(receipt)
    }

    fn into_items(self, state: ReceiptState) -> impl Iterator<Item = Item> {
        self.by_seq
            .into_values()
            .map(move |(_, receipt)| Item::Receipt(Box::new(Receipt { state, ..receipt })))
    }
}
