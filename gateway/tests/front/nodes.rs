//! Several nodes on one PostgreSQL: any of them serves any request, and a person's decision applies
//! to all of them.

use crate::stage::{Setting, Stage, tool};
use engine::acts::quarantine;
use serde_json::json;
use std::time::{Duration, Instant};
use store::{By, Location, Witnessed};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_a_key_and_a_quarantine_count_on_every_node_within_a_second() {
    let Some(url) = testing::postgres_url() else { return };
    let folder = tempfile::tempdir().unwrap();
    let address = folder.path().join("address");
    let schema = format!("gateway_nodes_{}", std::process::id());
    std::fs::write(&address, format!("{url}?schema={schema}\n")).unwrap();
    let place = format!("file:{}", address.display());
    let gateway = format!("store = \"{place}\"");
    let tools = vec![tool("read_report", "Reads a report.")];
    let first = Stage::open(Setting { tools, gateway: &gateway, ..Setting::default() }).await;
    let second = first.another_node().await;
    let session = first.begin("/mcp", "ada").await;
    let arguments = json!({"path": "a"});
    let called = first.call("ada", &session, "reports__read_report", &arguments).await;
    assert_eq!(called["result"]["content"][0]["text"], "read_report a", "{called}");
    // The other node continues the session, and knows what the first one accepted.
    let begun = Instant::now();
    let called = loop {
        let called = second.call("ada", &session, "reports__read_report", &arguments).await;
        if called.get("result").is_some() || begun.elapsed() > Duration::from_secs(2) {
            break called;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(called["result"]["content"][0]["text"], "read_report a", "{called}");
    let stranger = second.ask("eve", &session, "tools/list", &json!({})).await;
    assert_eq!(stranger["error"]["code"], -32001, "another caller's session: {stranger}");
    // A person stops the server through the first node's store.
    let home = store::Home::open(&first.home).unwrap();
    let location = Location::parse(&place).unwrap();
    let mut store = Witnessed::new(store::open(&home, &location).unwrap(), &home);
    let by = By { name: "ada", at: engine::recorder::now() };
    let usual = |_: &gate::server::ServerId| gate::posture::Settings::default();
    quarantine(&mut store, &"reports".parse().unwrap(), None, &usual, by).unwrap();
    let stopped = Instant::now();
    let mut last_allowed = None;
    while stopped.elapsed() < Duration::from_millis(2_500) {
        for node in [&first, &second] {
            let at = stopped.elapsed();
            let called = node.call("ada", &session, "reports__read_report", &arguments).await;
            if called.get("result").is_some() {
                last_allowed = Some(at);
            }
        }
    }
    let last = last_allowed.unwrap_or_default();
    assert!(last < Duration::from_secs(1), "a call was allowed {last:?} after the act");
}
