//! Claims of ownership: by a record, a file, a manifest and a key that the operator knows.

use crate::station::{SERVER, Served, Station, Told};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

const FILE: &str = "/.well-known/holdpoint.json";

/// A public key whose private half is in the test's folder, made by the binary.
fn key(station: &Station, name: &str) -> String {
    station.bench.run(["attest", "keygen", name]).exits(0);
    let pem = std::fs::read_to_string(station.bench.path(&format!("{name}.pub"))).unwrap();
    let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    let der = STANDARD.decode(body).unwrap();
    format!("ed25519:{}", STANDARD.encode(&der[der.len() - 32..]))
}

fn start(served: &Served, server: &str, key: &str) -> Value {
    let body = json!({ "server": server, "key": key });
    let begun = served.post("/api/v1/claims/start", None, &body).is(200);
    served.conforms("claim_started", &begun);
    begun.json()
}

fn verify(served: &Served, server: &str, key: &str, begun: &Value, method: &str) -> Told {
    let body = json!({ "server": server, "key": key, "nonce": begun["nonce"], "method": method });
    served.post("/api/v1/claims/verify", None, &body)
}

fn claims(served: &Served) -> Vec<Value> {
    let told = served.get("/api/v1/claims/com.example%2Fweather", None).is(200);
    served.conforms("claims", &told);
    told.json()["claims"].as_array().unwrap().clone()
}

#[test]
fn an_owner_claims_a_server_by_its_file_and_a_second_claimant_waits_in_public() {
    let station = Station::new("");
    let served = station.serve();
    let (first, second) = (key(&station, "first.pem"), key(&station, "second.pem"));
    let before = served.get("/api/v1/trust/server/com.example%2Fweather", None).is(200).json();
    assert_eq!(before["claims"], json!([]));

    let begun = start(&served, SERVER, &first);
    assert!(begun["line"].as_str().unwrap().starts_with(&format!("v1 {SERVER} {first} ")));
    let places: Vec<&str> = begun["offers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["place"].as_str().unwrap())
        .collect();
    let file = format!("http://{}{FILE}", station.web.address);
    assert_eq!(
        places,
        [&file, "_holdpoint.example.com", "https://example.com/.well-known/holdpoint.json"]
    );

    verify(&served, SERVER, &first, &begun, "well-known").is(409);
    // A line of another key, or with another nonce, is not this claim's.
    station
        .web
        .put(FILE, &json!({ "claims": [format!("v1 {SERVER} {second} {}", begun["nonce"])] }));
    verify(&served, SERVER, &first, &begun, "well-known").is(409);
    station.web.put(FILE, &json!({ "claims": [begun["line"]] }));
    let told = verify(&served, SERVER, &first, &begun, "well-known").is(200).json();
    assert_eq!((&told["state"], &told["domain"]), (&json!("verified"), &json!("127.0.0.1")));

    let begun = start(&served, SERVER, &second);
    station.dns.put("_holdpoint.example.com", begun["line"].as_str().unwrap());
    let told = verify(&served, SERVER, &second, &begun, "dns").is(200).json();
    assert_eq!((&told["state"], &told["domain"]), (&json!("waiting"), &json!("example.com")));
    assert!(told["counts_from"].is_string());

    let all = testing::wait_for("the claims in the log", || {
        Some(claims(&served)).filter(|all| all.len() == 2)
    });
    assert_eq!((&all[0]["state"], &all[1]["state"]), (&json!("waiting"), &json!("verified")));
    let page = served.get("/claims", None).is(200).text();
    assert!(page.contains("waiting") && page.contains("example.com (dns)"), "{page}");
    let page = served.get("/server/com.example%2Fweather", None).is(200).text();
    assert!(page.contains("It never changes or hides a verdict"), "{page}");

    // All but the claims is as it was.
    let after = served.get("/api/v1/trust/server/com.example%2Fweather", None).is(200);
    served.conforms("verdict", &after);
    let mut after = after.json();
    assert_eq!(after["claims"].as_array().unwrap().len(), 2);
    after["claims"] = json!([]);
    assert_eq!(after, before);
    let listed = station.operator(&["claim", "list", "--json"]).exits(0).json();
    assert_eq!(listed["claims"].as_array().unwrap().len(), 2);
}

#[test]
fn a_claim_that_is_no_longer_shown_is_suspended_after_three_checks() {
    let station = Station::new("");
    let key = key(&station, "owner.pem");
    let words = ["claim", "start", SERVER, "--key", "owner.pem.pub", "--json"];
    let begun = station.operator(&words).exits(0).json();
    assert!(begun["line"].as_str().unwrap().contains(&key));
    let nonce = begun["nonce"].as_str().unwrap();
    let verify = ["claim", "verify", SERVER, "--key", &key, "--nonce", nonce, "--method", "dns"];
    station.operator(&verify).exits(13).says("the line is not there");
    station.dns.put("_holdpoint.example.com", begun["line"].as_str().unwrap());
    station.operator(&verify).exits(0).says("verified by example.com (dns)");
    station.operator(&["claim", "check"]).exits(0).says("no claim is due");
    let check = ["claim", "check", SERVER];
    station.operator(&check).exits(0).says("verified").never_says("not found");
    station.dns.clear();
    for state in ["verified", "verified", "suspended"] {
        let claim =
            &station.operator(&[&check[..], &["--json"]].concat()).exits(0).json()["claims"][0];
        assert_eq!(claim["state"], state);
    }
    let served = station.serve();
    let states: Vec<Value> = claims(&served).iter().map(|claim| claim["state"].clone()).collect();
    assert_eq!(states, ["suspended"]);
    let page = served.get("/server/com.example%2Fweather", None).is(200).text();
    assert!(page.contains("History of the claims"), "{page}");
    station.operator(&["claim", "suspend", SERVER, "--key", &key]).exits(2).says("no such claim");
}

#[test]
fn claims_of_strangers_are_refused() {
    let station = Station::new("");
    let served = station.serve();
    let key = key(&station, "owner.pem");
    let refused = |path: &str, body: Value, status: u16| {
        let told = served.post(&format!("/api/v1/claims/{path}"), None, &body).is(status);
        assert!(!told.text().contains("MARKER"), "{}", told.text());
    };
    refused("start", json!({ "server": "npm:MARKER", "key": key }), 404);
    refused("start", json!({ "server": SERVER, "key": "MARKER" }), 400);
    refused("start", json!({ "server": SERVER, "key": key, "domain": "MARKER" }), 400);
    let begun = start(&served, SERVER, &key);
    let verify = |nonce: &Value, method: &str, status: u16| {
        let body = json!({ "server": SERVER, "key": key, "nonce": nonce, "method": method });
        refused("verify", body, status);
    };
    verify(&json!("0069MARKER"), "dns", 403);
    verify(&begun["nonce"], "MARKER", 400);
    verify(&begun["nonce"], "manifest", 409);
    verify(&begun["nonce"], "attestation-key", 409);
    verify(&begun["nonce"], "dns", 409);
    served.get("/api/v1/claims/npm:none", None).is(404);
    served.get("/api/v1/claims/start", None).is(405);
    assert!(claims(&served).is_empty());
}

#[test]
fn a_package_is_claimed_by_its_manifest_or_by_the_key_that_the_operator_knows() {
    let package = "npm:@acme/mail";
    let station = Station::new(&format!(
        "[[claims.publisher]]\nserver = \"{package}\"\nkey = \"publisher.pem.pub\"\n"
    ));
    let (publisher, other) = (key(&station, "publisher.pem"), key(&station, "other.pem"));
    // The registry of the tests has no release of it, so the log is told of a visit that saw nothing.
    note_visit(&station, package);
    let served = station.serve();

    let begun = start(&served, package, &other);
    assert_eq!(begun["offers"], json!([{ "method": "manifest", "place": package }]));
    let manifest = "/@acme%2Fmail/latest";
    station.web.put(manifest, &json!({ "name": "@acme/mail", "holdpoint": begun["line"] }));
    let told = verify(&served, package, &other, &begun, "manifest").is(200).json();
    assert_eq!((&told["state"], &told["domain"]), (&json!("verified"), &json!("@acme/mail")));
    station.web.remove(manifest);

    let begun = start(&served, package, &publisher);
    station.bench.file("line.txt", begun["signed_text"].as_str().unwrap());
    let signed = std::process::Command::new("openssl")
        .args(["pkeyutl", "-sign", "-rawin", "-inkey", "publisher.pem", "-in", "line.txt"])
        .current_dir(station.bench.path(""))
        .output();
    let Ok(signed) = signed else {
        testing::not_run("openssl is not installed: no signature by another tool");
        return;
    };
    assert!(signed.status.success(), "{}", String::from_utf8_lossy(&signed.stderr));
    let mut body = json!({ "server": package, "key": publisher, "nonce": begun["nonce"],
        "method": "attestation-key", "signature": STANDARD.encode([0_u8; 64]) });
    served.post("/api/v1/claims/verify", None, &body).is(409);
    body["signature"] = json!(STANDARD.encode(signed.stdout));
    let told = served.post("/api/v1/claims/verify", None, &body).is(200).json();
    assert_eq!(told["state"], "waiting", "the first claim counts");
}

/// Records that a package was visited without a contract.
fn note_visit(station: &Station, package: &str) {
    use directory::crawl::{Manifest, NotListed, Observation, Outcome};
    use directory::writer::{Folders, LogWriter};
    let home = station.bench.home();
    let folders = Folders { data: home.join("directory"), keys: home.join("keys/directory") };
    let now = contract::time::Timestamp(
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis()
            as i64,
    );
    let mut writer = LogWriter::open(&folders, "http://directory.example", None, now).unwrap();
    let seen = Observation {
        server: package.parse().unwrap(),
        release: Some("1.0.0".to_owned()),
        at: now,
        outcome: Outcome::NotListed(NotListed::Silent),
        cause: None,
        manifest: Manifest::default(),
        launch: Vec::new(),
    };
    writer.record(&seen, now).unwrap();
    writer.publish().unwrap();
}
