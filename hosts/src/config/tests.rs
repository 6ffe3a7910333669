use super::*;
use std::collections::BTreeMap;

fn surroundings(system: System, variables: &[(&str, &str)]) -> Surroundings {
    let variables: BTreeMap<String, String> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Surroundings { system, home: "/home/ada".into(), variables, projects: vec!["/work".into()] }
}

/// The paths of one host, separated by `/` on every system.
fn paths_of(id: &str, surroundings: &Surroundings) -> Vec<String> {
    let all = candidates(surroundings).into_iter().filter(|candidate| candidate.host.id == id);
    all.map(|candidate| candidate.path.to_string_lossy().replace('\\', "/")).collect()
}

#[track_caller]
fn check(system: System, variables: &[(&str, &str)], id: &str, expected: &[&str]) {
    assert_eq!(paths_of(id, &surroundings(system, variables)), expected, "{system:?} {id}");
}

#[test]
fn application_data_is_elsewhere_on_each_system() {
    let name = "claude_desktop_config.json";
    check(System::Linux, &[], "claude-desktop", &[&format!("/home/ada/.config/Claude/{name}")]);
    check(
        System::MacOs,
        &[],
        "claude-desktop",
        &[&format!("/home/ada/Library/Application Support/Claude/{name}")],
    );
    check(
        System::Windows,
        &[("APPDATA", "/u/Roaming"), ("LOCALAPPDATA", "/u/Local")],
        "claude-desktop",
        &[
            &format!("/u/Roaming/Claude/{name}"),
            &format!("/u/Local/Packages/*/LocalCache/Roaming/Claude/{name}"),
        ],
    );
}

#[test]
fn configuration_folders_follow_their_variable() {
    check(System::Linux, &[], "goose", &["/home/ada/.config/goose/config.yaml"]);
    check(System::MacOs, &[], "goose", &["/home/ada/.config/goose/config.yaml"]);
    check(System::Linux, &[("XDG_CONFIG_HOME", "/x")], "goose", &["/x/goose/config.yaml"]);
    check(
        System::Linux,
        &[("XDG_CONFIG_HOME", "not/absolute")],
        "goose",
        &["/home/ada/.config/goose/config.yaml"],
    );
    check(
        System::Windows,
        &[],
        "goose",
        &["/home/ada/AppData/Roaming/Block/goose/config/config.yaml"],
    );
}

#[test]
fn a_host_can_be_moved_by_its_variable() {
    let project = "/work/.codex/config.toml";
    check(System::Linux, &[], "codex", &["/home/ada/.codex/config.toml", project]);
    check(System::Windows, &[], "codex", &["/home/ada/.codex/config.toml", project]);
    check(System::Linux, &[("CODEX_HOME", "/c")], "codex", &["/c/config.toml", project]);
    check(
        System::Linux,
        &[("CODEX_HOME", "")],
        "codex",
        &["/home/ada/.codex/config.toml", project],
    );
    check(
        System::Linux,
        &[("CLAUDE_CONFIG_DIR", "/d")],
        "claude-code",
        &["/d/.claude.json", "/work/.mcp.json"],
    );
}

/// Lists all paths of all hosts on all systems, for a person to read.
#[test]
fn every_path_of_every_system() {
    let mut lines = String::new();
    for system in [System::Linux, System::MacOs, System::Windows] {
        for candidate in candidates(&surroundings(system, &[])) {
            let path = candidate.path.to_string_lossy().replace('\\', "/");
            lines.push_str(&format!(
                "{system:?}  {}  {:?}  {path}\n",
                candidate.host.id, candidate.scope
            ));
        }
    }
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/paths.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&golden, &lines).unwrap();
    }
    assert_eq!(fs::read_to_string(golden).unwrap(), lines);
}

fn user(folder: &Path) -> Surroundings {
    let projects = vec![folder.join("project")];
    Surroundings {
        system: System::Linux,
        home: folder.to_owned(),
        variables: BTreeMap::new(),
        projects,
    }
}

fn write(folder: &Path, path: &str, text: &str) -> PathBuf {
    let path = join(folder, path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn only_files_that_are_there_are_found_and_each_once() {
    let folder = tempfile::tempdir().unwrap();
    let cursor = write(folder.path(), ".cursor/mcp.json", "{}");
    let profile = write(folder.path(), ".config/Code/User/profiles/one/mcp.json", "{}");
    let project = write(folder.path(), "project/.mcp.json", "{}");
    write(folder.path(), ".continue/mcpServers/readme.txt", "not a configuration");
    fs::create_dir_all(folder.path().join(".kiro/settings/mcp.json")).unwrap();
    let found = locate(&user(folder.path()), &[]);
    let paths: Vec<&PathBuf> = found.iter().map(|config| &config.path).collect();
    assert_eq!(paths, [&project, &cursor, &profile]);
    let only = locate(&user(folder.path()), &[crate::table::host("cursor").unwrap()]);
    assert_eq!(only.len(), 1);
}

#[test]
fn a_star_stands_for_so_many_files_and_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let count = |total: usize| {
        (0..total).for_each(|number| {
            write(folder.path(), &format!(".kiro/agents/{number}.json"), "{}");
        });
        locate(&user(folder.path()), &[]).len()
    };
    assert_eq!(count(MAX_MATCHES), MAX_MATCHES);
    assert_eq!(count(MAX_MATCHES + 1), MAX_MATCHES);
}

#[test]
fn a_file_that_is_named_is_the_hosts_it_belongs_to() {
    let folder = tempfile::tempdir().unwrap();
    let surroundings = user(folder.path());
    let named = |path: &Path| Config::named(path, None, &surroundings);
    let cursor = write(folder.path(), ".cursor/mcp.json", "{}");
    assert_eq!(named(&cursor).unwrap().host.id, "cursor");
    assert_eq!(
        named(&write(folder.path(), "x/cline_mcp_settings.json", "{}")).unwrap().host.id,
        "cline"
    );
    let other = named(&write(folder.path(), "x/mcp.json", "{}")).unwrap();
    assert_eq!((other.host.id, other.syntax), ("config", Syntax::Json));
    assert_eq!(named(&write(folder.path(), "x/servers", " {\n}")).unwrap().syntax, Syntax::Json);
    let codex = named(&write(folder.path(), "other/project/.codex/config.toml", "")).unwrap();
    assert_eq!(codex.host.id, "codex");
    let zed = crate::table::host("zed");
    assert_eq!(Config::named(&other.path, zed, &surroundings).unwrap().host.id, "zed");
    assert!(matches!(
        named(&write(folder.path(), "x/words", "a: b")),
        Err(ConfigError::UnknownSyntax { .. })
    ));
    assert!(matches!(named(folder.path()), Err(ConfigError::NotAFile { .. })));
    assert!(matches!(named(&folder.path().join("gone")), Err(ConfigError::NotFound { .. })));
}

#[test]
fn a_file_at_the_limit_is_read_and_one_past_it_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.json");
    let file = fs::File::create(&path).unwrap();
    file.set_len(MAX_FILE_BYTES).unwrap();
    assert_eq!(read_bytes(&path).unwrap().len() as u64, MAX_FILE_BYTES);
    file.set_len(MAX_FILE_BYTES + 1).unwrap();
    assert!(matches!(read_bytes(&path), Err(ReadError::TooLarge)));
}

#[test]
fn so_many_names_are_looked_at_and_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "found.json", "{}");
    let behind = |others: usize| {
        let missing = folder.path().join("missing");
        first_files(std::iter::repeat_n(missing, others).chain([file.clone()])).len()
    };
    assert_eq!(behind(MAX_SCANNED - 1), 1);
    assert_eq!(behind(MAX_SCANNED), 0);
}

fn ids(config: &Config) -> Vec<String> {
    config.servers().unwrap().into_iter().map(|server| server.id).collect()
}

#[test]
fn an_id_that_is_written_down_in_another_file_is_given_to_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let unwired = r#"{"mcpServers": {"files": {"command": "npx"}}}"#;
    let guarded = r#"{"mcpServers": {"mine": {"command": "holdpoint", "args": ["run", "--server", "cursor.files", "--", "x"]}}}"#;
    write(folder.path(), ".cursor/mcp.json", unwired);
    let surroundings = user(folder.path());
    let configs = || locate(&surroundings, &[]);
    assert_eq!(ids(&keep_apart(configs(), &[])[0]), ["cursor.files"]);
    let other = write(folder.path(), "elsewhere/servers.json", guarded);
    let other = Config::named(&other, None, &surroundings).unwrap();
    for configs in [
        keep_apart(configs(), std::slice::from_ref(&other)),
        keep_apart([configs(), vec![other.clone()]].concat(), &[]),
        keep_apart([vec![other.clone()], configs()].concat(), &[]),
    ] {
        for config in configs {
            let is_written = config.path == other.path;
            assert_eq!(ids(&config) == ["cursor.files"], is_written, "{config:?}");
        }
    }
    // A file does not conflict with itself.
    assert_eq!(ids(&keep_apart(vec![other.clone()], &[other])[0]), ["cursor.files"]);
}
