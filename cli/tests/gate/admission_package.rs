//! A server bound to the package that it was installed from, end to end: a real server installed by
//! bun, and started through its own file, through `node` and through `npx`.
//!
//! `scripts/install-test-tools` installs it in `HOLDPOINT_TEST_SERVERS`, or else `.cache/servers`.
//! If it is missing, the tests report it; with `CI=true` they fail.

use crate::bench::{Bench, ID};
use crate::client::{Client, DENIED, Ended, refused};
use attest::{Digest, Draft, SigningKey};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

const NAME: &str = "@modelcontextprotocol/server-filesystem";

fn key() -> SigningKey {
    SigningKey::from_seed([8; 32])
}

/// An installed release, and its record, read independently of the product.
struct Release {
    folder: PathBuf,
    version: String,
    integrity: String,
}

impl Release {
    /// The newest release, if it is installed.
    fn find() -> Option<Release> {
        let folder = testing::newest_release("server-filesystem")?;
        let version = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let record = fs::read_to_string(folder.join("bun.lock")).unwrap();
        let line = record.lines().find(|line| line.trim().starts_with(&format!("\"{NAME}\": [")));
        let integrity = line.unwrap().split('"').find(|part| part.starts_with("sha512-")).unwrap();
        let integrity = integrity.to_owned();
        Some(Release { folder, version, integrity })
    }

    fn launch(&self) -> [String; 1] {
        [self.folder.join("launch").to_str().unwrap().to_owned()]
    }
}

/// A home whose configuration requires a document for the server, with these binding lines.
fn prepared(binding: &str, package_digest: Option<&str>) -> Bench {
    let bench = Bench::new();
    let pem = key().public_key().to_pem().unwrap();
    let signer = json!({ "keyId": "acme", "publicKeyPem": pem, "approvedClearance": ["internal"] });
    bench.file("root.json", json!({ "v": 1, "signers": [signer] }).to_string());
    let mut document = json!({
        "v": 2, "id": "mcp.example.files", "publisher": "acme", "version": "1",
        "clearance": "internal", "capabilities": ["mcp-server"], "verification": "tested",
        "signerKeyId": "acme",
    });
    if let Some(digest) = package_digest {
        document["packageDigest"] = json!(digest);
    }
    let signed = Draft::parse(document.to_string().as_bytes()).unwrap().sign(&key()).unwrap();
    bench.file("signed.json", signed);
    bench.run(["status"]).exits(0);
    bench.configure(&format!(
        "[admission]\ntrust_root = \"../root.json\"\nrequired = \"internal\"\n[server.{ID}.admission]\nattestation = \"../signed.json\"\nallow_tools = [\"list_allowed_directories\"]\n{binding}\n"
    ));
    bench
}

fn package(name: &str, version: &str, integrity: &str) -> String {
    format!("package = \"{name}\"\nversion = \"{version}\"\nintegrity = \"{integrity}\"")
}

/// A session with a server started by these words.
fn session(bench: &Bench, folder: &Path, words: &[String]) -> (Value, Ended) {
    let place = bench.path("place");
    fs::create_dir_all(&place).unwrap();
    let mut command = bench.command(["run", "--server", ID, "--"]);
    command.args(words).arg(&place).current_dir(folder).env("NO_UPDATE_NOTIFIER", "1");
    let mut client = Client::start(command);
    client.begin();
    let answer = client.call("list_allowed_directories", &json!({}));
    (answer, client.end())
}

#[track_caller]
fn is_admitted(bench: &Bench, release: &Release, words: &[String]) {
    let (answer, ended) = session(bench, &release.folder, words);
    assert!(answer.get("result").is_some(), "{words:?}: {answer}\n{}", ended.errors);
}

/// Asserts that the call is refused because of the server's binding, and that standard error names
/// what was found.
#[track_caller]
fn is_not_bound(bench: &Bench, release: &Release, words: &[String], told: &str) {
    let (answer, ended) = session(bench, &release.folder, words);
    assert_eq!(refused(&answer, DENIED)["reason"], "host_not_bound", "{words:?}");
    assert!(ended.errors.contains(told), "{told}: {}", ended.errors);
    // The finding is for the user, not for the model.
    assert!(!answer.to_string().contains("sha512-"), "{answer}");
}

#[test]
fn a_server_bound_to_its_package_is_admitted_and_to_any_other_it_is_not() {
    let Some(release) = Release::find() else { return };
    let Release { version, integrity, .. } = &release;
    let words = release.launch();
    is_admitted(&prepared(&package(NAME, version, integrity), None), &release, &words);
    let other = Digest::sha256(b"another archive").to_string();
    let found = format!("`{NAME}` in version `{version}` with the integrity `{integrity}`");
    for binding in [
        package("@modelcontextprotocol/server-memory", version, integrity),
        package(NAME, "2025.8.21", integrity),
        package(NAME, version, &other),
        format!("{}\nprogram_digest = \"{other}\"", package(NAME, version, integrity)),
        String::new(),
    ] {
        let told = if binding.contains("program_digest") { "configured digest" } else { &found };
        is_not_bound(&prepared(&binding, None), &release, &words, told);
    }
}

#[test]
fn a_document_may_name_the_archive_of_the_package() {
    let Some(release) = Release::find() else { return };
    let words = release.launch();
    is_admitted(&prepared("", Some(&release.integrity)), &release, &words);
    let other = Digest::sha256(b"another archive").to_string();
    is_not_bound(&prepared("", Some(&other)), &release, &words, &release.integrity);
}

#[test]
fn the_package_is_found_behind_node_and_behind_npx() {
    let Some(release) = Release::find() else { return };
    let Release { folder, version, integrity } = &release;
    // Each with its own home: a different way to start the server is a different origin.
    let bench = || prepared(&package(NAME, version, integrity), None);
    let words = |line: String| line.split(' ').map(str::to_owned).collect::<Vec<String>>();
    let script = format!("node_modules/{NAME}/dist/index.js");
    assert!(folder.join(&script).is_file());
    is_admitted(&bench(), &release, &words(format!("node {script}")));
    let loaded = format!("node --import data:text/javascript, {script}");
    is_not_bound(&bench(), &release, &words(loaded), "`--import`");
    let told = format!("env NODE_OPTIONS=--import=data:text/javascript, npx --offline {NAME}");
    is_not_bound(&bench(), &release, &words(told), "`NODE_OPTIONS` in the environment");
    if !cfg!(target_os = "linux") || std::process::Command::new("npx").arg("-v").output().is_err() {
        testing::not_run("the processes of `npx` cannot be seen here, or it is not there");
        return;
    }
    // The package is installed, so `npx` has nothing to fetch.
    is_admitted(&bench(), &release, &words(format!("npx --offline {NAME}")));
    is_admitted(&bench(), &release, &words(format!("npx --offline {NAME}@{version}")));
    let told = words(format!("npx --offline --node-options=--no-warnings {NAME}"));
    is_not_bound(&bench(), &release, &told, "`--node-options=--no-warnings`");
    // The name of the program is not the name of the package.
    let program = words("npx --offline mcp-server-filesystem".to_owned());
    is_not_bound(&bench(), &release, &program, "none of the server's processes");
}

#[test]
fn an_upgrade_under_a_running_server_ends_its_admission_until_it_is_started_again() {
    let Some(release) = Release::find() else { return };
    let Release { version, integrity, .. } = &release;
    let bench = prepared(&package(NAME, version, integrity), None);
    let configuration = fs::read_to_string(bench.home().join("holdpoint.toml")).unwrap();
    bench.configure(&configuration.replace("[admission]\n", "[admission]\ncache_seconds = 0\n"));
    // Copy only the files that identify the package; the program imports the rest.
    let folder = bench.path("installed");
    let inside = folder.join("node_modules").join(NAME);
    fs::create_dir_all(&inside).unwrap();
    for file in ["package.json", "bun.lock"] {
        let from =
            if file == "bun.lock" { file.into() } else { format!("node_modules/{NAME}/{file}") };
        let to = if file == "bun.lock" { folder.join(file) } else { inside.join(file) };
        fs::copy(release.folder.join(from), to).unwrap();
    }
    let server = release.folder.join("node_modules").join(NAME).join("dist/index.js");
    let import = format!("import({:?});\n", format!("file://{}", server.display()));
    fs::write(inside.join("start.cjs"), import).unwrap();
    let place = bench.path("place");
    fs::create_dir_all(&place).unwrap();
    let mut command = bench.command(["run", "--server", ID, "--", "node"]);
    command.arg(inside.join("start.cjs")).arg(&place);
    let mut client = Client::start(command);
    client.begin();
    let mut call = || client.call("list_allowed_directories", &json!({}));
    assert!(call().get("result").is_some());
    let record = fs::read_to_string(folder.join("bun.lock")).unwrap();
    let other = Digest::sha256(b"another archive").to_string();
    fs::write(folder.join("bun.lock"), record.replace(integrity.as_str(), &other)).unwrap();
    assert_eq!(refused(&call(), DENIED)["reason"], "host_not_bound");
    fs::write(folder.join("bun.lock"), record).unwrap();
    assert!(call().get("result").is_some());
    let ended = client.end();
    assert!(ended.errors.contains("restart the server"), "{}", ended.errors);
}
