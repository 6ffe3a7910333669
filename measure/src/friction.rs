//! Measures friction: what each posture would have held over the release history of real servers,
//! with the older of two releases as approved by a person.
//!
//! Real releases are not labelled: a held one may have deserved it. The results measure work for
//! people, not false positives.

use crate::working_calls::WorkingCalls;
use contract::change::ChangeKind;
use contract::surface::{Entry, EntryType, Surface};
use gate::by_the_call::CallRulesCache;
use gate::call_verdict::CallCase;
use gate::judge::{Judgement, judge_surface};
use gate::pins::{Basis, Pin, PinBook};
use gate::posture::{Posture, Settings};
use gate::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// The results of a posture over all pairs of adjacent releases.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// Pairs with something held.
    pub pairs: usize,
    /// Pairs with something deferred, where the client continues to see what was approved.
    pub deferred: usize,
    /// Pairs, and tools in both releases, of which all or some calls are stopped.
    pub stopped_pairs: usize,
    pub stopped_tools: usize,
    /// Pairs, tools and calls that worked under the older release and are stopped, with each call
    /// judged on its own.
    pub call_pairs: usize,
    pub call_tools: usize,
    pub calls: usize,
}

/// Counts over the histories of servers.
#[derive(Debug, Default)]
pub struct Friction {
    pub releases: usize,
    pub pairs: usize,
    pub changed: usize,
    /// Tools of the older release that are still in the newer one, over all pairs.
    pub tools: usize,
    /// Calls judged, over all pairs.
    pub calls: usize,
    held: BTreeMap<&'static str, Held>,
    /// For each kind: the number of pairs in which it occurs, and in which it occurs in an entry
    /// held under guard.
    pub kinds: BTreeMap<&'static str, (usize, usize)>,
    working: WorkingCalls,
}

impl Friction {
    /// Counts the releases of one server, oldest first.
    pub fn package(&mut self, releases: &[Surface]) {
        self.releases += releases.len();
        for pair in releases.windows(2) {
            if let [old, new] = pair {
                self.pair(old, new);
            }
        }
    }

    pub fn of(&self, posture: Posture) -> Held {
        self.held.get(posture.as_str()).copied().unwrap_or_default()
    }

    fn count(&mut self, posture: Posture) -> &mut Held {
        self.held.entry(posture.as_str()).or_default()
    }

    fn pair(&mut self, old: &Surface, new: &Surface) {
        self.pairs += 1;
        self.changed += usize::from(old.surface_hash() != new.surface_hash());
        let mut book = PinBook::default();
        for entry in old.entries() {
            let by = "a person".to_owned();
            book.push(Pin { entry: entry.clone(), basis: Basis::Person, at: Timestamp(0), by });
        }
        let still_there = |entry: &&Entry| {
            entry.entry_type() == EntryType::Tool && new.entry(entry.id()).is_some()
        };
        self.tools += old.entries().filter(still_there).count();
        for posture in Posture::ALL {
            let settings = Settings::with_posture(posture);
            let judged = judge_surface(&book, new, &settings, 0);
            let (settings, cache) = (&settings, &CallRulesCache::default());
            let case = CallCase { book: &book, surface: new, judgement: &judged, settings, cache };
            self.judge_calls(old, &case);
            let is_stopped = |entry: &&Judgement| {
                let is_tool = entry.id.entry_type == EntryType::Tool;
                is_tool
                    && entry.verdict.is_held()
                    && entry.before.is_some()
                    && entry.after.is_some()
            };
            let stopped = judged.entries.iter().filter(is_stopped).count();
            let is_deferred = judged.entries.iter().any(|entry| entry.is_deferred);
            let count = self.count(posture);
            count.pairs += usize::from(judged.verdict.is_held());
            count.deferred += usize::from(is_deferred);
            count.stopped_pairs += usize::from(stopped > 0);
            count.stopped_tools += stopped;
            if posture == Posture::Guard {
                self.count_kinds(&judged.entries);
            }
        }
    }

    fn count_kinds(&mut self, entries: &[Judgement]) {
        let kinds = |held_only: bool| -> BTreeSet<ChangeKind> {
            let entries = entries.iter().filter(|entry| !held_only || entry.verdict.is_held());
            entries.flat_map(|entry| entry.findings.iter().map(|finding| finding.kind)).collect()
        };
        for kind in kinds(false) {
            self.kinds.entry(kind.as_str()).or_default().0 += 1;
        }
        for kind in kinds(true) {
            self.kinds.entry(kind.as_str()).or_default().1 += 1;
        }
    }

    /// Judges calls of every tool that is still in the newer release.
    fn judge_calls(&mut self, old: &Surface, case: &CallCase<'_>) {
        let (mut tools, mut calls) = (0, 0);
        for entry in old.entries().filter(|entry| entry.entry_type() == EntryType::Tool) {
            if case.surface.entry(entry.id()).is_none() {
                continue;
            }
            let made = self.working.of(entry);
            if case.settings.posture == Posture::Guard {
                self.calls += made.len();
            }
            let judge = |call: &&String| case.judge(entry.key(), Some(call.as_bytes()));
            let held = made.iter().filter(|call| judge(call).verdict.is_held()).count();
            tools += usize::from(held > 0);
            calls += held;
        }
        let count = self.count(case.settings.posture);
        count.call_pairs += usize::from(tools > 0);
        count.call_tools += tools;
        count.calls += calls;
    }
}

/// A sort key for versions: sorting by date and by semantic version both give the release order.
pub fn version_order(version: &str) -> (Vec<u64>, String) {
    let numbers = version.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok());
    (numbers.collect(), version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::surface::read_capture;

    fn release(description: &str) -> Surface {
        let tool = format!(
            r#"[{{"name":"t","description":"{description}","inputSchema":{{"type":"object"}}}}]"#
        );
        read_capture(tool.as_bytes()).expect("a capture")
    }

    #[test]
    fn pairs_of_releases_are_counted_by_posture() {
        let mut friction = Friction::default();
        friction.package(&[release("a"), release("a"), release("b")]);
        assert_eq!((friction.releases, friction.pairs, friction.changed), (3, 2, 1));
        assert_eq!(friction.of(Posture::Monitor).pairs, 0);
        assert_eq!(friction.of(Posture::Guard).pairs, 1);
        assert_eq!(friction.of(Posture::Shield).deferred, 1);
        assert_eq!(friction.kinds.get("description-only"), Some(&(1, 1)));
    }

    #[test]
    fn versions_are_sorted_by_their_numbers() {
        let mut versions = ["1.10.0", "1.9.0", "2025.4.1", "1.9.0-beta"];
        versions.sort_by_key(|version| version_order(version));
        assert_eq!(versions, ["1.9.0", "1.9.0-beta", "1.10.0", "2025.4.1"]);
    }
}
