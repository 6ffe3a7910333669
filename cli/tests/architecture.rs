//! The rules of ARCHITECTURE.md and CONTRIBUTING.md that a program can check: dependencies between
//! crates, and the form of files.
//!
//! Each rule is a function from text to complaints, so that an invented bad input can show that the
//! rule may fail.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "all of this file is a test, also the functions that are not marked as one"
)]

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Which of our crates each crate may use. A new crate has to be added deliberately.
const MAY_USE: &[(&str, &[&str])] = &[
    ("contract", &[]),
    ("envelope", &["contract"]),
    ("gate", &["contract", "envelope"]),
    ("attest", &["contract"]),
    ("policy", &["contract"]),
    ("ledger", &["contract"]),
    ("wire", &["contract", "envelope"]),
    ("oauth", &["contract", "wire"]),
    ("store", &["contract", "gate", "ledger"]),
    ("settings", &["contract", "gate", "attest", "policy", "sandbox"]),
    ("sandbox", &[]),
    ("hosts", &[]),
    ("engine", BELOW_ENGINE),
    ("gateway", BELOW_GATEWAY),
    ("screen", &["contract", "gate"]),
    ("measure", &["contract", "gate"]),
    ("directory", BELOW_DIRECTORY),
    ("cli", EVERY_CRATE),
    // Measurements and fuzz checks. No other row contains them, so no crate may use them.
    ("bench", MEASURED),
    ("fuzz-checks", EVERY_CRATE),
    ("testing", &[]),
    ("sdk-core", &["contract", "envelope", "gate"]),
    ("sdk-wasm", &["sdk-core"]),
];

const BELOW_ENGINE: &[&str] = &[
    "contract", "envelope", "gate", "attest", "policy", "ledger", "wire", "oauth", "store",
    "settings", "sandbox",
];
const BELOW_GATEWAY: &[&str] = &[
    "contract", "envelope", "gate", "attest", "policy", "ledger", "wire", "oauth", "store",
    "settings", "sandbox", "engine",
];
const BELOW_DIRECTORY: &[&str] = &[
    "contract", "envelope", "gate", "attest", "policy", "ledger", "wire", "store", "settings",
    "sandbox", "engine", "screen",
];
const EVERY_CRATE: &[&str] = &[
    "contract",
    "envelope",
    "gate",
    "attest",
    "policy",
    "ledger",
    "wire",
    "oauth",
    "store",
    "settings",
    "sandbox",
    "hosts",
    "engine",
    "gateway",
    "screen",
    "measure",
    "directory",
    "sdk-core",
];

/// Measurements make calls and numbers like tests do.
const MEASURED: &[&str] = &[
    "contract", "envelope", "gate", "attest", "policy", "ledger", "wire", "store", "settings",
    "sandbox", "engine", "screen", "testing",
];

/// Crates that get time, randomness and files passed in as values.
const PURE_CRATES: &[&str] =
    &["attest", "contract", "envelope", "gate", "measure", "policy", "screen", "sdk/core"];

/// Paths that a pure crate must not name, including everything below them.
const IMPURE_PATHS: &[&str] =
    &["std::fs", "std::net", "std::env", "std::process", "std::thread", "std::io::stdin", "tokio"];
/// Only `Duration` is allowed from `std::time`.
const CLOCK_MODULE: &str = "std::time";
const CLOCK_ALLOWED: &str = "std::time::Duration";

const MAX_FILE_LINES: usize = 800;

const EMPTY_NAMES: &[&str] = &[
    "util", "utils", "helper", "helpers", "common", "misc", "types", "manager", "shared", "stuff",
];

/// A dependency of one of our crates on another.
#[derive(Debug, PartialEq, Eq)]
struct Edge {
    from: String,
    to: String,
}

/// A source file, with its path from the root of the project, using `/`.
#[derive(Debug)]
struct SourceFile {
    path: String,
    text: String,
}

impl SourceFile {
    fn made_up(path: &str, text: &str) -> Self {
        SourceFile { path: path.to_owned(), text: text.to_owned() }
    }

    fn is_test(&self) -> bool {
        self.path.split('/').any(|part| part == "tests" || part == "tests.rs")
    }

    fn stem(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        name.strip_suffix(".rs").unwrap_or(name)
    }

    fn is_in_crate(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.path.starts_with(&format!("{name}/src/")))
    }
}

// The rules.

fn edges_outside_the_table(edges: &[Edge]) -> Vec<String> {
    let allowed = |edge: &Edge| {
        MAY_USE.iter().any(|(name, uses)| *name == edge.from && uses.contains(&edge.to.as_str()))
    };
    edges
        .iter()
        .filter(|edge| !allowed(edge))
        .map(|edge| format!("`{}` may not use `{}`", edge.from, edge.to))
        .collect()
}

fn crates_outside_the_table(names: &[String]) -> Vec<String> {
    names
        .iter()
        .filter(|name| !MAY_USE.iter().any(|(known, _)| known == name))
        .map(|name| format!("the table of crates has no `{name}`"))
        .collect()
}

fn overlong_files(files: &[SourceFile]) -> Vec<String> {
    files
        .iter()
        .filter(|file| !file.is_test())
        .map(|file| (file, file.text.lines().count()))
        .filter(|(_, lines)| *lines > MAX_FILE_LINES)
        .map(|(file, lines)| format!("{}: {lines} lines, at most {MAX_FILE_LINES}", file.path))
        .collect()
}

fn files_without_an_opening(files: &[SourceFile]) -> Vec<String> {
    files
        .iter()
        .filter(|file| file.stem() != "tests")
        .filter(|file| !file.text.starts_with("//! "))
        .map(|file| format!("{}: does not open with a `//!` line", file.path))
        .collect()
}

fn ill_named_files(files: &[SourceFile]) -> Vec<String> {
    let is_ill_named = |file: &SourceFile| {
        let folders = file.path.split('/').rev().skip(1).take_while(|part| *part != "src");
        folders.chain([file.stem()]).any(|part| EMPTY_NAMES.contains(&part)) || file.stem() == "mod"
    };
    files
        .iter()
        .filter(|file| is_ill_named(file))
        .map(|file| format!("{}: the name says nothing of what is inside", file.path))
        .collect()
}

/// Checks modules that are written inside another file.
fn ill_named_inline_modules(files: &[SourceFile]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files {
        for line in file.text.lines() {
            let words: Vec<&str> =
                line.split([' ', '{', ';']).filter(|word| !word.is_empty()).collect();
            let name =
                words.iter().position(|word| *word == "mod").and_then(|at| words.get(at + 1));
            let is_code = !line.trim_start().starts_with("//");
            if let Some(name) = name.filter(|name| is_code && EMPTY_NAMES.contains(name)) {
                complaints.push(format!("{}: a module called `{name}`", file.path));
            }
        }
    }
    complaints
}

fn impure_paths_in_pure_crates(files: &[SourceFile]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| file.is_in_crate(PURE_CRATES) && !file.is_test()) {
        for path in named_paths(&file.text) {
            if is_impure(&path) {
                complaints.push(format!("{}: a pure crate names `{path}`", file.path));
            }
        }
    }
    complaints
}

fn is_impure(path: &str) -> bool {
    let is_under = |root: &str| {
        path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    let is_clock = is_under(CLOCK_MODULE) && !path.starts_with(CLOCK_ALLOWED);
    is_clock || IMPURE_PATHS.iter().any(|root| is_under(root))
}

fn crates_without_the_workspace_lints(manifests: &[SourceFile]) -> Vec<String> {
    manifests
        .iter()
        .filter(|manifest| {
            let mut lines = manifest.text.lines().map(str::trim).filter(|line| !line.is_empty());
            let takes_over =
                lines.any(|line| line == "[lints]") && lines.next() == Some("workspace = true");
            !takes_over && !repeats_the_lints(&manifest.text)
        })
        .map(|manifest| format!("{}: does not take over the workspace's lints", manifest.path))
        .collect()
}

/// Cargo cannot inherit the workspace's lints and change one. A crate that calls the kernel repeats
/// all of them, with `unsafe_code` denied instead of forbidden, so that each exception needs an
/// attribute with a reason.
fn repeats_the_lints(manifest: &str) -> bool {
    let lints = |text: &str, at: [&str; 2]| -> Option<toml::Table> {
        let text: toml::Table = text.parse().ok()?;
        at.iter().try_fold(text, |table, name| table.get(*name)?.as_table().cloned())
    };
    let Ok(root) = fs::read_to_string(root_folder().join("Cargo.toml")) else { return false };
    ["rust", "clippy"].iter().all(|tool| {
        let (Some(ours), Some(theirs)) = (
            lints(&root, ["workspace", "lints"])
                .and_then(|all| all.get(*tool)?.as_table().cloned()),
            lints(manifest, ["lints", tool]),
        ) else {
            return false;
        };
        ours.iter().all(|(name, level)| match name.as_str() {
            "unsafe_code" => theirs.get(name).and_then(toml::Value::as_str) == Some("deny"),
            _ => theirs.get(name) == Some(level),
        })
    })
}

/// The paths in backticks on a page, from the root of the project, that do not exist.
fn dead_paths(page: &str, exists: impl Fn(&str) -> bool) -> Vec<String> {
    page.split('`')
        .skip(1)
        .step_by(2)
        .filter(|quoted| quoted.contains('/') && !quoted.contains(char::is_whitespace))
        .filter(|path| !exists(path))
        .map(|path| format!("`{path}` is named and is not there"))
        .collect()
}

fn unlisted_records(index: &str, records: &[String]) -> Vec<String> {
    records
        .iter()
        .filter(|record| !index.contains(&format!("({record})")))
        .map(|record| format!("docs/decisions/README.md does not list `{record}`"))
        .collect()
}

// Reading the project.

/// Every path in the code that starts with `std` or `tokio`, with `use` trees expanded.
fn named_paths(text: &str) -> Vec<String> {
    let words: Vec<&str> = text
        .lines()
        .map(|line| line.split_once("//").map_or(line, |(code, _)| code))
        .flat_map(str::split_whitespace)
        .collect();
    let code = words.join(" ").replace(" ::", "::").replace(":: ", "::");
    let mut paths = Vec::new();
    for root in ["std::", "tokio::"] {
        for (at, _) in code.match_indices(root) {
            let starts_a_word = !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            if starts_a_word {
                expand(&code[at..], "", &mut paths);
            }
        }
    }
    paths
}

/// Adds the paths of one `use` tree (or of one plain path), and returns the rest of the text.
fn expand<'t>(code: &'t str, prefix: &str, paths: &mut Vec<String>) -> &'t str {
    let end = code
        .find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | ':' | '*')))
        .unwrap_or(code.len());
    let path = format!("{prefix}{}", &code[..end]);
    let mut rest = code[end..].trim_start();
    if !(path.ends_with("::") || path.is_empty()) || !rest.starts_with('{') {
        paths.push(path.trim_end_matches(':').to_owned());
        return rest;
    }
    while let Some(inside) = rest.strip_prefix(['{', ',']) {
        let inside = inside.trim_start();
        if inside.starts_with('}') {
            rest = inside;
            break;
        }
        rest = expand(inside, &path, paths).trim_start_matches(|c| c != ',' && c != '}');
    }
    rest.strip_prefix('}').unwrap_or(rest)
}

fn root_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("`cli` lies in the workspace").to_owned()
}

fn workspace_packages() -> Vec<Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root_folder())
        .output()
        .expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    metadata["packages"].as_array().expect("there are packages").clone()
}

/// `holdpoint-gate` is the crate `gate`; `holdpoint`, the binary, is the crate `cli`.
fn short_name(package: &str) -> String {
    if package == "holdpoint" {
        return "cli".to_owned();
    }
    package.strip_prefix("holdpoint-").unwrap_or(package).to_owned()
}

fn workspace_edges(packages: &[Value]) -> Vec<Edge> {
    let mut edges = Vec::new();
    for package in packages {
        let from = short_name(package["name"].as_str().expect("a package has a name"));
        for dependency in package["dependencies"].as_array().expect("a package has dependencies") {
            // Only our own crates are path dependencies.
            if dependency["path"].is_string() {
                let to = short_name(dependency["name"].as_str().expect("a dependency has a name"));
                // Tests of any crate may use the testing crate.
                if to == "testing" && dependency["kind"] == "dev" {
                    continue;
                }
                edges.push(Edge { from: from.clone(), to });
            }
        }
    }
    edges
}

fn source_files(packages: &[Value]) -> Vec<SourceFile> {
    let mut files = Vec::new();
    for manifest in manifest_paths(packages) {
        collect_sources(&manifest.with_file_name("src"), &mut files);
    }
    files
}

fn manifests(packages: &[Value]) -> Vec<SourceFile> {
    manifest_paths(packages).map(|path| read_source(&path)).collect()
}

fn manifest_paths(packages: &[Value]) -> impl Iterator<Item = PathBuf> {
    packages.iter().map(|package| {
        PathBuf::from(package["manifest_path"].as_str().expect("a package has a manifest"))
    })
}

fn collect_sources(folder: &Path, files: &mut Vec<SourceFile>) {
    for entry in fs::read_dir(folder).expect("a crate has sources") {
        let path = entry.expect("a folder can be read").path();
        if path.is_dir() {
            collect_sources(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(read_source(&path));
        }
    }
}

fn read_source(path: &Path) -> SourceFile {
    let relative = path.strip_prefix(root_folder()).expect("it lies in the workspace");
    let parts: Vec<_> = relative.iter().map(|part| part.to_string_lossy()).collect();
    SourceFile { path: parts.join("/"), text: fs::read_to_string(path).expect("it is text") }
}

#[track_caller]
fn check(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

// The project follows the rules.

#[test]
fn every_edge_between_crates_is_in_the_table() {
    let edges = workspace_edges(&workspace_packages());
    assert!(edges.contains(&Edge { from: "gate".into(), to: "contract".into() }), "{edges:?}");
    check(&edges_outside_the_table(&edges));
}

#[test]
fn every_crate_is_in_the_table() {
    let packages = workspace_packages();
    let names: Vec<String> =
        packages.iter().filter_map(|package| package["name"].as_str()).map(short_name).collect();
    assert!(names.contains(&"cli".to_owned()), "{names:?}");
    check(&crates_outside_the_table(&names));
}

#[test]
fn every_crate_takes_over_the_lints() {
    let manifests = manifests(&workspace_packages());
    assert!(!manifests.is_empty());
    check(&crates_without_the_workspace_lints(&manifests));
}

#[test]
fn source_files_keep_the_rules() {
    let files = source_files(&workspace_packages());
    assert!(files.iter().any(|file| file.path == "contract/src/lib.rs"));
    check(&overlong_files(&files));
    check(&files_without_an_opening(&files));
    check(&ill_named_files(&files));
    check(&ill_named_inline_modules(&files));
}

#[test]
fn pure_crates_name_nothing_of_the_world() {
    let files = source_files(&workspace_packages());
    for name in PURE_CRATES {
        assert!(files.iter().any(|file| file.is_in_crate(&[name])), "no files of `{name}`");
    }
    check(&impure_paths_in_pure_crates(&files));
}

#[test]
fn every_path_on_the_architecture_page_is_there() {
    let root = root_folder();
    let page = fs::read_to_string(root.join("ARCHITECTURE.md")).expect("there is a page");
    assert!(page.contains("`contract/src/json/parse.rs`"));
    check(&dead_paths(&page, |path| root.join(path).exists()));
}

#[test]
fn every_decision_is_listed() {
    let folder = root_folder().join("docs/decisions");
    let index = fs::read_to_string(folder.join("README.md")).expect("there is an index");
    let names = fs::read_dir(folder).expect("there are decisions").map(|entry| {
        entry.expect("a folder can be read").file_name().to_string_lossy().into_owned()
    });
    let records: Vec<String> = names.filter(|name| name != "README.md").collect();
    assert!(!records.is_empty());
    check(&unlisted_records(&index, &records));
}

// The rules can fail.

fn edge(from: &str, to: &str) -> Edge {
    Edge { from: from.to_owned(), to: to.to_owned() }
}

#[test]
fn an_edge_outside_the_table_is_found() {
    let good = [edge("gate", "contract"), edge("store", "gate"), edge("cli", "hosts")];
    check(&edges_outside_the_table(&good));
    for bad in [
        edge("contract", "gate"),
        edge("wire", "gate"),
        edge("gate", "store"),
        edge("engine", "hosts"),
        edge("gateway", "directory"),
        edge("directory", "gateway"),
        edge("cli", "bench"),
        edge("cli", "nobody-knows"),
        edge("nobody-knows", "contract"),
    ] {
        assert_eq!(edges_outside_the_table(&[bad]).len(), 1);
    }
    assert_eq!(crates_outside_the_table(&["gate".to_owned(), "extras".to_owned()]).len(), 1);
}

#[test]
fn a_file_is_overlong_from_one_line_past_the_limit() {
    let at_limit = "x\n".repeat(MAX_FILE_LINES);
    let past = "x\n".repeat(MAX_FILE_LINES + 1);
    check(&overlong_files(&[SourceFile::made_up("gate/src/pins.rs", &at_limit)]));
    check(&overlong_files(&[SourceFile::made_up("gate/src/pins/tests.rs", &past)]));
    assert_eq!(overlong_files(&[SourceFile::made_up("gate/src/pins.rs", &past)]).len(), 1);
}

#[test]
fn a_file_without_an_opening_is_found() {
    check(&files_without_an_opening(&[
        SourceFile::made_up("gate/src/pins.rs", "//! Pins.\n"),
        SourceFile::made_up("gate/src/pins/tests.rs", "use super::*;\n"),
    ]));
    for text in ["use std::fmt;\n", "", "// Pins.\n", "//!\n"] {
        let file = SourceFile::made_up("gate/src/pins.rs", text);
        assert_eq!(files_without_an_opening(&[file]).len(), 1, "{text:?}");
    }
}

#[test]
fn an_empty_name_is_found() {
    check(&ill_named_files(&[
        SourceFile::made_up("gate/src/pins.rs", ""),
        SourceFile::made_up("gate/src/helpful.rs", ""),
    ]));
    for path in ["gate/src/pins/mod.rs", "gate/src/utils.rs", "gate/src/common/pins.rs"] {
        assert_eq!(ill_named_files(&[SourceFile::made_up(path, "")]).len(), 1, "{path}");
    }
    check(&ill_named_inline_modules(&[SourceFile::made_up(
        "gate/src/pins.rs",
        "mod utility;\n// mod helpers\n",
    )]));
    for text in ["mod helpers;\n", "    pub(crate) mod util {\n", "pub mod types;"] {
        let file = SourceFile::made_up("gate/src/pins.rs", text);
        assert_eq!(ill_named_inline_modules(&[file]).len(), 1, "{text:?}");
    }
}

#[test]
fn a_pure_crate_that_names_the_world_is_found() {
    let pure = "use std::{fmt, time::Duration};\nuse std::io::Write;\n// std::fs is not used\nlet x = env!(\"A\");";
    check(&impure_paths_in_pure_crates(&[
        SourceFile::made_up("gate/src/pins.rs", pure),
        SourceFile::made_up("store/src/lib.rs", "use std::fs;"),
        SourceFile::made_up("gate/src/pins/tests.rs", "use std::fs;"),
    ]));
    for text in [
        "use std::fs;",
        "use std::fs::File;",
        "use std::{fmt, fs};",
        "use std::{\n    collections::{BTreeMap, BTreeSet},\n    time::{Duration, Instant},\n};",
        "let now = std::time::SystemTime::now();",
        "use std::time;",
        "use std::time::*;",
        "use std::env as environment;",
        "use std::{fmt::{self, Write}, net::TcpStream};",
        "let address = std :: net :: Ipv4Addr::LOCALHOST;",
        "tokio::spawn(work());",
    ] {
        let file = SourceFile::made_up("contract/src/json.rs", text);
        assert_eq!(impure_paths_in_pure_crates(&[file]).len(), 1, "{text:?}");
    }
}

#[test]
fn a_path_that_is_gone_is_found() {
    let page = "see `gate/src/pins.rs`, `gate/src/gone.rs` and `cargo run -- a/b`, or `pin`";
    assert_eq!(dead_paths(page, |path| path == "gate/src/pins.rs").len(), 1);
}

#[test]
fn a_decision_that_is_not_listed_is_found() {
    let records = ["0001-one.md".to_owned(), "0002-two.md".to_owned()];
    assert_eq!(unlisted_records("| [0001](0001-one.md) | One |", &records).len(), 1);
}

#[test]
fn a_crate_without_the_lints_is_found() {
    check(&crates_without_the_workspace_lints(&[SourceFile::made_up(
        "gate/Cargo.toml",
        "[lib]\n\n[lints]\nworkspace = true\n",
    )]));
    for text in ["[lib]\n", "[lints]\nrust = {}\n", "[workspace]\nworkspace = true\n"] {
        let manifest = SourceFile::made_up("gate/Cargo.toml", text);
        assert_eq!(crates_without_the_workspace_lints(&[manifest]).len(), 1, "{text:?}");
    }
}
