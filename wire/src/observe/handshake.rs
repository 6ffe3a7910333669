//! The handshake of either era, and detecting which era a server speaks.
//!
//! Over stdio, `initialize` is tried first: it is what real servers speak, and some crash on a
//! request before it. Over HTTP the modern handshake is tried first, as its specification requires;
//! each request there is independent.

use super::Session;
use crate::Answer;
use crate::ServerText;
use crate::client::{Asked, Stop};
use crate::envelope::METHOD_NOT_FOUND;
use crate::error::{Awaited, ObserveError};
use crate::limits::DISCOVER_TIMEOUT;
use crate::message::{INVALID_PARAMS, MODERN_CODES};
use crate::revision::{Era, Revision};
use contract::client::ClientCapabilities;
use contract::json::{Document, Node};
use serde_json::{Value, json};
use std::str::FromStr;
use std::time::Duration;
use tokio::time::Instant;

pub(crate) const INITIALIZE: &str = "initialize";
pub(crate) const DISCOVER: &str = "server/discover";
/// The prefix of the names in the stateless era's `_meta`.
const META: &str = "io.modelcontextprotocol";

/// The era and the result, or why this handshake failed. The other handshake may still work.
type Attempt = Result<(Era, String), ObserveError>;

/// The `_meta` that a client of the stateless era sends with every request.
pub(super) fn stateless_meta(client: &ClientCapabilities) -> String {
    let (version, info) = (Revision::NEWEST_STATELESS, client_info());
    // Insert the capabilities as text, so that their numbers are not parsed and rewritten.
    format!(
        r#"{{"{META}/protocolVersion":"{version}","{META}/clientCapabilities":{client},"{META}/clientInfo":{info}}}"#
    )
}

/// The parameters of an `initialize` request by a client with these capabilities.
pub(crate) fn initialize_params(client: &ClientCapabilities) -> String {
    let (version, info) = (Revision::NEWEST_INITIALIZE, client_info());
    format!(r#"{{"protocolVersion":"{version}","capabilities":{client},"clientInfo":{info}}}"#)
}

/// The parameters of a `server/discover` request by a client with these capabilities.
pub(crate) fn discover_params(client: &ClientCapabilities) -> String {
    format!(r#"{{"_meta":{}}}"#, stateless_meta(client))
}

fn client_info() -> Value {
    json!({ "name": "holdpoint", "version": env!("CARGO_PKG_VERSION") })
}

impl Session<'_> {
    pub(super) async fn shake_hands(&mut self) -> Result<(Era, String), Stop> {
        let start = Instant::now();
        let deadline = start + self.limits.start_timeout;
        if self.server.is_http() {
            // A server of the older era may not answer the modern request at all, so leave time for
            // the older handshake.
            let patience = start + DISCOVER_TIMEOUT.min(self.limits.start_timeout / 2);
            let modern = match self.discover(patience).await? {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            let older = self.initialize(deadline).await?;
            return older.map_err(|older| Stop::Error(more_informative(modern, older)));
        }
        match self.initialize(deadline).await? {
            Ok(done) => Ok(done),
            Err(older) if knows_other_era(&older) => {
                self.discover(deadline).await?.map_err(|_| Stop::Error(older))
            }
            Err(older) => Err(Stop::Error(older)),
        }
    }

    async fn initialize(&mut self, deadline: Instant) -> Result<Attempt, Stop> {
        let params = initialize_params(self.client);
        let result = match self.first_answer(INITIALIZE, &params, None, deadline).await? {
            Ok(result) => result,
            Err(error) => return Ok(Err(error)),
        };
        let era = match initialize_revision(&result) {
            Ok(protocol_version) => Era::Initialize { protocol_version },
            Err(error) => return Ok(Err(error)),
        };
        self.server.tell("notifications/initialized", deadline).await;
        Ok(Ok((era, result)))
    }

    async fn discover(&mut self, deadline: Instant) -> Result<Attempt, Stop> {
        let era = Era::Stateless { protocol_version: Revision::NEWEST_STATELESS };
        let params = discover_params(self.client);
        let result = self.first_answer(DISCOVER, &params, era.stateless(), deadline).await?;
        Ok(result.and_then(|result| discover_revision(&result).map(|()| (era, result))))
    }

    /// The result, or why there is none.
    async fn first_answer(
        &mut self,
        method: &'static str,
        params: &str,
        stateless: Option<Revision>,
        deadline: Instant,
    ) -> Result<Result<String, ObserveError>, Stop> {
        let awaited = if method == INITIALIZE { Awaited::Initialize } else { Awaited::Discover };
        let begun = Instant::now();
        Ok(match self.server.ask(method, params, stateless, awaited, deadline).await? {
            Asked::Answer(Answer::Result(result)) => Ok(result.to_string()),
            Asked::Answer(Answer::Error { code, message }) => {
                Err(ObserveError::Refused { method, code, message })
            }
            Asked::Answer(Answer::Unreadable(reason)) => {
                Err(ObserveError::UnreadableHandshake { method, reason })
            }
            Asked::Nothing => {
                Err(self.timed_out(awaited, deadline.saturating_duration_since(begun)))
            }
            Asked::Status(status) => Err(ObserveError::HttpStatus { method, status }),
        })
    }

    fn timed_out(&self, awaited: Awaited, after: Duration) -> ObserveError {
        ObserveError::TimedOut { awaited, after, stderr: self.server.stderr() }
    }
}

/// Whether a refused `initialize` suggests that the server only supports the other era.
fn knows_other_era(error: &ObserveError) -> bool {
    match error {
        ObserveError::Refused { code, .. } => {
            matches!(*code, METHOD_NOT_FOUND | INVALID_PARAMS) || MODERN_CODES.contains(code)
        }
        _ => false,
    }
}

/// The more informative of two failures: a modern error code shows that the server understood the
/// modern request.
fn more_informative(modern: ObserveError, older: ObserveError) -> ObserveError {
    match &modern {
        ObserveError::Refused { code, .. } if MODERN_CODES.contains(code) => modern,
        ObserveError::UnknownRevision { .. } => modern,
        _ => older,
    }
}

pub(crate) fn initialize_revision(result: &str) -> Result<Revision, ObserveError> {
    let unreadable =
        |reason: String| ObserveError::UnreadableHandshake { method: INITIALIZE, reason };
    let document = Document::parse(result).map_err(|error| unreadable(error.to_string()))?;
    let version = document.root().get("protocolVersion").and_then(Node::as_str);
    let version = version.ok_or_else(|| unreadable("it has no `protocolVersion`".to_owned()))?;
    Revision::from_str(&version)
        .map_err(|_| ObserveError::UnknownRevision { revision: ServerText::line(&version) })
}

/// Checks that a server lists the revision it was asked in among those it supports.
fn discover_revision(result: &str) -> Result<(), ObserveError> {
    let unreadable =
        |reason: String| ObserveError::UnreadableHandshake { method: DISCOVER, reason };
    let document = Document::parse(result).map_err(|error| unreadable(error.to_string()))?;
    if !document.root().is_object() {
        return Err(unreadable("it is not an object".to_owned()));
    }
    let Some(supported) = document.root().get("supportedVersions") else { return Ok(()) };
    let ours = Revision::NEWEST_STATELESS.as_str();
    if supported.items().any(|version| version.is_text(ours)) {
        return Ok(());
    }
    let revision = ServerText::line(supported.raw());
    Err(ObserveError::UnknownRevision { revision })
}
