//! One upstream server as all of its sessions see it: its views, its pins, its admission, its
//! receipts.
//!
//! Sessions share a [`Server`]. Each session has one [`ServerView`], which it shares with sessions
//! of clients with the same capabilities. A call reads its view without a lock; the driver, one per
//! server, keeps the views fresh.

pub(crate) mod asking;
pub mod driver;
pub(crate) mod keeper;
mod looked;
mod notes;
mod unlinked;
mod view;

pub use looked::{LookError, looked_surface};
pub use unlinked::Unlinked;
pub use view::{Freshness, Known, ServerView};

use crate::admission::{Admittance, Checked};
use crate::decide::Path;
use crate::error_log::ErrorLog;
use crate::judge::{Again, Instance, Judge, Judged, Rules, Seen, ViewKey};
use crate::recorder::{Recorder, now};
use crate::requests::SessionKey;
use crate::sentinel::Sentinel;
use crate::session::Session;
use crate::session::boundary::{Faults, lock};
use crate::situation::Situation;
use crate::tally::Tally;
use contract::client::ClientCapabilities;
use contract::surface::ListKind;
use driver::Wake;
use gate::server::{ServerId, ServerStatus};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use store::StoreError;
use wire::listing::is_offered;

/// The most views of one server. A view without sessions makes room for another.
pub const MAX_VIEWS: usize = 200;

/// The settings for using a server.
#[derive(Debug, Clone)]
pub struct ServerSettings {
    /// The maximum age of a view when a call is dispatched.
    pub relist_max_age: Duration,
    pub call_timeout: Option<Duration>,
    /// The timeout for a handshake. The server may have to be fetched and built before it can
    /// respond.
    pub start_timeout: Duration,
    /// How long a server may still answer a cancelled request.
    pub cancelled_patience: Duration,
    /// Whether the person at the client is asked about held calls, if the client supports that.
    pub asks_in_client: bool,
    /// The timeout for the person's answer to a question.
    pub answer_patience: Duration,
    /// The largest message of either side.
    pub frame_bytes: usize,
    /// The maximum age of an admission check when a call is dispatched, if admission is checked.
    pub admission_max_age: Option<Duration>,
    /// Whether the handshake precedes the admission check, because the server is used whatever the
    /// result is and its document can only be in its handshake.
    pub greets_before_check: bool,
}

impl ServerSettings {
    /// The deadline of a call that proceeds now.
    pub(crate) fn call_deadline(&self, now: Instant) -> Option<Instant> {
        self.call_timeout.and_then(|timeout| now.checked_add(timeout))
    }
}

impl Default for ServerSettings {
    fn default() -> Self {
        ServerSettings {
            relist_max_age: Duration::from_secs(30),
            call_timeout: None,
            start_timeout: Duration::from_secs(60),
            cancelled_patience: Duration::from_secs(60),
            asks_in_client: false,
            answer_patience: asking::ANSWER_PATIENCE,
            frame_bytes: 16 * 1024 * 1024,
            admission_max_age: None,
            greets_before_check: false,
        }
    }
}

/// Receives a sentence for the person who operates the gate.
pub type Remark = dyn Fn(&str) + Send + Sync;
/// Notifies a person that something of the server is newly held. It must return immediately.
pub type Alarm = dyn Fn() + Send + Sync;

/// Runs something that may take long, and returns after it is done.
pub type Aside = dyn Fn(&mut dyn FnMut()) + Send + Sync;

/// The parts of a server.
pub struct ServerParts {
    pub settings: ServerSettings,
    pub path: Path,
    /// Several servers may write to the same ledger.
    pub recorder: Arc<Recorder>,
    pub judge: Judge,
    /// The judgement before anything of the server was seen.
    pub begun: Judged,
    pub sentinel: Sentinel,
    pub driver: Sender<Wake>,
    pub errors: ErrorLog,
    pub remark: Box<Remark>,
    pub alarm: Box<Alarm>,
}

impl std::fmt::Debug for ServerParts {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ServerParts")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// A client cannot have its own view.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    #[error("the server is in use in {MAX_VIEWS} views already")]
    TooMany,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The views of a server, and the admission state that applies to all of them.
#[derive(Debug)]
struct Views {
    by_key: HashMap<ViewKey, Arc<ServerView>>,
    admission: Admittance,
    checked: Option<Arc<Checked>>,
}

impl Views {
    fn drop_unused(&mut self, judge: &mut Judge) {
        let unused = self.by_key.extract_if(|_, view| Arc::strong_count(view) == 1);
        unused.for_each(|(key, _)| judge.forget_view(&key));
    }
}

pub struct Server {
    pub(crate) id: ServerId,
    pub(crate) settings: ServerSettings,
    pub(crate) path: Path,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) tally: Tally,
    pub(crate) faults: Faults,
    /// The judge's rules, which do not change.
    pub(crate) rules: Rules,
    judge: Mutex<Judge>,
    /// Checked before each call for decisions that a person made.
    sentinel: Mutex<Sentinel>,
    views: Mutex<Views>,
    sessions: Mutex<BTreeMap<SessionKey, Weak<Session>>>,
    next_session: AtomicU64,
    driver: Sender<Wake>,
    pub(crate) errors: ErrorLog,
    remark: Box<Remark>,
    alarm: Box<Alarm>,
    /// How the store is read on the call path, if that must not block a thread.
    aside: Option<Box<Aside>>,
    /// Whether a call was held in this process.
    has_held: AtomicBool,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Server").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Server {
    pub fn new(parts: ServerParts) -> Server {
        let ServerParts {
            settings,
            path,
            recorder,
            judge,
            begun,
            sentinel,
            driver,
            errors,
            remark,
            alarm,
        } = parts;
        let admission = match settings.admission_max_age {
            Some(_) => Admittance::Unknown,
            None => Admittance::NotAsked,
        };
        let id = begun.situation.server.clone();
        let server = Server {
            id: id.clone(),
            settings,
            path,
            recorder,
            tally: Tally::default(),
            faults: Faults::default(),
            rules: judge.rules().clone(),
            judge: Mutex::new(judge),
            sentinel: Mutex::new(sentinel.about(id)),
            views: Mutex::new(Views { by_key: HashMap::new(), admission, checked: None }),
            sessions: Mutex::default(),
            next_session: AtomicU64::new(0),
            driver,
            errors,
            remark,
            alarm,
            has_held: AtomicBool::new(false),
            aside: None,
        };
        add_view(&mut lock(&server.views), Seen::default(), begun);
        server
    }

    /// Sets how the store is read on the call path, for callers whose threads must not block on it.
    #[must_use]
    pub fn reading_by(self, aside: Box<Aside>) -> Server {
        Server { aside: Some(aside), ..self }
    }

    pub(crate) fn judge(&self) -> MutexGuard<'_, Judge> {
        lock(&self.judge)
    }

    pub(crate) fn wake(&self, wake: Wake) {
        // A driver that has ended needs no wake-up.
        let _ = self.driver.send(wake);
    }

    /// Like [`Self::remark`], for users of the server.
    pub fn tell(&self, sentence: &str) {
        self.remark(sentence);
    }

    /// Passes on a sentence for the person who operates the gate.
    pub(crate) fn remark(&self, sentence: &str) {
        (self.remark)(sentence);
    }

    /// Reports that something is newly held.
    pub(crate) fn alarm(&self) {
        (self.alarm)();
    }

    /// Reports that a call was held. An agent may retry many times, so only the first one is
    /// reported.
    pub(crate) fn alarm_once(&self) {
        if !self.has_held.swap(true, Ordering::Relaxed) {
            self.alarm();
        }
    }

    /// Runs work that belongs to no session. A panic is recorded, and `None` is returned.
    pub(crate) fn contain<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        self.faults.contain(&self.errors, 0, work)
    }

    /// Stops recording, which also stops dispatching.
    pub fn stop_recording(&self) {
        self.recorder.finish();
    }

    /// The view that an instance shows to clients with these capabilities.
    pub(crate) fn view(
        &self,
        instance: Instance,
        client: Option<ClientCapabilities>,
    ) -> Result<Arc<ServerView>, ViewError> {
        let key = ViewKey::of(instance, client.as_ref());
        if let Some(view) = lock(&self.views).by_key.get(&key) {
            return Ok(view.clone());
        }
        // INVARIANT: the judge stays locked until the view is registered, so no change of the store
        // is missed in between.
        let mut judge = self.judge();
        {
            let mut views = lock(&self.views);
            if let Some(view) = views.by_key.get(&key) {
                return Ok(view.clone());
            }
            if views.by_key.len() >= MAX_VIEWS {
                views.drop_unused(&mut judge);
            }
            if views.by_key.len() >= MAX_VIEWS {
                return Err(ViewError::TooMany);
            }
        }
        let seen = Seen { client, instance, ..Seen::default() };
        let begun = judge.begin(&seen)?;
        Ok(add_view(&mut lock(&self.views), seen, begun))
    }

    /// Drops views without sessions.
    pub(crate) fn drop_unused_views(&self) {
        let mut judge = self.judge();
        lock(&self.views).drop_unused(&mut judge);
    }

    pub(crate) fn views(&self) -> Vec<Arc<ServerView>> {
        lock(&self.views).by_key.values().cloned().collect()
    }

    /// Adds a session, which `make` creates with its key.
    pub(crate) fn add_session(&self, make: impl FnOnce(SessionKey) -> Session) -> Arc<Session> {
        let key = SessionKey(self.next_session.fetch_add(1, Ordering::Relaxed));
        let session = Arc::new(make(key));
        lock(&self.sessions).insert(key, Arc::downgrade(&session));
        session
    }

    /// Removes a session that has ended.
    pub(crate) fn remove_session(&self, key: SessionKey) {
        // This is called while a session is dropped, when nothing may unwind.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
        self.wake(Wake::SessionEnded(key));
    }

    pub fn session(&self, key: SessionKey) -> Option<Arc<Session>> {
        lock(&self.sessions).get(&key)?.upgrade()
    }

    pub(crate) fn sessions(&self) -> Vec<Arc<Session>> {
        lock(&self.sessions).values().filter_map(Weak::upgrade).collect()
    }

    /// The sessions that are shown the lists of a view.
    pub(crate) fn sessions_of(&self, view: &Arc<ServerView>) -> Vec<Arc<Session>> {
        let mut sessions = self.sessions();
        sessions.retain(|session| session.has_view(view));
        sessions
    }

    /// The number of the last change of a shared database.
    pub(crate) fn shared_change(&self) -> Option<u64> {
        lock(&self.sentinel).shared_change()
    }

    /// Records that every view was judged again after this change of the shared database.
    pub(crate) fn acted_on(&self, change: u64) {
        lock(&self.sentinel).acted_on(change);
    }

    /// INVARIANT: a person's decision applies to every call that begins after it was written.
    ///
    /// `is_current` says whether the caller has checked since it last waited for its client.
    pub(crate) fn look_for_changes(
        &self,
        is_current: &AtomicBool,
        begun: Instant,
    ) -> Result<(), StoreError> {
        // Messages that were read together began together, unless the server delayed one of them.
        let mut sentinel = lock(&self.sentinel);
        if is_current.load(Ordering::Acquire) && sentinel.had_just_looked(begun) {
            return Ok(());
        }
        if let Some(news) = sentinel.news()? {
            let mut looked = Ok(());
            match &self.aside {
                Some(aside) => aside(&mut || looked = self.look_again()),
                None => looked = self.look_again(),
            }
            looked?;
            sentinel.take_note(news);
        }
        is_current.store(true, Ordering::Release);
        Ok(())
    }

    /// Judges every view again with the current pins.
    pub(crate) fn look_again(&self) -> Result<(), StoreError> {
        let mut judge = self.judge();
        lock(&self.views).drop_unused(&mut judge);
        for view in self.views() {
            let seen = view.known().seen.clone();
            match judge.look_again(&seen, now())? {
                Again::Same => {}
                Again::Switched(switches) => view.change(|known| {
                    let before = (*known.situation).clone();
                    known.situation = Arc::new(Situation { switches, ..before });
                }),
                Again::Judged(judged) => {
                    self.publish(&judge, &view, *judged);
                    // Entries that can be re-pinned are re-pinned with the next list.
                    view.change(|known| known.is_unjudged = true);
                }
            }
        }
        Ok(())
    }

    /// Makes this the situation that calls are decided on. The caller holds the judge, so an older
    /// judgement never replaces a newer one.
    pub(crate) fn publish(&self, _judge: &Judge, view: &Arc<ServerView>, judged: Judged) {
        let Judged { mut situation, book, has_baseline, .. } = judged;
        let changed: Vec<ListKind> = view.change(|known| {
            situation.admission = known.situation.admission.clone();
            let situation = Arc::new(situation);
            let before = std::mem::replace(&mut known.situation, situation.clone());
            known.book = Arc::new(book);
            known.has_baseline = has_baseline;
            let is_other = |list: &ListKind| !situation.view.is_shown_like(&before.view, *list);
            let had_lists = before.view.has_lists();
            ListKind::ALL.into_iter().filter(is_other).filter(|_| had_lists).collect()
        });
        self.wake_changed(view, changed);
    }

    /// The situation according to the server's recorded surface, without contacting it. Returns
    /// `None` if it was never observed. Without an admission check, an unchanged situation is the
    /// same object.
    pub fn recorded(&self) -> Result<Option<Arc<Situation>>, StoreError> {
        let judged = self.judge().judge_recorded(now())?;
        let admission = lock(&self.views).admission.clone();
        Ok(judged.map(|judged| match (&judged.admission, &admission) {
            (Admittance::NotAsked, Admittance::NotAsked) => judged,
            _ => Arc::new(Situation { admission, ..(*judged).clone() }),
        }))
    }

    /// The currently recorded status.
    pub fn status(&self) -> Result<ServerStatus, StoreError> {
        self.judge().status()
    }

    /// Handles an instance's notification that these lists changed, for all clients. Returns
    /// whether that is news.
    pub(crate) fn outdate(&self, instance: Instance, lists: &[ListKind]) -> bool {
        let mut is_news = false;
        for view in self.views().iter().filter(|view| view.instance() == instance) {
            is_news |= view.change(|known| known.outdate_lists(lists));
        }
        is_news
    }

    /// Notifies the clients of a view that these lists changed.
    fn wake_changed(&self, view: &Arc<ServerView>, changed: Vec<ListKind>) {
        if !changed.is_empty() {
            self.wake(Wake::Published { view: view.clone(), changed });
        }
    }

    /// Applies the outcome of a check to every call that is decided from now on. Returns whether it
    /// differs from the last one.
    pub(crate) fn admit(&self, checked: &Arc<Checked>) -> bool {
        let admission = Admittance::Known(checked.admitted.clone());
        let views = {
            let mut views = lock(&self.views);
            let is_news = !views.admission.is_like(&checked.admitted);
            views.admission = admission.clone();
            views.checked = Some(checked.clone());
            (is_news, views.by_key.values().cloned().collect::<Vec<_>>())
        };
        let (is_news, views) = views;
        for view in views {
            let changed = view.change(|known| {
                let before = known.situation.clone();
                let is_other = admission.is_closed() != before.admission.is_closed();
                known.checked = Some(checked.clone());
                if is_news {
                    let admission = admission.clone();
                    known.situation = Arc::new(Situation { admission, ..(*before).clone() });
                    known.is_unjudged = true;
                }
                // Lists that were refused before the server was listed are requested again.
                let handshake = known.handshake.as_deref().filter(|_| !before.view.has_lists());
                let is_shown = |list: &ListKind| {
                    before.view.list(*list).is_some()
                        || handshake.is_some_and(|text| is_offered(text, *list))
                };
                let lists = ListKind::ALL.into_iter().filter(|_| is_other);
                lists.filter(is_shown).collect()
            });
            self.wake_changed(&view, changed);
        }
        is_news
    }
}

fn add_view(views: &mut Views, seen: Seen, begun: Judged) -> Arc<ServerView> {
    let mut known = Known::new(begun, seen);
    let admission = views.admission.clone();
    known.situation = Arc::new(Situation { admission, ..(*known.situation).clone() });
    known.checked = views.checked.clone();
    let view = Arc::new(ServerView::new(known));
    views.by_key.insert(view.key.clone(), view.clone());
    view
}

impl Admittance {
    fn is_like(&self, other: &crate::admission::Admitted) -> bool {
        matches!(self, Admittance::Known(known) if **known == *other)
    }
}
