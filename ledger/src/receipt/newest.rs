//! Finds the newest receipts, ordered by decision, without reading the whole ledger.

use super::document::{Item, Receipt, ReceiptState};
use super::filter::Filter;
use super::join::Joiner;
use super::read::{Entry, Note};
use super::reading::{Position, Reading, first_moment};
use crate::folder::{ChainId, Folder, Listing};
use crate::record::ReceiptId;
use contract::time::Timestamp;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;

/// The newest receipts, and the reading to continue from.
#[derive(Debug)]
pub struct Newest<F> {
    /// Oldest first.
    pub items: Vec<Item>,
    pub notes: Vec<Note>,
    pub reading: Reading<F>,
    /// The joiner, which knows the calls that are still open.
    pub joiner: Joiner,
}

/// The newest `count` items that match and satisfy `is_shown`, read from as few segments as
/// possible.
pub fn newest<F: Folder + Clone>(
    folder: &F,
    filter: &Filter,
    is_shown: &dyn Fn(&Item) -> bool,
    count: usize,
) -> io::Result<Newest<F>> {
    let listing = folder.listing()?;
    let mut depth = 1;
    loop {
        let (starts, unread_before) = starts(folder, &listing, depth);
        let read = read_from(folder, &starts, filter, is_shown, count)?;
        let oldest = read.items.first().map(Item::ts);
        // Everything unread is older than this bound, the latest first line among the segments
        // read.
        let is_enough = unread_before.is_none_or(|bound| {
            let is_full = read.items.len() >= count && oldest.is_some_and(|oldest| oldest >= bound);
            is_full || filter.since.is_some_and(|since| since > bound)
        });
        if is_enough {
            return Ok(read);
        }
        depth = depth.saturating_mul(2);
    }
}

/// Where to start to read the last `depth` segments of every chain, and the time before which
/// everything unread was written.
fn starts<F: Folder>(
    folder: &F,
    listing: &Listing,
    depth: usize,
) -> (BTreeMap<ChainId, Position>, Option<Timestamp>) {
    let mut starts = BTreeMap::new();
    let mut bound = None;
    for (chain, files) in &listing.chains {
        let mut numbers = files.segments.keys().rev();
        let Some(segment) = numbers.by_ref().take(depth).last() else { continue };
        starts.insert(chain.clone(), Position::start_of(*segment));
        if numbers.next().is_some() {
            // Without knowing when a segment began, no bound can be given.
            let begun = first_moment(folder, chain, *segment).unwrap_or(Timestamp(i64::MAX));
            bound = bound.max(Some(begun));
        }
    }
    (starts, bound)
}

fn read_from<F: Folder + Clone>(
    folder: &F,
    starts: &BTreeMap<ChainId, Position>,
    filter: &Filter,
    is_shown: &dyn Fn(&Item) -> bool,
    count: usize,
) -> io::Result<Newest<F>> {
    let mut reading = Reading::begin(folder.clone(), starts)?;
    let mut joiner = Joiner::default();
    let mut window = Window::new(count);
    let mut notes = Vec::new();
    let mut complete = Vec::new();
    for (spot, entry) in reading.by_ref() {
        let item = match &entry {
            Entry::Decision(decision) => Some(Item::Receipt(Box::new(
                decision.as_ref().clone().into_receipt(spot.chain.clone()),
            ))),
            Entry::Event(event) => Some(Item::Event(event.clone())),
            Entry::Outcome { .. } => None,
        };
        joiner.push(&spot, entry, &mut complete);
        if let Some(item) = item.filter(|item| filter.matches(item) && is_shown(item)) {
            window.push(item);
        }
        for item in complete.drain(..) {
            window.complete(item);
        }
        notes.append(&mut joiner.take_notes());
    }
    notes.append(&mut reading.take_notes());
    Ok(Newest { items: window.items.into(), notes, reading, joiner })
}

/// The last few items, some of which are completed later.
struct Window {
    items: VecDeque<Item>,
    count: usize,
    /// The number of items ever added, and the number of each receipt that is still open.
    pushed: u64,
    open: HashMap<(ChainId, ReceiptId), u64>,
}

impl Window {
    fn new(count: usize) -> Window {
        Window { items: VecDeque::new(), count, pushed: 0, open: HashMap::new() }
    }

    fn push(&mut self, item: Item) {
        if let Item::Receipt(receipt) = &item
            && receipt.state == ReceiptState::Open
        {
            self.open.insert(key(receipt), self.pushed);
        }
        self.pushed += 1;
        self.items.push_back(item);
        if self.items.len() > self.count
            && let Some(Item::Receipt(receipt)) = self.items.pop_front()
        {
            self.open.remove(&key(&receipt));
        }
    }

    fn complete(&mut self, item: Item) {
        let Item::Receipt(receipt) = &item else { return };
        let Some(number) = self.open.remove(&key(receipt)) else { return };
        let first = self.pushed - self.items.len() as u64;
        let at = usize::try_from(number.saturating_sub(first)).unwrap_or(usize::MAX);
        if let Some(slot) = self.items.get_mut(at) {
            *slot = item;
        }
    }
}

fn key(receipt: &Receipt) -> (ChainId, ReceiptId) {
    (receipt.chain.clone(), receipt.receipt_id)
}
