use super::scan::is_torn;
use super::*;
use crate::record::*;
use proptest::prelude::*;
use serde_json::{Value, json};

const PLACE: Place = Place { seq: 7, prev: LineHash([0xab; 32]) };

fn decision<'a>(tool: &'a str, reasons: &'a [&'a str], result: RulingResult) -> Decision<'a> {
    Decision {
        ts: Timestamp(1_763_253_195_123),
        receipt_id: ReceiptId([1; 16]),
        trace_id: None,
        principal: Principal {
            actor_type: ActorType::Agent,
            client_id: Some(Text("inspector")),
            org_id: None,
            sub: Text("ada"),
        },
        mcp: Mcp {
            method: Text("tools/call"),
            server_id: Text("files"),
            tool_name: Some(Text(tool)),
            trust_level: TrustLevel::Unknown,
        },
        request: Request {
            args_hash: Some(Digest32([2; 32])),
            args_hash_kind: ArgsHashKind::Keyed,
            size_bytes_in: 12,
        },
        decision: Ruling { policy_id: None, reason_codes: Words(reasons), result },
        token_handling: TokenHandling {
            audience: None,
            mode: TokenMode::None,
            passthrough_detected: false,
            source: Some("none"),
        },
        sandbox: Some(Sandbox {
            fs_policy: FsPolicy::ReadOnly,
            level: SandboxLevel::Partial,
            net_policy: NetPolicy::BlockAll,
        }),
        approval: None,
        drift: Some(Drift {
            definition_hash: BeforeAfter::default(),
            entry_hash: BeforeAfter { after: None, before: Some(Digest32([3; 32])) },
            framing: Some("visibility-not-blame"),
            kinds: Words(&["description-only"]),
            safety_relevant: false,
            tier_reached: 0,
            verdict: "HOLD",
            verdict_scope: Some("structural"),
            view_age_ms: 5,
        }),
        admission: None,
        incident_mode: false,
        latency_us: Latency { ours: 9, theirs: None },
    }
}

fn line_of(record: &Record<'_>) -> Vec<u8> {
    let mut out = b"before".to_vec();
    encode(record, PLACE, &mut out).unwrap();
    out.split_off(b"before".len())
}

/// The hash computed as the specification describes it: parse, remove `hash`, canonicalize,
/// SHA-256.
fn hash_the_long_way(line: &str) -> String {
    let Value::Object(mut members) = serde_json::from_str(line).unwrap() else { panic!("{line}") };
    members.remove("hash").unwrap();
    let text = Value::Object(members).to_string();
    let canonical = canonical_text(Document::parse(&text).unwrap().root(), Position::Plain);
    hex::encode(Sha256::digest(canonical))
}

#[test]
fn a_line_is_the_same_whatever_was_written_before_it() {
    let with_age = |age: u64, hash: u8| {
        let mut decision = decision("read", &["contract_drift"], RulingResult::Deny);
        if let Some(drift) = &mut decision.drift {
            drift.view_age_ms = age;
            drift.entry_hash.before = Some(Digest32([hash; 32]));
        }
        decision
    };
    let short = Decision { drift: None, ..with_age(0, 0) };
    let mut encoder = Encoder::default();
    // Alternate between similar decisions: same age, different age, an age with more digits, a
    // different contract, none.
    let all = [with_age(5, 3), with_age(6, 3), with_age(123_456_789, 3), with_age(5, 4), short];
    for decision in all.iter().chain(all.iter().rev()) {
        let record = Record::Decision(decision);
        let mut line = Vec::new();
        encoder.draft(&record).unwrap().place(PLACE, &mut line);
        assert_eq!(String::from_utf8(line).unwrap(), String::from_utf8(line_of(&record)).unwrap());
    }
}

#[test]
fn every_kind_of_line_is_canonical_and_hashed_without_its_hash() {
    let decision = decision("say \"hi\"\u{1b}\u{7f}é😀\\", &["contract_drift"], RulingResult::Deny);
    let outcome = Outcome {
        ts: Timestamp(1),
        receipt_id: ReceiptId([1; 16]),
        status: OutcomeStatus::Timeout,
        size_bytes_out: u64::MAX,
        latency_us: Latency { ours: 1, theirs: Some(2) },
    };
    let data = json!({"z": [1, {"hash": "x", "b": null}], "a": "é"});
    let event = Event {
        ts: Timestamp(0),
        name: "server.approve",
        by: Some(Text("ada")),
        server_id: None,
        data: Some(&data),
    };
    for record in [Record::Decision(&decision), Record::Outcome(&outcome), Record::Event(&event)] {
        let line = line_of(&record);
        let line = std::str::from_utf8(&line).unwrap().strip_suffix('\n').unwrap();
        let canonical = canonical_text(Document::parse(line).unwrap().root(), Position::Plain);
        assert_eq!(line, canonical);
        let read = scan(line.as_bytes()).unwrap();
        assert_eq!(read.hash.to_string(), hash_the_long_way(line));
        assert_eq!((read.seq, read.prev), (PLACE.seq, PLACE.prev));
    }
}

#[test]
fn a_decision_has_every_member_of_the_receipt() {
    let decision = decision("t", &["contract_drift"], RulingResult::Deny);
    let line: Value = serde_json::from_slice(&line_of(&Record::Decision(&decision))).unwrap();
    for member in [
        "/ts",
        "/receipt_id",
        "/trace_id",
        "/principal/sub",
        "/principal/actor_type",
        "/principal/client_id",
        "/principal/org_id",
        "/mcp/method",
        "/mcp/server_id",
        "/mcp/tool_name",
        "/mcp/trust_level",
        "/request/args_hash",
        "/request/size_bytes_in",
        "/decision/result",
        "/decision/policy_id",
        "/decision/reason_codes",
        "/token_handling/mode",
        "/token_handling/audience",
        "/token_handling/passthrough_detected",
        "/sandbox/fs_policy",
        "/sandbox/level",
        "/sandbox/net_policy",
        "/approval",
        "/drift/verdict",
        "/drift/kinds",
        "/drift/entry_hash",
        "/drift/tier_reached",
        "/drift/verdict_scope",
        "/drift/framing",
        "/drift/safety_relevant",
        "/drift/view_age_ms",
        "/admission",
        "/incident_mode",
        "/latency_us",
    ] {
        assert!(line.pointer(member).is_some(), "{member}");
    }
}

#[test]
fn only_an_allowed_request_awaits_an_outcome() {
    for (result, expected) in [
        (RulingResult::Allow, true),
        (RulingResult::Deny, false),
        (RulingResult::RequireApproval, false),
    ] {
        // A reason that looks like the end of a ruling changes nothing.
        let decision = decision("t", &["\"result\":\"allow\"}"], result);
        let line = line_of(&Record::Decision(&decision));
        let read = scan(line.trim_ascii_end()).unwrap();
        assert_eq!(read.kind, LineKind::Decision { awaits_outcome: expected });
    }
}

#[test]
fn a_line_at_the_limit_is_written_and_one_past_it_is_not() {
    let event_of = |length: usize| {
        let data = json!({"x": "a".repeat(length)});
        let event =
            Event { ts: Timestamp(0), name: "e", by: None, server_id: None, data: Some(&data) };
        let mut out = Vec::new();
        // A draft has room for the largest position.
        let last = Place { seq: u64::MAX, ..PLACE };
        encode(&Record::Event(&event), last, &mut out).map(|_| out.len())
    };
    let overhead = event_of(0).unwrap();
    assert_eq!(event_of(MAX_LINE_BYTES - overhead).unwrap(), MAX_LINE_BYTES);
    assert!(matches!(event_of(MAX_LINE_BYTES - overhead + 1), Err(EncodeError::TooLong(_))));
}

#[test]
fn every_single_byte_edit_is_found() {
    let decision = decision("make_report", &["contract_drift"], RulingResult::Deny);
    let line = line_of(&Record::Decision(&decision));
    let line = line.trim_ascii_end();
    assert!(scan(line).is_ok());
    for at in 0..line.len() {
        for bit in 0..8 {
            let mut edited = line.to_vec();
            edited[at] ^= 1 << bit;
            assert!(scan(&edited).is_err(), "byte {at}, bit {bit}");
        }
        let mut shorter = line.to_vec();
        shorter.remove(at);
        assert!(scan(&shorter).is_err(), "byte {at} removed");
    }
}

#[test]
fn a_beginning_of_a_line_is_torn_and_an_edited_line_is_not() {
    let decision = decision("t", &[], RulingResult::Allow);
    let line = line_of(&Record::Decision(&decision));
    let line = line.trim_ascii_end();
    for end in 1..=line.len() {
        assert!(is_torn(&line[..end]), "{end}");
    }
    assert!(is_torn(&[0; 100]));
    // A crash can leave a file that is longer than what was written to it.
    assert!(is_torn(&[&line[..200], &[0; 50]].concat()));
    assert!(!is_torn(&[&line[..200], &[0; 50], b"x"].concat()));
    for edited in [[line, b"x"].concat(), [line, b"{"].concat(), b"[".to_vec(), b"{x".to_vec()] {
        assert!(!is_torn(&edited), "{}", String::from_utf8_lossy(&edited));
    }
}

#[test]
fn nesting_is_read_to_its_limit_and_no_further() {
    let nested = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
    let limit = MAX_NESTING as usize;
    assert_eq!(scan(nested(limit).as_bytes()).unwrap_err(), BadLine::Member("seq"));
    assert!(matches!(scan(nested(limit + 1).as_bytes()), Err(BadLine::Malformed { .. })));
}

#[test]
fn members_out_of_order_or_twice_are_refused() {
    for line in ["{\"seq\":1,\"prev\":1}", "{\"seq\":1,\"seq\":1}", "{}", "{\"a\":}", "{\"a\":1,}"]
    {
        assert!(matches!(scan(line.as_bytes()), Err(BadLine::Malformed { .. })), "{line}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(scan(&bytes).is_err());
        is_torn(&bytes);
    }
}

#[test]
fn texts_are_escaped_as_the_canonical_form_has_it() {
    for byte in 0..=0x7f_u8 {
        let text = format!("a{}é", char::from(byte));
        let decision = decision(&text, &[], RulingResult::Deny);
        let line = line_of(&Record::Decision(&decision));
        let line = std::str::from_utf8(&line).unwrap().strip_suffix('\n').unwrap();
        let canonical = canonical_text(Document::parse(line).unwrap().root(), Position::Plain);
        assert_eq!(line, canonical);
    }
}

#[test]
fn a_moment_is_written_the_same_whatever_moment_was_written_before_it() {
    let mut moments = Moments::default();
    let thousands = [0, 1, 999, 1_000, 1_763_253_195_123, 1_763_253_195_999, 1_763_253_196_000];
    let others = [-1, -1_000, i64::MIN, 253_402_300_799_999, 253_402_300_800_000, i64::MAX];
    for milliseconds in thousands.iter().chain(&others).chain(thousands.iter().rev()) {
        let mut text = Vec::new();
        moments.push(Timestamp(*milliseconds), &mut text);
        let printed = Timestamp(*milliseconds).precise().to_string();
        assert_eq!(String::from_utf8(text).unwrap(), printed);
    }
}
