//! Common Event Format: a header of seven fields separated by bars, and an extension of `key=value`
//! pairs.

use super::text::{Weight, message, visible, weight_of};
use crate::receipt::{EventReceipt, Item, Receipt};
use crate::record::RulingResult;

pub(super) fn write(item: &Item, out: &mut String) {
    let (id, name) = match item {
        Item::Receipt(receipt) => match receipt.decision.result {
            RulingResult::Allow => ("call.allow".to_owned(), "Call allowed"),
            RulingResult::Deny => ("call.deny".to_owned(), "Call denied"),
            RulingResult::RequireApproval => {
                ("call.require_approval".to_owned(), "Call needs approval")
            }
        },
        Item::Event(event) => (event.name.clone(), "Event"),
    };
    let severity = match weight_of(item) {
        Weight::Informational => 1,
        Weight::Low => 3,
        Weight::Medium => 6,
        Weight::High => 8,
    };
    out.push_str("CEF:0|Holdpoint|holdpoint|");
    for field in [env!("CARGO_PKG_VERSION"), &id, name] {
        out.push_str(&in_header(field));
        out.push('|');
    }
    out.push_str(&format!("{severity}|"));
    let mut extension = Extension(Vec::new());
    match item {
        Item::Receipt(receipt) => receipt_fields(receipt, &mut extension),
        Item::Event(event) => event_fields(event, &mut extension),
    }
    extension.add_visible("msg", &message(item));
    out.push_str(&extension.0.join(" "));
}

/// The non-empty fields, in order.
struct Extension(Vec<String>);

impl Extension {
    fn add(&mut self, key: &str, value: &str) {
        self.add_visible(key, &visible(value));
    }

    /// Adds a text in which hidden characters are already escaped.
    fn add_visible(&mut self, key: &str, value: &str) {
        if !value.is_empty() {
            self.0.push(format!("{key}={}", in_extension(value)));
        }
    }

    fn add_some(&mut self, key: &str, value: &Option<String>) {
        self.add(key, value.as_deref().unwrap_or_default());
    }

    /// Adds a field that CEF has no name for.
    fn add_labelled(&mut self, key: &str, label: &str, value: &str) {
        if !value.is_empty() {
            self.add(&format!("{key}Label"), label);
            self.add(key, value);
        }
    }
}

fn receipt_fields(receipt: &Receipt, out: &mut Extension) {
    let number = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
    let Receipt { principal, mcp, decision, .. } = receipt;
    out.add("rt", &receipt.ts.0.to_string());
    out.add("end", &receipt.ended_at.map(|ended| ended.0.to_string()).unwrap_or_default());
    out.add("externalId", &receipt.receipt_id.to_string());
    out.add("act", decision.word());
    out.add("outcome", receipt.outcome.as_ref().map_or(receipt.state.as_str(), |end| end.word()));
    out.add("reason", &decision.reason_codes.join(","));
    out.add("app", "mcp");
    out.add("requestMethod", &mcp.method);
    out.add("suser", &principal.sub);
    out.add("spriv", &principal.actor_type);
    out.add_some("sourceServiceName", &principal.client_id);
    out.add("destinationServiceName", &mcp.server_id);
    out.add("in", &receipt.request.size_bytes_in.to_string());
    out.add("out", &number(receipt.outcome.as_ref().map(|outcome| outcome.size_bytes_out)));
    out.add_labelled("cs1", "tool", mcp.tool_name.as_deref().unwrap_or_default());
    out.add_labelled("cs2", "policy", decision.policy_id.as_deref().unwrap_or_default());
    out.add_labelled("cs3", "traceId", receipt.trace_id.as_deref().unwrap_or_default());
    let drift = receipt.drift.as_ref();
    out.add_labelled("cs4", "drift", drift.map_or("", |drift| drift.verdict.as_str()));
    let args_hash = receipt.request.args_hash.as_deref().unwrap_or_default();
    out.add_labelled("cs5", "argsHash", args_hash);
    out.add_labelled("cs6", "chain", receipt.chain.as_str());
    out.add_labelled("cn1", "seq", &receipt.seq.to_string());
    out.add_labelled("cn2", "latencyOursMicroseconds", &receipt.latency_us.ours.to_string());
    out.add_labelled("cn3", "latencyTheirsMicroseconds", &number(receipt.latency_us.theirs));
}

fn event_fields(event: &EventReceipt, out: &mut Extension) {
    out.add("rt", &event.ts.0.to_string());
    out.add("externalId", &format!("{}:{}", event.chain, event.seq));
    out.add("act", &event.name);
    out.add_some("suser", &event.by);
    out.add_some("destinationServiceName", &event.server_id);
    let data = event.data.as_ref().map(ToString::to_string).unwrap_or_default();
    out.add_labelled("cs1", "data", &data);
    out.add_labelled("cs6", "chain", event.chain.as_str());
    out.add_labelled("cn1", "seq", &event.seq.to_string());
}

/// Escapes bars and backslashes for the header. Line endings are already escaped.
fn in_header(text: &str) -> String {
    visible(text).replace('\\', "\\\\").replace('|', "\\|")
}

/// Escapes equals signs and backslashes for the extension. Line endings are already escaped.
fn in_extension(text: &str) -> String {
    text.replace('\\', "\\\\").replace('=', "\\=")
}
