use super::*;
use crate::Surroundings;
use crate::surroundings::System;
use std::collections::BTreeMap;

const TEXT: &str = r#"{
  "mcpServers": {
    "files": { "command": "npx", "args": ["-y", "files"] },
    // kept
    "docs": { "url": "https://docs.example/mcp", "headers": { "Authorization": "Bearer abc" } },
    "bare": { "command": "bare" }
  }
}
"#;

struct Bench {
    folder: tempfile::TempDir,
    config: Config,
    workshop: Workshop,
}

impl Bench {
    fn new(text: &str) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("holdpoint");
        fs::write(&program, "").unwrap();
        let path = folder.path().join(".cursor").join("mcp.json");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let workshop = Workshop::new(&program, &folder.path().join("home/wiring"), None).unwrap();
        let surroundings = Bench::surroundings(folder.path());
        let config = Config::named(&path, None, &surroundings).unwrap();
        Bench { folder, config, workshop }
    }

    fn surroundings(folder: &Path) -> Surroundings {
        let variables = BTreeMap::new();
        Surroundings {
            system: System::Linux,
            home: folder.to_owned(),
            variables,
            projects: Vec::new(),
        }
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.config.path).unwrap()
    }

    fn write(&self, text: &str) {
        fs::write(&self.config.path, text).unwrap();
    }

    fn act(&self, aim: Aim, servers: &[&str]) -> Done {
        let servers = servers.iter().map(|name| (*name).to_owned()).collect();
        let choice = Choice { servers, ..Choice::default() };
        let plan = self.workshop.plan(&self.config, aim, &choice).unwrap();
        self.workshop.apply(plan).unwrap()
    }

    fn wire(&self) -> Done {
        self.act(Aim::Wire, &[])
    }

    fn unwire(&self) -> Done {
        self.act(Aim::Unwire, &[])
    }

    fn states(&self) -> Vec<(String, bool)> {
        let servers = self.config.servers().unwrap();
        let is_wired = |server: &Server| matches!(server.state, WiringState::Wired { .. });
        servers.iter().map(|server| (server.name.clone(), is_wired(server))).collect()
    }

    fn journal(&self) -> Vec<PathBuf> {
        let surroundings = Bench::surroundings(self.folder.path());
        let files = self.workshop.wired_files(&surroundings).unwrap();
        files.into_iter().map(|config| config.path).collect()
    }
}

/// What the gate of the server `files` learns about its entry.
fn entry_of_files(bench: &Bench, variables: &[(&str, &str)]) -> Option<crate::WiredEntry> {
    let mut surroundings = Bench::surroundings(bench.folder.path());
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    surroundings.variables.extend(variables);
    let id = format!("{}.files", bench.config.host.id);
    crate::wired_entry(&bench.folder.path().join("home/wiring"), &id, &surroundings)
}

#[test]
fn a_gate_learns_which_variables_its_entry_sets_now() {
    let bench = Bench::new(TEXT);
    assert_eq!(entry_of_files(&bench, &[]), None, "nothing was wired yet");
    bench.wire();
    let entry = entry_of_files(&bench, &[]).unwrap();
    assert!(entry.variables.is_empty() && entry.scope == crate::Scope::User, "{entry:?}");
    let edit =
        |member: &str| bench.text().replacen(r#""args""#, &format!(r#"{member}, "args""#), 1);
    let edited = edit(r#""env": { "TOKEN": "abc", "MODE": "" }, "env_vars": ["HANDED_ON"]"#);
    bench.write(&edited);
    let entry = entry_of_files(&bench, &[]).unwrap();
    assert_eq!(entry.variables.into_iter().collect::<Vec<_>>(), ["HANDED_ON", "MODE", "TOKEN"]);
    bench.write(&edited.replace(r#""env_vars": ["HANDED_ON"]"#, r#""envFile": ".env""#));
    assert_eq!(entry_of_files(&bench, &[]), None, "only the host knows what is in the file");
}

#[test]
fn an_id_that_two_entries_have_tells_no_variables() {
    let bench = Bench::new(TEXT);
    bench.wire();
    let copied = bench.text().replace("--server=cursor.bare", "--server=cursor.files");
    bench.write(&copied);
    assert_eq!(entry_of_files(&bench, &[]), None);
}

#[test]
fn a_file_is_a_users_own_only_where_hosts_keep_such_files() {
    let user = Bench::new(TEXT);
    user.wire();
    assert_eq!(entry_of_files(&user, &[]).unwrap().scope, crate::Scope::User);
    for (file, variable) in [(".cursor/mcp.json", "HOME"), (".claude.json", "CLAUDE_CONFIG_DIR")] {
        let bench = Bench::new(TEXT);
        let repository = bench.folder.path().join("repository");
        let path = repository.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::rename(&bench.config.path, &path).unwrap();
        let surroundings = Bench::surroundings(bench.folder.path());
        let config = Config::named(&path, None, &surroundings).unwrap();
        let bench = Bench { config, ..bench };
        bench.wire();
        let id = bench.config.servers().unwrap().remove(0).id;
        let scope = |surroundings: &Surroundings| {
            let journal = bench.folder.path().join("home/wiring");
            crate::wired_entry(&journal, &id, surroundings).unwrap().scope
        };
        assert_eq!(scope(&surroundings), crate::Scope::Project, "{file}");
        // The user may have moved the host's files there.
        let mut moved = surroundings.clone();
        let folder = repository.to_string_lossy().into_owned();
        moved.variables.insert(variable.to_owned(), folder);
        if variable == "HOME" {
            moved.home.clone_from(&repository);
        }
        assert_eq!(scope(&moved), crate::Scope::User, "{file}");
        // If the entry itself sets the variable, it does not count.
        let member = format!(r#""env": {{ "{variable}": "x" }}, "args""#);
        bench.write(&bench.text().replacen(r#""args""#, &member, 1));
        assert_eq!(scope(&moved), crate::Scope::Project, "{file}");
    }
}

#[test]
fn there_and_back_are_the_same_bytes() {
    let bench = Bench::new(TEXT);
    assert_eq!(bench.wire().changed.len(), 3);
    assert!(bench.states().iter().all(|(_, is_wired)| *is_wired));
    assert_eq!(bench.journal(), std::slice::from_ref(&bench.config.path));
    assert!(bench.wire().changed.is_empty());
    let done = bench.unwire();
    assert!(done.is_original && done.changed.len() == 3);
    assert_eq!(bench.text(), TEXT);
    assert!(bench.journal().is_empty());
    assert!(bench.unwire().changed.is_empty());
}

#[test]
fn one_after_the_other_ends_where_it_began() {
    let bench = Bench::new(TEXT);
    for name in ["bare", "files", "docs"] {
        assert_eq!(bench.act(Aim::Wire, &[name]).changed.len(), 1);
    }
    for name in ["files", "bare", "docs"] {
        assert_ne!(bench.text(), TEXT);
        assert_eq!(bench.act(Aim::Unwire, &[name]).changed.len(), 1);
    }
    assert_eq!(bench.text(), TEXT);
}

#[test]
fn what_somebody_else_wrote_in_between_stays() {
    let bench = Bench::new(TEXT);
    bench.wire();
    let edited =
        bench.text().replace("// kept", "// changed").replace("\"-y\"", "\"-y\", \"--more\"");
    bench.write(&edited);
    let done = bench.unwire();
    assert!(!done.is_original && done.changed.len() == 3);
    let expected = TEXT.replace("// kept", "// changed").replace("\"-y\"", "\"-y\", \"--more\"");
    assert_eq!(bench.text(), expected);
}

/// Hosts rewrite their whole file in their own format.
#[test]
fn a_file_that_its_host_wrote_anew_is_taken_back_in_its_meaning() {
    let text = TEXT.replace("    // kept\n", "");
    let bench = Bench::new(&text);
    bench.wire();
    let value: serde_json::Value = serde_json::from_str(&bench.text()).unwrap();
    bench.write(&serde_json::to_string(&value).unwrap());
    assert_eq!(bench.unwire().changed.len(), 3);
    let before: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&bench.text()).unwrap(), before);
}

#[test]
fn a_server_that_was_added_later_is_wired_and_the_way_back_keeps_it() {
    let bench = Bench::new(TEXT);
    bench.wire();
    let with_more = |text: &str| {
        text.replacen(
            "{\n    \"files\"",
            "{\n    \"more\": { \"command\": \"more\" },\n    \"files\"",
            1,
        )
    };
    bench.write(&with_more(&bench.text()));
    assert_eq!(bench.wire().changed.len(), 1);
    let done = bench.unwire();
    assert_eq!(done.changed.len(), 4);
    assert!(done.is_original);
    assert_eq!(bench.text(), with_more(TEXT));
}

/// Two entries that a person guarded, next to one that is not guarded.
const BY_HAND: &str = r#"{ "mcpServers": {
  "time": { "command": "holdpoint", "args": [ "run", "--", "uvx", "time" ] },
  "named": { "command": "holdpoint", "args": ["run", "--server=named", "--", "uvx", "named"] },
  "files": { "command": "npx", "args": ["files"] }
} }
"#;

#[test]
fn a_gate_that_a_person_wrote_stays() {
    let bench = Bench::new(BY_HAND);
    assert_eq!(bench.wire().changed.len(), 1);
    let done = bench.unwire();
    assert!(done.is_original && done.changed.len() == 1);
    assert_eq!(bench.text(), BY_HAND);
    // Nor is a gate removed from a file that `wire` never changed, or in which nothing of it is
    // left.
    assert!(bench.unwire().changed.is_empty());
    // Even if another program wrote in between.
    bench.wire();
    bench.write(&bench.text().replace("\"files\"", "\"files\" "));
    assert_eq!(bench.unwire().changed.len(), 1);
    assert_eq!(bench.text(), BY_HAND.replace("\"files\"", "\"files\" "));
    // The same without the journal.
    bench.write(BY_HAND);
    bench.wire();
    fs::remove_dir_all(bench.folder.path().join("home")).unwrap();
    assert_eq!(bench.unwire().changed.len(), 1);
    assert_eq!(bench.text(), BY_HAND);
}

#[test]
fn a_gate_that_a_person_wrote_goes_when_it_is_named_and_when_all_go() {
    let bench = Bench::new(BY_HAND);
    bench.wire();
    assert_eq!(bench.act(Aim::Unwire, &["time"]).changed.len(), 1);
    let wired = |bench: &Bench| bench.states().iter().filter(|(_, is_wired)| *is_wired).count();
    assert_eq!(wired(&bench), 2);
    let everything = Choice { by_hand: true, ..Choice::default() };
    let plan = bench.workshop.plan(&bench.config, Aim::Unwire, &everything).unwrap();
    assert_eq!(bench.workshop.apply(plan).unwrap().changed.len(), 2);
    assert_eq!(wired(&bench), 0);
}

#[test]
fn a_gate_that_a_person_wrote_and_wire_pointed_to_ours_is_what_it_was_again() {
    let bench = Bench::new(BY_HAND);
    let empty = bench.folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let workshop = bench.workshop.clone().searching(Some(empty.into_os_string()));
    let bench = Bench { workshop, ..bench };
    assert_eq!(bench.wire().changed.len(), 3);
    assert!(!bench.text().contains("\"holdpoint\""));
    let done = bench.unwire();
    assert!(done.is_original && done.changed.len() == 1);
    assert_eq!(bench.text(), BY_HAND);
}

/// A gate that was wired from another home belongs to us no more than one that a person wrote.
#[test]
fn a_gate_that_was_there_before_stays_whatever_its_id_is() {
    let text = BY_HAND.replace("--server=named", "--server=cursor.named");
    let bench = Bench::new(&text);
    bench.wire();
    assert!(bench.unwire().is_original);
    assert_eq!(bench.text(), text);
}

#[test]
fn an_entry_whose_id_a_person_took_out_is_still_ours() {
    let bench = Bench::new(TEXT);
    bench.wire();
    bench.write(&bench.text().replace("\"--server=cursor.files\", ", ""));
    assert_eq!(bench.unwire().changed.len(), 3);
    assert_eq!(bench.text(), TEXT);
}

/// In a list, a place is an index, where another entry may be now.
#[test]
fn a_gate_that_stands_where_ours_stood_is_not_ours() {
    let entry =
        |name: &str| format!(r#"{{"name": "{name}", "command": "npx", "args": ["{name}"]}}"#);
    let hand = r#"{"name": "hand", "command": "holdpoint", "args": ["run", "--", "npx", "hand"]}"#;
    let list = |entries: &[&str]| format!(r#"{{"mcpServers": [{}]}}"#, entries.join(", "));
    let bench = Bench::new("{}");
    let path = bench.folder.path().join("list.json");
    fs::write(&path, list(&[&entry("files")])).unwrap();
    let surroundings = Bench::surroundings(bench.folder.path());
    let config = Config::named(&path, None, &surroundings).unwrap();
    let bench = Bench { config, ..bench };
    assert_eq!(bench.wire().changed.len(), 1);
    bench.write(&bench.text().replace("[{\"name\"", &format!("[{hand}, {{\"name\"")));
    assert_eq!(bench.unwire().changed.len(), 1);
    assert_eq!(bench.text(), list(&[hand, &entry("files")]));
}

/// The host may use the address. A gate in front of the command alone would be reported as guarding
/// but be bypassed.
#[test]
fn an_entry_with_a_command_and_an_address_is_left_and_never_told_as_guarded() {
    let entry = |address: &str| {
        let gate = r#""command": "holdpoint", "args": ["run", "--server=cursor.b", "--", "x"]"#;
        format!(
            r#"{{"mcpServers": {{"a": {{"command": "x"{address}}}, "b": {{{gate}{address}}}}}}}"#
        )
    };
    for name in ["url", "serverUrl", "httpUrl", "uri", "URL"] {
        let address = &format!(r#", "{name}": "https://a.example""#);
        let bench = Bench::new(&entry(address));
        assert!(bench.wire().changed.is_empty());
        assert_eq!(bench.text(), entry(address));
        for server in bench.config.servers().unwrap() {
            assert_eq!(
                server.state,
                WiringState::Unguarded(crate::Reason::TwoWays),
                "{}",
                server.name
            );
        }
        // The remains of a gate can still be removed.
        assert_eq!(bench.unwire().changed.len(), 1);
        assert!(!bench.text().contains("holdpoint") && bench.text().contains("a.example"));
    }
    // An address without a value does not count.
    for address in [r#", "url": """#, r#", "url": null"#, ""] {
        let bench = Bench::new(&entry(address));
        assert_eq!(bench.wire().changed.len(), 1, "{address}");
        assert!(bench.states().iter().all(|(_, is_wired)| *is_wired), "{address}");
        bench.unwire();
        assert_eq!(bench.text(), entry(address));
    }
}

#[test]
fn without_its_journal_a_file_is_taken_back_in_its_meaning() {
    let bench = Bench::new(TEXT);
    bench.wire();
    fs::remove_dir_all(bench.folder.path().join("home")).unwrap();
    assert_eq!(bench.unwire().changed.len(), 3);
    assert!(bench.states().iter().all(|(_, is_wired)| !*is_wired));
    assert!(
        bench.text().contains("// kept")
            && bench.text().contains("\"url\": \"https://docs.example/mcp\"")
    );
}

#[test]
fn a_record_that_was_tampered_with_is_not_written_back() {
    let bench = Bench::new(TEXT);
    bench.wire();
    let home = bench.folder.path().join("home/wiring");
    let kept = fs::read_dir(&home).unwrap().map(|name| name.unwrap().path());
    let record = kept.into_iter().find(|path| path.extension().is_some_and(|end| end == "json"));
    let record = record.unwrap();
    let mut changed: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&record).unwrap()).unwrap();
    changed["inverse"] =
        serde_json::json!(["{\"mcpServers\": {\"evil\": {\"command\": \"evil\"}}}"]);
    fs::write(&record, changed.to_string()).unwrap();
    bench.unwire();
    assert_eq!(bench.text(), TEXT);
}

#[test]
fn nothing_that_a_file_says_is_in_the_journal() {
    let text = TEXT
        .replace("https://docs.example/mcp", "https://docs.example/Sk31tZ/mcp?key=Sk31tZ")
        .replace("Bearer abc", "Bearer Sk31tZ")
        .replace("\"-y\"", "\"--token\", \"Sk31tZ\"");
    let bench = Bench::new(&text);
    bench.wire();
    for name in fs::read_dir(bench.folder.path().join("home/wiring")).unwrap() {
        let kept = fs::read(name.unwrap().path()).unwrap();
        assert!(!String::from_utf8_lossy(&kept).contains("Sk31tZ"));
    }
    // Even if another program wrote in between.
    bench.write(&bench.text().replace("// kept", "// changed"));
    bench.unwire();
    assert_eq!(bench.text(), text.replace("// kept", "// changed"));
    bench.write(&text);
    bench.wire();
    assert!(bench.unwire().is_original);
    assert_eq!(bench.text(), text);
}

/// A command line instead of a program, comments in otherwise empty maps, addresses in another
/// spelling.
const SECRETS: &str = r#"{
  "mcpServers": {
    "line": { "command": "npx -y srv --token=Sk31tZ", "args": [] },
    "variable": { "command": "KEY=Sk31tZ srv" },
    "path": { "command": "/opt/Sk31tZ/bin/srv" },
    "headers": { "url": "https://a.example/mcp?k=Sk31tZ", "headers": { /* "A": "Sk31tZ" */ } },
    "variables": { "url": "https://u:Sk31tZ@a.example/mcp", "env": {
      // "API_TOKEN": "Sk31tZ"
    } },
    "spelled": { "url": "https:\/\/a.example\/Sk31tZ\/mcp", "headers": { "A": "b" } }
  }
}
"#;

#[test]
fn command_lines_and_comments_are_neither_kept_nor_shown() {
    let bench = Bench::new(SECRETS);
    let shown = |aim: Aim| {
        let plan = bench.workshop.plan(&bench.config, aim, &Choice::default()).unwrap();
        assert_eq!(plan.changed.len(), 6, "{:?}", plan.unchanged);
        format!("{:?}", plan.parts).replace("/opt/Sk31tZ/bin/srv", "")
    };
    assert!(!shown(Aim::Wire).contains("Sk31tZ"), "{}", shown(Aim::Wire));
    bench.wire();
    assert!(!shown(Aim::Unwire).contains("Sk31tZ"), "{}", shown(Aim::Unwire));
    for name in fs::read_dir(bench.folder.path().join("home/wiring")).unwrap() {
        let kept = fs::read(name.unwrap().path()).unwrap();
        assert!(!String::from_utf8_lossy(&kept).contains("Sk31tZ"));
    }
    bench.write(&format!("{}\n", bench.text()));
    bench.unwire();
    assert_eq!(bench.text(), format!("{SECRETS}\n"));
    bench.write(SECRETS);
    bench.wire();
    assert!(bench.unwire().is_original);
    assert_eq!(bench.text(), SECRETS);
}

#[test]
fn a_comment_before_an_address_stays_where_it_is_and_keeps_nothing_from_being_wired() {
    let json = r#"{
  "mcpServers": {
    "block": {"url": /* Sk31tZ */ "https://a.example/mcp", "headers": {"A": "b"}},
    "line": {
      "serverUrl": // Sk31tZ
        "http://127.0.0.1:8080/mcp"
    },
    "files": {"command": "npx"}
  }
}
"#;
    let bench = Bench::new(json);
    assert_eq!(bench.wire().changed.len(), 3);
    let wired = bench.text();
    assert_eq!(wired.matches("Sk31tZ").count(), 2, "{wired}");
    assert!(bench.states().iter().all(|(_, is_wired)| *is_wired), "{wired}");
    for name in fs::read_dir(bench.folder.path().join("home/wiring")).unwrap() {
        let kept = fs::read_to_string(name.unwrap().path()).unwrap();
        assert!(!kept.contains("Sk31tZ"), "{kept}");
    }
    assert!(bench.unwire().is_original);
    assert_eq!(bench.text(), json);
    // Also if the host wrote its file in between, so that the original is restored from the
    // entries.
    bench.wire();
    bench.write(&format!("{}\n", bench.text()));
    bench.unwire();
    assert_eq!(bench.text(), format!("{json}\n"));
}

#[test]
fn an_entry_that_its_host_may_read_in_two_ways_is_told_to_name_the_gate() {
    let gate = r#""command": "/bin/holdpoint", "args": ["run", "--server=cursor.a", "--", "x"]"#;
    let bypassed = [
        r#""command": "evil""#,
        r#""Command": "evil""#,
        r#""args": ["-c", "evil"]"#,
        r#""ARGS": ["-c", "evil"]"#,
        r#""url": "https://evil.example""#,
        r#""Url": "https://evil.example""#,
    ];
    for other in bypassed {
        for entry in [format!("{gate}, {other}"), format!("{other}, {gate}")] {
            let bench = Bench::new(&format!(r#"{{"mcpServers": {{"a": {{{entry}}}}}}}"#));
            let servers = bench.config.servers().unwrap();
            assert!(matches!(servers[0].state, WiringState::Unguarded(_)), "{entry}");
            assert!(servers[0].names_gate, "{entry}");
        }
    }
    for entry in [r#""command": "x", "Command": "y""#, r#""env": {"command": "holdpoint"}"#] {
        let bench = Bench::new(&format!(r#"{{"mcpServers": {{"a": {{{entry}}}}}}}"#));
        assert!(!bench.config.servers().unwrap()[0].names_gate, "{entry}");
    }
}

#[test]
fn an_entry_with_a_file_of_variables_is_wired_with_its_home_and_tells_the_file() {
    let text = r#"{"mcpServers": {
  "a": {"command": "x", "envFile": "${workspaceFolder}/.env"},
  "b": {"command": "y"}
}}"#;
    let bench = Bench::new(text);
    assert_eq!(bench.wire().changed.len(), 2);
    let home = bench.folder.path().join("home");
    let home = format!(r#""--home", "{}""#, home.display());
    assert_eq!(bench.text().matches(&home).count(), 1, "{}", bench.text());
    let launch = |id: &str| bench.config.guarded_launch(id).unwrap().unwrap();
    assert_eq!(launch("cursor.a").env_file.as_deref(), Some("${workspaceFolder}/.env"));
    assert_eq!(launch("cursor.b").env_file, None);
    assert!(bench.unwire().is_original);
    assert_eq!(bench.text(), text);
}

/// Converts the record of a wired file to the previous version's format, without its copy of the
/// file.
fn make_old(bench: &Bench, spelled: &[(&str, serde_json::Value)]) -> PathBuf {
    let folder = bench.folder.path().join("home/wiring");
    let names = fs::read_dir(&folder).unwrap().map(|name| name.unwrap().path());
    let record = names.into_iter().find(|name| name.extension().unwrap() == "json").unwrap();
    let mut old: serde_json::Value = serde_json::from_slice(&fs::read(&record).unwrap()).unwrap();
    old["version"] = 1.into();
    old.as_object_mut().unwrap().remove("inverse");
    for wiring in old["wirings"].as_array_mut().unwrap() {
        let id = wiring["id"].as_str().unwrap().to_owned();
        for (_, kept) in spelled.iter().filter(|(name, _)| id == format!("cursor.{name}")) {
            wiring["kept"] = kept.clone();
        }
    }
    fs::write(&record, old.to_string()).unwrap();
    record
}

#[test]
fn what_an_older_version_wired_is_taken_back_after_its_host_wrote_it() {
    let text = r#"{
  "mcpServers": {
    "local": {"url": "http://127.0.0.1:8080/mcp"},
    "docs": {"url":"https://a.example/mcp?k=Sk31tZ", "headers": {"A": "b"}},
    "files": {"command": "npx -y srv --token=Sk31tZ", "args": ["-y", "x"]}
  }
}
"#;
    let bench = Bench::new(text);
    bench.wire();
    let spelled = |text: &str, meaning: &str| serde_json::json!({"text": text, "meaning": meaning});
    let address = |text: &str| serde_json::json!({"address": spelled(text, "")});
    let mut docs = address(r#""url":"https://a.example/mcp?k=Sk31tZ""#);
    docs["headers"] = "\"headers\"".into();
    let line = "npx -y srv --token=Sk31tZ";
    let files = serde_json::json!({
        "command": spelled(&format!("\"{line}\""), line), "had_arguments": true,
    });
    let local = address(r#""url": "http://127.0.0.1:8080/mcp""#);
    let record = make_old(&bench, &[("local", local), ("docs", docs), ("files", files)]);
    crate::redact_journal(record.parent().unwrap()).unwrap();
    assert!(!fs::read_to_string(&record).unwrap().contains("Sk31tZ"));
    let add = |text: &str| {
        text.replace(
            "\"mcpServers\": {",
            "\"mcpServers\": {\n    \"later\": {\"command\": \"uvx\"},",
        )
    };
    bench.write(&add(&bench.text()));
    bench.wire();
    bench.unwire();
    assert_eq!(bench.text(), add(text));
}

#[test]
fn one_entry_that_cannot_be_taken_back_as_it_was_spelled_does_not_stop_the_file() {
    let bench = Bench::new(TEXT);
    bench.wire();
    let folder = bench.folder.path().join("home/wiring");
    let names = fs::read_dir(&folder).unwrap().map(|name| name.unwrap().path());
    let record = names.into_iter().find(|name| name.extension().unwrap() == "json").unwrap();
    let kept = fs::read_to_string(&record).unwrap();
    let wrong = kept.replace(r#""before":"\"url\": ""#, r#""before":"\"url ""#);
    assert_ne!(wrong, kept);
    fs::write(&record, wrong).unwrap();
    bench.write(&format!("{}\n", bench.text()));
    bench.unwire();
    assert_eq!(bench.text(), format!("{TEXT}\n"));
}

/// The name of its member contains digits, so it cannot be ruled out that it is a secret.
#[test]
fn an_entry_that_cannot_be_restored_without_keeping_a_secret_is_left_and_the_others_are_wired() {
    let odd = r#"{"\u0075rl": "http://127.0.0.1:8080/mcp"}"#;
    let text = format!(r#"{{"mcpServers": {{"odd": {odd}, "files": {{"command": "npx"}}}}}}"#);
    let bench = Bench::new(&text);
    let done = bench.wire();
    assert_eq!(done.changed.iter().map(|server| &server.name).collect::<Vec<_>>(), ["files"]);
    assert!(bench.text().contains(odd), "{}", bench.text());
    assert!(bench.unwire().is_original);
    assert_eq!(bench.text(), text);
}

#[test]
fn a_guarded_server_is_read_again_from_its_file() {
    let bench =
        Bench::new(&TEXT.replace("\"bare\" }", "\"bare\", \"env\": { \"KEY\": \"Sk31tZ\" } }"));
    bench.wire();
    let launch = |id: &str| bench.config.guarded_launch(id).unwrap();
    assert_eq!(launch("cursor.files").unwrap().command, ["npx", "-y", "files"]);
    let bare = launch("cursor.bare").unwrap();
    assert_eq!(bare.environment, [("KEY".to_owned(), "Sk31tZ".to_owned())]);
    let docs = launch("cursor.docs").unwrap();
    assert_eq!(docs.url.as_deref(), Some("env:HOLDPOINT_URL"));
    assert_eq!(docs.headers, ["Authorization=env:HOLDPOINT_HEADER_AUTHORIZATION"]);
    assert!(docs.command.is_empty() && !docs.has_variables && docs.environment.len() == 2);
    assert_eq!(launch("cursor.other"), None);
    assert!(!format!("{bare:?}").contains("Sk31tZ"));
}

#[test]
fn an_entry_whose_program_is_gone_is_pointed_to_ours() {
    let bench = Bench::new(TEXT);
    bench.wire();
    let wired = bench.text();
    let here = bench.folder.path().join("holdpoint").to_str().unwrap().to_owned();
    let gone = bench.folder.path().join("gone/holdpoint").to_str().unwrap().to_owned();
    bench.write(&wired.replace(&here, &gone));
    assert_eq!(bench.wire().changed.len(), 3);
    assert_eq!(bench.text(), wired);
    // Another program that exists is left alone: the two may be used next to each other.
    let other = bench.folder.path().join("other/holdpoint");
    fs::create_dir_all(other.parent().unwrap()).unwrap();
    fs::write(&other, "").unwrap();
    bench.write(&wired.replace(&here, other.to_str().unwrap()));
    assert!(bench.wire().changed.is_empty());
}

#[test]
fn a_name_without_a_folder_is_pointed_to_ours_where_no_folder_has_it() {
    let bench = Bench::new(TEXT);
    bench.wire();
    let wired = bench.text();
    let here = bench.folder.path().join("holdpoint").to_str().unwrap().to_owned();
    let by_name = wired.replace(&here, "holdpoint");
    let wire_searching = |folders: Option<&Path>| {
        bench.write(&by_name);
        let folders = folders.map(|folder| folder.as_os_str().to_owned());
        let workshop = bench.workshop.clone().searching(folders);
        let plan = workshop.plan(&bench.config, Aim::Wire, &Choice::default()).unwrap();
        workshop.apply(plan).unwrap().changed.len()
    };
    let empty = bench.folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    assert_eq!(wire_searching(Some(&empty)), 3);
    assert_eq!(bench.text(), wired);
    // If the program is found, or cannot be searched for, the entry is left unchanged.
    assert_eq!(wire_searching(Some(bench.folder.path())), 0);
    assert_eq!(wire_searching(None), 0);
    bench.write(&wired.replace(&here, "./tools/holdpoint"));
    let workshop = bench.workshop.clone().searching(Some(empty.into_os_string()));
    assert!(workshop.plan(&bench.config, Aim::Wire, &Choice::default()).unwrap().is_empty());
}

#[test]
fn a_plan_is_attempted_so_often_and_no_more() {
    let bench = Bench::new(TEXT);
    let plan = || bench.workshop.plan(&bench.config, Aim::Wire, &Choice::default());
    let done = || Done { path: bench.config.path.clone(), changed: Vec::new(), is_original: false };
    let after = |moves: usize| {
        let mut attempts = 0;
        let attempt = |_: &Plan| {
            attempts += 1;
            Ok((attempts > moves).then(done))
        };
        let outcome = keep_trying(plan().unwrap(), attempt, |_| plan());
        (outcome, attempts)
    };
    let (outcome, attempts) = after(MAX_TRIES - 1);
    assert_eq!((outcome.unwrap(), attempts), (done(), MAX_TRIES));
    let (outcome, attempts) = after(MAX_TRIES);
    assert!(matches!(outcome, Err(WireError::Moving { .. })));
    assert_eq!(attempts, MAX_TRIES);
}

#[test]
fn consent_is_for_the_servers_that_were_shown() {
    let bench = Bench::new(TEXT);
    let plan = bench.workshop.plan(&bench.config, Aim::Wire, &Choice::default()).unwrap();
    bench.write(&TEXT.replacen(
        "{\n    \"files\"",
        "{\n    \"new\": { \"command\": \"new\" },\n    \"files\"",
        1,
    ));
    assert_eq!(bench.workshop.apply(plan).unwrap().changed.len(), 3);
    assert!(bench.states().contains(&("new".to_owned(), false)));
    assert!(bench.states().contains(&("files".to_owned(), true)));
}

#[test]
fn a_file_that_cannot_be_read_is_named_and_left() {
    let bench = Bench::new("{ \"mcpServers\": {");
    let error = bench.workshop.plan(&bench.config, Aim::Wire, &Choice::default()).unwrap_err();
    assert!(
        error.to_string().contains("mcp.json") && error.to_string().contains("line 1"),
        "{error}"
    );
    bench.write("{}");
    fs::write(&bench.config.path, b"\xff\xfe").unwrap();
    let error = bench.workshop.plan(&bench.config, Aim::Wire, &Choice::default()).unwrap_err();
    assert!(matches!(error, WireError::Read { source: ReadError::NotText, .. }));
}

#[test]
fn servers_up_to_the_limit_are_wired_and_one_more_is_refused() {
    let many = |count: usize| {
        let servers: Vec<String> =
            (0..count).map(|number| format!("\"s{number}\":{{\"command\":\"x\"}}")).collect();
        format!("{{\"mcpServers\":{{{}}}}}", servers.join(","))
    };
    let bench = Bench::new(&many(crate::MAX_SERVERS));
    assert_eq!(bench.wire().changed.len(), crate::MAX_SERVERS);
    bench.unwire();
    assert_eq!(bench.text(), many(crate::MAX_SERVERS));
    bench.write(&many(crate::MAX_SERVERS + 1));
    assert!(bench.workshop.plan(&bench.config, Aim::Wire, &Choice::default()).is_err());
}

#[test]
fn the_very_bytes_come_back_also_where_the_text_cannot_be_taken_apart() {
    let bench = Bench::new(TEXT);
    bench.wire();
    // A wired entry that can no longer be undone as text; the journal shows that we wrote it.
    let broken = bench.text().replace("\"Authorization=env:", "\"Other=env:");
    let journal = Journal::new(&bench.folder.path().join("home/wiring"));
    let real = fs::canonicalize(&bench.config.path).unwrap();
    let record = journal.record(&real).unwrap().unwrap();
    journal.write(&real, "cursor", TEXT, &broken, record.wirings).unwrap();
    bench.write(&broken);
    assert_eq!(bench.unwire().changed.len(), 3);
    assert_eq!(bench.text(), TEXT);
}

#[test]
fn a_record_that_cannot_be_read_stops_nothing() {
    let bench = Bench::new(TEXT);
    bench.wire();
    let home = bench.folder.path().join("home/wiring");
    fs::write(home.join("zzz.json"), "x").unwrap();
    assert_eq!(bench.journal(), std::slice::from_ref(&bench.config.path));
    for name in fs::read_dir(&home).unwrap().map(|name| name.unwrap().path()) {
        if name.extension().is_some_and(|end| end == "json") {
            fs::write(name, "x").unwrap();
        }
    }
    assert_eq!(bench.unwire().changed.len(), 3);
    assert!(bench.states().iter().all(|(_, is_wired)| !*is_wired));
}

/// Hosts' files contain secrets, so nothing is kept longer than necessary.
#[test]
fn what_is_not_needed_any_more_is_forgotten() {
    let kept = |bench: &Bench| {
        let names = fs::read_dir(bench.folder.path().join("home/wiring")).into_iter().flatten();
        names
            .filter(|name| {
                name.as_ref().unwrap().path().extension().is_none_or(|end| end != "lock")
            })
            .count()
    };
    let bench = Bench::new(TEXT);
    bench.wire();
    assert_eq!(kept(&bench), 1);
    // The host wrote its old state back.
    bench.write(TEXT);
    bench.workshop.tidy(&bench.config).unwrap();
    assert_eq!(kept(&bench), 0);
    // The file was removed.
    bench.wire();
    fs::remove_file(&bench.config.path).unwrap();
    assert!(bench.journal().is_empty());
    assert_eq!(kept(&bench), 0);
}

#[cfg(unix)]
#[test]
fn nothing_is_kept_of_a_file_that_cannot_be_replaced() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new(TEXT);
    fs::set_permissions(&bench.config.path, fs::Permissions::from_mode(0o400)).unwrap();
    let plan = bench.workshop.plan(&bench.config, Aim::Wire, &Choice::default()).unwrap();
    assert!(matches!(bench.workshop.apply(plan), Err(WireError::Replace { .. })));
    assert!(bench.journal().is_empty());
}

#[cfg(unix)]
#[test]
fn the_journal_is_for_its_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new(TEXT);
    bench.wire();
    let folder = bench.folder.path().join("home/wiring");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for name in fs::read_dir(&folder).unwrap() {
        assert_eq!(mode(&name.unwrap().path()), 0o600);
    }
}

#[cfg(unix)]
#[test]
fn one_file_by_two_names_is_one_file() {
    let bench = Bench::new(TEXT);
    let link = bench.folder.path().join("linked.json");
    std::os::unix::fs::symlink(&bench.config.path, &link).unwrap();
    bench.wire();
    let surroundings = Bench::surroundings(bench.folder.path());
    let config = Config::named(&link, None, &surroundings).unwrap();
    let plan = bench.workshop.plan(&config, Aim::Unwire, &Choice::default()).unwrap();
    assert!(bench.workshop.apply(plan).unwrap().is_original);
    assert_eq!(bench.text(), TEXT);
}
