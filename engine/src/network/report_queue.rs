//! The changes encountered here, for the drift network: those waiting to be reported, and those
//! already reported.
//!
//! They are stored in the home, so that a restart does not repeat any and none is lost while a
//! directory is unreachable. A process that ends between a response and its note reports one change
//! twice; the directory counts an install once.

use super::MetChange;
use super::folder::NetworkFolder;
use contract::change::ChangeKind;
use gate::network::Hour;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

const FILE: &str = "reports.json";
/// The most waiting changes. Further ones are not reported.
const MAX_WAITING: usize = 1_000;
/// The most changes that are remembered as reported: the newest ones.
const MAX_TOLD: usize = 5_000;

/// The hashes before and after.
type Pair = (String, String);

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ReportQueue {
    url: String,
    waiting: Vec<Waiting>,
    told: VecDeque<Pair>,
}

/// A change as stored.
#[derive(Debug, Serialize, Deserialize)]
struct Waiting {
    change: Pair,
    kinds: Vec<String>,
    safety: bool,
    hour: String,
}

impl Waiting {
    fn of(change: &MetChange) -> Waiting {
        Waiting {
            change: pair_of(change),
            kinds: change.kinds.iter().map(|kind| kind.as_str().to_owned()).collect(),
            safety: change.is_safety_relevant,
            hour: change.hour.to_string(),
        }
    }

    /// Returns `None` unless [`Waiting::of`] wrote it.
    fn read(&self) -> Option<MetChange> {
        let kind = |word: &String| ChangeKind::ALL.iter().find(|kind| kind.as_str() == word);
        Some(MetChange {
            before: self.change.0.parse().ok()?,
            after: self.change.1.parse().ok()?,
            kinds: self.kinds.iter().map(|word| kind(word).copied()).collect::<Option<_>>()?,
            is_safety_relevant: self.safety,
            hour: Hour::parse(&self.hour)?,
        })
    }
}

fn pair_of(change: &MetChange) -> Pair {
    (change.before.to_string(), change.after.to_string())
}

impl ReportQueue {
    /// Reads the stored queue of this directory. Anything unreadable counts as missing.
    pub fn read(folder: &NetworkFolder, url: &str) -> ReportQueue {
        let kept = folder.read(FILE).and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let kept = kept.filter(|kept: &ReportQueue| kept.url == url);
        kept.unwrap_or_else(|| ReportQueue { url: url.to_owned(), ..ReportQueue::default() })
    }

    /// The waiting changes, oldest first.
    pub fn waiting(&self) -> Vec<MetChange> {
        self.waiting.iter().filter_map(Waiting::read).collect()
    }

    pub fn is_told(&self, change: &MetChange) -> bool {
        self.told.contains(&pair_of(change))
    }

    /// Adds changes that are neither waiting nor reported.
    pub(super) fn add(folder: &NetworkFolder, url: &str, changes: &[MetChange]) {
        let queue = ReportQueue::read(folder, url);
        // A surface is judged often, but rarely has anything new.
        if changes.iter().all(|change| queue.is_known(change)) {
            return;
        }
        ReportQueue::change(folder, url, |queue| {
            for change in changes {
                if !queue.is_known(change) && queue.waiting.len() < MAX_WAITING {
                    queue.waiting.push(Waiting::of(change));
                }
            }
        });
    }

    fn is_known(&self, change: &MetChange) -> bool {
        let pair = pair_of(change);
        self.is_told(change) || self.waiting.iter().any(|known| known.change == pair)
    }

    /// Records that a change was reported.
    pub(super) fn tell(folder: &NetworkFolder, url: &str, change: &MetChange) {
        ReportQueue::change(folder, url, |queue| {
            let pair = pair_of(change);
            queue.waiting.retain(|known| known.change != pair);
            queue.told.push_back(pair);
            while queue.told.len() > MAX_TOLD {
                queue.told.pop_front();
            }
        });
    }

    fn change(folder: &NetworkFolder, url: &str, change: impl FnOnce(&mut ReportQueue)) {
        // If the queue cannot be stored, changes are not reported, which harms no one.
        let Ok(_lock) = folder.lock() else { return };
        let mut queue = ReportQueue::read(folder, url);
        change(&mut queue);
        if let Ok(bytes) = serde_json::to_vec(&queue) {
            let _ = folder.write(FILE, &bytes);
        }
    }
}
