//! Held changes and what people decided on them, read from the ledger, which also has past days.

use contract::change::{ChangeClass, ChangeKind};
use gate::time::Timestamp;
use ledger::receipt::EventReceipt;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use store::Day;

/// A change that was found and held, or that a person decided on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct HeldChange {
    pub(crate) at: Timestamp,
    /// The person who decided; `None` if the gate only found the change.
    pub(crate) by: Option<String>,
    pub(crate) what: WhatOfHold,
    #[serde(flatten)]
    pub(crate) change: Change,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WhatOfHold {
    Held,
    /// A person approved it.
    Overridden,
    /// A person stopped the server.
    Confirmed,
}

impl WhatOfHold {
    pub(crate) const fn words(self) -> &'static str {
        match self {
            WhatOfHold::Held => "held",
            WhatOfHold::Overridden => "approved (overridden)",
            WhatOfHold::Confirmed => "stopped (confirmed)",
        }
    }
}

/// A change as recorded in the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Change {
    #[serde(rename = "type")]
    pub(crate) entry_type: String,
    pub(crate) key: String,
    pub(crate) kinds: Vec<String>,
    pub(crate) entry_hash: Hashes,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hashes {
    pub(crate) before: Option<String>,
    pub(crate) after: Option<String>,
}

/// The safety-relevant changes of one server on the day, oldest first, without duplicates.
pub(crate) fn held_changes(events: &[EventReceipt], server: &str, day: Day) -> Vec<HeldChange> {
    let of_server = events.iter().filter(|event| event.server_id.as_deref() == Some(server));
    let mut told = BTreeSet::new();
    let mut changes = Vec::new();
    for event in of_server.filter(|event| Day::of(event.ts) == day) {
        let Some(data) = &event.data else { continue };
        let what = match event.name.as_str() {
            "outcome.overridden" => WhatOfHold::Overridden,
            "outcome.confirmed" => WhatOfHold::Confirmed,
            _ => WhatOfHold::Held,
        };
        let found: Vec<Change> = match what {
            WhatOfHold::Held => {
                let held = data.get("held").cloned().unwrap_or_default();
                serde_json::from_value(held).unwrap_or_default()
            }
            WhatOfHold::Overridden | WhatOfHold::Confirmed => {
                serde_json::from_value(data.clone()).into_iter().collect()
            }
        };
        for change in found.into_iter().filter(is_safety_relevant) {
            let after = change.entry_hash.after.clone();
            if told.insert((what.words(), change.entry_type.clone(), change.key.clone(), after)) {
                let by = event.by.clone().filter(|_| what != WhatOfHold::Held);
                changes.push(HeldChange { at: event.ts, by, what, change });
            }
        }
    }
    changes
}

/// Reports kinds that are unknown here as well: a newer Holdpoint wrote them.
fn is_safety_relevant(change: &Change) -> bool {
    let class = |kind: &String| {
        ChangeKind::ALL.iter().find(|known| known.as_str() == kind).map(|kind| kind.class())
    };
    change.kinds.iter().any(|kind| class(kind).is_none_or(ChangeClass::is_safety_relevant))
}
