//! What `holdpoint screen --json` prints (`docs/schemas/screen.json`).

use super::Screened;
use crate::server_text::ServerText;
use ::screen::dimension::DimensionResult;
use ::screen::finding::Finding;
use ::screen::limits::HonestLimit;
use ::screen::verdict::{CALIBRATED, EntryVerdict, Granularity, VERDICT_CONTRACT_VERSION};
use serde_json::{Value, json};

pub(super) fn of(screened: &Screened, text: ServerText, is_failed: bool) -> Value {
    let Screened { surface, screening, .. } = screened;
    let (now, hash) = (screening.screened_at, surface.surface_hash());
    let state = screening.state(now, hash);
    let dimensions = screening.dimensions();
    let granularity = screening.entries.iter().map(EntryVerdict::granularity).min();
    json!({
        "status": state.status,
        "directive": state.directive,
        "worst": screening.worst(),
        "failed": is_failed,
        "evidence_grade": screening.grade,
        "granularity": granularity.map(Granularity::as_str),
        "calibrated": CALIBRATED,
        "surface_hash": hash,
        "screened_at": screening.screened_at.to_string(),
        "expires_at": screening.expires_at.to_string(),
        "dimensions": dimensions.iter().map(dimension).collect::<Vec<_>>(),
        "findings": screening.findings().map(|found| finding(found, text)).collect::<Vec<_>>(),
        "entries": screening.entries.iter().map(|entry| json!({
            "type": entry.entry.entry_type,
            "name": gate::naming::shown_name(&entry.entry.key, false),
            "directive": entry.state(now, entry.binding.entry_hash).directive,
            "worst": entry.worst(),
            "definition_hash": entry.binding.definition_hash,
            "entry_hash": entry.binding.entry_hash,
        })).collect::<Vec<_>>(),
        "honest_limits": HonestLimit::of(&dimensions),
        "verdict_contract_version": VERDICT_CONTRACT_VERSION,
    })
}

fn dimension(result: &DimensionResult) -> Value {
    json!({
        "dimension": result.dimension,
        "outcome": result.outcome,
        "severity": result.severity,
        "rationale": result.rationale,
        "findings": result.findings.len(),
    })
}

fn finding(found: &Finding, text: ServerText) -> Value {
    let mut value = json!({
        "rule": found.rule,
        "dimension": found.dimension,
        "severity": found.severity,
        "reason": found.reason,
        "type": found.entry.entry_type,
        "name": found.entry_name(),
        "place": found.place(),
    });
    if let (ServerText::Shown, Some(members)) = (text, value.as_object_mut()) {
        members.insert("key".to_owned(), json!(found.entry.key));
        members.insert("pointer".to_owned(), json!(found.pointer));
        members.insert("text".to_owned(), json!(found.excerpt));
    }
    value
}
