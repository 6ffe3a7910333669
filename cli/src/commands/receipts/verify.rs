//! `holdpoint receipts verify`: checks whether the evidence is complete, and says what it can and
//! cannot prove.

use super::{folder, keys, read_file};
use crate::arguments::Options;
use crate::arguments::receipts::VerifyCommand;
use crate::failure::{Exit, Failure};
use crate::report::count;
use crate::screen::{self, BOLD, DIM, GREEN, RED, YELLOW, readable, styled};
use ledger::checkpoint::{Checkpoint, MAX_HEADS, split_checkpoints};
use ledger::note::Keyring;
use ledger::proof::ProofSummary;
use ledger::proof::document::MAX_PROOF_BYTES;
use ledger::verify::{Report, verify};
use serde_json::json;
use std::cell::Cell;
use std::io::IsTerminal;
use std::path::PathBuf;

/// The largest file of checkpoints that is read.
const MAX_HEAD_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// How many bytes pass between two updates of the progress bar.
const PROGRESS_STEP_BYTES: u64 = 4 * 1024 * 1024;

const PROVES: &str = "This proves that no line of these chains was removed, changed or inserted up to their newest checkpoints.";
const CANNOT_PROVE: &str = "It cannot prove that the newest part is still there, nor that the whole folder is not an older copy: only a checkpoint kept elsewhere can (`--head`, made by `holdpoint receipts prove --heads`).";
const HEAD_PROVES: &str = "The checkpoints kept elsewhere show that nothing they cover is missing. It cannot prove that what came after them is still there.";

pub(crate) fn run(command: &VerifyCommand, options: &Options) -> Result<Exit, Failure> {
    let keys = keys(&command.evidence, options)?;
    if let Some(path) = &command.proof {
        return check_proof(path, &keys, options);
    }
    let heads = read_heads(&command.head, &keys)?;
    // A kept checkpoint proves that receipts existed.
    let folder = folder(command.folder.as_deref(), options).map_err(|failure| {
        if heads.is_empty() {
            failure
        } else {
            Failure::evidence(format!(
                "a checkpoint was kept, and its receipts are gone: {failure}"
            ))
        }
    })?;
    let bar = Bar::new(options);
    let report = verify(&folder, &keys, &heads, &|bytes| bar.advance(bytes))?;
    bar.end();
    if report.chains.is_empty() && report.problems.is_empty() {
        return Err(Failure::evidence(format!(
            "`{}` holds no receipts, and a folder of receipts always has an index",
            folder.path().display()
        )));
    }
    if options.json {
        screen::print_json(&as_json(&report, &keys, heads.len()))?;
    } else {
        print_result(&report, &keys, heads.len(), options);
    }
    Ok(if report.is_sound() { Exit::Fine } else { Exit::Evidence })
}

/// Reads the kept heads, all of which must verify: otherwise a user would rely on a head that
/// proves nothing.
fn read_heads(paths: &[PathBuf], keys: &Keyring) -> Result<Vec<Checkpoint>, Failure> {
    let mut heads = Vec::new();
    for path in paths {
        let text = read_file(path, MAX_HEAD_FILE_BYTES)?;
        let before = heads.len();
        for note in split_checkpoints(&text) {
            let head = Checkpoint::open(note, keys).map_err(|error| {
                Failure::evidence(format!("`{}` is not a checkpoint: {error}", path.display()))
            })?;
            heads.push(head);
        }
        if heads.len() == before {
            return Err(Failure::usage(format!("`{}` holds no checkpoint", path.display())));
        }
        if heads.len() > MAX_HEADS {
            return Err(Failure::usage(format!("more than {MAX_HEADS} checkpoints")));
        }
    }
    Ok(heads)
}

fn as_json(report: &Report, keys: &Keyring, heads: usize) -> serde_json::Value {
    json!({
        "verified": report.is_sound(),
        "keys": keys.keys().iter().map(ToString::to_string).collect::<Vec<_>>(),
        "lines": report.lines(),
        "uncovered_lines": report.uncovered(),
        "calls_without_outcome": report.without_outcome(),
        "heads_compared": heads,
        "problems": report.problems,
        "notes": report.notes,
        "left_out": report.left_out,
        "chains": report.chains,
        "proves": report.is_sound().then_some(PROVES),
        "cannot_prove": if heads == 0 { CANNOT_PROVE } else { HEAD_PROVES },
    })
}

fn print_result(report: &Report, keys: &Keyring, heads: usize, options: &Options) {
    let segments: u64 = report.chains.iter().map(|chain| chain.segments).sum();
    let counts = [
        count(report.chains.len() as u64, "chain", "chains"),
        count(segments, "segment", "segments"),
        count(report.lines(), "line", "lines"),
    ]
    .join(", ");
    for problem in &report.problems {
        screen::say(format!(
            "{} {}",
            styled(RED.bold(), "✗"),
            screen::readable(&problem.to_string())
        ));
    }
    for note in &report.notes {
        screen::say(format!("{} {}", styled(YELLOW, "!"), screen::readable(note)));
    }
    if report.left_out > 0 {
        screen::say(format!("… and {} more", report.left_out));
    }
    if options.verbose {
        for chain in &report.chains {
            let (from, to) = (chain.first_ts.as_deref(), chain.last_ts.as_deref());
            screen::say(format!(
                "  chain {}: {} lines, {} decisions, {} covered, {} to {}",
                chain.chain,
                chain.lines,
                chain.decisions,
                chain.covered,
                from.unwrap_or("—"),
                to.unwrap_or("—")
            ));
        }
    }
    if report.is_sound() {
        screen::say(format!("{} {counts}", styled(GREEN.bold(), "verified:")));
    } else {
        let found = report.problems.len() as u64 + report.left_out;
        screen::say(format!(
            "{} {} in {counts}",
            styled(RED.bold(), "does not verify:"),
            count(found, "problem", "problems")
        ));
    }
    let signers: Vec<String> = keys.keys().iter().map(ToString::to_string).collect();
    screen::say(format!("signed by {}", readable(&signers.join(", "))));
    let uncovered = count(report.uncovered(), "line is", "lines are");
    screen::say(format!("{} not covered by a checkpoint yet", styled(BOLD, uncovered)));
    if report.without_outcome() > 0 {
        let calls = count(
            report.without_outcome(),
            "call was allowed and has",
            "calls were allowed and have",
        );
        screen::say(format!("{calls} no outcome"));
    }
    if report.is_sound() && !options.quiet {
        screen::say(styled(DIM, PROVES));
        screen::say(styled(DIM, if heads == 0 { CANNOT_PROVE } else { HEAD_PROVES }));
    }
}

fn check_proof(path: &std::path::Path, keys: &Keyring, options: &Options) -> Result<Exit, Failure> {
    let text = read_file(path, MAX_PROOF_BYTES as u64)?;
    let summary = ledger::proof::check(&text, keys).map_err(Failure::evidence)?;
    let (document, sentence) = match &summary {
        ProofSummary::Inclusion { origin, chain, index, size, line_hash, receipt_id } => (
            json!({"verified": true, "kind": "inclusion", "origin": origin, "chain": chain, "index": index,
                   "size": size, "hash": line_hash, "receipt_id": receipt_id}),
            format!(
                "the receipt {} is line {} of the {size} that the checkpoint of {origin} covers",
                receipt_id.as_deref().unwrap_or("(an event)"),
                index + 1
            ),
        ),
        ProofSummary::Consistency { origin, chain, old, new } => (
            json!({"verified": true, "kind": "consistency", "origin": origin, "chain": chain, "old": old, "new": new}),
            format!("{origin} grew from {old} to {new} lines, and the first {old} are the same"),
        ),
    };
    if options.json {
        screen::print_json(&document)?;
    } else {
        screen::say(format!("{} {}", styled(GREEN.bold(), "proven:"), readable(&sentence)));
    }
    Ok(Exit::Fine)
}

/// Progress on standard error, if it is a terminal.
struct Bar {
    bar: Option<indicatif::ProgressBar>,
    bytes: Cell<u64>,
}

impl Bar {
    fn new(options: &Options) -> Bar {
        let is_wanted = std::io::stderr().is_terminal() && !options.quiet && !options.json;
        let bar = is_wanted.then(|| {
            let bar = indicatif::ProgressBar::new_spinner();
            let style =
                indicatif::ProgressStyle::with_template("{spinner} {bytes} read ({bytes_per_sec})");
            if let Ok(style) = style {
                bar.set_style(style);
            }
            bar
        });
        Bar { bar, bytes: Cell::new(0) }
    }

    fn advance(&self, bytes: u64) {
        let Some(bar) = &self.bar else { return };
        self.bytes.set(self.bytes.get() + bytes);
        if self.bytes.get() >= PROGRESS_STEP_BYTES {
            bar.inc(self.bytes.replace(0));
        }
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
