//! Rate limits shared by all nodes. A separate thread reports the calls that this node let through
//! to the database, and reads the totals of all nodes: no call waits for it.

use engine::decide::{rate_time, unix_seconds};
use engine::lease::Lease;
use gate::server::ServerId;
use policy::preflight::{RateLimiter, SharedCount, Throttle, UnreportedCalls};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use store::{MAX_REPORTED_BUCKETS, RateCounts, ReportedCalls, StoreError};
use tokio::sync::watch;

/// How long calls are collected before they are reported. Once half a lease is used up, they are
/// reported at once.
const REPORT_PAUSE: Duration = Duration::from_millis(100);
/// How long to wait after a failed request to the database.
const RETRY_PAUSE: Duration = Duration::from_millis(300);
/// How often unused buckets are removed from the database.
const FORGET_PAUSE: Duration = Duration::from_secs(3_600);

/// The limiters of all servers, including those that a reload replaced.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    limiters: Mutex<BTreeMap<ServerId, Arc<RateLimiter>>>,
    /// Wakes the reporting thread; `None` if this node counts alone.
    bell: Option<Arc<Bell>>,
}

impl Rates {
    pub(crate) fn shared() -> Rates {
        Rates { bell: Some(Arc::default()), ..Rates::default() }
    }

    /// The limiter of a server. It keeps the counts of the server's previous limiter.
    pub(crate) fn limiter(&self, server: &ServerId, throttle: Throttle) -> Arc<RateLimiter> {
        let mut limiters = lock(&self.limiters);
        let newer = match limiters.get(server) {
            Some(known) if known.throttle() == throttle => return known.clone(),
            Some(known) => known.succeeded_by(throttle),
            None => RateLimiter::new(throttle),
        };
        let newer = match &self.bell {
            Some(bell) => {
                let bell = bell.clone();
                newer.shared_as(server.as_str(), Box::new(move || bell.ring()))
            }
            None => newer,
        };
        let newer = Arc::new(newer);
        limiters.insert(server.clone(), newer.clone());
        newer
    }

    /// Reports to the database until the gateway shuts down.
    pub(crate) fn follow(
        self: &Arc<Self>,
        counts: RateCounts,
        lease: Lease,
        stop: watch::Receiver<bool>,
    ) -> std::io::Result<()> {
        let Some(bell) = self.bell.clone() else { return Ok(()) };
        let rates = self.clone();
        let thread = std::thread::Builder::new().name("rates".to_owned());
        thread.spawn(move || {
            let mut forgotten = Instant::now();
            // One last report is made after the shutdown was requested.
            let mut is_over = false;
            while !is_over {
                bell.wait(REPORT_PAUSE);
                is_over = *stop.borrow() || stop.has_changed().is_err();
                let reported = rates.report(&counts);
                rates.each(|limiter| limiter.set_alone(!lease.holds()));
                if reported.is_err() {
                    std::thread::sleep(RETRY_PAUSE);
                } else if forgotten.elapsed() > FORGET_PAUSE {
                    let _ = counts.forget_idle();
                    forgotten = Instant::now();
                }
            }
        })?;
        Ok(())
    }

    fn each(&self, act: impl Fn(&RateLimiter)) {
        lock(&self.limiters).values().for_each(|limiter| act(limiter));
    }

    /// Reports new calls, and takes over the totals of all nodes.
    fn report(&self, counts: &RateCounts) -> Result<(), StoreError> {
        let limiters: Vec<Arc<RateLimiter>> = lock(&self.limiters).values().cloned().collect();
        let mut answer = Ok(());
        for limiter in limiters {
            let calls = limiter.unreported(MAX_REPORTED_BUCKETS);
            if calls.is_empty() {
                continue;
            }
            let reported: Vec<ReportedCalls> = calls.iter().map(report_of).collect();
            let counted = counts.add(&reported).map(|counted| {
                counted.into_iter().map(|count| SharedCount {
                    full_in: Duration::from_nanos(count.full_in_nanoseconds),
                    used: count.used,
                    unix_seconds: count.unix_seconds,
                })
            });
            let (now, day) = (rate_time(Instant::now()), unix_seconds());
            match counted {
                Ok(counted) => calls
                    .iter()
                    .zip(counted)
                    .for_each(|(calls, count)| limiter.heard(calls, Some(count), now, day)),
                Err(error) => {
                    calls.iter().for_each(|calls| limiter.heard(calls, None, now, day));
                    answer = Err(error);
                }
            }
        }
        answer
    }
}

fn report_of(calls: &UnreportedCalls) -> ReportedCalls {
    let UnreportedCalls { shared, calls, each_nanoseconds, .. } = *calls;
    ReportedCalls { bucket: shared.0, calls, each_nanoseconds }
}

/// Wakes the reporting thread.
#[derive(Debug, Default)]
struct Bell {
    is_rung: AtomicBool,
    turn: Mutex<()>,
    heard: Condvar,
}

impl Bell {
    /// Costs a call one atomic operation and, at most once per report, a notification.
    fn ring(&self) {
        if !self.is_rung.swap(true, Ordering::AcqRel) {
            let _turn = lock(&self.turn);
            self.heard.notify_one();
        }
    }

    fn wait(&self, patience: Duration) {
        let turn = lock(&self.turn);
        let is_quiet = |(): &mut ()| !self.is_rung.load(Ordering::Acquire);
        let waited = self.heard.wait_timeout_while(turn, patience, is_quiet);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        self.is_rung.store(false, Ordering::Release);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
