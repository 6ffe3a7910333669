//! The local verdict cache: buckets of the corpus, each kept for an hour, in memory and in the
//! home.

use super::answer_of;
use super::folder::NetworkFolder;
use contract::hash::DefinitionHash;
use contract::time::Timestamp;
use gate::network::{Bucket, CorpusBucket, CorpusRow, CorpusVerdict, Parameters, Salt, bucket_of};
use gate::tiers::CorpusAnswer;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// How long an answer is valid, in milliseconds.
pub const CACHED_FOR: i64 = 60 * 60 * 1_000;
/// The most buckets that are kept: the newest ones.
const MAX_BUCKETS: usize = 16;
const PARAMETERS_FILE: &str = "parameters.json";

/// A stored response of a directory, with its origin and time.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Kept<T> {
    url: String,
    fetched_at: i64,
    answer: T,
}

#[derive(Debug, Default)]
pub struct VerdictCache {
    parameters: Option<(Parameters, Timestamp)>,
    buckets: HashMap<Bucket, KeptBucket>,
}

#[derive(Debug)]
struct KeptBucket {
    fetched_at: Timestamp,
    rows: HashMap<DefinitionHash, CorpusRow>,
}

/// The cached answer for a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CachedAnswer {
    /// `None` is a miss.
    pub answer: Option<CorpusAnswer>,
    /// Whether no new lookup is needed.
    pub is_fresh: bool,
}

impl VerdictCache {
    /// Reads the stored verdicts of this directory. Anything unreadable counts as missing.
    pub fn read(folder: &NetworkFolder, url: &str) -> VerdictCache {
        let parameters = read_parameters(folder, url);
        let mut cache = VerdictCache { parameters, ..VerdictCache::default() };
        for name in folder.names() {
            let Some(bucket) = bucket_named(&name) else { continue };
            let Some(kept) = read_kept(folder, url, &name) else { continue };
            let Ok(bytes) = serde_json::to_vec(&kept.answer) else { continue };
            if let Ok(answer) = CorpusBucket::read(&bytes, bucket) {
                cache.insert(bucket, &answer, Timestamp(kept.fetched_at));
            }
        }
        cache
    }

    /// The bucket parameters, if they are known and recent.
    pub fn parameters(&self, now: Timestamp) -> Option<Parameters> {
        let (parameters, fetched_at) = self.parameters?;
        is_young(fetched_at, now).then_some(parameters)
    }

    /// The salt of fingerprints, however old it is.
    pub fn salt(&self) -> Option<Salt> {
        self.parameters.map(|(parameters, _)| parameters.salt)
    }

    pub fn bits(&self) -> Option<u8> {
        self.parameters.map(|(parameters, _)| parameters.bucket_bits)
    }

    pub fn take_parameters(
        &mut self,
        folder: &NetworkFolder,
        url: &str,
        parameters: Parameters,
        now: Timestamp,
    ) {
        self.parameters = Some((parameters, now));
        keep(folder, PARAMETERS_FILE, url, parameters, now);
    }

    pub(crate) fn take_bucket(
        &mut self,
        folder: &NetworkFolder,
        url: &str,
        bucket: Bucket,
        answer: &CorpusBucket,
        now: Timestamp,
    ) {
        self.insert(bucket, answer, now);
        keep(folder, &name_of(bucket), url, answer, now);
        while self.buckets.len() > MAX_BUCKETS {
            let oldest = self.buckets.iter().min_by_key(|(_, kept)| kept.fetched_at);
            let Some(oldest) = oldest.map(|(bucket, _)| *bucket) else { break };
            self.buckets.remove(&oldest);
            folder.remove(&name_of(oldest));
        }
    }

    fn insert(&mut self, bucket: Bucket, answer: &CorpusBucket, fetched_at: Timestamp) {
        let mut rows: HashMap<DefinitionHash, CorpusRow> = HashMap::new();
        for row in &answer.rows {
            // If there are two rows about one definition, the more severe one counts.
            let known = rows.entry(row.definition_hash).or_insert(*row);
            if row.verdict == CorpusVerdict::Dangerous {
                *known = *row;
            }
        }
        self.buckets.insert(bucket, KeptBucket { fetched_at, rows });
    }

    /// What is known about a definition. A `dangerous` older than an hour remains valid until it is
    /// looked up again, even if the bucket width has changed: an attacker who blocks the
    /// directory's responses must not be able to withdraw a warning.
    pub fn answer(&self, definition: DefinitionHash, now: Timestamp) -> CachedAnswer {
        let current = self.bucket(definition);
        let is_fresh = self.parameters(now).is_some()
            && current.is_some_and(|kept| is_young(kept.fetched_at, now));
        let found = self.row(definition).map(|row| answer_of(row.verdict));
        let answer = match (is_fresh, found) {
            (true, None) => Some(CorpusAnswer::Unknown),
            (true, found) => found,
            (false, Some(CorpusAnswer::Dangerous)) => Some(CorpusAnswer::Dangerous),
            (false, _) => None,
        };
        CachedAnswer { answer, is_fresh }
    }

    /// The stored row, from the definition's bucket or, if that was never fetched, from a bucket of
    /// another width.
    pub fn row(&self, definition: DefinitionHash) -> Option<CorpusRow> {
        let row_in = |kept: &KeptBucket| kept.rows.get(&definition).copied();
        match self.bucket(definition) {
            Some(kept) => row_in(kept),
            None => self
                .buckets
                .values()
                .filter_map(row_in)
                .max_by_key(|row| row.verdict == CorpusVerdict::Dangerous),
        }
    }

    fn bucket(&self, definition: DefinitionHash) -> Option<&KeptBucket> {
        self.buckets.get(&bucket_of(definition.as_bytes(), self.bits()?))
    }
}

/// A time in the future does not count as recent, because the clock was changed.
pub(super) fn is_young(fetched_at: Timestamp, now: Timestamp) -> bool {
    (0..CACHED_FOR).contains(&now.0.saturating_sub(fetched_at.0))
}

fn name_of(bucket: Bucket) -> String {
    format!("corpus-{}-{}.json", bucket.bits(), bucket.index())
}

fn bucket_named(name: &str) -> Option<Bucket> {
    let (bits, index) = name.strip_prefix("corpus-")?.strip_suffix(".json")?.split_once('-')?;
    let bucket = Bucket::new(bits.parse().ok()?, index.parse().ok()?)?;
    (name_of(bucket) == name).then_some(bucket)
}

fn keep<T: Serialize>(folder: &NetworkFolder, name: &str, url: &str, answer: T, now: Timestamp) {
    let kept = Kept { url: url.to_owned(), fetched_at: now.0, answer };
    if let Ok(bytes) = serde_json::to_vec(&kept) {
        // If it cannot be stored, it is requested again.
        let _ = folder.write(name, &bytes);
    }
}

fn read_kept(folder: &NetworkFolder, url: &str, name: &str) -> Option<Kept<serde_json::Value>> {
    let kept: Kept<serde_json::Value> = serde_json::from_slice(&folder.read(name)?).ok()?;
    (kept.url == url).then_some(kept)
}

fn read_parameters(folder: &NetworkFolder, url: &str) -> Option<(Parameters, Timestamp)> {
    let kept = read_kept(folder, url, PARAMETERS_FILE)?;
    let bytes = serde_json::to_vec(&kept.answer).ok()?;
    Some((Parameters::read(&bytes).ok()?, Timestamp(kept.fetched_at)))
}
