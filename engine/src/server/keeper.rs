//! The rules of re-listing, of admission and of questions to a person, as a state machine: it
//! receives events and returns commands.
//!
//! It depends only on its arguments: no I/O, no lock, no clock, no randomness. [`super::driver`]
//! passes it each event with a [`Glance`] at the session and its view, and carries out the
//! commands. Each session with something in progress has a keeper; sessions that share a view share
//! its listings.

mod checking;
mod finishing;

use super::asking::{About, MAX_QUESTIONS, Question, Said};
use crate::judge::Seen;
use crate::reason::ReasonCode;
use crate::requests::{CallAnswer, ParkedCall};
use crate::session::{LateGreeting, OwnAnswer};
use checking::Admissions;
use contract::hash::EntryHash;
use contract::surface::{EntryId, ListKind};
use finishing::Judging;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::Answer;
use wire::listing::{LIST_PATIENCE, ListOutcome, Listing, Step};

/// The shortest interval between requests for a list that no call waits for.
const RELIST_PAUSE: Duration = Duration::from_secs(1);

/// The settings of a keeper.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeeperSettings {
    /// The timeout for a handshake.
    pub(crate) start_timeout: Duration,
    /// Whether the server's admission is checked.
    pub(crate) checks_admission: bool,
    /// Whether the handshake precedes the admission check.
    pub(crate) greets_before_check: bool,
    /// The timeout for a person's answer to a question.
    pub(crate) answer_patience: Duration,
}

/// Identifies one of the gate's own requests, or a question to the client. The driver assigns the
/// unguessable id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RequestNumber(u64);

/// An event.
#[derive(Debug)]
pub(crate) enum Event {
    /// A request waits for this list.
    Wanted(ListKind),
    /// The client is initialized.
    Initialized,
    /// The server announced that these lists changed.
    ListChanged(Vec<ListKind>),
    /// The server answered one of the gate's own requests, or the request could not be sent.
    Answered { request: RequestNumber, answer: OwnAnswer },
    /// A call of an entry is held, and the person at the client may be asked. `hash` is what would
    /// be approved; `None` if the change no longer exists. `can_validate` is set if a behavior test
    /// is possible and could settle the change.
    Asked { entry: EntryId, banner: String, hash: Option<Option<EntryHash>>, can_validate: bool },
    /// The person at the client must be asked to allow a call.
    CallAsked { call: ParkedCall, message: String },
    /// The person at the client answered a question.
    Said { question: RequestNumber, said: Said },
    /// The change to show no longer exists.
    NothingToShow { question: RequestNumber },
    /// The test that the person requested has ended, or is not possible.
    Validated { question: RequestNumber },
    /// A request waits for a check of the server's admission.
    CheckWanted,
    /// The server's admission was checked, with an outcome that applies.
    Checked(Check),
    /// A check that another session started has ended, and does not cover this session's handshake.
    NotCovered,
    /// The check ended without an outcome.
    NotChecked,
    /// The check could not be started.
    CheckNotBegun,
    /// [`Command::Judge`] was carried out. `is_reliable` says whether calls may be decided on the
    /// view.
    Judged { is_reliable: bool },
    /// [`Command::TakeDiscovery`] was carried out. `is_covered` says whether the last admission
    /// check covers it.
    Discovered { is_covered: bool },
    /// [`Command::TakeLateGreeting`] was carried out.
    GreetedLate(LateGreeting),
    /// The session is shown another view, so the lists fetched for the previous one do not apply.
    OtherView,
    /// Time passed.
    Tick,
    /// The commands of the last event were carried out.
    CarriedOut,
    /// A panic in the driver: operations in progress may never complete.
    Faulted,
}

/// A command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Request a list from the server, at `cursor`.
    List {
        request: RequestNumber,
        list: ListKind,
        cursor: Option<String>,
    },
    /// Send `server/discover`.
    Discover {
        request: RequestNumber,
    },
    /// Send the client's `initialize`, which the gate has already answered itself.
    Greet {
        request: RequestNumber,
    },
    /// Stop waiting for the answer to a request.
    GiveUp(RequestNumber),
    /// Start a re-list, which calls that need this list wait for.
    BeginListing(ListKind),
    /// Store a fetched list. It is judged with the others.
    Keep {
        list: ListKind,
        outcome: ListOutcome,
    },
    /// Judge what the server shows now, and publish the outcome. `is_news` means that it must be
    /// judged although no list changed.
    Judge {
        is_news: bool,
    },
    /// These lists were requested at the given times, and have been judged. What waited for them
    /// continues, or is refused if the view is not reliable.
    EndListing {
        lists: Vec<Listed>,
        is_reliable: bool,
    },
    /// A list could not be fetched: it is stale, and what waited for it is refused for this reason.
    FailListing {
        list: ListKind,
        reason: ReasonCode,
    },
    /// Store the response to `server/discover`.
    TakeDiscovery(Arc<str>),
    /// Handle the response to a delayed handshake.
    TakeLateGreeting(Arc<str>),
    /// Check the server's admission.
    Check,
    /// Show the client the handshake responses that arrived before the check was started.
    DeliverHandshakes {
        before: Instant,
    },
    /// Resume what waited for the check.
    ReleaseUnadmitted,
    /// Refuse what waited for the check, which ended without an outcome.
    RefuseUnadmitted,
    /// Refuse everything that waits for a list or for the check.
    RefuseWaiting(ReasonCode),
    /// Mark every list as stale, and refuse everything that waits, even for a person's answer.
    /// Requests that arrive meanwhile are not refused.
    RefuseAll(ReasonCode),
    /// Send `initialized` to a server that was admitted late.
    Announce,
    /// Notify the client of the lists of a server whose handshake was delayed.
    TellOffered,
    /// Ask the person at the client about a held entry.
    Ask {
        question: RequestNumber,
        banner: String,
        can_validate: bool,
    },
    /// Ask the person at the client to allow a call.
    AskCall {
        question: RequestNumber,
        message: String,
    },
    /// Ask again, showing the complete change.
    Show {
        question: RequestNumber,
        entry: EntryId,
    },
    /// Test the tool's behavior, and report [`Event::Validated`] when that is done.
    Validate {
        question: RequestNumber,
        entry: EntryId,
    },
    /// Stop waiting for the answer to a question.
    Withdraw(RequestNumber),
    /// The person at the client approved an entry as it was when they were asked.
    Approve {
        entry: EntryId,
        hash: Option<EntryHash>,
    },
    /// Resume the calls that a person was asked about.
    ReleaseAsked(EntryId),
    /// Resume a call that the person at the client was asked to allow.
    ReleaseCall {
        call: ParkedCall,
        answer: CallAnswer,
    },
    Remark(Remark),
    /// The server can no longer be used in this session.
    End(&'static str),
}

/// A check of the server's admission that has an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Check {
    /// When the check read the handshake.
    pub(crate) began: Instant,
    /// The outcome differs from that of the last check.
    pub(crate) is_news: bool,
    /// Whether this session repeats the check while the server is not admitted.
    pub(crate) is_leader: bool,
}

/// A message for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remark {
    /// The server did not answer its first request in time.
    NoStart,
    CannotCheck,
    GreetingRefused,
}

/// A fetched list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) list: ListKind,
    /// When it was requested.
    pub(crate) begun: Instant,
    /// How long it stays valid according to the server.
    pub(crate) ttl: Option<Duration>,
}

/// The state of the session at the time of an event.
#[derive(Debug, Clone, Default)]
pub(crate) struct Glance {
    /// Nothing of the server may be used, because it is not admitted.
    pub(crate) is_closed: bool,
    /// Admission is checked, and there is no valid outcome.
    pub(crate) lacks_check: bool,
    /// The server responded to a handshake.
    pub(crate) is_greeted: bool,
    /// The gate answered the client's handshake, and the server has not received it yet.
    pub(crate) has_kept_greeting: bool,
    /// The client's handshake was sent to the server.
    pub(crate) is_greeting: bool,
    /// The client uses the stateless revision.
    pub(crate) is_stateless: bool,
    /// The server has pending calls, which may prevent it from answering a list request.
    pub(crate) is_busy: bool,
    /// The server has ended.
    pub(crate) has_ended: bool,
    /// The lists that requests wait for.
    pub(crate) waited: BTreeSet<ListKind>,
    /// The entries whose calls wait for a person's decision.
    pub(crate) asked: BTreeSet<EntryId>,
    /// The lists that the handshake declares; `None` before there is a handshake.
    pub(crate) offered: Option<BTreeSet<ListKind>>,
    /// What the server was last judged by in this view.
    pub(crate) seen: Arc<Seen>,
    /// The lists fetched since then by any session of the view.
    pub(crate) fetched: BTreeMap<ListKind, ListOutcome>,
    /// The lists that another session of the view is fetching.
    pub(crate) fetched_by_others: BTreeSet<ListKind>,
    /// The lists of the view that calls may currently be decided on.
    pub(crate) fresh: BTreeSet<ListKind>,
    /// When each list was last requested in this view.
    pub(crate) begun: BTreeMap<ListKind, Instant>,
}

/// A held entry that the person at the client may be asked about.
struct Asked {
    entry: EntryId,
    banner: String,
    hash: Option<Option<EntryHash>>,
    can_validate: bool,
}

/// A handshake of the gate's own.
#[derive(Debug)]
struct Handshake {
    request: RequestNumber,
    begun: Instant,
    /// It is the client's `initialize`, sent late.
    is_greeting: bool,
}

/// A list that is being requested.
#[derive(Debug)]
struct OpenListing {
    /// The pending request.
    request: RequestNumber,
    pages: Listing,
    begun: Instant,
    /// How long it has been waited for while no call was in flight.
    waited: Duration,
}

#[derive(Debug)]
pub(crate) struct Keeper {
    settings: KeeperSettings,
    listings: BTreeMap<ListKind, OpenListing>,
    /// The lists fetched with this event.
    outcomes: BTreeMap<ListKind, ListOutcome>,
    /// The server must be judged again, even if no list changed.
    has_news: bool,
    /// Lists fetched since the keeper last had all of them.
    finished: Vec<(ListKind, Instant)>,
    /// Lists that could not be fetched.
    failed: BTreeMap<ListKind, ReasonCode>,
    wanted: BTreeSet<ListKind>,
    handshake: Option<Handshake>,
    has_discovered: bool,
    /// Lists that the server announced as changed, and that were not requested since.
    changed: BTreeSet<ListKind>,
    questions: BTreeMap<RequestNumber, Question>,
    admission: Admissions,
    judging: Option<Judging>,
    requests: u64,
    /// The time of the last event.
    told_at: Instant,
}

impl Keeper {
    pub(crate) fn new(settings: KeeperSettings, now: Instant) -> Keeper {
        Keeper {
            settings,
            listings: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            has_news: false,
            finished: Vec::new(),
            failed: BTreeMap::new(),
            wanted: BTreeSet::new(),
            handshake: None,
            has_discovered: false,
            changed: BTreeSet::new(),
            questions: BTreeMap::new(),
            admission: Admissions::default(),
            judging: None,
            requests: 0,
            told_at: now,
        }
    }

    /// Handles an event. The caller carries out the commands in order and then passes
    /// [`Event::CarriedOut`], until there are no more commands.
    #[must_use]
    pub(crate) fn on(&mut self, event: Event, glance: &Glance, now: Instant) -> Vec<Command> {
        let mut commands = Vec::new();
        let passed = now.saturating_duration_since(self.told_at);
        self.told_at = self.told_at.max(now);
        self.outcomes.clear();
        self.hear(event, glance, now, &mut commands);
        self.pass_time(passed, glance, &mut commands);
        // Commands change the glance, so start nothing new before they are carried out.
        if commands.is_empty() {
            self.begin_check(glance, now, &mut commands);
            self.begin_wanted(glance, now, &mut commands);
        }
        if commands.is_empty() {
            self.end_unwanted(glance, &mut commands);
            self.finish_all(glance, now, &mut commands);
        }
        commands
    }

    fn hear(&mut self, event: Event, glance: &Glance, now: Instant, out: &mut Vec<Command>) {
        match event {
            Event::Wanted(list) => {
                self.wanted.insert(list);
            }
            Event::Initialized => self.wanted.extend(ListKind::ALL),
            Event::ListChanged(lists) => {
                self.changed.extend(&lists);
                self.wanted.extend(lists);
            }
            Event::Answered { request, answer } => {
                self.answered(request, answer, glance, now, out);
            }
            Event::Asked { entry, banner, hash, can_validate } => {
                let asked = Asked { entry, banner, hash, can_validate };
                self.asked(asked, glance, now, out);
            }
            Event::CallAsked { call, message } => self.call_asked(call, message, now, out),
            Event::Said { question, said } => self.said(question, said, out),
            Event::NothingToShow { question } | Event::Validated { question } => {
                self.end_question(question, CallAnswer::Unasked, out);
            }
            Event::CheckWanted => self.admission.is_wanted = true,
            Event::Checked(check) => self.checked(check, glance, now, out),
            Event::NotCovered => self.admission.begin_again(),
            Event::NotChecked => self.not_checked(now, out),
            Event::CheckNotBegun => self.check_not_begun(out),
            Event::Judged { is_reliable } => self.judged(is_reliable, glance, out),
            Event::Discovered { is_covered } => {
                self.admission.is_wanted |= !is_covered && self.settings.checks_admission;
            }
            Event::GreetedLate(outcome) => self.greeted_late(outcome, glance, out),
            Event::OtherView => self.forget_listings(glance, out),
            Event::Tick => {
                self.end_handshake(now, out);
                self.end_questions(now, out);
                self.admission.check_again(glance, now);
            }
            Event::CarriedOut => {}
            Event::Faulted => self.begin_again(glance, out),
        }
    }

    /// Whether the passage of time has no effect: nothing is in progress, and nothing is wanted.
    pub(crate) fn is_idle(&self) -> bool {
        self.listings.is_empty()
            && self.finished.is_empty()
            && self.failed.is_empty()
            && self.wanted.is_empty()
            && self.handshake.is_none()
            && self.questions.is_empty()
            && self.admission.is_idle()
    }

    /// The server's answer to a list request, as far as it is known.
    fn outcome<'a>(&'a self, list: ListKind, glance: &'a Glance) -> Option<&'a ListOutcome> {
        let fetched = self.outcomes.get(&list).or(glance.fetched.get(&list));
        fetched.or(glance.seen.lists.get(&list))
    }

    fn is_known(&self, list: ListKind, glance: &Glance) -> bool {
        self.outcome(list, glance).is_some()
    }

    /// Stores a fetched list.
    fn keep(&mut self, list: ListKind, outcome: ListOutcome, out: &mut Vec<Command>) {
        self.outcomes.insert(list, outcome.clone());
        out.push(Command::Keep { list, outcome });
    }

    pub(crate) fn is_checking(&self) -> bool {
        self.admission.is_checking()
    }

    /// Whether this session repeats the check while the server is not admitted.
    pub(crate) fn repeats_check(&self) -> bool {
        self.admission.is_repeated()
    }

    /// Stops the requests in progress. Lists that requests wait for are fetched again.
    fn forget_listings(&mut self, glance: &Glance, out: &mut Vec<Command>) {
        let listings = std::mem::take(&mut self.listings).into_values().map(|open| open.request);
        out.extend(listings.map(Command::GiveUp));
        self.finished.clear();
        self.failed.clear();
        self.judging = None;
        self.wanted.extend(&glance.waited);
    }

    /// Refuses everything that waits for operations in progress. The next call starts over.
    fn begin_again(&mut self, glance: &Glance, out: &mut Vec<Command>) {
        self.forget_listings(glance, out);
        let handshake = self.handshake.take().map(|handshake| handshake.request);
        out.extend(handshake.map(Command::GiveUp));
        out.extend(std::mem::take(&mut self.questions).into_keys().map(Command::Withdraw));
        self.wanted.clear();
        self.has_news = true;
        self.admission.forget();
        out.push(Command::RefuseAll(ReasonCode::Internal));
    }

    /// Stops waiting for a server that does not complete the handshake in time. The next call tries
    /// again.
    fn end_handshake(&mut self, now: Instant, out: &mut Vec<Command>) {
        let patience = self.settings.start_timeout;
        let is_over =
            |handshake: &mut Handshake| now.saturating_duration_since(handshake.begun) >= patience;
        let Some(handshake) = self.handshake.take_if(is_over) else { return };
        out.push(Command::GiveUp(handshake.request));
        out.push(Command::Remark(Remark::NoStart));
        self.refuse_waiting(ReasonCode::Timeout, out);
    }

    /// Refuses everything that waits for the server's handshake. The next call tries again.
    fn refuse_waiting(&mut self, reason: ReasonCode, out: &mut Vec<Command>) {
        self.wanted.clear();
        self.admission.is_wanted = false;
        out.push(Command::RefuseWaiting(reason));
    }

    /// Stops waiting for lists that have timed out. While calls are in flight, the server may be
    /// busy with them.
    fn pass_time(&mut self, time: Duration, glance: &Glance, out: &mut Vec<Command>) {
        if glance.is_busy {
            return;
        }
        let is_over = |(list, open): (&ListKind, &mut OpenListing)| {
            open.waited += time;
            (open.waited >= LIST_PATIENCE).then_some((*list, open.request))
        };
        let over: Vec<_> = self.listings.iter_mut().filter_map(is_over).collect();
        for (list, request) in over {
            out.push(Command::GiveUp(request));
            self.fail(list, ReasonCode::Timeout, glance, out);
        }
    }

    /// Requests the wanted lists, as far as that is possible now.
    fn begin_wanted(&mut self, glance: &Glance, now: Instant, out: &mut Vec<Command>) {
        // Request nothing from a server that is not admitted, or whose handshake still must be
        // checked.
        let is_closed = glance.is_closed || glance.lacks_check;
        if !self.finished.is_empty() {
            // Judge the fetched lists with all others, even if the session that fetched one of them
            // has ended.
            let is_missing =
                |list: &ListKind| !self.is_known(*list, glance) && !self.failed.contains_key(list);
            let missing: Vec<ListKind> = ListKind::ALL.into_iter().filter(is_missing).collect();
            self.wanted.extend(missing);
        }
        if self.wanted.is_empty() || is_closed || !self.is_met(glance, now, out) {
            return;
        }
        // A server is judged as a whole, so any request includes the lists that are not known yet.
        let unknown: Vec<ListKind> =
            ListKind::ALL.into_iter().filter(|list| !self.is_known(*list, glance)).collect();
        self.wanted.extend(&unknown);
        for list in std::mem::take(&mut self.wanted) {
            if self.listings.contains_key(&list) || glance.fetched_by_others.contains(&list) {
                // One listing serves all waiting requests. It is repeated only if the server
                // announced a change since.
                if self.changed.contains(&list) {
                    self.wanted.insert(list);
                }
                continue;
            }
            if glance.fresh.contains(&list) && !glance.waited.contains(&list) {
                // Another session fetched it after this one wanted it.
                self.changed.remove(&list);
                continue;
            }
            let since = glance.begun.get(&list).map(|at| now.saturating_duration_since(*at));
            let is_waited_for = glance.waited.contains(&list);
            let is_unknown = unknown.contains(&list);
            let is_urgent = is_waited_for || (is_unknown && !glance.waited.is_empty());
            if !is_urgent && since.is_some_and(|since| since < RELIST_PAUSE) {
                self.wanted.insert(list);
                continue;
            }
            let is_offered = glance.offered.as_ref().is_none_or(|lists| lists.contains(&list));
            if !is_offered && !is_waited_for {
                if is_unknown {
                    self.keep(list, ListOutcome::NotOffered, out);
                }
                self.finished.push((list, now));
                continue;
            }
            self.begin(list, now, out);
        }
        self.finish_all(glance, now, out);
    }

    /// Whether requests can be sent to the server: the handshake is done, or none is needed.
    fn is_met(&mut self, glance: &Glance, now: Instant, out: &mut Vec<Command>) -> bool {
        if glance.is_greeted || self.has_discovered {
            return true;
        }
        let is_greeting = glance.has_kept_greeting;
        if !is_greeting && !glance.is_stateless {
            return !glance.is_greeting;
        }
        if self.handshake.is_none() {
            let request = self.next_request();
            self.handshake = Some(Handshake { request, begun: now, is_greeting });
            out.push(match is_greeting {
                true => Command::Greet { request },
                false => Command::Discover { request },
            });
        }
        false
    }

    /// Decides requests that wait for a list of an unadmitted server without that list.
    fn end_unwanted(&mut self, glance: &Glance, out: &mut Vec<Command>) {
        if !glance.is_closed || glance.lacks_check {
            return;
        }
        let is_fetched = |list: &ListKind| {
            let is_finished = self.finished.iter().any(|(finished, _)| finished == list);
            is_finished
                || self.listings.contains_key(list)
                || glance.fetched_by_others.contains(list)
        };
        let reason = ReasonCode::UpstreamUnreachable;
        let unwanted = glance.waited.iter().filter(|list| !is_fetched(list));
        out.extend(unwanted.map(|list| Command::FailListing { list: *list, reason }));
    }

    fn begin(&mut self, list: ListKind, now: Instant, out: &mut Vec<Command>) {
        self.changed.remove(&list);
        let request = self.next_request();
        let (pages, waited) = (Listing::new(list), Duration::ZERO);
        self.listings.insert(list, OpenListing { request, pages, begun: now, waited });
        out.push(Command::BeginListing(list));
        out.push(Command::List { request, list, cursor: None });
    }

    fn next_request(&mut self) -> RequestNumber {
        self.requests += 1;
        RequestNumber(self.requests)
    }

    fn answered(
        &mut self,
        request: RequestNumber,
        answer: OwnAnswer,
        glance: &Glance,
        now: Instant,
        out: &mut Vec<Command>,
    ) {
        let is_it = |handshake: &mut Handshake| handshake.request == request;
        if let Some(handshake) = self.handshake.take_if(is_it) {
            return match handshake.is_greeting {
                true => self.greeting_answered(answer, out),
                false => {
                    self.has_discovered = true;
                    if let OwnAnswer::Answer(Answer::Result(result)) = answer {
                        out.push(Command::TakeDiscovery(result));
                    }
                }
            };
        }
        let found = self.listings.iter_mut().find(|(_, open)| open.request == request);
        let Some((list, open)) = found else { return };
        let list = *list;
        let answer = match answer {
            OwnAnswer::Answer(answer) => answer,
            OwnAnswer::Failed(reason) => return self.fail(list, reason, glance, out),
        };
        match open.pages.hear(answer) {
            Step::Done(outcome) => self.finish(list, outcome, glance, now, out),
            // It turned out that the server is not admitted, so no further pages are requested.
            Step::Ask(_) if glance.is_closed => {
                self.fail(list, ReasonCode::UpstreamUnreachable, glance, out);
            }
            Step::Ask(cursor) => {
                self.requests += 1;
                open.request = RequestNumber(self.requests);
                out.push(Command::List { request: open.request, list, cursor: Some(cursor) });
            }
        }
    }

    /// Asks about a held entry. Further calls of it share the question. If the call has already
    /// continued, with the answer to an earlier question, nothing waits for the person's answer.
    fn asked(&mut self, asked: Asked, glance: &Glance, now: Instant, out: &mut Vec<Command>) {
        let Asked { entry, banner, hash, can_validate } = asked;
        let is_open = self.questions.values().any(|open| open.about.entry() == Some(&entry));
        if is_open || !glance.asked.contains(&entry) {
            return;
        }
        let Some(hash) = hash.filter(|_| self.questions.len() < MAX_QUESTIONS) else {
            return out.push(Command::ReleaseAsked(entry));
        };
        let question = self.next_request();
        self.open_question(question, About::Entry { entry, hash }, now);
        out.push(Command::Ask { question, banner, can_validate });
    }

    /// Asks about one call. Each call has its own question.
    fn call_asked(
        &mut self,
        call: ParkedCall,
        message: String,
        now: Instant,
        out: &mut Vec<Command>,
    ) {
        if self.questions.len() >= MAX_QUESTIONS {
            return out.push(Command::ReleaseCall { call, answer: CallAnswer::Unasked });
        }
        let question = self.next_request();
        self.open_question(question, About::Call(call), now);
        out.push(Command::AskCall { question, message });
    }

    fn open_question(&mut self, number: RequestNumber, about: About, now: Instant) {
        let deadline = now + self.settings.answer_patience;
        self.questions.insert(number, Question { about, deadline });
    }

    /// INVARIANT: each kind of question has its own affirmative answer, so an answer to one kind
    /// never settles the other.
    fn said(&mut self, number: RequestNumber, said: Said, out: &mut Vec<Command>) {
        let Some(Question { about, .. }) = self.questions.get(&number) else { return };
        match (about, said) {
            (About::Entry { entry, .. }, Said::Show) => {
                out.push(Command::Show { question: number, entry: entry.clone() });
            }
            // The calls continue to wait: the result of the test decides about them.
            (About::Entry { entry, .. }, Said::Validate) => {
                out.push(Command::Validate { question: number, entry: entry.clone() });
            }
            (About::Entry { entry, hash }, Said::Approve) => {
                out.push(Command::Approve { entry: entry.clone(), hash: *hash });
                self.end_question(number, CallAnswer::Refused, out);
            }
            (About::Call(_), Said::Allow) => self.end_question(number, CallAnswer::Allowed, out),
            (About::Entry { .. }, Said::Allow | Said::Keep)
            | (About::Call(_), Said::Approve | Said::Show | Said::Validate | Said::Keep) => {
                self.end_question(number, CallAnswer::Refused, out);
            }
        }
    }

    /// `answer` is for a question about a call.
    fn end_question(&mut self, number: RequestNumber, answer: CallAnswer, out: &mut Vec<Command>) {
        match self.questions.remove(&number).map(|question| question.about) {
            Some(About::Entry { entry, .. }) => out.push(Command::ReleaseAsked(entry)),
            Some(About::Call(call)) => out.push(Command::ReleaseCall { call, answer }),
            None => {}
        }
    }

    /// If a person does not answer, held calls stay held, and no call is allowed.
    fn end_questions(&mut self, now: Instant, out: &mut Vec<Command>) {
        let over = self.questions.iter().filter(|(_, question)| question.deadline <= now);
        let over: Vec<RequestNumber> = over.map(|(number, _)| *number).collect();
        for number in over {
            out.push(Command::Withdraw(number));
            self.end_question(number, CallAnswer::Unanswered, out);
        }
    }
}

#[cfg(test)]
mod tests;
