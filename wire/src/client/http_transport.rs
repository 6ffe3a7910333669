//! A streamable HTTP server that gets one request at a time, over the same link and exchange as a
//! long-lived one.

use super::Asked;
use super::correlate::{Correlator, Heard};
use crate::Answer;
use crate::error::{Awaited, ObserveError};
use crate::http::tls::{self, TlsKey};
use crate::limits::{GOODBYE_TIMEOUT, ObserveLimits};
use crate::message::Request;
use crate::remote::exchange::{Exchange, Report};
use crate::remote::link::Link;
use crate::remote::{Outbound, RemoteFailure, RemoteLimits};
use crate::revision::Revision;
use crate::upstream::HttpEndpoint;
use http::StatusCode;
use std::pin::pin;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;

/// The most messages that were received and not yet handled.
const HEARD_MESSAGES: usize = 4;

/// A server at an address that has been checked.
#[derive(Debug)]
pub(crate) struct HttpTransport {
    link: Link,
    key: TlsKey,
}

/// Builds the message with the facts that the HTTP layer needs.
pub(super) fn outbound(
    request: &Request,
    stateless: Option<Revision>,
    name: Option<&str>,
) -> Outbound {
    Outbound {
        body: request.text.clone().into_bytes(),
        method: Some(request.method.to_owned()),
        id: Some(request.id.key().to_vec()),
        name: name.map(str::to_owned),
        protocol_version: stateless.map(|revision| revision.as_str().to_owned()),
        ..Outbound::default()
    }
}

impl HttpTransport {
    /// Resolves the name and checks the addresses. Nothing is sent yet. Without `tls`, the system's
    /// certificate store is used.
    pub(crate) async fn open(
        endpoint: &HttpEndpoint,
        limits: &ObserveLimits,
        tls: Option<TlsConnector>,
    ) -> Result<HttpTransport, ObserveError> {
        let tls = match tls {
            None if endpoint.url.is_secure() => Some(tls::connector()?),
            given => given,
        };
        let key = TlsKey::default();
        // Each request has its own deadline, and no other timeout may fire earlier.
        let patience = limits.start_timeout.max(limits.list_timeout);
        let bounds = RemoteLimits {
            frame_bytes: limits.frame_bytes,
            idle_timeout: patience,
            accept_timeout: patience,
            shutdown_grace: limits.shutdown_grace,
            ..RemoteLimits::default()
        };
        let link = Link::open(endpoint, tls, key.clone(), bounds, limits.start_timeout).await?;
        Ok(HttpTransport { link, key })
    }

    pub(super) async fn ask(
        &self,
        request: &Request,
        outbound: Outbound,
        awaited: Awaited,
        deadline: Instant,
        correlator: &mut Correlator,
    ) -> Result<Asked, ObserveError> {
        let conversation = async {
            // A server may close an idle connection at any moment, which loses the request. The
            // requests sent here change nothing, so it is safe to repeat one.
            match self.converse(request, outbound.clone(), correlator).await {
                Err(RemoteFailure::Lost { .. }) => {
                    self.converse(request, outbound, correlator).await
                }
                outcome => outcome,
            }
        };
        match timeout_at(deadline, conversation).await {
            Ok(Ok(answer)) => Ok(Asked::Answer(answer)),
            Ok(Err(failure)) => unanswered(failure, awaited),
            Err(_) => Ok(Asked::Nothing),
        }
    }

    pub(super) async fn tell(&self, text: String, method: &str, deadline: Instant) {
        let method = Some(method.to_owned());
        let message = Outbound { body: text.into_bytes(), method, ..Outbound::default() };
        let _ = timeout_at(deadline, self.deliver(message)).await;
    }

    /// Sends a notification, or an answer to the server. The response is ignored.
    async fn deliver(&self, message: Outbound) {
        let (reports, _) = mpsc::channel(1);
        let _ = Exchange { link: &self.link, ticket: 0, reports }.tell(message).await;
    }

    async fn converse(
        &self,
        request: &Request,
        outbound: Outbound,
        correlator: &mut Correlator,
    ) -> Result<Answer, RemoteFailure> {
        let (reports, mut heard) = mpsc::channel(HEARD_MESSAGES);
        let mut asking = pin!(async {
            let exchange = Exchange { link: &self.link, ticket: 0, reports };
            let outcome = exchange.ask(outbound).await;
            // Drop the sender, so that the receiver sees the end.
            drop(exchange);
            outcome
        });
        let mut outcome = None;
        loop {
            let report = tokio::select! {
                biased;
                report = heard.recv() => report,
                ended = &mut asking, if outcome.is_none() => {
                    outcome = Some(ended);
                    continue;
                }
            };
            let text = match report {
                Some(Report::Message(text) | Report::Answer(text, _)) => text,
                Some(Report::Settled(_) | Report::Resumable { .. } | Report::Paused) => continue,
                None => {
                    let failure = outcome.and_then(Result::err);
                    return Err(failure.unwrap_or(RemoteFailure::Internal));
                }
            };
            match correlator.hear(&text, &request.id) {
                Heard::Answer(answer) => return Ok(answer),
                Heard::Reply(reply) => {
                    let body = reply.into_bytes();
                    self.deliver(Outbound { body, ..Outbound::default() }).await;
                }
                Heard::Nothing => {}
            }
        }
    }

    /// Ends the session if there is one. Failures are ignored.
    pub(super) async fn close(self) -> TlsKey {
        if let Some(goodbye) = self.link.delete() {
            let _ = timeout(GOODBYE_TIMEOUT, self.link.send(goodbye)).await;
        }
        self.key
    }
}

/// The outcome of a request that failed.
fn unanswered(failure: RemoteFailure, awaited: Awaited) -> Result<Asked, ObserveError> {
    match failure {
        RemoteFailure::NotReached(error) => Err(error),
        RemoteFailure::Lost { host, source } => {
            Err(ObserveError::ConnectionLost { host, awaited, source })
        }
        RemoteFailure::NeedsSignIn { challenged } => Err(ObserveError::NeedsSignIn { challenged }),
        RemoteFailure::Withheld { words } => Err(ObserveError::Withheld { words }),
        RemoteFailure::CredentialRefused => Err(ObserveError::NeedsSignIn { challenged: false }),
        RemoteFailure::RedirectRefused { status, target } => {
            Err(ObserveError::RedirectRefused { status, target })
        }
        RemoteFailure::Status { status } => Ok(Asked::Status(status)),
        RemoteFailure::SessionEnded => Ok(Asked::Status(StatusCode::NOT_FOUND)),
        RemoteFailure::Unreadable(why) => Ok(Asked::Answer(Answer::Unreadable(why.to_string()))),
        RemoteFailure::Silent { .. }
        | RemoteFailure::Cancelled
        | RemoteFailure::Closing
        | RemoteFailure::NeverReached
        | RemoteFailure::NoRuntime { .. }
        | RemoteFailure::Panicked
        | RemoteFailure::Internal => Ok(Asked::Nothing),
    }
}
