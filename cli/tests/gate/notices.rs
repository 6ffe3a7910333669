//! Desktop notices, and the status line for a prompt.

use crate::bench::*;
use crate::client::*;
use crate::scenario::Scenario;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// A gate with a `notify-send` that records its arguments.
struct Desk {
    bench: Bench,
    scenario: Scenario,
    shown: PathBuf,
}

impl Desk {
    fn new() -> Desk {
        let bench = Bench::unattended();
        let shown = bench.path("shown");
        let folder = bench.path("desk");
        fs::create_dir_all(&folder).unwrap();
        let program = folder.join("notify-send");
        // Appends the whole line atomically.
        let script = format!("#!/bin/sh\necho \"$*\" >> '{}'\n", shown.display());
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let scenario = Scenario::new(&bench, "added_required");
        Desk { bench, scenario, shown }
    }

    /// Starts a session with a desktop, changes the tool and makes a call that is held.
    fn hold(&self, variables: &[(&str, &str)]) -> Client {
        let mut command = self.bench.command(["run", "--server", ID]);
        let path =
            format!("{}:{}", self.bench.path("desk").display(), std::env::var("PATH").unwrap());
        for name in ["CI", "DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS"] {
            command.env_remove(name);
        }
        command.env("PATH", path).envs(variables.iter().copied());
        command.arg("--").args(self.scenario.launch(&[]));
        let mut client = Client::start(command);
        client.begin();
        assert_eq!(client.tool_names(), ["make_report"]);
        self.scenario.change();
        client.ask("ping", &json!({}));
        for _ in 0..3 {
            refused(&client.call("make_report", &json!({"title": "x"})), HELD);
        }
        client
    }

    fn lines(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.shown).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

#[test]
fn one_notice_tells_that_a_call_was_held_and_which_command_to_type() {
    let desk = Desk::new();
    let client = desk.hold(&[("DISPLAY", ":0")]);
    testing::wait_until("the notice", || !desk.lines().is_empty());
    client.end().exits(0);
    let lines = desk.lines();
    let [line] = lines.as_slice() else { panic!("{lines:?}") };
    assert!(line.contains("Holdpoint holds calls to reports"), "{line}");
    assert!(line.contains("holdpoint review reports"), "{line}");
    assert!(!line.contains("make_report") && !line.contains("owner"), "{line}");
    assert!(desk.bench.home().join("notices").join(ID).is_file(), "other processes keep the pause");
}

#[test]
fn there_is_no_notice_without_a_desktop_in_continuous_integration_or_if_it_is_off() {
    for variables in [&[][..], &[("DISPLAY", ":0"), ("CI", "true")]] {
        let desk = Desk::new();
        desk.hold(variables).end().exits(0);
        assert!(!desk.bench.home().join("notices").exists(), "{variables:?}");
    }
    let desk = Desk::new();
    let path = desk.bench.home().join("holdpoint.toml");
    let before = fs::read_to_string(&path).unwrap_or_default();
    fs::write(&path, format!("{before}\n[server.{ID}.notify]\ndesktop = false\n")).unwrap();
    desk.hold(&[("DISPLAY", ":0")]).end().exits(0);
    assert!(!desk.bench.home().join("notices").exists());
}

#[test]
fn a_missing_program_costs_a_call_nothing() {
    let desk = Desk::new();
    fs::remove_file(desk.bench.path("desk").join("notify-send")).unwrap();
    desk.hold(&[("DISPLAY", ":0")]).end().exits(0);
}

#[test]
fn the_short_status_is_empty_until_something_is_held_and_makes_no_home() {
    let bench = Bench::unattended();
    let nowhere = bench.path("nowhere");
    let home = nowhere.to_str().unwrap();
    let fine = bench.run(["status", "--short", "--home", home]).exits(0);
    assert_eq!(fine.out, "");
    assert!(!nowhere.exists());
    let desk = Desk::new();
    assert_eq!(desk.bench.run(["status", "--short"]).exits(0).out, "");
    desk.hold(&[]).end().exits(0);
    assert_eq!(desk.bench.run(["status", "--short"]).exits(10).out, "holdpoint: 1 held\n");
    let document = desk.bench.run(["status", "--short", "--json"]).exits(10).json();
    assert_eq!(document, json!({"incident": false, "held": [ID], "quarantined": []}));
    assert_eq!(desk.bench.run(["status", "--short", "other"]).exits(0).out, "");
    desk.bench.run(["quarantine", ID]).exits(0);
    assert_eq!(desk.bench.run(["status", "--short"]).exits(10).out, "holdpoint: 1 quarantined\n");
}
