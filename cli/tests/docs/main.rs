//! Runs the commands in the documentation, and compares their output with the page.
//!
//! In blocks marked `console`, the `$` lines are run one after another, with one home per page. A
//! command must exit with 0, unless it is followed by a comment such as `# exits with 10`. The
//! lines below a command are its output, in order; `…` matches anything. Output goes to a terminal,
//! so that a page shows what a person sees. `<!-- run: COMMAND -->` runs a command without showing
//! it. Blocks that cannot be run are marked `text`.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "all of it is a test, also the functions that are not marked as one"
)]

#[path = "../cli/bench.rs"]
mod bench;

#[path = "../cli/pty.rs"]
mod pty;

mod page;
mod sandbox;

use page::{Page, Step};
use sandbox::Sandbox;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The Markdown files in a folder, with their paths from the root of the project.
fn pages_in(folder: &str) -> Vec<(String, String)> {
    let files = fs::read_dir(root().join(folder)).unwrap().map(|file| file.unwrap().path());
    let mut paths: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|end| end == "md")).collect();
    paths.sort();
    let name = |path: &Path| path.strip_prefix(root()).unwrap().display().to_string();
    paths.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
}

/// The pages for users, with their paths from the root of the project.
fn pages() -> Vec<(String, String)> {
    let mut pages = pages_in("");
    pages.retain(|(name, _)| name == "README.md");
    pages.extend(pages_in("docs"));
    pages
}

#[test]
fn every_command_on_every_page_does_what_the_page_says() {
    let (mut commands, mut problems) = (0, Vec::new());
    for (name, text) in pages() {
        let page = Page::read(&text);
        if page.steps.is_empty() {
            continue;
        }
        let Some(sandbox) = Sandbox::new(page.needs_servers()) else {
            testing::not_run(&format!("{name}: run ./scripts/install-test-tools for real servers"));
            continue;
        };
        commands += page.steps.iter().filter(|step| !step.is_hidden).count();
        let wrong = page.steps.iter().filter_map(|step| sandbox.problem(step));
        problems.extend(wrong.map(|problem| format!("{name}:{problem}")));
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
    assert!(commands > 20, "only {commands} commands were found");
}

#[test]
fn the_readme_says_how_to_see_it_work_and_how_to_test_it() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    for command in ["cargo run --release -- demo", "./scripts/test"] {
        assert!(readme.contains(command), "{command}");
    }
}

#[test]
fn every_block_with_commands_says_whether_it_can_be_run() {
    let unmarked: Vec<String> = pages()
        .iter()
        .flat_map(|(name, text)| {
            Page::read(text).unmarked.into_iter().map(move |line| format!("{name}:{line}"))
        })
        .collect();
    assert!(unmarked.is_empty(), "neither `console` nor `text`:\n{}", unmarked.join("\n"));
}

#[test]
fn every_link_between_pages_leads_somewhere() {
    let mut dead = Vec::new();
    for (name, text) in pages() {
        let folder = root().join(&name);
        for link in page::links(&text) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let path = if file.is_empty() { folder.clone() } else { folder.with_file_name(file) };
            let is_there = match fs::read_to_string(&path) {
                Ok(text) => {
                    anchor.is_empty() || page::anchors(&text).iter().any(|own| own == anchor)
                }
                Err(_) => path.exists(),
            };
            if !is_there {
                dead.push(format!("{name}: {link}"));
            }
        }
    }
    assert!(dead.is_empty(), "\n{}", dead.join("\n"));
}

#[test]
fn prose_is_wrapped() {
    let folders = [
        "",
        "bench",
        "conformance",
        "conformance/canonical",
        "conformance/soundness",
        "docs",
        "docs/decisions",
    ];
    let pages = folders.into_iter().flat_map(pages_in);
    let overlong: Vec<String> = pages
        .flat_map(|(name, text)| {
            page::overlong(&text).into_iter().map(move |line| format!("{name}:{line}"))
        })
        .collect();
    assert!(overlong.is_empty(), "lines over 120 columns:\n{}", overlong.join("\n"));
}

/// The texts in backticks in a cell of a table.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

#[test]
fn every_refusal_in_the_table_of_attacks_is_in_the_test_that_it_names() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let mut tests = read("gateway/tests/front/sign_in.rs");
    for file in fs::read_dir(root().join("gateway/tests/front/sign_in")).unwrap() {
        tests += &fs::read_to_string(file.unwrap().path()).unwrap();
    }
    let script = read("conformance/sign-in/attacks.mjs").replace("\\'", "'");
    // A test of the gateway is a function, one of the laptop is a line of the script.
    let body_of = |name: &str| match name.contains(' ') {
        false => {
            let body = tests.split_once(&format!("fn {name}(")).map(|(_, rest)| rest);
            body.and_then(|rest| rest.split("\n}\n").next())
        }
        true => script.lines().find(|line| line.contains(&format!("'{name}'"))),
    };
    let page = read("docs/gateway-sign-in.md");
    let table = page.split_once("| attack | place | code | test |").unwrap().1;
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let mut count = 0;
    for row in rows {
        let cells: Vec<&str> = row.split('|').collect();
        let bodies: Vec<&str> = quoted(cells[4])
            .map(|name| body_of(name).unwrap_or_else(|| panic!("no test `{name}`")))
            .collect();
        assert!(!bodies.is_empty(), "{row}");
        for code in quoted(cells[3]) {
            assert!(bodies.iter().all(|body| body.contains(code)), "{code}: {row}");
        }
        count += 1;
    }
    assert!(count > 30, "only {count} rows");
}

#[test]
fn the_comparison_names_the_versions_that_its_script_installs() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let (script, page) = (read("scripts/compare-peers"), read("docs/comparison.md"));
    let is_word = |word: &&str| !word.contains(char::is_whitespace);
    let packages: Vec<(&str, &str)> =
        script.split('"').filter(is_word).filter_map(|word| word.split_once("==")).collect();
    assert_eq!(packages.len(), 4, "{packages:?}");
    for (name, version) in packages {
        let row = page.lines().find(|line| line.starts_with(&format!("| [{name}](")));
        let is_named = row.is_some_and(|row| row.contains(&format!("| {version} |")));
        assert!(is_named, "docs/comparison.md does not have {name} {version}");
    }
}

// The parser reports mistakes.

fn one(text: &str) -> Step {
    Page::read(text).steps.remove(0)
}

#[test]
fn a_page_is_read_as_it_says() {
    let text = "a\n<!-- run: touch x -->\n```console\n$ cat > y <<'END'\n1\nEND\n$ false   # exits with 1\nsaid\n```\n```text\n$ no\n```\n```\n$ unmarked\n```\n";
    let page = Page::read(text);
    let words: Vec<&str> = page.steps.iter().map(|step| step.command.as_str()).collect();
    assert_eq!(words[..2], ["touch x", "cat > y <<'END'\n1\nEND"]);
    assert_eq!((page.steps[2].exit, &page.steps[2].says[..]), (1, &["said".to_owned()][..]));
    assert!(page.steps[0].is_hidden && !page.steps[1].is_hidden);
    assert_eq!((page.steps.len(), page.unmarked), (3, vec![13]));
}

#[test]
fn another_answer_or_exit_code_is_a_problem() {
    let sandbox = Sandbox::new(false).unwrap();
    let problem = |block: &str| sandbox.problem(&one(&format!("```console\n{block}\n```\n")));
    assert_eq!(problem("$ printf 'one\\ntwo\\n'\none\ntwo"), None);
    assert_eq!(problem("$ printf 'one 17 x\\ntwo\\n'\none … x\n…"), None);
    assert!(problem("$ printf 'one\\ntwo\\n'\ntwo\none").is_some());
    assert!(problem("$ echo one\ntwo").is_some());
    assert!(problem("$ false").is_some());
    assert!(problem("$ true   # exits with 1").is_some());
    assert_eq!(problem("$ exit 3   # exits with 3"), None);
}

#[test]
fn links_and_anchors_are_found() {
    let text = "# One `two` three\n[a](b.md#c) and [d](https://example.com) ![p](x.svg)\n";
    assert_eq!(page::links(text), ["b.md#c", "x.svg"]);
    assert_eq!(page::anchors(text), ["one-two-three"]);
}

#[test]
fn a_line_of_prose_is_overlong_from_one_column_past_the_limit() {
    let line = |columns: usize| format!("a {}\n", "é".repeat(columns - 2));
    let long = line(121);
    assert_eq!(page::overlong(&line(120)), [0; 0]);
    assert_eq!(page::overlong(&format!("one\n{long}")), [2]);
    let exempt = format!("| {long}<!-- {long}  {}\n```\n{long}```\n", "x".repeat(200));
    assert_eq!(page::overlong(&exempt), [0; 0]);
    assert_eq!(page::overlong(&format!("{exempt}- {long}")), [7]);
}
