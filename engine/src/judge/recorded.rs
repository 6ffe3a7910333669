//! How a server stands by what was last recorded of it. A gateway lists it like that without starting it.

use super::{Again, Instance, Judge, Judged, Seen};
use contract::json::Document;
use contract::surface::{EntryId, EntryType, ListKind};
use gate::time::Timestamp;
use std::sync::Arc;
use store::{Observation, Store, StoreError};
use wire::listing::ListOutcome;

/// What was recorded is no process's: it has a view of its own.
const RECORDED: Instance = Instance(u64::MAX);

impl Seen {
    /// What a server said when it was last observed; `None` if that cannot be read any more.
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

impl Judge {
    /// Judges what was last recorded of the server. Nothing is asked of it and nothing is written. Returns `None` if it was
    /// never observed.
    pub fn judge_recorded(&mut self, at: Timestamp) -> Result<Option<Judged>, StoreError> {
        let observation = self.store.observation(&self.rules.server)?;
        let Some(seen) = observation.as_ref().and_then(Seen::recorded) else { return Ok(None) };
        // The memory of a view makes a second look cheap; here a first look is wanted each time.
        self.forget_view(&seen.view());
        match self.look_again(&seen, at)? {
            Again::Judged(judged) => Ok(Some(*judged)),
            Again::Same | Again::Switched(_) => Ok(None),
        }
    }
}
