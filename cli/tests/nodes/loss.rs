//! PostgreSQL goes away and comes back; a node is killed while others serve.

use crate::fleet::{Database, Fleet, count, count_soon};
use crate::http_client::Caller;
use serde_json::json;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use testing::{wait_for, wait_until};

/// The longer value with `HOLDPOINT_LONG=1`.
fn long(short: u64, long: u64) -> Duration {
    let is_long = std::env::var_os("HOLDPOINT_LONG").is_some();
    Duration::from_secs(if is_long { long } else { short })
}

fn check_receipts(fleet: &Fleet, node: usize) {
    fleet.run(node, &["receipts", "verify"]).exits(0);
}

#[test]
fn calls_are_refused_while_postgresql_is_away_and_nothing_is_lost() {
    let Some(database) = Database::own() else { return };
    let mut fleet = Fleet::start(database, 2, "", "session");
    let callers: Vec<Caller> = (0..2).map(|node| fleet.caller(node)).collect();
    let before: Vec<(String, u64)> = callers.iter().map(count_soon).collect();
    assert_eq!(fleet.nodes[0].ready().0, 200);
    fleet.database.stop();
    let away = Instant::now();
    for (node, caller) in callers.iter().enumerate() {
        wait_until("calls to be refused", || {
            caller.call("counter__count", &json!({})).get("error").is_some()
        });
        // A call that accesses the store notices before the node's lease is over.
        let text = wait_for("the node to be unready", || {
            let (status, text) = fleet.nodes[node].ready();
            (status == 503).then_some(text)
        });
        assert!(text.contains("the store does not answer"), "{text}");
    }
    while away.elapsed() < long(8, 60) {
        for caller in &callers {
            let answer = caller.call("counter__count", &json!({}));
            assert_eq!(answer["error"]["code"], -32012, "{answer}");
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    fleet.database.start();
    for (node, caller) in callers.iter().enumerate() {
        let (process, number) = count_soon(caller);
        // The sessions and processes are the same as before, and no refused call was carried out.
        assert_eq!(process, before[node].0);
        assert!(number > before[node].1);
        // Also through the other node: both still know each other.
        let other = caller.at(fleet.nodes[1 - node].address);
        assert_eq!(count(&other), (process, number + 1));
        wait_until("the node to be ready", || fleet.nodes[node].ready().0 == 200);
    }
    for node in 0..2 {
        fleet.nodes[node].end();
        check_receipts(&fleet, node);
    }
}

#[test]
fn calls_go_on_while_postgresql_is_away_for_as_long_as_the_operator_says() {
    let Some(database) = Database::own() else { return };
    let fleet = Fleet::start(database, 1, "store_loss = \"continue:600\"", "session");
    let caller = fleet.caller(0);
    let (process, first) = count_soon(&caller);
    fleet.database.stop();
    let away = Instant::now();
    let mut expected = first;
    wait_until("the loss to be told", || fleet.nodes[0].ready().1.contains("does not answer"));
    while away.elapsed() < long(5, 60) {
        expected += 1;
        assert_eq!(count(&caller), (process.clone(), expected));
    }
    assert_eq!(fleet.nodes[0].ready().0, 200);
    fleet.database.start();
    wait_until("the node to be ready", || fleet.nodes[0].ready() == (200, String::new()));
    assert_eq!(count(&caller), (process, expected + 1));
}

/// The status of a node's response to a key.
fn status(fleet: &Fleet, key: &str) -> u16 {
    Caller::new(fleet.nodes[0].address, key).initialize().status
}

#[test]
fn while_postgresql_is_away_keys_count_as_they_were_read_last() {
    let Some(database) = Database::own() else { return };
    let fleet = Fleet::start(database, 1, "store_loss = \"continue:600\"", "session");
    let create = |sub: &str| {
        let words = ["key", "create", "--json", "--config", "gateway.toml", "--sub", sub];
        let made = fleet.run(0, &words).exits(0).json();
        ["id", "key"].map(|name| made[name].as_str().unwrap().to_owned())
    };
    let revoke = |id: &str| fleet.run(0, &["key", "revoke", id, "--config", "gateway.toml"]);
    let [id, revoked] = create("left");
    wait_until("the key to count", || status(&fleet, &revoked) == 200);
    revoke(&id).exits(0);
    wait_until("the key to be refused", || status(&fleet, &revoked) == 401);
    fleet.database.stop();
    wait_until("the loss to be told", || fleet.nodes[0].ready().1.contains("does not answer"));
    let invented = format!("{}{}", &fleet.key[..fleet.key.len() - 4], "AAAA");
    let away = Instant::now();
    while away.elapsed() < long(3, 30) {
        assert_eq!(status(&fleet, &fleet.key), 200, "it counted before");
        assert_eq!(status(&fleet, &revoked), 401, "it was revoked before");
        assert_eq!(status(&fleet, &invented), 401, "it never was one");
    }
    // Keys cannot be created or revoked meanwhile, and the commands report that.
    assert_ne!(revoke(&fleet.key_id).code, Some(0));
    fleet.database.start();
    wait_until("the node to be ready", || fleet.nodes[0].ready() == (200, String::new()));
    assert_eq!((status(&fleet, &fleet.key), status(&fleet, &revoked)), (200, 401));
    revoke(&fleet.key_id).exits(0);
    wait_until("the key to be refused", || status(&fleet, &fleet.key) == 401);
}

#[test]
fn clients_of_other_nodes_notice_nothing_of_a_node_that_is_killed_under_load() {
    let Some(database) = Database::shared() else { return };
    let mut fleet = Fleet::start(database, 2, "", "session");
    let threads = 4;
    let lost: Vec<Caller> = (0..threads).map(|_| fleet.caller(0)).collect();
    let kept: Vec<Caller> = (0..threads).map(|_| fleet.caller(1)).collect();
    for caller in lost.iter().chain(&kept) {
        count_soon(caller);
    }
    let (stop, calls) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for caller in &kept {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    count(caller);
                    calls.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for caller in &lost {
            scope.spawn(|| while caller.try_call("counter__count", &json!({})).is_some() {});
        }
        wait_until("load", || calls.load(Ordering::Relaxed) > 50);
        fleet.nodes[0].kill();
        let killed = Instant::now();
        // Longer than it takes for the node to count as gone.
        while killed.elapsed() < long(10, 60) {
            std::thread::sleep(Duration::from_millis(50));
        }
        stop.store(true, Ordering::Relaxed);
    });
    let made = calls.load(Ordering::Relaxed) + threads as u64;
    fleet.nodes[1].end();
    check_receipts(&fleet, 1);
    // The killed node's receipts are complete up to its last line.
    check_receipts(&fleet, 0);
    let words = ["receipts", "list", "--tool", "count", "--count", "100000", "--json"];
    let listed = fleet.run(1, &words).exits(0);
    let is_done = |line: &&str| line.contains(r#""outcome":{"status":"success""#);
    let done = listed.out.lines().filter(is_done).count() as u64;
    assert!(done >= made, "{made} calls, of which {done} have their receipt with its outcome");
}
