//! Demand: how many networks asked about a publicly listed server. It decides which servers are
//! visited first.
//!
//! Only hashes are stored, for seven days, salted per install and bound to one server each. Names
//! that are not listed may be internal: they are neither stored nor shown.

use crate::database::DatabaseError;
use crate::model::{Model, Server};
use crate::serve::rates::network;
use crate::subject::SubjectId;
use contract::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};
use sha2::{Digest, Sha256};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// How long a request counts.
const WINDOW_DAYS: i64 = 7;
const DAY_MS: i64 = 86_400_000;
/// The most requests that wait to be written.
pub const MAX_WAITING: usize = 100_000;

/// Counts requests.
#[derive(Debug)]
pub struct Demand {
    connection: Connection,
    path: PathBuf,
    salt: Vec<u8>,
    waiting: HashSet<(Vec<u8>, Vec<u8>, i64)>,
}

impl Demand {
    pub fn open(path: &Path) -> Result<Demand, DatabaseError> {
        let fault = |source| DatabaseError::Sqlite { path: path.to_owned(), source };
        let connection = Connection::open(path).map_err(fault)?;
        connection.busy_timeout(std::time::Duration::from_secs(5)).map_err(fault)?;
        connection
            .execute_batch(
                "PRAGMA journal_mode = WAL;
                 CREATE TABLE IF NOT EXISTS salt (bytes BLOB NOT NULL) STRICT;
                 CREATE TABLE IF NOT EXISTS requests (server BLOB NOT NULL, network BLOB NOT NULL, day INTEGER NOT NULL, PRIMARY KEY (server, network, day)) STRICT, WITHOUT ROWID;",
            )
            .map_err(fault)?;
        let known = connection.query_row("SELECT bytes FROM salt", [], |row| row.get(0)).optional();
        let salt: Vec<u8> = match known.map_err(fault)? {
            Some(salt) => salt,
            None => {
                let mut salt = vec![0; 32];
                let random = getrandom::fill(&mut salt).is_ok();
                if !random {
                    let problem = "no randomness for a salt";
                    return Err(DatabaseError::Damaged { path: path.to_owned(), problem });
                }
                connection.execute("INSERT INTO salt VALUES (?1)", [&salt]).map_err(fault)?;
                salt
            }
        };
        Ok(Demand { connection, path: path.to_owned(), salt, waiting: HashSet::new() })
    }

    /// Counts a request for a listed server by a network: the /24 of an IPv4 address, or the /48 of
    /// an IPv6 address.
    pub fn count(&mut self, server: &SubjectId, address: IpAddr, now: Timestamp) {
        if self.waiting.len() >= MAX_WAITING {
            return;
        }
        let mut bytes = network(address, 6);
        if address.to_canonical().is_ipv4()
            && let Some(last) = bytes.last_mut()
        {
            *last = 0;
        }
        let key = self.server_hash(server);
        let hasher = Sha256::new_with_prefix(&self.salt).chain_update(&key).chain_update(bytes);
        let hash = hasher.finalize().iter().take(16).copied().collect();
        self.waiting.insert((key, hash, now.0.div_euclid(DAY_MS)));
    }

    fn server_hash(&self, server: &SubjectId) -> Vec<u8> {
        Sha256::digest(server.as_str()).to_vec()
    }

    /// Writes the counted requests, and deletes those older than seven days.
    pub fn flush(&mut self, now: Timestamp) -> Result<(), DatabaseError> {
        let fault = |source| DatabaseError::Sqlite { path: self.path.clone(), source };
        let transaction = self.connection.transaction().map_err(fault)?;
        for (server, network, day) in self.waiting.drain() {
            transaction
                .execute(
                    "INSERT OR IGNORE INTO requests VALUES (?1, ?2, ?3)",
                    params![server, network, day],
                )
                .map_err(fault)?;
        }
        let oldest = now.0.div_euclid(DAY_MS) - WINDOW_DAYS + 1;
        transaction.execute("DELETE FROM requests WHERE day < ?1", [oldest]).map_err(fault)?;
        transaction.commit().map_err(fault)
    }

    /// The number of distinct networks in the last seven days, by server.
    pub fn networks(&self, model: &Model) -> Result<BTreeMap<SubjectId, u64>, DatabaseError> {
        let fault = |source| DatabaseError::Sqlite { path: self.path.clone(), source };
        let mut statement = self
            .connection
            .prepare_cached("SELECT COUNT(DISTINCT network) FROM requests WHERE server = ?1")
            .map_err(fault)?;
        let mut all = BTreeMap::new();
        for id in model.servers.keys() {
            let count: i64 =
                statement.query_row([self.server_hash(id)], |row| row.get(0)).map_err(fault)?;
            all.insert(id.clone(), count.unsigned_abs());
        }
        Ok(all)
    }
}

/// A server in the queue, and the reasons for its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queued<'m> {
    pub server: &'m SubjectId,
    pub is_alarming: bool,
    pub networks: u64,
    pub since: Timestamp,
}

/// Whether a dimension failed or a safety-relevant change was observed.
pub fn is_alarming(server: &Server) -> bool {
    let failed = |value: &serde_json::Value| {
        value.get("outcome").and_then(serde_json::Value::as_str) == Some("fail")
    };
    server.dimensions.iter().any(failed) || server.drifts.iter().any(|drift| drift.item.safety)
}

/// The servers in the order of visits: failed dimensions and safety drift first, then demand, then
/// age.
pub fn queue<'m>(model: &'m Model, networks: &BTreeMap<SubjectId, u64>) -> Vec<Queued<'m>> {
    let mut all: Vec<Queued<'m>> = model
        .servers
        .values()
        .map(|server| Queued {
            server: &server.id,
            is_alarming: is_alarming(server),
            networks: networks.get(&server.id).copied().unwrap_or(0),
            since: server.at.0,
        })
        .collect();
    all.sort_by_key(|queued| {
        let Queued { server, is_alarming, networks, since } = *queued;
        (Reverse(is_alarming), Reverse(networks), since, server)
    });
    all
}

/// Sorts servers in the order of the queue. A server that was never visited counts as oldest.
pub fn sort_as_queued<T>(
    servers: &mut [T],
    id: impl Fn(&T) -> &SubjectId,
    model: &Model,
    networks: &BTreeMap<SubjectId, u64>,
) {
    servers.sort_by_cached_key(|one| {
        let id = id(one);
        let known = model.servers.get(id);
        (
            Reverse(known.is_some_and(is_alarming)),
            Reverse(networks.get(id).copied().unwrap_or(0)),
            known.map_or(Timestamp(0), |server| server.at.0),
        )
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Moment;

    #[test]
    fn networks_count_once_and_only_their_hashes_are_kept_for_seven_days() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("demand.db");
        let mut demand = Demand::open(&path).unwrap();
        let server: SubjectId = "npm:files".parse().unwrap();
        let now = Timestamp(1_790_000_000_000);
        for address in
            ["192.0.2.1", "192.0.2.200", "198.51.100.1", "2001:db8:1:1::1", "2001:db8:1:2::1"]
        {
            demand.count(&server, address.parse().unwrap(), now);
        }
        demand.flush(now).unwrap();
        let count = |demand: &Demand| -> i64 {
            let sql = "SELECT COUNT(DISTINCT network) FROM requests";
            demand.connection.query_row(sql, [], |row| row.get(0)).unwrap()
        };
        assert_eq!(count(&demand), 3);
        drop(demand);
        let bytes = std::fs::read(&path).unwrap();
        assert!(!bytes.windows(9).any(|window| window == b"npm:files"));
        let mut demand = Demand::open(&path).unwrap();
        demand.count(&server, "192.0.2.77".parse().unwrap(), now);
        demand.flush(now).unwrap();
        assert_eq!(count(&demand), 3, "the salt stays");
        demand.flush(Timestamp(now.0 + 7 * DAY_MS)).unwrap();
        assert_eq!(count(&demand), 0);
    }

    fn server(id: &str, alarm: Alarm, seconds: i64) -> Server {
        let at = Moment(Timestamp(seconds * 1_000));
        let outcome = if alarm == Alarm::Failed { "fail" } else { "pass" };
        let mut server = Server::for_tests(id.parse().unwrap(), at);
        server.dimensions =
            vec![serde_json::json!({ "dimension": "injection", "outcome": outcome })];
        server
    }

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Alarm {
        Failed,
        None,
    }

    #[test]
    fn alarms_come_first_then_demand_then_age_and_a_crawl_follows_it() {
        let mut model = Model::default();
        for (id, alarm, at) in [
            ("npm:asked-much", Alarm::None, 9),
            ("npm:asked-little", Alarm::None, 9),
            ("npm:old", Alarm::None, 1),
            ("npm:young", Alarm::None, 8),
            ("npm:failed", Alarm::Failed, 9),
        ] {
            let server = server(id, alarm, at);
            model.servers.insert(server.id.clone(), server);
        }
        let id = |text: &str| -> SubjectId { text.parse().unwrap() };
        let networks = BTreeMap::from([(id("npm:asked-much"), 5), (id("npm:asked-little"), 1)]);
        let expected = ["npm:failed", "npm:asked-much", "npm:asked-little", "npm:old", "npm:young"];
        let queue = queue(&model, &networks);
        assert_eq!(queue.iter().map(|it| it.server.as_str()).collect::<Vec<_>>(), expected);

        let mut work: Vec<SubjectId> =
            ["npm:young", "npm:new", "npm:old", "npm:asked-much", "npm:failed"].map(id).into();
        sort_as_queued(&mut work, |id| id, &model, &networks);
        let order: Vec<&str> = work.iter().map(SubjectId::as_str).collect();
        assert_eq!(order, ["npm:failed", "npm:asked-much", "npm:new", "npm:old", "npm:young"]);
    }
}
