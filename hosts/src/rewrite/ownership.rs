//! Determines which gates in a file `wire` added. Those are removed again, and the ones that a
//! person wrote stay.

use super::Wiring;
use crate::entry::{Entry, Launch, launch};
use crate::guard::Guarded;
use crate::identity::is_given;
use crate::table::Shape;
use std::collections::BTreeSet;

/// The facts about the gates in one text.
pub(super) struct Ownership<'k> {
    /// The wirings stored when the file was wired; `None` if there is no record of it.
    wirings: Option<&'k [Wiring]>,
    /// The ids that are written in the text.
    ids: BTreeSet<String>,
}

impl<'k> Ownership<'k> {
    pub(super) fn new(
        wirings: Option<&'k [Wiring]>,
        found: &[Entry<'_>],
        shape: &Shape,
    ) -> Ownership<'k> {
        let id = |entry: &Entry<'_>| match launch(entry, shape) {
            Ok(Launch::Program(program)) => program.guarded()?.server,
            Ok(Launch::Remote(_)) | Err(_) => None,
        };
        Ownership { wirings, ids: found.iter().filter_map(id).collect() }
    }

    /// The stored wiring of an entry. The id is unique to us. If a person removed it, the place
    /// identifies the entry, unless the original entry has moved elsewhere.
    pub(super) fn wiring(&self, entry: &Entry<'_>, guarded: &Guarded) -> Option<&'k Wiring> {
        let wirings = self.wirings.unwrap_or_default();
        let by_id = wirings.iter().find(|wiring| guarded.server.as_ref() == Some(&wiring.id));
        by_id.or_else(|| {
            let is_here =
                |wiring: &&Wiring| wiring.place == entry.place && !self.ids.contains(&wiring.id);
            wirings.iter().find(is_here)
        })
    }

    /// Whether `wire` added a gate. Without a record of the file, the id decides: those that `wire`
    /// assigns start with a host.
    pub(super) fn is_ours(&self, entry: &Entry<'_>, guarded: &Guarded) -> bool {
        match self.wirings {
            Some(_) => self.wiring(entry, guarded).is_some(),
            None => guarded.server.as_deref().is_some_and(is_given),
        }
    }
}
