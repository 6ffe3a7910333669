//! One chain with many writers: threads and tasks that append at the same time, wait in both ways,
//! and give up waiting.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "all of this file is a test, also the functions that are not marked as one"
)]

use contract::time::Timestamp;
use ledger::folder::Folder;
use ledger::line::scan;
use ledger::lines::{LineReader, Piece};
use ledger::record::*;
use ledger::sample;
use ledger::verify::verify;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use store::Home;
use store::receipts::*;
use testing::Random;

const THREADS: u64 = 8;
const TASKS_A_THREAD: u64 = 5;
const RECORDS: u64 = 50_000;
const NOW: Timestamp = Timestamp(1_763_253_195_123);

fn id(number: u64) -> ReceiptId {
    ReceiptId(u128::from(number).to_be_bytes())
}

fn decision(number: u64) -> Decision<'static> {
    let mut decision = sample::decision(NOW, id(number));
    decision.mcp.tool_name = Some(Text(["read_file", "write_file", "list"][(number % 3) as usize]));
    decision.request.args_hash = Some(Digest32([number as u8; 32]));
    decision.request.size_bytes_in = number;
    decision
}

/// One call of a task: a decision that is settled now, later, asynchronously or not at all, and
/// perhaps an outcome.
async fn call(receipts: &Receipts, number: u64, random: &mut Random, records: &AtomicU64) {
    let ticket = receipts.decision_later(&decision(number)).unwrap();
    records.fetch_add(1, Ordering::Relaxed);
    match random.below(6) {
        // Never settled.
        0 => drop(ticket),
        // Polled once and then dropped.
        1 => {
            let mut settling = Box::pin(receipts.settling(ticket));
            let polled = std::future::poll_fn(|context| {
                std::task::Poll::Ready(settling.as_mut().poll(context).map(|end| end.map(drop)))
            });
            if let std::task::Poll::Ready(settled) = polled.await {
                settled.unwrap();
            }
        }
        2 => drop(receipts.settle(ticket).unwrap()),
        3 => {
            tokio::task::yield_now().await;
            let is_settled = receipts.is_settled(&ticket);
            assert!(receipts.settling(ticket).await.is_ok() || !is_settled);
        }
        _ => drop(receipts.settling(ticket).await.unwrap()),
    }
    if random.below(2) == 0 {
        receipts.outcome_later(&sample::outcome(NOW, id(number))).unwrap();
        records.fetch_add(1, Ordering::Relaxed);
    }
}

fn drive(receipts: &Receipts, seed: u64, numbers: &AtomicU64, records: &AtomicU64) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let tasks = futures_util::future::join_all((0..TASKS_A_THREAD).map(|task| async move {
        let mut random = Random::new(seed ^ (task + 1));
        while records.load(Ordering::Relaxed) < RECORDS {
            let number = numbers.fetch_add(1, Ordering::Relaxed);
            call(receipts, number, &mut random, records).await;
            if random.below(4) == 0 {
                tokio::task::yield_now().await;
            }
        }
    }));
    runtime.block_on(tasks);
}

#[test]
fn many_threads_and_tasks_share_one_chain_and_no_record_is_lost_or_out_of_place() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    let seed = (now as u64) | 1;
    eprintln!("seed {seed}");
    for (fsync, share) in [(Fsync::Interval, 1), (Fsync::Always, 50)] {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::open(&directory.path().join("home")).unwrap();
        let receipts = Receipts::open(&home, Settings { fsync, ..Settings::default() }).unwrap();
        // With "always", each write waits for the disk, so use fewer records.
        let (numbers, records) = (AtomicU64::new(0), AtomicU64::new(RECORDS - RECORDS / share));
        let before = records.load(Ordering::Relaxed);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (receipts, numbers, records) = (&receipts, &numbers, &records);
                let seed = seed.wrapping_mul(thread + 1) | 1;
                scope.spawn(move || drive(receipts, seed, numbers, records));
            }
        });
        drop(receipts);
        let (decisions, records) = (numbers.into_inner(), records.into_inner() - before);
        assert!(records >= RECORDS / share);
        assert_all_there(&home, decisions, records);
    }
}

fn assert_all_there(home: &Home, decisions: u64, records: u64) {
    let folder = DiskFolder::new(&home.receipts_path());
    let keys = public_keys(&home.receipts_public_key_path()).unwrap();
    let report = verify(&folder, &keys, &[], &|_| {}).unwrap();
    assert_eq!((report.problems.as_slice(), report.uncovered()), (&[][..], 0));
    assert_eq!(report.chains[1].decisions, decisions);
    let mut found: HashMap<String, u32> = HashMap::new();
    let mut seq = 0;
    for (chain, files) in folder.listing().unwrap().chains {
        for number in files.segments.keys().filter(|_| !chain.is_index()) {
            let mut reader = LineReader::new(folder.segment(&chain, *number).unwrap());
            while let Some(Piece::Line(bytes)) = reader.next_piece().unwrap() {
                let line = scan(bytes).unwrap();
                assert_eq!(line.seq, seq);
                seq += 1;
                if let Some(id) = line.receipt_id {
                    *found.entry(id.to_owned()).or_default() += 1;
                }
            }
        }
    }
    assert!((0..decisions).all(|number| found.contains_key(&id(number).to_string())));
    assert_eq!(u64::from(found.values().sum::<u32>()), records);
}
