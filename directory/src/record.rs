//! Turns an observation into log entries: the changes since the last visit, and the screen's
//! current verdict.
//!
//! Pure: takes the model, the observation and the previous contract, and returns entries and the
//! contracts they name.

use crate::crawl::{Manifest, NotListed, Observation, Outcome, release_order};
use crate::entry::{
    BadEntry, DriftHashes, DriftItem, DriftStatement, ENTRY_VERSION, Entry, Moment, ServerFacts,
    Statement, Subject, ToolItem, VerdictHashes, VerdictStatement, VisitOutcome, canonical_of,
    entry_hash, item_hash,
};
use crate::log::MAX_ENTRY_BYTES;
use crate::model::{MAX_ENTRIES_A_DAY, Model, Server};
use contract::change::ChangeClass;
use contract::diff::{EntryDiff, diff_surfaces};
use contract::hash::sha256_hex;
use contract::surface::{EntryType, Surface, read_capture};
use contract::time::Timestamp;
use screen::dimension::DimensionResult;
use screen::finding::{Finding, Severity};
use screen::grade::Grade;
use screen::quality::Documentation;
use screen::reading::{self, Context};
use screen::state::State;
use screen::verdict::{EntryVerdict, Screening};

use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The evidence grade of the crawler's observations.
const GRADE: Grade = Grade::CrawlL0;
/// The longest name that is written to the log; a longer one is replaced by its hash.
pub const MAX_NAME_BYTES: usize = 512;
/// The most findings of one dimension that the log lists; their number is always given.
const MAX_FINDINGS: usize = 16;

/// The additions of a visit to the log.
#[derive(Debug, Default, PartialEq)]
pub struct Recording {
    pub entries: Vec<Vec<u8>>,
    /// The documents that the entries name by hash.
    pub blobs: Vec<(String, Vec<u8>)>,
}

/// Why a visit cannot be recorded now.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error(transparent)]
    Entry(#[from] BadEntry),
    #[error("the visit needs {needed} entries, and {left} are left for this server today")]
    TooMany { needed: usize, left: usize },
    #[error("an earlier visit to this server waits to be recorded")]
    EarlierWaits,
    #[error("the log has no methodology yet")]
    NoMethodology,
}

impl RecordError {
    /// Whether the visit can be recorded on a later day.
    pub const fn is_for_another_day(&self) -> bool {
        matches!(self, RecordError::TooMany { .. } | RecordError::EarlierWaits)
    }
}

/// A name in the form used in the log.
pub fn log_name(name: &str) -> String {
    if name.len() <= MAX_NAME_BYTES {
        return name.to_owned();
    }
    format!("sha256:{}", sha256_hex(name.as_bytes()))
}

/// The entries of a visit; empty if nothing changed and the current verdict is not about to expire.
///
/// A contract that exceeds the entries of one day is recorded as too large: otherwise the server
/// would wait forever, and so would a crawl that stops at the first observation it cannot record.
pub fn record(
    model: &Model,
    seen: &Observation,
    before: Option<&Surface>,
    now: Timestamp,
) -> Result<Recording, RecordError> {
    match entries_of(model, seen, before, now) {
        Err(RecordError::Entry(BadEntry::TooLong)) => {}
        Err(RecordError::TooMany { needed, .. }) if needed > MAX_ENTRIES_A_DAY => {}
        recorded => return recorded,
    }
    let outcome = Outcome::NotListed(NotListed::TooLarge);
    entries_of(model, &Observation { outcome, cause: None, ..seen.clone() }, None, now)
}

fn entries_of(
    model: &Model,
    seen: &Observation,
    before: Option<&Surface>,
    now: Timestamp,
) -> Result<Recording, RecordError> {
    let methodology = model.methodology().ok_or(RecordError::NoMethodology)?.to_owned();
    let known = model.servers.get(&seen.server);
    if known.is_some_and(|known| is_past(known, seen)) {
        return Ok(Recording::default());
    }
    let now = model.last_at().map_or(now, |last| last.0.max(now));
    // Entries have whole seconds.
    let now = Timestamp(now.0.div_euclid(1_000) * 1_000);
    let (outcome, surface) = contract_of(&seen.outcome);
    let context = context_of(seen, now);
    let screening = surface.as_ref().map(|surface| reading::read(surface, &context));
    let mut writer = Writer {
        subject: Subject::ServerId(seen.server.clone()),
        prev: model.head(&Subject::ServerId(seen.server.clone())),
        heads: BTreeMap::new(),
        known,
        now,
        recording: Recording::default(),
    };
    if let (Some(before), Some(after)) = (before, &surface)
        && before.surface_hash() != after.surface_hash()
    {
        writer.drift(before, after, known, seen)?;
    }
    let manifest = canonical_of(&seen.manifest)?;
    let manifest_hash = sha256_hex(&manifest);
    let facts = facts(&seen.manifest, surface.as_ref());
    let tools = screening.as_ref().map(|it| writer.tools(it, &methodology)).unwrap_or_default();
    let state = match (&screening, &surface) {
        (Some(screening), Some(surface)) => screening.state(now, surface.surface_hash()),
        _ => State::UNVERIFIED,
    };
    let dimensions =
        screening.as_ref().map(|it| dimensions_value(&it.dimensions())).unwrap_or_default();
    let statement = VerdictStatement {
        hashes: VerdictHashes {
            methodology,
            manifest: manifest_hash.clone(),
            surface: surface.as_ref().map(|surface| surface.surface_hash().to_string()),
        },
        release: seen.release.clone(),
        evidence_grade: GRADE.as_str().to_owned(),
        expires_at: Moment(GRADE.expires_at(now)),
        part: [1, 1],
        outcome,
        cause: seen.cause,
        status: state.status.as_str().to_owned(),
        directive: state.directive.as_str().to_owned(),
        dimensions,
        facts,
        tools: Vec::new(),
    };
    let is_new = known
        .is_none_or(|known| differs(known, &statement) || is_worn(known.at, known.expires_at, now));
    if writer.recording.entries.is_empty() && tools.is_empty() && !is_new {
        return Ok(Recording::default());
    }
    writer.verdict(&statement, tools)?;
    let mut recording = writer.recording;
    let left = model.left_on(&seen.server, Moment(now));
    if recording.entries.len() > left {
        return Err(RecordError::TooMany { needed: recording.entries.len(), left });
    }
    recording.blobs.push((manifest_hash, manifest));
    if let (Outcome::Listed(capture), Some(surface)) = (&seen.outcome, &surface) {
        recording.blobs.push((surface.surface_hash().to_string(), capture.clone().into_bytes()));
    }
    Ok(recording)
}

/// Whether a release is older than the recorded one: the log does not go back.
fn is_past(known: &Server, seen: &Observation) -> bool {
    match (&seen.release, &known.release) {
        (Some(seen), Some(newest)) => release_order::compare(seen, newest).is_lt(),
        _ => false,
    }
}

/// The screen's context besides the contract: all names of the server. A release is always pinned,
/// so its launch is not judged.
fn context_of(seen: &Observation, now: Timestamp) -> Context {
    let mut context = Context::new(GRADE, now);
    context.names.push(seen.server.as_str().to_owned());
    context.names.extend(seen.launch.iter().cloned());
    context
}

fn contract_of(outcome: &Outcome) -> (VisitOutcome, Option<Surface>) {
    match outcome {
        Outcome::Listed(capture) => match read_capture(capture.as_bytes()) {
            Ok(surface) => (VisitOutcome::Listed, Some(surface)),
            Err(_) => (VisitOutcome::NotListed(NotListed::Unreadable), None),
        },
        Outcome::NotListed(reason) => (VisitOutcome::NotListed(*reason), None),
    }
}

/// Whether less than a third of the lifetime is left.
fn is_worn(at: Moment, expires_at: Moment, now: Timestamp) -> bool {
    let lifetime = expires_at.0.0 - at.0.0;
    expires_at.0.0 - now.0 <= lifetime / 3
}

/// Whether the new verdict differs from the server's last one.
fn differs(known: &Server, new: &VerdictStatement) -> bool {
    known.release != new.release
        || known.outcome != new.outcome
        || known.surface != new.hashes.surface
        || known.manifest != new.hashes.manifest
        || known.methodology != new.hashes.methodology
        || known.directive != new.directive
        || known.dimensions != new.dimensions
}

fn facts(manifest: &Manifest, surface: Option<&Surface>) -> ServerFacts {
    let documented = surface.map(Documentation::of).unwrap_or_default();
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let others = surface.map_or(0, |surface| surface.entries().count() - documented.tools);
    ServerFacts {
        published_at: manifest.published_at.as_deref().and_then(Timestamp::parse).map(Moment),
        has_description: manifest.description.is_some(),
        has_repository: manifest.repository.is_some(),
        has_licence: manifest.licence.is_some(),
        has_version: manifest.version.is_some(),
        has_launch: manifest.has_launch,
        tools: count(documented.tools),
        tools_described: count(documented.described_tools),
        parameters: count(documented.parameters),
        parameters_described: count(documented.described_parameters),
        others: count(others),
    }
}

/// Dimensions as in the log and the API: kinds, fixed sentences and locations, no text of the
/// server.
pub fn dimensions_value(dimensions: &[DimensionResult]) -> Vec<Value> {
    let finding = |finding: &Finding| {
        json!({
            "rule": finding.rule,
            "severity": finding.severity.as_str(),
            "reason": finding.reason,
            "entry": finding.entry_name(),
            "pointer": finding.place(),
        })
    };
    dimensions
        .iter()
        .map(|result| {
            let findings: Vec<Value> =
                result.findings.iter().take(MAX_FINDINGS).map(finding).collect();
            json!({
                "dimension": result.dimension.as_str(),
                "outcome": result.outcome.as_str(),
                "severity": result.severity.map(Severity::as_str),
                "rationale": result.rationale,
                "finding_count": result.findings.len(),
                "findings": findings,
            })
        })
        .collect()
}

struct Writer<'m> {
    subject: Subject,
    prev: Option<String>,
    /// The items that this visit adds, on top of those in the model.
    heads: BTreeMap<String, String>,
    known: Option<&'m Server>,
    now: Timestamp,
    recording: Recording,
}

impl Writer<'_> {
    fn head_of(&self, tool: &str) -> Option<String> {
        let before = || self.known.and_then(|known| known.head_of(tool)).map(str::to_owned);
        self.heads.get(tool).cloned().or_else(before)
    }

    fn add(&mut self, statement: Statement) -> Result<(), BadEntry> {
        let entry = Entry {
            v: ENTRY_VERSION,
            at: Moment(self.now),
            subject: self.subject.clone(),
            prev: self.prev.take(),
            statement,
        };
        let bytes = entry.write()?;
        self.prev = Some(entry_hash(&bytes));
        self.recording.entries.push(bytes);
        Ok(())
    }

    fn drift(
        &mut self,
        before: &Surface,
        after: &Surface,
        known: Option<&Server>,
        seen: &Observation,
    ) -> Result<(), RecordError> {
        let mut items = Vec::new();
        for diff in diff_surfaces(before, after) {
            let mut item = drift_item(&diff);
            if diff.id.entry_type == EntryType::Tool {
                item.prev = self.head_of(&item.name);
                self.heads.insert(item.name.clone(), item_hash(&item)?);
            }
            items.push(item);
        }
        let last = known.and_then(Server::last_surface);
        let template = DriftStatement {
            hashes: DriftHashes {
                surface_before: before.surface_hash().to_string(),
                surface_after: after.surface_hash().to_string(),
            },
            release_before: last.and_then(|visit| visit.release.clone()),
            release_after: seen.release.clone(),
            part: [1, 1],
            entries: Vec::new(),
        };
        let room = self.room(Statement::Drift(template.clone()))?;
        let packs = pack(items, room)?;
        let count = part_number(packs.len());
        for (at, entries) in packs.into_iter().enumerate() {
            let part = [part_number(at + 1), count];
            self.add(Statement::Drift(DriftStatement { part, entries, ..template.clone() }))?;
        }
        Ok(())
    }

    /// The items of tools that have changed, or whose verdict is about to expire.
    fn tools(&self, screening: &Screening, methodology: &str) -> Vec<ToolItem> {
        let tools = screening.entries.iter().filter(|it| it.entry.entry_type == EntryType::Tool);
        tools.filter_map(|verdict| self.tool(verdict, methodology)).collect()
    }

    fn tool(&self, verdict: &EntryVerdict, methodology: &str) -> Option<ToolItem> {
        let name = log_name(&verdict.entry.key);
        let state = verdict.state(self.now, verdict.binding.entry_hash);
        let item = ToolItem {
            prev: self.head_of(&name),
            tool_name: name,
            definition_hash: verdict.binding.definition_hash?.to_string(),
            entry_hash: verdict.binding.entry_hash.to_string(),
            status: state.status.as_str().to_owned(),
            directive: state.directive.as_str().to_owned(),
            granularity: Some(verdict.granularity().as_str().to_owned()),
            dimensions: dimensions_value(&verdict.dimensions),
            honest_limits: verdict.limits().iter().map(|limit| limit.as_str().to_owned()).collect(),
        };
        let known = self.known.and_then(|known| known.tools.get(&item.tool_name));
        let is_same = known.is_some_and(|known| {
            let same = ToolItem { prev: known.item.prev.clone(), ..item.clone() };
            *known.item == same
                && *known.methodology == *methodology
                && !is_worn(known.at, known.expires_at, self.now)
        });
        (!is_same).then_some(item)
    }

    fn verdict(
        &mut self,
        template: &VerdictStatement,
        items: Vec<ToolItem>,
    ) -> Result<(), RecordError> {
        let room = self.room(Statement::Verdict(Box::new(template.clone())))?;
        let packs = pack(items, room)?;
        let count = part_number(packs.len());
        for (at, tools) in packs.into_iter().enumerate() {
            let part = [part_number(at + 1), count];
            // Only the first part contains the server's own data.
            let dimensions = if at == 0 { template.dimensions.clone() } else { Vec::new() };
            let statement = VerdictStatement { part, tools, dimensions, ..template.clone() };
            self.add(Statement::Verdict(Box::new(statement)))?;
        }
        Ok(())
    }

    /// The bytes left for items in an entry.
    fn room(&self, statement: Statement) -> Result<usize, BadEntry> {
        let empty = Entry {
            v: ENTRY_VERSION,
            at: Moment(self.now),
            subject: self.subject.clone(),
            prev: Some("0".repeat(64)),
            statement,
        };
        // The part numbers may be longer than in the empty entry.
        Ok(MAX_ENTRY_BYTES.saturating_sub(empty.write()?.len() + 16))
    }
}

fn part_number(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Distributes items over as few entries as possible, at least one.
fn pack<T: Serialize>(items: Vec<T>, room: usize) -> Result<Vec<Vec<T>>, BadEntry> {
    let (mut packs, mut used) = (vec![Vec::new()], 0);
    for item in items {
        let length = canonical_of(&item)?.len() + 1;
        if length > room {
            return Err(BadEntry::TooLong);
        }
        if used + length > room {
            packs.push(Vec::new());
            used = 0;
        }
        used += length;
        if let Some(pack) = packs.last_mut() {
            pack.push(item);
        }
    }
    Ok(packs)
}

fn drift_item(diff: &EntryDiff) -> DriftItem {
    let mut kinds: Vec<String> =
        diff.findings.iter().map(|it| it.kind.as_str().to_owned()).collect();
    kinds.sort();
    kinds.dedup();
    let worst = diff.findings.iter().map(|finding| finding.class).max();
    let hash = |entry: &contract::surface::Entry| entry.entry_hash().to_string();
    DriftItem {
        entry_type: diff.id.entry_type.as_str().to_owned(),
        name: log_name(&diff.id.key),
        prev: None,
        entry_before: diff.before.as_ref().map(hash),
        entry_after: diff.after.as_ref().map(hash),
        kinds,
        class: worst.map_or("metadata", ChangeClass::as_str).to_owned(),
        safety: worst.is_some_and(ChangeClass::is_safety_relevant),
    }
}

#[cfg(test)]
mod tests;
