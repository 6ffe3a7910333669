use super::*;
use crate::folder::Folder;
use crate::memory::{MemoryChain, MemoryFolder};
use crate::note::Keyring;
use crate::record::{Latency, Outcome, OutcomeStatus, ReceiptId};

const NOW: Timestamp = Timestamp(1_763_253_195_123);

fn key() -> Arc<SigningKey> {
    Arc::new(SigningKey::generate("holdpoint/0011223344556677", [7; 32]).unwrap())
}

fn keys() -> Keyring {
    Keyring::from_text(&key().verifying_key().to_string()).unwrap()
}

fn chain() -> ChainId {
    ChainId::from_random([0xaa; 8])
}

fn outcome(number: u64) -> Outcome {
    let mut id = [0; 16];
    id[8..].copy_from_slice(&number.to_be_bytes());
    Outcome {
        ts: NOW,
        receipt_id: ReceiptId(id),
        status: OutcomeStatus::Success,
        size_bytes_out: number,
        latency_us: Latency::default(),
    }
}

fn create(folder: &MemoryFolder, rotation: Rotation) -> ChainWriter<MemoryChain> {
    ChainWriter::create(folder.chain(&chain()), key(), chain(), rotation, &[], NOW).unwrap()
}

fn tail(folder: &MemoryFolder) -> Result<Tail, TailError> {
    let listing = folder.listing().unwrap();
    read_tail(folder, &chain(), &listing.chains[&chain()], &keys())
}

fn resume(
    folder: &MemoryFolder,
    rotation: Rotation,
) -> Result<ChainWriter<MemoryChain>, WriteError> {
    let tail = tail(folder).unwrap();
    let mut files = folder.chain(&chain());
    if tail.torn.is_some() {
        files.cut(tail.segment_bytes);
    }
    let others = [Head { chain: ChainId::index(), hash: LineHash::NONE, seq: 0 }];
    ChainWriter::resume(files, key(), tail, rotation, &others, NOW)
}

#[test]
fn a_chain_goes_on_where_it_ended() {
    let folder = MemoryFolder::default();
    let mut writer = create(&folder, Rotation::NEVER);
    for number in 0..10 {
        writer.append(&Record::Outcome(&outcome(number))).unwrap();
    }
    let named = |folder: &MemoryFolder| {
        let listing = folder.listing().unwrap();
        head(folder, &chain(), &listing.chains[&chain()], &keys()).unwrap().seq
    };
    // Only signed lines are named to other chains.
    assert_eq!(named(&folder), 0);
    writer.checkpoint().unwrap();
    let end = writer.head();
    drop(writer);
    assert_eq!(tail(&folder).unwrap().head(), end);
    assert_eq!(named(&folder), end.seq);
    let resumed = resume(&folder, Rotation::NEVER).unwrap();
    assert_eq!(resumed.head().seq, end.seq + 1);
}

#[test]
fn at_most_256_lines_are_without_a_checkpoint() {
    let folder = MemoryFolder::default();
    let mut writer = create(&folder, Rotation::NEVER);
    let mut most = 0;
    for number in 0..1_000 {
        writer.append(&Record::Outcome(&outcome(number))).unwrap();
        most = most.max(writer.uncovered_lines());
    }
    assert_eq!(most, CHECKPOINT_LINES);
}

#[test]
fn a_line_waits_ten_seconds_for_its_checkpoint_and_less_when_the_clock_went_back() {
    let folder = MemoryFolder::default();
    let mut writer = create(&folder, Rotation::NEVER);
    for (moment, is_signed) in [
        (NOW.0 + CHECKPOINT_MILLISECONDS - 1, false),
        (NOW.0 + CHECKPOINT_MILLISECONDS, true),
        (NOW.0 - 1, true),
    ] {
        writer.append(&Record::Outcome(&outcome(1))).unwrap();
        if let Some(unsigned) = writer.unsigned_if_due(Timestamp(moment)) {
            let signed = unsigned.sign();
            writer.files().put_checkpoint(signed.segment, &signed.text).unwrap();
            writer.note_put(&signed);
        }
        assert_eq!(writer.uncovered_lines() == 0, is_signed, "{moment}");
    }
}

#[test]
fn segments_are_rotated_by_size_and_by_age() {
    let folder = MemoryFolder::default();
    let mut writer = create(&folder, Rotation { bytes: 4_000, age_milliseconds: 60_000 });
    for number in 0..100 {
        writer.append(&Record::Outcome(&outcome(number))).unwrap();
    }
    let by_size = writer.segment();
    assert!(by_size.0 > 3, "{by_size}");
    let mut late = outcome(0);
    late.ts = Timestamp(NOW.0 + 60_000);
    writer.append(&Record::Outcome(&late)).unwrap();
    assert_eq!(writer.segment(), by_size.next());
    let sizes: Vec<u64> =
        folder.listing().unwrap().chains[&chain()].segments.values().copied().collect();
    assert!(sizes[..sizes.len() - 2].iter().all(|size| (4_000..6_000).contains(size)), "{sizes:?}");
    // Every segment can be read by itself.
    assert_eq!(tail(&folder).unwrap().head(), writer.head());
}

#[test]
fn a_writer_goes_on_with_a_short_segment_and_begins_another_after_a_long_one() {
    let rotation = Rotation { bytes: u64::MAX, age_milliseconds: i64::MAX - 1 };
    let line_bytes = {
        let mut writer = create(&MemoryFolder::default(), rotation);
        let before = writer.segment_bytes;
        writer.append(&Record::Outcome(&outcome(1))).unwrap();
        writer.segment_bytes - before
    };
    for (rotation, is_long) in [(rotation, false), (rotation, true), (Rotation::NEVER, true)] {
        let folder = MemoryFolder::default();
        let mut writer = create(&folder, rotation);
        let enough = MAX_RESUMED_BYTES - if is_long { 0 } else { 2 * line_bytes };
        while writer.segment_bytes < enough {
            writer.append(&Record::Outcome(&outcome(1))).unwrap();
        }
        assert_eq!(writer.segment_bytes >= MAX_RESUMED_BYTES, is_long);
        let first = writer.segment();
        drop(writer);
        let mut resumed = resume(&folder, rotation).unwrap();
        let expected = if is_long && rotation != Rotation::NEVER { first.next() } else { first };
        assert_eq!(resumed.segment(), expected);
        // The long segment is that of the previous writer: this one's grows.
        for number in 0..3 {
            resumed.append(&Record::Outcome(&outcome(number))).unwrap();
        }
        assert_eq!(resumed.segment(), expected);
        assert_eq!(tail(&folder).unwrap().head(), resumed.head());
    }
}

/// Fails at each step in turn, leaving each possible part of the failed append behind, then
/// continues.
#[test]
fn after_a_failure_at_any_step_the_chain_goes_on_and_nothing_written_is_lost() {
    let rotation = Rotation { bytes: 1_500, age_milliseconds: i64::MAX };
    for steps in 0..40 {
        for torn_bytes in [0, 1, 100, 300, 700] {
            let folder = MemoryFolder::default();
            let mut writer = create(&folder, rotation);
            (folder.contents().steps_left, folder.contents().torn_bytes) =
                (Some(steps), torn_bytes);
            let mut written = 0;
            while writer.append(&Record::Outcome(&outcome(written))).is_ok() {
                written += 1;
            }
            drop(writer);
            folder.contents().steps_left = None;
            let found =
                tail(&folder).unwrap_or_else(|error| panic!("{steps} {torn_bytes}: {error}"));
            let mut again = resume(&folder, rotation).unwrap();
            again.append(&Record::Outcome(&outcome(written))).unwrap();
            again.checkpoint().unwrap();
            let text = all_text(&folder);
            for number in 0..=written {
                let needle = format!("\"size_bytes_out\":{number},");
                assert_eq!(text.matches(&needle).count(), 1, "{steps} {torn_bytes} {number}");
            }
            assert_eq!(text.contains("\"torn\":{\"bytes\""), found.torn.is_some());
            assert!(tail(&folder).is_ok());
        }
    }
}

fn all_text(folder: &MemoryFolder) -> String {
    folder
        .contents()
        .segments
        .values()
        .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        .collect()
}

#[test]
fn a_writer_whose_append_failed_can_try_again() {
    let folder = MemoryFolder::default();
    let mut writer = create(&folder, Rotation::NEVER);
    folder.contents().steps_left = Some(0);
    for _ in 0..3 {
        assert!(matches!(writer.append(&Record::Outcome(&outcome(1))), Err(WriteError::Io(_))));
    }
    folder.contents().steps_left = None;
    assert_eq!(writer.append(&Record::Outcome(&outcome(1))).unwrap().seq, 1);
    assert!(tail(&folder).is_ok());
}

#[test]
fn a_spoiled_tail_is_not_gone_on_with() {
    let spoil = |change: &dyn Fn(&mut Vec<u8>)| {
        let folder = MemoryFolder::default();
        let mut writer = create(&folder, Rotation::NEVER);
        for number in 0..5 {
            writer.append(&Record::Outcome(&outcome(number))).unwrap();
        }
        writer.checkpoint().unwrap();
        change(folder.contents().segments.get_mut(&(chain(), SegmentNumber::FIRST)).unwrap());
        tail(&folder)
    };
    assert!(spoil(&|_| {}).is_ok());
    let cut = spoil(&|bytes| bytes.truncate(bytes.len() - 400));
    assert!(matches!(cut, Err(TailError::OtherLines { .. })), "{cut:?}");
    let edited = spoil(&|bytes| bytes[600] ^= 1);
    assert!(matches!(edited, Err(TailError::Line { .. })), "{edited:?}");
    let ending = spoil(&|bytes| *bytes.last_mut().unwrap() = b'x');
    assert!(matches!(ending, Err(TailError::Order { .. })), "{ending:?}");
    assert!(matches!(spoil(&|bytes| bytes.clear()), Err(TailError::OtherLines { .. })));
}

#[test]
fn only_so_many_unsigned_lines_are_gone_on_with_and_only_behind_a_checkpoint() {
    let written = |lines: u64| {
        let folder = MemoryFolder::default();
        let mut writer = create(&folder, Rotation::NEVER);
        for number in 0..lines {
            writer.append(&Record::Outcome(&outcome(number))).unwrap();
        }
        folder
    };
    // One line is signed when the chain is created.
    let folder = written(CHECKPOINT_LINES);
    assert_eq!(tail(&folder).unwrap().unsigned_lines(), CHECKPOINT_LINES);
    drop(resume(&folder, Rotation::NEVER).unwrap());
    assert!(all_text(&folder).contains(&format!("\"unsigned\":{CHECKPOINT_LINES}")));

    // An attacker without the key can append lines, but cannot sign them.
    let folder = written(CHECKPOINT_LINES);
    let first = folder.contents().checkpoints.clone();
    let mut writer = resume(&folder, Rotation::NEVER).unwrap();
    writer.append(&Record::Outcome(&outcome(0))).unwrap();
    folder.contents().checkpoints = first;
    assert!(matches!(tail(&folder), Err(TailError::Unsigned { .. })), "{:?}", tail(&folder));

    let folder = written(3);
    folder.contents().checkpoints.clear();
    assert!(matches!(tail(&folder), Err(TailError::Unsigned { .. })), "{:?}", tail(&folder));
}

#[test]
fn an_unsigned_segment_has_to_go_on_where_the_one_before_was_signed() {
    let folder = MemoryFolder::default();
    let mut writer = create(&folder, Rotation { bytes: 1_500, age_milliseconds: i64::MAX });
    while writer.segment().0 < 3 {
        writer.append(&Record::Outcome(&outcome(1))).unwrap();
    }
    assert!(tail(&folder).is_ok());
    let second = (chain(), SegmentNumber(2));
    let kept = folder.contents().checkpoints.remove(&second).unwrap();
    assert!(matches!(tail(&folder), Err(TailError::Unsigned { .. })), "{:?}", tail(&folder));
    let other = folder.contents().checkpoints[&(chain(), SegmentNumber::FIRST)].clone();
    folder.contents().checkpoints.insert(second.clone(), other);
    assert!(matches!(tail(&folder), Err(TailError::OtherLines { .. })), "{:?}", tail(&folder));
    folder.contents().checkpoints.insert(second, kept);
    assert!(tail(&folder).is_ok());
}

#[test]
fn a_chain_that_is_signed_line_by_line_is_cut_back_to_its_checkpoint() {
    let folder = MemoryFolder::default();
    let mut writer = create(&folder, Rotation::NEVER);
    writer.append(&Record::Outcome(&outcome(1))).unwrap();
    writer.checkpoint().unwrap();
    let signed = writer.head();
    writer.append(&Record::Outcome(&outcome(2))).unwrap();
    let listing = folder.listing().unwrap();
    let files = &listing.chains[&chain()];
    let tail = read_signed_tail(&folder, &chain(), files, &keys()).unwrap();
    assert_eq!((tail.head(), tail.unsigned_lines()), (signed, 0));
    let torn = tail.torn.unwrap();
    assert_eq!(torn.bytes, files.segments[&SegmentNumber::FIRST] - tail.segment_bytes);
}

#[test]
fn lines_that_are_written_later_are_written_as_one_or_not_at_all() {
    let folder = MemoryFolder::default();
    let mut writer = create(&folder, Rotation::NEVER);
    writer.append(&Record::Outcome(&outcome(0))).unwrap();
    let (head, lines) = (writer.head(), writer.written_lines());
    for number in 1..5 {
        writer.take(Encoder::default().draft(&Record::Outcome(&outcome(number))).unwrap()).unwrap();
    }
    assert!(writer.has_unwritten() && writer.unsigned().is_none());
    assert_eq!((writer.written_lines(), tail(&folder).unwrap().tree.size()), (lines, lines));
    folder.contents().steps_left = Some(0);
    assert!(writer.flush().is_err());
    assert_eq!((writer.head(), writer.written_lines()), (head, lines));
    assert!(!writer.has_unwritten());
    folder.contents().steps_left = None;
    for number in 5..8 {
        writer.take(Encoder::default().draft(&Record::Outcome(&outcome(number))).unwrap()).unwrap();
    }
    writer.flush().unwrap();
    writer.checkpoint().unwrap();
    assert_eq!(tail(&folder).unwrap().unsigned_lines(), 0);
    assert_eq!(tail(&folder).unwrap().tree.size(), lines + 3);
}
