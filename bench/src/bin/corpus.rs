//! What each posture would have held over a corpus of real servers' releases: every pair of adjacent releases, the
//! older one as approved by a person.
//!
//! The corpus is a folder `<registry>/<package>/<version>.json` of captures, named by an argument or by
//! `HOLDPOINT_CORPUS`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a measurement prints")]

use contract::change::ChangeKind;
use contract::surface::{Entry, EntryType, Surface, read_capture};
use gate::by_the_call::CallRulesCache;
use gate::call_verdict::CallCase;
use gate::judge::{Judgement, judge_surface};
use gate::pins::{Basis, Pin, PinBook};
use gate::posture::{Posture, Settings};
use gate::time::Timestamp;
use holdpoint_bench::working_calls::{self, WorkingCalls};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let named = std::env::args_os().nth(1).or_else(|| std::env::var_os("HOLDPOINT_CORPUS"));
    let Some(directory) = named.map(PathBuf::from).filter(|path| path.is_dir()) else {
        println!("no corpus: name its folder as an argument or in HOLDPOINT_CORPUS");
        return ExitCode::SUCCESS;
    };
    let mut tally = Tally::default();
    for registry in folders(&directory) {
        for package in folders(&registry) {
            tally.package(&package);
        }
    }
    tally.print();
    if tally.unreadable == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

#[derive(Default)]
struct Tally {
    releases: usize,
    unreadable: usize,
    pairs: usize,
    changed: usize,
    /// Tools of the older release that the newer one still has, over all pairs.
    tools: usize,
    held: BTreeMap<&'static str, usize>,
    deferred: BTreeMap<&'static str, usize>,
    /// Pairs with a tool whose calls worked and are now stopped, and such tools.
    stopped: BTreeMap<&'static str, (usize, usize)>,
    /// Calls that worked under the older release.
    calls: WorkingCalls,
    /// Calls that were judged, over all pairs.
    judged_calls: usize,
    /// Pairs, tools and calls that a posture stops, each call judged on its own.
    stopped_calls: BTreeMap<&'static str, (usize, usize, usize)>,
    /// In how many pairs a kind occurs, and in how many it occurs in an entry that guard holds.
    kinds: BTreeMap<&'static str, (usize, usize)>,
}

impl Tally {
    fn package(&mut self, folder: &Path) {
        let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|file| file.path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
            .collect();
        files.sort_by_key(|path| version(path));
        let mut earlier: Option<Surface> = None;
        for file in files {
            self.releases += 1;
            let read = std::fs::read(&file).ok().map(|bytes| read_capture(&bytes));
            let Some(Ok(surface)) = read else {
                println!("{}: {read:?}", file.display());
                self.unreadable += 1;
                continue;
            };
            if let Some(earlier) = &earlier {
                self.pair(earlier, &surface);
            }
            earlier = Some(surface);
        }
    }

    fn pair(&mut self, old: &Surface, new: &Surface) {
        self.pairs += 1;
        self.changed += usize::from(old.surface_hash() != new.surface_hash());
        let mut book = PinBook::default();
        for entry in old.entries() {
            let by = "somebody".to_owned();
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
            *self.held.entry(posture.as_str()).or_default() +=
                usize::from(judged.verdict.is_held());
            let is_deferred = judged.entries.iter().any(|entry| entry.is_deferred);
            *self.deferred.entry(posture.as_str()).or_default() += usize::from(is_deferred);
            let is_stopped = |entry: &&Judgement| {
                let is_tool = entry.id.entry_type == EntryType::Tool;
                is_tool
                    && entry.verdict.is_held()
                    && entry.before.is_some()
                    && entry.after.is_some()
            };
            let stopped = judged.entries.iter().filter(is_stopped).count();
            let count = self.stopped.entry(posture.as_str()).or_default();
            *count = (count.0 + usize::from(stopped > 0), count.1 + stopped);
            if posture != Posture::Guard {
                continue;
            }
            let kinds = |held_only: bool| -> BTreeSet<ChangeKind> {
                let entries =
                    judged.entries.iter().filter(|entry| !held_only || entry.verdict.is_held());
                entries
                    .flat_map(|entry| entry.findings.iter().map(|finding| finding.kind))
                    .collect()
            };
            for kind in kinds(false) {
                self.kinds.entry(kind.as_str()).or_default().0 += 1;
            }
            for kind in kinds(true) {
                self.kinds.entry(kind.as_str()).or_default().1 += 1;
            }
        }
    }

    /// Judges calls of every tool that the newer release still has.
    fn judge_calls(&mut self, old: &Surface, case: &CallCase<'_>) {
        let (mut tools, mut calls) = (0, 0);
        for entry in old.entries().filter(|entry| entry.entry_type() == EntryType::Tool) {
            if case.surface.entry(entry.id()).is_none() {
                continue;
            }
            let made = self.calls.of(entry);
            if case.settings.posture == Posture::Guard {
                self.judged_calls += made.len();
            }
            let judge = |call: &&String| case.judge(entry.key(), Some(call.as_bytes()));
            let held = made.iter().filter(|call| judge(call).verdict.is_held()).count();
            tools += usize::from(held > 0);
            calls += held;
        }
        let posture = case.settings.posture.as_str();
        let count = self.stopped_calls.entry(posture).or_default();
        *count = (count.0 + usize::from(tools > 0), count.1 + tools, count.2 + calls);
    }

    fn print_calls(&self) {
        println!(
            "calls that worked, made from the older release ({} a tool, seeded), of tools that the newer one has:",
            working_calls::CALLS
        );
        for posture in Posture::ALL {
            let stopped = self.stopped_calls.get(posture.as_str()).copied().unwrap_or_default();
            let share = |count: usize, of: usize| 100.0 * count as f64 / of.max(1) as f64;
            println!(
                "{posture:<8} stops a call in {:>4} of {} upgrades ({:>4.1} %), of {:>5} of {} tools ({:>4.1} %), {:>6} of {} calls ({:>4.1} %)",
                stopped.0,
                self.pairs,
                share(stopped.0, self.pairs),
                stopped.1,
                self.tools,
                share(stopped.1, self.tools),
                stopped.2,
                self.judged_calls,
                share(stopped.2, self.judged_calls),
            );
        }
    }

    fn print(&self) {
        let share = |count: usize| 100.0 * count as f64 / self.pairs.max(1) as f64;
        println!(
            "{} releases ({} unreadable), {} adjacent pairs, {} of them changed ({:.1} %)",
            self.releases,
            self.unreadable,
            self.pairs,
            self.changed,
            share(self.changed)
        );
        for posture in Posture::ALL {
            let count =
                |table: &BTreeMap<&str, usize>| table.get(posture.as_str()).copied().unwrap_or(0);
            let (held, deferred) = (count(&self.held), count(&self.deferred));
            println!(
                "{posture:<8} holds {held:>4} pairs ({:>4.1} %), defers something in {deferred:>4} ({:>4.1} %)",
                share(held),
                share(deferred)
            );
        }
        println!(
            "a tool that is in both releases, and of which the upgrade stops all calls, or some by the call:"
        );
        for posture in Posture::ALL {
            let (pairs, tools) = self.stopped.get(posture.as_str()).copied().unwrap_or_default();
            println!(
                "{posture:<8} {pairs:>4} of {} upgrades ({:>4.1} %), {tools:>5} of {} tools ({:>4.1} %)",
                self.pairs,
                share(pairs),
                self.tools,
                100.0 * tools as f64 / self.tools.max(1) as f64
            );
        }
        self.print_calls();
        println!("{:<34} {:>6} {:>24}", "kind", "pairs", "in an entry guard holds");
        for (kind, (pairs, held)) in &self.kinds {
            println!("{kind:<34} {pairs:>6} {held:>24}");
        }
    }
}

/// A version's numbers, for sorting: releases by date and by semantic version both come in order.
fn version(path: &Path) -> (Vec<u64>, String) {
    let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let numbers = name.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok());
    (numbers.collect(), name)
}
