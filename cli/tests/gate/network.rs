//! The network, end to end: `run` and `pins --stdio` use a directory on loopback, and every byte
//! sent was announced before.

use crate::behavior::Behaving;
use crate::bench::*;
use crate::client::*;
use contract::hash::{DefinitionHash, EntryHash};
use gate::network::messages::DriftSource;
use gate::network::{
    Advisory, AdvisoryKind, AdvisoryPage, Bucket, CorpusBucket, CorpusRow, CorpusVerdict,
    DriftEntry, DriftPage, DriftReport, Hour, InstallReport, Parameters, ReasonClass, ReportBucket,
    Salt,
};
use gate::time::Timestamp;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};
use testing::{HttpAnswer, HttpRequest, HttpService};

const SALT: Salt = Salt::from_bytes([5; 32]);
const KEY: &str = "hpn_Jq3wRt8y";
const VARIABLE: &str = "HOLDPOINT_TEST_NETWORK_KEY";
/// The names of a directory and a model reached over TLS.
const NAMES: [&str; 2] = ["directory.test", "model.test"];
const AUTHORITY: &str = "authority.pem";

/// The directory's content, which tests can extend.
#[derive(Default)]
struct Known {
    rows: Vec<CorpusRow>,
    drift: Vec<DriftReport>,
    reports: Vec<InstallReport>,
    advisories: Vec<Advisory>,
}

#[derive(Clone, Default)]
pub(crate) struct Directory(Arc<Mutex<Known>>);

impl Directory {
    fn start(&self) -> HttpService {
        let directory = self.clone();
        HttpService::start(move |request| directory.answer(request))
    }

    fn learn(&self, teach: impl FnOnce(&mut Known)) {
        teach(&mut self.0.lock().unwrap());
    }

    fn answer(&self, request: &HttpRequest) -> HttpAnswer {
        let known = self.0.lock().unwrap();
        if !request.raw.contains(&format!("authorization: Bearer {KEY}\r\n")) {
            return HttpAnswer::Status(401);
        }
        let path = request.path.strip_prefix("/api/v1/network/").unwrap_or_default();
        let all = Bucket::new(0, 0).unwrap();
        let after = |path: &str| path.split('=').next_back().and_then(|it| it.parse::<u64>().ok());
        let answer = match (request.method.as_str(), path) {
            ("GET", "parameters") => json!(Parameters::new(12, SALT)),
            ("GET", "corpus/0/0") => json!(CorpusBucket::new(all, known.rows.clone())),
            ("GET", "reports/0/0") => json!(ReportBucket::new(all, known.reports.clone())),
            ("GET", path) if path.starts_with("drift") => {
                let entries = (1..).zip(&known.drift).map(|(seq, change)| {
                    let (change, source) = (change.clone(), DriftSource::Crawler);
                    DriftEntry { seq, change, source }
                });
                let from = after(path).unwrap();
                let entries: Vec<DriftEntry> = entries.filter(|it| it.seq > from).collect();
                json!(DriftPage::new(entries.last().map_or(from, |it| it.seq), entries))
            }
            ("GET", path) if path.starts_with("advisories") => {
                let from = after(path).unwrap();
                let new: Vec<Advisory> =
                    known.advisories.iter().filter(|it| it.seq > from).copied().collect();
                json!(AdvisoryPage::new(new.last().map_or(from, |it| it.seq), new))
            }
            ("POST", "corpus" | "drift") => return HttpAnswer::Status(204),
            _ => return HttpAnswer::Status(404),
        };
        HttpAnswer::Json(answer.to_string())
    }
}

/// A server whose tool has changed its result schema since it was pinned: inconclusive.
pub(crate) struct Changed {
    server: Behaving,
    definition: DefinitionHash,
    before: EntryHash,
    after: EntryHash,
    /// The only trusted certificate authority, if not the system's.
    authority: Option<PathBuf>,
}

fn table(service: &HttpService, more: &str) -> String {
    table_of(&service.url(), more)
}

fn table_of(url: &str, more: &str) -> String {
    format!(
        "[approve]\nunattended = true\n[network]\nurl = \"{url}\"\nkey = \"env:{VARIABLE}\"\nallow_private = true\n{more}"
    )
}

impl Changed {
    pub(crate) fn new() -> Changed {
        let server = Behaving::changed("honest", "");
        let mut check = server.bench.command(["check", "--json", "--server", ID, "--"]);
        check.args(server.launch());
        let document = answer(check).exits(10).json();
        let entry = document["entries"].as_array().unwrap().iter();
        let entry = entry.clone().find(|it| it["type"] == "tool").unwrap();
        assert_eq!(entry["verdict"], "INCONCLUSIVE", "{entry}");
        let hash = |name: &str, side: &str| entry[name][side].as_str().unwrap().to_owned();
        let definition = hash("definition_hash", "after").parse().unwrap();
        let before = hash("entry_hash", "before").parse().unwrap();
        let after = hash("entry_hash", "after").parse().unwrap();
        Changed { server, definition, before, after, authority: None }
    }

    /// Trusts the authority of [`secure_directory_and_model`].
    #[cfg(target_os = "linux")]
    pub(crate) fn trust_the_world(&mut self) {
        self.authority = Some(testing::watched::shared_folder().join(AUTHORITY));
    }

    fn row(&self, verdict: CorpusVerdict) -> CorpusRow {
        let reason_class = ReasonClass::Conformance;
        CorpusRow { definition_hash: self.definition, verdict, reason_class }
    }

    fn change(&self) -> DriftReport {
        DriftReport {
            fp_before: SALT.fingerprint(self.before),
            fp_after: SALT.fingerprint(self.after),
            kinds: vec![contract::change::ChangeKind::OutputSchemaChanged],
            safety: true,
            hour: Hour::of(Timestamp(1_790_000_000_000)),
        }
    }

    pub(crate) fn bench(&self) -> &Bench {
        &self.server.bench
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = self.bench().command(words);
        command.env(VARIABLE, KEY);
        if let Some(authority) = &self.authority {
            command.env("SSL_CERT_FILE", authority).env_remove("SSL_CERT_DIR");
        }
        command
    }

    #[track_caller]
    pub(crate) fn run(&self, words: &[&str]) -> Answer {
        answer(self.command(words))
    }

    pub(crate) fn session(&self) -> Client {
        let mut command = self.command(&["run", "--server", ID, "--"]);
        command.args(self.server.launch());
        let mut client = Client::start(command);
        client.begin();
        client
    }

    pub(crate) fn sent(&self) -> Vec<String> {
        let status = self.run(&["network", "status", "--json"]).exits(0).json();
        let sent = status["sent"].as_array().unwrap().iter();
        sent.map(|it| it["request"].as_str().unwrap().to_owned()).collect()
    }

    fn would_send(&self) -> Vec<String> {
        let status = self.run(&["network", "status", "--json"]).exits(0).json();
        let all = status["would_send"].as_array().unwrap().iter();
        all.map(|it| it["request"].as_str().unwrap().to_owned()).collect()
    }
}

pub(crate) fn arguments() -> Value {
    json!({"title": "t", "count": 1})
}

/// The received requests, with the key as `network status` prints it.
fn heard(service: &HttpService) -> Vec<String> {
    let secret = format!("Bearer {KEY}");
    service.requests().iter().map(|it| it.raw.replace(&secret, "<secret>")).collect()
}

#[test]
fn a_dangerous_contract_is_held_and_every_byte_was_announced() {
    let (changed, directory) = (Changed::new(), Directory::default());
    let service = directory.start();
    directory.learn(|known| known.rows.push(changed.row(CorpusVerdict::Dangerous)));
    changed.bench().configure(&table(&service, ""));
    let status = changed.run(&["network", "status"]).exits(0);
    status.says("the number of bits is not known yet").says("/api/v1/network/corpus/14/");
    let announced = changed.would_send();
    assert_eq!(service.connections(), 0, "`status` sends nothing");
    let mut client = changed.session();
    let data = testing::wait_for("a refusal that rests on the corpus", || {
        let held = client.call("make_report", &arguments());
        let data = held["error"]["data"].clone();
        assert_eq!(held["error"]["code"], HELD, "{held}");
        (data["tier_reached"] == 1).then_some(data)
    });
    assert_eq!(data["verdict"], "HOLD");
    testing::wait_until("the feeds were read", || service.requests().len() >= 4);
    client.end().exits(0);
    for request in heard(&service) {
        assert!(announced.contains(&request), "not announced: {request}\n{announced:#?}");
        assert!(changed.sent().contains(&request), "not recorded: {request}");
    }
    // The record contains only what was received.
    assert_eq!(changed.sent().len(), service.requests().len());
    let status = changed.run(&["network", "status"]).exits(0).never_says(KEY);
    status.says("corpus/0/0 HTTP/1.1");
}

#[test]
fn an_application_s_session_asks_the_same_way() {
    let (changed, directory) = (Changed::new(), Directory::default());
    let service = directory.start();
    directory.learn(|known| known.rows.push(changed.row(CorpusVerdict::Dangerous)));
    changed.bench().configure(&table(&service, ""));
    let mut gate = Client::start(changed.command(&["pins", "--stdio"]));
    gate.send(&json!({"open": {"version": 1, "server": ID, "relistMaxAge": 0}}));
    gate.line("opened");
    let mut server = Client::direct(&changed.server.launch());
    let mut ask = |id: u64, method: &str, params: Value| -> Value {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        gate.send(&json!({"client": request}));
        loop {
            let line = gate.any_line();
            let (kind, message) = line.as_object().unwrap().iter().next().unwrap();
            match kind.as_str() {
                "toServer" => {
                    server.send(message);
                    if message.get("id").is_some() {
                        let answer = server.answer_to(&message["id"]);
                        gate.send(&json!({"server": answer}));
                    }
                }
                "toClient" | "answer" if message["id"] == json!(id) => return message.clone(),
                _ => {}
            }
        }
    };
    let info = json!({"name": "app", "version": "1"});
    let greeting = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info});
    ask(1, "initialize", greeting);
    let mut id = 1;
    let held = testing::wait_for("a refusal that rests on the corpus", || {
        id += 1;
        let call = json!({"name": "make_report", "arguments": arguments()});
        let held = ask(id, "tools/call", call);
        (held["error"]["data"]["tier_reached"] == 1).then_some(held)
    });
    assert_eq!(held["error"]["data"]["verdict"], "HOLD");
}

#[test]
fn a_veto_opens_no_connection() {
    let (changed, directory) = (Changed::new(), Directory::default());
    let service = directory.start();
    let configured = table(&service, "contribute = true\n");
    let check = |configure: &str, variable: Option<&str>, says: &str| {
        changed.bench().configure(configure);
        let mut command = changed.command(&["run", "--server", ID, "--"]);
        if let Some(value) = variable {
            command.env("DO_NOT_TRACK", value);
        }
        command.args(changed.server.launch());
        let mut client = Client::start(command);
        client.begin();
        let held = client.call("make_report", &arguments());
        assert_eq!(held["error"]["data"]["verdict"], "INCONCLUSIVE");
        assert_eq!(held["error"]["data"]["tier_reached"], 0);
        client.end().exits(0);
        let mut status = changed.command(&["network", "status"]);
        if let Some(value) = variable {
            status.env("DO_NOT_TRACK", value);
        }
        answer(status).exits(0).says(says);
        for words in [&["review"][..], &["network", "advisories"]] {
            let mut command = changed.command(words);
            if let Some(value) = variable {
                command.env("DO_NOT_TRACK", value);
            }
            answer(command);
        }
        assert_eq!(service.connections(), 0, "{says}");
    };
    check(&configured, Some("1"), "off: the variable `DO_NOT_TRACK` is set");
    check(&format!("{configured}forbid = true\n"), None, "`network.forbid` is set");
    check("", None, "off: no directory is configured");
    changed.run(&["network", "off"]).exits(0);
    check(&configured, None, "off: `holdpoint network off` was run");
}

/// A real keyring in a separate session. The key is in no file of the home.
#[cfg(target_os = "linux")]
#[test]
fn a_key_is_read_from_the_system_s_keyring() {
    for program in ["dbus-run-session", "gnome-keyring-daemon", "secret-tool"] {
        let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
        if !found.unwrap().status.success() {
            // Keyrings are only installed for the long form of the tests.
            if std::env::var_os("HOLDPOINT_LONG").is_some() {
                testing::not_run(&format!("`{program}` is not installed"));
            }
            return eprintln!("not run: `{program}` is not installed");
        }
    }
    let (changed, directory) = (Changed::new(), Directory::default());
    let service = directory.start();
    changed.bench().configure("");
    let script = r#"
        echo -n test | gnome-keyring-daemon --unlock --components=secrets >/dev/null 2>&1
        printf '%s' "$KEY" | secret-tool store --label=network service holdpoint username directory
        "$HOLDPOINT" network on --url "$URL" --allow-private --key keyring:absent; echo "absent: $?"
        "$HOLDPOINT" network on --url "$URL" --allow-private --key keyring:directory; echo "on: $?"
        "$HOLDPOINT" network advisories; echo "advisories: $?"
    "#;
    let template = changed.command(&[]);
    let mut command = Command::new("dbus-run-session");
    command.args(["--", "sh", "-c", script]).current_dir(template.get_current_dir().unwrap());
    for (name, value) in template.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let folder = changed.bench().path("keyring");
    std::fs::create_dir(&folder).unwrap();
    command.env("XDG_RUNTIME_DIR", &folder).env("XDG_DATA_HOME", folder.join("data"));
    command.env("HOLDPOINT", template.get_program()).env("URL", service.url()).env("KEY", KEY);
    let said = answer(command).exits(0).never_says(KEY);
    let said = said.says("absent: 2").says("on: 0").says("advisories: 0");
    said.says("no call of this home used one of the 0 definitions");
    let heard = service.requests();
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert!(heard[0].raw.contains(&format!("authorization: Bearer {KEY}\r\n")), "{heard:?}");
    let configured = std::fs::read_to_string(changed.bench().home().join("holdpoint.toml"));
    assert!(configured.unwrap().contains("key = \"keyring:directory\""));
    // In a session without a keyring, the key cannot be read, and no request is made.
    let mut without = changed.command(&["network", "advisories"]);
    without.env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent");
    answer(without).exits(0);
    assert_eq!(service.requests().len(), 1);
}

/// The administrator's configuration file, in a mount namespace in which `/etc` contains one.
#[cfg(target_os = "linux")]
#[test]
fn the_administrator_s_file_vetoes_and_so_does_one_that_cannot_be_read() {
    let (changed, directory) = (Changed::new(), Directory::default());
    let service = directory.start();
    changed.bench().configure(&table(&service, "contribute = true\n"));
    let check = |file: &str, says: &str| {
        let folder = changed.bench().path("etc");
        let script = format!(
            "mkdir -p '{0}' && mount -t tmpfs none '{0}' && cp -a /etc/. '{0}' && mkdir -p '{0}/holdpoint' && printf '%s' '{file}' > '{0}/holdpoint/holdpoint.toml' && mount --bind '{0}' /etc && exec \"$@\"",
            folder.display()
        );
        let launch: Vec<String> =
            changed.server.launch().iter().map(|it| it.to_str().unwrap().to_owned()).collect();
        let check = ["check", "--server", ID, "--"].map(str::to_owned);
        let check: Vec<String> = check.into_iter().chain(launch).collect();
        let plain = ["network status", "network advisories", "review"]
            .map(|line| line.split(' ').map(str::to_owned).collect::<Vec<String>>());
        for words in plain.into_iter().chain([check]) {
            let template = changed.command(&words.iter().map(String::as_str).collect::<Vec<_>>());
            let mut command = Command::new("unshare");
            if !rustix::process::getuid().is_root() {
                command.arg("--map-root-user");
            }
            command.args(["--mount", "sh", "-c", &script, "sh"]);
            command.arg(template.get_program()).args(template.get_args());
            command.current_dir(template.get_current_dir().unwrap());
            for (name, value) in template.get_envs() {
                match value {
                    Some(value) => command.env(name, value),
                    None => command.env_remove(name),
                };
            }
            let answer = answer(command);
            if answer.err.contains("unshare:") || answer.err.contains("mount:") {
                testing::not_run(&format!("no file system can be mounted: {}", answer.err));
                return;
            }
            if words == ["network", "status"] {
                answer.exits(0).says(says);
            }
        }
        assert_eq!(service.connections(), 0, "{says}");
    };
    let says = "off: `/etc/holdpoint/holdpoint.toml` forbids it or cannot be read";
    check("[network]\nforbid = true\n", says);
    check("[network\n", says);
    // The counterpart: without a veto in it, the same commands send requests.
    check_asks(&changed, &service);
}

#[cfg(target_os = "linux")]
fn check_asks(changed: &Changed, service: &HttpService) {
    changed.run(&["network", "advisories"]).exits(0);
    assert_eq!(service.connections(), 1);
}

/// With everything turned on, in a namespace whose only connection is monitored: exactly the bytes
/// announced by `network status` cross the cable.
#[cfg(target_os = "linux")]
#[test]
fn every_byte_that_leaves_was_announced() {
    use testing::watched::{PLAIN, Watched, streams};
    let (directory_at, model_at) = ((PLAIN, 8080), (PLAIN, 8081));
    Watched {
        test: "network::every_byte_that_leaves_was_announced",
        world: &|| {
            let directory = Directory::default();
            let model = |_: &HttpRequest| opinion_of("LIKELY_HOSTILE");
            let directory = HttpService::start_at(directory_at.into(), move |request| {
                directory.answer(request)
            });
            (directory, HttpService::start_at(model_at.into(), model))
        },
        product: &|| {
            let changed = Changed::new();
            let network = table_of(&format!("http://{PLAIN}:8080"), "contribute = true\n");
            changed.bench().configure(&(network + &judge_of(&format!("http://{PLAIN}:8081"))));
            everything_that_is_sent(&changed)
        },
        check: &|(directory, model), packets, report| {
            let left = streams(packets).into_iter().map(|bytes| String::from_utf8(bytes).unwrap());
            let left: Vec<String> = left.collect();
            check_announced(&left, report);
            let others = packets.iter().filter(|it| it.protocol != Some(6));
            assert_eq!(others.collect::<Vec<_>>(), [] as [&testing::watched::Packet; 0]);
            let heard = directory.requests().len() + model.requests().len();
            assert_eq!(heard, left.len(), "nothing went elsewhere");
        },
    }
    .run();
}

/// The same over TLS, at a public address, with names that are looked up. Only lookups of these
/// names and connections to that address cross the cable; inside TLS are exactly the bytes
/// announced by `network status`.
#[cfg(target_os = "linux")]
#[test]
fn every_byte_that_leaves_inside_tls_was_announced() {
    use testing::watched::{NameServer, PUBLIC, Watched};
    Watched {
        test: "network::every_byte_that_leaves_inside_tls_was_announced",
        world: &|| {
            let names = NameServer::start(|name, _| match NAMES.contains(&name) {
                true => vec![PUBLIC],
                false => Vec::new(),
            });
            (names, secure_directory_and_model(&Directory::default(), &NAMES))
        },
        product: &|| {
            let mut changed = Changed::new();
            changed.trust_the_world();
            changed.bench().configure(&public_only(&over_tls(NAMES, "contribute = true\n")));
            everything_that_is_sent(&changed)
        },
        check: &|(names, service), packets, report| {
            let left: Vec<String> = service.requests().into_iter().map(|it| it.raw).collect();
            check_announced(&left, report);
            for packet in packets {
                let is_tls = packet.to == Some(PUBLIC.into()) && packet.to_port == 443;
                let is_tls = is_tls && packet.protocol == Some(6);
                assert!(is_tls || packet.is_name_look_up(), "{packet:?}");
                let text = String::from_utf8_lossy(&packet.payload);
                assert!(!text.contains(KEY) && !text.contains("/api/v1"), "in the clear: {text}");
            }
            assert_eq!(testing::watched::streams(packets).len(), left.len(), "one request each");
            let looked_up = NAMES.map(|name| names.times_asked(name));
            assert_eq!(looked_up.iter().sum::<usize>(), left.len(), "one look-up each");
        },
    }
    .run();
}

/// A directory and a model combined, over TLS at the world's public address, with a certificate for
/// these names. The product finds their certificate authority in the shared folder.
#[cfg(target_os = "linux")]
pub(crate) fn secure_directory_and_model(directory: &Directory, names: &[&str]) -> HttpService {
    use testing::watched::{PUBLIC, shared_folder};
    let (authority, config) = crate::secure_server::identity(names);
    std::fs::write(shared_folder().join(AUTHORITY), authority).unwrap();
    let open = move |stream| crate::secure_server::encrypted(&config, stream);
    let directory = directory.clone();
    HttpService::start_through((PUBLIC, 443).into(), open, move |request| {
        match request.path.starts_with("/v1/chat") {
            true => opinion_of("LIKELY_HOSTILE"),
            false => directory.answer(request),
        }
    })
}

/// The configuration for a directory and a model over TLS, with private addresses allowed as in the
/// other tests.
pub(crate) fn over_tls([directory, model]: [&str; 2], more: &str) -> String {
    table_of(&format!("https://{directory}"), more) + &judge_of(&format!("https://{model}"))
}

/// The same without private addresses.
pub(crate) fn public_only(configuration: &str) -> String {
    configuration.replace("allow_private = true\n", "")
}

/// Does everything that sends requests. Returns the announced and the recorded requests as one
/// line.
fn everything_that_is_sent(changed: &Changed) -> String {
    let mut announced = changed.would_send();
    let mut session = |what: &str, sent: &[&str]| {
        let mut client = changed.session();
        client.call("make_report", &arguments());
        testing::wait_until(what, || {
            let all = changed.sent();
            sent.iter().all(|it| all.iter().any(|request| request.starts_with(it)))
        });
        client.end().exits(0);
        announced.extend(changed.would_send());
    };
    // Requests that depend on the salt are announced once the salt is known.
    let first = ["GET /api/v1/network/corpus", "GET /api/v1/network/advisories", "POST /v1/chat"];
    session("the first session", &first);
    session("a report", &["POST /api/v1/network/drift"]);
    changed.run(&["review"]).exits(10);
    changed.run(&["network", "advisories"]).exits(0);
    changed.run(&["quarantine", ID]).exits(0);
    announced.extend(changed.would_send());
    let client = changed.session();
    testing::wait_until("a contribution", || {
        changed.sent().iter().any(|it| it.starts_with("POST /api/v1/network/corpus"))
    });
    client.end();
    json!({"announced": announced, "sent": changed.sent()}).to_string()
}

/// Compares the sent requests with the announced and the recorded ones.
#[track_caller]
fn check_announced(left: &[String], report: &str) {
    let report: Value = serde_json::from_str(report).unwrap();
    let texts = |name: &str| {
        let all = report[name].as_array().unwrap().iter();
        all.map(|it| without_marker(it.as_str().unwrap())).collect::<Vec<String>>()
    };
    let (announced, mut sent) = (texts("announced"), texts("sent"));
    let secret = format!("Bearer {KEY}");
    let mut left: Vec<String> =
        left.iter().map(|it| without_marker(&it.replace(&secret, "<secret>"))).collect();
    for request in &left {
        // Before the salt was known, fingerprints were announced as zeros.
        let is_announced = announced.contains(request) || announced.contains(&with_zeros(request));
        assert!(is_announced, "not announced: {request}\n{announced:#?}");
    }
    assert!(left.len() > 7, "{left:#?}");
    // The record contains every sent request, as often as it was sent.
    left.sort();
    sent.sort();
    assert_eq!(left, sent);
}

/// Replaces the fingerprints in a report by zeros.
fn with_zeros(request: &str) -> String {
    let parts: Vec<&str> = request.split("\"fp_").collect();
    let (first, rest) = parts.split_first().unwrap();
    let zeroed = rest.iter().map(|part| {
        let (name, value) = part.split_once(":\"").unwrap();
        format!("{name}:\"{}{}", "0".repeat(64), &value[64..])
    });
    std::iter::once((*first).to_owned()).chain(zeroed).collect::<Vec<_>>().join("\"fp_")
}

/// Removes the markers around the server's text, which are random; all other bytes of a question
/// are fixed.
fn without_marker(request: &str) -> String {
    let parts: Vec<&str> = request.split("=== data ").collect();
    let (first, rest) = parts.split_first().unwrap();
    let rest = rest.iter().map(|part| part.get(32..).unwrap_or_default());
    std::iter::once(*first).chain(rest).collect::<Vec<&str>>().join("=== data ")
}

/// Traces the system calls of every command and a whole session: none opens a network socket.
#[test]
fn with_everything_off_no_socket_is_opened() {
    let has_strace = Command::new("strace").arg("-V").output().is_ok_and(|it| it.status.success());
    if !has_strace {
        return testing::not_run("there is no strace here");
    }
    let changed = Changed::new();
    changed.bench().configure("");
    let trace = changed.bench().path("trace");
    let traced = |words: &[&str]| {
        let plain = changed.command(words);
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-e", "trace=socket,connect", "-o"]).arg(&trace);
        command.arg(plain.get_program()).args(plain.get_args());
        for (name, value) in plain.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.current_dir(plain.get_current_dir().unwrap());
        command
    };
    let check = |what: &str| {
        let text = std::fs::read_to_string(&trace).unwrap();
        assert!(!text.contains("AF_INET"), "{what}: {text}");
    };
    for words in [
        &["status"][..],
        &["review"],
        &["network", "status"],
        &["network", "advisories"],
        &["history", ID],
        &["stats"],
    ] {
        let _ = answer(traced(words));
        check(&words.join(" "));
    }
    let mut run = traced(&["run", "--server", ID, "--"]);
    run.args(changed.server.launch());
    let mut client = Client::start(run);
    client.begin();
    let held = client.call("make_report", &arguments());
    assert_eq!(held["error"]["data"]["verdict"], "INCONCLUSIVE");
    client.end().exits(0);
    check("run");
}

#[test]
fn what_the_crawler_saw_is_told_when_pinning_and_when_reviewing_and_reports_are_unconfirmed() {
    let (changed, directory) = (Changed::new(), Directory::default());
    let service = directory.start();
    let change = changed.change();
    directory.learn(|known| {
        let (fp_before, fp_after) = (change.fp_before, change.fp_after);
        known.reports.push(InstallReport { fp_before, fp_after, installs: 3 });
        known.drift.push(change);
    });
    changed.bench().configure(&table(&service, ""));
    let mut check = changed.command(&["check", "--server", ID, "--"]);
    check.args(changed.server.launch());
    let told = answer(check).exits(10);
    told.says("The directory's crawler recorded the same change");
    // The session itself fetches the parameters that fingerprints need.
    let mut client = changed.session();
    let held = testing::wait_for("a banner with the advisory", || {
        let held = client.call("make_report", &arguments());
        let said = held["error"]["message"].as_str().unwrap().to_owned();
        said.contains("crawler recorded the same change").then_some(held)
    });
    assert_eq!(held["error"]["data"]["verdict"], "INCONCLUSIVE", "{held}");
    assert!(!held.to_string().contains("unconfirmed"), "never in a banner: {held}");
    client.end().exits(0);
    let review = changed.run(&["review"]).exits(10);
    let review = review.says("The directory's crawler recorded the same change");
    review.says("unconfirmed: 3 installs say that they met the same change");
    let review = changed.run(&["review", "--json"]).exits(10).json();
    let others = &review["servers"][0]["waiting"][0]["others"];
    assert_eq!(
        (&others["unconfirmed_reports"], &others["advisory"]["seen"]),
        (&json!(3), &json!("same-change"))
    );
    // Another install pins the old contract.
    std::fs::write(changed.bench().path("behaving").join("version"), "1").unwrap();
    let mut pin = changed.command(&["pin", "--server", "other", "--"]);
    pin.args(changed.server.launch());
    answer(pin).exits(0).says("The directory's crawler saw this contract change elsewhere");
}

#[test]
fn counts_that_no_number_holds_do_not_end_a_review() {
    let (changed, directory) = (Changed::new(), Directory::default());
    let service = directory.start();
    let DriftReport { fp_before, fp_after, .. } = changed.change();
    let report = InstallReport { fp_before, fp_after, installs: u32::MAX };
    directory.learn(|known| known.reports.extend([report, report]));
    changed.bench().configure(&table(&service, ""));
    let review = changed.run(&["review", "--json"]).exits(10).json();
    let others = &review["servers"][0]["waiting"][0]["others"];
    assert_eq!(others["unconfirmed_reports"], json!(u32::MAX), "{review}");
}

#[test]
fn a_decision_of_a_person_is_contributed_with_consent_and_as_the_triple_alone() {
    let (changed, directory) = (Changed::new(), Directory::default());
    let service = directory.start();
    changed.bench().configure("[approve]\nunattended = true\n");
    changed
        .run(&[
            "network",
            "on",
            "--url",
            &service.url(),
            "--key",
            &format!("env:{VARIABLE}"),
            "--allow-private",
            "--contribute",
        ])
        .exits(0)
        .says("ask");
    let configured =
        std::fs::read_to_string(changed.bench().home().join("holdpoint.toml")).unwrap();
    assert!(!configured.contains(KEY) && configured.contains("unattended = true"), "{configured}");
    changed.run(&["quarantine", ID]).exits(0);
    let row =
        CorpusRow { reason_class: ReasonClass::Unstated, ..changed.row(CorpusVerdict::Dangerous) };
    let expected = json!(row).to_string();
    let announced = changed.would_send();
    assert!(announced.iter().any(|it| it.ends_with(&expected)), "{announced:#?}");
    let client = changed.session();
    testing::wait_until("a contribution", || service.count("POST", "/api/v1/network/corpus") == 1);
    client.end();
    let posts: Vec<HttpRequest> =
        service.requests().into_iter().filter(|it| it.path.ends_with("/corpus")).collect();
    assert_eq!(posts[0].body, expected);
    assert!(
        announced
            .contains(&heard(&service).into_iter().find(|it| it.ends_with(&expected)).unwrap())
    );
}

#[test]
fn a_contract_found_dangerous_afterwards_is_joined_with_who_called_it() {
    let (changed, directory) = (Changed::new(), Directory::default());
    let service = directory.start();
    changed.bench().configure("");
    let mut approve = changed.session();
    approve.call("make_report", &arguments());
    approve.end().exits(0);
    std::fs::write(changed.bench().path("behaving").join("version"), "1").unwrap();
    let mut client = changed.session();
    for _ in 0..2 {
        assert!(client.call("make_report", &arguments()).get("result").is_some());
    }
    client.end().exits(0);
    changed.bench().configure(&table(&service, ""));
    changed.run(&["network", "advisories"]).exits(0).says("no call of this home");
    directory.learn(|known| {
        known.advisories.push(Advisory {
            seq: 1,
            definition_hash: changed.definition,
            kind: AdvisoryKind::Dangerous,
            reason_class: ReasonClass::Exfiltration,
            hour: Hour::of(Timestamp(1_790_000_000_000)),
        });
    });
    let found = changed.run(&["network", "advisories", "--json"]).exits(10).json();
    let calls = &found["affected"][0];
    assert_eq!(
        (&calls["server"], &calls["tool"], &calls["calls"]),
        (&json!(ID), &json!("make_report"), &json!(2))
    );
    assert_eq!(
        (&calls["principal"], &calls["reason_class"]),
        (&json!(WHO), &json!("exfiltration"))
    );
    changed.run(&["network", "advisories", "--offline"]).exits(10).says("2 calls by ada");
    directory.learn(|known| {
        let first = known.advisories[0];
        known.advisories.push(Advisory { seq: 2, kind: AdvisoryKind::Withdrawn, ..first });
    });
    changed.run(&["network", "advisories"]).exits(0);
}

#[test]
fn a_directory_is_named_whole_and_its_key_is_never_given() {
    let bench = Bench::new();
    bench.run(["network", "on"]).exits(2).says("which directory?");
    bench.run(["network", "on", "--url", "https://d.example"]).exits(2).says("`--key`: missing");
    let given = bench.run(["network", "on", "--url", "https://d.example", "--key", "s3cret"]);
    given.exits(2).never_says("s3cret");
    let unset = bench.run(["network", "on", "--url", "https://d.example", "--key", "env:NOT_SET"]);
    unset.exits(2).says("`NOT_SET` is not set");
    let status = bench.run(["network", "status"]).exits(0);
    let status = status.says("off: no directory is configured");
    let status = status.says("GET /api/v1/network/parameters HTTP/1.1");
    status.says("The first request is the first one below.");
}

fn model(opinion: &'static str) -> HttpService {
    HttpService::start(move |_| opinion_of(opinion))
}

fn opinion_of(opinion: &str) -> HttpAnswer {
    let said = json!({"opinion": opinion, "severity": "high", "reason_class": "destructive-flip",
        "rationale": "Its words hide \u{1b}[2J what it does."});
    let message = json!({"role": "assistant", "content": said.to_string()});
    HttpAnswer::Json(json!({"choices": [{"message": message}]}).to_string())
}

fn judge(service: &HttpService) -> String {
    judge_of(&service.url())
}

fn judge_of(url: &str) -> String {
    format!(
        "[judge]\napi = \"openai\"\nurl = \"{url}/v1/chat/completions\"\nmodel = \"m-1\"\nkey = \"env:{VARIABLE}\"\nallow_private = true\n"
    )
}

#[test]
fn an_opinion_is_announced_recorded_and_shown_to_a_person_as_an_opinion() {
    let changed = Changed::new();
    let service = model("LIKELY_HOSTILE");
    changed.bench().configure(&judge(&service));
    let announced = changed.would_send();
    let question = announced.iter().find(|it| it.starts_with("POST /v1/chat/completions")).unwrap();
    assert_eq!(service.connections(), 0, "`status` sends nothing");
    let mut client = changed.session();
    let held = testing::wait_for("a refusal that rests on the opinion", || {
        let held = client.call("make_report", &arguments());
        (held["error"]["data"]["tier_reached"] == 2).then_some(held)
    });
    assert_eq!(held["error"]["data"]["verdict"], "HOLD");
    client.end().exits(0);
    // The marker is random; all other bytes were announced.
    let heard = heard(&service);
    let body = |text: &str| {
        text.split("=== data ")
            .map(|part| part.get(32..).unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(body(&heard[0])[1..], body(question)[1..]);
    assert_eq!(changed.sent(), heard);
    let review = changed.run(&["review", "--server-text"]).exits(10);
    let review =
        review.says("an opinion, not a verdict: m-1 says LIKELY_HOSTILE (high, destructive-flip)");
    review.says("Its words hide").never_says("\u{1b}[2J");
    changed.run(&["review"]).exits(10).never_says("Its words hide");
    let document = changed.run(&["review", "--json"]).exits(10).json();
    let opinion = &document["servers"][0]["waiting"][0]["others"]["opinion"];
    assert_eq!(
        (&opinion["opinion"], &opinion["rationale"]),
        (&json!("LIKELY_HOSTILE"), &Value::Null)
    );
}

#[test]
fn a_screening_asks_the_model_only_where_it_is_told_to() {
    let changed = Changed::new();
    let service = model("LIKELY_HOSTILE");
    changed.bench().file("honest.json", json!([report_tool()]).to_string());
    changed.run(&["screen", "honest.json", "--judge"]).exits(2).says("there is no model to ask");
    changed.bench().configure(&judge(&service));
    changed.run(&["screen", "honest.json"]).exits(0);
    assert_eq!(service.connections(), 0);
    let screened = changed.run(&["screen", "honest.json", "--judge", "--json"]).exits(10).json();
    assert_eq!(screened["worst"], "high", "{screened:#}");
    assert!(!screened.to_string().contains("Its words hide"), "{screened:#}");
    // The opinion is cached, so no request is made.
    changed.run(&["screen", "honest.json", "--judge"]).exits(10);
    assert_eq!(service.requests().len(), 1);
    changed.run(&["network", "off"]).exits(0);
    changed
        .run(&["screen", "honest.json", "--judge"])
        .exits(2)
        .says("`holdpoint network off` was run");
}

#[test]
fn off_counts_at_once_for_a_session_that_runs() {
    let (changed, directory) = (Changed::new(), Directory::default());
    let service = directory.start();
    changed.bench().configure(&table(&service, ""));
    std::fs::write(changed.bench().path("behaving").join("version"), "1").unwrap();
    let mut command = changed.command(&["run", "--server", ID, "--relist-max-age", "0", "--"]);
    command.args(changed.server.launch());
    let mut client = Client::start(command);
    client.begin();
    testing::wait_until("the feeds were read", || {
        service.count("GET", "/api/v1/network/advisories") > 0
    });
    let before = service.connections();
    changed.run(&["network", "off"]).exits(0).says("not even by running sessions");
    std::fs::write(changed.bench().path("behaving").join("version"), "2").unwrap();
    let held = client.call("make_report", &arguments());
    let data = &held["error"]["data"];
    assert_eq!(
        (&data["verdict"], &data["tier_reached"]),
        (&json!("INCONCLUSIVE"), &json!(0)),
        "{held}"
    );
    client.end().exits(0);
    assert_eq!(service.connections(), before);
}
