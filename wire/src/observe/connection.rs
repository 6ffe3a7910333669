//! The two transports behind one face.

use super::Stop;
use crate::correlate::Correlator;
use crate::error::{Awaited, ObserveError};
use crate::http::{Asked, HttpConnection};
use crate::limits::ObserveLimits;
use crate::message::Request;
use crate::revision::Era;
use crate::server_text::ServerText;
use crate::stdio::{Silence, StdioConnection};
use crate::upstream::Upstream;
use contract::client::ClientCapabilities;
use std::process::ExitStatus;
use tokio::time::Instant;

/// A way to a server.
pub(super) enum Connection {
    Stdio(Box<StdioConnection>),
    Http(Box<HttpConnection>),
}

/// What is known of a server once it has been left.
pub(super) struct Left {
    pub(super) status: Option<ExitStatus>,
    pub(super) stderr: ServerText,
    pub(super) tls_key: Option<String>,
    pub(super) notes: Vec<String>,
}

impl Connection {
    pub(super) async fn open(
        upstream: &Upstream,
        client: &ClientCapabilities,
        limits: &ObserveLimits,
    ) -> Result<Connection, ObserveError> {
        let correlator = Correlator::new(client);
        Ok(match upstream {
            Upstream::Stdio(launch) => {
                Connection::Stdio(Box::new(StdioConnection::start(launch, correlator, limits)?))
            }
            Upstream::Http(endpoint) => Connection::Http(Box::new(
                HttpConnection::open(endpoint, correlator, limits).await?,
            )),
        })
    }

    pub(super) fn is_http(&self) -> bool {
        matches!(self, Connection::Http(_))
    }

    pub(super) async fn ask(
        &mut self,
        request: &Request,
        awaited: Awaited,
        deadline: Instant,
    ) -> Result<Asked, Stop> {
        match self {
            Connection::Stdio(stdio) => match stdio.ask(request, deadline).await {
                Ok(answer) => Ok(Asked::Answer(answer)),
                Err(Silence::TimedOut) => Ok(Asked::Nothing),
                Err(Silence::Ended) => Err(Stop::Ended(awaited)),
            },
            Connection::Http(http) => Ok(http.ask(request, awaited, deadline).await?),
        }
    }

    /// Sends a notification; that it does not arrive is seen when nothing is answered afterwards.
    pub(super) async fn tell(&mut self, method: &str, deadline: Instant) {
        let text = crate::message::notification(method);
        match self {
            Connection::Stdio(stdio) => {
                let _ = stdio.tell(&text, deadline).await;
            }
            Connection::Http(http) => http.tell(text, deadline).await,
        }
    }

    /// From here on the requests are those of this era, or of none that is known yet.
    pub(super) fn settle(&mut self, era: Option<Era>) {
        if let Connection::Http(http) = self {
            http.settle(era);
        }
    }

    pub(super) fn stderr(&self) -> ServerText {
        match self {
            Connection::Stdio(stdio) => stdio.stderr(),
            Connection::Http(_) => ServerText::default(),
        }
    }

    pub(super) async fn close(self) -> Left {
        match self {
            Connection::Stdio(stdio) => {
                let ending = stdio.close().await;
                Left {
                    status: ending.status,
                    stderr: ending.stderr,
                    tls_key: None,
                    notes: ending.notes,
                }
            }
            Connection::Http(http) => {
                let (tls_key, notes) = http.close().await;
                Left { status: None, stderr: ServerText::default(), tls_key, notes }
            }
        }
    }
}
