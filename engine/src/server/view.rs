//! The facts about a server in one view: a single value behind an atomic pointer. A call reads it
//! without a lock, and every change replaces it as a whole.

use crate::admission::Checked;
use crate::judge::{Instance, Judged, Seen, ViewKey};
use crate::requests::SessionKey;
use crate::situation::Situation;
use arc_swap::ArcSwap;
use contract::surface::ListKind;
use gate::pins::PinBook;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use wire::listing::ListOutcome;

/// The freshness of one list in a view.
#[derive(Debug, Clone, Copy, Default)]
pub struct Freshness {
    /// When the newest listing was started, complete or not.
    pub begun_at: Option<Instant>,
    /// When the last complete listing was started.
    pub listed_at: Option<Instant>,
    /// The session whose connection is used to fetch the list.
    pub listed_by: Option<SessionKey>,
    /// The server announced that the list changed, or a listing failed.
    pub is_stale: bool,
    /// The server's own limit. It can only shorten the maximum age.
    pub ttl: Option<Duration>,
}

impl Freshness {
    pub fn is_fresh(&self, now: Instant, max_age: Duration) -> bool {
        let max_age = self.ttl.map_or(max_age, |ttl| ttl.min(max_age));
        let is_current = self.listed_by.is_none() && !self.is_stale;
        is_current && self.age(now).is_some_and(|age| age < max_age)
    }

    pub fn age(&self, now: Instant) -> Option<Duration> {
        self.listed_at.map(|at| now.saturating_duration_since(at))
    }
}

/// The facts about a server in one view.
#[derive(Debug, Clone)]
pub struct Known {
    pub situation: Arc<Situation>,
    /// The pins that shape the handshake.
    pub book: Arc<PinBook>,
    /// Whether the server was ever pinned.
    pub has_baseline: bool,
    /// What the situation was derived from, in this view from the start.
    pub seen: Arc<Seen>,
    /// The newest response to `initialize` or `server/discover`.
    pub handshake: Option<Arc<str>>,
    /// The newest admission check. Each session knows whether it covers that session's handshake.
    pub checked: Option<Arc<Checked>>,
    /// Lists fetched since the situation was made. A server is judged as a whole, once all of them
    /// are present.
    pub fetched: BTreeMap<ListKind, ListOutcome>,
    /// The server's surface changed since the situation was made.
    pub is_unjudged: bool,
    freshness: BTreeMap<ListKind, Freshness>,
}

impl Known {
    pub(crate) fn new(begun: Judged, seen: Seen) -> Known {
        let Judged { situation, book, has_baseline, .. } = begun;
        Known {
            situation: Arc::new(situation),
            book: Arc::new(book),
            has_baseline,
            seen: Arc::new(seen),
            handshake: None,
            checked: None,
            fetched: BTreeMap::new(),
            is_unjudged: true,
            freshness: BTreeMap::new(),
        }
    }

    pub fn freshness(&self, list: ListKind) -> Freshness {
        self.freshness.get(&list).copied().unwrap_or_default()
    }

    pub(crate) fn freshness_mut(&mut self, list: ListKind) -> &mut Freshness {
        self.freshness.entry(list).or_default()
    }

    /// Like [`Self::outdate`], for these lists. Returns whether one of them was current until now.
    pub(crate) fn outdate_lists(&mut self, lists: &[ListKind]) -> bool {
        let mut is_news = false;
        for list in lists {
            is_news |= !std::mem::replace(&mut self.freshness_mut(*list).is_stale, true);
        }
        is_news
    }

    /// Prevents calls from being decided on any list before it is fetched again.
    pub(crate) fn outdate(&mut self) {
        self.freshness.values_mut().for_each(|freshness| freshness.is_stale = true);
    }

    /// The lists that a session is fetching, selected by `by`.
    pub(crate) fn listed(
        &self,
        is_wanted: impl Fn(SessionKey) -> bool,
    ) -> impl Iterator<Item = ListKind> {
        let by = self.freshness.iter().filter_map(|(list, known)| Some((*list, known.listed_by?)));
        by.filter(move |(_, by)| is_wanted(*by)).map(|(list, _)| list)
    }
}

/// A server as seen by callers that are shown the same lists.
pub struct ServerView {
    pub(crate) key: ViewKey,
    known: ArcSwap<Known>,
    /// Locked while a new value is derived from the old one.
    changing: Mutex<()>,
}

impl std::fmt::Debug for ServerView {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ServerView").field("key", &self.key).finish_non_exhaustive()
    }
}

impl ServerView {
    pub(crate) fn new(known: Known) -> ServerView {
        ServerView {
            key: known.seen.view(),
            known: ArcSwap::from_pointee(known),
            changing: Mutex::default(),
        }
    }

    /// The process or endpoint that shows it.
    pub(crate) fn instance(&self) -> Instance {
        self.key.instance()
    }

    pub fn known(&self) -> arc_swap::Guard<Arc<Known>> {
        self.known.load()
    }

    /// Replaces the facts. If `change` panics, the previous value stays.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Known) -> T) -> T {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut known = Known::clone(&self.known.load());
        let result = change(&mut known);
        self.known.store(Arc::new(known));
        result
    }
}
