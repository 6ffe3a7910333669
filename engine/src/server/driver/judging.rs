//! Has the server's surface judged, and publishes the result.

use super::Driver;
use super::tiers::Climbing;
use crate::admission::Admittance;
use crate::behavior::Unobserved;
use crate::judge::{ATTEMPTS, Seen};
use crate::recorder::now;
use crate::server::ServerView;
use crate::session::Session;
use contract::surface::ListKind;
use gate::counters::Counter;
use gate::judge::SurfaceJudgement;
use gate::posture::Posture;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::StoreError;
use wire::listing::ListOutcome;

/// Events to report after a judgement, once no lock is held.
struct PendingReports {
    notes: Vec<String>,
    newly_held: u64,
    is_monitor: bool,
    unobserved: Vec<Unobserved>,
    climbing: Climbing,
    /// The judgement, if a network must be notified.
    met: Option<SurfaceJudgement>,
}

impl Driver {
    /// Judges the listed entries if they differ from those judged before. Returns whether the view
    /// is reliable.
    pub(super) fn judge(
        &mut self,
        session: &Session,
        view: &Arc<ServerView>,
        is_news: bool,
    ) -> bool {
        let (fetched, is_unjudged) = view.change(|known| {
            let fetched = std::mem::take(&mut known.fetched);
            let before = &known.seen.lists;
            let is_changed = fetched.iter().any(|(list, new)| before.get(list) != Some(new));
            known.is_unjudged |= is_news || is_changed;
            (fetched, known.is_unjudged)
        });
        if !is_unjudged {
            return true;
        }
        let seen = Arc::new(self.seen(view, fetched));
        let Some(mut surface) = seen.surface() else {
            session.remark("the server's handshake is invalid or ambiguous");
            return false;
        };
        let mut attempt = 0;
        let outcome = loop {
            attempt += 1;
            // INVARIANT: nothing is compared while the judge is locked. A call that needs no
            // comparison never waits for one.
            let draft = self.server.judge().draft(&seen, &surface, now());
            let drafted = match draft {
                Ok(draft) => draft.judge(&seen, &mut surface),
                Err(error) => break Err(error),
            };
            let mut judge = self.server.judge();
            let before = judge.version().ok();
            match judge.settle(drafted) {
                Err(StoreError::Changed { .. }) if attempt < ATTEMPTS => {}
                Err(error) => break Err(error),
                Ok(mut judged) => {
                    let unobserved = std::mem::take(&mut judged.unobserved);
                    let climbing = Climbing::of(&mut judged);
                    let is_told = !self.server.rules.upper.are_held();
                    let met = is_told.then(|| judged.judgement.clone());
                    let newly_held = judge.newly_held(&seen.view(), &judged.judgement) as u64;
                    self.server.tally.add_many(Counter::HoldsBegun, newly_held);
                    let is_monitor = judged.judgement.posture == Posture::Monitor;
                    self.server.tally.add_many(Counter::Repinned, judged.repinned as u64);
                    let notes = self.notes.take(&self.server.id, &judged.judgement);
                    view.change(|known| {
                        // The server may have responded to another handshake in the meantime.
                        known.is_unjudged = known.handshake != seen.handshake;
                        known.seen = seen.clone();
                    });
                    self.server.publish(&judge, view, judged);
                    let told =
                        PendingReports { notes, newly_held, is_monitor, unobserved, climbing, met };
                    break Ok((told, before, judge.version().ok()));
                }
            }
        };
        match outcome {
            // Reported with no lock held: otherwise a client that does not read would block every
            // call.
            Ok((told, before, after)) => {
                let PendingReports { notes, newly_held, is_monitor, unobserved, climbing, met } =
                    told;
                self.know(before, after);
                met.iter().for_each(|judgement| self.note_met(judgement));
                self.tell_tiers(&climbing);
                self.probing.begin(&self.server, unobserved);
                if is_monitor {
                    self.server.tally.add_many(Counter::Notes, notes.len() as u64);
                }
                if newly_held > 0 {
                    self.server.alarm();
                }
                let sessions = self.server.sessions_of(view);
                notes
                    .iter()
                    .for_each(|note| sessions.iter().for_each(|session| session.note(note)));
                true
            }
            Err(error) => {
                session.remark(&format!("what the server says could not be judged: {error}"));
                false
            }
        }
    }

    fn seen(&mut self, view: &ServerView, fetched: BTreeMap<ListKind, ListOutcome>) -> Seen {
        let origin = (self.origin)();
        let known = view.known();
        let attested = match &known.situation.admission {
            Admittance::Known(admitted) => Some(admitted.clone()),
            Admittance::NotAsked | Admittance::Unknown => None,
        };
        let Seen { client, instance, lists, .. } = (*known.seen).clone();
        let lists = lists.into_iter().chain(fetched).collect();
        Seen { handshake: known.handshake.clone(), lists, origin, attested, client, instance }
    }
}
