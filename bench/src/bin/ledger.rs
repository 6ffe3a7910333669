//! Measures the ledger's speed and memory: appending compared with plain writes, verifying compared
//! with one pass of the same hash.
//!
//! Prints each figure with its bound, and exits with 1 if one exceeds it.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a measurement prints")]

use holdpoint_bench::calls::{decision, outcome, write_alone};
use holdpoint_bench::figures::{Figures, exit_code, peak_bytes};
use holdpoint_bench::timing::{best_times, cpu_time, cpu_time_of, ratio};
use ledger::folder::Folder;
use ledger::lines::{LineReader, Piece};
use ledger::verify::{Report, verify};
use sha2::{Digest, Sha256};
use std::error::Error;
use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};
use store::Home;
use store::receipts::{
    DiskFolder, Fsync, Receipts, SYNC_INTERVAL_MILLISECONDS, Settings, public_keys,
};
use tempfile::TempDir;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Many short rounds, so that some are not interrupted by other activity on the machine.
const ROUNDS: usize = 300;

/// The number of calls per round.
const CALLS: u64 = 512;

/// The rounds for processor time, each with enough calls for the cost of signing to show.
const CPU_ROUNDS: usize = 30;
const CPU_CALLS: u64 = 4_096;

/// The number of rounds for slow measurements.
const LONG_ROUNDS: usize = 9;

/// The number of rounds with syncs, each longer than the interval between syncs.
const SYNCED_ROUNDS: usize = 5;

/// The numbers of receipts for measuring the memory of verification: few, and ten times as many.
const FEW: u64 = 100_000;
const MANY: u64 = 1_000_000;

const CHUNK_BYTES: usize = 256 * 1024;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [option, path] = words.as_slice()
        && option == "--verify"
    {
        return verify_and_tell_memory(Path::new(path));
    }
    exit_code(measure())
}

fn measure() -> Outcome<Figures> {
    let mut figures = Figures::default();
    appending(&mut figures)?;
    sharing(&mut figures)?;
    appending_with_syncs(&mut figures)?;
    opening(&mut figures)?;
    let (few, many) = (filled(FEW)?, filled(MANY)?);
    verifying(&mut figures, &few.1)?;
    memory(&mut figures, &few.1, &many.1)?;
    Ok(figures)
}

fn new_home() -> Outcome<(TempDir, Home)> {
    let directory = tempfile::tempdir()?;
    let home = Home::open(&directory.path().join("home"))?;
    Ok((directory, home))
}

fn without_syncs() -> Settings {
    Settings { fsync: Fsync::Never, ..Settings::default() }
}

fn write_calls(receipts: &Receipts, calls: impl Iterator<Item = u64>) {
    for number in calls {
        let written = receipts.decision(&decision(number)).map(drop);
        if let Err(error) = written.and_then(|()| receipts.outcome(&outcome(number))) {
            eprintln!("a receipt was not written: {error}");
        }
    }
}

/// A home with this many receipts.
fn filled(receipts: u64) -> Outcome<(TempDir, Home)> {
    let (directory, home) = new_home()?;
    write_calls(&Receipts::open(&home, without_syncs())?, 0..receipts);
    Ok((directory, home))
}

/// The lines of one round's calls, each with its newline.
fn lines() -> Outcome<Vec<Vec<u8>>> {
    let (_directory, home) = filled(CALLS)?;
    let folder = DiskFolder::new(&home.receipts_path());
    let mut lines = Vec::new();
    for (chain, files) in folder.listing()?.chains.iter().filter(|(chain, _)| !chain.is_index()) {
        for number in files.segments.keys() {
            let mut reader = LineReader::new(folder.segment(chain, *number)?);
            while let Some(Piece::Line(line)) = reader.next_piece()? {
                lines.push([line, b"\n"].concat());
            }
        }
    }
    Ok(lines)
}

fn write_lines(file: &mut File, lines: &[Vec<u8>]) {
    for line in lines {
        if let Err(error) = file.write_all(line) {
            eprintln!("a line was not written: {error}");
        }
    }
}

fn plain_file(directory: &TempDir) -> Outcome<File> {
    Ok(OpenOptions::new().create(true).append(true).open(directory.path().join("plain"))?)
}

/// A decision and an outcome, compared with writing the same bytes with one write per line.
fn appending(figures: &mut Figures) -> Outcome<()> {
    let lines = lines()?;
    let (directory, home) = new_home()?;
    let mut file = plain_file(&directory)?;
    let receipts = Receipts::open(&home, without_syncs())?;
    let mut next = 0;
    let [plain, ours] = best_times(
        ROUNDS,
        [&mut || write_lines(&mut file, &lines), &mut || {
            write_calls(&receipts, next..next + CALLS);
            next += CALLS;
        }],
    );
    let bytes: usize = lines.iter().map(Vec::len).sum();
    let each = |time: Duration| time.as_secs_f64() * 1e6 / CALLS as f64;
    println!(
        "a receipt has {} bytes: plain writes {:.2} us, appended {:.2} us",
        bytes as u64 / CALLS,
        each(plain),
        each(ours)
    );
    figures.tell("appending a receipt, times plain writes", ratio(ours, plain), 2.0);
    Ok(())
}

/// The processor time of a settled decision and an outcome, signatures included, with one thread
/// and with two threads sharing the chain, compared with only encoding, hashing and writing the
/// same two lines.
fn sharing(figures: &mut Figures) -> Outcome<()> {
    if cpu_time().is_none() {
        println!("processor time cannot be measured here");
        return Ok(());
    }
    let (directory, home) = new_home()?;
    let mut file = plain_file(&directory)?;
    let receipts = Receipts::open(&home, without_syncs())?;
    let mut next = 0;
    let mut best = [Duration::MAX; 3];
    for _ in 0..CPU_ROUNDS {
        let calls = next..next + CPU_CALLS;
        next += CPU_CALLS;
        let times = [
            cpu_time_of(|| {
                if let Err(error) = write_alone(&mut file, calls.clone()) {
                    eprintln!("a line was not written: {error}");
                }
            }),
            cpu_time_of(|| share(&receipts, calls.clone(), 1)),
            cpu_time_of(|| share(&receipts, calls.clone(), 2)),
        ];
        best.iter_mut().zip(times).for_each(|(best, time)| *best = time.min(*best));
    }
    let [alone, one, two] = best;
    let each = |time: Duration| time.as_secs_f64() * 1e6 / CPU_CALLS as f64;
    println!(
        "processor time of both receipts of a call: alone {:.2} us, one thread {:.2} us, two threads {:.2} us",
        each(alone),
        each(one),
        each(two)
    );
    figures.tell("processor time of one thread, times the lines alone", ratio(one, alone), 2.0);
    figures.tell("processor time of two threads, times the lines alone", ratio(two, alone), 2.0);
    Ok(())
}

fn share(receipts: &Receipts, calls: std::ops::Range<u64>, threads: usize) {
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let calls = calls.clone().skip(thread).step_by(threads);
            scope.spawn(move || {
                for number in calls {
                    let ticket = receipts.decision_later(&decision(number));
                    let settled = ticket.and_then(|ticket| receipts.settle(ticket)).map(drop);
                    let ended = settled.and_then(|()| receipts.outcome_later(&outcome(number)));
                    if let Err(error) = ended {
                        eprintln!("a receipt was not written: {error}");
                    }
                }
            });
        }
    });
}

/// The same over a longer time, so that every round includes syncs.
fn appending_with_syncs(figures: &mut Figures) -> Outcome<()> {
    let lines = lines()?;
    let (directory, home) = new_home()?;
    let mut file = plain_file(&directory)?;
    let receipts = Receipts::open(&home, Settings::default())?;
    let long_enough = Duration::from_millis(SYNC_INTERVAL_MILLISECONDS * 6 / 5);
    let mut next = 0;
    let (mut plain, mut ours) = (0.0_f64, 0.0_f64);
    for _ in 0..SYNCED_ROUNDS {
        plain = plain.max(rounds_a_second(long_enough, || write_lines(&mut file, &lines)));
        ours = ours.max(rounds_a_second(long_enough, || {
            write_calls(&receipts, next..next + CALLS);
            next += CALLS;
        }));
    }
    let calls = |rounds: f64| rounds * CALLS as f64;
    println!(
        "receipts a second: plain writes {:.0}, appended with fsync = \"interval\" {:.0}",
        calls(plain),
        calls(ours)
    );
    figures.tell("appending with syncs, times plain writes", plain / ours.max(1e-9), 2.0);
    Ok(())
}

fn rounds_a_second(at_least: Duration, mut round: impl FnMut()) -> f64 {
    let start = Instant::now();
    let mut rounds = 0.0;
    while start.elapsed() < at_least {
        round();
        rounds += 1.0;
    }
    rounds / start.elapsed().as_secs_f64()
}

/// Continuing a chain whose last segment is full.
fn opening(figures: &mut Figures) -> Outcome<()> {
    let (_directory, home) = new_home()?;
    let receipts = Receipts::open(&home, without_syncs())?;
    let chain = receipts.chain();
    let segment = home.receipts_path().join(chain.as_str()).join("000001.jsonl");
    let mut next = 0;
    while std::fs::metadata(&segment)?.len() < Settings::USUAL_SEGMENT_BYTES * 99 / 100 {
        write_calls(&receipts, next..next + 10);
        next += 10;
    }
    drop(receipts);
    let [hashing, opening] = best_times(
        LONG_ROUNDS,
        [&mut || drop(black_box(hash_all(&home))), &mut || {
            drop(black_box(Receipts::open(&home, without_syncs())));
        }],
    );
    println!("going on with a full segment of 8 MiB takes {opening:?}, hashing it {hashing:?}");
    figures.tell("going on with a full segment, times hashing it", ratio(opening, hashing), 8.0);
    Ok(())
}

/// Hashes every segment once, read as verification reads them.
fn hash_all(home: &Home) -> Outcome<()> {
    let folder = DiskFolder::new(&home.receipts_path());
    let mut buffer = vec![0; CHUNK_BYTES];
    for (chain, files) in &folder.listing()?.chains {
        for number in files.segments.keys() {
            let mut source = folder.segment(chain, *number)?;
            let mut state = Sha256::new();
            loop {
                let count = source.read(&mut buffer)?;
                if count == 0 {
                    break;
                }
                state.update(buffer.get(..count).unwrap_or_default());
            }
            black_box(state.finalize());
        }
    }
    Ok(())
}

fn verify_all(home: &Home) -> Outcome<Report> {
    let keys = public_keys(&home.receipts_public_key_path())?;
    Ok(verify(&DiskFolder::new(&home.receipts_path()), &keys, &[], &|_| {})?)
}

fn verifying(figures: &mut Figures, home: &Home) -> Outcome<()> {
    let report = verify_all(home)?;
    if !report.is_sound() {
        return Err(format!("what was written does not verify: {:?}", report.problems).into());
    }
    let [hashing, verifying] = best_times(
        LONG_ROUNDS,
        [&mut || drop(black_box(hash_all(home))), &mut || drop(black_box(verify_all(home)))],
    );
    let megabytes = report.chains.iter().map(|chain| chain.bytes).sum::<u64>() as f64 / 1e6;
    println!(
        "{} lines, {megabytes:.0} MB: hashed with {:.0} MB/s, verified with {:.0} MB/s",
        report.lines(),
        megabytes / hashing.as_secs_f64(),
        megabytes / verifying.as_secs_f64()
    );
    figures.tell("verifying, times one pass of the hash", ratio(verifying, hashing), 4.0);
    Ok(())
}

/// The peak memory of verification, each in a separate process.
fn memory(figures: &mut Figures, few: &Home, many: &Home) -> Outcome<()> {
    let peak = |home: &Home| -> Outcome<f64> {
        let program = std::env::current_exe()?;
        let output = Command::new(program).arg("--verify").arg(home.path()).output()?;
        Ok(String::from_utf8(output.stdout)?.trim().parse::<f64>()?)
    };
    if peak_bytes().is_none() {
        println!("memory cannot be measured here (no /proc)");
        return Ok(());
    }
    let (few, many) = (peak(few)?, peak(many)?);
    println!(
        "verifying takes {:.1} MB for {FEW} receipts, {:.1} MB for {MANY}",
        few / 1e6,
        many / 1e6
    );
    figures.tell("memory for ten times the receipts, times the memory", many / few.max(1.0), 1.2);
    Ok(())
}

/// Verifies a home and prints the peak memory of the process in bytes.
fn verify_and_tell_memory(home: &Path) -> ExitCode {
    let report = Home::open(home).map_err(Into::into).and_then(|home| verify_all(&home));
    match (report, peak_bytes()) {
        (Ok(report), Some(bytes)) if report.is_sound() => {
            println!("{bytes}");
            ExitCode::SUCCESS
        }
        _ => ExitCode::FAILURE,
    }
}
