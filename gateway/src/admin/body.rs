//! The bodies of requests. Unknown members are refused: with a mistyped member, the request could
//! approve something else.

use super::refusal::AdminError;
use contract::surface::{EntryId, EntryType};
use engine::acts::ReviewedHash;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::str::FromStr;
use store::{Incident, IncidentLevel, IncidentScope, QuarantineId, RevokedKind, StoppedParts};

/// The most entries per approval.
const MAX_ENTRIES: usize = 5_000;

pub(super) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, AdminError> {
    serde_json::from_slice(body)
        .map_err(|error| AdminError::Input(format!("the body cannot be read: {error}")))
}

/// What was reviewed: everything that waits, by the hash of the whole surface, or certain entries.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ApproveBody {
    surface_hash: Option<String>,
    entries: Option<Vec<ReviewedEntry>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReviewedEntry {
    #[serde(rename = "type")]
    entry_type: String,
    key: String,
    entry_hash: String,
}

#[derive(Debug)]
pub(super) enum Reviewed {
    All(ReviewedHash),
    Entries(Vec<(EntryId, ReviewedHash)>),
}

impl ApproveBody {
    pub(super) fn reviewed(self) -> Result<Reviewed, AdminError> {
        match (self.surface_hash, self.entries) {
            (Some(hash), None) => Ok(Reviewed::All(hash_of("surface_hash", &hash)?)),
            (None, Some(entries)) => {
                if entries.is_empty() || entries.len() > MAX_ENTRIES {
                    let words = format!("`entries` has between 1 and {MAX_ENTRIES} entries");
                    return Err(AdminError::Input(words));
                }
                let read = entries.into_iter().map(|entry| {
                    let entry_type: EntryType = entry.entry_type.parse().map_err(|_| {
                        AdminError::Input(format!("`{}` is not a type of entry", entry.entry_type))
                    })?;
                    let hash = hash_of("entry_hash", &entry.entry_hash)?;
                    Ok((EntryId { entry_type, key: entry.key }, hash))
                });
                Ok(Reviewed::Entries(read.collect::<Result<_, AdminError>>()?))
            }
            (None, None) | (Some(_), Some(_)) => Err(AdminError::Input(
                "the body has `surface_hash`, or `entries` with what was reviewed".to_owned(),
            )),
        }
    }
}

fn hash_of(name: &str, text: &str) -> Result<ReviewedHash, AdminError> {
    text.parse().map_err(|error| AdminError::Input(format!("`{name}` is {error}")))
}

/// The incident mode to set. Omitted members stay as they are.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IncidentBody {
    /// Why the incident is over, if it ends.
    pub(super) reason: Option<String>,
    /// `null` ends the incident.
    #[serde(default, deserialize_with = "given")]
    pub(super) incident: Option<Option<IncidentWish>>,
    pub(super) egress_blocked: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IncidentWish {
    level: Option<String>,
    /// If these are all omitted, the incident is on all servers.
    servers: Option<BTreeSet<String>>,
    tools: Option<BTreeSet<String>>,
    principals: Option<BTreeSet<String>>,
    reason: Option<String>,
}

/// Distinguishes a `null` member from a missing one.
fn given<'de, D, T>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::<T>::deserialize(deserializer).map(Some)
}

impl IncidentWish {
    pub(super) fn incident(self) -> Result<Incident, AdminError> {
        let word = self.level.as_deref().unwrap_or(IncidentLevel::High.as_str());
        let level = IncidentLevel::ALL.into_iter().find(|level| level.as_str() == word);
        let level = level.ok_or_else(|| {
            AdminError::Input("`level` is `low`, `medium`, `high` or `critical`".to_owned())
        })?;
        let named = [&self.servers, &self.tools, &self.principals];
        let names = || named.into_iter().flatten();
        let scope = match names().next() {
            None => IncidentScope::All,
            Some(_) if names().all(BTreeSet::is_empty) => {
                let words = "`servers` is empty: leave it out for all servers";
                return Err(AdminError::Input(words.to_owned()));
            }
            Some(_) => IncidentScope::Parts(StoppedParts {
                servers: all_of("servers", self.servers.as_ref())?,
                tools: all_of("tools", self.tools.as_ref())?,
                principals: self.principals.clone().unwrap_or_default(),
            }),
        };
        Ok(Incident { level, scope, reason: self.reason })
    }
}

fn all_of<T>(member: &str, texts: Option<&BTreeSet<String>>) -> Result<BTreeSet<T>, AdminError>
where
    T: FromStr<Err: std::fmt::Display> + Ord,
{
    let read = texts.into_iter().flatten().map(|text| text.parse::<T>());
    let read: Result<_, T::Err> = read.collect();
    read.map_err(|error| AdminError::Input(format!("`{member}`: {error}")))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReleaseBody {
    id: String,
}

impl ReleaseBody {
    pub(super) fn id(&self) -> Result<QuarantineId, AdminError> {
        self.id.parse().map_err(|error| AdminError::Input(format!("`id`: {error}")))
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RevokeBody {
    kind: String,
    pub(super) value: String,
}

impl RevokeBody {
    pub(super) fn kind(&self) -> Result<RevokedKind, AdminError> {
        let found = RevokedKind::ALL.into_iter().find(|kind| kind.as_str() == self.kind);
        found.ok_or_else(|| {
            AdminError::Input("`kind` is `key`, `principal`, `server` or `session`".to_owned())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_approval_names_what_was_reviewed_in_one_way() {
        let hash = "a".repeat(64);
        let read =
            |text: &str| read::<ApproveBody>(text.as_bytes()).and_then(ApproveBody::reviewed);
        let all = read(&format!(r#"{{"surface_hash":"{hash}"}}"#));
        assert!(matches!(all, Ok(Reviewed::All(_))), "{all:?}");
        let entry = format!(r#"{{"type":"tool","key":"a","entry_hash":"{hash}"}}"#);
        let some = read(&format!(r#"{{"entries":[{entry}]}}"#));
        assert!(matches!(some, Ok(Reviewed::Entries(entries)) if entries.len() == 1));
        for wrong in [
            "{}".to_owned(),
            r#"{"entries":[]}"#.to_owned(),
            format!(r#"{{"surface_hash":"{hash}","entries":[{entry}]}}"#),
            format!(r#"{{"surface_hash":"{hash}","all":true}}"#),
            format!(r#"{{"surface_hash":"{}"}}"#, "a".repeat(16)),
            format!(r#"{{"entries":[{{"type":"tool","key":"a"}},{entry}]}}"#),
            format!(r#"{{"entries":[{{"type":"x","key":"a","entry_hash":"{hash}"}}]}}"#),
        ] {
            assert!(matches!(read(&wrong), Err(AdminError::Input(_))), "{wrong}");
        }
    }

    #[test]
    fn an_incident_that_is_null_ends_and_one_that_is_missing_stays() {
        let read = |text: &str| read::<IncidentBody>(text.as_bytes()).unwrap();
        assert!(matches!(read(r#"{"incident":null}"#).incident, Some(None)));
        assert!(read(r#"{"egress_blocked":true}"#).incident.is_none());
        let on = read(r#"{"incident":{"servers":["files"],"reason":"x"}}"#).incident;
        let incident = on.flatten().unwrap().incident().unwrap();
        assert_eq!(incident.level, IncidentLevel::High);
        for wrong in [
            r#"{"level":"none"}"#,
            r#"{"servers":[]}"#,
            r#"{"servers":["a__b"]}"#,
            r#"{"tools":["write_file"]}"#,
        ] {
            let wish: IncidentWish = serde_json::from_str(wrong).unwrap();
            assert!(wish.incident().is_err(), "{wrong}");
        }
    }
}
