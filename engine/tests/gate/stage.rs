//! A simulated client and server, with the real gate between them.

use attest::ToolAllowlist;
use contract::origin::{ProgramOrigin, Redactor};
use contract::surface::ListKind;
use contract::time::Timestamp;
use engine::admission::Checker;
use engine::behavior::Probe;
use engine::call::Call;
use engine::decide::{ApprovalDesk, Authorization, Authorizer, Path, PreflightLimits};
use engine::error_log::ErrorLog;
use engine::judge::{FirstUsePolicy, Instance, Judge, Rules, Seen};
use engine::outlet::{FreeMessage, LineOutlet, Outgoing, ServerOutlet};
use engine::principal::Principal;
use engine::recorder::{Recorder, now};
use engine::sentinel::Sentinel;
use engine::server::driver::{Driver, SessionWake, Wake};
use engine::server::{Server, ServerParts, ServerSettings};
use engine::session::{Parts, Session};
use engine::situation::{DriftScope, ServerProfile};
use engine::upper_tiers::UpperTiers;
use gate::behavior::Consent;
use gate::posture::{Posture, Settings};
use gate::server::ServerId;
use gate::shown::ListMode;
use gate::view::{ListView, Visible};
use ledger::folder::{ChainId, Folder};
use policy::preflight::{RateLimiter, Throttle};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use store::receipts::{DiskFolder, Receipts, Settings as ReceiptSettings, Settled};
use store::{Home, Launch, SqliteStore, Witnessed};
use tempfile::TempDir;
pub(crate) use testing::{wait_for, wait_until};

/// Messages that arrived, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arrived(Arc<Mutex<Vec<Vec<u8>>>>);

impl Arrived {
    pub(crate) fn all(&self) -> Vec<Vec<u8>> {
        self.0.lock().expect("a lock").clone()
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        self.all().into_iter().map(|bytes| String::from_utf8(bytes).expect("UTF-8")).collect()
    }

    pub(crate) fn clear(&self) {
        self.0.lock().expect("a lock").clear();
    }

    fn push(&self, message: &[u8]) {
        self.0.lock().expect("a lock").push(message.to_vec());
    }
}

/// The client's end, which receives whole lines.
struct ClientEnd {
    arrived: Arrived,
    line: Vec<u8>,
}

impl Write for ClientEnd {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for byte in bytes {
            if *byte == b'\n' {
                self.arrived.push(&std::mem::take(&mut self.line));
            } else {
                self.line.push(*byte);
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The server's end, which stores what arrived and passes it to the simulated server.
struct ServerEnd {
    arrived: Arrived,
    cut_off: Arrived,
    play: Sender<Vec<u8>>,
    gathered: Vec<Vec<u8>>,
    is_closed: bool,
}

impl ServerEnd {
    fn arrive(&mut self, frame: &[u8]) -> io::Result<()> {
        if self.is_closed {
            self.cut_off.push(frame);
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.arrived.push(frame);
        self.play.send(frame.to_vec()).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl ServerOutlet for ServerEnd {
    fn gather(&mut self, message: &Outgoing<'_>) -> bool {
        self.gathered.push(message.frame.to_vec());
        false
    }

    fn flush(&mut self, _: Settled, last: Option<&Outgoing<'_>>) -> io::Result<()> {
        self.gathered.extend(last.map(|last| last.frame.to_vec()));
        self.flush_free()
    }

    fn flush_free(&mut self) -> io::Result<()> {
        let gathered = std::mem::take(&mut self.gathered);
        gathered.iter().try_for_each(|frame| self.arrive(frame))
    }

    fn discard(&mut self) {
        self.gathered.clear();
    }

    fn send(&mut self, message: &FreeMessage<'_>) -> io::Result<()> {
        self.arrive(message.as_outgoing().frame)
    }

    fn close(&mut self) {
        self.is_closed = true;
    }
}

/// The behavior of the simulated server.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) tools: String,
    pub(crate) instructions: Option<String>,
    /// `capabilities.experimental` of its handshake; `null` for none.
    pub(crate) experimental: Value,
    pub(crate) protocol_version: String,
    /// Calls are answered immediately.
    pub(crate) answers_calls: bool,
    /// Whether the server answers list requests.
    pub(crate) answers_lists: bool,
    /// It declares prompts, and never answers requests for their list.
    pub(crate) hides_prompts: bool,
    /// The number of tools per page; `None` for a single page.
    pub(crate) page: Option<usize>,
}

impl Default for Script {
    fn default() -> Self {
        Script {
            tools: tools(&[tool("add", "Adds two numbers.")]),
            instructions: None,
            experimental: Value::Null,
            protocol_version: "2025-06-18".to_owned(),
            answers_calls: true,
            answers_lists: true,
            hides_prompts: false,
            page: None,
        }
    }
}

pub(crate) fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object", "properties": {"a": {"type": "number"}}}})
}

pub(crate) fn tools(tools: &[Value]) -> String {
    json!(tools).to_string()
}

/// Requires another person's approval for every call of a tool.
#[derive(Debug)]
struct AskOthers;

impl Authorizer for AskOthers {
    fn authorize(&self, _: &Principal, _: &ServerId, call: &Call<'_>) -> Authorization {
        match call.target {
            Some(_) => {
                Authorization::NeedsApproval { policy: None, groups: vec!["leads".to_owned()] }
            }
            None => Authorization::Permit { policy: None },
        }
    }

    fn visible(&self, _: &Principal, _: &ServerId, _: ListKind, list: &ListView) -> Arc<Visible> {
        Arc::new(list.visible(|_| true))
    }
}

/// The configuration of a stage.
pub(crate) struct Setting {
    pub(crate) posture: Posture,
    pub(crate) session: ServerSettings,
    pub(crate) first_use: FirstUsePolicy,
    pub(crate) scope: DriftScope,
    pub(crate) script: Script,
    pub(crate) limits: PreflightLimits,
    pub(crate) allowed: Option<Arc<ToolAllowlist>>,
    /// The tool whose calls the person at the client must allow.
    pub(crate) approved: Option<&'static str>,
    /// Where other people are asked to approve every call.
    pub(crate) desk: Option<Arc<dyn ApprovalDesk>>,
    /// The rate limit for calls.
    pub(crate) rate: Option<&'static str>,
    pub(crate) checker: Option<Checker>,
    /// The package program that the server is configured as.
    pub(crate) program: Option<&'static str>,
    /// Whether and how behavior may be tested.
    pub(crate) behavior: Consent,
    /// The tiers to consult about changes.
    pub(crate) upper: UpperTiers,
    pub(crate) probe: Option<Box<dyn Probe>>,
}

impl Default for Setting {
    fn default() -> Self {
        Setting {
            posture: Posture::Guard,
            session: ServerSettings::default(),
            first_use: FirstUsePolicy::Trust,
            scope: DriftScope::Tool,
            script: Script::default(),
            limits: PreflightLimits::default(),
            allowed: None,
            approved: None,
            desk: None,
            rate: None,
            checker: None,
            program: None,
            behavior: Consent::Off,
            upper: UpperTiers::default(),
            probe: None,
        }
    }
}

pub(crate) struct Stage {
    pub(crate) session: Arc<Session>,
    pub(crate) client: Arrived,
    pub(crate) server: Arrived,
    /// The bytes sent to the server after its input was closed.
    pub(crate) cut_off: Arrived,
    pub(crate) script: Arc<Mutex<Script>>,
    pub(crate) remarks: Arrived,
    alarms: Arc<AtomicUsize>,
    keeper: Sender<Wake>,
    keeping: Option<JoinHandle<()>>,
    pub(crate) home: Home,
    directory: Option<TempDir>,
}

pub(crate) fn server_id() -> ServerId {
    "calc".parse().expect("an id")
}

impl Stage {
    pub(crate) fn new(setting: Setting) -> Stage {
        let directory = tempfile::tempdir().expect("a directory");
        let home = Home::open(&directory.path().join("home")).expect("a home");
        Stage::in_home(setting, home, Some(directory))
    }

    /// Another session in the same home, as after a restart.
    pub(crate) fn again(mut self, setting: Setting) -> Stage {
        let directory = self.directory.take();
        let home = Home::open(self.home.path()).expect("a home");
        drop(self);
        Stage::in_home(setting, home, directory)
    }

    fn in_home(setting: Setting, home: Home, directory: Option<TempDir>) -> Stage {
        let [client, server, cut_off, remarks] = std::array::from_fn(|_| Arrived::default());
        let script = Arc::new(Mutex::new(setting.script));
        let rules = Rules {
            server: server_id(),
            settings: Settings::with_posture(setting.posture),
            first_use: setting.first_use,
            scope: setting.scope,
            mode: ListMode::default(),
            allowed: setting.allowed.clone(),
            mirrors_parameters: false,
            checks_input: false,
            profile: ServerProfile::default(),
            behavior: setting.behavior,
            upper: setting.upper,
        };
        let receipts = Receipts::open(&home, ReceiptSettings::default()).expect("receipts");
        let mut judge = Judge::new(store_of(&home), rules, Some(launch()));
        let begun = judge.begin(&Seen::default()).expect("a beginning");
        let sentinel = Sentinel::new(store_of(&home).index_path(), None).expect("a sentinel");
        let principal = Principal::local_user("ada".to_owned(), Vec::new(), now());
        let (keeper, wakes) = channel();
        let (to_errands, errands) = channel();
        let (play, plays) = channel::<Vec<u8>>();
        let end = ClientEnd { arrived: client.clone(), line: Vec::new() };
        let noted = remarks.clone();
        let alarms = Arc::new(AtomicUsize::new(0));
        let raised = alarms.clone();
        let path = Path::for_one_server(setting.limits, setting.allowed);
        let path = match setting.rate {
            Some(rate) => {
                let throttle = Throttle { rate: rate.parse().ok(), ..Throttle::default() };
                path.throttled_by(Arc::new(RateLimiter::new(throttle)))
            }
            None => path,
        };
        let path = match setting.approved {
            Some(tool) => path.asking_person_for([tool.to_owned()].into()),
            None => path,
        };
        let path = match setting.desk {
            Some(desk) => path.authorized_by(Arc::new(AskOthers)).approved_by(desk),
            None => path,
        };
        let gated = Arc::new(Server::new(ServerParts {
            settings: setting.session,
            path,
            recorder: Arc::new(Recorder::new(receipts)),
            judge,
            begun,
            sentinel,
            driver: keeper.clone(),
            errors: ErrorLog::new(home.path().join("errors.jsonl")),
            alarm: Box::new(move || {
                raised.fetch_add(1, Ordering::Relaxed);
            }),
            remark: Box::new(move |sentence| noted.push(sentence.as_bytes())),
        }));
        let session = Session::open(Parts {
            server: gated.clone(),
            instance: Instance::default(),
            principal,
            to_client: Box::new(LineOutlet::new(end)),
            to_server: Box::new(ServerEnd {
                arrived: server.clone(),
                cut_off: cut_off.clone(),
                play,
                gathered: Vec::new(),
                is_closed: false,
            }),
            errands: Arc::new(move |_, errand| to_errands.send(errand).expect("errands are run")),
        })
        .expect("a session");
        let runner = session.clone();
        std::thread::spawn(move || engine::errands::run(&runner, &errands));
        let redactor = Redactor { exists: &|_| true, keyed_hash: &str::to_owned };
        let origin = setting.program.map(|program| ProgramOrigin::of(program, &[], &redactor));
        let origin = move || origin.as_ref().and_then(|origin| origin.entry().ok());
        let looked_after = Driver::new(gated, Box::new(origin));
        let looked_after = looked_after.admitting(setting.checker).probing(setting.probe);
        let keeping = Some(std::thread::spawn(move || looked_after.run(&wakes)));
        let (played, plan) = (session.clone(), script.clone());
        std::thread::spawn(move || {
            while let Ok(message) = plays.recv() {
                let plan = plan.lock().expect("a lock").clone();
                if let Some(answer) = play_server(&plan, &message) {
                    played.server_said(answer.as_bytes(), false);
                    played.server_paused();
                }
            }
        });
        Stage {
            session,
            client,
            server,
            cut_off,
            script,
            remarks,
            alarms,
            keeper,
            keeping,
            home,
            directory,
        }
    }

    /// A stage whose client has completed an ordinary handshake.
    pub(crate) fn greeted(setting: Setting) -> Stage {
        let stage = Stage::new(setting);
        stage.greet(&json!({}));
        stage
    }

    pub(crate) fn greet(&self, capabilities: &Value) {
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": {"name": "test", "version": "1"}});
        let answer = self.ask(json!("greeting"), "initialize", params);
        assert!(answer.get("result").is_some(), "{answer}");
        self.client_says(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    }

    /// How often the alarm was raised.
    pub(crate) fn alarms(&self) -> usize {
        self.alarms.load(Ordering::Relaxed)
    }

    /// Sends a request and waits for its response.
    pub(crate) fn ask(&self, id: Value, method: &str, params: Value) -> Value {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        self.answer(&id)
    }

    pub(crate) fn say(&self, message: &Value) {
        self.client_says(message.to_string().as_bytes());
    }

    pub(crate) fn client_says(&self, message: &[u8]) {
        self.session.client_said(message, false);
        self.session.client_paused();
    }

    pub(crate) fn server_says(&self, message: &[u8]) {
        self.session.server_said(message, false);
        self.session.server_paused();
    }

    pub(crate) fn call(&self, id: u64, name: &str, arguments: Value) -> Value {
        self.ask(json!(id), "tools/call", json!({"name": name, "arguments": arguments}))
    }

    pub(crate) fn list(&self, id: u64) -> Vec<Value> {
        let answer = self.ask(json!(id), "tools/list", json!({}));
        answer["result"]["tools"].as_array().cloned().unwrap_or_else(|| panic!("no list: {answer}"))
    }

    /// Requests the tools of a server whose list is refused. Returns the refusal.
    pub(crate) fn refused_list(&self, id: u64) -> Value {
        let mut answer = self.ask(json!(id), "tools/list", json!({}));
        assert!(answer.get("result").is_none(), "not refused: {answer}");
        answer["error"].take()
    }

    /// Waits for the response with this id.
    pub(crate) fn answer(&self, id: &Value) -> Value {
        let is_it =
            |message: &Value| message.get("id") == Some(id) && message.get("method").is_none();
        self.client_hears(&format!("an answer to {id}"), is_it)
    }

    pub(crate) fn client_hears(&self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        wait_for(what, || {
            let messages = self.client.all();
            messages.iter().filter_map(|bytes| serde_json::from_slice(bytes).ok()).find(&is_it)
        })
    }

    pub(crate) fn server_hears(&self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        wait_for(what, || {
            let messages = self.server.all();
            messages.iter().filter_map(|bytes| serde_json::from_slice(bytes).ok()).find(&is_it)
        })
    }

    /// The calls that arrived at the server.
    pub(crate) fn calls_at_server(&self) -> Vec<String> {
        self.server.texts().into_iter().filter(|text| text.contains("tools/call")).collect()
    }

    /// Changes the server's tools without a notification.
    pub(crate) fn change_unsaid(&self, tools: String) {
        self.script.lock().expect("a lock").tools = tools;
    }

    /// Changes the server's tools and sends a notification.
    pub(crate) fn change(&self, tools: String) {
        self.change_unsaid(tools);
        self.server_says(br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    }

    /// Wakes the keeper, as if a part of the gate had done so.
    pub(crate) fn wake_keeper(&self, wake: SessionWake) {
        self.keeper.send(Wake::Session(self.session.key(), wake)).expect("a keeper");
    }

    /// Returns when the keeper has processed all previous events and has ended. What has not
    /// happened by then will never happen.
    pub(crate) fn end_keeper(&mut self) {
        self.keeper.send(Wake::End).expect("a keeper");
        if let Some(keeping) = self.keeping.take() {
            keeping.join().expect("the keeper does not panic");
        }
    }

    /// The contents of the home's error log.
    pub(crate) fn errors(&self) -> String {
        std::fs::read_to_string(self.home.path().join("errors.jsonl")).unwrap_or_default()
    }

    /// The store, as another process sees and uses it.
    pub(crate) fn store(&self) -> Witnessed {
        store_of(&self.home)
    }

    /// How often something was counted today. Used once the keeper has ended.
    pub(crate) fn count(&self, name: &str) -> u64 {
        let today = store::Day::of(at());
        let yesterday = store::Day(today.0 - 1);
        let counts = store::StatisticsStore::counts(&self.store(), yesterday, today);
        let counts = counts.expect("counts").into_iter();
        counts.filter(|count| count.name == name).map(|count| count.value).sum()
    }

    /// All lines of the ledger except the index.
    pub(crate) fn ledger(&self) -> Vec<Value> {
        self.lines(|chain| !chain.is_index())
    }

    /// The lines of the index.
    pub(crate) fn index(&self) -> Vec<Value> {
        self.lines(ChainId::is_index)
    }

    fn lines(&self, is_wanted: impl Fn(&ChainId) -> bool) -> Vec<Value> {
        lines_in(&self.home.receipts_path(), is_wanted)
    }
}

/// The lines of these chains in a folder of receipts.
pub(crate) fn lines_in(
    receipts: &std::path::Path,
    is_wanted: impl Fn(&ChainId) -> bool,
) -> Vec<Value> {
    let folder = DiskFolder::new(receipts);
    let listing = folder.listing().expect("a listing");
    let mut lines = Vec::new();
    for (chain, files) in listing.chains.iter().filter(|(chain, _)| is_wanted(chain)) {
        for number in files.segments.keys() {
            let mut text = String::new();
            let mut segment = folder.segment(chain, *number).expect("a segment");
            io::Read::read_to_string(&mut segment, &mut text).expect("text");
            lines.extend(text.lines().map(|line| serde_json::from_str(line).expect("JSON")));
        }
    }
    lines
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self.keeper.send(Wake::End);
    }
}

/// The server's launch.
fn launch() -> Launch {
    Launch::Program {
        command: vec!["calc".to_owned()],
        directory: None,
        environment_names: Vec::new(),
        has_secrets: false,
        client_capabilities: None,
        posture: None,
        identity: None,
    }
}

pub(crate) fn store_of(home: &Home) -> Witnessed {
    Witnessed::new(Box::new(SqliteStore::open(home).expect("a store")), home)
}

pub(crate) fn at() -> Timestamp {
    engine::recorder::now()
}

/// The server's response to a message.
fn play_server(script: &Script, message: &[u8]) -> Option<String> {
    let message: Value = serde_json::from_slice(message).ok()?;
    let id = message.get("id")?;
    let result = match message["method"].as_str()? {
        "prompts/list" if script.hides_prompts => return None,
        "initialize" => {
            let mut result = json!({
                "protocolVersion": script.protocol_version,
                "capabilities": {"tools": {"listChanged": true}},
                "serverInfo": {"name": "calc", "version": "1"},
            });
            if !script.experimental.is_null() {
                result["capabilities"]["experimental"] = script.experimental.clone();
            }
            if script.hides_prompts {
                result["capabilities"]["prompts"] = json!({});
            }
            if let Some(instructions) = &script.instructions {
                result["instructions"] = json!(instructions);
            }
            result.to_string()
        }
        "server/discover" => json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "serverInfo": {"name": "calc", "version": "1"}}).to_string(),
        "tools/list" if script.answers_lists => listed(script, &message["params"]["cursor"]),
        "tools/list" => return None,
        "prompts/list" | "resources/list" | "resources/templates/list" => {
            let error = json!({"code": -32601, "message": "method not found"});
            return Some(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#));
        }
        "tools/call" if !script.answers_calls => return None,
        "tools/call" => json!({"content": [{"type": "text", "text": "done"}]}).to_string(),
        _ => json!({}).to_string(),
    };
    Some(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
}

fn listed(script: &Script, cursor: &Value) -> String {
    let Some(size) = script.page else { return format!(r#"{{"tools":{}}}"#, script.tools) };
    let all: Vec<Value> = serde_json::from_str(&script.tools).expect("tools");
    let from: usize = cursor.as_str().map_or(0, |text| text.parse().expect("a cursor"));
    let until = (from + size).min(all.len());
    let mut result = json!({"tools": all[from..until]});
    if until < all.len() {
        result["nextCursor"] = json!(until.to_string());
    }
    result.to_string()
}
