//! Runs the vectors of `conformance/attestation` through the program, and compares verdict, clause
//! and exit code.

use crate::bench::*;
use crate::case::{self, Case};
use serde_json::Value;

fn run(bench: &Bench, case: &Case) -> Answer {
    bench.file("document.json", &case.document);
    bench.file("root.json", &case.trust_root);
    let mut words = vec![
        "attest",
        "verify",
        "document.json",
        "--trust-root",
        "root.json",
        "--json",
        "--required",
        &case.required,
        "--scheme",
        &case.scheme,
        "--now",
        &case.now,
    ];
    if let Some(host) = &case.host {
        words.extend(["--host", host]);
    }
    if let Some(list) = &case.revocations {
        bench.file("revocations.json", list);
        words.extend(["--revocations", "revocations.json"]);
    }
    bench.run(words)
}

#[track_caller]
fn check(cases: &[Case]) {
    let bench = Bench::new();
    for case in cases {
        let exit = if case.expect["verdict"] == "ADMIT" { 0 } else { 13 };
        let answer = run(&bench, case).exits(exit);
        assert_eq!(answer.json(), case.expect, "{}", case.name);
        // Only the document is printed, with exactly these members.
        let members: Vec<&String> = case.expect.as_object().unwrap().keys().collect();
        assert_eq!(members, ["verdict", "clause", "reason", "clearance", "signer"]);
        assert_eq!(answer.err, "", "{}", case.name);
    }
}

#[test]
fn the_program_says_of_the_eleven_vectors_what_the_specification_says() {
    let cases = case::appendix_d();
    assert_eq!(cases.len(), 11);
    check(&cases);
}

#[test]
fn the_program_says_of_every_other_vector_what_is_expected() {
    let cases = case::more();
    assert!(cases.len() >= 25);
    check(&cases);
}

#[test]
fn a_person_is_told_the_clause_and_the_reason() {
    let bench = Bench::new();
    let cases = case::appendix_d();
    let run = |number: usize| {
        let case: &Case = &cases[number];
        bench.file("document.json", &case.document);
        bench.file("root.json", &case.trust_root);
        let words = [
            "attest",
            "verify",
            "document.json",
            "--trust-root",
            "root.json",
            "--required",
            "restricted-plus",
        ];
        bench.run(words.into_iter().chain(["--now", &case.now]))
    };
    run(0).exits(0).says("ADMIT  mcp.example.mail 2.3.1, level RESTRICTED-PLUS, signed by S");
    run(5).exits(13).says("DENY (e)  signer_not_approved: the signer `S` is not approved");
}

#[test]
fn what_is_wrong_with_the_question_is_told() {
    let bench = Bench::new();
    let case = &case::appendix_d()[0];
    bench.file("document.json", &case.document);
    bench.file("root.json", &case.trust_root);
    bench.file("bad-root.json", r#"{"v":1,"signers":[{}]}"#);
    let verify = |root: &str, required: &str, scheme: &str| {
        bench.run([
            "attest",
            "verify",
            "document.json",
            "--trust-root",
            root,
            "--required",
            required,
            "--scheme",
            scheme,
            "--json",
        ])
    };
    let message = |answer: Answer| -> String {
        let document: Value = answer.exits(2).json();
        document["error"]["message"].as_str().unwrap().to_owned()
    };
    assert!(message(verify("root.json", "ultra", "default")).contains("it has PUBLIC, INTERNAL"));
    assert!(message(verify("root.json", "public", "nowhere")).contains("generic-3-tier"));
    assert!(
        message(verify("bad-root.json", "public", "default"))
            .contains("signer 0: `publicKeyPem` is missing")
    );
    assert!(message(verify("no-root.json", "public", "default")).contains("no-root.json"));
}
