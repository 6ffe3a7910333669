//! What a person must review: a server's last observation, judged against its pins.

use crate::acts::{ActError, RecordedServer, ReviewedHash};
use contract::surface::{Entry, EntryId, EntryType, Surface};
use gate::by_the_call::{CallReach, CallRulesCache};
use gate::judge::{Judgement, SurfaceJudgement, call_rules};
use gate::server::ServerStatus;
use std::collections::BTreeSet;
use store::ObservationError;

#[derive(Debug)]
pub struct Review {
    pub server: RecordedServer,
    pub surface: Option<Surface>,
    pub judgement: SurfaceJudgement,
    /// Entries that monitor serves although they wait for review.
    noted: BTreeSet<EntryId>,
}

impl Review {
    /// Judges the recorded surface. A server that was never observed has none.
    pub fn of(server: RecordedServer) -> Result<Review, ObservationError> {
        let observation = server.snapshot.observation.as_ref();
        let surface = observation.map(store::Observation::surface).transpose()?;
        let nothing = Surface::default();
        let observed = surface.as_ref().unwrap_or(&nothing);
        let judgement = server.judge(observed, None);
        let mut noted = BTreeSet::new();
        if judgement.posture != judgement.posture.for_status() {
            let counted = server.judge_for_status(observed);
            noted.extend(counted.waiting().map(|entry| entry.id.clone()));
        }
        Ok(Review { server, surface, judgement, noted })
    }

    /// Everything held or deferred and, under monitor, what guard would hold or defer.
    pub fn waiting(&self) -> impl Iterator<Item = &Judgement> {
        let is_waiting = |entry: &&Judgement| entry.is_waiting() || self.noted.contains(&entry.id);
        let (held, others): (Vec<&Judgement>, Vec<&Judgement>) = self
            .judgement
            .entries
            .iter()
            .filter(is_waiting)
            .partition(|entry| entry.verdict.is_held());
        held.into_iter().chain(others)
    }

    /// Which calls a waiting change of a tool holds; `None` if it holds none.
    pub fn reach(&self, entry: &Judgement) -> Option<CallReach> {
        if !entry.verdict.is_held() || entry.id.entry_type != EntryType::Tool {
            return None;
        }
        let is_by_the_call = entry.is_by_the_call;
        let rules = || {
            let (pins, settings) = (self.server.pins(), self.server.settings());
            call_rules(entry, pins, settings, &CallRulesCache::default())
        };
        let rules = is_by_the_call.then(rules).flatten();
        Some(rules.map_or(CallReach::Every, |rules| rules.reach()))
    }

    pub fn status(&self) -> ServerStatus {
        self.server.status()
    }

    pub fn awaits_first_approval(&self) -> bool {
        self.server.awaits_first_approval()
    }

    /// The hash that approves everything that waits.
    pub fn surface_hash(&self) -> Option<ReviewedHash> {
        self.surface.as_ref().map(|surface| surface.surface_hash().into())
    }

    /// Whether a pin or the last surface has an entry with this name.
    pub(super) fn has_entry(&self, key: &str) -> bool {
        let pinned = self.server.pins().iter().map(|(id, _)| id);
        let observed = self.surface.iter().flat_map(Surface::entries).map(Entry::id);
        pinned.chain(observed).any(|id| is_called(id, key))
    }

    /// The entry that a key names.
    pub(super) fn find<T>(
        entries: impl Iterator<Item = T>,
        id: impl Fn(&T) -> &EntryId,
        key: &str,
    ) -> Result<Option<T>, ActError> {
        let mut named = entries.filter(|entry| is_called(id(entry), key));
        match (named.next(), named.next()) {
            (found, None) => Ok(found),
            (_, Some(_)) => Err(ActError::AmbiguousEntry { key: key.to_owned() }),
        }
    }
}

/// The hash that identifies a waiting change: of the current entry, or of the removed one.
pub fn hash_of(entry: &Judgement) -> Option<ReviewedHash> {
    entry.reviewed_hash().map(Into::into)
}

/// Whether `KEY` or `TYPE:KEY` names an entry.
fn is_called(id: &EntryId, key: &str) -> bool {
    let typed =
        key.split_once(':').and_then(|(kind, rest)| Some((kind.parse::<EntryType>().ok()?, rest)));
    id.key == key
        || typed.is_some_and(|(entry_type, rest)| id.entry_type == entry_type && id.key == rest)
}
