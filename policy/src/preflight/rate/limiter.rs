//! The buckets of one server.
//!
//! A bucket is stored as the time at which it will be full again (the generic cell rate algorithm),
//! so it needs no refilling. Keys are hashed with a per-process secret: the chance that two callers
//! share a bucket is 2^-128.

use super::sharing::{SharedBucket, SharedCount, Sharing, UnreportedCalls};
use super::{DAY_SECONDS, Rate, RateDecision, RateKey, RateScope, Throttle};
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The most buckets at a time. Beyond that, callers without a bucket are refused until other
/// buckets become idle.
pub const MAX_BUCKETS: usize = 100_000;
const SHARDS: usize = 16;

/// Counts the calls of one server.
#[derive(Debug)]
pub struct RateLimiter {
    throttle: Throttle,
    buckets: Arc<Buckets>,
    /// Set if other nodes count the same calls.
    sharing: Option<Sharing>,
}

#[derive(Debug)]
struct Buckets {
    hashers: [RandomState; 2],
    shards: [Mutex<Shard>; SHARDS],
}

#[derive(Debug, Default)]
struct Shard {
    buckets: HashMap<u128, Bucket>,
    /// Buckets with calls that were not reported to the other nodes, and whose report is not in
    /// progress.
    unreported: Vec<u128>,
    /// When idle buckets were last dropped, in nanoseconds.
    swept: u64,
}

impl Shard {
    /// Whether there is room for one more bucket. Drops idle buckets, at most once per second.
    fn has_room(&mut self, now: u64, day: u64) -> bool {
        const SECOND: u64 = 1_000_000_000;
        let most = MAX_BUCKETS / SHARDS;
        if self.buckets.len() >= most && now.saturating_sub(self.swept) >= SECOND {
            self.buckets.retain(|_, it| {
                it.full_at > now || it.used > 0 && it.day == day || it.unreported > 0
            });
            self.swept = now;
        }
        self.buckets.len() < most
    }
}

#[derive(Debug, Default)]
struct Bucket {
    /// When the bucket will be full again, in nanoseconds.
    full_at: u64,
    day: u64,
    used: u64,
    /// Calls that the other nodes may not know about.
    unreported: u64,
    /// The bucket's name among nodes.
    shared: Option<Box<SharedBucket>>,
}

impl RateLimiter {
    pub fn new(throttle: Throttle) -> RateLimiter {
        let buckets = Buckets {
            hashers: [RandomState::new(), RandomState::new()],
            shards: std::array::from_fn(|_| Mutex::default()),
        };
        RateLimiter { throttle, buckets: Arc::new(buckets), sharing: None }
    }

    /// Makes nodes share their counts. `wake` is called when a bucket's unreported calls should be
    /// reported soon; it must not block.
    #[must_use]
    pub fn shared_as(self, server: &str, wake: Box<dyn Fn() + Send + Sync>) -> RateLimiter {
        let sharing = Sharing::new(server, self.throttle.lease(), wake);
        RateLimiter { sharing: Some(sharing), ..self }
    }

    /// A limiter with other rules that continues with the counts of this one, as far as the same
    /// calls share a bucket.
    #[must_use]
    pub fn succeeded_by(&self, throttle: Throttle) -> RateLimiter {
        let newer = RateLimiter::new(throttle);
        match self.throttle.scope == throttle.scope {
            true => RateLimiter { buckets: self.buckets.clone(), ..newer },
            false => newer,
        }
    }

    pub fn throttle(&self) -> Throttle {
        self.throttle
    }

    /// Takes one call from the bucket. `now` is a monotonic time with an arbitrary origin;
    /// `unix_seconds` determines the day.
    pub fn take(&self, key: RateKey<'_>, now: Duration, unix_seconds: u64) -> RateDecision {
        let now = nanoseconds(now);
        let unix_seconds = match &self.sharing {
            Some(sharing) => sharing.shared_time(unix_seconds),
            None => unix_seconds,
        };
        let id = self.id(key);
        let mut shard = self.buckets.shard(id);
        let Shard { buckets, .. } = &mut *shard;
        if !buckets.contains_key(&id) {
            if !shard.has_room(now, unix_seconds / DAY_SECONDS) {
                return RateDecision::Limited { retry_after: Duration::from_secs(1) };
            }
            let shared = self.sharing.as_ref();
            let shared =
                shared.map(|it| Box::new(it.bucket(self.throttle.scope, named(self, key))));
            shard.buckets.insert(id, Bucket { shared, ..Bucket::default() });
        }
        let Shard { buckets, unreported, .. } = &mut *shard;
        let Some(bucket) = buckets.get_mut(&id) else {
            return RateDecision::Limited { retry_after: Duration::from_secs(1) };
        };
        let Some(sharing) = &self.sharing else {
            return self.take_from(bucket, now, unix_seconds);
        };
        if !sharing.has_lease(bucket.unreported) {
            drop(shard);
            sharing.wake();
            return RateDecision::Limited { retry_after: Sharing::PAUSE };
        }
        let decision = self.take_from(bucket, now, unix_seconds);
        if decision == RateDecision::Allowed {
            bucket.unreported += 1;
            if bucket.unreported == 1 {
                unreported.push(id);
            }
            if sharing.is_urgent(bucket.unreported) {
                drop(shard);
                sharing.wake();
            }
        }
        decision
    }

    fn take_from(&self, bucket: &mut Bucket, now: u64, unix_seconds: u64) -> RateDecision {
        let Throttle { rate, quota, .. } = self.throttle;
        let day = unix_seconds / DAY_SECONDS;
        if bucket.day != day {
            (bucket.day, bucket.used) = (day, 0);
        }
        if quota.is_some_and(|quota| bucket.used >= quota.calls) {
            let rest = DAY_SECONDS - unix_seconds % DAY_SECONDS;
            return RateDecision::Exceeded { retry_after: Duration::from_secs(rest) };
        }
        if let Some(rate) = rate {
            let full_at = bucket.full_at.max(now).saturating_add(rate.each_nanoseconds());
            let most = now.saturating_add(rate.period_nanoseconds());
            if full_at > most {
                return RateDecision::Limited { retry_after: Duration::from_nanos(full_at - most) };
            }
            bucket.full_at = full_at;
        }
        if quota.is_some() {
            bucket.used += 1;
        }
        RateDecision::Allowed
    }

    /// The calls to report to the other nodes, for at most `most` buckets. Each must be passed back
    /// to [`RateLimiter::heard`], even if the report failed.
    pub fn unreported(&self, most: usize) -> Vec<UnreportedCalls> {
        let each_nanoseconds = self.throttle.rate.map_or(0, Rate::each_nanoseconds);
        let mut found = Vec::new();
        for shard in &self.buckets.shards {
            let mut shard = lock(shard);
            let Shard { buckets, unreported, .. } = &mut *shard;
            while found.len() < most
                && let Some(id) = unreported.pop()
            {
                let Some(bucket) = buckets.get(&id).filter(|bucket| bucket.unreported > 0) else {
                    continue;
                };
                let Some(shared) = &bucket.shared else { continue };
                let (calls, shared) = (bucket.unreported, **shared);
                found.push(UnreportedCalls { id, shared, calls, each_nanoseconds });
            }
        }
        found
    }

    /// Stores what all nodes counted after these calls were reported; `None` if reporting failed.
    /// `now` and `unix_seconds` are as in [`RateLimiter::take`].
    pub fn heard(
        &self,
        reported: &UnreportedCalls,
        count: Option<SharedCount>,
        now: Duration,
        unix_seconds: u64,
    ) {
        let id = reported.id;
        let mut shard = self.buckets.shard(id);
        let Shard { buckets, unreported, .. } = &mut *shard;
        let Some(bucket) = buckets.get_mut(&id) else { return };
        if let Some(count) = count {
            bucket.unreported = bucket.unreported.saturating_sub(reported.calls);
            let newer = bucket.unreported;
            let since = newer.saturating_mul(reported.each_nanoseconds);
            bucket.full_at = nanoseconds(now.saturating_add(count.full_in)).saturating_add(since);
            bucket.day = count.unix_seconds / DAY_SECONDS;
            bucket.used = count.used.saturating_add(newer);
            if let Some(sharing) = &self.sharing {
                sharing.learn_time(count.unix_seconds, unix_seconds);
            }
        }
        if bucket.unreported > 0 {
            unreported.push(id);
        }
    }

    /// Sets whether the other nodes are currently unreachable. Until they are reachable again, this
    /// node counts by itself.
    pub fn set_alone(&self, is_alone: bool) {
        if let Some(sharing) = &self.sharing {
            sharing.set_alone(is_alone);
        }
    }

    fn id(&self, key: RateKey<'_>) -> u128 {
        let named = named(self, key);
        let [first, second] = &self.buckets.hashers;
        u128::from(first.hash_one(named)) << 64 | u128::from(second.hash_one(named))
    }
}

/// The parts of a key that identify the bucket within the server.
fn named<'k>(limiter: &RateLimiter, key: RateKey<'k>) -> [&'k str; 3] {
    let RateKey { issuer, principal, tool } = key;
    match limiter.throttle.scope {
        RateScope::Principal => [issuer, principal, ""],
        RateScope::PrincipalTool => [issuer, principal, tool],
        RateScope::Tool => ["", "", tool],
        RateScope::Server => ["", "", ""],
    }
}

impl Buckets {
    fn shard(&self, id: u128) -> MutexGuard<'_, Shard> {
        let index = (id % SHARDS as u128) as usize;
        let [first, ..] = &self.shards;
        lock(self.shards.get(index).unwrap_or(first))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
