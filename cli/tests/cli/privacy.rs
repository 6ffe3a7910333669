//! Passes secrets through every command and through calls, and then searches everything that was
//! written for them.

use crate::bench::*;
use contract::time::Timestamp;
use ledger::record::*;
use ledger::sample;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use store::Home;
use store::receipts::{Receipts, Settings};

const OPTION: &str = "Zk4vQ9w2-option-Rt7Lm1Xs8Bd";
const API_KEY: &str = "Hn3jUe6y-apikey-Pq5Wc0Vf2Ga";
const VARIABLE: &str = "Yb8sTi1o-variable-Kd4Jz7Nh3Mx";
const QUERY: &str = "Lw6cFg9r-query-Ue2Sv5Ya8Qk";
const PASSWORD: &str = "Mx1pBn7d-password-Oj9Ht4Zi6Cw";
const HEADER: &str = "Vd5rKq3m-header-Gs8Ey2Ub7Lf";
const TYPED_HEADER: &str = "Jt9aXw4h-typed-Nc6Po1Rz3Iv";
const CALL_ARGUMENT: &str = "Es2gMy8k-argument-Wb5Du7Fx9Ql";
const CALL_RESULT: &str = "Ci7oLh1t-result-Ar3Vn6Jp4Sz";
const CALL_TOKEN: &str = "Gu4fRk6e-token-Xm9Bq2Tw8Hy";

const SECRETS: [&str; 10] = [
    OPTION,
    API_KEY,
    VARIABLE,
    QUERY,
    PASSWORD,
    HEADER,
    TYPED_HEADER,
    CALL_ARGUMENT,
    CALL_RESULT,
    CALL_TOKEN,
];

/// Runs commands, and keeps all their output.
pub(crate) struct Trail {
    pub(crate) bench: Bench,
    said: RefCell<Vec<(String, Vec<u8>)>>,
}

impl Trail {
    pub(crate) fn new() -> Trail {
        Trail { bench: Bench::unattended(), said: RefCell::default() }
    }

    #[track_caller]
    pub(crate) fn keep(&self, command: Command, exit: i32) -> Answer {
        self.keep_any(command).exits(exit)
    }

    /// The same for any exit code.
    #[track_caller]
    pub(crate) fn keep_any(&self, command: Command) -> Answer {
        let words: Vec<_> =
            command.get_args().take(3).map(|word| word.to_string_lossy().into_owned()).collect();
        let answer = answer(command);
        let bytes = format!("{}\n{}", answer.out, answer.err).into_bytes();
        self.said.borrow_mut().push((format!("output of `{}`", words.join(" ")), bytes));
        answer
    }

    #[track_caller]
    fn run(&self, words: &[&str], exit: i32) -> Answer {
        self.keep(self.bench.command(words), exit)
    }

    /// Runs a command with secrets among the server's arguments and in its environment.
    #[track_caller]
    fn run_server(&self, server: &FolderServer, words: &[&str], exit: i32) -> Answer {
        let mut command = self.bench.command(words);
        command.arg("--").args(server.launch());
        command.arg(format!("--token={OPTION}")).args(["--api-key", API_KEY]);
        command.env("REPORTS_SECRET", VARIABLE);
        self.keep(command, exit)
    }

    #[track_caller]
    fn run_url(&self, words: &[&str], url: &str, exit: i32) -> Answer {
        let mut command = self.bench.command(words);
        command.args(["--url", url, "--header", "Authorization=env:REMOTE_TOKEN"]);
        command.env("REMOTE_TOKEN", format!("Bearer {HEADER}"));
        self.keep(command, exit)
    }

    /// Every place in the home (except keys) and in the output that contains a secret in some form.
    fn leaks(&self) -> Vec<String> {
        self.leaks_of(&SECRETS)
    }

    pub(crate) fn leaks_of(&self, secrets: &[&str]) -> Vec<String> {
        let mut places = self.said.borrow().clone();
        read_all(&self.bench.home(), &mut places);
        let mut leaks = Vec::new();
        for secret in secrets {
            for (form, needle) in forms(secret) {
                let found = places.iter().filter(|(_, bytes)| holds(bytes, needle.as_bytes()));
                leaks.extend(found.map(|(place, _)| format!("{secret} as {form} in {place}")));
            }
        }
        leaks
    }
}

fn read_all(folder: &Path, places: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true if path.ends_with("keys") => {}
            true => read_all(&path, places),
            false => places.push((path.display().to_string(), fs::read(&path).unwrap())),
        }
    }
}

fn holds(bytes: &[u8], needle: &[u8]) -> bool {
    let mut rest = bytes;
    // Skip most positions by the first byte.
    while let Some(at) = rest.iter().position(|byte| *byte == needle[0]) {
        if rest[at..].starts_with(needle) {
            return true;
        }
        rest = &rest[at + 1..];
    }
    false
}

/// A secret as it is, as hexadecimal digits, as UTF-16, and as base64 at each alignment.
fn forms(secret: &str) -> Vec<(String, String)> {
    let hex = |digit: fn(&u8) -> String| secret.as_bytes().iter().map(digit).collect::<String>();
    let mut forms = vec![
        ("text".to_owned(), secret.to_owned()),
        ("hex".to_owned(), hex(|byte| format!("{byte:02x}"))),
        ("HEX".to_owned(), hex(|byte| format!("{byte:02X}"))),
        ("utf-16".to_owned(), secret.chars().map(|letter| format!("{letter}\0")).collect()),
    ];
    for before in 0..3 {
        // Leave out the characters that depend on surrounding bytes.
        let bytes = secret.as_bytes().get((3 - before) % 3..).unwrap();
        let whole = bytes.len() - bytes.len() % 3;
        for (name, last) in [("base64", *b"+/"), ("base64url", *b"-_")] {
            forms.push((format!("{name}, {before} before"), base64(&bytes[..whole], last)));
        }
    }
    forms
}

fn base64(bytes: &[u8], last: [u8; 2]) -> String {
    let letter = |value: u32| match value as u8 & 63 {
        value @ 0..26 => b'A' + value,
        value @ 26..52 => b'a' + value - 26,
        value @ 52..62 => b'0' + value - 52,
        value => last[usize::from(value - 62)],
    };
    let three = |bytes: &[u8]| bytes.iter().fold(0, |sum, byte| (sum << 8) | u32::from(*byte));
    let letters = bytes
        .chunks_exact(3)
        .map(three)
        .flat_map(|bits| [bits >> 18, bits >> 12, bits >> 6, bits].map(letter));
    letters.map(char::from).collect()
}

/// An HTTP server that passes on each request as received.
fn remote() -> (u16, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let request = serve(stream.unwrap());
            if request.is_some_and(|request| sender.send(request).is_err()) {
                return;
            }
        }
    });
    (port, receiver)
}

fn serve(stream: TcpStream) -> Option<String> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while reader.read_line(&mut head).ok()? > 2 {}
    let lower = head.to_ascii_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.unwrap_or("0").trim().parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let result = match message["method"].as_str() {
        Some("initialize") => Some(json!({
            "protocolVersion": "2025-06-18",
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "remote", "version": "1" },
        })),
        Some("tools/list") => Some(json!({ "tools": [mail_tool()] })),
        _ => None,
    };
    let id = message.get("id").filter(|id| !id.is_null());
    let answer = match (result, id) {
        (Some(result), Some(id)) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        (None, Some(id)) => {
            let error = json!({ "code": -32601, "message": "no such method" });
            json!({ "jsonrpc": "2.0", "id": id, "error": error })
        }
        (_, None) => Value::Null,
    };
    let (status, body) = match answer {
        Value::Null => ("202 Accepted", String::new()),
        answer => ("200 OK", answer.to_string()),
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    reader.get_mut().write_all(answer.as_bytes()).ok()?;
    Some(head)
}

/// Calls as the gate records them, allowed and denied, with secrets in their arguments and results.
fn write_calls(home: &Path) {
    let home = Home::open(home).unwrap();
    for (first, args_hash) in [(1, ArgsHashKind::Keyed), (3, ArgsHashKind::Plain)] {
        let receipts =
            Receipts::open(&home, Settings { args_hash, ..Settings::default() }).unwrap();
        let arguments = json!({ "title": CALL_ARGUMENT, "authorization": CALL_TOKEN }).to_string();
        let answer = json!({ "content": [{ "type": "text", "text": CALL_RESULT }] }).to_string();
        for (id, result) in [(first, RulingResult::Allow), (first + 1, RulingResult::Deny)] {
            let hash = receipts.args_key().hash(arguments.as_bytes());
            let decision = decision(id, result, hash, args_hash, arguments.len());
            receipts.decision(&decision).unwrap();
        }
        let outcome = Outcome {
            size_bytes_out: answer.len() as u64,
            ..sample::outcome(Timestamp(1_763_253_196_000), ReceiptId([first; 16]))
        };
        receipts.outcome(&outcome).unwrap();
    }
}

fn decision(
    id: u8,
    result: RulingResult,
    args_hash: Digest32,
    args_hash_kind: ArgsHashKind,
    size: usize,
) -> Decision<'static> {
    Decision {
        principal: Principal {
            actor_type: ActorType::Agent,
            client_id: Some(Text("editor")),
            org_id: None,
            sub: Text(WHO),
        },
        mcp: Mcp {
            method: Text("tools/call"),
            server_id: Text(ID),
            tool_name: Some(Text("make_report")),
            trust_level: TrustLevel::Verified,
        },
        request: Request { args_hash: Some(args_hash), args_hash_kind, size_bytes_in: size as u64 },
        decision: Ruling { policy_id: None, reason_codes: Words(&[]), result },
        token_handling: TokenHandling {
            audience: Some(Text("https://reports.example")),
            mode: TokenMode::Blocked,
            passthrough_detected: true,
            source: Some("none"),
        },
        ..sample::decision(Timestamp(1_763_253_195_123), ReceiptId([id; 16]))
    }
}

/// Does everything that can be done to a server, with secrets wherever possible.
fn drive(trail: &Trail) {
    let server = FolderServer::new(&trail.bench, &json!([report_tool()]));
    trail.run_server(&server, &["pin", "--server", ID], 0);
    server.lists(&json!([report_tool_with_owner()]));
    trail.run_server(&server, &["check", "--server", ID], 10);
    trail.run_server(&server, &["check", "--server", ID, "--json", "-v"], 10);
    trail.run(&["check", ID], 11).says("a word of its command was not stored");
    trail.run(&["review", ID], 10);
    let hash = trail.bench.waiting_hash("make_report");
    trail.run(&["approve", ID, "make_report", "--hash", &hash], 0);
    trail.run(&["quarantine", ID], 0);
    trail.run_server(&server, &["check", "--server", ID], 10);
    trail.run_server(&server, &["release", ID], 0);
    server.writes("exit", "3");
    trail.run_server(&server, &["check", "--server", ID], 11);

    let (port, requests) = remote();
    let url = format!("http://127.0.0.1:{port}/mcp?token={QUERY}&page=1");
    trail.run_url(&["pin", "--server", "remote"], &url, 0);
    trail.run_url(&["check", "--server", "remote"], &url, 0);
    // Make sure that the secrets were sent to the server, so that they could have been recorded.
    let request = requests.recv().unwrap();
    assert!(request.contains(QUERY) && request.contains(HEADER), "{request}");
    let with_user = format!("http://user:{PASSWORD}@127.0.0.1:{port}/mcp");
    trail.run_url(&["pin", "--server", "other"], &with_user, 2);
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let nobody = format!("http://127.0.0.1:{unused}/mcp?token={QUERY}");
    trail.run_url(&["pin", "--server", "other"], &nobody, 11);
    let typed = format!("Authorization={TYPED_HEADER}");
    let typed = ["pin", "--server", "other", "--url", &url, "--header", &typed];
    trail.run(&typed, 2);

    write_calls(&trail.bench.home());
    for words in [["status", "-v"], ["status", "--json"], ["history", ID], ["history", "remote"]] {
        trail.run(&words, 0);
    }
    let id = "01".repeat(16);
    trail.run(&["receipts", "list", "--all"], 0);
    trail.run(&["receipts", "list", "--all", "--json"], 0);
    trail.run(&["receipts", "show", &id], 0);
    trail.run(&["receipts", "prove", &id], 0);
    trail.run(&["receipts", "verify", "-v"], 0);
    for format in ["jsonl", "csv", "ocsf", "cef"] {
        let answer = trail.run(&["receipts", "export", "--format", format], 0);
        assert!(answer.out.contains("make_report"), "{format}: {}", answer.out);
    }
}

#[test]
fn no_secret_is_written_down_or_said() {
    let trail = Trail::new();
    // An open reader keeps all data in the write-ahead log, where it is searched as well.
    let database = rusqlite::Connection::open(trail.bench.home().join("state.db")).unwrap();
    database.execute_batch("BEGIN").unwrap();
    let count = |count: &rusqlite::Row<'_>| count.get::<_, i64>(0);
    database.query_row("SELECT count(*) FROM sqlite_schema", [], count).unwrap();
    drive(&trail);
    let log = fs::metadata(trail.bench.home().join("state.db-wal")).unwrap();
    assert!(log.len() > 0);
    assert_eq!(trail.leaks(), [""; 0]);
    drop(database);
    trail.run(&["status"], 0);
    assert_eq!(trail.leaks(), [""; 0]);
}

#[test]
fn a_secret_that_is_written_down_or_said_is_found() {
    let trail = Trail::new();
    assert_eq!(trail.leaks(), [""; 0]);
    // In a file, in any form and at any position.
    let planted = trail.bench.home().join("planted");
    for (form, text) in forms(CALL_RESULT) {
        fs::write(&planted, format!("before {text} after")).unwrap();
        let leaks = trail.leaks();
        let expected = format!("{CALL_RESULT} as {form} in ");
        assert!(leaks.iter().any(|leak| leak.starts_with(&expected)), "{form}: {leaks:?}");
    }
    // "x" + the secret + padding, encoded with `base64` from coreutils.
    fs::write(&planted, "eENpN29MaDF0LXJlc3VsdC1BcjNWbjZKcDRTeg==").unwrap();
    assert_eq!(trail.leaks().len(), 2, "{:?}", trail.leaks());
    fs::remove_file(&planted).unwrap();
    // In a receipt: the client chooses the name of a tool, which then appears wherever the receipt
    // is printed.
    let home = Home::open(&trail.bench.home()).unwrap();
    let receipts = Receipts::open(&home, Settings::default()).unwrap();
    let hash = receipts.args_key().hash(b"{}");
    let mut call = decision(1, RulingResult::Deny, hash, ArgsHashKind::Keyed, 2);
    call.mcp.tool_name = Some(Text(CALL_TOKEN));
    receipts.decision(&call).unwrap();
    assert_eq!(trail.leaks().len(), 1, "{:?}", trail.leaks());
    trail.run(&["receipts", "list"], 0);
    for format in ["jsonl", "csv", "ocsf", "cef"] {
        trail.run(&["receipts", "export", "--format", format], 0);
    }
    assert_eq!(trail.leaks().len(), 6, "{:?}", trail.leaks());
    // In the database: the server's descriptions are stored for comparison.
    let mut tool = report_tool();
    tool["description"] = json!(CALL_ARGUMENT);
    let server = FolderServer::new(&trail.bench, &json!([tool]));
    trail.keep(server.command_as(&trail.bench, ID, "pin", &[]), 0);
    let leaks = trail.leaks();
    assert!(leaks.iter().any(|leak| leak.contains("state.db")), "{leaks:?}");
}
