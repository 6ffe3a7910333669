//! A server's status, state by state, according to `conformance/gateway/status.json`.

use crate::station::{HttpAnswer, PATIENCE, SERVER, Setup, Station};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const CASES: &str = include_str!("../../../conformance/gateway/status.json");

#[test]
fn a_server_is_served_by_its_status_and_no_other_way() {
    let document: Value = serde_json::from_str(CASES).unwrap();
    let cases = document["cases"].as_array().unwrap();
    assert!(!cases.is_empty());
    let mut seen = std::collections::BTreeSet::new();
    for case in cases {
        let text = |name: &str| case[name].as_str().unwrap().to_owned();
        let setup = Setup {
            scenario: text("scenario"),
            first_use: text("first_use"),
            drift_scope: text("drift_scope"),
            front: String::new(),
        };
        let station = Station::start(&setup);
        for (number, step) in case["steps"].as_array().unwrap().iter().enumerate() {
            let place = format!("{}, step {}", text("name"), number + 1);
            perform(&station, step, &place);
            seen.extend(check(&station, &step["expect"], &place));
        }
    }
    let all = ["changed", "pending", "quarantined", "unbaselined", "verified"];
    assert_eq!(seen.iter().map(String::as_str).collect::<Vec<_>>(), all);
}

fn perform(station: &Station, step: &Value, place: &str) {
    let Some(act) = step["do"].as_str() else { return };
    let post =
        |act: &str, body: &Value| station.admin("POST", &format!("/servers/{SERVER}/{act}"), body);
    let answer: HttpAnswer = match act {
        "connect" => return connect(station),
        "change" => return station.show("after"),
        "revert" => return station.show("before"),
        "recheck" | "quarantine" | "release" => post(act, &Value::Null),
        "approve" => post(act, &json!({"surface_hash": station.server()["surface_hash"]})),
        "approve_other" => post("approve", &json!({"surface_hash": "0".repeat(64)})),
        "approve_entries" => {
            let server = station.server();
            let waiting = server["waiting"].as_array().unwrap().iter();
            let entries: Vec<Value> = waiting
                .map(|entry| {
                    let hash = &entry["entry_hash"]["after"];
                    json!({"type": entry["type"], "key": entry["key"], "entry_hash": hash})
                })
                .collect();
            post("approve", &json!({"entries": entries}))
        }
        _ => panic!("{place}: no act `{act}`"),
    };
    let expected = step["answer"].as_u64().unwrap();
    assert_eq!(u64::from(answer.status), expected, "{place}: {answer:?}");
}

/// Lists as a caller, which makes the gateway observe a server for the first time.
fn connect(station: &Station) {
    let begun = Instant::now();
    while station.session().tools().is_empty() {
        assert!(begun.elapsed() < PATIENCE, "the server was not seen");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn check(station: &Station, expected: &Value, place: &str) -> Option<String> {
    let expected = expected.as_object()?;
    let server = station.server();
    let status = server["status"].as_str().unwrap().to_owned();
    assert_eq!(expected["status"], status.as_str(), "{place}: {server}");
    let listed = station.admin("GET", "/servers", &Value::Null).json();
    assert_eq!(listed["servers"][0]["status"], status.as_str(), "{place}");
    if let Some(tools) = expected.get("tools") {
        let shown = station.session().tools();
        assert_eq!(*tools, json!(shown), "{place}: {server}");
        assert_eq!(server["tools_served"], tools.as_array().unwrap().len(), "{place}");
    }
    let calls = expected.get("calls").and_then(Value::as_object);
    for (tool, outcome) in calls.into_iter().flatten() {
        let (found, answer) = station.session().call(tool);
        assert_eq!(outcome, found, "{place}, a call of {tool}: {answer}");
    }
    Some(status)
}
