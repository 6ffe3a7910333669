//! `doctor` reports the actual state: each finding is tested with a state that causes it and one
//! that does not.

use crate::bench::*;
use crate::station::*;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;

fn doctor(station: &Station, exit: i32) -> Value {
    station.run(&["doctor", "--json"]).exits(exit).json()
}

/// The findings with this code.
fn findings<'d>(document: &'d Value, code: &str) -> Vec<&'d Value> {
    let findings = document["findings"].as_array().unwrap().iter();
    findings.filter(|finding| finding["code"] == code).collect()
}

#[track_caller]
fn finds<'d>(document: &'d Value, code: &str) -> &'d Value {
    let found = findings(document, code);
    assert_eq!(found.len(), 1, "`{code}` in {document:#}");
    found[0]
}

#[track_caller]
fn finds_no(document: &Value, code: &str) {
    assert!(findings(document, code).is_empty(), "`{code}` in {document:#}");
}

#[test]
fn with_nothing_there_it_has_only_notes() {
    let station = Station::new();
    let document = doctor(&station, 0);
    for code in ["home_missing", "hosts_none", "watcher_absent"] {
        assert_eq!(finds(&document, code)["state"], "note");
    }
    assert_eq!(document["as_expected"], json!(true));
    assert!(!station.bench.home().exists(), "it makes nothing");
}

#[test]
fn an_unguarded_server_is_an_error_that_the_suggested_command_fixes() {
    let station = Station::new();
    station.cursor(&json!({ "time": server(), "files": guarded_server("cursor.files", binary()) }));
    let document = doctor(&station, 15);
    let finding = finds(&document, "host_unwired");
    assert_eq!(finding["state"], "wrong");
    assert!(finding["say"].as_str().unwrap().contains("`time` is not guarded"), "{finding}");
    let line = format!("holdpoint wire --config {}", station.cursor_path().display());
    assert_eq!(finding["mend"], json!(line));
    assert_eq!(finding["page"], "holdpoint help doctor#host_unwired");
    let page = "holdpoint help doctor#host_unwired";
    let shown = station.run(&["doctor"]).exits(15).says("you are less protected");
    assert_eq!(shown.out.lines().last(), Some("next: holdpoint wire"), "{}", shown.out);
    // All findings about a host are listed below its name, without repeating it.
    let below = shown.out.lines().skip_while(|line| *line != "Cursor").nth(1).unwrap();
    assert!(below.starts_with("  ✗ `time` is not guarded"), "{}", shown.out);
    station.run(&["doctor", "-v"]).exits(15).says(page);
    station.run(&["help", "doctor#host_unwired"]).exits(0).says("start without Holdpoint");
}

#[test]
fn status_says_how_many_servers_are_not_guarded() {
    let station = Station::new();
    station.cursor(&json!({ "time": server(), "files": guarded_server("cursor.files", binary()) }));
    station.run(&["status"]).exits(0).says("1 server of a host is not guarded: holdpoint wire");
    station.cursor(&json!({ "files": guarded_server("cursor.files", binary()) }));
    let wired = station.run(&["status"]).exits(0).never_says("not guarded");
    wired
        .says("1 server is wired")
        .says("restart your hosts")
        .never_says("start with: holdpoint wire");
}

#[test]
fn guarded_servers_are_fine_and_not_seen_yet() {
    let station = Station::new();
    station.cursor(&json!({ "time": guarded_server("cursor.time", binary()) }));
    let document = doctor(&station, 0);
    finds(&document, "host_guarded");
    assert!(finds(&document, "server_not_seen")["say"].as_str().unwrap().contains("`time`"));
    for code in ["host_unwired", "command_gone", "command_other", "hosts_none"] {
        finds_no(&document, code);
    }
}

#[test]
fn a_server_that_was_pinned_is_seen() {
    let station = Station::new();
    station.cursor(&json!({ "time": guarded_server("cursor.time", binary()) }));
    station.bench.file("capture.json", json!([report_tool()]).to_string());
    let words = ["pin", "--server", "cursor.time", "--file", "capture.json"];
    station.run(&words).exits(0);
    let document = doctor(&station, 0);
    finds_no(&document, "server_not_seen");
    assert_eq!(finds(&document, "pins_fine")["say"], "1 tool pinned on 1 server");
    station.bench.file("capture.json", json!([report_tool_with_owner()]).to_string());
    station.run(&["check", "--server", "cursor.time", "--file", "capture.json"]).exits(10);
    let document = doctor(&station, 0);
    assert_eq!(finds(&document, "server_held")["mend"], "holdpoint review cursor.time");
    station.run(&["quarantine", "cursor.time"]).exits(0);
    finds(&doctor(&station, 0), "server_quarantined");
    station.run(&["incident", "on"]).exits(0);
    finds(&doctor(&station, 0), "incident_on");
}

#[test]
fn a_command_that_is_gone_is_wrong_and_so_is_a_program_that_only_has_the_name() {
    let station = Station::new();
    let gone = station.bench.path("gone/holdpoint");
    station.cursor(&json!({ "time": guarded_server("cursor.time", gone.to_str().unwrap()) }));
    finds(&doctor(&station, 15), "command_gone");
    fs::create_dir_all(gone.parent().unwrap()).unwrap();
    fs::copy("/bin/sh", &gone).unwrap();
    let document = doctor(&station, 15);
    let finding = finds(&document, "command_other");
    assert_eq!(finding["state"], "wrong");
    assert!(finding["mend"].as_str().unwrap().contains("unwire"), "{finding}");
    finds_no(&document, "command_gone");
    station.run(&["status"]).exits(0).says("1 server of a host is not guarded");
    station.run(&["hosts"]).exits(0).says("another program").never_says("  wired\n");
    // A copy of this program counts as the gate, wherever it is.
    fs::remove_file(&gone).unwrap();
    fs::copy(binary(), &gone).unwrap();
    finds_no(&doctor(&station, 0), "command_other");
    // The entry's own `PATH` decides what a name refers to.
    let mut entry = guarded_server("cursor.time", "holdpoint");
    let folder = station.bench.path("evil");
    fs::create_dir_all(&folder).unwrap();
    fs::copy("/bin/sh", folder.join("holdpoint")).unwrap();
    entry["env"] = json!({ "PATH": folder });
    station.cursor(&json!({ "time": entry }));
    finds(&doctor(&station, 15), "command_other");
}

#[test]
fn a_name_with_a_line_break_prints_no_finding_of_its_own() {
    let station = Station::new();
    let forged = "✓ Cursor: 9 servers guarded [host_guarded]";
    let name = format!("x`\n{forged}\u{1b}[2K\u{202e}");
    let padded = format!("y{}{forged}", " ".repeat(200));
    let mut entry = guarded_server("cursor.time", binary());
    entry["env"] = json!({ "HOLDPOINT_HOME": format!("/elsewhere\n{forged}") });
    let mut servers = serde_json::Map::new();
    servers.insert(name.clone(), entry);
    servers.insert(padded, server());
    servers.insert(format!("{name}2"), json!({ "url": "https://example.com/mcp" }));
    station.cursor(&Value::Object(servers));
    // Other people choose the names of a project's files too.
    let folder = station.bench.path(".continue/mcpServers");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(format!("z{}✓ Cursor: 9 servers.yaml", " ".repeat(150))), "{").unwrap();
    for words in [vec!["doctor"], vec!["hosts"], vec!["wire", "--dry-run"], vec!["status"]] {
        let answer = station.run(&words);
        assert!(!answer.out.contains(&" ".repeat(60)), "{words:?}: {}", answer.out);
        assert!(!answer.err.contains(&" ".repeat(60)), "{words:?}: {}", answer.err);
        for line in format!("{}\n{}", answer.out, answer.err).lines() {
            assert!(!line.trim_start().starts_with("✓ Cursor: 9"), "{words:?}: {line}");
            let is_plain = !line.contains(['\u{1b}', '\u{202e}']);
            assert!(is_plain, "{words:?}: {line:?}");
        }
    }
    station.run(&["doctor"]).exits(15);
}

#[test]
fn variables_of_an_entry_that_change_its_gate_are_wrong() {
    let station = Station::new();
    station.run(&["status"]).exits(0);
    let home = station.bench.home();
    let looked = |name: &str, value: &str, exit: i32| {
        let mut entry = guarded_server("cursor.time", binary());
        entry["env"] = json!({ name: value, "API_KEY": "s3cr3t" });
        station.cursor(&json!({ "time": entry }));
        let document = doctor(&station, exit);
        assert!(!document.to_string().contains("s3cr3t"), "{document:#}");
        document
    };
    for (name, value) in [("HOLDPOINT_HOME", "/elsewhere"), ("HOME", "/elsewhere")] {
        let document = looked(name, value, 15);
        let finding = finds(&document, "entry_home");
        assert_eq!(finding["state"], "wrong");
        assert!(finding["say"].as_str().unwrap().contains(name), "{finding}");
    }
    for name in ["HOLDPOINT_ANYTHING", "LD_PRELOAD", "USER"] {
        let document = looked(name, "x", 15);
        assert!(finds(&document, "entry_variable")["say"].as_str().unwrap().contains(name));
        finds_no(&document, "entry_home");
    }
    // The same home by a different path, the server's own variables, and what `wire` writes are
    // fine.
    let document = looked("HOLDPOINT_HOME", home.to_str().unwrap(), 0);
    finds_no(&document, "entry_home");
    for name in ["TOKEN", "HOLDPOINT_URL", "HOLDPOINT_HEADER_AUTHORIZATION"] {
        finds_no(&looked(name, "x", 0), "entry_variable");
    }
}

/// JSON parsers take the first or the last of two members with the same name, and some ignore case.
#[test]
fn an_entry_that_lost_its_gate_to_a_second_command_or_an_address_is_wrong() {
    let station = Station::new();
    let gate = guarded_server("cursor.time", binary()).to_string();
    let wired = |other: &str| {
        let entry = format!("{}{other}}}", gate.trim_end_matches('}'));
        fs::write(station.cursor_path(), format!(r#"{{"mcpServers":{{"time":{entry}}}}}"#))
            .unwrap();
    };
    station.cursor(&json!({}));
    wired("");
    finds_no(&doctor(&station, 0), "entry_bypassed");
    for other in [
        r#","command":"uvx","args":["mcp-server-time"]"#,
        r#","Command":"uvx""#,
        r#","args":["mcp-server-time"]"#,
        r#","url":"https://time.example.com/mcp""#,
        r#","httpUrl":"https://time.example.com/mcp""#,
    ] {
        wired(other);
        let document = doctor(&station, 15);
        let finding = finds(&document, "entry_bypassed");
        assert_eq!(finding["state"], "wrong");
        assert!(finding["say"].as_str().unwrap().contains("without the gate"), "{finding}");
        station.run(&["doctor"]).exits(15).says("[entry_bypassed]");
        station.run(&["hosts"]).exits(0).says("names holdpoint, but");
        station.run(&["status"]).exits(0).says("1 server of a host is not guarded");
    }
    // If a variable is set twice, the host may use either value.
    station.run(&["status"]).exits(0);
    let home = station.bench.home();
    let home = home.display();
    wired(&format!(r#","env":{{"HOLDPOINT_HOME":"{home}","HOLDPOINT_HOME":"/elsewhere"}}"#));
    finds(&doctor(&station, 15), "entry_home");
}

#[test]
fn variables_from_a_file_that_change_the_gate_are_wrong_and_a_file_that_is_not_there_a_note() {
    let station = Station::new();
    station.run(&["status"]).exits(0);
    let mut entry = guarded_server("cursor.time", binary());
    let file = station.bench.file("variables", "API_KEY=s3cr3t\n");
    entry["envFile"] = json!(file);
    station.cursor(&json!({ "time": entry }));
    let document = doctor(&station, 0);
    for code in ["entry_variable", "entry_home", "entry_env_file"] {
        finds_no(&document, code);
    }
    fs::write(&file, "API_KEY=s3cr3t\nexport LD_PRELOAD='/tmp/x.so'\nHOLDPOINT_HOME=/elsewhere\n")
        .unwrap();
    let document = doctor(&station, 15);
    assert!(finds(&document, "entry_variable")["say"].as_str().unwrap().contains("LD_PRELOAD"));
    finds(&document, "entry_home");
    assert!(!document.to_string().contains("s3cr3t"), "{document:#}");
    fs::remove_file(&file).unwrap();
    assert_eq!(finds(&doctor(&station, 0), "entry_env_file")["state"], "note");
}

#[test]
fn two_entries_with_one_id_are_a_note() {
    let station = Station::new();
    let one = guarded_server("cursor.time", binary());
    station.cursor(&json!({ "time": one, "copy": one, "other": guarded_server("x", binary()) }));
    let document = doctor(&station, 0);
    assert!(
        finds(&document, "servers_share_id")["say"].as_str().unwrap().contains("`cursor.time`")
    );
    station.cursor(&json!({ "time": one }));
    finds_no(&doctor(&station, 0), "servers_share_id");
}

/// The command suggested for a program that is not on `PATH` fixes the entry.
#[test]
fn the_suggested_command_fixes_a_program_that_is_not_on_path() {
    let station = Station::new();
    station.cursor(&json!({ "time": guarded_server("cursor.time", "holdpoint") }));
    let document = doctor(&station, 15);
    let file = station.cursor_path();
    let line = format!("holdpoint wire --config {}", file.display());
    assert_eq!(finds(&document, "command_gone")["mend"], json!(line));
    station.run(&["wire", "--config", file.to_str().unwrap(), "--yes"]).exits(0);
    let document = doctor(&station, 0);
    finds_no(&document, "command_gone");
    finds_no(&document, "command_other");
    // If a shell can find it, the entry stays as its author wrote it.
    station.cursor(&json!({ "time": guarded_server("cursor.time", "holdpoint") }));
    station.program("holdpoint", "#!/bin/sh\n");
    station.run(&["wire", "--yes"]).exits(0).says("nothing to wire");
    let document = doctor(&station, 15);
    finds_no(&document, "command_gone");
    finds(&document, "command_other");
}

/// Only the host knows what a relative path is relative to.
#[test]
fn wiring_again_fixes_a_relative_path_that_is_not_found() {
    let station = Station::new();
    // A person wrote the entry, so it is only removed by name.
    station.cursor(&json!({ "time": guarded_server("time", "tools/holdpoint") }));
    let document = doctor(&station, 15);
    let line = finds(&document, "command_gone")["mend"].as_str().unwrap().to_owned();
    let file = station.cursor_path();
    let file = file.to_str().unwrap();
    let options = format!("--config {file} --server time");
    assert_eq!(line, format!("holdpoint unwire {options} && holdpoint wire {options}"));
    for command in ["unwire", "wire"] {
        station.run(&[command, "--config", file, "--server", "time", "--yes"]).exits(0);
    }
    finds_no(&doctor(&station, 0), "command_gone");
}

/// An entry with additional options of `run`.
fn with_options(options: &[&str]) -> Value {
    let mut entry = guarded_server("cursor.time", binary());
    let words = entry["args"].as_array_mut().unwrap();
    options.iter().for_each(|option| words.insert(1, json!(option)));
    entry
}

#[test]
fn an_entry_that_is_looser_than_the_configuration_is_a_note() {
    let station = Station::new();
    let looked = |options: &[&str]| {
        station.cursor(&json!({ "time": with_options(options) }));
        doctor(&station, 0)
    };
    let document = looked(&["--posture=monitor"]);
    let finding = finds(&document, "posture_monitor");
    assert_eq!(finding["state"], "note");
    let words = finding["say"].as_str().unwrap();
    assert!(words.contains("`time` of Cursor") && words.contains("in its entry"), "{words}");
    assert!(finding["mend"].as_str().unwrap().contains("`--posture`"), "{finding}");
    finds_no(&document, "entry_looser");
    let document = looked(&["--posture=shield", "--relist-max-age=31", "--flavor=open"]);
    assert_eq!(findings(&document, "entry_looser").len(), 3, "{document:#}");
    finds_no(&document, "posture_monitor");
    let document = looked(&["--posture=strict", "--relist-max-age=30", "--flavor=enclaved"]);
    finds_no(&document, "entry_looser");
    // If the configuration says the same, it is reported once, and not for the entry.
    station.run(&["status"]).exits(0);
    station.bench.configure("posture = \"monitor\"\n");
    let document = looked(&["--posture=monitor"]);
    assert!(finds(&document, "posture_monitor")["say"].as_str().unwrap().contains("all servers"));
}

#[test]
fn an_entry_with_another_home_is_wrong() {
    let station = Station::new();
    let looked = |home: &str, exit: i32| {
        station.cursor(&json!({ "time": with_options(&[&format!("--home={home}")]) }));
        doctor(&station, exit)
    };
    let document = looked("/elsewhere", 15);
    let mend = finds(&document, "entry_home")["mend"].as_str().unwrap();
    assert!(mend.ends_with("holdpoint doctor --home /elsewhere"), "{mend}");
    finds_no(&looked(station.bench.home().to_str().unwrap(), 0), "entry_home");
}

#[test]
fn entries_of_two_files_with_one_id_are_a_note_and_wire_makes_none() {
    let station = Station::new();
    let other = json!({ "mcpServers": { "mine": guarded_server("cursor.time", binary()) } });
    station.bench.file(".mcp.json", other.to_string());
    station.cursor(&json!({ "time": server() }));
    station.run(&["wire", "cursor", "--yes"]).exits(0);
    let document = doctor(&station, 0);
    finds_no(&document, "servers_share_id");
    let hosts = station.run(&["hosts", "--json"]).exits(0).json();
    let servers = hosts["files"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|file| file["servers"].as_array().unwrap());
    let ids: Vec<&str> = servers.map(|server| server["id"].as_str().unwrap()).collect();
    assert!(
        ids.contains(&"cursor.time") && ids.iter().any(|id| id.starts_with("cursor.time-")),
        "{ids:?}"
    );
    station.cursor(&json!({ "time": guarded_server("cursor.time", binary()) }));
    let document = doctor(&station, 0);
    let words = finds(&document, "servers_share_id")["say"].as_str().unwrap().to_owned();
    assert!(words.contains("time of Cursor") && words.contains("mine of Claude Code"), "{words}");
}

#[test]
fn a_file_that_cannot_be_read_is_wrong() {
    let station = Station::new();
    station.cursor(&json!({}));
    fs::write(station.cursor_path(), "{\"mcpServers\": ").unwrap();
    finds(&doctor(&station, 15), "host_unreadable");
}

#[test]
fn a_server_that_needs_a_sign_in_is_a_note() {
    let station = Station::new();
    station.cursor(&json!({ "tickets": { "url": "https://example.com/mcp" } }));
    let document = doctor(&station, 0);
    let finding = finds(&document, "server_unguardable");
    assert!(finding["say"].as_str().unwrap().contains("sign-in"), "{finding}");
}

#[test]
fn a_home_that_others_can_write_to_is_wrong() {
    let station = Station::new();
    station.run(&["status"]).exits(0);
    finds(&doctor(&station, 0), "home_fine");
    let mode = |mode| fs::set_permissions(station.bench.home(), fs::Permissions::from_mode(mode));
    mode(0o777).unwrap();
    let document = doctor(&station, 15);
    let finding = finds(&document, "home_exposed");
    assert_eq!(finding["mend"], json!(format!("chmod 700 {}", station.bench.home().display())));
    mode(0o700).unwrap();
    finds_no(&doctor(&station, 0), "home_exposed");
}

#[test]
fn a_home_that_others_can_look_into_is_a_note() {
    use std::os::unix::fs::PermissionsExt;
    let station = Station::new();
    station.run(&["status"]).exits(0);
    let home = station.bench.home();
    let look = |mode| {
        fs::set_permissions(&home, fs::Permissions::from_mode(mode)).unwrap();
        doctor(&station, 0)
    };
    finds_no(&look(0o700), "home_visible");
    for mode in [0o755, 0o750, 0o710, 0o701] {
        let document = look(mode);
        let mend = finds(&document, "home_visible")["mend"].as_str().unwrap().to_owned();
        assert!(mend.starts_with("chmod 700 "), "{mend}");
    }
}

#[test]
fn a_home_that_is_a_file_is_unusable() {
    let station = Station::new();
    station.bench.file("home", "");
    finds(&doctor(&station, 15), "home_unusable");
}

#[test]
fn pins_that_something_else_changed_are_wrong() {
    let station = Station::new();
    station.bench.file("capture.json", json!([report_tool()]).to_string());
    station.run(&["pin", "--server", ID, "--file", "capture.json"]).exits(0);
    finds_no(&doctor(&station, 0), "pins_untrusted");
    fs::write(station.bench.home().join("keys/pins.key"), [7; 32]).unwrap();
    finds(&doctor(&station, 15), "pins_untrusted");
}

#[test]
fn a_key_for_arguments_that_no_gate_can_use_is_wrong() {
    let station = Station::new();
    station.run(&["status"]).exits(0);
    finds_no(&doctor(&station, 0), "args_key_unusable");
    let key = station.bench.home().join("keys/args.key");
    fs::write(&key, [7; 1]).unwrap();
    let document = doctor(&station, 15);
    let said = finds(&document, "args_key_unusable")["say"].as_str().unwrap().to_owned();
    // The gate reports the same.
    station.run(&["run", "--server", "m", "--", "cat"]).exits(14).says(&said);
    station.bench.configure("[receipts]\nargs_hash = \"plain\"\n");
    finds_no(&doctor(&station, 0), "args_key_unusable");
}

#[test]
fn a_database_of_another_program_is_wrong() {
    let station = Station::new();
    station.run(&["status"]).exits(0);
    fs::write(station.bench.home().join("state.db"), "not a database, and long enough to tell")
        .unwrap();
    finds(&doctor(&station, 15), "store_unusable");
}

#[test]
fn a_chosen_monitor_posture_is_a_note() {
    let station = Station::new();
    station.run(&["status"]).exits(0);
    station.bench.configure("posture = \"monitor\"\n[approve]\nunattended = true\n");
    let document = doctor(&station, 0);
    finds(&document, "posture_monitor");
    finds(&document, "approvals_unattended");
    station.bench.configure("posture = \"guard\"\n");
    let document = doctor(&station, 0);
    finds_no(&document, "posture_monitor");
    finds_no(&document, "approvals_unattended");
}

#[test]
fn a_tool_that_is_to_be_asked_about_and_that_the_server_lacks_is_a_note() {
    let station = Station::new();
    station.bench.file("capture.json", json!([report_tool()]).to_string());
    let words = ["pin", "--server", "cursor.time", "--file", "capture.json"];
    station.run(&words).exits(0);
    let named = |tool: &str| format!("[server.\"cursor.time\".approval]\ntools = [\"{tool}\"]\n");
    station.bench.configure(&named("make_report"));
    finds_no(&doctor(&station, 0), "approval_tool_unknown");
    station.bench.configure(&named("make_raport"));
    let document = doctor(&station, 0);
    let sentence = finds(&document, "approval_tool_unknown")["say"].to_string();
    assert!(sentence.contains("make_raport"), "{sentence}");
}

#[test]
fn a_configuration_that_is_wrong_is_found_by_both_ways() {
    let station = Station::new();
    station.run(&["status"]).exits(0);
    station.bench.configure("postur = \"guard\"\n");
    let document = doctor(&station, 15);
    let finding = finds(&document, "configuration_wrong");
    assert!(finding["say"].as_str().unwrap().contains("did you mean `posture`"), "{finding}");
    let file = station.bench.file("own.toml", "postur = \"guard\"\n");
    let check = |exit| station.run(&["doctor", "--config", file.to_str().unwrap()]).exits(exit);
    check(2).says("did you mean `posture`");
    fs::write(&file, "posture = \"guard\"\n").unwrap();
    check(0).says("can be used");
    fs::remove_file(&file).unwrap();
    check(2).says("own.toml");
}

#[cfg(target_os = "linux")]
#[test]
fn a_watcher_that_is_installed_and_does_not_run_is_wrong() {
    let station = Station::new();
    station.run(&["watch", "--install"]).exits(0);
    let document = doctor(&station, 15);
    // If systemd is not running, as in a container, reinstalling the watcher would not start it.
    let has_systemd = std::path::Path::new("/run/systemd/system").is_dir();
    let mend =
        if has_systemd { "holdpoint watch --install" } else { "holdpoint watch --uninstall" };
    assert_eq!(finds(&document, "watcher_stopped")["mend"], mend);
    station.run(&["watch", "--uninstall"]).exits(0);
    let document = doctor(&station, 0);
    let mend = if has_systemd { json!("holdpoint watch --install") } else { Value::Null };
    assert_eq!(finds(&document, "watcher_absent")["mend"], mend);
    let status = station.run(&["watch", "--status"]).exits(0);
    assert_eq!(status.out.contains("--install"), has_systemd, "{}", status.out);
}

/// A copy of the binary under another name, in a folder with this mode.
fn copied(station: &Station, mode: u32) -> Value {
    let folder = station.bench.path("open");
    fs::create_dir_all(&folder).unwrap();
    let program = folder.join("holdpoint");
    // Copy with another process: a program that this process has open for writing cannot be
    // started.
    assert!(
        std::process::Command::new("cp").arg(binary()).arg(&program).status().unwrap().success()
    );
    fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
    let mut command = std::process::Command::new(program);
    let template = station.command(["doctor", "--json"]);
    command.args(template.get_args()).current_dir(template.get_current_dir().unwrap());
    for (name, value) in template.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    answer(command).json()
}

#[test]
fn a_program_that_others_can_replace_is_wrong() {
    let station = Station::new();
    finds(&copied(&station, 0o777), "program_exposed");
    finds_no(&copied(&station, 0o755), "program_exposed");
    finds_no(&copied(&station, 0o1777), "program_exposed");
}

#[test]
fn a_program_that_a_shell_does_not_find_is_a_note() {
    let station = Station::new();
    let mut command = station.command(["doctor", "--json"]);
    command.env("PATH", "/nowhere");
    finds(&answer(command).exits(0).json(), "program_not_on_path");
    // A program with the same name is not the gate, although commands would run it.
    station.program("holdpoint", "#!/bin/sh\n");
    finds(&doctor(&station, 15), "program_other");
    let path = station.bench.path("ours");
    fs::create_dir_all(&path).unwrap();
    std::os::unix::fs::symlink(binary(), path.join("holdpoint")).unwrap();
    let mut command = station.command(["doctor", "--json"]);
    command.env("PATH", &path);
    finds(&answer(command).exits(0).json(), "program_found");
}
