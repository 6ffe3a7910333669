use super::*;
use ledger::record::{Latency, OutcomeStatus, ReceiptId};
use std::pin::pin;
use std::sync::atomic::AtomicUsize;
use std::task::{Context, Wake};
use tempfile::TempDir;

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

fn open(settings: Settings) -> (TempDir, Receipts) {
    let directory = tempfile::tempdir().unwrap();
    let home = Home::open(&directory.path().join("home")).unwrap();
    let receipts = Receipts::open(&home, settings).unwrap();
    (directory, receipts)
}

fn queue(receipts: &Receipts, number: u16) -> Ticket {
    receipts.shared.queue(&Record::Outcome(&outcome(number))).unwrap()
}

fn written_lines(receipts: &Receipts) -> u64 {
    receipts.shared.chain.lock().unwrap().written_lines()
}

/// Counts how often a task would be woken.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn poll(settling: &mut Settling<'_>, wakes: &Arc<Wakes>) -> Poll<Result<Settled, ReceiptsError>> {
    pin!(settling).poll(&mut Context::from_waker(&wakes.clone().into()))
}

#[test]
fn a_record_does_not_wait_for_who_writes_and_is_written_with_the_next() {
    for on_full in [OnFull::Refuse, OnFull::DropOldest] {
        let (_directory, receipts) = open(Settings { on_full, ..Settings::default() });
        let chain = receipts.shared.chain.lock().unwrap();
        let before = chain.written_lines();
        // More than fit before one checkpoint, so that writing them has to sign.
        let most = u16::try_from(MAX_QUEUED_RECORDS).unwrap();
        for number in 0..most {
            // The chain is locked by this same thread: whoever waited for it would wait for ever.
            receipts.outcome_later(&outcome(number)).unwrap();
        }
        assert_eq!(chain.written_lines(), before, "{on_full:?}");
        drop(chain);
        // There is no room for one more: it is written after the others.
        receipts.outcome_later(&outcome(most)).unwrap();
        assert_eq!(written_lines(&receipts), before + u64::from(most));
        receipts.flush().unwrap();
        receipts.flush().unwrap();
        assert_eq!(written_lines(&receipts), before + u64::from(most) + 1);
    }
}

#[test]
fn what_is_queued_is_written_at_the_end_too_and_what_comes_later_is_refused() {
    let (_directory, receipts) = open(Settings::default());
    let before = written_lines(&receipts);
    let ticket = queue(&receipts, 1);
    assert!(!receipts.is_settled(&ticket));
    receipts.finish();
    assert_eq!(written_lines(&receipts), before + 1);
    assert!(receipts.is_settled(&ticket) && receipts.settle(ticket).is_ok());
    let refused = receipts.outcome_later(&outcome(2)).unwrap_err();
    assert!(matches!(refused, ReceiptsError::Stopped(_)), "{refused}");
    assert!(receipts.flush().is_ok(), "there is nothing to write");
    receipts.finish();
}

#[test]
fn tickets_are_settled_together_and_only_by_their_own_ledger() {
    let ((_one, ours), (_other, theirs)) = (open(Settings::default()), open(Settings::default()));
    let both = queue(&ours, 1).and(queue(&ours, 2));
    assert!(!ours.is_settled(&both));
    assert!(ours.settle(both).is_ok());
    let foreign = queue(&theirs, 1);
    assert!(theirs.flush().is_ok() && !ours.is_settled(&foreign));
    let refused = ours.settle(foreign);
    assert!(matches!(refused, Err(ReceiptsError::ForeignTicket)), "{refused:?}");
    let mixed = queue(&ours, 3).and(queue(&theirs, 3));
    assert!(ours.flush().is_ok() && theirs.flush().is_ok());
    assert!(ours.settle(mixed).is_err());
}

#[test]
fn a_task_that_finds_the_chain_free_writes_for_all() {
    let (_directory, receipts) = open(Settings::default());
    let wakes = Arc::new(Wakes::default());
    let others: Vec<Ticket> = (0..3).map(|number| queue(&receipts, number)).collect();
    let mut last = receipts.settling(queue(&receipts, 3));
    assert!(matches!(poll(&mut last, &wakes), Poll::Ready(Ok(_))));
    assert!(others.iter().all(|ticket| receipts.is_settled(ticket)));
    assert_eq!(wakes.0.load(Ordering::SeqCst), 0);
}

#[test]
fn a_task_that_finds_the_chain_held_is_woken_when_it_is_let_go() {
    let (_directory, receipts) = open(Settings::default());
    let held = receipts.shared.hold().unwrap();
    let wakes = [(); 3].map(|()| Arc::new(Wakes::default()));
    let mut settling = [0, 1, 2].map(|number| receipts.settling(queue(&receipts, number)));
    for (settling, wakes) in settling.iter_mut().zip(&wakes) {
        assert!(poll(settling, wakes).is_pending());
    }
    drop(held);
    // One of them writes for the others.
    let woken = || wakes.each_ref().map(|wakes| wakes.0.load(Ordering::SeqCst));
    assert_eq!(woken(), [1, 0, 0]);
    let [first, second, third] = settling;
    // It is gone before it could: then it is the next one's turn.
    drop(first);
    assert_eq!(woken(), [1, 1, 0]);
    let [mut second, mut third] = [second, third];
    assert!(matches!(poll(&mut second, &wakes[1]), Poll::Ready(Ok(_))));
    assert_eq!(woken(), [1, 1, 1]);
    assert!(matches!(poll(&mut third, &wakes[2]), Poll::Ready(Ok(_))));
    // There is one proof a decision.
    let again = poll(&mut third, &wakes[2]);
    assert!(matches!(again, Poll::Ready(Err(ReceiptsError::Answered))), "{again:?}");
}

#[test]
fn what_nobody_waits_for_is_written_by_who_finds_the_chain_free_or_by_who_holds_it() {
    let (_directory, receipts) = open(Settings::default());
    let before = written_lines(&receipts);
    let alone = queue(&receipts, 0);
    receipts.write_queued().unwrap();
    assert!(receipts.is_settled(&alone));
    let held = receipts.shared.hold().unwrap();
    let left = [1, 2].map(|number| {
        let ticket = queue(&receipts, number);
        // A thread that waited for the chain here would wait forever.
        receipts.write_queued().unwrap();
        ticket
    });
    assert!(left.iter().all(|ticket| !receipts.is_settled(ticket)));
    drop(held);
    assert!(left.iter().all(|ticket| receipts.is_settled(ticket)));
    assert_eq!(written_lines(&receipts), before + 3);
    // With nothing queued there is nothing to do.
    receipts.write_queued().unwrap();
    assert_eq!(written_lines(&receipts), before + 3);
}

#[test]
fn records_that_several_threads_leave_to_each_other_are_all_written() {
    let (_directory, receipts) = open(Settings::default());
    let before = written_lines(&receipts);
    let (threads, each) = (4, 500);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let receipts = &receipts;
            scope.spawn(move || {
                for number in 0..each {
                    receipts.outcome_later(&outcome(thread * each + number)).unwrap();
                    receipts.write_queued().unwrap();
                }
            });
        }
    });
    // No thread waits for a record, and none is left over when all have gone.
    assert_eq!(written_lines(&receipts), before + u64::from(threads * each));
}

#[test]
fn under_fsync_always_a_ticket_is_settled_when_it_is_on_disk() {
    let (_directory, receipts) = open(Settings { fsync: Fsync::Always, ..Settings::default() });
    // Nobody syncs from here on.
    receipts.shared.worker.remove(receipts.shared.id);
    let wakes = Arc::new(Wakes::default());
    let ticket = queue(&receipts, 1);
    let mut settling = receipts.settling(queue(&receipts, 2));
    let before = written_lines(&receipts);
    assert!(poll(&mut settling, &wakes).is_pending());
    assert_eq!(written_lines(&receipts), before + 2);
    assert!(!receipts.is_settled(&ticket) && wakes.0.load(Ordering::SeqCst) == 0);
    receipts.shared.tend();
    assert!(receipts.is_settled(&ticket) && wakes.0.load(Ordering::SeqCst) == 1);
    assert!(matches!(poll(&mut settling, &wakes), Poll::Ready(Ok(_))));
    // A thread waits the same way.
    std::thread::scope(|scope| {
        let waiting =
            scope.spawn(|| receipts.settle(ticket).and(receipts.settle(queue(&receipts, 3))));
        while !waiting.is_finished() {
            receipts.shared.tend();
        }
        assert!(waiting.join().unwrap().is_ok());
    });
}

/// Panics with the chain in its hands.
fn panic_while_writing(receipts: &Receipts) {
    let panicked = std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            let _held = receipts.shared.hold().unwrap();
            panic!("a test panics here");
        });
        writing.join().is_err()
    });
    assert!(panicked);
}

#[test]
fn after_a_panic_of_a_thread_that_writes_everything_is_refused_and_nobody_is_left_waiting() {
    for fsync in [Fsync::Interval, Fsync::Always] {
        let (_directory, receipts) = open(Settings { fsync, ..Settings::default() });
        let settled = queue(&receipts, 0);
        receipts.flush().unwrap();
        let wakes = Arc::new(Wakes::default());
        let held = receipts.shared.hold().unwrap();
        let tickets = [1, 2, 3].map(|number| queue(&receipts, number));
        let [blocked, polled, later] = tickets;
        let mut settling = receipts.settling(polled);
        assert!(poll(&mut settling, &wakes).is_pending());
        std::thread::scope(|scope| {
            let blocked = scope.spawn(|| receipts.settle(blocked));
            // This thread held the chain, so the record is not written when the other thread panics with it.
            receipts.shared.progress.fail(PANICKED);
            drop(held);
            assert!(matches!(blocked.join().unwrap(), Err(ReceiptsError::Stopped(_))));
        });
        assert!(wakes.0.load(Ordering::SeqCst) > 0);
        assert!(matches!(poll(&mut settling, &wakes), Poll::Ready(Err(ReceiptsError::Stopped(_)))));
        assert!(matches!(receipts.settle(later), Err(ReceiptsError::Stopped(_))));
        assert!(receipts.outcome_later(&outcome(4)).is_err() && receipts.checkpoint().is_err());
        assert!(receipts.settle(settled).is_ok(), "what was written before is still there");
    }
}

#[test]
fn a_poisoned_chain_fails_closed() {
    let (_directory, receipts) = open(Settings::default());
    let before = written_lines(&receipts);
    panic_while_writing(&receipts);
    assert!(receipts.shared.chain.is_poisoned());
    let refused = receipts.outcome_later(&outcome(1)).unwrap_err();
    assert!(refused.to_string().contains("panicked"), "{refused}");
    assert!(receipts.event(&event()).is_err() && receipts.checkpoint().is_err());
    let poisoned = receipts.shared.chain.lock().unwrap_err().into_inner();
    assert_eq!(poisoned.written_lines(), before);
    drop(poisoned);
    // Neither the end of the process nor the worker is held up.
    receipts.shared.tend();
    drop(receipts);
}

fn event() -> Event<'static> {
    Event { ts: now(), name: "server.test", by: None, server_id: None, data: None }
}

#[test]
fn a_poisoned_queue_fails_closed() {
    let (_directory, receipts) = open(Settings::default());
    let ticket = queue(&receipts, 1);
    let panicked = std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            let _queue = receipts.shared.queue.lock().unwrap();
            panic!("a test panics here");
        });
        writing.join().is_err()
    });
    assert!(panicked);
    assert!(receipts.settle(ticket).is_err());
    assert!(receipts.outcome_later(&outcome(2)).is_err() && receipts.flush().is_err());
    drop(receipts);
}
