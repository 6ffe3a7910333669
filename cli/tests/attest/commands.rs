//! Keys, signatures, inspecting documents, schemes, and refused input.

use crate::bench::*;
use crate::{draft, verify, write_root};
use serde_json::{Value, json};
use std::fs;

/// A key, a trust root that trusts it, and a signed document.
fn prepared(bench: &Bench) {
    bench.run(["attest", "keygen", "key.pem"]).exits(0).says("not encrypted");
    write_root(bench, "acme-2026", &bench.path("key.pem.pub"));
    bench.file("draft.json", draft().to_string());
    let words = [
        "attest",
        "sign",
        "draft.json",
        "--key",
        "key.pem",
        "--key-id",
        "acme-2026",
        "-o",
        "signed.json",
    ];
    bench.run(words).exits(0).says("signed.json");
}

#[test]
fn what_is_signed_here_is_admitted_here() {
    let bench = Bench::new();
    prepared(&bench);
    let admitted = bench.run(verify("signed.json", &[])).exits(0).json();
    let expected = json!({ "verdict": "ADMIT", "clause": null, "reason": null, "clearance": "INTERNAL", "signer": "acme-2026" });
    assert_eq!(admitted, expected);
    let unsigned = bench.run(verify("draft.json", &[])).exits(13).json();
    assert_eq!(unsigned["reason"], "unsigned");
    let signed = fs::read_to_string(bench.path("signed.json")).unwrap();
    bench.file("tampered.json", signed.replace("mail.example.com", "evil.example.com"));
    let tampered = bench.run(verify("tampered.json", &[])).exits(13).json();
    assert_eq!((&tampered["clause"], &tampered["reason"]), (&json!("f"), &json!("bad_signature")));
}

#[test]
fn a_trust_root_is_made_from_pem_files_by_a_command() {
    let bench = Bench::new();
    prepared(&bench);
    fs::remove_file(bench.path("root.json")).unwrap();
    let add =
        |words: &[&str]| bench.run(["attest", "trust", "add", "root.json"].iter().chain(words));
    add(&["key.pem.pub"]).exits(2).says("--level");
    add(&["key.pem", "--level", "internal"]).exits(2).says("private key").says(".pub");
    assert!(!bench.path("root.json").exists());
    let levels = ["--level", "public", "--level", "internal", "--key-id", "acme-2026"];
    let words = [&["key.pem.pub"][..], &levels, &["--not-after", "2099-01-01"]].concat();
    add(&words).exits(0).says("1 signer").says("acme-2026").says("2099-01-01").says("fingerprint");
    bench.run(verify("signed.json", &[])).exits(0);
    // Each key has one name, and each name one key.
    let before = fs::read(bench.path("root.json")).unwrap();
    add(&["key.pem.pub", "--level", "internal"]).exits(2).says("one key");
    bench.run(["attest", "keygen", "other.pem"]).exits(0);
    let again = add(&["other.pem.pub", "--level", "internal", "--key-id", "acme-2026"]).exits(2);
    again.says("attest trust remove root.json acme-2026");
    add(&["other.pem.pub", "--level", "internal", "--scheme", "default"]).exits(2).says("scheme");
    assert_eq!(fs::read(bench.path("root.json")).unwrap(), before);
    add(&["other.pem.pub", "--may-revoke"]).exits(0).says("2 signers").says("may revoke");
    let remove = |id: &str| bench.run(["attest", "trust", "remove", "root.json", id]);
    remove("acme-2027").exits(2).says("did you mean `acme-2026`?");
    remove("acme-2026").exits(0).says("1 signer").never_says("acme-2026");
    let denied = bench.run(verify("signed.json", &[])).exits(13).json();
    assert_eq!(denied["reason"], "signer_not_trusted");
    // A file that is not a trust root is left unchanged.
    bench.file("root.json", "{\"mine\": true}");
    add(&["other.pem.pub", "--level", "internal"]).exits(2);
    bench.run(["attest", "trust", "list", "root.json"]).exits(2);
    assert_eq!(fs::read_to_string(bench.path("root.json")).unwrap(), "{\"mine\": true}");
}

#[test]
fn what_is_probably_a_slip_in_a_trust_root_is_warned_of() {
    let bench = Bench::new();
    for name in ["one", "two", "three"] {
        bench.run(["attest", "keygen", &format!("{name}.pem")]).exits(0);
    }
    let add =
        |words: &[&str]| bench.run(["attest", "trust", "add", "root.json"].iter().chain(words));
    add(&["one.pem.pub", "--level", "intrnal"]).exits(0).says("did you mean `internal`?");
    add(&["two.pem.pub", "--level", "internal"]).exits(0).never_says("warning");
    let over = add(&["three.pem.pub", "--level", "internal", "--not-after", "2001-01-01"]).exits(0);
    over.says("is in the past");
    bench.run(["attest", "trust", "list", "rot.json"]).exits(2).says("the trust root `rot.json`");
    // A named scheme has its own levels, which are checked when the scheme is used.
    bench.run(["attest", "keygen", "four.pem"]).exits(0);
    let words = ["attest", "trust", "add", "own.json", "four.pem.pub", "--level", "blue"];
    bench.run(words.iter().chain(&["--scheme", "colours"])).exits(0).never_says("warning");
}

#[test]
fn without_an_output_the_document_is_printed_and_nothing_else() {
    let bench = Bench::new();
    prepared(&bench);
    let words = ["attest", "sign", "draft.json", "--key", "key.pem", "--key-id", "acme-2026"];
    let printed = bench.run(words).exits(0);
    assert_eq!(printed.out, fs::read_to_string(bench.path("signed.json")).unwrap());
    assert_eq!(printed.err, "");
}

#[cfg(unix)]
#[test]
fn a_private_key_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new();
    bench.run(["attest", "keygen", "key.pem"]).exits(0);
    let mode = |name: &str| fs::metadata(bench.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("key.pem"), 0o600);
    assert_eq!(mode("key.pem.pub") & 0o600, 0o600);
    let private = fs::read_to_string(bench.path("key.pem")).unwrap();
    assert!(private.starts_with("-----BEGIN PRIVATE KEY-----\n"));
}

#[test]
fn a_key_is_never_written_over() {
    let bench = Bench::new();
    bench.file("key.pem", "mine");
    bench.run(["attest", "keygen", "key.pem"]).exits(2).says("exists already");
    assert_eq!(fs::read_to_string(bench.path("key.pem")).unwrap(), "mine");
    assert!(!bench.path("key.pem.pub").exists());
    bench.file("other.pem.pub", "mine too");
    bench.run(["attest", "keygen", "other.pem"]).exits(2).says("other.pem.pub");
    assert!(!bench.path("other.pem").exists());
    assert_eq!(fs::read_to_string(bench.path("other.pem.pub")).unwrap(), "mine too");
}

#[test]
fn two_keys_differ() {
    let bench = Bench::new();
    let fingerprint = |name: &str| {
        bench.run(["attest", "keygen", name, "--json"]).exits(0).json()["fingerprint"].clone()
    };
    assert_ne!(fingerprint("a.pem"), fingerprint("b.pem"));
}

#[test]
fn an_encrypted_key_signs_with_its_passphrase_alone() {
    let bench = Bench::new();
    bench.file("passphrase", "correct horse\n");
    bench.file("wrong", "battery staple\n");
    let made =
        bench.run(["attest", "keygen", "key.pem", "--passphrase", "file:passphrase", "--json"]);
    assert_eq!(made.exits(0).json()["encrypted"], true);
    let private = fs::read_to_string(bench.path("key.pem")).unwrap();
    assert!(private.starts_with("-----BEGIN ENCRYPTED PRIVATE KEY-----\n"));
    bench.file("draft.json", draft().to_string());
    write_root(&bench, "acme-2026", &bench.path("key.pem.pub"));
    let sign = [
        "attest",
        "sign",
        "draft.json",
        "--key",
        "key.pem",
        "--key-id",
        "acme-2026",
        "-o",
        "signed.json",
    ];
    bench.run(sign).exits(2).says("name its passphrase with");
    bench
        .run(sign.iter().chain(&["--passphrase", "file:wrong"]))
        .exits(2)
        .says("passphrase is wrong");
    assert!(!bench.path("signed.json").exists());
    let mut command = bench.command(sign.iter().chain(&["--passphrase", "env:PHRASE"]));
    command.env("PHRASE", "correct horse");
    answer(command).exits(0);
    bench.run(verify("signed.json", &[])).exits(0);
}

#[test]
fn a_passphrase_is_no_argument_and_is_not_repeated() {
    let bench = Bench::new();
    let refused = bench.run(["attest", "keygen", "key.pem", "--passphrase", "hunter2"]);
    refused.exits(2).says("env:VARIABLE").never_says("hunter2");
    // Without a terminal there is no prompt.
    let refused = bench.run(["attest", "keygen", "key.pem", "--passphrase", "prompt"]);
    refused.exits(2).says("at a terminal");
    assert!(!bench.path("key.pem").exists());
}

#[test]
fn what_cannot_be_signed_is_refused_with_its_reason() {
    let bench = Bench::new();
    prepared(&bench);
    let refused = |document: Value, key_id: &str, words: &str| {
        bench.file("other.json", document.to_string());
        let answer =
            bench.run(["attest", "sign", "other.json", "--key", "key.pem", "--key-id", key_id]);
        answer.exits(2).says(words);
    };
    let mut document = draft();
    document["expires"] = json!("2027-01-01");
    refused(document, "acme-2026", "`expires` is not a known member");
    let mut document = draft();
    document["capabilities"] = json!(["tool.invoke"]);
    refused(document, "acme-2026", "could not be admitted");
    let mut document = draft();
    document["signerKeyId"] = json!("other");
    refused(document, "acme-2026", "the key is called `acme-2026`");
    refused(draft(), " ", "a key's id has 1 to 256 bytes");
    let unnamed = bench.run(["attest", "sign", "draft.json", "--key", "key.pem"]);
    unnamed.exits(2).says("no signer is named");
    let public =
        bench.run(["attest", "sign", "draft.json", "--key", "key.pem.pub", "--key-id", "a"]);
    public.exits(2).says("expected a private key");
}

#[test]
fn a_document_is_shown_in_words_with_the_state_of_its_signature() {
    let bench = Bench::new();
    prepared(&bench);
    let words =
        bench.run(["attest", "inspect", "signed.json", "--trust-root", "root.json"]).exits(0);
    let words =
        words.says("mcp.example.mail 2.3.1, published by acme").says("INTERNAL (rank 1 of 0 to 5");
    words.says("mail.example.com").says("verifies with the key in the trust root");
    bench.run(["attest", "inspect", "signed.json"]).exits(0).says("not checked");
    bench.run(["attest", "inspect", "draft.json"]).exits(0).says("the document is not signed");
    let signed = fs::read_to_string(bench.path("signed.json")).unwrap();
    bench.file("tampered.json", signed.replace("2.3.1", "2.3.2"));
    let tampered = ["attest", "inspect", "tampered.json", "--trust-root", "root.json"];
    bench.run(tampered).exits(0).says("does NOT verify");
    let document = bench.run(tampered.iter().chain(&["--json"])).exits(0).json();
    assert_eq!(document["signature"], "does_not_verify");
    bench.file("bad.json", "{}");
    let refused = bench.run(["attest", "inspect", "bad.json", "--json"]).exits(13).json();
    assert_eq!(refused["error"]["reason"], "manifest_invalid");
}

#[test]
fn nothing_that_hides_reaches_the_terminal() {
    let bench = Bench::new();
    prepared(&bench);
    let mut document = draft();
    document["id"] = json!("mail\u{1b}[2J\u{202e}");
    document["clearance"] = json!("\u{1b}]0;x\u{7}");
    bench.file("odd.json", document.to_string());
    let shown = bench.run(["attest", "inspect", "odd.json"]).exits(0);
    assert!(!shown.out.contains(['\u{1b}', '\u{202e}', '\u{7}']), "{:?}", shown.out);
    let mut human = verify("odd.json", &[]);
    human.retain(|word| *word != "--json");
    let denied = bench.run(human).exits(13);
    assert!(!denied.out.contains(['\u{1b}', '\u{202e}', '\u{7}']), "{:?}", denied.out);
}

#[test]
fn schemes_are_listed_and_own_ones_are_checked() {
    let bench = Bench::new();
    bench
        .run(["attest", "schemes"])
        .exits(0)
        .says("RESTRICTED-PLUS")
        .says("BAA-COVERED")
        .says("M_AND_A");
    let all = bench.run(["attest", "schemes", "--json"]).exits(0).json();
    assert_eq!(all["schemes"].as_array().unwrap().len(), 5);
    bench.file("ours.json", r#"{"id":"ours","levels":[{"rank":0,"canonicalName":"OPEN"},{"rank":1,"canonicalName":"CLOSED","aliases":["X"]}]}"#);
    let ours = bench.run(["attest", "schemes", "ours.json", "--json"]).exits(0).json();
    assert_eq!(
        ours["schemes"][0]["levels"][1],
        json!({ "rank": 1, "name": "CLOSED", "aliases": ["X"] })
    );
    bench.file("gap.json", r#"{"id":"ours","levels":[{"rank":1,"canonicalName":"OPEN"}]}"#);
    bench.run(["attest", "schemes", "gap.json"]).exits(2).says("without a gap");
    bench.run(["attest", "schemes", "nowhere"]).exits(2).says("neither a built-in scheme");
}

#[test]
fn an_own_scheme_decides() {
    let bench = Bench::new();
    prepared(&bench);
    bench.file("ours.json", r#"{"id":"ours","levels":[{"rank":0,"canonicalName":"INTERNAL"},{"rank":1,"canonicalName":"CLOSED"}]}"#);
    let judge = |required: &str| {
        bench.run([
            "attest",
            "verify",
            "signed.json",
            "--trust-root",
            "root.json",
            "--host",
            "mail.example.com",
            "--scheme",
            "ours.json",
            "--required",
            required,
            "--json",
        ])
    };
    judge("internal").exits(0);
    assert_eq!(judge("closed").exits(13).json()["reason"], "below_required");
    judge("restricted").exits(2).says("has no level `restricted`");
}

#[test]
fn a_document_for_a_program_admits_that_file_alone() {
    let bench = Bench::new();
    prepared(&bench);
    let digest = attest::Digest::sha256(b"#!/bin/sh\n").to_string();
    bench.file("server", "#!/bin/sh\n");
    bench.file("other", "#!/bin/sh\nexit\n");
    let mut document = draft();
    document["v"] = json!(2);
    document["netAllowedHosts"] = json!([]);
    document["packageDigest"] = json!(digest);
    bench.file("draft2.json", document.to_string());
    let sign = [
        "attest",
        "sign",
        "draft2.json",
        "--key",
        "key.pem",
        "--key-id",
        "acme-2026",
        "-o",
        "signed2.json",
    ];
    bench.run(sign).exits(0);
    let judge = |program: &[&str]| {
        let words = [
            "attest",
            "verify",
            "signed2.json",
            "--trust-root",
            "root.json",
            "--required",
            "internal",
            "--json",
        ];
        bench.run(words.iter().chain(program))
    };
    judge(&["--program", "server"]).exits(0);
    assert_eq!(judge(&["--program", "other"]).exits(13).json()["reason"], "host_not_bound");
    assert_eq!(judge(&[]).exits(13).json()["reason"], "host_not_bound");
    judge(&["--program", "server", "--host", "a.example"]).exits(2);
    // A document that names no program is valid for none.
    document.as_object_mut().expect("an object").remove("packageDigest");
    bench.file("draft2.json", document.to_string());
    bench.run(sign).exits(0);
    assert_eq!(judge(&["--program", "server"]).exits(13).json()["reason"], "host_not_bound");
}

#[test]
fn a_caller_may_bind_the_program() {
    let bench = Bench::new();
    prepared(&bench);
    bench.file("server", "#!/bin/sh\n");
    bench.file("other", "#!/bin/sh\nexit\n");
    let digest = |algorithm| attest::Digest::of(algorithm, b"#!/bin/sh\n").to_string();
    let (short, long) = (digest(attest::Algorithm::Sha256), digest(attest::Algorithm::Sha512));
    let signed = |bound: bool| {
        let mut document = draft();
        document["v"] = json!(2);
        document["netAllowedHosts"] = json!([]);
        if bound {
            document["packageDigest"] = json!(long);
        }
        bench.file("bound.json", document.to_string());
        let words = ["attest", "sign", "bound.json", "--key", "key.pem", "--key-id", "acme-2026"];
        bench.run(words.iter().chain(&["-o", "bound.s.json"])).exits(0);
    };
    let judge = |more: &[&str]| {
        let words = [
            "attest",
            "verify",
            "bound.s.json",
            "--trust-root",
            "root.json",
            "--required",
            "public",
        ];
        bench.run(words.iter().chain(&["--json"]).chain(more))
    };
    let denied = |more: &[&str]| {
        assert_eq!(judge(more).exits(13).json()["reason"], "host_not_bound", "{more:?}");
    };
    signed(false);
    denied(&["--program", "server"]);
    for digest in [&short, &long] {
        judge(&["--program", "server", "--program-digest", digest]).exits(0);
        denied(&["--program", "other", "--program-digest", digest]);
    }
    judge(&["--program-digest", &short]).exits(2);
    signed(true);
    judge(&["--program", "server"]).exits(0);
    denied(&["--program", "other"]);
    judge(&["--program", "server", "--program-digest", &short]).exits(0);
    // Both conditions must hold.
    let other = attest::Digest::sha256(b"#!/bin/sh\nexit\n").to_string();
    denied(&["--program", "server", "--program-digest", &other]);
    denied(&["--program", "other", "--program-digest", &other]);
}

fn sign_to(bench: &Bench, output: &str) -> Answer {
    let words = ["attest", "sign", "draft.json", "--key", "key.pem", "--key-id", "acme-2026"];
    bench.run(words.iter().chain(&["-o", output]))
}

#[test]
fn a_signed_document_is_written_over_an_earlier_one_and_nothing_else() {
    let bench = Bench::new();
    prepared(&bench);
    fs::copy(bench.path("key.pem"), bench.path("other.pem")).unwrap();
    bench.file(
        "key.jwk",
        r#"{"kty":"OKP","crv":"Ed25519","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"}"#,
    );
    bench.file("notes.txt", "mine");
    for name in ["key.pem", "other.pem", "key.pem.pub", "key.jwk", "notes.txt", "root.json"] {
        let before = fs::read(bench.path(name)).unwrap();
        sign_to(&bench, name).exits(2).says("it is not overwritten");
        assert_eq!(fs::read(bench.path(name)).unwrap(), before, "{name}");
    }
    bench.file("empty.json", "");
    for name in ["signed.json", "draft.json", "empty.json", "new.json"] {
        sign_to(&bench, name).exits(0);
        bench.run(verify(name, &[])).exits(0);
    }
    let left: Vec<_> = fs::read_dir(bench.path("key.pem").parent().unwrap())
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(".holdpoint-"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
}

#[cfg(unix)]
#[test]
fn a_link_is_neither_followed_nor_replaced() {
    let bench = Bench::new();
    prepared(&bench);
    fs::copy(bench.path("signed.json"), bench.path("target.json")).unwrap();
    let before = fs::read(bench.path("target.json")).unwrap();
    for (name, target) in [("link.json", "target.json"), ("dangling.json", "nowhere")] {
        std::os::unix::fs::symlink(bench.path(target), bench.path(name)).unwrap();
        sign_to(&bench, name).exits(2).says("not a regular file");
        assert!(fs::symlink_metadata(bench.path(name)).unwrap().is_symlink());
    }
    assert_eq!(fs::read(bench.path("target.json")).unwrap(), before);
    // The public half cannot be written, so no private key is left behind.
    std::os::unix::fs::symlink(bench.path("nowhere"), bench.path("new.pem.pub")).unwrap();
    bench.run(["attest", "keygen", "new.pem"]).exits(2).says("new.pem.pub");
    assert!(!bench.path("new.pem").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn what_could_not_be_printed_is_a_failure() {
    let bench = Bench::new();
    prepared(&bench);
    let words = ["attest", "sign", "draft.json", "--key", "key.pem", "--key-id", "acme-2026"];
    for words in [words.to_vec(), vec!["attest", "inspect", "signed.json", "--json"]] {
        let mut command = bench.command(&words);
        command.stdout(fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
        command.stderr(std::process::Stdio::piped());
        let output = command.spawn().unwrap().wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(12), "{words:?}");
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.contains("could not be written"), "{told}");
    }
}

#[cfg(unix)]
#[test]
fn a_key_that_others_can_read_is_told() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new();
    prepared(&bench);
    assert_eq!(sign_to(&bench, "a.json").exits(0).err, "");
    fs::set_permissions(bench.path("key.pem"), fs::Permissions::from_mode(0o640)).unwrap();
    sign_to(&bench, "a.json").exits(0).says("can be read by other users");
}

#[test]
fn a_slip_in_a_trust_root_is_told_and_widens_nothing() {
    let bench = Bench::new();
    prepared(&bench);
    let root: Value = serde_json::from_slice(&fs::read(bench.path("root.json")).unwrap()).unwrap();
    let told = |change: &dyn Fn(&mut Value), words: &str| {
        let mut root = root.clone();
        change(&mut root);
        bench.file("root.json", root.to_string());
        bench.run(verify("signed.json", &["--now", "9999-01-01"])).exits(2).says(words);
    };
    told(&|root| root["signers"][0]["notAfter"] = json!(""), "`notAfter` is empty");
    told(&|root| root["signers"][0]["notAfter"] = Value::Null, "`notAfter` is empty");
    let twice = |root: &mut Value| {
        let mut signer = root["signers"][0].clone();
        signer["keyId"] = json!("again");
        root["signers"].as_array_mut().unwrap().push(signer);
    };
    told(&twice, "are one key");
    let unknown = |root: &mut Value| {
        root["scheme"] = json!("default");
        root["signers"][0]["approvedClearance"] = json!(["internall"]);
    };
    told(&unknown, "`internall`, which is no level of the scheme `default`");
}

#[test]
fn a_revocation_list_counts_only_when_one_who_may_has_signed_it() {
    let bench = Bench::new();
    prepared(&bench);
    bench.run(["attest", "keygen", "security.pem"]).exits(0);
    let mut root: Value =
        serde_json::from_slice(&fs::read(bench.path("root.json")).unwrap()).unwrap();
    let pem = fs::read_to_string(bench.path("security.pem.pub")).unwrap();
    let revoker = json!({ "keyId": "security", "publicKeyPem": pem, "approvedClearance": [], "mayRevoke": true });
    root["signers"].as_array_mut().unwrap().push(revoker);
    bench.file("root.json", root.to_string());
    let digest =
        bench.run(["attest", "inspect", "signed.json", "--json"]).exits(0).json()["digest"].clone();
    let list = json!({
        "v": 1, "type": "mcp-attestation-revocations", "issued": "2099-01-01T00:00:00Z",
        "expires": "2099-02-01T00:00:00Z", "signers": [], "documents": [digest],
    });
    bench.file("list.json", list.to_string());
    for (key, id, output) in
        [("security.pem", "security", "revoked.json"), ("key.pem", "acme-2026", "forged.json")]
    {
        bench
            .run(["attest", "sign", "list.json", "--key", key, "--key-id", id, "-o", output])
            .exits(0);
    }
    let judge = |list: &str, now: &str| {
        bench.run(verify("signed.json", &["--revocations", list, "--now", now]))
    };
    let reason = |list: &str, now: &str| {
        let denied = judge(list, now).exits(13).json();
        (denied["clause"].clone(), denied["reason"].clone())
    };
    assert_eq!(reason("revoked.json", "2099-01-15"), (json!("f"), json!("attestation_revoked")));
    // An invalid list revokes nothing.
    for (list, now) in [
        ("forged.json", "2099-01-15"),
        ("list.json", "2099-01-15"),
        ("revoked.json", "2099-03-01"),
        ("revoked.json", "2098-12-31"),
    ] {
        assert_eq!(reason(list, now), (json!("d"), json!("fetch_failed")), "{list} {now}");
    }
    judge("nowhere.json", "2099-01-15").exits(2);
    bench.run(verify("signed.json", &["--now", "2099-01-15"])).exits(0);
    let inspect = ["attest", "inspect", "revoked.json", "--trust-root", "root.json"];
    let words = bench.run(inspect).exits(0);
    words
        .says("from 2099-01-01T00:00:00Z until 2099-02-01T00:00:00Z")
        .says("verifies with the key");
    let shown = bench.run(inspect.iter().chain(&["--json"])).exits(0).json();
    assert_eq!(shown["revoked_documents"], json!([digest]));
    assert_eq!((&shown["signature"], &shown["may_revoke"]), (&json!("verifies"), &json!(true)));
    let forged = ["attest", "inspect", "forged.json", "--trust-root", "root.json"];
    bench.run(forged).exits(0).says("does not let it revoke");
}

/// A document may name the archive that a package was installed from, and a denial names the
/// installed one.
#[test]
#[cfg(unix)]
fn a_document_for_an_archive_admits_a_file_of_its_package() {
    let bench = Bench::new();
    prepared(&bench);
    let archive = attest::Digest::sha256(b"an archive").to_string();
    for version in ["1.2.3", "1.2.4"] {
        let folder = bench.path(&format!("{version}/node_modules/mail"));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("server.js"), "").expect("a file");
        let manifest = json!({ "name": "mail", "version": version });
        std::fs::write(folder.join("package.json"), manifest.to_string()).expect("a file");
        let record = json!({ "packages": { "node_modules/mail": { "version": "1.2.3", "integrity": archive } } });
        let path = folder.with_file_name(".package-lock.json");
        std::fs::write(path, record.to_string()).expect("a file");
    }
    let sign = |digest: &str| {
        let mut document = draft();
        document["v"] = json!(2);
        document["netAllowedHosts"] = json!([]);
        document["packageDigest"] = json!(digest);
        bench.file("draft2.json", document.to_string());
        let words = "attest sign draft2.json --key key.pem --key-id acme-2026 -o signed2.json";
        bench.run(words.split(' ')).exits(0);
    };
    let judge = |version: &str| {
        let program = format!("{version}/node_modules/mail/server.js");
        let words = "attest verify signed2.json --trust-root root.json --required internal";
        bench.run(words.split(' ').chain(["--program", &program]))
    };
    sign(&archive);
    judge("1.2.3").exits(0);
    judge("1.2.4").exits(13).says("host_not_bound").says("`package.json` says `1.2.4`");
    sign(&attest::Digest::sha256(b"another archive").to_string());
    let found = format!("its package is `mail` in version `1.2.3` with the integrity `{archive}`");
    judge("1.2.3").exits(13).says("host_not_bound").says(&found);
}
