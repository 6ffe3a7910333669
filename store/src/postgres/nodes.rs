//! The gateway's nodes on one database: which ones are alive, their addresses, and which one runs a
//! server's process for a caller.
//!
//! A live node increments its beat every second. Other nodes judge it by how many of their reads in
//! a row found the beat unchanged, without comparing clocks. INVARIANT: a node that was declared
//! gone stays gone. It learns so at its next beat, and has to join again under a new id. So
//! whatever a node owns has one owner at any time.

use super::PostgresStore;
use super::address::Address;
use super::transaction::Rows;
use crate::act::within;
use crate::database::{Cell, Transaction};
use crate::error::StoreError;
use crate::home::Home;
use gate::time::Timestamp;
use std::fmt;
use std::str::FromStr;

/// The most nodes of one database, including remembered ones that are gone.
pub const MAX_NODES: usize = 256;
/// The longest address of a node, in bytes.
pub const MAX_NODE_ADDRESS_BYTES: usize = 300;
/// How long a node that is gone is remembered, so that receipts which only it has can be reported
/// as missing.
const REMEMBERED_MILLISECONDS: i64 = 7 * 86_400_000;

/// Identifies one run of a gateway process. A restarted process gets a new id: the state of the
/// earlier run is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u64);

impl fmt::Display for NodeId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}

impl FromStr for NodeId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<NodeId, Self::Err> {
        u64::from_str_radix(text, 16).map(NodeId)
    }
}

/// The hash that identifies a server's process for one caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InstanceKey(pub [u8; 32]);

/// A node as recorded in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownNode {
    pub id: NodeId,
    /// The address at which other nodes reach it.
    pub address: String,
    /// The number that a live node keeps incrementing.
    pub beat: i64,
    /// When it was declared gone or left.
    pub gone_at: Option<Timestamp>,
}

/// The nodes of a database, over their own connection.
#[derive(Debug)]
pub struct NodeRegistry {
    store: PostgresStore,
}

impl NodeRegistry {
    pub fn open(home: &Home, address: &Address) -> Result<NodeRegistry, StoreError> {
        Ok(NodeRegistry { store: PostgresStore::open(home, address)? })
    }

    /// Joins as a new node. Earlier runs at the same address are forgotten: this node has their
    /// receipts.
    pub fn join(&self, id: NodeId, address: &str, now: Timestamp) -> Result<(), StoreError> {
        within("the address of a node", address.len(), MAX_NODE_ADDRESS_BYTES)?;
        let oldest = now.0.saturating_sub(REMEMBERED_MILLISECONDS);
        self.run("DELETE FROM nodes WHERE address = $1 OR gone_at < $2", |rows, sql| {
            rows.execute(sql, &[address.into(), oldest.into()])
        })?;
        let count = self.run("SELECT count(*) FROM nodes", |rows, sql| rows.count(sql, &[]))?;
        within("the number of nodes", count.saturating_add(1), MAX_NODES)?;
        self.run("INSERT INTO nodes (id, address, beat) VALUES ($1, $2, 1)", |rows, sql| {
            rows.execute(sql, &[(&id.to_string()).into(), address.into()])
        })?;
        self.forget_owners_without_nodes()
    }

    /// Increments a node's beat, and returns all nodes. If the node itself was declared gone, it is
    /// returned as gone.
    pub fn beat(&self, id: NodeId) -> Result<Vec<KnownNode>, StoreError> {
        self.run(
            "UPDATE nodes SET beat = beat + 1 WHERE id = $1 AND gone_at IS NULL",
            |rows, sql| rows.execute(sql, &[(&id.to_string()).into()]),
        )?;
        self.nodes()
    }

    /// All nodes.
    pub fn nodes(&self) -> Result<Vec<KnownNode>, StoreError> {
        let garbled = || StoreError::Garbled { what: "the list of nodes" };
        self.run(
            "SELECT id, address, beat, gone_at FROM nodes ORDER BY address, id LIMIT 1000",
            |rows, sql| {
                rows.all(sql, &[], |row| {
                    let node = || {
                        Some(KnownNode {
                            id: row.cell(0).text()?.parse().ok()?,
                            address: row.cell(1).text()?.to_owned(),
                            beat: row.cell(2).integer()?,
                            gone_at: row.cell(3).optional(Cell::integer)?.map(Timestamp),
                        })
                    };
                    node().ok_or_else(garbled)
                })
            },
        )
    }

    /// Declares a node gone, unless its beat has changed since. Releases what it owned.
    pub fn declare_gone(&self, node: &KnownNode, now: Timestamp) -> Result<(), StoreError> {
        let sql = "UPDATE nodes SET gone_at = $3 WHERE id = $1 AND beat = $2 AND gone_at IS NULL";
        self.run(sql, |rows, sql| {
            rows.execute(sql, &[(&node.id.to_string()).into(), node.beat.into(), now.0.into()])
        })?;
        self.forget_owners_without_nodes()
    }

    /// Records that a node has shut down.
    pub fn leave(&self, id: NodeId, now: Timestamp) -> Result<(), StoreError> {
        self.run("UPDATE nodes SET gone_at = $2 WHERE id = $1", |rows, sql| {
            rows.execute(sql, &[(&id.to_string()).into(), now.0.into()])
        })?;
        self.forget_owners_without_nodes()
    }

    /// Returns the node that runs a server's process for a caller: this one, unless another live
    /// node already does.
    pub fn claim(&self, key: &InstanceKey, id: NodeId) -> Result<NodeId, StoreError> {
        // A single statement, so that of two concurrent claims one wins and both learn which.
        let sql = "INSERT INTO instance_owners AS owned (key, node) VALUES ($1, $2)
                   ON CONFLICT (key) DO UPDATE SET node = CASE
                       WHEN EXISTS (SELECT 1 FROM nodes WHERE id = owned.node AND gone_at IS NULL)
                       THEN owned.node ELSE excluded.node END
                   RETURNING node";
        let claimant = id.to_string();
        let owner = self.run(sql, |rows, sql| {
            let values = [key.0.as_slice().into(), (&claimant).into()];
            rows.first(sql, &values, |row| Ok(row.cell(0).text().and_then(|id| id.parse().ok())))
        })?;
        owner.flatten().ok_or(StoreError::Garbled { what: "the owner of a server's process" })
    }

    /// Records that the node no longer runs these processes.
    pub fn release(&self, keys: &[InstanceKey], id: NodeId) -> Result<(), StoreError> {
        for key in keys {
            self.run("DELETE FROM instance_owners WHERE key = $1 AND node = $2", |rows, sql| {
                rows.execute(sql, &[key.0.as_slice().into(), (&id.to_string()).into()])
            })?;
        }
        Ok(())
    }

    fn forget_owners_without_nodes(&self) -> Result<(), StoreError> {
        let sql = "DELETE FROM instance_owners WHERE node NOT IN
                   (SELECT id FROM nodes WHERE gone_at IS NULL)";
        self.run(sql, |rows, sql| rows.execute(sql, &[])).map(drop)
    }

    /// Runs one statement in a transaction of its own.
    fn run<T>(
        &self,
        sql: &str,
        run: impl Fn(&dyn Transaction, &str) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.store.with_session(|session| run(&Rows { session }, sql))
    }
}

#[cfg(test)]
mod tests;
