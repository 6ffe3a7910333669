//! Measures the cost of confinement: starting a program, each message of a running program, and a
//! call through `holdpoint run`.
//!
//! Prints each figure with its bound, and exits with 1 if one exceeds it. `HOLDPOINT=FILE` names
//! the binary that confines, by default the one in this program's folder.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a measurement prints")]

use holdpoint_bench::figures::{Figures, exit_code};
use holdpoint_bench::peer::{Peer, Request};
use holdpoint_bench::process::Cores;
use holdpoint_bench::programs::{Between, Programs};
use holdpoint_bench::samples::{Round, median};
use sandbox::{Confined, EgressSwitch, Embedder, Launch, Profile, Watch};
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Box<dyn Error>>;

const STARTS: usize = 100;
/// How often the processes are restarted: their placement in memory and on cores affects the times.
const SITTINGS: usize = 5;
const ROUNDS: usize = 20;
const CALLS: usize = 500;
const TOOLS: usize = 50;
const CALL_BYTES: usize = 100;
const RATIO_BOUND: f64 = 1.05;

fn main() -> ExitCode {
    exit_code(measure())
}

fn measure() -> Outcome<Figures> {
    let programs = Programs::find()?;
    let mut figures = Figures::default();
    starting(&programs, &mut figures)?;
    for (place, on_one_core) in [("on one core", true), ("on all cores", false)] {
        let answered = compare(on_one_core, |is_confined, _| message_peer(&programs, is_confined))?;
        tell(&mut figures, &format!("a message that a server answers, {place}"), answered);
        let called =
            compare(on_one_core, |is_confined, home| run_peer(&programs, is_confined, home))?;
        tell(&mut figures, &format!("a call through `run`, {place}"), called);
    }
    Ok(figures)
}

fn tell(figures: &mut Figures, what: &str, times: Pair) {
    println!("{what}: {:.1} us, confined {:.1} us", times.plain, times.confined);
    figures.tell(&format!("{what}, times the same unconfined"), times.ratio, RATIO_BOUND);
}

fn confined(launch: &Launch, helper: PathBuf) -> Outcome<(Command, Watch)> {
    let embedder = Embedder {
        helper,
        never_visible: Vec::new(),
        reach: engine::egress_reach,
        events: Arc::new(|_| {}),
        switch: EgressSwitch::default(),
    };
    let Confined { command, watch } = sandbox::confine(&Profile::default(), launch, &embedder)?;
    Ok((command, watch))
}

fn starting(programs: &Programs, figures: &mut Figures) -> Outcome<()> {
    println!("confined by {}", programs.gate.display());
    let (mut plain, mut inside) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        plain.push(milliseconds(run_to_end(&mut Command::new("/bin/true"))?));
        let launch = Launch { program: "/bin/true".into(), ..Launch::default() };
        let begun = Instant::now();
        let (mut command, watch) = confined(&launch, programs.gate.clone())?;
        run_to_end(&mut command)?;
        inside.push(milliseconds(begun.elapsed()));
        // The command holds the program's end of the socket, so without this the watch would wait
        // for it.
        drop(command);
        drop(watch);
    }
    let (plain, inside) = (median(plain), median(inside));
    println!("from start to end of `true`: {plain:.1} ms, confined {inside:.1} ms");
    figures.tell("starting confined adds, in ms", inside - plain, 30.0);
    Ok(())
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn run_to_end(command: &mut Command) -> io::Result<Duration> {
    let begun = Instant::now();
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let status = child.wait()?;
    if status.success() { Ok(begun.elapsed()) } else { Err(io::Error::other(status.to_string())) }
}

/// A session, and the watch that keeps its server confined.
struct Seat {
    peer: Peer,
    _watch: Option<Watch>,
}

fn message_peer(programs: &Programs, is_confined: bool) -> Outcome<Seat> {
    if !is_confined {
        let mut plain = programs.server(Between::Nothing, Path::new("/"), TOOLS, 0);
        return Ok(Seat { peer: Peer::start(&mut plain)?, _watch: None });
    }
    let launch = Launch {
        program: programs.echo.clone().into_os_string(),
        arguments: vec![TOOLS.to_string().into(), "0".into()],
        ..Launch::default()
    };
    let (mut command, watch) = confined(&launch, programs.gate.clone())?;
    let peer = Peer::start(&mut command)?;
    Ok(Seat { peer, _watch: Some(watch) })
}

fn run_peer(programs: &Programs, is_confined: bool, home: &Path) -> Outcome<Seat> {
    let between = if is_confined { Between::ConfinedGate } else { Between::Gate };
    let peer = Peer::start(&mut programs.server(between, home, TOOLS, 0))?;
    Ok(Seat { peer, _watch: None })
}

/// Times of a call in microseconds, and the median ratio of consecutive rounds.
#[derive(Clone, Copy)]
struct Pair {
    plain: f64,
    confined: f64,
    ratio: f64,
}

fn compare(on_one_core: bool, open: impl Fn(bool, &Path) -> Outcome<Seat>) -> Outcome<Pair> {
    let (mut plain, mut inside, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for sitting in 0..SITTINGS {
        let _core = on_one_core.then(|| Cores::only_one(sitting)).transpose()?;
        let (home, confined_home) = (tempfile::tempdir()?, tempfile::tempdir()?);
        let mut one = open(false, home.path())?.peer;
        let Seat { peer: mut other, _watch } = open(true, confined_home.path())?;
        one.greet()?;
        other.greet()?;
        let mut request = Request::call(3, CALL_BYTES);
        for round in 0..ROUNDS {
            // Alternate which one goes first: writes caused by the first may disturb the second.
            let first = (round % 2 == 0).then(|| one_round(&mut one, &mut request)).transpose()?;
            let confined = one_round(&mut other, &mut request)?;
            let unconfined = match first {
                Some(time) => time,
                None => one_round(&mut one, &mut request)?,
            };
            plain.push(unconfined);
            inside.push(confined);
            ratios.push(confined / unconfined);
        }
        one.finish()?;
        other.finish()?;
    }
    Ok(Pair { plain: median(plain), confined: median(inside), ratio: median(ratios) })
}

fn one_round(peer: &mut Peer, request: &mut Request) -> Outcome<f64> {
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        times.push(peer.time(request)?);
    }
    Ok(Round::of(&times).p50)
}
