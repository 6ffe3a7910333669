//! What the keeper does once a list was answered: it has the surface judged, publishes what came of it, and releases the
//! requests that waited for the list.

use super::Keeper;
use crate::admission::Admittance;
use crate::judge::{ATTEMPTS, Seen};
use crate::reason::ReasonCode;
use crate::recorder::now;
use crate::relist::ListOutcome;
use crate::session::Cause;
use contract::surface::ListKind;
use gate::counters::Counter;
use std::sync::Arc;
use std::time::Instant;
use store::StoreError;

impl Keeper {
    pub(super) fn finish(&mut self, list: ListKind, outcome: ListOutcome) {
        let begun = match self.listings.remove(&list) {
            Some(listing) => {
                self.session.state().own.remove(&listing.request);
                listing.begun
            }
            None => Instant::now(),
        };
        self.finished.push((list, begun));
        let is_same = self.outcomes.get(&list) == Some(&outcome);
        if !is_same {
            self.outcomes.insert(list, outcome);
            self.session.state().is_unjudged = true;
        }
        self.finish_all();
    }

    /// What is new is judged, and what waited goes on. At first no list may be out, since a server is judged as a whole;
    /// later one that does not come keeps no other waiting.
    pub(super) fn finish_all(&mut self) {
        let is_unknown = |list: &ListKind| !self.outcomes.contains_key(list);
        if self.finished.is_empty() || self.listings.keys().any(is_unknown) {
            return;
        }
        let finished = std::mem::take(&mut self.finished);
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
