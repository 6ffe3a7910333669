//! Simulated servers, sessions of several principals on them, and the people who decide.

use engine::acts::incident::{self, Consent};
use engine::acts::quarantine;
use engine::decide::{Path, PreflightLimits};
use engine::errands::{Errand, run_one};
use engine::error_log::ErrorLog;
use engine::judge::{FirstUsePolicy, Instance, Judge, Rules, Seen};
use engine::outlet::{FreeMessage, LineOutlet, Outgoing, ServerOutlet};
use engine::principal::Principal;
use engine::recorder::{Recorder, now};
use engine::requests::SessionKey;
use engine::sentinel::Sentinel;
use engine::server::driver::{Driver, Wake};
use engine::server::{Server, ServerParts, ServerSettings};
use engine::session::{Parts, Session};
use engine::situation::{DriftScope, ServerProfile};
use gate::pins::Basis;
use gate::posture::Settings;
use gate::server::{ServerId, ServerStatus};
use gate::shown::ListMode;
use ledger::folder::Folder;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::io::{self, Read, Write};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use store::receipts::{
    DiskFolder, Fsync, Receipts, Settings as ReceiptSettings, Settled, public_keys,
};
use store::{
    Act, By, Home, Incident, IncidentLevel, IncidentScope, NewPin, SqliteStore, Store, StoreError,
    Witnessed,
};
use tempfile::TempDir;
use testing::wait_for;

const USUAL: &str = "Adds two numbers.";

/// What arrived at a client, in whole lines.
#[derive(Debug, Clone, Default)]
struct Heard(Arc<Mutex<Vec<u8>>>);

impl Write for Heard {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("a lock").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What a session sends to its server.
struct ToServer {
    number: usize,
    to: Sender<(usize, Vec<u8>)>,
    gathered: Vec<Vec<u8>>,
}

impl ToServer {
    fn put(&self, frame: &[u8]) -> io::Result<()> {
        self.to.send((self.number, frame.to_vec())).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl ServerOutlet for ToServer {
    fn send(&mut self, message: &FreeMessage<'_>) -> io::Result<()> {
        self.put(message.as_outgoing().frame)
    }

    fn gather(&mut self, request: &Outgoing<'_>) -> bool {
        self.gathered.push(request.frame.to_vec());
        false
    }

    fn flush(&mut self, _: Settled, last: Option<&Outgoing<'_>>) -> io::Result<()> {
        self.gathered.extend(last.map(|last| last.frame.to_vec()));
        self.flush_free()
    }

    fn flush_free(&mut self) -> io::Result<()> {
        std::mem::take(&mut self.gathered).iter().try_for_each(|frame| self.put(frame))
    }

    fn discard(&mut self) {
        self.gathered.clear();
    }

    fn close(&mut self) {}
}

/// A client and its session.
pub(crate) struct Client {
    pub(crate) session: Arc<Session>,
    server: usize,
    heard: Heard,
    sent: Mutex<HashSet<usize>>,
}

impl Client {
    pub(crate) fn heard(&self) -> Vec<Value> {
        let bytes = self.heard.0.lock().expect("a lock").clone();
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice(line).expect("JSON")).collect()
    }

    pub(crate) fn sent(&self) -> usize {
        self.sent.lock().expect("a lock").len()
    }

    fn answer(&self, id: usize) -> Option<Value> {
        let is_it = |message: &Value| message["id"] == id && message.get("method").is_none();
        self.heard().into_iter().find(is_it)
    }
}

/// What a server shows, and which requests it received.
#[derive(Debug, Default)]
struct Script {
    description: String,
    /// The descriptions that are shown to one session only, by session.
    apart: HashMap<usize, String>,
    /// Delays the answers to list requests, but not for these sessions.
    holds_lists: bool,
    served: HashSet<usize>,
    unanswered: Vec<(usize, Value)>,
    asked: usize,
    /// `capabilities.experimental` of the handshake over one session's connection.
    experimental: HashMap<usize, Value>,
    greeted: usize,
    calls: usize,
    prompts: usize,
}

impl Script {
    fn answers(&self, session: usize) -> bool {
        !self.holds_lists || self.served.contains(&session)
    }

    fn list(&self, session: usize) -> Value {
        let description = self.apart.get(&session).unwrap_or(&self.description);
        let schema = json!({"type": "object", "properties": {"session": {"type": "number"}}});
        json!({"tools": [{"name": "add", "description": description, "inputSchema": schema}]})
    }
}

/// One server: the shared state, and the simulated part.
pub(crate) struct ServerDesk {
    pub(crate) id: ServerId,
    script: Arc<Mutex<Script>>,
    driver: Sender<Wake>,
    clients: Clients,
}

type Clients = Arc<Mutex<HashMap<usize, Arc<Session>>>>;

impl ServerDesk {
    /// Changes the server's tool and notifies every session.
    pub(crate) fn change(&self, description: &str) {
        self.script.lock().expect("a lock").description = description.to_owned();
        let clients: Vec<_> = self.clients.lock().expect("a lock").values().cloned().collect();
        for session in clients {
            session.server_said(
                br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
                false,
            );
            session.server_paused();
        }
    }

    pub(crate) fn show_to(&self, session: usize, description: &str) {
        self.script.lock().expect("a lock").apart.insert(session, description.to_owned());
    }

    pub(crate) fn hold_lists(&self) {
        self.script.lock().expect("a lock").holds_lists = true;
    }

    pub(crate) fn release_lists_of(&self, session: usize) {
        self.script.lock().expect("a lock").served.insert(session);
        self.answer_held();
    }

    pub(crate) fn release_lists(&self) {
        self.script.lock().expect("a lock").holds_lists = false;
        self.answer_held();
    }

    fn answer_held(&self) {
        let answers: Vec<(usize, Value)> = {
            let mut script = self.script.lock().expect("a lock");
            let unanswered = std::mem::take(&mut script.unanswered);
            let (now, later): (Vec<_>, Vec<_>) =
                unanswered.into_iter().partition(|(session, _)| script.answers(*session));
            script.unanswered = later;
            let answer = |(session, id)| (session, answer(&id, &script.list(session)));
            now.into_iter().map(answer).collect()
        };
        answers.iter().for_each(|(session, answer)| say(&self.clients, *session, answer));
    }

    /// Waits until the server receives a request for its tools.
    pub(crate) fn wait_for_list(&self) {
        wait_for("a request for the list", || (self.lists_asked_for() > 0).then_some(()));
    }

    pub(crate) fn show_experimental(&self, session: usize, value: Value) {
        self.script.lock().expect("a lock").experimental.insert(session, value);
    }

    pub(crate) fn greeted(&self) -> usize {
        self.script.lock().expect("a lock").greeted
    }

    pub(crate) fn calls(&self) -> usize {
        self.script.lock().expect("a lock").calls
    }

    pub(crate) fn prompts(&self) -> usize {
        self.script.lock().expect("a lock").prompts
    }

    /// Changes the server's tool and notifies one session.
    pub(crate) fn change_telling(&self, session: usize, description: &str) {
        self.script.lock().expect("a lock").description = description.to_owned();
        let message = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        say(&self.clients, session, &message);
    }

    pub(crate) fn lists_asked_for(&self) -> usize {
        self.script.lock().expect("a lock").asked
    }
}

fn answer(id: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn say(clients: &Clients, session: usize, message: &Value) {
    let session = clients.lock().expect("a lock").get(&session).cloned();
    if let Some(session) = session {
        session.server_said(message.to_string().as_bytes(), false);
        session.server_paused();
    }
}

/// Simulates a server: answers what its sessions send.
fn play(script: &Mutex<Script>, clients: &Clients, session: usize, frame: &[u8]) {
    let message: Value = serde_json::from_slice(frame).expect("JSON");
    let Some(id) = message.get("id") else { return };
    let result = match message["method"].as_str() {
        Some("initialize" | "server/discover") => {
            let mut result = json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {"listChanged": true}},
                "serverInfo": {"name": "adder", "version": "1"},
            });
            let experimental = script.lock().expect("a lock").experimental.get(&session).cloned();
            if let Some(experimental) = experimental {
                result["capabilities"]["experimental"] = experimental;
            }
            say(clients, session, &answer(id, &result));
            script.lock().expect("a lock").greeted += 1;
            return;
        }
        Some("prompts/list") => {
            let error = json!({"code": -32601, "message": "method not found"});
            say(clients, session, &json!({"jsonrpc": "2.0", "id": id, "error": error}));
            script.lock().expect("a lock").prompts += 1;
            return;
        }
        Some("ping") => json!({}),
        Some("tools/list") => {
            let mut script = script.lock().expect("a lock");
            script.asked += 1;
            if !script.answers(session) {
                return script.unanswered.push((session, id.clone()));
            }
            script.list(session)
        }
        Some("tools/call") => {
            script.lock().expect("a lock").calls += 1;
            let text = message["params"]["arguments"]["session"].to_string();
            json!({"content": [{"type": "text", "text": text}]})
        }
        _ => return,
    };
    say(clients, session, &answer(id, &result));
}

pub(crate) struct Hall {
    pub(crate) servers: Vec<ServerDesk>,
    pub(crate) sessions: Vec<Client>,
    recorder: Arc<Recorder>,
    pub(crate) home: Home,
    _directory: TempDir,
}

impl Hall {
    pub(crate) fn new(servers: usize, principals: usize, sessions: usize) -> Hall {
        Hall::with_instances(servers, principals, sessions, |_| 0)
    }

    /// Sessions whose requests go to the processes given by `instance`.
    pub(crate) fn with_instances(
        servers: usize,
        principals: usize,
        sessions: usize,
        instance: fn(usize) -> u64,
    ) -> Hall {
        let plain = || (ServerSettings::default(), None);
        Hall::set_up(servers, principals, sessions, instance, plain)
    }

    pub(crate) fn set_up(
        servers: usize,
        principals: usize,
        sessions: usize,
        instance: fn(usize) -> u64,
        mut settings: impl FnMut() -> (ServerSettings, Option<engine::admission::Checker>),
    ) -> Hall {
        let directory = tempfile::tempdir().expect("a directory");
        let home = Home::open(&directory.path().join("home")).expect("a home");
        let receipt_settings =
            ReceiptSettings { fsync: Fsync::Never, ..ReceiptSettings::default() };
        let receipts = Receipts::open(&home, receipt_settings).expect("receipts");
        let recorder = Arc::new(Recorder::new(receipts));
        let mut desks = Vec::new();
        let mut upstreams = Vec::new();
        for number in 0..servers {
            let (server, driver) = open_server(&home, number, recorder.clone(), settings());
            let script = Script { description: USUAL.to_owned(), ..Script::default() };
            let (script, clients) = (Arc::new(Mutex::new(script)), Clients::default());
            let (to_server, frames) = channel::<(usize, Vec<u8>)>();
            let (to_errands, errands) = channel::<(SessionKey, Errand)>();
            {
                let (script, clients) = (script.clone(), clients.clone());
                std::thread::spawn(move || {
                    while let Ok((session, frame)) = frames.recv() {
                        play(&script, &clients, session, &frame);
                    }
                });
            }
            {
                let server = server.clone();
                std::thread::spawn(move || {
                    while let Ok((key, errand)) = errands.recv() {
                        if let Some(session) = server.session(key) {
                            run_one(&session, &errand);
                        }
                    }
                });
            }
            let id = server_id(number);
            desks.push(ServerDesk { id, script, driver, clients });
            upstreams.push((server, to_server, to_errands));
        }
        let open = |number: usize| {
            let server_number = number % servers;
            let (server, to_server, to_errands) = &upstreams[server_number];
            let (heard, to_errands) = (Heard::default(), to_errands.clone());
            let subject = format!("user-{}@example.com", number % principals);
            let session = Session::open(Parts {
                server: server.clone(),
                instance: Instance(instance(number)),
                principal: Principal::local_user(subject, Vec::new(), now()),
                to_client: Box::new(LineOutlet::new(heard.clone())),
                to_server: Box::new(ToServer {
                    number,
                    to: to_server.clone(),
                    gathered: Vec::new(),
                }),
                errands: Arc::new(move |key, errand| {
                    to_errands.send((key, errand)).expect("errands are run");
                }),
            })
            .expect("a session");
            desks[server_number].clients.lock().expect("a lock").insert(number, session.clone());
            Client { session, server: server_number, heard, sent: Mutex::default() }
        };
        let sessions = (0..sessions).map(open).collect();
        Hall { servers: desks, sessions, recorder, home, _directory: directory }
    }

    pub(crate) fn greet(&self, session: usize) {
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
        self.request(session, 1, "initialize", &params);
        self.answer(session, 1);
        self.say(session, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }

    pub(crate) fn list(&self, session: usize, id: usize) {
        self.request(session, id, "tools/list", &json!({}));
    }

    pub(crate) fn send(&self, session: usize, id: usize, params: &Value) {
        self.request(session, id, "tools/call", params);
    }

    pub(crate) fn ask(&self, session: usize, id: usize, params: &Value) -> Value {
        self.send(session, id, params);
        self.answer(session, id)
    }

    pub(crate) fn request(&self, session: usize, id: usize, method: &str, params: &Value) {
        self.sessions[session].sent.lock().expect("a lock").insert(id);
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.say(session, &message);
    }

    pub(crate) fn say(&self, session: usize, message: &Value) {
        let session = &self.sessions[session].session;
        session.client_said(message.to_string().as_bytes(), false);
        session.client_paused();
    }

    pub(crate) fn answer(&self, session: usize, id: usize) -> Value {
        wait_for(&format!("an answer to {id}"), || self.sessions[session].answer(id))
    }

    pub(crate) fn hears(&self, session: usize, method: &str) {
        let heard = || self.sessions[session].heard().into_iter();
        wait_for(method, || heard().find(|message| message["method"] == method));
    }

    /// Waits until every request is answered. Returns how many were sent.
    pub(crate) fn wait_for_all_answers(&self) -> usize {
        for client in &self.sessions {
            let sent: Vec<usize> = client.sent.lock().expect("a lock").iter().copied().collect();
            for id in sent {
                let what = format!("an answer of {} to {id}", self.servers[client.server].id);
                wait_for(&what, || client.answer(id));
            }
        }
        self.sessions.iter().map(Client::sent).sum()
    }

    /// Approves what was last observed. If the server changes meanwhile, does nothing.
    pub(crate) fn approve(&self, desk: &ServerDesk) {
        let mut store = store_of(&self.home);
        let snapshot = store.snapshot(&desk.id).expect("a snapshot");
        let Some(observation) = snapshot.observation.as_ref() else { return };
        let surface = observation.surface().expect("a surface");
        let mut act = Act::new(&desk.id, now(), "ada", "server.approve");
        act.expect = Some(snapshot.revision());
        act.status = Some(ServerStatus::Verified);
        let pinned = |entry: &contract::surface::Entry| NewPin {
            entry: entry.clone(),
            basis: Basis::Person,
        };
        act.pins = surface.entries().map(pinned).collect();
        match store.record(act) {
            Ok(_) | Err(StoreError::Changed { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    pub(crate) fn quarantine(&self, desk: &ServerDesk) {
        let mut store = store_of(&self.home);
        if store.server(&desk.id).expect("a store").is_some() {
            let as_usual = |_: &ServerId| Settings::default();
            quarantine(&mut store, &desk.id, None, &as_usual, by()).expect("a quarantine");
        }
    }

    pub(crate) fn release(&self, desk: &ServerDesk) {
        let mut store = store_of(&self.home);
        if store.server(&desk.id).expect("a store").is_some() {
            let mut act = Act::new(&desk.id, now(), "ada", "server.release");
            act.status = Some(ServerStatus::Verified);
            store.record(act).expect("a release");
        }
    }

    pub(crate) fn incident(&self, desk: &ServerDesk) {
        let mut store = store_of(&self.home);
        let scope = match store.server(&desk.id).expect("a store") {
            Some(_) => IncidentScope::servers([desk.id.clone()].into()),
            None => IncidentScope::All,
        };
        let incident = Incident { level: IncidentLevel::High, scope, reason: None };
        incident::begin(&mut store, &incident, Consent::Given, by()).expect("an incident");
    }

    pub(crate) fn end_incident(&self) {
        incident::end(&mut store_of(&self.home), "over", Consent::Given, by()).expect("an end");
    }

    /// Ends the drivers and the ledger.
    pub(crate) fn finish(&self) {
        for desk in &self.servers {
            desk.driver.send(Wake::End).expect("a driver");
        }
        self.recorder.finish();
    }

    pub(crate) fn ledger(&self) -> Vec<Value> {
        self.lines(false)
    }

    pub(crate) fn lines(&self, of_index: bool) -> Vec<Value> {
        let folder = DiskFolder::new(&self.home.receipts_path());
        let listing = folder.listing().expect("a listing");
        let mut lines = Vec::new();
        for (chain, files) in
            listing.chains.iter().filter(|(chain, _)| chain.is_index() == of_index)
        {
            for number in files.segments.keys() {
                let mut text = String::new();
                folder
                    .segment(chain, *number)
                    .expect("a segment")
                    .read_to_string(&mut text)
                    .expect("text");
                lines.extend(
                    text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")),
                );
            }
        }
        lines
    }

    pub(crate) fn verify(&self) {
        let folder = DiskFolder::new(&self.home.receipts_path());
        let keys = public_keys(&self.home.receipts_public_key_path()).expect("keys");
        let report = ledger::verify::verify(&folder, &keys, &[], &|_| {}).expect("a folder");
        assert!(report.problems.is_empty(), "{:?}", report.problems);
    }
}

fn by() -> By<'static> {
    By { name: "ada", at: now() }
}

fn server_id(number: usize) -> ServerId {
    format!("server-{number}").parse().expect("an id")
}

fn store_of(home: &Home) -> Witnessed {
    Witnessed::new(Box::new(SqliteStore::open(home).expect("a store")), home)
}

/// Opens a server, and starts its driver thread.
fn open_server(
    home: &Home,
    number: usize,
    recorder: Arc<Recorder>,
    (settings, checker): (ServerSettings, Option<engine::admission::Checker>),
) -> (Arc<Server>, Sender<Wake>) {
    let rules = Rules {
        server: server_id(number),
        settings: Settings::default(),
        first_use: FirstUsePolicy::Trust,
        scope: DriftScope::Tool,
        mode: ListMode::default(),
        allowed: None,
        mirrors_parameters: false,
        checks_input: false,
        profile: ServerProfile::default(),
        behavior: gate::behavior::Consent::default(),
        upper: engine::upper_tiers::UpperTiers::default(),
    };
    let mut judge = Judge::new(store_of(home), rules, None);
    let begun = judge.begin(&Seen::default()).expect("a beginning");
    let sentinel = Sentinel::new(store_of(home).index_path(), None).expect("a sentinel");
    let (driver, wakes) = channel();
    let server = Arc::new(Server::new(ServerParts {
        settings,
        path: Path::for_one_server(PreflightLimits::default(), None),
        recorder,
        judge,
        begun,
        sentinel,
        driver: driver.clone(),
        errors: ErrorLog::new(home.path().join("errors.jsonl")),
        alarm: Box::new(|| {}),
        remark: Box::new(|_| {}),
    }));
    let looked_after = Driver::new(server.clone(), Box::new(|| None)).admitting(checker);
    std::thread::spawn(move || looked_after.run(&wakes));
    (server, driver)
}
