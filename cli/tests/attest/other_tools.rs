//! Interoperability with openssl and Python's `cryptography`: each side accepts the other's keys
//! and signatures.
//!
//! `scripts/install-test-tools` installs the Python package along with the test servers. If a tool
//! is missing, the tests report it; with `CI=true` they fail.

use crate::bench::*;
use crate::{draft, verify, write_root};
use attest::UnverifiedAttestation;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PASSPHRASE: &str = "correct horse";

/// The interpreter with the package, if it is installed.
fn python() -> Option<PathBuf> {
    testing::newest_release("cryptography").map(|release| release.join("venv/bin/python"))
}

fn openssl() -> Option<PathBuf> {
    if Command::new("openssl").arg("version").output().is_ok() {
        return Some(PathBuf::from("openssl"));
    }
    testing::not_run("openssl is not installed: run ./scripts/install-test-tools");
    None
}

/// Runs a tool in the test's folder. Returns whether it succeeded.
fn tool(bench: &Bench, program: &Path, words: &[impl AsRef<OsStr>]) -> bool {
    let folder = bench.path("draft.json");
    let mut command = Command::new(program);
    command.args(words).current_dir(folder.parent().unwrap()).env("PHRASE", PASSPHRASE);
    command.output().unwrap().status.success()
}

/// Writes the signed bytes of a document and its signature to files.
fn take_apart(bench: &Bench, name: &str) {
    let bytes = fs::read(bench.path(name)).unwrap();
    let document: Value = serde_json::from_slice(&bytes).unwrap();
    bench.file("body.bin", UnverifiedAttestation::parse(&bytes).unwrap().canonical_body());
    bench.file("signature.b64", document["signature"].as_str().unwrap_or_default());
}

/// A document that names its signer but has no signature.
fn named() -> Value {
    let mut document = draft();
    document["signerKeyId"] = json!("acme-2026");
    document
}

fn with_signature(bench: &Bench) {
    let mut document = named();
    document["signature"] = fs::read_to_string(bench.path("signature.b64")).unwrap().trim().into();
    bench.file("signed.json", document.to_string());
}

fn sign_here(bench: &Bench, key: &str, more: &[&str]) {
    let words = ["attest", "sign", "draft.json", "--key", key, "-o", "signed.json"];
    let mut command = bench.command(words.iter().chain(more));
    command.env("PHRASE", PASSPHRASE);
    answer(command).exits(0);
}

fn keygen(bench: &Bench, name: &str, more: &[&str]) {
    let mut command = bench.command(["attest", "keygen", name].iter().chain(more));
    command.env("PHRASE", PASSPHRASE);
    answer(command).exits(0);
}

fn prepared() -> Bench {
    let bench = Bench::new();
    bench.file("draft.json", named().to_string());
    bench
}

fn openssl_verifies(bench: &Bench, program: &Path, public: &str) -> bool {
    assert!(tool(
        bench,
        program,
        &["base64", "-d", "-A", "-in", "signature.b64", "-out", "signature.bin"]
    ));
    tool(
        bench,
        program,
        &[
            "pkeyutl",
            "-verify",
            "-pubin",
            "-inkey",
            public,
            "-rawin",
            "-in",
            "body.bin",
            "-sigfile",
            "signature.bin",
        ],
    )
}

#[test]
fn openssl_verifies_what_is_signed_here() {
    let Some(program) = openssl() else { return };
    let bench = prepared();
    keygen(&bench, "key.pem", &[]);
    sign_here(&bench, "key.pem", &[]);
    take_apart(&bench, "signed.json");
    assert!(openssl_verifies(&bench, &program, "key.pem.pub"));
    bench.file("body.bin", "something else");
    assert!(!openssl_verifies(&bench, &program, "key.pem.pub"));
}

#[test]
fn openssl_signs_with_keys_from_here_and_it_counts() {
    let Some(program) = openssl() else { return };
    for (more, pass) in
        [(&[][..], &[][..]), (&["--passphrase", "env:PHRASE"], &["-passin", "env:PHRASE"])]
    {
        let bench = prepared();
        keygen(&bench, "key.pem", more);
        take_apart(&bench, "draft.json");
        let sign = [
            "pkeyutl",
            "-sign",
            "-inkey",
            "key.pem",
            "-rawin",
            "-in",
            "body.bin",
            "-out",
            "signature.bin",
        ];
        let sign: Vec<&str> = sign.iter().chain(pass).copied().collect();
        assert!(tool(&bench, &program, &sign), "openssl does not take the key");
        assert!(tool(
            &bench,
            &program,
            &["base64", "-A", "-in", "signature.bin", "-out", "signature.b64"]
        ));
        with_signature(&bench);
        write_root(&bench, "acme-2026", &bench.path("key.pem.pub"));
        bench.run(verify("signed.json", &[])).exits(0);
    }
}

#[test]
fn keys_of_openssl_sign_here() {
    let Some(program) = openssl() else { return };
    let bench = prepared();
    assert!(tool(&bench, &program, &["genpkey", "-algorithm", "ed25519", "-out", "key.pem"]));
    assert!(tool(&bench, &program, &["pkey", "-in", "key.pem", "-pubout", "-out", "key.pub"]));
    write_root(&bench, "acme-2026", &bench.path("key.pub"));
    let plain = ["pkcs8", "-topk8", "-in", "key.pem", "-passout", "env:PHRASE"];
    for (name, options) in [
        ("aes.pem", &["-v2", "aes-256-cbc"][..]),
        ("aes128.pem", &["-v2", "aes-128-cbc", "-v2prf", "hmacWithSHA512"]),
        ("scrypt.pem", &["-scrypt"]),
    ] {
        let words: Vec<&str> =
            plain.iter().chain(&["-out", name]).chain(options).copied().collect();
        assert!(tool(&bench, &program, &words), "{name}");
        sign_here(&bench, name, &["--passphrase", "env:PHRASE"]);
        bench.run(verify("signed.json", &[])).exits(0);
    }
    sign_here(&bench, "key.pem", &[]);
    bench.run(verify("signed.json", &[])).exits(0);
}

const PYTHON: &str = r#"
import base64, pathlib, sys
from cryptography.hazmat.primitives import serialization as s
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
act, passphrase = sys.argv[1], (sys.argv[2].encode() if len(sys.argv) > 2 else None)
body, signature = pathlib.Path("body.bin"), pathlib.Path("signature.b64")
if act == "generate":
    key = Ed25519PrivateKey.generate()
    how = s.BestAvailableEncryption(passphrase) if passphrase else s.NoEncryption()
    pathlib.Path("key.pem").write_bytes(key.private_bytes(s.Encoding.PEM, s.PrivateFormat.PKCS8, how))
    public = key.public_key().public_bytes(s.Encoding.PEM, s.PublicFormat.SubjectPublicKeyInfo)
    pathlib.Path("key.pem.pub").write_bytes(public)
elif act == "sign":
    key = s.load_pem_private_key(pathlib.Path("key.pem").read_bytes(), passphrase)
    signature.write_text(base64.b64encode(key.sign(body.read_bytes())).decode())
else:
    key = s.load_pem_public_key(pathlib.Path("key.pem.pub").read_bytes())
    key.verify(base64.b64decode(signature.read_text()), body.read_bytes())
"#;

fn run_python(bench: &Bench, program: &Path, act: &str, passphrase: Option<&str>) -> bool {
    let words: Vec<&str> = ["-c", PYTHON, act].into_iter().chain(passphrase).collect();
    tool(bench, program, &words)
}

#[test]
fn python_verifies_what_is_signed_here() {
    let Some(program) = python() else { return };
    let bench = prepared();
    keygen(&bench, "key.pem", &[]);
    sign_here(&bench, "key.pem", &[]);
    take_apart(&bench, "signed.json");
    assert!(run_python(&bench, &program, "verify", None));
    bench.file("body.bin", "something else");
    assert!(!run_python(&bench, &program, "verify", None));
}

#[test]
fn python_signs_with_keys_from_here_and_it_counts() {
    let Some(program) = python() else { return };
    for (more, passphrase) in [(&[][..], None), (&["--passphrase", "env:PHRASE"], Some(PASSPHRASE))]
    {
        let bench = prepared();
        keygen(&bench, "key.pem", more);
        take_apart(&bench, "draft.json");
        assert!(run_python(&bench, &program, "sign", passphrase), "Python does not take the key");
        with_signature(&bench);
        write_root(&bench, "acme-2026", &bench.path("key.pem.pub"));
        bench.run(verify("signed.json", &[])).exits(0);
    }
}

#[test]
fn keys_of_python_sign_here() {
    let Some(program) = python() else { return };
    for (passphrase, more) in [(None, &[][..]), (Some(PASSPHRASE), &["--passphrase", "env:PHRASE"])]
    {
        let bench = prepared();
        assert!(run_python(&bench, &program, "generate", passphrase));
        write_root(&bench, "acme-2026", &bench.path("key.pem.pub"));
        sign_here(&bench, "key.pem", more);
        bench.run(verify("signed.json", &[])).exits(0);
    }
}
