//! Writers that are killed at any moment, and disks that fill up: the ledger verifies, and no
//! dispatched call is missing from it.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "all of this file is a test, also the functions that are not marked as one"
)]
#![cfg(unix)]

use contract::time::Timestamp;
use ledger::chain::Rotation;
use ledger::folder::Folder;
use ledger::line::{LineKind, scan};
use ledger::lines::{LineReader, Piece};
use ledger::record::*;
use ledger::sample;
use ledger::verify::{Report, verify};
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use store::receipts::{
    DiskFolder, Fsync, Journal, Keep, MAX_WAITING_OUTCOMES, OnFull, Receipts, ReceiptsError,
    Settings, Ticket, public_keys,
};
use store::{By, Home, IncidentStore, SqliteStore, Witnessed};
use tempfile::TempDir;
use testing::Random;

/// Set to the home to write calls to, when this test program is started again as a driver.
const DRIVE: &str = "HOLDPOINT_TEST_DRIVE";
const DRIVER_THREADS: u8 = 3;

/// The same for a program that repeatedly opens and closes the home, and writes to its index in
/// between.
const COME_AND_GO: &str = "HOLDPOINT_TEST_COME_AND_GO";

/// The same for a program that continues until it is refused, and prints why.
const UNTIL_REFUSED: &str = "HOLDPOINT_TEST_UNTIL_REFUSED";

fn decision(id: [u8; 16]) -> Decision<'static> {
    sample::decision(Timestamp(1_763_253_195_123), ReceiptId(id))
}

fn outcome(id: [u8; 16]) -> Outcome {
    sample::outcome(Timestamp(1_763_253_195_124), ReceiptId(id))
}

fn settings(fsync: Fsync) -> Settings {
    let rotation = Rotation { bytes: 30_000, age_milliseconds: i64::MAX };
    Settings { fsync, rotation, ..Settings::default() }
}

/// Not a test of its own: the program that other tests start and kill. It dispatches a call by
/// writing its id next to the home.
#[test]
fn driver() {
    let Ok(home) = std::env::var(DRIVE) else { return };
    let home = Home::open(Path::new(&home)).unwrap();
    let fsync = match std::process::id() % 3 {
        0 => Fsync::Always,
        1 => Fsync::Interval,
        _ => Fsync::Never,
    };
    let keep =
        Keep { bytes: std::process::id().is_multiple_of(2).then_some(400_000), ..Keep::default() };
    let receipts = Receipts::open(&home, Settings { keep, ..settings(fsync) }).unwrap();
    let dispatched = home.path().join("dispatched");
    std::thread::scope(|scope| {
        for thread in 0..DRIVER_THREADS {
            let (receipts, dispatched) = (&receipts, &dispatched);
            scope.spawn(move || {
                let mut side =
                    OpenOptions::new().create(true).append(true).open(dispatched).unwrap();
                for call in 0_u64.. {
                    let mut id = [thread; 16];
                    id[..4].copy_from_slice(&std::process::id().to_be_bytes());
                    id[4..12].copy_from_slice(&call.to_be_bytes());
                    receipts.decision(&decision(id)).unwrap();
                    side.write_all(format!("{}\n", ReceiptId(id)).as_bytes()).unwrap();
                    receipts.outcome(&outcome(id)).unwrap();
                }
            });
        }
    });
}

fn start_driver(home: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["driver", "--exact", "--test-threads=1"])
        .env(DRIVE, home)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn verified(home: &Path) -> Report {
    let keys = public_keys(&home.join("keys").join("receipts.pub")).unwrap();
    verify(&DiskFolder::new(&home.join("receipts")), &keys, &[], &|_| {}).unwrap()
}

/// How many decisions and outcomes each call has.
fn calls(home: &Path) -> HashMap<String, (u32, u32)> {
    let folder = DiskFolder::new(&home.join("receipts"));
    let mut calls: HashMap<String, (u32, u32)> = HashMap::new();
    for (chain, files) in folder.listing().unwrap().chains {
        for number in files.segments.keys() {
            let mut reader = LineReader::new(folder.segment(&chain, *number).unwrap());
            while let Some(Piece::Line(bytes)) = reader.next_piece().unwrap() {
                let line = scan(bytes).unwrap();
                let Some(id) = line.receipt_id else { continue };
                let counted = calls.entry(id.to_owned()).or_default();
                match line.kind {
                    LineKind::Decision { .. } => counted.0 += 1,
                    _ => counted.1 += 1,
                }
            }
        }
    }
    calls
}

fn dropped_lines(report: &Report) -> u64 {
    report.chains.iter().map(|chain| chain.size - chain.lines).sum()
}

/// The complete lines written next to the home.
fn dispatched(home: &Path) -> Vec<String> {
    let text = fs::read_to_string(home.join("dispatched")).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().map(str::to_owned).collect()
}

fn assert_whole(home: &Path) {
    let report = verified(home);
    assert_eq!(report.problems, [], "{:?}", report.notes);
    let calls = calls(home);
    let is_whole = dropped_lines(&report) == 0;
    for id in dispatched(home) {
        let (decisions, outcomes) = calls.get(&id).copied().unwrap_or_default();
        // Retention may have dropped a call, but no call may be recorded twice.
        assert!(decisions == 1 || (!is_whole && decisions == 0), "{id}: {decisions} decisions");
        assert!(outcomes <= 1, "{id}: {outcomes} outcomes");
    }
    let open = calls.values().filter(|(decisions, outcomes)| decisions > outcomes).count() as u64;
    if is_whole {
        assert_eq!(report.without_outcome(), open);
    }
}

/// Adds what an interrupted write leaves: a partial line at the end of a segment.
fn tear(home: &Path, random: &mut Random) {
    let folder = DiskFolder::new(&home.join("receipts"));
    let listing = folder.listing().unwrap();
    let chains: Vec<_> = listing.chains.iter().filter(|(chain, _)| !chain.is_index()).collect();
    let (chain, files) = chains[random.below(chains.len())];
    let (number, _) = files.segments.last_key_value().unwrap();
    let path = home.join("receipts").join(chain.as_str()).join(number.file_name());
    let mut bytes = fs::read(&path).unwrap();
    // A kill may already have left a partial line.
    if bytes.last() != Some(&b'\n') {
        return;
    }
    let line = bytes.split(|byte| *byte == b'\n').rfind(|line| !line.is_empty()).unwrap().to_vec();
    let cut = random.below(line.len());
    bytes.extend_from_slice(&line[..cut]);
    fs::write(&path, bytes).unwrap();
}

#[test]
fn kills_at_any_moment_lose_nothing() {
    let rounds = if std::env::var_os("HOLDPOINT_LONG").is_some() { 2_000 } else { 40 };
    let mut random = Random::from_clock();
    let mut is_torn_end_closed = false;
    for batch in 0..rounds / 20 {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().join("home");
        drop(Home::open(&home).unwrap());
        for round in 0..20 {
            let before = dispatched(&home).len();
            // Sometimes start several writers at once.
            let mut drivers: Vec<Child> =
                (0..=random.below(6) / 4).map(|_| start_driver(&home)).collect();
            testing::wait_until("a dispatched call", || {
                assert!(drivers[0].try_wait().unwrap().is_none(), "the driver ended by itself");
                dispatched(&home).len() > before
            });
            // Kill at a random moment.
            std::thread::sleep(Duration::from_micros(random.number() % 20_000));
            for driver in &mut drivers {
                driver.kill().unwrap();
                driver.wait().unwrap();
            }
            // Check in each round: retention drops old segments.
            is_torn_end_closed |= texts(&home.join("receipts")).contains("\"torn\":{\"bytes\":");
            if random.below(2) == 0 {
                tear(&home, &mut random);
            }
            if round % 5 == 4 {
                assert_whole(&home);
            }
        }
        assert!(!dispatched(&home).is_empty(), "batch {batch}");
    }
    assert!(is_torn_end_closed, "no torn end was ever closed");
}

fn texts(folder: &Path) -> String {
    let mut text = String::new();
    for chain in fs::read_dir(folder).unwrap().flatten() {
        for file in fs::read_dir(chain.path()).into_iter().flatten().flatten() {
            let _ = File::open(file.path()).and_then(|mut file| file.read_to_string(&mut text));
        }
    }
    text
}

/// A file system of this size; `None` if this user may not create one.
fn small_disk(size: &str) -> Option<(TempDir, PathBuf)> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("disk");
    fs::create_dir(&path).unwrap();
    let options = format!("size={size},mode=0700");
    let mounted =
        Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(&path).status();
    if mounted.is_ok_and(|status| status.success()) {
        return Some((directory, path));
    }
    testing::not_run("a full disk: this user may not mount a small file system");
    None
}

struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn id(number: u32) -> [u8; 16] {
    let mut id = [0; 16];
    id[..4].copy_from_slice(&number.to_be_bytes());
    id
}

#[test]
fn a_full_disk_refuses_calls_and_goes_on_when_there_is_room() {
    let Some((_directory, disk)) = small_disk("1m") else { return };
    let mounted = Mounted(disk.clone());
    let home = Home::open(&disk.join("home")).unwrap();
    let filler = disk.join("filler");
    fs::write(&filler, vec![0; 300_000]).unwrap();
    let receipts = Receipts::open(&home, settings(Fsync::Interval)).unwrap();
    let mut allowed = Vec::new();
    let mut number = 0;
    let refused = loop {
        match receipts.decision(&decision(id(number))) {
            Ok(_) => allowed.push(number),
            Err(error) => break error,
        }
        // The outcome of the last allowed call may have to wait.
        receipts.outcome(&outcome(id(number))).unwrap();
        number += 1;
    };
    assert!(refused.is_disk_full(), "{refused}");
    for number in 10_000..10_050 {
        assert!(receipts.decision(&decision(id(number))).unwrap_err().is_disk_full());
    }
    assert_eq!(verified(home.path()).problems, []);
    fs::remove_file(&filler).unwrap();
    let after = number + 1;
    receipts.decision(&decision(id(after))).unwrap();
    receipts.outcome(&outcome(id(after))).unwrap();
    allowed.push(after);
    drop(receipts);
    assert_whole(home.path());
    let calls = calls(home.path());
    assert_eq!(calls.len(), allowed.len());
    assert!(calls.values().all(|counted| *counted == (1, 1)), "{calls:?}");
    drop(mounted);
}

/// Fills the rest of a disk, and removes the filler when dropped.
struct FullDisk(PathBuf);

impl FullDisk {
    fn fill(disk: &Path) -> FullDisk {
        let path = disk.join("filler");
        let mut file = File::create(&path).unwrap();
        while file.write_all(&[0; 4_096]).is_ok() {}
        FullDisk(path)
    }
}

impl Drop for FullDisk {
    fn drop(&mut self) {
        fs::remove_file(&self.0).unwrap();
    }
}

#[test]
fn a_database_on_a_full_disk_says_that_the_disk_is_full() {
    let Some((_directory, disk)) = small_disk("4m") else { return };
    let mounted = Mounted(disk.clone());
    let home = Home::open(&disk.join("home")).unwrap();
    let full = FullDisk::fill(&disk);
    let refused = SqliteStore::open(&home).unwrap_err();
    assert!(refused.is_disk_full(), "new: {refused:?}");
    drop(full);
    let mut store = SqliteStore::open(&home).unwrap();
    let full = FullDisk::fill(&disk);
    let by = By { name: "ada", at: Timestamp(1) };
    let refused = (0..100).find_map(|_| store.block_egress(by).err()).unwrap();
    assert!(refused.is_disk_full(), "open: {refused:?}");
    drop(store);
    if let Err(refused) = SqliteStore::open(&home) {
        assert!(refused.is_disk_full(), "reopened: {refused:?}");
    }
    drop(full);
    SqliteStore::open(&home).unwrap().block_egress(by).unwrap();
    drop(mounted);
}

#[test]
fn an_act_on_a_full_disk_says_that_the_disk_is_full() {
    let Some((_directory, disk)) = small_disk("4m") else { return };
    let mounted = Mounted(disk.clone());
    let home = Home::open(&disk.join("home")).unwrap();
    let mut store = Witnessed::new(Box::new(SqliteStore::open(&home).unwrap()), &home);
    let by = By { name: "ada", at: Timestamp(1) };
    let full = FullDisk::fill(&disk);
    let refused = store.block_egress(by).unwrap_err();
    assert!(refused.is_disk_full(), "{refused:?}");
    drop(full);
    store.block_egress(by).unwrap();
    drop(mounted);
}

#[test]
fn a_full_disk_drops_the_oldest_where_it_may() {
    let Some((_directory, disk)) = small_disk("1m") else { return };
    let mounted = Mounted(disk.clone());
    let home = Home::open(&disk.join("home")).unwrap();
    let settings = Settings { on_full: OnFull::DropOldest, ..settings(Fsync::Never) };
    let receipts = Receipts::open(&home, settings).unwrap();
    for number in 0..3_000 {
        receipts.decision(&decision(id(number))).unwrap();
        receipts.outcome(&outcome(id(number))).unwrap();
    }
    drop(receipts);
    assert_whole(home.path());
    let report = verified(home.path());
    assert!(dropped_lines(&report) > 3_000, "{report:?}");
    let index = fs::read_to_string(home.receipts_path().join("index/000001.jsonl")).unwrap();
    assert!(index.contains("\"name\":\"chain.retention\""), "{index}");
    assert!(index.len() < 100_000, "{} bytes", index.len());
    // Receipts can also be opened on the full disk.
    let receipts = Receipts::open(&home, settings).unwrap();
    receipts.decision(&decision(id(9_000))).unwrap();
    drop(receipts);
    assert_whole(home.path());
    drop(mounted);
}

#[test]
fn a_disk_without_room_for_another_file_refuses_calls_and_goes_on_later() {
    let Some((_directory, disk)) = small_disk("4m,nr_inodes=40") else { return };
    let mounted = Mounted(disk.clone());
    let home = Home::open(&disk.join("home")).unwrap();
    let receipts = Receipts::open(&home, settings(Fsync::Never)).unwrap();
    let fillers: Vec<PathBuf> = (0..40)
        .map(|number| disk.join(format!("filler-{number}")))
        .take_while(|path| fs::write(path, []).is_ok())
        .collect();
    let mut number = 0;
    let refused = loop {
        number += 1;
        match receipts.decision(&decision(id(number))) {
            Ok(_) => receipts.outcome(&outcome(id(number))).unwrap(),
            Err(error) => break error,
        }
    };
    assert!(refused.is_disk_full(), "{refused}");
    assert_eq!(verified(home.path()).problems, []);
    fillers.iter().for_each(|path| fs::remove_file(path).unwrap());
    receipts.decision(&decision(id(number))).unwrap();
    receipts.outcome(&outcome(id(number))).unwrap();
    drop(receipts);
    assert_whole(home.path());
    let calls = calls(home.path());
    assert_eq!(calls.len(), usize::try_from(number).unwrap());
    assert!(calls.values().all(|counted| *counted == (1, 1)), "{calls:?}");
    drop(mounted);
}

#[test]
fn a_read_only_disk_opens_no_chain_and_goes_on_when_it_can_be_written_to() {
    let Some((_directory, disk)) = small_disk("4m") else { return };
    let mounted = Mounted(disk.clone());
    let home = Home::open(&disk.join("home")).unwrap();
    drop(Receipts::open(&home, settings(Fsync::Never)).unwrap());
    let remount = |how: &str| {
        let options = format!("remount,{how}");
        Command::new("mount").args(["-o", &options]).arg(&disk).status().unwrap().success()
    };
    assert!(remount("ro"));
    assert!(Receipts::open(&home, settings(Fsync::Never)).is_err());
    assert_eq!(verified(home.path()).problems, []);
    assert!(remount("rw"));
    let receipts = Receipts::open(&home, settings(Fsync::Never)).unwrap();
    receipts.decision(&decision(id(1))).unwrap();
    receipts.outcome(&outcome(id(1))).unwrap();
    drop(receipts);
    assert_whole(home.path());
    drop(mounted);
}

/// Not a test of its own: makes calls until one is refused, and records why.
#[test]
fn until_refused() {
    let Ok(home) = std::env::var(UNTIL_REFUSED) else { return };
    let home = Home::open(Path::new(&home)).unwrap();
    // One segment, larger than the limit on file sizes in this test.
    let receipts = Receipts::open(&home, Settings::default()).unwrap();
    let mut side =
        OpenOptions::new().create(true).append(true).open(home.path().join("dispatched")).unwrap();
    for number in 0.. {
        if let Err(error) = receipts.decision(&decision(id(number))) {
            fs::write(home.path().join("refused"), error.to_string()).unwrap();
            return;
        }
        side.write_all(format!("{}\n", ReceiptId(id(number))).as_bytes()).unwrap();
    }
}

/// Exceeding the limit on file sizes raises a signal that ends the process or is ignored, depending
/// on the parent process.
#[test]
fn a_limit_on_the_size_of_files_loses_nothing_that_was_dispatched() {
    for (signal, is_refused) in [("trap '' XFSZ;", true), ("", false)] {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().join("home");
        drop(Home::open(&home).unwrap());
        let script = format!("{signal} ulimit -c 0; ulimit -f 200; exec \"$@\"");
        let status = Command::new("bash")
            .args(["-c", &script, "bash"])
            .arg(std::env::current_exe().unwrap())
            .args(["until_refused", "--exact", "--test-threads=1"])
            .env(UNTIL_REFUSED, &home)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert_eq!(status.success(), is_refused, "{status}");
        assert_eq!(home.join("refused").exists(), is_refused);
        assert!(!dispatched(&home).is_empty());
        assert_whole(&home);
        drop(Receipts::open(&Home::open(&home).unwrap(), settings(Fsync::Never)).unwrap());
        assert_whole(&home);
    }
}

/// Not a test of its own: opens and closes the home, and writes to the index, until it is killed.
#[test]
fn come_and_go() {
    let Ok(home) = std::env::var(COME_AND_GO) else { return };
    let home = Home::open(Path::new(&home)).unwrap();
    let open = |name: &str| {
        OpenOptions::new().create(true).append(true).open(home.path().join(name)).unwrap()
    };
    let (mut side, mut acts) = (open("dispatched"), open("acts"));
    for number in 0_u32.. {
        let mut id = [7; 16];
        id[..4].copy_from_slice(&std::process::id().to_be_bytes());
        id[4..8].copy_from_slice(&number.to_be_bytes());
        let receipts = patiently(|| Receipts::open(&home, settings(Fsync::Never)));
        receipts.decision(&decision(id)).unwrap();
        side.write_all(format!("{}\n", ReceiptId(id)).as_bytes()).unwrap();
        receipts.outcome(&outcome(id)).unwrap();
        drop(receipts);
        let who = ReceiptId(id).to_string();
        let act = Event {
            ts: Timestamp(1_763_253_195_125),
            name: "server.approve",
            by: Some(Text("ada")),
            server_id: Some(Text(&who)),
            data: None,
        };
        patiently(|| Journal::new(&home).append(&act));
        acts.write_all(format!("{who}\n").as_bytes()).unwrap();
    }
}

/// Retries: on a busy machine, others may hold the index longer than one waits for it.
fn patiently<T>(mut doing: impl FnMut() -> Result<T, ReceiptsError>) -> T {
    loop {
        match doing() {
            Ok(done) => return done,
            Err(ReceiptsError::Busy { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

fn start_visitor(home: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["come_and_go", "--exact", "--test-threads=1"])
        .env(COME_AND_GO, home)
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

#[test]
fn eight_processes_that_come_and_go_share_one_index_and_lose_nothing() {
    const VISITORS: usize = 8;
    let rounds = if std::env::var_os("HOLDPOINT_LONG").is_some() { 300 } else { 30 };
    let mut random = Random::from_clock();
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path().join("home");
    drop(Home::open(&home).unwrap());
    let mut visitors: Vec<Child> = (0..VISITORS).map(|_| start_visitor(&home)).collect();
    for _ in 0..rounds {
        let before = dispatched(&home).len();
        let chosen = random.below(VISITORS);
        testing::wait_until("three dispatched calls", || {
            for visitor in &mut visitors {
                assert!(visitor.try_wait().unwrap().is_none(), "one ended by itself");
            }
            dispatched(&home).len() >= before + 3
        });
        // Kill at a random moment.
        std::thread::sleep(Duration::from_micros(random.number() % 5_000));
        visitors[chosen].kill().unwrap();
        visitors[chosen].wait().unwrap();
        visitors[chosen] = start_visitor(&home);
    }
    for visitor in &mut visitors {
        visitor.kill().unwrap();
        visitor.wait().unwrap();
    }
    assert_whole(&home);
    let chains = DiskFolder::new(&home.join("receipts")).listing().unwrap().chains.len();
    assert!(chains <= VISITORS + 1, "{chains} chains for {VISITORS} writers");
    let index = texts(&home.join("receipts"));
    let acts = fs::read_to_string(home.join("acts")).unwrap();
    let whole = acts.rsplit_once('\n').map_or("", |(whole, _)| whole);
    assert!(!whole.is_empty());
    for who in whole.lines() {
        let said = format!("\"server_id\":\"{who}\"");
        assert_eq!(index.matches(&said).count(), 1, "{who}");
    }
}

/// Settles all queued tickets, and returns the result of each.
fn settle_all(receipts: &Receipts, tickets: Vec<Ticket>) -> Vec<Result<(), ReceiptsError>> {
    tickets.into_iter().map(|ticket| receipts.settle(ticket).map(drop)).collect()
}

#[test]
fn on_a_full_disk_tickets_fail_together_and_outcomes_wait_up_to_their_limit() {
    let Some((_directory, disk)) = small_disk("8m") else { return };
    let mounted = Mounted(disk.clone());
    let home = Home::open(&disk.join("home")).unwrap();
    let receipts = Receipts::open(&home, settings(Fsync::Interval)).unwrap();
    // A few outcomes may fit into the rest of the segment's last page.
    let dispatched = u32::try_from(MAX_WAITING_OUTCOMES).unwrap() + 100;
    for number in 0..dispatched {
        receipts.decision(&decision(id(number))).unwrap();
    }
    let full = FullDisk::fill(&disk);
    let mut number = dispatched;
    while receipts.decision(&decision(id(number))).is_ok() {
        number += 1;
    }
    // More than fit before one checkpoint.
    let tickets: Vec<Ticket> = (5_000..5_300)
        .map(|number| receipts.decision_later(&decision(id(number))).unwrap())
        .collect();
    let settled = settle_all(&receipts, tickets);
    assert!(settled.iter().all(|settled| settled.as_ref().unwrap_err().is_disk_full()));
    let with_outcome =
        |home: &Home| calls(home.path()).values().filter(|counted| **counted == (1, 1)).count();
    let taken =
        (0..dispatched).take_while(|number| receipts.outcome(&outcome(id(*number))).is_ok());
    let taken = taken.count();
    assert_eq!(taken, with_outcome(&home) + MAX_WAITING_OUTCOMES);
    drop(full);
    // Earlier failures do not affect later tickets.
    receipts.decision(&decision(id(6_000))).unwrap();
    drop(receipts);
    assert_eq!(verified(home.path()).problems, []);
    assert_eq!(with_outcome(&home), taken);
    let calls = calls(home.path());
    assert!((5_000..5_300).all(|number| !calls.contains_key(&ReceiptId(id(number)).to_string())));
    drop(mounted);
}
