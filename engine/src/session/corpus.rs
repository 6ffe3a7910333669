//! Calls that would be refused wait briefly for the corpus's answer, so that the refusal can
//! include it.
//!
//! INVARIANT: a call that proceeds never waits here.

use super::{Met, Session};
use crate::call::Call;
use crate::requests::{Awaited, RequestKey};
use crate::server::driver::SessionWake;
use gate::verdict::Verdict;
use gate::view::Found;
use std::time::Instant;

impl Session {
    /// Whether a call is about to be refused because of a change that is being looked up in the
    /// corpus.
    pub(super) fn waits_for_corpus(&self, call: &Call<'_>, met: &Met) -> bool {
        self.corpus_awaited_until(call, met).is_some() && self.off_list(call, met).is_none()
    }

    fn corpus_awaited_until(&self, call: &Call<'_>, met: &Met) -> Option<Instant> {
        if self.server.rules.upper.are_held() {
            return None;
        }
        let Found::Changed(standing) = met.situation().view.find(call.target?) else { return None };
        let is_refused = standing.is_held() && standing.surfaced.verdict() == Verdict::Inconclusive;
        let definition = standing.after.as_ref().filter(|_| is_refused)?.definition_hash()?;
        self.server.rules.upper.awaited_until(definition)
    }

    /// Makes a released request wait for the corpus if necessary.
    pub(super) fn wait_for_corpus(&self, key: &RequestKey) -> bool {
        if self.server.rules.upper.are_held() {
            return false;
        }
        let (request, met) = {
            let state = self.state();
            let Some(request) = state.requests.released(key.as_ref()).cloned() else {
                return false;
            };
            (request, Met::of(state.view.known(), &state.client.principal, None))
        };
        let id = request.id().as_id();
        let waits = self.waits_for_corpus(&request.parsed(&id).call, &met);
        if waits {
            self.state().requests.wait_again(key.as_ref(), Awaited::Corpus);
            self.wake(SessionWake::AwaitsCorpus);
        }
        waits
    }

    /// Resumes the requests that waited for the corpus.
    pub(crate) fn resume_looked_up(&self) {
        let released = self.state().requests.release_looked_up();
        released.iter().for_each(|key| self.resume(key));
    }
}
