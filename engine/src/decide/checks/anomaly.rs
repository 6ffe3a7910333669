//! Checks whether the session tripped an anomaly rule in this process. The situation contains the
//! quarantines in the store, which apply to all processes.

use crate::anomaly::{Anomalies, Paced};
use crate::decide::{Answer, Check, Denial, Question};
use crate::reason::ReasonCode;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct AnomalyCheck {
    pub(crate) anomalies: Arc<Anomalies>,
}

pub(crate) const QUARANTINED: &str = "○ holdpoint — this session tripped an anomaly rule and is quarantined: none of its calls goes through. \
     A person looks at it with `holdpoint incident status`, then releases it.";

impl Check for AnomalyCheck {
    fn check(&self, question: &Question<'_>) -> Answer {
        let Question { call, principal, now, .. } = *question;
        match self.anomalies.pace(call, principal, now) {
            Paced::Free => Answer::Continue,
            Paced::Quarantined => Answer::deny(ReasonCode::SessionQuarantined, QUARANTINED),
            Paced::Throttled { retry_after } => Answer::Deny(Denial {
                retry_after: Some(retry_after),
                ..Denial::new(
                    ReasonCode::RateLimited,
                    "○ holdpoint — this session tripped an anomaly rule and is slowed down. Wait, then try again",
                )
            }),
        }
    }
}
