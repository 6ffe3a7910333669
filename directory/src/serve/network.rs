//! The network's routes: members ask for whole buckets and pages, contribute verdicts and report changes.
//!
//! Every route needs a key. INVARIANT: of a member's lookups, only the number of requests in the
//! current minute is kept. A contribution is stored with its owner and day, because owners are
//! counted.

use super::http::{Answer, Asked, answer};
use super::rates::{ApiKey, Turn};
use super::site::{Site, refusal, slow, unknown_key};
use crate::database::{Contributed, DatabaseError, QuotaMessage};
use crate::feed;
use ::http::header::{ALLOW, CACHE_CONTROL, HeaderValue, RETRY_AFTER};
use ::http::{Method, Response, StatusCode};
use bytes::Bytes;
use contract::time::Timestamp;
use gate::network::{
    Bucket, CorpusBucket, CorpusRow, DriftReport, MAX_BUCKET_ROWS, MAX_REQUEST_BYTES, Parameters,
    ReportBucket, Salt,
};
use http_body_util::Full;
use serde::Serialize;

/// The path prefix of the network.
pub const PREFIX: &str = "/api/v1/network/";
const DAY_MS: i64 = 86_400_000;
/// How long a member may cache the response for a bucket.
const BUCKET_CACHE: &str = "private, max-age=3600";
const FEED_CACHE: &str = "private, no-cache";

/// A request of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    Parameters,
    Corpus(Bucket),
    Contribute,
    Drift { after: u64 },
    Report,
    Reports(Bucket),
    Advisories { after: u64 },
}

/// Why a request is malformed. The messages do not quote the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadRequest {
    NoRoute,
    Method(&'static str),
    Bucket,
    After,
    Query,
}

impl BadRequest {
    fn answer(self) -> Answer {
        let (status, why) = match self {
            BadRequest::NoRoute => {
                (StatusCode::NOT_FOUND, "unknown route: see /api/v1/openapi.json")
            }
            BadRequest::Method(_) => {
                (StatusCode::METHOD_NOT_ALLOWED, "this route takes a different method")
            }
            BadRequest::Bucket => (
                StatusCode::BAD_REQUEST,
                "a bucket is a number of bits and an index that fits into them",
            ),
            BadRequest::After => (StatusCode::BAD_REQUEST, "`after` is a whole number"),
            BadRequest::Query => {
                (StatusCode::BAD_REQUEST, "this route does not accept this query string")
            }
        };
        let mut refused = refusal(status, why);
        if let BadRequest::Method(allowed) = self {
            refused.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
        }
        refused
    }
}

impl Request {
    /// Parses the path after [`PREFIX`].
    pub fn read(method: &Method, path: &str, query: Option<&str>) -> Result<Request, BadRequest> {
        let query = query.unwrap_or_default();
        let is_get = matches!(*method, Method::GET | Method::HEAD);
        let segments: Vec<&str> = path.split('/').collect();
        let found = match segments.as_slice() {
            ["parameters"] => Request::Parameters,
            ["corpus", bits, index] => Request::Corpus(bucket(bits, index)?),
            ["reports", bits, index] => Request::Reports(bucket(bits, index)?),
            ["corpus"] => Request::Contribute,
            ["drift"] if is_get => Request::Drift { after: after(query)? },
            ["drift"] => Request::Report,
            ["advisories"] => Request::Advisories { after: after(query)? },
            _ => return Err(BadRequest::NoRoute),
        };
        let is_feed = matches!(found, Request::Drift { .. } | Request::Advisories { .. });
        if !is_feed && !query.is_empty() {
            return Err(BadRequest::Query);
        }
        match found {
            Request::Contribute if is_get => Err(BadRequest::Method("POST")),
            Request::Contribute | Request::Report => Ok(found),
            _ if is_get => Ok(found),
            _ => Err(BadRequest::Method("GET, HEAD")),
        }
    }
}

/// Parses a number in its canonical notation: no sign, no leading zeros.
fn number<T: std::str::FromStr + ToString>(text: &str) -> Option<T> {
    text.parse::<T>().ok().filter(|number| number.to_string() == text)
}

fn bucket(bits: &str, index: &str) -> Result<Bucket, BadRequest> {
    let bucket = number(bits).zip(number(index)).and_then(|(bits, index)| Bucket::new(bits, index));
    bucket.ok_or(BadRequest::Bucket)
}

fn after(query: &str) -> Result<u64, BadRequest> {
    match query {
        "" => Ok(0),
        query => query.strip_prefix("after=").and_then(number).ok_or(BadRequest::After),
    }
}

/// The longest request body for a path.
pub(super) fn max_body(path: &str) -> usize {
    match path.strip_prefix(PREFIX) {
        Some("corpus" | "drift") => MAX_REQUEST_BYTES,
        _ => 0,
    }
}

impl Site {
    pub(super) fn network(&self, asked: &Asked) -> Answer {
        let now = self.now();
        let Some(salt) = self.parts().salt else {
            return refusal(
                StatusCode::NOT_FOUND,
                "this directory is a mirror and has no network: ask the directory that it copies",
            );
        };
        let address = self.address(asked);
        let key = match self.parts().rates.member(&asked.headers, address, now) {
            Ok(key) => key,
            Err(Turn::Wait(seconds)) => return slow(seconds),
            Err(Turn::BadKey | Turn::Go) => return unknown_key(),
        };
        let path = asked.path.strip_prefix(PREFIX).unwrap_or_default();
        let told = match Request::read(&asked.method, path, asked.query.as_deref()) {
            Err(bad) => return bad.answer(),
            Ok(Request::Contribute) => self.contribute(key, &asked.body, now),
            Ok(Request::Report) => self.report(key, &asked.body, now),
            Ok(Request::Parameters) => self.parameters(salt).map(|it| json(&it, FEED_CACHE)),
            Ok(Request::Corpus(bucket)) => self.corpus(bucket, salt),
            Ok(Request::Reports(bucket)) => self.reports(bucket, salt),
            Ok(Request::Drift { after }) => {
                let page = feed::drift_page(&self.snapshot().model, &salt, after);
                Ok(json(&page, FEED_CACHE))
            }
            Ok(Request::Advisories { after }) => {
                Ok(json(&feed::advisory_page(&self.snapshot().model, after), FEED_CACHE))
            }
        };
        told.unwrap_or_else(|_| {
            let why = "the directory's data cannot be used now: try again later";
            refusal(StatusCode::SERVICE_UNAVAILABLE, why)
        })
    }

    fn parameters(&self, salt: Salt) -> Result<Parameters, DatabaseError> {
        Ok(feed::parameters(&self.snapshot().model, self.served_rows()?, salt))
    }

    fn corpus(&self, bucket: Bucket, salt: Salt) -> Result<Answer, DatabaseError> {
        let bits = self.parameters(salt)?.bucket_bits;
        let rows = || self.database().corpus_bucket(bucket, MAX_BUCKET_ROWS + 1);
        self.bucket(bucket, bits, rows, |rows| json(&CorpusBucket::new(bucket, rows), BUCKET_CACHE))
    }

    fn reports(&self, bucket: Bucket, salt: Salt) -> Result<Answer, DatabaseError> {
        let bits = self.parameters(salt)?.bucket_bits;
        let rows = || self.database().report_bucket(bucket, MAX_BUCKET_ROWS + 1);
        self.bucket(bucket, bits, rows, |rows| json(&ReportBucket::new(bucket, rows), BUCKET_CACHE))
    }

    /// Answers for a bucket. It must not be narrower than the parameters allow; a wider one is
    /// answered if it is not too large.
    fn bucket<T>(
        &self,
        bucket: Bucket,
        bits: u8,
        rows: impl FnOnce() -> Result<Vec<T>, DatabaseError>,
        told: impl FnOnce(Vec<T>) -> Answer,
    ) -> Result<Answer, DatabaseError> {
        if bucket.bits() > bits {
            let why = "the bucket is narrower than the parameters say: read them again";
            return Ok(refusal(StatusCode::BAD_REQUEST, why));
        }
        let mut rows = rows()?;
        if rows.len() > MAX_BUCKET_ROWS && bucket.bits() < bits {
            let why = "the bucket is wider than the parameters say, and too large: read them again";
            return Ok(refusal(StatusCode::BAD_REQUEST, why));
        }
        rows.truncate(MAX_BUCKET_ROWS);
        Ok(told(rows))
    }

    fn contribute(
        &self,
        key: &ApiKey,
        body: &[u8],
        now: Timestamp,
    ) -> Result<Answer, DatabaseError> {
        let row = match CorpusRow::read_contribution(body) {
            Ok(row) => row,
            Err(error) => return Ok(refusal(StatusCode::BAD_REQUEST, &error.to_string())),
        };
        let kept = self.database().write::<_, DatabaseError>(|writing| {
            let message = QuotaMessage::Contribution;
            match writing.count_message(&key.id(), &key.owner, message, now)? {
                Contributed::Kept => writing.contribute(&key.owner, &row, now),
                refused => Ok(refused),
            }
        });
        kept.map(|kept| kept_answer(kept, now))
    }

    fn report(&self, key: &ApiKey, body: &[u8], now: Timestamp) -> Result<Answer, DatabaseError> {
        let report = match DriftReport::read_report(body) {
            Ok(report) => report,
            Err(error) => return Ok(refusal(StatusCode::BAD_REQUEST, &error.to_string())),
        };
        if report.fp_before == report.fp_after {
            let why = "a change has two different fingerprints";
            return Ok(refusal(StatusCode::BAD_REQUEST, why));
        }
        let kept = self.database().write::<_, DatabaseError>(|writing| {
            match writing.count_message(&key.id(), &key.owner, QuotaMessage::Report, now)? {
                Contributed::Kept => writing.keep_report(&key.owner, &report, now),
                refused => Ok(refused),
            }
        });
        kept.map(|kept| kept_answer(kept, now))
    }
}

fn kept_answer(kept: Contributed, now: Timestamp) -> Answer {
    match kept {
        Contributed::Kept => {
            let mut empty = Response::new(Full::new(Bytes::new()));
            *empty.status_mut() = StatusCode::NO_CONTENT;
            empty
        }
        Contributed::Spent => {
            let left = DAY_MS - now.0.rem_euclid(DAY_MS);
            let why = "this key has sent as much as it may on one day";
            let mut refused = refusal(StatusCode::TOO_MANY_REQUESTS, why);
            let seconds = left.unsigned_abs().div_ceil(1_000).to_string();
            if let Ok(value) = HeaderValue::from_str(&seconds) {
                refused.headers_mut().insert(RETRY_AFTER, value);
            }
            refused
        }
        Contributed::Full => refusal(
            StatusCode::SERVICE_UNAVAILABLE,
            "the directory keeps no more of these: its operator has to make room",
        ),
    }
}

fn json(message: &impl Serialize, cache: &'static str) -> Answer {
    let body = serde_json::to_vec(message).unwrap_or_default();
    let mut told = answer(StatusCode::OK, "application/json", body.into());
    told.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static(cache));
    told
}

#[cfg(test)]
mod tests;
