//! `soak [CALLS]`: a very large number of calls through the gate, with changes of contracts,
//! approvals, restarts and kills.
//!
//! Memory and descriptors must not grow, every response must be correct, the server must have
//! received exactly the calls that were not held, and the ledger must verify, with one decision per
//! request.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a measurement prints")]

use holdpoint_bench::figures::{Figures, exit_code};
use holdpoint_bench::peer::{Answer, Peer, Request, unexpected};
use holdpoint_bench::process::{Memory, descriptors};
use holdpoint_bench::programs::{Between, Programs, SERVER_ID};
use holdpoint_bench::samples::median;
use holdpoint_bench::server::{CHANGE, CHANGING, COUNT};
use ledger::verify::{Report, verify};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};
use store::Home;
use store::receipts::{DiskFolder, public_keys};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Enough for about an hour.
const USUAL_CALLS: u64 = 2_000_000;
const TOOLS: usize = 50;
const IN_FLIGHT: u64 = 32;
/// The number of calls between two samples of the process.
const STINT: u64 = 5_000;
/// The number of stints between two changes of a contract.
const STINTS_A_CHANGE: u64 = 5;
/// Six tenths of the calls go through one process, the others through several that end soon.
const LONG_TENTHS: u64 = 6;
const SHORT_LEGS: u64 = 12;
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// The allowed growth from the beginning of the long leg to its second half.
const MEMORY_GROWTH_MEGABYTES: f64 = 1.0;
const DESCRIPTOR_GROWTH: f64 = 1.0;

fn main() -> ExitCode {
    let calls = std::env::args().nth(1).map_or(Ok(USUAL_CALLS), |word| word.parse());
    exit_code(calls.map_err(Into::into).and_then(soak))
}

fn soak(calls: u64) -> Outcome<Figures> {
    let folder = tempfile::tempdir()?;
    let mut soak = Soak::new(Programs::find()?, folder.path().join("home"))?;
    let long = calls * LONG_TENTHS / 10;
    let samples = soak.leg(long, false, End::Clean)?;
    for leg in 0..SHORT_LEGS {
        // Some changes happen while the gate is down.
        let has_changed = leg % 3 == 0;
        soak.edition += u64::from(has_changed);
        let end = if leg % 2 == 0 { End::Kill } else { End::Clean };
        soak.leg((calls - long) / SHORT_LEGS, has_changed, end)?;
    }
    soak.tell();
    let mut figures = Figures::default();
    tell_growth(&mut figures, &samples);
    soak.check_receipts(&mut figures)?;
    Ok(figures)
}

/// How a process of the gate is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Clean,
    /// Immediately, with calls in flight.
    Kill,
}

/// A sample of the gate's process.
#[derive(Debug, Clone, Copy)]
struct Sample {
    resident_bytes: u64,
    descriptors: usize,
}

struct Soak {
    programs: Programs,
    home: PathBuf,
    /// The server's current edition; a person has approved all earlier ones.
    edition: u64,
    begun: Instant,
    told_at: Instant,
    told_calls: u64,
    requests: u64,
    answers: u64,
    calls: u64,
    holds: u64,
    approvals: u64,
    restarts: u64,
    kills: u64,
    newest: Option<Sample>,
}

impl Soak {
    fn new(programs: Programs, home: PathBuf) -> Outcome<Soak> {
        Home::open(&home)?;
        std::fs::write(home.join("holdpoint.toml"), "[approve]\nunattended = true\n")?;
        Ok(Soak {
            programs,
            home,
            edition: 0,
            begun: Instant::now(),
            told_at: Instant::now(),
            told_calls: 0,
            requests: 0,
            answers: 0,
            calls: 0,
            holds: 0,
            approvals: 0,
            restarts: 0,
            kills: 0,
            newest: None,
        })
    }

    /// Runs one process of the gate from start to end.
    fn leg(&mut self, calls: u64, has_changed: bool, end: End) -> Outcome<Vec<Sample>> {
        self.restarts += 1;
        let mut command = self.programs.server(Between::Gate, &self.home, TOOLS, self.edition);
        let mut peer = Peer::start(&mut command)?;
        peer.greet()?;
        let mut passed = 0;
        let mut samples = Vec::new();
        if has_changed {
            // The contract changed while the gate was down.
            passed += self.hold_and_approve(&mut peer)?;
        }
        let mut request = Request::call(0, 100);
        for stint in 1..=calls.div_ceil(STINT) {
            passed += self.stint(&mut peer, &mut request)?;
            if stint % STINTS_A_CHANGE == 0 {
                passed += self.change(&mut peer)?;
            }
            samples.extend(self.look(&peer));
        }
        if end == End::Kill {
            for _ in 0..IN_FLIGHT {
                peer.send(&mut request)?;
            }
            self.kills += 1;
        } else {
            peer.ask(&mut Request::new(COUNT, "{}"))?;
            let executed = peer.number()?;
            if executed != passed {
                return Err(format!("the server got {executed} calls of {passed}").into());
            }
        }
        let (sent, answered) = peer.counts();
        self.requests += sent;
        self.answers += answered;
        match end {
            End::Kill => peer.kill()?,
            End::Clean => peer.finish().map(drop)?,
        }
        Ok(samples)
    }

    /// Many calls at once, some one by one, and a few larger ones.
    fn stint(&mut self, peer: &mut Peer, request: &mut Request) -> Outcome<u64> {
        const ALONE: u64 = 200;
        const LARGER: [usize; 3] = [10_000, 100_000, 1_000_000];
        let mut passed = 0;
        peer.pipeline(request, STINT - ALONE, IN_FLIGHT, |answer| {
            passed += u64::from(answer == Answer::Result);
            Ok(())
        })?;
        let mut larger = LARGER.map(|bytes| Request::call(0, bytes));
        for request in &mut larger {
            passed += u64::from(peer.ask(request)? == Answer::Result);
        }
        for _ in 0..ALONE - LARGER.len() as u64 {
            passed += u64::from(peer.ask(request)? == Answer::Result);
        }
        self.calls += STINT;
        if passed == STINT { Ok(passed) } else { Err(unexpected(peer.line()).into()) }
    }

    /// Makes the server change a contract and announce it.
    fn change(&mut self, peer: &mut Peer) -> Outcome<u64> {
        peer.ask(&mut Request::new(CHANGE, "{}"))?;
        self.edition = peer.number()?;
        self.hold_and_approve(peer)
    }

    /// Checks that calls of the changed tool are held while others succeed, and that they succeed
    /// after an approval. Returns how many calls succeeded.
    fn hold_and_approve(&mut self, peer: &mut Peer) -> Outcome<u64> {
        let mut other = Request::call(0, 100);
        let mut changed = Request::call(CHANGING, 100);
        expect(peer, &mut changed, Answer::Held)?;
        expect(peer, &mut other, Answer::Result)?;
        self.holds += 1;
        self.approve()?;
        expect(peer, &mut changed, Answer::Result)?;
        self.calls += 3;
        Ok(2)
    }

    /// Approves through separate processes, as a person would.
    fn approve(&mut self) -> Outcome<()> {
        let status = self.holdpoint(&["status", SERVER_ID, "--json"])?;
        let status: serde_json::Value = serde_json::from_slice(&status)?;
        let hash = status.pointer("/servers/0/surface_hash").and_then(serde_json::Value::as_str);
        let hash = hash.ok_or("no hash of what waits")?;
        self.holdpoint(&["approve", SERVER_ID, "--hash", hash])?;
        self.approvals += 1;
        Ok(())
    }

    fn holdpoint(&self, words: &[&str]) -> Outcome<Vec<u8>> {
        let mut command: Command = self.programs.holdpoint(&self.home);
        let output = command.args(words).output()?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(format!("`holdpoint {}`: {error}", words.join(" ")).into())
    }

    fn look(&mut self, peer: &Peer) -> Option<Sample> {
        let process_id = peer.process_id();
        let resident_bytes = Memory::of(process_id)?.resident;
        let sample = Sample { resident_bytes, descriptors: descriptors(process_id)? };
        self.newest = Some(sample);
        if self.told_at.elapsed() >= REPORT_INTERVAL {
            self.tell();
        }
        Some(sample)
    }

    fn tell(&mut self) {
        let rate = (self.calls - self.told_calls) as f64 / self.told_at.elapsed().as_secs_f64();
        self.told_at = Instant::now();
        self.told_calls = self.calls;
        let (megabytes, descriptors) = self
            .newest
            .map_or((0.0, 0), |sample| (sample.resident_bytes as f64 / 1e6, sample.descriptors));
        println!(
            "{:>5.0} s  {:>9} calls ({rate:.0}/s)  {megabytes:.1} MB  {descriptors} descriptors  {} holds, {} approvals, {} starts, {} kills",
            self.begun.elapsed().as_secs_f64(),
            self.calls,
            self.holds,
            self.approvals,
            self.restarts,
            self.kills
        );
    }

    /// Checks that each request has one decision. Requests in flight at a kill may have none: the
    /// gate may not have read them.
    fn check_receipts(&self, figures: &mut Figures) -> Outcome<()> {
        let begun = Instant::now();
        let report = verify_all(&self.home)?;
        if let Some(problem) = report.problems.first() {
            return Err(format!("the ledger does not verify: {problem}").into());
        }
        let decisions: u64 = report.chains.iter().map(|chain| chain.decisions).sum();
        let outcomes: u64 = report.chains.iter().map(|chain| chain.outcomes).sum();
        println!(
            "{} requests, {} answered; {decisions} decisions, {outcomes} outcomes, verified in {:.1} s",
            self.requests,
            self.answers,
            begun.elapsed().as_secs_f64()
        );
        let missing = self.answers.saturating_sub(decisions);
        let extra = decisions.saturating_sub(self.requests);
        figures.tell("answered requests without a decision", missing as f64, 0.0);
        figures.tell("decisions without a request", extra as f64, 0.0);
        // An outcome is recorded after the response, so a kill may come in between. Held calls have
        // none.
        let open = self.answers.saturating_sub(self.holds).saturating_sub(outcomes);
        let bound = (self.kills * IN_FLIGHT) as f64;
        figures.tell("answered requests without an outcome", open as f64, bound);
        Ok(())
    }
}

fn expect(peer: &mut Peer, request: &mut Request, wanted: Answer) -> Outcome<()> {
    if peer.ask(request)? == wanted { Ok(()) } else { Err(unexpected(peer.line()).into()) }
}

fn verify_all(home: &Path) -> Outcome<Report> {
    let home = Home::open(home)?;
    let keys = public_keys(&home.receipts_public_key_path())?;
    Ok(verify(&DiskFolder::new(&home.receipts_path()), &keys, &[], &|_| {})?)
}

/// Compares the second half of the long leg with its beginning, without the first stints, in which
/// caches fill. Both fluctuate with the work in progress, so the medians are compared.
fn tell_growth(figures: &mut Figures, samples: &[Sample]) {
    let part = |from: usize, to: usize| {
        let all = samples.len();
        let part = samples.get(all * from / 10..all * to / 10).filter(|part| !part.is_empty())?;
        let resident = part.iter().map(|sample| sample.resident_bytes as f64 / 1e6);
        let descriptors = part.iter().map(|sample| sample.descriptors as f64);
        Some((median(resident.collect()), median(descriptors.collect())))
    };
    let (Some(early), Some(late)) = (part(1, 3), part(5, 10)) else {
        println!("too few calls, or no /proc: growth was not looked at");
        return;
    };
    println!(
        "early in the long leg: {:.1} MB, {} descriptors; in its second half: {:.1} MB, {} descriptors",
        early.0, early.1, late.0, late.1
    );
    figures.tell("growth of memory, MB", late.0 - early.0, MEMORY_GROWTH_MEGABYTES);
    figures.tell("growth of descriptors", late.1 - early.1, DESCRIPTOR_GROWTH);
}
