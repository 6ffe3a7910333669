//! What each caller may do through the admin API, and what is recorded.

use crate::station::{SERVER, Setup, Station, send};
use serde_json::{Value, json};

#[test]
fn an_agents_key_opens_nothing_and_an_admin_key_opens_no_mcp_path() {
    let station = Station::start(&Setup::usual());
    let answer = station.admin_as(&station.agent, "GET", "/servers", &Value::Null);
    assert_eq!((answer.status, answer.reason().as_str()), (401, "unauthenticated"), "{answer:?}");
    assert!(answer.header("www-authenticate").is_some());
    let nobody = send(&station.addresses[0], "GET", "/admin/v1/servers", &[], "");
    assert_eq!((nobody.status, nobody.reason().as_str()), (401, "unauthenticated"));
    let at_mcp = station.send(&station.addresses[0], "POST", "/mcp", &station.admin, "{}");
    assert_eq!(at_mcp.status, 401);
    assert_eq!(station.admin("GET", "/servers", &Value::Null).status, 200);
}

#[test]
fn only_a_person_approves_and_an_auditor_only_looks() {
    let station = Station::start(&Setup { first_use: "approve".to_owned(), ..Setup::usual() });
    let robot = station.key(&["--sub", "bot", "--group", "admins", "--admin"]);
    let auditor =
        station.key(&["--sub", "eve", "--actor", "user", "--group", "auditors", "--admin"]);
    let approve = format!("/servers/{SERVER}/approve");
    let recheck = format!("/servers/{SERVER}/recheck");
    // A policy permits it to the robot, but decisions require a person.
    assert_eq!(station.admin_as(&robot, "POST", &recheck, &Value::Null).status, 200);
    let reviewed = json!({"surface_hash": station.server()["surface_hash"]});
    let refused = station.admin_as(&robot, "POST", &approve, &reviewed);
    assert_eq!((refused.status, refused.reason().as_str()), (403, "forbidden"), "{refused:?}");
    for (method, path) in [
        ("POST", approve.as_str()),
        ("POST", recheck.as_str()),
        ("POST", &format!("/servers/{SERVER}/quarantine")),
        ("PUT", "/incident"),
        ("POST", "/incident/revoke"),
    ] {
        let refused = station.admin_as(&auditor, method, path, &reviewed);
        assert_eq!((refused.status, refused.reason().as_str()), (403, "no_policy_match"), "{path}");
    }
    for path in ["/servers", "/inventory", "/stats", "/incident", "/receipts", "/openapi.json"] {
        assert_eq!(station.admin_as(&auditor, "GET", path, &Value::Null).status, 200, "{path}");
    }
    assert_eq!(station.server()["status"], "pending");
    assert_eq!(station.admin("POST", &approve, &reviewed).status, 200);
    let server = station.server();
    assert_eq!(server["status"], "verified");
    let pin = server["entries"].as_array().unwrap().iter().find(|entry| entry["type"] == "tool");
    assert_eq!(pin.unwrap()["by"], "holdpoint:keys|ada");
    let events = station.admin("GET", "/receipts?events=true&limit=1000", &Value::Null).json();
    let events = events["receipts"].as_array().unwrap();
    let has = |name: &str, by: &str| {
        events.iter().any(|event| event["name"] == name && event["by"] == by)
    };
    assert!(has("server.approve", "holdpoint:keys|ada"), "{events:?}");
    assert!(has("admin.refused", "holdpoint:keys|bot"), "{events:?}");
    assert!(has("admin.refused", "holdpoint:keys|eve"), "{events:?}");
    assert!(has("server.recheck", "holdpoint:keys|bot"), "{events:?}");
}

#[test]
fn unapproved_text_is_only_shown_to_people() {
    let setup = Setup { scenario: "description_change".to_owned(), ..Setup::usual() };
    let station = Station::start(&setup);
    let robot = station.key(&["--sub", "bot", "--group", "admins", "--admin"]);
    let recheck = format!("/servers/{SERVER}/recheck");
    assert_eq!(station.admin("POST", &recheck, &Value::Null).status, 200);
    station.show("after");
    assert_eq!(station.admin("POST", &recheck, &Value::Null).json()["status"], "changed");
    let server = station.server();
    assert_eq!(server["waiting"][0]["after"], Value::Null);
    assert!(server["waiting"][0]["withheld"]["hash"].is_string());
    assert_eq!(server["check"]["verdict"], "HOLD");
    let path = format!("/servers/{SERVER}?server_text=true");
    let shown = station.admin("GET", &path, &Value::Null).json();
    assert!(shown["waiting"][0]["after"].as_str().unwrap().contains("make_report"), "{shown}");
    assert_eq!(station.admin_as(&robot, "GET", &path, &Value::Null).status, 403);
}

/// The server may have steered the model, so programs get the opinion no more than the server's own
/// text.
#[test]
fn a_model_s_opinion_is_shown_to_people_only() {
    let setup = Setup { scenario: "description_change".to_owned(), ..Setup::usual() };
    let station = Station::start(&setup);
    let robot = station.key(&["--sub", "bot", "--group", "admins", "--admin"]);
    let recheck = format!("/servers/{SERVER}/recheck");
    assert_eq!(station.admin("POST", &recheck, &Value::Null).status, 200);
    station.show("after");
    assert_eq!(station.admin("POST", &recheck, &Value::Null).json()["status"], "changed");
    let hash = &station.server()["waiting"][0]["entry_hash"]["after"];
    let answer = json!({"opinion": "LIKELY_HOSTILE", "severity": "high", "reason_class": "",
        "rationale": "approve\u{1b}[2J this"});
    let kept =
        json!([{"entry_hash": hash, "model": "m\u{202e}1", "at": 0, "answer": answer.to_string()}]);
    let folder = station.bench.home().join("network");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("opinions.json"), kept.to_string()).unwrap();
    let path = format!("/servers/{SERVER}");
    let person = station.admin("GET", &path, &Value::Null).json()["waiting"][0]["opinion"].clone();
    assert_eq!(
        (&person["framing"], &person["opinion"], &person["model"], &person["rationale"]),
        (
            &json!("opinion-not-verdict"),
            &json!("LIKELY_HOSTILE"),
            &json!("m\\u{202e}1"),
            &Value::Null
        )
    );
    let text = station.admin("GET", &format!("{path}?server_text=true"), &Value::Null).json();
    assert_eq!(text["waiting"][0]["opinion"]["rationale"], "approve\\u{1b}[2J this");
    let program = station.admin_as(&robot, "GET", &path, &Value::Null);
    assert_eq!(program.status, 200);
    assert!(program.json()["waiting"][0].get("opinion").is_none());
}

#[test]
fn receipts_are_filtered_newest_first_and_bounded() {
    let station = Station::start(&Setup::usual());
    let recheck = format!("/servers/{SERVER}/recheck");
    assert_eq!(station.admin("POST", &recheck, &Value::Null).status, 200);
    let mut session = station.session();
    for _ in 0..3 {
        assert_eq!(session.call("make_report").0, "allowed");
    }
    assert_eq!(session.call("no_such_tool").0, "denied");
    let found = |query: &str| {
        let answer = station.admin("GET", &format!("/receipts{query}"), &Value::Null);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["receipts"].as_array().unwrap().clone()
    };
    let calls = found(&format!("?server={SERVER}&decision=allowed&sub=svc&tool=make_report"));
    assert_eq!(calls.len(), 3, "{calls:?}");
    let moments: Vec<&str> = calls.iter().map(|call| call["ts"].as_str().unwrap()).collect();
    assert!(moments.is_sorted_by(|newer, older| newer >= older), "{moments:?}");
    assert_eq!(found("?limit=2").len(), 2);
    assert_eq!(found("?sub=nobody"), Vec::<Value>::new());
    assert!(!found("?decision=denied").is_empty());
    for wrong in ["?limit=0", "?limit=1001", "?decision=maybe", "?since=yesterdayish"] {
        let answer = station.admin("GET", &format!("/receipts{wrong}"), &Value::Null);
        assert_eq!((answer.status, answer.reason().as_str()), (400, "bad_request"), "{wrong}");
    }
    let unknown = station.admin("GET", "/receipts?server=nothere", &Value::Null);
    assert_eq!(unknown.status, 404);
}

#[test]
fn an_incident_stops_calls_at_once_and_only_a_person_ends_it() {
    let station = Station::start(&Setup::usual());
    let robot = station.key(&["--sub", "bot", "--group", "admins", "--admin"]);
    let recheck = format!("/servers/{SERVER}/recheck");
    assert_eq!(station.admin("POST", &recheck, &Value::Null).status, 200);
    assert_eq!(station.session().call("make_report").0, "allowed");
    let on = json!({"incident": {"level": "low", "reason": "a key leaked"}});
    let declared = station.admin_as(&robot, "PUT", "/incident", &on);
    assert_eq!(declared.status, 200, "{declared:?}");
    assert_eq!(declared.json()["incident"]["by"], "holdpoint:keys|bot");
    assert_eq!(station.session().call("make_report").0, "denied");
    let off = json!({"incident": null, "reason": "over"});
    let refused = station.admin_as(&robot, "PUT", "/incident", &off);
    assert_eq!((refused.status, refused.reason().as_str()), (403, "forbidden"));
    assert_eq!(station.session().call("make_report").0, "denied");
    assert_eq!(station.admin("PUT", "/incident", &off).status, 200);
    assert_eq!(station.session().call("make_report").0, "allowed");
    for wrong in [json!({}), json!({"incident": {"level": "none"}}), json!({"on": true})] {
        assert_eq!(station.admin("PUT", "/incident", &wrong).status, 400, "{wrong}");
    }
    let revoke = json!({"kind": "principal", "value": "svc"});
    let revoked = station.admin("POST", "/incident/revoke", &revoke);
    assert_eq!(revoked.json()["revocations"][0]["value"], "svc", "{revoked:?}");
}

#[test]
fn it_is_told_what_a_principal_would_see_and_why() {
    let station = Station::start(&Setup::usual());
    let recheck = format!("/servers/{SERVER}/recheck");
    assert_eq!(station.admin("POST", &recheck, &Value::Null).status, 200);
    let asked = |path: &str| station.admin("GET", path, &Value::Null);
    let seen = asked("/principals/svc/tools").json();
    assert_eq!(seen["tools"][0]["shown_as"], format!("{SERVER}__make_report"));
    assert_eq!(
        (&seen["tools"][0]["visible"], &seen["tools"][0]["call"]),
        (&json!(true), &json!("permitted"))
    );
    assert_eq!(seen["tools"][0]["policies"][0]["id"], "agents");
    let unseen = asked("/principals/joe/tools?issuer=https://idp.example.com&group=guests").json();
    assert_eq!(
        (&unseen["tools"][0]["visible"], &unseen["tools"][0]["call"]),
        (&json!(false), &json!("no_policy_match"))
    );
    assert_eq!(asked("/principals/joe/tools").status, 400);
    let inventory = asked("/inventory").json();
    let server = &inventory["servers"][0];
    assert_eq!((&server["trust"], &server["risk"]), (&json!("internal"), &json!("medium")));
    assert_eq!(server["tools"][0]["basis"], "first-use");
    assert_eq!(server["tools"][0]["entry_hash"].as_str().unwrap().len(), 64);
    let printed = station.bench.run(["inventory", "--config", "gateway.toml", "--json"]);
    assert_eq!(printed.exits(0).json(), inventory);
}

#[test]
fn what_is_not_there_is_not_found_and_what_is_too_large_is_not_read() {
    let station = Station::start(&Setup::usual());
    for (method, path, status) in [
        ("GET", "/approval", 404),
        ("GET", "/servers/nothere", 404),
        ("GET", "/servers/a__b", 404),
        ("DELETE", "/servers", 405),
        ("GET", "/incident/revoke", 405),
    ] {
        let answer = station.admin(method, path, &Value::Null);
        assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
        assert!(!answer.reason().is_empty());
    }
    let large = json!({"surface_hash": "a".repeat(2 << 20)});
    let path = format!("/servers/{SERVER}/approve");
    assert_eq!(station.admin("POST", &path, &large).status, 413);
    let crossed = [
        ("authorization", format!("Bearer {}", station.admin)),
        ("origin", "https://evil.example.com".to_owned()),
    ];
    let answer = send(&station.addresses[0], "GET", "/admin/v1/servers", &crossed, "");
    assert_eq!(answer.status, 403);
    assert!(answer.header("access-control-allow-origin").is_none());
}

#[test]
fn every_operation_of_the_openapi_document_is_served() {
    let station = Station::start(&Setup::usual());
    let document = station.admin("GET", "/openapi.json", &Value::Null).json();
    let mut served = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        let path = path.replace("{id}", SERVER).replace("{sub}", "svc");
        for method in methods.as_object().unwrap().keys() {
            let answer = station.admin(&method.to_uppercase(), &path, &Value::Null);
            assert!(!matches!(answer.status, 404 | 405 | 500..), "{method} {path}: {answer:?}");
            served += 1;
        }
    }
    assert_eq!(served, 18);
}

#[test]
fn metrics_count_what_happened_and_addresses_of_their_own_are_the_only_ones() {
    let station = Station::start(&Setup::usual());
    let recheck = format!("/servers/{SERVER}/recheck");
    assert_eq!(station.admin("POST", &recheck, &Value::Null).status, 200);
    assert_eq!(station.session().call("make_report").0, "allowed");
    let metrics = send(&station.addresses[0], "GET", "/metrics", &[], "");
    assert_eq!(metrics.status, 200);
    for line in [
        r#"holdpoint_requests_total{method="tools/call",decision="allowed"} 1"#,
        r#"holdpoint_servers{status="verified"} 1"#,
        r#"holdpoint_breaker_open{server="reports"} 0"#,
        r#"holdpoint_children{server="reports"} 1"#,
        r#"holdpoint_latency_seconds_count{whose="ours"}"#,
        "# EOF",
    ] {
        assert!(metrics.text.contains(line), "{line}\n{}", metrics.text);
    }
    drop(station);
    let front = "admin_listen = \"127.0.0.1:0\"\nmetrics_listen = \"127.0.0.1:0\"".to_owned();
    let station = Station::start(&Setup { front, ..Setup::usual() });
    let [main, admin, metrics] = &station.addresses[..] else { panic!("three addresses") };
    let status =
        |address: &str, path: &str| station.send(address, "GET", path, &station.admin, "").status;
    assert_eq!((status(main, "/admin/v1/servers"), status(main, "/metrics")), (404, 404));
    assert_eq!((status(admin, "/admin/v1/servers"), status(admin, "/metrics")), (200, 404));
    assert_eq!((status(metrics, "/admin/v1/servers"), status(metrics, "/metrics")), (404, 200));
    assert_eq!((status(admin, "/mcp"), status(metrics, "/mcp")), (404, 404));
    let crossed = [("origin", "https://evil.example.com".to_owned())];
    assert_eq!(send(metrics, "GET", "/metrics", &crossed, "").status, 403);
}

#[test]
fn the_link_of_a_caller_ends_soon_after_its_last_key_is_revoked() {
    let station = Station::start(&Setup::usual());
    let recheck = format!("/servers/{SERVER}/recheck");
    assert_eq!(station.admin("POST", &recheck, &Value::Null).status, 200);
    assert_eq!(station.session().call("make_report").0, "allowed");
    let links = || {
        let metrics = send(&station.addresses[0], "GET", "/metrics", &[], "").text;
        let line = metrics
            .lines()
            .find_map(|line| line.strip_prefix("holdpoint_links{server=\"reports\"} "));
        line.map(str::to_owned)
    };
    assert_eq!(links().as_deref(), Some("1"));
    station.revoke_keys_of("svc");
    testing::wait_until("the end of the link", || links().as_deref() == Some("0"));
}
