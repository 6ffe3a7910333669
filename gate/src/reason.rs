//! Why something is held: the part of the closed list of reason codes that is about drift.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    ContractDrift,
    NoPin,
    Marker,
    SurfaceUnreadable,
    ServerChanged,
    ServerPending,
    ServerQuarantined,
    BaselineLost,
    UnapprovedParameter,
}

impl Reason {
    pub const ALL: [Reason; 9] = [
        Reason::ContractDrift,
        Reason::NoPin,
        Reason::Marker,
        Reason::SurfaceUnreadable,
        Reason::ServerChanged,
        Reason::ServerPending,
        Reason::ServerQuarantined,
        Reason::BaselineLost,
        Reason::UnapprovedParameter,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Reason::ContractDrift => "contract_drift",
            Reason::NoPin => "no_pin",
            Reason::Marker => "marker",
            Reason::SurfaceUnreadable => "surface_unreadable",
            Reason::ServerChanged => "server_changed",
            Reason::ServerPending => "server_pending",
            Reason::ServerQuarantined => "server_quarantined",
            Reason::BaselineLost => "baseline_lost",
            Reason::UnapprovedParameter => "unapproved_parameter",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl serde::Serialize for Reason {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
