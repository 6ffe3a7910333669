use super::*;

fn words(line: &str) -> Option<Guarded> {
    let mut words = line.split(' ');
    let command = words.next().unwrap();
    let arguments: Vec<Option<&str>> = words.map(Some).collect();
    read(command, &arguments)
}

#[track_caller]
fn is_program_behind(line: &str, server: Option<&str>, at: usize) {
    let found = words(line).unwrap_or_else(|| panic!("not ours: {line}"));
    assert_eq!(found.server.as_deref(), server, "{line}");
    assert_eq!(found.behind, Behind::Program(at), "{line}");
}

#[test]
fn what_wire_writes_is_recognized_wherever_our_program_lies() {
    for program in ["holdpoint", "/usr/bin/holdpoint", r"C:\Tools\Holdpoint.exe", "./holdpoint"] {
        is_program_behind(&format!("{program} run --server=a.b -- npx -y x"), Some("a.b"), 3);
    }
}

#[test]
fn the_id_is_no_argument_of_its_own() {
    assert_eq!(opening("a.b", None, None), ["run", "--server=a.b"]);
    assert_eq!(opening("a.b", Some("/h"), None), ["run", "--server=a.b", "--home", "/h"]);
}

#[test]
fn what_a_person_wrote_is_recognized() {
    is_program_behind("holdpoint run -- npx", None, 2);
    is_program_behind("holdpoint run --server a.b -- npx -y x", Some("a.b"), 4);
    is_program_behind("holdpoint run --posture shield --server=a -- npx --server b", Some("a"), 5);
    is_program_behind("holdpoint run --allow-private --home /h -- npx", None, 5);
    is_program_behind("holdpoint --home /h --json run --server a -- npx", Some("a"), 7);
}

#[test]
fn our_package_is_recognized_behind_a_package_manager() {
    for (line, at) in [
        ("npx holdpoint run --server=a -- npx -y x", 4),
        ("npx -y holdpoint@0.2.0 run --server=a -- x", 5),
        ("/usr/bin/npx --package=holdpoint -- holdpoint run --server=a -- x", 6),
        (r"C:\node\npx.CMD -y holdpoint run --server=a -- x", 5),
        ("bunx holdpoint run --server=a -- x", 4),
        ("pnpm dlx holdpoint run --server=a -- x", 5),
        ("uvx holdpoint run --server=a -- x", 4),
        ("uvx --from holdpoint==0.1.0 holdpoint run --server=a -- x", 6),
        ("uv tool run holdpoint@latest run --server=a -- x", 6),
    ] {
        is_program_behind(line, Some("a"), at);
        assert!(words(line).unwrap().is_fetched, "{line}");
    }
    assert!(!words("holdpoint run -- x").unwrap().is_fetched);
}

#[test]
fn another_package_is_not_ours() {
    for line in [
        "npx holdpoint-extra run --server=a -- x",
        "npx @other/holdpoint run --server=a -- x",
        "npx -p other holdpoint run --server=a -- x",
        "npx --package=other holdpoint run --server=a -- x",
        "npx --registry https://x.example holdpoint run --server=a -- x",
        "npx ./holdpoint run --server=a -- x",
        "uvx --from other holdpoint run --server=a -- x",
        "uvx --index https://x.example holdpoint run --server=a -- x",
        "uv run holdpoint run --server=a -- x",
        "npx holdpoint status",
        "npx -y",
        "npm holdpoint run --server=a -- x",
    ] {
        assert_eq!(words(line), None, "{line}");
    }
}

#[test]
fn options_are_read_as_far_as_they_are_the_gates() {
    let options = |line: &str| {
        let options = words(line).unwrap().options.into_iter();
        options.map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>()
    };
    let line = "holdpoint run --server=a --posture monitor --flavor=open -- npx --posture strict";
    assert_eq!(options(line), ["--posture monitor", "--flavor open"]);
    assert!(
        options("holdpoint run --server a --url https://x.example --header K=env:V").is_empty()
    );
}

#[test]
fn other_commands_are_not_ours() {
    for line in [
        "npx run --server a -- x",
        "holdpoint-other run --server a -- x",
        "holdpoint check --server a -- x",
        "holdpoint --home run -- x",
        "holdpoint --server a -- x",
        "holdpoint run --server a",
        "holdpoint run --server a --",
        "holdpoint run --no-such-option a -- x",
        "holdpoint run --url https://a.example -- x",
        "holdpoint",
    ] {
        assert_eq!(words(line), None, "{line}");
    }
}

#[test]
fn a_word_that_is_no_text_ends_the_reading() {
    assert_eq!(read("holdpoint", &[Some("run"), None, Some("--"), Some("x")]), None);
    // Anything is allowed after the gate's own arguments.
    assert!(read("holdpoint", &[Some("run"), Some("--"), Some("x"), None]).is_some());
}

#[test]
fn an_address_is_read_with_its_headers() {
    let found =
        words("holdpoint run --server a --url https://x.example/mcp --header K=env:V").unwrap();
    let headers = vec![("K".to_owned(), "env:V".to_owned())];
    assert_eq!(found.behind, Behind::Address { url: "https://x.example/mcp".into(), headers });
}

#[test]
fn every_header_has_a_variable_of_its_own() {
    let names = ["X-Key", "x-key", "X_KEY", "Authorization", "日"];
    let variables = header_variables(&names);
    let unique: std::collections::BTreeSet<&String> = variables.iter().collect();
    assert_eq!(unique.len(), names.len(), "{variables:?}");
    let is_plain = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    assert!(variables.iter().all(|variable| variable.chars().all(is_plain)), "{variables:?}");
}

#[test]
fn variables_that_decide_how_the_gate_runs_are_told_from_those_of_the_server() {
    for name in ["HOLDPOINT_HOME", "HOLDPOINT_NEW", "HOME", "PATH", "LD_PRELOAD", "USER"] {
        assert!(is_own_variable(name), "{name}");
    }
    for name in ["API_KEY", ADDRESS_VARIABLE, "HOLDPOINT_HEADER_AUTHORIZATION", "home", "HOLDPOINT"]
    {
        assert!(!is_own_variable(name), "{name}");
    }
}
