//! Reads the vectors of `conformance/attestation`. The library's and the program's tests share this
//! file.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// A document, what it is checked against, and the expected result.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) now: String,
    pub(crate) scheme: String,
    pub(crate) required: String,
    pub(crate) host: Option<String>,
    pub(crate) trust_root: String,
    pub(crate) revocations: Option<String>,
    /// The document's bytes.
    pub(crate) document: String,
    /// `verdict`, `clause`, `reason`, `clearance` and `signer`.
    pub(crate) expect: Value,
}

const MEMBERS: [&str; 10] = [
    "name",
    "why",
    "now",
    "scheme",
    "required",
    "host",
    "trust_root",
    "revocations",
    "document",
    "expect",
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/attestation")
}

/// The eleven cases of the specification's appendix D, in order.
pub(crate) fn appendix_d() -> Vec<Case> {
    read("appendix-d")
}

/// All other cases.
pub(crate) fn more() -> Vec<Case> {
    read("more")
}

fn read(name: &str) -> Vec<Case> {
    let files = fs::read_dir(folder().join(name)).expect("a folder of vectors");
    let mut paths: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
    paths.sort();
    paths.iter().map(|path| read_case(path)).collect()
}

fn read_case(path: &Path) -> Case {
    let text = fs::read_to_string(path).expect("a vector");
    let case: Value = serde_json::from_str(&text).expect("a vector is JSON");
    for member in case.as_object().expect("a vector is an object").keys() {
        let is_known = MEMBERS.contains(&member.as_str()) || member == "text";
        assert!(is_known, "{}: `{member}` is not known", path.display());
    }
    let text = |member: &str| {
        case[member].as_str().unwrap_or_else(|| panic!("`{member}` is text")).to_owned()
    };
    let name = text("name");
    assert_eq!(path.file_stem().and_then(|stem| stem.to_str()), Some(name.as_str()));
    assert!(case["why"].is_string(), "{name} says why it is there");
    Case {
        name,
        now: text("now"),
        scheme: text("scheme"),
        required: text("required"),
        host: case["host"].as_str().map(str::to_owned),
        trust_root: case["trust_root"].to_string(),
        revocations: case.get("revocations").filter(|list| !list.is_null()).map(Value::to_string),
        document: case.get("text").map_or_else(
            || case["document"].to_string(),
            |text| text.as_str().expect("`text` is text").to_owned(),
        ),
        expect: case["expect"].clone(),
    }
}
