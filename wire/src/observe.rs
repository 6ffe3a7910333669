//! Observes a server: one session that does the handshake, requests every list, and ends the
//! server.

use crate::client::{Client, Stop};
use crate::error::ObserveError;
use crate::limits::ObserveLimits;
use crate::listing::ListOutcome;
use crate::revision::Era;
use crate::upstream::Upstream;
use contract::client::ClientCapabilities;
use contract::surface::ListKind;

pub(crate) mod handshake;
mod lists;
pub(crate) mod trial;

/// What a server declared about itself, as bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    pub era: Era,
    /// The raw JSON of the result of `initialize` or `server/discover`.
    pub handshake: String,
    /// Every list, in the order of [`ListKind::ALL`].
    pub lists: Vec<(ListKind, ListOutcome)>,
    /// For https: the SHA-256 of the server's public key (SubjectPublicKeyInfo), in hexadecimal.
    pub tls_key: Option<String>,
    /// Messages that were ignored on the way, described in sentences.
    pub notes: Vec<String>,
}

/// The current step, to show to a waiting user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    Starting,
    Handshake,
    /// A list, and the number of the page being requested, counted from 1.
    Listing(ListKind, usize),
}

/// Starts or reaches a server, requests everything it declares about itself, and ends it.
///
/// Dropping the future kills a started server and everything that it started.
pub async fn observe(
    upstream: &Upstream,
    limits: &ObserveLimits,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Observed, ObserveError> {
    observe_as(&ClientCapabilities::default(), upstream, limits, progress).await
}

/// Like [`observe`], with the capabilities of a given client: some servers offer different tools
/// depending on them. Requests from the server to that client are answered as if no user were
/// present: no roots, no samples, no elicitation.
pub async fn observe_as(
    client: &ClientCapabilities,
    upstream: &Upstream,
    limits: &ObserveLimits,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Observed, ObserveError> {
    progress(Progress::Starting);
    let server = Client::open(upstream, client, limits).await?;
    let mut session = Session { server, client, limits, progress, notes: Vec::new() };
    let outcome = session.run().await;
    session.finish(outcome).await
}

/// A server being observed, and the client that it is observed for.
struct Session<'a> {
    server: Client,
    client: &'a ClientCapabilities,
    limits: &'a ObserveLimits,
    progress: &'a (dyn Fn(Progress) + Sync),
    notes: Vec<String>,
}

/// The era, the handshake's result, and the lists.
type ServerSurface = (Era, String, Vec<(ListKind, ListOutcome)>);

impl Session<'_> {
    async fn run(&mut self) -> Result<ServerSurface, Stop> {
        (self.progress)(Progress::Handshake);
        let (era, handshake) = self.shake_hands().await?;
        let lists = self.list_all(era, &handshake).await?;
        Ok((era, handshake, lists))
    }

    async fn finish(self, outcome: Result<ServerSurface, Stop>) -> Result<Observed, ObserveError> {
        let ending = self.server.close().await;
        match outcome {
            Ok((era, handshake, lists)) => {
                let mut notes = self.notes;
                notes.extend(ending.notes);
                Ok(Observed { era, handshake, lists, tls_key: ending.tls_key, notes })
            }
            Err(Stop::Error(error)) => Err(error),
            Err(Stop::Ended(awaited)) => Err(match ending.status {
                Some(status) => ObserveError::Exited { awaited, status, stderr: ending.stderr },
                None => ObserveError::ClosedOutput { awaited, stderr: ending.stderr },
            }),
        }
    }
}
