//! A streamable HTTP server for callers that are async tasks: a single task handles a message from
//! its first to its last byte. Sessions on the same server share its connections.

use super::exchange::{Exchange, Report, Reports};
use super::limits::HEARD_MESSAGES;
use super::link::Link;
use super::listen::listen;
use super::{Outbound, RemoteFailure, RemoteLimits};
use crate::authorizer::Credential;
use crate::error::ObserveError;
use crate::http::tls::{self, TlsKey};
use crate::limits::{CONNECT_TIMEOUT, GOODBYE_TIMEOUT};
use crate::upstream::HttpEndpoint;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// A session with a server, starting with `initialize`. Callers can share one if the server has no
/// sessions.
#[derive(Debug)]
pub struct RemoteSession {
    link: Link,
}

/// Something received for a request.
#[derive(Debug)]
pub enum Heard {
    /// A message that is not the answer: a notification, or a request from the server.
    Message(Vec<u8>),
    Answer(Vec<u8>),
    /// The stream can be resumed if it breaks off; this client does that itself.
    Resumable {
        /// How long to wait before resuming, if the server says so.
        retry: Option<Duration>,
    },
    /// The server ended its stream before the answer. It will be resumed after a pause.
    Paused,
}

/// Passes reports on immediately. The lock is never contended, because one task makes all reports.
struct Hearing<F>(Mutex<F>);

impl<F: FnMut(Heard) + Send> Reports for Hearing<F> {
    async fn take(&self, report: Report) {
        let mut hear = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match report {
            Report::Message(text) => hear(Heard::Message(text)),
            Report::Answer(text, _) => hear(Heard::Answer(text)),
            Report::Resumable { retry } => hear(Heard::Resumable { retry }),
            Report::Paused => hear(Heard::Paused),
            Report::Settled(_) => {}
        }
    }
}

impl RemoteSession {
    /// Resolves the name and checks the addresses. Nothing is connected yet.
    pub async fn open(
        endpoint: &HttpEndpoint,
        limits: RemoteLimits,
        key: TlsKey,
    ) -> Result<RemoteSession, ObserveError> {
        let tls = if endpoint.url.is_secure() { Some(tls::connector()?) } else { None };
        let link = Link::open(endpoint, tls, key, limits, CONNECT_TIMEOUT).await?;
        Ok(RemoteSession { link })
    }

    /// Opens another session on the same server, sharing its connections.
    pub fn another(&self) -> RemoteSession {
        RemoteSession { link: self.link.another() }
    }

    /// Closes idle connections of all sessions on the server. To be called periodically.
    pub fn close_idle(&self) {
        self.link.close_idle();
    }

    /// From now on, every request of this session shows this credential, for as long as the caller
    /// keeps it.
    pub fn present(&self, credential: &Arc<Credential>) {
        self.link.present(credential);
    }

    /// Sends a request and passes on everything received for it, up to the answer. Dropping the
    /// future closes its connection.
    pub async fn ask(
        &self,
        message: Outbound,
        hear: impl FnMut(Heard) + Send,
    ) -> Result<(), RemoteFailure> {
        let reports = Hearing(Mutex::new(hear));
        Exchange { link: &self.link, ticket: 0, reports }.ask(message).await
    }

    /// Sends a notification or a response, and waits until the server has accepted it.
    pub async fn tell(&self, message: Outbound) -> Result<(), RemoteFailure> {
        let (reports, _heard) = mpsc::channel(1);
        Exchange { link: &self.link, ticket: 0, reports }.tell(message).await
    }

    /// Receives the messages that the server sends on its own, for as long as it offers such a
    /// stream.
    pub async fn listen(&self, mut hear: impl FnMut(&[u8])) -> Result<(), RemoteFailure> {
        let (reports, mut heard) = mpsc::channel(HEARD_MESSAGES);
        let mut listening = pin!(listen(&self.link, &reports));
        loop {
            tokio::select! {
                Some(report) = heard.recv() => {
                    if let Report::Message(text) = report {
                        hear(&text);
                    }
                }
                outcome = &mut listening => return outcome,
            }
        }
    }

    /// Ends the session, if the server has one.
    pub async fn end(&self) {
        if let Some(goodbye) = self.link.delete() {
            let _ = timeout(GOODBYE_TIMEOUT, self.link.send(goodbye)).await;
        }
    }
}
