//! What a verdict means for a connection: the two flavors, the event names, and where documents are
//! published.

use crate::denial::Denial;
use crate::verify::VerifiedAttestation;
use std::fmt;
use std::str::FromStr;

/// Where a server publishes its document, on the origin of its endpoint, in the order tried.
pub const WELL_KNOWN_PATHS: [&str; 2] =
    ["/.well-known/mcp-attestation", "/.well-known/enclawed-clearance.json"];

/// The key under `capabilities.experimental` that holds an in-band document.
pub const IN_BAND_CAPABILITY: &str = "mcp-attestation";

/// How long an admission remains valid for dispatching calls, by default.
pub const DEFAULT_CACHE_SECONDS: u64 = 60;

/// The event for a tool that is not on the allowlist.
pub const TOOL_DENIED_EVENT: &str = "mcp.tool.deny";

/// Marks a failure that the open flavor lets pass, in receipts and events. Such a failure is never
/// an admission.
pub const WARN_ONLY: &str = "open flavor: warn-only";

/// Whether a failure is treated as a warning or as a denial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flavor {
    /// A failure is reported and recorded, and the call proceeds.
    Open,
    /// A failure denies the connection.
    Enclaved,
}

/// The text is not the name of a flavor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected `open` or `enclaved`")]
pub struct UnknownFlavor;

/// The decision on a connection.
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    Allowed(VerifiedAttestation),
    /// It failed but proceeds; it never counts as allowed.
    Warned(Denial),
    Denied(Denial),
}

impl Flavor {
    pub const ALL: [Flavor; 2] = [Flavor::Open, Flavor::Enclaved];

    pub const fn as_str(self) -> &'static str {
        match self {
            Flavor::Open => "open",
            Flavor::Enclaved => "enclaved",
        }
    }

    pub fn decide(self, outcome: Result<VerifiedAttestation, Denial>) -> Admission {
        match (outcome, self) {
            (Ok(verified), Flavor::Open | Flavor::Enclaved) => Admission::Allowed(verified),
            (Err(denial), Flavor::Open) => Admission::Warned(denial),
            (Err(denial), Flavor::Enclaved) => Admission::Denied(denial),
        }
    }
}

impl FromStr for Flavor {
    type Err = UnknownFlavor;

    fn from_str(text: &str) -> Result<Flavor, UnknownFlavor> {
        Flavor::ALL.into_iter().find(|flavor| flavor.as_str() == text).ok_or(UnknownFlavor)
    }
}

impl fmt::Display for Flavor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl Admission {
    /// The name of the event that records the decision.
    pub fn event(&self) -> &'static str {
        match self {
            Admission::Allowed(_) => "mcp.connect.allow",
            Admission::Warned(_) => "mcp.connect.warn",
            Admission::Denied(_) => "mcp.connect.deny",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_never_an_admission() {
        let failed = || Err(Denial::unattested());
        assert_eq!(Flavor::Open.decide(failed()), Admission::Warned(Denial::unattested()));
        assert_eq!(Flavor::Enclaved.decide(failed()), Admission::Denied(Denial::unattested()));
        assert_eq!(Flavor::Open.decide(failed()).event(), "mcp.connect.warn");
        assert_eq!(Flavor::Enclaved.decide(failed()).event(), "mcp.connect.deny");
    }

    #[test]
    fn flavors_read_back_as_they_print() {
        for flavor in Flavor::ALL {
            assert_eq!(flavor.to_string().parse(), Ok(flavor));
        }
        assert_eq!("Open".parse::<Flavor>(), Err(UnknownFlavor));
    }
}
