//! One MCP client: starts or reaches a server, sends one request at a time, and closes the
//! connection.
//!
//! The observer and admission's own handshake use it. For a long-lived session the gate has its own
//! loop over the same parts: [`crate::process`], [`crate::lines`], [`crate::envelope`] and
//! [`crate::remote`].

use crate::Answer;
use crate::ServerText;
use crate::error::{Awaited, ObserveError};
use crate::limits::ObserveLimits;
use crate::message::{self, Request, RequestIds};
use crate::revision::Revision;
use crate::upstream::Upstream;
use contract::client::ClientCapabilities;
use http::StatusCode;
use std::process::ExitStatus;
use tokio::time::Instant;

mod correlate;
mod http_transport;
mod stderr;
mod stdio_transport;

pub(crate) use correlate::Correlator;
pub(crate) use http_transport::HttpTransport;
pub(crate) use stdio_transport::StdioTransport;

/// A client of one server.
#[derive(Debug)]
pub(crate) struct Client {
    transport: Transport,
    correlator: Correlator,
    ids: RequestIds,
}

#[derive(Debug)]
enum Transport {
    Stdio(Box<StdioTransport>),
    Http(Box<HttpTransport>),
}

/// The outcome of a request.
#[derive(Debug)]
pub(crate) enum Asked {
    Answer(Answer),
    /// No answer before the deadline.
    Nothing,
    /// An HTTP error status without a JSON-RPC error in the body.
    Status(StatusCode),
}

/// Why no further request can be sent.
#[derive(Debug)]
pub(crate) enum Stop {
    Error(ObserveError),
    /// A started server's output has ended. Its exit status is known once the process has been
    /// reaped.
    Ended(Awaited),
}

impl From<ObserveError> for Stop {
    fn from(error: ObserveError) -> Self {
        Stop::Error(error)
    }
}

/// What is known about a server after the connection was closed.
#[derive(Debug, Default)]
pub(crate) struct ClosedServer {
    /// Set if a program exited by itself rather than by our signal.
    pub(crate) status: Option<ExitStatus>,
    pub(crate) stderr: ServerText,
    pub(crate) tls_key: Option<String>,
    pub(crate) notes: Vec<String>,
}

impl Client {
    pub(crate) async fn open(
        upstream: &Upstream,
        capabilities: &ClientCapabilities,
        limits: &ObserveLimits,
    ) -> Result<Client, ObserveError> {
        let correlator = Correlator::new(capabilities);
        Ok(match upstream {
            Upstream::Stdio(launch) => {
                Client::over_stdio(StdioTransport::start(launch, limits)?, correlator)
            }
            Upstream::Http(endpoint) => {
                let transport = HttpTransport::open(endpoint, limits, None).await?;
                Client::over_http(transport, correlator)
            }
        })
    }

    pub(crate) fn over_stdio(transport: StdioTransport, correlator: Correlator) -> Client {
        let transport = Transport::Stdio(Box::new(transport));
        Client { transport, correlator, ids: RequestIds::default() }
    }

    pub(crate) fn over_http(transport: HttpTransport, correlator: Correlator) -> Client {
        let transport = Transport::Http(Box::new(transport));
        Client { transport, correlator, ids: RequestIds::default() }
    }

    pub(crate) fn is_http(&self) -> bool {
        matches!(self.transport, Transport::Http(_))
    }

    /// Sends a request and waits for its answer. `stateless` is the revision that a request of the
    /// stateless era carries; `params` is a JSON object on one line.
    pub(crate) async fn ask(
        &mut self,
        method: &'static str,
        params: &str,
        stateless: Option<Revision>,
        awaited: Awaited,
        deadline: Instant,
    ) -> Result<Asked, Stop> {
        self.ask_about(None, method, params, stateless, awaited, deadline).await
    }

    /// Like [`Self::ask`], for a request about one tool, by name.
    pub(crate) async fn ask_about(
        &mut self,
        name: Option<&str>,
        method: &'static str,
        params: &str,
        stateless: Option<Revision>,
        awaited: Awaited,
        deadline: Instant,
    ) -> Result<Asked, Stop> {
        let id = self.ids.next().map_err(ObserveError::NoRandomness)?;
        let request = Request::new(id, method, params);
        match &mut self.transport {
            Transport::Stdio(stdio) => {
                stdio.ask(&request, awaited, deadline, &mut self.correlator).await
            }
            Transport::Http(http) => {
                let outbound = http_transport::outbound(&request, stateless, name);
                let asked = http.ask(&request, outbound, awaited, deadline, &mut self.correlator);
                Ok(asked.await?)
            }
        }
    }

    /// Sends a notification. A failure to deliver it shows when the next request gets no answer.
    pub(crate) async fn tell(&mut self, method: &str, deadline: Instant) {
        let text = message::notification(method);
        match &mut self.transport {
            Transport::Stdio(stdio) => stdio.tell(&text, deadline).await,
            Transport::Http(http) => http.tell(text, method, deadline).await,
        }
    }

    /// How many answers arrived for requests that were not waiting for one.
    pub(crate) fn stray_answers(&self) -> u64 {
        self.correlator.stray_answers()
    }

    /// The last output of a started server to its standard error.
    pub(crate) fn stderr(&self) -> ServerText {
        match &self.transport {
            Transport::Stdio(stdio) => stdio.stderr(),
            Transport::Http(_) => ServerText::default(),
        }
    }

    /// Ends a started server, or the session with a remote one.
    pub(crate) async fn close(self) -> ClosedServer {
        let mut notes = self.correlator.notes();
        match self.transport {
            Transport::Stdio(stdio) => {
                let (status, stderr) = stdio.close().await;
                ClosedServer { status, stderr, notes, ..ClosedServer::default() }
            }
            Transport::Http(http) => {
                let key = http.close().await;
                if key.has_changed() {
                    let note = "the server showed different TLS keys on different connections";
                    notes.push(note.to_owned());
                }
                ClosedServer {
                    tls_key: key.known().map(str::to_owned),
                    notes,
                    ..ClosedServer::default()
                }
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
