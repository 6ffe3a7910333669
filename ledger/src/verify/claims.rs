//! Cross-references between chains: when a chain is opened or continued, it records the newest line
//! of every other chain.
//!
//! So as long as another chain refers to it, the end of a chain can neither be removed nor replaced
//! by an older copy.

use super::report::{Problem, Report};
use crate::folder::{ChainId, Folder, SegmentNumber};
use crate::index::Index;
use crate::line::{Line, LineHash, scan};
use crate::lines::{LineReader, Piece};
use serde_json::Value;
use std::collections::BTreeMap;

/// The most lines per chain for which references by other chains are kept. The newest are kept.
pub const MAX_CLAIMS_PER_CHAIN: usize = 10_000;

/// The source of a claim.
#[derive(Debug, Clone)]
struct Claim {
    hash: LineHash,
    by: ChainId,
    segment: SegmentNumber,
    line: u64,
}

/// Claims by the chain that they refer to and the number of the line there.
#[derive(Debug, Default)]
pub(super) struct Claims {
    about: BTreeMap<ChainId, BTreeMap<u64, Claim>>,
}

impl Claims {
    /// Stores the claims in a signed line. The first claim about a line is kept.
    pub(super) fn take(
        &mut self,
        by: &ChainId,
        segment: SegmentNumber,
        number: u64,
        line: &Line<'_>,
    ) {
        if !matches!(line.name, Some("chain.opened" | "chain.resumed")) {
            return;
        }
        let Ok(value) = serde_json::from_slice::<Value>(line.bytes) else { return };
        let others = value.pointer("/data/others").and_then(Value::as_array);
        for other in others.into_iter().flatten() {
            let Some((about, seq, hash)) = read_claim(other) else { continue };
            let claims = self.about.entry(about).or_default();
            let claim = Claim { hash, by: by.clone(), segment, line: number };
            claims.entry(seq).or_insert(claim);
            if claims.len() > MAX_CLAIMS_PER_CHAIN {
                claims.pop_first();
            }
        }
    }

    /// Looks up every referenced line. Lists the folder again, because a chain may have grown since
    /// it was read.
    pub(super) fn check(&self, folder: &dyn Folder, index: &Index, report: &mut Report) {
        let Ok(listing) = folder.listing() else { return };
        for (about, claims) in &self.about {
            let Some(files) = listing.chains.get(about) else {
                // A chain listed in the index was already reported as missing.
                let newest = claims.last_key_value().filter(|_| !index.chains.contains_key(about));
                if let Some((_, claim)) = newest {
                    report.problem(claim.broken(&format!("it names chain {about}, which is gone")));
                }
                continue;
            };
            let mut open = claims.clone();
            for number in files.segments.keys() {
                if open.is_empty() {
                    break;
                }
                compare_segment(folder, about, *number, &mut open, report);
            }
            // Lines before the first segment were dropped with their segments.
            let rest = open.last_key_value();
            if let Some((seq, claim)) = rest.filter(|(seq, _)| !is_dropped(index, about, **seq)) {
                report.problem(Problem::of_chain(
                    about,
                    format!(
                        "line {} is gone, which chain {} saw (its segment {}, line {})",
                        seq.saturating_add(1),
                        claim.by,
                        claim.segment,
                        claim.line
                    ),
                ));
            }
        }
    }
}

impl Claim {
    fn broken(&self, what: &str) -> Problem {
        Problem {
            chain: Some(self.by.clone()),
            segment: Some(self.segment),
            line: Some(self.line),
            what: what.to_owned(),
        }
    }
}

fn read_claim(other: &Value) -> Option<(ChainId, u64, LineHash)> {
    let chain = other.get("chain")?.as_str()?.parse().ok()?;
    let hash = other.get("hash")?.as_str()?.parse().ok()?;
    Some((chain, other.get("seq")?.as_u64()?, hash))
}

fn is_dropped(index: &Index, chain: &ChainId, seq: u64) -> bool {
    let dropped = index.dropped.get(chain);
    dropped.is_some_and(|segments| segments.values().any(|segment| seq < segment.next_seq()))
}

/// Checks and removes the claims about lines of one segment. The lines were already verified, so
/// they are only counted here.
fn compare_segment(
    folder: &dyn Folder,
    about: &ChainId,
    number: SegmentNumber,
    open: &mut BTreeMap<u64, Claim>,
    report: &mut Report,
) {
    let Ok(source) = folder.segment(about, number) else { return };
    let mut reader = LineReader::new(source);
    let mut seq = None;
    while let Ok(Some(Piece::Line(bytes))) = reader.next_piece() {
        let here = match seq {
            Some(seq) => seq,
            None => match scan(bytes) {
                Ok(first) => first.seq,
                // A bad first line was already reported, and claims about the segment cannot be
                // checked.
                Err(_) => return,
            },
        };
        if let Some(claim) = open.remove(&here) {
            let is_same = scan(bytes).is_ok_and(|line| line.hash == claim.hash);
            if !is_same {
                let what = format!(
                    "it names line {} of chain {about}, which has changed since",
                    here.saturating_add(1)
                );
                report.problem(claim.broken(&what));
            }
        }
        if open.is_empty() {
            return;
        }
        seq = Some(here.saturating_add(1));
    }
}
