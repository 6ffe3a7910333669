//! How often calls are made: token buckets and daily quotas, by principal, tool or server.
//!
//! A bucket is one moment, at which it is full again (the generic cell rate algorithm), so that nothing has to refill it.
//! Keys are hashed with a secret of the process: two callers share a bucket by accident once in 2^128.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The most buckets at a time. Past it, callers who were not seen lately are refused until others fall idle.
pub const MAX_BUCKETS: usize = 100_000;
const SHARDS: usize = 16;
const DAY_SECONDS: u64 = 86_400;

/// Why a text is no rate or quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadRate {
    #[error(
        "write a number of calls and a unit, such as `60/min`: `sec`, `min` or `hour`, and at most 1000000 calls"
    )]
    Rate,
    #[error("write a number of calls a day, such as `1000/day`, and at most 1000000000 calls")]
    Quota,
}

/// So many calls in so much time. As many may be made at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    pub calls: u32,
    pub period: Duration,
}

impl FromStr for Rate {
    type Err = BadRate;

    fn from_str(text: &str) -> Result<Rate, BadRate> {
        let (calls, unit) = text.split_once('/').ok_or(BadRate::Rate)?;
        let calls: u32 = calls.parse().map_err(|_| BadRate::Rate)?;
        let seconds = match unit {
            "s" | "sec" | "second" => 1,
            "min" | "minute" => 60,
            "h" | "hour" => 3_600,
            _ => return Err(BadRate::Rate),
        };
        let period = Duration::from_secs(seconds);
        if (1..=1_000_000).contains(&calls) {
            Ok(Rate { calls, period })
        } else {
            Err(BadRate::Rate)
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.period.as_secs() {
            1 => "sec",
            60 => "min",
            _ => "hour",
        };
        write!(formatter, "{}/{unit}", self.calls)
    }
}

/// So many calls in a day of UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    pub calls: u64,
}

impl FromStr for Quota {
    type Err = BadRate;

    fn from_str(text: &str) -> Result<Quota, BadRate> {
        let calls = text.strip_suffix("/day").and_then(|calls| calls.parse().ok());
        let calls = calls.filter(|calls| (1..=1_000_000_000).contains(calls));
        calls.map(|calls| Quota { calls }).ok_or(BadRate::Quota)
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/day", self.calls)
    }
}

/// What shares a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RateScope {
    /// All calls of one principal to the server.
    #[default]
    Principal,
    /// All calls of one principal to one tool.
    PrincipalTool,
    /// All calls to one tool.
    Tool,
    /// All calls to the server.
    Server,
}

/// Whose bucket it is.
#[derive(Debug, Clone, Copy)]
pub struct RateKey<'a> {
    /// Who vouches for the principal: two issuers may know the same name.
    pub issuer: &'a str,
    pub principal: &'a str,
    pub tool: &'a str,
}

/// What a server's calls may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Throttle {
    pub rate: Option<Rate>,
    pub quota: Option<Quota>,
    pub scope: RateScope,
}

/// Whether a call may be made now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum RateDecision {
    Allowed,
    /// The bucket is empty until then.
    Limited {
        retry_after: Duration,
    },
    /// The day's calls are used up.
    Exceeded {
        retry_after: Duration,
    },
}

/// The buckets of one server.
#[derive(Debug)]
pub struct RateLimiter {
    throttle: Throttle,
    hashers: [RandomState; 2],
    shards: [Mutex<Shard>; SHARDS],
}

#[derive(Debug, Default)]
struct Shard {
    buckets: HashMap<u128, Bucket>,
    /// When idle buckets were last dropped, in nanoseconds.
    swept: u64,
}

impl Shard {
    /// Whether there is room for one more bucket. Idle ones are looked for once a second at most.
    fn has_room(&mut self, now: u64, unix_seconds: u64) -> bool {
        const SECOND: u64 = 1_000_000_000;
        let most = MAX_BUCKETS / SHARDS;
        if self.buckets.len() >= most && now.saturating_sub(self.swept) >= SECOND {
            let day = unix_seconds / DAY_SECONDS;
            self.buckets.retain(|_, it| it.full_at > now || it.used > 0 && it.day == day);
            self.swept = now;
        }
        self.buckets.len() < most
    }
}

#[derive(Debug, Default, Clone, Copy)]
struct Bucket {
    /// When it is full again, in nanoseconds.
    full_at: u64,
    day: u64,
    used: u64,
}

impl RateLimiter {
    pub fn new(throttle: Throttle) -> RateLimiter {
        RateLimiter {
            throttle,
            hashers: [RandomState::new(), RandomState::new()],
            shards: std::array::from_fn(|_| Mutex::default()),
        }
    }

    pub fn throttle(&self) -> Throttle {
        self.throttle
    }

    /// Takes one call out of the bucket. `now` is a time that only grows, counted from any one moment; `unix_seconds` says
    /// which day it is.
    pub fn take(&self, key: RateKey<'_>, now: Duration, unix_seconds: u64) -> RateDecision {
        let nanoseconds = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let key = self.key(key);
        let mut shard = self.shard(key);
        if !shard.buckets.contains_key(&key) && !shard.has_room(nanoseconds, unix_seconds) {
            return RateDecision::Limited { retry_after: Duration::from_secs(1) };
        }
        let bucket = shard.buckets.entry(key).or_default();
        self.take_from(bucket, nanoseconds, unix_seconds)
    }

    fn take_from(&self, bucket: &mut Bucket, now: u64, unix_seconds: u64) -> RateDecision {
        let Throttle { rate, quota, .. } = self.throttle;
        let day = unix_seconds / DAY_SECONDS;
        if bucket.day != day {
            *bucket = Bucket { day, used: 0, ..*bucket };
        }
        if quota.is_some_and(|quota| bucket.used >= quota.calls) {
            let rest = DAY_SECONDS - unix_seconds % DAY_SECONDS;
            return RateDecision::Exceeded { retry_after: Duration::from_secs(rest) };
        }
        if let Some(Rate { calls, period }) = rate {
            let period = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
            let each = period / u64::from(calls);
            let full_at = bucket.full_at.max(now).saturating_add(each);
            let most = now.saturating_add(period);
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

    fn key(&self, RateKey { issuer, principal, tool }: RateKey<'_>) -> u128 {
        let named = match self.throttle.scope {
            RateScope::Principal => (issuer, principal, ""),
            RateScope::PrincipalTool => (issuer, principal, tool),
            RateScope::Tool => ("", "", tool),
            RateScope::Server => ("", "", ""),
        };
        let [first, second] = &self.hashers;
        u128::from(first.hash_one(named)) << 64 | u128::from(second.hash_one(named))
    }

    fn shard(&self, key: u128) -> MutexGuard<'_, Shard> {
        let index = (key % SHARDS as u128) as usize;
        let [first, ..] = &self.shards;
        let shard = self.shards.get(index).unwrap_or(first);
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
