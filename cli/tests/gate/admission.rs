//! Attestation of servers, end to end: the binary, and a server that it starts.

use crate::bench::{Bench, FolderServer, ID, report_tool};
use crate::client::{Client, receipts, refused};
use crate::script::Script;
use serde_json::{Value, json};
use std::ffi::OsString;

/// A trust root with three signers, and the launch of a scripted server.
fn prepared(bench: &Bench) -> Vec<OsString> {
    let mut signers = Vec::new();
    for name in ["one", "two", "three"] {
        bench.run(["attest", "keygen", &format!("{name}.pem")]).exits(0);
        let pem = std::fs::read_to_string(bench.path(&format!("{name}.pem.pub"))).unwrap();
        signers
            .push(json!({ "keyId": name, "publicKeyPem": pem, "approvedClearance": ["internal"] }));
    }
    bench.file("root.json", json!({ "v": 1, "signers": signers }).to_string());
    Script::new(bench).launch()
}

/// Signs a document for the program of this launch.
fn sign(bench: &Bench, launch: &[OsString], signer: &str) {
    let program = engine::program::find_program(&launch[0].to_string_lossy(), None).unwrap();
    let digests = engine::program::digests_of(&program).unwrap();
    let document = json!({
        "v": 2, "id": "mcp.example.calc", "publisher": "acme", "version": "1", "clearance": "internal",
        "capabilities": ["mcp-server"], "verification": "tested", "packageDigest": digests[0].to_string(),
    });
    bench.file("draft.json", document.to_string());
    let key = format!("{signer}.pem");
    let words =
        ["attest", "sign", "draft.json", "--key", &key, "--key-id", signer, "-o", "signed.json"];
    bench.run(words).exits(0);
}

fn gate(bench: &Bench, launch: &[OsString], required: &str, more: &[&str]) -> Client {
    let (root, signed) = (bench.path("root.json"), bench.path("signed.json"));
    let (root, signed) =
        (root.to_string_lossy().into_owned(), signed.to_string_lossy().into_owned());
    let mut options = vec!["--trust-root", &root, "--required", required];
    options.extend(["--attestation", &signed, "--allow-tool", "make_report"]);
    options.extend(more);
    let mut client = Client::through_gate(bench, &options, launch);
    client.begin();
    client
}

fn admissions(bench: &Bench) -> Vec<Value> {
    let calls = receipts(bench).into_iter();
    let calls = calls.filter(|line| line["mcp"]["method"] == "tools/call");
    calls.map(|line| line["admission"]["verdict"].clone()).collect()
}

#[test]
fn a_server_that_is_vouched_for_is_used_and_a_tool_off_the_list_is_not() {
    let bench = Bench::new();
    let launch = prepared(&bench);
    sign(&bench, &launch, "one");
    let mut client = gate(&bench, &launch, "internal", &[]);
    assert_eq!(client.tool_names(), ["make_report"]);
    assert!(client.call("make_report", &json!({ "title": "x" })).get("result").is_some());
    assert_eq!(refused(&client.call("drop", &json!({})), 1013)["reason"], "tool_not_admitted");
    client.end().exits(0);
    assert_eq!(admissions(&bench), ["ok", "ok"]);
}

#[test]
fn a_server_below_the_level_is_denied_or_warned_of() {
    let bench = Bench::new();
    let launch = prepared(&bench);
    sign(&bench, &launch, "one");
    let mut client = gate(&bench, &launch, "restricted", &[]);
    let list = client.ask("tools/list", &json!({}));
    assert_eq!(refused(&list, 1013)["reason"], "below_required");
    assert_eq!(
        refused(&client.call("make_report", &json!({ "title": "x" })), 1013)["reason"],
        "below_required"
    );
    client.end().exits(0);
    let mut client = gate(&bench, &launch, "restricted", &["--flavor", "open"]);
    assert!(client.call("make_report", &json!({ "title": "x" })).get("result").is_some());
    client.end().exits(0);
    let mut verdicts = admissions(&bench);
    verdicts.sort_by_key(ToString::to_string);
    assert_eq!(verdicts, ["deny", "warn"]);
}

#[test]
fn a_server_that_comes_back_under_another_signer_is_held() {
    let bench = Bench::new();
    let launch = prepared(&bench);
    sign(&bench, &launch, "one");
    let mut client = gate(&bench, &launch, "internal", &[]);
    assert!(client.call("make_report", &json!({ "title": "x" })).get("result").is_some());
    client.end().exits(0);
    sign(&bench, &launch, "two");
    let mut client = gate(&bench, &launch, "internal", &[]);
    let data = refused(&client.call("make_report", &json!({ "title": "x" })), -32010).clone();
    assert_eq!(data["kinds"], json!(["identity-changed"]), "{data}");
    let list = client.ask("tools/list", &json!({}));
    assert_eq!(refused(&list, -32010)["kinds"], json!(["identity-changed"]), "{list}");
    client.end().exits(0);
    bench.run(["review", "reports"]).says("a different signer");
}

/// A manual pin keeps the server's pinned signer: a different signer is still noticed.
#[test]
fn a_server_that_is_pinned_by_hand_stays_anchored_to_its_signer() {
    let bench = Bench::unattended();
    let launch = prepared(&bench);
    sign(&bench, &launch, "one");
    let mut client = gate(&bench, &launch, "internal", &[]);
    assert!(client.call("make_report", &json!({ "title": "x" })).get("result").is_some());
    client.end().exits(0);
    bench.run(["pin", ID]).exits(0);
    bench.run(["check", ID]).exits(0);
    let mut client = gate(&bench, &launch, "internal", &[]);
    assert!(client.call("make_report", &json!({ "title": "x" })).get("result").is_some());
    client.end().exits(0);
    sign(&bench, &launch, "two");
    is_held_as_another(&bench, &launch);
}

/// The configuration requires an attestation, so the first pin includes the signer.
#[test]
fn a_first_manual_pin_includes_the_signer() {
    let bench = Bench::unattended();
    let launch = prepared(&bench);
    let pin = || {
        let mut command = bench.command(["pin", "--server", ID, "--"]);
        command.args(&launch);
        crate::bench::answer(command)
    };
    let require = |level: &str| {
        bench.configure(&format!(
            "[approve]\nunattended = true\n[admission]\ntrust_root = \"../root.json\"\nrequired = \"{level}\"\n[server.{ID}.admission]\nattestation = \"../signed.json\"\n"
        ));
    };
    sign(&bench, &launch, "one");
    require("internal");
    pin().exits(0).never_says("attestation is not pinned");
    sign(&bench, &launch, "two");
    is_held_as_another(&bench, &launch);
    // A person who pins again has seen the new signer, which is pinned from then on.
    pin().exits(0).says("a different signer");
    let mut client = gate(&bench, &launch, "internal", &[]);
    assert!(client.call("make_report", &json!({ "title": "x" })).get("result").is_some());
    client.end().exits(0);
    // Without an attestation at the required level, the server is not contacted, and the pin stays.
    require("restricted");
    pin().exits(13).says("below_required");
    // Under the open flavor it is pinned without the signer, and a note says so.
    require("restricted\"\nflavor = \"open");
    pin().exits(0).says("the server's attestation is not pinned: below_required");
    sign(&bench, &launch, "three");
    is_held_as_another(&bench, &launch);
}

/// The entry that starts the gate may have the rest of the settings, which `pin` neither sees nor
/// needs.
#[test]
fn a_server_can_be_pinned_where_the_configuration_has_a_part_of_what_admission_takes() {
    let bench = Bench::unattended();
    let launch = prepared(&bench);
    for part in [
        "[admission]\nrequired = \"internal\"\n".to_owned(),
        "[admission]\ntrust_root = \"../root.json\"\n".to_owned(),
        format!("[server.{ID}.admission]\nattestation = \"../signed.json\"\n"),
    ] {
        bench.configure(&format!("[approve]\nunattended = true\n{part}"));
        let mut command = bench.command(["pin", "--server", ID, "--"]);
        command.args(&launch);
        let answer = crate::bench::answer(command);
        answer.exits(0).says("the server's attestation is not pinned");
    }
}

/// Asserts that a server is held because its signer changed.
#[track_caller]
fn is_held_as_another(bench: &Bench, launch: &[OsString]) {
    let mut client = gate(bench, launch, "internal", &[]);
    let data = refused(&client.call("make_report", &json!({ "title": "x" })), -32010).clone();
    let kinds = data["kinds"].as_array().unwrap();
    assert!(kinds.contains(&json!("identity-changed")), "{data}");
    client.end().exits(0);
}

/// Gaining an attestation is not a change, whatever else of the server's identity changed
/// meanwhile.
#[test]
fn a_server_that_gains_an_attestation_stays_the_same_server() {
    let bench = Bench::unattended();
    prepared(&bench);
    let server = FolderServer::new(&bench, &json!([report_tool()]));
    server.answers("tools/call", json!({ "content": [] }).to_string());
    server.run(&bench, "pin", &[]).exits(0);
    server.offers(&json!({ "tools": {}, "logging": {} }));
    let launch = server.launch();
    sign(&bench, &launch, "one");
    let mut client = gate(&bench, &launch, "internal", &[]);
    let answer = client.call("make_report", &json!({ "title": "x" }));
    assert!(answer.get("result").is_some(), "{answer}");
    client.end().exits(0);
    sign(&bench, &launch, "two");
    is_held_as_another(&bench, &launch);
}
