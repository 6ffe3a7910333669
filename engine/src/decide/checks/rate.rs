//! Are there too many calls of this principal, tool or server?

use crate::decide::{Answer, Check, Denial, Question};
use crate::reason::ReasonCode;
use crate::recorder::now;
use policy::preflight::{RateDecision, RateKey, RateLimiter};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(crate) struct RateCheck {
    pub(crate) limiter: Arc<RateLimiter>,
    /// What the limiter's time is counted from.
    pub(crate) begun: Instant,
}

impl Check for RateCheck {
    fn check(&self, question: &Question<'_>) -> Answer {
        let Question { call, principal, .. } = *question;
        let issuer = principal.caller.as_ref().map_or("", |it| it.identity().issuer.as_str());
        let tool = call.target.map_or("", |target| target.key);
        let key = RateKey { issuer, principal: &principal.subject, tool };
        let elapsed = question.now.saturating_duration_since(self.begun);
        let unix_seconds = u64::try_from(now().0 / 1_000).unwrap_or(0);
        match self.limiter.take(key, elapsed, unix_seconds) {
            RateDecision::Allowed => Answer::Continue,
            RateDecision::Limited { retry_after } => too_many(
                ReasonCode::RateLimited,
                "○ holdpoint — too many calls: this one is over the configured rate. Wait, then try again",
                retry_after,
            ),
            RateDecision::Exceeded { retry_after } => too_many(
                ReasonCode::QuotaExceeded,
                "○ holdpoint — the calls of this day (UTC) are used up",
                retry_after,
            ),
        }
    }
}

fn too_many(reason: ReasonCode, message: &str, retry_after: Duration) -> Answer {
    Answer::Deny(Denial { retry_after: Some(retry_after), ..Denial::new(reason, message) })
}
