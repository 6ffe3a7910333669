//! Reads batches from a ledger: everything available up to a limit, with the cursor that is valid
//! once the batch was delivered.

use super::cursor::Cursor;
use ledger::folder::{ChainId, Folder};
use ledger::receipt::{Item, Joiner, Position, Reading, line_at};
use std::collections::BTreeMap;
use std::io;

/// The most receipts and events that are sent at once.
pub const MAX_BATCH_ITEMS: usize = 512;
/// A batch is full when its ledger lines have this total length in bytes.
pub const MAX_BATCH_BYTES: u64 = 1024 * 1024;

/// The unsent part of a ledger.
#[derive(Debug)]
pub(super) struct Batches<F> {
    reading: Reading<F>,
    joiner: Joiner,
    positions: BTreeMap<ChainId, Position>,
}

/// Items to be sent together. Everything that the end of a chain completes is in one batch, so it
/// can have more items than one send.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) items: Vec<Item>,
    /// The cursor after all items are delivered.
    pub(super) cursor: Cursor,
    pub(super) notes: Vec<String>,
}

impl<F: Folder + Clone> Batches<F> {
    /// Continues at a cursor.
    pub(super) fn resume(folder: &F, cursor: &Cursor) -> io::Result<Batches<F>> {
        let mut joiner = Joiner::default();
        for (chain, position) in cursor.open() {
            // If retention has deleted the decision, its outcome alone is not sent.
            if let Some((spot, entry)) = line_at(folder, &chain, position)? {
                joiner.push(&spot, entry, &mut Vec::new());
            }
        }
        let positions = cursor.starts();
        let reading = Reading::begin(folder.clone(), &positions)?;
        Ok(Batches { reading, joiner, positions })
    }

    /// The next batch; without items if nothing is complete yet.
    pub(super) fn next(&mut self) -> io::Result<Batch> {
        self.reading.refresh()?;
        let (mut items, mut bytes) = (Vec::new(), 0);
        while items.len() < MAX_BATCH_ITEMS && bytes < MAX_BATCH_BYTES {
            let Some((spot, entry)) = self.reading.next() else { break };
            bytes += spot.next.offset.saturating_sub(spot.start.offset);
            self.joiner.push(&spot, entry, &mut items);
            self.positions.insert(spot.chain, spot.next);
        }
        let mut notes = self.reading.take_notes();
        notes.extend(self.joiner.take_notes());
        let notes = notes.iter().map(ToString::to_string).collect();
        Ok(Batch { items, cursor: self.cursor(), notes })
    }

    fn cursor(&self) -> Cursor {
        let mut open: BTreeMap<&ChainId, Vec<Position>> = BTreeMap::new();
        for (spot, _) in self.joiner.waiting() {
            open.entry(&spot.chain).or_default().push(spot.start);
        }
        let mut cursor = Cursor::default();
        for (chain, next) in &self.positions {
            let open = open.remove(chain).unwrap_or_default();
            cursor.set(chain, *next, open.into_iter());
        }
        cursor
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::time::Timestamp;
    use ledger::folder::SegmentNumber;
    use ledger::line::{LineHash, Place, encode};
    use ledger::memory::MemoryFolder;
    use ledger::record::{Event, Record};

    /// A ledger with this many events, each on a line of about `bytes`.
    fn folder(count: u64, bytes: usize) -> MemoryFolder {
        let (folder, mut text) = (MemoryFolder::default(), Vec::new());
        let data = serde_json::json!({ "x": "x".repeat(bytes) });
        for seq in 0..count {
            let ts = Timestamp(1);
            let event = Event { ts, name: "n", by: None, server_id: None, data: Some(&data) };
            let place = Place { seq, prev: LineHash::NONE };
            encode(&Record::Event(&event), place, &mut text).unwrap();
        }
        let key = (ChainId::from_random([1; 8]), SegmentNumber::FIRST);
        folder.contents().segments.insert(key, text);
        folder
    }

    fn sizes(folder: &MemoryFolder) -> Vec<usize> {
        let mut batches = Batches::resume(folder, &Cursor::default()).unwrap();
        let sizes = std::iter::repeat_with(|| batches.next().unwrap().items.len());
        sizes.take_while(|size| *size > 0).collect()
    }

    #[test]
    fn a_batch_is_full_at_its_number_of_items() {
        let limit = MAX_BATCH_ITEMS as u64;
        assert_eq!(sizes(&folder(limit, 1)), [MAX_BATCH_ITEMS]);
        assert_eq!(sizes(&folder(limit + 1, 1)), [MAX_BATCH_ITEMS, 1]);
    }

    #[test]
    fn a_batch_is_full_at_its_number_of_bytes() {
        let eighth = usize::try_from(MAX_BATCH_BYTES / 8).unwrap();
        // Eight lines are slightly over the limit, and a ninth starts the next batch.
        assert_eq!(sizes(&folder(8, eighth)), [8]);
        assert_eq!(sizes(&folder(9, eighth)), [8, 1]);
    }

    #[test]
    fn a_cursor_goes_on_after_every_batch() {
        let folder = folder(3 * MAX_BATCH_ITEMS as u64, 1);
        let mut cursor = Cursor::default();
        let mut read = Vec::new();
        for _ in 0..3 {
            let batch = Batches::resume(&folder, &cursor).unwrap().next().unwrap();
            read.extend(batch.items.iter().map(Item::seq));
            cursor = batch.cursor;
        }
        assert_eq!(read, (0..3 * MAX_BATCH_ITEMS as u64).collect::<Vec<_>>());
    }
}
