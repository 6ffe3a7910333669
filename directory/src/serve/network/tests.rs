use super::*;
use crate::adjudication::adjudicate;
use crate::corpus::Adjudication;
use crate::crawl::{Manifest, Observation, Outcome};
use crate::database::Database;
use crate::serve::http::Handler;
use crate::serve::rates::Rates;
use crate::serve::site::SiteParts;
use crate::writer::{Folders, LogWriter};
use ::http::HeaderMap;
use ::http::header::AUTHORIZATION;
use contract::hash::{DefinitionHash, EntryHash};
use gate::network::{
    AdvisoryPage, CorpusVerdict, DriftPage, Fingerprint, MAX_CONTRIBUTIONS_A_DAY, ReasonClass,
    bucket_of,
};
use http_body_util::BodyExt;
use serde_json::{Value, json};

const NOW: Timestamp = Timestamp(1_790_000_000_000);
const SALT: Salt = Salt::from_bytes([7; 32]);

fn clock() -> Timestamp {
    NOW
}

struct Place {
    _folder: tempfile::TempDir,
    folders: Folders,
    site: Site,
}

fn capture(description: &str) -> String {
    json!({ "tools": [
        { "name": "read", "description": description, "inputSchema": { "type": "object" } },
    ] })
    .to_string()
}

fn observation(release: &str, description: &str) -> Observation {
    Observation {
        server: "npm:files".parse().unwrap(),
        release: Some(release.to_owned()),
        at: NOW,
        outcome: Outcome::Listed(capture(description)),
        cause: None,
        manifest: Manifest { version: Some(release.to_owned()), ..Manifest::default() },
        launch: Vec::new(),
    }
}

/// A directory with one server whose tool changed once, three members, and an expired key.
fn place_with(rate: u64, salt: Option<Salt>) -> Place {
    let folder = tempfile::tempdir().unwrap();
    let folders = Folders { data: folder.path().join("data"), keys: folder.path().join("keys") };
    let mut writer = LogWriter::open(&folders, "https://d.example", None, NOW).unwrap();
    writer.record(&observation("1.0.0", "Reads a file."), NOW).unwrap();
    writer.record(&observation("1.0.1", "Reads another file."), NOW).unwrap();
    writer.publish().unwrap();
    let key = |owner: &str, secret: &str, ends: i64| {
        ApiKey::new(owner, secret.as_bytes(), Timestamp(NOW.0 + ends))
    };
    let keys = vec![
        key("acme", "k1", 1_000),
        key("bank", "k2", 1_000),
        key("corp", "k3", 1_000),
        key("acme", "k4", 1_000),
        key("late", "old", 0),
    ];
    let site = Site::open(SiteParts {
        folders: folders.clone(),
        public_url: "https://d.example".to_owned(),
        contact: "mailto:ops@d.example".to_owned(),
        sunset: None,
        rates: Rates::new(rate, rate, keys),
        trusted_proxies: Vec::new(),
        mirror_of: None,
        salt,
        claims: None,
        clock,
    })
    .unwrap();
    Place { _folder: folder, folders, site }
}

fn place() -> Place {
    place_with(100_000, Some(SALT))
}

impl Place {
    fn ask(
        &self,
        method: Method,
        path: &str,
        key: Option<&str>,
        body: &[u8],
    ) -> (StatusCode, Vec<u8>) {
        let answer = self.answer(method, path, key, body);
        let status = answer.status();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let bytes = runtime.block_on(answer.into_body().collect()).unwrap().to_bytes();
        (status, bytes.to_vec())
    }

    fn answer(&self, method: Method, path: &str, key: Option<&str>, body: &[u8]) -> Answer {
        let (path, query) = match path.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (path, None),
        };
        let mut headers = HeaderMap::new();
        if let Some(key) = key {
            headers.insert(AUTHORIZATION, format!("Bearer {key}").parse().unwrap());
        }
        self.site.answer(&Asked {
            method,
            path: format!("{PREFIX}{path}"),
            query,
            headers,
            peer: "192.0.2.1:9".parse().unwrap(),
            body: Bytes::copy_from_slice(body),
        })
    }

    fn get(&self, path: &str) -> Vec<u8> {
        let (status, body) = self.ask(Method::GET, path, Some("k1"), b"");
        assert_eq!(status, StatusCode::OK, "{path}: {}", String::from_utf8_lossy(&body));
        body
    }

    fn contribute(&self, key: &str, hash: DefinitionHash, verdict: CorpusVerdict) -> StatusCode {
        let reason_class = ReasonClass::Injection;
        let row = CorpusRow { definition_hash: hash, verdict, reason_class };
        let body = serde_json::to_vec(&row).unwrap();
        self.ask(Method::POST, "corpus", Some(key), &body).0
    }

    fn rows(&self) -> Vec<CorpusRow> {
        let bucket = Bucket::new(0, 0).unwrap();
        CorpusBucket::read(&self.get("corpus/0/0"), bucket).unwrap().rows
    }
}

fn hash(byte: u8) -> DefinitionHash {
    DefinitionHash::from_bytes([byte; 32])
}

#[test]
fn every_route_needs_a_key_and_a_mirror_has_no_network() {
    let place = place();
    let routes = [
        (Method::GET, "parameters"),
        (Method::GET, "corpus/0/0"),
        (Method::POST, "corpus"),
        (Method::GET, "drift?after=0"),
        (Method::POST, "drift"),
        (Method::GET, "reports/0/0"),
        (Method::GET, "advisories?after=0"),
        (Method::GET, "nothing"),
    ];
    for (method, path) in routes {
        for key in [None, Some("guess"), Some("old"), Some("")] {
            let (status, _) = place.ask(method.clone(), path, key, b"{}");
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{path} {key:?}");
        }
    }
    let mirror = place_with(10, None);
    let (status, body) = mirror.ask(Method::GET, "parameters", Some("k1"), b"");
    assert_eq!(status, StatusCode::NOT_FOUND, "{}", String::from_utf8_lossy(&body));
}

#[test]
fn rates_count_by_key_and_say_when_to_come_back() {
    let place = place_with(2, Some(SALT));
    for _ in 0..2 {
        place.get("parameters");
    }
    let answer = place.answer(Method::GET, "parameters", Some("k1"), b"");
    assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(answer.headers().contains_key("retry-after"));
    assert_eq!(place.ask(Method::GET, "parameters", Some("k2"), b"").0, StatusCode::OK);
    for _ in 0..2 {
        assert_eq!(place.ask(Method::GET, "parameters", None, b"").0, StatusCode::UNAUTHORIZED);
    }
    let (status, _) = place.ask(Method::GET, "parameters", None, b"");
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS, "without a key the address is counted");
}

#[test]
fn parameters_and_the_drift_feed_are_read_by_the_clients_own_readers() {
    let place = place();
    let parameters = Parameters::read(&place.get("parameters")).unwrap();
    assert_eq!((parameters.contracts, parameters.bucket_bits), (2, 0));
    assert_eq!(parameters.salt, SALT);
    let page = DriftPage::read(&place.get("drift"), 0).unwrap();
    let model = &place.site.snapshot().model;
    let item = &model.drifts[0].item;
    let print = |hash: &Option<String>| -> Fingerprint {
        SALT.fingerprint(hash.as_deref().unwrap().parse::<EntryHash>().unwrap())
    };
    let entry = &page.entries[0];
    assert_eq!(entry.change.fp_before, print(&item.entry_before));
    assert_eq!(entry.change.fp_after, print(&item.entry_after));
    assert_eq!(entry.change.safety, item.safety);
    assert_eq!(entry.change.kinds.len(), item.kinds.len());
    assert!(
        entry.change.hour.start().0 <= NOW.0 && NOW.0 - entry.change.hour.start().0 < 3_600_000
    );
    let text = String::from_utf8(place.get("drift?after=0")).unwrap();
    for secret in ["files", "read", item.entry_before.as_deref().unwrap()] {
        assert!(!text.contains(&format!("\"{secret}")), "{text}");
    }
    let after = DriftPage::read(&place.get(&format!("drift?after={}", page.next)), page.next);
    assert!(after.unwrap().entries.is_empty());
}

#[test]
fn three_owners_make_a_row_and_two_keys_of_one_owner_do_not() {
    let place = place();
    for key in ["k1", "k4", "k2"] {
        let status = place.contribute(key, hash(1), CorpusVerdict::Dangerous);
        assert_eq!(status, StatusCode::NO_CONTENT);
    }
    assert!(place.rows().is_empty());
    place.contribute("k3", hash(1), CorpusVerdict::Dangerous);
    let rows = place.rows();
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].definition_hash, rows[0].verdict), (hash(1), CorpusVerdict::Dangerous));
    place.contribute("k3", hash(2), CorpusVerdict::Cleared);
    assert_eq!(place.rows().len(), 1);
}

#[test]
fn a_key_contributes_so_much_a_day_and_no_more() {
    let place = place();
    let id = ApiKey::new("acme", b"k1", NOW).id();
    let mut database = Database::open(&place.folders.database()).unwrap();
    let counted = database.write::<_, DatabaseError>(|writing| {
        (1..MAX_CONTRIBUTIONS_A_DAY).try_for_each(|_| {
            let message = QuotaMessage::Contribution;
            writing.count_message(&id, "acme", message, NOW).map(|_| ())
        })
    });
    counted.unwrap();
    assert_eq!(place.contribute("k1", hash(9), CorpusVerdict::Cleared), StatusCode::NO_CONTENT);
    let body = serde_json::to_vec(&CorpusRow {
        definition_hash: hash(1),
        verdict: CorpusVerdict::Cleared,
        reason_class: ReasonClass::Unstated,
    });
    let refused = place.answer(Method::POST, "corpus", Some("k1"), &body.unwrap());
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    let seconds: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    let midnight = (86_400_000 - NOW.0.rem_euclid(86_400_000)) as u64;
    assert_eq!(seconds, midnight.div_ceil(1_000));
    assert_eq!(place.contribute("k4", hash(1), CorpusVerdict::Cleared), StatusCode::NO_CONTENT);
}

#[test]
fn bad_requests_are_refused_with_a_sentence_that_quotes_nothing() {
    let place = place();
    let odd = "MARKER";
    let gets = [
        "corpus/0/MARKER",
        "corpus/15/0",
        "corpus/1/0",
        "corpus/+0/0",
        "corpus/00/0",
        "corpus/0/1",
        "reports/0/MARKER",
        "drift?after=MARKER",
        "drift?after=-1",
        "drift?MARKER",
        "advisories?after=1&x=MARKER",
        "parameters?MARKER",
    ];
    for path in gets {
        let (status, body) = place.ask(Method::GET, path, Some("k1"), b"");
        assert_eq!(status, StatusCode::BAD_REQUEST, "{path}");
        let told: Value = serde_json::from_slice(&body).unwrap();
        assert!(!told["error"].as_str().unwrap().contains(odd), "{told}");
    }
    let report = json!({ "fp_before": "01".repeat(32), "fp_after": "01".repeat(32), "kinds": [],
        "safety": false, "hour": "2026-11-18T06" });
    let posts = [
        ("corpus", json!({ "definition_hash": odd })),
        (
            "corpus",
            json!({ "definition_hash": "ab".repeat(32), "verdict": odd, "reason_class": "" }),
        ),
        ("drift", json!({ "fp_before": odd })),
        ("drift", report),
    ];
    for (path, body) in posts {
        let bytes = body.to_string();
        let (status, body) = place.ask(Method::POST, path, Some("k1"), bytes.as_bytes());
        assert_eq!(status, StatusCode::BAD_REQUEST, "{path} {bytes}");
        assert!(!String::from_utf8(body).unwrap().contains(odd));
    }
    for (method, path) in
        [(Method::GET, "corpus"), (Method::POST, "parameters"), (Method::POST, "corpus/0/0")]
    {
        let (status, _) = place.ask(method, path, Some("k1"), b"{}");
        assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED, "{path}");
    }
    assert_eq!(place.ask(Method::GET, "MARKER", Some("k1"), b"").0, StatusCode::NOT_FOUND);
    assert_eq!(place.site.max_body("/api/v1/network/corpus"), MAX_REQUEST_BYTES);
    assert_eq!(place.site.max_body("/api/v1/network/parameters"), 0);
}

#[test]
fn reports_are_unconfirmed_and_stay_out_of_the_feed() {
    let place = place();
    let before = DriftPage::read(&place.get("drift"), 0).unwrap();
    let report = json!({ "fp_before": "01".repeat(32), "fp_after": "02".repeat(32),
        "kinds": ["tool-removed"], "safety": true, "hour": "2026-11-18T06" });
    for key in ["k1", "k2", "k4"] {
        let body = report.to_string();
        let (status, _) = place.ask(Method::POST, "drift", Some(key), body.as_bytes());
        assert_eq!(status, StatusCode::NO_CONTENT);
    }
    let bucket = Bucket::new(0, 0).unwrap();
    let reports = ReportBucket::read(&place.get("reports/0/0"), bucket).unwrap().reports;
    assert_eq!(reports.len(), 1);
    assert_eq!(reports[0].installs, 2, "two owners, of whom one has two keys");
    assert_eq!(DriftPage::read(&place.get("drift"), 0).unwrap(), before);
}

#[test]
fn advisories_come_from_the_log_in_its_order() {
    let place = place();
    let mut database = Database::open(&place.folders.database()).unwrap();
    for byte in [1, 2] {
        let (verdict, reason) = (CorpusVerdict::Dangerous, ReasonClass::Exfiltration);
        adjudicate(&mut database, hash(byte), verdict, reason, Some("<b>text</b>"), NOW).unwrap();
    }
    place.site.refresh().unwrap();
    let empty = AdvisoryPage::read(&place.get("advisories"), 0).unwrap();
    assert!(empty.advisories.is_empty(), "nothing is served that no checkpoint covers");
    let mut writer = LogWriter::open(&place.folders, "https://d.example", None, NOW).unwrap();
    assert_eq!(writer.say_waiting(NOW).unwrap(), 2);
    writer.publish().unwrap();
    place.site.refresh().unwrap();
    let page = AdvisoryPage::read(&place.get("advisories?after=0"), 0).unwrap();
    let hashes: Vec<_> = page.advisories.iter().map(|one| one.definition_hash).collect();
    assert_eq!((hashes, page.next), (vec![hash(1), hash(2)], 2));
    assert_eq!(page.advisories[0].reason_class, ReasonClass::Exfiltration);
    let rest = AdvisoryPage::read(&place.get("advisories?after=1"), 1).unwrap();
    assert_eq!(rest.advisories.len(), 1);
}

/// After lookups of a bucket, the directory's own files do not reveal the bucket.
#[test]
fn a_look_up_leaves_nothing_behind() {
    let place = place();
    let tables = |place: &Place| -> Vec<u8> {
        let mut all = Vec::new();
        for name in ["directory.db", "directory.db-wal", "demand.db", "demand.db-wal"] {
            all.extend(std::fs::read(place.folders.data.join(name)).unwrap_or_default());
        }
        all
    };
    place.get("corpus/0/0");
    place.site.flush_demand().unwrap();
    let before = tables(&place);
    for path in ["corpus/0/0", "reports/0/0", "drift?after=0", "advisories", "parameters"] {
        place.get(path);
    }
    assert_eq!(tables(&place), before);
}

#[test]
fn wide_buckets_are_answered_and_narrow_ones_are_not() {
    let place = place();
    let mut database = Database::open(&place.folders.database()).unwrap();
    let hashes: Vec<DefinitionHash> =
        (0..2_048_u32).map(|number| DefinitionHash::of(&number.to_be_bytes())).collect();
    let said = Adjudication::Said(CorpusVerdict::Cleared, ReasonClass::ReviewedBenign);
    let adjudicated = database.write::<_, DatabaseError>(|writing| {
        hashes.iter().try_for_each(|hash| writing.adjudicate(*hash, said).map(|_| ()))
    });
    adjudicated.unwrap();
    let parameters = Parameters::read(&place.get("parameters")).unwrap();
    assert_eq!(parameters.bucket_bits, 1);
    let mut found = 0;
    for index in 0..2 {
        let bucket = Bucket::new(1, index).unwrap();
        let rows =
            CorpusBucket::read(&place.get(&format!("corpus/1/{index}")), bucket).unwrap().rows;
        assert!(rows.iter().all(|row| bucket_of(row.definition_hash.as_bytes(), 1) == bucket));
        found += rows.len();
    }
    assert_eq!(found, 2_048);
    assert_eq!(place.rows().len(), 2_048, "an install that read the parameters earlier");
    let (status, _) = place.ask(Method::GET, "corpus/2/0", Some("k1"), b"");
    assert_eq!(status, StatusCode::BAD_REQUEST);
}
