//! Measures the engine with many callers in one process: the cost of a call with many sessions,
//! principals and tools, of an idle session, and of a list filtered for one caller. Transports are
//! in memory.
//!
//! Prints each figure with its bound, and exits with 1 if one exceeds it.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a measurement prints")]

use contract::surface::ListKind;
use engine::outlet::LineOutlet;
use engine::recorder::Recorder;
use gate::view::answer_list;
use holdpoint_bench::calls::write_alone;
use holdpoint_bench::figures::{Figures, exit_code, resident_bytes};
use holdpoint_bench::sessions::{Outcome, Sessions, answer, answered, call, frame, situation};
use holdpoint_bench::timing::{best_times, cpu_time_of, ratio};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use store::Home;
use store::receipts::{Fsync, Receipts, Settings as ReceiptSettings};
use tempfile::TempDir;

const ROUNDS: usize = 30;
/// The number of calls per round.
const CALLS: u64 = 4_096;
/// The number of tools that are called, out of all tools of a server.
const CALLED_TOOLS: usize = 10;
const IDLE_SESSIONS: usize = 10_000;
const LIST_ROUNDS: usize = 300;
/// The number of threads that carry calls.
const THREADS: usize = 2;

fn main() -> ExitCode {
    exit_code(measure())
}

fn measure() -> Outcome<Figures> {
    let mut figures = Figures::default();
    let directory = tempfile::tempdir()?;
    deciding(&mut figures, &directory)?;
    idling(&mut figures, &directory)?;
    listing(&mut figures, &directory)?;
    Ok(figures)
}

/// Sessions, and the calls they make.
struct Stage {
    sessions: Sessions,
    frames: Vec<(String, String)>,
}

impl Stage {
    fn new(
        directory: &TempDir,
        recorder: &Arc<Recorder>,
        servers: usize,
        tools: usize,
        (principals, sessions): (usize, usize),
    ) -> Outcome<Stage> {
        let name = format!("{servers}-{tools}-{principals}-{sessions}");
        let directory = directory.path().join(name);
        std::fs::create_dir(&directory)?;
        let sessions = Sessions::open(&directory, recorder, servers, tools, principals, sessions)?;
        // Equally many different messages in every stage, so that only the effect of the tools is
        // measured.
        let called = (0..tools).step_by(tools / CALLED_TOOLS);
        let frames = called.map(|tool| (frame(tool), answer(tool))).collect();
        Ok(Stage { sessions, frames })
    }

    /// The calls of one thread: each is made, decided, recorded, sent, answered and recorded again.
    fn calls(&self, thread: usize, threads: usize) {
        let mine = self.sessions.sessions.iter().skip(thread).step_by(threads);
        let calls = usize::try_from(CALLS).unwrap_or_default() / threads;
        let frames = self.frames.iter().cycle().skip(thread);
        for (session, (frame, answer)) in mine.cycle().zip(frames).take(calls) {
            call(session, frame.as_bytes());
            answered(session, answer.as_bytes());
        }
    }

    /// Makes all calls. Each session has one client, and so one thread. Returns whether all calls
    /// arrived.
    fn round(&self) -> bool {
        let threads = THREADS.min(self.sessions.sessions.len());
        let before = self.sessions.calls.load(Ordering::Relaxed);
        std::thread::scope(|scope| {
            for thread in 0..threads {
                scope.spawn(move || self.calls(thread, threads));
            }
        });
        let arrived = self.sessions.calls.load(Ordering::Relaxed) - before;
        u64::try_from(arrived) == Ok(CALLS)
    }
}

/// The processor time of a call, compared with only encoding, hashing and writing its two lines.
fn deciding(figures: &mut Figures, directory: &TempDir) -> Outcome<()> {
    let home = Home::open(&directory.path().join("home"))?;
    let settings = ReceiptSettings { fsync: Fsync::Never, ..ReceiptSettings::default() };
    let recorder = Arc::new(Recorder::new(Receipts::open(&home, settings)?));
    let mut file =
        OpenOptions::new().create(true).append(true).open(directory.path().join("plain"))?;
    let stages = [
        Stage::new(directory, &recorder, 1, 10, (1, 1))?,
        Stage::new(directory, &recorder, 5, 10, (20, 64))?,
        Stage::new(directory, &recorder, 1, 10_000, (1, 1))?,
        Stage::new(directory, &recorder, 1, 10, (1_000, 1_000))?,
        Stage::new(directory, &recorder, 1, 10, (1, 1_000))?,
        Stage::new(directory, &recorder, 1, 10, (1, 2))?,
    ];
    let mut best = [Duration::MAX; 7];
    for _ in 0..ROUNDS {
        let alone = cpu_time_of(|| {
            if let Err(error) = write_alone(&mut file, 0..CALLS) {
                eprintln!("a line was not written: {error}");
            }
        });
        let mut are_all_sent = true;
        let ours = stages.each_ref().map(|stage| cpu_time_of(|| are_all_sent &= stage.round()));
        if !are_all_sent {
            return Err("a call was refused".into());
        }
        for (best, time) in best.iter_mut().zip([alone].into_iter().chain(ours)) {
            *best = time.min(*best);
        }
    }
    let [alone, one, many, tools, principals, thousand, two] = best;
    let each = |time: Duration| time.as_secs_f64() * 1e6 / CALLS as f64;
    println!(
        "processor time of a call: its two lines alone {:.2} us, 1 session {:.2} us, 64 sessions on 5 servers and {THREADS} threads {:.2} us",
        each(alone),
        each(one),
        each(many)
    );
    figures.tell("a call of 1 session, times its lines alone", ratio(one, alone), 2.0);
    figures.tell("a call of 64 sessions, times its lines alone", ratio(many, alone), 2.0);
    figures.tell("a call with 10,000 tools, times one with 10", ratio(tools, one), 1.1);
    // With many sessions, less of a call's session is in the processor's caches. Principals do not
    // affect that.
    println!("a call of 1,000 sessions takes {:.2} times one of 2 sessions", ratio(thousand, two));
    figures.tell("a call of 1,000 principals, times one of 1", ratio(principals, thousand), 1.1);
    recorder.finish();
    Ok(())
}

/// The memory of sessions that are idle after a handshake and one call.
fn idling(figures: &mut Figures, directory: &TempDir) -> Outcome<()> {
    let home = Home::open(&directory.path().join("idle-home"))?;
    let settings = ReceiptSettings { fsync: Fsync::Never, ..ReceiptSettings::default() };
    let recorder = Arc::new(Recorder::new(Receipts::open(&home, settings)?));
    let path = directory.path().join("idle");
    std::fs::create_dir(&path)?;
    let open = |sessions| Sessions::open(&path, &recorder, 5, 100, 20, sessions);
    // The first sessions pay for what all sessions share.
    let first = open(50)?;
    let before = resident_bytes().ok_or("the system does not tell the memory of a process")?;
    let idle = open(IDLE_SESSIONS)?;
    let after = resident_bytes().unwrap_or_default();
    let each = after.saturating_sub(before) as f64 / IDLE_SESSIONS as f64 / 1024.0;
    println!("{} sessions idle", first.sessions.len() + idle.sessions.len());
    figures.tell("an idle session, KB", each, 8.0);
    recorder.finish();
    Ok(())
}

/// A list of 1,000 tools for a caller that may see every third of them, compared with sending the
/// same bytes. Another caller with the same permissions has listed before.
fn listing(figures: &mut Figures, directory: &TempDir) -> Outcome<()> {
    let situation = situation(directory.path(), 0, 1_000)?;
    let view = &situation.view;
    let list = view.list(ListKind::Tools).ok_or("no list")?;
    let begun = Instant::now();
    let visible = list.visible(|key| key.bytes().map(u32::from).sum::<u32>() % 3 == 0);
    let filtering = begun.elapsed();
    let answer = answer_list(view, ListKind::Tools, Some(&visible), None, b"1");
    let whole = [answer.parts().concat().as_slice(), b"\n"].concat();
    // Sending is a write to a stream that another thread reads.
    let (mut plain, ours) = (drained()?, drained()?);
    let mut outlet = LineOutlet::new(ours);
    let [sending, made] = best_times(
        LIST_ROUNDS,
        [
            &mut || {
                if let Err(error) = plain.write_all(&whole) {
                    eprintln!("a list was not sent: {error}");
                }
            },
            &mut || {
                let answer = answer_list(view, ListKind::Tools, Some(&visible), None, b"1");
                if let Err(error) = outlet.write_line(&answer.parts()) {
                    eprintln!("a list was not sent: {error}");
                }
            },
        ],
    );
    println!(
        "a list of {} bytes: sent in {sending:?}, made and sent in {made:?}; filtered once for all who may see the same in {filtering:?}",
        whole.len()
    );
    figures.tell("a list for one principal, times sending its bytes", ratio(made, sending), 2.0);
    Ok(())
}

/// A stream whose other end is read and discarded.
fn drained() -> Outcome<UnixStream> {
    let (ours, mut theirs) = UnixStream::pair()?;
    std::thread::spawn(move || std::io::copy(&mut theirs, &mut std::io::sink()));
    Ok(ours)
}
