//! A stdio server whose responses are files in a folder, for tests only: changing a file changes
//! the server.
//!
//! The files `stdout` and `stderr` are printed at the start; if `exit` exists, the server then
//! exits with the code in it. Every request is answered with the content of the file named after
//! its method, with `.` for `/`; `$ID` is replaced by the request's id, and `$COUNT` by the number
//! of requests of that method. A method without a file is never answered. `METHOD+NAME` is the file
//! for clients with the capability of that name.
#![allow(clippy::unwrap_used, reason = "it is part of the tests, which may fail loudly")]

use serde_json::Value;
use std::collections::HashMap;
use std::io::{BufRead, Write, stdin, stdout};
use std::path::PathBuf;

fn main() {
    let folder = PathBuf::from(std::env::args_os().nth(1).unwrap());
    let file = |name: &str| std::fs::read(folder.join(name)).ok();
    if let Some(text) = file("stderr") {
        std::io::stderr().write_all(&text).unwrap();
    }
    if let Some(text) = file("stdout") {
        say(&text);
    }
    if let Some(code) = file("exit") {
        std::process::exit(String::from_utf8(code).unwrap().parse().unwrap());
    }
    let mut counts: HashMap<String, usize> = HashMap::new();
    let mut abilities = Vec::new();
    for line in stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let Some(method) = message.get("method").and_then(Value::as_str) else { continue };
        let count = counts.entry(method.to_owned()).or_default();
        *count += 1;
        abilities = declared(&message).unwrap_or(abilities);
        let name = method.replace('/', ".");
        let special = abilities.iter().find_map(|ability| file(&format!("{name}+{ability}")));
        if let (Some(answer), Some(id)) = (special.or_else(|| file(&name)), message.get("id")) {
            let answer = replaced(&answer, b"$COUNT", count.to_string().as_bytes());
            say(&replaced(&answer, b"$ID", id.to_string().as_bytes()));
        }
    }
}

/// The names of the capabilities that a client declares in a message, if any.
fn declared(message: &Value) -> Option<Vec<String>> {
    let params = message.get("params")?;
    let in_meta = || params.get("_meta")?.get("io.modelcontextprotocol/clientCapabilities");
    let said = params.get("capabilities").or_else(in_meta)?.as_object()?;
    Some(said.keys().cloned().collect())
}

fn say(bytes: &[u8]) {
    let mut out = stdout().lock();
    // The client may have disconnected.
    let _ = out.write_all(bytes).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
}

/// The bytes may not be UTF-8, so string functions cannot be used.
fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(byte) = rest.first() {
        if let Some(after) = rest.strip_prefix(from) {
            out.extend_from_slice(to);
            rest = after;
        } else {
            out.push(*byte);
            rest = rest.get(1..).unwrap_or_default();
        }
    }
    out
}
