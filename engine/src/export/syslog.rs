//! Syslog messages according to RFC 5424, framed for streams (RFC 6587, octet counting) and limited
//! in size for datagrams (RFC 5426).

use contract::time::Timestamp;
use ledger::export::{Weight, message, weight_of};
use ledger::receipt::{EventReceipt, Item, Receipt};

/// The largest datagram that is sent: RFC 5426 recommends that every receiver accept this size.
pub const MAX_DATAGRAM_BYTES: usize = 2048;

/// The facility for log audit.
const FACILITY: u8 = 13;
/// The id of the structured data. IANA reserves 32473 for examples and for organizations without a
/// number of their own.
const SD_ID: &str = "holdpoint@32473";
const MAX_MSGID_BYTES: usize = 32;
const MAX_HOSTNAME_BYTES: usize = 255;

/// The sender's identification.
#[derive(Debug, Clone)]
pub(super) struct Sender {
    pub(super) hostname: String,
    pub(super) process: u32,
}

impl Sender {
    /// Identifies this machine and process.
    pub(super) fn of_this_process() -> Sender {
        #[cfg(unix)]
        let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
        #[cfg(not(unix))]
        let name = std::env::var("COMPUTERNAME").unwrap_or_default();
        Sender { hostname: printable(&name, MAX_HOSTNAME_BYTES), process: std::process::id() }
    }

    /// An item as one message of at most `limit` bytes. If it does not fit, the least important
    /// parts are dropped first.
    pub(super) fn message(&self, item: &Item, limit: usize) -> String {
        let mut parameters = parameters(item);
        let mut is_cut = false;
        loop {
            let text = self.write(item, &parameters, is_cut);
            if text.len() <= limit || parameters.pop().is_none() {
                let end = text.floor_char_boundary(limit);
                return text.get(..end).unwrap_or_default().to_owned();
            }
            is_cut = true;
        }
    }

    fn write(&self, item: &Item, parameters: &[(&str, String)], is_cut: bool) -> String {
        let severity = match weight_of(item) {
            Weight::High => 3,
            Weight::Medium => 4,
            Weight::Low => 5,
            Weight::Informational => 6,
        };
        let id = match item {
            Item::Receipt(receipt) => format!("call.{}", receipt.decision.word()),
            Item::Event(event) => printable(&event.name, MAX_MSGID_BYTES),
        };
        let Sender { hostname, process } = self;
        let priority = FACILITY * 8 + severity;
        let mut text = format!(
            "<{priority}>1 {} {hostname} holdpoint {process} {id} [{SD_ID}",
            item.ts().precise()
        );
        for (name, value) in parameters {
            text.push_str(&format!(" {name}=\"{}\"", escaped(value)));
        }
        if is_cut {
            text.push_str(" cut=\"true\"");
        }
        let sentence = message(item);
        // Non-ASCII text is marked as UTF-8.
        let mark = if sentence.is_ascii() { "" } else { "\u{feff}" };
        text.push_str(&format!("] {mark}{sentence}"));
        text
    }
}

/// A message preceded by its length, as in streams.
pub(super) fn frame(message: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{} ", message.len()).as_bytes());
    out.extend_from_slice(message.as_bytes());
}

/// Escapes quotes, backslashes and closing brackets in a parameter's value. `visible` has already
/// spelled out line breaks.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in ledger::export::visible(text).chars() {
        if matches!(character, '"' | '\\' | ']') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

/// Printable ASCII without spaces, as required for header fields; `-` if nothing is left.
fn printable(text: &str, limit: usize) -> String {
    let kept: String = text.chars().filter(char::is_ascii_graphic).take(limit).collect();
    if kept.is_empty() { "-".to_owned() } else { kept }
}

/// The nonempty parameters, most important first.
fn parameters(item: &Item) -> Vec<(&'static str, String)> {
    let mut found = match item {
        Item::Receipt(receipt) => receipt_parameters(receipt),
        Item::Event(event) => event_parameters(event),
    };
    found.retain(|(_, value)| !value.is_empty());
    found
}

fn receipt_parameters(receipt: &Receipt) -> Vec<(&'static str, String)> {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let number = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
    let moment =
        |value: Option<Timestamp>| value.map(|at| at.precise().to_string()).unwrap_or_default();
    let Receipt { principal, mcp, request, decision, token_handling, .. } = receipt;
    let (outcome, drift) = (receipt.outcome.as_ref(), receipt.drift.as_ref());
    let (approval, admission) = (receipt.approval.as_ref(), receipt.admission.as_ref());
    let sandbox = receipt.sandbox.as_ref();
    vec![
        ("receipt_id", receipt.receipt_id.to_string()),
        ("chain", receipt.chain.to_string()),
        ("seq", receipt.seq.to_string()),
        ("result", decision.word().to_owned()),
        ("state", receipt.state.as_str().to_owned()),
        ("outcome", outcome.map(|outcome| outcome.word().to_owned()).unwrap_or_default()),
        ("reasons", decision.reason_codes.join(" ")),
        ("method", mcp.method.clone()),
        ("server", mcp.server_id.clone()),
        ("tool", text(&mcp.tool_name)),
        ("principal", principal.sub.clone()),
        ("actor_type", principal.actor_type.clone()),
        ("client", text(&principal.client_id)),
        ("org", text(&principal.org_id)),
        ("policy", text(&decision.policy_id)),
        ("trace_id", text(&receipt.trace_id)),
        ("incident_mode", receipt.incident_mode.to_string()),
        ("passthrough", token_handling.passthrough_detected.to_string()),
        ("token_mode", token_handling.mode.clone()),
        ("audience", text(&token_handling.audience)),
        ("drift", drift.map(|drift| drift.verdict.clone()).unwrap_or_default()),
        ("kinds", drift.map(|drift| drift.kinds.join(" ")).unwrap_or_default()),
        ("tier", number(drift.map(|drift| u64::from(drift.tier_reached)))),
        ("admission", admission.map(|found| found.verdict.clone()).unwrap_or_default()),
        ("signer", admission.map(|found| text(&found.signer)).unwrap_or_default()),
        ("clearance", admission.map(|found| text(&found.clearance)).unwrap_or_default()),
        ("approved_by", approval.map(|found| text(&found.approved_by)).unwrap_or_default()),
        ("trust_level", mcp.trust_level.clone()),
        ("fs_policy", sandbox.map(|sandbox| sandbox.fs_policy.clone()).unwrap_or_default()),
        ("net_policy", sandbox.map(|sandbox| sandbox.net_policy.clone()).unwrap_or_default()),
        ("args_hash", text(&request.args_hash)),
        ("bytes_in", request.size_bytes_in.to_string()),
        ("bytes_out", number(outcome.map(|outcome| outcome.size_bytes_out))),
        ("ours_us", receipt.latency_us.ours.to_string()),
        ("theirs_us", number(receipt.latency_us.theirs)),
        ("ended_at", moment(receipt.ended_at)),
        ("hash", receipt.hash.clone()),
        ("outcome_hash", text(&receipt.outcome_hash)),
    ]
}

fn event_parameters(event: &EventReceipt) -> Vec<(&'static str, String)> {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    vec![
        ("name", event.name.clone()),
        ("chain", event.chain.to_string()),
        ("seq", event.seq.to_string()),
        ("server", text(&event.server_id)),
        ("by", text(&event.by)),
        ("hash", event.hash.clone()),
        ("data", event.data.as_ref().map(ToString::to_string).unwrap_or_default()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use ledger::folder::ChainId;

    fn event(name: &str, by: &str) -> Item {
        Item::Event(EventReceipt {
            ts: Timestamp(1_700_000_000_123),
            name: name.to_owned(),
            by: Some(by.to_owned()),
            server_id: Some("files".to_owned()),
            data: None,
            chain: ChainId::from_random([1; 8]),
            seq: 7,
            hash: "00".to_owned(),
        })
    }

    fn sender() -> Sender {
        Sender { hostname: "host".to_owned(), process: 42 }
    }

    #[test]
    fn a_message_is_as_rfc_5424_says() {
        assert_eq!(
            sender().message(&event("server.approve", "ada"), usize::MAX),
            "<110>1 2023-11-14T22:13:20.123Z host holdpoint 42 server.approve [holdpoint@32473 name=\"server.approve\" chain=\"0101010101010101\" seq=\"7\" server=\"files\" by=\"ada\" hash=\"00\"] server.approve on `files` by ada"
        );
    }

    #[test]
    fn a_value_cannot_leave_its_parameter_nor_a_name_its_field() {
        let text = sender().message(&event("a b\n]\"", "x\"] y\\\n<1>1"), usize::MAX);
        assert!(text.contains(" 42 ab]\" [holdpoint@32473 "), "{text}");
        assert!(text.contains("by=\"x\\\"\\] y\\\\\\\\u{a}<1>1\""), "{text}");
        assert!(!text.contains('\n'));
        assert_eq!(printable("\n é", 8), "-");
        assert_eq!(printable(&"x".repeat(40), MAX_MSGID_BYTES).len(), MAX_MSGID_BYTES);
    }

    #[test]
    fn a_datagram_keeps_within_its_bound_and_says_what_it_left_out() {
        let fits = |length: usize| {
            let text = sender().message(&event("n", &"x".repeat(length)), MAX_DATAGRAM_BYTES);
            assert!(text.len() <= MAX_DATAGRAM_BYTES, "{}", text.len());
            (text.len(), text.contains("cut=\"true\""))
        };
        let (small, _) = fits(0);
        // The name occurs in the parameters and in the sentence, where ` by ` precedes it.
        let room = (1..MAX_DATAGRAM_BYTES).take_while(|length| !fits(*length).1).last().unwrap();
        assert!(small < MAX_DATAGRAM_BYTES && fits(room).0 > MAX_DATAGRAM_BYTES - 2);
        assert!(!fits(room).1 && fits(room + 1).1);
        assert_eq!(fits(10_000).0, MAX_DATAGRAM_BYTES);
    }

    #[test]
    fn text_that_is_not_ascii_is_announced_and_frames_count_bytes() {
        let text = sender().message(&event("n", "é"), usize::MAX);
        assert!(text.contains("] \u{feff}n on"), "{text}");
        let mut framed = Vec::new();
        frame("é!", &mut framed);
        assert_eq!(framed, "3 é!".as_bytes());
    }
}
