//! Sessions of many principals on a few servers in one process, over in-memory transports.

use contract::surface::ListKind;
use engine::decide::{Path, PreflightLimits};
use engine::errands::run_one;
use engine::error_log::ErrorLog;
use engine::judge::{FirstUsePolicy, Instance, Judge, Rules, Seen};
use engine::outlet::{FreeMessage, LineOutlet, Outgoing, ServerOutlet};
use engine::principal::Principal;
use engine::recorder::{Recorder, now};
use engine::sentinel::Sentinel;
use engine::server::driver::Driver;
use engine::server::{Server, ServerParts, ServerSettings};
use engine::session::{Parts, Session};
use engine::situation::{DriftScope, ServerProfile, Situation};
use gate::posture::Settings;
use gate::shown::ListMode;
use std::error::Error;
use std::io;
use std::path::Path as FilePath;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::receipts::Settled;
use store::{Home, SqliteStore, Witnessed};
use wire::listing::ListOutcome;

pub type Outcome<T> = Result<T, Box<dyn Error>>;

const HANDSHAKE: &str = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"reports","version":"1"}}"#;
/// How long to wait for a session to be ready.
const PATIENCE: Duration = Duration::from_secs(60);

/// A call of one tool.
pub fn frame(tool: usize) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{tool},"method":"tools/call","params":{{"name":"tool_{tool}","arguments":{{"path":"/srv/work/report-{tool}.md","limit":20}}}}}}"#
    )
}

/// The response to that call.
pub fn answer(tool: usize) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{tool},"result":{{"content":[{{"type":"text","text":"report {tool}"}}]}}}}"#
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

fn judge_of(home: &Home, server: usize) -> Outcome<Judge> {
    let rules = Rules {
        server: format!("server-{server}").parse()?,
        settings: Settings::default(),
        first_use: FirstUsePolicy::Trust,
        scope: DriftScope::Tool,
        mode: ListMode::Accepted,
        allowed: None,
        mirrors_parameters: false,
        checks_input: false,
        profile: ServerProfile::default(),
        behavior: gate::behavior::Consent::default(),
        upper: engine::upper_tiers::UpperTiers::default(),
    };
    Ok(Judge::new(store_of(home)?, rules, None))
}

fn store_of(home: &Home) -> Outcome<Witnessed> {
    Ok(Witnessed::new(Box::new(SqliteStore::open(home)?), home))
}

/// A server with this many tools, pinned on first use in its own home.
pub fn situation(directory: &FilePath, server: usize, tools: usize) -> Outcome<Arc<Situation>> {
    let home = Home::open(&directory.join(format!("server-{server}-{tools}")))?;
    let lists = ListKind::ALL.into_iter().map(|list| match list {
        ListKind::Tools => (list, ListOutcome::Pages(Arc::new(vec![page(tools)]))),
        ListKind::Prompts | ListKind::Resources | ListKind::ResourceTemplates => {
            (list, ListOutcome::NotOffered)
        }
    });
    let handshake = Some(HANDSHAKE.into());
    let seen = Seen { handshake, lists: lists.collect(), ..Seen::default() };
    let surface = seen.surface().ok_or("a surface that cannot be read")?;
    Ok(Arc::new(judge_of(&home, server)?.take_in(&seen, surface, now())?.situation))
}

/// The server's end of a session, which receives messages as long as the server runs.
#[derive(Clone)]
struct ServerEnd {
    /// The thread that simulates the server. It gets every message except calls, which are only
    /// counted.
    plays: Option<Sender<(usize, Vec<u8>)>>,
    number: usize,
    calls: Arc<AtomicUsize>,
}

impl ServerEnd {
    fn put(&mut self, outgoing: &Outgoing<'_>) -> io::Result<()> {
        match &self.plays {
            Some(plays) if outgoing.method != Some("tools/call") => {
                let frame = (self.number, outgoing.frame.to_vec());
                plays.send(frame).map_err(|_| io::ErrorKind::BrokenPipe.into())
            }
            Some(_) | None => {
                self.calls.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
        }
    }
}

impl ServerOutlet for ServerEnd {
    fn send(&mut self, message: &FreeMessage<'_>) -> io::Result<()> {
        self.put(message.as_outgoing())
    }

    fn gather(&mut self, request: &Outgoing<'_>) -> bool {
        // Frames are sent one by one here, so only messages without a receipt are ever collected.
        let _ = self.put(request);
        true
    }

    fn flush(&mut self, _: Settled, last: Option<&Outgoing<'_>>) -> io::Result<()> {
        last.map_or(Ok(()), |last| self.put(last))
    }

    fn flush_free(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn discard(&mut self) {}

    fn close(&mut self) {}
}

/// Servers, and sessions that are ready to call them.
#[derive(Debug)]
pub struct Sessions {
    pub sessions: Vec<Arc<Session>>,
    /// The number of calls that arrived at servers.
    pub calls: Arc<AtomicUsize>,
}

impl Sessions {
    /// Opens sessions of this many principals on this many servers. Each session completes its
    /// handshake, and its tools become known.
    pub fn open(
        directory: &FilePath,
        recorder: &Arc<Recorder>,
        servers: usize,
        tools: usize,
        principals: usize,
        sessions: usize,
    ) -> Outcome<Sessions> {
        let calls = Arc::new(AtomicUsize::new(0));
        let mut all: Vec<Arc<Session>> = Vec::new();
        for number in 0..servers {
            let server = open_server(directory, number, tools, recorder.clone())?;
            let (plays, frames) = channel::<(usize, Vec<u8>)>();
            let mut own: Vec<Arc<Session>> = Vec::new();
            for session in (number..sessions).step_by(servers) {
                let subject = format!("user-{}@example.com", session % principals.max(1));
                let end = ServerEnd {
                    plays: Some(plays.clone()),
                    number: own.len(),
                    calls: calls.clone(),
                };
                let errands = server.clone();
                own.push(Session::open(Parts {
                    server: server.clone(),
                    instance: Instance::default(),
                    principal: Principal::local_user(subject, Vec::new(), now()),
                    to_client: Box::new(LineOutlet::new(io::sink())),
                    to_server: Box::new(end),
                    errands: Arc::new(move |key, errand| {
                        if let Some(session) = errands.session(key) {
                            run_one(&session, &errand);
                        }
                    }),
                })?);
            }
            play(own.clone(), tools, frames);
            own.iter().for_each(|session| greet(session));
            all.extend(own);
        }
        let opened = Sessions { sessions: all, calls };
        opened.wait_until_ready()?;
        Ok(opened)
    }

    /// Each session makes one call, which waits until the session's tools are known.
    fn wait_until_ready(&self) -> Outcome<()> {
        let before = self.calls.load(Ordering::Relaxed);
        self.sessions.iter().for_each(|session| call(session, frame(0).as_bytes()));
        let begun = std::time::Instant::now();
        while self.calls.load(Ordering::Relaxed) < before + self.sessions.len() {
            if begun.elapsed() > PATIENCE {
                return Err("the sessions are not ready in time".into());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.sessions.iter().for_each(|session| answered(session, answer(0).as_bytes()));
        Ok(())
    }
}

/// Makes a call as the client.
pub fn call(session: &Session, frame: &[u8]) {
    session.client_said(frame, false);
    session.client_paused();
}

/// Answers the call as the server.
pub fn answered(session: &Session, frame: &[u8]) {
    session.server_said(frame, false);
    session.server_paused();
}

fn greet(session: &Session) {
    let greeting = br#"{"jsonrpc":"2.0","id":"greeting","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
    call(session, greeting);
    call(session, br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
}

/// Simulates a server until its sessions are gone.
fn play(
    sessions: Vec<Arc<Session>>,
    tools: usize,
    frames: std::sync::mpsc::Receiver<(usize, Vec<u8>)>,
) {
    let page = page(tools);
    let sessions = Mutex::new(sessions);
    std::thread::spawn(move || {
        while let Ok((number, frame)) = frames.recv() {
            let message: serde_json::Value = serde_json::from_slice(&frame).unwrap_or_default();
            let Some(id) = message.get("id") else { continue };
            let method = message.get("method").and_then(serde_json::Value::as_str);
            let result = match method {
                Some("initialize") => HANDSHAKE,
                Some("tools/list") => &page,
                _ => "{}",
            };
            let sessions = sessions.lock().map(|sessions| sessions.get(number).cloned());
            if let Ok(Some(session)) = sessions {
                let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
                answered(&session, answer.as_bytes());
            }
        }
    });
}

fn open_server(
    directory: &FilePath,
    number: usize,
    tools: usize,
    recorder: Arc<Recorder>,
) -> Outcome<Arc<Server>> {
    let home = Home::open(&directory.join(format!("sessions-{number}-{tools}")))?;
    let mut judge = judge_of(&home, number)?;
    let begun = judge.begin(&Seen::default())?;
    let sentinel = Sentinel::new(store_of(&home)?.index_path(), None)?;
    let (driver, wakes) = channel();
    // Keep the view fresh, so that no list is fetched while calls are measured.
    let settings =
        ServerSettings { relist_max_age: Duration::from_secs(3_600), ..ServerSettings::default() };
    let server = Arc::new(Server::new(ServerParts {
        settings,
        path: Path::for_one_server(PreflightLimits::default(), None),
        recorder,
        judge,
        begun,
        sentinel,
        driver,
        errors: ErrorLog::new(home.path().join("errors.jsonl")),
        alarm: Box::new(|| {}),
        remark: Box::new(|_| {}),
    }));
    let looked_after = Driver::new(server.clone(), Box::new(|| None));
    std::thread::spawn(move || looked_after.run(&wakes));
    Ok(server)
}
