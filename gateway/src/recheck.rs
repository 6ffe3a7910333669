//! Checks servers independently of callers: on a schedule, and when an administrator asks. A change
//! that a server does not announce is found and held before a caller uses the server.
//!
//! Uses only the gateway's own credentials, and only contacts servers that were observed before and
//! may be contacted.

use crate::catalog::CatalogServer;
use crate::node::Node;
use crate::server::GatewayServer;
use contract::surface::Entry;
use contract::time::Timestamp;
use engine::origin::observed_origin;
use engine::recorder::now;
use engine::server::LookError;
use gate::server::{ServerId, ServerStatus};
use serde_json::json;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use wire::{ObserveError, ObserveLimits, Observed};

/// How many servers are checked at once.
const AT_ONCE: usize = 4;
/// How often to look for servers that are due.
const TICK: Duration = Duration::from_millis(500);

/// Why a check failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoLook {
    #[error("the server could not be reached: {0}")]
    Unreached(String),
    #[error("the look failed inside the gateway")]
    Internal,
    #[error(transparent)]
    Look(#[from] LookError),
}

/// The results of scheduled checks.
#[derive(Debug, Default)]
pub(crate) struct Rechecks {
    counts: [AtomicU64; RecheckOutcome::ALL.len()],
    last: Mutex<HashMap<ServerId, LastLook>>,
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecheckOutcome {
    /// The server's status did not change.
    Same,
    Changed,
    Failed,
}

impl RecheckOutcome {
    const ALL: [RecheckOutcome; 3] =
        [RecheckOutcome::Same, RecheckOutcome::Changed, RecheckOutcome::Failed];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            RecheckOutcome::Same => "same",
            RecheckOutcome::Changed => "changed",
            RecheckOutcome::Failed => "failed",
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct LastLook {
    at: Timestamp,
    has_failed: bool,
}

impl Rechecks {
    pub(crate) fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed));
        RecheckOutcome::ALL.into_iter().map(RecheckOutcome::as_str).zip(counts)
    }

    /// When a server was last checked on schedule, successfully or not.
    pub(crate) fn last(&self, id: &ServerId) -> Option<Timestamp> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.get(id).map(|look| look.at)
    }

    /// Records a check. Returns whether the previous one failed too.
    fn note(&self, id: &ServerId, outcome: RecheckOutcome) -> bool {
        let [same, changed, failed] = &self.counts;
        let count = match outcome {
            RecheckOutcome::Same => same,
            RecheckOutcome::Changed => changed,
            RecheckOutcome::Failed => failed,
        };
        count.fetch_add(1, Ordering::Relaxed);
        let look = LastLook { at: now(), has_failed: outcome == RecheckOutcome::Failed };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.insert(id.clone(), look).is_some_and(|before| before.has_failed)
    }
}

impl Node {
    /// Checks every server once per interval, until the gateway shuts down.
    pub(crate) fn start_rechecks(self: &Arc<Self>) {
        let (node, mut stop) = (Arc::downgrade(self), self.stopping());
        self.shared.runtime.spawn(async move {
            let at_once = Arc::new(Semaphore::new(AT_ONCE));
            let mut schedule = Schedule::default();
            loop {
                tokio::select! {
                    () = tokio::time::sleep(TICK) => {}
                    _ = stop.changed() => return,
                }
                let Some(node) = Weak::upgrade(&node) else { return };
                for server in schedule.due(&node, Instant::now()) {
                    let (node, at_once) = (node.clone(), at_once.clone());
                    tokio::spawn(async move {
                        let Ok(_permit) = at_once.acquire().await else { return };
                        node.recheck_by_schedule(&server).await;
                    });
                }
            }
        });
    }

    async fn recheck_by_schedule(self: &Arc<Self>, server: &Arc<GatewayServer>) {
        let id = server.id();
        let before = {
            let catalog = self.catalog();
            // The server may have been removed, replaced or stopped since it was due.
            let known = catalog.servers.get(id);
            let known = known.filter(|known| Arc::ptr_eq(&known.server, server) && may_look(known));
            let Some(known) = known else { return };
            if !known.server.may_be_contacted(known.situation.as_deref()).await {
                return;
            }
            known.status
        };
        let status = self.recheck(server).await;
        let outcome = match &status {
            Ok(status) if *status == before => RecheckOutcome::Same,
            Ok(_) => RecheckOutcome::Changed,
            Err(_) => RecheckOutcome::Failed,
        };
        let failed_before = self.rechecks.note(id, outcome);
        match status {
            Ok(status) if status != before => {
                let data = json!({"status": status, "before": before, "by": "schedule"});
                self.shared.recorder.event(id.as_str(), "server.recheck", None, &data);
                self.remark(&format!("`{id}` is now {status}, after a scheduled recheck"));
            }
            Ok(_) => {}
            Err(error) if !failed_before => {
                self.remark(&format!("the scheduled recheck of `{id}` failed: {error}"));
            }
            Err(_) => {}
        }
    }

    /// Checks a server now, and applies the result for all callers. Returns its new status.
    pub(crate) async fn recheck(
        self: &Arc<Self>,
        server: &Arc<GatewayServer>,
    ) -> Result<ServerStatus, NoLook> {
        let (observed, origin) = self.look(server).await?;
        let (node, server) = (self.clone(), server.clone());
        let taken = tokio::task::spawn_blocking(move || {
            let status = server.engine.take_in(&observed, origin)?;
            node.refresh();
            Ok(status)
        });
        taken.await.unwrap_or(Err(NoLook::Internal))
    }

    /// Observes the server with the gateway's own credentials.
    pub(crate) async fn look(
        self: &Arc<Self>,
        server: &Arc<GatewayServer>,
    ) -> Result<(Observed, Entry), NoLook> {
        let upstream = server.own_upstream().await;
        let upstream = upstream.map_err(|why| NoLook::Unreached(why.to_string()))?;
        let observed = wire::observe(&upstream, &ObserveLimits::default(), &|_| {}).await;
        let observed =
            observed.map_err(|error: ObserveError| NoLook::Unreached(error.without_stderr()))?;
        let (node, server) = (self.clone(), server.clone());
        let tls_key = observed.tls_key.clone();
        let origin = tokio::task::spawn_blocking(move || {
            let kept = node.shared.home.path().join("digests.json");
            let key = &node.shared.launch_key;
            observed_origin(server.upstream(), key, tls_key.as_deref(), Some(&kept))
        });
        match origin.await {
            Ok(Ok(origin)) => Ok((observed, origin)),
            Ok(Err(_)) | Err(_) => Err(NoLook::Internal),
        }
    }
}

/// Whether the schedule includes a server. One that was never observed cannot have drifted, and one
/// that a person stopped is left alone.
fn may_look(known: &CatalogServer) -> bool {
    known.situation.is_some()
        && known.status != ServerStatus::Quarantined
        && !known.server.is_breaker_open()
}

/// When each server is due next.
#[derive(Debug, Default)]
struct Schedule(HashMap<ServerId, Planned>);

#[derive(Debug)]
struct Planned {
    server: Weak<GatewayServer>,
    interval: Duration,
    at: Instant,
}

impl Schedule {
    /// The servers that are due now. Each becomes due again after its interval.
    fn due(&mut self, node: &Node, now: Instant) -> Vec<Arc<GatewayServer>> {
        let (catalog, settings) = (node.catalog(), node.shared.settings());
        self.0.retain(|id, _| catalog.servers.contains_key(id));
        let mut due = Vec::new();
        for (id, known) in &catalog.servers {
            let Some(interval) = settings.recheck_interval(&known.server.settings) else {
                self.0.remove(id);
                continue;
            };
            let server = Arc::downgrade(&known.server);
            let planned = self.0.get(id);
            let is_planned = planned.is_some_and(|planned| {
                planned.server.ptr_eq(&server) && planned.interval == interval
            });
            if !is_planned {
                // Randomized, so that nodes and servers that start together are not checked
                // together.
                let at = now + interval.mul_f64(random_fraction());
                self.0.insert(id.clone(), Planned { server, interval, at });
                continue;
            }
            let Some(planned) = self.0.get_mut(id).filter(|planned| planned.at <= now) else {
                continue;
            };
            planned.at = now + interval.mul_f64(0.9 + 0.2 * random_fraction());
            if may_look(known) {
                due.push(known.server.clone());
            }
        }
        due
    }
}

/// A random number from 0 to 1, or one half if there is no randomness.
fn random_fraction() -> f64 {
    let mut bytes = [0; 4];
    match getrandom::fill(&mut bytes) {
        Ok(()) => f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX),
        Err(_) => 0.5,
    }
}
