//! The home: private, authenticated, never damaged, and safe with several processes at once.

use crate::bench::*;
use serde_json::{Value, json};
use std::fs;
use std::process::Stdio;

fn pinned() -> (Bench, FolderServer) {
    let bench = Bench::new();
    let server = FolderServer::new(&bench, &json!([report_tool(), mail_tool()]));
    server.run(&bench, "pin", &[]).exits(0);
    (bench, server)
}

/// Edits the pins without Holdpoint.
fn edit(bench: &Bench, sql: &str) {
    let connection = rusqlite::Connection::open(bench.home().join("state.db")).unwrap();
    connection.execute_batch(sql).unwrap();
}

#[test]
#[cfg(unix)]
fn the_home_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let (bench, _) = pinned();
    let mode = |path: &str| fs::metadata(bench.home().join(path)).unwrap().permissions().mode();
    assert_eq!(mode("") & 0o777, 0o700);
    assert_eq!(mode("keys") & 0o777, 0o700);
    assert_eq!(mode("state.db") & 0o777, 0o600);
    let keys: Vec<_> = fs::read_dir(bench.home().join("keys")).unwrap().collect();
    assert!(!keys.is_empty());
    for key in keys {
        let key = key.unwrap();
        // The public key is meant to be shared.
        let expected = if key.file_name() == "receipts.pub" { 0o644 } else { 0o600 };
        assert_eq!(key.metadata().unwrap().permissions().mode() & 0o777, expected);
    }
}

#[test]
#[cfg(unix)]
fn a_home_that_others_can_write_to_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let (bench, _) = pinned();
    let set = |mode: u32| {
        fs::set_permissions(bench.home(), fs::Permissions::from_mode(mode)).unwrap();
    };
    for mode in [0o777, 0o720, 0o702] {
        set(mode);
        bench.run(["status"]).exits(2).says("chmod");
        bench.run(["check", ID]).exits(2);
    }
    set(0o755);
    bench.run(["status"]).exits(0);
}

#[test]
fn the_home_is_named_by_option_then_by_variable_then_by_the_user() {
    let bench = Bench::new();
    bench.file("capture.json", "[]");
    let words = ["pin", "--file", "capture.json", "--server", ID];
    let (first, second) = (bench.path("first"), bench.path("second"));
    let mut command = bench.command(words);
    command.arg("--home").arg(&first).env("HOLDPOINT_HOME", &second);
    answer(command).exits(0);
    assert!(first.join("state.db").is_file() && !second.exists());
    let mut command = bench.command(words);
    command.env("HOLDPOINT_HOME", &second);
    answer(command).exits(0);
    assert!(second.join("state.db").is_file());
    for unset in [None, Some("")] {
        let mut command = bench.command(["status", "--json"]);
        match unset {
            None => command.env_remove("HOLDPOINT_HOME"),
            Some(empty) => command.env("HOLDPOINT_HOME", empty),
        };
        assert_eq!(answer(command).exits(0).json()["servers"], json!([]));
        assert!(bench.path(".holdpoint").join("state.db").is_file());
    }
}

#[test]
fn a_home_that_is_a_file_is_refused() {
    let bench = Bench::new();
    let file = bench.file("file", "mine");
    let mut command = bench.command(["status", "--home"]);
    command.arg(&file);
    answer(command).exits(2);
    assert_eq!(fs::read(file).unwrap(), b"mine");
}

#[cfg(unix)]
#[test]
fn a_folder_that_users_share_is_refused_as_a_home_and_not_closed_to_them() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new();
    let shared = bench.path("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
    let mut command = bench.command(["status", "--home"]);
    command.arg(&shared);
    answer(command).exits(2).says("is shared with other users").never_says("chmod");
}

#[test]
fn a_new_home_has_no_receipts_to_verify_and_says_when_there_are_some() {
    let bench = Bench::new();
    let said = bench.run(["receipts", "verify"]).exits(2);
    said.says("there are no receipts yet").says("holdpoint pin").says("--key FILE");
}

#[test]
fn an_edited_pin_is_reported_and_held() {
    let (bench, server) = pinned();
    server.lists(&json!([report_tool_with_owner(), mail_tool()]));
    // Edit the pin to match what the server shows now.
    let raw = report_tool_with_owner().to_string().replace('\'', "''");
    edit(&bench, &format!("UPDATE pins SET raw = '{raw}' WHERE key = 'make_report'"));
    let document = server.run(&bench, "check", &["--json"]).exits(10).json();
    assert_eq!(document["verdict"], "HOLD");
    let entries = document["entries"].as_array().unwrap();
    let edited = entries.iter().find(|entry| entry["key"] == "make_report").unwrap();
    assert_eq!((&edited["verdict"], &edited["reason"]), (&json!("HOLD"), &json!("baseline_lost")));
    bench.run(["status"]).exits(0).says("baseline_lost");
    // Nothing is trusted in its place, but a person can repair it.
    server.run(&bench, "pin", &[]).exits(2).says("needs a terminal");
    bench.configure("[approve]\nunattended = true\n");
    server.run(&bench, "pin", &[]).exits(0);
    server.run(&bench, "check", &[]).exits(0);
}

#[test]
fn a_trigger_in_the_database_does_not_turn_an_act_into_nothing() {
    let (bench, server) = pinned();
    edit(&bench, "CREATE TRIGGER t AFTER INSERT ON switches BEGIN DELETE FROM switches; END");
    bench
        .run(["incident", "on"])
        .exits(12)
        .says("has a trigger that holdpoint did not make, \"t\"");
    server.run(&bench, "check", &[]).exits(12);
    edit(&bench, "DROP TRIGGER t");
    bench.run(["incident", "on"]).exits(0);
}

#[test]
fn pins_that_were_removed_are_missed() {
    for sql in [
        "DELETE FROM pins",
        "UPDATE pins SET raw = '{}'",
        "DELETE FROM pins WHERE key = 'send_mail'",
        "UPDATE servers SET status = 'verified', seal_count = 0, seal = NULL",
    ] {
        let (bench, server) = pinned();
        edit(&bench, sql);
        server.run(&bench, "check", &[]).exits(10);
        let document = server.run(&bench, "check", &["--json"]).exits(10).json();
        let entries = document["entries"].as_array().unwrap();
        assert!(
            entries.iter().any(|entry| entry["reason"] == "baseline_lost"),
            "{sql}: {document}"
        );
        server.run(&bench, "pin", &[]).exits(2).says("needs a terminal");
        server.run(&bench, "check", &[]).exits(10);
        // A person can repair it.
        bench.configure("[approve]\nunattended = true\n");
        server.run(&bench, "pin", &[]).exits(0);
        server.run(&bench, "check", &[]).exits(0);
    }
}

#[test]
fn of_pins_that_were_lost_only_those_count_that_are_approved_again() {
    let (bench, server) = pinned();
    edit(&bench, "DELETE FROM pins WHERE key = 'send_mail'");
    server.run(&bench, "check", &[]).exits(10);
    bench.configure("[approve]\nunattended = true\n");
    let hash = bench.waiting_hash("send_mail");
    bench.run(["approve", ID, "send_mail", "--hash", &hash]).exits(0).says("still held");
    server.run(&bench, "check", &[]).exits(10).says("make_report").never_says("send_mail");
    let surface = bench.server_status()["surface_hash"].as_str().unwrap().to_owned();
    bench.run(["approve", ID, "--hash", &surface]).exits(0).says("verified");
    server.run(&bench, "check", &[]).exits(0);
}

#[test]
fn a_home_from_a_newer_version_is_refused_and_left_as_it_is() {
    let (bench, server) = pinned();
    let known: i64 = rusqlite::Connection::open(bench.home().join("state.db"))
        .unwrap()
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap();
    edit(&bench, "PRAGMA user_version = 99; PRAGMA wal_checkpoint(TRUNCATE);");
    let state = bench.home().join("state.db");
    let before = fs::read(&state).unwrap();
    bench.run(["status"]).exits(2).says("newer holdpoint");
    bench.run(["status", "--json"]).exits(2).json();
    server.run(&bench, "pin", &[]).exits(2);
    server.run(&bench, "check", &[]).exits(2);
    bench.run(["quarantine", ID]).exits(2);
    assert!(fs::read(&state).unwrap() == before, "the newer home was written to");
    edit(&bench, &format!("PRAGMA user_version = {known}"));
    bench.run(["check", ID]).exits(0);
}

#[test]
fn a_home_that_is_damaged_is_left_as_it_is() {
    let (bench, _) = pinned();
    let garbage =
        b"this was never a database, and it is long enough to be taken for one".repeat(99);
    let state = bench.home().join("state.db");
    fs::write(&state, &garbage).unwrap();
    let answer = bench.run(["status"]);
    assert!(matches!(answer.code, Some(2 | 12)), "{:?} {}", answer.code, answer.err);
    assert!(fs::read(&state).unwrap() == garbage, "the damaged home was written to");
}

#[test]
fn a_wrong_configuration_is_refused_by_every_command() {
    let (bench, server) = pinned();
    for (text, said) in [
        ("postur = \"strict\"", "unknown key `postur`; did you mean `posture`?"),
        ("[approve]\nunatended = true", "did you mean `approve.unattended`?"),
        ("posture = \"lax\"", "strict"),
        ("posture", "holdpoint.toml"),
        ("[server.reports]\npostur = \"guard\"", "did you mean `posture`?"),
    ] {
        bench.configure(text);
        bench.run(["status"]).exits(2).says(said).says("holdpoint.toml");
        server.run(&bench, "check", &[]).exits(2).says(said);
    }
    bench.configure("posture = \"strict\"\n[server.reports]\nposture = \"monitor\"\n");
    assert_eq!(server.run(&bench, "check", &["--json"]).exits(0).json()["posture"], "monitor");
    assert_eq!(bench.server_status()["posture"], "monitor");
}

#[test]
fn several_processes_pin_different_servers_at_once() {
    let bench = Bench::new();
    let ids = ["one", "two", "three", "four"];
    let servers = ids.map(|id| (id, FolderServer::named(&bench, id, &json!([report_tool()]))));
    let children: Vec<_> = servers
        .iter()
        .map(|(id, server)| {
            let mut command = server.command_as(&bench, id, "pin", &[]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for child in children {
        finish(child).exits(0);
    }
    let status = bench.status();
    let mut known: Vec<&str> = status["servers"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|server| server["id"].as_str())
        .collect();
    known.sort_unstable();
    assert_eq!(known, ["four", "one", "three", "two"]);
    for (id, _) in &servers {
        bench.run(["check", id]).exits(0);
    }
}

#[test]
fn of_several_processes_that_pin_one_server_at_once_each_pins_or_says_that_it_did_not() {
    let bench = Bench::new();
    let server = FolderServer::new(&bench, &json!([report_tool()]));
    let children: Vec<_> = (0..4)
        .map(|_| {
            let mut command = server.command_as(&bench, ID, "pin", &["--json"]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let answers: Vec<Answer> = children.into_iter().map(finish).collect();
    for answer in &answers {
        let is_late = answer.code == Some(10) && answer.err.contains("changed in the meantime");
        assert!(answer.code == Some(0) || is_late, "{:?} {}", answer.code, answer.err);
    }
    assert!(answers.iter().any(|answer| answer.code == Some(0)));
    bench.run(["check", ID]).exits(0);
    let history = bench.run(["history", ID, "--json"]).exits(0).json();
    let events: Vec<&Value> = history["events"].as_array().unwrap().iter().collect();
    let pins = events.iter().filter(|event| event["key"] == "make_report").count();
    assert_eq!(pins, 1, "{history}");
}

/// Runs a command with a home on a separate, full file system; `None` if this user cannot mount
/// one.
#[cfg(target_os = "linux")]
fn on_a_full_disk(bench: &Bench, words: &str) -> Option<Answer> {
    let script = format!(
        "mount -t tmpfs -o size=2m none '{home}' && chmod 700 '{home}' && holdpoint() {{ '{program}' \"$@\"; }}
         holdpoint pin --server reports --file capture.json >/dev/null || exit 97
         cat /dev/zero > '{home}/filler' 2>/dev/null; holdpoint {words}",
        home = bench.home().display(),
        program = env!("CARGO_BIN_EXE_holdpoint"),
    );
    std::fs::create_dir_all(bench.home()).unwrap();
    bench.file("capture.json", serde_json::json!([report_tool()]).to_string());
    let template = bench.command(Vec::<&str>::new());
    let mut command = std::process::Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", &script]);
    command.current_dir(template.get_current_dir().unwrap());
    for (name, value) in template.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let answer = answer(command);
    let cannot_mount = answer.err.contains("unshare") || answer.err.contains("mount:");
    if cannot_mount {
        let error = answer.err.trim();
        testing::not_run(&format!("this user may not mount a file system ({error})"));
    }
    (!cannot_mount).then_some(answer)
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_named_with_what_to_do() {
    let said = "is full: until you make room there";
    for (words, exit) in [
        ("status", None),
        ("status --json", None),
        ("doctor --json", Some(15)),
        ("quarantine reports", Some(12)),
        ("incident on", Some(12)),
    ] {
        let Some(answer) = on_a_full_disk(&Bench::new(), words) else { return };
        let answer = answer.says(said);
        if let Some(exit) = exit {
            answer.exits(exit);
        }
    }
}
