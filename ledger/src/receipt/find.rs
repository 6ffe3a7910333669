//! Finds a receipt by the first digits of its id, with both of its lines as they are in the ledger.

use super::document::{Item, Receipt};
use super::join::Joiner;
use super::read::{Entry, Note, Spot};
use super::reading::Reading;
use crate::checkpoint::split_checkpoints;
use crate::folder::{ChainId, Folder, Listing, SegmentNumber};
use crate::lines::{LineReader, Piece};
use crate::record::ReceiptId;
use std::collections::BTreeMap;
use std::io;

/// The most receipts with the same first digits that are returned.
pub const MAX_FOUND: usize = 16;

/// A receipt with its lines.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    pub receipt: Receipt,
    pub decision: RawLine,
    pub outcome: Option<RawLine>,
}

/// A line as it is in the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawLine {
    pub segment: SegmentNumber,
    /// The number of the line within the segment, counted from 1.
    pub line: u64,
    pub seq: u64,
    pub text: String,
    /// Whether a checkpoint in the folder claims to cover the line. Whether that checkpoint is
    /// genuine is checked by `verify`.
    pub is_covered: bool,
}

/// The receipts whose ids begin with these digits, at most [`MAX_FOUND`].
pub fn find<F: Folder + Clone>(folder: &F, prefix: &str) -> io::Result<(Vec<Found>, Vec<Note>)> {
    let mut reading = Reading::begin(folder.clone(), &BTreeMap::new())?;
    let mut joiner = Joiner::default();
    let mut spots: BTreeMap<(ChainId, u64), Spot> = BTreeMap::new();
    let (mut receipts, mut complete) = (Vec::new(), Vec::new());
    let is_asked = |id: &ReceiptId| id.to_string().starts_with(prefix);
    for (spot, entry) in reading.by_ref() {
        let seq = match &entry {
            Entry::Decision(decision) if is_asked(&decision.receipt_id) => decision.seq,
            Entry::Outcome { seq, end, .. } if is_asked(&end.receipt_id) => *seq,
            // With this event, calls that were open in the chain have lost their process.
            Entry::Event(event) => event.seq,
            Entry::Decision(_) | Entry::Outcome { .. } => continue,
        };
        if !matches!(entry, Entry::Event(_)) && spots.len() < 2 * MAX_FOUND {
            spots.insert((spot.chain.clone(), seq), spot.clone());
        }
        joiner.push(&spot, entry, &mut complete);
        keep(&mut receipts, &mut complete);
    }
    joiner.finish(&mut complete);
    keep(&mut receipts, &mut complete);
    let listing = folder.listing()?;
    let mut found = Vec::new();
    for receipt in receipts {
        let line = |seq: u64| -> io::Result<Option<RawLine>> {
            let Some(spot) = spots.get(&(receipt.chain.clone(), seq)) else { return Ok(None) };
            raw_line(folder, &listing, spot, seq)
        };
        let Some(decision) = line(receipt.seq)? else { continue };
        let outcome = receipt.outcome_seq.map(line).transpose()?.flatten();
        found.push(Found { receipt, decision, outcome });
    }
    Ok((found, reading.take_notes()))
}

fn keep(receipts: &mut Vec<Receipt>, complete: &mut Vec<Item>) {
    for item in complete.drain(..) {
        match item {
            Item::Receipt(receipt) if receipts.len() < MAX_FOUND => receipts.push(*receipt),
            Item::Receipt(_) | Item::Event(_) => {}
        }
    }
}

fn raw_line<F: Folder>(
    folder: &F,
    listing: &Listing,
    spot: &Spot,
    seq: u64,
) -> io::Result<Option<RawLine>> {
    let mut lines = LineReader::new(folder.segment(&spot.chain, spot.segment)?);
    for _ in 1..spot.line {
        lines.next_piece()?;
    }
    let Some(Piece::Line(bytes)) = lines.next_piece()? else { return Ok(None) };
    let text = String::from_utf8_lossy(bytes).into_owned();
    let is_covered = covered(folder, listing, &spot.chain)? > seq;
    Ok(Some(RawLine { segment: spot.segment, line: spot.line, seq, text, is_covered }))
}

/// The number of lines of a chain that its newest checkpoint claims to cover.
fn covered<F: Folder>(folder: &F, listing: &Listing, chain: &ChainId) -> io::Result<u64> {
    let numbers = listing.chains.get(chain).map(|files| files.checkpoints.as_slice());
    let Some(newest) = numbers.unwrap_or_default().iter().max() else { return Ok(0) };
    let text = folder.checkpoint(chain, *newest)?.unwrap_or_default();
    let size = |note: &str| note.lines().nth(1).and_then(|size| size.parse().ok());
    Ok(split_checkpoints(&text).filter_map(size).max().unwrap_or(0))
}
