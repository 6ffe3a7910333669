//! Commands that users type, and their effects on the files.

use crate::bench::*;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::Value;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

pub(crate) const CURSOR: &str = r#"{
  // my servers
  "mcpServers": {
    "files": { "command": "npx", "args": ["-y", "files"] },
    "docs": {
      "url": "https://docs.example.com/mcp",
      "headers": { "Authorization": "Bearer s3cr3t-of-ada" }
    },
    "login": { "url": "https://login.example.com/mcp" },
  },
}
"#;
const CODEX: &str = "# mine\n[mcp_servers.memory]\ncommand = \"memory\" # here\n";

/// Creates a file in the user's home.
pub(crate) fn place(bench: &Bench, path: &str, text: &str) -> PathBuf {
    let path = bench.path(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path
}

fn read(path: &PathBuf) -> String {
    fs::read_to_string(path).unwrap()
}

/// Two hosts with their files.
fn two() -> (Bench, PathBuf, PathBuf) {
    let bench = Bench::new();
    let cursor = place(&bench, ".cursor/mcp.json", CURSOR);
    let codex = place(&bench, ".codex/config.toml", CODEX);
    (bench, cursor, codex)
}

fn states(document: &Value) -> Vec<String> {
    let files = document["files"].as_array().unwrap().iter();
    let servers = files.flat_map(|file| file["servers"].as_array().unwrap());
    servers.map(|server| format!("{} {}", server["id"], server["state"]).replace('"', "")).collect()
}

#[test]
fn there_and_back_with_all_hosts() {
    let (bench, cursor, codex) = two();
    let before = states(&bench.run(["hosts", "--json"]).exits(0).json());
    assert_eq!(
        before,
        [
            "cursor.files unwired",
            "cursor.docs unwired",
            "cursor.login unguarded",
            "codex.memory unwired"
        ]
    );
    let plan = bench.run(["wire", "--dry-run"]).exits(0).out;
    assert!(
        plan.contains("would wire 3 servers in 2 files")
            && plan.contains("needs sign-in, not guarded"),
        "{plan}"
    );
    assert_eq!((read(&cursor), read(&codex)), (CURSOR.to_owned(), CODEX.to_owned()));
    assert!(!bench.home().exists(), "looking makes no home");
    bench.run(["wire", "--yes"]).exits(0);
    let after = states(&bench.run(["hosts", "--json"]).exits(0).json());
    assert_eq!(
        after,
        ["cursor.files wired", "cursor.docs wired", "cursor.login unguarded", "codex.memory wired"]
    );
    let wired = (read(&cursor), read(&codex));
    assert!(bench.run(["wire", "--yes"]).exits(0).out.contains("nothing to wire"));
    assert_eq!((read(&cursor), read(&codex)), wired);
    assert!(
        wired.0.contains("// my servers") && wired.0.contains("\"run\", \"--server=cursor.files\"")
    );
    // This home is not the default, so the entry names it.
    assert!(
        wired.0.contains(&format!("\"--home\", \"{}\"", bench.home().display())),
        "{}",
        wired.0
    );
    bench.run(["unwire", "--yes"]).exits(0);
    assert_eq!((read(&cursor), read(&codex)), (CURSOR.to_owned(), CODEX.to_owned()));
}

#[test]
fn unwire_leaves_what_a_person_guarded_and_says_so() {
    let bench = Bench::new();
    let text = CURSOR.replace(
        "\"files\":",
        r#""mine": { "command": "holdpoint", "args": ["run", "--", "uvx", "time"] },
    "files":"#,
    );
    let cursor = place(&bench, ".cursor/mcp.json", &text);
    let said = "mine  was not put there by `wire`, and stays guarded";
    bench.run(["wire", "--yes"]).exits(0);
    assert_ne!(read(&cursor), text);
    let answer = bench.run(["unwire", "--yes"]).exits(0);
    assert!(
        answer.out.contains(said) && answer.out.contains("unwired 2 servers"),
        "{}",
        answer.out
    );
    assert_eq!(read(&cursor), text);
    let answer = bench.run(["unwire", "--yes"]).exits(0);
    assert!(
        answer.out.contains(said) && answer.out.contains("nothing to unwire"),
        "{}",
        answer.out
    );
    let answer = bench.run(["unwire", "--server", "mine", "--yes"]).exits(0);
    assert!(!answer.out.contains(said), "{}", answer.out);
    assert_eq!(
        bench.run(["hosts", "--json"]).exits(0).json()["files"][0]["servers"][0]["state"],
        "unwired"
    );
}

#[test]
fn an_unknown_host_has_its_own_error_message() {
    let bench = Bench::new();
    let said = |host| bench.run(["wire", host]).exits(2).err;
    assert!(
        said("bogus-and-far").contains("no such host. Known are "),
        "{}",
        said("bogus-and-far")
    );
    let near = said("cursr");
    assert!(near.contains("no such host; did you mean `cursor`? Known are "), "{near}");
}

#[test]
fn no_question_is_asked_without_a_terminal() {
    let (bench, cursor, _) = two();
    let answer = bench.run(["wire"]).exits(2);
    assert!(answer.err.contains("`--yes`"), "{}", answer.err);
    assert_eq!(read(&cursor), CURSOR);
}

/// Runs a command at a terminal with one line typed.
fn typed(line: &str, mut command: Command) -> Answer {
    let mut person = File::from(openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap());
    grantpt(&person).unwrap();
    unlockpt(&person).unwrap();
    let name = ptsname(&person, Vec::new()).unwrap();
    let program = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    // The terminal buffers the line until it is read.
    person.write_all(line.as_bytes()).unwrap();
    command.stdin(program);
    answer(command)
}

#[test]
fn a_person_is_asked_and_only_a_yes_is_one() {
    let (bench, cursor, _) = two();
    for line in ["n\n", "\n", "maybe\n"] {
        let answer = typed(line, bench.command(["wire"])).exits(10);
        assert!(
            answer.err.contains("Put Holdpoint in front of 3 servers in 2 files?"),
            "{}",
            answer.err
        );
        assert_eq!(read(&cursor), CURSOR);
    }
    typed("y\n", bench.command(["wire"])).exits(0);
    assert!(read(&cursor).contains("cursor.files"));
    typed("n\n", bench.command(["unwire"])).exits(10);
    assert!(read(&cursor).contains("cursor.files"));
    typed("yes\n", bench.command(["unwire"])).exits(0);
    assert_eq!(read(&cursor), CURSOR);
}

#[test]
fn one_host_and_one_server_are_wired_alone() {
    let (bench, cursor, codex) = two();
    bench.run(["wire", "codex", "--yes"]).exits(0);
    assert_eq!(read(&cursor), CURSOR);
    assert_ne!(read(&codex), CODEX);
    bench.run(["wire", "--server", "cursor.docs", "--yes"]).exits(0);
    let states = states(&bench.run(["hosts", "cursor", "--json"]).exits(0).json());
    assert_eq!(states, ["cursor.files unwired", "cursor.docs wired", "cursor.login unguarded"]);
    bench.run(["unwire", "--server", "docs", "--yes"]).exits(0);
    assert_eq!(read(&cursor), CURSOR);
}

#[test]
fn a_server_that_needs_no_sign_in_is_wired_when_a_person_says_so() {
    let (bench, cursor, _) = two();
    bench.run(["wire", "--server", "login", "--yes"]).exits(0);
    assert_eq!(read(&cursor), CURSOR);
    bench.run(["wire", "--server", "login", "--no-sign-in", "--yes"]).exits(0);
    assert!(read(&cursor).contains("\"--server=cursor.login\""));
    bench.run(["wire", "--no-sign-in", "--yes"]).exits(2);
}

#[test]
fn a_server_that_the_host_signs_in_to_is_wired_to_sign_in_and_unwired_to_the_same_bytes() {
    let (bench, cursor, codex) = two();
    let plan = bench.run(["wire", "--dry-run"]).exits(0).out;
    assert!(plan.contains("`wire --sign-in` guards it"), "{plan}");
    let said = bench.run(["wire", "--sign-in", "--yes"]).exits(0).out;
    assert!(said.contains("holdpoint sign-in cursor.login"), "{said}");
    // Only the entry without a credential signs in.
    assert_eq!(read(&cursor).matches("\"--sign-in\"").count(), 1, "{}", read(&cursor));
    assert!(!read(&codex).contains("--sign-in"));
    let states = states(&bench.run(["hosts", "cursor", "--json"]).exits(0).json());
    assert_eq!(states, ["cursor.files wired", "cursor.docs wired", "cursor.login wired"]);
    bench.run(["unwire", "--yes"]).exits(0);
    assert_eq!((read(&cursor), read(&codex)), (CURSOR.to_owned(), CODEX.to_owned()));
    bench.run(["wire", "--sign-in", "--no-sign-in", "--server", "login", "--yes"]).exits(2);
}

#[test]
fn the_file_that_is_named_is_the_only_one_that_is_touched() {
    let (bench, cursor, codex) = two();
    let other = place(&bench, "elsewhere/servers.json", CURSOR);
    bench.run(["wire", "--config", "elsewhere/servers.json", "--yes"]).exits(0);
    assert_eq!((read(&cursor), read(&codex)), (CURSOR.to_owned(), CODEX.to_owned()));
    assert!(read(&other).contains("\"--server=config.files-"));
    // The file is in an unusual place, but is found again.
    bench.run(["unwire", "--yes"]).exits(0);
    assert_eq!(read(&other), CURSOR);
    bench.run(["wire", "--config", "elsewhere/none.json", "--yes"]).exits(2);
    bench.run(["wire", "cursor", "codex", "--config", "elsewhere/servers.json", "--yes"]).exits(2);
}

#[test]
fn a_file_that_cannot_be_read_is_named_and_the_others_are_done() {
    let (bench, cursor, codex) = two();
    fs::write(&cursor, "{ \"mcpServers\": { ").unwrap();
    let answer = bench.run(["wire", "--yes"]).exits(2);
    assert!(answer.err.contains("mcp.json") && answer.err.contains("left alone"), "{}", answer.err);
    assert_eq!(read(&cursor), "{ \"mcpServers\": { ");
    assert!(read(&codex).contains("codex.memory"));
    let document = bench.run(["hosts", "--json"]).exits(2).json();
    assert!(document["files"][0]["error"].as_str().unwrap().contains("line 1"), "{document}");
}

#[test]
fn secrets_are_not_printed() {
    let (bench, _, _) = two();
    for words in [
        vec!["hosts"],
        vec!["hosts", "--json"],
        vec!["wire", "--dry-run"],
        vec!["wire", "--yes"],
        vec!["unwire", "--yes", "--json"],
    ] {
        let answer = bench.run(&words).exits(0);
        assert!(
            !format!("{}{}", answer.out, answer.err).contains("s3cr3t"),
            "{words:?}: {}",
            answer.out
        );
    }
}

/// Removing the gate releases a server that an incident stops, so it requires a person, like ending
/// the incident.
#[test]
fn the_gate_is_taken_away_in_an_incident_by_a_person_alone_and_that_is_recorded() {
    let (bench, cursor, _) = two();
    bench.file("capture.json", r#"{"tools":[{"name":"look","inputSchema":{"type":"object"}}]}"#);
    bench.run(["pin", "--server", "cursor.files", "--file", "capture.json"]).exits(0);
    bench.run(["wire", "--yes"]).exits(0);
    let wired = read(&cursor);
    bench.run(["incident", "on", "--server", "cursor.files"]).exits(0);
    let unwire = ["unwire", "cursor", "--yes", "--server"];
    for words in [&[&unwire[..], &["cursor.files"]].concat()[..], &["uninstall", "--yes"]] {
        bench.run(words).exits(2).says("needs a terminal");
        assert_eq!(read(&cursor), wired);
    }
    typed("n\n", bench.command([&unwire[..], &["cursor.files"]].concat())).exits(10);
    assert_eq!(read(&cursor), wired);
    // The incident concerns one server: the gates of others can be removed as usual.
    bench.run([&unwire[..], &["cursor.docs"]].concat()).exits(0);
    let command = bench.command([&unwire[..], &["cursor.files"]].concat());
    typed("y\n", command).exits(0).says("An incident is on");
    let events = bench.run(["receipts", "list", "--json", "--all"]).exits(0).out;
    for id in ["cursor.files", "cursor.docs"] {
        let is_it = |line: &&str| line.contains("server.unwire") && line.contains(id);
        let line = events.lines().find(is_it).unwrap_or_else(|| panic!("{id}: {events}"));
        assert!(line.contains(WHO), "{line}");
    }
    bench.run(["history", "cursor.files"]).exits(0).says("server.wire").says("server.unwire");
    bench.run(["digest"]).exits(0).says("the gate was taken out of its host's file");
    bench.run(["receipts", "verify"]).exits(0);
}

#[test]
fn slips_of_the_pen_are_told() {
    let (bench, _, _) = two();
    let answer = bench.run(["wire", "curser", "--yes"]).exits(2);
    assert!(answer.err.contains("did you mean `cursor`?"), "{}", answer.err);
    let answer = bench.run(["wire", "--server", "flies", "--yes"]).exits(2);
    assert!(answer.err.contains("no server `flies`"), "{}", answer.err);
    assert!(answer.err.contains("did you mean `files`?"), "{}", answer.err);
    let other = bench.run(["wire", "--program", "/bin/hp", "--dry-run"]).exits(2);
    assert!(other.err.contains("has to be called `holdpoint`"), "{}", other.err);
    let program = bench.path("bin/holdpoint");
    bench.run(["wire", "--program", program.to_str().unwrap(), "--yes"]).exits(0);
    let document = bench.run(["hosts", "--json"]).exits(0).json();
    assert_eq!(document["files"][0]["servers"][0]["program"], program.to_str().unwrap());
}

#[test]
fn files_of_the_project_are_found_from_inside_it() {
    let bench = Bench::new();
    fs::create_dir_all(bench.path("project/.git")).unwrap();
    fs::create_dir_all(bench.path("project/deep/down")).unwrap();
    let file = place(&bench, "project/.mcp.json", "{\"mcpServers\":{\"a\":{\"command\":\"x\"}}}");
    let mut command = bench.command(["wire", "--yes"]);
    command.current_dir(bench.path("project/deep/down"));
    answer(command).exits(0);
    assert!(read(&file).contains("claude-code.a-"), "{}", read(&file));
}

#[test]
fn pins_and_status_are_shown_with_the_server() {
    let (bench, _, _) = two();
    let capture = r#"{"tools":[{"name":"look","inputSchema":{"type":"object"}}]}"#;
    bench.file("capture.json", capture);
    bench.run(["pin", "--server", "cursor.files", "--file", "capture.json"]).exits(0);
    let document = bench.run(["hosts", "--json"]).exits(0).json();
    let pins = &document["files"][0]["servers"][0]["pins"];
    assert_eq!((&pins["status"], &pins["tools"]), (&"verified".into(), &1.into()), "{document}");
    assert!(bench.run(["hosts"]).exits(0).out.contains("1 tool pinned"));
}

/// If `run` had an option that `hosts` does not know, a guarded server would look unguarded.
#[test]
fn an_entry_with_any_option_of_run_is_recognized() {
    let help = Bench::new().run(["run", "--help"]).exits(0).out;
    let options = help.lines().map(str::trim_start).filter_map(|line| {
        let line = line.strip_prefix("-q, ").or(line.strip_prefix("-v, ")).unwrap_or(line);
        let name = line.split(' ').next().filter(|name| name.starts_with("--"))?;
        let value = if name == "--header" { "=A=env:B" } else { "=1" };
        let has_value = line.get(name.len()..)?.starts_with(" <");
        Some(format!("{name}{}", if has_value { value } else { "" }))
    });
    let options: Vec<String> = options.collect();
    assert!(options.len() >= 15 && options.iter().any(|option| option == "--posture=1"));
    for option in options {
        let words = match option.as_str() {
            "--url=1" => serde_json::json!(["run", option]),
            _ => serde_json::json!(["run", option, "--", "x"]),
        };
        let entry = serde_json::json!({ "command": "holdpoint", "args": words });
        let file = serde_json::json!({ "mcpServers": { "a": entry } }).to_string();
        let bench = Bench::new();
        place(&bench, ".cursor/mcp.json", &file);
        let found = states(&bench.run(["hosts", "--json"]).exits(0).json());
        assert!(found.len() == 1 && found[0].ends_with(" wired"), "{option}: {found:?}");
    }
}

#[test]
fn hosts_are_pointed_at_a_gateway_and_back() {
    let (bench, cursor, codex) = two();
    let desktop = place(&bench, ".config/Claude/claude_desktop_config.json", "{}");
    let zed = place(&bench, ".config/zed/settings.json", "{}");
    let project = place(&bench, ".mcp.json", "{}");
    let pointing = ["wire", "--gateway", "https://mcp.example.com", "--key", "env:TEAM_KEY"];
    let plan = bench.run(pointing.iter().chain(&["--dry-run"])).exits(2);
    assert!(plan.out.contains("Bearer ${env:TEAM_KEY}"), "{}", plan.out);
    assert!(plan.err.contains("Claude Desktop: reads no HTTP servers"), "{}", plan.err);
    assert!(plan.err.contains("cannot name a variable in a header"), "{}", plan.err);
    assert_eq!((read(&cursor), read(&codex)), (CURSOR.to_owned(), CODEX.to_owned()));
    let only = |words: &[&'static str]| {
        let words = ["wire", "cursor", "codex"].iter().chain(&pointing[1..]).chain(words);
        bench.run(words.copied().collect::<Vec<_>>())
    };
    only(&["--yes"]).exits(0).says("pointed at the gateway: 2 hosts");
    assert!(read(&codex).ends_with(
        "[mcp_servers.holdpoint]\nurl = \"https://mcp.example.com/mcp\"\nbearer_token_env_var = \"TEAM_KEY\"\n"
    ));
    let hosts = bench.run(["hosts", "--json"]).exits(0).json();
    assert!(states(&hosts).contains(&"cursor.holdpoint gateway".to_owned()), "{hosts}");
    bench.run(["hosts"]).exits(0).says("leads to the gateway at https://mcp.example.com");
    only(&["--yes"]).exits(0).says("nothing to wire");
    // Only the other servers get a gate.
    bench.run(["wire", "--yes"]).exits(0).says("wired 3 servers in 2 files");
    bench.run(["unwire", "--yes"]).exits(0);
    assert_eq!((read(&cursor), read(&codex)), (CURSOR.to_owned(), CODEX.to_owned()));
    for path in [&desktop, &zed, &project] {
        assert_eq!(read(path), "{}");
    }
}

#[test]
fn a_key_is_written_into_a_file_only_if_a_person_says_so() {
    let bench = Bench::new();
    let zed = place(&bench, ".config/zed/settings.json", "{}");
    let key = bench.file("key", "hp_s3cr3t");
    let source = format!("file:{}", key.display());
    let words =
        ["wire", "--yes", "--gateway", "https://mcp.example.com/servers/a/mcp", "--key", &source];
    bench.run(words).exits(2).says("hosts can name a variable only");
    assert_eq!(read(&zed), "{}");
    let said = bench.run(words.iter().chain(&["--write-key"])).exits(0);
    assert!(!said.out.contains("s3cr3t") && !said.err.contains("s3cr3t"), "{}", said.out);
    assert!(read(&zed).contains("Bearer hp_s3cr3t"), "{}", read(&zed));
    bench.run(["unwire", "--yes"]).exits(0);
    assert_eq!(read(&zed), "{}");
    bench.run(["wire", "--yes", "--gateway", "ftp://x"]).exits(2).says("`--gateway`");
    bench.run(["wire", "--write-key", "--gateway", "https://x"]).exits(2);
}
