//! Nodes that join and leave, and what they own.

use super::*;
use crate::tests::bench::{Bench, postgres_url};

const ONE: NodeId = NodeId(1);
const TWO: NodeId = NodeId(2);
const NOW: Timestamp = Timestamp(1_800_000_000_000);

fn registry(bench: &Bench) -> NodeRegistry {
    NodeRegistry::open(&bench.home, &bench.address()).unwrap()
}

fn beat(registry: &NodeRegistry, id: NodeId) -> Vec<(NodeId, bool)> {
    let known = registry.beat(id).unwrap();
    known.into_iter().map(|node| (node.id, node.gone_at.is_none())).collect()
}

#[test]
fn of_two_nodes_one_owns_an_instance_until_it_is_gone() {
    let Some(url) = postgres_url() else { return };
    let bench = Bench::on(&url);
    let nodes = registry(&bench);
    nodes.join(ONE, "10.0.0.1:8422", NOW).unwrap();
    nodes.join(TWO, "10.0.0.2:8422", NOW).unwrap();
    let key = InstanceKey([7; 32]);
    assert_eq!(nodes.claim(&key, ONE).unwrap(), ONE);
    assert_eq!(nodes.claim(&key, TWO).unwrap(), ONE);
    // Only the owner can release it.
    nodes.release(&[key], TWO).unwrap();
    assert_eq!(nodes.claim(&key, TWO).unwrap(), ONE);
    nodes.release(&[key], ONE).unwrap();
    assert_eq!(nodes.claim(&key, TWO).unwrap(), TWO);
    assert_eq!(nodes.claim(&key, ONE).unwrap(), TWO);
    nodes.leave(TWO, NOW).unwrap();
    assert_eq!(nodes.claim(&key, ONE).unwrap(), ONE);
}

#[test]
fn a_node_that_beats_cannot_be_declared_gone_and_one_that_was_stays_gone() {
    let Some(url) = postgres_url() else { return };
    let bench = Bench::on(&url);
    let nodes = registry(&bench);
    nodes.join(ONE, "10.0.0.1:8422", NOW).unwrap();
    nodes.join(TWO, "10.0.0.2:8422", NOW).unwrap();
    let seen = nodes.beat(TWO).unwrap();
    let one = seen.iter().find(|node| node.id == ONE).unwrap();
    assert_eq!(beat(&nodes, ONE), [(ONE, true), (TWO, true)]);
    nodes.declare_gone(one, NOW).unwrap();
    assert_eq!(beat(&nodes, TWO), [(ONE, true), (TWO, true)], "it has beaten since");
    let seen = nodes.beat(TWO).unwrap();
    let key = InstanceKey([7; 32]);
    assert_eq!(nodes.claim(&key, ONE).unwrap(), ONE);
    nodes.declare_gone(seen.iter().find(|node| node.id == ONE).unwrap(), NOW).unwrap();
    assert_eq!(beat(&nodes, ONE), [(ONE, false), (TWO, true)], "it stays gone");
    assert_eq!(nodes.claim(&key, TWO).unwrap(), TWO);
    // A node is remembered until a new one joins at the same address.
    nodes.join(NodeId(3), "10.0.0.1:8422", NOW).unwrap();
    assert_eq!(beat(&nodes, NodeId(3)), [(NodeId(3), true), (TWO, true)]);
}

#[test]
fn a_node_that_is_gone_for_long_is_forgotten() {
    let Some(url) = postgres_url() else { return };
    let bench = Bench::on(&url);
    let nodes = registry(&bench);
    nodes.join(ONE, "10.0.0.1:8422", NOW).unwrap();
    nodes.leave(ONE, NOW).unwrap();
    let later = Timestamp(NOW.0 + REMEMBERED_MILLISECONDS);
    nodes.join(TWO, "10.0.0.2:8422", later).unwrap();
    assert_eq!(beat(&nodes, TWO), [(ONE, false), (TWO, true)]);
    nodes.join(NodeId(3), "10.0.0.3:8422", Timestamp(later.0 + 1)).unwrap();
    assert_eq!(beat(&nodes, TWO), [(TWO, true), (NodeId(3), true)]);
}

#[test]
fn a_beat_is_no_change_for_those_who_follow_the_store() {
    let Some(url) = postgres_url() else { return };
    let bench = Bench::on(&url);
    let (nodes, store) = (registry(&bench), bench.store());
    let before = store.version().unwrap();
    nodes.join(ONE, "10.0.0.1:8422", NOW).unwrap();
    nodes.beat(ONE).unwrap();
    nodes.claim(&InstanceKey([1; 32]), ONE).unwrap();
    assert_eq!(store.version().unwrap(), before);
}

#[test]
fn as_many_nodes_as_the_limit_join_and_no_more() {
    let Some(url) = postgres_url() else { return };
    let bench = Bench::on(&url);
    let nodes = registry(&bench);
    for number in 0..MAX_NODES as u64 {
        nodes.join(NodeId(number), &format!("n{number}:8422"), NOW).unwrap();
    }
    let refused = nodes.join(NodeId(9_999), "more:8422", NOW);
    assert!(matches!(refused, Err(StoreError::OverLimit { .. })), "{refused:?}");
    let longest = "a".repeat(MAX_NODE_ADDRESS_BYTES + 1);
    let refused = nodes.join(NodeId(0), &longest, NOW);
    assert!(matches!(refused, Err(StoreError::OverLimit { .. })), "{refused:?}");
}
