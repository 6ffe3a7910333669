//! Leaving: every host as it was, no watcher, no binary; pins and receipts stay unless they are to go.

use crate::station::*;
use serde_json::json;
use std::fs;

/// A user who has installed everything: the text of the host's file before, and the station.
fn installed() -> (String, Station) {
    let station = Station::new();
    station.cursor(&json!({ "time": server() }));
    let before = fs::read_to_string(station.cursor_path()).unwrap();
    station.run(&["watch", "--once"]).exits(0);
    fs::write(station.bench.home().join("watch.json"), r#"{"version":1,"known":[]}"#).unwrap();
    station.run(&["watch", "--once", "--auto"]).exits(0).says("guarded");
    assert!(station.is_guarded("time"));
    fs::create_dir_all(station.bench.path(".local/bin")).unwrap();
    fs::copy(binary(), station.bench.path(".local/bin/holdpoint")).unwrap();
    (before, station)
}

#[test]
fn everything_goes_and_pins_stay() {
    let (before, station) = installed();
    #[cfg(target_os = "linux")]
    station.run(&["watch", "--install"]).exits(0);
    station.run(&["uninstall", "--dry-run"]).exits(0).says("unwire").says("--purge");
    assert!(station.is_guarded("time"), "a dry run does nothing");
    station.run(&["uninstall"]).exits(2).says("uninstall --yes");
    assert!(station.is_guarded("time"), "without consent nothing is done");
    let document = station.run(&["uninstall", "--yes", "--json"]).exits(0).json();
    assert_eq!(document["unwired"], json!([station.cursor_path()]));
    assert_eq!(fs::read_to_string(station.cursor_path()).unwrap(), before);
    assert!(!station.unit().exists());
    assert!(!station.bench.path(".local/bin/holdpoint").exists());
    assert!(station.bench.home().exists());
    station.run(&["uninstall", "--yes"]).exits(0).never_says("unwire");
}

#[test]
fn a_purge_removes_the_home() {
    let (_, station) = installed();
    station.run(&["uninstall", "--purge", "--yes"]).exits(0);
    assert!(!station.bench.home().exists());
}

#[test]
fn a_file_that_cannot_be_changed_keeps_what_it_starts() {
    let (_, station) = installed();
    let text = fs::read_to_string(station.cursor_path()).unwrap();
    fs::write(station.cursor_path(), &text[..text.len() - 4]).unwrap();
    station.run(&["uninstall", "--yes"]).exits(2).says("left").says("mcp.json");
    assert!(station.bench.path(".local/bin/holdpoint").exists());
    // One that does not name us is none of our business.
    fs::write(station.cursor_path(), "{").unwrap();
    station.run(&["uninstall", "--yes"]).exits(0);
    assert!(!station.bench.path(".local/bin/holdpoint").exists());
    assert_eq!(fs::read_to_string(station.cursor_path()).unwrap(), "{");
}
