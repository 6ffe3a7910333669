//! What a call is decided on: one value that is replaced as a whole, never changed.

use crate::admission::Admittance;
use crate::credentials::TokenUse;
use crate::principal::Principal;
use crate::view::View;
use contract::time::Timestamp;
use gate::posture::{Posture, Settings};
use gate::server::ServerId;
use ledger::record::{Sandbox, TrustLevel};
use std::collections::HashMap;
use std::sync::Arc;
use store::{Revocation, RevokedKind};

pub use settings::DriftScope;

/// What the operator says of a server, as receipts tell it.
#[derive(Debug, Clone)]
pub struct ServerProfile {
    pub trust: TrustLevel,
    /// How the server is confined; `None` if Holdpoint does not confine it.
    pub sandbox: Option<Sandbox>,
    /// Where the credential that goes upstream comes from.
    pub token: TokenUse,
}

impl Default for ServerProfile {
    fn default() -> Self {
        ServerProfile { trust: TrustLevel::Unknown, sandbox: None, token: TokenUse::default() }
    }
}

/// What incident mode switched off, as far as it concerns one server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Switches {
    pub is_incident: bool,
    pub revocations: Arc<Revocations>,
}

/// Who was revoked and when, ready to be looked up by a call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Revocations {
    server: Option<Timestamp>,
    principals: HashMap<Box<str>, Timestamp>,
}

impl Revocations {
    /// Those that concern one server, of all that the store has.
    pub fn about(server: &ServerId, all: &[Revocation]) -> Revocations {
        let mut about = Revocations::default();
        for Revocation { kind, value, signed } in all {
            match kind {
                RevokedKind::Server if value == server.as_str() => {
                    about.server = about.server.max(Some(signed.at));
                }
                RevokedKind::Principal => {
                    let at = about.principals.entry(value.as_str().into()).or_insert(signed.at);
                    *at = signed.at.max(*at);
                }
                RevokedKind::Server | RevokedKind::Key | RevokedKind::Session => {}
            }
        }
        about
    }
}

/// What of a request's session was revoked after it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revoked {
    Principal,
    Server,
}

/// Everything that the checks look at.
#[derive(Debug, Clone)]
pub struct Situation {
    pub server: ServerId,
    pub profile: ServerProfile,
    pub settings: Settings,
    pub switches: Switches,
    /// Who vouches for the server, where that is asked.
    pub admission: Admittance,
    pub view: Arc<View>,
}

impl Situation {
    /// Whether nothing of the server passes: a person stopped it, or it is not admitted.
    pub fn is_closed(&self) -> bool {
        self.view.stopped().is_some() || self.admission.is_closed()
    }

    /// Whether the posture holds anything at all.
    pub fn is_holding(&self) -> bool {
        self.settings.posture != Posture::Monitor
    }

    /// Whether the principal, or the server in its session, was revoked since the session began.
    pub fn revoked(&self, principal: &Principal) -> Option<Revoked> {
        let Revocations { server, principals } = &*self.switches.revocations;
        let concerns = |at: Option<&Timestamp>| at.is_some_and(|at| *at >= principal.since);
        let is_principal =
            !principals.is_empty() && principal.names().any(|name| concerns(principals.get(name)));
        match is_principal {
            true => Some(Revoked::Principal),
            false => concerns(server.as_ref()).then_some(Revoked::Server),
        }
    }
}
