//! Eight processes write to one home at once and are killed at random moments: no write is lost or
//! duplicated.

use super::bench::{Bench, Kind, on_both, postgres_url};
use crate::{Act, Home, Location, NewPin, Revision, Store, StoreError};
use contract::surface::{Entry, EntryId, EntryType};
use gate::pins::Basis;
use gate::server::ServerId;
use gate::time::Timestamp;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use testing::Random;

const HOME: &str = "STORE_TEST_HOME";
const LOCATION: &str = "STORE_TEST_LOCATION";
const WRITER: &str = "STORE_TEST_WRITER";
const READER: &str = "STORE_TEST_READER";
/// How many approvals one process writes while the other reads.
const APPROVALS: usize = 100;
const WRITERS: usize = 8;
/// How often each writer is killed.
const ROUNDS: usize = 8;
const LONG_ROUNDS: usize = 60;
/// How many pins a writer makes if it is not killed.
const PINS_ALONE: usize = 20;

/// A writer. The tests below start it in separate processes, with a store to share; run directly it
/// does nothing.
#[test]
fn a_writer_of_its_own() {
    let (Some(home), Ok(name)) = (std::env::var_os(HOME), std::env::var(WRITER)) else { return };
    let home = Home::open(&PathBuf::from(home)).unwrap();
    let location = Location::parse(&std::env::var(LOCATION).unwrap()).unwrap();
    let mut store = again(|| crate::open(&home, &location));
    write_pins(&mut *store, &name, usize::MAX);
}

fn write_pins(store: &mut dyn Store, name: &str, limit: usize) {
    let server: ServerId = "shared".parse().unwrap();
    let already = again(|| own_pins(store, &server, name));
    for index in already..limit {
        pin_and_count(store, &server, &format!("{name}-{index}"), name);
        // The test that started this process takes the line as proof that the pin is stored.
        println!("\npinned {index}");
    }
}

fn a_writer_pins_one_entry_after_the_other_and_counts_them(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    write_pins(&mut *store, "alone", PINS_ALONE);
    let server: ServerId = "shared".parse().unwrap();
    assert_eq!(own_pins(&*store, &server, "alone").unwrap(), PINS_ALONE);
    assert_eq!(counted(&*store, &server).unwrap(), PINS_ALONE);
}

/// Retries while the database is away: nothing was written then.
fn again<T>(mut doing: impl FnMut() -> Result<T, StoreError>) -> T {
    testing::wait_for("the database", || match doing() {
        Err(StoreError::Unreachable { .. }) => None,
        done => Some(done.unwrap()),
    })
}

/// Pins an entry and increments a number that all writers share, in one act: a lost or duplicated
/// write shows in one of them.
fn pin_and_count(store: &mut dyn Store, server: &ServerId, key: &str, name: &str) {
    loop {
        let snapshot = again(|| store.snapshot(server));
        assert_eq!(snapshot.pins.lost, None);
        let count = again(|| counted(store, server));
        let mut act = Act::new(server, Timestamp(1), name, "pin.auto");
        act.expect = Some(snapshot.revision());
        act.pins = vec![tool(key, 0), tool("count", count + 1)];
        match store.record(act) {
            Ok(_) => return,
            Err(StoreError::Changed { .. } | StoreError::Unreachable { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

fn tool(key: &str, number: usize) -> NewPin {
    let raw = format!(r#"{{"name":"{key}","number":{number}}}"#);
    let entry = Entry::from_raw(EntryId::new(EntryType::Tool, key), &raw).unwrap();
    NewPin { entry, basis: Basis::Auto }
}

/// The shared number, from its newest pin.
fn counted(store: &dyn Store, server: &ServerId) -> Result<usize, StoreError> {
    let book = store.pins(server)?;
    let newest = book.get(&EntryId::new(EntryType::Tool, "count")).and_then(|pins| pins.accepted());
    Ok(newest.map_or(0, |pin| number_of(pin.entry.raw())))
}

fn number_of(raw: &str) -> usize {
    let (_, number) = raw.trim_end_matches('}').rsplit_once(':').unwrap();
    number.parse().unwrap()
}

fn own_pins(store: &dyn Store, server: &ServerId, name: &str) -> Result<usize, StoreError> {
    let book = store.pins(server)?;
    let prefix = format!("{name}-");
    Ok(book.iter().filter(|(id, _)| id.key.starts_with(&prefix)).count())
}

fn start_writer(bench: &Bench, writer: usize) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tests::processes::a_writer_of_its_own", "--nocapture"])
        .env(HOME, bench.home.path())
        .env(LOCATION, bench.url.as_deref().unwrap_or("sqlite"))
        .env(WRITER, format!("w{writer}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

/// Runs a writer until it has reported this many pins as stored, and kills it a little later.
/// Returns the last one reported, if any: with no pin to wait for, it is killed while it starts.
fn run_and_kill(bench: &Bench, writer: usize, pins: usize, pause: Duration) -> Option<usize> {
    let mut child = start_writer(bench, writer);
    let mut said: Vec<usize> = Vec::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let index =
        |line: String| line.strip_prefix("pinned ").map(|index| index.parse::<usize>().unwrap());
    while said.len() < pins {
        let Some(line) = lines.next() else {
            panic!("writer {writer} ended by itself: {:?}", child.wait());
        };
        said.extend(index(line.unwrap()));
    }
    std::thread::sleep(pause);
    child.kill().unwrap();
    child.wait().unwrap();
    // Reports from before the kill count too.
    said.extend(lines.map_while(Result::ok).filter_map(index));
    said.last().copied()
}

/// The least and the most pins of a writer that can be stored: one may be in progress at each kill.
struct Expected {
    least: usize,
    most: usize,
}

fn run_writer(bench: &Bench, writer: usize, mut random: Random, kills: &AtomicUsize) -> Expected {
    let mut expected = Expected { least: 0, most: 0 };
    for _ in 0..rounds() {
        let pins = random.below(6);
        let pause = Duration::from_micros(random.below(20_000) as u64);
        expected.most += 1;
        if let Some(last) = run_and_kill(bench, writer, pins, pause) {
            expected = Expected { least: last + 1, most: last + 2 };
        }
        kills.fetch_add(1, Ordering::Relaxed);
    }
    expected
}

fn rounds() -> usize {
    if std::env::var_os("HOLDPOINT_LONG").is_some() { LONG_ROUNDS } else { ROUNDS }
}

fn eight_processes_killed_at_random_lose_and_double_nothing(kind: Kind) {
    let bench = Bench::new(kind);
    let expected = run_writers(&bench, |_| {});
    check_nothing_lost_or_doubled(&bench, &expected);
}

/// Runs all writers with kills. Meanwhile, `disturb` gets the number of kills so far.
fn run_writers(bench: &Bench, disturb: impl FnOnce(&AtomicUsize)) -> Vec<Expected> {
    let kills = AtomicUsize::new(0);
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos();
    println!("seed {seed}");
    std::thread::scope(|scope| {
        let start = |writer: usize| {
            let random = Random::new(u64::from(seed) + writer as u64 + 1);
            let kills = &kills;
            scope.spawn(move || run_writer(bench, writer, random, kills))
        };
        let writers: Vec<_> = (0..WRITERS).map(start).collect();
        disturb(&kills);
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    })
}

fn check_nothing_lost_or_doubled(bench: &Bench, expected: &[Expected]) {
    let store = bench.store();
    let server: ServerId = "shared".parse().unwrap();
    let book = store.pins(&server).unwrap();
    assert_eq!(book.lost, None, "the seal holds");
    assert!(book.tampered.is_empty());
    let mut written = 0;
    for (writer, Expected { least, most }) in expected.iter().enumerate() {
        let own = own_pins(&*store, &server, &format!("w{writer}")).unwrap();
        assert!((*least..=*most).contains(&own), "writer {writer}: {own} of {least} to {most}");
        for index in 0..own {
            let id = EntryId::new(EntryType::Tool, format!("w{writer}-{index}"));
            assert_eq!(book.get(&id).map(|pins| pins.iter().count()), Some(1), "{id}");
        }
        written += own;
    }
    let counts = book.get(&EntryId::new(EntryType::Tool, "count")).unwrap();
    let counts: Vec<usize> = counts.iter().map(|pin| number_of(pin.entry.raw())).collect();
    assert_eq!(counts, (1..=written).collect::<Vec<_>>(), "each act counted once, in its turn");
    check_history(&*store, &server, written);
}

fn check_history(store: &dyn Store, server: &ServerId, written: usize) {
    let mut lines = BTreeMap::new();
    for event in store.history(server).unwrap() {
        *lines.entry(event.action).or_insert(0) += 1;
    }
    let expected = [("pin.added".to_owned(), 2 * written), ("pin.auto".to_owned(), written)];
    assert_eq!(lines, BTreeMap::from(expected));
    assert_ne!(store.server(server).unwrap().unwrap().revision, Revision::NONE);
    println!("{written} acts survived {} kills", WRITERS * rounds());
}

/// A process that caches what it read until the version changes. It answers each line with the
/// number of valid pins.
#[test]
fn a_reader_of_its_own() {
    let (Some(home), Ok(location)) = (std::env::var_os(READER), std::env::var(LOCATION)) else {
        return;
    };
    let home = Home::open(&PathBuf::from(home)).unwrap();
    let store = crate::open(&home, &Location::parse(&location).unwrap()).unwrap();
    let server: ServerId = "shared".parse().unwrap();
    let (mut version, mut pins) = (None, 0);
    for line in std::io::stdin().lines() {
        line.unwrap();
        let now = store.version().unwrap();
        if version != Some(now) {
            pins = store.pins(&server).unwrap().iter().count();
            version = Some(now);
        }
        println!("\ncounts {pins}");
    }
}

fn what_one_process_approved_counts_for_what_another_begins_afterwards(kind: Kind) {
    let bench = Bench::new(kind);
    let mut store = bench.store();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tests::processes::a_reader_of_its_own", "--nocapture"])
        .env(READER, bench.home.path())
        .env(LOCATION, bench.url.as_deref().unwrap_or("sqlite"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut asking = child.stdin.take().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut answers = lines.map_while(Result::ok).filter_map(|line| {
        line.strip_prefix("counts ").map(|count| count.parse::<usize>().unwrap())
    });
    let server: ServerId = "shared".parse().unwrap();
    for index in 0..APPROVALS {
        let mut act = Act::new(&server, Timestamp(1), "ada", "server.approve");
        act.pins = vec![tool(&format!("t{index}"), 0)];
        store.record(act).unwrap();
        writeln!(asking).unwrap();
        assert_eq!(answers.next(), Some(index + 1));
    }
    drop(asking);
    assert!(child.wait().unwrap().success());
}

/// A PostgreSQL server that a test may stop, removed at the end.
struct Cluster {
    script: PathBuf,
    folder: String,
}

impl Cluster {
    fn start() -> Option<Cluster> {
        postgres_url()?;
        let how = "run the tests by ./scripts/with-postgres";
        let script = testing::variable("HOLDPOINT_TEST_POSTGRES_CLUSTER", how)?;
        let mut cluster = Cluster { script: PathBuf::from(script), folder: String::new() };
        cluster.folder = cluster.run(&["make"]);
        cluster.run(&["start", &cluster.folder]);
        Some(cluster)
    }

    fn run(&self, arguments: &[&str]) -> String {
        let output = Command::new(&self.script).arg("--cluster").args(arguments).output().unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {complaint}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn restart(&self, mode: &str) {
        self.run(&["stop", &self.folder, mode]);
        self.run(&["start", &self.folder]);
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.run(&["stop", &self.folder, "immediate"]);
    }
}

/// The server is stopped cleanly, and as if the machine had failed.
#[test]
fn a_database_that_restarts_in_the_middle_loses_and_doubles_nothing() {
    let Some(cluster) = Cluster::start() else { return };
    let bench = Bench::on(&cluster.run(&["url", &cluster.folder]));
    let expected = run_writers(&bench, |kills| {
        let modes = ["fast", "immediate", "fast", "immediate"];
        for (turn, mode) in modes.iter().enumerate() {
            let least = (turn + 1) * WRITERS * rounds() / (modes.len() + 1);
            testing::wait_until("kills", || kills.load(Ordering::Relaxed) >= least);
            cluster.restart(mode);
        }
    });
    check_nothing_lost_or_doubled(&bench, &expected);
}

on_both![
    a_writer_pins_one_entry_after_the_other_and_counts_them,
    eight_processes_killed_at_random_lose_and_double_nothing,
    what_one_process_approved_counts_for_what_another_begins_afterwards,
];
