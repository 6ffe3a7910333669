//! Counts events for the anomaly rules, acts on the sessions that trip one, and records the
//! actions.
//!
//! INVARIANT: in this process a quarantine takes effect as soon as its rule was tripped, even if
//! the store cannot be written. Once in the store, it takes effect everywhere, until a person
//! releases it.

use crate::call::{Call, Method};
use crate::decide::Ruling;
use crate::principal::Principal;
use crate::reason::ReasonCode;
use contract::surface::EntryType;
use contract::time::Timestamp;
use policy::anomaly::{
    AnomalyAction, AnomalyRules, AnomalySignal, AnomalyWatch, Tripped, WatchedSession,
};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use store::{Quarantine, QuarantineId};

/// How long a quarantine in the store is still enforced locally: longer than it takes nodes to read
/// it.
const HANDED_OVER: Duration = Duration::from_secs(2);

/// The most blocked connections counted from one report.
const MAX_BLOCKED_AT_ONCE: u64 = 10_000;

/// Writes a quarantine to the store, off the call path, and then calls [`Anomalies::stored`].
pub type HandOver = dyn Fn(Arc<Anomalies>, Quarantine) + Send + Sync;

/// State shared by all servers of a process.
pub struct Anomalies {
    watch: AnomalyWatch,
    begun: Instant,
    /// Quarantines that may not be in the store yet, and since when they are.
    local: Mutex<HashMap<QuarantineId, Option<Instant>>>,
    /// How often each rule was tripped.
    tripped: Vec<(AnomalyAction, AnomalySignal, AtomicU64)>,
    hand_over: Box<HandOver>,
}

impl std::fmt::Debug for Anomalies {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Anomalies").field("watch", &self.watch).finish_non_exhaustive()
    }
}

/// Whether a session may make a call now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Paced {
    Free,
    Throttled { retry_after: Duration },
    Quarantined,
}

impl Anomalies {
    pub fn new(rules: AnomalyRules, hand_over: Box<HandOver>) -> Arc<Anomalies> {
        let each = |action| AnomalySignal::ALL.map(|signal| (action, signal, AtomicU64::new(0)));
        Arc::new(Anomalies {
            watch: AnomalyWatch::new(rules),
            begun: Instant::now(),
            local: Mutex::default(),
            tripped: AnomalyAction::ALL.into_iter().flat_map(each).collect(),
            hand_over,
        })
    }

    /// Records one call of a session.
    pub(crate) fn pace(&self, call: &Call<'_>, principal: &Principal, now: Instant) -> Paced {
        let is_idle = self.watch.throttled() == 0 && self.local().is_empty();
        if is_idle {
            return Paced::Free;
        }
        if self.is_quarantined_here(&quarantine_id(call, principal)) {
            return Paced::Quarantined;
        }
        let name = principal.whole_name();
        let who = WatchedSession { principal: &name, session: session_of(call, principal) };
        match self.watch.pace(who, now.saturating_duration_since(self.begun)) {
            None => Paced::Free,
            Some(retry_after) => Paced::Throttled { retry_after },
        }
    }

    fn is_quarantined_here(&self, id: &QuarantineId) -> bool {
        let mut local = self.local();
        match local.get(id) {
            None => false,
            Some(Some(stored)) if stored.elapsed() >= HANDED_OVER => {
                local.remove(id);
                false
            }
            Some(_) => true,
        }
    }

    /// Records the decision on a request. Returns the rule that the session trips with it.
    pub(crate) fn note(
        self: &Arc<Self>,
        call: &Call<'_>,
        ruling: &Ruling,
        principal: &Principal,
        at: Timestamp,
    ) -> Option<Tripped> {
        let is_tool_call = call.kind == Method::Use(EntryType::Tool);
        let signal = signal_of(ruling);
        if signal.is_none() && !is_tool_call {
            return None;
        }
        let name = principal.whole_name();
        let who = WatchedSession { principal: &name, session: session_of(call, principal) };
        let now = self.begun.elapsed();
        let by_ruling = signal.and_then(|signal| self.watch.note(who, signal, now));
        let tool = call.target.filter(|_| is_tool_call);
        let by_tool = tool.and_then(|tool| self.watch.note_tool(who, tool.key, now));
        let both = [by_ruling, by_tool].into_iter().flatten();
        let tripped = both.max_by_key(|tripped| tripped.action)?;
        self.act(who, tripped, at);
        Some(tripped)
    }

    /// Records that outgoing connections of a session's server were blocked. Returns the rule that
    /// the session trips with them.
    pub(crate) fn note_egress_blocked(
        self: &Arc<Self>,
        principal: &Principal,
        session: Option<u64>,
        count: u64,
        at: Timestamp,
    ) -> Option<Tripped> {
        let name = principal.whole_name();
        let who = WatchedSession { principal: &name, session: session.or(principal.session) };
        let signal = AnomalySignal::EgressBlock;
        let mut tripped = None;
        // A flood is reported as a number. Beyond this, counting more makes no difference.
        for _ in 0..count.min(MAX_BLOCKED_AT_ONCE) {
            let Some(now) = self.watch.note(who, signal, self.begun.elapsed()) else { continue };
            self.act(who, now, at);
            tripped = Some(now);
        }
        tripped
    }

    fn act(self: &Arc<Self>, who: WatchedSession<'_>, tripped: Tripped, at: Timestamp) {
        for (action, signal, count) in &self.tripped {
            if (*action, *signal) == (tripped.action, tripped.signal) {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
        match tripped.action {
            AnomalyAction::Throttle => {}
            AnomalyAction::Quarantine => {
                let quarantine = Quarantine {
                    principal: who.principal.to_owned(),
                    session: who.session.map(session_name),
                    rule: tripped.rule(),
                    at,
                };
                self.local().insert(quarantine.id(), None);
                (self.hand_over)(self.clone(), quarantine);
            }
        }
    }

    /// Records that a quarantine is in the store.
    pub fn stored(&self, id: &QuarantineId) {
        if let Some(stored) = self.local().get_mut(id) {
            *stored = Some(Instant::now());
        }
    }

    /// How often each rule was tripped.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        self.tripped.iter().map(|(action, signal, count)| {
            (signal.as_str(), action.as_str(), count.load(Ordering::Relaxed))
        })
    }

    /// How many sessions are throttled in this process.
    pub fn throttled(&self) -> usize {
        self.watch.throttled()
    }

    fn local(&self) -> MutexGuard<'_, HashMap<QuarantineId, Option<Instant>>> {
        self.local.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The id of a quarantine of a call's session.
pub(crate) fn quarantine_id(call: &Call<'_>, principal: &Principal) -> QuarantineId {
    let session = session_of(call, principal).map(session_name);
    QuarantineId::of(&principal.whole_name(), session.as_deref())
}

/// The session that a call belongs to: the gateway's, or the one of `run`.
fn session_of(call: &Call<'_>, principal: &Principal) -> Option<u64> {
    call.session.or(principal.session)
}

fn session_name(number: u64) -> String {
    format!("{number:016x}")
}

/// The signal that a decision is for its session. Refusals because of incident mode, a rate or a
/// fault are not signals.
fn signal_of(ruling: &Ruling) -> Option<AnomalySignal> {
    let reason = match ruling {
        Ruling::Allow => return None,
        Ruling::Hold(_) => return Some(AnomalySignal::Hold),
        Ruling::Deny(_) => ruling.reason()?,
    };
    match reason {
        ReasonCode::Drift(_) => Some(AnomalySignal::Hold),
        ReasonCode::Admission(_)
        | ReasonCode::UnknownServer
        | ReasonCode::UnknownTool
        | ReasonCode::Unauthenticated
        | ReasonCode::NoPolicyMatch
        | ReasonCode::Forbidden
        | ReasonCode::PolicyError
        | ReasonCode::UnknownField
        | ReasonCode::SchemaViolation
        | ReasonCode::PayloadTooLarge
        | ReasonCode::TooDeep
        | ReasonCode::PathOutsideWorkspace
        | ReasonCode::EgressNotAllowed
        | ReasonCode::PassthroughBlocked
        | ReasonCode::AmbiguousMessage
        | ReasonCode::BadFrame => Some(AnomalySignal::Denial),
        ReasonCode::ApprovalRequired
        | ReasonCode::RateLimited
        | ReasonCode::QuotaExceeded
        | ReasonCode::CredentialUnavailable
        | ReasonCode::KillSwitch
        | ReasonCode::EgressBlocked
        | ReasonCode::SessionQuarantined
        | ReasonCode::UpstreamUnreachable
        | ReasonCode::UpstreamUnreadable
        | ReasonCode::Timeout
        | ReasonCode::Internal
        | ReasonCode::LedgerUnavailable => None,
    }
}
