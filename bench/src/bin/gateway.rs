//! Measures the cost of the gateway, compared with a reverse proxy that does nothing, in turn
//! within one run.
//!
//! All checks and receipts are on, with 10 policies, static keys and SQLite. Prints each figure
//! with its bound, and exits with 1 if one exceeds it. Arguments select the parts.
#![allow(clippy::print_stdout, reason = "a measurement prints")]

use holdpoint_bench::callers::{Failure, HttpCaller};
use holdpoint_bench::doors::{Door, DoorPrograms, GatewayHome};
use holdpoint_bench::figures::{Figures, exit_code};
use holdpoint_bench::process::{Memory, processor_time};
use holdpoint_bench::samples::{Round, first_quarter, median};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Failure>;

/// The number of tools of a typical server.
const TOOLS: usize = 50;
const POLICIES: usize = 10;
const MANY_TOOLS: usize = 10_000;
const MANY_POLICIES: usize = 100;
const MANY_PRINCIPALS: usize = 1_000;
/// How long a gateway may take until it has observed its server.
const FIRST_SIGHT: Duration = Duration::from_secs(30);
const THROUGHPUT_ROUNDS: usize = 12;
const THROUGHPUT_CALLS: usize = 1_920;
const IDLE_SESSIONS: usize = 1_000;
const STARTS: usize = 21;
const LIST_ROUNDS: usize = 20;

/// Calls with results of one size, and the bound on their cost relative to the proxy.
struct Size {
    name: &'static str,
    bytes: usize,
    rounds: usize,
    calls: usize,
    p50_bound: f64,
    p99_bound: f64,
}

const SIZES: [Size; 3] = [
    Size { name: "100 B", bytes: 100, rounds: 30, calls: 300, p50_bound: 1.6, p99_bound: 2.0 },
    Size { name: "10 KB", bytes: 10_000, rounds: 30, calls: 200, p50_bound: 1.6, p99_bound: 2.0 },
    Size { name: "1 MB", bytes: 1_000_000, rounds: 10, calls: 40, p50_bound: 3.0, p99_bound: 3.0 },
];

/// Calls that are made for `scripts/layout`, and how long the gateway may take to end after them.
const LAYOUT_CALLS: usize = 4_000;
const LAYOUT_PATIENCE: Duration = Duration::from_secs(60);

const PARTS: [&str; 6] = ["throughput", "latency", "list", "memory", "start", "scale"];

fn main() -> ExitCode {
    exit_code(measure().map_err(|error| error as Box<dyn std::error::Error>))
}

fn measure() -> Outcome<Figures> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let is_for_layout = wanted == ["calls"];
    let unknown = wanted.iter().find(|word| !PARTS.contains(&word.as_str()));
    if let Some(word) = unknown.filter(|_| !is_for_layout) {
        return Err(format!("there is no part `{word}`; there are {}", PARTS.join(", ")).into());
    }
    let programs = DoorPrograms::find()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut figures = Figures::default();
    if is_for_layout {
        runtime.block_on(make_calls(&programs))?;
        return Ok(figures);
    }
    runtime.block_on(async {
        for part in PARTS {
            if !wanted.is_empty() && wanted.iter().all(|word| word != part) {
                continue;
            }
            match part {
                "throughput" => throughput(&programs, &mut figures).await?,
                "latency" => latency(&programs, &mut figures).await?,
                "list" => lists(&programs, &mut figures).await?,
                "memory" => memory(&programs, &mut figures).await?,
                "start" => starting(&programs, &mut figures).await?,
                _ => scale(&programs, &mut figures).await?,
            }
        }
        Ok::<(), Failure>(())
    })?;
    Ok(figures)
}

/// A server behind a proxy and a gateway that has observed and pinned it.
struct Stage {
    proxy: Door,
    gateway: Door,
    home: GatewayHome,
    _echo: Door,
}

impl Stage {
    async fn open(
        programs: &DoorPrograms,
        tools: usize,
        policies: usize,
        principals: usize,
    ) -> Outcome<Stage> {
        let echo = programs.echo(tools)?;
        let home = GatewayHome::new(echo.address, policies, principals)
            .map_err(|error| error.to_string())?;
        let gateway = programs.gateway(home.path())?;
        let stage = Stage { proxy: programs.proxy(echo.address)?, gateway, home, _echo: echo };
        stage.wait_until_pinned(tools).await?;
        Ok(stage)
    }

    /// Waits until the gateway has observed its server, which the first caller causes.
    async fn wait_until_pinned(&self, tools: usize) -> Outcome<()> {
        let mut caller = self.caller(self.gateway.address, 0).await?;
        let begun = Instant::now();
        loop {
            let listed = count(&caller.list().await?.text);
            if listed == tools {
                return Ok(());
            }
            if begun.elapsed() > FIRST_SIGHT {
                return Err(format!("{listed} tools were listed of {tools}").into());
            }
        }
    }

    async fn caller(&self, door: SocketAddr, principal: usize) -> Outcome<HttpCaller> {
        let key = self.home.keys.get(principal).ok_or("no such principal")?;
        HttpCaller::begin(door, key).await
    }

    /// Callers of the proxy and of the gateway, each with its own principal.
    async fn callers(&self, count: usize) -> Outcome<[Vec<HttpCaller>; 2]> {
        let mut all = [Vec::new(), Vec::new()];
        for (door, callers) in [&self.proxy, &self.gateway].into_iter().zip(&mut all) {
            for principal in 0..count {
                let mut caller = self.caller(door.address, principal).await?;
                caller.call(0, 100).await?;
                callers.push(caller);
            }
        }
        Ok(all)
    }
}

/// Makes calls and stops the gateway, so that `scripts/layout` sees which functions ran. Measures
/// nothing.
async fn make_calls(programs: &DoorPrograms) -> Outcome<()> {
    let mut stage = Stage::open(programs, TOOLS, POLICIES, 1).await?;
    let mut caller = stage.caller(stage.gateway.address, 0).await?;
    for _ in 0..LAYOUT_CALLS {
        caller.call(0, 100).await?;
    }
    drop(caller);
    Ok(stage.gateway.terminate(LAYOUT_PATIENCE)?)
}

/// Calls per second with the given numbers of sessions, each with one call at a time.
async fn throughput(programs: &DoorPrograms, figures: &mut Figures) -> Outcome<()> {
    let stage = Stage::open(programs, TOOLS, POLICIES, 64).await?;
    for sessions in [1, 16, 64] {
        let mut callers = stage.callers(sessions).await?;
        let mut rates: [Vec<f64>; 2] = Default::default();
        let mut worked: [Vec<f64>; 2] = Default::default();
        for round in 0..=THROUGHPUT_ROUNDS {
            let doors = [&stage.proxy, &stage.gateway];
            let taken = rates.iter_mut().zip(&mut worked);
            for ((own, door), (rates, worked)) in callers.iter_mut().zip(doors).zip(taken) {
                let before = processor_time(door.process_id());
                let (rate, back) = rate(std::mem::take(own), THROUGHPUT_CALLS / sessions).await?;
                let after = processor_time(door.process_id());
                *own = back;
                // The first round is a warm-up.
                if round > 0 {
                    rates.push(rate);
                    let time =
                        after.zip(before).map(|(after, before)| after.saturating_sub(before));
                    let each = time.unwrap_or_default().as_secs_f64() * 1e6;
                    worked.push(each / THROUGHPUT_CALLS as f64);
                }
            }
        }
        let ([proxy, gateway], [proxy_works, gateway_works]) =
            (rates.map(median), worked.map(median));
        println!(
            "calls a second, {sessions} sessions: proxy {proxy:.0}, gateway {gateway:.0}; processor time of a call: proxy {proxy_works:.1} us, gateway {gateway_works:.1} us"
        );
        let what = format!("throughput with {sessions} sessions, times the proxy's");
        figures.tell_at_least(&what, gateway / proxy.max(1.0), 0.6);
    }
    Ok(())
}

/// All callers make `calls` calls each. Returns the calls per second, and the callers.
async fn rate(callers: Vec<HttpCaller>, calls: usize) -> Outcome<(f64, Vec<HttpCaller>)> {
    let total = callers.len() * calls;
    let begun = Instant::now();
    let tasks: Vec<_> = callers
        .into_iter()
        .map(|mut caller| {
            tokio::spawn(async move {
                for _ in 0..calls {
                    caller.call(0, 100).await?;
                }
                Ok::<HttpCaller, Failure>(caller)
            })
        })
        .collect();
    let mut callers = Vec::new();
    for task in tasks {
        callers.push(task.await??);
    }
    Ok((total as f64 / begun.elapsed().as_secs_f64(), callers))
}

/// The latency of a whole call without other load.
async fn latency(programs: &DoorPrograms, figures: &mut Figures) -> Outcome<()> {
    let stage = Stage::open(programs, TOOLS, POLICIES, 1).await?;
    let mut callers = stage.callers(1).await?;
    for size in SIZES {
        let mut rounds: [Vec<Round>; 2] = Default::default();
        for round in 0..=size.rounds {
            for (own, rounds) in callers.iter_mut().zip(&mut rounds) {
                let times = times(own, size.calls, size.bytes).await?;
                rounds.extend((round > 0).then(|| Round::of(&times)));
            }
        }
        let p50 = rounds.each_ref().map(|own| median(own.iter().map(|round| round.p50).collect()));
        // On a busy machine, the slowest percent of calls is always due to other activity.
        let p99 =
            rounds.each_ref().map(|own| first_quarter(own.iter().map(|round| round.p99).collect()));
        for (what, [proxy, gateway], bound) in
            [("p50", p50, size.p50_bound), ("p99", p99, size.p99_bound)]
        {
            let name = size.name;
            println!("a result of {name}, {what}: proxy {proxy:.0} us, gateway {gateway:.0} us");
            let what = format!("a call with a result of {name}, {what}, times the proxy");
            figures.tell(&what, gateway / proxy.max(0.1), bound);
        }
    }
    Ok(())
}

/// The times of sequential calls by all callers in turn.
async fn times(callers: &mut [HttpCaller], calls: usize, bytes: usize) -> Outcome<Vec<Duration>> {
    let mut times = Vec::with_capacity(calls);
    while times.len() < calls {
        for caller in &mut *callers {
            times.push(caller.call(0, bytes).await?);
        }
    }
    Ok(times)
}

/// A list for a caller whose visible tools are cached.
async fn lists(programs: &DoorPrograms, figures: &mut Figures) -> Outcome<()> {
    let stage = Stage::open(programs, TOOLS, POLICIES, 1).await?;
    let mut callers = stage.callers(1).await?;
    let mut rounds: [Vec<f64>; 2] = Default::default();
    for round in 0..=LIST_ROUNDS {
        for (own, rounds) in callers.iter_mut().zip(&mut rounds) {
            let mut times = Vec::new();
            for _ in 0..100 {
                for caller in own.iter_mut() {
                    times.push(caller.list().await?.took);
                }
            }
            rounds.extend((round > 0).then(|| Round::of(&times).p50));
        }
    }
    let [proxy, gateway] = rounds.map(median);
    println!("a list of {TOOLS} tools, p50: proxy {proxy:.0} us, gateway {gateway:.0} us");
    figures.tell("a list for a known caller, times the proxy", gateway / proxy.max(0.1), 1.0);
    Ok(())
}

/// The memory of idle sessions, each with its own principal, after one call.
async fn memory(programs: &DoorPrograms, figures: &mut Figures) -> Outcome<()> {
    let stage = Stage::open(programs, TOOLS, POLICIES, IDLE_SESSIONS).await?;
    let resident = |door: &Door| Memory::of(door.process_id()).map(|memory| memory.resident);
    let mut kept = Vec::new();
    let mut more = Vec::new();
    for door in [&stage.proxy, &stage.gateway] {
        let before = resident(door);
        for principal in 0..IDLE_SESSIONS {
            let mut caller = stage.caller(door.address, principal).await?;
            caller.call(0, 100).await?;
            kept.push(caller);
        }
        let Some((before, after)) = before.zip(resident(door)) else {
            println!("memory cannot be measured here (no /proc)");
            return Ok(());
        };
        more.push((before as f64 / 1e6, after as f64 / 1e6));
    }
    if let [(proxy_before, proxy), (gateway_before, gateway)] = more.as_slice() {
        println!(
            "resident memory, MB: proxy {proxy_before:.1}, with {IDLE_SESSIONS} sessions {proxy:.1}; gateway {gateway_before:.1}, with them {gateway:.1}"
        );
        let what = format!("{IDLE_SESSIONS} idle sessions, MB more");
        figures.tell(&what, gateway - gateway_before, 64.0);
    }
    Ok(())
}

/// The time from the start of the process to the response to the first list request, which is
/// served from the pins.
async fn starting(programs: &DoorPrograms, figures: &mut Figures) -> Outcome<()> {
    let Stage { gateway, home, _echo, .. } = Stage::open(programs, TOOLS, POLICIES, 1).await?;
    drop(gateway);
    let key = home.keys.first().ok_or("no key")?;
    let (mut times, mut listening) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let begun = Instant::now();
        let door = programs.gateway(home.path())?;
        listening.push(begun.elapsed().as_secs_f64() * 1e3);
        let mut caller = HttpCaller::begin(door.address, key).await?;
        let listed = count(&caller.list().await?.text);
        times.push(begun.elapsed().as_secs_f64() * 1e3);
        if listed != TOOLS {
            return Err(format!("{listed} tools were listed of {TOOLS}").into());
        }
    }
    println!("start, ms: it listens after {:.1}", median(listening));
    figures.tell("start to the first list from pins, ms", median(times), 30.0);
    Ok(())
}

/// A call with many tools, policies and principals, compared with one with few.
async fn scale(programs: &DoorPrograms, figures: &mut Figures) -> Outcome<()> {
    let few = Stage::open(programs, TOOLS, POLICIES, 1).await?;
    let many = Stage::open(programs, MANY_TOOLS, MANY_POLICIES, MANY_PRINCIPALS).await?;
    // All principals share one connection: the cost of connections is not measured here.
    let mut callers =
        [few.caller(few.gateway.address, 0).await?, many.caller(many.gateway.address, 0).await?];
    let mut identities = Vec::new();
    for principal in 0..MANY_PRINCIPALS {
        let mut caller = many.caller(many.gateway.address, principal).await?;
        caller.call(0, 100).await?;
        identities.push(caller.identity().clone());
    }
    // The first call of a tool compiles its schema. That cost is reported separately.
    let resident = || Memory::of(many.gateway.process_id()).map(|memory| memory.resident as f64);
    let before = resident();
    let mut first = Vec::new();
    for tool in 0..MANY_TOOLS {
        let [_, caller] = &mut callers;
        first.push(caller.call(tool, 100).await?);
    }
    let more = before.zip(resident()).map_or(0.0, |(before, after)| (after - before) / 1e6);
    println!(
        "the first call of each of {MANY_TOOLS} tools, p50: {:.0} us; they leave {more:.0} MB more resident",
        Round::of(&first).p50
    );
    let mut tools = (0..MANY_TOOLS).cycle().step_by(7);
    let mut principals = identities.iter().cycle();
    let mut rounds: [Vec<f64>; 2] = Default::default();
    for round in 0..=20 {
        for (place, (caller, rounds)) in callers.iter_mut().zip(&mut rounds).enumerate() {
            let mut times = Vec::new();
            for _ in 0..300 {
                let (tool, principal) = (tools.next().unwrap_or(0), principals.next());
                if let Some(principal) = principal.filter(|_| place == 1) {
                    caller.take_on(principal);
                }
                times.push(caller.call(if place == 1 { tool } else { 0 }, 100).await?);
            }
            rounds.extend((round > 0).then(|| Round::of(&times).p50));
        }
    }
    let [few, many] = rounds.map(median);
    println!(
        "a call, p50: {TOOLS} tools, {POLICIES} policies, 1 principal {few:.0} us; {MANY_TOOLS} tools, {MANY_POLICIES} policies, {MANY_PRINCIPALS} principals {many:.0} us"
    );
    figures.tell("a call among many, times one among few", many / few.max(0.1), 1.2);
    Ok(())
}

/// The tools in a list.
fn count(list: &[u8]) -> usize {
    list.windows(8).filter(|window| *window == b"\"title\":").count()
}
