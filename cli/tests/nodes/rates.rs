//! Rates and quotas that all nodes share.

use crate::fleet::{Arrangement, Database, Fleet};
use crate::http_client::Caller;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The bucket regains less than one call during a test.
const BUCKET: u64 = 60;
/// A tenth of the bucket.
const LEASE: u64 = 6;

fn fleet(database: Database, preflight: &str) -> Fleet {
    let server = format!("preflight = {{ {preflight} }}");
    Fleet::arranged(database, 2, &Arrangement { server: &server, ..Arrangement::default() })
}

enum Said {
    Answered,
    /// Above the rate or the quota, with the time to wait.
    Limited(Value, Duration),
    /// The node does not know the server yet.
    Unknown,
}

fn call(caller: &Caller) -> Said {
    let answer = caller.call("counter__count", &json!({}));
    let data = &answer["error"]["data"];
    match (answer.get("result"), data["retry_after_ms"].as_u64()) {
        (Some(_), _) => Said::Answered,
        (None, Some(wait)) => Said::Limited(data["reason"].clone(), Duration::from_millis(wait)),
        (None, None) => Said::Unknown,
    }
}

/// Calls until the node reports that nothing is left. Returns how many calls succeeded.
fn use_up(caller: &Caller, reason: &str) -> u64 {
    let (deadline, mut answered) = (Instant::now() + Duration::from_secs(40), 0);
    while Instant::now() < deadline {
        match call(caller) {
            Said::Answered => answered += 1,
            // A node that waits for the others' counts refuses calls for a moment.
            Said::Limited(said, wait) if wait > Duration::from_secs(5) => {
                assert_eq!(said, reason);
                return answered;
            }
            Said::Limited(..) | Said::Unknown => {}
        }
    }
    panic!("the node never stops: {answered} calls were answered")
}

#[test]
fn two_nodes_let_a_bucket_through_and_at_most_one_lease_each() {
    for (preflight, reason) in
        [("rate = \"60/hour\"", "rate_limited"), ("quota = \"60/day\"", "quota_exceeded")]
    {
        let Some(database) = Database::shared() else { return };
        let mut fleet = fleet(database, preflight);
        let callers = [fleet.caller(0), fleet.caller(1)];
        let answered: u64 = std::thread::scope(|scope| {
            let using: Vec<_> =
                callers.iter().map(|caller| scope.spawn(move || use_up(caller, reason))).collect();
            using.into_iter().map(|node| node.join().unwrap()).sum()
        });
        assert!((BUCKET..=BUCKET + 2 * LEASE).contains(&answered), "{preflight}: {answered}");
        // The counts are in the database: a restarted node learns them before it has let one lease
        // of calls through.
        fleet.nodes[0].kill();
        let home = fleet.nodes[0].home.clone();
        fleet.add(home);
        let more = use_up(&fleet.caller(2), reason);
        assert!(more <= LEASE, "{preflight}: {more} more");
    }
}

#[test]
fn a_caller_is_counted_apart_from_another_on_every_node() {
    let Some(database) = Database::shared() else { return };
    let fleet = fleet(database, "rate = \"20/hour\"");
    let made =
        fleet.run(0, &["key", "create", "--sub", "eve", "--json", "--config", "gateway.toml"]);
    let eve = made.exits(0).json()["key"].as_str().unwrap().to_owned();
    let used = use_up(&fleet.caller(0), "rate_limited");
    assert!((20..=22).contains(&used), "{used}");
    testing::wait_until("the key to count", || {
        Caller::new(fleet.nodes[1].address, &eve).initialize().status == 200
    });
    let used = use_up(&Caller::begin(fleet.nodes[1].address, &eve), "rate_limited");
    assert!((20..=22).contains(&used), "{used}");
}
