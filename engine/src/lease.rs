//! What a node knows about a database shared by several nodes, without a query per call: a thread
//! reads the number of the last change every 300 ms, which renews a lease of one second.
//! Notifications from the database only make this faster.
//!
//! INVARIANT: while the lease is valid, everything decided on any node more than a second ago is
//! known here. Once it has expired, calls are refused until the database responds again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use store::{Store, StoreError};

/// The interval for reading the number.
const RENEWAL: Duration = Duration::from_millis(300);
/// How long a response of the database is valid.
pub const LEASE: Duration = Duration::from_secs(1);

/// Reads the number: immediately if it differs from the given one, and otherwise when it changes or
/// the time is over.
pub type ReadChange = Box<dyn FnMut(u64, Duration) -> Result<u64, StoreError> + Send>;

/// The lease, shared by everything that decides by it.
#[derive(Debug, Clone)]
pub struct Lease {
    renewed: Arc<Renewed>,
    /// How long calls are still decided after the lease has expired.
    grace: Duration,
}

#[derive(Debug)]
struct Renewed {
    change: AtomicU64,
    began: Instant,
    /// In milliseconds after `began`.
    renewed_at: AtomicU64,
}

impl Lease {
    /// Starts following a database. Fails if it does not respond now.
    pub fn of(store: Box<dyn Store>) -> Result<Lease, StoreError> {
        let first = store.version()?;
        let read = move |since, patience| store.wait_for_change(since, patience);
        Lease::renewed_by(first, Box::new(read))
    }

    fn renewed_by(change: u64, read: ReadChange) -> Result<Lease, StoreError> {
        let renewed = Arc::new(Renewed {
            change: AtomicU64::new(change),
            began: Instant::now(),
            renewed_at: AtomicU64::new(0),
        });
        let weak = Arc::downgrade(&renewed);
        let thread = std::thread::Builder::new().name("lease".to_owned());
        thread
            .spawn(move || renew(&weak, read))
            .map_err(|source| StoreError::NotFollowed { source })?;
        Ok(Lease { renewed, grace: Duration::ZERO })
    }

    /// Lets calls continue for a while when the database is unreachable, if the operator allows
    /// that. Decisions made elsewhere in the meantime take effect here only afterwards.
    #[must_use]
    pub fn outlasting(self, grace: Duration) -> Lease {
        Lease { grace, ..self }
    }

    /// Whether calls may be decided on the known facts.
    pub fn check(&self) -> Result<(), StoreError> {
        match self.age() < self.patience() {
            true => Ok(()),
            false => Err(StoreError::LeaseOver),
        }
    }

    /// Whether the lease itself is valid, regardless of the operator's grace period.
    pub fn holds(&self) -> bool {
        self.age() < LEASE
    }

    fn age(&self) -> Duration {
        self.renewed_at().elapsed()
    }

    /// When the last answered query was sent to the database.
    fn renewed_at(&self) -> Instant {
        let Renewed { began, renewed_at, .. } = &*self.renewed;
        *began + Duration::from_millis(renewed_at.load(Ordering::Acquire))
    }

    /// The number of the last change, and a time for which it is valid: everything written before
    /// that time has this number or a lower one.
    pub fn change_at(&self) -> (u64, Instant) {
        // In this order, because a number newer than the time is valid for the time too.
        let at = self.renewed_at();
        (self.change(), at)
    }

    /// The maximum age of the known facts when a call is decided.
    pub fn patience(&self) -> Duration {
        LEASE + self.grace
    }

    /// The number of the last change.
    pub fn change(&self) -> u64 {
        self.renewed.change.load(Ordering::Acquire)
    }
}

fn renew(lease: &Weak<Renewed>, mut read: ReadChange) {
    loop {
        let Some(since) = lease.upgrade().map(|lease| lease.change.load(Ordering::Acquire)) else {
            return;
        };
        // The response describes the time of the query, not the time it arrived.
        let asked = Instant::now();
        let answer = read(since, RENEWAL);
        let Some(lease) = lease.upgrade() else { return };
        match answer {
            Ok(change) => {
                lease.change.store(change, Ordering::Release);
                let at = asked.saturating_duration_since(lease.began).as_millis();
                lease.renewed_at.store(u64::try_from(at).unwrap_or(u64::MAX), Ordering::Release);
            }
            Err(_) => {
                drop(lease);
                std::thread::sleep(RENEWAL.saturating_sub(asked.elapsed()));
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, channel};

    /// A valid lease, and a function that changes its number.
    pub(crate) fn held() -> (Lease, impl Fn(u64)) {
        let change = AtomicU64::new(1);
        let began = Instant::now();
        let renewed = Arc::new(Renewed { change, began, renewed_at: AtomicU64::new(0) });
        let lease = Lease { renewed: renewed.clone(), grace: Duration::ZERO };
        (lease, move |change| renewed.change.store(change, Ordering::Release))
    }

    /// A database whose responses the test provides one at a time.
    fn lease() -> (Lease, Sender<Option<u64>>) {
        let (say, said) = channel::<Option<u64>>();
        let mut last = 1;
        let read = move |_, patience| match said.recv_timeout(patience) {
            Ok(Some(change)) => {
                last = change;
                Ok(last)
            }
            Ok(None) => Err(StoreError::LeaseOver),
            Err(_) => Ok(last),
        };
        (Lease::renewed_by(1, Box::new(read)).unwrap(), say)
    }

    fn wait_until(what: &str, is_so: impl Fn() -> bool) {
        let until = Instant::now() + Duration::from_secs(20);
        while !is_so() {
            assert!(Instant::now() < until, "{what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_change_is_known_as_soon_as_the_database_tells_of_it() {
        let (lease, say) = lease();
        assert!(lease.check().is_ok());
        say.send(Some(7)).unwrap();
        wait_until("the change is never known", || lease.change() == 7);
        assert!(lease.check().is_ok());
    }

    #[test]
    fn calls_are_refused_while_the_database_does_not_answer_and_not_after() {
        let (lease, say) = lease();
        for _ in 0..8 {
            say.send(None).unwrap();
        }
        wait_until("the lease never ends", || lease.check().is_err());
        wait_until("the lease never begins again", || lease.check().is_ok());
    }

    #[test]
    fn calls_go_on_for_as_long_as_the_operator_says() {
        let (lease, say) = lease();
        let lenient = lease.clone().outlasting(Duration::from_secs(3_600));
        for _ in 0..8 {
            say.send(None).unwrap();
        }
        wait_until("the lease never ends", || lease.check().is_err());
        assert!(lenient.check().is_ok() && !lenient.holds());
    }
}
