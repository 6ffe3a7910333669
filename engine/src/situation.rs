//! What a call is decided on: one value that is replaced as a whole, never changed.

use crate::view::View;
use gate::posture::{Posture, Settings};
use gate::server::ServerId;

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
#[derive(Debug)]
pub struct Situation {
    pub server: ServerId,
    pub settings: Settings,
    pub is_incident: bool,
    pub view: View,
}

impl Situation {
    /// Whether the posture holds anything at all.
    pub fn is_holding(&self) -> bool {
        self.settings.posture != Posture::Monitor
    }
}
