//! Limits how many questions per day a model may be asked, by all processes of a home together and
//! about one server.

use crate::network::NetworkFolder;
use contract::time::Timestamp;
use gate::server::ServerId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;

/// The daily number of questions, if the configuration does not say.
pub const DAILY: u32 = 200;
/// The daily number per server, so that one that changes constantly does not use up the others'
/// budget.
pub const DAILY_PER_SERVER: u32 = 50;
const FILE: &str = "consult-budget.json";
const DAY_MILLISECONDS: i64 = 86_400_000;
/// The most servers that are counted separately. Additional ones share the remainder.
const MAX_SERVERS: usize = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    pub daily: u32,
    pub daily_per_server: u32,
}

impl Default for Budget {
    fn default() -> Self {
        Budget { daily: DAILY, daily_per_server: DAILY_PER_SERVER }
    }
}

/// The questions of one UTC day.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Spent {
    day: i64,
    all: u32,
    servers: BTreeMap<String, u32>,
}

impl Budget {
    /// Counts one question. Returns whether it may be asked.
    ///
    /// INVARIANT: a question is counted before it is asked, so that a crash cannot lead to two
    /// questions for one count.
    pub fn spend(
        self,
        folder: &NetworkFolder,
        server: &ServerId,
        now: Timestamp,
    ) -> io::Result<bool> {
        let _lock = folder.lock()?;
        let day = now.0.div_euclid(DAY_MILLISECONDS);
        let spent =
            folder.read(FILE).and_then(|bytes| serde_json::from_slice::<Spent>(&bytes).ok());
        let mut spent = spent.filter(|spent| spent.day == day).unwrap_or_default();
        spent.day = day;
        let of_server = spent.servers.get(server.as_str()).copied().unwrap_or(0);
        let has_place =
            spent.servers.len() < MAX_SERVERS || spent.servers.contains_key(server.as_str());
        if spent.all >= self.daily || of_server >= self.daily_per_server || !has_place {
            return Ok(false);
        }
        spent.all += 1;
        spent.servers.insert(server.as_str().to_owned(), of_server + 1);
        let bytes = serde_json::to_vec(&spent).map_err(io::Error::other)?;
        folder.write(FILE, &bytes)?;
        Ok(true)
    }
}
