//! What a session does with the check of its server's admission: who waits for it, what counts after it.

use super::Session;
use super::state::{KeptHandshake, State};
use crate::admission::{Admittance, Checked};
use crate::call::{Call, Method};
use crate::keeper::Wake;
use crate::path::Denial;
use crate::reason::ReasonCode;
use crate::situation::Situation;
use attest::{Reason, TOOL_DENIED_EVENT};
use contract::hash::sha256_hex;
use contract::surface::ListKind;
use ledger::record::ReceiptId;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::envelope::{Kind, Outcome, OwnedId, Scanned, scan};
use wire::listing::is_offered;

/// What becomes of the answer to a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeping {
    /// Admission is not asked for: it goes to the client.
    NotAsked,
    Kept,
    /// Nobody will check any more, or too many are kept already.
    Refused(ReasonCode),
}

impl Session {
    /// Whether a request may be decided on what is known of the server's admission. The handshake and `ping` need none.
    pub(super) fn is_admission_fresh(&self, state: &State, sort: Method, begun: Instant) -> bool {
        let Some(max_age) = self.settings.admission_max_age else { return true };
        matches!(sort, Method::Handshake | Method::Ping)
            || state.checked.as_ref().is_some_and(|checked| checked.is_fresh(begun, max_age))
    }

    pub(super) fn admission_age(&self, state: &State) -> Option<Duration> {
        state.checked.as_ref().map(|checked| checked.began.elapsed())
    }

    /// What was found counts for all that is decided from now on. Answers whether it is another than before.
    pub(crate) fn admit(&self, checked: Checked) -> bool {
        let (is_news, changed) = {
            let mut state = self.state();
            let before = state.situation.clone();
            let is_news = !before.admission.is_like(&checked.admitted);
            let admission = Admittance::Known(checked.admitted.clone());
            let is_other = admission.is_closed() != before.admission.is_closed();
            state.checked = Some(checked);
            if is_news {
                state.situation = Arc::new(Situation { admission, ..(*before).clone() });
            }
            // What was refused before anything was listed is asked for anew.
            let handshake = state.handshake.clone().filter(|_| !before.view.has_lists());
            let is_shown = |list: &ListKind| {
                before.view.list(*list).is_some()
                    || handshake.as_deref().is_some_and(|text| is_offered(text, *list))
            };
            let is_told = is_other && state.client.is_initialized;
            let changed: Vec<ListKind> =
                ListKind::ALL.into_iter().filter(is_shown).filter(|_| is_told).collect();
            (is_news, changed)
        };
        self.wake(Wake::Published { changed });
        is_news
    }

    /// Goes on with a request that waited for the check: it may still have to wait for its list.
    pub(crate) fn resume_admitted(&self, id: OwnedId) {
        let stale = {
            let mut state = self.state();
            let list = state.released.get(id.key()).and_then(|waiting| waiting.list);
            let is_closed = state.situation.admission.is_closed();
            let max_age = self.settings.relist_max_age;
            let now = Instant::now();
            let stale =
                list.filter(|list| !is_closed && !state.freshness(*list).is_fresh(now, max_age));
            if stale.is_some() {
                state.wait_again(id.key(), |waiting| waiting.is_unadmitted = false);
            }
            stale
        };
        match stale {
            Some(list) => self.wake(Wake::Relist(list)),
            None => self.resume_soon(id),
        }
    }

    /// Goes on with a request that waited for its list. Meanwhile the check may have grown too old.
    pub(crate) fn resume_listed(&self, id: OwnedId) {
        let is_fresh = {
            let mut state = self.state();
            let begun = state.released.get(id.key()).map(|waiting| waiting.begun);
            let is_fresh = self.settings.admission_max_age.is_none_or(|max_age| {
                let now = Instant::now();
                // One that was made for this request counts for it, however long its list took.
                state.checked.as_ref().is_some_and(|checked| {
                    begun.is_some_and(|begun| checked.began >= begun)
                        || checked.is_fresh(now, max_age)
                })
            });
            if !is_fresh {
                state.wait_again(id.key(), |waiting| waiting.is_unadmitted = true);
            }
            is_fresh
        };
        if is_fresh {
            self.resume_soon(id);
        } else {
            self.wake(Wake::Admit);
        }
    }

    /// Nobody can say whether the server may be used, so it is not.
    pub(crate) fn refuse_unadmitted(&self) {
        let waiting = self.state().release_unadmitted();
        for id in waiting {
            self.refuse_unseen(&id, ReasonCode::Internal);
        }
        self.deliver_handshakes(Instant::now());
    }

    /// Whether the answer to a handshake waits until the server's admission was checked: it may carry the document, and
    /// what it says of itself is shown only of a server that may be used. Several may wait at once.
    pub(super) fn keeps_handshake(&self, state: &mut State, frame: &[u8]) -> Keeping {
        if self.settings.admission_max_age.is_none() {
            return Keeping::NotAsked;
        }
        // What was found before the server said anything does not count for what it says.
        state.checked = None;
        if state.ended.is_some() {
            return Keeping::Refused(ReasonCode::UpstreamUnreachable);
        }
        if !state.has_room_to_keep_handshake(frame.len()) {
            return Keeping::Refused(ReasonCode::RateLimited);
        }
        let arrived = Instant::now();
        state.kept_handshakes.push(KeptHandshake { frame: frame.to_vec(), arrived });
        Keeping::Kept
    }

    /// Sends the client the answers that it waits for, of those that came before this moment: a check that was begun
    /// before an answer did not see what is in it.
    pub(crate) fn deliver_handshakes(&self, before: Instant) {
        let kept: Vec<KeptHandshake> =
            self.state().kept_handshakes.extract_if(.., |kept| kept.arrived <= before).collect();
        for KeptHandshake { frame, .. } in &kept {
            let Ok(Scanned::Message(envelope)) = scan(frame) else { continue };
            if let Kind::Response { id: Some(id), outcome: Outcome::Result(result) } =
                &envelope.kind
            {
                self.show_handshake(&envelope, id, result);
            }
        }
    }

    /// The server has ended: whoever still waits for its greeting is told so.
    pub(super) fn refuse_handshakes(&self, reason: ReasonCode) {
        let kept = std::mem::take(&mut self.state().kept_handshakes);
        for KeptHandshake { frame, .. } in &kept {
            let Ok(Scanned::Message(envelope)) = scan(frame) else { continue };
            if let Kind::Response { id: Some(id), .. } = &envelope.kind {
                self.refuse(id.raw(), reason);
            }
        }
    }

    pub(super) fn record_tool_denial(
        &self,
        call: &Call<'_>,
        denial: &Denial,
        server: &str,
        receipt_id: ReceiptId,
    ) {
        if denial.reason != ReasonCode::Admission(Reason::ToolNotAdmitted) {
            return;
        }
        // A name may be anything, and as long as a message: its hash is enough to find it by.
        let tool = call.target.map(|target| sha256_hex(target.key.as_bytes()));
        let data = json!({"tool": tool, "receipt_id": receipt_id.to_string()});
        self.recorder.event(server, TOOL_DENIED_EVENT, None, &data);
    }
}
