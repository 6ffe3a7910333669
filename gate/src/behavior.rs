//! Tier 3 of the ladder: whether a tool behaves as it declares. This module chooses the calls and
//! assesses their outcomes.
//!
//! Nothing is started or sent here: the engine sends the battery and watches the server meanwhile.

mod arguments;
mod assessment;
mod battery;

pub use arguments::{Choose, arguments};
pub use assessment::{Assessment, Departure, Outcome, Sighting, Unobserved};
pub use battery::{Battery, Claims, Expected, MAX_PROBES, NoBattery, Probe};

use crate::tiers::Behavior;

/// How a tool's behavior is tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Leg {
    /// The server is started in a sandbox without network access and called.
    Sandbox,
    /// The operator's own server receives only calls that it must refuse. No valid call is made.
    ReadOnly,
}

impl Leg {
    pub const fn as_str(self) -> &'static str {
        match self {
            Leg::Sandbox => "sandbox",
            Leg::ReadOnly => "read-only",
        }
    }
}

/// What the operator allows for one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Consent {
    /// Nothing is tested.
    #[default]
    Off,
    /// Nothing is tested: the test is only for servers that the operator owns, and the operator has
    /// not confirmed that.
    NotOwned,
    Given(Leg),
}

impl Consent {
    /// The tier's answer if nothing is tested.
    pub fn refusal(self) -> Option<Behavior> {
        match self {
            Consent::Off => Some(Behavior::NotRun),
            Consent::NotOwned => Some(Behavior::Declined),
            Consent::Given(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
