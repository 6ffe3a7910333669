//! The path of a call: one check after the other, in one order, the first that does not say *continue* decides.
//!
//! INVARIANT: there is one path for every surface. `run` builds it with fewer checks than a gateway; neither has a second
//! copy of any.

use crate::call::Call;
use crate::checks::{
    AdmissionCheck, AllowlistCheck, DriftCheck, IncidentCheck, InventoryCheck, MirrorCheck,
    PreflightCheck, PreflightLimits,
};
use crate::reason::ReasonCode;
use crate::situation::Situation;
use crate::view::Standing;
use attest::ToolAllowlist;
use std::sync::Arc;

/// What a check says.
#[derive(Debug, Clone)]
#[must_use]
pub enum Answer {
    Continue,
    /// A contract moved, and a person decides.
    Hold(Arc<Standing>),
    /// It is not allowed, whoever looks at the contract.
    Deny(Denial),
}

/// Why a call is denied, with a sentence that tells a person what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    pub reason: ReasonCode,
    pub message: String,
}

/// One question that a call has to pass.
pub trait Check: Send + Sync + std::fmt::Debug {
    fn check(&self, call: &Call<'_>, situation: &Situation) -> Answer;
}

/// The checks that a call passes, in their order.
#[derive(Debug)]
pub struct Path {
    checks: Vec<Box<dyn Check>>,
}

impl Path {
    /// The path in front of one server on one machine. Without an allowlist every tool passes that check; the caller gives an
    /// empty one to a server under the enclaved flavor that has none.
    pub fn for_one_server(limits: PreflightLimits, allowed: Option<Arc<ToolAllowlist>>) -> Path {
        let mut checks: Vec<Box<dyn Check>> =
            vec![Box::new(InventoryCheck), Box::new(IncidentCheck)];
        // Before admission: a tool off the list is refused as such, whoever vouches for the server.
        if let Some(allowed) = allowed {
            checks.push(Box::new(AllowlistCheck { allowed }));
        }
        checks.push(Box::new(AdmissionCheck));
        checks.push(Box::new(DriftCheck));
        checks.push(Box::new(PreflightCheck { limits }));
        checks.push(Box::new(MirrorCheck));
        Path { checks }
    }

    pub fn decide(&self, call: &Call<'_>, situation: &Situation) -> Answer {
        for check in &self.checks {
            match check.check(call, situation) {
                Answer::Continue => {}
                answer => return answer,
            }
        }
        Answer::Continue
    }
}
