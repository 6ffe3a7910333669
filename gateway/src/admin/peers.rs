//! Fetches what only other nodes have: their receipts, and the calls that wait there. The response
//! combines all nodes that answer, and names those that do not.

use super::AdminVisit;
use crate::peer::RelayKind;
use crate::relay::{Arrival, Arrived};
use bytes::Bytes;
use http::{Method, StatusCode};
use http_body_util::{BodyExt, Limited};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use store::NodeId;

/// How long another node may take. A dying node must not delay the response.
const PATIENCE: Duration = Duration::from_secs(5);
/// The largest response of a node, which has to fit the most receipts that can be requested.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The responses of the other nodes.
#[derive(Debug, Default)]
pub(super) struct PeerAnswers {
    /// The address, status and document of each node that answered.
    pub(super) answered: Vec<(Arc<str>, StatusCode, Value)>,
    pub(super) missing: Vec<Arc<str>>,
}

impl PeerAnswers {
    /// Treats responses that are not a success as missing.
    fn fine(mut self) -> PeerAnswers {
        let (fine, failed): (Vec<_>, Vec<_>) =
            self.answered.into_iter().partition(|(_, status, _)| *status == StatusCode::OK);
        self.missing.extend(failed.into_iter().map(|(address, ..)| address));
        PeerAnswers { answered: fine, missing: self.missing }
    }
}

impl AdminVisit {
    /// Sends the same request to every other node, if this one came directly from its caller.
    pub(super) async fn ask_peers(self, kind: RelayKind, method: Method) -> PeerAnswers {
        let (Some(cluster), Arrival::Direct(arrived)) = (&self.node.cluster, &self.arrival) else {
            return PeerAnswers::default();
        };
        let members = cluster.members();
        let asked: Vec<_> = members
            .live
            .iter()
            .map(|(id, address)| {
                let (visit, arrived) = (self.clone(), arrived.clone());
                let asking = tokio::spawn(visit.ask_peer((*id, kind), method.clone(), arrived));
                (address.clone(), asking)
            })
            .collect();
        let mut found = PeerAnswers { answered: Vec::new(), missing: members.gone.clone() };
        for (address, asking) in asked {
            match asking.await.ok().flatten() {
                Some((status, document)) => found.answered.push((address, status, document)),
                None => found.missing.push(address),
            }
        }
        found
    }

    async fn ask_peer(
        self,
        to: (NodeId, RelayKind),
        method: Method,
        arrived: Arc<Arrived>,
    ) -> Option<(StatusCode, Value)> {
        let asking = async {
            let (answer, _place) = self.node.send(to, &arrived, method, Bytes::new()).await.ok()?;
            let status = answer.status();
            let body = Limited::new(answer.into_body(), MAX_BYTES).collect().await.ok()?;
            Some((status, serde_json::from_slice(&body.to_bytes()).ok()?))
        };
        tokio::time::timeout(PATIENCE, asking).await.ok().flatten()
    }
}

fn list(document: &Value, name: &str) -> Vec<Value> {
    document[name].as_array().cloned().unwrap_or_default()
}

fn names(addresses: &[Arc<str>]) -> Vec<Value> {
    addresses.iter().map(|address| json!(&**address)).collect()
}

/// The calls that wait on all nodes, oldest first. A call that waits on several nodes is listed
/// once.
pub(super) fn merged_calls(own: &Value, others: PeerAnswers) -> Value {
    let others = others.fine();
    let mut calls = list(own, "approvals");
    let nodes: Vec<Arc<str>> =
        others.answered.iter().map(|(address, ..)| address.clone()).collect();
    calls.extend(others.answered.iter().flat_map(|(_, _, document)| list(document, "approvals")));
    let order = |call: &Value| {
        let text = |name: &str| call[name].as_str().unwrap_or_default().to_owned();
        (text("parked_at"), text("id"))
    };
    calls.sort_by_key(order);
    calls.dedup_by(|one, other| one["id"] == other["id"]);
    json!({"approvals": calls, "nodes": names(&nodes), "missing": names(&others.missing)})
}

/// Merges the documents of all nodes into one with at most `count` receipts, newest first.
pub(super) fn merged(own: &Value, others: PeerAnswers, count: usize) -> Value {
    let others = others.fine();
    let (mut receipts, mut notes) = (list(own, "receipts"), list(own, "notes"));
    let mut nodes = Vec::new();
    for (address, _, document) in others.answered {
        receipts.extend(list(&document, "receipts"));
        let about =
            |note: Value| json!(format!("{address}: {}", note.as_str().unwrap_or_default()));
        notes.extend(list(&document, "notes").into_iter().map(about));
        nodes.push(address);
    }
    // Timestamps sort correctly as text. The sort is stable, so each node's receipts keep the order
    // of its chain.
    receipts.sort_by(|one, other| other["ts"].as_str().cmp(&one["ts"].as_str()));
    receipts.truncate(count);
    let missing = names(&others.missing);
    json!({"receipts": receipts, "notes": notes, "nodes": names(&nodes), "missing": missing})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receipts(node: &str, moments: &[&str]) -> Value {
        let items: Vec<Value> = moments.iter().map(|ts| json!({"ts": ts, "chain": node})).collect();
        json!({"receipts": items, "notes": [format!("{node} noted")]})
    }

    #[test]
    fn receipts_of_all_nodes_are_merged_newest_first_up_to_the_count() {
        let own = receipts("a", &["2026-11-17T08:00:03.000Z", "2026-11-17T08:00:01.000Z"]);
        let other = receipts("b", &["2026-11-17T08:00:02.000Z", "2026-11-17T08:00:00.000Z"]);
        let answered = vec![
            ("b:1".into(), StatusCode::OK, other),
            ("d:1".into(), StatusCode::FORBIDDEN, json!({"error": {}})),
        ];
        let others = PeerAnswers { answered, missing: vec!["c:1".into()] };
        let document = merged(&own, others, 3);
        let chains: Vec<&str> = document["receipts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["chain"].as_str().unwrap())
            .collect();
        assert_eq!(chains, ["a", "b", "a"]);
        assert_eq!(document["nodes"], json!(["b:1"]));
        assert_eq!(document["missing"], json!(["c:1", "d:1"]));
        assert_eq!(document["notes"], json!(["a noted", "b:1: b noted"]));
    }

    #[test]
    fn calls_of_all_nodes_are_merged_and_each_is_there_once() {
        let call = |id: &str, parked_at: &str| json!({"id": id, "parked_at": parked_at});
        let own = json!({"approvals": [call("a2", "2026-11-17T08:00:02.000Z")]});
        let other = json!({"approvals": [
            call("a1", "2026-11-17T08:00:01.000Z"),
            call("a2", "2026-11-17T08:00:02.000Z"),
        ]});
        let answered = vec![("b:1".into(), StatusCode::OK, other)];
        let document = merged_calls(&own, PeerAnswers { answered, missing: vec!["c:1".into()] });
        let ids: Vec<&Value> =
            document["approvals"].as_array().unwrap().iter().map(|call| &call["id"]).collect();
        assert_eq!(ids, [&json!("a1"), &json!("a2")]);
        assert_eq!((&document["nodes"], &document["missing"]), (&json!(["b:1"]), &json!(["c:1"])));
    }
}
