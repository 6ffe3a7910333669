//! Reads the ledger's index, which contains people's acts and gates' findings but not the lines of
//! calls.

use ledger::folder::{ChainId, Folder, Listing, SegmentNumber};
use ledger::receipt::{Entry, EventReceipt, Reading};
use std::collections::BTreeMap;
use std::io::{self, Read};
use store::receipts::DiskFolder;

/// The events of the index, oldest first; empty if there are no receipts yet.
pub fn people_events(folder: &DiskFolder) -> io::Result<Vec<EventReceipt>> {
    if !folder.path().exists() {
        return Ok(Vec::new());
    }
    let entries = Reading::begin(IndexOnly(folder.clone()), &BTreeMap::new())?;
    let events = entries.filter_map(|(_, entry)| match entry {
        Entry::Event(event) => Some(event),
        _ => None,
    });
    Ok(events.collect())
}

/// Hides everything but the index of the receipts, so that the lines of calls are not read.
struct IndexOnly(DiskFolder);

impl Folder for IndexOnly {
    fn listing(&self) -> io::Result<Listing> {
        let mut listing = self.0.listing()?;
        listing.chains.retain(|chain, _| chain.is_index());
        Ok(listing)
    }

    fn segment_from(
        &self,
        chain: &ChainId,
        number: SegmentNumber,
        offset: u64,
    ) -> io::Result<Box<dyn Read + Send>> {
        self.0.segment_from(chain, number, offset)
    }

    fn checkpoint(&self, chain: &ChainId, number: SegmentNumber) -> io::Result<Option<String>> {
        self.0.checkpoint(chain, number)
    }
}
