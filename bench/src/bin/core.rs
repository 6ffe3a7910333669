//! Measures the core's speed and memory: reading, hashing and comparing surfaces, compared with a
//! plain parse of the same bytes.
//!
//! Prints each figure with its bound, and exits with 1 if one exceeds it.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a measurement prints")]

use contract::diff::{diff_entry, diff_surfaces};
use contract::json::Document;
use contract::surface::{Entry, EntryId, EntryType, Surface, read_capture};
use contract::time::Timestamp;
use gate::by_the_call::input::{Arguments, InputRulesCache, UndeclaredMembers};
use gate::by_the_call::{CallRules, ToolChange};
use holdpoint_bench::figures::{Figures, exit_code, peak_bytes};
use holdpoint_bench::timing::{best_times, ratio};
use holdpoint_bench::{hostile, likeness};
use policy::preflight::{MAX_BUCKETS, RateKey, RateLimiter, RateScope, Throttle};
use screen::grade::Grade;
use screen::reading::Context;
use std::hint::black_box;
use std::process::{Command, ExitCode};
use std::time::Instant;

const ROUNDS: usize = 15;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [option, path] = words.as_slice()
        && option == "--read"
    {
        return read_and_tell_memory(path);
    }
    let mut figures = Figures::default();
    reading(&mut figures);
    comparing(&mut figures);
    screening(&mut figures);
    calls_of_a_changed_tool(&mut figures);
    arguments(&mut figures);
    rates(&mut figures);
    growth(&mut figures);
    worst(&mut figures);
    memory(&mut figures);
    exit_code(Ok(figures))
}

fn read(text: &str) -> Surface {
    read_capture(text.as_bytes()).unwrap_or_default()
}

/// Screening a list, relative to reading it.
fn screening(figures: &mut Figures) {
    let text = likeness::tools(1_000, None);
    let context = Context::new(Grade::Scanned, Timestamp(0));
    let surface = read(&text);
    let [reading, screening] = best_times(
        ROUNDS,
        [&mut || drop(black_box(read(&text))), &mut || {
            drop(black_box(screen::reading::read(&surface, &context)));
        }],
    );
    println!("1,000 tools, {} KB: screened in {screening:?}", text.len() / 1024);
    figures.tell("screening 1,000 tools, times reading them", ratio(screening, reading), 40.0);
}

/// Reading, canonicalizing and hashing, relative to `serde_json::from_slice::<Value>`.
fn reading(figures: &mut Figures) {
    let text = likeness::tools(1_000, None);
    let [plain, ours] = best_times(
        ROUNDS,
        [
            &mut || drop(black_box(serde_json::from_slice::<serde_json::Value>(text.as_bytes()))),
            &mut || drop(black_box(read(&text))),
        ],
    );
    println!(
        "1,000 tools, {} KB: plain parse {plain:?}, read and hashed {ours:?}",
        text.len() / 1024
    );
    figures.tell("reading and hashing, times a plain parse", ratio(ours, plain), 3.0);
    if let Some((name, text)) = largest_real() {
        let [plain, ours] = best_times(
            ROUNDS,
            [
                &mut || drop(black_box(serde_json::from_slice::<serde_json::Value>(&text))),
                &mut || drop(black_box(read_capture(&text))),
            ],
        );
        figures.tell(&format!("the same for {name}"), ratio(ours, plain), 3.0);
    }
}

/// Judging one call of a tool with a waiting change under shield, after its schemas are compiled.
fn calls_of_a_changed_tool(figures: &mut Figures) {
    const CALLS: u32 = 1_000;
    let definition = |maximum: u32| {
        let property =
            |n: u32| format!(r#""p{n}":{{"type":"string","description":"Parameter {n}"}}"#);
        let properties: Vec<String> = (0..11).map(property).collect();
        let properties = properties.join(",");
        let raw = format!(
            r#"{{"name":"t","inputSchema":{{"type":"object","properties":{{{properties},"n":{{"type":"integer","maximum":{maximum}}}}},"required":["p0"]}}}}"#
        );
        Entry::from_raw(EntryId::new(EntryType::Tool, "t"), &raw)
    };
    let (Ok(old), Ok(new)) = (definition(9), definition(5)) else { return };
    let (approved, accepted, new) = (&old, &old, &new);
    let change = ToolChange { approved, accepted, new, findings: &[], defers_text: false };
    let rules = CallRules::of(change);
    let call = br#"{"p0":"a path","p3":"some words","p7":"some more words","n":4}"#;
    if rules.judge(Some(call)).is_held() {
        println!("the call is held, so what it costs is not measured");
    }
    let [time] = best_times(
        ROUNDS,
        [&mut || (0..CALLS).for_each(|_| drop(black_box(rules.judge(Some(call)))))],
    );
    let microseconds = time.as_secs_f64() * 1e6 / f64::from(CALLS);
    figures.tell("a call of a tool whose change waits, microseconds", microseconds, 15.0);
}

/// Checking the arguments of a call with ten members, after the schema is compiled. `gate
/// arguments` measures its share of a whole call.
fn arguments(figures: &mut Figures) {
    const CALLS: u32 = 1_000;
    let property = |n: u32| format!(r#""p{n}":{{"type":"string","description":"Parameter {n}"}}"#);
    let properties: Vec<String> = (0..9).map(property).collect();
    let raw = format!(
        r#"{{"name":"t","inputSchema":{{"type":"object","properties":{{{},"n":{{"type":"integer","maximum":9}}}},"required":["p0"]}}}}"#,
        properties.join(",")
    );
    let Ok(tool) = Entry::from_raw(EntryId::new(EntryType::Tool, "t"), &raw) else { return };
    let members: Vec<String> = (0..9).map(|n| format!(r#""p{n}":"some words {n}""#)).collect();
    let call = format!(r#"{{{},"n":4}}"#, members.join(","));
    let cache = InputRulesCache::default();
    let check = || {
        let rules = cache.rules(&tool).ok()?;
        let arguments = Arguments::read(Some(call.as_bytes())).ok()?;
        rules.check(&arguments, UndeclaredMembers::Refuse).ok()
    };
    if check().is_none() {
        println!("the call is refused, so what it costs is not measured");
    }
    let [time] = best_times(ROUNDS, [&mut || (0..CALLS).for_each(|_| _ = black_box(check()))]);
    let microseconds = time.as_secs_f64() * 1e6 / f64::from(CALLS);
    figures.tell("checking ten arguments, microseconds", microseconds, 10.0);
}

/// A rate limit with the maximum number of buckets.
fn rates(figures: &mut Figures) {
    let throttle = Throttle {
        rate: "1000000/sec".parse().ok(),
        quota: "1000000000/day".parse().ok(),
        scope: RateScope::PrincipalTool,
    };
    let (alone, begun) = (RateLimiter::new(throttle), Instant::now());
    let shared = RateLimiter::new(throttle).shared_as("files", Box::new(|| ()));
    let names: Vec<String> = (0..MAX_BUCKETS / 2).map(|n| format!("principal-{n}")).collect();
    let take = |limiter: &RateLimiter| {
        for name in &names {
            let key = RateKey { issuer: "https://idp.example", principal: name, tool: "read" };
            let _ = black_box(limiter.take(key, begun.elapsed(), 1_800_000_000));
        }
    };
    let times = best_times(ROUNDS, [&mut || take(&alone), &mut || take(&shared)]);
    let names = ["a rate limit, microseconds", "a rate limit of several nodes, microseconds"];
    for (name, time) in names.into_iter().zip(times) {
        figures.tell(name, time.as_secs_f64() * 1e6 / (MAX_BUCKETS / 2) as f64, 1.0);
    }
}

/// The largest capture of a corpus, if one is named.
fn largest_real() -> Option<(String, Vec<u8>)> {
    let directory = std::env::var_os("HOLDPOINT_CORPUS")?;
    let packages = std::fs::read_dir(directory)
        .ok()?
        .flatten()
        .flat_map(|registry| std::fs::read_dir(registry.path()).into_iter().flatten().flatten());
    let files = packages
        .flat_map(|package| std::fs::read_dir(package.path()).into_iter().flatten().flatten());
    let largest = files.max_by_key(|file| file.metadata().map(|found| found.len()).unwrap_or(0))?;
    let path = largest.path();
    let name = path
        .iter()
        .rev()
        .take(2)
        .map(|part| part.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" of ");
    Some((name, std::fs::read(path).ok()?))
}

fn comparing(figures: &mut Figures) {
    let (old_text, new_text) = (likeness::tools(1_000, None), likeness::tools(1_000, Some(500)));
    let [hashing, diffing] = best_times(
        ROUNDS,
        [&mut || drop(black_box((read(&old_text), read(&new_text)))), &mut || {
            let (old, new) = (read(&old_text), read(&new_text));
            drop(black_box(diff_surfaces(&old, &new)));
        }],
    );
    figures.tell(
        "diff of 1,000 tools of which one changed, times hashing",
        ratio(diffing, hashing),
        1.3,
    );
    let (old, new) = (read(&old_text), read(&old_text));
    let pairs: Vec<_> = old.entries().zip(new.entries()).collect();
    let start = Instant::now();
    let mut changed = 0_usize;
    for _ in 0..1_000 {
        changed +=
            pairs.iter().filter(|(old, new)| diff_entry(Some(old), Some(new)).is_some()).count();
    }
    let each = start.elapsed().as_nanos() as f64 / (1_000.0 * pairs.len() as f64);
    println!("an unchanged, hashed entry is compared in {each:.1} ns ({changed} changed)");
}

/// The growth with ten times as many tools.
fn growth(figures: &mut Figures) {
    let work = |tools: usize| {
        let (old, new) = (likeness::tools(tools, None), likeness::tools(tools, Some(1)));
        move || drop(black_box(diff_surfaces(&read(&old), &read(&new))))
    };
    let (mut few, mut many) = (work(900), work(9_000));
    let [few, many] = best_times(ROUNDS, [&mut few, &mut many]);
    figures.tell("ten times the tools, times the work", ratio(many, few), 11.0);
}

/// The most expensive inputs that we know of.
fn worst(figures: &mut Figures) {
    for (name, old_text, new_text) in hostile::pairs() {
        let [reading, all] = best_times(
            3,
            [
                &mut || drop(black_box((Document::parse(&old_text), Document::parse(&new_text)))),
                &mut || drop(black_box(diff_surfaces(&read(&old_text), &read(&new_text)))),
            ],
        );
        figures.tell(
            &format!("hostile `{name}` ({} KB, {all:?}), times reading it", old_text.len() / 1024),
            ratio(all, reading),
            100.0,
        );
    }
}

/// Peak memory relative to the bytes read, each in a separate process.
fn memory(figures: &mut Figures) {
    for (name, text) in hostile::bulky() {
        let path = std::env::temp_dir().join(format!("holdpoint-bench-{}", std::process::id()));
        let program = std::env::current_exe().unwrap_or_default();
        let written = std::fs::write(&path, &text);
        let output = written.and_then(|()| Command::new(program).arg("--read").arg(&path).output());
        let _ = std::fs::remove_file(&path);
        let told = output.ok().and_then(|output| String::from_utf8(output.stdout).ok());
        match told.and_then(|told| told.trim().parse::<f64>().ok()) {
            Some(bytes) => {
                let size = text.len() as f64;
                let what =
                    format!("memory for `{name}` ({} KB), times the input", text.len() / 1024);
                figures.tell(&what, bytes / size, 8.0);
            }
            None => println!("memory for `{name}` cannot be measured here (no /proc)"),
        }
    }
}

/// Reads a capture and prints the peak growth of the process in bytes, including the text itself.
fn read_and_tell_memory(path: &str) -> ExitCode {
    let Some(before) = peak_bytes() else { return ExitCode::FAILURE };
    let Ok(text) = std::fs::read(path) else { return ExitCode::FAILURE };
    let surface = read_capture(&text);
    let Some(after) = peak_bytes() else { return ExitCode::FAILURE };
    println!("{}", after.saturating_sub(before));
    if surface.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
