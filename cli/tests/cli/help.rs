//! Help texts are part of the interface: they are golden files. `UPDATE_GOLDEN=1` writes them anew.

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
    let listed = general.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.is_empty());
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
fn every_command_has_an_example() {
    let bench = Bench::new();
    for name in commands(&help(&bench, &[])) {
        let page = help(&bench, &[&name]);
        assert!(page.contains("Example") && page.contains(&format!("holdpoint {name}")), "{page}");
    }
}
