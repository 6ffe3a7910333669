//! Measures the cost of the gate, compared with a relay that does nothing and with a direct
//! connection, in turn within one run.
//!
//! Receipts are on, with the default syncs. Prints each figure with its bound, and exits with 1 if
//! one exceeds it.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a measurement prints")]

use holdpoint_bench::cores;
use holdpoint_bench::figures::{Figures, exit_code};
use holdpoint_bench::peer::{Answer, Peer, Request, unexpected};
use holdpoint_bench::process::{Cores, Memory};
use holdpoint_bench::programs::{Between, Programs};
use holdpoint_bench::samples::{Round, first_quarter, median};
use std::error::Error;
use std::fs::OpenOptions;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// In the order of the first round.
const ALL: [Between; 3] = [Between::Nothing, Between::Relay, Between::Gate];
/// How often the processes are restarted: their placement in memory and on cores affects the times.
const SITTINGS: usize = 3;
/// The number of tools of a typical server.
const TOOLS: usize = 50;
const IN_FLIGHT: u64 = 32;
const PIPELINED_ROUNDS: usize = 12;
const PIPELINED_CALLS: u64 = 2_000;
const STARTS: usize = 15;
/// The size of a server that is one large program file.
const LARGE_PROGRAM_BYTES: u64 = 100_000_000;
/// The highest load average at which a machine counts as quiet.
const QUIET_LOAD: f64 = 1.0;
const FEW_TOOLS: usize = 10;
/// The configuration of a gate that checks arguments.
const CHECKED: &str = "[preflight]\nschema = true\n";
const CHECKING_ROUNDS: usize = 40;
const CHECKING_CALLS: usize = 200;
const MANY_TOOLS: usize = 10_000;

/// Calls of one size, and the bound on their cost.
struct Size {
    name: &'static str,
    bytes: usize,
    rounds: usize,
    calls: usize,
    p50_bound: f64,
    p99_bound: f64,
    /// Whether all processes share one core. A relay forwards a large message while it arrives, so
    /// with a core on each side, calls through it take less time than direct ones, and no ratio can
    /// be given.
    on_one_core: bool,
}

const SIZES: [Size; 3] = [
    Size {
        name: "100 B",
        bytes: 100,
        rounds: 40,
        calls: 200,
        p50_bound: 1.5,
        p99_bound: 2.0,
        on_one_core: false,
    },
    Size {
        name: "10 KB",
        bytes: 10_000,
        rounds: 40,
        calls: 200,
        p50_bound: 1.5,
        p99_bound: 2.0,
        on_one_core: false,
    },
    Size {
        name: "1 MB",
        bytes: 1_000_000,
        rounds: 10,
        calls: 100,
        p50_bound: 3.0,
        p99_bound: 4.0,
        on_one_core: true,
    },
];

type Measure = fn(&Programs, &mut Figures) -> Outcome<()>;

/// The parts that can be selected by name as arguments.
const PARTS: [(&str, Measure); 6] = [
    ("latency", latency),
    ("arguments", arguments),
    ("throughput", throughput),
    ("start", starting),
    ("memory", memory),
    ("tools", many_tools),
];

fn main() -> ExitCode {
    exit_code(measure())
}

fn measure() -> Outcome<Figures> {
    let programs = Programs::find()?;
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    for word in &wanted {
        if PARTS.iter().all(|(name, _)| name != word) {
            let names = PARTS.map(|(name, _)| name).join(", ");
            return Err(format!("there is no part `{word}`; there are {names}").into());
        }
    }
    tell_load();
    let mut figures = Figures::default();
    for (name, measure) in PARTS {
        if wanted.is_empty() || wanted.iter().any(|word| word == name) {
            measure(&programs, &mut figures)?;
        }
    }
    Ok(figures)
}

/// Warns if the machine is too busy: ratios tolerate some load, but not any amount.
fn tell_load() {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = text.split(' ').next().and_then(|word| word.parse::<f64>().ok());
    if let Some(load) = load.filter(|load| *load > QUIET_LOAD) {
        println!("the machine is busy (load {load}): figures are rough, p99 and 1 MB above all");
    }
}

/// Starts a server and gets it ready for calls.
fn ready(programs: &Programs, between: Between, home: &Path, tools: usize) -> Outcome<Peer> {
    let mut peer = Peer::start(&mut programs.server(between, home, tools, 0))?;
    let listed = peer.greet()?;
    if listed == tools {
        Ok(peer)
    } else {
        Err(format!("{listed} tools were listed of {tools}").into())
    }
}

/// Runs something for each peer, in a different order each time: the peer after the gate may be
/// disturbed by the gate's syncs.
fn in_turn<T>(
    round: usize,
    peers: &mut [Peer],
    told: &mut [Vec<T>],
    mut run: impl FnMut(&mut Peer) -> Outcome<T>,
) -> Outcome<()> {
    let mut pairs: Vec<_> = peers.iter_mut().zip(told).collect();
    let count = pairs.len().max(1);
    pairs.rotate_left(round % count);
    for (peer, told) in pairs {
        told.push(run(peer)?);
    }
    Ok(())
}

fn time_calls(peer: &mut Peer, request: &mut Request, calls: usize) -> Outcome<Round> {
    let mut times = Vec::with_capacity(calls);
    for _ in 0..calls {
        times.push(peer.time(request)?);
    }
    Ok(Round::of(&times))
}

fn finish_all<const N: usize>(peers: [Peer; N]) -> Outcome<()> {
    for peer in peers {
        peer.finish()?;
    }
    Ok(())
}

/// The latency that the gate adds to a call, compared with what the relay adds.
fn latency(programs: &Programs, figures: &mut Figures) -> Outcome<()> {
    let home = tempfile::tempdir()?;
    let mut rounds: [[Vec<Round>; 3]; SIZES.len()] = Default::default();
    for (sitting, on_one_core) in (0..SITTINGS).flat_map(|one| [(one, false), (one, true)]) {
        let _cores = on_one_core.then(|| Cores::only_one(sitting)).transpose()?;
        let start = |between| ready(programs, between, home.path(), TOOLS);
        let mut peers = [start(Between::Nothing)?, start(Between::Relay)?, start(Between::Gate)?];
        let sizes = SIZES.iter().zip(&mut rounds);
        for (size, rounds) in sizes.filter(|(size, _)| size.on_one_core == on_one_core) {
            let mut request = Request::call(0, size.bytes);
            for peer in &mut peers {
                time_calls(peer, &mut request, size.calls)?;
            }
            for round in 0..size.rounds {
                in_turn(round, &mut peers, rounds, |peer| {
                    time_calls(peer, &mut request, size.calls)
                })?;
            }
        }
        finish_all(peers)?;
    }
    for (size, rounds) in SIZES.iter().zip(rounds) {
        let p50 =
            rounds.each_ref().map(|rounds| median(rounds.iter().map(|round| round.p50).collect()));
        // On a busy machine, the slowest percent of calls is always due to other activity.
        let p99 = rounds
            .each_ref()
            .map(|rounds| first_quarter(rounds.iter().map(|round| round.p99).collect()));
        tell_added(figures, size.name, "p50", p50, size.p50_bound);
        tell_added(figures, size.name, "p99", p99, size.p99_bound);
    }
    Ok(())
}

fn tell_added(figures: &mut Figures, size: &str, what: &str, times: [f64; 3], bound: f64) {
    let [direct, relay, gate] = times;
    let (relay_adds, gate_adds) = (relay - direct, gate - direct);
    println!(
        "a call of {size}, {what}: direct {direct:.1} us, relay +{relay_adds:.1} us, gate +{gate_adds:.1} us"
    );
    let figure = gate_adds / relay_adds.max(0.1);
    figures.tell(&format!("added to a call of {size}, {what}, times the relay"), figure, bound);
}

/// The latency that checking the arguments adds to a call with ten values, relative to the whole
/// path from client to server and back.
fn arguments(programs: &Programs, figures: &mut Figures) -> Outcome<()> {
    let home = |settings: &str| -> Outcome<tempfile::TempDir> {
        let home = tempfile::tempdir()?;
        std::fs::write(home.path().join("holdpoint.toml"), settings)?;
        Ok(home)
    };
    let (plain, checked) = (home("")?, home(CHECKED)?);
    let mut request = Request::new(
        "tools/call",
        r#"{"name":"tool_0","arguments":{"limit":50,"cursor":"eyJwIjoyfQ","order":"newest","filter":{"author":"ada","labels":["bug","urgent"],"since":"2026-01-01T00:00:00Z"},"query":"status:open assignee:me"}}"#,
    );
    // Make sure that the check is active: the same call with a value of the wrong type is refused.
    let mut refused =
        Request::new("tools/call", r#"{"name":"tool_0","arguments":{"limit":"many","query":"a"}}"#);
    let mut rounds: [Vec<Round>; 2] = Default::default();
    for _ in 0..SITTINGS {
        let start = |home: &tempfile::TempDir| ready(programs, Between::Gate, home.path(), TOOLS);
        let mut peers = [start(&plain)?, start(&checked)?];
        for (peer, expected) in peers.iter_mut().zip([Answer::Result, Answer::Error]) {
            if peer.ask(&mut refused)? != expected || peer.ask(&mut request)? != Answer::Result {
                return Err(unexpected(peer.line()).into());
            }
            time_calls(peer, &mut request, CHECKING_CALLS)?;
        }
        for round in 0..CHECKING_ROUNDS {
            in_turn(round, &mut peers, &mut rounds, |peer| {
                time_calls(peer, &mut request, CHECKING_CALLS)
            })?;
        }
        finish_all(peers)?;
    }
    let [plain, checked] =
        rounds.map(|rounds| median(rounds.iter().map(|round| round.p50).collect()));
    println!(
        "a call of ten values, p50: {plain:.1} us, with its arguments checked {checked:.1} us"
    );
    let share = (checked - plain) / plain * 100.0;
    figures.tell("checking ten values, % of the call's path", share, 20.0);
    Ok(())
}

/// Calls per second with many in flight.
fn throughput(programs: &Programs, figures: &mut Figures) -> Outcome<()> {
    let home = tempfile::tempdir()?;
    let mut request = Request::call(0, 100);
    let mut rates: [Vec<f64>; 3] = Default::default();
    for _ in 0..SITTINGS {
        let start = |between| ready(programs, between, home.path(), TOOLS);
        let mut peers = [start(Between::Nothing)?, start(Between::Relay)?, start(Between::Gate)?];
        for round in 0..PIPELINED_ROUNDS {
            in_turn(round, &mut peers, &mut rates, |peer| {
                let begun = Instant::now();
                let mut results = 0;
                peer.pipeline(&mut request, PIPELINED_CALLS, IN_FLIGHT, |answer| {
                    results += u64::from(answer == Answer::Result);
                    Ok(())
                })?;
                if results != PIPELINED_CALLS {
                    return Err(unexpected(peer.line()).into());
                }
                Ok(PIPELINED_CALLS as f64 / begun.elapsed().as_secs_f64())
            })?;
        }
        finish_all(peers)?;
    }
    let [direct, relay, gate] = rates.map(median);
    println!(
        "calls a second, {IN_FLIGHT} in flight: direct {direct:.0}, relay {relay:.0}, gate {gate:.0}"
    );
    // Without a second core, the figure only reflects the work: none of it can run in parallel with
    // the server's.
    println!("two threads hash {:.2} times as much as one does here", cores::two_times_one());
    figures.tell_at_least("throughput, times the relay's", gate / relay.max(1.0), 0.5);
    Ok(())
}

/// The time from the start of the process to the response to the first list request.
fn starting(programs: &Programs, figures: &mut Figures) -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let large = folder.path().join("large-server");
    std::fs::copy(&programs.echo, &large)?;
    let file = OpenOptions::new().write(true).open(&large)?;
    // The loader ignores bytes after the program in its file.
    file.set_len(LARGE_PROGRAM_BYTES)?;
    drop(file);
    for (name, programs, calls_before) in [
        ("start to first list", programs.clone(), 0),
        ("the same with a program of 100 MB", programs.with_server(large), 0),
        ("the same with 20,000 calls before", programs.clone(), 20_000),
    ] {
        let home = tempfile::tempdir()?;
        let first = time_start(&programs, Between::Gate, home.path())?;
        let mut before = ready(&programs, Between::Gate, home.path(), TOOLS)?;
        before.pipeline(&mut Request::call(0, 100), calls_before, IN_FLIGHT, |_| Ok(()))?;
        before.finish()?;
        let mut times: [Vec<f64>; 3] = Default::default();
        for _ in 0..STARTS {
            for (between, times) in ALL.into_iter().zip(&mut times) {
                times.push(time_start(&programs, between, home.path())?);
            }
        }
        let [direct, relay, gate] = times.map(median);
        println!(
            "{name}, ms: direct {direct:.1}, relay {relay:.1}, gate {gate:.1} (first of all, to be pinned: {first:.1})"
        );
        figures.tell(&format!("{name}, ms more than the relay"), gate - relay, 12.0);
    }
    Ok(())
}

/// In milliseconds.
fn time_start(programs: &Programs, between: Between, home: &Path) -> Outcome<f64> {
    let begun = Instant::now();
    let peer = ready(programs, between, home, TOOLS)?;
    let took = begun.elapsed().as_secs_f64() * 1e3;
    peer.finish()?;
    Ok(took)
}

/// Resident memory after calls, with 1,000 tools that were pinned before and listed now.
fn memory(programs: &Programs, figures: &mut Figures) -> Outcome<()> {
    let home = tempfile::tempdir()?;
    ready(programs, Between::Gate, home.path(), 1_000)?.finish()?;
    let mut peer = ready(programs, Between::Gate, home.path(), 1_000)?;
    time_calls(&mut peer, &mut Request::call(0, 100), 5_000)?;
    match Memory::of(peer.process_id()) {
        Some(memory) => {
            let megabytes = |bytes: u64| bytes as f64 / 1e6;
            println!(
                "memory with 1,000 tools, MB: {:.1} of its own, {:.1} of program files, {:.1} at its peak",
                megabytes(memory.own),
                megabytes(memory.files),
                megabytes(memory.peak)
            );
            let resident = megabytes(memory.resident);
            figures.tell("resident memory with 1,000 tools, MB", resident, 12.0);
        }
        None => println!("memory cannot be measured here (no /proc)"),
    }
    peer.finish()?;
    Ok(())
}

/// A call with many pinned tools, compared with one with few.
fn many_tools(programs: &Programs, figures: &mut Figures) -> Outcome<()> {
    let homes = [tempfile::tempdir()?, tempfile::tempdir()?];
    let mut request = Request::call(0, 100);
    let mut rounds: [Vec<f64>; 2] = Default::default();
    for _ in 0..SITTINGS {
        let [few, many] = homes.each_ref().map(tempfile::TempDir::path);
        let mut peers = [
            ready(programs, Between::Gate, few, FEW_TOOLS)?,
            ready(programs, Between::Gate, many, MANY_TOOLS)?,
        ];
        for round in 0..60 {
            in_turn(round, &mut peers, &mut rounds, |peer| {
                Ok(time_calls(peer, &mut request, 200)?.p50)
            })?;
        }
        finish_all(peers)?;
    }
    let [few, many] = rounds.map(median);
    println!(
        "a call, p50: with {FEW_TOOLS} tools {few:.1} us, with {MANY_TOOLS} tools {many:.1} us"
    );
    figures.tell("a call with 10,000 tools, times one with 10", many / few.max(0.1), 1.05);
    Ok(())
}
