//! Uninstalling: every host is restored, the watcher and the binary are removed; pins and receipts
//! stay unless they are to be purged.

use crate::bench::*;
use crate::station::*;
use serde_json::json;
use std::fs;

/// A user with a full installation. Returns the host's original text and the station.
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

/// The running program is not the one in `~/.local/bin`, as after `cargo install`.
#[test]
fn a_program_that_the_installer_did_not_put_there_is_named_with_the_line_that_removes_it() {
    let (_, station) = installed();
    let line = format!("rm {}", binary());
    station.run(&["uninstall", "--dry-run"]).exits(0).says(&line);
    let document = station.run(&["uninstall", "--dry-run", "--json"]).exits(0).json();
    assert_eq!(document["program_kept"], json!({ "path": binary(), "remove": line }));
    station.run(&["uninstall", "--yes"]).exits(0).says("done, except for the program").says(&line);
    // If the installed program itself runs, it is removed, and nothing is left to report.
    let (_, station) = installed();
    let mut command = std::process::Command::new(station.bench.path(".local/bin/holdpoint"));
    command.args(["uninstall", "--yes"]).env("HOME", station.user());
    command.env("HOLDPOINT_HOME", station.bench.home()).current_dir(station.user());
    station.surround(&mut command);
    let answer = answer(command).exits(0).never_says("except for");
    assert_eq!(answer.out.lines().last(), Some("done"));
    assert!(!station.bench.path(".local/bin/holdpoint").exists());
}

#[test]
fn an_entry_that_names_the_gate_and_cannot_be_taken_apart_keeps_the_program() {
    let (_, station) = installed();
    let text = fs::read_to_string(station.cursor_path()).unwrap();
    let twice = text.replacen("\"args\"", "\"Command\": \"uvx\", \"args\"", 1);
    fs::write(station.cursor_path(), &twice).unwrap();
    station.run(&["uninstall", "--yes"]).exits(2).says("cannot be edited");
    assert!(station.bench.path(".local/bin/holdpoint").exists());
    assert_eq!(fs::read_to_string(station.cursor_path()).unwrap(), twice);
}

#[test]
fn a_purge_removes_the_home() {
    let (_, station) = installed();
    station.run(&["uninstall", "--purge", "--yes"]).exits(0);
    assert!(!station.bench.home().exists());
}

#[test]
fn a_purge_of_a_folder_that_is_not_ours_removes_nothing() {
    let (_, station) = installed();
    let precious = station.bench.path("precious");
    fs::create_dir(&precious).unwrap();
    fs::write(precious.join("thesis"), "").unwrap();
    for folder in [precious.clone(), station.user()] {
        let mut command = station.command(["uninstall", "--purge", "--yes"]);
        command.env("HOLDPOINT_HOME", folder);
        answer(command).exits(2).says("nothing was removed");
    }
    assert!(precious.join("thesis").exists() && station.is_guarded("time"));
}

#[test]
fn a_file_that_is_read_only_stands_in_the_way_before_anything_is_done() {
    use std::os::unix::fs::PermissionsExt;
    let (_, station) = installed();
    let mode = |mode| {
        fs::set_permissions(station.cursor_path(), fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(0o444);
    station.run(&["uninstall", "--yes"]).exits(2).says("read-only");
    assert!(station.bench.path(".local/bin/holdpoint").exists() && station.is_guarded("time"));
    mode(0o644);
    station.run(&["uninstall", "--yes"]).exits(0);
    assert!(!station.is_guarded("time"));
}

#[test]
fn a_file_that_cannot_be_changed_keeps_what_it_starts() {
    let (_, station) = installed();
    let text = fs::read_to_string(station.cursor_path()).unwrap();
    fs::write(station.cursor_path(), &text[..text.len() - 4]).unwrap();
    station.run(&["uninstall", "--yes"]).exits(2).says("left").says("mcp.json");
    assert!(station.bench.path(".local/bin/holdpoint").exists());
    // A file that does not mention holdpoint is ignored.
    fs::write(station.cursor_path(), "{").unwrap();
    station.run(&["uninstall", "--yes"]).exits(0);
    assert!(!station.bench.path(".local/bin/holdpoint").exists());
    assert_eq!(fs::read_to_string(station.cursor_path()).unwrap(), "{");
}
