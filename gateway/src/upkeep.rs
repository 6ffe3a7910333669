//! Background work of a gateway, off the path of every call: follows the store, renews key sets and
//! certificates, records the use of keys, and ends idle links.

use crate::node::{Node, StartError};
use engine::recorder::now;
use std::future::Future;
use std::sync::{Arc, Weak};
use std::time::Duration;
use store::{Store, StoreError, Witnessed};

/// How often the store is polled for changes. Including the time to read it, a revoked key stays
/// valid for less than 300 ms.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// How often links are swept.
const SWEEP: Duration = Duration::from_secs(5);
/// How often the TLS files are checked.
const TLS_CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// How often the use of keys is written.
const KEY_USES: Duration = Duration::from_secs(60);
/// How often key sets are fetched, so that a key that its issuer withdrew becomes invalid.
const KEY_SETS: Duration = Duration::from_secs(300);

impl Node {
    pub(crate) fn start_upkeep(self: &Arc<Self>, store: Witnessed) -> Result<(), StartError> {
        self.follow_store(store)?;
        self.shared.share_rates(self.stopping())?;
        self.start_rechecks();
        self.every(SWEEP, |node| async move {
            let (who, now) = (node.authenticator(), now());
            let has_left = |caller: &policy::Caller| who.has_left(caller, now);
            node.catalog().servers.values().for_each(|known| known.server.sweep(has_left));
        });
        if self.tls.is_some() {
            self.every(TLS_CHECK_INTERVAL, |node| async move {
                let _ = tokio::task::spawn_blocking(move || node.look_at_tls()).await;
            });
        }
        self.every(KEY_USES, |node| async move {
            let _ = tokio::task::spawn_blocking(move || node.write_key_uses()).await;
        });
        self.every(KEY_SETS, |node| async move {
            for (issuer, problem) in node.authenticator().renew_key_sets(now()).await {
                node.remark(&format!("the keys of `{issuer}` could not be fetched: {problem}"));
            }
            node.keys_changed.send_modify(|count| *count = count.wrapping_add(1));
        });
        Ok(())
    }

    /// Runs a task repeatedly as long as the gateway exists.
    fn every<F>(self: &Arc<Self>, pause: Duration, act: impl Fn(Arc<Node>) -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send,
    {
        let node = Arc::downgrade(self);
        let mut stop = self.stopping();
        self.shared.runtime.spawn(async move {
            loop {
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    _ = stop.changed() => return,
                }
                let Some(node) = Weak::upgrade(&node) else { return };
                act(node).await;
            }
        });
    }

    /// Reloads the keys and rebuilds the catalog whenever the store changes.
    fn follow_store(self: &Arc<Self>, store: Witnessed) -> Result<(), StartError> {
        let node = Arc::downgrade(self);
        std::thread::Builder::new()
            .name("catalog".to_owned())
            .spawn(move || {
                let mut store = store;
                // The first pass finds changes between the start and now.
                let (mut version, mut has_keys) = (None, true);
                loop {
                    std::thread::sleep(POLL_INTERVAL);
                    let Some(node) = Weak::upgrade(&node) else { return };
                    if *node.stop.borrow() {
                        return;
                    }
                    let now = store.version().ok();
                    if now.is_some() && now != version {
                        let taken = node.take_keys(&store);
                        if let (Err(error), true) = (&taken, has_keys) {
                            let which = match error.is_unreachable() {
                                true => "the keys that were read before count",
                                false => "no key counts",
                            };
                            node.remark(&format!("{which}: they cannot be read: {error}"));
                        }
                        has_keys = taken.is_ok();
                        // If the keys could not be read, try again even if nothing changes.
                        version = now.filter(|_| has_keys);
                        node.refresh();
                        node.end_revoked_sign_ins();
                        node.catalog()
                            .servers
                            .values()
                            .for_each(|known| known.server.broker.forget_people());
                        // If the store does not answer, the next change or the call's timeout tries
                        // again.
                        let _ = node.shared.approvals.catch_up();
                        node.report_drill(&mut store);
                    }
                }
            })
            .map_err(|error| StartError::Key(error.to_string()))?;
        Ok(())
    }

    /// Reloads the static keys, and makes open streams check that theirs is still valid.
    pub(crate) fn take_keys(&self, store: &dyn Store) -> Result<(), StoreError> {
        let taken = self.authenticator().reload_keys(store);
        // Even if the keys cannot be read: a state in doubt counts as an incident.
        if let Ok(state) = store.incident() {
            self.take_incident(state);
        }
        self.keys_changed.send_modify(|count| *count = count.wrapping_add(1));
        taken
    }

    /// Loads a new certificate from the files, if there is one. On an error, the current one stays.
    pub fn renew_tls(&self) -> Result<bool, StartError> {
        let Some(tls) = &self.tls else { return Ok(false) };
        tls.renew().map_err(|error| StartError::Tls(error.to_string()))
    }

    fn look_at_tls(&self) {
        match self.renew_tls() {
            Ok(true) => self.remark("the certificate was replaced"),
            Ok(false) => {}
            Err(error) => self.remark(&format!("the certificate was not replaced: {error}")),
        }
    }

    pub(crate) fn write_key_uses(&self) {
        let written = self
            .shared
            .open_store()
            .and_then(|mut store| self.authenticator().write_key_uses(&mut store));
        if let Err(error) = written {
            self.remark(&format!("the use of keys could not be noted: {error}"));
        }
    }
}
