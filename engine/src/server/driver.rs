//! Carries out the keeper's commands: it sends the gate's own requests, has the server judged,
//! resumes waiting requests, and detects what people decide in other processes.
//!
//! Only the driver makes requests of the gate's own. Their ids are unguessable.

mod checking;
mod judging;
mod own_requests;
mod probing;
mod tiers;

use super::asking::{call_parameters, parameters, read_answer};
use super::keeper::{
    Check, Command, Event, Glance, Keeper, KeeperSettings, Listed, Remark, RequestNumber,
};
use super::notes::Notes;
use crate::admission::{Checked, Checker};
use crate::behavior::{Observable, Probe};
use crate::reason::ReasonCode;
use crate::recorder::now;
use crate::requests::{ParkedCall, SessionKey};
use crate::server::{Known, Server, ServerView};
use crate::session::boundary::trip;
use crate::session::{OwnAnswer, Session};
use checking::Checking;
use contract::surface::{Entry, EntryId, ListKind};
use gate::behavior::Assessment;
use gate::counters::Counter;
use gate::judge::Judgement;
use probing::Probing;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use tiers::ReportedTiers;
use wire::listing::is_offered;

/// How often the driver checks for work without being woken.
pub const TICK: Duration = Duration::from_millis(250);
/// How often the driver checks the store for decisions of people.
const LOOK_PAUSE: Duration = Duration::from_secs(1);
/// How often counts are stored.
const FLUSH_PAUSE: Duration = Duration::from_secs(10);

/// An event that wakes the driver.
#[derive(Debug)]
pub enum Wake {
    /// An event of one session.
    Session(SessionKey, SessionWake),
    /// The clients of a view see other lists from now on.
    Published {
        view: Arc<ServerView>,
        changed: Vec<ListKind>,
    },
    /// The server's admission was checked.
    Admitted(Box<Checked>),
    /// It could not be checked because of a fault of the gate.
    NotChecked,
    /// A tool's behavior was tested.
    Observed {
        key: Box<Observable>,
        assessment: Assessment,
    },
    /// A corpus or a model answered, or a feed has new entries.
    TierAnswered,
    SessionEnded(SessionKey),
    /// The server is no longer used.
    End,
}

/// An event of a session that wakes the driver.
#[derive(Debug)]
pub enum SessionWake {
    /// A request waits for this list.
    Relist(ListKind),
    /// The client is ready.
    Initialized,
    /// The server notified that these lists changed.
    ListChanged(Vec<ListKind>),
    /// The server answered one of our requests.
    Answered { id: Vec<u8>, answer: OwnAnswer },
    /// A call is held, and the person at the client may be asked.
    Ask { entry: EntryId, banner: String },
    /// A call waits for the person at the client to allow it.
    AskCall { call: ParkedCall, message: String },
    /// The client answered one of our requests.
    ClientAnswered { id: Vec<u8>, message: Vec<u8> },
    /// The person at the client requested a test of a tool's behavior.
    Validate(EntryId),
    /// A request waits for a check of the server's admission.
    Admit,
    /// The session is shown another view.
    OtherView,
    /// The server's response to a handshake was read.
    Greeted,
    /// A call that would be refused waits for a corpus.
    AwaitsCorpus,
    /// The server of this session has ended.
    ServerEnded,
}

impl Wake {
    /// The name by which a test requests a panic.
    fn name(&self) -> &'static str {
        match self {
            Wake::Session(_, SessionWake::Relist(_)) => "relist",
            Wake::Session(_, SessionWake::Initialized) => "initialized",
            Wake::Session(_, SessionWake::ListChanged(_)) => "list-changed",
            Wake::Session(_, SessionWake::Answered { .. }) => "answered",
            Wake::Session(_, SessionWake::Ask { .. }) => "ask",
            Wake::Session(_, SessionWake::AskCall { .. }) => "ask-call",
            Wake::Session(_, SessionWake::ClientAnswered { .. }) => "client-answered",
            Wake::Session(_, SessionWake::Validate(_)) => "validate",
            Wake::Session(_, SessionWake::Admit) => "admit",
            Wake::Session(_, SessionWake::OtherView) => "other-view",
            Wake::Session(_, SessionWake::Greeted) => "greeted",
            Wake::Session(_, SessionWake::AwaitsCorpus) => "awaits-corpus",
            Wake::Session(_, SessionWake::ServerEnded) => "server-ended",
            Wake::Published { .. } => "published",
            Wake::Admitted(_) => "admitted",
            Wake::NotChecked => "not-checked",
            Wake::Observed { .. } => "observed",
            Wake::TierAnswered => "tier-answered",
            Wake::SessionEnded(_) => "session-ended",
            Wake::End => "end",
        }
    }
}

/// Produces the server's origin entry, while the server starts.
pub type OriginSource = Box<dyn FnMut() -> Option<Entry> + Send>;

/// The keeper of a session, and what the driver needs to carry out its commands.
#[derive(Debug)]
struct KeptSession {
    keeper: Keeper,
    /// The view that the keeper works for.
    view: Arc<ServerView>,
    /// The ids of the gate's own requests and questions, with their quotes, and the keeper's
    /// numbers for them.
    ids: HashMap<RequestNumber, Vec<u8>>,
    numbers: HashMap<Vec<u8>, RequestNumber>,
}

pub struct Driver {
    server: Arc<Server>,
    /// Sessions that have had an event for their keeper.
    kept: HashMap<SessionKey, KeptSession>,
    origin: OriginSource,
    checking: Checking,
    probing: Probing,
    told: ReportedTiers,
    /// Until when the driver waits for the corpus, if something depends on it.
    corpus_until: Option<Instant>,
    notes: Notes,
    flushed_at: Instant,
    version: Option<u64>,
    looked_at: Instant,
    looked_around_at: Instant,
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Driver").field("server", &self.server).finish_non_exhaustive()
    }
}

impl Driver {
    pub fn new(server: Arc<Server>, origin: OriginSource) -> Driver {
        let now = Instant::now();
        server.rules.upper.listen(&server);
        Driver {
            server,
            kept: HashMap::new(),
            origin,
            checking: Checking::default(),
            probing: Probing::default(),
            told: ReportedTiers::default(),
            corpus_until: None,
            notes: Notes::default(),
            flushed_at: now,
            version: None,
            looked_at: now,
            looked_around_at: now,
        }
    }

    /// Sets the checker for the server's admission.
    #[must_use]
    pub fn admitting(mut self, checker: Option<Checker>) -> Driver {
        self.checking = Checking::by(checker);
        self
    }

    /// Sets the prober for the behavior of the server's tools.
    #[must_use]
    pub fn probing(mut self, prober: Option<Box<dyn Probe>>) -> Driver {
        self.probing = Probing::by(prober);
        self
    }

    /// Runs until the server is no longer used.
    pub fn run(mut self, wakes: &Receiver<Wake>) {
        loop {
            match wakes.recv_timeout(self.patience()) {
                Ok(Wake::End) | Err(RecvTimeoutError::Disconnected) => break,
                Ok(wake) => self.turn(Some(wake)),
                Err(RecvTimeoutError::Timeout) => self.turn(None),
            }
        }
        self.end();
    }

    /// Handles the event that woke the driver, and does the work that is due.
    pub fn turn(&mut self, wake: Option<Wake>) {
        let server = self.server.clone();
        if let Some(wake) = wake {
            let name = wake.name();
            match wake {
                Wake::Session(key, wake) => {
                    if let Some(session) = server.session(key) {
                        self.handle(&session, |driver| {
                            trip("keeper", name.as_bytes());
                            driver.hear(&session, wake);
                        });
                    }
                }
                wake => {
                    server.contain(|| {
                        trip("keeper", name.as_bytes());
                        self.hear_all(wake);
                    });
                }
            }
        }
        if self.corpus_until.is_some_and(|until| until <= Instant::now()) {
            server.contain(|| self.end_corpus_wait());
        }
        // Periodic work is done on time, however often the driver is woken.
        if self.looked_around_at.elapsed() >= TICK {
            self.looked_around_at = Instant::now();
            self.look_around();
        }
        if server.faults.is_broken() {
            server.sessions().iter().for_each(|session| session.close_broken());
        }
    }

    /// Runs work for one session. After a panic, everything that waits in the session is refused.
    fn handle(&mut self, session: &Arc<Session>, work: impl FnOnce(&mut Driver)) {
        if session.is_broken() {
            session.close_broken();
            return self.let_go(session.key());
        }
        if session.contain(0, || work(self)).is_none() {
            session.contain(0, || {
                session.view().change(|known| known.is_unjudged = true);
                self.tell(session, Event::Faulted);
            });
            session.close_broken();
            if session.is_broken() {
                self.let_go(session.key());
            }
        }
    }

    /// Stores the counts when the server is no longer used.
    pub fn end(&mut self) {
        let server = self.server.clone();
        server.contain(|| self.flush());
    }

    fn hear(&mut self, session: &Arc<Session>, wake: SessionWake) {
        match wake {
            SessionWake::Relist(list) => self.tell(session, Event::Wanted(list)),
            SessionWake::Initialized => self.tell(session, Event::Initialized),
            SessionWake::ListChanged(lists) => self.tell(session, Event::ListChanged(lists)),
            SessionWake::Answered { id, answer } => {
                if let Some(request) = self.forget_id(session, &id) {
                    self.tell(session, Event::Answered { request, answer });
                }
            }
            SessionWake::Ask { entry, banner } => {
                let change = change_of(session, &entry);
                let can_validate = change.as_ref().is_some_and(|it| self.can_validate(it));
                let hash = change.map(|change| change.after.as_ref().map(Entry::entry_hash));
                self.tell(session, Event::Asked { entry, banner, hash, can_validate });
            }
            SessionWake::AskCall { call, message } => {
                self.tell(session, Event::CallAsked { call, message });
            }
            SessionWake::ClientAnswered { id, message } => {
                if let Some(question) = self.forget_id(session, &id) {
                    self.tell(session, Event::Said { question, said: read_answer(&message) });
                }
            }
            SessionWake::Validate(entry) => {
                self.begin_validation(session, &entry);
            }
            SessionWake::AwaitsCorpus => self.await_corpus(session),
            SessionWake::Admit => self.tell(session, Event::CheckWanted),
            SessionWake::OtherView | SessionWake::Greeted => self.tell(session, Event::Tick),
            SessionWake::ServerEnded => self.let_go(session.key()),
        }
    }

    /// Handles an event that concerns several sessions.
    fn hear_all(&mut self, wake: Wake) {
        let server = self.server.clone();
        match wake {
            Wake::Published { view, changed } => {
                for session in server.sessions_of(&view) {
                    self.handle(&session, |_| {
                        if session.state().client.is_initialized {
                            tell_changed(&session, &changed);
                        }
                    });
                }
            }
            Wake::Admitted(checked) => self.end_check(Some(*checked)),
            Wake::NotChecked => self.end_check(None),
            Wake::Observed { key, assessment } => self.end_probe(&key, &assessment),
            Wake::TierAnswered => self.end_corpus_wait(),
            Wake::SessionEnded(key) => self.forget_session(key),
            Wake::Session(..) | Wake::End => {}
        }
    }

    fn forget_session(&mut self, key: SessionKey) {
        self.let_go(key);
        self.server.drop_unused_views();
    }

    /// Handles the end of a session. Another session takes over the work it did for others.
    fn let_go(&mut self, key: SessionKey) {
        let Some(kept) = self.kept.remove(&key) else { return };
        self.release_listings(key, &kept.view);
        let mut others = self.server.sessions().into_iter().filter(|session| session.key() != key);
        if kept.keeper.repeats_check()
            && let Some(other) = others.find(|session| !session.is_broken())
        {
            self.handle(&other, |driver| driver.tell(&other, Event::CheckWanted));
        }
    }

    /// Lets other sessions fetch a view's lists that this session no longer fetches.
    fn release_listings(&mut self, key: SessionKey, view: &Arc<ServerView>) {
        let lists: Vec<ListKind> = view.known().listed(|by| by == key).collect();
        if lists.is_empty() {
            return;
        }
        view.change(|known| {
            for list in &lists {
                let freshness = known.freshness_mut(*list);
                freshness.listed_by = None;
                freshness.is_stale = true;
            }
        });
        for session in self.server.sessions_of(view) {
            self.handle(&session, |driver| {
                let waited = session.state().requests.waited_lists();
                for list in lists.iter().filter(|list| waited.contains(list)) {
                    driver.tell(&session, Event::Wanted(*list));
                }
            });
        }
    }

    /// The driver's state for a session, created with its first event.
    fn kept(&mut self, session: &Session) -> &mut KeptSession {
        let settings = &self.server.settings;
        self.kept.entry(session.key()).or_insert_with(|| KeptSession {
            keeper: Keeper::new(
                KeeperSettings {
                    start_timeout: settings.start_timeout,
                    checks_admission: settings.admission_max_age.is_some(),
                    greets_before_check: settings.greets_before_check,
                    answer_patience: settings.answer_patience,
                },
                Instant::now(),
            ),
            view: session.view(),
            ids: HashMap::new(),
            numbers: HashMap::new(),
        })
    }

    /// Passes an event to a session's keeper, and carries out the resulting commands.
    fn tell(&mut self, session: &Arc<Session>, event: Event) {
        let mut events = VecDeque::from([event]);
        let view = session.view();
        let before = std::mem::replace(&mut self.kept(session).view, view.clone());
        if !Arc::ptr_eq(&before, &view) {
            self.release_listings(session.key(), &before);
            events.push_front(Event::OtherView);
        }
        while let Some(event) = events.pop_front() {
            let glance = self.glance(session, &view);
            let commands = self.kept(session).keeper.on(event, &glance, Instant::now());
            let is_done = commands.is_empty();
            for command in commands {
                events.extend(self.carry_out(session, &view, command));
            }
            if !is_done {
                events.push_back(Event::CarriedOut);
            }
        }
    }

    fn glance(&self, session: &Session, view: &ServerView) -> Glance {
        let state = session.state();
        let known = view.known();
        let is_asked = self.server.settings.admission_max_age.is_some();
        let lists = ListKind::ALL.into_iter();
        let offered = state
            .handshake
            .as_deref()
            .map(|text| lists.filter(|list| is_offered(text, *list)).collect());
        let begun = |list: ListKind| Some((list, known.freshness(list).begun_at?));
        let (now, max_age) = (Instant::now(), self.server.settings.relist_max_age);
        let is_fresh = |list: &ListKind| known.freshness(*list).is_fresh(now, max_age);
        Glance {
            is_closed: known.situation.admission.is_closed(),
            lacks_check: is_asked && (known.checked.is_none() || !state.is_covered),
            is_greeted: state.handshake.is_some(),
            has_kept_greeting: state.kept_greeting.is_some(),
            is_greeting: state.is_greeting(),
            is_stateless: state.client.stateless_meta.is_some(),
            // A subscription may be open as long as the session, and does not prevent a server from
            // answering.
            is_busy: state.requests.has_calls(),
            has_ended: state.requests.is_ended(),
            waited: state.requests.waited_lists(),
            asked: state.requests.asked_entries(),
            offered,
            seen: known.seen.clone(),
            fetched: known.fetched.clone(),
            fetched_by_others: known.listed(|by| by != session.key()).collect(),
            fresh: ListKind::ALL.into_iter().filter(is_fresh).collect(),
            begun: ListKind::ALL.into_iter().filter_map(begun).collect(),
        }
    }

    /// Carries out one command. Returns the event that results from it, if any.
    fn carry_out(
        &mut self,
        session: &Arc<Session>,
        view: &Arc<ServerView>,
        command: Command,
    ) -> Option<Event> {
        match command {
            Command::List { request, list, cursor } => {
                return self.ask(session, request, list.method(), cursor.as_deref());
            }
            Command::Discover { request } => {
                return self.ask(session, request, "server/discover", None);
            }
            Command::Greet { request } => return self.greet(session, request),
            Command::GiveUp(request) => self.give_up(session, request),
            Command::BeginListing(list) => {
                view.change(|known| {
                    let freshness = known.freshness_mut(list);
                    freshness.begun_at = Some(Instant::now());
                    freshness.listed_by = Some(session.key());
                    freshness.is_stale = false;
                });
                self.server.tally.add(Counter::Relists);
            }
            Command::Keep { list, outcome } => {
                view.change(|known| known.fetched.insert(list, outcome));
            }
            Command::Judge { is_news } => {
                let is_reliable = self.judge(session, view, is_news);
                return Some(Event::Judged { is_reliable });
            }
            Command::EndListing { lists, is_reliable } => {
                self.end_listing(view, &lists, is_reliable);
            }
            Command::FailListing { list, reason } => self.fail_listing(view, list, reason),
            Command::TakeDiscovery(result) => {
                let is_covered = session.take_discovery(result);
                return Some(Event::Discovered { is_covered });
            }
            Command::TakeLateGreeting(text) => {
                return Some(Event::GreetedLate(session.take_late_handshake(&text)));
            }
            Command::Check => {
                return (!self.checking.begin(session)).then_some(Event::CheckNotBegun);
            }
            Command::DeliverHandshakes { before } => session.deliver_handshakes(before),
            Command::ReleaseUnadmitted => {
                let released = session.state().requests.release_unadmitted();
                released.iter().for_each(|key| session.resume_admitted(key));
            }
            Command::RefuseUnadmitted => session.refuse_unadmitted(),
            Command::RefuseWaiting(reason) => refuse_waiting(session, reason),
            Command::RefuseAll(reason) => {
                self.release_listings(session.key(), view);
                view.change(Known::outdate);
                let waiting = session.state().requests.release_all();
                waiting.iter().for_each(|key| session.refuse_unseen(key, reason));
            }
            Command::Announce => session.announce(),
            Command::TellOffered => tell_offered(session),
            Command::Ask { question, banner, can_validate } => {
                return self.question(session, question, &parameters(&banner, None, can_validate));
            }
            Command::AskCall { question, message } => {
                return self.question(session, question, &call_parameters(&message));
            }
            Command::Show { question, entry } => {
                let Some(change) = change_of(session, &entry) else {
                    return Some(Event::NothingToShow { question });
                };
                let can_validate = self.can_validate(&change);
                let shown = parameters("", Some(&change), can_validate);
                return self.question(session, question, &shown);
            }
            Command::Validate { question, entry } => {
                return self.validate(session, question, &entry);
            }
            Command::Withdraw(question) => {
                if let Some(id) = self.forget_number(session, question) {
                    session.state().asked.remove(&id);
                }
            }
            Command::Approve { entry, hash } => session.approve_for(&entry, hash),
            Command::ReleaseAsked(entry) => {
                let deadline = self.server.settings.call_deadline(Instant::now());
                let calls = session.state().requests.release_asked(&entry, deadline);
                calls.iter().for_each(|key| session.resume(key));
            }
            Command::ReleaseCall { call, answer } => session.resume_answered(&call, answer),
            Command::Remark(remark) => session.remark(&words_of(session, remark)),
            Command::End(why) => {
                session.remark(&format!("the server cannot be used in this session: {why}"));
                session.server_ended();
            }
        }
        None
    }

    /// Does the periodic work.
    fn look_around(&mut self) {
        let server = self.server.clone();
        server.contain(|| {
            if self.flushed_at.elapsed() >= FLUSH_PAUSE {
                self.flush();
            }
        });
        for session in server.sessions() {
            self.handle(&session, |driver| {
                session.end_overdue();
                let is_idle = |kept: &KeptSession| kept.keeper.is_idle();
                let is_idle = driver.kept.get(&session.key()).is_none_or(is_idle);
                if !is_idle || session.state().requests.has_unfinished() {
                    driver.tell(&session, Event::Tick);
                }
            });
        }
        server.contain(|| self.notice_changes());
    }

    /// Makes people's decisions elsewhere visible to clients even if they make no calls.
    fn notice_changes(&mut self) {
        let shared = self.server.shared_change();
        if shared.is_none() && self.looked_at.elapsed() < LOOK_PAUSE {
            return;
        }
        self.looked_at = Instant::now();
        let version = shared.or_else(|| self.server.judge().version().ok());
        if version.is_some() && version != self.version {
            match self.server.look_again() {
                Ok(()) => {
                    self.version = version;
                    if let Some(change) = shared {
                        self.server.acted_on(change);
                    }
                }
                Err(error) => self.server.remark(&format!("the store cannot be read: {error}")),
            }
        }
    }

    /// This process need not react to its own writes, unless another process wrote before.
    fn know(&mut self, before: Option<u64>, after: Option<u64>) {
        if self.server.shared_change().is_none() && self.version == before {
            self.version = after;
        }
    }

    fn flush(&mut self) {
        self.flushed_at = Instant::now();
        let counts = self.server.tally.take();
        if counts.is_empty() {
            return;
        }
        let (before, stored, after) = {
            let mut judge = self.server.judge();
            let before = judge.version().ok();
            (before, judge.add_counts(&counts, now()), judge.version().ok())
        };
        self.know(before, after);
        if let Err(error) = stored {
            self.server.remark(&format!("statistics could not be stored: {error}"));
        }
    }

    /// Ends a listing, which serves every session of the view. A request that arrived after the
    /// list was requested waits for the next one if the server has announced a change since; so
    /// does a call if the list was already too old when the call arrived.
    fn end_listing(&mut self, view: &Arc<ServerView>, lists: &[Listed], is_reliable: bool) {
        let max_age = self.server.settings.relist_max_age;
        let outdated = view.change(|known| {
            let mut outdated = Vec::new();
            for Listed { list, begun, ttl } in lists {
                let freshness = known.freshness_mut(*list);
                freshness.listed_by = None;
                freshness.ttl = *ttl;
                match is_reliable {
                    true => freshness.listed_at = Some(*begun),
                    // It is unknown whether the server still shows what was judged before.
                    false => freshness.is_stale = true,
                }
                if freshness.is_stale {
                    outdated.push(*list);
                }
            }
            outdated
        });
        for session in self.server.sessions_of(view) {
            self.handle(&session, |_| {
                for Listed { list, begun, ttl } in lists {
                    let age = ttl.map_or(max_age, |ttl| ttl.min(max_age));
                    let until = begun.checked_add(age);
                    let mut state = session.state();
                    let released = match (is_reliable, until) {
                        (true, _) if outdated.contains(list) => {
                            state.requests.release_earlier(*list, *begun)
                        }
                        (true, Some(until)) => state.requests.release_served(*list, until),
                        (true, None) | (false, _) => state.requests.release_listed(&[*list]),
                    };
                    drop(state);
                    for key in released {
                        match is_reliable {
                            true => session.resume_listed(&key),
                            false => session.refuse_unseen(&key, ReasonCode::Internal),
                        }
                    }
                    if session.state().requests.waited_lists().contains(list) {
                        session.wake(SessionWake::Relist(*list));
                    }
                }
            });
        }
    }

    fn fail_listing(&mut self, view: &Arc<ServerView>, list: ListKind, reason: ReasonCode) {
        view.change(|known| {
            let freshness = known.freshness_mut(list);
            freshness.listed_by = None;
            freshness.is_stale = true;
        });
        for session in self.server.sessions_of(view) {
            self.handle(&session, |_| {
                let released = session.state().requests.release_listed(&[list]);
                released.iter().for_each(|key| session.end_unfetched(key, reason));
            });
        }
    }
}

fn words_of(session: &Session, remark: Remark) -> String {
    match remark {
        Remark::NoStart => session.words_of_no_start(),
        Remark::CannotCheck => "the server's admission cannot be checked".to_owned(),
        Remark::GreetingRefused => {
            "the server is admitted now, and did not accept the client's greeting".to_owned()
        }
    }
}

fn refuse_waiting(session: &Session, reason: ReasonCode) {
    let waiting = {
        let mut state = session.state();
        let mut waiting = state.requests.release_listed(&ListKind::ALL);
        waiting.extend(state.requests.release_unadmitted());
        waiting
    };
    waiting.iter().for_each(|key| session.refuse_unseen(key, reason));
}

fn change_of(session: &Session, entry: &EntryId) -> Option<Judgement> {
    let seen = session.view().known().seen.clone();
    session.server.judge().change_of(&seen, entry, now()).ok().flatten()
}

/// Notifies the client of the lists of a server whose handshake was delayed.
fn tell_offered(session: &Session) {
    let offered: Vec<ListKind> = {
        let state = session.state();
        let handshake = state.handshake.as_deref().filter(|_| state.client.is_initialized);
        let is_offered = |list: &ListKind| handshake.is_some_and(|text| is_offered(text, *list));
        ListKind::ALL.into_iter().filter(is_offered).collect()
    };
    tell_changed(session, &offered);
}

/// Notifies the client to list again, because the server's lists or the shown ones changed.
fn tell_changed(session: &Session, changed: &[ListKind]) {
    let kinds: BTreeSet<&str> = changed
        .iter()
        .map(|list| match list {
            ListKind::Tools => "tools",
            ListKind::Prompts => "prompts",
            ListKind::Resources | ListKind::ResourceTemplates => "resources",
        })
        .collect();
    for kind in kinds {
        let message =
            format!(r#"{{"jsonrpc":"2.0","method":"notifications/{kind}/list_changed"}}"#);
        session.tell_client(message.as_bytes());
    }
}
