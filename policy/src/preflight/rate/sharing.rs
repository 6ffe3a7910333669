//! Counts shared by several nodes. A node decides by the last known count of all nodes plus the
//! calls that it has let through since. It reports those in the background, so a call never waits
//! for another node.
//!
//! INVARIANT: a node lets through at most one lease of calls that the others cannot know about. So
//! for a bucket that all nodes report to, they let through at most one lease per node more than the
//! bucket holds.

use super::RateScope;
use sha2::{Digest, Sha256};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

/// The name of a bucket among nodes: a hash of the server and of whom and what the bucket is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SharedBucket(pub [u8; 32]);

/// Calls that one node let through and the others do not know about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnreportedCalls {
    pub(super) id: u128,
    pub shared: SharedBucket,
    pub calls: u64,
    /// The time in which the bucket regains one call; 0 if there is no rate.
    pub each_nanoseconds: u64,
}

/// The count over all nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedCount {
    /// The time until the bucket is full.
    pub full_in: Duration,
    /// The calls of the current day.
    pub used: u64,
    /// The time of the shared clock, which determines the day.
    pub unix_seconds: u64,
}

pub(super) struct Sharing {
    server: String,
    lease: u64,
    wake: Box<dyn Fn() + Send + Sync>,
    is_alone: AtomicBool,
    /// How many seconds the shared clock is ahead of this node's clock.
    ahead: AtomicI64,
}

impl fmt::Debug for Sharing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Sharing").field("lease", &self.lease).finish_non_exhaustive()
    }
}

impl Sharing {
    /// The retry delay for a call that is refused only because the node's reports are pending.
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

    /// Whether at least half of the lease is used. A smaller number waits to be reported with
    /// others.
    pub(super) fn is_urgent(&self, unreported: u64) -> bool {
        unreported >= self.lease.div_ceil(2)
    }

    pub(super) fn wake(&self) {
        (self.wake)();
    }

    pub(super) fn set_alone(&self, is_alone: bool) {
        self.is_alone.store(is_alone, Ordering::Relaxed);
    }

    /// The time of the shared clock. Around midnight, nodes' own clocks could disagree about the
    /// day.
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
