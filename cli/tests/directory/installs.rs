//! A crawler, a directory and two installs: an install learns the crawler's record when it pins the
//! old contract and when it meets the change, as an advisory that affects no verdict. Reports of
//! installs are unconfirmed.

use crate::bench::answer;
use crate::station::{Served, Station};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::Stdio;
use testing::wait_until;

const OLD: &str = "Tells the weather.";
const NEW: &str = "Tells the weather of tomorrow.";

/// A home with the network turned on, using the key with this number.
fn install(station: &Station, served: &Served, key: usize) -> PathBuf {
    let home = station.bench.path(&format!("install-{key}"));
    std::fs::create_dir(&home).unwrap();
    let text = format!(
        "[network]\nurl = \"http://{}\"\nkey = \"env:KEY_{key}\"\ncontribute = true\nallow_private = true\n",
        served.address
    );
    std::fs::write(home.join("holdpoint.toml"), text).unwrap();
    home
}

/// Runs a gate in front of the server, lists its tools and calls one. Returns the response to the
/// call, and the gate's messages.
fn call(station: &Station, home: &PathBuf) -> (Value, String) {
    let url = format!("http://{}/mcp", station.web.address);
    let mut command = station.command(&["run", "--server", "weather", "--url", &url, "--home"]);
    command.arg(home).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut gate = command.spawn().unwrap();
    let (mut to, from) = (gate.stdin.take().unwrap(), gate.stdout.take().unwrap());
    let mut from = BufReader::new(from);
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
    let calls = json!({ "name": "forecast", "arguments": {} });
    let mut last = Value::Null;
    for (id, method, params) in
        [(1, "initialize", hello), (2, "tools/list", json!({})), (3, "tools/call", calls)]
    {
        let asked = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        writeln!(to, "{asked}").unwrap();
        while last["id"] != id {
            let mut line = String::new();
            assert!(from.read_line(&mut line).unwrap() > 0, "the gate ended before {method}");
            last = serde_json::from_str(&line).unwrap();
        }
    }
    drop(to);
    let ended = gate.wait_with_output().unwrap();
    (last, String::from_utf8(ended.stderr).unwrap())
}

#[test]
fn installs_are_told_of_what_the_crawler_recorded_and_their_verdicts_stay() {
    let station = Station::new("");
    station.web.describe(NEW);
    station.crawl();
    station.web.describe(OLD);
    let served = station.serve();
    let homes = [install(&station, &served, 0), install(&station, &served, 1)];
    for home in &homes {
        let (_, said) = call(&station, home);
        assert!(
            said.contains("The directory's crawler saw this contract change elsewhere"),
            "{said}"
        );
    }
    station.web.describe(NEW);
    for home in &homes {
        let (answer, _) = call(&station, home);
        let banner = answer["error"]["message"].as_str().unwrap();
        assert!(banner.contains("The directory's crawler recorded the same change"), "{banner}");
        assert!(!banner.contains("installs"), "{banner}");
        // The same as without a network: guard holds `description-only`.
        assert_eq!(answer["error"]["data"]["verdict"], "HOLD", "{answer}");
        assert_eq!(answer["error"]["data"]["tier_reached"], 0, "{answer}");
    }
    let review = || {
        let mut command = station.command(&["review", "weather", "--no-pager", "--home"]);
        command.arg(&homes[0]);
        answer(command).exits(10)
    };
    wait_until("both reports to arrive", || {
        review().out.contains("unconfirmed: 2 installs say that they met the same change")
    });
}
