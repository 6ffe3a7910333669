//! A stdio server that follows a script given as one JSON argument. For tests only.
//!
//! `before` and `stderr` are printed first; `exit` ends the process there. Then each line read is
//! looked up in `answers` by its method: a list of turns, the last of which repeats. A turn is a
//! list of lines, in which `$ID` is the request's id and `$COUNT` is how many times the method was
//! called. `{"long": N}` prints a message of N bytes, `{"page": N}` one with a page of N bytes of
//! tools (`"more": true` announces a further page), `{"raw": …}` text without a line feed, and
//! `{"exit": N}` exits. `record` names a file that receives every line read, and `child` one that
//! receives the process id of a lingering child; `ignore_end` keeps running after the end of input.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::zombie_processes,
    reason = "it is part of the tests, which may fail loudly"
)]

use serde_json::Value;
use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{BufRead, Write, stdin, stdout};
use std::path::Path;
use std::process::{Command, exit};

fn main() {
    let argument = std::env::args().nth(1).unwrap_or_default();
    let script: Value = serde_json::from_str(&argument).unwrap();
    for line in texts(&script["stderr"]) {
        eprintln!("{line}");
    }
    for line in texts(&script["before"]) {
        say(line);
    }
    if let Some(path) = script["number"].as_str() {
        write_whole(path, &std::process::id().to_string());
    }
    if script["linger"] == true {
        linger();
    }
    if let Some(status) = script["exit"].as_i64() {
        exit(i32::try_from(status).unwrap());
    }
    if let Some(path) = script["child"].as_str() {
        let lingering = serde_json::json!({ "number": path, "linger": true }).to_string();
        Command::new(std::env::current_exe().unwrap()).arg(lingering).spawn().unwrap();
    }
    serve(&script);
    if script["ignore_end"] == true {
        linger();
    }
}

fn serve(script: &Value) {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for line in stdin().lock().lines() {
        let line = line.unwrap();
        if let Some(path) = script["record"].as_str() {
            let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
            writeln!(file, "{line}").unwrap();
        }
        let message: Value = serde_json::from_str(&line).unwrap();
        let Some(method) = message["method"].as_str() else { continue };
        let count = counts.entry(method.to_owned()).or_default();
        *count += 1;
        let turns = script["answers"][method].as_array().map_or(&[][..], Vec::as_slice);
        let Some(turn) = turns.get(*count - 1).or(turns.last()) else { continue };
        for step in turn.as_array().unwrap() {
            play(step, &message["id"], *count);
        }
    }
}

fn play(step: &Value, id: &Value, count: usize) {
    if let Some(line) = step.as_str() {
        say(&line.replace("$ID", &id.to_string()).replace("$COUNT", &count.to_string()));
    } else if let Some(text) = step["raw"].as_str() {
        print!("{text}");
        stdout().flush().unwrap();
    } else if let Some(bytes) = step["long"].as_u64() {
        let frame = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"x":""}}}}"#);
        let filling = usize::try_from(bytes).unwrap() - frame.len();
        say(&frame.replace(r#""x":"""#, &format!(r#""x":"{}""#, "x".repeat(filling))));
    } else if let Some(bytes) = step["page"].as_u64() {
        let cursor =
            if step["more"] == true { format!(r#""c{count}""#) } else { "null".to_owned() };
        let page = format!(r#"{{"tools":[],"nextCursor":{cursor},"x":""}}"#);
        let filling = "x".repeat(usize::try_from(bytes).unwrap() - page.len());
        let page = page.replace(r#""x":"""#, &format!(r#""x":"{filling}""#));
        say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{page}}}"#));
    } else if let Some(status) = step["exit"].as_i64() {
        exit(i32::try_from(status).unwrap());
    }
}

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn say(line: &str) {
    println!("{line}");
    stdout().flush().unwrap();
}

/// The file appears only once it is complete.
fn write_whole(path: &str, text: &str) {
    let beside = Path::new(path).with_extension("new");
    std::fs::write(&beside, text).unwrap();
    std::fs::rename(beside, path).unwrap();
}

fn linger() -> ! {
    loop {
        std::thread::park();
    }
}
