//! The network's routes, and the operator's decisions while the directory runs.

use crate::station::{KEYS, Station};
use gate::network::{
    AdvisoryKind, AdvisoryPage, Bucket, CorpusBucket, DriftPage, Parameters, ReportBucket,
};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

const NETWORK: &str = "/api/v1/network";
const KEY: Option<&str> = Some(KEYS[0].1);

fn row(hash: &str, verdict: &str) -> Value {
    json!({ "definition_hash": hash, "verdict": verdict, "reason_class": "injection" })
}

fn everything() -> Bucket {
    Bucket::new(0, 0).unwrap()
}

#[test]
fn owners_contribute_the_operator_decides_and_members_are_told() {
    let station = Station::new("");
    let served = station.serve();
    let hash = "ab".repeat(32);
    let rows = || {
        let bucket = served.get(&format!("{NETWORK}/corpus/0/0"), KEY).is(200);
        served.conforms("corpus_bucket", &bucket);
        CorpusBucket::read(&bucket.body, everything()).unwrap().rows
    };
    served.get(&format!("{NETWORK}/corpus/0/0"), None).is(401);
    served.get(&format!("{NETWORK}/corpus/0/0"), Some("guess")).is(401);
    assert!(rows().is_empty());
    for (_, key) in KEYS.iter().take(3) {
        let told = served.post(&format!("{NETWORK}/corpus"), Some(key), &row(&hash, "dangerous"));
        assert!(told.is(204).body.is_empty());
    }
    assert_eq!(rows().len(), 1, "three owners");
    served.post(&format!("{NETWORK}/corpus"), Some("key-two"), &row(&hash, "cleared")).is(204);
    assert!(rows().is_empty(), "a conflict");
    let listed = station.operator(&["corpus", "list", "--standing", "conflict", "--json"]).exits(0);
    let entry = &listed.json()["definitions"][0];
    assert_eq!(
        (&entry["dangerous"], &entry["cleared"]),
        (&json!(["acme", "corp"]), &json!(["bank"]))
    );

    // The running directory holds the lease, and adds the command's queued statements to the log.
    let words = ["corpus", "adjudicate", &hash, "dangerous", "--reason", "exfiltration"];
    station.operator(&words).exits(0).says("served as dangerous").says("left for the directory");
    assert_eq!(rows()[0].reason_class.as_str(), "exfiltration");
    let advisories = |after: u64| {
        let page = served.get(&format!("{NETWORK}/advisories?after={after}"), KEY).is(200);
        served.conforms("advisory_page", &page);
        AdvisoryPage::read(&page.body, after).unwrap()
    };
    let page = testing::wait_for("the advisory", || {
        Some(advisories(0)).filter(|page| !page.advisories.is_empty())
    });
    assert_eq!(page.advisories[0].definition_hash.to_string(), hash);
    assert_eq!(page.advisories[0].kind, AdvisoryKind::Dangerous);
    let shown = served.get("/advisories", None).is(200).text();
    assert!(shown.contains(&hash) && shown.contains("exfiltration"), "{shown}");

    station.operator(&["corpus", "invalidate", &hash]).exits(0).says("not served");
    assert!(rows().is_empty());
    let withdrawn = testing::wait_for("the withdrawal", || {
        Some(advisories(page.next)).filter(|page| !page.advisories.is_empty())
    });
    assert_eq!(withdrawn.advisories[0].kind, AdvisoryKind::Withdrawn);
    drop(served);
    let folder = station.bench.home().join("directory/log");
    let key = folder.join("key");
    let words = ["directory", "log", "verify", "--folder", folder.to_str().unwrap(), "--key"];
    let verified = [&words[..], &[key.to_str().unwrap()]].concat();
    station.bench.run(verified).exits(0).says("every signature, hash and history holds");
}

#[test]
fn without_a_directory_that_runs_the_command_publishes_itself() {
    let station = Station::new("");
    let hash = "cd".repeat(32);
    let words = ["corpus", "adjudicate", &hash, "dangerous", "--json"];
    let decided = station.operator(&words).exits(0).json();
    assert_eq!(decided["published"], true);
    assert_eq!(decided["advisories"].as_array().unwrap().len(), 1);
    let again = station.operator(&words).exits(0).json();
    assert_eq!(again["advisories"], json!([]));
    station
        .operator(&["corpus", "adjudicate", "beef", "dangerous"])
        .exits(2)
        .says("64 hexadecimal");
    station.operator(&["corpus", "adjudicate", &hash, "fine"]).exits(2);
    let cleared = ["corpus", "adjudicate", &hash, "cleared"];
    station.operator(&cleared).exits(0).says("served as cleared").says("published in the log");
    let served = station.serve();
    let page = served.get(&format!("{NETWORK}/advisories"), KEY).is(200);
    let kinds: Vec<_> =
        AdvisoryPage::read(&page.body, 0).unwrap().advisories.iter().map(|it| it.kind).collect();
    assert_eq!(kinds, [AdvisoryKind::Dangerous, AdvisoryKind::Withdrawn]);
}

#[test]
fn the_crawlers_changes_are_the_feed_and_reports_of_installs_are_not() {
    let station = Station::new("");
    station.web.describe("Tells the weather of tomorrow.");
    station.crawl();
    let served = station.serve();
    let parameters = served.get(&format!("{NETWORK}/parameters"), KEY).is(200);
    served.conforms("parameters", &parameters);
    let parameters = Parameters::read(&parameters.body).unwrap();
    assert_eq!((parameters.contracts, parameters.bucket_bits), (2, 0));
    let salt = station.bench.home().join("keys/directory/network.salt");
    assert_eq!(std::fs::metadata(&salt).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_to_string(&salt).unwrap().trim(), parameters.salt.to_string());

    let page = served.get(&format!("{NETWORK}/drift?after=0"), KEY).is(200);
    served.conforms("drift_page", &page);
    let page = DriftPage::read(&page.body, 0).unwrap();
    let change = &page.entries.last().unwrap().change;
    let told = served.get("/api/v1/trust/tool/com.example%2Fweather/forecast", None).is(200).json();
    let now: contract::hash::EntryHash = told["entry_hash"].as_str().unwrap().parse().unwrap();
    assert_eq!(change.fp_after, parameters.salt.fingerprint(now));

    let report = json!({ "fp_before": change.fp_after.to_string(), "fp_after": "02".repeat(32),
        "kinds": ["tool-removed"], "safety": true, "hour": "2026-11-18T06" });
    for key in ["key-one", "key-four", "key-two"] {
        served.post(&format!("{NETWORK}/drift"), Some(key), &report).is(204);
    }
    let bucket = served.get(&format!("{NETWORK}/reports/0/0"), KEY).is(200);
    served.conforms("report_bucket", &bucket);
    let reports = ReportBucket::read(&bucket.body, everything()).unwrap().reports;
    assert_eq!((reports.len(), reports[0].installs), (1, 2));
    let again = served.get(&format!("{NETWORK}/drift"), KEY).is(200);
    assert_eq!(DriftPage::read(&again.body, 0).unwrap(), page);

    let report = station.operator(&["corpus", "report", "--json"]).exits(0).json();
    let keys = report["keys"].as_array().unwrap();
    assert_eq!(keys.len(), 3);
    assert!(keys.iter().all(|key| key["reports"] == 1 && key["flags"] == json!([])), "{report}");
    station.operator(&["corpus", "report"]).exits(0).says("reports 1,").says("ordinary");
}

#[test]
fn what_is_not_a_request_is_refused_and_quotes_nothing() {
    let station = Station::new("");
    let served = station.serve();
    let refused = |method: &str, path: &str, body: &str, status: u16| {
        let told = served.request(method, &format!("{NETWORK}/{path}"), KEY, body).is(status);
        assert!(!told.text().contains("MARKER"), "{}", told.text());
    };
    refused("GET", "corpus/0/MARKER", "", 400);
    refused("GET", "corpus/9/0", "", 400);
    refused("GET", "drift?after=MARKER", "", 400);
    refused("POST", "corpus", "MARKER", 400);
    refused("POST", "corpus", &row(&"ab".repeat(32), "MARKER").to_string(), 400);
    refused("POST", "drift", r#"{"MARKER":1}"#, 400);
    refused("POST", "corpus", &" ".repeat(5_000), 413);
    refused("GET", "corpus", "", 405);
    refused("POST", "parameters", "{}", 405);
    refused("DELETE", "corpus", "", 405);
    refused("GET", "MARKER", "", 404);
}

#[test]
fn an_owner_is_removed_with_what_rested_on_it() {
    let station = Station::new("");
    let served = station.serve();
    let hash = "ef".repeat(32);
    for (_, key) in KEYS.iter().take(3) {
        served.post(&format!("{NETWORK}/corpus"), Some(key), &row(&hash, "dangerous")).is(204);
    }
    drop(served);
    let words =
        ["corpus", "invalidate", "--owner", "corp", "--text", "The key was stolen.", "--json"];
    let decided = station.operator(&words).exits(0).json();
    assert_eq!(decided["definitions"][0]["served_before"], "dangerous");
    assert_eq!(decided["definitions"][0]["served"], Value::Null);
    assert_eq!(decided["advisories"].as_array().unwrap().len(), 1);
    station.operator(&["corpus", "list"]).exits(0).says("dangerous: acme, bank").says("waiting");
    station.operator(&["corpus", "list", "--found-later"]).exits(0).says("no later reading");
}

#[test]
fn a_second_process_serves_the_same_corpus_and_counts_the_same_owners() {
    let station = Station::new("");
    let (writer, reader) = (station.serve(), station.serve());
    let hash = "12".repeat(32);
    for ((_, key), served) in KEYS.iter().take(3).zip([&writer, &reader, &writer]) {
        served.post(&format!("{NETWORK}/corpus"), Some(key), &row(&hash, "dangerous")).is(204);
    }
    for served in [&writer, &reader] {
        let bucket = served.get(&format!("{NETWORK}/corpus/0/0"), KEY).is(200);
        assert_eq!(CorpusBucket::read(&bucket.body, everything()).unwrap().rows.len(), 1);
    }
    let salts = [&writer, &reader].map(|served| {
        let told = served.get(&format!("{NETWORK}/parameters"), KEY).is(200);
        Parameters::read(&told.body).unwrap().salt.to_string()
    });
    assert_eq!(salts[0], salts[1]);
}

#[test]
fn a_mirror_shows_claims_and_advisories_and_has_no_network_of_its_own() {
    let station = Station::new("");
    let hash = "34".repeat(32);
    station.operator(&["corpus", "adjudicate", &hash, "dangerous", "--text", "Why."]).exits(0);
    let served = station.serve();
    let url = format!("http://{}", served.address);
    let key = station.bench.home().join("directory/log/key").display().to_string();
    let data = station.bench.path("copy").display().to_string();
    let words = ["--mirror", &url, "--key", &key, "--data", &data];
    let mirror = station.serve_with(&words);
    let page = mirror.get("/advisories", None).is(200).text();
    assert!(page.contains(&hash), "{page}");
    mirror.get("/claims", None).is(200);
    mirror.get(&format!("{NETWORK}/parameters"), KEY).is(404);
    let begin = json!({ "server": "com.example/weather", "key": "ed25519:x" });
    mirror.post("/api/v1/claims/start", None, &begin).is(404);
    mirror.get("/api/v1/claims/com.example%2Fweather", None).is(200);
    assert!(!station.bench.path("copy").join("keys").join("network.salt").exists());
}
