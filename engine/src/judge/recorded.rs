//! Judges a server by its recorded surface. This lets a gateway list a server without starting it.

use super::{Again, Instance, Judge, Seen, StoreRecord};
use crate::situation::Situation;
use contract::json::Document;
use contract::surface::{EntryId, EntryType, ListKind};
use gate::time::Timestamp;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use store::{Observation, Store, StoreError};
use wire::listing::ListOutcome;

/// The recorded surface belongs to no process, so it has its own view.
const RECORDED: Instance = Instance(u64::MAX);

impl Seen {
    /// What a server showed when it was last observed; `None` if that cannot be read anymore.
    fn recorded(observation: &Observation) -> Option<Seen> {
        let surface = observation.surface().ok()?;
        let document = Document::parse(&observation.capture).ok()?;
        let lists = ListKind::ALL.into_iter().filter_map(|list| {
            if let Some(reason) = surface.unreadable().get(&list) {
                return Some((list, ListOutcome::Unreadable(reason.0.clone())));
            }
            let entries = document.root().get(list.member())?;
            let page = format!("{{\"{}\":{}}}", list.member(), entries.raw());
            Some((list, ListOutcome::Pages(Arc::new(vec![page.into()]))))
        });
        Some(Seen {
            handshake: Some(observation.capture.as_str().into()),
            lists: lists.collect(),
            origin: surface.entry(&EntryId::only(EntryType::Origin)).cloned(),
            instance: RECORDED,
            ..Seen::default()
        })
    }
}

/// The last judgement of the recorded surface, and the facts it depends on.
#[derive(Debug)]
pub(super) struct RecordedJudgement {
    /// The hash of the observation.
    hash: [u8; 32],
    record: StoreRecord,
    situation: Arc<Situation>,
}

fn hash_of(observation: &Observation) -> [u8; 32] {
    let Observation { capture, origin, unreadable, .. } = observation;
    let mut hash = Sha256::new();
    // Each part is preceded by its length, so that different observations never produce the same
    // bytes.
    let mut add = |part: &str| {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    };
    add(capture);
    add(origin.as_deref().unwrap_or_default());
    for (list, why) in unreadable {
        add(list.member());
        add(why);
    }
    hash.finalize().into()
}

impl Judge {
    /// Judges the recorded surface of the server, without contacting it or writing anything.
    /// Returns `None` if it was never observed.
    ///
    /// Returns the same situation until something that it depends on is written: most writes to a
    /// store concern something else, and judging many tools takes long.
    pub fn judge_recorded(&mut self, at: Timestamp) -> Result<Option<Arc<Situation>>, StoreError> {
        // Read before the observation and the pins, so that a change in between is detected the
        // next time.
        let record = self.read_record()?;
        let Some(observation) = self.store.observation(&self.rules.server)? else {
            return Ok(None);
        };
        let hash = hash_of(&observation);
        if let Some(known) = &self.recorded
            && known.hash == hash
            && known.record == record
        {
            return Ok(Some(known.situation.clone()));
        }
        self.recorded = None;
        let Some(seen) = Seen::recorded(&observation) else { return Ok(None) };
        // Drop the memory of the view, since it would turn this into a second look.
        self.forget_view(&seen.view());
        match self.look_again(&seen, at)? {
            Again::Judged(judged) => {
                let situation = Arc::new(judged.situation);
                let judgement = RecordedJudgement { hash, record, situation: situation.clone() };
                self.recorded = Some(judgement);
                Ok(Some(situation))
            }
            Again::Same | Again::Switched(_) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests;
