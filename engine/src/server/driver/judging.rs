//! Has what the server says judged, and publishes what comes of it.

use super::Driver;
use crate::admission::Admittance;
use crate::judge::{ATTEMPTS, Seen};
use crate::recorder::now;
use crate::session::Cause;
use contract::surface::ListKind;
use gate::counters::Counter;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::StoreError;
use wire::listing::ListOutcome;

impl Driver {
    /// Judges what was listed, if it is not what was judged before. Returns whether the view can be relied on.
    pub(super) fn judge(&mut self, lists: BTreeMap<ListKind, ListOutcome>, is_news: bool) -> bool {
        {
            let mut state = self.session.state();
            state.is_unjudged |= is_news;
            if !state.is_unjudged {
                return true;
            }
        }
        let seen = Arc::new(self.seen(lists));
        let Some(mut surface) = seen.surface() else {
            self.session.remark("what the server says of itself cannot be read");
            return false;
        };
        let mut attempt = 0;
        let outcome = loop {
            attempt += 1;
            // INVARIANT: nothing is compared while the judge is held. A call that needs no comparison never waits for one.
            let draft = self.session.judge().draft(&seen, &surface, now());
            let drafted = match draft {
                Ok(draft) => draft.judge(&seen, &mut surface),
                Err(error) => break Err(error),
            };
            let mut judge = self.session.judge();
            match judge.settle(drafted) {
                Err(StoreError::Changed { .. }) if attempt < ATTEMPTS => {}
                Err(error) => break Err(error),
                Ok(judged) => {
                    let newly_held = judge.newly_held(&seen.view(), &judged.judgement) as u64;
                    self.session.tally.add_many(Counter::HoldsBegun, newly_held);
                    self.session.tally.add_many(Counter::Repinned, judged.repinned as u64);
                    let notes = self.notes.take(&judged.judgement);
                    {
                        let mut state = self.session.state();
                        // Meanwhile the server may have answered another handshake.
                        state.is_unjudged = state.handshake != seen.handshake;
                        state.seen = seen.clone();
                    }
                    self.session.publish(&mut judge, judged, Cause::Server);
                    break Ok((notes, judge.version().ok()));
                }
            }
        };
        match outcome {
            // Told with no lock held: a client that does not read would stop every call.
            Ok((notes, version)) => {
                self.know(version);
                self.session.tally.add_many(Counter::Notes, notes.len() as u64);
                notes.iter().for_each(|note| self.session.note(note));
                true
            }
            Err(error) => {
                self.session.remark(&format!("what the server says could not be judged: {error}"));
                false
            }
        }
    }

    fn seen(&mut self, lists: BTreeMap<ListKind, ListOutcome>) -> Seen {
        let origin = (self.origin)();
        let state = self.session.state();
        let attested = match &state.situation.admission {
            Admittance::Known(admitted) => Some(admitted.clone()),
            Admittance::NotAsked | Admittance::Unknown => None,
        };
        let (handshake, client) = (state.handshake.clone(), state.client.capabilities());
        Seen { handshake, lists, origin, attested, client }
    }
}
