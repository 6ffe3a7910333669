//! The output of `scripts/dist`: an SBOM and a bundle that other programs can read.

use crate::bench::*;
use crate::station::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn target() -> &'static str {
    if cfg!(target_os = "macos") { "aarch64-apple-darwin" } else { "x86_64-unknown-linux-gnu" }
}

/// A release of a program that only supports what the script needs.
fn made(station: &Station, words: &[&str]) -> (Answer, PathBuf) {
    station
        .program("stand-in", "#!/bin/sh\ncase $1 in man) mkdir -p \"$3\";; esac\necho stand-in\n");
    let out = station.bench.path("dist");
    let mut command = Command::new(root().join("scripts/dist"));
    command.arg("--binary").arg(station.bench.path("bin/stand-in")).args(["--target", target()]);
    command.arg("--out").arg(&out).args(words).stdin(Stdio::null());
    station.surround(&mut command);
    command.env("SOURCE_DATE_EPOCH", now().to_string());
    (answer(command), out)
}

/// Today at noon, so that two releases in one test get the same time.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    since - since % DAY_SECONDS + DAY_SECONDS / 2
}

const DAY_SECONDS: u64 = 86_400;

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn file(out: &Path, end: &str) -> PathBuf {
    let files = fs::read_dir(out).unwrap().map(|file| file.unwrap().path());
    let mut fitting = files.filter(|path| path.to_str().unwrap().ends_with(end));
    fitting.next().unwrap()
}

#[test]
fn a_release_is_complete_signed_and_made_twice_the_same() {
    let station = Station::new();
    let key = station.bench.path("key.pem");
    station.run(&["attest", "keygen", key.to_str().unwrap()]).exits(0);
    let words = ["--key", key.to_str().unwrap(), "--contact", "mailto:security@example.org"];
    let (answer, out) = made(&station, &words);
    answer.exits(0).never_says("not signed").never_says("not made");
    let ends = [
        ".tar.gz",
        ".cdx.json",
        ".spdx.json",
        ".mcpb",
        ".tgz",
        ".whl",
        "install.sh",
        "security.txt",
        "release-key.pem",
    ];
    for end in ends {
        assert!(file(&out, end).exists());
    }
    let sums = fs::read_to_string(out.join("SHA256SUMS")).unwrap();
    assert_eq!(sums.lines().count(), 9, "{sums}");
    let script = fs::read_to_string(out.join("install.sh")).unwrap();
    let public = fs::read_to_string(out.join("release-key.pem")).unwrap();
    assert!(script.contains(public.trim_end()), "the installer has the key");
    let (answer, out) = made(&station, &words);
    answer.exits(0);
    assert_eq!(fs::read_to_string(out.join("SHA256SUMS")).unwrap(), sums);
}

#[test]
fn a_release_without_a_key_says_so() {
    let station = Station::new();
    let (answer, out) = made(&station, &[]);
    answer.exits(0).says("not signed");
    assert!(!out.join("SHA256SUMS.sig").exists());
    let (answer, _) = made(&station, &["--key", "nowhere.pem"]);
    answer.exits(1).says("nowhere.pem");
    let (answer, _) = made(&station, &["--fast"]);
    answer.exits(2).says("unknown option");
}

#[test]
fn a_folder_with_something_else_in_it_is_left_alone() {
    let station = Station::new();
    let out = station.bench.path("dist");
    fs::create_dir(&out).unwrap();
    fs::write(out.join("thesis"), "").unwrap();
    let (answer, _) = made(&station, &[]);
    answer.exits(1).says("something else in it");
    assert!(out.join("thesis").exists());
}

#[test]
fn the_list_of_parts_has_what_is_linked_and_nothing_else() {
    let station = Station::new();
    let (answer, out) = made(&station, &[]);
    answer.exits(0);
    let document = read_json(&file(&out, ".cdx.json"));
    assert_eq!(
        (&document["bomFormat"], &document["specVersion"]),
        (&json!("CycloneDX"), &json!("1.6"))
    );
    assert_eq!(document["metadata"]["component"]["name"], "holdpoint");
    let components = document["components"].as_array().unwrap();
    let names: BTreeSet<&str> =
        components.iter().map(|component| component["name"].as_str().unwrap()).collect();
    for linked in ["holdpoint-engine", "ring", "rusqlite", "serde_json"] {
        assert!(names.contains(linked), "{linked} is linked");
    }
    for other in ["proptest", "clap_derive", "cc", "serde_derive"] {
        assert!(!names.contains(other), "{other} is not in the binary");
    }
    let references: Vec<&Value> = components
        .iter()
        .chain([&document["metadata"]["component"]])
        .map(|component| &component["bom-ref"])
        .collect();
    for dependency in document["dependencies"].as_array().unwrap() {
        let uses = dependency["dependsOn"].as_array().unwrap().iter();
        for reference in uses.chain([&dependency["ref"]]) {
            assert!(references.contains(&reference), "{reference} is not described");
        }
    }
}

#[test]
fn both_lists_of_parts_say_the_same() {
    let station = Station::new();
    let (answer, out) = made(&station, &[]);
    answer.exits(0);
    let (cyclonedx, spdx) =
        (read_json(&file(&out, ".cdx.json")), read_json(&file(&out, ".spdx.json")));
    assert_eq!(
        (&spdx["spdxVersion"], &spdx["dataLicense"]),
        (&json!("SPDX-2.3"), &json!("CC0-1.0"))
    );
    assert_eq!(spdx["SPDXID"], "SPDXRef-DOCUMENT");
    assert!(spdx["documentNamespace"].as_str().unwrap().starts_with("urn:uuid:"));
    let created = spdx["creationInfo"]["created"].as_str().unwrap();
    assert!(created.len() == 20 && created.ends_with("T12:00:00Z"), "{created}");
    assert!(spdx["creationInfo"]["creators"][0].as_str().unwrap().starts_with("Tool: "));
    let described = |package: &Value| {
        let checksum = &package["checksums"][0]["checksumValue"];
        (package["externalRefs"][0]["referenceLocator"].clone(), checksum.clone())
    };
    let packages = spdx["packages"].as_array().unwrap();
    let components = cyclonedx["components"].as_array().unwrap().iter();
    let components = components.chain([&cyclonedx["metadata"]["component"]]);
    let expected: BTreeSet<String> = components
        .map(|part| format!("{:?}", (part["purl"].clone(), part["hashes"][0]["content"].clone())))
        .collect();
    let found: BTreeSet<String> =
        packages.iter().map(|package| format!("{:?}", described(package))).collect();
    assert_eq!(found, expected);
    // The members that the specification requires for each package, and unique identifiers.
    let mut identifiers = BTreeSet::from(["SPDXRef-DOCUMENT"]);
    for package in packages {
        for name in ["name", "downloadLocation", "licenseDeclared", "licenseConcluded"] {
            assert!(package[name].is_string(), "{name}: {package}");
        }
        let id = package["SPDXID"].as_str().unwrap();
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-".contains(&byte);
        assert!(id.starts_with("SPDXRef-") && id.bytes().all(is_plain), "{id}");
        assert!(identifiers.insert(id), "{id} twice");
    }
    let relationships = spdx["relationships"].as_array().unwrap();
    assert_eq!(relationships[0]["relationshipType"], "DESCRIBES");
    for relationship in relationships {
        for end in ["spdxElementId", "relatedSpdxElement"] {
            assert!(identifiers.contains(relationship[end].as_str().unwrap()), "{relationship}");
        }
    }
}

#[test]
fn a_release_says_where_to_report_a_vulnerability_for_less_than_a_year() {
    let station = Station::new();
    let (answer, out) = made(&station, &["--contact", "https://example.org/report"]);
    answer.exits(0);
    let text = fs::read_to_string(out.join("security.txt")).unwrap();
    let field = |name: &str| {
        let fields: Vec<&str> =
            text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).collect();
        assert_eq!(fields.len(), 1, "{name}: {text}");
        fields[0].to_owned()
    };
    assert_eq!(field("Contact"), "https://example.org/report");
    assert_eq!(field("Preferred-Languages"), "en");
    let expires =
        contract::time::Timestamp::parse(&field("Expires").replace('Z', ".000Z")).unwrap();
    let days =
        (expires.0 / 1_000 - i64::try_from(now()).unwrap()) / i64::try_from(DAY_SECONDS).unwrap();
    assert!((30..365).contains(&days), "{days} days: {text}");
    assert!(!text.contains('@'), "nothing is left to fill in: {text}");
}

#[test]
fn a_release_without_a_contact_has_no_security_txt_and_says_so() {
    let station = Station::new();
    let (answer, out) = made(&station, &[]);
    answer.exits(0).says("not made: security.txt");
    assert!(!out.join("security.txt").exists());
    for contact in ["security@example.org", "http://example.org", "mailto:", "mailto:a@b c"] {
        let (answer, _) = made(&station, &["--contact", contact]);
        answer.exits(1).says("is not an address");
    }
}

/// Runs the command that the quick reference names.
#[test]
fn the_number_of_dependencies_in_the_quick_reference_is_true() {
    let page = fs::read_to_string(root().join("docs/security-quick-reference.md")).unwrap();
    let mut command = Command::new(root().join("scripts/sbom"));
    command.args(["x86_64-unknown-linux-musl", "--format", "count"]).current_dir(root());
    let answer = answer(command);
    let counted = answer.out.trim().to_owned();
    answer.exits(0);
    let (all, rest) = counted.split_once(" packages: ").unwrap();
    assert!(page.contains(&format!("{all} packages are linked on Linux: {rest}")), "{counted}");
}

#[test]
fn response_times_stand_where_people_look_for_them() {
    let policy = fs::read_to_string(root().join("SECURITY.md")).unwrap();
    for target in [
        "| first answer to a report | 2 business days |",
        "| critical: fix and advisory | 5 business days |",
        "| high: fix and advisory | 15 business days |",
        "72 hours",
    ] {
        assert!(policy.contains(target), "{target}");
    }
}

/// The command in the bundle's manifest must parse.
#[test]
fn the_bundles_manifest_fits_the_program() {
    let manifest = read_json(&root().join("dist/manifest.json"));
    let start = &manifest["server"]["mcp_config"];
    let value = |text: &str| {
        let text = text.replace("${user_config.url}", "http://127.0.0.1:9/mcp");
        text.replace("${user_config.authorization}", "")
    };
    let words: Vec<String> = start["args"]
        .as_array()
        .unwrap()
        .iter()
        .map(|word| value(word.as_str().unwrap()))
        .collect();
    assert!(words.iter().all(|word| !word.contains("${")), "{words:?}");
    let station = Station::new();
    let address = "http://127.0.0.1:9/mcp";
    assert!(!words.iter().any(|word| word.contains(address)), "an address may have a key in it");
    let mut command = station.command(&words);
    for (name, text) in start["env"].as_object().unwrap() {
        command.env(name, value(text.as_str().unwrap()));
    }
    // Nothing listens at this address: the attempt to connect shows that the arguments are valid.
    let answer = answer(command);
    assert_ne!(answer.code, Some(2), "{}", answer.err);
    let entry = manifest["server"]["entry_point"].as_str().unwrap();
    assert_eq!(start["command"].as_str().unwrap(), format!("${{__dirname}}/{entry}"));
}

#[test]
fn the_bundles_manifest_is_valid() {
    let Some(release) = testing::newest_release("mcpb") else { return };
    let station = Station::new();
    let text = fs::read_to_string(root().join("dist/manifest.json")).unwrap();
    let text = text.replace("@VERSION@", "0.1.0").replace("@PLATFORM@", "linux");
    let mcpb = release.join("launch");
    let validate = |text: &str| {
        let path = station.bench.file("manifest.json", text);
        let mut command = Command::new(&mcpb);
        command.arg("validate").arg(path).stdin(Stdio::null());
        answer(command)
    };
    validate(&text).exits(0);
    validate(&text.replace("\"binary\"", "\"magic\"")).exits(1);
}
