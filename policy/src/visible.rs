//! What a caller may see of a server: everything for which some request could be permitted.

use crate::caller::Caller;
use crate::decide::{ClassOutcome, Located};
use crate::place::{ClassNumber, Place};
use crate::policies::Policies;
use crate::request::AccessRequest;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// The parts of one server that a caller may see.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VisibleSet {
    tools: BTreeSet<Arc<str>>,
    prompts: BTreeSet<Arc<str>>,
    resources: BTreeSet<Arc<str>>,
}

impl VisibleSet {
    pub fn has_tool(&self, name: &str) -> bool {
        self.tools.contains(name)
    }

    pub fn has_prompt(&self, name: &str) -> bool {
        self.prompts.contains(name)
    }

    pub fn has_resource(&self, uri: &str) -> bool {
        self.resources.contains(uri)
    }

    pub fn tools(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|name| &**name)
    }

    pub fn prompts(&self) -> impl Iterator<Item = &str> {
        self.prompts.iter().map(|name| &**name)
    }

    pub fn resources(&self) -> impl Iterator<Item = &str> {
        self.resources.iter().map(|uri| &**uri)
    }

    pub fn is_empty(&self) -> bool {
        self.tools.is_empty() && self.prompts.is_empty() && self.resources.is_empty()
    }
}

impl Policies {
    /// What the caller may see of a server. Empty if the server does not exist or serves other
    /// orgs.
    pub fn visible(&self, caller: &Caller, server: &str) -> Arc<VisibleSet> {
        let Some(place) = self.servers.get(server) else { return Arc::default() };
        if self.refused_outright(caller.identity(), &AccessRequest::Use { server }).is_some() {
            return Arc::default();
        }
        let key = (caller.key(), place.epoch);
        let shard = caller.key().shard();
        if let Some(known) = self.caches.visible.get(shard, &key) {
            return known;
        }
        let mut seen: HashMap<ClassNumber, bool> = HashMap::new();
        let mut choose = |classes: &HashMap<Arc<str>, ClassNumber>| {
            let shown = classes.iter().filter(|(_, class)| {
                *seen
                    .entry(**class)
                    .or_insert_with(|| self.class_could_permit(caller, place, **class))
            });
            shown.map(|(name, _)| Arc::clone(name)).collect::<BTreeSet<_>>()
        };
        let visible = Arc::new(VisibleSet {
            tools: choose(&place.tools),
            prompts: choose(&place.prompts),
            resources: choose(&place.resources),
        });
        self.caches.visible.insert(shard, key, Arc::clone(&visible));
        visible
    }

    /// Whether the caller could be permitted this with some arguments. Anything that the caller
    /// could never be permitted is treated as nonexistent.
    pub fn could_permit(&self, caller: &Caller, request: &AccessRequest<'_>) -> bool {
        if self.refused_outright(caller.identity(), request).is_some() {
            return false;
        }
        match self.locate(request) {
            Located::Nothing => false,
            Located::Class(place, class) => self.class_could_permit(caller, place, class),
            Located::Single(_) => self.decide(caller, request).is_permit(),
        }
    }

    fn class_could_permit(&self, caller: &Caller, place: &Place, class: ClassNumber) -> bool {
        match self.outcome(caller, place, class) {
            ClassOutcome::Decided(decision) => decision.is_permit(),
            ClassOutcome::Depends { could_permit } => could_permit,
        }
    }
}
