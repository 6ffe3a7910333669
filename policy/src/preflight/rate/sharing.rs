//! Counts that several nodes share. A node decides by what it last heard of all nodes and by the calls that it let through
//! since, and reports those in the background: a call never waits for another node.
//!
//! INVARIANT: a node lets at most one lease of calls through that the others cannot know of. So with a bucket that all nodes
//! have reported to, together they let at most one lease a node more through than the bucket holds.

use super::RateScope;
use sha2::{Digest, Sha256};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

/// The name of a bucket among nodes: a hash of the server, and of who and what it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SharedBucket(pub [u8; 32]);

/// Calls that one node let through and the others do not know of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnreportedCalls {
    pub(super) id: u128,
    pub shared: SharedBucket,
    pub calls: u64,
    /// The time in which the bucket gets one call back; 0 if there is no rate.
    pub each_nanoseconds: u64,
}

/// What all nodes together counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedCount {
    /// How long it takes until the bucket is full.
    pub full_in: Duration,
    /// The calls of the day.
    pub used: u64,
    /// The time that all nodes go by, and that says which day it is.
    pub unix_seconds: u64,
}

pub(super) struct Sharing {
    server: String,
    lease: u64,
    wake: Box<dyn Fn() + Send + Sync>,
    is_alone: AtomicBool,
    /// How many seconds the shared clock is ahead of this node's.
    ahead: AtomicI64,
}

impl fmt::Debug for Sharing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Sharing").field("lease", &self.lease).finish_non_exhaustive()
    }
}

impl Sharing {
    /// When a call may be made again that was refused only because the node waits to be heard by the others.
    pub(super) const PAUSE: Duration = Duration::from_millis(100);

    pub(super) fn new(server: &str, lease: u64, wake: Box<dyn Fn() + Send + Sync>) -> Sharing {
        Sharing {
            server: server.to_owned(),
            lease,
            wake,
            is_alone: AtomicBool::new(false),
            ahead: AtomicI64::new(0),
        }
    }

    pub(super) fn has_lease(&self, unreported: u64) -> bool {
        unreported < self.lease || self.is_alone.load(Ordering::Relaxed)
    }

    /// Whether the lease is half used. A smaller number waits to be reported with others.
    pub(super) fn is_urgent(&self, unreported: u64) -> bool {
        unreported >= self.lease.div_ceil(2)
    }

    pub(super) fn wake(&self) {
        (self.wake)();
    }

    pub(super) fn set_alone(&self, is_alone: bool) {
        self.is_alone.store(is_alone, Ordering::Relaxed);
    }

    /// The time by the clock that nodes share. At midnight two clocks could disagree about the day.
    pub(super) fn shared_time(&self, unix_seconds: u64) -> u64 {
        unix_seconds.saturating_add_signed(self.ahead.load(Ordering::Relaxed))
    }

    pub(super) fn learn_time(&self, shared: u64, own: u64) {
        let ahead = i128::from(shared) - i128::from(own);
        self.ahead.store(i64::try_from(ahead).unwrap_or(0), Ordering::Relaxed);
    }

    pub(super) fn bucket(&self, scope: RateScope, named: [&str; 3]) -> SharedBucket {
        let scope = match scope {
            RateScope::Principal => "principal",
            RateScope::PrincipalTool => "principal-tool",
            RateScope::Tool => "tool",
            RateScope::Server => "server",
        };
        let mut hash = Sha256::new();
        for part in ["holdpoint rates 1", &self.server, scope].into_iter().chain(named) {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        SharedBucket(hash.finalize().into())
    }
}

#[cfg(test)]
mod tests;
