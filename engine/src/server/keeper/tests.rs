//! Random sequences of events. In any order, no list is requested twice at the same time, nothing
//! is requested from an unadmitted server, and a waiting request is eventually released or refused.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const SECOND: Duration = Duration::from_secs(1);

/// A session as the keeper sees it, with a server that the test controls.
struct World {
    keeper: Keeper,
    now: Instant,
    glance: Glance,
    /// The gate's requests that the server has not answered.
    open: BTreeMap<RequestNumber, Asked>,
    questions: BTreeMap<RequestNumber, EntryId>,
    is_checking: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    List(ListKind),
    Handshake,
}

#[derive(Debug, Clone)]
enum Happens {
    Wait(usize),
    Changed(usize),
    Initialized,
    Answer(usize, u8),
    Pass(u8),
    CheckWanted,
    CheckEnds(bool, bool),
    CheckFails,
    Ask(u8),
    Say(usize, u8),
    Busy(bool),
    Fault,
}

fn steps() -> impl Strategy<Value = Vec<Happens>> {
    let step = prop_oneof![
        4 => (0..4_usize).prop_map(Happens::Wait),
        2 => (0..4_usize).prop_map(Happens::Changed),
        1 => Just(Happens::Initialized),
        8 => (0..8_usize, 0..6_u8).prop_map(|(at, how)| Happens::Answer(at, how)),
        3 => (0..40_u8).prop_map(Happens::Pass),
        1 => Just(Happens::CheckWanted),
        2 => (any::<bool>(), any::<bool>()).prop_map(|(news, closed)| Happens::CheckEnds(news, closed)),
        1 => Just(Happens::CheckFails),
        2 => (0..3_u8).prop_map(Happens::Ask),
        2 => (0..3_usize, 0..4_u8).prop_map(|(at, said)| Happens::Say(at, said)),
        1 => any::<bool>().prop_map(Happens::Busy),
        1 => Just(Happens::Fault),
    ];
    prop::collection::vec(step, 0..60)
}

fn result(text: String) -> OwnAnswer {
    OwnAnswer::Answer(Answer::Result(text.into()))
}

fn entry(number: u8) -> EntryId {
    EntryId::new(contract::surface::EntryType::Tool, format!("tool{number}"))
}

impl World {
    fn new(checks_admission: bool, is_stateless: bool) -> World {
        let now = Instant::now();
        let settings = KeeperSettings {
            start_timeout: 60 * SECOND,
            checks_admission,
            greets_before_check: false,
            answer_patience: super::super::asking::ANSWER_PATIENCE,
        };
        let glance = Glance {
            is_closed: checks_admission,
            lacks_check: checks_admission,
            is_greeted: !is_stateless,
            is_stateless,
            ..Glance::default()
        };
        World {
            keeper: Keeper::new(settings, now),
            now,
            glance,
            open: BTreeMap::new(),
            questions: BTreeMap::new(),
            is_checking: false,
        }
    }

    fn tell(&mut self, event: Event) {
        let mut events = std::collections::VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let commands = self.keeper.on(event, &self.glance.clone(), self.now);
            let is_done = commands.is_empty();
            for command in commands {
                events.extend(self.carry_out(command));
            }
            if !is_done {
                events.push_back(Event::CarriedOut);
            }
        }
    }

    fn carry_out(&mut self, command: Command) -> Option<Event> {
        match command {
            Command::List { request, list, .. } => {
                assert!(!self.glance.is_closed, "a server that is not admitted is asked");
                let is_out = self.open.values().any(|asked| *asked == Asked::List(list));
                assert!(!is_out, "{list:?} is asked for twice at once");
                self.open.insert(request, Asked::List(list));
            }
            Command::Discover { request } | Command::Greet { request } => {
                let is_out = self.open.values().any(|asked| *asked == Asked::Handshake);
                assert!(!is_out, "two handshakes at once");
                self.open.insert(request, Asked::Handshake);
            }
            Command::GiveUp(request) => {
                assert!(self.open.remove(&request).is_some(), "nothing to give up");
            }
            Command::Keep { list, outcome } => {
                self.glance.fetched.insert(list, outcome);
            }
            Command::Judge { .. } => {
                let mut seen = (*self.glance.seen).clone();
                seen.lists.extend(std::mem::take(&mut self.glance.fetched));
                let known = seen.lists.len();
                assert_eq!(known, ListKind::ALL.len(), "judged before all lists are known");
                self.glance.seen = Arc::new(seen);
                return Some(Event::Judged { is_reliable: true });
            }
            Command::EndListing { lists, .. } => {
                for Listed { list, .. } in lists {
                    self.glance.waited.remove(&list);
                }
            }
            Command::FailListing { list, .. } => {
                self.glance.waited.remove(&list);
            }
            Command::RefuseWaiting(_) => self.glance.waited.clear(),
            Command::RefuseAll(_) => {
                self.glance.waited.clear();
                self.glance.asked.clear();
                self.questions.clear();
            }
            Command::TakeDiscovery(_) => {
                self.glance.is_greeted = true;
                return Some(Event::Discovered { is_covered: true });
            }
            Command::TakeLateGreeting(_) => {
                self.glance.has_kept_greeting = false;
                self.glance.is_greeted = true;
                return Some(Event::GreetedLate(LateGreeting::Done));
            }
            // The driver runs one check at a time, and a second command joins it.
            Command::Check => self.is_checking = true,
            Command::Ask { question, .. } => {
                let is_open = self.questions.values().count() >= MAX_QUESTIONS;
                assert!(!is_open, "too many questions");
                let entry = self
                    .glance
                    .asked
                    .iter()
                    .find(|entry| !self.questions.values().any(|asked| asked == *entry));
                let entry = entry.expect("an entry that is not asked about yet").clone();
                self.questions.insert(question, entry);
            }
            Command::Show { .. } => {}
            // Every other test ends immediately, and the rest never end.
            Command::Validate { question, .. } => {
                return (question.0 % 2 == 0).then_some(Event::Validated { question });
            }
            Command::Withdraw(question) => {
                assert!(self.questions.contains_key(&question));
            }
            Command::ReleaseAsked(entry) => {
                self.glance.asked.remove(&entry);
                self.questions.retain(|_, asked| *asked != entry);
            }
            Command::BeginListing(list) => {
                self.glance.begun.insert(list, self.now);
            }
            Command::DeliverHandshakes { .. }
            | Command::ReleaseUnadmitted
            | Command::RefuseUnadmitted
            | Command::Announce
            | Command::TellOffered
            | Command::Approve { .. }
            | Command::AskCall { .. }
            | Command::ReleaseCall { .. }
            | Command::Remark(_)
            | Command::End(_) => {}
        }
        None
    }

    fn step(&mut self, step: &Happens) {
        match step {
            Happens::Wait(list) => {
                let list = ListKind::ALL[*list];
                // A request for a list of an unadmitted server waits for the check instead.
                if !self.glance.is_closed && !self.glance.lacks_check {
                    self.glance.waited.insert(list);
                    self.tell(Event::Wanted(list));
                }
            }
            Happens::Changed(list) => self.tell(Event::ListChanged(vec![ListKind::ALL[*list]])),
            Happens::Initialized => self.tell(Event::Initialized),
            Happens::Answer(at, how) => {
                let Some(request) = self.open.keys().nth(*at).copied() else { return };
                let asked = self.open.remove(&request).expect("it is open");
                let answer = match (asked, how) {
                    (_, 0) => OwnAnswer::Failed(ReasonCode::UpstreamUnreachable),
                    (_, 1) => OwnAnswer::Answer(Answer::Error {
                        code: -32601,
                        message: Default::default(),
                    }),
                    (_, 2) => OwnAnswer::Answer(Answer::Unreadable("broken".to_owned())),
                    (Asked::List(list), 3) => {
                        let number = request.0;
                        let member = list.member();
                        result(format!(r#"{{"{member}":[],"nextCursor":"{number}"}}"#))
                    }
                    (Asked::List(list), _) => result(format!(r#"{{"{}":[]}}"#, list.member())),
                    (Asked::Handshake, _) => result("{}".to_owned()),
                };
                self.tell(Event::Answered { request, answer });
            }
            Happens::Pass(seconds) => {
                self.now += u32::from(*seconds) * SECOND;
                self.tell(Event::Tick);
            }
            Happens::CheckWanted => self.tell(Event::CheckWanted),
            Happens::CheckEnds(is_news, is_closed) if self.is_checking => {
                self.is_checking = false;
                self.glance.is_closed = *is_closed;
                self.glance.lacks_check = false;
                if *is_closed {
                    self.glance.waited.clear();
                }
                let (began, is_news) = (self.now, *is_news);
                self.tell(Event::Checked(Check { began, is_news, is_leader: true }));
            }
            Happens::CheckFails if self.is_checking => {
                self.is_checking = false;
                self.tell(Event::NotChecked);
            }
            Happens::CheckEnds(..) | Happens::CheckFails => {}
            Happens::Ask(number) => {
                let entry = entry(*number);
                self.glance.asked.insert(entry.clone());
                let (banner, hash) = (String::new(), Some(None));
                self.tell(Event::Asked { entry, banner, hash, can_validate: true });
            }
            Happens::Say(at, said) => {
                let Some(question) = self.questions.keys().nth(*at).copied() else { return };
                let said =
                    [Said::Keep, Said::Approve, Said::Show, Said::Validate][usize::from(*said)];
                self.tell(Event::Said { question, said });
            }
            Happens::Busy(is_busy) => self.glance.is_busy = *is_busy,
            Happens::Fault => self.tell(Event::Faulted),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn nothing_waits_for_ever(steps in steps(), checks in any::<bool>(), stateless in any::<bool>()) {
        let mut world = World::new(checks, stateless);
        for step in &steps {
            world.step(step);
        }
        // The server sends nothing more, and no call keeps it busy.
        world.glance.is_busy = false;
        let longest = LIST_PATIENCE.max(super::super::asking::ANSWER_PATIENCE);
        for _ in 0..=(longest.as_secs() + 60) {
            world.now += SECOND;
            if world.is_checking {
                world.step(&Happens::CheckFails);
            }
            world.tell(Event::Tick);
        }
        if !world.glance.is_closed && !world.glance.lacks_check {
            prop_assert!(world.glance.waited.is_empty(), "{:?}", world.glance.waited);
        }
        prop_assert!(world.glance.asked.is_empty(), "{:?}", world.glance.asked);
        prop_assert!(world.questions.is_empty());
        prop_assert!(world.open.is_empty(), "{:?}", world.open);
    }
}

#[test]
fn one_listing_serves_all_that_wait_and_judges_the_server_as_a_whole() {
    let mut world = World::new(false, false);
    for list in 0..4 {
        world.step(&Happens::Wait(list));
        world.step(&Happens::Wait(list));
    }
    assert_eq!(world.open.len(), ListKind::ALL.len());
    for _ in 0..3 {
        world.step(&Happens::Answer(0, 5));
        assert_eq!(world.glance.waited.len(), 4, "judged before the last list came");
    }
    world.step(&Happens::Answer(0, 5));
    assert!(world.glance.waited.is_empty());
}
