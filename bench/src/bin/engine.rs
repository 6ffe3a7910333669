//! The decision path for many: what a decision and both receipts of a call cost, with how many principals and tools, and what
//! a list costs that is filtered for one caller. One process, no transport.
//!
//! Prints each figure with its bound and exits with 1 if one is over it.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a measurement prints")]

use contract::surface::ListKind;
use engine::decide::{Path, PreflightLimits, Ruling};
use engine::judge::{FirstUsePolicy, Judge, Rules, Seen};
use engine::lists;
use engine::outlet::LineOutlet;
use engine::principal::Principal;
use engine::recorder::{Circumstances, Recorder, now};
use engine::requests::ParsedRequest;
use engine::situation::{DriftScope, ServerProfile, Situation};
use gate::posture::Settings;
use gate::shown::ListMode;
use holdpoint_bench::calls::write_alone;
use holdpoint_bench::figures::Figures;
use holdpoint_bench::timing::{best_times, cpu_time_of, ratio};
use ledger::record::OutcomeStatus;
use std::error::Error;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::receipts::{Fsync, Receipts, Settings as ReceiptSettings};
use store::{Home, SqliteStore, Witnessed};
use tempfile::TempDir;
use wire::envelope::{Kind, Scanned, scan};
use wire::listing::ListOutcome;

type Outcome<T> = Result<T, Box<dyn Error>>;

const ROUNDS: usize = 30;
/// The calls of one round.
const CALLS: u64 = 4_096;
const LIST_ROUNDS: usize = 300;
/// The threads that carry calls.
const THREADS: usize = 2;

fn main() -> ExitCode {
    match measure() {
        Ok(figures) if figures.are_within_bounds() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("cannot measure: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Outcome<Figures> {
    let mut figures = Figures::default();
    let directory = tempfile::tempdir()?;
    deciding(&mut figures, &directory)?;
    listing(&mut figures, &directory)?;
    Ok(figures)
}

/// Servers with so many tools, judged, and the sessions that call them.
struct Stage {
    servers: Vec<Arc<Situation>>,
    sessions: Vec<Principal>,
    path: Path,
    frames: Vec<String>,
}

impl Stage {
    fn new(directory: &TempDir, servers: usize, tools: usize, sessions: usize) -> Outcome<Stage> {
        let servers: Outcome<Vec<_>> =
            (0..servers).map(|server| situation(directory, server, tools)).collect();
        let principal =
            |number| Principal::local_user(format!("user-{number}@example.com"), Vec::new(), now());
        Ok(Stage {
            servers: servers?,
            sessions: (0..sessions).map(principal).collect(),
            path: Path::for_one_server(PreflightLimits::default(), None),
            frames: (0..tools).map(frame).collect(),
        })
    }

    /// One call of a session: scanned, decided, recorded, settled, and answered by a server that does nothing.
    fn call(&self, recorder: &Recorder, number: u64) -> Outcome<()> {
        let begun = Instant::now();
        let pick = |count: usize| usize::try_from(number).unwrap_or_default() % count.max(1);
        let frame = self.frames.get(pick(self.frames.len())).ok_or("no frame")?;
        let situation = self.servers.get(pick(self.servers.len())).ok_or("no server")?;
        let principal = self.sessions.get(pick(self.sessions.len())).ok_or("no session")?;
        let Ok(Scanned::Message(envelope)) = scan(frame.as_bytes()) else {
            return Err("no message".into());
        };
        let Kind::Request { id, method } = &envelope.kind else { return Err("no request".into()) };
        let call = ParsedRequest::of(&envelope, id, method, None).call;
        let ruling = self.path.decide(&call, principal, situation, begun);
        if !matches!(ruling, Ruling::Allow) {
            return Err("a call was refused".into());
        }
        let about = Circumstances {
            situation,
            principal,
            trace_id: None,
            policy_id: None,
            approval: None,
            view_age: Some(Duration::from_secs(1)),
            admission_age: None,
            begun,
        };
        let recorded = recorder.decision(&call, &ruling, about)?;
        drop(recorder.settle(recorded.ticket)?);
        let status = OutcomeStatus::Success;
        recorder.outcome(recorded.receipt_id, status, 100, Duration::ZERO, Duration::ZERO);
        Ok(())
    }

    fn round(&self, recorder: &Recorder) {
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                scope.spawn(move || {
                    for number in (0..CALLS).skip(thread).step_by(THREADS) {
                        if let Err(error) = self.call(recorder, number) {
                            eprintln!("a call failed: {error}");
                        }
                    }
                });
            }
        });
    }
}

fn frame(tool: usize) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{tool},"method":"tools/call","params":{{"name":"tool_{tool}","arguments":{{"path":"/srv/work/report-{tool}.md","limit":20}}}}}}"#
    )
}

fn page(tools: usize) -> Arc<str> {
    let tool = |number| {
        format!(
            r#"{{"name":"tool_{number}","description":"Reads report {number} from the workspace and returns its text.","inputSchema":{{"type":"object","properties":{{"path":{{"type":"string"}},"limit":{{"type":"integer"}}}},"required":["path"]}}}}"#
        )
    };
    let tools: Vec<String> = (0..tools).map(tool).collect();
    format!(r#"{{"tools":[{}]}}"#, tools.join(",")).into()
}

/// A server of its own home, pinned at first use.
fn situation(directory: &TempDir, server: usize, tools: usize) -> Outcome<Arc<Situation>> {
    let home = Home::open(&directory.path().join(format!("server-{server}-{tools}")))?;
    let store = Witnessed::new(Box::new(SqliteStore::open(&home)?), &home);
    let rules = Rules {
        server: format!("server-{server}").parse()?,
        settings: Settings::default(),
        first_use: FirstUsePolicy::Trust,
        scope: DriftScope::Tool,
        mode: ListMode::Accepted,
        allowed: None,
        mirrors_parameters: false,
        profile: ServerProfile::default(),
    };
    let lists = ListKind::ALL.into_iter().map(|list| match list {
        ListKind::Tools => (list, ListOutcome::Pages(Arc::new(vec![page(tools)]))),
        ListKind::Prompts | ListKind::Resources | ListKind::ResourceTemplates => {
            (list, ListOutcome::NotOffered)
        }
    });
    let handshake = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"reports","version":"1"}}"#;
    let handshake = Some(handshake.into());
    let seen = Seen { handshake, lists: lists.collect(), ..Seen::default() };
    let surface = seen.surface().ok_or("a surface that cannot be read")?;
    let mut judge = Judge::new(store, rules, None);
    Ok(Arc::new(judge.take_in(&seen, surface, now())?.situation))
}

/// The processor time of a call, beside encoding, hashing and writing its two lines alone.
fn deciding(figures: &mut Figures, directory: &TempDir) -> Outcome<()> {
    let home = Home::open(&directory.path().join("home"))?;
    let settings = ReceiptSettings { fsync: Fsync::Never, ..ReceiptSettings::default() };
    let recorder = Recorder::new(Receipts::open(&home, settings)?);
    let mut file =
        OpenOptions::new().create(true).append(true).open(directory.path().join("plain"))?;
    let stages = [
        Stage::new(directory, 1, 10, 1)?,
        Stage::new(directory, 5, 10, 64)?,
        Stage::new(directory, 1, 10_000, 1)?,
        Stage::new(directory, 1, 10, 1_000)?,
    ];
    let mut best = [Duration::MAX; 5];
    for _ in 0..ROUNDS {
        let alone = cpu_time_of(|| {
            if let Err(error) = write_alone(&mut file, 0..CALLS) {
                eprintln!("a line was not written: {error}");
            }
        });
        let ours = stages.each_ref().map(|stage| cpu_time_of(|| stage.round(&recorder)));
        for (best, time) in best.iter_mut().zip([alone].into_iter().chain(ours)) {
            *best = time.min(*best);
        }
    }
    let [alone, one, many, tools, principals] = best;
    let each = |time: Duration| time.as_secs_f64() * 1e6 / CALLS as f64;
    println!(
        "processor time of a call on {THREADS} threads: its two lines alone {:.2} us, 1 session {:.2} us, 64 sessions on 5 servers {:.2} us",
        each(alone),
        each(one),
        each(many)
    );
    figures.tell("a call of 1 session, times its lines alone", ratio(one, alone), 2.0);
    figures.tell("a call of 64 sessions, times its lines alone", ratio(many, alone), 2.0);
    figures.tell("a call with 10,000 tools, times one with 10", ratio(tools, one), 1.1);
    figures.tell("a call with 1,000 principals, times one with 1", ratio(principals, one), 1.1);
    recorder.finish();
    Ok(())
}

/// A list of 1,000 tools for a caller that may see every third of them, beside sending the same bytes.
fn listing(figures: &mut Figures, directory: &TempDir) -> Outcome<()> {
    let situation = situation(directory, 0, 1_000)?;
    let view = &situation.view;
    let list = view.list(ListKind::Tools).ok_or("no list")?;
    let visible = list.visible(|key| key.bytes().map(u32::from).sum::<u32>() % 3 == 0);
    let whole = lists::answer(view, ListKind::Tools, Some(&visible), None, b"1").parts().concat();
    // Sending is a write to a stream that another thread reads.
    let (mut plain, ours) = (drained()?, drained()?);
    let mut outlet = LineOutlet::new(ours);
    let [sending, made] = best_times(
        LIST_ROUNDS,
        [
            &mut || {
                if let Err(error) = plain.write_all(&whole).and_then(|()| plain.write_all(b"\n")) {
                    eprintln!("a list was not sent: {error}");
                }
            },
            &mut || {
                let answer = lists::answer(view, ListKind::Tools, Some(&visible), None, b"1");
                if let Err(error) = outlet.write_line(&answer.parts()) {
                    eprintln!("a list was not sent: {error}");
                }
            },
        ],
    );
    println!("a list of {} bytes: sent in {sending:?}, made and sent in {made:?}", whole.len());
    figures.tell("a list for one principal, times sending its bytes", ratio(made, sending), 2.0);
    Ok(())
}

/// A stream whose other end is read and forgotten.
fn drained() -> Outcome<UnixStream> {
    let (ours, mut theirs) = UnixStream::pair()?;
    std::thread::spawn(move || std::io::copy(&mut theirs, &mut std::io::sink()));
    Ok(ours)
}
