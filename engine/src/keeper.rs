//! The keeper looks after the view: it asks the server for its lists, has them judged, lets go what waited for them, and
//! notices what people decide in other processes.
//!
//! It is the only one that makes requests of the gate's own. Their ids are unguessable.

use crate::admission::{Checked, Checker};
use crate::errands::{Errand, OwnMessage};
use crate::reason::ReasonCode;
use crate::recorder::now;
use crate::relist::{Listing, Step};
use crate::session::boundary::trip;
use crate::session::state::Pending;
use crate::session::{OwnAnswer, Session};
use contract::surface::{Entry, EntryId, ListKind};
use gate::counters::Counter;
use gate::judge::Judgement;
use ledger::record::OutcomeStatus;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use wire::Answer;
use wire::envelope::{OwnedId, members};
use wire::listing::{ListOutcome, is_offered};

mod admission;
pub(crate) mod asking;
mod finishing;
mod notes;

use admission::Admissions;
use asking::{MAX_QUESTIONS, Question, Said, parameters, read_answer};
use notes::Notes;

/// How often the keeper looks up without being woken.
const TICK: Duration = Duration::from_millis(250);
/// A list is asked for at most this often without a call that waits for it.
const RELIST_PAUSE: Duration = Duration::from_secs(1);
/// How often counts are stored.
const FLUSH_PAUSE: Duration = Duration::from_secs(10);

/// What wakes the keeper.
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
    /// What it is called where it is only named.
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

/// How a request ends whose time is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Nobody waits for it: it is forgotten.
    Abandoned,
    /// The client is told, the server is not.
    Quiet,
    /// Both are told.
    Cancelled,
}

/// A handshake of ours: `server/discover` in the era that has no greeting, or the client's greeting that was kept.
#[derive(Debug)]
struct Discovery {
    /// Its id, with its quotes.
    request: Vec<u8>,
    begun: Instant,
    /// It is the client's `initialize`, sent late.
    is_greeting: bool,
}

/// What of the way to the server is part of its surface; made beside the start.
pub type OriginSource = Box<dyn FnMut() -> Option<Entry> + Send>;

pub struct Keeper {
    session: Arc<Session>,
    wakes: Receiver<Wake>,
    origin: OriginSource,
    listings: BTreeMap<ListKind, Listing>,
    outcomes: BTreeMap<ListKind, ListOutcome>,
    /// Lists that were asked for since the keeper last had all of them.
    finished: Vec<(ListKind, Instant)>,
    /// Those of them that could not be fetched.
    failed: BTreeMap<ListKind, ReasonCode>,
    wanted: BTreeSet<ListKind>,
    last_begun: BTreeMap<ListKind, Instant>,
    discovery: Option<Discovery>,
    has_discovered: bool,
    /// Lists whose change the client is still to be told.
    untold: BTreeSet<ListKind>,
    /// What the person at the client is asked, by the id of the request.
    questions: HashMap<Vec<u8>, Question>,
    notes: Notes,
    requests: u64,
    flushed_at: Instant,
    version: Option<u64>,
    looked_at: Instant,
    looked_around_at: Instant,
    admission: Admissions,
}

impl std::fmt::Debug for Keeper {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Keeper").field("listings", &self.listings).finish_non_exhaustive()
    }
}

impl Keeper {
    pub fn new(session: Arc<Session>, wakes: Receiver<Wake>, origin: OriginSource) -> Keeper {
        let now = Instant::now();
        Keeper {
            session,
            wakes,
            origin,
            listings: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            finished: Vec::new(),
            failed: BTreeMap::new(),
            wanted: BTreeSet::new(),
            last_begun: BTreeMap::new(),
            discovery: None,
            has_discovered: false,
            untold: BTreeSet::new(),
            questions: HashMap::new(),
            notes: Notes::default(),
            requests: 0,
            flushed_at: now,
            version: None,
            looked_at: now,
            looked_around_at: now,
            admission: Admissions::default(),
        }
    }

    /// Has the server's admission checked by this, whenever it has to be.
    pub fn admitting(mut self, checker: Option<Checker>) -> Keeper {
        self.admission.checker = checker;
        self
    }

    /// Works until the session is over.
    pub fn run(mut self) {
        let session = self.session.clone();
        loop {
            let begun = Instant::now();
            let wake = match self.wakes.recv_timeout(TICK) {
                Ok(Wake::End) | Err(RecvTimeoutError::Disconnected) => break,
                Ok(wake) => Some(wake),
                Err(RecvTimeoutError::Timeout) => None,
            };
            if session.is_broken() {
                session.close_broken();
                continue;
            }
            if session.contain(0, || self.turn(wake, begun)).is_none() {
                session.contain(0, || self.begin_anew());
                session.close_broken();
            }
        }
        session.contain(0, || self.flush());
    }

    fn turn(&mut self, wake: Option<Wake>, begun: Instant) {
        if let Some(wake) = wake {
            trip("keeper", wake.name().as_bytes());
            self.hear(wake);
        }
        // However often the keeper is woken, what has its time gets it.
        if self.looked_around_at.elapsed() >= TICK {
            self.looked_around_at = Instant::now();
            self.look_around();
        }
        self.pass_time(begun.elapsed());
        self.begin_check();
        self.begin_wanted();
        self.session.state().is_resuming = false;
    }

    /// After a panic: what was under way may never come to its end, so all that waits for it is refused, and the next call
    /// has everything asked for anew.
    fn begin_anew(&mut self) {
        self.listings.clear();
        self.finished.clear();
        self.failed.clear();
        self.wanted.clear();
        self.questions.clear();
        self.discovery = None;
        self.admission.is_wanted = false;
        let waiting = {
            let mut state = self.session.state();
            state.own.clear();
            state.asked.clear();
            state.is_unjudged = true;
            for freshness in state.freshness.values_mut() {
                freshness.is_listing = false;
                freshness.is_stale = true;
            }
            state.release_all()
        };
        for id in waiting {
            self.session.refuse_unseen(&id, ReasonCode::Internal);
        }
        self.session.state().is_resuming = false;
    }

    fn hear(&mut self, wake: Wake) {
        match wake {
            Wake::Relist(list) => {
                self.wanted.insert(list);
            }
            Wake::Initialized => self.wanted.extend(ListKind::ALL),
            Wake::ListChanged(lists) => {
                self.untold.extend(&lists);
                self.wanted.extend(lists);
            }
            Wake::Answered { id, answer } => self.answered(&id, answer),
            Wake::Published { changed } => self.tell_changed(changed),
            Wake::Ask { entry, banner } => self.question(&entry, &banner),
            Wake::ClientAnswered { id, message } => self.client_answered(&id, &message),
            Wake::Admit => self.admission.is_wanted = true,
            Wake::Admitted(checked) => self.admitted(*checked),
            Wake::NotChecked => self.not_checked(),
            Wake::ClientGone | Wake::End => {}
        }
    }

    /// What nobody wakes the keeper for.
    fn look_around(&mut self) {
        if self.flushed_at.elapsed() >= FLUSH_PAUSE {
            self.flush();
        }
        self.end_overdue();
        self.end_discovery();
        self.end_questions();
        self.notice_changes();
        self.check_again();
    }

    /// What people decide elsewhere is shown to the client also when it makes no call.
    fn notice_changes(&mut self) {
        if self.looked_at.elapsed() < RELIST_PAUSE {
            return;
        }
        self.looked_at = Instant::now();
        let version = self.session.judge().version().ok();
        if version.is_some() && version != self.version {
            let is_first = self.version.is_none();
            self.version = version;
            if !is_first && let Err(error) = self.session.look_again() {
                self.session.remark(&format!("the store cannot be read: {error}"));
            }
        }
    }

    fn flush(&mut self) {
        self.flushed_at = Instant::now();
        let counts = self.session.tally.take();
        if counts.is_empty() {
            return;
        }
        let mut judge = self.session.judge();
        if let Err(error) = judge.add_counts(&counts, now()) {
            self.session.remark(&format!("statistics could not be stored: {error}"));
        }
        self.version = judge.version().ok();
    }

    fn end_overdue(&mut self) {
        let now = Instant::now();
        let overdue: Vec<_> = {
            let state = self.session.state();
            let is_over =
                |deadline: Option<Instant>| deadline.is_some_and(|deadline| deadline <= now);
            let pending = state.pending.iter().filter(|(_, pending)| is_over(pending.deadline));
            let end_of = |pending: &Pending| match pending {
                Pending { is_cancelled: true, .. } => End::Abandoned,
                // The protocol has it that a greeting is never cancelled.
                Pending { is_handshake: true, .. } => End::Quiet,
                Pending { .. } => End::Cancelled,
            };
            let overdue = |(id, pending): (&OwnedId, &Pending)| {
                (id.clone(), end_of(pending), pending.receipt_id)
            };
            pending.map(overdue).collect()
        };
        let unreadable = self.session.state().overdue_doubts(now);
        for key in unreadable {
            self.session.fail(&key, ReasonCode::UpstreamUnreadable, OutcomeStatus::Error);
        }
        if let Some(timeout) = self.session.settings.call_timeout {
            let waiting = self.session.state().overdue(now, timeout);
            for id in waiting {
                self.session.refuse_unseen(&id, ReasonCode::Timeout);
            }
        }
        for (id, end, receipt_id) in overdue {
            match end {
                End::Abandoned => {
                    self.session.abandon(id.key());
                    continue;
                }
                End::Quiet => {
                    // Whoever is told may greet again at once, with the same id.
                    let mark = Some(receipt_id.0);
                    self.session.errand(Errand::GiveUp { id: id.raw().to_vec(), mark });
                    self.session.time_out(id.key());
                    continue;
                }
                End::Cancelled => self.session.time_out(id.key()),
            }
            let method = "notifications/cancelled";
            let id = String::from_utf8_lossy(id.raw()).into_owned();
            let frame = format!(
                r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"requestId":{id},"reason":"timeout"}}}}"#
            );
            let own = OwnMessage { frame, method, id: None, protocol_version: None };
            self.session.errand(Errand::Send(own));
        }
    }

    /// A server that does not even say who it is in time: nobody waits for it any longer. The next call asks again.
    fn end_discovery(&mut self) {
        let patience = self.session.settings.start_timeout;
        let is_over = |discovery: &mut Discovery| discovery.begun.elapsed() >= patience;
        let Some(discovery) = self.discovery.take_if(is_over) else { return };
        self.session.state().own.remove(&discovery.request);
        self.session.errand(Errand::GiveUp { id: discovery.request, mark: None });
        self.session.remark(&self.session.words_of_no_start());
        self.refuse_waiting(ReasonCode::Timeout);
    }

    /// Refuses everything that waits for the server to say what it is. The next call asks again.
    fn refuse_waiting(&mut self, reason: ReasonCode) {
        self.wanted.clear();
        self.admission.is_wanted = false;
        let waiting = {
            let mut state = self.session.state();
            let mut waiting = state.release_listed(&ListKind::ALL);
            waiting.extend(state.release_unadmitted());
            waiting
        };
        for id in waiting {
            self.session.refuse_unseen(&id, reason);
        }
    }

    /// Gives up lists whose time is over. While calls are in flight the server may be busy with them.
    fn pass_time(&mut self, time: Duration) {
        // A subscription may be open for as long as the session is, and keeps no server from answering.
        let is_busy = || self.session.state().pending.values().any(|pending| pending.is_call);
        if self.listings.is_empty() || is_busy() {
            return;
        }
        let ended: Vec<_> = self
            .listings
            .iter_mut()
            .filter_map(|(list, listing)| listing.wait(time).then_some(*list))
            .collect();
        for list in ended {
            let request = self.listings.get(&list).map(|listing| listing.request.clone());
            let give_up = |id| self.session.errand(Errand::GiveUp { id, mark: None });
            request.into_iter().for_each(give_up);
            self.fail(list, ReasonCode::Timeout);
        }
    }

    /// Begins what is wanted, as far as it can be asked for now.
    fn begin_wanted(&mut self) {
        // Nothing is asked of a server that is not admitted, or whose handshake is still to be checked.
        let is_closed = {
            let state = self.session.state();
            let is_asked = self.session.settings.admission_max_age.is_some();
            state.situation.admission.is_closed() || (is_asked && state.checked.is_none())
        };
        if self.wanted.is_empty() || is_closed || !self.is_met() {
            return;
        }
        // A server is judged as a whole, so a list that is not known yet is asked for with any other.
        let is_unknown = |list: &ListKind| !self.outcomes.contains_key(list);
        self.wanted.extend(ListKind::ALL.into_iter().filter(is_unknown));
        let (handshake, waited): (Option<Arc<str>>, BTreeSet<ListKind>) = {
            let state = self.session.state();
            (state.handshake.clone(), state.waited_lists())
        };
        let now = Instant::now();
        for list in std::mem::take(&mut self.wanted) {
            if self.listings.contains_key(&list) {
                // It was wanted after it was begun only where the server said so.
                if self.untold.contains(&list) {
                    self.wanted.insert(list);
                }
                continue;
            }
            let since = self.last_begun.get(&list).map(|at| now.saturating_duration_since(*at));
            let is_waited_for = waited.contains(&list);
            let is_urgent =
                is_waited_for || (!self.outcomes.contains_key(&list) && !waited.is_empty());
            if !is_urgent && since.is_some_and(|since| since < RELIST_PAUSE) {
                self.wanted.insert(list);
                continue;
            }
            let is_declared = handshake.as_deref().is_none_or(|text| is_offered(text, list));
            if !is_declared && !is_waited_for {
                self.outcomes.entry(list).or_insert(ListOutcome::NotOffered);
                self.finished.push((list, now));
                continue;
            }
            self.begin(list, now);
        }
        self.finish_all();
    }

    /// Whether the server can be asked for anything: it was greeted, or needs no greeting.
    fn is_met(&mut self) -> bool {
        let (is_greeted, is_kept, meta, is_greeting) = {
            let state = self.session.state();
            let is_greeting = state.pending.values().any(|pending| pending.is_handshake);
            let (is_greeted, is_kept) = (state.handshake.is_some(), state.kept_greeting.is_some());
            (is_greeted, is_kept, state.client.stateless_meta.clone(), is_greeting)
        };
        if is_greeted || self.has_discovered {
            return true;
        }
        if is_kept {
            if self.discovery.is_none() {
                self.greet();
            }
            return false;
        }
        match meta {
            Some(_) if self.discovery.is_some() => false,
            Some(_) => {
                let request = self.ask("server/discover", None);
                let (begun, is_greeting) = (Instant::now(), false);
                self.discovery = request.map(|request| Discovery { request, begun, is_greeting });
                false
            }
            None => !is_greeting,
        }
    }

    fn begin(&mut self, list: ListKind, now: Instant) {
        self.last_begun.insert(list, now);
        self.untold.remove(&list);
        {
            let mut state = self.session.state();
            let freshness = state.freshness.entry(list).or_default();
            freshness.is_listing = true;
            freshness.is_stale = false;
        }
        self.session.tally.add(Counter::Relists);
        let mut listing = Listing::new(list, now);
        match self.ask(list.method(), None) {
            Some(request) => {
                listing.request = request;
                self.listings.insert(list, listing);
            }
            None => self.fail(list, ReasonCode::Internal),
        }
    }

    /// Sends a request of our own; answers its id with quotes.
    fn ask(&mut self, method: &'static str, cursor: Option<&str>) -> Option<Vec<u8>> {
        let id = self.new_id()?;
        let mut params = Vec::new();
        let meta = {
            let mut state = self.session.state();
            state.own.insert(id.clone().into_bytes());
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
        let message = OwnMessage { frame, method, id: Some(id.clone()), protocol_version: version };
        self.session.errand(Errand::Send(message));
        Some(id.into_bytes())
    }

    fn answered(&mut self, id: &[u8], answer: OwnAnswer) {
        if let Some(discovery) = self.discovery.take_if(|discovery| discovery.request == id) {
            if discovery.is_greeting {
                return self.greeted(&answer);
            }
            self.has_discovered = true;
            if let OwnAnswer::Answer(Answer::Result(result)) = answer {
                let mut state = self.session.state();
                let is_covered =
                    state.checked.as_ref().is_some_and(|checked| checked.covers(&result));
                state.handshake.get_or_insert(result);
                if !is_covered {
                    state.checked = None;
                    self.admission.is_wanted = self.session.settings.admission_max_age.is_some();
                }
            }
            return;
        }
        let found = self.listings.iter().find(|(_, listing)| listing.request == id);
        let Some(list) = found.map(|(list, _)| *list) else { return };
        let Some(listing) = self.listings.get_mut(&list) else { return };
        match listing.hear(answer) {
            Step::Done(outcome) => self.finish(list, outcome),
            Step::Failed(reason) => self.fail(list, reason),
            Step::Ask(cursor) => match self.ask(list.method(), Some(&cursor)) {
                Some(request) => {
                    if let Some(listing) = self.listings.get_mut(&list) {
                        listing.request = request;
                    }
                }
                None => self.fail(list, ReasonCode::Internal),
            },
        }
    }

    /// Asks about a held entry. Further calls of it share the question. Where the call went on meanwhile, with the answer to
    /// an earlier one, nobody would wait for what is said.
    fn question(&mut self, entry: &EntryId, banner: &str) {
        let is_open = self.questions.values().any(|open| open.entry == *entry);
        if is_open || !self.session.state().is_asked_about(entry) {
            return;
        }
        let change = self.change_of(entry);
        let Some(change) = change.filter(|_| self.questions.len() < MAX_QUESTIONS) else {
            return self.resume_asked(entry);
        };
        let question = Question::of(&change, Instant::now());
        self.ask_client(&parameters(banner, None), question);
    }

    fn change_of(&self, entry: &EntryId) -> Option<Judgement> {
        let seen = self.session.state().seen.clone();
        self.session.judge().change_of(&seen, entry, now()).ok().flatten()
    }

    fn ask_client(&mut self, params: &serde_json::Value, question: Question) {
        let Some(id) = self.new_id() else {
            return self.resume_asked(&question.entry);
        };
        self.session.state().asked.insert(id.clone().into_bytes());
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"elicitation/create","params":{params}}}"#
        );
        self.questions.insert(id.into_bytes(), question);
        self.session.tell_client(message.as_bytes());
    }

    fn client_answered(&mut self, id: &[u8], message: &[u8]) {
        let Some(question) = self.questions.remove(id) else { return };
        match read_answer(message) {
            Said::Keep => {}
            Said::Show => {
                if let Some(change) = self.change_of(&question.entry) {
                    return self.ask_client(&parameters("", Some(&change)), question);
                }
            }
            Said::Approve => self.session.approve_for(&question.entry, question.hash),
        }
        self.resume_asked(&question.entry);
    }

    /// Goes on with the calls of an entry that a person was asked about.
    fn resume_asked(&self, entry: &EntryId) {
        let calls = self.session.state().release_asked(entry);
        calls.into_iter().for_each(|id| self.session.resume_soon(id));
    }

    /// Nobody answered: the calls stay held.
    fn end_questions(&mut self) {
        let now = Instant::now();
        let is_over = |question: &Question| question.deadline <= now;
        let over: Vec<_> = self
            .questions
            .iter()
            .filter(|(_, open)| is_over(open))
            .map(|(id, _)| id.clone())
            .collect();
        for id in over {
            self.session.state().asked.remove(&id);
            if let Some(question) = self.questions.remove(&id) {
                self.resume_asked(&question.entry);
            }
        }
    }

    /// A new id of our own, with its quotes: nobody can answer it who has not read it.
    fn new_id(&mut self) -> Option<String> {
        let mut random = [0_u8; 16];
        getrandom::fill(&mut random).ok()?;
        self.requests += 1;
        Some(format!("\"hp-{}-{}\"", hex::encode(random), self.requests))
    }

    /// Tells the client to list again: what the server said changed, or what it is shown.
    fn tell_changed(&mut self, changed: Vec<ListKind>) {
        let mut told = BTreeSet::new();
        for list in changed {
            told.insert(match list {
                ListKind::Tools => "tools",
                ListKind::Prompts => "prompts",
                ListKind::Resources | ListKind::ResourceTemplates => "resources",
            });
        }
        for kind in told {
            let message =
                format!(r#"{{"jsonrpc":"2.0","method":"notifications/{kind}/list_changed"}}"#);
            self.session.tell_client(message.as_bytes());
        }
    }
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
