use super::*;
use crate::crawl::{Manifest, Observation, Outcome};
use crate::serve::http::Asked;
use crate::writer::LogWriter;
use ::http::Method;
use http_body_util::BodyExt;
use serde_json::Value;

const NOW: Timestamp = Timestamp(1_790_000_000_000);
const HOSTILE: &str = "<script>alert(1)</script><img src=x onerror=alert(2)>\u{202e}\u{200b}\"'&";

fn clock() -> Timestamp {
    NOW
}

fn hostile_capture() -> String {
    json!({
        "tools": [
            { "name": "read", "title": HOSTILE, "description": HOSTILE, "inputSchema": { "type": "object", "properties": { HOSTILE: { "description": HOSTILE } } } },
            { "name": HOSTILE, "description": "x", "inputSchema": { "type": "object" } },
        ],
        "instructions": HOSTILE,
        "serverInfo": { "name": HOSTILE, "version": HOSTILE },
    })
    .to_string()
}

struct Place {
    _folder: tempfile::TempDir,
    site: Site,
}

fn observation(server: &str, release: &str, capture: String) -> Observation {
    Observation {
        server: server.parse().unwrap(),
        release: Some(release.to_owned()),
        at: NOW,
        outcome: Outcome::Listed(capture),
        cause: None,
        manifest: Manifest {
            title: Some(HOSTILE.to_owned()),
            description: Some(HOSTILE.to_owned()),
            repository: Some("javascript:alert(3)".to_owned()),
            licence: Some(HOSTILE.to_owned()),
            version: Some(release.to_owned()),
            ..Manifest::default()
        },
        launch: Vec::new(),
    }
}

fn place(anonymous: u64) -> Place {
    let folder = tempfile::tempdir().unwrap();
    let folders = Folders { data: folder.path().join("data"), keys: folder.path().join("keys") };
    let mut writer = LogWriter::open(&folders, "https://d.example", None, NOW).unwrap();
    writer.record(&observation("npm:@a/hostile", "1.0.0", hostile_capture()), NOW).unwrap();
    let changed = hostile_capture().replace("\"x\"", "\"y </pre><script>z</script>\"");
    writer.record(&observation("npm:@a/hostile", "1.0.1", changed), NOW).unwrap();
    writer.publish().unwrap();
    let site = Site::open(SiteParts {
        folders,
        public_url: "https://d.example".to_owned(),
        contact: "mailto:ops@d.example".to_owned(),
        sunset: Some("Wed, 01 Dec 2027 00:00:00 GMT".to_owned()),
        rates: Rates::new(anonymous, 600, Vec::new()),
        trusted_proxies: vec!["127.0.0.1".parse().unwrap()],
        mirror_of: None,
        salt: None,
        claims: None,
        clock,
    })
    .unwrap();
    Place { _folder: folder, site }
}

fn ask(site: &Site, path: &str, forwarded: &str) -> Answer {
    let (path, query) = match path.split_once('?') {
        Some((path, query)) => (path, Some(query.to_owned())),
        None => (path, None),
    };
    let mut headers = HeaderMap::new();
    headers.insert("x-forwarded-for", forwarded.parse().unwrap());
    site.answer(&Asked {
        method: Method::GET,
        path: path.to_owned(),
        query,
        headers,
        peer: "127.0.0.1:9".parse().unwrap(),
        body: Bytes::new(),
    })
}

fn body(answer: Answer) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let bytes = runtime.block_on(answer.into_body().collect()).unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn json_of(answer: Answer) -> Value {
    serde_json::from_str(&body(answer)).unwrap()
}

const TOOL: &str = "/api/v1/trust/tool/npm:@a%2Fhostile/read";

#[test]
fn a_screened_tool_has_every_member_of_the_contract() {
    let place = place(60);
    let answer = ask(&place.site, TOOL, "1.1.1.1");
    assert_eq!(answer.status(), StatusCode::OK);
    assert!(answer.headers().contains_key("sunset"));
    let told = json_of(answer);
    assert_eq!(told["subject"], json!({ "server_id": "npm:@a/hostile", "tool_name": "read" }));
    assert_eq!((&told["status"], &told["directive"]), (&json!("OK"), &json!("REVIEW")));
    assert_eq!(told["evidence_grade"], "crawl-l0");
    assert_eq!(told["verdict_contract_version"], "1.0.0");
    assert_eq!(told["calibrated"], false);
    assert!(!told["honest_limits"].as_array().unwrap().is_empty());
    let again = json_of(ask(&place.site, TOOL, "1.1.1.1"));
    assert_eq!(told, again, "the rendered answer is the same");
    let hash = told["definition_hash"].as_str().unwrap();
    let by_hash = json_of(ask(&place.site, &format!("/api/v1/trust/verdict/{hash}"), "1.1.1.1"));
    assert_eq!(by_hash["directive"], "REVIEW");
    assert_eq!(by_hash["entry_hash"], told["entry_hash"]);
}

#[test]
fn what_is_not_on_file_is_unverified_with_status_200() {
    let place = place(60);
    let other = "0".repeat(64);
    for path in [
        "/api/v1/trust/tool/npm:none/read".to_owned(),
        "/api/v1/trust/tool/npm:@a%2Fhostile/none".to_owned(),
        "/api/v1/trust/server/pypi:none".to_owned(),
        format!("/api/v1/trust/verdict/{other}"),
        format!("{TOOL}?definition_hash={other}"),
    ] {
        let answer = ask(&place.site, &path, "1.1.1.1");
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        let told = json_of(answer);
        assert_eq!((&told["status"], &told["directive"]), (&json!("ERROR"), &json!("UNVERIFIED")));
        assert_eq!(told["dimensions"], json!([]));
        assert!(told["granularity"].is_null() && told["expires_at"].is_null());
        assert!(told["honest_limits"].as_array().unwrap().contains(&json!("no_verdict")));
    }
    for path in
        ["/api/v1/trust/tool/npm:a", "/api/v1/trust/verdict/xyz", "/api/v1/trust/server/a%20b"]
    {
        assert_eq!(ask(&place.site, path, "1.1.1.1").status(), StatusCode::BAD_REQUEST, "{path}");
    }
    let wrong = format!("{TOOL}?definition_hash=1&x=2");
    assert_eq!(ask(&place.site, &wrong, "1.1.1.1").status(), StatusCode::BAD_REQUEST);
}

/// Checks documented examples and real responses against the published schema.
#[test]
fn responses_and_documented_examples_match_the_schema() {
    let openapi: Value = serde_json::from_str(OPENAPI).unwrap();
    let mut schema = openapi["components"]["schemas"]["verdict"].clone();
    schema["components"] = openapi["components"].clone();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let extra = json!({ "evidence_grade": "crawl-l0", "definition_hash": null, "entry_hash": null, "calibrated": false });
    let with_extra = |mut value: Value| {
        let members = extra.as_object().unwrap().clone();
        value.as_object_mut().unwrap().extend(members);
        value
    };
    let allow = with_extra(json!({
        "subject": { "server_id": "uptimerobot", "tool_name": "get_monitors" }, "status": "OK", "directive": "ALLOW",
        "granularity": "description", "dimensions": [], "expires_at": "2026-07-01T00:00:00Z",
        "honest_limits": ["advisory", "description_granularity"], "verdict_contract_version": "1.0.0"
    }));
    assert!(validator.is_valid(&allow));
    let place = place(60);
    for path in [TOOL, "/api/v1/trust/server/npm:@a%2Fhostile", "/api/v1/trust/server/npm:none"] {
        let told = json_of(ask(&place.site, path, "1.1.1.1"));
        let problems: Vec<String> = validator.iter_errors(&told).map(|it| it.to_string()).collect();
        assert!(problems.is_empty(), "{path}: {problems:?}");
    }
    let mut wrong = allow;
    wrong["directive"] = json!("PROCEED");
    assert!(!validator.is_valid(&wrong));
}

#[test]
fn an_address_that_asks_too_often_is_told_when_to_come_back() {
    let place = place(2);
    assert_eq!(ask(&place.site, TOOL, "1.1.1.1").status(), StatusCode::OK);
    assert_eq!(ask(&place.site, TOOL, "1.1.1.1").status(), StatusCode::OK);
    let slow = ask(&place.site, TOOL, "1.1.1.1");
    assert_eq!(slow.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(slow.headers()[RETRY_AFTER].to_str().unwrap().parse::<u64>().unwrap() <= 60);
    assert_eq!(ask(&place.site, TOOL, "1.1.1.2").status(), StatusCode::OK);
    // An address forwarded by an untrusted peer is counted as that peer. Addresses written by the
    // caller do not count, nor does anything before an address that cannot be parsed.
    for forged in ["9.9.9.9, 1.1.1.1", "9.9.9.9, 1.1.1.1:4711", "9.9.9.9, ::ffff:1.1.1.1"] {
        assert_eq!(
            ask(&place.site, TOOL, forged).status(),
            StatusCode::TOO_MANY_REQUESTS,
            "{forged}"
        );
    }
}

#[test]
fn no_markup_and_no_hidden_character_of_a_server_reaches_a_page() {
    let place = place(60);
    let tool = format!("/server/npm:@a%2Fhostile/tool/{}", crate::subject::encode_segment(HOSTILE));
    for path in [
        "/",
        "/screen",
        "/screen?q=%3Cscript%3E",
        "/stats",
        "/leaderboard",
        "/status",
        "/changelog",
        "/methodology",
        "/drift",
        "/drift?only=safety",
        "/queue",
        "/advisories",
        "/server/npm:@a%2Fhostile",
        "/server/npm:@a%2Fhostile/tool/read",
        &tool,
    ] {
        let answer = ask(&place.site, path, "1.1.1.1");
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        assert_eq!(answer.headers()["content-security-policy"], CONTENT_SECURITY_POLICY);
        let page = body(answer);
        for forbidden in ["<script", "<img", "\u{202e}", "\u{200b}", "style=", "href=\"javascript"]
        {
            assert!(!page.contains(forbidden), "{path} has {forbidden}: {page}");
        }
        assert!(
            page.contains("<html lang=\"en\">") && page.contains("<main id=\"main\">"),
            "{path}"
        );
    }
    let page = body(ask(&place.site, &tool, "1.1.1.1"));
    assert!(page.contains("&lt;script&gt;") && page.contains("\\u{202e}"), "{page}");
    let told = body(ask(&place.site, "/api/v1/trust/server/npm:@a%2Fhostile", "1.1.1.1"));
    assert!(!told.contains("<script") && !told.contains("onerror"), "{told}");
}

#[test]
fn unknown_pages_and_files_are_not_found() {
    let place = place(60);
    for path in [
        "/server/npm:none",
        "/server/%2e%2e",
        "/x",
        "/log/tile/0/000",
        "/log/../keys/log.key",
        "/log/document/zz",
    ] {
        assert_eq!(ask(&place.site, path, "1.1.1.1").status(), StatusCode::NOT_FOUND, "{path}");
    }
    assert_eq!(ask(&place.site, "/log/checkpoint", "1.1.1.1").status(), StatusCode::OK);
    assert_eq!(ask(&place.site, "/log/tile/0/000.p/4", "1.1.1.1").status(), StatusCode::OK);
}

#[test]
fn demand_counts_listed_servers_only() {
    let place = place(60);
    ask(&place.site, TOOL, "1.1.1.1");
    ask(&place.site, "/api/v1/trust/server/npm:internal-secret-tool", "1.1.1.1");
    place.site.flush_demand().unwrap();
    let snapshot = place.site.snapshot();
    let networks = place.site.demand().networks(&snapshot.model).unwrap();
    assert_eq!(networks.values().sum::<u64>(), 1);
    assert_eq!(networks.len(), 1);
}

#[test]
fn looks_at_pages_count_as_demand_for_listed_servers_only() {
    let place = place(60);
    for (path, address) in [
        ("/server/npm:@a%2Fhostile", "192.0.2.1"),
        ("/server/npm:@a%2Fhostile/tool/read", "192.0.2.99"),
        ("/server/npm:@a%2Fhostile", "198.51.100.1"),
        ("/server/npm:internal-name", "203.0.113.1"),
        ("/screen?q=internal-name", "203.0.113.1"),
    ] {
        ask(&place.site, path, address);
    }
    place.site.flush_demand().unwrap();
    let networks = place.site.demand().networks(&place.site.snapshot().model).unwrap();
    assert_eq!(networks.values().copied().collect::<Vec<_>>(), [2]);
    for file in ["demand.db", "demand.db-wal", "directory.db", "directory.db-wal"] {
        let bytes = std::fs::read(place.site.parts().folders.data.join(file)).unwrap_or_default();
        assert!(!bytes.windows(13).any(|window| window == b"internal-name"), "{file}");
    }
}
