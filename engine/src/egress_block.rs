//! The state of `incident block-egress`, for the proxies that let connections out. They are
//! notified initially and on every change.

use crate::lease::LEASE;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};
use store::{Store, StoreError};

/// The interval for polling the store.
const LOOK: Duration = Duration::from_millis(300);

/// Receives whether egress is closed from now on.
pub type EgressListener = Box<dyn Fn(bool) + Send + Sync>;

/// The state of the switch, shared by everything that lets connections out.
#[derive(Default)]
pub struct EgressBlock {
    is_closed: AtomicBool,
    listeners: Mutex<Vec<EgressListener>>,
}

impl std::fmt::Debug for EgressBlock {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("EgressBlock").field("is_closed", &self.is_closed).finish()
    }
}

impl EgressBlock {
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Closes or opens egress. Listeners are notified before this returns.
    pub fn set(&self, is_closed: bool) {
        // Under the lock, so that no listener receives two changes in the wrong order.
        let listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_closed.swap(is_closed, Ordering::AcqRel) != is_closed {
            listeners.iter().for_each(|listener| listener(is_closed));
        }
    }

    /// Notifies a listener now and on every change.
    pub fn tell(&self, listener: EgressListener) {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listener(self.is_closed());
        listeners.push(listener);
    }

    /// Follows a store for as long as this is in use. If the store cannot be read for a second,
    /// egress is closed, because nothing shows that it may be open.
    pub fn follow(self: &Arc<Self>, store: Box<dyn Store>) -> Result<(), StoreError> {
        self.set(store.incident()?.egress_blocked.is_some());
        let block = Arc::downgrade(self);
        std::thread::Builder::new()
            .name("egress".to_owned())
            .spawn(move || follow(&block, &*store))
            .map_err(|source| StoreError::NotFollowed { source })?;
        Ok(())
    }
}

fn follow(block: &Weak<EgressBlock>, store: &dyn Store) {
    let (mut version, mut read_at) = (None, Instant::now());
    loop {
        std::thread::sleep(LOOK);
        let Some(block) = block.upgrade() else { return };
        match look(store, version) {
            Ok((now, is_closed)) => {
                (version, read_at) = (Some(now), Instant::now());
                if let Some(is_closed) = is_closed {
                    block.set(is_closed);
                }
            }
            Err(_) => {
                version = None;
                if read_at.elapsed() >= LEASE {
                    block.set(true);
                }
            }
        }
    }
}

/// The store's version and, if it changed, the state of the switch.
fn look(store: &dyn Store, before: Option<u64>) -> Result<(u64, Option<bool>), StoreError> {
    let version = store.version()?;
    if before == Some(version) {
        return Ok((version, None));
    }
    Ok((version, Some(store.incident()?.egress_blocked.is_some())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use store::{By, Home, IncidentStore, SqliteStore, Witnessed};

    #[test]
    fn a_listener_hears_how_it_stands_and_every_change() {
        let block = EgressBlock::default();
        block.set(true);
        let (said, heard) = channel();
        block.tell(Box::new(move |is_closed| said.send(is_closed).unwrap()));
        for is_closed in [true, false, false, true] {
            block.set(is_closed);
        }
        assert_eq!(heard.try_iter().collect::<Vec<_>>(), [true, false, true]);
    }

    #[test]
    fn the_switch_of_the_store_is_followed_within_a_second() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::open(&directory.path().join("home")).unwrap();
        let open = || Witnessed::new(Box::new(SqliteStore::open(&home).unwrap()), &home);
        let block = Arc::new(EgressBlock::default());
        let (said, heard) = channel();
        block.tell(Box::new(move |is_closed| said.send(is_closed).unwrap()));
        block.follow(Box::new(open())).unwrap();
        assert!(!heard.recv().unwrap());
        let by = By { name: "ada", at: gate::time::Timestamp(1_700_000_000_000) };
        let mut store = open();
        store.block_egress(by).unwrap();
        assert!(heard.recv_timeout(LEASE).unwrap());
        store.unblock_egress(by).unwrap();
        assert!(!heard.recv_timeout(LEASE).unwrap());
    }
}
