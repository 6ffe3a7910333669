//! The credential for one request of a caller, and what to do when the server rejects it.

use crate::server::GatewayServer;
use engine::credentials::{Inbound, Unavailable};
use std::sync::Arc;
use wire::remote::{Credential, Heard, Outbound, RemoteFailure, RemoteSession};

/// The credential for one request, kept for the duration of the request.
#[derive(Debug, Clone)]
pub(crate) struct Presented {
    pub(crate) server: Arc<GatewayServer>,
    pub(crate) inbound: Arc<Inbound>,
    pub(crate) credential: Arc<Credential>,
}

impl Presented {
    /// The same with a new credential in place of the rejected one.
    pub(crate) async fn renewed(&self) -> Result<Presented, Unavailable> {
        let credential = self.server.broker.renew(&self.inbound, &self.credential).await?;
        if self.inbound.is_in_credential(credential.value()) {
            return Err(Unavailable::SameToken);
        }
        Ok(Presented { credential, ..self.clone() })
    }
}

/// Sends a request to a remote server. If the server rejects its credential, the credential is
/// renewed and the request repeated once: a server that answers 401 has not carried it out.
pub(crate) async fn ask(
    remote: &RemoteSession,
    presented: Option<Presented>,
    message: Outbound,
    mut hear: impl FnMut(Heard) + Send,
) -> Result<(), RemoteFailure> {
    let again = presented.as_ref().map(|_| message.clone());
    let outcome = remote.ask(message, &mut hear).await;
    let (Err(RemoteFailure::NeedsSignIn { .. }), refused) =
        (&outcome, RemoteFailure::CredentialRefused)
    else {
        return outcome;
    };
    let (Some(presented), Some(message)) = (presented, again) else { return Err(refused) };
    let Ok(renewed) = presented.renewed().await else { return Err(refused) };
    remote.present(&renewed.credential);
    match remote.ask(message, &mut hear).await {
        Err(RemoteFailure::NeedsSignIn { .. }) => Err(refused),
        outcome => outcome,
    }
}
