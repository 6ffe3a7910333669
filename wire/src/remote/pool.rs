//! Idle connections, kept only as long as the server is certain to keep them open.

use super::limits::MAX_IDLE_AGE;
use crate::http::connect::Live;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;

#[derive(Debug)]
pub(super) struct Pool {
    idle: Mutex<Vec<(Live, Instant)>>,
    max_idle: usize,
}

impl Pool {
    pub(super) fn new(max_idle: usize) -> Pool {
        Pool { idle: Mutex::default(), max_idle }
    }

    /// The connection that was used last, if there is one. Closes those that are too old.
    pub(super) fn take(&self) -> Option<Live> {
        self.take_at(Instant::now())
    }

    fn take_at(&self, now: Instant) -> Option<Live> {
        let mut idle = self.idle();
        // The connections are in the order in which they were last used.
        let (live, since) = idle.pop()?;
        if now.duration_since(since) < MAX_IDLE_AGE {
            return Some(live);
        }
        idle.clear();
        None
    }

    /// Closes connections that are too old. A connection that the server closed is not detected
    /// until it is used.
    pub(super) fn close_old(&self) {
        let now = Instant::now();
        self.idle().retain(|(_, since)| now.duration_since(*since) < MAX_IDLE_AGE);
    }

    /// Keeps a connection whose response was read completely. If there are too many, it is closed.
    pub(super) fn keep(&self, live: Live) {
        self.keep_at(live, Instant::now());
    }

    fn keep_at(&self, live: Live, now: Instant) {
        let mut idle = self.idle();
        if idle.len() < self.max_idle {
            idle.push((live, now));
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(Live, Instant)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Awaited;
    use crate::http::connect::Origin;
    use crate::http::tls::TlsKey;
    use crate::remote::limits::MAX_IDLE_CONNECTIONS;
    use std::time::Duration;

    #[tokio::test]
    async fn connections_are_kept_up_to_their_age_and_number() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
        let (key, patience) = (TlsKey::default(), Duration::from_secs(20));
        let origin = Origin::resolve(&url, false, None, key, patience).await.unwrap();
        let live = async || origin.connect(Awaited::Connection).await.unwrap();
        let (pool, now) = (Pool::new(MAX_IDLE_CONNECTIONS), Instant::now());
        pool.keep_at(live().await, now);
        pool.keep_at(live().await, now);
        let oldest = now + MAX_IDLE_AGE - Duration::from_nanos(1);
        assert!(pool.take_at(oldest).is_some());
        assert!(pool.take_at(now + MAX_IDLE_AGE).is_none());
        assert!(pool.take_at(oldest).is_none(), "what was too old is closed");
        for _ in 0..=MAX_IDLE_CONNECTIONS {
            pool.keep_at(live().await, now);
        }
        for _ in 0..MAX_IDLE_CONNECTIONS {
            assert!(pool.take_at(now).is_some());
        }
        assert!(pool.take_at(now).is_none());
    }
}
