//! What a call is decided on: one value that is replaced as a whole, never changed.

use crate::admission::Admittance;
use crate::view::View;
use gate::posture::{Posture, Settings};
use gate::server::ServerId;
use std::sync::Arc;

/// How far a held entry reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DriftScope {
    /// It alone is held.
    #[default]
    Tool,
    /// While anything is held, nothing of the server is served.
    Server,
}

/// Everything that the checks look at.
#[derive(Debug, Clone)]
pub struct Situation {
    pub server: ServerId,
    pub settings: Settings,
    pub is_incident: bool,
    /// The server, or the user whose calls these are, was revoked after the session began.
    pub is_revoked: bool,
    /// It was the user.
    pub is_principal_revoked: bool,
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
}
