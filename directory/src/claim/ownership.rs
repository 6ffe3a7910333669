//! The life cycle of claims: the first is valid at once, a second one after seven days, and one
//! that is no longer published is suspended. Every change is queued for the log.

use super::{ClaimKey, Method, Place, places};
use crate::claim::check::{Checker, NotFound, Sought};
use crate::database::{Database, DatabaseError, StoredClaim, Words, Writing};
use crate::entry::{ClaimHashes, ClaimState, ClaimStatement, Moment, Statement, Subject};
use crate::subject::SubjectId;
use contract::time::Timestamp;

/// How long a second claimant waits.
pub const WAIT_DAYS: i64 = 7;
/// The number of consecutive failed checks after which a claim is suspended.
pub const MAX_FAILURES: u32 = 3;
/// The most claims that are kept per server.
pub const MAX_CLAIMS: usize = 16;
const DAY_MS: i64 = 86_400_000;

/// The places to claim a server, from what the directory knows about it.
pub fn places_of(database: &Database, server: &SubjectId) -> Result<Vec<Place>, DatabaseError> {
    let remote = database.remote_address(server)?;
    Ok(places(server, remote.as_deref()))
}

/// Why a verified claim is not stored.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    #[error("this server has {MAX_CLAIMS} claims already: its operator has to suspend one")]
    TooMany,
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// Stores a claim whose line was found.
pub fn accept(
    database: &mut Database,
    sought: Sought<'_>,
    domain: &str,
    now: Timestamp,
) -> Result<StoredClaim, ClaimError> {
    let known = database.claims(Some(sought.server))?;
    let is_ours = |claim: &&StoredClaim| claim.key == *sought.key;
    let own = known.iter().find(is_ours).filter(|claim| claim.state != ClaimState::Suspended);
    let active = known.iter().filter(|claim| claim.state != ClaimState::Suspended);
    if own.is_none() && active.clone().count() >= MAX_CLAIMS {
        return Err(ClaimError::TooMany);
    }
    let (state, counts_from, since) = match own {
        Some(own) => (own.state, own.counts_from, own.since),
        None if active.clone().next().is_some() => {
            (ClaimState::Waiting, Some(whole_second(now.0 + WAIT_DAYS * DAY_MS)), now)
        }
        None => (ClaimState::Verified, None, now),
    };
    let claim = StoredClaim {
        server: sought.server.clone(),
        key: sought.key.clone(),
        method: sought.method,
        domain: domain.to_owned(),
        nonce: sought.nonce.to_owned(),
        state,
        since,
        counts_from,
        failures: 0,
        due: Timestamp(now.0 + DAY_MS),
    };
    let is_news = own.is_none_or(|own| own.domain != claim.domain || own.method != claim.method);
    keep(database, &claim, is_news)?;
    Ok(claim)
}

fn whole_second(milliseconds: i64) -> Timestamp {
    Timestamp(milliseconds.div_euclid(1_000) * 1_000)
}

/// The claim after a check, and whether its state changed.
#[must_use]
pub fn after_check(claim: &StoredClaim, is_there: bool, now: Timestamp) -> (StoredClaim, bool) {
    let mut next = StoredClaim { due: Timestamp(now.0 + DAY_MS), ..claim.clone() };
    if is_there {
        next.failures = 0;
        if claim.state == ClaimState::Waiting && claim.counts_from.is_none_or(|from| from <= now) {
            (next.state, next.counts_from) = (ClaimState::Verified, None);
        }
    } else {
        next.failures += 1;
        if next.failures >= MAX_FAILURES {
            (next.state, next.counts_from) = (ClaimState::Suspended, None);
        }
    }
    let is_news = next.state != claim.state;
    (next, is_news)
}

/// Stores a claim, and queues a change of its state for the log.
pub fn keep(
    database: &mut Database,
    claim: &StoredClaim,
    is_news: bool,
) -> Result<(), DatabaseError> {
    database.write(|writing| {
        writing.keep_claim(claim)?;
        if is_news { leave(writing, claim) } else { Ok(()) }
    })
}

fn leave(writing: &Writing<'_>, claim: &StoredClaim) -> Result<(), DatabaseError> {
    let statement = Statement::Claim(ClaimStatement {
        hashes: ClaimHashes { key: claim.key.hash() },
        domain: claim.domain.clone(),
        method: claim.method.as_str().to_owned(),
        state: claim.state,
        counts_from: claim.counts_from.map(Moment),
    });
    let subject = Subject::ServerId(claim.server.clone());
    writing.leave_statement(&Words { subject, statement, document: None })
}

/// Suspends a claim for the operator. Returns it, if it exists and is not suspended yet.
pub fn suspend(
    database: &mut Database,
    server: &SubjectId,
    key: &ClaimKey,
) -> Result<Option<StoredClaim>, DatabaseError> {
    let known = database.claims(Some(server))?;
    let found = known.into_iter().find(|it| it.key == *key && it.state != ClaimState::Suspended);
    let Some(claim) = found else { return Ok(None) };
    let claim = StoredClaim { state: ClaimState::Suspended, counts_from: None, ..claim };
    keep(database, &claim, true)?;
    Ok(Some(claim))
}

/// The result of checking one claim.
#[derive(Debug)]
pub struct Checked {
    pub claim: StoredClaim,
    /// Why the claim was not confirmed.
    pub problem: Option<String>,
}

/// Checks claims again, each at the place where its owner first published it.
pub async fn check_again(
    database: &mut Database,
    checker: &Checker,
    claims: Vec<StoredClaim>,
    now: Timestamp,
) -> Result<Vec<Checked>, DatabaseError> {
    let mut checked = Vec::with_capacity(claims.len());
    for claim in claims {
        let places = places_of(database, &claim.server)?;
        let sought = Sought {
            server: &claim.server,
            key: &claim.key,
            nonce: &claim.nonce,
            method: claim.method,
        };
        let problem = match claim.method {
            Method::AttestationKey => {
                let is_known = checker.knows_publisher(&claim.server, &claim.key);
                (!is_known).then(|| NotFound::UnknownKey.to_string())
            }
            Method::Dns | Method::WellKnown | Method::Manifest => {
                checker.find(sought, &places).await.err().map(|error| error.to_string())
            }
        };
        let (claim, is_news) = after_check(&claim, problem.is_none(), now);
        keep(database, &claim, is_news)?;
        checked.push(Checked { claim, problem });
    }
    Ok(checked)
}

#[cfg(test)]
mod tests;
