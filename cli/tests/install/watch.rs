//! The watcher acts once on each added server, with consent, and only with the user's rights.

use crate::bench::*;
use crate::station::*;
use serde_json::json;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// A station whose watcher has checked once, with a host with one server.
fn begun() -> Station {
    let station = Station::new();
    station.cursor(&json!({ "old": server() }));
    station.run(&["watch", "--once"]).exits(0).never_says("old");
    station
}

#[test]
fn a_server_that_is_added_is_told_of_once() {
    let station = begun();
    station.cursor(&json!({ "old": server(), "new": server() }));
    station.run(&["watch", "--once"]).exits(0).says("new").says("holdpoint wire");
    assert!(!station.is_guarded("new"), "nobody consented");
    station.is_ordered("`new` was added to Cursor and is not guarded");
    station.run(&["watch", "--once"]).exits(0).never_says("new");
}

#[test]
fn a_server_that_is_added_is_guarded_with_consent() {
    let station = begun();
    station.cursor(&json!({ "old": server(), "new": server() }));
    let events = station.run(&["watch", "--once", "--auto", "--json"]).exits(0).json();
    assert_eq!((&events["event"], &events["server"]), (&json!("wired"), &json!("new")));
    assert!(station.is_guarded("new"));
    assert!(!station.is_guarded("old"), "it was there before: somebody left it so");
}

#[test]
fn a_server_that_is_added_gets_an_id_that_no_other_file_has() {
    let station = begun();
    let mine = json!({ "mcpServers": { "mine": guarded_server("cursor.new", binary()) } });
    station.bench.file(".claude.json", mine.to_string());
    station.run(&["watch", "--once", "--auto"]).exits(0);
    station.cursor(&json!({ "old": server(), "new": server() }));
    let events = station.run(&["watch", "--once", "--auto", "--json"]).exits(0).json();
    assert_eq!((&events["event"], &events["server"]), (&json!("wired"), &json!("new")));
    let text = fs::read_to_string(station.cursor_path()).unwrap();
    assert!(text.contains("--server=cursor.new-"), "{text}");
    assert!(!station.is_guarded("old"));
    // If its host writes it back, it is known under that id.
    station.cursor(&json!({ "old": server(), "new": server() }));
    station.run(&["watch", "--once", "--auto"]).exits(0).says("guarded");
    assert!(station.is_guarded("new") && !station.is_guarded("old"));
    assert_eq!(fs::read_to_string(station.cursor_path()).unwrap(), text);
}

#[test]
fn a_server_that_was_unwired_stays_so() {
    let station = begun();
    station.cursor(&json!({ "old": server(), "new": server() }));
    station.run(&["watch", "--once", "--auto"]).exits(0).says("new");
    station.run(&["unwire", "--yes"]).exits(0);
    station.run(&["watch", "--once", "--auto"]).exits(0).never_says("new");
    assert!(!station.is_guarded("new"));
}

#[test]
fn a_server_that_its_host_writes_back_is_guarded_again() {
    let station = begun();
    let both = json!({ "old": server(), "new": server() });
    station.cursor(&both);
    station.run(&["watch", "--once", "--auto"]).exits(0).says("new");
    station.cursor(&both);
    station.run(&["watch", "--once"]).exits(0).says("new").says("holdpoint wire");
    station.run(&["watch", "--once"]).exits(0).never_says("new");
    station.run(&["wire", "--server", "new", "--yes"]).exits(0);
    station.run(&["watch", "--once"]).exits(0);
    station.cursor(&both);
    station.run(&["watch", "--once", "--auto"]).exits(0).says("guarded");
    assert!(station.is_guarded("new") && !station.is_guarded("old"));
}

/// Hosts truncate a file before they write it.
#[test]
fn a_file_that_is_empty_for_a_moment_has_nothing_new_afterwards() {
    let station = begun();
    let text = fs::read(station.cursor_path()).unwrap();
    fs::write(station.cursor_path(), "").unwrap();
    station.run(&["watch", "--once", "--auto"]).exits(0);
    fs::write(station.cursor_path(), text).unwrap();
    station.run(&["watch", "--once", "--auto"]).exits(0).never_says("old");
    assert!(!station.is_guarded("old"));
}

#[test]
fn a_file_that_is_broken_when_the_watcher_starts_has_nothing_new_once_repaired() {
    let station = Station::new();
    station.cursor(&json!({}));
    fs::write(station.cursor_path(), "{\"mcpServers\": {").unwrap();
    station.run(&["watch", "--once", "--auto"]).exits(0).says("left alone");
    station.cursor(&json!({ "old": server() }));
    station.run(&["watch", "--once", "--auto"]).exits(0).never_says("old");
    station.cursor(&json!({ "old": server(), "new": server() }));
    station.run(&["watch", "--once", "--auto"]).exits(0).says("new");
    assert!(station.is_guarded("new") && !station.is_guarded("old"));
}

#[test]
fn a_file_that_cannot_be_read_is_left_alone_and_said_once() {
    let station = begun();
    fs::write(station.cursor_path(), "{\"mcpServers\": {").unwrap();
    station.run(&["watch", "--once", "--auto"]).exits(0).says("left alone");
    assert_eq!(fs::read_to_string(station.cursor_path()).unwrap(), "{\"mcpServers\": {");
    // Servers known before the file broke are not new once it is repaired.
    station.cursor(&json!({ "old": server() }));
    station.run(&["watch", "--once", "--auto"]).exits(0).never_says("old");
    assert!(!station.is_guarded("old"));
}

#[test]
fn a_running_watcher_sees_a_file_that_is_replaced_and_runs_alone() {
    let station = begun();
    let mut command = station.command(["watch", "--auto", "--every", "1", "--json"]);
    command.stdout(Stdio::piped());
    let mut child = Running(command.spawn().unwrap());
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    let other = station.bench.path(".cursor/other.json");
    let text = json!({ "mcpServers": { "old": server(), "new": server() } }).to_string();
    fs::write(&other, text).unwrap();
    fs::rename(other, station.cursor_path()).unwrap();
    let line = lines.next().unwrap().unwrap();
    assert!(line.contains("\"wired\"") && line.contains("\"new\""), "{line}");
    assert!(station.is_guarded("new"));
    station.run(&["watch", "--once"]).exits(2).says("a watcher is already running");
    let status = station.run(&["watch", "--status", "--json"]).exits(0).json();
    assert_eq!((&status["running"], &status["installed"]), (&json!(true), &json!(false)));
    drop(child);
    let status = station.run(&["watch", "--status", "--json"]).exits(0).json();
    assert_eq!(status["running"], json!(false));
}

/// Ended with the test, even if it fails.
struct Running(std::process::Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_service_is_installed_started_and_removed() {
    let station = Station::new();
    station.cursor(&json!({ "old": server() }));
    station.run(&["watch", "--install"]).exits(0).says("reported").says("holdpoint-watch.service");
    let unit = fs::read_to_string(station.unit()).unwrap();
    assert!(unit.contains(&format!("ExecStart=\"{}\"", binary())) && !unit.contains("--auto"));
    let wanted = station.unit().with_file_name("default.target.wants/holdpoint-watch.service");
    assert_eq!(fs::read_to_string(&wanted).unwrap(), unit, "it is started at login");
    let orders = station.orders();
    assert!(orders.contains("--user restart holdpoint-watch.service"), "{orders}");
    // Installed again with other options: the service uses the last ones.
    station.run(&["watch", "--install", "--auto"]).exits(0).says("guarded");
    assert!(fs::read_to_string(station.unit()).unwrap().contains("\"--auto\""));
    let status = station.run(&["watch", "--status", "--json"]).exits(0).json();
    assert_eq!((&status["installed"], &status["auto"]), (&json!(true), &json!(true)));
    // Servers present at the installation are not new.
    station.run(&["watch", "--once", "--auto"]).exits(0).never_says("old");
    station.run(&["watch", "--uninstall"]).exits(0).says("gone");
    assert!(!station.unit().exists() && !wanted.is_symlink());
    assert!(station.orders().contains("--user stop holdpoint-watch.service"));
    station.run(&["watch", "--uninstall"]).exits(0).says("there was no watcher");
}

#[cfg(target_os = "linux")]
#[test]
fn a_service_manager_that_does_not_answer_is_no_failure() {
    let station = Station::new();
    station.program("systemctl", "#!/bin/sh\nexit 1\n");
    station.run(&["watch", "--install"]).exits(0).says("next login");
    assert!(station.unit().exists());
}

#[cfg(target_os = "linux")]
#[test]
fn the_service_gets_what_moves_hosts_files() {
    let station = Station::new();
    let mut command = station.command(["watch", "--install"]);
    command.env("CODEX_HOME", "/srv/codex").env("UNRELATED", "x");
    answer(command).exits(0);
    let unit = fs::read_to_string(station.unit()).unwrap();
    assert!(unit.contains("Environment=\"CODEX_HOME=/srv/codex\""), "{unit}");
    assert!(!unit.contains("UNRELATED"), "{unit}");
}

#[test]
fn root_is_refused_and_a_user_is_not() {
    let station = Station::new();
    for words in [["watch", "--once"], ["watch", "--install"]] {
        let mut command = station.command(words);
        command.env_remove("HOLDPOINT_ALLOW_ROOT");
        if rustix::process::getuid().is_root() {
            answer(command).exits(2).says("does not run as root");
            assert!(!station.unit().exists());
        } else {
            answer(command).exits(0);
        }
    }
}
