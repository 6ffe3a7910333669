//! Claims over HTTP: an owner starts a claim, publishes a line, and has it verified. The claims to
//! a server are public.

use super::http::{Answer, Asked, answer};
use super::rates::Turn;
use super::site::{Site, refusal, slow, unknown_key};
use crate::claim::check::{Checker, NotFound, Sought};
use crate::claim::ownership::{self, ClaimError};
use crate::claim::{
    BadClaimKey, BadNonce, ClaimKey, MAX_REQUEST_BYTES, Method, NonceSecret, StartRequest,
    VerifyRequest, line, signed_text,
};
use crate::database::{DatabaseError, StoredClaim};
use crate::entry::{ClaimStatement, Moment};
use crate::model::Server;
use crate::subject::{SubjectId, decode_segment};
use ::http::{Method as HttpMethod, StatusCode};
use contract::time::Timestamp;
use gate::naming::shown_name;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The path prefix for claims.
pub const PREFIX: &str = "/api/v1/claims/";
/// The most concurrent verifications.
pub const MAX_LOOK_UPS: usize = 4;
/// The `Retry-After` time while all of them are in use.
const BUSY_SECONDS: u64 = 10;

/// Handles claims.
#[derive(Debug)]
pub struct ClaimDesk {
    checker: Checker,
    secret: NonceSecret,
    looking: AtomicUsize,
}

impl ClaimDesk {
    pub fn new(checker: Checker, secret: NonceSecret) -> ClaimDesk {
        ClaimDesk { checker, secret, looking: AtomicUsize::new(0) }
    }
}

/// One of the concurrent verifications, until it is dropped.
struct Slot<'d>(&'d AtomicUsize);

impl<'d> Slot<'d> {
    fn take(looking: &'d AtomicUsize) -> Option<Slot<'d>> {
        let more = |taken: usize| (taken < MAX_LOOK_UPS).then_some(taken + 1);
        looking.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok().map(|_| Slot(looking))
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A host or package, displayed like the id of a server; anything else by the rules for names.
fn shown_domain(domain: &str) -> String {
    match domain.parse::<SubjectId>() {
        Ok(id) => id.to_string(),
        Err(_) => shown_name(domain, true),
    }
}

/// The claims to a server, from the log.
pub(super) fn claims_value(server: &Server) -> Value {
    let claim = |(at, claim): &&(Moment, ClaimStatement)| {
        json!({
            "key_hash": claim.hashes.key,
            "domain": shown_domain(&claim.domain),
            "method": claim.method,
            "state": claim.state,
            "since": at,
            "counts_from": claim.counts_from,
        })
    };
    server.current_claims().iter().map(claim).collect()
}

pub(super) fn max_body(path: &str) -> usize {
    match path.strip_prefix(PREFIX) {
        Some("start" | "verify") => MAX_REQUEST_BYTES,
        _ => 0,
    }
}

/// Why a request is refused. No message quotes the request or the text of another server.
#[derive(Debug)]
enum Refused {
    Form,
    PostOnly,
    BadServer,
    BadKey,
    NotListed,
    Mirror,
    NoPlace,
    Nonce(BadNonce),
    NotFound(NotFound),
    TooMany,
    Busy,
    Unusable,
}

impl Refused {
    fn answer(&self) -> Answer {
        let (status, why) = match self {
            Refused::Form => (
                StatusCode::BAD_REQUEST,
                "the request is not the expected JSON: see /api/v1/openapi.json",
            ),
            Refused::PostOnly => (StatusCode::METHOD_NOT_ALLOWED, "this route takes a POST"),
            Refused::BadServer => (StatusCode::BAD_REQUEST, "this is no server's id"),
            Refused::BadKey => {
                return refusal(StatusCode::BAD_REQUEST, &BadClaimKey.to_string());
            }
            Refused::NotListed => (StatusCode::NOT_FOUND, "no such server is listed here"),
            Refused::Mirror => (
                StatusCode::NOT_FOUND,
                "this directory is a mirror and takes no claims: ask the directory that it copies",
            ),
            Refused::NoPlace => (
                StatusCode::BAD_REQUEST,
                "this server cannot be claimed: no domain, package or attestation key of it is known",
            ),
            Refused::Nonce(error) => return refusal(StatusCode::FORBIDDEN, &error.to_string()),
            Refused::NotFound(error) => (StatusCode::CONFLICT, sentence(error)),
            Refused::TooMany => {
                return refusal(StatusCode::CONFLICT, &ClaimError::TooMany.to_string());
            }
            Refused::Busy => return slow(BUSY_SECONDS),
            Refused::Unusable => (
                StatusCode::SERVICE_UNAVAILABLE,
                "the directory's data cannot be used now: try again later",
            ),
        };
        refusal(status, why)
    }
}

impl From<DatabaseError> for Refused {
    fn from(_: DatabaseError) -> Refused {
        Refused::Unusable
    }
}

impl From<ClaimError> for Refused {
    fn from(error: ClaimError) -> Refused {
        match error {
            ClaimError::TooMany => Refused::TooMany,
            ClaimError::Database(_) => Refused::Unusable,
        }
    }
}

fn told(value: &Value) -> Answer {
    answer(StatusCode::OK, "application/json", value.to_string().into())
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refused> {
    serde_json::from_slice(body).map_err(|_| Refused::Form)
}

impl Site {
    pub(super) fn claims(&self, asked: &Asked) -> Answer {
        let now = self.now();
        match self.parts().rates.take(&asked.headers, self.address(asked), now) {
            Turn::Go => {}
            Turn::Wait(seconds) => return slow(seconds),
            Turn::BadKey => return unknown_key(),
        }
        let path = asked.path.strip_prefix(PREFIX).unwrap_or_default();
        let is_post = asked.method == HttpMethod::POST;
        let answered = match (path, is_post) {
            ("start", true) => self.start_claim(&asked.body, now),
            ("verify", true) => self.verify_claim(&asked.body, now),
            ("start" | "verify", false) => Err(Refused::PostOnly),
            (server, _) => self.claims_of(server),
        };
        answered.unwrap_or_else(|refused| refused.answer())
    }

    fn claims_of(&self, segment: &str) -> Result<Answer, Refused> {
        let id: Option<SubjectId> = decode_segment(segment).and_then(|text| text.parse().ok());
        let id = id.ok_or(Refused::BadServer)?;
        let snapshot = self.snapshot();
        let server = snapshot.model.servers.get(&id).ok_or(Refused::NotListed)?;
        Ok(told(&json!({ "server_id": id.as_str(), "claims": claims_value(server) })))
    }

    /// Parses a listed server and the claimant's key.
    fn claimed(&self, server: &str, key: &str) -> Result<(SubjectId, ClaimKey), Refused> {
        let server: SubjectId = server.parse().map_err(|_| Refused::BadServer)?;
        let key: ClaimKey = key.parse().map_err(|_| Refused::BadKey)?;
        match self.snapshot().model.servers.contains_key(&server) {
            true => Ok((server, key)),
            false => Err(Refused::NotListed),
        }
    }

    fn start_claim(&self, body: &[u8], now: Timestamp) -> Result<Answer, Refused> {
        let desk = self.parts().claims.as_ref().ok_or(Refused::Mirror)?;
        let StartRequest { server, key } = read(body)?;
        let (server, key) = self.claimed(&server, &key)?;
        let places = ownership::places_of(&self.database(), &server)?;
        let offers = desk.checker.offers(&server, &key, &places);
        if offers.is_empty() {
            return Err(Refused::NoPlace);
        }
        let (nonce, expires_at) = desk.secret.nonce(&server, &key, now);
        let said = line(&server, &key, &nonce);
        let offers: Vec<Value> = offers
            .iter()
            .map(|(method, place)| json!({ "method": method.as_str(), "place": place }))
            .collect();
        Ok(told(&json!({
            "line": said,
            "nonce": nonce,
            "expires_at": Moment(expires_at),
            "signed_text": signed_text(&said),
            "offers": offers,
        })))
    }

    fn verify_claim(&self, body: &[u8], now: Timestamp) -> Result<Answer, Refused> {
        let desk = self.parts().claims.as_ref().ok_or(Refused::Mirror)?;
        let VerifyRequest { server, key, nonce, method, signature } = read(body)?;
        let (server, key) = self.claimed(&server, &key)?;
        desk.secret.check(&server, &key, &nonce, now).map_err(Refused::Nonce)?;
        let sought = Sought { server: &server, key: &key, nonce: &nonce, method };
        let domain = match method {
            Method::AttestationKey => {
                let signature = signature.as_deref().unwrap_or_default();
                desk.checker.signature(sought, signature).map_err(Refused::NotFound)?
            }
            Method::Dns | Method::WellKnown | Method::Manifest => self.look_for(desk, sought)?,
        };
        let claim = ownership::accept(&mut self.database(), sought, &domain, now)?;
        Ok(told(&claim_value(&claim)))
    }

    /// Looks for the line, without holding the database.
    fn look_for(&self, desk: &ClaimDesk, sought: Sought<'_>) -> Result<String, Refused> {
        let _slot = Slot::take(&desk.looking).ok_or(Refused::Busy)?;
        let places = ownership::places_of(&self.database(), sought.server)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|_| Refused::Unusable)?;
        runtime.block_on(desk.checker.find(sought, &places)).map_err(Refused::NotFound)
    }
}

/// Why a claim was not confirmed, without quoting other servers.
fn sentence(error: &NotFound) -> &'static str {
    match error {
        NotFound::Method => {
            "this server cannot be claimed in this way: see the offers of the start"
        }
        NotFound::Absent => {
            "the line is not there: publish it, wait until others see it, and ask again"
        }
        NotFound::UnknownKey => "the operator does not know this key as the publisher's",
        NotFound::Signature => "the signature is not one of the text to sign by this key",
        NotFound::Dns(_) => "the record could not be looked up: ask again later",
        NotFound::Dial(_) => {
            "the place of the line could not be read: it needs a public https address without redirects"
        }
    }
}

fn claim_value(claim: &StoredClaim) -> Value {
    json!({
        "server_id": claim.server.as_str(),
        "key_hash": claim.key.hash(),
        "domain": shown_domain(&claim.domain),
        "method": claim.method.as_str(),
        "state": claim.state,
        "counts_from": claim.counts_from.map(Moment),
    })
}
