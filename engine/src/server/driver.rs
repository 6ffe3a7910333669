//! Carries out what the keeper commands: it sends the gate's own requests, has the server judged, lets go what waited, and
//! notices what people decide in other processes.
//!
//! It is the only one that makes requests of the gate's own. Their ids are unguessable.

mod checking;
mod judging;

use super::asking::{parameters, read_answer};
use super::keeper::{
    Command, Event, Glance, Keeper, KeeperSettings, Listed, Remark, RequestNumber,
};
use super::notes::Notes;
use crate::admission::{Checked, Checker};
use crate::errands::{Errand, OwnMessage};
use crate::reason::ReasonCode;
use crate::recorder::now;
use crate::session::boundary::trip;
use crate::session::{OwnAnswer, Session};
use checking::Checking;
use contract::surface::{Entry, EntryId, ListKind};
use gate::counters::Counter;
use gate::judge::Judgement;
use serde_json::json;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use wire::envelope::members;
use wire::listing::is_offered;

/// How often the driver looks around without being woken.
pub const TICK: Duration = Duration::from_millis(250);
/// How often the driver asks the store whether a person decided anything.
const LOOK_PAUSE: Duration = Duration::from_secs(1);
/// How often counts are stored.
const FLUSH_PAUSE: Duration = Duration::from_secs(10);

/// What wakes the driver.
#[derive(Debug)]
pub enum Wake {
    /// A request waits for this list.
    Relist(ListKind),
    /// The client is ready.
    Initialized,
    /// The server says that these changed.
    ListChanged(Vec<ListKind>),
    /// The server answered one of our requests.
    Answered {
        id: Vec<u8>,
        answer: OwnAnswer,
    },
    /// A call is held, and the person at the client may be asked.
    Ask {
        entry: EntryId,
        banner: String,
    },
    /// The client answered one of our requests.
    ClientAnswered {
        id: Vec<u8>,
        message: Vec<u8>,
    },
    /// Another situation counts from now on; the client is shown other lists.
    Published {
        changed: Vec<ListKind>,
    },
    /// A request waits until the server's admission is checked.
    Admit,
    /// It was checked.
    Admitted(Box<Checked>),
    /// It could not be, because of a fault of ours.
    NotChecked,
    ClientGone,
    /// The session is over.
    End,
}

impl Wake {
    /// The name that a test's panic is asked for by.
    fn name(&self) -> &'static str {
        match self {
            Wake::Relist(_) => "relist",
            Wake::Initialized => "initialized",
            Wake::ListChanged(_) => "list-changed",
            Wake::Answered { .. } => "answered",
            Wake::Ask { .. } => "ask",
            Wake::ClientAnswered { .. } => "client-answered",
            Wake::Published { .. } => "published",
            Wake::Admit => "admit",
            Wake::Admitted(_) => "admitted",
            Wake::NotChecked => "not-checked",
            Wake::ClientGone => "client-gone",
            Wake::End => "end",
        }
    }
}

/// What of the way to the server is part of its surface; made while the server starts.
pub type OriginSource = Box<dyn FnMut() -> Option<Entry> + Send>;

pub struct Driver {
    session: Arc<Session>,
    keeper: Keeper,
    origin: OriginSource,
    /// The ids of the gate's own requests and questions, with their quotes, and the numbers that the keeper knows them by.
    ids: HashMap<RequestNumber, Vec<u8>>,
    numbers: HashMap<Vec<u8>, RequestNumber>,
    checking: Checking,
    notes: Notes,
    flushed_at: Instant,
    version: Option<u64>,
    looked_at: Instant,
    looked_around_at: Instant,
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Driver").field("keeper", &self.keeper).finish_non_exhaustive()
    }
}

impl Driver {
    pub fn new(session: Arc<Session>, origin: OriginSource) -> Driver {
        let now = Instant::now();
        let settings = KeeperSettings {
            start_timeout: session.settings.start_timeout,
            checks_admission: session.settings.admission_max_age.is_some(),
            greets_before_check: session.settings.greets_before_check,
        };
        Driver {
            session,
            keeper: Keeper::new(settings, now),
            origin,
            ids: HashMap::new(),
            numbers: HashMap::new(),
            checking: Checking::default(),
            notes: Notes::default(),
            flushed_at: now,
            version: None,
            looked_at: now,
            looked_around_at: now,
        }
    }

    /// Has the server's admission checked by this, whenever it has to be.
    #[must_use]
    pub fn admitting(mut self, checker: Option<Checker>) -> Driver {
        self.checking = Checking::by(checker);
        self
    }

    /// Works until the session is over.
    pub fn run(mut self, wakes: &Receiver<Wake>) {
        loop {
            match wakes.recv_timeout(TICK) {
                Ok(Wake::End) | Err(RecvTimeoutError::Disconnected) => break,
                Ok(wake) => self.turn(Some(wake)),
                Err(RecvTimeoutError::Timeout) => self.turn(None),
            }
        }
        self.end();
    }

    /// Takes what woke the driver, and does what is due.
    pub fn turn(&mut self, wake: Option<Wake>) {
        let session = self.session.clone();
        if session.is_broken() {
            return session.close_broken();
        }
        let taken = session.contain(0, || {
            if let Some(wake) = wake {
                trip("keeper", wake.name().as_bytes());
                self.hear(wake);
            }
            // However often the driver is woken, what has its time gets it.
            if self.looked_around_at.elapsed() >= TICK {
                self.looked_around_at = Instant::now();
                self.look_around();
            }
        });
        if taken.is_none() {
            session.contain(0, || {
                session.state().is_unjudged = true;
                self.tell(Event::Faulted);
            });
            session.close_broken();
        }
    }

    /// The session is over: what was counted is stored.
    pub fn end(&mut self) {
        let session = self.session.clone();
        session.contain(0, || self.flush());
    }

    fn hear(&mut self, wake: Wake) {
        match wake {
            Wake::Relist(list) => self.tell(Event::Wanted(list)),
            Wake::Initialized => self.tell(Event::Initialized),
            Wake::ListChanged(lists) => self.tell(Event::ListChanged(lists)),
            Wake::Answered { id, answer } => {
                if let Some(request) = self.forget_id(&id) {
                    self.tell(Event::Answered { request, answer });
                }
            }
            Wake::Published { changed } => self.tell_changed(&changed),
            Wake::Ask { entry, banner } => {
                let change = self.change_of(&entry);
                let hash = change.map(|change| change.after.as_ref().map(Entry::entry_hash));
                self.tell(Event::Asked { entry, banner, hash });
            }
            Wake::ClientAnswered { id, message } => {
                if let Some(question) = self.forget_id(&id) {
                    self.tell(Event::Said { question, said: read_answer(&message) });
                }
            }
            Wake::Admit => self.tell(Event::CheckWanted),
            Wake::Admitted(checked) => {
                let is_news = self.admit(*checked);
                self.tell(Event::Checked { is_news });
            }
            Wake::NotChecked => self.tell(Event::NotChecked),
            Wake::ClientGone | Wake::End => {}
        }
    }

    /// Tells the keeper what happened, and carries out what it commands.
    fn tell(&mut self, event: Event) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let glance = self.glance();
            let commands = self.keeper.on(event, &glance, Instant::now());
            let is_done = commands.is_empty();
            for command in commands {
                events.extend(self.carry_out(command));
            }
            if !is_done {
                events.push_back(Event::CarriedOut);
            }
        }
    }

    fn glance(&self) -> Glance {
        let state = self.session.state();
        let is_asked = self.session.settings.admission_max_age.is_some();
        let lists = ListKind::ALL.into_iter();
        let offered = state
            .handshake
            .as_deref()
            .map(|text| lists.filter(|list| is_offered(text, *list)).collect());
        Glance {
            is_closed: state.situation.admission.is_closed(),
            lacks_check: is_asked && state.checked.is_none(),
            is_greeted: state.handshake.is_some(),
            has_kept_greeting: state.kept_greeting.is_some(),
            is_greeting: state.requests.has_handshakes(),
            is_stateless: state.client.stateless_meta.is_some(),
            // A subscription may be open for as long as the session is, and keeps no server from answering.
            is_busy: state.requests.has_calls(),
            has_ended: state.requests.is_ended(),
            waited: state.requests.waited_lists(),
            asked: state.requests.asked_entries(),
            offered,
        }
    }

    /// Carries out one command. Returns what the keeper is to be told of it.
    fn carry_out(&mut self, command: Command) -> Option<Event> {
        match command {
            Command::List { request, list, cursor } => {
                return self.ask(request, list.method(), cursor.as_deref());
            }
            Command::Discover { request } => return self.ask(request, "server/discover", None),
            Command::Greet { request } => return self.greet(request),
            Command::GiveUp(request) => self.give_up(request),
            Command::BeginListing(list) => {
                let mut state = self.session.state();
                let freshness = state.freshness.entry(list).or_default();
                freshness.is_listing = true;
                freshness.is_stale = false;
                drop(state);
                self.session.tally.add(Counter::Relists);
            }
            Command::Judge { lists, is_news } => {
                let is_reliable = self.judge(lists, is_news);
                return Some(Event::Judged { is_reliable });
            }
            Command::EndListing { lists, is_reliable } => self.end_listing(lists, is_reliable),
            Command::FailListing { list, reason } => self.fail_listing(list, reason),
            Command::TakeDiscovery(result) => {
                let is_covered = self.session.take_discovery(result);
                return Some(Event::Discovered { is_covered });
            }
            Command::TakeLateGreeting(text) => {
                return Some(Event::GreetedLate(self.session.take_late_handshake(&text)));
            }
            Command::Check => {
                return (!self.checking.begin(&self.session)).then_some(Event::CheckNotBegun);
            }
            Command::DeliverHandshakes { before } => self.session.deliver_handshakes(before),
            Command::ReleaseUnadmitted => {
                let released = self.session.state().requests.release_unadmitted();
                released.iter().for_each(|key| self.session.resume_admitted(key));
            }
            Command::RefuseUnadmitted => self.session.refuse_unadmitted(),
            Command::RefuseWaiting(reason) => self.refuse_waiting(reason),
            Command::RefuseAll(reason) => {
                let waiting = {
                    let mut state = self.session.state();
                    for freshness in state.freshness.values_mut() {
                        freshness.is_listing = false;
                        freshness.is_stale = true;
                    }
                    state.requests.release_all()
                };
                waiting.iter().for_each(|key| self.session.refuse_unseen(key, reason));
            }
            Command::Announce => self.session.announce(),
            Command::TellOffered => self.tell_offered(),
            Command::Ask { question, banner } => {
                return self.question(question, &parameters(&banner, None));
            }
            Command::Show { question, entry } => {
                let Some(change) = self.change_of(&entry) else {
                    return Some(Event::NothingToShow { question });
                };
                return self.question(question, &parameters("", Some(&change)));
            }
            Command::Withdraw(question) => {
                if let Some(id) = self.forget_number(question) {
                    self.session.state().asked.remove(&id);
                }
            }
            Command::Approve { entry, hash } => self.session.approve_for(&entry, hash),
            Command::ReleaseAsked(entry) => {
                let timeout = self.session.settings.call_timeout;
                let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
                let calls = self.session.state().requests.release_asked(&entry, deadline);
                calls.iter().for_each(|key| self.session.resume(key));
            }
            Command::Remark(remark) => self.session.remark(&self.words_of(remark)),
            Command::End(why) => {
                self.session.remark(&format!("the server cannot be used in this session: {why}"));
                self.session.server_ended();
            }
        }
        None
    }

    fn words_of(&self, remark: Remark) -> String {
        match remark {
            Remark::NoStart => self.session.words_of_no_start(),
            Remark::CannotCheck => "the server's admission cannot be checked".to_owned(),
            Remark::GreetingRefused => {
                "the server is admitted now, and did not accept the client's greeting".to_owned()
            }
        }
    }

    /// What is due without being woken for it.
    fn look_around(&mut self) {
        if self.flushed_at.elapsed() >= FLUSH_PAUSE {
            self.flush();
        }
        self.session.end_overdue();
        self.tell(Event::Tick);
        self.notice_changes();
    }

    /// What people decide elsewhere is shown to the client also when it makes no call.
    fn notice_changes(&mut self) {
        let shared = self.session.shared_change();
        if shared.is_none() && self.looked_at.elapsed() < LOOK_PAUSE {
            return;
        }
        self.looked_at = Instant::now();
        let version = shared.or_else(|| self.session.judge().version().ok());
        if version.is_some() && version != self.version {
            let is_first = self.version.is_none();
            self.version = version;
            if !is_first && let Err(error) = self.session.look_again() {
                self.session.remark(&format!("the store cannot be read: {error}"));
            }
        }
    }

    /// What this session wrote itself is no change that it has to look for.
    pub(super) fn know(&mut self, version: Option<u64>) {
        if self.session.shared_change().is_none() {
            self.version = version;
        }
    }

    fn flush(&mut self) {
        self.flushed_at = Instant::now();
        let counts = self.session.tally.take();
        if counts.is_empty() {
            return;
        }
        let (stored, version) = {
            let mut judge = self.session.judge();
            (judge.add_counts(&counts, now()), judge.version().ok())
        };
        self.know(version);
        if let Err(error) = stored {
            self.session.remark(&format!("statistics could not be stored: {error}"));
        }
    }

    fn end_listing(&mut self, lists: Vec<Listed>, is_reliable: bool) {
        let released = {
            let mut state = self.session.state();
            let kinds: Vec<ListKind> = lists.iter().map(|listed| listed.list).collect();
            for Listed { list, begun, ttl } in lists {
                let freshness = state.freshness.entry(list).or_default();
                freshness.is_listing = false;
                freshness.ttl = ttl;
                if is_reliable {
                    freshness.listed_at = Some(begun);
                }
            }
            state.requests.release_listed(&kinds)
        };
        for key in released {
            match is_reliable {
                true => self.session.resume_listed(&key),
                false => self.session.refuse_unseen(&key, ReasonCode::Internal),
            }
        }
    }

    fn fail_listing(&mut self, list: ListKind, reason: ReasonCode) {
        let released = {
            let mut state = self.session.state();
            let freshness = state.freshness.entry(list).or_default();
            freshness.is_listing = false;
            freshness.is_stale = true;
            state.requests.release_listed(&[list])
        };
        released.iter().for_each(|key| self.session.end_unfetched(key, reason));
    }

    fn refuse_waiting(&mut self, reason: ReasonCode) {
        let waiting = {
            let mut state = self.session.state();
            let mut waiting = state.requests.release_listed(&ListKind::ALL);
            waiting.extend(state.requests.release_unadmitted());
            waiting
        };
        waiting.iter().for_each(|key| self.session.refuse_unseen(key, reason));
    }

    /// Sends a request of the gate's own.
    fn ask(
        &mut self,
        request: RequestNumber,
        method: &'static str,
        cursor: Option<&str>,
    ) -> Option<Event> {
        let Some(id) = self.new_id(request) else { return Some(without_id(request)) };
        let mut params = Vec::new();
        let meta = {
            let mut state = self.session.state();
            state.requests.add_own(id.clone().into_bytes());
            state.client.stateless_meta.clone()
        };
        if let Some(cursor) = cursor {
            params.push(format!("\"cursor\":{}", json!(cursor)));
        }
        if let Some(meta) = &meta {
            params.push(format!("\"_meta\":{}", own_meta(meta)));
        }
        let frame = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{}}}}}"#,
            params.join(",")
        );
        let version = meta.as_deref().and_then(crate::session::version_in);
        let message = OwnMessage { frame, method, id: Some(id), protocol_version: version };
        self.session.errand(Errand::Send(message));
        None
    }

    /// Sends the client's greeting, which the gate answered itself, to the server.
    fn greet(&mut self, request: RequestNumber) -> Option<Event> {
        let kept = self.session.state().kept_greeting.clone();
        let (Some(kept), Some(id)) = (kept, self.new_id(request)) else {
            return Some(without_id(request));
        };
        let method = "initialize";
        let params = String::from_utf8_lossy(&kept.params).into_owned();
        let frame =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        self.session.state().requests.add_own(id.clone().into_bytes());
        let own = OwnMessage { frame, method, id: Some(id), protocol_version: None };
        self.session.errand(Errand::Send(own));
        None
    }

    fn give_up(&mut self, request: RequestNumber) {
        if let Some(id) = self.forget_number(request) {
            self.session.state().requests.end_own(&id);
            self.session.errand(Errand::GiveUp { id, mark: None });
        }
    }

    fn change_of(&self, entry: &EntryId) -> Option<Judgement> {
        let seen = self.session.state().seen.clone();
        self.session.judge().change_of(&seen, entry, now()).ok().flatten()
    }

    /// Asks the person at the client.
    fn question(&mut self, question: RequestNumber, params: &serde_json::Value) -> Option<Event> {
        let Some(id) = self.new_id(question) else {
            return Some(Event::NothingToShow { question });
        };
        self.session.state().asked.insert(id.clone().into_bytes());
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"elicitation/create","params":{params}}}"#
        );
        self.session.tell_client(message.as_bytes());
        None
    }

    /// A new id of our own, with its quotes: only the server or client that it is sent to can answer it.
    fn new_id(&mut self, number: RequestNumber) -> Option<String> {
        let mut random = [0_u8; 16];
        getrandom::fill(&mut random).ok()?;
        let id = format!("\"hp-{}\"", hex::encode(random));
        self.ids.insert(number, id.clone().into_bytes());
        self.numbers.insert(id.clone().into_bytes(), number);
        Some(id)
    }

    fn forget_id(&mut self, id: &[u8]) -> Option<RequestNumber> {
        let number = self.numbers.remove(id)?;
        self.ids.remove(&number);
        Some(number)
    }

    fn forget_number(&mut self, number: RequestNumber) -> Option<Vec<u8>> {
        let id = self.ids.remove(&number)?;
        self.numbers.remove(&id);
        Some(id)
    }

    /// Tells the client which lists a server has that was greeted late.
    fn tell_offered(&mut self) {
        let offered: Vec<ListKind> = {
            let state = self.session.state();
            let handshake = state.handshake.as_deref().filter(|_| state.client.is_initialized);
            let is_offered =
                |list: &ListKind| handshake.is_some_and(|text| is_offered(text, *list));
            ListKind::ALL.into_iter().filter(is_offered).collect()
        };
        self.tell_changed(&offered);
    }

    /// Tells the client to list again: what the server said changed, or what it is shown.
    fn tell_changed(&mut self, changed: &[ListKind]) {
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
            self.session.tell_client(message.as_bytes());
        }
    }
}

/// A request that could not be made because there is no randomness for its id.
fn without_id(request: RequestNumber) -> Event {
    Event::Answered { request, answer: OwnAnswer::Failed(ReasonCode::Internal) }
}

/// What of a client's `_meta` goes with requests of our own: what the protocol asks for with each. The rest is about the
/// client's request, a token for its progress above all.
fn own_meta(meta: &[u8]) -> String {
    const OWN: [&str; 3] = ["protocolVersion", "clientInfo", "clientCapabilities"];
    let is_own = |name: &str| {
        name.strip_prefix("io.modelcontextprotocol/").is_some_and(|name| OWN.contains(&name))
    };
    let own = members(meta).filter(|(name, _)| is_own(name));
    let own =
        own.map(|(name, value)| format!("{}:{}", json!(name), String::from_utf8_lossy(value)));
    format!("{{{}}}", own.collect::<Vec<_>>().join(","))
}
