//! Determines from a server's history since when changes have been waiting.

use gate::judge::Judgement;
use gate::server::ServerStatus;
use gate::time::Timestamp;
use store::HistoryEvent;

/// Since when entries of a server have been waiting. Each act in the history records the hash of
/// the whole surface rather than of each entry, so this is known only if nothing else in the
/// surface changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Since {
    held: Option<Timestamp>,
    deferred: Option<Timestamp>,
}

impl Since {
    pub fn read(history: &[HistoryEvent]) -> Since {
        let acts: Vec<&HistoryEvent> =
            history.iter().filter(|event| event.seq == event.act).collect();
        let has_moved = |act: &HistoryEvent| {
            act.surface_hash_after.is_some() && act.surface_hash_before != act.surface_hash_after
        };
        let is_first = |act: &HistoryEvent| act.surface_hash_before.is_none();
        // Nothing was held before the status changed to its current value, so everything held now
        // was held from that act on.
        let turned = acts
            .iter()
            .rposition(|act| act.status_after.is_some() && act.status_before != act.status_after);
        let (before, after) = acts.split_at(turned.map_or(0, |turned| turned + 1));
        let turned = before.last().filter(|_| !after.iter().any(|act| has_moved(act)));
        let held = turned.filter(|act| {
            matches!(act.status_after, Some(ServerStatus::Changed | ServerStatus::Pending))
        });
        // A deferred entry does not affect the status. If the surface changed exactly once, that
        // was the entry's change.
        let mut moved = acts.iter().filter(|act| has_moved(act) && !is_first(act));
        let deferred = moved.next().filter(|_| moved.next().is_none());
        Since { held: held.map(|act| act.at), deferred: deferred.map(|act| act.at) }
    }

    pub fn of(self, entry: &Judgement) -> Option<Timestamp> {
        if entry.verdict.is_held() { self.held } else { self.deferred }
    }
}
