//! Reduces a server's history to the events of one day.

use gate::pins::Basis;
use gate::posture::Posture;
use gate::server::ServerStatus;
use gate::time::Timestamp;
use serde::Serialize;
use store::{Day, HistoryEvent};

/// The most entries that are named per event. The others are only counted.
pub(crate) const MAX_NAMED: usize = 20;

/// An event that a digest reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Happening {
    pub(crate) at: Timestamp,
    pub(crate) by: String,
    pub(crate) what: What,
    /// The first [`MAX_NAMED`] of the entries, as `tool:make_report`.
    pub(crate) entries: Vec<String>,
    pub(crate) entry_count: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum What {
    /// A change began to be held.
    Held,
    /// A change was found but not held, because the posture is monitor.
    Noted,
    Pinned,
    Approved,
    Quarantined,
    Released,
    RolledBack,
    /// The gate was taken out of its host's file.
    Unwired,
    /// Pins that did not authenticate were removed.
    Discarded,
}

impl What {
    pub(crate) const fn words(self) -> &'static str {
        match self {
            What::Held => "a change began to be held",
            What::Noted => "a change was noted, not held (posture monitor)",
            What::Pinned => "pinned",
            What::Approved => "approved",
            What::Quarantined => "quarantined",
            What::Released => "released",
            What::RolledBack => "rolled back",
            What::Unwired => "the gate was taken out of its host's file",
            What::Discarded => "pins were discarded because another program had changed them",
        }
    }

    /// Whether a history line below an act names an entry that this kind of event concerns.
    fn touches(self, line: &HistoryEvent) -> bool {
        match self {
            What::Pinned => line.action == "pin.added" && !is_auto(line),
            What::Approved => line.action == "pin.added",
            What::RolledBack => line.action == "pin.withdrawn",
            What::Discarded => line.action == "pin.discarded",
            What::Held | What::Noted | What::Quarantined | What::Released | What::Unwired => false,
        }
    }
}

/// The events of the day, oldest first, and how many entries were accepted as benign. History does
/// not record the posture of the day, so the current one is used.
pub(crate) fn happenings(
    history: &[HistoryEvent],
    day: Day,
    posture: Posture,
) -> (Vec<Happening>, usize) {
    let (mut happened, mut benign) = (Vec::new(), 0);
    let acts = history.chunk_by(|before, after| before.act == after.act);
    for lines in acts {
        let Some(own) = lines.first().filter(|own| Day::of(own.at) == day) else { continue };
        benign += lines.iter().filter(|line| line.basis == Some(Basis::Auto)).count();
        for what in kinds_of_event(own, lines, posture) {
            happened.push(Happening::new(own, what, &named(lines, |line| what.touches(line))));
        }
    }
    (happened, benign)
}

/// The kinds of event that an act amounts to; empty if it is not worth reporting.
fn kinds_of_event(own: &HistoryEvent, lines: &[HistoryEvent], posture: Posture) -> Vec<What> {
    let mut whats = Vec::new();
    if lines.iter().any(|line| What::Discarded.touches(line)) {
        whats.push(What::Discarded);
    }
    let by_a_person = match &*own.action {
        "server.approve" => Some(What::Approved),
        "server.quarantine" => Some(What::Quarantined),
        "server.release" => Some(What::Released),
        "server.rollback" => Some(What::RolledBack),
        "server.unwire" => Some(What::Unwired),
        _ => None,
    };
    if by_a_person.is_some() {
        whats.extend(by_a_person);
        return whats;
    }
    if lines.iter().any(|line| What::Pinned.touches(line)) {
        whats.push(What::Pinned);
    }
    if own.status_after == Some(ServerStatus::Changed) {
        whats.push(match posture {
            Posture::Monitor => What::Noted,
            Posture::Shield | Posture::Guard | Posture::Strict => What::Held,
        });
    }
    whats
}

fn is_auto(line: &HistoryEvent) -> bool {
    line.basis == Some(Basis::Auto)
}

fn named(lines: &[HistoryEvent], is_meant: impl Fn(&HistoryEvent) -> bool) -> Vec<String> {
    let names = lines.iter().filter(|line| is_meant(line)).map(|line| {
        let kind = line.entry_type.map_or("entry", |entry_type| entry_type.as_str());
        format!("{kind}:{}", line.key.as_deref().unwrap_or_default())
    });
    names.collect()
}

impl Happening {
    fn new(own: &HistoryEvent, what: What, entries: &[String]) -> Happening {
        Happening {
            at: own.at,
            by: own.by.clone(),
            what,
            entries: entries.iter().take(MAX_NAMED).cloned().collect(),
            entry_count: entries.len(),
        }
    }
}

#[cfg(test)]
mod tests;
