//! Keeps obtained credentials while they are valid. Each caller has at most one fetch in progress,
//! and if there are too many callers, the older half is dropped.

use super::inbound::CallerKey;
use super::unavailable::Unavailable;
use crate::principal::Principal;
use contract::time::Timestamp;
use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use wire::remote::Credential;

/// The most callers per half whose credentials are kept for one server.
const HALF: usize = 5_000;
/// How long before its expiry a token is replaced, and the fraction of a short lifetime used
/// instead.
const EXPIRY_MARGIN: Duration = Duration::from_secs(30);
const MARGIN_PART: u32 = 5;
/// How long to wait after a failure before fetching again.
const FAILURE_PAUSE: Duration = Duration::from_secs(1);
/// The shortest interval between replacements of a refused credential.
const RENEWAL_PAUSE: Duration = Duration::from_secs(5);

/// The result of a fetch.
#[derive(Debug)]
pub(super) struct Fetched {
    pub(super) credential: Credential,
    /// Replaced after this long, if possible.
    pub(super) renew_after: Duration,
    /// Not used for longer than this.
    pub(super) counts_for: Duration,
}

impl Fetched {
    /// A token that expires after this lifetime.
    pub(super) fn expiring(credential: Credential, lifetime: Duration) -> Fetched {
        let margin = EXPIRY_MARGIN.min(lifetime / MARGIN_PART);
        Fetched { credential, renew_after: lifetime.saturating_sub(margin), counts_for: lifetime }
    }
}

/// The credentials of all callers for one server.
#[derive(Debug, Default)]
pub(super) struct Cells(Mutex<Halves>);

#[derive(Debug, Default)]
struct Halves {
    newer: HashMap<Option<CallerKey>, Arc<Cell>>,
    older: HashMap<Option<CallerKey>, Arc<Cell>>,
}

/// One caller's credential.
#[derive(Debug, Default)]
struct Cell {
    kept: Mutex<Kept>,
    /// Held during a fetch, so that other calls wait for its result.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Kept {
    current: Option<Current>,
    failed_at: Option<Instant>,
    renewed_at: Option<Instant>,
}

#[derive(Debug, Clone)]
struct Current {
    credential: Arc<Credential>,
    /// The principal it was obtained for; `None` if callers share it.
    owner: Option<Arc<Principal>>,
    obtained_at: Timestamp,
    renew_at: Instant,
    ends_at: Instant,
}

impl Cells {
    /// The stored credential, if it need not be replaced yet.
    pub(super) fn ready(&self, key: Option<CallerKey>) -> Option<Arc<Credential>> {
        let cell = {
            let halves = lock(&self.0);
            halves.newer.get(&key).or_else(|| halves.older.get(&key)).cloned()
        };
        cell?.fresh()
    }

    /// The stored credential, or a newly fetched one if there is none or it expires soon.
    pub(super) async fn obtain<F>(
        &self,
        key: Option<CallerKey>,
        owner: Option<&Arc<Principal>>,
        fetch: impl FnOnce() -> F,
    ) -> Result<Arc<Credential>, Unavailable>
    where
        F: Future<Output = Result<Fetched, Unavailable>>,
    {
        let cell = self.cell(key);
        if let Some(credential) = cell.fresh() {
            return Ok(credential);
        }
        let _fetching = match (cell.fetching.try_lock(), cell.usable()) {
            (Ok(fetching), _) => fetching,
            // Another call is replacing it; the current one is used until then.
            (Err(_), Some(credential)) => return Ok(credential),
            (Err(_), None) => cell.fetching.lock().await,
        };
        if let Some(credential) = cell.fresh() {
            return Ok(credential);
        }
        let has_just_failed = lock(&cell.kept).has_just_failed();
        let outcome = match has_just_failed {
            true => Err(Unavailable::JustFailed),
            false => cell.fill(fetch().await, owner),
        };
        outcome.or_else(|error| cell.usable().ok_or(error))
    }

    /// The replacement of a refused credential.
    pub(super) async fn renew<F>(
        &self,
        key: Option<CallerKey>,
        owner: Option<&Arc<Principal>>,
        refused: &Arc<Credential>,
        fetch: impl FnOnce() -> F,
    ) -> Result<Arc<Credential>, Unavailable>
    where
        F: Future<Output = Result<Fetched, Unavailable>>,
    {
        let cell = self.cell(key);
        let _fetching = cell.fetching.lock().await;
        {
            let mut kept = lock(&cell.kept);
            match &kept.current {
                // Another call has already replaced it.
                Some(current) if !Arc::ptr_eq(&current.credential, refused) => {
                    return Ok(current.credential.clone());
                }
                Some(_) | None => {}
            }
            let now = Instant::now();
            if kept.renewed_at.is_some_and(|at| now < at + RENEWAL_PAUSE) {
                return Err(Unavailable::Refused);
            }
            (kept.renewed_at, kept.current) = (Some(now), None);
        }
        cell.fill(fetch().await, owner)
    }

    /// Drops the credentials for which `is_meant` holds, given their owner and time. Returns them.
    pub(super) fn forget(
        &self,
        is_meant: impl Fn(Option<&Principal>, Timestamp) -> bool,
    ) -> Vec<Arc<Credential>> {
        let halves = lock(&self.0);
        let mut forgotten = Vec::new();
        for cell in halves.newer.values().chain(halves.older.values()) {
            let mut kept = lock(&cell.kept);
            let meant = kept
                .current
                .take_if(|current| is_meant(current.owner.as_deref(), current.obtained_at));
            forgotten.extend(meant.map(|current| current.credential));
        }
        forgotten
    }

    fn cell(&self, key: Option<CallerKey>) -> Arc<Cell> {
        let mut halves = lock(&self.0);
        if let Some(cell) = halves.newer.get(&key) {
            return cell.clone();
        }
        if halves.newer.len() >= HALF {
            halves.older = std::mem::take(&mut halves.newer);
        }
        let cell = halves.older.remove(&key).unwrap_or_default();
        halves.newer.insert(key, cell.clone());
        cell
    }
}

impl Cell {
    fn fresh(&self) -> Option<Arc<Credential>> {
        let kept = lock(&self.kept);
        let current = kept.current.as_ref().filter(|current| Instant::now() < current.renew_at)?;
        Some(current.credential.clone())
    }

    fn usable(&self) -> Option<Arc<Credential>> {
        let kept = lock(&self.kept);
        let current = kept.current.as_ref().filter(|current| Instant::now() < current.ends_at)?;
        Some(current.credential.clone())
    }

    fn fill(
        &self,
        fetched: Result<Fetched, Unavailable>,
        owner: Option<&Arc<Principal>>,
    ) -> Result<Arc<Credential>, Unavailable> {
        let now = Instant::now();
        let mut kept = lock(&self.kept);
        match fetched {
            Ok(Fetched { credential, renew_after, counts_for }) => {
                let credential = Arc::new(credential);
                kept.current = Some(Current {
                    credential: credential.clone(),
                    owner: owner.cloned(),
                    obtained_at: crate::recorder::now(),
                    renew_at: now + renew_after,
                    ends_at: now + counts_for,
                });
                kept.failed_at = None;
                Ok(credential)
            }
            // Only the person can fix this, so the next call tries again, and the stored credential
            // is no longer valid.
            Err(error) if error.needs_person() => {
                kept.current = None;
                Err(error)
            }
            Err(error) => {
                kept.failed_at = Some(now);
                Err(error)
            }
        }
    }
}

impl Kept {
    fn has_just_failed(&self) -> bool {
        self.failed_at.is_some_and(|at| Instant::now() < at + FAILURE_PAUSE)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
