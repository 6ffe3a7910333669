//! Comma-separated values according to RFC 4180, written so that a spreadsheet takes no cell for a
//! formula.

use super::text::visible;
use crate::receipt::{EventReceipt, Item, Receipt};

const COLUMNS: [&str; 42] = [
    "record",
    "ts",
    "receipt_id",
    "trace_id",
    "principal_sub",
    "principal_actor_type",
    "principal_client_id",
    "principal_org_id",
    "mcp_method",
    "mcp_server_id",
    "mcp_tool_name",
    "mcp_trust_level",
    "request_args_hash",
    "request_size_bytes_in",
    "decision_result",
    "decision_policy_id",
    "decision_reason_codes",
    "token_mode",
    "token_audience",
    "token_passthrough_detected",
    "sandbox_fs_policy",
    "sandbox_net_policy",
    "approval_required",
    "approval_approved_by",
    "approval_step_up",
    "outcome_status",
    "outcome_size_bytes_out",
    "drift_verdict",
    "drift_kinds",
    "drift_tier_reached",
    "admission_verdict",
    "admission_signer",
    "incident_mode",
    "latency_us_ours",
    "latency_us_theirs",
    "state",
    "ended_at",
    "event_name",
    "event_by",
    "event_data",
    "chain",
    "seq",
];

/// Spreadsheets take cells that begin with one of these for formulas. The last four are the
/// full-width forms of the first four.
const FORMULA_STARTS: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];

pub(super) fn write_header(out: &mut String) {
    out.push_str(&COLUMNS.join(","));
    out.push_str("\r\n");
}

pub(super) fn write(item: &Item, out: &mut String) -> Result<(), serde_json::Error> {
    let cells = match item {
        Item::Receipt(receipt) => receipt_cells(receipt),
        Item::Event(event) => event_cells(event)?,
    };
    for (number, text) in cells.iter().enumerate() {
        if number > 0 {
            out.push(',');
        }
        write_cell(text, out);
    }
    out.push_str("\r\n");
    Ok(())
}

fn receipt_cells(receipt: &Receipt) -> [String; COLUMNS.len()] {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let number = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
    let Receipt { principal, mcp, request, decision, token_handling: token, .. } = receipt;
    let (sandbox, approval) = (receipt.sandbox.as_ref(), receipt.approval.as_ref());
    let (drift, admission) = (receipt.drift.as_ref(), receipt.admission.as_ref());
    let outcome = receipt.outcome.as_ref();
    [
        "receipt".to_owned(),
        receipt.ts.precise().to_string(),
        receipt.receipt_id.to_string(),
        text(&receipt.trace_id),
        principal.sub.clone(),
        principal.actor_type.clone(),
        text(&principal.client_id),
        text(&principal.org_id),
        mcp.method.clone(),
        mcp.server_id.clone(),
        text(&mcp.tool_name),
        mcp.trust_level.clone(),
        text(&request.args_hash),
        request.size_bytes_in.to_string(),
        decision.word().to_owned(),
        text(&decision.policy_id),
        decision.reason_codes.join(" "),
        token.mode.clone(),
        text(&token.audience),
        token.passthrough_detected.to_string(),
        sandbox.map(|sandbox| sandbox.fs_policy.clone()).unwrap_or_default(),
        sandbox.map(|sandbox| sandbox.net_policy.clone()).unwrap_or_default(),
        approval.map(|approval| approval.required.to_string()).unwrap_or_default(),
        approval.and_then(|approval| approval.approved_by.clone()).unwrap_or_default(),
        approval.map(|approval| approval.step_up.clone()).unwrap_or_default(),
        outcome.map(|outcome| outcome.word().to_owned()).unwrap_or_default(),
        number(outcome.map(|outcome| outcome.size_bytes_out)),
        drift.map(|drift| drift.verdict.clone()).unwrap_or_default(),
        drift.map(|drift| drift.kinds.join(" ")).unwrap_or_default(),
        number(drift.map(|drift| u64::from(drift.tier_reached))),
        admission.map(|admission| admission.verdict.clone()).unwrap_or_default(),
        admission.and_then(|admission| admission.signer.clone()).unwrap_or_default(),
        receipt.incident_mode.to_string(),
        receipt.latency_us.ours.to_string(),
        number(receipt.latency_us.theirs),
        receipt.state.as_str().to_owned(),
        receipt.ended_at.map(|ended| ended.precise().to_string()).unwrap_or_default(),
        String::new(),
        String::new(),
        String::new(),
        receipt.chain.to_string(),
        receipt.seq.to_string(),
    ]
}

fn event_cells(event: &EventReceipt) -> Result<[String; COLUMNS.len()], serde_json::Error> {
    let data = event.data.as_ref().map(serde_json::to_string).transpose()?;
    let cell = |column: &str| match column {
        "record" => "event".to_owned(),
        "ts" => event.ts.precise().to_string(),
        "mcp_server_id" => event.server_id.clone().unwrap_or_default(),
        "event_name" => event.name.clone(),
        "event_by" => event.by.clone().unwrap_or_default(),
        "event_data" => data.clone().unwrap_or_default(),
        "chain" => event.chain.to_string(),
        "seq" => event.seq.to_string(),
        _ => String::new(),
    };
    Ok(COLUMNS.map(cell))
}

fn write_cell(text: &str, out: &mut String) {
    let text = visible(text);
    let is_formula = text.trim_start().starts_with(FORMULA_STARTS);
    // Some spreadsheets also separate cells by semicolons.
    if !is_formula && !text.contains(['"', ',', ';']) {
        out.push_str(&text);
        return;
    }
    out.push('"');
    if is_formula {
        out.push('\'');
    }
    out.push_str(&text.replace('"', "\"\""));
    out.push('"');
}
