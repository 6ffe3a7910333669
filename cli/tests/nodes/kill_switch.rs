//! The kill switch under load: at most one second passes from the command's return to the last call
//! allowed by any of three nodes.
//!
//! With `HOLDPOINT_LONG=1` this is repeated a hundred times, otherwise a few times.

use crate::fleet::{Database, Fleet};
use crate::http_client::Caller;
use serde_json::{Value, json};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use testing::wait_until;

/// The timeout for a response on a busy machine. Not a bound on what is measured.
const PATIENCE: Duration = Duration::from_secs(180);

const NODES: usize = 3;
/// The number of callers per node, which call without pauses.
const CALLERS: usize = 2;
const BOUND: Duration = Duration::from_secs(1);
const TOOL: &str = "reports__make_report";

fn rounds() -> usize {
    if std::env::var_os("HOLDPOINT_LONG").is_some() { 100 } else { 3 }
}

/// The observations of one node's callers.
#[derive(Default)]
struct Seen {
    allowed: AtomicU64,
    denied: AtomicU64,
    /// Calls that were refused because the node could not read the store in time, and so did not
    /// know whether they are allowed.
    unsure: AtomicU64,
    /// Calls that failed for other reasons: on a busy machine, a server may not answer in time.
    /// Whether such a call was allowed is unknown, so it proves nothing.
    failed: AtomicU64,
    /// The start of the last call that was allowed.
    last_allowed: Mutex<Option<Instant>>,
    /// The start of the last call that was refused before anything reached the server.
    last_refused: Mutex<Option<Instant>>,
}

impl Seen {
    fn note(&self, begun: Instant, answer: &Value) {
        let reason = &answer["error"]["data"]["reason"];
        let (count, last) = match (answer.get("result"), answer["error"]["code"].as_i64()) {
            (Some(_), _) => (&self.allowed, &self.last_allowed),
            (None, _) if reason == "kill_switch" => (&self.denied, &self.last_refused),
            (None, Some(-32012)) => (&self.unsure, &self.last_refused),
            (None, Some(-32011)) => {
                self.failed.fetch_add(1, Ordering::Relaxed);
                return;
            }
            (None, _) => panic!("{answer}"),
        };
        count.fetch_add(1, Ordering::Relaxed);
        let mut last = last.lock().unwrap();
        *last = (*last).max(Some(begun));
    }

    fn allowed_after(&self, moment: Instant) -> Duration {
        let last = *self.last_allowed.lock().unwrap();
        last.map_or(Duration::ZERO, |last| last.saturating_duration_since(moment))
    }
}

/// Stops the callers, even if the test fails.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn call(caller: &Caller) -> Value {
    caller.call(TOOL, &json!({ "title": "Q3" }))
}

#[test]
fn no_node_allows_a_call_that_begins_a_second_after_the_switch() {
    let Some(database) = Database::shared() else { return };
    let fleet = Fleet::start(database, NODES, "", "session");
    let seen: Vec<Seen> = (0..NODES).map(|_| Seen::default()).collect();
    let callers: Vec<(usize, Caller)> =
        (0..NODES * CALLERS).map(|place| (place % NODES, fleet.caller(place % NODES))).collect();
    for (_, caller) in &callers {
        wait_until("the server to be known", || call(caller).get("result").is_some());
    }
    let stop = AtomicBool::new(false);
    let mut worst = Vec::new();
    std::thread::scope(|scope| {
        for (node, caller) in &callers {
            let (seen, stop) = (&seen[*node], &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let begun = Instant::now();
                    seen.note(begun, &call(caller));
                }
            });
        }
        let _stopped = StopAtEnd(&stop);
        for round in 0..rounds() {
            worst.push(one_round(&fleet, &seen, round));
        }
    });
    report(&seen, &mut worst);
}

/// Turns the switch on and off once. Returns how long after the command's return a call was still
/// allowed on any node.
fn one_round(fleet: &Fleet, seen: &[Seen], round: usize) -> Duration {
    let words = ["incident", "on", "--reason", "a drill", "--config", "gateway.toml"];
    fleet.run(0, &words).exits(0);
    let returned = Instant::now();
    // Wait until every node has refused a call that started after the bound, so that all earlier
    // results are known.
    let is_refused = |seen: &Seen| {
        let last = *seen.last_refused.lock().unwrap();
        last.is_some_and(|last| last > returned + BOUND)
    };
    wait_long(&format!("round {round}: calls to be refused on every node"), || {
        seen.iter().all(is_refused)
    });
    let after: Vec<Duration> = seen.iter().map(|seen| seen.allowed_after(returned)).collect();
    assert!(after.iter().all(|after| *after <= BOUND), "round {round}: {after:?}");
    let words = ["incident", "off", "--reason", "over", "--config", "gateway.toml"];
    fleet.run(0, &words).exits(0);
    let ended = Instant::now();
    wait_long(&format!("round {round}: calls to be allowed on every node"), || {
        seen.iter().all(|seen| seen.allowed_after(ended) > Duration::ZERO)
    });
    after.into_iter().max().unwrap_or_default()
}

#[track_caller]
fn wait_long(what: &str, mut is_true: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_true() {
        assert!(Instant::now() < deadline, "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn report(seen: &[Seen], worst: &mut [Duration]) {
    worst.sort();
    let (middle, last) = (worst[worst.len() / 2], worst[worst.len() - 1]);
    let sum = |count: fn(&Seen) -> &AtomicU64| {
        seen.iter().map(|seen| count(seen).load(Ordering::Relaxed)).sum::<u64>()
    };
    let (allowed, denied) = (sum(|seen| &seen.allowed), sum(|seen| &seen.denied));
    let (unsure, failed) = (sum(|seen| &seen.unsure), sum(|seen| &seen.failed));
    eprintln!(
        "{} rounds on {NODES} nodes, {allowed} calls allowed, {denied} denied, {unsure} refused without the store and {failed} failed: the last allowed call began {} ms (median) and {} ms (longest) after the command returned",
        worst.len(),
        middle.as_millis(),
        last.as_millis()
    );
    // A machine that is too busy to run the nodes proves nothing.
    assert!(allowed > 0 && denied > 0 && (unsure + failed) * 20 < allowed + denied);
}

#[test]
fn a_drill_is_reported_by_every_node_and_stops_nothing() {
    let Some(database) = Database::shared() else { return };
    let mut fleet = Fleet::start(database, NODES, "", "session");
    let caller = fleet.caller(0);
    wait_until("the server to be known", || call(&caller).get("result").is_some());
    let words = ["incident", "drill", "--json", "--config", "gateway.toml"];
    let drill = fleet.run(0, &words).exits(0).json();
    let nodes = drill["nodes"].as_array().unwrap();
    let places: Vec<&str> = nodes.iter().filter_map(|node| node["place"].as_str()).collect();
    for node in &fleet.nodes {
        assert!(places.contains(&node.peer.as_str()), "{}: {drill}", node.peer);
    }
    assert_eq!(nodes.len(), NODES, "{drill}");
    for node in nodes {
        assert!(node["seen_after_ms"].as_u64().unwrap() <= 1_000, "{drill}");
    }
    assert!(call(&caller).get("result").is_some());
    // A node that hangs or has just died is reported as missing.
    let gone = fleet.nodes[2].peer.clone();
    fleet.nodes[2].kill();
    let words = ["incident", "drill", "--config", "gateway.toml"];
    fleet.run(0, &words).exits(10).says("MISSING").says(&gone);
}
