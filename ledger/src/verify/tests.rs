use super::*;
use crate::chain::{ChainWriter, Head, Rotation};
use crate::folder::SegmentNumber;
use crate::index::{CHAIN_LISTED, CHAIN_RETENTION, Dropped, listed_data, retention_data};
use crate::memory::{MemoryChain, MemoryFolder};
use crate::note::SigningKey;
use crate::record::{Event, Latency, Outcome, OutcomeStatus, ReceiptId, Record};
use crate::tree::{Frontier, leaf};
use contract::time::Timestamp;
use serde_json::Value;
use std::sync::Arc;

const NOW: Timestamp = Timestamp(1_763_253_195_123);
const SEGMENT: Rotation = Rotation { bytes: 3_000, age_milliseconds: i64::MAX };

fn key() -> Arc<SigningKey> {
    Arc::new(SigningKey::generate("holdpoint/0011223344556677", [7; 32]).unwrap())
}

fn keys() -> Keyring {
    Keyring::from_text(&key().verifying_key().to_string()).unwrap()
}

fn name(byte: u8) -> ChainId {
    ChainId::from_random([byte; 8])
}

fn outcome(number: u64) -> Outcome {
    Outcome {
        ts: Timestamp(NOW.0 + i64::try_from(number).unwrap()),
        receipt_id: ReceiptId([1; 16]),
        status: OutcomeStatus::Success,
        size_bytes_out: number,
        latency_us: Latency::default(),
    }
}

fn event<'a>(name: &'a str, data: &'a Value) -> Event<'a> {
    Event { ts: NOW, name, by: None, server_id: None, data: Some(data) }
}

/// A home with an index and two chains of several segments, all signed.
struct Home {
    folder: MemoryFolder,
    index: ChainWriter<MemoryChain>,
}

impl Home {
    fn new() -> Home {
        let folder = MemoryFolder::default();
        let index = ChainId::index();
        let files = folder.chain(&index);
        let index = ChainWriter::create(files, key(), index, Rotation::NEVER, &[], NOW).unwrap();
        let mut home = Home { folder, index };
        home.chain(1, 40);
        home.chain(2, 40);
        home
    }

    fn heads(&self) -> Vec<Head> {
        let listing = self.folder.listing().unwrap();
        let head = |(chain, files)| crate::chain::head(&self.folder, chain, files, &keys());
        listing.chains.iter().filter_map(head).collect()
    }

    fn chain(&mut self, byte: u8, lines: u64) {
        let (heads, files) = (self.heads(), self.folder.chain(&name(byte)));
        let mut writer =
            ChainWriter::create(files, key(), name(byte), SEGMENT, &heads, NOW).unwrap();
        self.record(CHAIN_LISTED, &listed_data(&name(byte), writer.head().hash));
        for number in 0..lines {
            writer.append(&Record::Outcome(&outcome(number))).unwrap();
        }
        writer.checkpoint().unwrap();
    }

    fn record(&mut self, name: &str, data: &Value) {
        self.index.append(&Record::Event(&event(name, data))).unwrap();
        self.index.checkpoint().unwrap();
    }

    /// Continues a chain as a new process, which records the heads of all chains.
    fn resume(&self, byte: u8) -> ChainWriter<MemoryChain> {
        let listing = self.folder.listing().unwrap();
        let chain = name(byte);
        let tail = crate::chain::read_tail(&self.folder, &chain, &listing.chains[&chain], &keys())
            .unwrap();
        let files = self.folder.chain(&chain);
        ChainWriter::resume(files, key(), tail, SEGMENT, &self.heads(), NOW).unwrap()
    }

    fn verify(&self) -> Report {
        verify(&self.folder, &keys(), &[], &|_| {}).unwrap()
    }

    fn spoil(&self, byte: u8, segment: u32, change: impl FnOnce(&mut Vec<u8>)) {
        change(
            self.folder.contents().segments.get_mut(&(name(byte), SegmentNumber(segment))).unwrap(),
        );
    }

    fn head_of(&self, byte: u8) -> Checkpoint {
        let contents = self.folder.contents();
        let newest = contents.checkpoints.iter().rfind(|((chain, _), _)| *chain == name(byte));
        Checkpoint::open(newest.unwrap().1, &keys()).unwrap()
    }
}

fn lines_of(bytes: &[u8]) -> Vec<Vec<u8>> {
    bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}

#[track_caller]
fn assert_found(home: &Home, expected: &str) {
    let problems: Vec<String> = home.verify().problems.iter().map(ToString::to_string).collect();
    assert!(problems.iter().any(|found| found.contains(expected)), "{expected}: {problems:#?}");
}

#[test]
fn a_sound_folder_verifies_and_is_counted() {
    let home = Home::new();
    let report = home.verify();
    assert_eq!(report.problems, []);
    assert_eq!(report.notes, [""; 0]);
    assert_eq!((report.chains.len(), report.uncovered()), (3, 0));
    let chain = &report.chains[1];
    assert_eq!(chain.outcomes, 40);
    assert!(chain.segments > 3, "{chain:?}");
    assert_eq!(chain.size, chain.covered);
}

#[test]
fn an_edited_line_is_named() {
    let home = Home::new();
    home.spoil(1, 2, |bytes| {
        let at = lines_of(bytes)[..2].concat().len() + 100;
        bytes[at] ^= 1;
    });
    assert_found(&home, "chain 0101010101010101, segment 000002, line 3: ");
}

#[test]
fn deleted_inserted_and_swapped_lines_are_named() {
    type Change = fn(&mut Vec<Vec<u8>>);
    let changes: [(&str, Change); 3] = [
        ("line 3: its `seq` is not the one that follows", |lines| drop(lines.remove(2))),
        ("line 4: its `seq` is not the one that follows", |lines| {
            lines.insert(3, lines[2].clone());
        }),
        ("line 3: its `seq` is not the one that follows", |lines| lines.swap(2, 3)),
    ];
    for (expected, change) in changes {
        let home = Home::new();
        home.spoil(1, 2, |bytes| {
            let mut lines = lines_of(bytes);
            change(&mut lines);
            *bytes = lines.concat();
        });
        assert_found(&home, &format!("segment 000002, {expected}"));
    }
}

/// A line with a correct hash and `prev`, which an attacker without the key can make.
#[test]
fn a_rewritten_line_is_found_by_the_checkpoint() {
    let home = Home::new();
    home.spoil(1, 1, |bytes| {
        let mut lines = lines_of(bytes);
        let mut out = Vec::new();
        for (at, line) in lines.iter_mut().enumerate() {
            let text = String::from_utf8(line.clone()).unwrap();
            let value: Value = serde_json::from_str(&text).unwrap();
            if at == 0 {
                out.extend_from_slice(line);
                continue;
            }
            let place = crate::line::Place {
                seq: value["seq"].as_u64().unwrap(),
                prev: crate::line::scan(lines_of(&out).last().unwrap().trim_ascii_end())
                    .unwrap()
                    .hash,
            };
            let mut forged = outcome(value["outcome"]["size_bytes_out"].as_u64().unwrap());
            forged.size_bytes_out += u64::from(at == 1);
            crate::line::encode(&Record::Outcome(&forged), place, &mut out).unwrap();
        }
        *bytes = out;
    });
    assert_found(&home, "segment 000001: its checkpoint is of other lines");
    assert_found(
        &home,
        "segment 000002, line 1: it does not continue where the segment before it ended",
    );
}

#[test]
fn a_truncated_end_is_found() {
    let home = Home::new();
    let last = home.folder.listing().unwrap().chains[&name(2)].segments.len();
    home.spoil(2, u32::try_from(last).unwrap(), |bytes| {
        let mut lines = lines_of(bytes);
        lines.pop();
        *bytes = lines.concat();
    });
    assert_found(&home, "the newest are gone");
}

#[test]
fn a_replayed_segment_and_a_missing_one_are_found() {
    let home = Home::new();
    let first = home.folder.contents().segments[&(name(1), SegmentNumber(1))].clone();
    home.spoil(1, 2, |bytes| *bytes = first);
    assert_found(&home, "segment 000002, line 1: it does not continue where");
    let home = Home::new();
    home.folder.contents().segments.remove(&(name(1), SegmentNumber(2)));
    assert_found(&home, "segment 000002: the segment is gone");
    assert_found(&home, "segment 000002: its checkpoint is there and the segment is gone");
}

#[test]
fn another_key_is_not_trusted() {
    let home = Home::new();
    let other = SigningKey::generate(key().name(), [8; 32]).unwrap();
    for text in home.folder.contents().checkpoints.values_mut() {
        *text = Checkpoint::open(text, &keys()).unwrap().sign(&other);
    }
    let report = home.verify();
    assert!(report.problems.len() >= 3, "{report:?}");
    assert_eq!(report.chains.iter().map(|chain| chain.covered).sum::<u64>(), 0);
}

#[test]
fn a_chain_copied_under_another_name_is_found() {
    let home = Home::new();
    {
        let contents = &mut *home.folder.contents();
        for number in 1..=3 {
            let (from, to) = ((name(1), SegmentNumber(number)), (name(9), SegmentNumber(number)));
            let (bytes, text) =
                (contents.segments[&from].clone(), contents.checkpoints[&from].clone());
            contents.segments.insert(to.clone(), bytes);
            contents.checkpoints.insert(to, text);
        }
    }
    assert_found(
        &home,
        "chain 0909090909090909, segment 000001: its checkpoint: it is one of `holdpoint/0011223344556677/0101010101010101`",
    );
    assert_found(&home, "chain 0909090909090909: it is not in the index");
}

#[test]
fn a_chain_that_vanished_is_missed() {
    let home = Home::new();
    let gone = name(1);
    home.folder.contents().segments.retain(|(chain, _), _| *chain != gone);
    home.folder.contents().checkpoints.retain(|(chain, _), _| *chain != gone);
    assert_found(&home, "chain 0101010101010101: the index lists it, and it is gone");
    let home = Home::new();
    home.folder.contents().segments.retain(|(chain, _), _| !chain.is_index());
    home.folder.contents().checkpoints.retain(|(chain, _), _| !chain.is_index());
    assert_found(&home, "chain index: it is gone");
}

#[test]
fn the_loss_of_the_newest_part_is_found_with_a_head_and_by_a_chain_that_saw_it() {
    let home = Home::new();
    // The earlier state of the chain: an older copy with its own checkpoint.
    let older: Vec<_> =
        home.folder.contents().segments.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    let older_signed: Vec<_> =
        home.folder.contents().checkpoints.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    let mut writer = home.resume(1);
    writer.append(&Record::Outcome(&outcome(99))).unwrap();
    writer.checkpoint().unwrap();
    let head = home.head_of(1);
    let put_back = |home: &Home| {
        let mut contents = home.folder.contents();
        for (key, bytes) in older.iter().filter(|(key, _)| key.0 == name(1)) {
            contents.segments.insert(key.clone(), bytes.clone());
        }
        for (key, text) in older_signed.iter().filter(|(key, _)| key.0 == name(1)) {
            contents.checkpoints.insert(key.clone(), text.clone());
        }
    };
    let with_head =
        |home: &Home| verify(&home.folder, &keys(), std::slice::from_ref(&head), &|_| {}).unwrap();
    assert_eq!(with_head(&home).problems, []);
    put_back(&home);
    // Nothing inside the folder reveals it …
    assert_eq!(home.verify().problems, []);
    // … but the head kept elsewhere does.
    assert!(with_head(&home).problems[0].what.contains("the newest are gone"));

    let home = Home::new();
    let mut writer = home.resume(1);
    writer.append(&Record::Outcome(&outcome(99))).unwrap();
    writer.checkpoint().unwrap();
    home.resume(2).checkpoint().unwrap();
    assert_eq!(home.verify().problems, []);
    put_back(&home);
    assert_found(&home, "is gone, which chain 0202020202020202 saw");
}

#[test]
fn a_head_of_other_lines_is_found() {
    let home = Home::new();
    let mut head = home.head_of(1);
    head.root.0[0] ^= 1;
    let report = verify(&home.folder, &keys(), &[head], &|_| {}).unwrap();
    assert!(report.problems[0].what.contains("are not those of the checkpoint kept elsewhere"));
    let mut foreign = home.head_of(1);
    foreign.origin = "holdpoint/0011223344556677/ffffffffffffffff".to_owned();
    let report = verify(&home.folder, &keys(), &[foreign], &|_| {}).unwrap();
    assert!(report.problems[0].what.contains("which is gone"));
}

/// The retention record for the first segments of a chain.
fn dropped(home: &Home, byte: u8, count: u32) -> Vec<Dropped> {
    let contents = home.folder.contents();
    let mut tree = Frontier::new();
    let segment = |number| {
        let first_seq = tree.size();
        for line in lines_of(&contents.segments[&(name(byte), SegmentNumber(number))]) {
            tree.push(leaf(&crate::line::scan(line.trim_ascii_end()).unwrap().hash.0));
        }
        Dropped {
            chain: name(byte),
            segment: SegmentNumber(number),
            first_seq,
            lines: tree.size() - first_seq,
            root: tree.root(),
        }
    };
    (1..=count).map(segment).collect()
}

fn remove(home: &Home, byte: u8, count: u32) {
    for number in 1..=count {
        let key = (name(byte), SegmentNumber(number));
        home.folder.contents().segments.remove(&key);
        home.folder.contents().checkpoints.remove(&key);
    }
}

#[test]
fn what_retention_left_verifies_and_nothing_else_passes_as_retention() {
    let mut home = Home::new();
    let record = retention_data(&dropped(&home, 1, 2));
    home.record(CHAIN_RETENTION, &record);
    // Recorded but not yet dropped; partly dropped; dropped.
    for count in 0..=2 {
        remove(&home, 1, count);
        assert_eq!(home.verify().problems, [], "{count}");
    }
    // One more than recorded.
    remove(&home, 1, 3);
    assert_found(&home, "no signed record of retention names them");

    // An unsigned record.
    let mut home = Home::new();
    let data = retention_data(&dropped(&home, 1, 2));
    home.index.append(&Record::Event(&event(CHAIN_RETENTION, &data))).unwrap();
    remove(&home, 1, 2);
    assert_found(&home, "no signed record of retention names them");

    // A record of different lines.
    let mut home = Home::new();
    let mut other = dropped(&home, 1, 2);
    other[1].root.0[0] ^= 1;
    home.record(CHAIN_RETENTION, &retention_data(&other));
    remove(&home, 1, 2);
    assert_found(&home, "it does not continue where the segments that retention dropped ended");
}

#[test]
fn a_head_within_what_was_dropped_is_compared_where_a_segment_ended() {
    let mut home = Home::new();
    let segments = dropped(&home, 1, 2);
    home.record(CHAIN_RETENTION, &retention_data(&segments));
    remove(&home, 1, 2);
    let origin = home.head_of(1).origin;
    let verify_with = |size, root| {
        let head = Checkpoint { origin: origin.clone(), size, root };
        verify(&home.folder, &keys(), &[head], &|_| {}).unwrap()
    };
    let end = &segments[0];
    assert_eq!(verify_with(end.next_seq(), end.root).problems, []);
    assert_eq!(verify_with(end.next_seq(), segments[1].root).problems.len(), 1);
    let inside = verify_with(end.next_seq() + 1, end.root);
    assert_eq!((inside.problems.len(), inside.notes.len()), (0, 1));
}

#[test]
fn one_bad_segment_leaves_the_others_verified() {
    let home = Home::new();
    let sound = home.verify();
    home.spoil(1, 2, |bytes| bytes[10] ^= 1);
    let report = home.verify();
    assert_eq!(report.problems.len(), 1, "{:#?}", report.problems);
    assert!(report.lines() > sound.lines() - 20, "{} of {}", report.lines(), sound.lines());
    assert_eq!(report.chains[1].size, sound.chains[1].size);
}

#[test]
fn lines_without_a_checkpoint_and_a_torn_end_are_told_and_sound() {
    let home = Home::new();
    let mut writer = home.resume(1);
    for number in 0..3 {
        writer.append(&Record::Outcome(&outcome(number))).unwrap();
    }
    let segment = writer.segment();
    drop(writer);
    home.spoil(1, segment.0, |bytes| bytes.extend_from_slice(b"{\"hash\":\"00"));
    let report = home.verify();
    assert_eq!(report.problems, []);
    assert!(report.uncovered() > 0);
    assert_eq!(report.notes.len(), 2, "{:?}", report.notes);
    assert!(report.notes[0].contains("11 bytes of a line"), "{:?}", report.notes);
    assert!(report.notes[1].contains("the clock went back"), "{:?}", report.notes);
}

#[test]
fn an_unlisted_chain_is_a_note_when_signed_and_a_problem_when_not() {
    let home = Home::new();
    let files = home.folder.chain(&name(3));
    ChainWriter::create(files, key(), name(3), SEGMENT, &home.heads(), NOW).unwrap();
    let report = home.verify();
    assert_eq!((report.problems.len(), report.notes.len()), (0, 1));
    home.folder.contents().checkpoints.remove(&(name(3), SegmentNumber(1)));
    assert_found(&home, "chain 0303030303030303, segment 000001: its checkpoint is gone");
}

#[test]
fn empty_segments_are_notes_at_the_end_and_problems_elsewhere() {
    let home = Home::new();
    let next =
        u32::try_from(home.folder.listing().unwrap().chains[&name(1)].segments.len()).unwrap() + 1;
    home.folder.contents().segments.insert((name(1), SegmentNumber(next)), Vec::new());
    let report = home.verify();
    assert_eq!(report.problems, []);
    assert!(report.notes[0].contains("zero bytes"));
    home.spoil(1, 2, Vec::clear);
    assert_found(&home, "segment 000002: it has no lines");
}

#[test]
fn every_bit_of_every_file_counts() {
    let home = Home::new();
    let sound: Vec<_> =
        home.folder.contents().segments.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random >> 16).unwrap()
    };
    for _ in 0..150 {
        let (key, bytes) = &sound[next() % sound.len()];
        let mut edited = bytes.clone();
        let at = next() % edited.len();
        edited[at] ^= 1 << (next() % 8);
        home.folder.contents().segments.insert(key.clone(), edited);
        assert!(!home.verify().is_sound(), "{key:?} byte {at}");
        home.folder.contents().segments.insert(key.clone(), bytes.clone());
    }
    assert!(home.verify().is_sound());
}

#[test]
fn an_index_without_its_checkpoint_is_found_and_hides_nothing() {
    let home = Home::new();
    home.folder.contents().checkpoints.remove(&(ChainId::index(), SegmentNumber::FIRST));
    assert_found(&home, "chain index, segment 000001: its checkpoint is gone");
    assert_found(&home, "chain 0101010101010101: it is not in the index");
}

#[test]
fn more_unsigned_lines_than_a_writer_leaves_are_found() {
    let mut home = Home::new();
    let data = serde_json::json!({});
    for number in 0..3 {
        assert_eq!(home.verify().problems, [], "{number}");
        home.index.append(&Record::Event(&event("server.approve", &data))).unwrap();
    }
    assert_found(&home, "3 lines without a checkpoint, more than a writer leaves");
}

#[test]
fn a_chain_with_receipts_that_the_index_does_not_list_is_found() {
    let home = Home::new();
    let files = home.folder.chain(&name(3));
    let mut writer =
        ChainWriter::create(files, key(), name(3), SEGMENT, &home.heads(), NOW).unwrap();
    writer.append(&Record::Outcome(&outcome(1))).unwrap();
    writer.checkpoint().unwrap();
    assert_found(&home, "chain 0303030303030303: it is not in the index");
}

#[test]
fn a_segment_with_a_huge_number_is_one_problem() {
    let home = Home::new();
    home.folder.contents().segments.insert((name(1), SegmentNumber(u32::MAX)), b"x\n".to_vec());
    let report = home.verify();
    assert!(report.problems.len() < 5, "{:?}", report.problems);
    assert_found(&home, "to 4294967294 are gone");
}

#[test]
fn an_unsigned_line_does_not_unsay_what_a_signed_one_said() {
    let home = Home::new();
    // Chain 2 has recorded the newest line of chain 1, and is signed.
    let older: Vec<_> = {
        let contents = home.folder.contents();
        contents
            .segments
            .iter()
            .filter(|(key, _)| key.0 == name(1))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect()
    };
    let mut writer = home.resume(1);
    writer.append(&Record::Outcome(&outcome(99))).unwrap();
    writer.checkpoint().unwrap();
    home.resume(2).checkpoint().unwrap();
    for (key, bytes) in older {
        home.folder.contents().segments.insert(key, bytes);
    }
    assert!(!home.verify().is_sound());
    // Without a checkpoint that covers it, a line's claims do not count.
    home.resume(2);
    assert!(!home.verify().is_sound());
}

#[test]
fn a_checkpoint_of_another_home_is_not_of_this_chain() {
    let home = Home::new();
    let other = SigningKey::generate("holdpoint/8899aabbccddeeff", [9; 32]).unwrap();
    let both =
        Keyring::from_text(&format!("{}\n{}\n", key().verifying_key(), other.verifying_key()))
            .unwrap();
    assert!(verify(&home.folder, &both, &[], &|_| {}).unwrap().is_sound());
    let at = (name(1), SegmentNumber(2));
    let mut checkpoint =
        Checkpoint::open(&home.folder.contents().checkpoints[&at], &keys()).unwrap();
    checkpoint.origin = origin(other.name(), &name(1));
    let head = checkpoint.clone();
    home.folder.contents().checkpoints.insert(at, checkpoint.sign(&other));
    let report = verify(&home.folder, &both, &[], &|_| {}).unwrap();
    assert!(
        report.problems[0].what.contains("it is one of `holdpoint/8899aabbccddeeff/"),
        "{report:?}"
    );
    let report = verify(&Home::new().folder, &both, &[head], &|_| {}).unwrap();
    assert!(report.problems[0].what.contains("which is gone"), "{report:?}");
}

#[test]
fn numbers_beyond_all_lines_are_no_panic() {
    let home = Home::new();
    let mut writer = home.resume(1);
    let data = serde_json::json!({"unsigned": u64::MAX, "others": [{"chain": name(2), "hash": "0".repeat(64), "seq": u64::MAX}]});
    for _ in 0..2 {
        writer.append(&Record::Event(&event("chain.resumed", &data))).unwrap();
    }
    writer.checkpoint().unwrap();
    assert!(!home.verify().is_sound());
    let place = crate::line::Place { seq: u64::MAX, prev: crate::line::LineHash::NONE };
    let mut line = Vec::new();
    crate::line::encode(&Record::Outcome(&outcome(1)), place, &mut line).unwrap();
    home.spoil(2, 1, |bytes| *bytes = [line.clone(), line.clone()].concat());
    assert!(!home.verify().is_sound());
}

/// A folder that counts what is read.
struct Counted<'f> {
    folder: &'f MemoryFolder,
    listings: std::cell::Cell<usize>,
    segments: std::cell::RefCell<BTreeMap<(ChainId, SegmentNumber), usize>>,
}

impl Folder for Counted<'_> {
    fn listing(&self) -> io::Result<Listing> {
        self.listings.set(self.listings.get() + 1);
        self.folder.listing()
    }

    fn segment_from(
        &self,
        chain: &ChainId,
        number: SegmentNumber,
        offset: u64,
    ) -> io::Result<Box<dyn io::Read + Send>> {
        *self.segments.borrow_mut().entry((chain.clone(), number)).or_default() += 1;
        self.folder.segment_from(chain, number, offset)
    }

    fn checkpoint(&self, chain: &ChainId, number: SegmentNumber) -> io::Result<Option<String>> {
        self.folder.checkpoint(chain, number)
    }
}

#[test]
fn a_folder_with_many_unknown_chains_is_read_once() {
    let home = Home::new();
    for number in 0..500_u64 {
        // Every other chain starts late, as if retention had dropped the missing segments.
        let segment = SegmentNumber(if number % 2 == 0 { 1 } else { 2 });
        let chain = ChainId::from_random((1_000 + number).to_be_bytes());
        home.folder.contents().segments.insert((chain, segment), b"x\n".to_vec());
    }
    let counted =
        Counted { folder: &home.folder, listings: 0.into(), segments: BTreeMap::new().into() };
    let report = verify(&counted, &keys(), &[], &|_| {}).unwrap();
    assert_eq!(report.chains.len(), 503);
    assert!(report.problems.len() >= 500, "{}", report.problems.len());
    // Once for the index, once for the chains, once for the claims.
    assert_eq!(counted.listings.get(), 3);
    let most = counted.segments.borrow().values().copied().max();
    assert_eq!(
        most,
        Some(2),
        "each is verified, and counted once more where others name its lines"
    );
}

#[test]
fn an_index_that_grows_during_the_run_is_read_again() {
    let mut home = Home::new();
    let files = home.folder.chain(&name(3));
    let mut writer =
        ChainWriter::create(files, key(), name(3), SEGMENT, &home.heads(), NOW).unwrap();
    let first = writer.head().hash;
    writer.append(&Record::Outcome(&outcome(1))).unwrap();
    writer.checkpoint().unwrap();
    let folder = home.folder.clone();
    let listed = std::cell::Cell::new(false);
    let home = std::cell::RefCell::new(&mut home);
    // Its writer lists the chain while the first lines of the index are being read.
    let progress = |_| {
        if !listed.replace(true) {
            home.borrow_mut().record(CHAIN_LISTED, &listed_data(&name(3), first));
        }
    };
    let report = verify(&folder, &keys(), &[], &progress).unwrap();
    assert_eq!(report.problems, []);
}

#[test]
fn a_name_in_the_folder_cannot_forge_a_line_of_the_report() {
    let mut report = Report::default();
    let listing = Listing {
        foreign: vec!["x\nall receipts verify \u{202e}".to_owned()],
        ..Listing::default()
    };
    note_names(&listing, &mut report);
    assert!(
        report.notes[0].starts_with("x\\u{a}all receipts verify \\u{202e}: not one"),
        "{report:?}"
    );
}
