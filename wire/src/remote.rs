//! A streamable HTTP server as a long-lived upstream: one POST per message, with answers handled as
//! they arrive.
//!
//! The caller's threads stay blocking: [`RemoteSender::send`] puts a message into a bounded queue,
//! and the thread that calls [`Remote::serve`] receives everything that comes back. Nothing is
//! judged here, and bytes are passed on unchanged except for line breaks between JSON tokens.

use crate::http::tls::{self, TlsKey as Key};
use crate::limits::CONNECT_TIMEOUT;
use crate::upstream::HttpEndpoint;
use std::fmt;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_rustls::TlsConnector;

mod answer;
mod budget;
mod client;
pub(crate) mod exchange;
mod failure;
mod lane;
mod limits;
pub(crate) mod link;
mod listen;
mod names;
mod one_line;
pub(crate) mod parameters;
mod pool;
mod relay;
mod stream;

pub use crate::authorizer::Credential;
pub use crate::http::tls::TlsKey;
pub use client::{Heard, RemoteSession};
pub use failure::{FailureKind, RemoteFailure, Unreadable};
pub use limits::RemoteLimits;
pub use parameters::{BadAnnotation, MirroredParameters, ParameterHeader, Unmirrored};

use limits::QUEUE_MESSAGES;
use link::Link;
use relay::Relay;

/// A message to send unchanged, and what the HTTP layer needs to know about it.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Outbound {
    pub body: Vec<u8>,
    /// The method of a request or a notification; a message without one is a response.
    pub method: Option<String>,
    /// The raw id of a request.
    pub id: Option<Vec<u8>>,
    /// The value of `Mcp-Name`: the name of a tool or prompt, or the URI of a resource.
    pub name: Option<String>,
    /// The protocol version in the message itself, which only messages of the stateless era carry.
    pub protocol_version: Option<String>,
    /// In that era, the arguments that are also sent as headers.
    pub parameters: Vec<ParameterHeader>,
    /// Additional headers for this message only.
    pub headers: Vec<(http::HeaderName, http::HeaderValue)>,
    /// Distinguishes a request from a later one with the same id. A cancellation with a mark
    /// abandons only the request with that mark, and nothing more is reported about it.
    pub mark: Option<[u8; 16]>,
}

impl fmt::Debug for Outbound {
    /// The body and the name may be secrets, so only the shape is shown.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = formatter.debug_struct("Outbound");
        out.field("method", &self.method).field("bytes", &self.body.len()).finish_non_exhaustive()
    }
}

/// An event of the connection.
#[derive(Debug)]
pub enum Inbound<'a> {
    /// One JSON-RPC message, without framing and without a line break.
    Message(&'a [u8]),
    /// This request will not get an answer.
    Failed { id: Vec<u8>, failure: RemoteFailure },
    /// A bug in Holdpoint: a panic outside of a request, or one that ended several. The connection
    /// continues.
    Fault,
    /// The server can no longer be reached. This is the last event.
    Ended(RemoteFailure),
}

/// The other end is closed and takes no more messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the connection to the server has ended")]
pub struct Closed;

/// Creates both ends of a connection to a server. Nothing is resolved or connected until
/// [`Remote::serve`].
pub fn remote(endpoint: HttpEndpoint, limits: RemoteLimits) -> (RemoteSender, Remote) {
    let (sender, queue) = mpsc::channel(QUEUE_MESSAGES);
    let key = Key::default();
    (RemoteSender { queue: sender }, Remote { endpoint, limits, queue, key, tls: None })
}

/// Sends messages. It blocks, so it must be used from threads that may block.
#[derive(Debug, Clone)]
pub struct RemoteSender {
    queue: mpsc::Sender<Outbound>,
}

impl RemoteSender {
    /// Blocks while the queue is full. Must not be called from the callback of [`Remote::serve`],
    /// which drains the queue.
    pub fn send(&self, message: Outbound) -> Result<(), Closed> {
        self.queue.blocking_send(message).map_err(|_| Closed)
    }
}

/// Exchanges the messages with the server.
pub struct Remote {
    endpoint: HttpEndpoint,
    limits: RemoteLimits,
    queue: mpsc::Receiver<Outbound>,
    key: TlsKey,
    /// Set to trust other certificates than the system's.
    tls: Option<TlsConnector>,
}

impl fmt::Debug for Remote {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = formatter.debug_struct("Remote");
        out.field("endpoint", &self.endpoint).field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl Remote {
    /// The cell that receives the server's TLS key when the first connection is made.
    pub fn tls_key(&self) -> TlsKey {
        self.key.clone()
    }

    /// Runs until every sender is dropped or the server cannot be reached anymore. Every request
    /// taken from the queue is either answered by a message or reported as failed.
    pub fn serve(self, hear: &mut dyn FnMut(Inbound<'_>)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let mut queue = self.queue;
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(source) => {
                return relay::refuse_all(&mut queue, hear, RemoteFailure::NoRuntime { source });
            }
        };
        let (endpoint, key, limits) = (self.endpoint, self.key, self.limits);
        runtime.block_on(async {
            let tls = match self.tls {
                None if endpoint.url.is_secure() => tls::connector().map(Some),
                given => Ok(given),
            };
            let link = match tls {
                Ok(tls) => Link::open(&endpoint, tls, key, limits, CONNECT_TIMEOUT).await,
                Err(error) => Err(error),
            };
            match link {
                Ok(link) => {
                    let tended = async {
                        match &endpoint.authorizer {
                            Some(authorizer) => authorizer.tend().await,
                            None => std::future::pending().await,
                        }
                    };
                    tokio::select! {
                        () = Relay::new(Arc::new(link), hear).run(queue) => {}
                        () = tended => {}
                    }
                }
                Err(error) => {
                    relay::refuse_all(&mut queue, hear, RemoteFailure::NotReached(error));
                }
            }
        });
        // Otherwise this would wait for a pending name lookup.
        runtime.shutdown_background();
    }
}

#[cfg(test)]
mod tests;
