//! The operator's decisions on the corpus. Each act changes what is served, and queues the
//! resulting advisories for the writer of the log, in one transaction.
//!
//! An advisory names a definition publicly. It is only made if the operator found the definition
//! dangerous, or if a verdict on it was served and no longer is.

use crate::corpus::Adjudication;
use crate::database::{Database, DatabaseError, Settled, Words, Writing};
use crate::entry::{AdvisoryFinding, AdvisoryHashes, AdvisoryStatement, Statement, Subject};
use contract::hash::{DefinitionHash, sha256_hex};
use contract::time::Timestamp;
use gate::network::{CorpusVerdict, ReasonClass};

/// The document of the log that advisories are entries about.
pub const ADVISORIES: &str = "advisories";
/// The most definitions per advisory.
pub const MAX_DEFINITIONS: usize = 500;
/// The longest text of an advisory, in bytes.
pub const MAX_TEXT_BYTES: usize = 16 * 1024;

/// The result of an act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    pub settled: Vec<Settled>,
    /// The ids of the advisories that were queued for the log.
    pub advisories: Vec<String>,
}

/// Records the operator's verdict on a definition.
pub fn adjudicate(
    database: &mut Database,
    definition: DefinitionHash,
    verdict: CorpusVerdict,
    reason: ReasonClass,
    text: Option<&str>,
    now: Timestamp,
) -> Result<Decided, DatabaseError> {
    database.write(|writing| {
        let settled = writing.adjudicate(definition, Adjudication::Said(verdict, reason))?;
        let said_before = match settled.adjudicated_before {
            Some(Adjudication::Said(before, _)) => Some(before),
            Some(Adjudication::Invalidated) | None => None,
        };
        let was_dangerous = said_before.or(settled.before) == Some(CorpusVerdict::Dangerous);
        let finding = match verdict {
            CorpusVerdict::Dangerous if said_before != Some(CorpusVerdict::Dangerous) => {
                Some((AdvisoryFinding::Dangerous, reason))
            }
            CorpusVerdict::Cleared if was_dangerous => {
                Some((AdvisoryFinding::Withdrawn, ReasonClass::Unstated))
            }
            CorpusVerdict::Dangerous | CorpusVerdict::Cleared => None,
        };
        let advisories = match finding {
            Some((finding, reason)) => leave(writing, &[definition], finding, reason, text, now)?,
            None => Vec::new(),
        };
        Ok(Decided { settled: vec![settled], advisories })
    })
}

/// Withdraws the verdicts on definitions. Nothing is served about them until the operator
/// adjudicates again.
pub fn invalidate(
    database: &mut Database,
    definitions: &[DefinitionHash],
    text: Option<&str>,
    now: Timestamp,
) -> Result<Decided, DatabaseError> {
    database.write(|writing| {
        let settled = definitions
            .iter()
            .map(|definition| writing.adjudicate(*definition, Adjudication::Invalidated))
            .collect::<Result<Vec<_>, _>>()?;
        let is_news = |one: &Settled| {
            one.was_served && one.adjudicated_before != Some(Adjudication::Invalidated)
        };
        withdraw(writing, settled, is_news, text, now)
    })
}

/// Removes everything that an owner contributed and reported.
pub fn invalidate_owner(
    database: &mut Database,
    owner: &str,
    text: Option<&str>,
    now: Timestamp,
) -> Result<Decided, DatabaseError> {
    database.write(|writing| {
        writing.remove_reports(owner)?;
        let settled = writing.remove_owner(owner)?;
        let is_gone = |one: &Settled| one.before.is_some() && one.after.served().is_none();
        withdraw(writing, settled, is_gone, text, now)
    })
}

fn withdraw(
    writing: &Writing<'_>,
    settled: Vec<Settled>,
    is_withdrawn: impl Fn(&Settled) -> bool,
    text: Option<&str>,
    now: Timestamp,
) -> Result<Decided, DatabaseError> {
    let withdrawn: Vec<DefinitionHash> =
        settled.iter().filter(|one| is_withdrawn(one)).map(|one| one.definition).collect();
    let (finding, reason) = (AdvisoryFinding::Withdrawn, ReasonClass::Unstated);
    let advisories = leave(writing, &withdrawn, finding, reason, text, now)?;
    Ok(Decided { settled, advisories })
}

/// Queues advisories for the log. Returns their ids.
fn leave(
    writing: &Writing<'_>,
    definitions: &[DefinitionHash],
    finding: AdvisoryFinding,
    reason: ReasonClass,
    text: Option<&str>,
    now: Timestamp,
) -> Result<Vec<String>, DatabaseError> {
    let text = text.unwrap_or(match finding {
        AdvisoryFinding::Dangerous => {
            "The operator of this directory found the definition dangerous."
        }
        AdvisoryFinding::Withdrawn => {
            "What this directory said of the definition no longer counts."
        }
    });
    let day: String = now.to_string().chars().take(10).collect();
    let mut ids = Vec::new();
    for some in definitions.chunks(MAX_DEFINITIONS) {
        let definitions: Vec<String> = some.iter().map(ToString::to_string).collect();
        let named = format!("{finding:?} {} {text} {}", now.0, definitions.join(" "));
        let digest = sha256_hex(named.as_bytes());
        let id = format!("{day}-{}", digest.get(..8).unwrap_or_default());
        let statement = Statement::Advisory(AdvisoryStatement {
            hashes: AdvisoryHashes { definitions, text: sha256_hex(text.as_bytes()) },
            id: id.clone(),
            finding,
            reason_class: reason.as_str().to_owned(),
        });
        let subject = Subject::Document(ADVISORIES.to_owned());
        let document = Some(text.as_bytes().to_vec());
        writing.leave_statement(&Words { subject, statement, document })?;
        ids.push(id);
    }
    Ok(ids)
}

#[cfg(test)]
mod tests;
