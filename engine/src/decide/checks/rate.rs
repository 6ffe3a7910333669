//! Checks the rate of calls of this principal, tool or server.

use crate::decide::{Answer, Check, Denial, Question};
use crate::reason::ReasonCode;
use crate::recorder::now;
use policy::preflight::{RateDecision, RateKey, RateLimiter};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// The origin of the limiters' time. It is common to all, because one limiter may continue with the
/// counts of another.
static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The time used for rates.
pub fn rate_time(now: Instant) -> Duration {
    now.saturating_duration_since(*BEGUN)
}

/// The time that determines the day.
pub fn unix_seconds() -> u64 {
    u64::try_from(now().0 / 1_000).unwrap_or(0)
}

#[derive(Debug)]
pub(crate) struct RateCheck {
    pub(crate) limiter: Arc<RateLimiter>,
}

impl Check for RateCheck {
    fn check(&self, question: &Question<'_>) -> Answer {
        let Question { call, principal, .. } = *question;
        let issuer = principal.caller.as_ref().map_or("", |it| it.identity().issuer.as_str());
        let tool = call.target.map_or("", |target| target.key);
        let key = RateKey { issuer, principal: &principal.subject, tool };
        match self.limiter.take(key, rate_time(question.now), unix_seconds()) {
            RateDecision::Allowed => Answer::Continue,
            RateDecision::Limited { retry_after } => too_many(
                ReasonCode::RateLimited,
                "○ holdpoint — too many calls: this one is over the configured rate. Wait, then try again",
                retry_after,
            ),
            RateDecision::Exceeded { retry_after } => too_many(
                ReasonCode::QuotaExceeded,
                "○ holdpoint — the daily quota (UTC) is used up",
                retry_after,
            ),
        }
    }
}

fn too_many(reason: ReasonCode, message: &str, retry_after: Duration) -> Answer {
    Answer::Deny(Denial { retry_after: Some(retry_after), ..Denial::new(reason, message) })
}
