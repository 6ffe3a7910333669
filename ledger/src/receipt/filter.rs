//! Filters for receipts.

use super::document::{EventReceipt, Item, Receipt};
use crate::record::RulingResult;
use contract::time::Timestamp;

/// The filter criteria; unset ones match everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    pub server: Option<String>,
    pub tool: Option<String>,
    pub principal: Option<String>,
    pub decision: Option<RulingResult>,
    pub reason: Option<String>,
    /// The first digits of receipt ids.
    pub id: Option<String>,
    /// From this time on.
    pub since: Option<Timestamp>,
    /// Before this time.
    pub until: Option<Timestamp>,
}

impl Filter {
    pub fn matches(&self, item: &Item) -> bool {
        match item {
            Item::Receipt(receipt) => self.matches_receipt(receipt),
            Item::Event(event) => self.matches_event(event),
        }
    }

    pub fn matches_receipt(&self, receipt: &Receipt) -> bool {
        let reasons = &receipt.decision.reason_codes;
        is_or_unasked(&self.server, Some(&receipt.mcp.server_id))
            && is_or_unasked(&self.tool, receipt.mcp.tool_name.as_ref())
            && is_or_unasked(&self.principal, Some(&receipt.principal.sub))
            && self.decision.is_none_or(|decision| decision == receipt.decision.result)
            && self.reason.as_ref().is_none_or(|reason| reasons.contains(reason))
            && self.id.as_ref().is_none_or(|id| receipt.receipt_id.to_string().starts_with(id))
            && self.matches_moment(receipt.ts)
    }

    /// Whether an event matches. It has no tool, decision, reason or id, so filters on those
    /// exclude it.
    pub fn matches_event(&self, event: &EventReceipt) -> bool {
        let is_about_calls = self.tool.is_some()
            || self.decision.is_some()
            || self.reason.is_some()
            || self.id.is_some();
        !is_about_calls
            && is_or_unasked(&self.server, event.server_id.as_ref())
            && is_or_unasked(&self.principal, event.by.as_ref())
            && self.matches_moment(event.ts)
    }

    fn matches_moment(&self, ts: Timestamp) -> bool {
        self.since.is_none_or(|since| ts >= since) && self.until.is_none_or(|until| ts < until)
    }
}

fn is_or_unasked(asked: &Option<String>, value: Option<&String>) -> bool {
    asked.is_none() || asked.as_ref() == value
}

/// The text is neither a time nor an age.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a time: expected a date (`2026-11-16`), a moment in UTC (`2026-11-16T08:00:00Z`) `today`, `yesterday` or an age (`90s`, `30m`, `1h`, `2d`, `1w`)"
)]
pub struct BadMoment(String);

const DAY_MS: i64 = 86_400_000;

/// Parses a time, an age before `now`, or the start of `today` or `yesterday` in UTC.
pub fn moment(text: &str, now: Timestamp) -> Result<Timestamp, BadMoment> {
    let bad = || BadMoment(text.chars().take(64).collect());
    if let Some(moment) = Timestamp::parse(text) {
        return Ok(moment);
    }
    let today = now.0.saturating_sub(now.0.rem_euclid(DAY_MS));
    match text {
        "today" => return Ok(Timestamp(today)),
        "yesterday" => return Ok(Timestamp(today.saturating_sub(DAY_MS))),
        _ => {}
    }
    let unit = text.chars().next_back().ok_or_else(bad)?;
    let seconds: i64 = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        'w' => 604_800,
        _ => return Err(bad()),
    };
    let digits = text.strip_suffix(unit).unwrap_or_default();
    let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: i64 = is_plain.then(|| digits.parse().ok()).flatten().ok_or_else(bad)?;
    let age = number.checked_mul(seconds * 1_000).ok_or_else(bad)?;
    Ok(Timestamp(now.0.saturating_sub(age)))
}
