//! Limits on the rate of calls: token buckets and daily quotas, by principal, tool or server.

mod limiter;
mod sharing;

pub use limiter::{MAX_BUCKETS, RateLimiter};
pub use sharing::{SharedBucket, SharedCount, UnreportedCalls};

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

const DAY_SECONDS: u64 = 86_400;

/// Why a text is not a valid rate or quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadRate {
    #[error(
        "write a number of calls and a unit, such as `60/min`: `sec`, `min` or `hour`, and at most 1000000 calls"
    )]
    Rate,
    #[error("write a number of calls a day, such as `1000/day`, and at most 1000000000 calls")]
    Quota,
}

/// A number of calls per period, all of which may be made at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    pub calls: u32,
    pub period: Duration,
}

impl Rate {
    /// The time in which the bucket regains one call, in nanoseconds.
    pub(crate) fn each_nanoseconds(self) -> u64 {
        self.period_nanoseconds() / u64::from(self.calls.max(1))
    }

    pub(crate) fn period_nanoseconds(self) -> u64 {
        u64::try_from(self.period.as_nanos()).unwrap_or(u64::MAX)
    }
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

/// A number of calls per UTC day.
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

/// Which calls share a bucket.
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

/// Identifies the bucket of a call.
#[derive(Debug, Clone, Copy)]
pub struct RateKey<'a> {
    /// The issuer of the principal, because two issuers may use the same name.
    pub issuer: &'a str,
    pub principal: &'a str,
    pub tool: &'a str,
}

/// The limits for a server's calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Throttle {
    pub rate: Option<Rate>,
    pub quota: Option<Quota>,
    pub scope: RateScope,
}

impl Throttle {
    /// How many calls a node may let through before it reports them to the other nodes: a tenth of
    /// the limit, but at least two, so that two simultaneous calls are not refused.
    pub fn lease(&self) -> u64 {
        let rate = self.rate.map(|rate| u64::from(rate.calls));
        let quota = self.quota.map(|quota| quota.calls);
        let least = [rate, quota].into_iter().flatten().min().unwrap_or(u64::MAX);
        least.div_ceil(10).max(2).min(least)
    }
}

/// Whether a call may be made now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum RateDecision {
    Allowed,
    /// The bucket is empty for this long.
    Limited {
        retry_after: Duration,
    },
    /// The day's quota is used up.
    Exceeded {
        retry_after: Duration,
    },
}
