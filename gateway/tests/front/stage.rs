//! A gateway in this process, a simulated HTTP server, and callers with static keys.

use bytes::Bytes;
use gateway::identity::StaticKey;
use gateway::{Node, serve};
use http_body_util::{BodyExt, Collected, Full};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use settings::gateway::GatewaySettings;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::receipts::Settings as ReceiptSettings;
use store::{By, Home, NewApiKey, Store};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

/// The behaviour of the server, and a record of requests.
#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(crate) tools: Vec<Value>,
    /// The methods requested, with headers and bodies.
    pub(crate) asked: Vec<(String, http::HeaderMap, Value)>,
    /// Responses that replace the usual ones, by method: status, media type and body.
    pub(crate) instead: BTreeMap<String, (u16, &'static str, String)>,
    /// If set, each call waits for a permit before it is answered.
    pub(crate) gate: Option<Arc<tokio::sync::Semaphore>>,
    /// If set, each list of tools waits for a permit.
    pub(crate) list_gate: Option<Arc<tokio::sync::Semaphore>>,
    /// Answers 401 to every request whose `authorization` contains none of these; `None` accepts
    /// all.
    pub(crate) accepts: Option<Vec<String>>,
    /// Answers with what this returns for the headers of a request, if it returns anything.
    pub(crate) refuses: Option<Refuses>,
    /// JSON documents served without authentication, by path.
    pub(crate) documents: BTreeMap<String, Value>,
}

/// The status and header to refuse a request with, if any, chosen by the request's headers.
type Refusing = dyn FnMut(&http::HeaderMap) -> Option<(u16, &'static str, String)> + Send;

pub(crate) struct Refuses(pub(crate) Box<Refusing>);

impl std::fmt::Debug for Refuses {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Refuses").finish_non_exhaustive()
    }
}

impl Script {
    /// The number of requests with this method.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.asked.iter().filter(|(asked, ..)| asked == method).count()
    }
}

/// Waits until a condition holds; panics after 20 seconds.
pub(crate) async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while !holds().await {
        assert!(std::time::Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(crate) fn tool(name: &str, description: &str) -> Value {
    json!({
        "name": name,
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
        },
    })
}

/// A gateway, its server and its callers.
pub(crate) struct Stage {
    pub(crate) address: SocketAddr,
    pub(crate) script: Arc<Mutex<Script>>,
    keys: BTreeMap<String, String>,
    pub(crate) node: Arc<Node>,
    pub(crate) home: PathBuf,
    configuration: String,
    directory: Arc<TempDir>,
    upstream: SocketAddr,
}

/// An HTTP response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    /// The JSON of the body, or of the last event in it.
    pub(crate) fn json(&self) -> Value {
        let last = self.body.lines().filter_map(|line| line.strip_prefix("data: ")).next_back();
        serde_json::from_str(last.unwrap_or(&self.body)).unwrap_or_else(|_| panic!("{self:?}"))
    }
}

/// The configuration of a stage.
pub(crate) struct Setting<'a> {
    pub(crate) tools: Vec<Value>,
    pub(crate) policies: &'a str,
    /// Subjects and their groups. `ada@acme` belongs to an organization; `ada#2` is another key of
    /// `ada`.
    pub(crate) principals: &'a [(&'a str, &'a [&'a str])],
    /// Administrators and their groups. They are people.
    pub(crate) admins: &'a [(&'a str, &'a [&'a str])],
    /// Additional lines in `[gateway]`.
    pub(crate) gateway: &'a str,
    /// Additional lines in the server's table.
    pub(crate) server: &'a str,
}

pub(crate) const EVERYTHING: &str = "@id(\"all\")\npermit(principal, action, resource);";

impl Default for Setting<'_> {
    fn default() -> Self {
        Setting {
            tools: vec![tool("read_report", "Reads a report.")],
            policies: EVERYTHING,
            principals: &[("ada", &["writers"]), ("eve", &[])],
            admins: &[],
            gateway: "",
            server: "",
        }
    }
}

impl Stage {
    pub(crate) async fn open(setting: Setting<'_>) -> Stage {
        let tools = setting.tools.clone();
        let script = Arc::new(Mutex::new(Script { tools, ..Script::default() }));
        let upstream = play(script.clone()).await;
        let directory = tempfile::tempdir().expect("a directory");
        let folder = directory.path();
        std::fs::write(folder.join("p.cedar"), setting.policies).expect("a policy");
        let configuration = format!(
            "{}\n[auth.keys]\nenabled = true\n[policy]\nfiles = [\"p.cedar\"]\n[[server]]\nid = \"reports\"\ntrust = \"internal\"\nrisk = \"low\"\nurl = \"http://{upstream}/mcp\"\n{}\n",
            setting.gateway, setting.server
        );
        let home = folder.join("home");
        let mut keys = BTreeMap::new();
        {
            let home = Home::open(&home).expect("a home");
            let settings = read(&configuration, folder, "127.0.0.1:1");
            let location = settings.store.as_deref().unwrap_or("sqlite");
            let location = store::Location::parse(location).expect("a location");
            let mut store = store::open(&home, &location).expect("a store");
            for (sub, groups) in setting.principals {
                keys.insert((*sub).to_owned(), add_key(&mut *store, sub, groups));
            }
            for (sub, groups) in setting.admins {
                keys.insert(format!("admin {sub}"), add_admin_key(&mut *store, sub, groups));
            }
        }
        let (node, address) = start(&configuration, folder, &home).await;
        let directory = Arc::new(directory);
        Stage { address, script, keys, node, home, configuration, directory, upstream }
    }

    /// Another node with the same settings and keys but its own home.
    pub(crate) async fn another_node(&self) -> Stage {
        let folder = self.directory.path();
        let home = folder.join("second");
        std::fs::create_dir_all(home.join("keys")).expect("a folder");
        for file in std::fs::read_dir(self.home.join("keys")).expect("keys") {
            let file = file.expect("a key");
            // Each node signs its own receipts.
            if !file.file_name().to_string_lossy().starts_with("receipts") {
                let to = home.join("keys").join(file.file_name());
                std::fs::copy(file.path(), to).expect("a copy");
            }
        }
        let (node, address) = start(&self.configuration, folder, &home).await;
        Stage {
            address,
            script: self.script.clone(),
            keys: self.keys.clone(),
            node,
            home,
            configuration: self.configuration.clone(),
            directory: self.directory.clone(),
            upstream: self.upstream,
        }
    }

    /// The same node, restarted in its home.
    pub(crate) async fn restarted(&self) -> Stage {
        let (node, address) = start(&self.configuration, self.directory.path(), &self.home).await;
        Stage {
            address,
            script: self.script.clone(),
            keys: self.keys.clone(),
            node,
            home: self.home.clone(),
            configuration: self.configuration.clone(),
            directory: self.directory.clone(),
            upstream: self.upstream,
        }
    }

    /// Reloads the node's settings with one text replaced.
    pub(crate) async fn reload(&self, text: &str, instead: &str) {
        let configuration = self.configuration.replace(text, instead);
        assert_ne!(configuration, self.configuration);
        let listen = self.address.to_string();
        let settings = read(&configuration, self.directory.path(), &listen);
        let node = self.node.clone();
        let reloaded = tokio::task::spawn_blocking(move || node.reload(settings));
        reloaded.await.expect("a reload").expect("newer settings");
    }

    /// Sends a request to the admin API.
    pub(crate) async fn admin(&self, method: &str, path: &str, sub: &str) -> Answer {
        let authorization = format!("Bearer {}", self.key(&format!("admin {sub}")));
        let headers = [("authorization", authorization.as_str())];
        self.send(method, &format!("/admin/v1{path}"), &headers, "").await
    }

    /// The address of the server.
    pub(crate) fn upstream(&self) -> SocketAddr {
        self.upstream
    }

    pub(crate) fn key(&self, sub: &str) -> &str {
        &self.keys[sub]
    }

    /// Posts a body with these additional headers. A header with an empty value is left out.
    pub(crate) async fn post(
        &self,
        path: &str,
        sub: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let authorization = format!("Bearer {}", self.key(sub));
        let mut all: Vec<(&str, &str)> = vec![
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("authorization", &authorization),
        ];
        all.retain(|(usual, _)| !headers.iter().any(|(name, _)| name == usual));
        all.extend(headers.iter().filter(|(_, value)| !value.is_empty()));
        self.send("POST", path, &all, body).await
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let stream = TcpStream::connect(self.address).await.expect("a connection");
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("HTTP");
        let driver = tokio::spawn(connection);
        let mut request = http::Request::builder().method(method).uri(path);
        if !headers.iter().any(|(name, _)| *name == "host") {
            request = request.header("host", self.address.to_string());
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::from(body.to_owned()))).expect("a request");
        let response = sender.send_request(request).await.expect("a response");
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = tokio::time::timeout(Duration::from_secs(20), response.into_body().collect());
        let body = body.await.expect("in time").expect("a body").to_bytes();
        driver.abort();
        Answer { status, headers, body: String::from_utf8_lossy(&body).into_owned() }
    }

    /// Posts a body in a session, and disconnects without waiting for the response once a condition
    /// holds.
    pub(crate) async fn post_and_leave(
        &self,
        (sub, session): (&str, &str),
        body: &str,
        once: impl AsyncFn() -> bool,
    ) {
        let mut stream = TcpStream::connect(self.address).await.expect("a connection");
        let request = format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\nmcp-session-id: {session}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            self.key(sub),
            body.len()
        );
        stream.write_all(request.as_bytes()).await.expect("a request");
        until("the client may leave", once).await;
        drop(stream);
    }

    /// Posts a body and reads the response stream.
    pub(crate) async fn listen(
        &self,
        path: &str,
        sub: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Events {
        let mut all = headers.to_vec();
        all.push(("content-type", "application/json"));
        self.stream("POST", path, sub, &all, body).await
    }

    /// Opens the stream of a session.
    pub(crate) async fn open_stream(
        &self,
        path: &str,
        sub: &str,
        headers: &[(&str, &str)],
    ) -> Events {
        self.stream("GET", path, sub, headers, "").await
    }

    async fn stream(
        &self,
        method: &str,
        path: &str,
        sub: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Events {
        let stream = TcpStream::connect(self.address).await.expect("a connection");
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("HTTP");
        let connection = tokio::spawn(async move {
            let _ = connection.await;
        });
        let mut request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("host", self.address.to_string())
            .header("accept", "application/json, text/event-stream")
            .header("authorization", format!("Bearer {}", self.key(sub)));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::from(body.to_owned()))).expect("a request");
        let response = sender.send_request(request).await.expect("a response");
        let status = response.status().as_u16();
        Events {
            status,
            body: response.into_body(),
            text: String::new(),
            heard: Vec::new(),
            last_id: None,
            connection,
            _sender: sender,
        }
    }

    /// Replaces the policies.
    pub(crate) fn replace_policies(&self, policies: &str) {
        let folder = self.directory.path();
        std::fs::write(folder.join("p.cedar"), policies).expect("a policy");
        let settings = read(&self.configuration, folder, &self.address.to_string());
        self.node.reload(settings).expect("new settings");
    }

    /// Begins a session of the older era.
    pub(crate) async fn begin(&self, path: &str, sub: &str) -> String {
        let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
        let answer = self.post(path, sub, &[], initialize).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.headers["mcp-session-id"].to_str().expect("text").to_owned()
    }

    /// Makes a request in a session.
    pub(crate) async fn ask(
        &self,
        sub: &str,
        session: &str,
        method: &str,
        params: &Value,
    ) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let headers = [("mcp-session-id", session)];
        self.post("/mcp", sub, &headers, &body.to_string()).await.json()
    }

    pub(crate) async fn call(
        &self,
        sub: &str,
        session: &str,
        tool: &str,
        arguments: &Value,
    ) -> Value {
        self.ask(sub, session, "tools/call", &json!({"name": tool, "arguments": arguments})).await
    }

    /// The value of a metric.
    pub(crate) async fn metric(&self, name: &str) -> f64 {
        let text = self.send("GET", "/metrics", &[], "").await.body;
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in\n{text}")).parse().expect("a number")
    }

    /// Every line of the ledger.
    pub(crate) fn receipts(&self) -> Vec<Value> {
        let mut lines = Vec::new();
        let chains = std::fs::read_dir(self.home.join("receipts")).expect("receipts");
        for chain in chains.filter_map(Result::ok).filter(|entry| entry.path().is_dir()) {
            let files = std::fs::read_dir(chain.path()).expect("a chain").filter_map(Result::ok);
            for file in files.filter(|file| file.path().extension().is_some_and(|e| e == "jsonl")) {
                let text = std::fs::read_to_string(file.path()).expect("a file");
                lines.extend(
                    text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")),
                );
            }
        }
        lines
    }

    /// The text of every file in the home: the store, the ledger, the error log.
    pub(crate) fn all_text(&self) -> String {
        all_text(&self.home)
    }

    /// All decisions in the ledger.
    pub(crate) fn decisions(&self) -> Vec<Value> {
        self.receipts().into_iter().filter(|line| line["record"] == "decision").collect()
    }
}

/// An event stream being read.
pub(crate) struct Events {
    pub(crate) status: u16,
    body: hyper::body::Incoming,
    text: String,
    heard: Vec<Value>,
    /// The id of the last event that had one.
    pub(crate) last_id: Option<String>,
    connection: tokio::task::JoinHandle<()>,
    _sender: hyper::client::conn::http1::SendRequest<Full<Bytes>>,
}

impl Events {
    /// The next message.
    pub(crate) async fn next(&mut self) -> Value {
        let next = tokio::time::timeout(Duration::from_secs(30), self.read());
        next.await.expect("in time").expect("a message")
    }

    /// The next message; `None` at the end of the stream.
    pub(crate) async fn read(&mut self) -> Option<Value> {
        loop {
            while let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.text = rest;
                let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
                self.last_id = field("id: ").map(str::to_owned).or(self.last_id.take());
                let data = field("data: ").filter(|data| !data.is_empty());
                if let Some(data) = data {
                    let message: Value = serde_json::from_str(data).expect("JSON");
                    self.heard.push(message.clone());
                    return Some(message);
                }
            }
            let frame = self.body.frame().await?.ok()?;
            let data = frame.into_data().unwrap_or_default();
            self.text.push_str(&String::from_utf8_lossy(&data));
        }
    }

    /// All messages read so far.
    pub(crate) fn heard(&self) -> &[Value] {
        &self.heard
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

/// The text of all files below a folder.
fn all_text(folder: &Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).unwrap().filter_map(Result::ok) {
        let path = entry.path();
        match path.is_dir() {
            true => text.push_str(&all_text(&path)),
            false => text.push_str(&String::from_utf8_lossy(&std::fs::read(path).unwrap())),
        }
    }
    text
}

fn read(configuration: &str, folder: &Path, listen: &str) -> GatewaySettings {
    let text = format!("[gateway]\nlisten = \"{listen}\"\n{configuration}");
    GatewaySettings::read(&text, folder).expect("settings")
}

/// Starts a gateway on a port that was just free.
async fn start(configuration: &str, folder: &Path, home: &Path) -> (Arc<Node>, SocketAddr) {
    let free = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
    let listen = free.local_addr().expect("an address");
    drop(free);
    let settings = read(configuration, folder, &listen.to_string());
    // Messages to the gateway's operator.
    let remarks = home.join("remarks.log");
    let node = Node::open(
        Arc::new(settings),
        Home::open(home).expect("a home"),
        ReceiptSettings::default(),
        Arc::new(move |sentence: &str| {
            let mut file = std::fs::OpenOptions::new();
            let file = file.create(true).append(true).open(&remarks);
            let _ = writeln!(file.expect("a file"), "{sentence}");
        }),
        tokio::runtime::Handle::current(),
    )
    .expect("a node");
    let (address, _) = serve(node.clone(), listen).await.expect("a listener");
    (node, address)
}

fn add_admin_key(store: &mut dyn Store, sub: &str, groups: &[&str]) -> String {
    add_key_of(store, sub, groups, true)
}

pub(crate) fn add_key(store: &mut dyn Store, sub: &str, groups: &[&str]) -> String {
    add_key_of(store, sub, groups, false)
}

fn add_key_of(store: &mut dyn Store, sub: &str, groups: &[&str], admin: bool) -> String {
    let key = StaticKey::generate(admin).expect("randomness");
    let (sub, number) = sub.split_once('#').unwrap_or((sub, ""));
    let (sub, org) = sub.split_once('@').map_or((sub, None), |(sub, org)| (sub, Some(org)));
    let new = NewApiKey {
        id: format!("{}-{sub}{number}", if admin { "a" } else { "k" }).parse().expect("an id"),
        hash: key.hash(),
        sub: sub.to_owned(),
        actor_type: if admin { store::ActorType::User } else { store::ActorType::Agent },
        org: org.map(str::to_owned),
        groups: groups.iter().map(ToString::to_string).collect(),
        expires_at: None,
        admin,
        clearance: None,
    };
    let at = engine::recorder::now();
    store.add_api_key(&new, By { name: "test", at }).expect("a key");
    key.reveal().to_owned()
}

/// Simulates an HTTP server with sessions. Returns its address.
async fn play(script: Arc<Mutex<Script>>) -> SocketAddr {
    answer_with(move |request| {
        let script = script.clone();
        async move { respond(&script, request).await }
    })
    .await
}

/// Answers HTTP requests on loopback. Returns the address.
pub(crate) async fn answer_with<F>(
    answer: impl Fn(http::Request<hyper::body::Incoming>) -> F + Clone + Send + 'static,
) -> SocketAddr
where
    F: Future<Output = http::Response<Full<Bytes>>> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let answer = answer.clone();
            tokio::spawn(async move {
                let service = service_fn(move |request| {
                    let answered = answer(request);
                    async move { Ok::<_, Infallible>(answered.await) }
                });
                let connection = hyper::server::conn::http1::Builder::new();
                let _ = connection.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    address
}

async fn respond(
    script: &Mutex<Script>,
    request: http::Request<hyper::body::Incoming>,
) -> http::Response<Full<Bytes>> {
    let (parts, body) = request.into_parts();
    let plain = |status: u16, media: &str, body: String| {
        let response = http::Response::builder().status(status).header("content-type", media);
        response.body(Full::new(Bytes::from(body))).expect("a response")
    };
    if parts.method == http::Method::GET && parts.headers.contains_key("last-event-id") {
        let mut script = script.lock().expect("a lock");
        script.asked.push(("GET".to_owned(), parts.headers.clone(), Value::Null));
        let last = script.asked.iter().rev().find(|(method, ..)| method == "tools/call");
        let id = last.map_or(Value::Null, |(_, _, message)| message["id"].clone());
        if let Some((status, media, body)) = script.instead.get("GET") {
            return plain(*status, media, body.replace("\"ID\"", &id.to_string()));
        }
    }
    if parts.method == http::Method::GET {
        let script = script.lock().expect("a lock");
        if let Some(document) = script.documents.get(parts.uri.path()) {
            return plain(200, "application/json", document.to_string());
        }
    }
    if parts.method != http::Method::POST {
        return plain(405, "text/plain", String::new());
    }
    let body = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let method = message["method"].as_str().unwrap_or_default().to_owned();
    let gate = {
        let mut script = script.lock().expect("a lock");
        script.asked.push((method.clone(), parts.headers.clone(), message.clone()));
        match method.as_str() {
            "tools/call" => script.gate.clone(),
            "tools/list" => script.list_gate.clone(),
            _ => None,
        }
    };
    if let Some(gate) = gate {
        gate.acquire().await.expect("a permit").forget();
    }
    let mut script = script.lock().expect("a lock");
    let refused = script.refuses.as_mut().and_then(|Refuses(refuses)| refuses(&parts.headers));
    if let Some((status, name, value)) = refused {
        let mut response = plain(status, "text/plain", String::new());
        response.headers_mut().insert(name, value.parse().expect("a header's value"));
        return response;
    }
    let authorization = parts.headers.get("authorization").and_then(|value| value.to_str().ok());
    let is_accepted = script.accepts.as_ref().is_none_or(|accepted| {
        accepted.iter().any(|one| authorization.is_some_and(|shown| shown.contains(one)))
    });
    if !is_accepted {
        return plain(401, "text/plain", String::new());
    }
    if let Some((status, media, body)) = script.instead.get(&method) {
        let body = body.replace("\"ID\"", &message["id"].to_string());
        let mut response = plain(*status, media, body);
        if (300..400).contains(status) {
            let target = http::HeaderValue::from_static("http://169.254.169.254/");
            response.headers_mut().insert("location", target);
        }
        return response;
    }
    let Some(id) = message.get("id") else { return plain(202, "text/plain", String::new()) };
    let result = match method.as_str() {
        "initialize" => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "reports", "version": "1"},
        }),
        "tools/list" => json!({"tools": script.tools}),
        "tools/call" => {
            let (name, path) =
                (&message["params"]["name"], &message["params"]["arguments"]["path"]);
            let text = format!("{} {}", name.as_str().unwrap_or(""), path.as_str().unwrap_or(""));
            json!({"content": [{"type": "text", "text": text}]})
        }
        "ping" => json!({}),
        _ => {
            let error = json!({"code": -32601, "message": "no such method"});
            let answer = json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string();
            return plain(200, "application/json", answer);
        }
    };
    let answer = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
    plain(200, "application/json", answer)
}
