//! The classes of markers. `build.rs` uses this file too, so it uses nothing of the crate.

use std::fmt;

/// What kind of text a marker is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MarkerClass {
    HiddenCharacters,
    InstructionOverride,
    Concealment,
    SecretReading,
    Exfiltration,
    Preemption,
    ContextCapture,
    RoleTag,
    ToolOrder,
    DecodedCommand,
}

impl MarkerClass {
    pub const ALL: [MarkerClass; 10] = [
        MarkerClass::HiddenCharacters,
        MarkerClass::InstructionOverride,
        MarkerClass::Concealment,
        MarkerClass::SecretReading,
        MarkerClass::Exfiltration,
        MarkerClass::Preemption,
        MarkerClass::ContextCapture,
        MarkerClass::RoleTag,
        MarkerClass::ToolOrder,
        MarkerClass::DecodedCommand,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            MarkerClass::HiddenCharacters => "hidden-characters",
            MarkerClass::InstructionOverride => "instruction-override",
            MarkerClass::Concealment => "concealment",
            MarkerClass::SecretReading => "secret-reading",
            MarkerClass::Exfiltration => "exfiltration",
            MarkerClass::Preemption => "pre-emption",
            MarkerClass::ContextCapture => "context-capture",
            MarkerClass::RoleTag => "role-tag",
            MarkerClass::ToolOrder => "tool-order",
            MarkerClass::DecodedCommand => "decoded-command",
        }
    }
}

impl fmt::Display for MarkerClass {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
