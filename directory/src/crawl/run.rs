//! One crawl: a few workers visit every server that is due once. Observations are stored at once,
//! so that a crawl can be resumed after it was killed.

use super::package::{PackageError, Registries, chosen};
use super::target::{PackageWay, Target, Way};
use super::visit::Visitor;
use super::{Manifest, Observation, Outcome};
use crate::database::{Database, DatabaseError, Due};
use crate::subject::SubjectId;
use contract::time::Timestamp;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use wire::dialer::Dialer;

/// The most concurrent visits.
pub const MAX_WORKERS: usize = 2;
/// How long after a visit the server is visited again.
const AGAIN_AFTER: Duration = Duration::from_secs(24 * 3_600);
/// The same after [`FAILURES_UNTIL_WEEKLY`] consecutive visits without a contract.
const AGAIN_AFTER_FAILURES: Duration = Duration::from_secs(7 * 24 * 3_600);
const FAILURES_UNTIL_WEEKLY: u32 = 5;

/// A server to visit, with its known metadata.
pub type Work = (Target, Manifest);

/// The parts and options of a crawl.
#[derive(Debug)]
pub struct Crawl<'a> {
    pub visitor: &'a Visitor,
    pub dialer: &'a Dialer,
    pub registries: &'a Registries,
    pub database: &'a Mutex<Database>,
    /// How many of the newest releases of each package are visited.
    pub releases: usize,
    pub workers: usize,
    /// Also visits servers that are not due, and releases that were already observed.
    pub again: bool,
    pub stop: &'a AtomicBool,
}

/// Receives the events of a crawl.
pub trait CrawlEvents: Sync {
    fn clock(&self) -> Timestamp;
    /// A visit starts.
    fn begins(&self, server: &SubjectId, release: Option<&str>);
    /// An observation was stored; it may be recorded now.
    fn observed(&self, observation: &Observation) -> Result<(), CrawlError>;
    /// A server is finished: it was visited, was not due, or its releases could not be read.
    fn ends(&self, server: &SubjectId, ended: &ServerEnd);
}

/// The result for one server.
#[derive(Debug)]
pub enum ServerEnd {
    Visited { releases: usize, listed: usize },
    NotDue,
    Unknown(PackageError),
}

/// Why a crawl ended early.
#[derive(Debug, thiserror::Error)]
pub enum CrawlError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error(transparent)]
    Record(Box<dyn std::error::Error + Send + Sync>),
    #[error("a connection could not be prepared: {0}")]
    NoRuntime(std::io::Error),
}

impl Crawl<'_> {
    /// Visits all servers that are due. Blocks.
    pub fn run(&self, work: Vec<Work>, events: &dyn CrawlEvents) -> Result<(), CrawlError> {
        let waiting = Mutex::new(VecDeque::from(work));
        let failure: Mutex<Option<CrawlError>> = Mutex::default();
        let work_on = || {
            loop {
                if self.stop.load(Ordering::Relaxed) || lock(&failure).is_some() {
                    return;
                }
                let Some((target, manifest)) = lock(&waiting).pop_front() else { return };
                if let Err(error) = self.server(&target, &manifest, events) {
                    lock(&failure).get_or_insert(error);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..self.workers.clamp(1, MAX_WORKERS) {
                scope.spawn(work_on);
            }
        });
        lock(&failure).take().map_or(Ok(()), Err)
    }

    fn server(
        &self,
        target: &Target,
        manifest: &Manifest,
        events: &dyn CrawlEvents,
    ) -> Result<(), CrawlError> {
        let due = lock(self.database).due(&target.id)?;
        if !self.again && due.is_some_and(|due| due.at > events.clock()) {
            events.ends(&target.id, &ServerEnd::NotDue);
            return Ok(());
        }
        let failures = due.map_or(0, |due| due.failures);
        let ended = match &target.way {
            Way::Remote { url } => {
                events.begins(&target.id, None);
                let seen = self.visitor.remote(target, url, manifest, events.clock());
                let listed = usize::from(matches!(seen.outcome, Outcome::Listed(_)));
                self.keep(&seen, Some(next_visit(failures, listed, events.clock())), events)?;
                ServerEnd::Visited { releases: 1, listed }
            }
            Way::Package(way) => match self.releases_of(target, way)? {
                Ok(releases) => self.package(target, way, &releases, failures, events)?,
                Err(error) => {
                    let next = next_visit(failures, 0, events.clock());
                    lock(self.database).write(|writing| writing.set_due(&target.id, next))?;
                    ServerEnd::Unknown(error)
                }
            },
        };
        if !self.stop.load(Ordering::Relaxed) {
            events.ends(&target.id, &ended);
        }
        Ok(())
    }

    fn releases_of(
        &self,
        target: &Target,
        way: &PackageWay,
    ) -> Result<Result<Vec<Manifest>, PackageError>, CrawlError> {
        let Some((registry, name)) = target.id.as_package() else { return Ok(Ok(Vec::new())) };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(CrawlError::NoRuntime)?;
        let found = runtime.block_on(self.registries.releases(self.dialer, registry, name));
        let chosen = found.and_then(|all| chosen(name, all, &way.releases, self.releases));
        Ok(chosen.map(|releases| releases.into_iter().map(|it| it.manifest).collect()))
    }

    /// Visits releases oldest first: the log reports changes in the order of the releases.
    fn package(
        &self,
        target: &Target,
        way: &PackageWay,
        releases: &[Manifest],
        failures: u32,
        events: &dyn CrawlEvents,
    ) -> Result<ServerEnd, CrawlError> {
        let (count, mut listed) = (releases.len(), 0);
        for (at, manifest) in releases.iter().enumerate() {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            let release = manifest.version.as_deref();
            let is_newest = at + 1 == count;
            // A published release does not change. The newest one is still visited again, since it
            // is what users get.
            let is_known = lock(self.database).is_observed(&target.id, release)?;
            if is_known && !self.again && !is_newest {
                listed += 1;
                continue;
            }
            events.begins(&target.id, release);
            let seen = self.visitor.package(target, way, manifest, events.clock());
            listed += usize::from(matches!(seen.outcome, Outcome::Listed(_)));
            let next = is_newest.then(|| next_visit(failures, listed, events.clock()));
            self.keep(&seen, next, events)?;
        }
        Ok(ServerEnd::Visited { releases: count, listed })
    }

    /// Stores an observation and, with the last visit to a server, when the next one is due: a
    /// crawl that is killed right after does not visit the server again.
    fn keep(
        &self,
        seen: &Observation,
        next: Option<Due>,
        events: &dyn CrawlEvents,
    ) -> Result<(), CrawlError> {
        lock(self.database).write(|writing| {
            writing.keep_observation(seen)?;
            next.map_or(Ok(()), |next| writing.set_due(&seen.server, next))
        })?;
        events.observed(seen)
    }
}

/// When a server is visited again after these visits, of which `listed` saw a contract.
fn next_visit(failures: u32, listed: usize, now: Timestamp) -> Due {
    let failures = if listed > 0 { 0 } else { failures.saturating_add(1) };
    let wait = match failures {
        FAILURES_UNTIL_WEEKLY.. => AGAIN_AFTER_FAILURES,
        _ => AGAIN_AFTER,
    };
    let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
    Due { at: Timestamp(now.0.saturating_add(wait)), failures }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
