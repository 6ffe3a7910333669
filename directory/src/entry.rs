//! Entries of the log: a statement about a server, and the link to the entry before it.
//!
//! An entry is canonical JSON. Its `prev` is the leaf hash of the previous entry about the same
//! subject; each item of a tool has its own `prev`, the hash of that tool's previous item. The only
//! text of a server in an entry are names, by which items are found; contracts are named by their
//! hashes.

use crate::crawl::NotListed;
use crate::crawl::cause::Cause;
use crate::log::{MAX_ENTRY_BYTES, canonical_bytes};
use crate::subject::SubjectId;
use contract::hash::sha256_hex;
use contract::time::Timestamp;
use ledger::tree::leaf_of_entry;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of the entry format.
pub const ENTRY_VERSION: u8 = 1;

/// One entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    pub v: u8,
    pub at: Moment,
    pub subject: Subject,
    /// The leaf hash of the previous entry about this subject.
    pub prev: Option<String>,
    #[serde(flatten)]
    pub statement: Statement,
}

/// A moment in RFC 3339, in UTC with seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Moment(pub Timestamp);

impl TryFrom<String> for Moment {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Moment, &'static str> {
        let moment = Timestamp::parse(&text).filter(|moment| moment.to_string() == text);
        moment.map(Moment).ok_or("a moment is written as 2026-01-31T00:00:00Z")
    }
}

impl From<Moment> for String {
    fn from(moment: Moment) -> String {
        moment.0.to_string()
    }
}

impl std::fmt::Display for Moment {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The subject of an entry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    ServerId(SubjectId),
    /// A document of the directory itself: `methodology`, `advisories`.
    Document(String),
}

/// The content of an entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Statement {
    Verdict(Box<VerdictStatement>),
    Drift(DriftStatement),
    Methodology(MethodologyStatement),
    Claim(ClaimStatement),
    Advisory(AdvisoryStatement),
}

impl Statement {
    pub const fn kind(&self) -> &'static str {
        match self {
            Statement::Verdict(_) => "verdict",
            Statement::Drift(_) => "drift",
            Statement::Methodology(_) => "methodology",
            Statement::Claim(_) => "claim",
            Statement::Advisory(_) => "advisory",
        }
    }
}

/// The screen's findings on a server's tools. A visit with many tools has several such entries, all
/// naming the same surface.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerdictStatement {
    pub hashes: VerdictHashes,
    /// The version of the package.
    pub release: Option<String>,
    pub evidence_grade: String,
    pub expires_at: Moment,
    /// The number of this entry within the visit, from 1, and how many there are.
    pub part: [u32; 2],
    pub outcome: VisitOutcome,
    /// Why the visit did not get a contract.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The status of the whole server, including entries that are not tools.
    pub status: String,
    pub directive: String,
    pub dimensions: Vec<Value>,
    pub facts: ServerFacts,
    pub tools: Vec<ToolItem>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerdictHashes {
    pub methodology: String,
    pub manifest: String,
    /// The hash of the whole surface; `None` if the server did not list.
    pub surface: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VisitOutcome {
    Listed,
    #[serde(untagged)]
    NotListed(NotListed),
}

/// The facts behind the quality score and the pages. `None` means unknown.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerFacts {
    pub published_at: Option<Moment>,
    pub has_description: bool,
    pub has_repository: bool,
    pub has_licence: bool,
    pub has_version: bool,
    pub has_launch: bool,
    pub tools: u32,
    pub tools_described: u32,
    pub parameters: u32,
    pub parameters_described: u32,
    /// The number of entries that are not tools: prompts, resources, templates, instructions.
    pub others: u32,
}

/// The verdict on one tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolItem {
    pub tool_name: String,
    pub definition_hash: String,
    pub entry_hash: String,
    /// The hash of this tool's previous item.
    pub prev: Option<String>,
    pub status: String,
    pub directive: String,
    pub granularity: Option<String>,
    pub dimensions: Vec<Value>,
    pub honest_limits: Vec<String>,
}

/// The change of a server from one visit or release to the next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriftStatement {
    pub hashes: DriftHashes,
    pub release_before: Option<String>,
    pub release_after: Option<String>,
    pub part: [u32; 2],
    pub entries: Vec<DriftItem>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriftHashes {
    pub surface_before: String,
    pub surface_after: String,
}

/// A changed entry of a contract.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriftItem {
    /// `tool`, `prompt`, `resource`, `template`, `instructions` or `identity`.
    pub entry_type: String,
    pub name: String,
    /// For a tool: the hash of its previous item.
    pub prev: Option<String>,
    pub entry_before: Option<String>,
    pub entry_after: Option<String>,
    /// The kinds of change, without duplicates.
    pub kinds: Vec<String>,
    pub class: String,
    /// Whether the change may do harm: breaking, destructive, or with a marker.
    pub safety: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MethodologyStatement {
    pub hashes: MethodologyHashes,
    pub version: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MethodologyHashes {
    pub methodology: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimStatement {
    pub hashes: ClaimHashes,
    pub domain: String,
    pub method: String,
    pub state: ClaimState,
    /// For a second claimant: when the claim becomes valid.
    pub counts_from: Option<Moment>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimHashes {
    /// SHA-256 of the claimant's public key.
    pub key: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimState {
    Verified,
    /// Another owner's claim is valid; this one waits.
    Waiting,
    Suspended,
}

impl ClaimState {
    pub const fn as_str(self) -> &'static str {
        match self {
            ClaimState::Verified => "verified",
            ClaimState::Waiting => "waiting",
            ClaimState::Suspended => "suspended",
        }
    }

    pub fn from_word(word: &str) -> Option<ClaimState> {
        let all = [ClaimState::Verified, ClaimState::Waiting, ClaimState::Suspended];
        all.into_iter().find(|state| state.as_str() == word)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdvisoryStatement {
    pub hashes: AdvisoryHashes,
    pub id: String,
    pub finding: AdvisoryFinding,
    pub reason_class: String,
}

/// The finding of an advisory on the contracts that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AdvisoryFinding {
    /// They were found dangerous.
    Dangerous,
    /// The corpus's earlier verdict no longer counts.
    Withdrawn,
}

impl AdvisoryFinding {
    pub const fn as_str(self) -> &'static str {
        match self {
            AdvisoryFinding::Dangerous => "dangerous",
            AdvisoryFinding::Withdrawn => "withdrawn",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdvisoryHashes {
    /// The definition hashes of the contracts concerned.
    pub definitions: Vec<String>,
    /// The hash of the operator's text.
    pub text: String,
}

/// Why bytes are not an entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadEntry {
    #[error("it is longer than {MAX_ENTRY_BYTES} bytes")]
    TooLong,
    #[error("it is not an entry of version {ENTRY_VERSION}: {0}")]
    Form(String),
    #[error("it is not in canonical form")]
    NotCanonical,
}

impl Entry {
    /// The canonical bytes of the entry.
    pub fn write(&self) -> Result<Vec<u8>, BadEntry> {
        let bytes = canonical_of(self)?;
        if bytes.len() > MAX_ENTRY_BYTES { Err(BadEntry::TooLong) } else { Ok(bytes) }
    }

    pub fn read(bytes: &[u8]) -> Result<Entry, BadEntry> {
        if bytes.len() > MAX_ENTRY_BYTES {
            return Err(BadEntry::TooLong);
        }
        let entry: Entry =
            serde_json::from_slice(bytes).map_err(|error| BadEntry::Form(error.to_string()))?;
        if entry.v != ENTRY_VERSION {
            return Err(BadEntry::Form(format!("version {}", entry.v)));
        }
        // A different encoding of the same entry would have a different hash.
        if entry.write()? == bytes { Ok(entry) } else { Err(BadEntry::NotCanonical) }
    }
}

/// The leaf hash of an entry's bytes, which the next entry about the same subject refers to.
pub fn entry_hash(bytes: &[u8]) -> String {
    leaf_of_entry(bytes).to_string()
}

/// The hash of an item, which the next item of the same tool refers to.
pub fn item_hash(item: &impl Serialize) -> Result<String, BadEntry> {
    canonical_of(item).map(|bytes| sha256_hex(&bytes))
}

pub(crate) fn canonical_of(value: &impl Serialize) -> Result<Vec<u8>, BadEntry> {
    let json = serde_json::to_string(value).map_err(|error| BadEntry::Form(error.to_string()))?;
    canonical_bytes(&json)
        .ok_or_else(|| BadEntry::Form("it is not valid, unambiguous JSON".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn methodology() -> Entry {
        Entry {
            v: ENTRY_VERSION,
            at: Moment(Timestamp::parse("2026-01-02T03:04:05Z").unwrap()),
            subject: Subject::Document("methodology".to_owned()),
            prev: None,
            statement: Statement::Methodology(MethodologyStatement {
                hashes: MethodologyHashes { methodology: "aa".to_owned() },
                version: "1".to_owned(),
            }),
        }
    }

    #[test]
    fn an_entry_has_one_spelling() {
        let bytes = methodology().write().unwrap();
        let text = String::from_utf8(bytes.clone()).unwrap();
        assert_eq!(
            text,
            r#"{"at":"2026-01-02T03:04:05Z","hashes":{"methodology":"aa"},"kind":"methodology","prev":null,"subject":{"document":"methodology"},"v":1,"version":"1"}"#
        );
        assert_eq!(Entry::read(&bytes).unwrap(), methodology());
        let spaced = text.replace(r#""v":1"#, r#""v": 1"#);
        assert_eq!(Entry::read(spaced.as_bytes()), Err(BadEntry::NotCanonical));
        let more = text.replace(r#""v":1"#, r#""v":1,"x":2"#);
        assert!(Entry::read(more.as_bytes()).is_err());
        let newer = text.replace(r#""v":1"#, r#""v":2"#);
        assert!(Entry::read(newer.as_bytes()).is_err());
    }

    #[test]
    fn an_entry_at_the_limit_is_written_and_one_past_it_is_not() {
        let mut entry = methodology();
        let short = entry.write().unwrap().len();
        let fill = |entry: &mut Entry, length: usize| {
            let Statement::Methodology(statement) = &mut entry.statement else { panic!() };
            statement.version = "v".repeat(length);
        };
        fill(&mut entry, MAX_ENTRY_BYTES - short + 1);
        assert_eq!(entry.write().unwrap().len(), MAX_ENTRY_BYTES);
        fill(&mut entry, MAX_ENTRY_BYTES - short + 2);
        assert_eq!(entry.write(), Err(BadEntry::TooLong));
    }
}
