//! Receipts of calls as a gate writes them, with all the usual members.

use contract::time::Timestamp;
use ledger::line::{Encoder, LineHash, Place};
use ledger::record::{
    ActorType, Admission, AdmissionVerdict, Approval, ArgsHashKind, BeforeAfter, Decision,
    Digest32, Drift, Latency, Mcp, Outcome, Principal, ReceiptId, Record, Request, Ruling,
    RulingResult, StepUp, Text, TrustLevel, Words,
};
use ledger::sample;
use std::fs::File;
use std::io::{self, Write};

/// The time of the first call; the others follow at intervals of a millisecond.
const FIRST: i64 = 1_763_253_195_123;

/// The decision on call `number`.
pub fn decision(number: u64) -> Decision<'static> {
    Decision {
        trace_id: Some(Text("4bf92f3577b34da6a3ce929d0e0e4736")),
        principal: Principal {
            actor_type: ActorType::Agent,
            client_id: Some(Text("claude-desktop")),
            org_id: None,
            sub: Text("ada@example.com"),
        },
        mcp: Mcp {
            method: Text("tools/call"),
            server_id: Text("files"),
            tool_name: Some(Text("read_file")),
            trust_level: TrustLevel::Verified,
        },
        request: Request {
            args_hash: Some(Digest32([number as u8; 32])),
            args_hash_kind: ArgsHashKind::Keyed,
            size_bytes_in: 312,
        },
        decision: Ruling {
            policy_id: None,
            reason_codes: Words(&["allowed"]),
            result: RulingResult::Allow,
        },
        approval: Some(Approval {
            approved_at: Some(Timestamp(FIRST)),
            approved_by: Some(Text("ada")),
            required: false,
            step_up: StepUp::None,
        }),
        drift: Some(Drift {
            definition_hash: BeforeAfter::default(),
            entry_hash: BeforeAfter {
                after: Some(Digest32([7; 32])),
                before: Some(Digest32([7; 32])),
            },
            framing: Some("visibility-not-blame"),
            kinds: Words(&[]),
            safety_relevant: false,
            tier_reached: 0,
            verdict: "PROCEED",
            verdict_scope: Some("structural"),
            view_age_ms: 1_204,
        }),
        admission: Some(Admission {
            age_ms: None,
            clearance: None,
            note: None,
            reason: None,
            signer: None,
            verdict: AdmissionVerdict::Ok,
        }),
        latency_us: Latency { ours: 83, theirs: None },
        ..sample::decision(moment(number), receipt_id(number))
    }
}

/// The outcome of call `number`.
pub fn outcome(number: u64) -> Outcome {
    Outcome {
        size_bytes_out: 2_048,
        latency_us: Latency { ours: 91, theirs: Some(15_321) },
        ..sample::outcome(moment(number), receipt_id(number))
    }
}

fn moment(number: u64) -> Timestamp {
    Timestamp(FIRST + i64::try_from(number).unwrap_or_default())
}

fn receipt_id(number: u64) -> ReceiptId {
    ReceiptId(u128::from(number).to_be_bytes())
}

/// Only encodes, hashes and writes the two lines of each call: the minimum cost, without lock, tree
/// or signature.
pub fn write_alone(file: &mut File, calls: impl Iterator<Item = u64>) -> io::Result<()> {
    let (mut encoder, mut line) = (Encoder::default(), Vec::new());
    let mut place = Place { seq: 0, prev: LineHash::NONE };
    let mut append = |record: &Record<'_>| {
        line.clear();
        if let Ok(draft) = encoder.draft(record) {
            place = Place { seq: place.seq + 1, prev: draft.place(place, &mut line) };
        }
        file.write_all(&line)
    };
    for number in calls {
        append(&Record::Decision(&decision(number)))?;
        append(&Record::Outcome(&outcome(number)))?;
    }
    Ok(())
}
