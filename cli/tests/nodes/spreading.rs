//! A person's decision applies on every node within a second, measured from the command's return to
//! the last allowed call.

use crate::fleet::{Database, Fleet, count_soon};
use crate::http_client::Caller;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use testing::wait_until;

const BOUND: Duration = Duration::from_secs(1);
/// A high-risk tool.
const REPORT: &str = "reports__make_report";

/// How long after `begun` each node last behaved in the old way.
fn last(nodes: &[Caller], begun: Instant, is_old: impl Fn(&Caller) -> bool) -> Vec<Duration> {
    let mut last = vec![Duration::ZERO; nodes.len()];
    while begun.elapsed() < 2 * BOUND {
        for (caller, last) in nodes.iter().zip(&mut last) {
            let at = begun.elapsed();
            if is_old(caller) {
                *last = at;
            }
        }
    }
    last
}

fn check(what: &str, last: &[Duration]) {
    eprintln!("{what}: {last:?}");
    assert!(last.iter().all(|last| *last < BOUND), "{what}: {last:?}");
}

fn is_allowed(caller: &Caller, tool: &str) -> bool {
    let arguments = if tool == REPORT { json!({"title": "Q3"}) } else { json!({}) };
    caller.call(tool, &arguments).get("result").is_some()
}

#[test]
fn an_incident_and_a_revocation_reach_each_node_within_a_second() {
    let Some(database) = Database::shared() else { return };
    let fleet = Fleet::start(database, 2, "", "session");
    let tool = REPORT;
    let callers: Vec<Caller> = (0..2).map(|node| fleet.caller(node)).collect();
    for caller in &callers {
        wait_until("the server to be known", || is_allowed(caller, tool));
        count_soon(caller);
    }
    set_incident(&fleet, &json!({"incident": {"level": "high"}}));
    let begun = Instant::now();
    check("an incident", &last(&callers, begun, |caller| is_allowed(caller, tool)));
    set_incident(&fleet, &json!({"incident": null, "reason": "over"}));
    for caller in &callers {
        wait_until("the incident to be over", || is_allowed(caller, tool));
    }
    fleet.run(1, &["key", "revoke", &fleet.key_id, "--config", "gateway.toml"]).exits(0);
    let begun = Instant::now();
    let is_open = |caller: &Caller| caller.ask("ping", &json!({})).status != 401;
    check("a revoked key", &last(&callers, begun, is_open));
}

/// Sets incident mode through the first node.
fn set_incident(fleet: &Fleet, body: &Value) {
    let caller = Caller::new(fleet.nodes[0].address, &fleet.admin);
    let done = caller.send_to("PUT", "/admin/v1/incident", "", &body.to_string()).finish();
    assert_eq!(done.status, 200, "{}", done.body);
}

#[test]
fn an_approval_reaches_each_node_within_a_second() {
    let Some(database) = Database::shared() else { return };
    let fleet = Fleet::start(database, 2, "first_use = \"approve\"", "session");
    let callers: Vec<Caller> = (0..2).map(|node| fleet.caller(node)).collect();
    let seen = testing::wait_for("the server to wait for its first approval", || {
        let _ = callers[0].tools();
        let server = fleet.admin(0, "/servers/counter");
        server["surface_hash"].as_str().map(str::to_owned)
    });
    let caller = Caller::new(fleet.nodes[0].address, &fleet.admin);
    let body = json!({"surface_hash": seen}).to_string();
    let done = caller.send_to("POST", "/admin/v1/servers/counter/approve", "", &body).finish();
    assert_eq!(done.status, 200, "{}", done.body);
    let begun = Instant::now();
    let is_refused = |caller: &Caller| !is_allowed(caller, "counter__count");
    check("an approval", &last(&callers, begun, is_refused));
}
