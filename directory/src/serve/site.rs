//! A directory as it is served: a snapshot of the log's model up to the last checkpoint, and the
//! routes.

use super::api::{OPENAPI, PREFIX, Question, Told};
use super::claims::{self, ClaimDesk};
use super::http::{Answer, Asked, Handler, answer, text};
use super::network;
use super::pages;
use super::rates::{Rates, Turn};
use crate::database::{Database, DatabaseError};
use crate::demand::Demand;
use crate::log::publish::{CHECKPOINT_FILE, read_text};
use crate::log::tile::Tile;
use crate::model::Model;
use crate::subject::{SubjectId, decode_segment};
use crate::writer::{Folders, WriteError, extend_model};
use ::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, HeaderName, HeaderValue, RETRY_AFTER};
use ::http::{HeaderMap, StatusCode};
use arc_swap::ArcSwap;
use bytes::Bytes;
use contract::time::Timestamp;
use gate::network::Salt;
use ledger::checkpoint::Checkpoint;
use ledger::note::split;
use screen::verdict::VERDICT_CONTRACT_VERSION;
use serde_json::json;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// The most rendered API responses that are cached.
pub const MAX_RENDERED: usize = 65_536;
/// Pages run no scripts, load nothing from elsewhere and cannot be framed.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// How long the count of served rows is cached.
const COUNT_AGAIN_MS: i64 = 60_000;
const TIDY_AGAIN_MS: i64 = 3_600_000;
const ICON: &str = include_str!("icon.svg");
const STYLE: &str = include_str!("style.css");

/// The parts of a site.
pub struct SiteParts {
    pub folders: Folders,
    pub public_url: String,
    pub contact: String,
    pub sunset: Option<String>,
    pub rates: Rates,
    pub trusted_proxies: Vec<IpAddr>,
    /// The URL of the original directory, if this is a mirror.
    pub mirror_of: Option<String>,
    /// The salt of the network's fingerprints; `None` in a mirror, which has no network.
    pub salt: Option<Salt>,
    /// Handles claims of ownership; `None` in a mirror.
    pub claims: Option<ClaimDesk>,
    pub clock: fn() -> Timestamp,
}

impl std::fmt::Debug for SiteParts {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SiteParts").field("folders", &self.folders).finish_non_exhaustive()
    }
}

/// The state of the log when it was last read.
#[derive(Debug, Default)]
pub struct Snapshot {
    pub model: Model,
    /// The signed checkpoint that covers the model.
    pub note: Option<String>,
    /// Rendered API responses, by path.
    rendered: RwLock<HashMap<String, Told>>,
}

/// A served directory.
#[derive(Debug)]
pub struct Site {
    parts: SiteParts,
    snapshot: ArcSwap<Snapshot>,
    database: Mutex<Database>,
    demand: Mutex<Demand>,
    sunset: Option<HeaderValue>,
    /// The number of served rows of the corpus, and when they were counted.
    served_rows: Mutex<Option<(Timestamp, u64)>>,
    /// When old reports and activity were last deleted.
    tidied: Mutex<Option<Timestamp>>,
}

impl Site {
    pub fn open(parts: SiteParts) -> Result<Site, WriteError> {
        let database = Database::open(&parts.folders.database())?;
        let demand = Demand::open(&parts.folders.demand())?;
        let sunset = parts.sunset.as_deref().and_then(|date| HeaderValue::from_str(date).ok());
        let site = Site {
            parts,
            snapshot: ArcSwap::default(),
            database: Mutex::new(database),
            demand: Mutex::new(demand),
            sunset,
            served_rows: Mutex::default(),
            tidied: Mutex::default(),
        };
        site.refresh()?;
        Ok(site)
    }

    pub fn parts(&self) -> &SiteParts {
        &self.parts
    }

    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    pub(super) fn database(&self) -> MutexGuard<'_, Database> {
        self.database.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn demand(&self) -> MutexGuard<'_, Demand> {
        self.demand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Timestamp {
        (self.parts.clock)()
    }

    /// Reads what was published since the last call. INVARIANT: nothing is served that no
    /// checkpoint covers.
    pub fn refresh(&self) -> Result<(), WriteError> {
        let path = self.parts.folders.log().join(CHECKPOINT_FILE);
        let note = read_text(&path).map_err(|source| WriteError::File { path, source })?;
        let known = self.snapshot.load();
        if note == known.note {
            return Ok(());
        }
        let size =
            note.as_deref().and_then(split).and_then(|(text, _)| Checkpoint::read(text).ok());
        let size = size.map_or(0, |checkpoint| checkpoint.size);
        let mut model = known.model.clone();
        extend_model(&self.database(), &mut model, size)?;
        self.snapshot.store(Arc::new(Snapshot { model, note, rendered: RwLock::default() }));
        Ok(())
    }

    /// Writes the demand counted so far.
    pub fn flush_demand(&self) -> Result<(), DatabaseError> {
        self.demand().flush(self.now())
    }

    /// The number of served rows of the corpus, counted at most once per minute.
    pub(super) fn served_rows(&self) -> Result<u64, DatabaseError> {
        let now = self.now();
        let mut counted = self.served_rows.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, rows)) = *counted
            && (0..COUNT_AGAIN_MS).contains(&(now.0 - at.0))
        {
            return Ok(rows);
        }
        let rows = self.database().served_rows()?;
        *counted = Some((now, rows));
        Ok(rows)
    }

    /// Deletes old reports and activity, once per hour.
    pub fn tidy(&self) -> Result<(), DatabaseError> {
        let now = self.now();
        let mut tidied = self.tidied.lock().unwrap_or_else(PoisonError::into_inner);
        if self.parts.salt.is_none()
            || tidied.is_some_and(|at| (0..TIDY_AGAIN_MS).contains(&(now.0 - at.0)))
        {
            return Ok(());
        }
        self.database().write::<_, DatabaseError>(|writing| {
            writing.forget_activity(now)?;
            writing.forget_reports(now)
        })?;
        *tidied = Some(now);
        Ok(())
    }

    /// The address of a caller: that of the connection, or the one reported by a trusted proxy.
    pub(super) fn address(&self, asked: &Asked) -> IpAddr {
        let peer = asked.peer.ip().to_canonical();
        let is_trusted = |address: &IpAddr| self.parts.trusted_proxies.contains(address);
        if !is_trusted(&peer) {
            return peer;
        }
        let forwarded = asked.headers.get_all("x-forwarded-for").iter();
        let forwarded: Vec<&str> =
            forwarded.flat_map(|value| value.to_str().unwrap_or("-").split(',')).collect();
        // Scan from the right: the first address that is not a trusted proxy is the caller's;
        // everything to its left was written by the caller. If an address cannot be parsed, nothing
        // before it counts.
        for text in forwarded.into_iter().rev() {
            match forwarded_address(text.trim()) {
                Some(address) if is_trusted(&address) => {}
                Some(address) => return address,
                None => return peer,
            }
        }
        peer
    }

    fn trust(&self, asked: &Asked) -> Answer {
        let (address, now) = (self.address(asked), self.now());
        match self.parts.rates.take(&asked.headers, address, now) {
            Turn::Go => {}
            Turn::Wait(seconds) => return self.with_sunset(slow(seconds)),
            Turn::BadKey => return self.with_sunset(unknown_key()),
        }
        let snapshot = self.snapshot.load();
        let is_plain = asked.query.is_none();
        if is_plain {
            let rendered = snapshot.rendered.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(told) = rendered.get(&asked.path)
                && told.until.is_none_or(|until| now < until)
            {
                let body = told.body.clone();
                drop(rendered);
                self.count_demand(&snapshot.model, &asked.path, address, now);
                return self.with_sunset(json_answer(body));
            }
        }
        let Some(question) = Question::read(&asked.path) else {
            return self.with_sunset(refusal(
                StatusCode::BAD_REQUEST,
                "unknown route: see /api/v1/openapi.json",
            ));
        };
        let expected = match expected_hash(asked.query.as_deref()) {
            Ok(expected) => expected,
            Err(()) => {
                return self.with_sunset(refusal(
                    StatusCode::BAD_REQUEST,
                    "`definition_hash` has 64 hexadecimal digits",
                ));
            }
        };
        let told = question.answer(&snapshot.model, expected.as_deref(), now);
        if let Some(server) = question.listed_server(&snapshot.model) {
            self.demand().count(server, address, now);
            if is_plain {
                let mut rendered =
                    snapshot.rendered.write().unwrap_or_else(PoisonError::into_inner);
                if rendered.len() < MAX_RENDERED {
                    rendered.insert(asked.path.clone(), told.clone());
                }
            }
        }
        self.with_sunset(json_answer(told.body))
    }

    fn count_demand(&self, model: &Model, path: &str, address: IpAddr, now: Timestamp) {
        // Under load a count may be skipped; a response never waits for it.
        let Ok(mut demand) = self.demand.try_lock() else { return };
        if let Some(server) = Question::read(path).and_then(|it| it.listed_server(model).cloned()) {
            demand.count(&server, address, now);
        }
    }

    /// Counts a request for the page of a listed server or of one of its tools, which is a lookup
    /// by name as well.
    fn count_page(&self, path: &str, address: IpAddr) {
        let Some(rest) = path.strip_prefix("/server/") else { return };
        let segment = rest.split('/').next().unwrap_or_default();
        let id = decode_segment(segment).and_then(|text| text.parse::<SubjectId>().ok());
        let snapshot = self.snapshot.load();
        if let Some((id, _)) = id.and_then(|id| snapshot.model.servers.get_key_value(&id)) {
            self.demand().count(id, address, self.now());
        }
    }

    fn with_sunset(&self, mut answer: Answer) -> Answer {
        if let Some(date) = &self.sunset {
            answer.headers_mut().insert(HeaderName::from_static("sunset"), date.clone());
        }
        answer
    }

    fn log_file(&self, path: &str) -> Answer {
        let folder = self.parts.folders.log();
        let (file, media_type, lasting) = match path {
            CHECKPOINT_FILE => (folder.join(path), "text/plain; charset=utf-8", false),
            "key" => {
                let key = self.parts.folders.log().join("key");
                (key, "text/plain; charset=utf-8", false)
            }
            tile => match Tile::parse(tile) {
                Some(tile) => (folder.join(tile.to_string()), "application/octet-stream", true),
                None => return self.document(path),
            },
        };
        match std::fs::read(&file) {
            Ok(bytes) => {
                let mut found = answer(StatusCode::OK, media_type, bytes.into());
                let cache = if lasting { "public, max-age=604800, immutable" } else { "no-cache" };
                found.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static(cache));
                found
            }
            Err(_) => text(StatusCode::NOT_FOUND, "not in the log\n"),
        }
    }

    /// A contract or other document that an entry names by hash. It is untrusted text, so browsers
    /// must not render it.
    fn document(&self, path: &str) -> Answer {
        let hash = path
            .strip_prefix("document/")
            .filter(|hash| hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let body = hash.and_then(|hash| self.database().blob(hash).ok().flatten());
        let Some(body) = body else { return text(StatusCode::NOT_FOUND, "not in the log\n") };
        let mut found = answer(StatusCode::OK, "application/octet-stream", body.into());
        let headers = found.headers_mut();
        headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
        guard(headers);
        found
    }

    fn security_text(&self) -> Answer {
        let expires = Timestamp(self.now().0 + 180 * 86_400_000);
        let body = format!(
            "Contact: {}\nExpires: {expires}\nPreferred-Languages: en\nCanonical: {}/.well-known/security.txt\n",
            self.parts.contact, self.parts.public_url
        );
        answer(StatusCode::OK, "text/plain; charset=utf-8", body.into())
    }
}

impl Handler for Site {
    fn answer(&self, asked: &Asked) -> Answer {
        let path = asked.path.as_str();
        if path.starts_with(PREFIX) {
            return self.trust(asked);
        }
        if path.starts_with(network::PREFIX) {
            return self.network(asked);
        }
        if path.starts_with(claims::PREFIX) {
            return self.claims(asked);
        }
        if let Some(path) = path.strip_prefix("/log/") {
            return self.log_file(path);
        }
        match path {
            "/api/v1/openapi.json" => json_answer(Bytes::from_static(OPENAPI.as_bytes())),
            "/style.css" => {
                let mut style = answer(
                    StatusCode::OK,
                    "text/css; charset=utf-8",
                    Bytes::from_static(STYLE.as_bytes()),
                );
                let cache = HeaderValue::from_static("public, max-age=3600");
                style.headers_mut().insert(CACHE_CONTROL, cache);
                style
            }
            "/icon.svg" => {
                let mut icon =
                    answer(StatusCode::OK, "image/svg+xml", Bytes::from_static(ICON.as_bytes()));
                let cache = HeaderValue::from_static("public, max-age=86400");
                icon.headers_mut().insert(CACHE_CONTROL, cache);
                guard(icon.headers_mut());
                icon
            }
            "/robots.txt" => text(StatusCode::OK, "User-agent: *\nDisallow: /api/\n"),
            "/.well-known/security.txt" => self.security_text(),
            _ => {
                self.count_page(path, self.address(asked));
                let (status, body) = pages::render(self, path, asked.query.as_deref());
                let mut page = answer(status, "text/html; charset=utf-8", body.into());
                guard(page.headers_mut());
                page
            }
        }
    }

    fn is_slow(&self, path: &str) -> bool {
        !path.starts_with(PREFIX) && path != "/style.css"
    }

    fn max_body(&self, path: &str) -> usize {
        network::max_body(path).max(claims::max_body(path))
    }
}

/// Parses an address as proxies write it: with or without a port.
fn forwarded_address(text: &str) -> Option<IpAddr> {
    let alone = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let address = alone.parse::<IpAddr>().ok();
    address
        .or_else(|| text.parse::<SocketAddr>().ok().map(|it| it.ip()))
        .map(|it| it.to_canonical())
}

/// The hash that the caller expects, from a query with no other parameters.
fn expected_hash(query: Option<&str>) -> Result<Option<String>, ()> {
    let Some(query) = query.filter(|query| !query.is_empty()) else { return Ok(None) };
    let hash = query.strip_prefix("definition_hash=").ok_or(())?;
    let is_hash = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hash { Ok(Some(hash.to_ascii_lowercase())) } else { Err(()) }
}

fn json_answer(body: Bytes) -> Answer {
    let mut found = answer(StatusCode::OK, "application/json", body);
    found.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=60"));
    found
}

/// The response to too many requests, with the time to wait.
pub(super) fn slow(seconds: u64) -> Answer {
    let mut slow = refusal(StatusCode::TOO_MANY_REQUESTS, "too many requests");
    if let Ok(value) = HeaderValue::from_str(&seconds.to_string()) {
        slow.headers_mut().insert(RETRY_AFTER, value);
    }
    slow
}

pub(super) fn unknown_key() -> Answer {
    refusal(StatusCode::UNAUTHORIZED, "the key is not known or has expired")
}

pub(super) fn refusal(status: StatusCode, why: &str) -> Answer {
    let body = json!({ "error": why, "verdict_contract_version": VERDICT_CONTRACT_VERSION });
    answer(status, "application/json", body.to_string().into())
}

fn guard(headers: &mut HeaderMap) {
    let pairs = [
        ("content-security-policy", CONTENT_SECURITY_POLICY),
        ("referrer-policy", "no-referrer"),
        ("x-frame-options", "DENY"),
        ("cross-origin-opener-policy", "same-origin"),
    ];
    for (name, value) in pairs {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests;
