//! Tier 3 of the ladder: whether a tool behaves as it declares. What is sent, and what is made of what came back.
//!
//! Nothing is started or sent here. Sending a battery, and watching the server meanwhile, is the engine's.

mod arguments;
mod assessment;
mod battery;

pub use arguments::{Choose, arguments};
pub use assessment::{Assessment, Departure, Outcome, Sighting, Unobserved};
pub use battery::{Battery, Claims, Expected, MAX_PROBES, NoBattery, Probe};

use crate::tiers::Behavior;

/// Which way behaviour is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Leg {
    /// The server is started in a sandbox without a network and called.
    Sandbox,
    /// The operator's own server is asked to refuse what it says that it refuses. No valid call is made.
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
    /// Nothing is tried.
    #[default]
    Off,
    /// Nothing is tried: the leg is for servers that the operator owns, and the operator does not say so.
    NotOwned,
    Given(Leg),
}

impl Consent {
    /// The answer of the tier where nothing is tried.
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
