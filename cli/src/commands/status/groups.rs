//! Servers of several hosts that are launched the same way. They are shown as one if they are in
//! the same state.

use super::{Standing, bases, pinned};
use crate::last_check::LastCheck;
use crate::sharing;
use contract::surface::{Entry, EntryType};
use gate::server::ServerId;
use std::collections::BTreeSet;

/// A group of servers that is shown as one.
#[derive(Debug)]
pub(super) struct OneByLaunch<'a> {
    pub(super) first: &'a Standing<'a>,
    /// Other servers that are launched the same way and are in the same state.
    others: Vec<&'a ServerId>,
}

/// All servers in order, grouped.
pub(super) fn one_by_launch<'a>(servers: &'a [Standing<'a>]) -> Vec<OneByLaunch<'a>> {
    let mut groups: Vec<OneByLaunch<'a>> = Vec::new();
    for server in servers {
        let is_with = |group: &&mut OneByLaunch<'a>| {
            group.first.judged.server.siblings.contains(server.id)
                && shown_state(group.first) == shown_state(server)
        };
        match groups.iter_mut().find(is_with) {
            Some(group) => group.others.push(server.id),
            None => groups.push(OneByLaunch { first: server, others: Vec::new() }),
        }
    }
    groups
}

impl OneByLaunch<'_> {
    fn ids(&self) -> impl Iterator<Item = &ServerId> {
        std::iter::once(self.first.id).chain(self.others.iter().copied())
    }

    pub(super) fn names(&self) -> String {
        self.ids().map(ServerId::as_str).collect::<Vec<_>>().join(", ")
    }

    /// A sentence naming the servers outside of the group that a decision also applies to.
    pub(super) fn sentence(&self) -> Option<String> {
        let siblings = self.first.judged.server.siblings.iter();
        let elsewhere: Vec<ServerId> =
            siblings.filter(|id| !self.others.contains(id)).cloned().collect();
        let together = match self.others.len() {
            0 => None,
            others => {
                let hosts: BTreeSet<&str> = self.ids().map(host_of).collect();
                Some(match hosts.len() == others + 1 {
                    true => format!("one server in {} hosts", others + 1),
                    false => format!("one server with {} ids", others + 1),
                })
            }
        };
        let further = sharing::counts_for(&elsewhere);
        match (together, further) {
            (Some(together), Some(further)) => Some(format!("{together}; {further}")),
            (Some(together), None) => {
                Some(format!("{together}: a decision counts for all of them"))
            }
            (None, further) => further,
        }
    }
}

/// The host part of an id made by `wire`.
fn host_of(id: &ServerId) -> &str {
    id.as_str().split('.').next().unwrap_or_default()
}

/// Everything that is shown of a server, except its name and the time since when.
fn shown_state(standing: &Standing<'_>) -> impl PartialEq + use<> {
    let Standing { judged, check, .. } = standing;
    let waiting: Vec<_> = judged
        .waiting()
        .map(|entry| {
            let after = entry.after.as_ref().map(Entry::entry_hash);
            (entry.id.clone(), entry.verdict, entry.is_deferred, after)
        })
        .collect();
    (
        (judged.status(), judged.judgement.posture, bases(judged)),
        (pinned(judged, EntryType::Tool), judged.server.snapshot.pins.iter().count()),
        judged.server.snapshot.pins.lost.clone(),
        check.as_ref().and_then(LastCheck::warning),
        waiting,
    )
}
