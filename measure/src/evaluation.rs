//! How much the gate finds: mutations of real contracts, in named strata, and what each posture makes of them.
//!
//! One case for each package and stratum, only from packages that are held out (a quarter of them, by a hash of the name).
//! No rule was tuned on a mutation of those. The mutations are ours: an attacker has others.

mod attacks;
mod judged;
mod mutations;

pub use judged::{Judged, judge};
pub use mutations::cases;

use contract::surface::Surface;
use sha2::{Digest, Sha256};

/// Whether a package's contracts are held out: SHA-256 of its name, modulo 4, is 0.
pub fn is_held_out(package: &str) -> bool {
    Sha256::digest(package.as_bytes()).last().is_some_and(|last| last % 4 == 0)
}

/// What a case is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stratum {
    /// An order to the model in a new optional parameter, short enough to pass as inert.
    SmuggledText,
    /// The same order in pieces, one release each, each piece inert.
    SlowDrip,
    /// A parameter's meaning changes, and a call uses it.
    ByTheCall,
    DestructiveFlip,
    /// An order to the model in a tool that nobody has pinned yet.
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

/// What a stratum is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// One miss fails the evaluation.
    Safety,
    /// Counts towards recall.
    Drift,
    /// Counts towards false holds.
    Harmless,
}

/// A contract and what becomes of it.
#[derive(Debug)]
pub struct Case {
    pub package: String,
    pub stratum: Stratum,
    /// What a person approved; nothing at first sight.
    pub approved: Option<Surface>,
    /// What the server shows then, release by release.
    pub shown: Vec<Surface>,
    /// The entry that the case is about.
    pub entry: contract::surface::EntryId,
    /// A call that the change must stop, where the stratum is about calls.
    pub call: Option<String>,
}

#[cfg(test)]
mod tests;
