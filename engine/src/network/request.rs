//! Every request that can be sent to a directory. Nothing else is ever sent there.

use gate::network::{Bucket, CorpusRow, DriftReport};

/// One request. Apart from fixed headers and the key, only its path and body are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetworkRequest {
    Parameters,
    /// All rows of a bucket.
    Corpus(Bucket),
    Contribute(CorpusRow),
    Drift {
        after: u64,
    },
    Report(DriftReport),
    /// How many installs reported changes in a bucket.
    Reports(Bucket),
    Advisories {
        after: u64,
    },
}

impl NetworkRequest {
    /// Describes the purpose.
    pub const fn purpose(&self) -> &'static str {
        match self {
            NetworkRequest::Parameters => "how wide buckets are, and the salt of fingerprints",
            NetworkRequest::Corpus(_) => "what is known of all definitions in a bucket",
            NetworkRequest::Contribute(_) => "what a person decided here on a held change",
            NetworkRequest::Drift { .. } => "changes that the directory's crawler recorded",
            NetworkRequest::Report(_) => "a change that was met here",
            NetworkRequest::Reports(_) => "how many installs reported changes of a bucket",
            NetworkRequest::Advisories { .. } => "what was found of definitions afterwards",
        }
    }

    pub fn path(&self) -> String {
        let rest = match self {
            NetworkRequest::Parameters => "parameters".to_owned(),
            NetworkRequest::Corpus(bucket) => {
                format!("corpus/{}/{}", bucket.bits(), bucket.index())
            }
            NetworkRequest::Contribute(_) => "corpus".to_owned(),
            NetworkRequest::Drift { after } => format!("drift?after={after}"),
            NetworkRequest::Report(_) => "drift".to_owned(),
            NetworkRequest::Reports(bucket) => {
                format!("reports/{}/{}", bucket.bits(), bucket.index())
            }
            NetworkRequest::Advisories { after } => format!("advisories?after={after}"),
        };
        format!("/api/v1/network/{rest}")
    }

    /// The body of a POST; `None` for a GET.
    pub fn body(&self) -> Option<Vec<u8>> {
        match self {
            NetworkRequest::Contribute(row) => serde_json::to_vec(row).ok(),
            NetworkRequest::Report(report) => serde_json::to_vec(report).ok(),
            NetworkRequest::Parameters
            | NetworkRequest::Corpus(_)
            | NetworkRequest::Drift { .. }
            | NetworkRequest::Reports(_)
            | NetworkRequest::Advisories { .. } => None,
        }
    }

    /// Whether it reveals anything about this install beyond the query itself.
    pub const fn is_contribution(&self) -> bool {
        match self {
            NetworkRequest::Contribute(_) | NetworkRequest::Report(_) => true,
            NetworkRequest::Parameters
            | NetworkRequest::Corpus(_)
            | NetworkRequest::Drift { .. }
            | NetworkRequest::Reports(_)
            | NetworkRequest::Advisories { .. } => false,
        }
    }
}
