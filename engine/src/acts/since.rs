//! Since when changes wait, by the history of a server.

use gate::judge::Judgement;
use gate::server::ServerStatus;
use gate::time::Timestamp;
use store::HistoryEvent;

/// Since when entries of a server wait. The history has the hash of the whole surface at each act and not of each entry, so
/// this is known only while nothing else of the surface changed.
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
        // Nothing was held before the status became what it is, so everything that is held began to be at that act.
        let turned = acts
            .iter()
            .rposition(|act| act.status_after.is_some() && act.status_before != act.status_after);
        let (before, after) = acts.split_at(turned.map_or(0, |turned| turned + 1));
        let turned = before.last().filter(|_| !after.iter().any(|act| has_moved(act)));
        let held = turned.filter(|act| {
            matches!(act.status_after, Some(ServerStatus::Changed | ServerStatus::Pending))
        });
        // A deferred entry leaves the status alone. If the surface moved once, it is what moved.
        let mut moved = acts.iter().filter(|act| has_moved(act) && !is_first(act));
        let deferred = moved.next().filter(|_| moved.next().is_none());
        Since { held: held.map(|act| act.at), deferred: deferred.map(|act| act.at) }
    }

    pub fn of(self, entry: &Judgement) -> Option<Timestamp> {
        if entry.verdict.is_held() { self.held } else { self.deferred }
    }
}
