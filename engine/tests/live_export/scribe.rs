//! Writes lines into a ledger in memory.

use contract::time::Timestamp;
use ledger::folder::{ChainId, SegmentNumber};
use ledger::line::{LineHash, Place, encode};
use ledger::memory::MemoryFolder;
use ledger::record::*;

const START: i64 = 1_700_000_000_000;

pub(crate) struct Scribe {
    folder: MemoryFolder,
    chain: ChainId,
    segment: SegmentNumber,
    place: Place,
}

impl Scribe {
    pub(crate) fn new(folder: &MemoryFolder, number: u8) -> Scribe {
        let mut scribe = Scribe {
            folder: folder.clone(),
            chain: ChainId::from_random([number; 8]),
            segment: SegmentNumber::FIRST,
            place: Place { seq: 0, prev: LineHash::NONE },
        };
        scribe.event("chain.opened", 0);
        scribe
    }

    /// Everything that was written.
    pub(crate) fn text(&self) -> String {
        let contents = self.folder.contents();
        let bytes = contents.segments.values().flatten().copied().collect();
        String::from_utf8(bytes).unwrap()
    }

    pub(crate) fn event(&mut self, name: &str, at: i64) {
        let ts = Timestamp(START + at);
        self.write(&Record::Event(&Event { ts, name, by: None, server_id: None, data: None }));
    }

    pub(crate) fn rotate(&mut self, at: i64) {
        self.segment = self.segment.next();
        self.event("chain.segment", at);
    }

    pub(crate) fn decision(&mut self, id: u8, at: i64, result: RulingResult) {
        self.call(ReceiptId([id; 16]), at, result, "read \"file\"]");
    }

    pub(crate) fn numbered(&mut self, number: u32, result: RulingResult) {
        let mut id = [0; 16];
        id[..4].copy_from_slice(&number.to_be_bytes());
        self.call(ReceiptId(id), i64::from(number), result, "t");
    }

    /// A call with names of the maximum length.
    pub(crate) fn long(&mut self, id: u8, at: i64) {
        self.call(ReceiptId([id; 16]), at, RulingResult::Deny, &"x".repeat(MAX_TEXT_BYTES));
    }

    pub(crate) fn outcome(&mut self, id: u8, at: i64) {
        self.write(&Record::Outcome(&Outcome {
            ts: Timestamp(START + at),
            receipt_id: ReceiptId([id; 16]),
            status: OutcomeStatus::Success,
            size_bytes_out: 2_048,
            latency_us: Latency { ours: 70, theirs: Some(9_000) },
        }));
    }

    fn call(&mut self, receipt_id: ReceiptId, at: i64, result: RulingResult, tool: &str) {
        let reasons: &[&str] =
            if result == RulingResult::Allow { &[] } else { &["contract_drift"] };
        let principal = if tool.len() == MAX_TEXT_BYTES { tool } else { "ada" };
        self.write(&Record::Decision(&Decision {
            ts: Timestamp(START + at),
            receipt_id,
            trace_id: Some(Text("0af7651916cd43dd8448eb211c80319c")),
            principal: Principal {
                actor_type: ActorType::User,
                client_id: None,
                org_id: None,
                sub: Text(principal),
            },
            mcp: Mcp {
                method: Text("tools/call"),
                server_id: Text("files"),
                tool_name: Some(Text(tool)),
                trust_level: TrustLevel::Unknown,
            },
            request: Request {
                args_hash: Some(Digest32([7; 32])),
                args_hash_kind: ArgsHashKind::Keyed,
                size_bytes_in: 128,
            },
            decision: Ruling { policy_id: None, reason_codes: Words(reasons), result },
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
            latency_us: Latency { ours: 50, theirs: None },
        }));
    }

    fn write(&mut self, record: &Record<'_>) {
        let mut line = Vec::new();
        self.place.prev = encode(record, self.place, &mut line).unwrap();
        self.place.seq += 1;
        let mut contents = self.folder.contents();
        let segment = contents.segments.entry((self.chain.clone(), self.segment)).or_default();
        segment.extend_from_slice(&line);
    }
}
