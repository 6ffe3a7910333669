//! Minimal records of a call, for tests of this crate and others.

use crate::record::{
    ActorType, ArgsHashKind, Decision, Latency, Mcp, Outcome, OutcomeStatus, Principal, ReceiptId,
    Request, Ruling, RulingResult, Text, TokenHandling, TokenMode, TrustLevel, Words,
};
use contract::time::Timestamp;

/// An agent's allowed call of `read_file`. Tests override the members they need.
pub fn decision(ts: Timestamp, receipt_id: ReceiptId) -> Decision<'static> {
    Decision {
        ts,
        receipt_id,
        trace_id: None,
        principal: Principal {
            actor_type: ActorType::Agent,
            client_id: None,
            org_id: None,
            sub: Text("ada"),
        },
        mcp: Mcp {
            method: Text("tools/call"),
            server_id: Text("files"),
            tool_name: Some(Text("read_file")),
            trust_level: TrustLevel::Unknown,
        },
        request: Request { args_hash: None, args_hash_kind: ArgsHashKind::Keyed, size_bytes_in: 2 },
        decision: Ruling { policy_id: None, reason_codes: Words(&[]), result: RulingResult::Allow },
        token_handling: TokenHandling {
            audience: None,
            mode: TokenMode::None,
            passthrough_detected: false,
            source: Some("none"),
        },
        sandbox: None,
        approval: None,
        drift: None,
        admission: None,
        incident_mode: false,
        latency_us: Latency::default(),
    }
}

/// The outcome of a call that the server answered.
pub fn outcome(ts: Timestamp, receipt_id: ReceiptId) -> Outcome {
    Outcome {
        ts,
        receipt_id,
        status: OutcomeStatus::Success,
        size_bytes_out: 5,
        latency_us: Latency { ours: 70, theirs: Some(9_000) },
    }
}
