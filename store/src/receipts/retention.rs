//! Retention: whole old segments go, after a signed record of the index has named them.

use super::disk::DiskFolder;
use super::error::ReceiptsError;
use super::journal::LockedJournal;
use contract::time::Timestamp;
use ledger::chain::closed_segment;
use ledger::folder::{ChainId, Folder, Listing, SegmentNumber};
use ledger::index::{CHAIN_RETENTION, Dropped, MAX_DROPPED_AT_ONCE, retention_data};
use ledger::line::{LineHash, scan};
use ledger::lines::{LineReader, Piece};
use ledger::record::Event;
use std::fs;

/// How much is kept. What is left out is kept without end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Keep {
    pub age_milliseconds: Option<i64>,
    pub bytes: Option<u64>,
}

/// A segment that is complete, so that it may go.
#[derive(Debug)]
struct Closed {
    chain: ChainId,
    number: SegmentNumber,
    bytes: u64,
    /// When the segment after it was begun.
    closed_at: Timestamp,
    /// The same, never before that of a segment before it: a clock that went back changes no order.
    place: Timestamp,
}

/// Drops what `keep` does not cover. Returns the number of freed bytes.
pub(super) fn apply(
    journal: &mut LockedJournal,
    keep: Keep,
    now: Timestamp,
) -> Result<u64, ReceiptsError> {
    if keep == Keep::default() {
        return Ok(0);
    }
    let listing = list(&journal.folder)?;
    let mut total: u64 = listing.chains.values().flat_map(|files| files.segments.values()).sum();
    let mut chosen = Vec::new();
    for segment in closed_segments(&journal.folder, &listing) {
        let age = now.0.saturating_sub(segment.closed_at.0);
        let is_old = keep.age_milliseconds.is_some_and(|most| age >= most);
        let is_over = keep.bytes.is_some_and(|most| total > most);
        if is_old || is_over {
            total = total.saturating_sub(segment.bytes);
            chosen.push(segment);
        }
    }
    drop_segments(journal, chosen, keep, now)
}

/// Drops the oldest segments until at least `wanted` bytes are free. Returns how many are.
pub(super) fn free(
    journal: &mut LockedJournal,
    wanted: u64,
    now: Timestamp,
) -> Result<u64, ReceiptsError> {
    let listing = list(&journal.folder)?;
    let mut sum = 0;
    let mut chosen = Vec::new();
    for segment in closed_segments(&journal.folder, &listing) {
        if sum >= wanted {
            break;
        }
        sum += segment.bytes;
        chosen.push(segment);
    }
    drop_segments(journal, chosen, Keep::default(), now)
}

fn list(folder: &DiskFolder) -> Result<Listing, ReceiptsError> {
    folder.listing().map_err(ReceiptsError::io("look at", folder.path()))
}

/// All segments but the last of each chain, oldest first. The index is never dropped.
fn closed_segments(folder: &DiskFolder, listing: &Listing) -> Vec<Closed> {
    let mut closed = Vec::new();
    for (chain, files) in listing.chains.iter().filter(|(chain, _)| !chain.is_index()) {
        let mut place = Timestamp(i64::MIN);
        for (number, bytes) in &files.segments {
            let next = number.next();
            let is_last = files.segments.keys().next_back() == Some(&next);
            // What is not signed yet goes on from the checkpoint of the segment before it.
            if is_last && !files.checkpoints.contains(&next) {
                break;
            }
            let next = files.segments.contains_key(&next).then_some(next);
            let begun = next.and_then(|next| first_line(folder, chain, next));
            // Without a readable line after it, it may be incomplete.
            let Some((closed_at, _)) = begun else { break };
            place = place.max(closed_at);
            let chain = chain.clone();
            closed.push(Closed { chain, number: *number, bytes: *bytes, closed_at, place });
        }
    }
    closed.sort_by_key(|segment| (segment.place, segment.number));
    closed
}

/// The moment and hash of a segment's first line.
pub(super) fn first_line(
    folder: &DiskFolder,
    chain: &ChainId,
    number: SegmentNumber,
) -> Option<(Timestamp, LineHash)> {
    let mut reader = LineReader::new(folder.segment(chain, number).ok()?);
    let Some(Piece::Line(bytes)) = reader.next_piece().ok()? else { return None };
    let line = scan(bytes).ok()?;
    Some((Timestamp::parse(line.ts)?, line.hash))
}

/// Records, signs, then removes: the index names every segment that was removed.
fn drop_segments(
    journal: &mut LockedJournal,
    mut chosen: Vec<Closed>,
    keep: Keep,
    now: Timestamp,
) -> Result<u64, ReceiptsError> {
    chosen.sort_by(|left, right| (&left.chain, left.number).cmp(&(&right.chain, right.number)));
    chosen.truncate(MAX_DROPPED_AT_ONCE);
    let mut named = Vec::new();
    let mut going = Vec::new();
    let mut oldest = list(&journal.folder)?.chains;
    for segment in chosen {
        // From the first segment of each chain upwards, so that what is left has no gap: a clock that jumped can make
        // a later one look older.
        let Some(files) = oldest.get_mut(&segment.chain) else { continue };
        if files.segments.keys().next() != Some(&segment.number) {
            continue;
        }
        let Some((dropped, newest)) = describe(journal, &segment) else { continue };
        // What only looked old by the segment after it is kept.
        let is_young = |age: i64| now.0.saturating_sub(newest.0) < age;
        if keep.bytes.is_none() && keep.age_milliseconds.is_some_and(is_young) {
            continue;
        }
        files.segments.remove(&segment.number);
        named.push(dropped);
        going.push(segment);
    }
    if going.is_empty() {
        return Ok(0);
    }
    let data = retention_data(&named);
    let event =
        Event { ts: now, name: CHAIN_RETENTION, by: None, server_id: None, data: Some(&data) };
    journal.append(&event)?;
    let mut freed = 0;
    for segment in &going {
        let directory = journal.folder.chain_path(&segment.chain);
        let path = directory.join(segment.number.file_name());
        fs::remove_file(&path).map_err(ReceiptsError::io("remove", &path))?;
        let _ = fs::remove_file(directory.join(segment.number.checkpoint_name()));
        freed += segment.bytes;
    }
    Ok(freed)
}

/// What the segment was, and the moment of its last line. One that does not verify is kept: it is evidence.
fn describe(journal: &LockedJournal, segment: &Closed) -> Option<(Dropped, Timestamp)> {
    let closed =
        closed_segment(&journal.folder, &segment.chain, segment.number, &journal.keys).ok()?;
    let dropped = Dropped {
        chain: segment.chain.clone(),
        segment: segment.number,
        first_seq: closed.first_seq,
        lines: closed.size.saturating_sub(closed.first_seq),
        root: closed.root,
    };
    Some((dropped, closed.last_ts))
}
