//! Completions and manual pages: commands are completed, hidden ones are not, and every command has
//! a page.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "all of it is a test, also the functions that are not marked as one"
)]

#[path = "cli/bench.rs"]
mod bench;

use bench::*;
use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};

const SHELLS: [&str; 5] = ["bash", "zsh", "fish", "powershell", "elvish"];

/// Whether a shell is installed.
#[track_caller]
fn is_there(program: &str) -> bool {
    let found = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if found.is_err() {
        let how = "run ./scripts/install-test-tools";
        testing::not_run(&format!("`{program}` is not installed: {how}"));
    }
    found.is_ok()
}

fn script(bench: &Bench, shell: &str) -> String {
    bench.run(["completions", shell]).exits(0).out
}

#[test]
fn every_shell_completes_commands_and_none_that_is_hidden() {
    let bench = Bench::new();
    for shell in SHELLS {
        let script = script(&bench, shell);
        for word in ["quarantine", "block-egress", "relist-max-age"] {
            assert!(script.contains(word), "{shell} does not complete `{word}`");
        }
        assert!(!script.contains("scenario"), "{shell} completes a hidden command");
    }
}

#[test]
fn an_unknown_shell_is_refused_with_those_that_are_known() {
    Bench::new().run(["completions", "tcsh"]).exits(2).says("powershell");
}

#[test]
fn shells_can_read_their_scripts() {
    let bench = Bench::new();
    for shell in ["bash", "zsh", "fish"] {
        let path = bench.file(&format!("completions.{shell}"), script(&bench, shell));
        if is_there(shell) {
            let status = Command::new(shell).arg("-n").arg(&path).status().unwrap();
            assert!(status.success(), "{shell} cannot read {}", path.display());
        }
    }
}

#[test]
fn bash_completes_the_beginning_of_a_command() {
    let bench = Bench::new();
    let path = bench.file("completions.bash", script(&bench, "bash"));
    if !is_there("bash") {
        return;
    }
    let typing = "source \"$1\"; COMP_WORDS=(holdpoint quar); COMP_CWORD=1; _holdpoint holdpoint quar holdpoint; echo \"${COMPREPLY[@]}\"";
    let output = Command::new("bash").args(["-c", typing, "bash"]).arg(path).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "quarantine");
}

#[test]
fn every_command_has_a_manual_page() {
    let bench = Bench::new();
    let folder = bench.path("man/man1");
    bench.run(["man", "--out", folder.to_str().unwrap()]).exits(0).says("written");
    let names: BTreeSet<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    let general = bench.run(["--help"]).exits(0).out;
    // A long description continues on the next line, indented further.
    let listed = general.lines().take_while(|line| *line != "Options:");
    let listed = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let listed: Vec<&str> = listed.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(listed.len() > 10, "the list of commands was not found:\n{general}");
    for command in listed {
        assert!(names.contains(&format!("holdpoint-{command}.1")), "no page for `{command}`");
    }
    assert!(names.contains("holdpoint.1") && names.contains("holdpoint-receipts-verify.1"));
    assert!(!names.iter().any(|name| name.contains("scenario")), "{names:?}");
    let page = fs::read_to_string(folder.join("holdpoint-run.1")).unwrap();
    assert!(page.contains(".TH") && page.contains("Examples:"), "{page}");
}

#[test]
fn the_general_page_is_printed() {
    let page = Bench::new().run(["man"]).exits(0).out;
    assert!(page.contains(".SH SUBCOMMANDS") && page.contains("holdpoint\\-demo"), "{page}");
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let bench = Bench::new();
    let file = bench.file("taken", "");
    bench.run(["man", "--out", file.to_str().unwrap()]).exits(2).says("taken");
}
