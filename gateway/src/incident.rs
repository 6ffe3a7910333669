//! Incident mode in a gateway process: reports its state, writes quarantines to the store, and
//! reports drills.

use crate::node::Node;
use crate::resources::Remark;
use engine::anomaly::HandOver;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use store::{DrillSighting, DrillStore, Home, IncidentState, IncidentStore, Location, Witnessed};

/// Writes quarantines to the store on a separate thread that carries no calls.
pub(crate) fn hand_over(
    home: &Home,
    location: &Location,
    remark: &Arc<Remark>,
    runtime: &tokio::runtime::Handle,
) -> Box<HandOver> {
    let (home, location) = (home.clone(), location.clone());
    let (remark, runtime) = (remark.clone(), runtime.clone());
    Box::new(move |anomalies, quarantine| {
        let (home, location, remark) = (home.clone(), location.clone(), remark.clone());
        runtime.spawn_blocking(move || {
            let written = store::open(&home, &location)
                .and_then(|store| Witnessed::new(store, &home).quarantine(&quarantine));
            match written {
                Ok(()) => anomalies.stored(&quarantine.id()),
                Err(error) => remark(&format!(
                    "a session is quarantined on this node alone, the store could not be written: {error}"
                )),
            }
        });
    })
}

impl Node {
    /// The text of `/readyz` about incident mode. It names no server or person, because the route
    /// needs no identity.
    pub(crate) fn incident_words(&self) -> Option<String> {
        let state = self.incident.load();
        let IncidentState { incident, egress_blocked, quarantines, .. } = &**state;
        let words = [
            incident.as_ref().map(|_| "an incident is on".to_owned()),
            egress_blocked.as_ref().map(|_| "outgoing connections are blocked".to_owned()),
            match quarantines.len() {
                0 => None,
                1 => Some("1 session is quarantined".to_owned()),
                many => Some(format!("{many} sessions are quarantined")),
            },
        ];
        let words: Vec<String> = words.into_iter().flatten().collect();
        (!words.is_empty()).then(|| words.join("; "))
    }

    /// Reports a new drill: everything that was in the store before it takes effect here now.
    pub(crate) fn report_drill(&self, store: &mut Witnessed) {
        let Ok(drill) = store.last_drill() else { return };
        if drill == 0 || self.drilled.swap(drill, Ordering::Relaxed) == drill {
            return;
        }
        let cluster = self.cluster.as_ref();
        let node = cluster.map_or(self.id, |cluster| cluster.id()).to_string();
        let settings = self.shared.settings();
        let peer = cluster.and_then(|cluster| cluster.own_address());
        let place = peer.unwrap_or_else(|| settings.front.listen.to_string());
        if let Err(error) = store.note_drill(drill, &DrillSighting { node, place }) {
            self.remark(&format!("a drill of incident mode could not be reported: {error}"));
        }
    }
}
