//! Measures how much the gate finds: mutations of real contracts, in named strata, and the verdict
//! of each posture.
//!
//! There is one case per package and stratum, only from held-out packages (a quarter of them, by a
//! hash of the name). No rule was tuned on mutations of those. The mutations are our own: an
//! attacker may use others.

mod attacks;
mod judged;
mod mutations;

pub use judged::{Judged, judge};
pub use mutations::cases;

use contract::surface::Surface;
use sha2::{Digest, Sha256};

/// Whether a package's contracts are held out: the SHA-256 of its name, modulo 4, is 0.
pub fn is_held_out(package: &str) -> bool {
    Sha256::digest(package.as_bytes()).last().is_some_and(|last| last % 4 == 0)
}

/// The subject of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stratum {
    /// An instruction to the model in a new optional parameter, short enough to pass as inert.
    SmuggledText,
    /// The same instruction in pieces, one per release, each of which is inert.
    SlowDrip,
    /// A parameter's meaning changes, and a call uses it.
    ByTheCall,
    DestructiveFlip,
    /// An instruction to the model in a tool that was never pinned.
    FirstSightText,
    RequiredAdded,
    ParameterRemoved,
    TypeChanged,
    EnumNarrowed,
    ConstraintNarrowed,
    DescriptionRewritten,
    DefaultChanged,
    OutputChanged,
    InstructionsRewritten,
    ToolRemoved,
    Reordered,
    SameMeaning,
    OptionalAdded,
    MetadataAdded,
}

impl Stratum {
    pub const ALL: [Stratum; 19] = [
        Stratum::SmuggledText,
        Stratum::SlowDrip,
        Stratum::ByTheCall,
        Stratum::DestructiveFlip,
        Stratum::FirstSightText,
        Stratum::RequiredAdded,
        Stratum::ParameterRemoved,
        Stratum::TypeChanged,
        Stratum::EnumNarrowed,
        Stratum::ConstraintNarrowed,
        Stratum::DescriptionRewritten,
        Stratum::DefaultChanged,
        Stratum::OutputChanged,
        Stratum::InstructionsRewritten,
        Stratum::ToolRemoved,
        Stratum::Reordered,
        Stratum::SameMeaning,
        Stratum::OptionalAdded,
        Stratum::MetadataAdded,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Stratum::SmuggledText => "smuggled-text",
            Stratum::SlowDrip => "slow-drip",
            Stratum::ByTheCall => "by-the-call",
            Stratum::DestructiveFlip => "destructive-flip",
            Stratum::FirstSightText => "first-sight-text",
            Stratum::RequiredAdded => "required-added",
            Stratum::ParameterRemoved => "parameter-removed",
            Stratum::TypeChanged => "type-changed",
            Stratum::EnumNarrowed => "enum-narrowed",
            Stratum::ConstraintNarrowed => "constraint-narrowed",
            Stratum::DescriptionRewritten => "description-rewritten",
            Stratum::DefaultChanged => "default-changed",
            Stratum::OutputChanged => "output-changed",
            Stratum::InstructionsRewritten => "instructions-rewritten",
            Stratum::ToolRemoved => "tool-removed",
            Stratum::Reordered => "reordered",
            Stratum::SameMeaning => "same-meaning",
            Stratum::OptionalAdded => "optional-added",
            Stratum::MetadataAdded => "metadata-added",
        }
    }

    pub const fn role(self) -> Role {
        match self {
            Stratum::SmuggledText
            | Stratum::SlowDrip
            | Stratum::ByTheCall
            | Stratum::DestructiveFlip
            | Stratum::FirstSightText => Role::Safety,
            Stratum::RequiredAdded
            | Stratum::ParameterRemoved
            | Stratum::TypeChanged
            | Stratum::EnumNarrowed
            | Stratum::ConstraintNarrowed
            | Stratum::DescriptionRewritten
            | Stratum::DefaultChanged
            | Stratum::OutputChanged
            | Stratum::InstructionsRewritten
            | Stratum::ToolRemoved => Role::Drift,
            Stratum::Reordered
            | Stratum::SameMeaning
            | Stratum::OptionalAdded
            | Stratum::MetadataAdded => Role::Harmless,
        }
    }
}

/// The role of a stratum in the evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// A single miss fails the evaluation.
    Safety,
    /// Counts towards recall.
    Drift,
    /// Counts towards false holds.
    Harmless,
}

/// A contract and its changes.
#[derive(Debug)]
pub struct Case {
    pub package: String,
    pub stratum: Stratum,
    /// The surface that a person approved; `None` for a first sight.
    pub approved: Option<Surface>,
    /// The later surfaces, one per release.
    pub shown: Vec<Surface>,
    /// The entry under test.
    pub entry: contract::surface::EntryId,
    /// A call that the change must stop, if the stratum concerns calls.
    pub call: Option<String>,
}

#[cfg(test)]
mod tests;
