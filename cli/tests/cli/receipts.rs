//! `receipts list`, `show` and `export`: the content of the ledger, for people and for other tools.

use crate::agent::Agent;
use crate::bench::*;
use crate::scribe::Ledger;
use ledger::record::{ReceiptId, RulingResult};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::Duration;

const DEADLINE: Duration = Duration::from_secs(120);

/// The documents in a stream.
fn documents(answer: &Answer) -> Vec<Value> {
    answer.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Each document in short form: the first digits of the id, or the event's name.
fn words(answer: &Answer) -> Vec<String> {
    let word = |document: &Value| match document["receipt_id"].as_str() {
        Some(id) => format!("{} {}", &id[..2], document["state"].as_str().unwrap()),
        None => document["name"].as_str().unwrap().to_owned(),
    };
    documents(answer).iter().map(word).collect()
}

fn listed(bench: &Bench, options: &[&str]) -> Vec<String> {
    words(&bench.run(["receipts", "list", "--json"].iter().chain(options)).exits(0))
}

#[test]
fn the_newest_come_last_and_bookkeeping_only_where_it_is_asked_for() {
    let bench = Bench::new();
    let _ledger = Ledger::usual(&bench.home());
    let calls = ["11 ended", "12 refused", "13 refused", "14 open"];
    let all: Vec<&str> = calls.iter().copied().chain(["server.approve"]).collect();
    assert_eq!(listed(&bench, &[]), all);
    assert_eq!(listed(&bench, &["-n", "2"]), ["14 open", "server.approve"]);
    assert_eq!(listed(&bench, &["-n", "0"]), [""; 0]);
    let with_chains = listed(&bench, &["--all"]);
    assert!(with_chains.iter().any(|word| word == "chain.opened"), "{with_chains:?}");
    let events = listed(&bench, &["--events"]);
    assert!(
        events.contains(&"server.approve".to_owned())
            && events.contains(&"chain.listed".to_owned())
    );
    assert!(!events.iter().any(|word| word.starts_with('1')), "{events:?}");
    let folder = bench.home().join("receipts");
    assert_eq!(listed(&bench, &["--receipts", folder.to_str().unwrap()]), all);
}

#[test]
fn filters_choose() {
    let bench = Bench::new();
    let _ledger = Ledger::usual(&bench.home());
    for (options, expected) in [
        (vec!["--decision", "denied"], vec!["12 refused"]),
        (vec!["--decision", "held"], vec!["13 refused"]),
        // The ledger's own words.
        (vec!["--decision", "deny"], vec!["12 refused"]),
        (vec!["--decision", "require_approval"], vec!["13 refused"]),
        (vec!["--since", "yesterday"], vec![]),
        (vec!["--until", "today", "--decision", "held"], vec!["13 refused"]),
        (vec!["--tool", "read_file"], vec!["11 ended", "14 open"]),
        (vec!["--reason", "contract_drift"], vec!["12 refused"]),
        (vec!["--id", "14"], vec!["14 open"]),
        (vec!["--server", "mail"], vec![]),
        (vec!["--principal", "bob"], vec![]),
        (vec!["--since", "2023-11-14T22:13:24Z"], vec!["14 open", "server.approve"]),
        (vec!["--until", "2023-11-14T22:13:22Z"], vec!["11 ended"]),
        (vec!["--since", "1h"], vec![]),
    ] {
        assert_eq!(listed(&bench, &options), expected, "{options:?}");
    }
}

#[test]
fn people_read_a_line_a_receipt_and_hidden_characters_are_seen() {
    let bench = Bench::new();
    let ledger = Ledger::usual(&bench.home());
    ledger.call(0x15, 6_000, RulingResult::Deny, "evil\u{1b}[2J\u{202e}\n2023 tool");
    let answer = bench.run(["receipts", "list"]).exits(0);
    assert_eq!(answer.out.lines().count(), 6, "{}", answer.out);
    assert!(!answer.out.contains('\u{1b}') && !answer.out.contains('\u{202e}'), "{}", answer.out);
    let answer = answer.says(&format!(
        "2023-11-14T22:13:21Z  {}  ALLOWED  files read_file  ada  success in 9.0 ms",
        "1".repeat(32)
    ));
    let answer = answer.says("DENIED   files write_file  ada  contract_drift").says("HELD");
    let answer = answer.says("no outcome yet");
    answer.says("server.approve  files  by ada");
    let shown = bench.run(["receipts", "show", "15"]).exits(0);
    assert!(!shown.out.contains('\u{1b}') && !shown.out.contains('\u{202e}'), "{}", shown.out);
}

#[test]
fn a_ledger_that_is_empty_or_not_there_is_told_as_what_it_is() {
    let bench = Bench::new();
    bench.run(["receipts", "list"]).exits(0).says("no receipts yet");
    assert_eq!(bench.run(["receipts", "list", "--json"]).exits(0).out, "");
    bench.run(["receipts", "list", "--receipts", "nowhere"]).exits(2).says("nowhere");
    bench.run(["receipts", "show", "11"]).exits(2).says("receipts list");
    bench.run(["receipts", "export", "--format", "csv"]).exits(0).says("record,ts,receipt_id");
    for wrong in [
        vec!["list", "--since", "last week"],
        vec!["list", "--decision", "maybe"],
        vec!["list", "-n", "100001"],
        vec!["list", "--id", "xyz"],
        vec!["show", "not-an-id"],
        vec!["show", &"1".repeat(33)],
        vec!["export", "--format", "xml"],
        vec!["export", "--live", "--since", "1h"],
        vec!["export", "--format", "csv", "--json"],
    ] {
        let answer = bench.run(["receipts"].iter().chain(&wrong)).exits(2);
        assert!(!answer.err.is_empty(), "{wrong:?}");
    }
}

#[test]
fn a_line_that_cannot_be_read_is_told_and_the_rest_is_listed() {
    let bench = Bench::new();
    let ledger = Ledger::usual(&bench.home());
    let mut file = fs::OpenOptions::new().append(true).open(ledger.segment()).unwrap();
    file.write_all(b"{\"record\":\"decision\",\"x\":\"\\u001b[31m\"}\n").unwrap();
    let answer = bench.run(["receipts", "list"]).exits(0).says("note: chain ").says("line 8");
    assert_eq!(answer.out.lines().count(), 5);
    let answer = bench.run(["receipts", "export", "-o", "all.jsonl", "--json"]).exits(0);
    assert_eq!(answer.json()["unreadable"], 1);
}

#[test]
fn a_receipt_is_shown_by_its_first_digits_with_where_it_stands() {
    let bench = Bench::new();
    let ledger = Ledger::usual(&bench.home());
    ledger.checkpoint();
    ledger.call(0x21, 7_000, RulingResult::Deny, "late");
    let document = bench.run(["receipts", "show", "1111", "--json"]).exits(0).json();
    assert_eq!(document["receipt"]["outcome"]["status"], "success");
    assert_eq!(
        (&document["decision"]["line"], &document["decision"]["seq"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(
        (&document["outcome"]["line"], &document["outcome"]["covered"]),
        (&json!(3), &json!(true))
    );
    let text = document["decision"]["text"].as_str().unwrap();
    let line: Value = serde_json::from_str(text).unwrap();
    assert_eq!(line["hash"], document["receipt"]["hash"]);
    assert!(fs::read_to_string(ledger.segment()).unwrap().lines().any(|line| line == text));
    let late = bench.run(["receipts", "show", "21", "--json"]).exits(0).json();
    assert_eq!((&late["decision"]["covered"], &late["outcome"]), (&json!(false), &Value::Null));
    bench
        .run(["receipts", "show", "1111"])
        .exits(0)
        .says("a checkpoint covers it")
        .says("args_hash");
    bench.run(["receipts", "show", "1"]).exits(2).says("type more digits").says(&"13".repeat(16));
    bench.run(["receipts", "show", "ff"]).exits(2).says("receipts list");
}

#[test]
fn every_format_is_written_to_standard_output_or_to_a_private_file() {
    let bench = Bench::new();
    let _ledger = Ledger::usual(&bench.home());
    for (format, sign) in [
        ("jsonl", "\"record\":\"receipt\""),
        ("csv", "\r\nreceipt,2023-11-14T22:13:21.000Z,1111"),
        ("ocsf", "\"class_uid\":6003"),
        ("cef", "CEF:0|Holdpoint|holdpoint|"),
    ] {
        let words = ["receipts", "export", "--format", format];
        let printed = bench.run(words).exits(0).says(sign).out;
        bench.run(words.iter().chain(&["-o", "out"])).exits(0).says("4 receipts and ");
        assert_eq!(fs::read_to_string(bench.path("out")).unwrap(), printed);
        #[cfg(unix)]
        {
            let mode =
                std::os::unix::fs::MetadataExt::mode(&fs::metadata(bench.path("out")).unwrap());
            assert_eq!(mode & 0o777, 0o600);
        }
        fs::remove_file(bench.path("out")).unwrap();
    }
    let denied = bench.run(["receipts", "export", "--decision", "deny"]).exits(0);
    assert_eq!(words(&denied), ["12 refused"]);
    let late =
        bench.run(["receipts", "export", "--since", "2023-11-14T22:13:25Z", "--server", "files"]);
    assert_eq!(words(&late.exits(0)), ["server.approve"]);
    bench.run(["receipts", "export", "-o", "no/such/folder"]).exits(2).says("no/such/folder");
}

#[test]
fn a_reader_that_goes_away_ends_an_export_without_a_fault() {
    let bench = Bench::new();
    let ledger = Ledger::open(&bench.home());
    for number in 0..2_000_u32 {
        let mut id = [0; 16];
        id[..4].copy_from_slice(&number.to_be_bytes());
        ledger.decide(ReceiptId(id), i64::from(number), RulingResult::Deny, "t");
    }
    for words in [["receipts", "export"].as_slice(), &["receipts", "list", "-n", "2000", "--json"]]
    {
        let mut child =
            bench.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with('{'));
        let answer = finish(child).exits(0);
        assert_eq!(answer.err, "");
    }
}

/// The lines that a child prints, as they arrive.
fn lines_of(child: &mut Child) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    let out = BufReader::new(child.stdout.take().unwrap());
    std::thread::spawn(move || {
        for line in out.lines() {
            if sender.send(line.unwrap()).is_err() {
                return;
            }
        }
    });
    receiver
}

#[cfg(unix)]
fn interrupt(child: &Child) {
    let id = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
}

#[cfg(unix)]
#[test]
fn following_shows_what_comes_in_every_chain_until_it_is_interrupted() {
    let bench = Bench::new();
    let ledger = Ledger::usual(&bench.home());
    let words = ["receipts", "list", "--json", "-n", "1", "-f", "--tool", "read_file"];
    let mut child =
        bench.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = lines_of(&mut child);
    let next = || -> (String, String) {
        let document: Value = serde_json::from_str(&lines.recv_timeout(DEADLINE).unwrap()).unwrap();
        let text = |name: &str| document[name].as_str().unwrap().to_owned();
        (text("receipt_id")[..2].to_owned(), text("state"))
    };
    let told = |id: &str, state: &str| (id.to_owned(), state.to_owned());
    assert_eq!(next(), told("14", "open"));
    // Open calls are shown again when they end; another process writes its own chain.
    ledger.outcome(0x14, 9_000);
    assert_eq!(next(), told("14", "ended"));
    let other = Ledger::open(&bench.home());
    other.call(0x31, 9_500, RulingResult::Deny, "read_file");
    assert_eq!(next(), told("31", "refused"));
    ledger.call(0x32, 9_600, RulingResult::Deny, "other");
    ledger.call(0x33, 9_700, RulingResult::Deny, "read_file");
    assert_eq!(next(), told("33", "refused"));
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// A collector that accepts every request, and passes on the bodies.
fn collector() -> (u16, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let mut head = String::new();
            while reader.read_line(&mut head).unwrap() > 2 {}
            let length =
                head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            let mut body = vec![0; length.trim().parse().unwrap()];
            reader.read_exact(&mut body).unwrap();
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
            reader.get_mut().write_all(answer).unwrap();
            if sender.send(head + &String::from_utf8(body).unwrap()).is_err() {
                return;
            }
        }
    });
    (port, receiver)
}

#[cfg(unix)]
#[test]
fn live_export_sends_where_the_configuration_says_and_goes_on_where_it_ended() {
    let bench = Bench::new();
    let ledger = Ledger::usual(&bench.home());
    let (port, bodies) = collector();
    bench.configure(&format!(
        "[export]\notlp = \"http://127.0.0.1:{port}\"\notlp_headers = {{ authorization = \"env:EXPORT_TOKEN\" }}\n"
    ));
    bench.run(["receipts", "export", "--live"]).exits(2).says("EXPORT_TOKEN");
    let run = || {
        let mut command = bench.command(["receipts", "export", "--live", "--json"]);
        command.env("EXPORT_TOKEN", "s3cret").stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let child = run();
    let body = bodies.recv_timeout(DEADLINE).unwrap();
    assert!(body.contains("authorization: s3cret") && body.contains(&"11".repeat(16)), "{body}");
    // The open call is not complete yet.
    assert!(!body.contains(&"14".repeat(16)));
    interrupt(&child);
    let answer = finish(child)
        .exits(0)
        .says("sending receipts to otlp http://127.0.0.1")
        .never_says("s3cret");
    assert!(answer.json()["sent"].as_u64().unwrap() >= 4);
    ledger.outcome(0x14, 9_000);
    let child = run();
    let body = bodies.recv_timeout(DEADLINE).unwrap();
    assert!(body.contains(&"14".repeat(16)) && !body.contains(&"11".repeat(16)), "{body}");
    interrupt(&child);
    let answer = finish(child).exits(0);
    assert_eq!(answer.json(), json!({ "sent": 1 }));
}

/// Every export target that can be configured, each with the receiver of its data.
fn ways_out() -> (TcpListener, TcpListener, UdpSocket, [String; 3]) {
    let (otlp, tcp) =
        (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let lines = [
        format!("otlp = \"http://{}\"", otlp.local_addr().unwrap()),
        format!("syslog = \"tcp://{}\"", tcp.local_addr().unwrap()),
        format!("syslog = \"udp://{}\"", udp.local_addr().unwrap()),
    ];
    for listener in [&otlp, &tcp] {
        listener.set_nonblocking(true).unwrap();
    }
    udp.set_nonblocking(true).unwrap();
    (otlp, tcp, udp, lines)
}

#[test]
fn with_do_not_track_no_exporter_sends_anything() {
    let bench = Bench::new();
    let _ledger = Ledger::usual(&bench.home());
    let server = FolderServer::new(&bench, &json!([report_tool()]));
    server.answers("tools/call", r#"{"content":[]}"#);
    let (otlp, tcp, udp, lines) = ways_out();
    let something_came = || {
        let came = [otlp.accept().is_ok(), tcp.accept().is_ok(), udp.recv(&mut [0; 9]).is_ok()];
        came.contains(&true)
    };
    for line in &lines {
        bench.configure(&format!("[export]\n{line}\n"));
        let mut live = bench.command(["receipts", "export", "--live"]);
        answer({
            live.env("DO_NOT_TRACK", "1");
            live
        })
        .exits(2)
        .says("DO_NOT_TRACK");
        let session = |value: &str| {
            let mut command = server.command_as(&bench, ID, "run", &[]);
            command.env("DO_NOT_TRACK", value);
            let mut agent = Agent::begin(command);
            assert!(agent.call("make_report", &json!({ "title": "a" }))["result"].is_object());
            agent
        };
        session("1").leave();
        session("true").leave();
        assert!(!something_came(), "{line}");
        // The counterpart: without that setting data is sent, so the silence above is significant.
        let agent = session("0");
        testing::wait_until(line, something_came);
        agent.leave();
        while something_came() {}
    }
}

#[test]
fn live_export_never_starts_unasked() {
    let bench = Bench::new();
    let _ledger = Ledger::usual(&bench.home());
    bench.run(["receipts", "export", "--live"]).exits(2).says("no collector is configured");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    listener.set_nonblocking(true).unwrap();
    bench.configure(&format!("[export]\notlp = \"http://127.0.0.1:{port}\"\n"));
    let mut command = bench.command(["receipts", "export", "--live"]);
    command.env("DO_NOT_TRACK", "1");
    answer(command).exits(2).says("DO_NOT_TRACK");
    assert!(listener.accept().is_err());
    bench.configure("[export]\notlp = \"https://user:secret@host\"\n");
    bench.run(["receipts", "list"]).exits(0);
    bench.run(["status"]).exits(2).says("export.otlp").never_says("secret");
}

#[test]
fn no_export_keeps_a_character_that_hides() {
    let bench = Bench::new();
    let server = FolderServer::new(&bench, &json!([report_tool()]));
    server.answers("tools/call", json!({ "content": [] }).to_string());
    let mut command = server.command_as(&bench, ID, "run", &[]);
    const HIDDEN: [char; 5] = ['\u{ad}', '\u{200b}', '\u{202e}', '\u{3164}', '\u{e0041}'];
    command.env("USER", format!("ada{}", HIDDEN.iter().collect::<String>()));
    let mut agent = Agent::begin(command);
    agent.call("make_report", &json!({ "title": "x" }));
    agent.leave();
    for format in ["csv", "cef"] {
        let exported = bench.run(["receipts", "export", "--format", format]).exits(0).out;
        assert!(exported.contains("make_report"), "{format}: {exported}");
        assert!(!exported.contains(HIDDEN), "{format}: {exported:?}");
    }
}

/// Reading each once takes seconds; reading all of them for each used to take minutes.
#[test]
fn thousands_of_unknown_folders_are_verified_in_one_pass() {
    let bench = Bench::new();
    let _ledger = Ledger::usual(&bench.home());
    for number in 0..3_000_u64 {
        let folder = bench.home().join("receipts").join(format!("{number:016x}"));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("000001.jsonl"), "x\n").unwrap();
    }
    bench.run(["receipts", "verify", "--json"]).exits(14);
}
