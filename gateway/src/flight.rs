//! Requests that servers are processing, indexed by how their clients cancel them.

use crate::sessions::PrincipalId;
use foldhash::HashSet;
use futures_util::task::AtomicWaker;
use std::borrow::Borrow;
use std::future::poll_fn;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

/// Distinguishes a request from those of other callers and sessions.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct FlightKey {
    pub(crate) principal: PrincipalId,
    pub(crate) session: Option<u64>,
    /// The raw id of the request.
    pub(crate) id: Box<[u8]>,
}

#[derive(Debug)]
struct Flight {
    key: FlightKey,
    is_cancelled: AtomicBool,
    /// Wakes the task that carries the request.
    waits: AtomicWaker,
}

/// An entry of the table, looked up by the key of its request.
#[derive(Debug)]
struct Entry(Arc<Flight>);

impl Borrow<FlightKey> for Entry {
    fn borrow(&self) -> &FlightKey {
        &self.0.key
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.0.key == other.0.key
    }
}

impl Eq for Entry {}

impl Hash for Entry {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.key.hash(state);
    }
}

type Table = Arc<Mutex<HashSet<Entry>>>;

/// All requests of a node that servers are processing.
#[derive(Debug, Default)]
pub(crate) struct Flights(Table);

impl Flights {
    /// Adds a request. It replaces an earlier one with the same id.
    pub(crate) fn begin(&self, key: FlightKey) -> InFlight {
        let (is_cancelled, waits) = (AtomicBool::new(false), AtomicWaker::new());
        let flight = Arc::new(Flight { key, is_cancelled, waits });
        lock(&self.0).replace(Entry(flight.clone()));
        InFlight { table: self.0.clone(), flight }
    }

    /// Marks a request as cancelled by its client.
    pub(crate) fn cancel(&self, key: &FlightKey) {
        if let Some(Entry(flight)) = lock(&self.0).get(key) {
            flight.is_cancelled.store(true, Ordering::Release);
            flight.waits.wake();
        }
    }

    pub(crate) fn count(&self) -> usize {
        lock(&self.0).len()
    }
}

/// A request in flight, until this is dropped.
#[derive(Debug)]
pub(crate) struct InFlight {
    table: Table,
    flight: Arc<Flight>,
}

impl InFlight {
    /// The raw id of the request.
    pub(crate) fn id(&self) -> &[u8] {
        &self.flight.key.id
    }

    /// Returns once the client has cancelled the request. Only one task may wait at a time.
    pub(crate) async fn cancelled(&self) {
        poll_fn(|context| {
            // INVARIANT: the task is registered before the flag is read, so that a cancellation in
            // between wakes it.
            self.flight.waits.register(context.waker());
            match self.flight.is_cancelled.load(Ordering::Acquire) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut table = lock(&self.table);
        // A later request may have replaced this one.
        let known = table.get(&self.flight.key);
        if known.is_some_and(|known| Arc::ptr_eq(&known.0, &self.flight)) {
            table.remove(&self.flight.key);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(principal: u8, id: &str) -> FlightKey {
        FlightKey { principal: [principal; 32], session: Some(1), id: id.as_bytes().into() }
    }

    #[tokio::test]
    async fn a_request_is_cancelled_by_its_own_caller_and_for_good() {
        let flights = Flights::default();
        let (ada, eve) = (flights.begin(key(1, "7")), flights.begin(key(2, "7")));
        let is_cancelled = |flight: &InFlight| flight.flight.is_cancelled.load(Ordering::Acquire);
        flights.cancel(&key(1, "8"));
        assert!(!is_cancelled(&ada));
        let waiting = ada.cancelled();
        flights.cancel(&key(1, "7"));
        waiting.await;
        ada.cancelled().await;
        assert!(!is_cancelled(&eve));
        assert_eq!(flights.count(), 2);
    }

    #[test]
    fn a_later_request_with_the_same_id_stays_when_the_earlier_one_ends() {
        let flights = Flights::default();
        let (earlier, later) = (flights.begin(key(1, "7")), flights.begin(key(1, "7")));
        drop(earlier);
        assert_eq!(flights.count(), 1);
        flights.cancel(&key(1, "7"));
        assert!(later.flight.is_cancelled.load(Ordering::Acquire));
        drop(later);
        assert_eq!(flights.count(), 0);
    }
}
