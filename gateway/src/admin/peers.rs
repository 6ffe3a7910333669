//! The receipts of other nodes. Each node keeps its own; whoever asks one of them gets those of all that answer, and is told
//! which did not.

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

/// How long another node may take. A node that is about to be declared gone must not keep the others' receipts waiting.
const PATIENCE: Duration = Duration::from_secs(5);
/// The largest answer of one node: as many receipts as may be asked for, and long ones.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// What the other nodes answered.
#[derive(Debug, Default)]
pub(super) struct PeersReceipts {
    /// The address of a node, and its document.
    answered: Vec<(Arc<str>, Value)>,
    missing: Vec<Arc<str>>,
}

impl AdminVisit {
    /// Asks every other node, if this request came from its caller.
    pub(super) async fn peers_receipts(self) -> PeersReceipts {
        let (Some(cluster), Arrival::Direct(arrived)) = (&self.node.cluster, &self.arrival) else {
            return PeersReceipts::default();
        };
        let members = cluster.members();
        let asked: Vec<_> = members
            .live
            .iter()
            .map(|(id, address)| {
                let (visit, arrived) = (self.clone(), arrived.clone());
                let asking = tokio::spawn(visit.ask_peer(*id, arrived));
                (address.clone(), asking)
            })
            .collect();
        let mut found = PeersReceipts { answered: Vec::new(), missing: members.gone.clone() };
        for (address, asking) in asked {
            match asking.await.ok().flatten() {
                Some(document) => found.answered.push((address, document)),
                None => found.missing.push(address),
            }
        }
        found
    }

    async fn ask_peer(self, to: NodeId, arrived: Arc<Arrived>) -> Option<Value> {
        let asking = async {
            let to = (to, RelayKind::Receipts);
            let (answer, _place) =
                self.node.send(to, &arrived, Method::GET, Bytes::new()).await.ok()?;
            if answer.status() != StatusCode::OK {
                return None;
            }
            let body = Limited::new(answer.into_body(), MAX_BYTES).collect().await.ok()?;
            serde_json::from_slice(&body.to_bytes()).ok()
        };
        tokio::time::timeout(PATIENCE, asking).await.ok().flatten()
    }
}

/// One document of those of all nodes, newest first and at most so many.
pub(super) fn merged(own: &Value, others: PeersReceipts, count: usize) -> Value {
    let list = |document: &Value, name: &str| -> Vec<Value> {
        document[name].as_array().cloned().unwrap_or_default()
    };
    let (mut receipts, mut notes) = (list(own, "receipts"), list(own, "notes"));
    let mut nodes = Vec::new();
    for (address, document) in others.answered {
        receipts.extend(list(&document, "receipts"));
        let about =
            |note: Value| json!(format!("{address}: {}", note.as_str().unwrap_or_default()));
        notes.extend(list(&document, "notes").into_iter().map(about));
        nodes.push(address);
    }
    // Moments are written in one form, whose order is that of the text. Those of one node stay in the order of its chain.
    receipts.sort_by(|one, other| other["ts"].as_str().cmp(&one["ts"].as_str()));
    receipts.truncate(count);
    let names = |addresses: &[Arc<str>]| -> Vec<Value> {
        addresses.iter().map(|address| json!(&**address)).collect()
    };
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
        let others =
            PeersReceipts { answered: vec![("b:1".into(), other)], missing: vec!["c:1".into()] };
        let document = merged(&own, others, 3);
        let chains: Vec<&str> = document["receipts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["chain"].as_str().unwrap())
            .collect();
        assert_eq!(chains, ["a", "b", "a"]);
        assert_eq!(document["nodes"], json!(["b:1"]));
        assert_eq!(document["missing"], json!(["c:1"]));
        assert_eq!(document["notes"], json!(["a noted", "b:1: b noted"]));
    }
}
