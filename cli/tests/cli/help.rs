//! Help texts are part of the interface, and compared with golden files. `UPDATE_GOLDEN=1` rewrites
//! them.

use crate::bench::*;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Texts are wrapped to the terminal's width, so the tests fix one.
const COLUMNS: &str = "100";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/help")
}

fn help(bench: &Bench, words: &[&str]) -> String {
    let mut command = bench.command(words.iter().chain(&["--help"]));
    command.env("COLUMNS", COLUMNS);
    answer(command).exits(0).out
}

/// The commands that the general help lists.
fn commands(general: &str) -> Vec<String> {
    let listed = general.lines().take_while(|line| *line != "Options:");
    let is_command = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    let listed = listed.filter(is_command);
    listed.filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
}

#[test]
fn help_is_as_the_golden_files_say() {
    let bench = Bench::new();
    let general = help(&bench, &[]);
    let mut pages = vec![("holdpoint".to_owned(), general.clone())];
    for name in commands(&general) {
        pages.push((name.clone(), help(&bench, &[&name])));
    }
    assert!(pages.len() > 10, "the list of commands was not found:\n{general}");
    let is_update = std::env::var_os("UPDATE_GOLDEN").is_some();
    for (name, page) in &pages {
        let path = folder().join(format!("{name}.txt"));
        if is_update {
            fs::write(&path, page).unwrap();
        }
        let golden = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(*page, golden, "{name}: if this is meant, run the tests with UPDATE_GOLDEN=1");
    }
    let names = pages.iter().map(|(name, _)| format!("{name}.txt")).collect::<BTreeSet<_>>();
    let files = fs::read_dir(folder()).unwrap();
    let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    assert_eq!(files.collect::<BTreeSet<_>>(), names, "golden files of commands that are gone");
}

#[test]
fn help_is_a_command_too() {
    let bench = Bench::new();
    let printed = |words: &[&str]| {
        let mut command = bench.command(words);
        command.env("COLUMNS", COLUMNS);
        answer(command).exits(0).out
    };
    assert_eq!(printed(&["help"]), help(&bench, &[]));
    assert_eq!(printed(&["help", "approve"]), help(&bench, &["approve"]));
    assert_eq!(printed(&["help", "receipts", "verify"]), help(&bench, &["receipts", "verify"]));
    bench.run(["help", "aprove"]).exits(2).says("did you mean `approve`?");
    bench.run(["help", "scenario"]).exits(2).says("no command `scenario`");
    bench.run(["help", "doctor#disk_full"]).exits(0).says("no room left").never_says("**");
    bench.run(["help", "doctor#disk_ful"]).exits(2).says("did you mean `disk_full`?");
}

#[test]
fn without_a_command_nothing_hidden_is_listed() {
    let bench = Bench::new();
    for words in [vec!["-v"], vec!["-q"], vec!["--json"], vec!["--home", "x"]] {
        bench.run(&words).exits(2).says("holdpoint help").never_says("scenario");
    }
    bench.run(Vec::<&str>::new()).exits(2).never_says("scenario");
}

#[test]
fn a_servers_command_without_dashes_is_shown_with_them() {
    let bench = Bench::new();
    let tip = "holdpoint pin --server time -- uvx mcp-server-time";
    bench.run(["pin", "--server", "time", "uvx", "mcp-server-time"]).exits(2).says(tip);
    bench.run(["run", "npx", "-y", "p"]).exits(2).says("holdpoint run -- npx -y p");
    // A single word is an id or a program.
    bench.run(["pin", "sh"]).exits(2).says("no server `sh`").says("-- sh");
    bench.run(["pin", "unheard-of"]).exits(2).never_says("put `--`");
}

#[test]
fn every_command_has_an_example() {
    let bench = Bench::new();
    for name in commands(&help(&bench, &[])) {
        let page = help(&bench, &[&name]);
        assert!(page.contains("Example") && page.contains(&format!("holdpoint {name}")), "{page}");
    }
}
