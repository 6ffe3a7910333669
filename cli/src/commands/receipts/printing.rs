//! Prints receipts one per line, as text or as JSON, until the reader closes the output.

use crate::arguments::Options;
use crate::failure::Failure;
use crate::screen::{self, BOLD, DIM, GREEN, RED, YELLOW, styled};
use contract::change::{ChangeKind, Finding};
use gate::words::{self, Audience};
use ledger::receipt::{EventReceipt, Item, Note, Receipt, ReceiptState};
use ledger::record::{OutcomeStatus, RulingResult};
use std::io::{self, Write};

/// The most problems that are listed one by one.
const MAX_TOLD_NOTES: usize = 20;

/// Prints what could not be read. The command continues.
pub(crate) fn remark_notes(notes: &[Note]) {
    for note in notes.iter().take(MAX_TOLD_NOTES) {
        screen::remark(format!(
            "{} {}",
            styled(YELLOW, "note:"),
            screen::readable(&note.to_string())
        ));
    }
    if notes.len() > MAX_TOLD_NOTES {
        let rest = notes.len() - MAX_TOLD_NOTES;
        screen::remark(format!("{} and {rest} more of them", styled(YELLOW, "note:")));
    }
    if !notes.is_empty() {
        screen::remark(styled(DIM, "`holdpoint receipts verify` says what that means"));
    }
}

/// Whether the output is still open.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    There,
    Gone,
}

/// Whether the reader is still there after a write. A closed pipe ends the listing without an
/// error.
pub(crate) fn reader(written: io::Result<()>) -> Result<Reader, Failure> {
    match written {
        Ok(()) => Ok(Reader::There),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => Err(error.into()),
    }
}

/// Prints an item as one line, as text or as JSON.
pub(crate) fn print(item: &Item, options: &Options) -> Result<Reader, Failure> {
    let written = if options.json {
        let text = serde_json::to_string(item)?;
        writeln!(io::stdout(), "{text}")
    } else {
        screen::try_say(&line(item))
    };
    reader(written)
}

fn line(item: &Item) -> String {
    match item {
        Item::Receipt(receipt) => receipt_line(receipt),
        Item::Event(event) => event_line(event),
    }
}

fn receipt_line(receipt: &Receipt) -> String {
    let decision = match receipt.decision.result {
        RulingResult::Allow => styled(GREEN, "ALLOWED"),
        RulingResult::Deny => styled(RED.bold(), "DENIED "),
        RulingResult::RequireApproval => styled(YELLOW.bold(), "HELD   "),
    };
    let what = receipt.mcp.tool_name.as_ref().unwrap_or(&receipt.mcp.method);
    format!(
        "{}  {}  {decision}  {} {}  {}  {}",
        styled(DIM, receipt.ts),
        styled(DIM, receipt.receipt_id),
        screen::readable(&receipt.mcp.server_id),
        styled(BOLD, screen::readable(what)),
        screen::readable(&receipt.principal.sub),
        end(receipt),
    )
}

/// How a call ended, or why it was not made.
pub(crate) fn end(receipt: &Receipt) -> String {
    match (&receipt.outcome, receipt.state) {
        (Some(outcome), _) => {
            let style = match outcome.status {
                OutcomeStatus::Success => GREEN,
                OutcomeStatus::Error | OutcomeStatus::Timeout => YELLOW,
            };
            let theirs = receipt.latency_us.theirs.map(milliseconds).unwrap_or_default();
            format!("{}{theirs}", styled(style, outcome.word()))
        }
        (None, ReceiptState::NoOutcome) => styled(RED, "no outcome recorded"),
        (None, ReceiptState::Open | ReceiptState::Ended) => styled(YELLOW, "no outcome yet"),
        (None, ReceiptState::Refused) => {
            let reasons = screen::readable(&receipt.decision.reason_codes.join(", "));
            match why(receipt).as_slice() {
                [] => reasons,
                [one] => format!("{reasons}: {one}"),
                [first, others @ ..] => format!("{reasons}: {first} (and {} more)", others.len()),
            }
        }
    }
}

/// What had changed, by the names of the kinds. The ledger contains no server text, so no parameter
/// is named.
pub(crate) fn why(receipt: &Receipt) -> Vec<String> {
    let kinds = receipt.drift.iter().flat_map(|drift| &drift.kinds);
    let known =
        kinds.filter_map(|kind| ChangeKind::ALL.iter().find(|known| known.as_str() == kind));
    let finding = |kind: &ChangeKind| Finding::new(*kind, String::new(), None, None);
    let mut findings: Vec<Finding> = known.map(finding).collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.class));
    findings.iter().map(|finding| words::say(finding, Audience::Person)).collect()
}

fn milliseconds(microseconds: u64) -> String {
    format!(" in {}.{} ms", microseconds / 1_000, microseconds / 100 % 10)
}

fn event_line(event: &EventReceipt) -> String {
    let by =
        event.by.as_ref().map(|by| format!("  by {}", screen::readable(by))).unwrap_or_default();
    let server = event.server_id.as_deref().map(screen::readable).unwrap_or_default();
    format!(
        "{}  {}  {}  {server}{by}",
        styled(DIM, event.ts),
        styled(DIM, format!("{:<32}", "event")),
        styled(BOLD, screen::readable(&event.name)),
    )
}
