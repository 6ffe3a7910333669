//! Every file of the corpus, as text: what is read from it, what it becomes, and that undoing the
//! change restores it.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "all of this file is a test")]

use hosts::rewrite::{self, Manner, Rewritten};
use hosts::{Choice, Syntax, WiringState, table};
use std::fs;
use std::path::{Path, PathBuf};

const PROGRAM: &str = "/usr/local/bin/holdpoint";

struct Sample {
    name: String,
    bytes: Vec<u8>,
    manner: Manner<'static>,
}

impl Sample {
    fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.bytes).ok()
    }

    /// The wired text, if the file can be read.
    fn wired(&self, choice: &Choice) -> Option<(&str, Rewritten)> {
        let text = self.text()?;
        rewrite::servers(text, &self.manner).ok()?;
        Some((text, rewrite::wire(text, &self.manner, choice).unwrap()))
    }
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

fn samples() -> Vec<Sample> {
    let mut samples: Vec<Sample> = fs::read_dir(folder("corpus"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| !path.file_name().unwrap().to_str().unwrap().starts_with('.'))
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let host =
                table::host(name.split("--").next().unwrap()).expect("it begins with a host");
            let syntax = Syntax::of_name(&name).expect("it has a known ending");
            let manner = Manner {
                host,
                syntax,
                apart: None,
                program: PROGRAM,
                home: None,
                own_home: None,
                sandbox: None,
                taken: None,
            };
            Sample { name, bytes: fs::read(path).unwrap(), manner }
        })
        .collect();
    samples.sort_by(|one, other| one.name.cmp(&other.name));
    samples
}

fn check_golden(path: &Path, actual: &[u8]) {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, actual).unwrap();
    }
    let expected = fs::read(path).unwrap_or_default();
    assert!(
        expected == actual,
        "{} is another now; look at it after UPDATE_GOLDEN=1:\n{}",
        path.display(),
        String::from_utf8_lossy(actual)
    );
}

#[test]
fn there_are_files_of_every_host() {
    let samples = samples();
    assert!(samples.len() >= 60, "{}", samples.len());
    for host in table::HOSTS {
        assert!(samples.iter().any(|sample| sample.manner.host == host), "none of {}", host.id);
    }
}

/// One line per server: a table for a person to read.
#[test]
fn what_is_read_of_each_file() {
    let mut lines = String::new();
    for sample in samples() {
        lines.push_str(&format!("{}\n", sample.name));
        let Some(text) = sample.text() else {
            lines.push_str("    not text\n");
            continue;
        };
        match rewrite::servers(text, &sample.manner) {
            Err(error) => lines.push_str(&format!("    {error}\n")),
            Ok(servers) => {
                for server in servers {
                    let state = match &server.state {
                        WiringState::Unwired => "can be wired".to_owned(),
                        WiringState::Wired { program, .. } => format!("wired with {program}"),
                        WiringState::Gateway { url } => format!("leads to {url}"),
                        WiringState::Unguarded(reason) => format!("{} ({reason})", reason.code()),
                    };
                    let project =
                        server.project.map(|path| format!(" in {path}")).unwrap_or_default();
                    lines.push_str(&format!(
                        "    {}{project}: {}: {state}\n",
                        server.name, server.id
                    ));
                }
            }
        }
    }
    check_golden(&folder("golden").join("servers.txt"), lines.as_bytes());
}

#[test]
fn what_each_file_becomes() {
    for sample in samples() {
        if let Some((text, wired)) = sample.wired(&Choice::default())
            && wired.text != text
        {
            check_golden(&folder("golden/wired").join(&sample.name), wired.text.as_bytes());
        }
    }
}

#[test]
fn the_way_back_ends_where_it_began() {
    let mut count = 0;
    for is_open in [false, true] {
        let choice = Choice { is_open, ..Choice::default() };
        for sample in samples() {
            let Some((text, wired)) = sample.wired(&choice) else { continue };
            let back = rewrite::unwire(&wired.text, &sample.manner, &choice, Some(&wired.wirings))
                .unwrap();
            assert_eq!(back.text, text, "{}", sample.name);
            assert_eq!(back.changed.len(), wired.changed.len(), "{}", sample.name);
            count += wired.changed.len();
        }
    }
    assert!(count > 150, "{count}");
}

#[test]
fn each_server_can_be_wired_and_taken_back_alone() {
    for sample in samples() {
        let Some((text, all)) = sample.wired(&Choice::default()) else { continue };
        for server in &all.changed {
            let choice = Choice { servers: vec![server.id.clone()], ..Choice::default() };
            let one = rewrite::wire(text, &sample.manner, &choice).unwrap();
            assert_eq!(one.changed.len(), 1, "{}: {}", sample.name, server.name);
            let back =
                rewrite::unwire(&one.text, &sample.manner, &choice, Some(&one.wirings)).unwrap();
            assert_eq!(back.text, text, "{}: {}", sample.name, server.name);
            // Starting from the file with all of them, only this one is removed.
            let rest =
                rewrite::unwire(&all.text, &sample.manner, &choice, Some(&all.wirings)).unwrap();
            let left =
                rewrite::unwire(&rest.text, &sample.manner, &Choice::default(), Some(&all.wirings));
            assert_eq!(rest.changed.len(), 1, "{}: {}", sample.name, server.name);
            assert_eq!(left.unwrap().text, text, "{}: {}", sample.name, server.name);
        }
    }
}

#[test]
fn wiring_twice_is_wiring_once() {
    for sample in samples() {
        let Some((_, once)) = sample.wired(&Choice::default()) else { continue };
        let twice = rewrite::wire(&once.text, &sample.manner, &Choice::default()).unwrap();
        assert_eq!(twice.text, once.text, "{}", sample.name);
        assert!(twice.changed.is_empty() && twice.wirings.is_empty(), "{}", sample.name);
    }
}

/// Without a journal, the entry itself contains enough information: the servers are restored,
/// except for their spelling.
#[test]
fn what_was_kept_is_not_needed_to_get_back() {
    for sample in samples() {
        let Some((text, wired)) = sample.wired(&Choice::default()) else { continue };
        let back = rewrite::unwire(&wired.text, &sample.manner, &Choice::default(), None).unwrap();
        let before = rewrite::servers(text, &sample.manner).unwrap();
        assert_eq!(
            rewrite::servers(&back.text, &sample.manner).unwrap(),
            before,
            "{}",
            sample.name
        );
        let again = rewrite::wire(&back.text, &sample.manner, &Choice::default()).unwrap();
        assert_eq!(again.changed, wired.changed, "{}", sample.name);
    }
}

#[test]
fn ids_are_unique_and_stay_when_the_file_is_wired() {
    for sample in samples() {
        let Some((text, wired)) = sample.wired(&Choice::default()) else { continue };
        let ids = |text: &str| -> Vec<String> {
            let servers = rewrite::servers(text, &sample.manner).unwrap();
            servers.into_iter().map(|server| server.id).collect()
        };
        let before = ids(text);
        assert_eq!(before, ids(&wired.text), "{}", sample.name);
        let unique: std::collections::BTreeSet<&String> = before.iter().collect();
        assert_eq!(unique.len(), before.len(), "{}: {before:?}", sample.name);
    }
}

/// Values of headers and variables, and remote addresses, never appear in the arguments, which
/// everyone can see, nor in what is shown.
#[test]
fn no_secret_is_on_a_command_line_or_shown() {
    const SECRETS: &[&str] = &[
        "ghp_0123456789abcdef",
        "s3cr3t-in-address",
        "abc123-literal",
        "abcdef",
        "user:word",
        "t0ken-value",
        "value-literal",
        "tok-literal",
        "literal-key",
        "hf_0123456789",
        "key-literal",
        "lit-eral",
    ];
    let mut seen = 0;
    for sample in samples() {
        let Some((text, wired)) = sample.wired(&Choice::default()) else { continue };
        let all = Choice::default();
        let back =
            rewrite::unwire(&wired.text, &sample.manner, &all, Some(&wired.wirings)).unwrap();
        let lines = wired.text.lines().filter(|line| line.contains("--server"));
        let words = lines.map(|line| {
            line.split("--server").nth(1).unwrap().split(']').next().unwrap().to_owned()
        });
        let shown = wired.parts.iter().chain(&back.parts).flatten().map(|part| format!("{part:?}"));
        let told: Vec<String> = words.chain(shown.collect::<Vec<_>>()).collect();
        for secret in SECRETS.iter().filter(|secret| text.contains(*secret)) {
            assert!(
                !told.iter().any(|line| line.contains(secret)),
                "{}: {secret}: {told:#?}",
                sample.name
            );
            seen += 1;
        }
    }
    assert!(seen > 12, "{seen}");
}

/// A file in a cloned repository may contain any number of anything.
#[test]
fn numbers_of_servers_and_projects_are_bounded_before_anything_is_done_with_them() {
    let manner = samples()
        .into_iter()
        .find(|sample| sample.name.starts_with("claude-code--"))
        .unwrap()
        .manner;
    let named = |count: usize, value: &str| {
        let members: Vec<String> =
            (0..count).map(|number| format!("\"n{number}\":{value}")).collect();
        format!("{{{}}}", members.join(","))
    };
    let servers = |count| format!("{{\"mcpServers\":{}}}", named(count, "{\"command\":\"x\"}"));
    let projects = |count| format!("{{\"projects\":{}}}", named(count, "{}"));
    assert_eq!(
        rewrite::servers(&servers(hosts::MAX_SERVERS), &manner).unwrap().len(),
        hosts::MAX_SERVERS
    );
    assert!(rewrite::servers(&servers(hosts::MAX_SERVERS + 1), &manner).is_err());
    assert!(rewrite::servers(&servers(60_000), &manner).is_err());
    assert!(rewrite::servers(&projects(hosts::MAX_PROJECTS), &manner).is_ok());
    assert!(rewrite::servers(&projects(hosts::MAX_PROJECTS + 1), &manner).is_err());
}
