//! Eight processes write to one home at once and are killed at random moments: nothing is lost, nothing is doubled.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "all of this file is a test; clippy takes only the marked functions for one"
)]

use contract::surface::{Entry, EntryId, EntryType};
use gate::pins::Basis;
use gate::server::ServerId;
use gate::time::Timestamp;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use store::{Act, Home, NewPin, Revision, SqliteStore, Store, StoreError};

const HOME: &str = "STORE_TEST_HOME";
const WRITER: &str = "STORE_TEST_WRITER";
const WRITERS: usize = 8;
const ROUNDS: usize = 5;
/// What a writer writes when nobody kills it.
const PINS_ALONE: usize = 20;

/// One writer. The test below starts this one in processes of its own, with a home to share; alone it is a small test.
#[test]
fn a_writer_pins_one_entry_after_the_other_and_counts_them() {
    let (home, name, limit) = match (std::env::var_os(HOME), std::env::var(WRITER)) {
        (Some(home), Ok(name)) => (PathBuf::from(home), name, usize::MAX),
        _ => {
            let directory = tempfile::tempdir().unwrap();
            (directory.keep().join("home"), "alone".to_owned(), PINS_ALONE)
        }
    };
    let mut store = SqliteStore::open(&Home::open(&home).unwrap()).unwrap();
    let server: ServerId = "shared".parse().unwrap();
    let already = own_pins(&store, &server, &name);
    for index in already..limit {
        pin_and_count(&mut store, &server, &format!("{name}-{index}"), &name);
        // The test that started this process reads the line as: this one is on disk.
        println!("\npinned {index}");
    }
    assert_eq!(own_pins(&store, &server, &name), limit);
    assert_eq!(counted(&store, &server), limit);
    std::fs::remove_dir_all(home).unwrap();
}

/// Pins an entry and counts up a number that all writers share, in one act: a lost or doubled write shows in one of them.
fn pin_and_count(store: &mut SqliteStore, server: &ServerId, key: &str, name: &str) {
    loop {
        let snapshot = store.snapshot(server).unwrap();
        assert_eq!(snapshot.pins.lost, None);
        let count = counted(store, server);
        let mut act = Act::new(server, Timestamp(1), name, "pin.auto");
        act.expect = Some(snapshot.revision());
        act.pins = vec![tool(key, 0), tool("count", count + 1)];
        match store.record(act) {
            Ok(_) => return,
            Err(StoreError::Changed { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

fn tool(key: &str, number: usize) -> NewPin {
    let raw = format!(r#"{{"name":"{key}","number":{number}}}"#);
    let entry = Entry::from_raw(EntryId::new(EntryType::Tool, key), &raw).unwrap();
    NewPin { entry, basis: Basis::Auto }
}

/// The shared number, as the newest pin has it.
fn counted(store: &SqliteStore, server: &ServerId) -> usize {
    let book = store.pins(server).unwrap();
    let newest = book.get(&EntryId::new(EntryType::Tool, "count")).and_then(|pins| pins.accepted());
    newest.map_or(0, |pin| number_of(pin.entry.raw()))
}

fn number_of(raw: &str) -> usize {
    let (_, number) = raw.trim_end_matches('}').rsplit_once(':').unwrap();
    number.parse().unwrap()
}

fn own_pins(store: &SqliteStore, server: &ServerId, name: &str) -> usize {
    let book = store.pins(server).unwrap();
    let prefix = format!("{name}-");
    book.iter().filter(|(id, _)| id.key.starts_with(&prefix)).count()
}

fn start_writer(home: &Path, writer: usize) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_writer_pins_one_entry_after_the_other_and_counts_them", "--nocapture"])
        .env(HOME, home)
        .env(WRITER, format!("w{writer}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Lets a writer run until it has said that so many pins are on disk, and kills it a little later. Answers the last one
/// that it said, if any: with no pin to wait for it is killed while it starts.
fn run_and_kill(home: &Path, writer: usize, pins: usize, pause: Duration) -> Option<usize> {
    let mut child = start_writer(home, writer);
    let mut said: Vec<usize> = Vec::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let index =
        |line: String| line.strip_prefix("pinned ").map(|index| index.parse::<usize>().unwrap());
    while said.len() < pins {
        let line = lines.next().unwrap_or_else(|| panic!("writer {writer} ended by itself"));
        said.extend(index(line.unwrap()));
    }
    std::thread::sleep(pause);
    child.kill().unwrap();
    child.wait().unwrap();
    // What it said before it was killed counts too.
    said.extend(lines.map_while(Result::ok).filter_map(index));
    said.last().copied()
}

/// How many pins of a writer are surely on disk, and how many there can be: one may be under way at each kill.
struct Expected {
    least: usize,
    most: usize,
}

fn run_writer(home: &Path, writer: usize, mut random: Random) -> Expected {
    let mut expected = Expected { least: 0, most: 0 };
    for _ in 0..ROUNDS {
        let pins = random.below(6);
        let pause = Duration::from_micros(random.below(20_000) as u64);
        expected.most += 1;
        if let Some(last) = run_and_kill(home, writer, pins, pause) {
            expected = Expected { least: last + 1, most: last + 2 };
        }
    }
    expected
}

#[test]
fn eight_processes_killed_at_random_lose_and_double_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("home");
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos();
    println!("seed {seed}");
    let expected: Vec<Expected> = std::thread::scope(|scope| {
        let path = &path;
        let start = |writer: usize| {
            let random = Random(u64::from(seed) + writer as u64 + 1);
            scope.spawn(move || run_writer(path, writer, random))
        };
        let writers: Vec<_> = (0..WRITERS).map(start).collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    check_nothing_lost_or_doubled(&path, &expected);
}

fn check_nothing_lost_or_doubled(path: &Path, expected: &[Expected]) {
    let store = SqliteStore::open(&Home::open(path).unwrap()).unwrap();
    let server: ServerId = "shared".parse().unwrap();
    let book = store.pins(&server).unwrap();
    assert_eq!(book.lost, None, "the seal holds");
    assert!(book.tampered.is_empty());
    let mut written = 0;
    for (writer, Expected { least, most }) in expected.iter().enumerate() {
        let own = own_pins(&store, &server, &format!("w{writer}"));
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
    check_history(&store, &server, written);
}

fn check_history(store: &SqliteStore, server: &ServerId, written: usize) {
    let mut lines = BTreeMap::new();
    for event in store.history(server).unwrap() {
        *lines.entry(event.action).or_insert(0) += 1;
    }
    let expected = [("pin.added".to_owned(), 2 * written), ("pin.auto".to_owned(), written)];
    assert_eq!(lines, BTreeMap::from(expected));
    assert_ne!(store.server(server).unwrap().unwrap().revision, Revision::NONE);
    println!("{written} acts survived {} kills", WRITERS * ROUNDS);
}

/// A small generator: the moments of the kills only have to differ.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (self.0 >> 29);
        (self.0 >> 33) as usize % limit
    }
}
