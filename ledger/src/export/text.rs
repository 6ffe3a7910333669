//! Shared by all formats: a sentence and a severity for each item, and escapes for hidden
//! characters.

use crate::receipt::{EventReceipt, Item, Receipt, ReceiptState};
use crate::record::{OutcomeStatus, RulingResult};
use contract::hidden::is_hidden;

/// The severity of an item, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    Informational,
    Low,
    Medium,
    High,
}

/// The severity of an item.
pub fn weight_of(item: &Item) -> Weight {
    match item {
        Item::Receipt(receipt) => weight_of_receipt(receipt),
        Item::Event(event) => weight_of_event(event),
    }
}

fn weight_of_receipt(receipt: &Receipt) -> Weight {
    if receipt.token_handling.passthrough_detected {
        return Weight::High;
    }
    match (receipt.decision.result, receipt.state, &receipt.outcome) {
        (RulingResult::Deny | RulingResult::RequireApproval, ..) => Weight::Medium,
        (RulingResult::Allow, ReceiptState::NoOutcome | ReceiptState::Refused, _) => Weight::Low,
        (RulingResult::Allow, ReceiptState::Open, _)
        | (RulingResult::Allow, ReceiptState::Ended, None) => Weight::Informational,
        (RulingResult::Allow, ReceiptState::Ended, Some(outcome)) => match outcome.status {
            OutcomeStatus::Success => Weight::Informational,
            OutcomeStatus::Error | OutcomeStatus::Timeout => Weight::Low,
        },
    }
}

fn weight_of_event(event: &EventReceipt) -> Weight {
    let name = event.name.as_str();
    if name.starts_with("incident.") || name == "egress.blocked" {
        Weight::High
    } else if name.ends_with(".deny") || name == "server.quarantine" || name == "chain.retention" {
        Weight::Medium
    } else if name.ends_with(".warn") || name == "outcome.overridden" {
        Weight::Low
    } else {
        Weight::Informational
    }
}

/// Describes an item in a sentence.
pub fn message(item: &Item) -> String {
    match item {
        Item::Receipt(receipt) => {
            let what = match &receipt.mcp.tool_name {
                Some(tool) => format!("{} `{tool}`", receipt.mcp.method),
                None => receipt.mcp.method.clone(),
            };
            let reasons = receipt.decision.reason_codes.join(", ");
            let why = if reasons.is_empty() { String::new() } else { format!(" ({reasons})") };
            let became = match receipt.decision.result {
                RulingResult::Allow => match (&receipt.outcome, receipt.state) {
                    (Some(outcome), _) => format!("allowed, {}", outcome.word()),
                    (None, ReceiptState::NoOutcome) => "allowed, no outcome recorded".to_owned(),
                    (None, ReceiptState::Open | ReceiptState::Ended | ReceiptState::Refused) => {
                        "allowed".to_owned()
                    }
                },
                RulingResult::Deny => "denied".to_owned(),
                RulingResult::RequireApproval => "needs approval".to_owned(),
            };
            let server = &receipt.mcp.server_id;
            visible(&format!("{what} on `{server}`: {became}{why}"))
        }
        Item::Event(event) => {
            let server = event.server_id.as_ref().map(|id| format!(" on `{id}`"));
            let by = event.by.as_ref().map(|by| format!(" by {by}"));
            let (server, by) = (server.unwrap_or_default(), by.unwrap_or_default());
            visible(&format!("{}{server}{by}", event.name))
        }
    }
}

/// A text with its hidden characters, including line endings, escaped as `\u{…}`. A backslash
/// before `u{` is escaped too, so that the text can be recovered.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for (at, character) in text.char_indices() {
        let looks_spelled =
            || character == '\\' && text.get(at..).is_some_and(|rest| rest.starts_with("\\u{"));
        if is_hidden(character) || looks_spelled() {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// JSON with the hidden characters in its strings as JSON escapes: parsers read the same value, and
/// people can see them.
pub(super) fn visible_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for character in json.chars() {
        if is_hidden(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                shown.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            shown.push(character);
        }
    }
    shown
}
