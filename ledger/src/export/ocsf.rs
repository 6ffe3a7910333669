//! The Open Cybersecurity Schema Framework: a call becomes an *API Activity* (6003), a person's act
//! on a server an *Entity Management* (3004), any other event a *Base Event* (0).
//!
//! The ledger's hashes go under `unmapped`: OCSF's `attestation` covers the OCSF event, while ours
//! cover the line.

use super::text::{Weight, message, weight_of};
use crate::receipt::{EventReceipt, Item, Receipt, ReceiptState};
use crate::record::{OutcomeStatus, RulingResult};
use contract::time::Timestamp;
use serde_json::{Map, Value, json};

/// The version of the OCSF schema.
pub const OCSF_VERSION: &str = "1.9.0";

const UNKNOWN: u64 = 0;
const OTHER: u64 = 99;

/// An item as an OCSF event.
pub(super) fn document(item: &Item) -> Result<Value, serde_json::Error> {
    let mut event = match item {
        Item::Receipt(receipt) => api_activity(receipt)?,
        Item::Event(event) if event.name.starts_with("server.") && event.server_id.is_some() => {
            entity_management(event)
        }
        Item::Event(event) => base_event(event),
    };
    let (id, name) = match weight_of(item) {
        Weight::Informational => (1, "Informational"),
        Weight::Low => (2, "Low"),
        Weight::Medium => (3, "Medium"),
        Weight::High => (4, "High"),
    };
    event.insert("severity_id".into(), json!(id));
    event.insert("severity".into(), json!(name));
    event.insert("message".into(), json!(message(item)));
    without_nulls(&mut event);
    Ok(Value::Object(event))
}

/// The class of an event.
struct Class {
    category: (u64, &'static str),
    class: (u64, &'static str),
    activity: (u64, String),
}

impl Class {
    fn begin(&self, time: Timestamp, metadata: Value) -> Map<String, Value> {
        let (class, class_name) = self.class;
        let (activity, activity_name) = &self.activity;
        let shown = if *activity == OTHER { "Other" } else { activity_name };
        let mut event = Map::new();
        for (name, value) in [
            ("metadata", metadata),
            ("time", json!(time.0)),
            ("timezone_offset", json!(0)),
            ("category_uid", json!(self.category.0)),
            ("category_name", json!(self.category.1)),
            ("class_uid", json!(class)),
            ("class_name", json!(class_name)),
            ("activity_id", json!(activity)),
            ("activity_name", json!(activity_name)),
            ("type_uid", json!(class * 100 + activity)),
            ("type_name", json!(format!("{class_name}: {shown}"))),
        ] {
            event.insert(name.to_owned(), value);
        }
        event
    }
}

fn metadata(uid: &str, seq: u64, time: Timestamp, profiles: &[&str]) -> Value {
    json!({
        "version": OCSF_VERSION,
        "product": {
            "name": "Holdpoint",
            "vendor_name": "Holdpoint",
            "version": env!("CARGO_PKG_VERSION"),
            "feature": { "name": "receipts" },
        },
        "uid": uid,
        "original_event_uid": uid,
        "sequence": seq,
        "profiles": profiles,
        "log_name": "receipts",
        "log_provider": "holdpoint",
        "original_time": time.precise().to_string(),
    })
}

fn api_activity(receipt: &Receipt) -> Result<Map<String, Value>, serde_json::Error> {
    let Receipt { principal, mcp, .. } = receipt;
    let mut profiles = vec!["security_control"];
    profiles.extend(receipt.trace_id.as_ref().map(|_| "trace"));
    profiles.extend(is_agent(receipt).then_some("ai_operation"));
    let id = receipt.receipt_id.to_string();
    let mut metadata = metadata(&id, receipt.seq, receipt.ts, &profiles);
    if let Some(members) = metadata.as_object_mut() {
        members.insert("tenant_uid".to_owned(), json!(principal.org_id));
    }
    let class = Class {
        category: (6, "Application Activity"),
        class: (6003, "API Activity"),
        activity: activity_of(&mcp.method),
    };
    let mut event = class.begin(receipt.ts, metadata);
    add(&mut event, how_it_ended(receipt));
    add(&mut event, what_was_decided(receipt));
    add(&mut event, who_asked(receipt));
    add(&mut event, what_was_asked(receipt));
    add(&mut event, [("unmapped", unmapped(receipt)?)]);
    Ok(event)
}

fn add<const N: usize>(event: &mut Map<String, Value>, attributes: [(&str, Value); N]) {
    event.extend(attributes.map(|(name, value)| (name.to_owned(), value)));
}

fn is_agent(receipt: &Receipt) -> bool {
    receipt.principal.actor_type == "agent"
}

fn how_it_ended(receipt: &Receipt) -> [(&'static str, Value); 7] {
    let (status_id, status, status_code) = status_of(receipt);
    let reasons = &receipt.decision.reason_codes;
    let took = receipt.ended_at.map(|ended| ended.0.saturating_sub(receipt.ts.0).max(0));
    [
        ("start_time", json!(receipt.ts.0)),
        ("end_time", json!(receipt.ended_at.map(|ended| ended.0))),
        ("duration", json!(took)),
        ("status_id", json!(status_id)),
        ("status", json!(status)),
        ("status_code", json!(status_code)),
        ("status_detail", json!((!reasons.is_empty()).then(|| reasons.join(", ")))),
    ]
}

fn what_was_decided(receipt: &Receipt) -> [(&'static str, Value); 6] {
    let (action, disposition) = control_of(receipt);
    let decision = &receipt.decision;
    let policy = decision.policy_id.as_ref().map(|id| json!({ "uid": id, "name": id }));
    [
        ("action_id", json!(action.0)),
        ("action", json!(action.1)),
        ("disposition_id", json!(disposition.0)),
        ("disposition", json!(disposition.1)),
        ("is_alert", json!(decision.result == RulingResult::Deny)),
        ("policy", json!(policy)),
    ]
}

fn who_asked(receipt: &Receipt) -> [(&'static str, Value); 4] {
    let principal = &receipt.principal;
    let (type_id, type_name) = match principal.actor_type.as_str() {
        "user" => (1, "User"),
        "system" => (3, "System"),
        other => (OTHER, other),
    };
    let user = json!({
        "uid": principal.sub,
        "name": principal.sub,
        "type_id": type_id,
        "type": type_name,
        "org": principal.org_id.as_ref().map(|org| json!({ "uid": org })),
    });
    let client = principal.client_id.as_ref().map(|id| json!({ "uid": id, "name": id }));
    let agent = json!({ "uid": principal.sub, "name": principal.sub, "type_id": UNKNOWN });
    // A client on the same machine has no address, but an endpoint needs some name.
    let name = principal.client_id.as_deref().unwrap_or("mcp-client");
    [
        ("actor", json!({ "user": user, "application": client })),
        ("ai_agent", json!(is_agent(receipt).then_some(agent))),
        ("src_endpoint", json!({ "name": name, "uid": principal.client_id })),
        ("trace", json!(receipt.trace_id.as_ref().map(|id| json!({ "uid": id })))),
    ]
}

fn what_was_asked(receipt: &Receipt) -> [(&'static str, Value); 3] {
    let mcp = &receipt.mcp;
    let (status_id, _, status_code) = status_of(receipt);
    let reason = receipt.decision.reason_codes.first().map_or(status_code, String::as_str);
    let api = json!({
        "operation": mcp.method,
        "service": { "name": mcp.server_id, "uid": mcp.server_id },
        "request": { "uid": receipt.receipt_id },
        "response": { "error": (status_id == 2).then_some(reason), "message": status_code },
    });
    let kind = resource_type(&mcp.method);
    let resource = mcp.tool_name.as_ref().map(|name| json!([{ "name": name, "type": kind }]));
    [
        ("api", api),
        ("dst_endpoint", json!({ "name": mcp.server_id, "svc_name": mcp.server_id })),
        ("resources", json!(resource)),
    ]
}

/// The parts of a receipt without an OCSF attribute.
fn unmapped(receipt: &Receipt) -> Result<Value, serde_json::Error> {
    let Value::Object(mut rest) = serde_json::to_value(receipt)? else { return Ok(Value::Null) };
    const MAPPED: [&str; 5] = ["ts", "receipt_id", "trace_id", "principal", "ended_at"];
    rest.retain(|name, _| !MAPPED.contains(&name.as_str()));
    if let Some(Value::Object(mcp)) = rest.get_mut("mcp") {
        mcp.retain(|name, _| name == "trust_level");
    }
    Ok(Value::Object(rest))
}

fn activity_of(method: &str) -> (u64, String) {
    let is_read = method.ends_with("/list")
        || ["resources/read", "prompts/get", "completion/complete", "ping"].contains(&method);
    if is_read {
        return (2, "Read".to_owned());
    }
    let name = if method == "tools/call" { "Call" } else { method };
    (OTHER, name.to_owned())
}

fn resource_type(method: &str) -> &'static str {
    match method.split('/').next() {
        Some("tools") => "MCP tool",
        Some("prompts") => "MCP prompt",
        Some("resources") => "MCP resource",
        _ => "MCP entry",
    }
}

/// `status_id` with its caption, and a word for the outcome of the call.
fn status_of(receipt: &Receipt) -> (u64, &'static str, &'static str) {
    match (&receipt.outcome, receipt.state) {
        (Some(outcome), _) => match outcome.status {
            OutcomeStatus::Success => (1, "Success", outcome.word()),
            OutcomeStatus::Error | OutcomeStatus::Timeout => (2, "Failure", outcome.word()),
        },
        (None, ReceiptState::Refused) => (2, "Failure", receipt.decision.word()),
        (None, state @ (ReceiptState::Open | ReceiptState::NoOutcome | ReceiptState::Ended)) => {
            (UNKNOWN, "Unknown", state.as_str())
        }
    }
}

/// `action_id` and `disposition_id` with their captions.
fn control_of(receipt: &Receipt) -> ((u64, &'static str), (u64, &'static str)) {
    let is_approved =
        receipt.approval.as_ref().is_some_and(|approval| approval.approved_by.is_some());
    match receipt.decision.result {
        RulingResult::Allow if is_approved => ((1, "Allowed"), (8, "Approved")),
        RulingResult::Allow => ((1, "Allowed"), (1, "Allowed")),
        // A call that needs approval is refused, not delayed: the client may ask again.
        RulingResult::Deny | RulingResult::RequireApproval => ((2, "Denied"), (2, "Blocked")),
    }
}

fn event_uid(event: &EventReceipt) -> String {
    format!("{}:{}", event.chain, event.seq)
}

fn entity_management(event: &EventReceipt) -> Map<String, Value> {
    let activity = match event.name.as_str() {
        "server.pin" => (1, "Create"),
        "server.observe" => (2, "Read"),
        "server.forget" => (4, "Delete"),
        _ => (3, "Update"),
    };
    let class = Class {
        category: (3, "Identity & Access Management"),
        class: (3004, "Entity Management"),
        activity: (activity.0, activity.1.to_owned()),
    };
    let metadata = metadata(&event_uid(event), event.seq, event.ts, &[]);
    let mut document = class.begin(event.ts, metadata);
    let entity = json!({ "uid": event.server_id, "name": event.server_id, "type": "MCP server" });
    let user = |by| json!({ "user": { "uid": by, "name": by, "type_id": 1, "type": "User" } });
    add(
        &mut document,
        [
            ("entity", entity),
            ("comment", json!(event.name)),
            ("actor", json!(event.by.as_ref().map(user))),
            ("status_id", json!(1)),
            ("status", json!("Success")),
        ],
    );
    add_event(event, &mut document);
    document
}

fn base_event(event: &EventReceipt) -> Map<String, Value> {
    let class = Class {
        category: (0, "Uncategorized"),
        class: (0, "Base Event"),
        activity: (OTHER, event.name.clone()),
    };
    let metadata = metadata(&event_uid(event), event.seq, event.ts, &[]);
    let mut document = class.begin(event.ts, metadata);
    add_event(event, &mut document);
    document
}

/// A base event has no attribute for the actor, who is under `unmapped`.
fn add_event(event: &EventReceipt, document: &mut Map<String, Value>) {
    if let Some(members) = document.get_mut("metadata").and_then(Value::as_object_mut) {
        members.insert("event_code".to_owned(), json!(event.name));
    }
    let unmapped = json!({
        "name": event.name,
        "by": event.by,
        "server_id": event.server_id,
        "data": event.data,
        "chain": event.chain,
        "seq": event.seq,
        "hash": event.hash,
    });
    document.insert("unmapped".to_owned(), unmapped);
}

/// Removes unknown values, as OCSF requires. Under `unmapped`, everything stays as in the ledger.
fn without_nulls(object: &mut Map<String, Value>) {
    object.retain(|_, value| !value.is_null());
    for (name, value) in object.iter_mut() {
        if let Value::Object(inner) = value
            && name != "unmapped"
        {
            without_nulls(inner);
        }
    }
}
