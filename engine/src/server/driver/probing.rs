//! The thread that tests the behavior of tools: this requires starting a server, and the driver
//! must not wait for that.

use super::tiers::Climbing;
use super::{Driver, Event, RequestNumber, Wake, change_of};
use crate::behavior::{Observable, Probe, Unobserved};
use crate::judge::Judge;
use crate::recorder::now;
use crate::requests::SessionKey;
use crate::server::{Known, Server};
use crate::session::Session;
use crate::session::boundary::trip;
use contract::surface::EntryId;
use gate::behavior::{Assessment, Departure};
use gate::judge::Judgement;
use gate::naming::shown_name;
use gate::tiers::{Behavior, is_behavioral};
use serde_json::json;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

/// The most tests per server and process, because it may change whenever it is listed.
const MAX_LOOKS: usize = 100;

/// The behavior tests of a server's tools. Only one runs at a time.
#[derive(Default)]
pub(super) struct Probing {
    prober: Option<Box<dyn Probe>>,
    /// The testing thread, once there was something to test.
    thread: Option<Sender<Unobserved>>,
    running: HashSet<Observable>,
    looks: usize,
    /// Questions whose calls wait for a test.
    waiting: Vec<(SessionKey, RequestNumber, Observable)>,
}

impl Probing {
    pub(super) fn by(prober: Option<Box<dyn Probe>>) -> Probing {
        Probing { prober, ..Probing::default() }
    }

    /// Whether something can be tested.
    fn is_there(&self) -> bool {
        (self.prober.is_some() || self.thread.is_some()) && self.looks < MAX_LOOKS
    }

    /// Has these tested, one after the other.
    pub(super) fn begin(&mut self, server: &Arc<Server>, wanted: Vec<Unobserved>) {
        for wanted in wanted {
            self.look(server, wanted);
        }
    }

    /// Has one tested unless that is already in progress. Returns whether it is in progress
    /// afterwards.
    fn look(&mut self, server: &Arc<Server>, wanted: Unobserved) -> bool {
        if self.running.contains(&wanted.key) {
            return true;
        }
        if self.looks >= MAX_LOOKS {
            return false;
        }
        if let Some(prober) = self.prober.take() {
            self.thread = start(prober, server);
        }
        let key = wanted.key.clone();
        let is_begun = self.thread.as_ref().is_some_and(|thread| thread.send(wanted).is_ok());
        if is_begun {
            self.looks += 1;
            self.running.insert(key);
        }
        is_begun
    }
}

/// Starts a thread that tests what it receives, until the driver is gone.
fn start(prober: Box<dyn Probe>, server: &Arc<Server>) -> Option<Sender<Unobserved>> {
    let (give, given) = channel::<Unobserved>();
    let server = server.clone();
    let thread = std::thread::Builder::new().name("behavior".to_owned());
    let started = thread.spawn(move || {
        while let Ok(Unobserved { key, tool }) = given.recv() {
            let assessment = server.contain(|| {
                trip("behavior", b"probe");
                prober.probe(&tool)
            });
            let fault = || Assessment::not_tried("of a fault in Holdpoint");
            let assessment = assessment.unwrap_or_else(fault);
            server.wake(Wake::Observed { key: Box::new(key), assessment });
        }
    });
    started.is_ok().then_some(give)
}

/// The definitions that still must be tested, and the results to report.
type Reconsidered = (Vec<Unobserved>, Vec<Climbing>);

impl Driver {
    /// Whether a behavior test is possible and could settle a change.
    pub(super) fn can_validate(&self, change: &Judgement) -> bool {
        self.probing.is_there() && self.server.can_validate(change)
    }

    /// Handles the end of a test: every view is judged again with the result, and waiting requests
    /// continue.
    pub(super) fn end_probe(&mut self, key: &Observable, assessment: &Assessment) {
        self.probing.running.remove(key);
        self.tell_observed(key, assessment);
        let unobserved = self.server.observed(key, assessment.behavior());
        match unobserved {
            Ok(unobserved) => self.probing.begin(&self.server, unobserved),
            Err(error) => {
                self.server.remark(&format!("what was observed could not be judged: {error}"));
            }
        }
        let (over, waiting): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.probing.waiting).into_iter().partition(|it| it.2 == *key);
        self.probing.waiting = waiting;
        for (session, question, _) in over {
            if let Some(session) = self.server.session(session) {
                self.handle(&session, |driver| {
                    driver.tell(&session, Event::Validated { question });
                });
            }
        }
    }

    fn tell_observed(&self, key: &Observable, assessment: &Assessment) {
        let behavior = assessment.behavior();
        let departures: Vec<&str> = match assessment {
            Assessment::Failed(departures) => departures.iter().map(Departure::code).collect(),
            Assessment::Declined | Assessment::Unavailable(_) | Assessment::Cleared(_) => {
                Vec::new()
            }
        };
        let data = json!({
            "tool": shown_name(&key.id.key, true),
            "entry_hash": key.entry,
            "outcome": behavior,
            "departures": departures,
        });
        self.server.recorder.event(self.server.id.as_str(), "behavior.observed", None, &data);
        let (name, words) = (shown_name(&key.id.key, true), assessment.words());
        self.server.remark(&format!("the behaviour of `{name}` is {behavior}: {words}"));
    }

    /// Handles a person's request for a test. The question is settled when the test has ended, or
    /// immediately if it is not possible.
    pub(super) fn validate(
        &mut self,
        session: &Arc<Session>,
        question: RequestNumber,
        entry: &EntryId,
    ) -> Option<Event> {
        match self.begin_validation(session, entry) {
            Some(key) => {
                self.probing.waiting.push((session.key(), question, key));
                None
            }
            None => Some(Event::Validated { question }),
        }
    }

    /// Starts a test that a person requested, even if there was one before.
    pub(super) fn begin_validation(
        &mut self,
        session: &Arc<Session>,
        entry: &EntryId,
    ) -> Option<Observable> {
        let change = change_of(session, entry).filter(|change| self.can_validate(change))?;
        let tool = change.after?;
        let key = Observable::of(&tool, session.view().known().seen.origin.as_ref());
        let wanted = Unobserved { key: key.clone(), tool };
        self.probing.look(&self.server, wanted).then_some(key)
    }
}

impl Server {
    /// Applies the result of a tool's test to every call that is decided from now on. Returns the
    /// definitions that still must be tested.
    fn observed(
        &self,
        key: &Observable,
        behavior: Behavior,
    ) -> Result<Vec<Unobserved>, store::StoreError> {
        let mut judge = self.judge();
        judge.learn(key.clone(), behavior);
        self.reconsider_with(&mut judge).map(|(unobserved, _)| unobserved)
    }

    /// Judges every view again although nothing was written, because something was learned
    /// elsewhere.
    pub(super) fn reconsider(&self) -> Result<Reconsidered, store::StoreError> {
        let mut judge = self.judge();
        judge.forget_recorded();
        self.reconsider_with(&mut judge)
    }

    fn reconsider_with(&self, judge: &mut Judge) -> Result<Reconsidered, store::StoreError> {
        let (mut unobserved, mut climbing) = (Vec::new(), Vec::new());
        for view in self.views() {
            let (seen, has_lists) = {
                let known: &Known = &view.known();
                (known.seen.clone(), known.situation.view.has_lists())
            };
            if !has_lists {
                continue;
            }
            let mut judged = judge.reconsider(&seen, now())?;
            unobserved.append(&mut judged.unobserved);
            climbing.push(Climbing::of(&mut judged));
            self.publish(judge, &view, judged);
            // Entries that can be re-pinned are re-pinned with the next list.
            view.change(|known| known.is_unjudged = true);
        }
        Ok((unobserved, climbing))
    }

    /// Whether the operator allows behavior tests, and a test could settle a change.
    pub(crate) fn can_validate(&self, change: &Judgement) -> bool {
        self.rules.behavior.refusal().is_none() && is_behavioral(change)
    }
}
