//! The crawler: which servers exist, what each declares, and when it is visited again.
//!
//! A visit only observes. The result is stored as an [`Observation`]; `record` turns it into log
//! entries.

pub mod cause;
pub mod official;
pub mod package;
pub mod release_order;
pub mod run;
pub mod target;
pub mod visit;

use crate::subject::SubjectId;
use contract::time::Timestamp;
use serde::{Deserialize, Serialize};

/// The result of a visit to one release of a server, or to a remote server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    pub server: SubjectId,
    /// The version of a package; `None` for remote servers.
    pub release: Option<String>,
    pub at: Timestamp,
    pub outcome: Outcome,
    /// Why nothing was listed, if more is known than the outcome says.
    pub cause: Option<cause::Cause>,
    pub manifest: Manifest,
    /// How the server was started or reached, for the screen's check of launchers.
    pub launch: Vec<String>,
}

/// The contract, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// This capture, on which two listings agreed.
    Listed(String),
    NotListed(NotListed),
}

/// Why there is no contract. These words are in the log and must never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotListed {
    /// Two listings differed.
    Unstable,
    /// The package was installed, but its program answered no list request.
    Silent,
    /// A list could not be parsed unambiguously.
    Unreadable,
    NotInstalled,
    /// A remote server did not answer.
    Unreachable,
    /// A remote server requires a sign-in.
    NeedsSignIn,
    /// Larger than the crawler accepts.
    TooLarge,
}

impl NotListed {
    pub const ALL: [NotListed; 7] = [
        NotListed::Unstable,
        NotListed::Silent,
        NotListed::Unreadable,
        NotListed::NotInstalled,
        NotListed::Unreachable,
        NotListed::NeedsSignIn,
        NotListed::TooLarge,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            NotListed::Unstable => "unstable",
            NotListed::Silent => "silent",
            NotListed::Unreadable => "unreadable",
            NotListed::NotInstalled => "not-installed",
            NotListed::Unreachable => "unreachable",
            NotListed::NeedsSignIn => "needs-sign-in",
            NotListed::TooLarge => "too-large",
        }
    }

    pub const fn sentence(self) -> &'static str {
        match self {
            NotListed::Unstable => "two listings in a row differed, so neither is recorded",
            NotListed::Silent => {
                "the package was installed, but its program did not answer in time"
            }
            NotListed::Unreadable => {
                "a list was answered with an error, or could be read in more than one way"
            }
            NotListed::NotInstalled => {
                "the package needs another interpreter, or runs code while it is installed"
            }
            NotListed::Unreachable => "the remote server did not answer",
            NotListed::NeedsSignIn => "the remote server wants a sign-in",
            NotListed::TooLarge => "the package or its contract is larger than the crawler takes",
        }
    }

    pub fn from_word(word: &str) -> Option<NotListed> {
        NotListed::ALL.into_iter().find(|outcome| outcome.as_str() == word)
    }
}

/// The registry's data on a release, as far as the directory displays and scores it. All text is
/// untrusted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub licence: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// When the release was published, in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published_at: Option<String>,
    /// Whether the way to start or reach the server is known.
    #[serde(default)]
    pub has_launch: bool,
}

/// The longest manifest text that is kept, in characters.
pub const MAX_MANIFEST_TEXT: usize = 1_000;

/// A manifest text, cut to the limit; `None` if it is empty.
pub(crate) fn kept_text(text: Option<&str>) -> Option<String> {
    let text: String = text?.trim().chars().take(MAX_MANIFEST_TEXT).collect();
    (!text.is_empty()).then_some(text)
}
