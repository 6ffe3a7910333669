//! The messages between installs and a directory: the verdict corpus (tier 1), the drift network
//! and advisories.
//!
//! Pure values that both sides share: the vocabulary, buckets, fingerprints, and every request and
//! response with its strict parser. A message carries only hashes and words from closed lists. It
//! has no member that could hold a server's text, a name, an argument or a credential.

pub mod advisory;
pub mod bucket;
pub mod fingerprint;
pub mod messages;
pub mod vocabulary;

pub use advisory::{DriftAdvisory, DriftFeed, Seen};
pub use bucket::{Bucket, MAX_BUCKET_BITS, bucket_bits, bucket_of};
pub use fingerprint::{Fingerprint, Salt};
pub use messages::{
    Advisory, AdvisoryPage, CorpusBucket, CorpusRow, DriftEntry, DriftPage, DriftReport,
    InstallReport, MessageError, Parameters, ReportBucket,
};
pub use vocabulary::{AdvisoryKind, CorpusVerdict, Hour, ReasonClass};

/// The version that every response declares in `v`. A reader refuses any other.
pub const VERSION: u32 = 1;
/// The largest body of a request, in bytes.
pub const MAX_REQUEST_BYTES: usize = 4 * 1024;
/// The largest response, in bytes.
pub const MAX_ANSWER_BYTES: usize = 4 * 1024 * 1024;
/// The most rows or reports in one bucket.
pub const MAX_BUCKET_ROWS: usize = 16_384;
/// The most entries on one page of the drift feed or of the advisories.
pub const MAX_PAGE_ENTRIES: usize = 1_000;
/// The most contributions and reports per key and UTC day.
pub const MAX_CONTRIBUTIONS_A_DAY: u32 = 1_000;

#[cfg(test)]
mod tests;
