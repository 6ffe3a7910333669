//! The decisions of people here, in the form that the corpus accepts. They are read from the
//! ledger, so it does not matter where they were made.
//!
//! A quarantine contributes `dangerous` for the held changes that it confirms, and an approval
//! contributes `cleared` for those that it overrides. Tiers contribute nothing.

use super::folder::NetworkFolder;
use contract::hash::DefinitionHash;
use contract::time::Timestamp;
use gate::network::{CorpusRow, CorpusVerdict, ReasonClass};
use ledger::receipt::EventReceipt;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

const FILE: &str = "contributions.json";
/// The most rows that are remembered as sent.
const MAX_TOLD: usize = 10_000;

/// One row, and when a person decided it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contribution {
    pub at: Timestamp,
    pub row: CorpusRow,
}

/// Since when decisions are contributed, and which were sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContributionsSince {
    url: String,
    since: i64,
    /// The definition and verdict of each row that was sent.
    told: BTreeSet<(String, String)>,
}

impl ContributionsSince {
    /// Starts now: decisions made before the operator agreed to contribute are not sent.
    pub fn begin(folder: &NetworkFolder, url: &str, now: Timestamp) -> ContributionsSince {
        let begun = ContributionsSince { url: url.to_owned(), since: now.0, told: BTreeSet::new() };
        begun.write(folder);
        begun
    }

    pub fn read(folder: &NetworkFolder, url: &str) -> Option<ContributionsSince> {
        let read: ContributionsSince = serde_json::from_slice(&folder.read(FILE)?).ok()?;
        (read.url == url).then_some(read)
    }

    /// The rows that are waiting to be contributed, oldest first.
    pub fn waiting(&self, events: &[EventReceipt]) -> Vec<Contribution> {
        let mut known = self.told.clone();
        let mut waiting = contributions(events);
        waiting.retain(|it| it.at.0 >= self.since && known.insert(name_of(&it.row)));
        waiting
    }

    pub(super) fn tell(&mut self, folder: &NetworkFolder, row: &CorpusRow) {
        if self.told.len() >= MAX_TOLD {
            self.told.clear();
        }
        self.told.insert(name_of(row));
        self.write(folder);
    }

    fn write(&self, folder: &NetworkFolder) {
        if let Ok(bytes) = serde_json::to_vec(self) {
            let _ = folder.write(FILE, &bytes);
        }
    }
}

fn name_of(row: &CorpusRow) -> (String, String) {
    (row.definition_hash.to_string(), row.verdict.to_string())
}

/// What people's acts among these events say about definitions.
pub fn contributions(events: &[EventReceipt]) -> Vec<Contribution> {
    events.iter().filter_map(of_event).collect()
}

fn of_event(event: &EventReceipt) -> Option<Contribution> {
    // Without a person's name, no person decided.
    event.by.as_ref()?;
    let data = event.data.as_ref()?;
    let kinds = data.get("kinds").and_then(serde_json::Value::as_array);
    let has = |kind: &str| kinds.is_some_and(|kinds| kinds.iter().any(|it| it == kind));
    let (verdict, reason_class) = match event.name.as_str() {
        "outcome.overridden" => (CorpusVerdict::Cleared, ReasonClass::ReviewedBenign),
        "outcome.confirmed" if has("marker-found") => {
            (CorpusVerdict::Dangerous, ReasonClass::Injection)
        }
        "outcome.confirmed" if has("annotation-flip-to-destructive") => {
            (CorpusVerdict::Dangerous, ReasonClass::DestructiveFlip)
        }
        "outcome.confirmed" => (CorpusVerdict::Dangerous, ReasonClass::Unstated),
        _ => return None,
    };
    let definition_hash: DefinitionHash = data.get("definition_hash")?.as_str()?.parse().ok()?;
    Some(Contribution { at: event.ts, row: CorpusRow { definition_hash, verdict, reason_class } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn event(name: &str, by: Option<&str>, kinds: &[&str], at: i64) -> EventReceipt {
        let definition = DefinitionHash::from_bytes([7; 32]);
        EventReceipt {
            ts: Timestamp(at),
            name: name.to_owned(),
            by: by.map(str::to_owned),
            server_id: Some("reports".to_owned()),
            data: Some(
                json!({"definition_hash": definition, "kinds": kinds, "key": "make_report"}),
            ),
            chain: "index".parse().unwrap(),
            seq: 1,
            hash: String::new(),
        }
    }

    #[test]
    fn a_quarantine_contributes_dangerous_and_an_approval_cleared() {
        let check = |name, kinds: &[&str], verdict, class| {
            let found = contributions(&[event(name, Some("ada"), kinds, 5)]);
            let row = found.first().map(|it| (it.row.verdict, it.row.reason_class));
            assert_eq!(row, Some((verdict, class)), "{name}");
        };
        let (cleared, dangerous) = (CorpusVerdict::Cleared, CorpusVerdict::Dangerous);
        check("outcome.overridden", &["marker-found"], cleared, ReasonClass::ReviewedBenign);
        check("outcome.confirmed", &["removed-param"], dangerous, ReasonClass::Unstated);
        check("outcome.confirmed", &["marker-found"], dangerous, ReasonClass::Injection);
        let flip = ["annotation-flip-to-destructive"];
        check("outcome.confirmed", &flip, dangerous, ReasonClass::DestructiveFlip);
    }

    #[test]
    fn what_no_person_decided_or_has_no_definition_contributes_nothing() {
        let mut instructions = event("outcome.confirmed", Some("ada"), &[], 5);
        instructions.data = Some(json!({"definition_hash": null, "kinds": []}));
        let none = [
            event("outcome.confirmed", None, &[], 5),
            event("behavior.observed", Some("ada"), &[], 5),
            event("server.approve", Some("ada"), &[], 5),
            instructions,
        ];
        assert!(contributions(&none).is_empty());
    }

    #[test]
    fn decisions_from_before_are_kept_here_and_each_is_told_once() {
        let home = tempfile::tempdir().unwrap();
        let folder = NetworkFolder::of(home.path());
        let url = "https://d.example";
        let mut since = ContributionsSince::begin(&folder, url, Timestamp(10));
        let events = [
            event("outcome.confirmed", Some("ada"), &[], 9),
            event("outcome.overridden", Some("ada"), &[], 10),
            event("outcome.overridden", Some("bob"), &[], 11),
        ];
        let waiting = since.waiting(&events);
        assert_eq!(waiting.len(), 1, "{waiting:?}");
        since.tell(&folder, &waiting[0].row);
        assert!(since.waiting(&events).is_empty());
        assert_eq!(ContributionsSince::read(&folder, url), Some(since));
        assert_eq!(ContributionsSince::read(&folder, "https://other.example"), None);
    }
}
