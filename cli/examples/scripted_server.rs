//! A scripted stdio server, for tests only: any broken or hostile behaviour can be written as a few
//! steps.
//!
//! The argument names a JSON file. Its `turns` contains a list of turns per method, the last of
//! which repeats; `start` runs first, `response` for responses to our requests, `end` at the end of
//! input. A turn is a list of steps. A string step is a line to send, in which `$ID`, `$COUNT`,
//! `$ARGUMENTS` and `$LINE` (as a JSON string) are replaced by parts of the message; for other
//! steps see `play`. `record` names a file to which every byte read is appended.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::zombie_processes,
    reason = "it is part of the tests, which may fail loudly"
)]

use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{BufRead, Write, stdin, stdout};
use std::path::Path;
use std::process::{Command, Stdio, exit};
use std::time::Duration;

/// Large amounts of bytes are written in pieces of this size.
const PIECE: usize = 64 * 1024;

fn main() {
    let path = std::env::args_os().nth(1).unwrap();
    let script: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let mut player = Player { turns: &script["turns"], counts: HashMap::new() };
    player.play_turn("start", &Heard::default());
    let mut input = stdin().lock();
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line).unwrap() > 0 {
        if let Some(path) = script["record"].as_str() {
            let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
            file.write_all(&line).unwrap();
        }
        let heard = Heard::new(&line);
        line.clear();
        player.play_turn(heard.message["method"].as_str().unwrap_or("response"), &heard);
    }
    player.play_turn("end", &Heard::default());
}

/// A line from the client.
#[derive(Default)]
struct Heard {
    text: String,
    message: Value,
    /// The original bytes of the id: `1e2` is a different id than `100`.
    id: String,
}

impl Heard {
    fn new(line: &[u8]) -> Heard {
        let text = String::from_utf8_lossy(line).trim_end_matches('\n').to_owned();
        let message = serde_json::from_str(&text).unwrap_or_default();
        let members: HashMap<String, Box<RawValue>> =
            serde_json::from_str(&text).unwrap_or_default();
        let id = members.get("id").map_or(String::new(), |id| id.get().to_owned());
        Heard { text, message, id }
    }
}

struct Player<'a> {
    turns: &'a Value,
    counts: HashMap<String, usize>,
}

impl Player<'_> {
    fn play_turn(&mut self, key: &str, heard: &Heard) {
        let count = self.counts.entry(key.to_owned()).or_default();
        *count += 1;
        let turns = self.turns[key].as_array().map_or(&[][..], Vec::as_slice);
        let Some(turn) = turns.get(*count - 1).or(turns.last()) else { return };
        for step in turn.as_array().unwrap() {
            play(step, heard, *count);
        }
    }
}

fn play(step: &Value, heard: &Heard, count: usize) {
    let Some(members) = step.as_object() else {
        write(filled(step.as_str().unwrap(), heard, count).as_bytes());
        return write(b"\n");
    };
    let (name, value) = members.iter().next().unwrap();
    match name.as_str() {
        // A text without a newline.
        "raw" => write(filled(value.as_str().unwrap(), heard, count).as_bytes()),
        "bytes" => write(&serde_json::from_value::<Vec<u8>>(value.clone()).unwrap()),
        // This many letters, without a newline.
        "fill" => fill(value.as_u64().unwrap()),
        // `[times, step]`.
        "repeat" => (0..value[0].as_u64().unwrap()).for_each(|_| play(&value[1], heard, count)),
        "stderr" => std::io::stderr().write_all(value.as_str().unwrap().as_bytes()).unwrap(),
        "exit" => exit(i32::try_from(value.as_i64().unwrap()).unwrap()),
        "abort" => std::process::abort(),
        // Stops reading and writing.
        "hang" => loop {
            std::thread::park();
        },
        "sleep_ms" => std::thread::sleep(Duration::from_millis(value.as_u64().unwrap())),
        // Waits until a test creates the file.
        "await_file" => {
            while !Path::new(value.as_str().unwrap()).exists() {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        "touch" => write_whole(value.as_str().unwrap(), ""),
        // Writes the id of this process, or of a child that outlives everything.
        "number" => write_whole(value.as_str().unwrap(), &std::process::id().to_string()),
        "child" => {
            let mut sleep = Command::new("sleep");
            sleep.arg("1000").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let child = sleep.spawn().unwrap();
            write_whole(value.as_str().unwrap(), &child.id().to_string());
        }
        other => std::io::stderr().write_all(format!("no step `{other}`\n").as_bytes()).unwrap(),
    }
}

fn filled(text: &str, heard: &Heard, count: usize) -> String {
    let arguments = &heard.message["params"]["arguments"];
    text.replace("$ID", &heard.id)
        .replace("$COUNT", &count.to_string())
        .replace("$ARGUMENTS", &arguments.to_string())
        .replace("$LINE", &Value::from(heard.text.as_str()).to_string())
}

fn fill(mut count: u64) {
    let piece = [b'a'; PIECE];
    while count > 0 {
        let part = usize::try_from(count.min(PIECE as u64)).unwrap();
        write(&piece[..part]);
        count -= part as u64;
    }
}

/// Writes to the client. If the client is gone, the server exits, as most real servers would.
fn write(bytes: &[u8]) {
    let mut out = stdout().lock();
    if out.write_all(bytes).and_then(|()| out.flush()).is_err() {
        exit(0);
    }
}

/// Writes the file atomically.
fn write_whole(path: &str, text: &str) {
    let part = format!("{path}.part");
    fs::write(&part, text).unwrap();
    fs::rename(part, path).unwrap();
}
