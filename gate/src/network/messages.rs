//! Requests and responses. `serde::Serialize` writes them; a `read` function parses them from
//! untrusted bytes.
//!
//! Requests are parsed strictly: an unknown member, or a word outside its list, makes the message
//! invalid. Responses are parsed leniently, so that an older install understands a newer directory:
//! unknown members are ignored, and a row with an unreadable word, hash or hour is dropped. The
//! result contains only values of closed types.

use super::bucket::Bucket;
use super::fingerprint::{Fingerprint, Salt};
use super::vocabulary::{AdvisoryKind, CorpusVerdict, Hour, ReasonClass};
use super::{MAX_ANSWER_BYTES, MAX_BUCKET_ROWS, MAX_PAGE_ENTRIES, MAX_REQUEST_BYTES, VERSION};
use contract::change::ChangeKind;
use contract::hash::DefinitionHash;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Why a message is refused. The text quotes nothing from the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    #[error("the message has more than {0} bytes")]
    TooLarge(usize),
    #[error("the message is not the expected JSON")]
    NotExpected,
    #[error("the message has another version")]
    Version,
    #[error("the message has a word, a hash or an hour that cannot be read")]
    OffVocabulary,
    #[error("the message has more than {0} rows")]
    TooManyRows(usize),
    #[error("the answer is for a different bucket than the requested one")]
    OtherBucket,
    #[error("the answer's sequence numbers do not ascend from the requested one")]
    Sequence,
}

/// What the corpus knows about one definition. A contribution sends exactly this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CorpusRow {
    pub definition_hash: DefinitionHash,
    pub verdict: CorpusVerdict,
    pub reason_class: ReasonClass,
}

/// A change that an install encountered. A report sends exactly this.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DriftReport {
    pub fp_before: Fingerprint,
    pub fp_after: Fingerprint,
    /// Sorted, without duplicates.
    pub kinds: Vec<ChangeKind>,
    pub safety: bool,
    pub hour: Hour,
}

/// Who recorded a change of the drift feed. The feed contains no reports from installs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DriftSource {
    Crawler,
}

/// A change that the directory's crawler recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DriftEntry {
    pub seq: u64,
    #[serde(flatten)]
    pub change: DriftReport,
    pub source: DriftSource,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Parameters {
    pub v: u32,
    pub contracts: u64,
    pub bucket_bits: u8,
    pub salt: Salt,
}

impl Parameters {
    pub fn new(contracts: u64, salt: Salt) -> Parameters {
        let bucket_bits = super::bucket_bits(contracts);
        Parameters { v: VERSION, contracts, bucket_bits, salt }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CorpusBucket {
    pub v: u32,
    pub bucket_bits: u8,
    pub bucket: u32,
    pub rows: Vec<CorpusRow>,
}

/// How many installs reported a change. Anyone with a key can report, so this is unconfirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct InstallReport {
    pub fp_before: Fingerprint,
    pub fp_after: Fingerprint,
    pub installs: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReportBucket {
    pub v: u32,
    pub bucket_bits: u8,
    pub bucket: u32,
    pub reports: Vec<InstallReport>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DriftPage {
    pub v: u32,
    /// The `after` of the next request.
    pub next: u64,
    pub entries: Vec<DriftEntry>,
}

/// Findings about a definition after installs may have used it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Advisory {
    pub seq: u64,
    pub definition_hash: DefinitionHash,
    pub kind: AdvisoryKind,
    pub reason_class: ReasonClass,
    pub hour: Hour,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AdvisoryPage {
    pub v: u32,
    pub next: u64,
    pub advisories: Vec<Advisory>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawContribution {
    definition_hash: String,
    verdict: String,
    reason_class: String,
}

impl CorpusRow {
    /// Parses a contribution. An unknown reason becomes the empty one; an unknown verdict makes the
    /// message invalid.
    pub fn read_contribution(bytes: &[u8]) -> Result<CorpusRow, MessageError> {
        let raw: RawContribution = read(bytes, MAX_REQUEST_BYTES)?;
        corpus_row(&raw.definition_hash, &raw.verdict, &raw.reason_class)
            .ok_or(MessageError::OffVocabulary)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawReport {
    fp_before: String,
    fp_after: String,
    kinds: Vec<String>,
    safety: bool,
    hour: String,
}

impl DriftReport {
    /// Parses an install's report. Every kind must be on the list.
    pub fn read_report(bytes: &[u8]) -> Result<DriftReport, MessageError> {
        let raw: RawReport = read(bytes, MAX_REQUEST_BYTES)?;
        let are_known = raw.kinds.iter().all(|kind| kind_of(kind).is_some());
        let report = RawChange {
            fp_before: raw.fp_before,
            fp_after: raw.fp_after,
            kinds: raw.kinds,
            safety: raw.safety,
            hour: raw.hour,
        };
        report.change().filter(|_| are_known).ok_or(MessageError::OffVocabulary)
    }

    /// Sorts the kinds and removes duplicates, as every message requires.
    pub fn sorted(mut self) -> DriftReport {
        self.kinds.sort_unstable();
        self.kinds.dedup();
        self
    }
}

#[derive(Deserialize)]
struct RawChange {
    fp_before: String,
    fp_after: String,
    kinds: Vec<String>,
    safety: bool,
    hour: String,
}

impl RawChange {
    /// Kinds that only a newer directory knows are dropped.
    fn change(&self) -> Option<DriftReport> {
        let change = DriftReport {
            fp_before: self.fp_before.parse().ok()?,
            fp_after: self.fp_after.parse().ok()?,
            kinds: self.kinds.iter().filter_map(|kind| kind_of(kind)).collect(),
            safety: self.safety,
            hour: Hour::parse(&self.hour)?,
        };
        Some(change.sorted())
    }
}

#[derive(Deserialize)]
struct RawParameters {
    v: u32,
    contracts: u64,
    bucket_bits: u8,
    salt: String,
}

impl Parameters {
    pub fn read(bytes: &[u8]) -> Result<Parameters, MessageError> {
        let raw: RawParameters = read(bytes, MAX_REQUEST_BYTES)?;
        known_version(raw.v)?;
        let salt = raw.salt.parse().map_err(|_| MessageError::OffVocabulary)?;
        let parameters = Parameters::new(raw.contracts, salt);
        // INVARIANT: the number of bits follows from the number of contracts. A response cannot
        // request narrower buckets.
        let is_derived = parameters.bucket_bits == raw.bucket_bits;
        is_derived.then_some(parameters).ok_or(MessageError::OtherBucket)
    }
}

#[derive(Deserialize)]
struct RawCorpusBucket {
    v: u32,
    bucket_bits: u8,
    bucket: u32,
    rows: Vec<RawRow>,
}

#[derive(Deserialize)]
struct RawRow {
    definition_hash: String,
    verdict: String,
    #[serde(default)]
    reason_class: String,
}

impl CorpusBucket {
    pub fn new(bucket: Bucket, rows: Vec<CorpusRow>) -> CorpusBucket {
        CorpusBucket { v: VERSION, bucket_bits: bucket.bits(), bucket: bucket.index(), rows }
    }

    /// Parses the response for a bucket. Rows outside of the bucket are dropped.
    pub fn read(bytes: &[u8], asked: Bucket) -> Result<CorpusBucket, MessageError> {
        let raw: RawCorpusBucket = read(bytes, MAX_ANSWER_BYTES)?;
        known_version(raw.v)?;
        same_bucket(raw.bucket_bits, raw.bucket, asked)?;
        at_most(raw.rows.len(), MAX_BUCKET_ROWS)?;
        let rows = raw.rows.iter();
        let rows = rows
            .filter_map(|row| corpus_row(&row.definition_hash, &row.verdict, &row.reason_class));
        let rows = rows.filter(|row| asked.contains(row.definition_hash.as_bytes()));
        Ok(CorpusBucket::new(asked, rows.collect()))
    }
}

#[derive(Deserialize)]
struct RawReportBucket {
    v: u32,
    bucket_bits: u8,
    bucket: u32,
    reports: Vec<RawInstallReport>,
}

#[derive(Deserialize)]
struct RawInstallReport {
    fp_before: String,
    fp_after: String,
    installs: u32,
}

impl ReportBucket {
    pub fn new(bucket: Bucket, reports: Vec<InstallReport>) -> ReportBucket {
        ReportBucket { v: VERSION, bucket_bits: bucket.bits(), bucket: bucket.index(), reports }
    }

    /// Parses the response for a bucket of `fp_before`. Reports outside of the bucket are dropped.
    pub fn read(bytes: &[u8], asked: Bucket) -> Result<ReportBucket, MessageError> {
        let raw: RawReportBucket = read(bytes, MAX_ANSWER_BYTES)?;
        known_version(raw.v)?;
        same_bucket(raw.bucket_bits, raw.bucket, asked)?;
        at_most(raw.reports.len(), MAX_BUCKET_ROWS)?;
        let report = |raw: &RawInstallReport| {
            let fp_before: Fingerprint = raw.fp_before.parse().ok()?;
            let fp_after = raw.fp_after.parse().ok()?;
            let is_asked = asked.contains(fp_before.as_bytes());
            is_asked.then_some(InstallReport { fp_before, fp_after, installs: raw.installs })
        };
        Ok(ReportBucket::new(asked, raw.reports.iter().filter_map(report).collect()))
    }
}

#[derive(Deserialize)]
struct RawDriftPage {
    v: u32,
    next: u64,
    entries: Vec<RawDriftEntry>,
}

#[derive(Deserialize)]
struct RawDriftEntry {
    seq: u64,
    #[serde(flatten)]
    change: RawChange,
    source: String,
}

impl DriftPage {
    pub fn new(next: u64, entries: Vec<DriftEntry>) -> DriftPage {
        DriftPage { v: VERSION, next, entries }
    }

    /// Parses a page of the feed. Entries that the crawler did not record are dropped.
    pub fn read(bytes: &[u8], after: u64) -> Result<DriftPage, MessageError> {
        let raw: RawDriftPage = read(bytes, MAX_ANSWER_BYTES)?;
        known_version(raw.v)?;
        at_most(raw.entries.len(), MAX_PAGE_ENTRIES)?;
        ascending(raw.entries.iter().map(|entry| entry.seq), after, raw.next)?;
        let crawled = raw.entries.iter().filter(|entry| entry.source == "crawler");
        let entries = crawled.filter_map(|entry| {
            let change = entry.change.change()?;
            Some(DriftEntry { seq: entry.seq, change, source: DriftSource::Crawler })
        });
        Ok(DriftPage::new(raw.next, entries.collect()))
    }
}

#[derive(Deserialize)]
struct RawAdvisoryPage {
    v: u32,
    next: u64,
    advisories: Vec<RawAdvisory>,
}

#[derive(Deserialize)]
struct RawAdvisory {
    seq: u64,
    definition_hash: String,
    kind: String,
    #[serde(default)]
    reason_class: String,
    hour: String,
}

impl AdvisoryPage {
    pub fn new(next: u64, advisories: Vec<Advisory>) -> AdvisoryPage {
        AdvisoryPage { v: VERSION, next, advisories }
    }

    pub fn read(bytes: &[u8], after: u64) -> Result<AdvisoryPage, MessageError> {
        let raw: RawAdvisoryPage = read(bytes, MAX_ANSWER_BYTES)?;
        known_version(raw.v)?;
        at_most(raw.advisories.len(), MAX_PAGE_ENTRIES)?;
        ascending(raw.advisories.iter().map(|advisory| advisory.seq), after, raw.next)?;
        let advisories = raw.advisories.iter().filter_map(|advisory| {
            Some(Advisory {
                seq: advisory.seq,
                definition_hash: advisory.definition_hash.parse().ok()?,
                kind: AdvisoryKind::of(&advisory.kind)?,
                reason_class: ReasonClass::or_unstated(&advisory.reason_class),
                hour: Hour::parse(&advisory.hour)?,
            })
        });
        Ok(AdvisoryPage::new(raw.next, advisories.collect()))
    }
}

fn corpus_row(hash: &str, verdict: &str, reason_class: &str) -> Option<CorpusRow> {
    Some(CorpusRow {
        definition_hash: hash.parse().ok()?,
        verdict: CorpusVerdict::of(verdict)?,
        reason_class: ReasonClass::or_unstated(reason_class),
    })
}

fn kind_of(text: &str) -> Option<ChangeKind> {
    ChangeKind::ALL.iter().copied().find(|kind| kind.as_str() == text)
}

fn read<T: DeserializeOwned>(bytes: &[u8], limit: usize) -> Result<T, MessageError> {
    if bytes.len() > limit {
        return Err(MessageError::TooLarge(limit));
    }
    serde_json::from_slice(bytes).map_err(|_| MessageError::NotExpected)
}

fn known_version(version: u32) -> Result<(), MessageError> {
    (version == VERSION).then_some(()).ok_or(MessageError::Version)
}

fn same_bucket(bits: u8, index: u32, asked: Bucket) -> Result<(), MessageError> {
    (Bucket::new(bits, index) == Some(asked)).then_some(()).ok_or(MessageError::OtherBucket)
}

fn at_most(rows: usize, limit: usize) -> Result<(), MessageError> {
    (rows <= limit).then_some(()).ok_or(MessageError::TooManyRows(limit))
}

/// Checks that the numbers ascend from `after` and end with `next`, so that a feed cannot make an
/// install skip entries or loop forever.
fn ascending(
    mut numbers: impl Iterator<Item = u64>,
    after: u64,
    next: u64,
) -> Result<(), MessageError> {
    let last = numbers.try_fold(after, |last, seq| (seq > last).then_some(seq));
    (last == Some(next)).then_some(()).ok_or(MessageError::Sequence)
}
