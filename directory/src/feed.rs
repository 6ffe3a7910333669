//! The network's data for members, built from the log: its parameters, the drift feed and the
//! advisories.
//!
//! Sequence numbers are positions in the log's lists, which only grow, so that every process of a
//! directory assigns the same numbers.

use crate::entry::AdvisoryFinding;
use crate::model::{Drift, Model};
use contract::change::ChangeKind;
use contract::hash::{DefinitionHash, EntryHash};
use gate::network::messages::DriftSource;
use gate::network::{
    Advisory, AdvisoryKind, AdvisoryPage, DriftEntry, DriftPage, DriftReport, Hour,
    MAX_PAGE_ENTRIES, Parameters, ReasonClass, Salt,
};

/// The number of known contracts, which determines the width of buckets.
///
/// Contributions alone do not count: a key could make buckets narrower by sending made-up hashes.
pub fn parameters(model: &Model, served_rows: u64, salt: Salt) -> Parameters {
    let definitions = u64::try_from(model.definitions()).unwrap_or(u64::MAX);
    Parameters::new(definitions.max(served_rows), salt)
}

/// Changes that the crawler recorded after a number. Added and removed entries have no pair of
/// fingerprints and are left out.
pub fn drift_page(model: &Model, salt: &Salt, after: u64) -> DriftPage {
    let skipped = usize::try_from(after).unwrap_or(usize::MAX);
    let numbered = model.drifts.iter().zip(1_u64..).skip(skipped);
    let entries = numbered.filter_map(|(drift, seq)| {
        let change = fingerprinted(drift, salt)?;
        Some(DriftEntry { seq, change, source: DriftSource::Crawler })
    });
    let entries: Vec<DriftEntry> = entries.take(MAX_PAGE_ENTRIES).collect();
    DriftPage::new(entries.last().map_or(after, |entry| entry.seq), entries)
}

fn fingerprinted(drift: &Drift, salt: &Salt) -> Option<DriftReport> {
    let print = |hash: &Option<String>| -> Option<_> {
        let hash: EntryHash = hash.as_deref()?.parse().ok()?;
        Some(salt.fingerprint(hash))
    };
    let known = |name: &String| ChangeKind::ALL.iter().copied().find(|it| it.as_str() == name);
    let change = DriftReport {
        fp_before: print(&drift.item.entry_before)?,
        fp_after: print(&drift.item.entry_after)?,
        kinds: drift.item.kinds.iter().filter_map(known).collect(),
        safety: drift.item.safety,
        hour: Hour::of(drift.at.0),
    };
    Some(change.sorted())
}

/// Advisories after a number, one for each definition that an entry names.
pub fn advisory_page(model: &Model, after: u64) -> AdvisoryPage {
    let skipped = usize::try_from(after).unwrap_or(usize::MAX);
    let named = model.advisories.iter().flat_map(|(at, _, advisory)| {
        advisory.hashes.definitions.iter().map(move |definition| (at, advisory, definition))
    });
    let advisories = named.zip(1_u64..).skip(skipped).filter_map(|((at, advisory, hash), seq)| {
        let definition_hash: DefinitionHash = hash.parse().ok()?;
        Some(Advisory {
            seq,
            definition_hash,
            kind: match advisory.finding {
                AdvisoryFinding::Dangerous => AdvisoryKind::Dangerous,
                AdvisoryFinding::Withdrawn => AdvisoryKind::Withdrawn,
            },
            reason_class: ReasonClass::or_unstated(&advisory.reason_class),
            hour: Hour::of(at.0),
        })
    });
    let advisories: Vec<Advisory> = advisories.take(MAX_PAGE_ENTRIES).collect();
    AdvisoryPage::new(advisories.last().map_or(after, |it| it.seq), advisories)
}
