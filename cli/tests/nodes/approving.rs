//! Calls that wait for approval, listed and decided through every node; and nodes that are killed
//! meanwhile.

use crate::fleet::{Arrangement, Database, Fleet, counted};
use crate::http_client::Caller;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use testing::{wait_for, wait_until};

const POLICIES: &str = "@id(\"ask\")\n@require_approval(\"leads\")\npermit(principal, action in Action::\"call\", resource);\n@id(\"decide\")\npermit(principal, action in [Action::\"grant\", Action::\"audit\"], resource);";
const CANARY: &str = "canary-of-approvals-71c2";

struct Scene {
    fleet: Fleet,
    /// The file with an approver's key.
    bob: PathBuf,
}

fn scene(wait_seconds: u64) -> Option<Scene> {
    let scene = scene_of(Database::shared()?, 2, wait_seconds);
    for node in 0..2 {
        scene.is_ready(node);
    }
    Some(scene)
}

fn scene_of(database: Database, nodes: usize, wait_seconds: u64) -> Scene {
    let gateway = format!(
        "limits = {{ approval_wait_seconds = {wait_seconds}, approval_ttl_seconds = 900 }}"
    );
    let arrangement =
        Arrangement { gateway: &gateway, policies: POLICIES, ..Arrangement::default() };
    let fleet = Fleet::arranged(database, nodes, &arrangement);
    let words = ["key", "create", "--json", "--config", "gateway.toml", "--sub", "bob", "--actor"];
    let words: Vec<&str> =
        words.into_iter().chain(["user", "--admin", "--group", "leads"]).collect();
    let made = fleet.bench.run(words).exits(0).json();
    let bob = fleet.bench.file("bob.key", made["key"].as_str().unwrap());
    Scene { fleet, bob }
}

impl Scene {
    /// Waits until a node knows its server and the approver.
    fn is_ready(&self, node: usize) {
        self.fleet.caller(node).tools();
        wait_until("the approver's key to count", || self.run(node, &["list"]).code == Some(0));
    }

    /// Runs a command as an approver, at a node.
    fn run(&self, node: usize, words: &[&str]) -> crate::bench::Answer {
        let gateway = format!("http://{}", self.fleet.nodes[node].address);
        let key = format!("file:{}", self.bob.display());
        let mut command = self.fleet.bench.command(["approvals"]);
        command.args(words).args(["--json", "--gateway", &gateway, "--key", &key]);
        crate::bench::answer(command)
    }

    fn list(&self, node: usize) -> Value {
        self.run(node, &["list"]).exits(0).json()
    }

    /// The only waiting call, as a node shows it.
    fn waiting(&self, node: usize) -> Value {
        wait_for("a call to wait", || {
            let mut calls = self.list(node)["approvals"].as_array().unwrap().clone();
            (calls.len() == 1).then(|| calls.remove(0))
        })
    }
}

fn arguments() -> Value {
    json!({"path": CANARY})
}

/// Makes the call once its server is known at the node.
fn call(caller: &Caller) -> Value {
    wait_for("the server to be known at the node", || {
        let answer = caller.call("counter__count", &arguments());
        let is_known =
            answer.get("result").is_some() || answer["error"]["data"]["reason"].is_string();
        is_known.then_some(answer)
    })
}

fn approval_of(answer: &Value) -> String {
    assert_eq!(answer["error"]["code"], 1014, "{answer}");
    answer["error"]["data"]["approval_id"].as_str().unwrap().to_owned()
}

#[test]
fn a_call_that_waits_at_one_node_is_decided_on_through_another() {
    let Some(mut scene) = scene(30) else { return };
    let caller = scene.fleet.caller(0);
    for (act, is_made) in [("refuse", false), ("grant", true)] {
        let answer = std::thread::scope(|scope| {
            let asking = scope.spawn(|| call(&caller));
            let shown = scene.waiting(1);
            assert_eq!(shown["arguments"], arguments(), "from the memory of the other node");
            assert_eq!(scene.waiting(0)["id"], shown["id"]);
            let id = shown["id"].as_str().unwrap();
            assert_eq!(scene.run(1, &["show", id]).exits(0).json()["id"], shown["id"]);
            let decided = scene.run(1, &[act, id]).exits(0).json();
            assert_eq!(decided["tool"], "count");
            scene.run(1, &[act, id]).exits(10);
            asking.join().unwrap()
        });
        assert_eq!(answer.get("result").is_some(), is_made, "{answer}");
    }
    assert_eq!(counted(&call_granted(&scene, 0, 1)).1, 2, "the one that was granted and this one");
    // The caller's own key, and one in no group, cannot decide at any node.
    assert!(scene.list(1)["approvals"].as_array().unwrap().is_empty());
    // A dead node is named in the response.
    let peer = scene.fleet.nodes[0].peer.clone();
    scene.fleet.nodes[0].kill();
    wait_until("the node to be missing", || scene.list(1)["missing"] == json!([peer.clone()]));
    let refused = scene.run(1, &["grant", "a000000000000000000000000"]);
    let said = refused.out + &refused.err;
    assert!(said.contains(&peer), "{said}");
}

/// Makes a call that is granted through a different node than the one it waits at.
fn call_granted(scene: &Scene, at: usize, through: usize) -> Value {
    let caller = scene.fleet.caller(at);
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| call(&caller));
        let id = scene.waiting(through)["id"].as_str().unwrap().to_owned();
        scene.run(through, &["grant", &id]).exits(0);
        asking.join().unwrap()
    })
}

#[test]
fn a_retry_that_waits_at_a_second_node_goes_on_when_the_first_one_decides() {
    let Some(scene) = scene(30) else { return };
    let callers = [scene.fleet.caller(0), scene.fleet.caller(1)];
    let answers: Vec<Value> = std::thread::scope(|scope| {
        let asking: Vec<_> =
            callers.iter().map(|caller| scope.spawn(move || call(caller))).collect();
        let id = scene.waiting(0)["id"].as_str().unwrap().to_owned();
        wait_until("it waits at both nodes", || {
            let waits = |node: usize| scene.fleet.admin(node, "/stats")["calls_in_flight"] == 1;
            waits(0) && waits(1)
        });
        scene.run(0, &["grant", &id]).exits(0);
        asking.into_iter().map(|call| call.join().unwrap()).collect()
    });
    // One of the two takes the grant. The other one asks again, and has to wait.
    let made = answers.iter().filter(|answer| answer.get("result").is_some()).count();
    assert_eq!(made, 1, "{answers:?}");
}

#[test]
fn a_call_that_two_nodes_are_asked_for_at_once_waits_under_one_id() {
    let Some(scene) = scene(0) else { return };
    let callers = [scene.fleet.caller(0), scene.fleet.caller(1)];
    callers.iter().for_each(|caller| drop(call(caller)));
    for round in 0..20 {
        let arguments = json!({"path": format!("round {round}")});
        let ask = |caller: &Caller| approval_of(&caller.call("counter__count", &arguments));
        let ids = std::thread::scope(|scope| {
            let other = scope.spawn(|| ask(&callers[1]));
            [ask(&callers[0]), other.join().unwrap()]
        });
        assert_eq!(ids[0], ids[1], "round {round}");
    }
}

#[test]
fn a_killed_node_loses_nothing_that_was_granted_and_dispatches_nothing_that_was_not() {
    let Some(mut scene) = scene(0) else { return };
    let first = scene.fleet.caller(0);
    let granted = approval_of(&call(&first));
    let other = wait_for("the second call to wait", || {
        let answer = first.call("counter__count", &json!({"path": "other"}));
        answer["error"]["data"]["approval_id"].as_str().map(str::to_owned)
    });
    assert_ne!(granted, other);
    // Granted through the other node; then the node that holds both calls is killed before the call
    // is made.
    scene.run(1, &["grant", &granted]).exits(0);
    scene.fleet.nodes[0].kill();
    let second = scene.fleet.caller(1);
    let made = call(&second);
    assert_eq!(counted(&made).1, 1, "the first call that the server ever saw");
    // Used once; and the call that was not granted is not made anywhere.
    approval_of(&call(&second));
    assert_eq!(approval_of(&second.call("counter__count", &json!({"path": "other"}))), other);
    let home = scene.fleet.nodes[0].home.clone();
    scene.fleet.add(home);
    let again = scene.fleet.caller(2);
    assert_eq!(approval_of(&again_until_known(&again, "other")), other);
    // The other way round: granted, and made by the restarted node.
    scene.run(2, &["grant", &other]).exits(0);
    scene.fleet.nodes[1].kill();
    scene.fleet.nodes[2].kill();
    let home = scene.fleet.nodes[0].home.clone();
    scene.fleet.add(home);
    let last = scene.fleet.caller(3);
    let made = again_until_known(&last, "other");
    assert_eq!(counted(&made).1, 1, "{made}");
    approval_of(&again_until_known(&last, "other"));
    // The nodes' files contain no arguments.
    for node in 0..2 {
        let kept = text_below(&scene.fleet.nodes[node].home);
        assert!(kept.contains("approval.parked"));
        for canary in [CANARY, &scene.fleet.key, &scene.fleet.admin] {
            assert!(!kept.contains(canary), "on disk or on standard error: {canary}");
        }
    }
}

/// Where a node is killed in the middle of a granted call.
const BEFORE_THE_DECISION: &str = "ledger:\"approved_by\":\"";
const AFTER_THE_DECISION: &str = "approval:recorded";
const BEFORE_THE_CALL: &str = "approval:used";

/// A node that has a grant for a call and is killed at this point. Nothing has reached the server.
fn killed_at(database: Database, at: &str, others: usize) -> Scene {
    let mut scene = scene_of(database, 0, 0);
    scene.fleet.add_doomed(scene.fleet.bench.home(), at);
    for number in 1..=others {
        let home = scene.fleet.another_home(number);
        scene.fleet.add(home);
    }
    for node in 0..=others {
        scene.is_ready(node);
    }
    let caller = scene.fleet.caller(0);
    let granted = approval_of(&call(&caller));
    scene.run(0, &["grant", &granted]).exits(0);
    assert_eq!(caller.try_call("counter__count", &arguments()), None, "{at}");
    scene.fleet.nodes[0].was_killed();
    assert_eq!(scene.fleet.calls(), 0, "{at}");
    scene
}

/// Asserts that a grant left by a node can be used once, even if a second approval is requested
/// meanwhile.
fn is_used_once(scene: &Scene, node: usize) {
    let caller = scene.fleet.caller(node);
    wait_until("the grant to be taken again", || call(&caller).get("result").is_some());
    approval_of(&call(&caller));
    assert_eq!(scene.fleet.calls(), 1);
}

/// How often a node's ledger contains this text.
fn recorded(scene: &Scene, node: usize, text: &str) -> usize {
    text_below(&scene.fleet.nodes[node].home.join("receipts")).matches(text).count()
}

const MADE_WITH_A_GRANT: &str = r#""approved_by":""#;
const RECLAIMED: &str = r#""name":"approval.reclaimed""#;

#[test]
fn a_node_that_starts_again_makes_the_call_that_was_granted_once() {
    for (at, decisions) in [(BEFORE_THE_DECISION, 1), (AFTER_THE_DECISION, 2)] {
        let mut scene = killed_at(Database::Home, at, 0);
        assert_eq!(recorded(&scene, 0, MADE_WITH_A_GRANT), decisions - 1, "{at}");
        scene.fleet.add(scene.fleet.bench.home());
        is_used_once(&scene, 1);
        scene.fleet.nodes[1].end();
        assert_eq!(recorded(&scene, 0, MADE_WITH_A_GRANT), decisions, "{at}");
        assert_eq!(recorded(&scene, 0, RECLAIMED), 1, "{at}");
        scene.fleet.run(0, &["receipts", "verify"]).exits(0);
    }
}

#[test]
fn a_node_that_stays_makes_the_call_that_was_granted_at_a_killed_one_once() {
    for at in [BEFORE_THE_DECISION, AFTER_THE_DECISION] {
        let Some(database) = Database::shared() else { return };
        let mut scene = killed_at(database, at, 1);
        is_used_once(&scene, 1);
        // The killed node is back, and has no call left to make.
        scene.fleet.add(scene.fleet.bench.home());
        scene.is_ready(2);
        approval_of(&call(&scene.fleet.caller(2)));
        assert_eq!(scene.fleet.calls(), 1, "{at}");
        assert_eq!(recorded(&scene, 1, RECLAIMED), 1, "{at}");
    }
}

#[test]
fn a_call_whose_node_was_killed_after_the_grant_was_used_up_is_not_made_by_another() {
    let databases = [Some(Database::Home), Database::shared()];
    for database in databases.into_iter().flatten() {
        let mut scene = killed_at(database, BEFORE_THE_CALL, 0);
        assert_eq!(recorded(&scene, 0, MADE_WITH_A_GRANT), 1);
        scene.fleet.add(scene.fleet.bench.home());
        let caller = scene.fleet.caller(1);
        // Longer than a grant is reserved for the call that took it.
        let begun = Instant::now();
        let kept = Duration::from_millis(store::KEPT_FOR_TAKER_MILLISECONDS.cast_unsigned());
        wait_until("a grant that was only taken to be free again", || {
            approval_of(&call(&caller));
            begun.elapsed() > kept + Duration::from_secs(1)
        });
        assert_eq!((scene.fleet.calls(), recorded(&scene, 0, RECLAIMED)), (0, 0));
    }
}

fn again_until_known(caller: &Caller, path: &str) -> Value {
    wait_for("the server to be known at the node", || {
        let answer = caller.call("counter__count", &json!({"path": path}));
        let is_known = answer.get("result").is_some() || answer["error"]["code"] == 1014;
        is_known.then_some(answer)
    })
}

/// The content of all files in a folder and below, as text.
fn text_below(folder: &std::path::Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => text += &text_below(&entry.path()),
            kind if kind.is_file() => {
                text += &String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap());
            }
            _ => {}
        }
    }
    text
}
