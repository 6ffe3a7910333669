//! Detects anomalous sessions: how often their calls are denied or held, use tools for the first
//! time, or have an outgoing connection of their server blocked. A session that exceeds a rate is
//! throttled or quarantined.
//!
//! Nothing here reads a clock: `now` is a monotonic time with an arbitrary origin.

use crate::preflight::Rate;
use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The most sessions watched at the same time. Beyond that, idle sessions are forgotten; if there
/// are none, further sessions are not watched.
pub const MAX_WATCHED_SESSIONS: usize = 100_000;
/// The most tools remembered per session. Beyond that, every further tool counts as new.
pub const MAX_REMEMBERED_TOOLS: usize = 4_096;
/// How long a session is throttled after it last tripped a rule.
pub const THROTTLE_LASTS: Duration = Duration::from_secs(60);
/// A session without a signal for this long may be forgotten to make room.
const IDLE: Duration = Duration::from_secs(3_600);
const SHARDS: usize = 16;

/// A signal that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnomalySignal {
    Denial,
    Hold,
    /// A tool that the session had not called before.
    NewTool,
    /// A blocked outgoing connection of the session's server.
    EgressBlock,
}

impl AnomalySignal {
    pub const ALL: [AnomalySignal; 4] = [
        AnomalySignal::Denial,
        AnomalySignal::Hold,
        AnomalySignal::NewTool,
        AnomalySignal::EgressBlock,
    ];

    /// The key in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            AnomalySignal::Denial => "denials",
            AnomalySignal::Hold => "holds",
            AnomalySignal::NewTool => "new_tools",
            AnomalySignal::EgressBlock => "egress_blocks",
        }
    }

    const fn place(self) -> usize {
        match self {
            AnomalySignal::Denial => 0,
            AnomalySignal::Hold => 1,
            AnomalySignal::NewTool => 2,
            AnomalySignal::EgressBlock => 3,
        }
    }
}

/// What happens to a session that trips a rule, from mild to severe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AnomalyAction {
    /// Its calls are rate-limited for a while.
    Throttle,
    /// Its calls are denied until a person releases it.
    Quarantine,
}

impl AnomalyAction {
    pub const ALL: [AnomalyAction; 2] = [AnomalyAction::Throttle, AnomalyAction::Quarantine];

    pub const fn as_str(self) -> &'static str {
        match self {
            AnomalyAction::Throttle => "throttle",
            AnomalyAction::Quarantine => "quarantine",
        }
    }
}

/// The rates above which a session trips, per signal. A signal without a rate is not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SignalRates {
    pub denials: Option<Rate>,
    pub holds: Option<Rate>,
    pub new_tools: Option<Rate>,
    pub egress_blocks: Option<Rate>,
}

impl SignalRates {
    pub fn of(&self, signal: AnomalySignal) -> Option<Rate> {
        match signal {
            AnomalySignal::Denial => self.denials,
            AnomalySignal::Hold => self.holds,
            AnomalySignal::NewTool => self.new_tools,
            AnomalySignal::EgressBlock => self.egress_blocks,
        }
    }
}

/// The operator's rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnomalyRules {
    pub throttle: SignalRates,
    pub quarantine: SignalRates,
    /// The rate at which a throttled session may still call.
    pub throttle_to: Rate,
}

impl AnomalyRules {
    fn rates(&self, action: AnomalyAction) -> &SignalRates {
        match action {
            AnomalyAction::Throttle => &self.throttle,
            AnomalyAction::Quarantine => &self.quarantine,
        }
    }

    fn rate(&self, action: AnomalyAction, signal: AnomalySignal) -> Option<Rate> {
        self.rates(action).of(signal)
    }

    fn counts(&self, signal: AnomalySignal) -> bool {
        AnomalyAction::ALL.into_iter().any(|action| self.rate(action, signal).is_some())
    }
}

/// A rule that a session tripped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Tripped {
    pub signal: AnomalySignal,
    pub action: AnomalyAction,
    pub rate: Rate,
}

impl Tripped {
    /// Describes the rule in the notation of the configuration.
    pub fn rule(&self) -> String {
        format!("more than {} {}", self.rate, self.signal.as_str())
    }
}

/// Identifies the session of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchedSession<'a> {
    /// The subject, with its issuer.
    pub principal: &'a str,
    /// `None` for calls that belong to no session.
    pub session: Option<u64>,
}

/// Counts the signals of all sessions.
#[derive(Debug)]
pub struct AnomalyWatch {
    rules: AnomalyRules,
    hashers: [RandomState; 2],
    shards: [Mutex<HashMap<u128, Watched>>; SHARDS],
    /// The number of throttled sessions, possibly including some whose throttling has expired
    /// unnoticed.
    throttled: AtomicUsize,
}

/// The state of one session. Times are in nanoseconds.
#[derive(Debug, Default)]
struct Watched {
    /// When the bucket of each rule will be full again (the generic cell rate algorithm).
    full_at: [[u64; AnomalySignal::ALL.len()]; AnomalyAction::ALL.len()],
    throttled_until: u64,
    paced_at: u64,
    seen_at: u64,
    tools: HashSet<u64>,
}

impl AnomalyWatch {
    pub fn new(rules: AnomalyRules) -> AnomalyWatch {
        AnomalyWatch {
            rules,
            hashers: [RandomState::new(), RandomState::new()],
            shards: std::array::from_fn(|_| Mutex::default()),
            throttled: AtomicUsize::new(0),
        }
    }

    /// Records a signal. Returns the most severe rule that the session trips with it, and resets
    /// that rule's count.
    pub fn note(
        &self,
        who: WatchedSession<'_>,
        signal: AnomalySignal,
        now: Duration,
    ) -> Option<Tripped> {
        if !self.rules.counts(signal) {
            return None;
        }
        self.with(who, now, |watched| self.count(watched, signal, nanoseconds(now))).flatten()
    }

    /// Records that a session calls a tool. Only a tool that it had not called before is a signal.
    pub fn note_tool(&self, who: WatchedSession<'_>, tool: &str, now: Duration) -> Option<Tripped> {
        let signal = AnomalySignal::NewTool;
        if !self.rules.counts(signal) {
            return None;
        }
        let [hasher, _] = &self.hashers;
        let tool = hasher.hash_one(tool);
        self.with(who, now, |watched| {
            let is_known = watched.tools.contains(&tool);
            if !is_known && watched.tools.len() < MAX_REMEMBERED_TOOLS {
                watched.tools.insert(tool);
            }
            if is_known { None } else { self.count(watched, signal, nanoseconds(now)) }
        })
        .flatten()
    }

    /// Records one call of a session. If the session is throttled and has used up its rate, returns
    /// how long it must wait.
    pub fn pace(&self, who: WatchedSession<'_>, now: Duration) -> Option<Duration> {
        if self.throttled.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let key = self.key(who);
        let mut shard = self.shard(key);
        let watched = shard.get_mut(&key)?;
        let now = nanoseconds(now);
        if watched.throttled_until == 0 {
            return None;
        }
        if watched.throttled_until <= now {
            watched.throttled_until = 0;
            self.throttled.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        take(&mut watched.paced_at, self.rules.throttle_to, now).err().map(Duration::from_nanos)
    }

    /// The number of throttled sessions, possibly including some whose throttling has expired.
    pub fn throttled(&self) -> usize {
        self.throttled.load(Ordering::Relaxed)
    }

    fn count(&self, watched: &mut Watched, signal: AnomalySignal, now: u64) -> Option<Tripped> {
        let mut tripped = None;
        for (action, buckets) in AnomalyAction::ALL.into_iter().zip(&mut watched.full_at) {
            let (Some(rate), Some(full_at)) =
                (self.rules.rate(action, signal), buckets.get_mut(signal.place()))
            else {
                continue;
            };
            if take(full_at, rate, now).is_err() {
                *full_at = now;
                tripped = Some(Tripped { signal, action, rate });
            }
        }
        if tripped.is_some_and(|tripped| tripped.action == AnomalyAction::Throttle) {
            if watched.throttled_until == 0 {
                self.throttled.fetch_add(1, Ordering::Relaxed);
            }
            watched.throttled_until = now.saturating_add(nanoseconds(THROTTLE_LASTS));
        }
        tripped
    }

    /// Updates a session's counts. Returns `None` if there is no room for the session.
    fn with<T>(
        &self,
        who: WatchedSession<'_>,
        now: Duration,
        act: impl FnOnce(&mut Watched) -> T,
    ) -> Option<T> {
        let key = self.key(who);
        let now = nanoseconds(now);
        let mut shard = self.shard(key);
        if !shard.contains_key(&key) && shard.len() >= MAX_WATCHED_SESSIONS / SHARDS {
            let oldest = now.saturating_sub(nanoseconds(IDLE));
            shard.retain(|_, known| known.seen_at >= oldest || known.throttled_until > 0);
            if shard.len() >= MAX_WATCHED_SESSIONS / SHARDS {
                return None;
            }
        }
        let watched = shard.entry(key).or_default();
        watched.seen_at = now;
        Some(act(watched))
    }

    fn key(&self, WatchedSession { principal, session }: WatchedSession<'_>) -> u128 {
        let [first, second] = &self.hashers;
        let named = (principal, session);
        u128::from(first.hash_one(named)) << 64 | u128::from(second.hash_one(named))
    }

    fn shard(&self, key: u128) -> MutexGuard<'_, HashMap<u128, Watched>> {
        let index = (key % SHARDS as u128) as usize;
        let [first, ..] = &self.shards;
        let shard = self.shards.get(index).unwrap_or(first);
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes one token from a bucket. The error is the time until the next token.
fn take(full_at: &mut u64, rate: Rate, now: u64) -> Result<(), u64> {
    let period = nanoseconds(rate.period);
    let each = period / u64::from(rate.calls.max(1));
    let next = (*full_at).max(now).saturating_add(each);
    let most = now.saturating_add(period);
    if next > most {
        return Err(next - most);
    }
    *full_at = next;
    Ok(())
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
