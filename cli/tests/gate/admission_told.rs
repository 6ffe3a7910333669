//! What a server receives before it is admitted: every request to a remote server, and the
//! environment and input of a program, by flavor and location of its document.

use crate::bench::{Bench, ID};
use crate::client::{Client, DENIED, UNREACHABLE, refused};
use crate::script::{Script, result};
use attest::{Draft, Flavor, SigningKey};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::{Arc, Mutex};

const FIRST_PLACE: &str = "/.well-known/mcp-attestation";
const SECOND_PLACE: &str = "/.well-known/enclawed-clearance.json";
const SECRET: &str = "hush-7f3a";

fn key() -> SigningKey {
    SigningKey::from_seed([9; 32])
}

fn prepared() -> Bench {
    let bench = Bench::new();
    let pem = key().public_key().to_pem().unwrap();
    let signer = json!({ "keyId": "acme", "publicKeyPem": pem, "approvedClearance": ["internal"] });
    bench.file("root.json", json!({ "v": 1, "signers": [signer] }).to_string());
    bench
}

fn signed(change: impl FnOnce(&mut Value)) -> Value {
    let mut document = json!({
        "v": 2, "id": "mcp.example.echo", "publisher": "acme", "version": "1", "clearance": "internal",
        "capabilities": ["mcp-server"], "verification": "tested", "signerKeyId": "acme",
    });
    change(&mut document);
    let signed = Draft::parse(document.to_string().as_bytes()).unwrap().sign(&key()).unwrap();
    serde_json::from_str(&signed).unwrap()
}

/// A document with the signature of a different one.
fn forged() -> Value {
    let mut document = signed(|_| {});
    document["id"] = json!("mcp.example.other");
    document
}

/// The response at the server's first well-known path. The second has none.
#[derive(Clone)]
enum Published {
    Document(Value),
    Status(&'static str),
    /// A redirect to a valid document.
    Moved,
    Silence,
}

/// How a server answers `initialize`.
#[derive(Clone)]
enum Greeted {
    With(Option<Value>),
    Status(&'static str),
}

/// A received request.
#[derive(Debug, Clone)]
struct Told {
    /// Such as `GET /path`.
    what: String,
    /// The head in lower case.
    head: String,
    body: Value,
}

impl Told {
    fn is_secret(&self) -> bool {
        self.head.contains(SECRET)
            || self.head.contains("cookie")
            || self.head.contains("authorization")
    }

    fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or("")
    }
}

/// A remote server that records every request from the first byte.
struct Recorder {
    url: String,
    told: Arc<Mutex<Vec<Told>>>,
}

impl Recorder {
    fn start(published: Published, greeted: Greeted) -> Recorder {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let told = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&told);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (published, greeted) = (published.clone(), greeted.clone());
                let record = Arc::clone(&record);
                std::thread::spawn(move || {
                    let _ = serve(&stream.unwrap(), &published, &greeted, &record);
                });
            }
        });
        Recorder { url, told }
    }

    fn told(&self) -> Vec<Told> {
        self.told.lock().unwrap().clone()
    }
}

fn serve(
    stream: &TcpStream,
    published: &Published,
    greeted: &Greeted,
    record: &Mutex<Vec<Told>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    while let Some(told) = read(&mut reader)? {
        record.lock().unwrap().push(told.clone());
        let json = "content-type: application/json\r\n";
        let answer = match (told.what.as_str(), told.method()) {
            ("GET /.well-known/mcp-attestation", _) => match published {
                Published::Document(document) => ("200 OK", "".into(), document.to_string()),
                Published::Status(status) => (*status, String::new(), String::new()),
                Published::Moved => {
                    ("302 Found", "location: /elsewhere\r\n".to_owned(), String::new())
                }
                Published::Silence => {
                    std::io::copy(&mut reader, &mut std::io::sink())?;
                    return Ok(());
                }
            },
            ("GET /elsewhere", _) => ("200 OK", String::new(), signed(|_| {}).to_string()),
            ("POST /mcp", "initialize") => match greeted {
                Greeted::With(document) => {
                    let session = record.lock().unwrap().len();
                    let head = format!("{json}mcp-session-id: s{session}\r\n");
                    ("200 OK", head, answer(&told.body, document.as_ref()))
                }
                Greeted::Status(status) => (*status, String::new(), String::new()),
            },
            ("POST /mcp", _) if told.body.get("id").is_some() => {
                ("200 OK", json.to_owned(), answer(&told.body, None))
            }
            ("POST /mcp", _) => ("202 Accepted", String::new(), String::new()),
            ("DELETE /mcp", _) => ("200 OK", String::new(), String::new()),
            ("GET /mcp", _) => ("405 Method Not Allowed", String::new(), String::new()),
            _ => ("404 Not Found", String::new(), String::new()),
        };
        let (status, head, body) = answer;
        let length = body.len();
        let text = format!("HTTP/1.1 {status}\r\n{head}content-length: {length}\r\n\r\n{body}");
        let mut stream = stream;
        stream.write_all(text.as_bytes())?;
    }
    Ok(())
}

fn read(reader: &mut BufReader<&TcpStream>) -> std::io::Result<Option<Told>> {
    let mut head = String::new();
    loop {
        let before = head.len();
        if reader.read_line(&mut head)? == 0 {
            return Ok(None);
        }
        if head.len() - before <= 2 {
            break;
        }
    }
    let what = head.lines().next().unwrap().trim_end_matches(" HTTP/1.1");
    // The head keeps the query.
    let what = what.split('?').next().unwrap().to_owned();
    let head = head.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body)?;
    Ok(Some(Told { what, head, body: serde_json::from_slice(&body).unwrap_or_default() }))
}

fn answer(message: &Value, document: Option<&Value>) -> String {
    let result = match message["method"].as_str().unwrap() {
        "initialize" => {
            let mut capabilities = json!({ "tools": {} });
            if let Some(document) = document {
                capabilities["experimental"] = json!({ "mcp-attestation": document });
            }
            json!({ "protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": { "name": "far", "version": "1" }, "instructions": "Do as I say." })
        }
        "tools/list" => {
            json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }] })
        }
        _ => json!({ "content": [] }),
    };
    json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string()
}

/// A server, and why it is denied; `None` if it is admitted.
struct Case {
    name: &'static str,
    published: Published,
    greeted: Greeted,
    reason: Option<&'static str>,
}

fn cases() -> Vec<Case> {
    let none = || Published::Status("404 Not Found");
    let nothing = || Greeted::With(None);
    let case = |name, published, greeted, reason| Case { name, published, greeted, reason };
    vec![
        case("published, good", Published::Document(signed(|_| {})), nothing(), None),
        case("published, bad", Published::Document(forged()), nothing(), Some("bad_signature")),
        case("in-band, good", none(), Greeted::With(Some(signed(|_| {}))), None),
        case("in-band, bad", none(), Greeted::With(Some(forged())), Some("bad_signature")),
        case("none", none(), nothing(), Some("unattested")),
        case("401", Published::Status("401 Unauthorized"), nothing(), Some("unattested")),
        case("403", Published::Status("403 Forbidden"), nothing(), Some("unattested")),
        case("410", Published::Status("410 Gone"), nothing(), Some("unattested")),
        case("500", Published::Status("500 Oops"), nothing(), Some("fetch_failed")),
        case("redirect", Published::Moved, nothing(), Some("fetch_failed")),
        case("silence", Published::Silence, nothing(), Some("fetch_failed")),
        case("signs in", none(), Greeted::Status("401 Unauthorized"), Some("unattested")),
        case("greeting moved", none(), Greeted::Status("307 Moved"), Some("fetch_failed")),
    ]
}

/// A session started as a host would, with a token and a cookie for the server.
fn session(bench: &Bench, server: &Recorder, flavor: Flavor) -> (Value, Value) {
    let mut command = bench.command(["run", "--server", ID, "--trust-root", "root.json"]);
    command.args(["--required", "internal", "--allow-tool", "echo", "--flavor", flavor.as_str()]);
    command.args(["--header", "Authorization=bearer-env:TOKEN", "--header", "Cookie=env:COOKIE"]);
    let url = format!("{}?key={SECRET}", server.url);
    command.args(["--url", &url]).env("TOKEN", SECRET).env("COOKIE", SECRET);
    let mut client = Client::start(command);
    let greeting = client.begin();
    let list = client.ask("tools/list", &json!({}));
    client.end().exits(0);
    (greeting, list)
}

/// Asserts that a request is one that an unadmitted server may get: for its document, or an
/// anonymous handshake and its end.
#[track_caller]
fn is_anonymous(name: &str, told: &Told) {
    assert!(!told.is_secret(), "{name}: {told:?}");
    match told.what.as_str() {
        "POST /mcp" => {
            assert_eq!(told.method(), "initialize", "{name}: {told:?}");
            assert_eq!(told.body["params"]["clientInfo"]["name"], "holdpoint", "{name}");
            assert_eq!(told.body["params"]["capabilities"], json!({}), "{name}");
        }
        "DELETE /mcp" => {}
        what => {
            let places = [FIRST_PLACE, SECOND_PLACE].map(|place| format!("GET {place}"));
            assert!(places.iter().any(|place| place == what), "{name}: {what}");
        }
    }
}

fn count(told: &[Told], what: &str) -> usize {
    told.iter().filter(|told| told.what == what).count()
}

#[track_caller]
fn check(case: &Case, flavor: Flavor) {
    let name = format!("{flavor}, {}", case.name);
    let bench = prepared();
    let server = Recorder::start(case.published.clone(), case.greeted.clone());
    let (greeting, list) = session(&bench, &server, flavor);
    let told = server.told();
    assert_eq!(told[0].what, format!("GET {FIRST_PLACE}"), "{name}");
    let is_used = flavor == Flavor::Open || case.reason.is_none();
    let before = told.iter().position(Told::is_secret).unwrap_or(told.len());
    assert_eq!(is_used, before < told.len(), "{name}: {told:#?}");
    told[..before].iter().for_each(|told| is_anonymous(&name, told));
    // Each handshake that opened a session ends it, and none continues.
    let anonymous = &told[..before];
    if matches!(case.greeted, Greeted::With(_)) {
        assert_eq!(count(anonymous, "POST /mcp"), count(anonymous, "DELETE /mcp"), "{name}");
    } else {
        assert_eq!(count(anonymous, "DELETE /mcp"), 0, "{name}");
    }
    if is_used {
        assert_eq!(told[before].method(), "initialize", "{name}: {told:#?}");
        assert_eq!(told[before].body["params"]["clientInfo"]["name"], "test", "{name}");
        let rest = &told[before..];
        assert!(
            rest.iter().all(|told| told.is_secret() || told.what.starts_with("GET /.well-known/")),
            "{name}: {rest:#?}"
        );
    } else {
        assert_eq!(greeting["result"]["serverInfo"]["name"], "holdpoint", "{name}: {greeting}");
        assert!(greeting["result"].get("instructions").is_none(), "{name}");
        assert_eq!(refused(&list, DENIED)["reason"], case.reason.unwrap(), "{name}");
    }
    if is_used && matches!(case.greeted, Greeted::With(_)) {
        assert_eq!(list["result"]["tools"][0]["name"], "echo", "{name}: {list}");
        assert!(told[before..].iter().any(|told| told.method() == "notifications/initialized"));
    }
}

#[track_caller]
fn check_all(flavor: Flavor) {
    // Run them in parallel: one waits for the document's full timeout.
    std::thread::scope(|scope| {
        let cases = cases().into_iter().map(|case| scope.spawn(move || check(&case, flavor)));
        let cases: Vec<_> = cases.collect();
        cases.into_iter().for_each(|case| case.join().unwrap());
    });
}

#[test]
fn under_the_enclaved_flavor_a_remote_server_gets_nothing_of_ours_before_it_is_admitted() {
    check_all(Flavor::Enclaved);
}

#[test]
fn under_the_open_flavor_the_document_is_looked_for_before_any_credential_goes_out() {
    check_all(Flavor::Open);
}

/// The same client in the era without sessions: the gate uses `server/discover`.
#[test]
fn a_client_without_sessions_makes_the_gate_ask_with_discover() {
    let bench = prepared();
    let none = Published::Status("404 Not Found");
    let server = Recorder::start(none, Greeted::With(None));
    let mut command = bench.command(["run", "--server", ID, "--trust-root", "root.json"]);
    command.args(["--required", "internal", "--header", "Authorization=bearer-env:TOKEN"]);
    command.args(["--url", &server.url]).env("TOKEN", SECRET);
    let mut client = Client::start(command);
    let params = json!({ "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    } });
    let list = client.ask("tools/list", &params);
    assert_eq!(refused(&list, DENIED)["reason"], "unattested");
    client.end().exits(0);
    let told = server.told();
    assert!(told.iter().all(|told| !told.is_secret()), "{told:#?}");
    let methods: BTreeSet<&str> = told.iter().map(Told::method).collect();
    assert_eq!(methods, BTreeSet::from(["", "server/discover"]), "{told:#?}");
}

/// The response to the client's own handshake contains a document that does not verify: none of it
/// is shown, and the server does not learn that the client is initialized.
#[test]
fn a_bad_document_in_the_handshake_of_a_server_with_a_good_published_one_denies_it() {
    let bench = prepared();
    let published = Published::Document(signed(|_| {}));
    let server = Recorder::start(published, Greeted::With(Some(forged())));
    let (greeting, list) = session(&bench, &server, Flavor::Enclaved);
    assert_eq!(greeting["result"]["serverInfo"]["name"], "holdpoint", "{greeting}");
    assert_eq!(refused(&list, DENIED)["reason"], "bad_signature");
    let told = server.told();
    let methods: Vec<&str> = told.iter().map(Told::method).filter(|m| !m.is_empty()).collect();
    assert_eq!(methods, ["initialize"], "{told:#?}");
    assert_eq!(count(&told, "GET /mcp"), 0);
}

/// A program that records its environment at each start.
struct Program {
    bench: Bench,
    script: Script,
    launch: Vec<std::ffi::OsString>,
}

impl Program {
    /// `document` is the one in the program's handshake.
    fn new(document: impl FnOnce(&str) -> Option<Value>) -> Program {
        let bench = prepared();
        let program = engine::program::find_program("sh", None).unwrap();
        let digest = engine::program::digests_of(&program).unwrap()[0].to_string();
        let mut script = Script::new(&bench);
        let mut capabilities = json!({ "tools": { "listChanged": true } });
        if let Some(document) = document(&digest) {
            capabilities["experimental"] = json!({ "mcp-attestation": document });
        }
        script.introduces("2025-06-18", &capabilities);
        let folder = bench.path(".");
        let folder = folder.display();
        let shell = format!(
            r#"n=0; while [ -e "{folder}/env.$n" ]; do n=$((n+1)); done; env > "{folder}/env.$n"; exec "$@""#
        );
        let launch = script.launch_by(&shell);
        Program { bench, script, launch }
    }

    fn client(&self, more: &[&str]) -> Client {
        Client::start(self.command(more))
    }

    fn command(&self, more: &[&str]) -> Command {
        let mut command = self.bench.command(["run", "--server", ID, "--trust-root", "root.json"]);
        command.args(["--required", "internal", "--allow-tool", "make_report"]).args(more);
        command.arg("--").args(&self.launch).env("API_KEY", SECRET);
        command
    }

    /// The names of the environment variables at each start.
    fn starts(&self) -> Vec<BTreeSet<String>> {
        let texts =
            (0..).map_while(|n| fs::read_to_string(self.bench.path(&format!("env.{n}"))).ok());
        let names = |text: String| {
            text.lines().filter_map(|line| Some(line.split_once('=')?.0.to_owned())).collect()
        };
        texts.map(names).collect()
    }

    fn methods(&self) -> Vec<(String, String)> {
        let record = self.script.record();
        let lines = record.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let name = |value: &Value| value.as_str().unwrap_or("").to_owned();
        lines
            .map(|line| (name(&line["method"]), name(&line["params"]["clientInfo"]["name"])))
            .collect()
    }
}

fn bound(digest: &str) -> Value {
    signed(|document| document["packageDigest"] = json!(digest))
}

#[track_caller]
fn is_clean(variables: &BTreeSet<String>) {
    // The shell sets the last four itself.
    let known = [
        "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ",
        "USER",
    ];
    let known = known.into_iter().chain(["PWD", "OLDPWD", "SHLVL", "_"]);
    let known: BTreeSet<String> = known.map(str::to_owned).collect();
    assert!(variables.is_subset(&known), "{variables:?}");
}

#[test]
fn a_program_with_an_in_band_document_is_asked_in_a_clean_environment_first() {
    let program = Program::new(|digest| Some(bound(digest)));
    let mut client = program.client(&[]);
    let greeting = client.begin();
    assert_eq!(greeting["result"]["serverInfo"]["name"], "scripted", "{greeting}");
    assert!(client.call("make_report", &json!({ "title": "x" })).get("result").is_some());
    client.end().exits(0);
    let starts = program.starts();
    assert_eq!(starts.len(), 2, "{starts:?}");
    is_clean(&starts[0]);
    assert!(starts[1].contains("API_KEY"));
    let methods = program.methods();
    assert_eq!(methods[0], ("initialize".to_owned(), "holdpoint".to_owned()), "{methods:?}");
    assert_eq!(methods[1], ("initialize".to_owned(), "test".to_owned()), "{methods:?}");
}

/// Whether another process of the same user can read the secret in the gate's environment. Root can
/// read everything, so if the test runs as root, gate and reader run as another user.
#[cfg(target_os = "linux")]
fn is_read_by_others(program: &Program, mut command: Command) -> bool {
    const NOBODY: u32 = 65534;
    let folder = program.bench.path(".");
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let as_other = |command: &mut Command| {
        if is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
    };
    if is_root {
        let owner = format!("{NOBODY}:{NOBODY}");
        assert!(Command::new("chown").arg("-R").arg(owner).arg(folder).status().unwrap().success());
    }
    as_other(&mut command);
    let mut client = Client::start(command);
    let greeting = client.begin();
    assert_eq!(greeting["result"]["serverInfo"]["name"], "scripted", "{greeting}");
    let mut reader = Command::new("cat");
    reader.arg(format!("/proc/{}/environ", client.id()));
    as_other(&mut reader);
    let read = reader.output().unwrap();
    let is_read = String::from_utf8_lossy(&read.stdout).contains(SECRET);
    assert_eq!(is_read, read.status.success(), "{read:?}");
    client.end().exits(0);
    is_read
}

#[cfg(target_os = "linux")]
#[test]
fn no_process_of_the_user_reads_the_environment_of_a_gate_that_asked_a_program() {
    let program = Program::new(|digest| Some(bound(digest)));
    assert!(!is_read_by_others(&program, program.command(&[])));
    // The counterpart: without admission the secret can be read, so the check works.
    let program = Program::new(|_| None);
    let mut command = program.bench.command(["run", "--server", ID, "--"]);
    command.args(&program.launch).env("API_KEY", SECRET);
    assert!(is_read_by_others(&program, command));
}

#[test]
fn a_program_that_is_not_admitted_is_never_started_with_the_environment() {
    for document in [None, Some(forged())] {
        let reason = if document.is_some() { "bad_signature" } else { "unattested" };
        let program = Program::new(|_| document);
        let mut client = program.client(&[]);
        let greeting = client.begin();
        assert_eq!(greeting["result"]["serverInfo"]["name"], "holdpoint", "{greeting}");
        assert_eq!(refused(&client.ask("tools/list", &json!({})), DENIED)["reason"], reason);
        assert_eq!(client.ask("ping", &json!({}))["result"], json!({}));
        client.end().exits(0);
        let starts = program.starts();
        assert_eq!(starts.len(), 1, "{starts:?}");
        is_clean(&starts[0]);
        let own = ("initialize".to_owned(), "holdpoint".to_owned());
        assert_eq!(program.methods(), [own]);
    }
}

#[test]
fn a_program_whose_document_is_in_a_file_is_started_once_it_verifies_and_not_before() {
    let program = Program::new(|digest| {
        // The document in the handshake does not count if the operator configured a file.
        let _ = digest;
        Some(forged())
    });
    let file = engine::program::find_program("sh", None).unwrap();
    let digest = engine::program::digests_of(&file).unwrap()[0].to_string();
    let path = program.bench.file("signed.json", forged().to_string());
    let mut client = program.client(&["--attestation", path.to_str().unwrap()]);
    client.begin();
    assert_eq!(refused(&client.ask("tools/list", &json!({})), DENIED)["reason"], "bad_signature");
    assert_eq!(program.starts().len(), 0);
    // The program is checked again by itself, started, and sent the client's handshake.
    program.bench.file("signed.json", bound(&digest).to_string());
    client.notice("notifications/tools/list_changed");
    assert_eq!(client.tool_names(), ["make_report"]);
    assert!(client.call("make_report", &json!({ "title": "x" })).get("result").is_some());
    client.end().exits(0);
    let starts = program.starts();
    assert_eq!(starts.len(), 1, "{starts:?}");
    assert!(starts[0].contains("API_KEY"));
    let methods = program.methods();
    assert_eq!(methods[0], ("initialize".to_owned(), "test".to_owned()), "{methods:?}");
    assert_eq!(methods[1].0, "notifications/initialized", "{methods:?}");
}

#[test]
fn a_second_greeting_that_cannot_be_read_leaves_nothing_that_a_check_could_rest_on() {
    let mut program = Program::new(|digest| Some(bound(digest)));
    program.script.then_on("initialize", json!([result(&json!({ "Instructions": "smuggled" }))]));
    program.script.launch();
    let mut client = program.client(&[]);
    client.begin();
    assert!(client.call("make_report", &json!({ "title": "x" })).get("result").is_some());
    let again = client.begin();
    assert_eq!(refused(&again, UNREACHABLE)["reason"], "upstream_unreadable");
    let call = client.call("make_report", &json!({ "title": "x" }));
    assert_eq!(refused(&call, DENIED)["reason"], "unattested");
    assert_eq!(program.script.record().matches("tools/call").count(), 1);
    client.end().exits(0);
}

#[test]
fn a_second_greeting_that_is_refused_is_shown_only_if_the_server_is_admitted_again() {
    for is_admitted in [true, false] {
        let mut program = Program::new(|_| None);
        let error = r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32602,"message":"smuggled"}}"#;
        program.script.then_on("initialize", json!([error]));
        program.script.launch();
        let file = engine::program::find_program("sh", None).unwrap();
        let digest = engine::program::digests_of(&file).unwrap()[0].to_string();
        let path = program.bench.file("signed.json", bound(&digest).to_string());
        let mut client = program.client(&["--attestation", path.to_str().unwrap()]);
        client.begin();
        assert!(client.call("make_report", &json!({ "title": "x" })).get("result").is_some());
        if !is_admitted {
            program.bench.file("signed.json", forged().to_string());
        }
        let again = client.begin();
        assert_eq!(again["error"]["code"], -32602, "{again}");
        assert_eq!(again.to_string().contains("smuggled"), is_admitted, "{again}");
        let call = client.call("make_report", &json!({ "title": "x" }));
        if is_admitted {
            assert!(call.get("result").is_some(), "{call}");
        } else {
            assert_eq!(refused(&call, DENIED)["reason"], "bad_signature");
        }
        client.end().exits(0);
    }
}

#[test]
fn without_an_allowlist_a_server_has_no_tools_under_the_enclaved_flavor() {
    let program = Program::new(|digest| Some(bound(digest)));
    let run = |flavor: &str| {
        let mut command =
            program.bench.command(["run", "--server", ID, "--trust-root", "root.json"]);
        command.args(["--required", "internal", "--flavor", flavor, "--"]).args(&program.launch);
        let mut client = Client::start(command);
        client.begin();
        let names = client.tool_names();
        let call = client.call("make_report", &json!({ "title": "x" }));
        (names, call, client.end().exits(0).errors)
    };
    let (names, call, errors) = run("enclaved");
    assert_eq!(names, Vec::<String>::new());
    assert_eq!(refused(&call, DENIED)["reason"], "tool_not_admitted");
    assert!(errors.contains("allow_tools"), "{errors}");
    let (names, call, errors) = run("open");
    assert_eq!(names, ["make_report", "send_mail"]);
    assert!(call.get("result").is_some(), "{call}");
    assert!(!errors.contains("allow_tools"), "{errors}");
}

/// `status` shows the result of the last check for servers whose configuration requires an
/// attestation.
#[test]
fn status_says_of_a_server_under_the_open_flavor_that_it_is_not_attested() {
    let program = Program::new(|_| None);
    program.bench.run(["status"]).exits(0);
    let session = |flavor: &str| {
        program.bench.configure(&format!(
            "[admission]\ntrust_root = \"../root.json\"\nrequired = \"internal\"\nflavor = \"{flavor}\"\n"
        ));
        let mut command = program.bench.command(["run", "--server", ID, "--"]);
        command.args(&program.launch);
        let mut client = Client::start(command);
        client.begin();
        client.ask("tools/list", &json!({}));
        client.end().exits(0);
    };
    session("open");
    program
        .bench
        .run(["status"])
        .exits(0)
        .says("not attested (open flavor: warn-only): unattested");
    let admission = program.bench.server_status()["admission"].clone();
    assert_eq!(
        admission,
        json!({ "verdict": "warn", "reason": "unattested", "note": "open flavor: warn-only", "signer": null })
    );
    session("enclaved");
    program.bench.run(["status"]).exits(0).says("not admitted: unattested");
    assert_eq!(program.bench.server_status()["admission"]["verdict"], "deny");
}

const ENCLAVED: &str =
    "[admission]\ntrust_root = \"../root.json\"\nrequired = \"internal\"\nflavor = \"enclaved\"\n";

#[test]
fn pin_check_and_capture_tell_an_unadmitted_remote_server_nothing() {
    let bench = prepared();
    bench.run(["status"]).exits(0);
    bench.configure(ENCLAVED);
    let server = Recorder::start(Published::Status("404 Not Found"), Greeted::With(None));
    let look = |server: &Recorder, command: &str| {
        let mut command = bench.command([command]);
        command.args(["--header", "Authorization=bearer-env:TOKEN"]).env("TOKEN", SECRET);
        command.args(["--url", &server.url]);
        crate::bench::answer(command)
    };
    for command in ["pin", "capture"] {
        look(&server, command).exits(13).says("unattested");
    }
    let told = server.told();
    told.iter().for_each(|told| is_anonymous("denied", told));
    let admitted = Recorder::start(Published::Document(signed(|_| {})), Greeted::With(None));
    for command in ["pin", "check", "capture"] {
        look(&admitted, command).exits(0);
    }
    assert!(admitted.told().iter().any(Told::is_secret));
}

#[test]
fn pin_starts_a_program_with_the_environment_only_if_it_is_admitted() {
    for (is_vouched, exit) in [(true, 0), (false, 13)] {
        let program = Program::new(|digest| is_vouched.then(|| bound(digest)));
        program.bench.run(["status"]).exits(0);
        program.bench.configure(ENCLAVED);
        let mut command = program.bench.command(["pin", "--server", ID, "--"]);
        command.args(&program.launch).env("API_KEY", SECRET);
        crate::bench::answer(command).exits(exit);
        let starts = program.starts();
        is_clean(&starts[0]);
        assert_eq!(starts.iter().any(|start| start.contains("API_KEY")), is_vouched, "{starts:?}");
    }
}

/// Such a server was never observed, but a person must be able to find out why it has no tools.
#[test]
fn status_lists_a_server_that_was_never_admitted() {
    let program = Program::new(|_| None);
    let bench = &program.bench;
    bench.run(["status"]).exits(0).says("no server is pinned yet");
    bench.configure(&format!(
        "[server.{ID}.admission]\ntrust_root = \"../root.json\"\nrequired = \"internal\"\nflavor = \"enclaved\"\n\
         [server.other.admission]\ntrust_root = \"../root.json\"\nrequired = \"internal\"\n"
    ));
    bench.run(["status", ID]).exits(2).says("no server");
    let mut command = bench.command(["run", "--server", ID, "--"]);
    command.args(&program.launch);
    let mut client = Client::start(command);
    client.begin();
    client.ask("tools/list", &json!({}));
    client.end().exits(0);
    bench.run(["status"]).exits(0).says(ID).says("not admitted: unattested").never_says("other");
    bench.run(["status", ID]).exits(0).says("not admitted: unattested");
    bench.run(["status", "other"]).exits(2).says("no server");
    let status = bench.server_status();
    assert_eq!((&status["id"], &status["status"]), (&json!(ID), &json!("unbaselined")));
    assert_eq!(
        (&status["admission"]["verdict"], &status["first_seen"]),
        (&json!("deny"), &Value::Null)
    );
}
