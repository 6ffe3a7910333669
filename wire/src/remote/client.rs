//! A streamable HTTP server for callers that are tasks themselves: one task carries a message from its first byte to its
//! last. Sessions on one server share its connections.

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

/// A session with a server, which begins with its `initialize`. Servers without sessions need no other for another caller.
#[derive(Debug)]
pub struct RemoteSession {
    link: Link,
}

/// What came for a request.
#[derive(Debug)]
pub enum Heard {
    /// A message that is not the answer: a notification, or a request of the server's.
    Message(Vec<u8>),
    Answer(Vec<u8>),
    /// The server's stream can be taken up again where it breaks off, which is done here.
    Resumable {
        /// How long to wait before that, where the server says it.
        retry: Option<Duration>,
    },
    /// The server ended its stream before the answer; it is taken up again after a while.
    Paused,
}

/// Hears what is reported at once. It is never contended: one task makes all reports.
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

    /// Another session on the same server, over the same connections.
    pub fn another(&self) -> RemoteSession {
        RemoteSession { link: self.link.another() }
    }

    /// Closes connections of all sessions on the server that were not used for a while. For a timer.
    pub fn close_idle(&self) {
        self.link.close_idle();
    }

    /// Every request of this session shows this credential from now on, for as long as the caller keeps it.
    pub fn present(&self, credential: &Arc<Credential>) {
        self.link.present(credential);
    }

    /// Sends a request and hears all that comes for it, up to its answer. Dropping the future closes its connection.
    pub async fn ask(
        &self,
        message: Outbound,
        hear: impl FnMut(Heard) + Send,
    ) -> Result<(), RemoteFailure> {
        let reports = Hearing(Mutex::new(hear));
        Exchange { link: &self.link, ticket: 0, reports }.ask(message).await
    }

    /// Sends a notification or a response, and waits until it was accepted.
    pub async fn tell(&self, message: Outbound) -> Result<(), RemoteFailure> {
        let (reports, _heard) = mpsc::channel(1);
        Exchange { link: &self.link, ticket: 0, reports }.tell(message).await
    }

    /// Hears what the server sends without having been asked, for as long as it offers such a stream.
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

    /// Ends the session, where the server has one.
    pub async fn end(&self) {
        if let Some(goodbye) = self.link.delete() {
            let _ = timeout(GOODBYE_TIMEOUT, self.link.send(goodbye)).await;
        }
    }
}
