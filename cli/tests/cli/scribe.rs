//! A ledger in a test's home, written the way the gate writes it.
#![allow(dead_code, reason = "each test binary uses its part of it")]

use contract::time::Timestamp;
use ledger::record::*;
use ledger::sample;
use std::path::Path;
use store::Home;
use store::receipts::{DiskFolder, Receipts, Settings};

pub(crate) const START: i64 = 1_700_000_000_000;

/// The single writing process.
pub(crate) struct Ledger {
    receipts: Receipts,
    home: Home,
}

impl Ledger {
    pub(crate) fn open(home: &Path) -> Ledger {
        let home = Home::open(home).unwrap();
        Ledger { receipts: Receipts::open(&home, Settings::default()).unwrap(), home }
    }

    pub(crate) fn folder(&self) -> DiskFolder {
        DiskFolder::new(&self.home.receipts_path())
    }

    /// The file being written.
    pub(crate) fn segment(&self) -> std::path::PathBuf {
        self.home.receipts_path().join(self.receipts.chain().as_str()).join("000001.jsonl")
    }

    pub(crate) fn checkpoint(&self) {
        self.receipts.checkpoint().unwrap();
    }

    pub(crate) fn event(&self, name: &str, at: i64) {
        let data = serde_json::json!({ "seal": 3 });
        self.receipts
            .event(&Event {
                ts: Timestamp(START + at),
                name,
                by: Some(Text("ada")),
                server_id: Some(Text("files")),
                data: Some(&data),
            })
            .unwrap();
    }

    pub(crate) fn outcome(&self, id: u8, at: i64) {
        self.receipts
            .outcome(&Outcome {
                size_bytes_out: 2_048,
                ..sample::outcome(Timestamp(START + at), ReceiptId([id; 16]))
            })
            .unwrap();
    }

    pub(crate) fn call(&self, id: u8, at: i64, result: RulingResult, tool: &str) {
        self.decide(ReceiptId([id; 16]), at, result, tool);
    }

    pub(crate) fn decide(&self, receipt_id: ReceiptId, at: i64, result: RulingResult, tool: &str) {
        let reasons: &[&str] = match result {
            RulingResult::Allow => &[],
            RulingResult::Deny => &["contract_drift"],
            RulingResult::RequireApproval => &["approval_required"],
        };
        self.receipts
            .decision(&Decision {
                trace_id: Some(Text("0af7651916cd43dd8448eb211c80319c")),
                principal: Principal {
                    actor_type: ActorType::Agent,
                    client_id: Some(Text("editor")),
                    org_id: None,
                    sub: Text("ada"),
                },
                mcp: Mcp {
                    method: Text("tools/call"),
                    server_id: Text("files"),
                    tool_name: Some(Text(tool)),
                    trust_level: TrustLevel::Verified,
                },
                request: Request {
                    args_hash: Some(Digest32([7; 32])),
                    args_hash_kind: ArgsHashKind::Keyed,
                    size_bytes_in: 128,
                },
                decision: Ruling {
                    policy_id: Some(Text("p-1")),
                    reason_codes: Words(reasons),
                    result,
                },
                sandbox: Some(Sandbox {
                    fs_policy: FsPolicy::WorkspaceOnly,
                    level: SandboxLevel::Full,
                    net_policy: NetPolicy::BlockAll,
                }),
                approval: Some(Approval {
                    approved_at: None,
                    approved_by: None,
                    required: false,
                    step_up: StepUp::None,
                }),
                drift: Some(Drift {
                    definition_hash: BeforeAfter {
                        before: Some(Digest32([1; 32])),
                        after: Some(Digest32([2; 32])),
                    },
                    entry_hash: BeforeAfter::default(),
                    framing: Some("visibility-not-blame"),
                    kinds: Words(&["description-only"]),
                    safety_relevant: false,
                    tier_reached: 0,
                    verdict: "PROCEED",
                    verdict_scope: Some("structural"),
                    view_age_ms: 12,
                }),
                admission: Some(Admission {
                    age_ms: Some(1),
                    clearance: None,
                    note: None,
                    reason: None,
                    signer: Some(Text("acme")),
                    verdict: AdmissionVerdict::Ok,
                }),
                latency_us: Latency { ours: 50, theirs: None },
                ..sample::decision(Timestamp(START + at), receipt_id)
            })
            .unwrap();
    }

    /// A call that ended, one that was denied, one that needs approval, one that is open, and a
    /// person's act.
    pub(crate) fn usual(home: &Path) -> Ledger {
        let ledger = Ledger::open(home);
        ledger.call(0x11, 1_000, RulingResult::Allow, "read_file");
        ledger.outcome(0x11, 1_500);
        ledger.call(0x12, 2_000, RulingResult::Deny, "write_file");
        ledger.call(0x13, 3_000, RulingResult::RequireApproval, "write_file");
        ledger.call(0x14, 4_000, RulingResult::Allow, "read_file");
        ledger.event("server.approve", 5_000);
        ledger
    }
}
