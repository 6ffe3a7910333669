//! What the keeper does once a list was answered: it has the surface judged, publishes what came of it, and releases the
//! requests that waited for the list.

use super::Keeper;
use crate::admission::Admittance;
use crate::judge::{ATTEMPTS, Seen};
use crate::reason::ReasonCode;
use crate::recorder::now;
use crate::session::Cause;
use contract::surface::ListKind;
use gate::counters::Counter;
use std::sync::Arc;
use std::time::Instant;
use store::StoreError;
use wire::listing::ListOutcome;

impl Keeper {
    pub(super) fn finish(&mut self, list: ListKind, outcome: ListOutcome) {
        let begun = self.end_listing(list);
        self.finished.push((list, begun));
        self.learn(list, outcome);
        self.finish_all();
    }

    /// A list could not be fetched. What it carries is as unknown as before, so nothing is judged because of it.
    pub(super) fn fail(&mut self, list: ListKind, reason: ReasonCode) {
        self.end_listing(list);
        self.failed.insert(list, reason);
        self.finish_all();
    }

    fn end_listing(&mut self, list: ListKind) -> Instant {
        let Some(listing) = self.listings.remove(&list) else { return Instant::now() };
        self.session.state().own.remove(&listing.request);
        listing.begun
    }

    fn learn(&mut self, list: ListKind, outcome: ListOutcome) {
        if self.outcomes.get(&list) != Some(&outcome) {
            self.outcomes.insert(list, outcome);
            self.session.state().is_unjudged = true;
        }
    }

    /// Whether it is known of every list what the server answers to it.
    pub(super) fn has_all_lists(&self) -> bool {
        ListKind::ALL.iter().all(|list| self.outcomes.contains_key(list))
    }

    /// What is new is judged, and what waited goes on. At first no list may be out, since a server is judged as a whole;
    /// later one that does not come keeps no other waiting.
    pub(super) fn finish_all(&mut self) {
        let is_in =
            |list: &ListKind| self.outcomes.contains_key(list) || self.failed.contains_key(list);
        let is_idle = self.finished.is_empty() && self.failed.is_empty();
        if is_idle || !ListKind::ALL.iter().all(is_in) {
            return;
        }
        self.close_unanswered();
        self.refuse_failed();
        let finished = std::mem::take(&mut self.finished);
        if finished.is_empty() {
            return;
        }
        let is_judged = self.judge();
        let lists: Vec<ListKind> = finished.iter().map(|(list, _)| *list).collect();
        let released = {
            let mut state = self.session.state();
            for (list, begun) in finished {
                let ttl = self.outcomes.get(&list).and_then(ListOutcome::ttl);
                let freshness = state.freshness.entry(list).or_default();
                freshness.is_listing = false;
                freshness.ttl = ttl;
                if is_judged {
                    freshness.listed_at = Some(begun);
                }
            }
            state.release_listed(&lists)
        };
        for id in released {
            if is_judged {
                self.session.resume_listed(id);
            } else {
                self.session.refuse_unseen(&id, ReasonCode::Internal);
            }
        }
    }

    /// A server that answers some of its lists and never one of them is reached: that list is closed like one that cannot
    /// be read, and keeps the others usable.
    fn close_unanswered(&mut self) {
        let is_answer = |outcome: &ListOutcome| !matches!(outcome, ListOutcome::NotOffered);
        if !self.outcomes.values().any(is_answer) {
            return;
        }
        let outcomes = &self.outcomes;
        let unanswered: Vec<ListKind> = self
            .failed
            .extract_if(.., |list, _| !outcomes.contains_key(list))
            .map(|(list, _)| list)
            .collect();
        for list in unanswered {
            self.finished.push((list, Instant::now()));
            let words = "not answered, though the server answers other lists";
            self.learn(list, ListOutcome::Unreadable(words.to_owned()));
        }
    }

    /// Refuses what waited for lists that could not be fetched. They stay stale, so the next call asks for them again and
    /// none is dispatched on what was seen before. While a list is unknown altogether, the lists that came with it cannot
    /// be judged either.
    fn refuse_failed(&mut self) {
        let is_unknown = |list: &ListKind| !self.outcomes.contains_key(list);
        let blocking = self.failed.iter().find(|(list, _)| is_unknown(list));
        if let Some(reason) = blocking.map(|(_, reason)| *reason) {
            let finished = self.finished.drain(..).map(|(list, _)| (list, reason));
            for (list, reason) in finished {
                self.failed.entry(list).or_insert(reason);
            }
        }
        for (list, reason) in std::mem::take(&mut self.failed) {
            let released = {
                let mut state = self.session.state();
                let freshness = state.freshness.entry(list).or_default();
                freshness.is_listing = false;
                freshness.is_stale = true;
                state.release_listed(&[list])
            };
            released.into_iter().for_each(|id| self.session.end_unfetched(id, reason));
        }
    }

    /// Judges what was listed, where it is not what was judged before. Answers whether the view can be relied on.
    pub(super) fn judge(&mut self) -> bool {
        if !self.session.state().is_unjudged {
            return true;
        }
        let seen = self.seen();
        let Some(mut surface) = seen.surface() else {
            self.session.remark("what the server says of itself cannot be read");
            return false;
        };
        let seen = Arc::new(seen);
        let mut attempt = 0;
        let outcome = loop {
            attempt += 1;
            // INVARIANT: nothing is compared while the judge is held. A call that needs no comparison never waits for one.
            let draft = self.session.judge().draft(&surface, now());
            let drafted = match draft {
                Ok(draft) => draft.judge(&seen, &mut surface),
                Err(error) => break Err(error),
            };
            let mut judge = self.session.judge();
            match judge.settle(drafted) {
                Err(StoreError::Changed { .. }) if attempt < ATTEMPTS => {}
                Err(error) => break Err(error),
                Ok(judged) => {
                    let newly_held = judge.newly_held(&judged.judgement) as u64;
                    self.session.tally.add_many(Counter::HoldsBegun, newly_held);
                    self.session.tally.add_many(Counter::Repinned, judged.repinned as u64);
                    self.notes.tell(&judged.judgement, &self.session);
                    {
                        let mut state = self.session.state();
                        // Meanwhile it may have said something else of itself.
                        state.is_unjudged = state.handshake != seen.handshake;
                        state.seen = seen;
                    }
                    self.session.publish(&mut judge, judged, Cause::Server);
                    self.version = judge.version().ok();
                    break Ok(());
                }
            }
        };
        match outcome {
            Ok(()) => true,
            Err(error) => {
                self.session.remark(&format!("what the server says could not be judged: {error}"));
                false
            }
        }
    }

    fn seen(&mut self) -> Seen {
        let (handshake, attested, client) = {
            let state = self.session.state();
            let attested = match &state.situation.admission {
                Admittance::Known(admitted) => Some(admitted.clone()),
                Admittance::NotAsked | Admittance::Unknown => None,
            };
            (state.handshake.clone(), attested, state.client.capabilities())
        };
        Seen { handshake, lists: self.outcomes.clone(), origin: (self.origin)(), attested, client }
    }
}
