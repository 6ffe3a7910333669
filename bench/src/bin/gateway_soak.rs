//! `gateway_soak [CALLS]`: a very large number of calls by many callers through the gateway, with
//! unannounced changes of contracts, approvals, revoked keys and reloads.
//!
//! Memory and descriptors must not grow, every response must be correct, the server must have
//! received exactly the answered calls, and the ledger must verify, with one decision and at most
//! one outcome per call.
#![allow(clippy::print_stdout, reason = "a measurement prints")]

use holdpoint_bench::callers::{Failure, HttpCaller};
use holdpoint_bench::doors::{Door, DoorPrograms, GatewayHome};
use holdpoint_bench::figures::{Figures, exit_code};
use holdpoint_bench::process::{Memory, descriptors};
use holdpoint_bench::samples::median;
use holdpoint_bench::server::{CHANGE, CHANGING, COUNT};
use ledger::verify::verify;
use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use store::Home;
use store::receipts::{DiskFolder, public_keys};

type Outcome<T> = Result<T, Failure>;

const USUAL_CALLS: u64 = 1_000_000;
const TOOLS: usize = 50;
const POLICIES: usize = 10;
const CALLERS: usize = 16;
/// The number of calls between two samples of the process and two disturbances.
const STINT: u64 = 4_000;
/// How long a change or revocation may take to become effective.
const PATIENCE: Duration = Duration::from_secs(20);
const REPORT_INTERVAL: Duration = Duration::from_secs(10);
/// The allowed growth from the beginning to the second half.
const MEMORY_GROWTH_MEGABYTES: f64 = 4.0;
const DESCRIPTOR_GROWTH: f64 = 4.0;

fn main() -> ExitCode {
    let calls = std::env::args().nth(1).map_or(Ok(USUAL_CALLS), |word| word.parse());
    let soaked = calls.map_err(Into::into).and_then(|calls| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(soak(calls))
    });
    exit_code(soaked.map_err(|error| error as Box<dyn std::error::Error>))
}

async fn soak(calls: u64) -> Outcome<Figures> {
    let stints = calls.div_ceil(STINT);
    let spare = usize::try_from(stints)?;
    let mut soak = Soak::open(CALLERS + spare).await?;
    let mut samples = Vec::new();
    for stint in 0..stints {
        soak.stint().await?;
        match stint % 4 {
            0 => soak.change_and_approve().await?,
            1 => soak.revoke(CALLERS + usize::try_from(stint)?).await?,
            2 => soak.reload()?,
            _ => {}
        }
        samples.extend(soak.look());
    }
    soak.tell();
    let mut figures = Figures::default();
    tell_growth(&mut figures, &samples);
    let executed = HttpCaller::ask_server(soak.echo.address, COUNT).await?;
    figures.tell(
        "calls that the server got and no caller made",
        executed.abs_diff(soak.passed) as f64,
        0.0,
    );
    soak.end_gateway()?;
    soak.check_receipts(&mut figures)?;
    Ok(figures)
}

/// A sample of the gateway's process.
#[derive(Debug, Clone, Copy)]
struct Sample {
    resident_bytes: u64,
    descriptors: usize,
}

struct Soak {
    programs: DoorPrograms,
    home: GatewayHome,
    echo: Door,
    gateway: Door,
    callers: Vec<HttpCaller>,
    begun: Instant,
    told_at: Instant,
    told_calls: u64,
    /// The number of calls made, and of those that the server answered.
    calls: u64,
    passed: u64,
    holds: u64,
    approvals: u64,
    revocations: u64,
    reloads: u64,
    newest: Option<Sample>,
}

impl Soak {
    async fn open(principals: usize) -> Outcome<Soak> {
        let programs = DoorPrograms::find()?;
        let echo = programs.echo(TOOLS)?;
        let home = GatewayHome::new(echo.address, POLICIES, principals)
            .map_err(|error| error.to_string())?;
        // After a second, the next call finds a change.
        home.configure("[relist]\nmax_age = 1\n")?;
        std::fs::write(home.path().join("holdpoint.toml"), "[approve]\nunattended = true\n")?;
        let gateway = programs.gateway(home.path())?;
        let mut soak = Soak {
            programs,
            home,
            echo,
            gateway,
            callers: Vec::new(),
            begun: Instant::now(),
            told_at: Instant::now(),
            told_calls: 0,
            calls: 0,
            passed: 0,
            holds: 0,
            approvals: 0,
            revocations: 0,
            reloads: 0,
            newest: None,
        };
        for principal in 0..CALLERS {
            let mut caller = soak.caller(principal).await?;
            caller.call(0, 100).await?;
            soak.calls += 1;
            soak.passed += 1;
            soak.callers.push(caller);
        }
        Ok(soak)
    }

    async fn caller(&self, principal: usize) -> Outcome<HttpCaller> {
        let key = self.home.keys.get(principal).ok_or("no such principal")?;
        HttpCaller::begin(self.gateway.address, key).await
    }

    /// All callers at once, and a few larger results.
    async fn stint(&mut self) -> Outcome<()> {
        const LARGER: [usize; 2] = [10_000, 1_000_000];
        let each = STINT / CALLERS as u64;
        let tasks: Vec<_> = std::mem::take(&mut self.callers)
            .into_iter()
            .map(|mut caller| {
                tokio::spawn(async move {
                    for number in 0..each {
                        let tool = if number % 2 == 0 { 0 } else { 2 };
                        caller.call(tool, 100).await?;
                    }
                    Ok::<HttpCaller, Failure>(caller)
                })
            })
            .collect();
        for task in tasks {
            self.callers.push(task.await??);
        }
        let made = each * CALLERS as u64;
        let first = self.callers.first_mut().ok_or("no caller")?;
        for bytes in LARGER {
            first.call(0, bytes).await?;
        }
        self.calls += made + LARGER.len() as u64;
        self.passed += made + LARGER.len() as u64;
        Ok(())
    }

    /// The server changes a contract without announcing it. Calls of the tool are held while others
    /// succeed, and succeed again after an approval.
    async fn change_and_approve(&mut self) -> Outcome<()> {
        HttpCaller::ask_server(self.echo.address, CHANGE).await?;
        self.wait_for(CHANGING, is_held).await?;
        self.holds += 1;
        let first = self.callers.first_mut().ok_or("no caller")?;
        first.call(0, 100).await?;
        self.calls += 1;
        self.passed += 1;
        let status = self.holdpoint(&["status", "echo", "--json"])?;
        let status: serde_json::Value = serde_json::from_slice(&status)?;
        let hash = status.pointer("/servers/0/surface_hash").and_then(serde_json::Value::as_str);
        let hash = hash.ok_or("no hash of what waits")?.to_owned();
        self.holdpoint(&["approve", "echo", "--hash", &hash])?;
        self.approvals += 1;
        self.wait_for(CHANGING, |answer| answer.is_some_and(is_result)).await
    }

    /// Revokes a key: its session ends, and no other caller is affected.
    async fn revoke(&mut self, principal: usize) -> Outcome<()> {
        let mut caller = self.caller(principal).await?;
        caller.call(0, 100).await?;
        self.calls += 1;
        self.passed += 1;
        self.holdpoint(&["key", "revoke", &format!("k-{principal}")])?;
        let begun = Instant::now();
        while caller.try_call(0).await?.is_some() {
            self.calls += 1;
            self.passed += 1;
            if begun.elapsed() > PATIENCE {
                return Err("a revoked key still counts".into());
            }
        }
        self.revocations += 1;
        Ok(())
    }

    fn reload(&mut self) -> Outcome<()> {
        // Change the policies slightly each time, so that a reload has something to do.
        let path = self.home.path().join("policies/bench.cedar");
        let text = std::fs::read_to_string(&path)?;
        std::fs::write(path, format!("{text}// reload {}\n", self.reloads))?;
        self.holdpoint(&["gateway", "reload"])?;
        self.reloads += 1;
        Ok(())
    }

    /// Calls a tool until the response is as expected.
    async fn wait_for(
        &mut self,
        tool: usize,
        is_expected: impl Fn(Option<&[u8]>) -> bool,
    ) -> Outcome<()> {
        let begun = Instant::now();
        loop {
            let caller = self.callers.last_mut().ok_or("no caller")?;
            let answer = caller.try_call(tool).await?;
            self.calls += 1;
            self.passed += u64::from(answer.as_deref().is_some_and(is_result));
            if is_expected(answer.as_deref()) {
                return Ok(());
            }
            if begun.elapsed() > PATIENCE {
                let answer =
                    String::from_utf8_lossy(answer.as_deref().unwrap_or_default()).into_owned();
                return Err(format!("an unexpected answer: {answer}").into());
            }
        }
    }

    fn holdpoint(&self, words: &[&str]) -> Outcome<Vec<u8>> {
        let output = self.programs.holdpoint(self.home.path()).args(words).output()?;
        if output.status.success() || output.status.code() == Some(10) {
            return Ok(output.stdout);
        }
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(format!("`holdpoint {}`: {error}", words.join(" ")).into())
    }

    fn look(&mut self) -> Option<Sample> {
        let process_id = self.gateway.process_id();
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
            "{:>5.0} s  {:>9} calls ({rate:.0}/s)  {megabytes:.1} MB  {descriptors} descriptors  {} holds, {} approvals, {} revocations, {} reloads",
            self.begun.elapsed().as_secs_f64(),
            self.calls,
            self.holds,
            self.approvals,
            self.revocations,
            self.reloads
        );
    }

    /// Terminates the gateway as a service manager does, so that all receipts are signed.
    fn end_gateway(&mut self) -> Outcome<()> {
        self.callers.clear();
        self.gateway.terminate(PATIENCE)?;
        Ok(())
    }

    fn check_receipts(&self, figures: &mut Figures) -> Outcome<()> {
        let begun = Instant::now();
        let home = Home::open(self.home.path())?;
        let keys = public_keys(&home.receipts_public_key_path())?;
        let report = verify(&DiskFolder::new(&home.receipts_path()), &keys, &[], &|_| {})?;
        if let Some(problem) = report.problems.first() {
            return Err(format!("the ledger does not verify: {problem}").into());
        }
        let counted = Counted::read(&home.receipts_path())?;
        println!(
            "{} calls, {} decisions on calls, {} outcomes; verified and counted in {:.1} s",
            self.calls,
            counted.calls,
            counted.outcomes,
            begun.elapsed().as_secs_f64()
        );
        figures.tell(
            "calls without exactly one decision",
            counted.calls.abs_diff(self.calls) as f64,
            0.0,
        );
        figures.tell("requests with more than one decision", counted.twice_decided as f64, 0.0);
        figures.tell("requests with more than one outcome", counted.twice_ended as f64, 0.0);
        Ok(())
    }
}

fn is_result(answer: &[u8]) -> bool {
    answer.windows(9).any(|window| window == b"\"result\":")
}

fn is_held(answer: Option<&[u8]>) -> bool {
    answer.is_some_and(|answer| answer.windows(6).any(|window| window == b"-32010"))
}

/// The counts of calls in a ledger.
#[derive(Debug, Default)]
struct Counted {
    calls: u64,
    outcomes: u64,
    twice_decided: u64,
    twice_ended: u64,
}

impl Counted {
    fn read(folder: &std::path::Path) -> Outcome<Counted> {
        let mut counted = Counted::default();
        let (mut decided, mut ended): (HashSet<u128>, HashSet<u128>) = Default::default();
        for chain in std::fs::read_dir(folder)? {
            let chain = chain?.path();
            if !chain.is_dir() {
                continue;
            }
            for file in std::fs::read_dir(chain)? {
                let file = file?.path();
                if file.extension().is_none_or(|ending| ending != "jsonl") {
                    continue;
                }
                for line in BufReader::new(std::fs::File::open(file)?).lines() {
                    let line: serde_json::Value = serde_json::from_str(&line?)?;
                    let text = |pointer: &str| line.pointer(pointer).and_then(|v| v.as_str());
                    let Some(id) = text("/receipt_id") else { continue };
                    let id = u128::from_str_radix(id, 16)?;
                    match text("/record") {
                        Some("decision") => {
                            counted.twice_decided += u64::from(!decided.insert(id));
                            counted.calls += u64::from(text("/mcp/method") == Some("tools/call"));
                        }
                        Some("outcome") => {
                            counted.twice_ended += u64::from(!ended.insert(id));
                            counted.outcomes += 1;
                        }
                        _ => {}
                    }
                }
            }
        }
        Ok(counted)
    }
}

/// Compares the second half with the beginning, without the first stints, in which caches fill.
fn tell_growth(figures: &mut Figures, samples: &[Sample]) {
    let part = |from: usize, to: usize| {
        let all = samples.len();
        let part = samples.get(all * from / 10..all * to / 10).filter(|part| !part.is_empty())?;
        let resident = part.iter().map(|sample| sample.resident_bytes as f64 / 1e6);
        let descriptors = part.iter().map(|sample| sample.descriptors as f64);
        Some((median(resident.collect()), median(descriptors.collect())))
    };
    let (Some(early), Some(late)) = (part(2, 4), part(6, 10)) else {
        println!("too few calls, or no /proc: growth was not looked at");
        return;
    };
    println!(
        "early: {:.1} MB, {} descriptors; later: {:.1} MB, {} descriptors",
        early.0, early.1, late.0, late.1
    );
    figures.tell("growth of memory, MB", late.0 - early.0, MEMORY_GROWTH_MEGABYTES);
    figures.tell("growth of descriptors", late.1 - early.1, DESCRIPTOR_GROWTH);
}
