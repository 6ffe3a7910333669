use super::*;
use ledger::record::{Latency, OutcomeStatus, ReceiptId};

fn outcome(number: u16) -> Outcome {
    let [high, low] = number.to_be_bytes();
    let mut id = [0; 16];
    (id[0], id[1]) = (high, low);
    Outcome {
        ts: now(),
        receipt_id: ReceiptId(id),
        status: OutcomeStatus::Success,
        size_bytes_out: 5,
        latency_us: Latency::default(),
    }
}

/// As many as are kept: more than fit before one checkpoint, so that taking them along has to sign.
const LATE: u16 = 1_024;

#[test]
fn an_outcome_does_not_wait_for_who_writes_and_is_written_with_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let home = Home::open(&directory.path().join("home")).unwrap();
    for on_full in [OnFull::Refuse, OnFull::DropOldest] {
        let settings = Settings { on_full, ..Settings::default() };
        let receipts = Receipts::open(&home, settings).unwrap();
        let state = receipts.shared.lock();
        let before = state.writer.written_lines();
        for number in 0..LATE {
            // The chain is locked by this same thread: whoever waited for it would wait for ever.
            receipts.outcome_later(&outcome(number)).unwrap();
        }
        assert_eq!(state.writer.written_lines(), before, "{on_full:?}");
        assert_eq!(receipts.shared.late().len(), MAX_LATE_OUTCOMES);
        assert!(!receipts.shared.keep_late(&outcome(LATE)), "one more has to wait");
        drop(state);
        receipts.settle(None).unwrap();
        assert_eq!(receipts.shared.lock().writer.written_lines(), before + u64::from(LATE));
        receipts.settle(None).unwrap();
        assert_eq!(receipts.shared.lock().writer.written_lines(), before + u64::from(LATE));
    }
}

#[test]
fn late_outcomes_are_written_at_the_end_too() {
    let directory = tempfile::tempdir().unwrap();
    let home = Home::open(&directory.path().join("home")).unwrap();
    let receipts = Receipts::open(&home, Settings::default()).unwrap();
    let state = receipts.shared.lock();
    let before = state.writer.written_lines();
    receipts.outcome_later(&outcome(1)).unwrap();
    drop(state);
    receipts.finish();
    assert_eq!(receipts.shared.lock().writer.written_lines(), before + 1);
}
