use super::*;
use crate::folder::{ChainId, MAX_LINE_BYTES, SegmentNumber};
use crate::line::{LineHash, Place, encode};
use crate::memory::MemoryFolder;
use crate::record::{self, ReceiptId, Record, RulingResult, Text, Words};
use contract::time::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub(crate) const START: Timestamp = Timestamp(1_700_000_000_000);

pub(crate) fn chain(number: u8) -> ChainId {
    ChainId::from_random([number; 8])
}

/// Writes arbitrary lines with correct hashes, whether or not they make sense.
pub(crate) struct Scribe {
    pub(crate) folder: MemoryFolder,
    pub(crate) chain: ChainId,
    pub(crate) segment: SegmentNumber,
    pub(crate) seq: u64,
    prev: LineHash,
}

impl Scribe {
    pub(crate) fn new(folder: &MemoryFolder, number: u8) -> Scribe {
        let mut scribe = Scribe {
            folder: folder.clone(),
            chain: chain(number),
            segment: SegmentNumber::FIRST,
            seq: 0,
            prev: LineHash::NONE,
        };
        scribe.event("chain.opened", 0);
        scribe
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        let mut contents = self.folder.contents();
        let segment = contents.segments.entry((self.chain.clone(), self.segment)).or_default();
        segment.extend_from_slice(bytes);
    }

    pub(crate) fn record(&mut self, record: &Record<'_>) -> String {
        let mut line = Vec::new();
        let place = Place { seq: self.seq, prev: self.prev };
        self.prev = encode(record, place, &mut line).unwrap();
        self.seq += 1;
        self.raw(&line);
        String::from_utf8(line).unwrap()
    }

    pub(crate) fn rotate(&mut self, at: i64) {
        self.segment = self.segment.next();
        self.event("chain.segment", at);
    }

    pub(crate) fn event(&mut self, name: &str, at: i64) {
        let data = json!({ "tree": { "size": 0 } });
        self.record(&Record::Event(&record::Event {
            ts: Timestamp(START.0 + at),
            name,
            by: Some(Text("ada")),
            server_id: Some(Text("files")),
            data: Some(&data),
        }));
    }

    pub(crate) fn decision(&mut self, id: u8, at: i64, result: RulingResult) {
        self.call(id, at, result, "files", "read_file");
    }

    pub(crate) fn call(&mut self, id: u8, at: i64, result: RulingResult, server: &str, tool: &str) {
        self.record(&Record::Decision(&decision(id, at, result, server, tool)));
    }

    pub(crate) fn outcome(&mut self, id: u8, at: i64) {
        self.record(&Record::Outcome(&record::Outcome {
            ts: Timestamp(START.0 + at),
            receipt_id: ReceiptId([id; 16]),
            status: record::OutcomeStatus::Success,
            size_bytes_out: 2_048,
            latency_us: record::Latency { ours: 70, theirs: Some(9_000) },
        }));
    }
}

pub(crate) fn decision<'a>(
    id: u8,
    at: i64,
    result: RulingResult,
    server: &'a str,
    tool: &'a str,
) -> record::Decision<'a> {
    let reasons: &[&str] = match result {
        RulingResult::Allow => &[],
        RulingResult::Deny => &["contract_drift"],
        RulingResult::RequireApproval => &["approval_required"],
    };
    record::Decision {
        ts: Timestamp(START.0 + at),
        receipt_id: ReceiptId([id; 16]),
        trace_id: Some(Text("0af7651916cd43dd8448eb211c80319c")),
        principal: record::Principal {
            actor_type: record::ActorType::Agent,
            client_id: Some(Text("editor")),
            org_id: Some(Text("acme")),
            sub: Text("ada"),
        },
        mcp: record::Mcp {
            method: Text("tools/call"),
            server_id: Text(server),
            tool_name: Some(Text(tool)),
            trust_level: record::TrustLevel::Verified,
        },
        request: record::Request {
            args_hash: Some(record::Digest32([7; 32])),
            args_hash_kind: record::ArgsHashKind::Keyed,
            size_bytes_in: 128,
        },
        decision: record::Ruling {
            policy_id: Some(Text("p-1")),
            reason_codes: Words(reasons),
            result,
        },
        token_handling: record::TokenHandling {
            audience: None,
            mode: record::TokenMode::None,
            passthrough_detected: false,
            source: Some("none"),
        },
        sandbox: Some(record::Sandbox {
            fs_policy: record::FsPolicy::WorkspaceOnly,
            level: record::SandboxLevel::Full,
            net_policy: record::NetPolicy::BlockAll,
        }),
        approval: Some(record::Approval {
            approved_at: None,
            approved_by: None,
            required: false,
            step_up: record::StepUp::None,
        }),
        drift: Some(record::Drift {
            definition_hash: record::BeforeAfter::default(),
            entry_hash: record::BeforeAfter::default(),
            framing: Some("visibility-not-blame"),
            kinds: Words(&["description-only"]),
            safety_relevant: false,
            tier_reached: 0,
            verdict: "PROCEED",
            verdict_scope: Some("structural"),
            view_age_ms: 12,
        }),
        admission: Some(record::Admission {
            age_ms: Some(1),
            clearance: None,
            note: None,
            reason: None,
            signer: Some(Text("acme")),
            verdict: record::AdmissionVerdict::Ok,
        }),
        incident_mode: false,
        latency_us: record::Latency { ours: 50, theirs: None },
    }
}

/// All items of a folder, and the notes.
pub(crate) fn items(folder: &MemoryFolder) -> (Vec<Item>, Vec<String>) {
    let mut reading = Reading::begin(folder.clone(), &BTreeMap::new()).unwrap();
    let (mut joiner, mut out) = (Joiner::default(), Vec::new());
    for (spot, entry) in reading.by_ref() {
        joiner.push(&spot, entry, &mut out);
    }
    joiner.finish(&mut out);
    let mut notes = reading.take_notes();
    notes.extend(joiner.take_notes());
    (out, notes.iter().map(ToString::to_string).collect())
}

/// Items in short form: `02 ended`, `chain.opened`.
fn told(items: &[Item]) -> Vec<String> {
    let tell = |item: &Item| match item {
        Item::Receipt(receipt) => {
            format!("{} {}", &receipt.receipt_id.to_string()[..2], receipt.state.as_str())
        }
        Item::Event(event) => event.name.clone(),
    };
    items.iter().map(tell).collect()
}

#[test]
fn a_receipt_has_every_member_in_the_order_of_the_schema() {
    let folder = MemoryFolder::default();
    let mut scribe = Scribe::new(&folder, 1);
    scribe.decision(2, 1, RulingResult::Allow);
    scribe.outcome(2, 5);
    let (items, notes) = items(&folder);
    assert_eq!(notes, [""; 0]);
    let document: Value = serde_json::to_value(&items[1]).unwrap();
    let names: Vec<&String> = document.as_object().unwrap().keys().collect();
    assert_eq!(
        names,
        [
            "record",
            "ts",
            "receipt_id",
            "trace_id",
            "principal",
            "mcp",
            "request",
            "decision",
            "token_handling",
            "sandbox",
            "approval",
            "outcome",
            "drift",
            "admission",
            "incident_mode",
            "latency_us",
            "state",
            "ended_at",
            "chain",
            "seq",
            "hash",
            "outcome_seq",
            "outcome_hash",
        ]
    );
    assert_eq!(document["record"], "receipt");
    assert_eq!(document["ts"], "2023-11-14T22:13:20.001Z");
    assert_eq!(document["outcome"], json!({ "status": "success", "size_bytes_out": 2048 }));
    assert_eq!(document["latency_us"], json!({ "ours": 70, "theirs": 9000 }));
    assert_eq!(document["decision"]["policy_id"], "p-1");
    assert_eq!(document["sandbox"]["net_policy"], "block_all");
    assert_eq!(document["sandbox"]["level"], "full");
    assert_eq!((&document["seq"], &document["outcome_seq"]), (&json!(1), &json!(2)));
    assert_eq!(document["ended_at"], "2023-11-14T22:13:20.005Z");
}

#[test]
fn chains_are_merged_by_moment_and_keep_their_own_order() {
    let folder = MemoryFolder::default();
    let mut first = Scribe::new(&folder, 1);
    let mut second = Scribe::new(&folder, 2);
    first.decision(0x11, 10, RulingResult::Deny);
    first.decision(0x12, 30, RulingResult::Deny);
    // The clock goes back: lines written later still come later.
    first.decision(0x13, 5, RulingResult::Deny);
    second.decision(0x21, 20, RulingResult::Deny);
    second.rotate(25);
    second.decision(0x22, 40, RulingResult::Deny);
    let (items, _) = items(&folder);
    assert_eq!(
        told(&items),
        [
            "chain.opened",
            "chain.opened",
            "11 refused",
            "21 refused",
            "chain.segment",
            "12 refused",
            "13 refused",
            "22 refused",
        ]
    );
}

#[test]
fn a_call_without_an_outcome_is_told_and_never_dropped() {
    let folder = MemoryFolder::default();
    let mut scribe = Scribe::new(&folder, 1);
    scribe.decision(2, 1, RulingResult::Allow);
    scribe.decision(3, 2, RulingResult::Allow);
    scribe.decision(4, 3, RulingResult::RequireApproval);
    scribe.outcome(3, 4);
    // The process was killed and another one continues: calls open at that time can no longer end.
    scribe.event("chain.resumed", 9);
    scribe.decision(5, 10, RulingResult::Allow);
    let (items, _) = items(&folder);
    assert_eq!(
        told(&items),
        ["chain.opened", "04 refused", "03 ended", "02 no_outcome", "chain.resumed", "05 open"]
    );
    let lost = serde_json::to_value(&items[3]).unwrap();
    assert_eq!((&lost["outcome"], &lost["outcome_seq"]), (&Value::Null, &Value::Null));
}

#[test]
fn an_outcome_is_joined_however_late_it_comes() {
    let folder = MemoryFolder::default();
    let mut scribe = Scribe::new(&folder, 1);
    scribe.decision(2, 1, RulingResult::Allow);
    for at in 0..2_000 {
        scribe.decision(3, 2 + at, RulingResult::Deny);
        if at % 500 == 0 {
            scribe.rotate(2 + at);
        }
    }
    scribe.outcome(2, 90_000);
    let (items, notes) = items(&folder);
    assert_eq!(notes, [""; 0]);
    assert_eq!(told(&items).last().unwrap(), "02 ended");
}

#[test]
fn a_bad_line_is_a_note_that_names_it_and_never_a_stop() {
    let folder = MemoryFolder::default();
    let mut scribe = Scribe::new(&folder, 1);
    scribe.raw(b"not json\n");
    scribe.raw(b"{\"record\":\"decision\",\"ts\":\"\\u001b[31mred\"}\n");
    scribe.raw(b"{\"record\":\"poem\"}\n\n[1]\n\xff\xfe\n");
    scribe.decision(2, 1, RulingResult::Deny);
    // A line at the limit is read (and is not JSON); a longer one is not read at all.
    scribe.raw(&[vec![b'x'; MAX_LINE_BYTES - 1], b"\n".to_vec()].concat());
    scribe.raw(&[vec![b'x'; MAX_LINE_BYTES], b"\n".to_vec()].concat());
    scribe.decision(3, 2, RulingResult::Deny);
    let (items, notes) = items(&folder);
    assert_eq!(told(&items), ["chain.opened", "02 refused", "03 refused"]);
    let start = "chain 0101010101010101, segment 000001, line ";
    let expected = [
        "2: not JSON",
        "3: JSON that is no record of a receipt or of an event",
        "4: a kind of record that is not known",
        "5: not JSON",
        "6: JSON that is no record of a receipt or of an event",
        "7: not JSON",
        "9: not JSON",
        "10: longer than any line may be (256 KiB)",
    ];
    assert_eq!(notes, expected.map(|end| format!("{start}{end}")));
}

#[test]
fn a_line_that_is_still_being_written_waits_and_is_read_once() {
    let folder = MemoryFolder::default();
    let mut scribe = Scribe::new(&folder, 1);
    let mut reading = Reading::begin(folder.clone(), &BTreeMap::new()).unwrap();
    assert_eq!(reading.by_ref().count(), 1);
    let line = scribe.record(&Record::Decision(&decision(2, 1, RulingResult::Deny, "s", "t")));
    let whole = folder.contents().segments[&(chain(1), SegmentNumber::FIRST)].clone();
    let keep = whole.len() - line.len() / 2;
    folder.contents().segments.insert((chain(1), SegmentNumber::FIRST), whole[..keep].to_vec());
    reading.refresh().unwrap();
    assert_eq!((reading.next(), reading.take_notes()), (None, vec![]));
    folder.contents().segments.insert((chain(1), SegmentNumber::FIRST), whole);
    reading.refresh().unwrap();
    let (spot, entry) = reading.next().unwrap();
    assert!(matches!(entry, Entry::Decision(_)));
    assert_eq!((spot.line, spot.next.lines), (2, 2));
    reading.refresh().unwrap();
    assert_eq!(reading.next(), None);
}

#[test]
fn a_reading_goes_on_into_new_segments_and_new_chains() {
    let folder = MemoryFolder::default();
    let mut first = Scribe::new(&folder, 1);
    let mut reading = Reading::begin(folder.clone(), &BTreeMap::new()).unwrap();
    assert_eq!(reading.by_ref().count(), 1);
    first.decision(2, 1, RulingResult::Deny);
    first.rotate(2);
    first.decision(3, 3, RulingResult::Deny);
    Scribe::new(&folder, 2).decision(4, 4, RulingResult::Deny);
    reading.refresh().unwrap();
    assert_eq!(reading.by_ref().count(), 5);
    // Retention drops a segment that was already read.
    first.rotate(5);
    folder.contents().segments.remove(&(chain(1), SegmentNumber(2)));
    reading.refresh().unwrap();
    assert_eq!(reading.by_ref().count(), 1);
    assert_eq!(reading.take_notes(), []);
}

#[test]
fn a_position_goes_on_where_it_was_left() {
    let folder = MemoryFolder::default();
    let mut scribe = Scribe::new(&folder, 1);
    for id in 1..=9 {
        scribe.decision(id, i64::from(id), RulingResult::Deny);
        if id == 4 {
            scribe.rotate(4);
        }
    }
    let all = || Reading::begin(folder.clone(), &BTreeMap::new()).unwrap();
    let lines: Vec<_> = all().collect();
    for (read, (spot, _)) in lines.iter().enumerate() {
        assert_eq!(line_at(&folder, &chain(1), spot.start).unwrap().as_ref(), Some(&lines[read]));
        let starts = BTreeMap::from([(chain(1), spot.next)]);
        let rest: Vec<_> = Reading::begin(folder.clone(), &starts).unwrap().collect();
        assert_eq!(rest, lines[read + 1..], "after {read}");
    }
    // There is no line past the end, within a line, or in a dropped segment.
    let last = lines[lines.len() - 1].0.next;
    let within = Position { offset: 5, ..Position::start_of(SegmentNumber::FIRST) };
    for nowhere in [last, within, Position::start_of(SegmentNumber(9))] {
        assert_eq!(line_at(&folder, &chain(1), nowhere).unwrap(), None);
    }
}

#[test]
fn calls_that_wait_are_bounded_and_the_oldest_is_told() {
    let mut joiner = Joiner::default();
    let next = Position::start_of(SegmentNumber::FIRST);
    let spot = Spot { chain: chain(1), segment: SegmentNumber::FIRST, line: 1, start: next, next };
    let folder = MemoryFolder::default();
    Scribe::new(&folder, 1).decision(2, 1, RulingResult::Allow);
    let entry = Reading::begin(folder, &BTreeMap::new()).unwrap().nth(1).unwrap().1;
    let Entry::Decision(template) = entry else { panic!("{entry:?}") };
    let mut out = Vec::new();
    for number in 0..=MAX_OPEN_CALLS as u64 {
        let mut decision = template.clone();
        decision.seq = number;
        decision.receipt_id.0[..8].copy_from_slice(&number.to_be_bytes());
        assert_eq!((out.len(), joiner.take_notes().len()), (0, 0), "{number}");
        joiner.push(&spot, Entry::Decision(decision), &mut out);
    }
    assert_eq!(told(&out), ["00 no_outcome"]);
    assert!(joiner.take_notes()[0].to_string().contains("too many calls are open"));
    assert_eq!(joiner.waiting().count(), MAX_OPEN_CALLS);
}

#[test]
fn an_id_that_is_used_twice_loses_neither_call() {
    let folder = MemoryFolder::default();
    let mut scribe = Scribe::new(&folder, 1);
    scribe.decision(2, 1, RulingResult::Allow);
    scribe.decision(2, 2, RulingResult::Allow);
    scribe.outcome(2, 3);
    scribe.outcome(2, 4);
    let (items, notes) = items(&folder);
    assert_eq!(told(&items), ["chain.opened", "02 no_outcome", "02 ended"]);
    assert_eq!(notes.len(), 1);
}

#[test]
fn filters_take_what_matches_and_leave_the_rest() {
    let folder = MemoryFolder::default();
    let mut scribe = Scribe::new(&folder, 1);
    scribe.call(0x21, 1_000, RulingResult::Allow, "files", "read_file");
    scribe.call(0x22, 2_000, RulingResult::Deny, "mail", "send");
    scribe.event("server.approve", 3_000);
    let (all, _) = items(&folder);
    let check = |filter: Filter, expected: &[&str]| {
        let found: Vec<Item> = all.iter().filter(|item| filter.matches(item)).cloned().collect();
        assert_eq!(told(&found), expected, "{filter:?}");
    };
    let some = |text: &str| Some(text.to_owned());
    check(Filter { tool: some("read_file"), ..Filter::default() }, &["21 open"]);
    check(
        Filter { server: some("files"), ..Filter::default() },
        &["chain.opened", "server.approve", "21 open"],
    );
    check(Filter { server: some("mail"), ..Filter::default() }, &["22 refused"]);
    check(Filter { decision: Some(RulingResult::Deny), ..Filter::default() }, &["22 refused"]);
    check(Filter { reason: some("contract_drift"), ..Filter::default() }, &["22 refused"]);
    check(Filter { reason: some("contract"), ..Filter::default() }, &[]);
    check(Filter { id: some("2121"), ..Filter::default() }, &["21 open"]);
    check(Filter { principal: some("bob"), ..Filter::default() }, &[]);
    let at = |milliseconds| Some(Timestamp(START.0 + milliseconds));
    check(Filter { since: at(2_000), ..Filter::default() }, &["22 refused", "server.approve"]);
    check(Filter { until: at(2_000), ..Filter::default() }, &["chain.opened", "21 open"]);
}

#[test]
fn moments_are_dates_or_ages() {
    let now = Timestamp(START.0);
    for (text, before) in
        [("90s", 90), ("30m", 1_800), ("1h", 3_600), ("2d", 172_800), ("1w", 604_800), ("0s", 0)]
    {
        assert_eq!(moment(text, now), Ok(Timestamp(now.0 - before * 1_000)), "{text}");
    }
    assert_eq!(moment("2023-11-14T22:13:20Z", now), Ok(now));
    for text in [
        "",
        "h",
        "1",
        "-1h",
        "1.5h",
        "1y",
        "1h ",
        "é",
        "99999999999999999999d",
        "9999999999999999d",
    ] {
        assert!(moment(text, now).is_err(), "{text}");
    }
}

fn newest_of(folder: &MemoryFolder, filter: &Filter, count: usize) -> Vec<String> {
    told(&newest(folder, filter, &|_| true, count).unwrap().items)
}

#[test]
fn the_newest_come_in_the_order_of_their_decisions_however_few_segments_are_read() {
    let folder = MemoryFolder::default();
    let mut busy = Scribe::new(&folder, 1);
    let mut quiet = Scribe::new(&folder, 2);
    quiet.decision(0xa1, 1, RulingResult::Deny);
    for id in 1..=60 {
        busy.decision(id, i64::from(id) * 10, RulingResult::Allow);
        if id % 7 == 0 {
            busy.rotate(i64::from(id) * 10 + 1);
        }
        // Outcomes come late and out of order.
        if id > 3 && id % 2 == 0 {
            busy.outcome(id - 3, i64::from(id) * 10 + 2);
        }
    }
    let calls = |item: &Item| matches!(item, Item::Receipt(_));
    let mut reference: Vec<Item> = items(&folder).0.into_iter().filter(calls).collect();
    reference.sort_by_key(Item::ts);
    for count in [1, 2, 5, 9, 30, 60, 61, 100] {
        let read = newest(&folder, &Filter::default(), &calls, count).unwrap();
        let start = reference.len().saturating_sub(count);
        assert_eq!(told(&read.items), told(&reference[start..]), "{count}");
    }
    // A receipt that only an old segment has is found there.
    let old = Filter { id: Some("a1".to_owned()), ..Filter::default() };
    assert_eq!(newest_of(&folder, &old, 5), ["a1 refused"]);
    assert_eq!(newest_of(&folder, &Filter::default(), 0), [""; 0]);
}

#[test]
fn what_was_since_a_moment_begins_with_the_segment_that_was_open_then() {
    let folder = MemoryFolder::default();
    let mut scribe = Scribe::new(&folder, 1);
    for number in 1..=5 {
        scribe.rotate(number * 100);
    }
    let begins = |at| segments_since(&folder, Timestamp(START.0 + at)).unwrap()[&chain(1)].segment;
    assert_eq!(begins(250), SegmentNumber(3));
    assert_eq!(begins(300), SegmentNumber(3));
    assert_eq!(begins(301), SegmentNumber(4));
    assert_eq!(begins(-5), SegmentNumber(1));
    assert_eq!(begins(9_999), SegmentNumber(6));
}

#[test]
fn a_receipt_is_found_by_its_first_digits_with_both_lines() {
    let folder = MemoryFolder::default();
    let mut scribe = Scribe::new(&folder, 1);
    scribe.decision(0x21, 1, RulingResult::Allow);
    scribe.decision(0x22, 2, RulingResult::Allow);
    scribe.rotate(3);
    scribe.outcome(0x21, 4);
    let text = "holdpoint/aa/0101010101010101\n4\nroot\n\n— sig\n";
    folder.contents().checkpoints.insert((chain(1), SegmentNumber(2)), text.to_owned());
    let (found, _) = find(&folder, "2121").unwrap();
    let [one] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(
        (one.decision.segment, one.decision.line, one.decision.seq),
        (SegmentNumber(1), 2, 1)
    );
    assert!(one.decision.text.contains("\"record\":\"decision\"") && one.decision.is_covered);
    let outcome = one.outcome.as_ref().unwrap();
    assert_eq!((outcome.segment, outcome.line, outcome.seq), (SegmentNumber(2), 2, 4));
    // The checkpoint covers four lines: the fifth is not covered.
    assert!(outcome.text.contains("\"record\":\"outcome\"") && !outcome.is_covered);
    assert_eq!(find(&folder, "2").unwrap().0.len(), 2);
    assert_eq!(find(&folder, "3").unwrap().0.len(), 0);
}

/// A folder that counts its open segments.
#[derive(Clone)]
struct OpenFiles(MemoryFolder, std::sync::Arc<std::sync::atomic::AtomicUsize>);

struct OpenFile(Box<dyn std::io::Read + Send>, std::sync::Arc<std::sync::atomic::AtomicUsize>);

impl std::io::Read for OpenFile {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        self.1.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
    }
}

impl crate::folder::Folder for OpenFiles {
    fn listing(&self) -> std::io::Result<crate::folder::Listing> {
        self.0.listing()
    }

    fn segment_from(
        &self,
        chain: &ChainId,
        number: SegmentNumber,
        offset: u64,
    ) -> std::io::Result<Box<dyn std::io::Read + Send>> {
        let open = self.1.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        assert!(open <= reading::MAX_OPEN_SEGMENTS, "{open} open files");
        Ok(Box::new(OpenFile(self.0.segment_from(chain, number, offset)?, self.1.clone())))
    }

    fn checkpoint(
        &self,
        chain: &ChainId,
        number: SegmentNumber,
    ) -> std::io::Result<Option<String>> {
        self.0.checkpoint(chain, number)
    }
}

#[test]
fn more_chains_than_a_process_may_open_files_are_read_in_order() {
    let folder = MemoryFolder::default();
    let numbers = 0..=u8::try_from(reading::MAX_OPEN_SEGMENTS + 50).unwrap();
    for number in numbers.clone() {
        let mut scribe = Scribe::new(&folder, number);
        for at in 1..4 {
            scribe.event("server.approve", at * 1_000 + i64::from(number));
        }
    }
    let folder = OpenFiles(folder, std::sync::Arc::default());
    let mut reading = Reading::begin(folder, &BTreeMap::new()).unwrap();
    let moments: Vec<Timestamp> = reading.by_ref().map(|(_, entry)| entry.ts()).collect();
    assert_eq!(moments.len(), numbers.count() * 4);
    assert!(moments.is_sorted());
    assert_eq!(reading.take_notes(), []);
}
